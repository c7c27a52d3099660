//! Puts each process of a live system into the namespace of its host.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::process::Command;

use fanin_node::background::{BackgroundPlace, BackgroundRole};
use fanin_node::barrier::{BarrierPlace, BarrierRole};
use fanin_node::config::Role;
use fanin_node::launch::Placement;

use super::{Bench, Part};

/// The first port at which a process listens.
const PORT_FIRST: u16 = 7000;
/// The port of the sinks of background traffic, below those of the roles.
const PORT_BACKGROUND: u16 = 6900;

/// The hosts of a running network.
#[derive(Debug)]
pub struct Placed<'a> {
    bench: &'a Bench,
    /// Number of ports given out on each host, from [`PORT_FIRST`] on.
    given: HashMap<Part, u16>,
}

impl<'a> Placed<'a> {
    /// Makes places on the hosts of `bench`.
    pub fn new(bench: &'a Bench) -> Self {
        Self { bench, given: HashMap::new() }
    }

    /// Returns the part whose host runs a process. The scenario's network has no host for a standby supervisor. The standby
    /// runs on the first logger's host, or, without loggers, on the last readout's.
    fn part(&self, role: Role, index: u16) -> Part {
        if (role, index) != (Role::Supervisor, 1) {
            return Part::Role(role, index);
        }
        let parts = || self.bench.network().hosts.iter().map(|host| host.part);
        let logger = parts().find(|part| matches!(part, Part::Role(Role::Logger, _)));
        let readout = || parts().rfind(|part| matches!(part, Part::Role(Role::Readout, _)));
        logger.or_else(readout).unwrap_or(Part::Role(role, 0))
    }
}

impl Placement for Placed<'_> {
    fn address(&mut self, role: Role, index: u16) -> io::Result<SocketAddr> {
        let part = self.part(role, index);
        let host = self.bench.network().host_of(part).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("no host of the network is for {role} {index}"))
        })?;
        let given = self.given.entry(part).or_default();
        *given += 1;
        Ok(SocketAddr::from((host.address, PORT_FIRST + *given - 1)))
    }

    fn namespace(&self, role: Role, index: u16) -> Option<String> {
        Some(self.bench.namespace(self.part(role, index)).name().to_owned())
    }

    fn command(&self, role: Role, index: u16, command: Command) -> Command {
        self.bench.place(self.part(role, index), command)
    }
}

/// Each process of a barrier workload runs on its own host, and every sender listens at the same port.
impl BarrierPlace for Bench {
    fn address(&self, sender: u16) -> Option<SocketAddr> {
        let host = self.network().host_of(Part::Barrier(BarrierRole::Sender(sender)))?;
        Some(SocketAddr::from((host.address, PORT_FIRST)))
    }

    fn command(&self, role: BarrierRole, command: Command) -> Command {
        self.place(Part::Barrier(role), command)
    }
}

/// Each process of background traffic runs next to the process of its host.
impl BackgroundPlace for Bench {
    fn sink(&self, collector: u16) -> Option<SocketAddr> {
        let host = self.network().host_of(self.background_part(BackgroundRole::Sink(collector)))?;
        Some(SocketAddr::from((host.address, PORT_BACKGROUND)))
    }

    fn place(&self, role: BackgroundRole, command: Command) -> Command {
        Bench::place(self, self.background_part(role), command)
    }
}

impl Bench {
    /// Returns the part whose host runs a process of background traffic.
    fn background_part(&self, role: BackgroundRole) -> Part {
        let is_barrier = self.network().host_of(Part::Barrier(BarrierRole::Aggregator)).is_some();
        match (role, is_barrier) {
            (BackgroundRole::Sink(_), true) => Part::Barrier(BarrierRole::Aggregator),
            (BackgroundRole::Source(sender), true) => Part::Barrier(BarrierRole::Sender(sender)),
            (BackgroundRole::Sink(collector), false) => Part::Role(Role::Collector, collector),
            (BackgroundRole::Source(readout), false) => Part::Role(Role::Readout, readout),
        }
    }
}
