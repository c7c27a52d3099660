//! Ties: the order of the occurrences of one instant, a permutation that the seed decides.
//!
//! A switch serves frames that arrive together at several ports in no fixed order: no port always gets the last free place of
//! a queue. An occurrence's rank is a hash of the seed, the instant and the names of its nodes. Ranks depend neither on the
//! order of scheduling nor on the order in which a network lists its nodes. `Schedule::order` sorts by them.

use fanin_network::{Network, Node, NodeKind, PortIndex};
use fanin_units::mix;

use crate::occurrence::{Occurrence, TechniqueStep};

/// Hashes of the names of the parts that occurrences belong to. The rank is zero for a part without a name.
#[derive(Default)]
pub(crate) struct Ties {
    seed: u64,
    /// Name of each port: the two nodes of its link, in its direction.
    ports: Vec<u64>,
    /// Name of each switch, by the fabric's number.
    switches: Vec<u64>,
    /// Name of each end of a connection: its first port, its peer's, and the number among connections of the same hosts.
    ends: Vec<u64>,
    /// Name of each host, by the workload's number: the first port of its first connection.
    hosts: Vec<u64>,
}

impl Ties {
    /// Makes the ties of a network, without connections.
    pub(crate) fn new(network: &Network, seed: u64) -> Self {
        let switch = |node: &Node| (node.kind != NodeKind::Host).then(|| node.hash());
        Self {
            seed: mix(seed),
            ports: network.port_hashes(),
            switches: network.nodes.iter().filter_map(switch).collect(),
            ends: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// Adds the next connection: the first port of each end's path, and the workload's numbers of their hosts. `parallel` is its
    /// number among those of the same hosts. Returns a salt for the random delays of each end, from the seed and the names.
    pub(crate) fn connect(
        &mut self,
        first_ports: [PortIndex; 2],
        hosts: [u32; 2],
        parallel: u32,
    ) -> [u32; 2] {
        let [near, far] = first_ports.map(|port| at(&self.ports, port));
        let number = u64::from(parallel) << 32;
        let ends = [mix(near ^ far.rotate_left(1) ^ number), mix(far ^ near.rotate_left(1) ^ number)];
        self.ends.extend(ends);
        for (host, port) in hosts.into_iter().zip([near, far]) {
            let host = host as usize;
            self.hosts.resize(self.hosts.len().max(host + 1), 0);
            if self.hosts[host] == 0 {
                self.hosts[host] = port.rotate_left(1);
            }
        }
        ends.map(|end| ((self.seed ^ end) >> 32) as u32)
    }

    /// Returns the part of all ranks that depends on the instant only.
    #[inline]
    pub(crate) const fn salt(&self, time: u64) -> u64 {
        mix(self.seed ^ time)
    }

    /// Returns the rank of an occurrence among the occurrences of the instant with this salt.
    #[inline]
    pub(crate) fn rank(&self, salt: u64, occurrence: Occurrence) -> u64 {
        match self.name(occurrence) {
            0 => 0,
            name => mix(salt ^ name),
        }
    }

    /// Returns a hash of an occurrence's names; zero for an occurrence that only observes.
    #[inline]
    fn name(&self, occurrence: Occurrence) -> u64 {
        match occurrence {
            Occurrence::Arrival(port) => at(&self.ports, port),
            Occurrence::Departure(port) => at(&self.ports, port).rotate_left(2),
            Occurrence::PauseSignal(port) => at(&self.ports, port).rotate_left(3),
            Occurrence::ResumeCheck(switch) => at(&self.switches, switch),
            Occurrence::EndpointTimer(end) => at(&self.ends, end),
            Occurrence::HostTimer(host) => at(&self.hosts, host),
            Occurrence::QueueSample | Occurrence::StallCheck | Occurrence::DeadlockCheck => 0,
            Occurrence::Technique { technique, kind, of } => TechniqueStep { technique, kind, of }.name(),
        }
    }
}

/// Returns the hash with this number; zero for a part without a name.
#[inline]
fn at(names: &[u64], number: u32) -> u64 {
    names.get(number as usize).copied().unwrap_or(0)
}

#[cfg(test)]
#[path = "../tests/unit/ties.rs"]
mod tests;
