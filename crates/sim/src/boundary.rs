//! The boundary of a partition: the hosts and switches that it plays, and the frames that leave it.
//!
//! Several partitions play one network in turns. A frame that leaves one of them arrives no earlier than the delay of its
//! link from now. So each may run ahead of the others by the least delay of the links between them, the lookahead.

use std::sync::atomic::AtomicBool;

use fanin_network::{Connection, Network, NodeIndex, PortIndex};
use fanin_units::{Duration, Instant};

use crate::fabric::LeavingFrame;
use crate::index::EndIndex;
use crate::partition::{Ending, Partition};
use crate::streams::StreamMessage;
use crate::workload::Workload;

/// A frame on its way from one partition to another, with the messages that travel with it.
pub(crate) struct BoundaryFrame<M> {
    pub(crate) frame: LeavingFrame,
    /// Messages of its stream that begin before its last byte, and have not left before.
    pub(crate) messages: Vec<StreamMessage<M>>,
}

/// The hosts and switches that a partition plays, with the connections' ends on them.
pub(crate) struct PlayedNodes {
    /// By end of a connection.
    ends: Vec<bool>,
    /// By the workload's number of a host.
    hosts: Vec<bool>,
    /// Ports whose links lead out of the partition, and into it.
    leading_out: Vec<PortIndex>,
    leading_in: Vec<PortIndex>,
    /// The least delay of these links; [`Duration::MAX`] without any.
    lookahead: Duration,
}

impl PlayedNodes {
    /// The nodes of a network with so many hosts of a workload, those that `plays` names. A host without a connection belongs
    /// to the first node.
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
        for port in network.ports() {
            let list = match [network.source(port), network.destination(port)].map(&plays) {
                [true, false] => &mut played.leading_out,
                [false, true] => &mut played.leading_in,
                [true, true] | [false, false] => continue,
            };
            list.push(port);
            played.lookahead = played.lookahead.min(network.link(port).delay + network.latency(port));
        }
        played
    }

    /// True if the host of an end is played here.
    #[inline]
    pub(crate) fn has_end(&self, end: EndIndex) -> bool {
        self.ends[end as usize]
    }

    /// True if a host is played here.
    #[inline]
    pub(crate) fn has_host(&self, host: u32) -> bool {
        self.hosts[host as usize]
    }

    /// The number of hosts of the workload, in all partitions.
    pub(crate) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The ports whose links lead out of the partition.
    pub(crate) fn leading_out(&self) -> &[PortIndex] {
        &self.leading_out
    }
}

/// Plays the partitions of one network up to `until`, in turns of the lookahead; one that has the whole network without
/// turns. Every node is played by one of them.
pub(crate) fn play<W: Workload>(
    partitions: &mut [Partition<W>],
    until: Instant,
    stop: &AtomicBool,
    mut progress: impl FnMut(Instant),
) -> Ending {
    if let [whole] = partitions {
        return whole.run(until, stop, progress);
    }
    let lookahead = partitions.iter().map(|partition| partition.played().lookahead).min();
    let lookahead = lookahead.expect("there is a partition");
    assert!(!lookahead.is_zero(), "a link between partitions has no delay");
    let mut now = partitions.iter().map(|partition| partition.engine.time()).max().expect("there is one");
    while now < until {
        now = until.min(now + lookahead);
        for partition in partitions.iter_mut() {
            // One without an occurrence of its own waits for a frame.
            let ending = partition.run(now, stop, &mut progress);
            if ending != Ending::Time && ending != Ending::Stuck {
                return ending;
            }
        }
        exchange(partitions);
    }
    Ending::Time
}

/// Hands the frames that have left over to the partitions that play the far ends of their links.
fn exchange<W: Workload>(partitions: &mut [Partition<W>]) {
    for from in 0..partitions.len() {
        for leaving in partitions[from].take_leaving() {
            let port = leaving.frame.port;
            let to = partitions.iter_mut().find(|partition| partition.played().leading_in.contains(&port));
            to.expect("every node is played").accept(leaving);
        }
    }
}

#[cfg(test)]
mod tests;
