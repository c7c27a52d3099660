//! Places of a system's processes: this machine, or others that a [`Placement`] chooses.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::Role;

/// The lowest port of processes that listen.
const PORTS_FIRST: u16 = 10_000;

/// Chooses addresses and namespaces for processes.
pub trait Placement {
    /// Returns an address for a listening process; each call gives another.
    ///
    /// # Errors
    /// If no address is free.
    fn address(&mut self, role: Role, index: u16) -> io::Result<SocketAddr>;

    /// The network namespace of a process, by its name in `ip netns`; `None` if it runs in that of the launcher.
    fn namespace(&self, role: Role, index: u16) -> Option<String> {
        let _ = (role, index);
        None
    }

    /// Makes `command`, which is complete otherwise, run where this process belongs.
    fn command(&self, role: Role, index: u16, command: Command) -> Command {
        let _ = (role, index);
        command
    }

    /// All addresses are chosen; the processes that use them start now.
    fn ready(&mut self) {}
}

/// This machine as it is: every process at a free port of 127.0.0.1. No privilege is needed.
#[derive(Debug, Default)]
pub struct Loopback {
    /// Held until all are chosen, so that no port is chosen twice.
    held: Vec<TcpListener>,
}

/// Ports that this process has tried: several systems of one process, as in tests, do not take the same ones.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// The first port that the kernel gives to outgoing connections (ip-sysctl, `ip_local_port_range`).
fn ephemeral_first() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768)
}

impl Placement for Loopback {
    fn address(&mut self, _role: Role, _index: u16) -> io::Result<SocketAddr> {
        // A port below those that the kernel gives to outgoing connections, so that none of them takes it while its
        // process is away.
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
