//! Carrying out commands on a running switch, between two rounds. What is refused changes nothing.

use fanin_queueing::RingError;
use fanin_units::Bytes;

use crate::command::{Command, CommandError, PortChange, Reply};
use crate::config::{Mistake, RingSpec, RuleSpec, StationSpec, WaySpec};
use crate::driver::Driver;
use crate::output::{PLAIN, aqm};
use crate::random::Random;
use crate::snapshot::{
    PortSnapshot, QueueSnapshot, RingSnapshot, RuleSnapshot, Snapshot, Tally, WorkerSnapshot,
};
use crate::stations::{Stations, station, way};
use crate::switch::{Storm, Switch};

/// The most rings and rules of a switch.
const NAMES_MAX: usize = 65_536;

fn sound(mistakes: Vec<Mistake>) -> Result<(), CommandError> {
    if mistakes.is_empty() { Ok(()) } else { Err(CommandError::Wrong(mistakes)) }
}

fn unknown(what: &'static str, name: &str) -> CommandError {
    CommandError::Unknown { what, name: name.to_owned() }
}

fn exists(what: &'static str, name: &str) -> CommandError {
    CommandError::Exists { what, name: name.to_owned() }
}

fn no_room(error: &RingError) -> CommandError {
    CommandError::Full { what: error.to_string() }
}

impl<D: Driver> Switch<D> {
    /// Carries out a command. Frames that are queued stay queued, in their order.
    ///
    /// # Errors
    /// Where it is wrong; nothing has changed then.
    pub fn handle_command(&mut self, command: Command) -> Result<Reply, CommandError> {
        let reply = self.carry_out(command);
        self.find_captured();
        reply
    }

    fn carry_out(&mut self, command: Command) -> Result<Reply, CommandError> {
        match command {
            Command::AddRing(spec) => self.add_ring(spec),
            Command::SetRing(spec) => self.set_ring(spec),
            Command::RemoveRing { name } => self.remove_ring(&name),
            Command::AddRule(spec) => self.add_rule(spec),
            Command::RemoveRule { name } => self.remove_rule(&name),
            Command::SetPort(change) => self.set_port(&change),
            Command::AddStation(spec) => self.add_station(spec),
            Command::RemoveStation { mac, vlan } => {
                let key = self.station_vlan(vlan);
                self.config.station.retain(|station| station.mac != mac || station.vlan != vlan);
                if !self.stations.remove(station(mac.to_u64(), key)) {
                    return Err(unknown("station", &mac.to_string()));
                }
                Ok(Reply::Done)
            }
            Command::FlushStations { port } => {
                let port = match port {
                    Some(name) => Some(self.config.port_index(&name).ok_or_else(|| unknown("port", &name))?),
                    None => None,
                };
                self.stations.flush(port);
                Ok(Reply::Done)
            }
            Command::ResetMarks => {
                self.memory.reset_marks();
                self.outputs.iter_mut().for_each(crate::output::Output::reset_marks);
                Ok(Reply::Done)
            }
            Command::Snapshot { stations } => Ok(Reply::Snapshot(Box::new(self.snapshot(stations)))),
            Command::Config => Ok(Reply::Config(Box::new(self.config.clone()))),
        }
    }

    /// Puts a ring of the configuration into its output.
    pub(crate) fn put_ring(&mut self, spec: &RingSpec) -> Result<(), RingError> {
        let Some(port) = self.config.port_index(&spec.port) else { return Ok(()) };
        self.outputs[port].add_ring(spec, self.config.switch.mtu, &mut self.reserve).map(drop)
    }

    fn station_vlan(&self, vlan: Option<crate::address::Vlan>) -> u16 {
        if self.has_vlans { Stations::vlan(Some(vlan.unwrap_or(crate::address::Vlan::DEFAULT))) } else { 0 }
    }

    pub(crate) fn put_station(&mut self, spec: &StationSpec) -> bool {
        let vlan = self.station_vlan(spec.vlan);
        let Some(port) = self.config.port_index(&spec.port) else { return false };
        self.stations.add_static(self.now, station(spec.mac.to_u64(), vlan), port)
    }

