//! Carries out commands on a running switch, between two rounds. A refused command changes nothing.

use fanin_queueing::RingError;

use crate::command::{Command, CommandError, PortChange, Reply};
use crate::config::{Mistake, PortSpec, RingSpec, RuleSpec, StationSpec};
use crate::driver::Driver;
use crate::random::SplitMix64;

use super::Switch;

/// The most rings and rules of a switch.
const NAMES_MAX: usize = 65_536;

fn refuse_any(mistakes: Vec<Mistake>) -> Result<(), CommandError> {
    if mistakes.is_empty() { Ok(()) } else { Err(CommandError::Wrong(mistakes)) }
}

fn unknown(kind: &'static str, name: &str) -> CommandError {
    CommandError::Unknown { kind, name: name.to_owned() }
}

fn exists(kind: &'static str, name: &str) -> CommandError {
    CommandError::Exists { kind, name: name.to_owned() }
}

fn full(error: &RingError) -> CommandError {
    CommandError::Full { message: error.to_string() }
}

impl<D: Driver> Switch<D> {
    /// Carries out a command. Queued frames stay queued, in their order.
    ///
    /// # Errors
    /// If it is refused; then nothing has changed.
    pub fn handle_command(&mut self, command: Command) -> Result<Reply, CommandError> {
        self.check_command(&command)?;
        self.carry_out(command)
    }

    /// Checks that a command can be carried out. The answer holds until the next command.
    ///
    /// # Errors
    /// The reason for refusing it.
    pub(crate) fn check_command(&self, command: &Command) -> Result<(), CommandError> {
        match command {
            Command::AddRing(spec) => self.check_new_ring(spec),
            Command::SetRing(spec) => self.check_ring(spec),
            Command::RemoveRing { name } => self.check_end_of_ring(name),
            Command::AddRule(spec) => self.check_new_rule(spec),
            Command::RemoveRule { name } => self.rule_index(name).map(drop),
            Command::SetPort(change) => {
                let (_, spec) = self.changed(change)?;
                refuse_any(spec.mistakes(self.config.workers(), &self.config.switch))
            }
            Command::AddStation(spec) => self.check_new_station(spec),
            Command::RemoveStation { mac, vlan } => {
                let is_known = self.forwarding.knows(mac.to_u64(), *vlan);
                is_known.then_some(()).ok_or_else(|| unknown("station", &mac.to_string()))
            }
            Command::FlushStations { port: Some(name) } => self.port_index(name).map(drop),
            Command::FlushStations { port: None }
            | Command::ResetMarks
            | Command::Snapshot { .. }
            | Command::Config => Ok(()),
        }
    }

