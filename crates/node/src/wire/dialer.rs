//! The peers that a process connects to, and its next attempt after it closed a connection itself.

use std::time::{Duration, Instant};

use fanin_dataflow::Peer;

use crate::config::System;

/// Time until the next attempt after an invalid message closed the connection.
const REDIAL_AFTER: Duration = Duration::from_secs(1);

/// The outgoing side of a process: readouts connect to the supervisor, collectors to all other roles.
#[derive(Debug)]
pub(super) struct Dialer {
    me: Peer,
    scheduled: Vec<(Instant, Peer)>,
}

impl Dialer {
    pub(super) fn new(me: Peer) -> Self {
        Self { me, scheduled: Vec::new() }
    }

    /// The peers that this process connects to.
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

    /// True if this process makes the connection to a peer, rather than the peer.
    pub(super) fn connects_to(&self, peer: Peer) -> bool {
        match self.me {
            Peer::Supervisor | Peer::Logger(_) => false,
            Peer::Standby => peer == Peer::Supervisor,
            Peer::Readout(_) => peer.is_supervisor(),
            Peer::Collector(_) => !matches!(peer, Peer::Collector(_)),
        }
    }

    /// Connects to a peer again, a while later.
    pub(super) fn schedule(&mut self, now: Instant, peer: Peer) {
        assert!(self.connects_to(peer), "{peer} connects by itself");
        self.scheduled.push((now + REDIAL_AFTER, peer));
    }

    /// Time of the next attempt.
    pub(super) fn next(&self) -> Option<Instant> {
        self.scheduled.iter().map(|(at, _)| *at).min()
    }

    /// Takes out the peers to connect to now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Peer> {
        if self.scheduled.iter().all(|(at, _)| *at > now) {
            return Vec::new();
        }
        let (due, later) = self.scheduled.drain(..).partition(|(at, _)| *at <= now);
        self.scheduled = later;
        let due: Vec<(Instant, Peer)> = due;
        due.into_iter().map(|(_, peer)| peer).collect()
    }
}