    /// Ways are kept beside the stations, their table in the place of a VLAN that no frame can have.
    pub(crate) fn put_way(&mut self, spec: &WaySpec) -> bool {
        let Some(port) = self.config.port_index(&spec.port) else { return false };
        self.stations.add_static(self.now, station(spec.mac.to_u64(), way(spec.table)), port)
    }

    fn add_ring(&mut self, spec: RingSpec) -> Result<Reply, CommandError> {
        if self.config.ring.iter().any(|ring| ring.name == spec.name) {
            return Err(exists("ring", &spec.name));
        }
        if self.config.ring.len() >= NAMES_MAX {
            return Err(CommandError::Full { what: format!("a switch has at most {NAMES_MAX} rings") });
        }
        let has_port = self.config.port_index(&spec.port).is_some();
        sound(spec.mistakes(has_port, || self.config.port.iter().map(|port| port.name.as_str()).collect()))?;
        self.put_ring(&spec).map_err(|error| no_room(&error))?;
        self.config.ring.push(spec);
        Ok(Reply::Done)
    }

    fn set_ring(&mut self, spec: RingSpec) -> Result<Reply, CommandError> {
        let found = self.config.ring.iter().position(|ring| ring.name == spec.name);
        let index = found.ok_or_else(|| unknown("ring", &spec.name))?;
        let old = &self.config.ring[index];
        if old.port != spec.port {
            return Err(CommandError::Moved { ring: spec.name, port: old.port.clone() });
        }
        sound(spec.mistakes(true, Vec::new))?;
        let port = self.config.port_index(&spec.port).ok_or_else(|| unknown("port", &spec.port))?;
        let output = &mut self.outputs[port];
        let ring = output.ring(&spec.name).ok_or_else(|| unknown("ring", &spec.name))?;
        output.set_ring(ring, &spec, self.config.switch.mtu).map_err(|error| no_room(&error))?;
        self.config.ring[index] = spec;
        Ok(Reply::Done)
    }

    fn remove_ring(&mut self, name: &str) -> Result<Reply, CommandError> {
        let found = self.config.ring.iter().position(|ring| ring.name == name);
        let index = found.ok_or_else(|| unknown("ring", name))?;
        if let Some(rule) = self.config.rule.iter().find(|rule| rule.ring.as_deref() == Some(name)) {
            return Err(CommandError::InUse { ring: name.to_owned(), rule: rule.name.clone() });
        }
        for output in &mut self.outputs {
            if let Some(ring) = output.ring(name) {
                output.remove_ring(ring);
            }
        }
        self.config.ring.remove(index);
        Ok(Reply::Done)
    }

    fn add_rule(&mut self, spec: RuleSpec) -> Result<Reply, CommandError> {
        if self.config.rule.iter().any(|rule| rule.name == spec.name) {
            return Err(exists("rule", &spec.name));
        }
        if self.config.rule.len() >= NAMES_MAX {
            return Err(CommandError::Full { what: format!("a switch has at most {NAMES_MAX} rules") });
        }
        sound(spec.mistakes(
            |ring| self.config.ring.iter().any(|other| other.name == ring),
            || self.config.port.iter().map(|port| port.name.as_str()).collect(),
            || self.config.ring.iter().map(|ring| ring.name.as_str()).collect(),
        ))?;
        self.config.rule.push(spec);
        self.rule_tallies.push(Tally::default());
        self.rebuild_rules();
        Ok(Reply::Done)
    }

    fn remove_rule(&mut self, name: &str) -> Result<Reply, CommandError> {
        let found = self.config.rule.iter().position(|rule| rule.name == name);
        let index = found.ok_or_else(|| unknown("rule", name))?;
        self.config.rule.remove(index);
        self.rule_tallies.remove(index);
        self.rebuild_rules();
        Ok(Reply::Done)
    }

    fn add_station(&mut self, spec: StationSpec) -> Result<Reply, CommandError> {
        sound(spec.mistakes(|| self.config.port.iter().map(|port| port.name.as_str()).collect()))?;
        let same = |other: &StationSpec| other.mac == spec.mac && other.vlan == spec.vlan;
        if self.config.station.iter().any(same) {
            return Err(exists("station", &spec.mac.to_string()));
        }
        if !self.put_station(&spec) {
            let max = self.config.switch.mac_entries;
            return Err(CommandError::Full { what: format!("the switch knows {max} stations already") });
        }
        self.config.station.push(spec);
        Ok(Reply::Done)
    }

