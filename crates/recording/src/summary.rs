//! The summary's figures of network and transport.

use std::collections::BTreeSet;

use fanin_network::{NodeIndex, PortIndex};
use fanin_report::{Load, Network, Summary, Tcp};

use crate::picture::Finished;

impl Finished<'_> {
    /// Fills in the figures of network and transport: what was counted after the warm-up, the drain included; the loads
    /// are those of the measured time. `pauses` are those of the run, where a switch uses PAUSE.
    pub fn fill_network(&self, summary: &mut Summary, uses_tcp: bool, pauses: Option<u64>) {
        let Self { network, before, after, .. } = self;
        let collectors: BTreeSet<NodeIndex> = self.roles.collectors.iter().copied().collect();
        let reverse = network.ports().filter(|&port| collectors.contains(&network.source(port)));
        let outputs = network.ports().filter(|&port| !network.is_host(network.source(port)));
        summary.network = Some(Network {
            packets: Some(after.frames - before.frames),
            bytes: Some(after.bytes - before.bytes),
            reverse_bytes: Some(reverse.map(|port| after.port_bytes_since(before, port)).sum()),
            drops: Some(after.drops - before.drops),
            ecn_marks: Some(after.marks - before.marks),
            pauses,
            queue_bytes_max: outputs.map(|port| self.queue_bytes_max[port as usize]).max(),
        });
        summary.tcp = uses_tcp.then(|| Tcp {
            segments: Some(after.segments - before.segments),
            retransmits: Some(after.retransmits - before.retransmits),
            timeouts: Some(after.timeouts - before.timeouts),
            fast_retransmits: Some(after.fast_retransmits - before.fast_retransmits),
            spurious_retransmits: Some(after.spurious_retransmits - before.spurious_retransmits),
        });
        let shares = self.utilisation();
        if shares.is_empty() {
            return;
        }
        let busiest = |is_counted: &dyn Fn(PortIndex) -> bool| {
            let ports = network.ports().filter(|&port| is_counted(port));
            ports.map(|port| shares[port as usize]).max_by(f64::total_cmp)
        };
        let joins_switches =
            |port| !network.is_host(network.source(port)) && !network.is_host(network.destination(port));
        summary.load = Some(Load {
            last_hop: busiest(&|port| collectors.contains(&network.destination(port))),
            uplink: busiest(&joins_switches),
        });
    }
}
