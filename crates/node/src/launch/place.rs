//! Chooses addresses and network namespaces for a system's processes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::Role;

/// Lowest port for processes that listen.
const PORTS_FIRST: u16 = 10_000;

/// Chooses addresses and namespaces for processes.
pub trait Placement {
    /// Returns an address for a listening process. Each call returns another address.
    ///
    /// # Errors
    /// If no address is free.
    fn address(&mut self, role: Role, index: u16) -> io::Result<SocketAddr>;

    /// Returns the network namespace of a process, by its name in `ip netns`; `None` for the launcher's namespace.
    fn namespace(&self, role: Role, index: u16) -> Option<String> {
        let _ = (role, index);
        None
    }

    /// Changes `command`, which is complete otherwise, so that it runs in the process's namespace.
    fn command(&self, role: Role, index: u16, command: Command) -> Command {
        let _ = (role, index);
        command
    }

    /// Releases reserved addresses: all are chosen, and the processes that use them start next.
    fn ready(&mut self) {}
}

/// Runs every process on this machine, at a free port of 127.0.0.1. Needs no privilege.
#[derive(Debug, Default)]
pub struct Loopback {
    /// Open listeners, which reserve the chosen ports until [`Placement::ready`].
    held: Vec<TcpListener>,
}

/// Number of ports that this process has tried, so that several systems of one process take different ports.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// Returns the first ephemeral port of the kernel (`net.ipv4.ip_local_port_range`).
fn ephemeral_first() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768)
}

impl Placement for Loopback {
    fn address(&mut self, _role: Role, _index: u16) -> io::Result<SocketAddr> {
        // The port is below the ephemeral ports, so no outgoing connection takes it while its process restarts.
        let first = ephemeral_first();
        let count = first.saturating_sub(PORTS_FIRST);
        let start = u32::from(count).max(1);
        let start =
            (std::process::id().wrapping_mul(251).wrapping_add(TRIED.load(Ordering::Relaxed))) % start;
        for place in 0..u32::from(count) {
            let port = PORTS_FIRST + ((start + place) % u32::from(count)) as u16;
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                TRIED.fetch_add(place + 1, Ordering::Relaxed);
                self.held.push(listener);
                return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            }
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        self.held.push(listener);
        Ok(address)
    }

    fn ready(&mut self) {
        self.held.clear();
    }
}
