//! Names of processes, as in greetings, files, logs and metrics.

use fanin_dataflow::Peer;

use crate::config::Role;

/// Name of the standby supervisor.
pub const STANDBY: &str = "standby";

/// Returns the name of a peer: `supervisor`, `standby`, `readout-3`, `collector-0`, `logger-1`.
pub fn name(peer: Peer) -> String {
    match peer {
        Peer::Supervisor => "supervisor".to_owned(),
        Peer::Standby => STANDBY.to_owned(),
        Peer::Readout(place) => format!("readout-{place}"),
        Peer::Collector(place) => format!("collector-{place}"),
        Peer::Logger(place) => format!("logger-{place}"),
    }
}

/// Returns the peer with this name; `None` for any other text.
pub fn peer(name: &str) -> Option<Peer> {
    if name == "supervisor" {
        return Some(Peer::Supervisor);
    }
    if name == STANDBY {
        return Some(Peer::Standby);
    }
    let (role, place) = name.split_once('-')?;
    let place = place.parse().ok()?;
    match role {
        "readout" => Some(Peer::Readout(place)),
        "collector" => Some(Peer::Collector(place)),
        "logger" => Some(Peer::Logger(place)),
        _ => None,
    }
}

/// Returns the name of a process by its role and index. Supervisor 1 is the standby.
pub fn process_name(role: Role, index: u16) -> String {
    match (role, index) {
        (Role::Supervisor, 0) => role.name().to_owned(),
        (Role::Supervisor, _) => STANDBY.to_owned(),
        _ => format!("{}-{index}", role.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_peers_are_the_same() {
        for one in
            [Peer::Supervisor, Peer::Standby, Peer::Readout(0), Peer::Collector(7), Peer::Logger(65_535)]
        {
            assert_eq!(peer(&name(one)), Some(one));
        }
        for unknown in ["", "readout", "readout-", "readout-65536", "reader-1", "supervisor-1"] {
            assert_eq!(peer(unknown), None, "{unknown}");
        }
    }
}
