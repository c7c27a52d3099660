//! The boundary of a partition: its hosts and switches, and the frames that leave it.
//!
//! A frame or PAUSE signal that leaves the partition arrives at least its link's delay after the present time.

use fanin_network::{Connection, Network, NodeIndex, PortIndex};
use fanin_units::Duration;

use crate::fabric::LeavingFrame;
use crate::index::EndIndex;
use crate::messages::StreamMessage;

/// A frame on its way from one partition to another, with the messages that travel with it.
pub(crate) struct BoundaryFrame<M> {
    pub(crate) frame: LeavingFrame,
    /// Messages of the frame's stream that begin before the frame's last byte and travelled with no earlier frame.
    pub(crate) messages: Vec<StreamMessage<M>>,
}

/// The hosts and switches that a partition plays, with the connections' ends on them.
pub(crate) struct PlayedNodes {
    /// True for each end of a connection that the partition plays.
    ends: Vec<bool>,
    /// True for each played host, by the workload's number.
    hosts: Vec<bool>,
    /// Ports with links out of the partition, and into it.
    leading_out: Vec<PortIndex>,
    leading_in: Vec<PortIndex>,
    /// The least time from a frame's or signal's departure to its arrival over these links; [`Duration::MAX`] without any.
    lookahead: Duration,
}

impl PlayedNodes {
    /// Collects the nodes for which `plays` returns true. `hosts` is the workload's number of hosts; a host without a
    /// connection belongs to node 0.
    pub(crate) fn new(
        network: &Network,
        connections: &[Connection],
        hosts: usize,
        plays: impl Fn(NodeIndex) -> bool,
    ) -> Self {
        let mut played = Self {
            ends: Vec::with_capacity(2 * connections.len()),
            hosts: vec![plays(0); hosts],
            leading_out: Vec::new(),
            leading_in: Vec::new(),
            lookahead: Duration::MAX,
        };
        for Connection { nodes, hosts, .. } in connections {
            for (&node, &host) in nodes.iter().zip(hosts) {
                played.ends.push(plays(node));
                played.hosts[host as usize] = plays(node);
            }
        }
        let has_pause = network.has_pause();
        for port in network.ports() {
            let list = match [network.source(port), network.destination(port)].map(&plays) {
                [true, false] => &mut played.leading_out,
                [false, true] => &mut played.leading_in,
                [true, true] | [false, false] => continue,
            };
            list.push(port);
            // A PAUSE signal does not wait for the latency of the receiving switch.
            let latency = if has_pause { Duration::ZERO } else { network.latency(port) };
            played.lookahead = played.lookahead.min(network.link(port).delay + latency);
        }
        played
    }

    /// Returns true if the partition plays the host of an end.
    #[inline]
    pub(crate) fn has_end(&self, end: EndIndex) -> bool {
        self.ends[end as usize]
    }

    /// Returns true if the partition plays a host.
    #[inline]
    pub(crate) fn has_host(&self, host: u32) -> bool {
        self.hosts[host as usize]
    }

    /// Returns the number of hosts of the workload, in all partitions.
    pub(crate) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the least time from departure to arrival over the links that lead out of the partition or into it.
    pub(crate) const fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// Returns true if the link of a port leads into the partition.
    pub(crate) fn leads_in(&self, port: PortIndex) -> bool {
        self.leading_in.contains(&port)
    }

    /// Returns the ports with links out of the partition.
    pub(crate) fn leading_out(&self) -> &[PortIndex] {
        &self.leading_out
    }
}
