//! The limits of a process's connections, above all of those without a greeting, and log lines about refused ones.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fanin_dataflow::Peer;
use fanin_message::{Closed, Limits};
use fanin_scenario::RECEIVE_BYTES_MAX;
use rustix::process::{Resource, getrlimit};

use crate::config::System;
use crate::machine::HostMachine;
use crate::names::name;

/// Maximum size of a message in bytes. The largest messages are events.
const MESSAGE_BYTES_MAX: u32 = 512 << 20;
/// Maximum size of an event. The rest of its message is for the proof of its assignment.
pub(crate) const EVENT_BYTES_MAX: u64 = (MESSAGE_BYTES_MAX - (1 << 20)) as u64;
/// Least part of these bytes that one peer may hold, so that a system of hundreds of processes keeps its throughput.
const PEER_RECEIVE_BYTES_MIN: u64 = 64 << 20;
/// Maximum number of connections without a complete greeting.
const GREETINGS_MAX: usize = 256;
/// These connections take at most one in this many of the process's file descriptors (`RLIMIT_NOFILE`).
const GREETINGS_PART: usize = 4;
/// Maximum number of new connections a second from one address, after a burst of as many.
pub(crate) const CALLER_CONNECTIONS_PER_SECOND_MAX: u32 = 1000;
/// In a system on one host, all processes share an address. Least number of connections that each may make in a second.
const CONNECTIONS_PER_PROCESS: usize = 4;
/// Maximum number of logged refusals in one interval. A last line counts the others.
const LINES_MAX: u64 = 4;
const LOG_EVERY: Duration = Duration::from_secs(30);

/// Returns the limits of a process's connections. Connections without a greeting take few descriptors, so that journals,
/// stored files and `/metrics` always get one.
pub(super) fn connection_limits(system: &System) -> Limits {
    let processes =
        system.supervisors().len() + system.readouts.len() + system.collectors.len() + system.loggers.len();
    let open_files = match &system.machine {
        HostMachine::Real => getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) as usize,
        HostMachine::Simulated(_) => usize::MAX,
    };
    Limits {
        message_bytes_max: MESSAGE_BYTES_MAX,
        receive_bytes_max: RECEIVE_BYTES_MAX,
        peer_receive_bytes_max: peer_receive_bytes_max(processes),
        // Twice the number: a younger connection replaces an older one before the end of the older one is reported.
        peers_max: 2 * (processes + GREETINGS_MAX),
        greetings_max: GREETINGS_MAX.min(open_files / GREETINGS_PART).max(1),
        caller_connections_per_second_max: Some(caller_connections_per_second_max(processes)),
        ..Limits::default()
    }
}

/// Returns the peers whose messages a process reads although its memory for received messages is used up. A collector
/// needs the answers of loggers to finish an event, and only then frees its fragments.
pub(super) fn urgent(system: &System, me: Peer) -> Vec<String> {
    if !matches!(me, Peer::Collector(_)) {
        return Vec::new();
    }
    let loggers = (0..system.loggers.len() as u16).map(Peer::Logger);
    [Peer::Supervisor, Peer::Standby].into_iter().chain(loggers).map(name).collect()
}

fn caller_connections_per_second_max(processes: usize) -> u32 {
    let of_system = u32::try_from(CONNECTIONS_PER_PROCESS * processes).unwrap_or(u32::MAX);
    CALLER_CONNECTIONS_PER_SECOND_MAX.max(of_system)
}

/// Returns the maximum number of bytes of received messages that one peer may hold in a system of this many processes.
fn peer_receive_bytes_max(processes: usize) -> u64 {
    (RECEIVE_BYTES_MAX / processes.max(1) as u64).max(PEER_RECEIVE_BYTES_MIN)
}

/// Counts and logs the connections to this process that ended without a valid greeting.
#[derive(Debug, Default)]
pub(super) struct RefusedConnections {
    total: u64,
    /// Number of refused connections in the current interval of the log.
    in_interval: u64,
    since: Option<Instant>,
}

impl RefusedConnections {
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Counts a refused connection, and logs it if it is one of the first in the interval. Returns true if it was logged.
    pub(super) fn handle_refused(
        &mut self,
        now: Instant,
        name: &str,
        caller: Option<SocketAddr>,
        reason: &Closed,
    ) -> bool {
        self.log(now);
        self.since.get_or_insert(now);
        self.total += 1;
        self.in_interval += 1;
        let is_logged = self.in_interval <= LINES_MAX;
        if is_logged {
            let address = caller.map(tracing::field::display);
            tracing::warn!(address, claims = name, %reason, "refused a connection");
        }
        is_logged
    }

    /// Logs the number of connections without a line of their own once the interval has ended. Returns this number, or 0.
    pub(super) fn log(&mut self, now: Instant) -> u64 {
        if self.since.is_none_or(|since| now < since + LOG_EVERY) {
            return 0;
        }
        let further = self.in_interval.saturating_sub(LINES_MAX);
        if further > 0 {
            tracing::warn!(connections = further, total = self.total, "refused further connections");
        }
        (self.in_interval, self.since) = (0, None);
        further
    }
}

/// Returns a description of why a peer is not connected, after a connection with its name was refused.
pub(super) fn refusal_of_peer(reason: &Closed) -> String {
    let text = reason.to_string();
    match reason {
        Closed::Unauthenticated(_) | Closed::Refused(_) if text.contains("another key") => {
            "it has another key".to_owned()
        }
        Closed::Unauthenticated(_) => format!("it has no key ({text})"),
        _ => format!("a connection under its name was refused: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_few_lines_and_a_last_one_counts_the_others() {
        let mut refused = RefusedConnections::default();
        let now = Instant::now();
        let reason = Closed::Unauthenticated("the caller has no key");
        let logged = |refused: &mut RefusedConnections, at| refused.handle_refused(at, "", None, &reason);
        let lines = (0..1000).filter(|_| logged(&mut refused, now)).count();
        assert_eq!((lines as u64, refused.total()), (LINES_MAX, 1000));
        assert_eq!(refused.log(now + LOG_EVERY / 2), 0);
        assert_eq!(refused.log(now + LOG_EVERY), 1000 - LINES_MAX);
        assert!(logged(&mut refused, now + LOG_EVERY));
        assert_eq!(refused.total(), 1001);
    }

    #[test]
    fn a_peer_holds_a_share_of_the_memory() {
        for processes in [2, 4, 7, 32] {
            let each = peer_receive_bytes_max(processes);
            assert!((processes as u64 - 1) * each < RECEIVE_BYTES_MAX, "{processes}: {each}");
        }
        assert_eq!(peer_receive_bytes_max(1000) * 32, RECEIVE_BYTES_MAX);
    }

    #[test]
    fn all_processes_of_one_host_may_connect_at_once() {
        for processes in [2, 300, 5000] {
            let max = caller_connections_per_second_max(processes) as usize;
            assert!(max >= 1000 && max >= 2 * processes, "{processes}: {max}");
        }
    }

    #[test]
    fn the_reason_names_the_key() {
        let refused = Closed::Refused("not authenticated: the peer has another key".into());
        assert_eq!(refusal_of_peer(&refused), "it has another key");
        assert!(
            refusal_of_peer(&Closed::Unauthenticated("the caller has no key")).starts_with("it has no key")
        );
        assert!(refusal_of_peer(&Closed::Remote).contains("closed by the peer"));
    }
}
