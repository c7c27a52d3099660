//! Numbers the connections as the simulator does: `flow` in the tables, and the numbers in `record.windows`.

use fanin_dataflow::Peer;
use fanin_network::Numbering;
use fanin_scenario::Scenario;

/// The numbers of a live system's connections: those of [`Numbering`], and behind them those of a standby, which the simulator
/// has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    numbering: Numbering,
    readouts: u64,
    collectors: u64,
}

impl Numbers {
    /// Returns the numbering of a scenario's connections.
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            numbering: Numbering::of(scenario),
            readouts: scenario.readout.hosts.into(),
            collectors: scenario.collectors_total(),
        }
    }

    /// Returns the numbering of a system with these processes, if the last one of each role is among them.
    pub fn of_processes(all: impl Iterator<Item = Peer>) -> Self {
        let (mut readouts, mut collectors, mut loggers) = (0, 0, 0);
        for peer in all {
            match peer {
                Peer::Readout(place) => readouts = readouts.max(u32::from(place) + 1),
                Peer::Collector(place) => collectors = collectors.max(u32::from(place) + 1),
                Peer::Logger(place) => loggers = loggers.max(u32::from(place) + 1),
                Peer::Supervisor | Peer::Standby => {}
            }
        }
        let numbering = Numbering::of_hosts(readouts, collectors, loggers);
        Self { numbering, readouts: readouts.into(), collectors: collectors.into() }
    }

    fn standby_first(&self) -> u64 {
        self.numbering.connections_total().into()
    }

    /// Returns the number of all connections of the system, with those of a standby.
    pub fn all(&self) -> u64 {
        self.standby_first() + self.collectors + self.readouts + 1
    }

    /// Returns the number of the connection between two peers; `None` if their roles have no connection. A standby's
    /// connections are last: to collectors, to readouts, and to the supervisor.
    pub fn of_pair(&self, one: Peer, other: Peer) -> Option<u64> {
        let (first, collectors) = (self.standby_first(), self.collectors);
        match (one, other) {
            (Peer::Standby, Peer::Collector(c)) => Some(first + u64::from(c)),
            (Peer::Standby, Peer::Readout(r)) => Some(first + collectors + u64::from(r)),
            (Peer::Standby, Peer::Supervisor) => Some(self.all() - 1),
            (_, Peer::Standby) if one != Peer::Standby => self.of_pair(other, one),
            _ => self.numbering.end_if_any(one, other).map(|end| u64::from(end / 2)),
        }
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
        assert_eq!(Numbers::of_processes(all.iter().copied()), numbers);
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
        assert!(traced.iter().copied().eq(0..numbers.standby_first()), "{traced:?}");
        assert!(seen.iter().copied().eq(0..numbers.all()), "{seen:?}");
        assert_eq!(numbers.of_pair(Peer::Standby, Peer::Supervisor), Some(numbers.all() - 1));
        assert_eq!(numbers.of_pair(Peer::Readout(2), Peer::Collector(1)), Some(7));
        assert_eq!(numbers.of_pair(Peer::Readout(2), Peer::Readout(1)), None);
    }
}
