//! The snapshot of one worker's state and counters.

use crate::driver::Driver;
use crate::snapshot::{PortSnapshot, RuleSnapshot, Snapshot, WorkerSnapshot};

use super::Switch;

impl<D: Driver> Switch<D> {
    /// Takes a snapshot of this worker; with `stations` it includes every station.
    pub fn snapshot(&self, stations: bool) -> Snapshot {
        let places = self.outputs.ring_places();
        let rings = self.config.ring.iter().filter_map(|spec| {
            let &(port, _) = places.get(spec.name.as_str())?;
            self.peers.is_own(port).then(|| self.outputs.output(port).ring_snapshot(&spec.name))?
        });
        let rules = self.config.rule.iter().zip(self.rules.tallies());
        Snapshot {
            name: self.config.switch.name.clone(),
            uptime_ns: self.now.get() / 1000,
            ports: self.peers.ports().iter().map(|&port| self.port_snapshot(port)).collect(),
            rings: rings.collect(),
            rules: rules.map(|(rule, &matched)| RuleSnapshot { name: rule.name.clone(), matched }).collect(),
            stations_len: self.forwarding.len() as u64,
            stations: if stations { self.forwarding.stations(self.now) } else { Vec::new() },
            workers: vec![WorkerSnapshot {
                worker: self.worker() as u16,
                rounds: self.rounds.all,
                busy_rounds: self.rounds.busy,
                chunks: self.driver.capacity() as u64,
                chunks_free: self.driver.room() as u64,
            }],
        }
    }

    fn port_snapshot(&self, port: usize) -> PortSnapshot {
        let (state, output) = (&self.ports[port], self.outputs.output(port));
        let (received, sent, flooded) = state.tallies();
        let (pauses_received, pauses_sent) = self.pauses.counters(port);
        let (stations, unlearned) = self.forwarding.port_stations(port);
        PortSnapshot {
            name: self.config.port[port].name.clone(),
            number: port as u16,
            worker: self.worker() as u16,
            is_up: state.is_up(),
            is_paused: output.is_paused(self.now),
            received,
            sent,
            missed: self.driver.missed(port),
            dropped: state.drops(),
            flooded,
            stations,
            unlearned,
            pauses_received,
            pauses_sent,
            delayed: output.frames_delayed(),
            m21_flows: self.m21.as_ref().and_then(|m21| m21.flows(port)),
            queue: self.outputs.plain_snapshot(port),
        }
    }
}
