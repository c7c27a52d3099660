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

    /// Returns the number of all connections of the system.
    pub const fn all(&self) -> u64 {
        self.total
    }

    /// Returns the number of the connection between two peers; `None` if their roles have no connection, and for a standby.
    ///
    /// The connections that carry fragments come first, by collector and then by readout. Then come the supervisor's
    /// connections to collectors and to readouts, and the connections of collectors and loggers.
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
            (Peer::Readout(_) | Peer::Logger(_), Peer::Collector(_)) => return self.of_pair(other, one),
            (Peer::Collector(_) | Peer::Readout(_), Peer::Supervisor) => return self.of_pair(other, one),
            _ => return None,
        })
    }

    /// Returns the number of the connection to `other` if `me` traces its windows; `None` otherwise. The side that answers
    /// traces: readouts and loggers, and collectors for the supervisor's connections.
    pub fn traced(&self, me: Peer, other: Peer) -> Option<u64> {
        let answers = match me {
            Peer::Readout(_) | Peer::Logger(_) => true,
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
        let all: Vec<Peer> = [Peer::Supervisor]
            .into_iter()
            .chain((0..5).map(Peer::Readout))
            .chain((0..3).map(Peer::Collector))
            .chain((0..2).map(Peer::Logger))
            .collect();
        let mut seen = Vec::new();
        for &one in &all {
            for &other in &all {
                assert_eq!(numbers.of_pair(one, other), numbers.of_pair(other, one));
                seen.extend(numbers.traced(one, other));
            }
        }
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..numbers.all()), "{seen:?}");
        assert_eq!(numbers.of_pair(Peer::Readout(2), Peer::Collector(1)), Some(7));
        assert_eq!(numbers.of_pair(Peer::Readout(2), Peer::Readout(1)), None);
    }
}
