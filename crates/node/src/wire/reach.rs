//! Tracks and logs the needed peers to which a process has no connection.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fanin_dataflow::Peer;
use fanin_message::Closed;

use crate::config::System;

/// Time without a connection after which a missing peer is logged.
const LOG_AFTER: Duration = Duration::from_secs(2);
/// Interval at which a missing peer is logged again.
const LOG_EVERY: Duration = Duration::from_secs(30);
/// Maximum number of missing peers that are logged at once. A last line counts the others.
const LINES_MAX: usize = 8;
/// Maximum number of needed peers that the answer to `/readyz` names.
const NAMES_MAX: usize = 8;

/// A peer without a connection.
#[derive(Debug)]
struct MissingPeer {
    since: Instant,
    /// Reason of the last failure; `None` without one.
    reason: Option<String>,
    logged: Option<Instant>,
}

/// The connections that a process's role needs, and the missing ones.
#[derive(Debug)]
pub(super) struct Reachability {
    /// Peers that the role needs.
    needed: Vec<Peer>,
    /// Groups of peers: the role needs one peer of each group.
    alternatives: Vec<Vec<Peer>>,
    missing: BTreeMap<Peer, MissingPeer>,
    /// Peers without a common version, each with the time at which it was last logged.
    other_versions: BTreeMap<Peer, Instant>,
}

impl Reachability {
    /// Creates the state of a process at its start: all peers are missing.
    pub(super) fn new(system: &System, me: Peer, now: Instant) -> Self {
        let readouts = (0..system.readouts.len() as u16).map(Peer::Readout);
        let collectors = (0..system.collectors.len() as u16).map(Peer::Collector);
        let loggers = (0..system.loggers.len() as u16).map(Peer::Logger);
        // With a standby, one of the two supervisors is enough.
        let mut supervisors = system.supervisors();
        let has_standby = supervisors.len() > 1;
        let only: Vec<Peer> = if has_standby { Vec::new() } else { std::mem::take(&mut supervisors) };
        let (needed, alternatives): (Vec<Peer>, Vec<Vec<Peer>>) = match me {
            Peer::Supervisor | Peer::Standby => (readouts.collect(), vec![collectors.collect()]),
            Peer::Readout(_) => (only, vec![supervisors]),
            Peer::Collector(_) => {
                (only.into_iter().chain(readouts).collect(), vec![supervisors, loggers.collect()])
            }
            Peer::Logger(_) => (Vec::new(), vec![collectors.collect()]),
        };
        let absent = |&peer: &Peer| (peer, MissingPeer { since: now, reason: None, logged: None });
        let missing = needed.iter().chain(alternatives.iter().flatten()).map(absent).collect();
        Self { needed, alternatives, missing, other_versions: BTreeMap::new() }
    }

    pub(super) fn handle_connected(&mut self, now: Instant, peer: Peer) {
        self.other_versions.remove(&peer);
        let Some(missing) = self.missing.remove(&peer) else { return };
        if missing.logged.is_some() {
            let after_s = now.saturating_duration_since(missing.since).as_secs();
            tracing::info!(%peer, after_s, "a peer is reachable again");
        }
    }

    pub(super) fn handle_closed(&mut self, now: Instant, peer: Peer, reason: String) {
        if self.needed.contains(&peer) || self.alternatives.iter().flatten().any(|other| *other == peer) {
            let missing = MissingPeer { since: now, reason: Some(reason), logged: None };
            self.missing.entry(peer).or_insert(missing);
        }
    }

    /// Notes the reason of a failed connection attempt.
    pub(super) fn handle_failed(&mut self, peer: Peer, reason: String) {
        if let Some(missing) = self.missing.get_mut(&peer) {
            missing.reason = Some(reason);
        }
    }

