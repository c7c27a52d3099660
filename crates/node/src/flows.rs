//! Numbers the connections as the simulator does: `flow` in the tables, and the numbers in `record.windows`.

use fanin_dataflow::Peer;
use fanin_scenario::Scenario;

/// Numbering of the connections of a scenario, by the number of processes of each role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    readouts: u64,
    collectors: u64,
    loggers: u64,
    total: u64,
}

impl Numbers {
    /// Returns the numbering of a scenario's connections.
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            readouts: scenario.readout.hosts.into(),
            collectors: scenario.collectors_total(),
            loggers: scenario.logger.hosts.into(),
            total: scenario.connections_total(),
        }
    }

    /// Returns the number of all connections of the system, with those of a standby.
    pub const fn all(&self) -> u64 {
        self.total + self.collectors + self.readouts + 1
    }

    /// Returns the number of the connection between two peers; `None` if their roles have no connection.
    ///
    /// The connections that carry fragments come first, by collector and then by readout. Then come the supervisor's
    /// connections to collectors and to readouts, and the connections of collectors and loggers. A standby's connections,
    /// which the simulator has not, are last: to collectors, to readouts, and to the supervisor.
    pub fn of_pair(&self, one: Peer, other: Peer) -> Option<u64> {
        let Self { readouts, collectors, loggers, .. } = *self;
        let to_supervisor = readouts * collectors;
        Some(match (one, other) {
            (Peer::Collector(c), Peer::Readout(r)) => u64::from(c) * readouts + u64::from(r),
            (Peer::Supervisor, Peer::Collector(c)) => to_supervisor + u64::from(c),
            (Peer::Supervisor, Peer::Readout(r)) => to_supervisor + collectors + u64::from(r),
            (Peer::Collector(c), Peer::Logger(l)) => {
                to_supervisor + collectors + readouts + u64::from(c) * loggers + u64::from(l)
            }
            (Peer::Standby, Peer::Collector(c)) => self.total + u64::from(c),
            (Peer::Standby, Peer::Readout(r)) => self.total + collectors + u64::from(r),
            (Peer::Standby, Peer::Supervisor) => self.total + collectors + readouts,
            (Peer::Readout(_) | Peer::Logger(_), Peer::Collector(_)) => return self.of_pair(other, one),
            (Peer::Collector(_) | Peer::Readout(_), Peer::Supervisor | Peer::Standby)
            | (Peer::Supervisor, Peer::Standby) => return self.of_pair(other, one),
            _ => return None,
        })
    }

    /// Returns the number of the connection to `other` if `me` traces its windows; `None` otherwise, and for a standby. The
    /// side that answers traces: readouts and loggers, and collectors for the supervisor's connections.
    pub fn traced(&self, me: Peer, other: Peer) -> Option<u64> {
        let answers = match me {
            Peer::Readout(_) | Peer::Logger(_) => other != Peer::Standby,
            Peer::Collector(_) => other == Peer::Supervisor,
            Peer::Supervisor | Peer::Standby => false,
        };
        if answers { self.of_pair(me, other) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_a_number_of_its_own_and_one_side_that_answers() {
        let sets = ["readout.hosts=5", "collectors.hosts_per_rack=3", "logger.hosts=2"].map(str::to_owned);
        let numbers = Numbers::of(&fanin_scenario::load("replay", &sets).unwrap().scenario);
        let all: Vec<Peer> = [Peer::Supervisor, Peer::Standby]
            .into_iter()
            .chain((0..5).map(Peer::Readout))
            .chain((0..3).map(Peer::Collector))
            .chain((0..2).map(Peer::Logger))
            .collect();
        let (mut traced, mut seen) = (Vec::new(), Vec::new());
        for (place, &one) in all.iter().enumerate() {
            for (other_place, &other) in all.iter().enumerate() {
                assert_eq!(numbers.of_pair(one, other), numbers.of_pair(other, one));
                traced.extend(numbers.traced(one, other));
                seen.extend(numbers.of_pair(one, other).filter(|_| place < other_place));
            }
        }
        traced.sort_unstable();
        seen.sort_unstable();
        // The scenario knows no connection of a standby, so that `record.windows` names none.
        assert!(traced.iter().copied().eq(0..numbers.total), "{traced:?}");
        assert!(seen.iter().copied().eq(0..numbers.all()), "{seen:?}");
        assert_eq!(numbers.of_pair(Peer::Standby, Peer::Supervisor), Some(numbers.all() - 1));
        assert_eq!(numbers.of_pair(Peer::Readout(2), Peer::Collector(1)), Some(7));
        assert_eq!(numbers.of_pair(Peer::Readout(2), Peer::Readout(1)), None);
    }
}
