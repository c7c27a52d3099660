//! The peers to which a process connects, and its next attempt after it closed a connection itself.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use fanin_dataflow::Peer;

use crate::config::System;

/// Time until the next attempt after an invalid message closed the connection.
const REDIAL_AFTER: Duration = Duration::from_secs(1);

/// Chooses the outgoing connections of a process: readouts connect to supervisors, the standby to the supervisor, and
/// collectors to all other roles.
#[derive(Debug)]
pub(super) struct Dialer {
    me: Peer,
    scheduled: Vec<(Instant, Peer)>,
    /// Peers to which this process connects, by the endpoint's index of the connection.
    dialed: HashMap<usize, Peer>,
}

impl Dialer {
    pub(super) fn new(me: Peer) -> Self {
        Self { me, scheduled: Vec::new(), dialed: HashMap::new() }
    }

    /// Returns the peers to which this process connects.
    pub(super) fn partners(&self, system: &System) -> Vec<Peer> {
        match self.me {
            Peer::Supervisor | Peer::Logger(_) => Vec::new(),
            Peer::Standby => vec![Peer::Supervisor],
            Peer::Readout(_) => system.supervisors(),
            Peer::Collector(_) => {
                let readouts = (0..system.readouts.len() as u16).map(Peer::Readout);
                let loggers = (0..system.loggers.len() as u16).map(Peer::Logger);
                system.supervisors().into_iter().chain(readouts).chain(loggers).collect()
            }
        }
    }

    /// Returns true if this process makes the connection to a peer, and not the peer.
    pub(super) fn connects_to(&self, peer: Peer) -> bool {
        match self.me {
            Peer::Supervisor | Peer::Logger(_) => false,
            Peer::Standby => peer == Peer::Supervisor,
            Peer::Readout(_) => peer.is_supervisor(),
            Peer::Collector(_) => !matches!(peer, Peer::Collector(_)),
        }
    }

    /// Schedules the next attempt to connect to a peer, after [`REDIAL_AFTER`].
    pub(super) fn schedule(&mut self, now: Instant, peer: Peer) {
        assert!(self.connects_to(peer), "{peer} connects by itself");
        self.scheduled.push((now + REDIAL_AFTER, peer));
    }

    /// Returns the time of the next attempt; `None` if none is scheduled.
    pub(super) fn next(&self) -> Option<Instant> {
        self.scheduled.iter().map(|(at, _)| *at).min()
    }

    /// Removes and returns the peers whose attempt is due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Peer> {
        if self.scheduled.iter().all(|(at, _)| *at > now) {
            return Vec::new();
        }
        let (due, later) = self.scheduled.drain(..).partition(|(at, _)| *at <= now);
        self.scheduled = later;
        let due: Vec<(Instant, Peer)> = due;
        due.into_iter().map(|(_, peer)| peer).collect()
    }

    /// Notes the connection to a peer, by its index.
    pub(super) fn handle_dialed(&mut self, connection: usize, peer: Peer) {
        self.dialed.insert(connection, peer);
    }

    /// Notes that a connection has ended, and is not tried again.
    pub(super) fn handle_ended(&mut self, connection: usize) {
        self.dialed.remove(&connection);
    }

    /// Returns the peer to which a connection was made; `None` if the peer made the connection.
    pub(super) fn dialed(&self, connection: usize) -> Option<Peer> {
        self.dialed.get(&connection).copied()
    }

    /// Panics if two connections or attempts are to one peer.
    pub(super) fn check(&self) {
        let peers: HashSet<Peer> = self.dialed.values().copied().collect();
        assert_eq!(peers.len(), self.dialed.len(), "a peer is dialled twice: {:?}", self.dialed);
    }
}