    /// Logs a peer that has no common version with this process, at a low rate. The role need not need the peer.
    pub(super) fn handle_other_versions(&mut self, now: Instant, peer: Peer, reason: &Closed) {
        self.handle_failed(peer, reason.to_string());
        let logged = self.other_versions.get(&peer);
        if logged.is_none_or(|&logged| now.saturating_duration_since(logged) >= LOG_EVERY) {
            self.other_versions.insert(peer, now);
            tracing::error!(%peer, %reason, "refused a connection");
        }
    }

    /// Returns a list of the connections that the role lacks; `None` if it lacks none.
    pub(super) fn lacks(&self) -> Option<String> {
        let mut names: Vec<String> =
            self.needed.iter().filter(|peer| self.missing.contains_key(peer)).map(Peer::to_string).collect();
        if names.len() > NAMES_MAX {
            let more = names.len() - NAMES_MAX;
            names.truncate(NAMES_MAX);
            names.push(format!("{more} more"));
        }
        for group in &self.alternatives {
            if let Some(one) = group.first()
                && group.iter().all(|peer| self.missing.contains_key(peer))
            {
                let role = one.to_string();
                names.push(format!("any {}", role.split(' ').next().unwrap_or_default()));
            }
        }
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Logs the peers that have been missing for a while, at a low rate.
    pub(super) fn log(&mut self, now: Instant) {
        let mut lines = 0_usize;
        for (peer, missing) in &mut self.missing {
            let lasts = now.saturating_duration_since(missing.since);
            let is_due = missing
                .logged
                .map_or(lasts >= LOG_AFTER, |logged| now.saturating_duration_since(logged) >= LOG_EVERY);
            if !is_due {
                continue;
            }
            missing.logged = Some(now);
            lines += 1;
            if lines <= LINES_MAX {
                let reason = missing.reason.as_deref().unwrap_or("it has not connected");
                tracing::warn!(%peer, reason, for_s = lasts.as_secs(), "no connection to a peer");
            }
        }
        if lines > LINES_MAX {
            tracing::warn!(peers = lines - LINES_MAX, "no connection to further peers");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector() -> (Reachability, Instant) {
        let now = Instant::now();
        let needed = vec![Peer::Supervisor, Peer::Readout(0), Peer::Readout(1)];
        let alternatives = vec![vec![Peer::Logger(0), Peer::Logger(1)]];
        let absent = |&peer: &Peer| (peer, MissingPeer { since: now, reason: None, logged: None });
        let missing = needed.iter().chain(alternatives.iter().flatten()).map(absent).collect();
        (Reachability { needed, alternatives, missing, other_versions: BTreeMap::new() }, now)
    }

    #[test]
    fn a_role_is_ready_with_all_it_needs_and_one_alternative() {
        let (mut reach, now) = collector();
        assert_eq!(reach.lacks().unwrap(), "supervisor, readout 0, readout 1, any logger");
        for peer in [Peer::Supervisor, Peer::Readout(0), Peer::Readout(1)] {
            reach.handle_connected(now, peer);
        }
        assert_eq!(reach.lacks().unwrap(), "any logger");
        reach.handle_connected(now, Peer::Logger(1));
        assert_eq!(reach.lacks(), None);
        reach.handle_closed(now, Peer::Readout(1), "it is silent".to_owned());
        assert_eq!(reach.lacks().unwrap(), "readout 1");
    }

    #[test]
    fn a_missing_peer_is_logged_after_a_while_and_then_rarely() {
        let (mut reach, now) = collector();
        let logged = |reach: &Reachability| reach.missing[&Peer::Supervisor].logged;
        reach.log(now + Duration::from_secs(1));
        assert_eq!(logged(&reach), None);
        let first = now + LOG_AFTER;
        reach.log(first);
        assert_eq!(logged(&reach), Some(first));
        reach.log(first + LOG_EVERY / 2);
        assert_eq!(logged(&reach), Some(first));
        reach.log(first + LOG_EVERY);
        assert_eq!(logged(&reach), Some(first + LOG_EVERY));
    }
}
