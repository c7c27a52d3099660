//! Carrying out commands on a running switch, between two rounds. What is refused changes nothing.

use fanin_queueing::RingError;
use fanin_units::Bytes;

use crate::command::{Command, CommandError, PortChange, Reply};
use crate::config::{Mistake, PortSpec, RingSpec, RuleSpec, StationSpec, WaySpec};
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
        self.check_command(&command)?;
        self.carry_out(command)
    }

    /// Whether a command can be carried out. What this says yes to is carried out: it holds until the next command.
    pub(crate) fn check_command(&self, command: &Command) -> Result<(), CommandError> {
        match command {
            Command::AddRing(spec) => self.check_new_ring(spec),
            Command::SetRing(spec) => self.check_ring(spec),
            Command::RemoveRing { name } => self.check_end_of_ring(name),
            Command::AddRule(spec) => self.check_new_rule(spec),
            Command::RemoveRule { name } => self.rule_index(name).map(drop),
            Command::SetPort(change) => {
                let (_, spec) = self.changed(change)?;
                sound(spec.mistakes(self.config.workers(), &self.config.buffering))
            }
            Command::AddStation(spec) => self.check_new_station(spec),
            Command::RemoveStation { mac, vlan } => {
                let key = station(mac.to_u64(), self.station_vlan(*vlan));
                self.stations.find(key).map(drop).ok_or_else(|| unknown("station", &mac.to_string()))
            }
            Command::FlushStations { port: Some(name) } => self.port_index(name).map(drop),
            Command::FlushStations { port: None }
            | Command::ResetMarks
            | Command::Snapshot { .. }
            | Command::Config => Ok(()),
        }
    }

    /// Carries out a command that was checked.
    pub(crate) fn carry_out(&mut self, command: Command) -> Result<Reply, CommandError> {
        match command {
            Command::AddRing(spec) => {
                self.put_ring(&spec).map_err(|error| no_room(&error))?;
                self.config.ring.push(spec);
            }
            Command::SetRing(spec) => self.set_ring(spec)?,
            Command::RemoveRing { name } => {
                for output in &mut self.outputs {
                    if let Some(ring) = output.ring(&name) {
                        output.remove_ring(ring);
                    }
                }
                self.config.ring.retain(|ring| ring.name != name);
            }
            Command::AddRule(spec) => {
                self.config.rule.push(spec);
                self.rule_tallies.push(Tally::default());
                self.rebuild_rules();
            }
            Command::RemoveRule { name } => {
                let index = self.rule_index(&name)?;
                self.config.rule.remove(index);
                self.rule_tallies.remove(index);
                self.rebuild_rules();
            }
            Command::SetPort(change) => self.set_port(&change)?,
            Command::AddStation(spec) => {
                self.put_station(&spec);
                self.config.station.push(spec);
            }
            Command::RemoveStation { mac, vlan } => {
                self.config.station.retain(|station| station.mac != mac || station.vlan != vlan);
                // It may be known to another worker only.
                self.stations.remove(station(mac.to_u64(), self.station_vlan(vlan)));
            }
            Command::FlushStations { port } => {
                let port = port.map(|name| self.port_index(&name)).transpose()?;
                self.stations.flush(port);
            }
            Command::ResetMarks => {
                self.memory.reset_marks();
                self.outputs.iter_mut().for_each(crate::output::Output::reset_marks);
            }
            Command::Snapshot { stations } => return Ok(Reply::Snapshot(Box::new(self.snapshot(stations)))),
            Command::Config => return Ok(Reply::Config(Box::new(self.config.clone()))),
        }
        self.find_captured();
        Ok(Reply::Done)
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

    fn port_index(&self, name: &str) -> Result<usize, CommandError> {
        self.config.port_index(name).ok_or_else(|| unknown("port", name))
    }

    fn ring_index(&self, name: &str) -> Result<usize, CommandError> {
        let found = self.config.ring.iter().position(|ring| ring.name == name);
        found.ok_or_else(|| unknown("ring", name))
    }

    fn rule_index(&self, name: &str) -> Result<usize, CommandError> {
        let found = self.config.rule.iter().position(|rule| rule.name == name);
        found.ok_or_else(|| unknown("rule", name))
    }

    fn port_names(&self) -> Vec<&str> {
        self.config.port.iter().map(|port| port.name.as_str()).collect()
    }

    fn check_new_ring(&self, spec: &RingSpec) -> Result<(), CommandError> {
        if self.ring_index(&spec.name).is_ok() {
            return Err(exists("ring", &spec.name));
        }
        if self.config.ring.len() >= NAMES_MAX {
            return Err(CommandError::Full { what: format!("a switch has at most {NAMES_MAX} rings") });
        }
        let port = self.config.port_index(&spec.port);
        sound(spec.mistakes(port.is_some(), || self.port_names()))?;
        let room = port.map_or(Ok(()), |port| self.outputs[port].room_for_ring());
        room.map_err(|error| no_room(&error))
    }

    fn check_ring(&self, spec: &RingSpec) -> Result<(), CommandError> {
        let old = &self.config.ring[self.ring_index(&spec.name)?];
        if old.port != spec.port {
            return Err(CommandError::Moved { ring: spec.name.clone(), port: old.port.clone() });
        }
        sound(spec.mistakes(true, Vec::new))
    }

    fn set_ring(&mut self, spec: RingSpec) -> Result<(), CommandError> {
        let (index, port) = (self.ring_index(&spec.name)?, self.port_index(&spec.port)?);
        let output = &mut self.outputs[port];
        let ring = output.ring(&spec.name).ok_or_else(|| unknown("ring", &spec.name))?;
        output.set_ring(ring, &spec, self.config.switch.mtu).map_err(|error| no_room(&error))?;
        self.config.ring[index] = spec;
        Ok(())
    }

    fn check_end_of_ring(&self, name: &str) -> Result<(), CommandError> {
        self.ring_index(name)?;
        match self.config.rule.iter().find(|rule| rule.ring.as_deref() == Some(name)) {
            Some(rule) => Err(CommandError::InUse { ring: name.to_owned(), rule: rule.name.clone() }),
            None => Ok(()),
        }
    }

    fn check_new_rule(&self, spec: &RuleSpec) -> Result<(), CommandError> {
        if self.rule_index(&spec.name).is_ok() {
            return Err(exists("rule", &spec.name));
        }
        if self.config.rule.len() >= NAMES_MAX {
            return Err(CommandError::Full { what: format!("a switch has at most {NAMES_MAX} rules") });
        }
        sound(spec.mistakes(
            |ring| self.ring_index(ring).is_ok(),
            || self.port_names(),
            || self.config.ring.iter().map(|ring| ring.name.as_str()).collect(),
        ))
    }

    /// Whether there is a place does not depend on what was learned, which workers may know more or less of.
    fn check_new_station(&self, spec: &StationSpec) -> Result<(), CommandError> {
        sound(spec.mistakes(|| self.port_names()))?;
        let same = |other: &StationSpec| other.mac == spec.mac && other.vlan == spec.vlan;
        if self.config.station.iter().any(same) {
            return Err(exists("station", &spec.mac.to_string()));
        }
        let max = self.config.switch.mac_entries;
        if self.config.station.len() + self.config.way.len() >= max as usize {
            return Err(CommandError::Full { what: format!("the switch knows {max} stations already") });
        }
        Ok(())
    }

    /// The number of a port, and what it is to be.
    fn changed(&self, change: &PortChange) -> Result<(usize, PortSpec), CommandError> {
        let port = self.port_index(&change.name)?;
        let mut spec = self.config.port[port].clone();
        if let Some(rate) = change.rate {
            spec.rate = (!rate.is_zero()).then_some(rate);
        }
        spec.flood = change.flood.unwrap_or(spec.flood);
        spec.storm = change.storm.unwrap_or(spec.storm);
        spec.mark = change.mark.or(spec.mark);
        spec.impair = change.impair.unwrap_or(spec.impair);
        Ok((port, spec))
    }

    fn set_port(&mut self, change: &PortChange) -> Result<(), CommandError> {
        let (port, spec) = self.changed(change)?;
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
        Ok(())
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