    /// Carries out a command that was checked.
    ///
    /// # Errors
    /// If it was not checked.
    pub(crate) fn carry_out(&mut self, command: Command) -> Result<Reply, CommandError> {
        match command {
            Command::AddRing(spec) => {
                let port = self.port_index(&spec.port)?;
                self.outputs.add_ring(port, &spec).map_err(|error| full(&error))?;
                self.config.ring.push(spec);
            }
            Command::SetRing(spec) => self.set_ring(spec)?,
            Command::RemoveRing { name } => {
                self.outputs.remove_ring(&name);
                self.config.ring.retain(|ring| ring.name != name);
            }
            Command::AddRule(spec) => {
                self.config.rule.push(spec);
                self.rules.add();
                self.rebuild_rules();
            }
            Command::RemoveRule { name } => {
                let index = self.rule_index(&name)?;
                self.config.rule.remove(index);
                self.rules.remove(index);
                self.rebuild_rules();
            }
            Command::SetPort(change) => self.set_port(&change)?,
            Command::AddStation(spec) => {
                self.forwarding.add_station(self.now, &spec, &self.config);
                self.config.station.push(spec);
            }
            Command::RemoveStation { mac, vlan } => {
                self.config.station.retain(|station| station.mac != mac || station.vlan != vlan);
                // A learned station may be known to another worker only.
                self.forwarding.remove(mac.to_u64(), vlan);
            }
            Command::FlushStations { port } => {
                let port = port.map(|name| self.port_index(&name)).transpose()?;
                self.forwarding.flush(port);
            }
            Command::ResetMarks => {
                self.outputs.reset_high_water_marks();
            }
            Command::Snapshot { stations } => return Ok(Reply::Snapshot(Box::new(self.snapshot(stations)))),
            Command::Config => return Ok(Reply::Config(Box::new(self.config.clone()))),
        }
        self.find_captured();
        Ok(Reply::Done)
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
            return Err(CommandError::Full { message: format!("a switch has at most {NAMES_MAX} rings") });
        }
        let port = self.config.port_index(&spec.port);
        refuse_any(spec.mistakes(&self.config.switch, port.is_some(), || self.port_names()))?;
        let room = port.map_or(Ok(()), |port| self.outputs.output(port).room_for_ring());
        room.map_err(|error| full(&error))
    }

    fn check_ring(&self, spec: &RingSpec) -> Result<(), CommandError> {
        let old = &self.config.ring[self.ring_index(&spec.name)?];
        if old.port != spec.port {
            return Err(CommandError::Moved { ring: spec.name.clone(), port: old.port.clone() });
        }
        refuse_any(spec.mistakes(&self.config.switch, true, Vec::new))
    }

    fn set_ring(&mut self, spec: RingSpec) -> Result<(), CommandError> {
        let (index, port) = (self.ring_index(&spec.name)?, self.port_index(&spec.port)?);
        let output = self.outputs.output_mut(port);
        let ring = output.ring(&spec.name).ok_or_else(|| unknown("ring", &spec.name))?;
        output.set_ring(ring, &spec, &self.config.switch).map_err(|error| full(&error))?;
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
            return Err(CommandError::Full { message: format!("a switch has at most {NAMES_MAX} rules") });
        }
        refuse_any(spec.mistakes(
            |ring| self.ring_index(ring).is_ok(),
            || self.port_names(),
            || self.config.ring.iter().map(|ring| ring.name.as_str()).collect(),
        ))
    }

    /// Checks a new station. Learned stations do not count: workers may know different ones, but must all give the same
    /// answer.
    fn check_new_station(&self, spec: &StationSpec) -> Result<(), CommandError> {
        refuse_any(spec.mistakes(|| self.port_names()))?;
        let same = |other: &StationSpec| other.mac == spec.mac && other.vlan == spec.vlan;
        if self.config.station.iter().any(same) {
            return Err(exists("station", &spec.mac.to_string()));
        }
        let max = self.config.switch.mac_entries;
        if self.config.station.len() + self.config.way.len() >= max as usize {
            return Err(CommandError::Full { message: format!("the switch knows {max} stations already") });
        }
        Ok(())
    }

    /// Returns the number of a port, and its configuration after a change.
    fn changed(&self, change: &PortChange) -> Result<(usize, PortSpec), CommandError> {
        let port = self.port_index(&change.name)?;
        let mut spec = self.config.port[port].clone();
        if let Some(rate) = change.rate {
            spec.rate = (!rate.is_zero()).then_some(rate);
        }
        spec.flood = change.flood.unwrap_or(spec.flood);
        spec.storm = change.storm.unwrap_or(spec.storm);
        spec.ecn = change.ecn.unwrap_or(spec.ecn);
        spec.impair = change.impair.unwrap_or(spec.impair);
        Ok((port, spec))
    }

    fn set_port(&mut self, change: &PortChange) -> Result<(), CommandError> {
        let (port, spec) = self.changed(change)?;
        if change.rate.is_some() {
            self.outputs
                .output_mut(port)
                .set_rate(spec.rate)
                .map_err(|error| CommandError::Wrong(vec![Mistake::new("rate", error.to_string())]))?;
        }
        if change.ecn.is_some() {
            self.outputs.set_plain_ecn(port, &spec.ecn, spec.rate);
        }
        if change.impair.is_some() {
            let output = self.outputs.output_mut(port);
            output.set_impairment(spec.impair, SplitMix64::new(self.config.switch.seed, 1 + port as u64));
        }
        self.ports[port].set(change.storm.as_ref(), spec.flood);
        self.config.port[port] = spec;
        Ok(())
    }
}