    fn set_port(&mut self, change: &PortChange) -> Result<Reply, CommandError> {
        let port = self.config.port_index(&change.name).ok_or_else(|| unknown("port", &change.name))?;
        let mut spec = self.config.port[port].clone();
        if let Some(rate) = change.rate {
            spec.rate = (!rate.is_zero()).then_some(rate);
        }
        spec.flood = change.flood.unwrap_or(spec.flood);
        spec.storm = change.storm.unwrap_or(spec.storm);
        spec.mark = change.mark.or(spec.mark);
        spec.impair = change.impair.unwrap_or(spec.impair);
        sound(spec.mistakes(self.config.workers(), &self.config.buffering))?;
        let output = &mut self.outputs[port];
        if change.rate.is_some() {
            let shaping = spec.rate.map(|rate| (rate, Bytes::ZERO));
            let wrong = |error: fanin_queueing::BucketError| {
                CommandError::Wrong(vec![Mistake::new("rate", error.to_string())])
            };
            output.queue.set_rate(output.clock, shaping).map_err(wrong)?;
        }
        if change.mark.is_some() {
            output.queue.set_aqm(PLAIN, aqm(spec.mark, self.config.switch.mtu, spec.rate));
            output.marks = true;
        }
        if change.impair.is_some() {
            let random = Random::new(self.config.switch.seed, 1 + port as u64);
            output.set_impairment(spec.impair, random);
        }
        if change.storm.is_some() {
            self.inputs[port].storm = Storm::new(&spec.storm);
        }
        self.inputs[port].floods = spec.flood;
        self.config.port[port] = spec;
        Ok(Reply::Done)
    }

    /// A picture of everything that this worker owns.
    pub fn snapshot(&self, stations: bool) -> Snapshot {
        let ports = self.mine.iter().map(|&port| self.port_snapshot(port)).collect();
        let (mut rings, places) = (Vec::new(), self.ring_places());
        for spec in &self.config.ring {
            let Some(&(port, ring)) = places.get(spec.name.as_str()) else { continue };
            if !self.mine.contains(&port) {
                continue;
            }
            let output = &self.outputs[port];
            let state = &output.rings[ring];
            rings.push(RingSnapshot {
                name: spec.name.clone(),
                port: spec.port.clone(),
                alarm: state.alarm,
                alarms: state.alarms,
                queue: output.snapshot(ring),
            });
        }
        let rules = self.config.rule.iter().zip(&self.rule_tallies);
        Snapshot {
            name: self.config.switch.name.clone(),
            uptime_ns: self.now.get() / 1000,
            ports,
            rings,
            rules: rules.map(|(rule, &matched)| RuleSnapshot { name: rule.name.clone(), matched }).collect(),
            stations_len: self.stations.len() as u64,
            stations: if stations { self.stations.iter(self.now).collect() } else { Vec::new() },
            workers: vec![WorkerSnapshot {
                worker: self.worker as u16,
                rounds: self.rounds,
                busy_rounds: self.busy_rounds,
                chunks: self.driver.capacity() as u64,
                chunks_free: self.driver.room() as u64,
            }],
        }
    }

    fn port_snapshot(&self, port: usize) -> PortSnapshot {
        let (input, output) = (&self.inputs[port], &self.outputs[port]);
        let mut queue = QueueSnapshot::new(*self.memory.output(port), self.memory.counters(port));
        queue.marked = output.marked(PLAIN).into();
        output.fill(PLAIN, &mut queue);
        PortSnapshot {
            name: self.config.port[port].name.clone(),
            number: port as u16,
            worker: self.worker as u16,
            is_up: input.is_up,
            is_paused: output.paused_until > self.now,
            received: input.received,
            sent: input.sent,
            missed: self.driver.missed(port),
            dropped: input.drops.list(),
            flooded: input.flooded,
            pauses_received: input.pauser.received,
            pauses_sent: input.pauser.sent,
            delayed: output.impairment.as_ref().map_or(0, |way| way.len() as u64),
            m21_flows: self.m21.as_ref().and_then(|m21| m21.flows(port)),
            queue,
        }
    }
}
