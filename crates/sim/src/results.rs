//! The results of a run: totals, the summary's figures of the network, and the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fanin_network::{Connection, Network, NodeKind, PortIndex, Roles};
use fanin_report::{EventRow, FlowRow, IoRow, QueueRow, Records, Summary, WindowRow};
use fanin_scenario::Scenario;
use fanin_units::Instant;

use crate::capture::Capture;
use crate::index::peer;
use crate::partition::Partition;
use crate::workload::Workload;

/// Sums over the whole network at one time.
#[derive(Clone, Default)]
pub(crate) struct Totals {
    at: Instant,
    frames: u64,
    bytes: u64,
    drops: u64,
    marks: u64,
    segments: u64,
    retransmits: u64,
    timeouts: u64,
    fast_retransmits: u64,
    spurious_retransmits: u64,
    port_bytes: Vec<u64>,
}

impl Totals {
    /// The sums at the present time.
    pub(crate) fn of<W: Workload>(partition: &Partition<W>) -> Self {
        let engine = &partition.engine;
        let (drops, marks) = engine.fabric.drops_and_marks();
        let [segments, retransmits, timeouts, fast_retransmits, spurious_retransmits] = engine.counts();
        Self {
            at: engine.time(),
            frames: engine.frames_sent,
            bytes: engine.wire_bytes_sent,
            drops,
            marks,
            segments,
            retransmits,
            timeouts,
            fast_retransmits,
            spurious_retransmits,
            port_bytes: engine.fabric.ports.iter().map(|port| port.link.arrived_bytes()).collect(),
        }
    }
}

/// The tables of a run.
pub(crate) fn records<W: Workload>(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    partition: &Partition<W>,
    connections: &[Connection],
    rows: Vec<EventRow>,
) -> Records {
    let names: Vec<Arc<str>> = network.nodes.iter().map(|node| node.name.as_str().into()).collect();
    Records {
        queues: queue_rows(network, partition),
        flows: flow_rows(partition, connections, &names),
        io: io_rows(scenario, network, partition, roles, &rows),
        windows: window_rows(partition),
        events: rows,
    }
}

/// The frames on the captured link.
pub(crate) fn capture<W: Workload>(
    network: &Network,
    partition: &Partition<W>,
    connections: &[Connection],
    port: PortIndex,
) -> Capture {
    let ends = connections.iter().flat_map(|wanted| [wanted.nodes, [wanted.nodes[1], wanted.nodes[0]]]);
    let frames = partition.observer.tapped.iter().filter(|seen| seen.port / 2 == port / 2);
    Capture {
        link: network.port_name(port),
        rate: network.links[port as usize / 2].rate,
        framing: network.framing,
        window_scale: partition.engine.config.window_scale,
        ends: ends.collect(),
        nodes: network.nodes.iter().map(|node| node.name.clone()).collect(),
        frames: frames.copied().collect(),
    }
}

/// The circle of ports that wait for one another.
pub(crate) fn deadlock<W: Workload>(network: &Network, partition: &Partition<W>) -> String {
    let ports = partition.engine.fabric.flow_control.as_ref().map_or(&[][..], |control| &control.deadlock);
    let names: Vec<String> = ports.iter().map(|&port| network.port_name(port)).collect();
    format!(
        "PAUSE has come to a deadlock at {}: {} are stopped, and what came in by each waits behind the next, the last \
         behind the first; {}",
        partition.engine.time(),
        names.join(", "),
        partition.workload.diagnose()
    )
}

/// The traffic of the recorded events on the links of their collectors.
fn io_rows<W: Workload>(
    scenario: &Scenario,
    network: &Network,
    partition: &Partition<W>,
    roles: &Roles,
    rows: &[EventRow],
) -> Vec<IoRow> {
    let mut io = Vec::new();
    for row in rows.iter().filter(|row| scenario.record.events.contains(&row.id)) {
        let (Some(first), Some(last)) = (row.first_request_ps, row.last_byte_ps) else { continue };
        let node = roles.collectors[row.collector as usize];
        let (mut to_collector_bytes, mut from_collector_bytes) = (0, 0);
        for seen in &partition.observer.tapped {
            if !(first..=last).contains(&seen.at.get()) {
                continue;
            }
            if network.destination(seen.port) == node {
                to_collector_bytes += u64::from(seen.wire_bytes);
            } else if network.source(seen.port) == node {
                from_collector_bytes += u64::from(seen.wire_bytes);
            } else {
                continue;
            }
            let since_request_ps = seen.at.get() - first;
            io.push(IoRow { event: row.id, since_request_ps, to_collector_bytes, from_collector_bytes });
        }
    }
    io
}

/// Fills in the figures of network and transport: what was counted after the warm-up, the drain included; the loads
/// are those of the measured time.
pub(crate) fn fill_network<W: Workload>(
    summary: &mut Summary,
    network: &Network,
    roles: &Roles,
    partition: &Partition<W>,
    [before, within, after]: [&Totals; 3],
) {
    let collectors: BTreeSet<u32> = roles.collectors.iter().copied().collect();
    let reverse = (0..2 * network.links.len() as PortIndex)
        .filter(|&port| collectors.contains(&network.source(port)))
        .map(|port| after.port_bytes[port as usize] - before.port_bytes[port as usize])
        .sum();
    summary.network = Some(fanin_report::Network {
        packets: Some(after.frames - before.frames),
        bytes: Some(after.bytes - before.bytes),
        reverse_bytes: Some(reverse),
        drops: Some(after.drops - before.drops),
        ecn_marks: Some(after.marks - before.marks),
        pauses: partition.engine.fabric.pause_figures(partition.engine.now).map(|figures| figures.pauses),
        queue_bytes_max: partition.engine.fabric.queue_bytes_max(),
    });
    summary.tcp = partition.techniques.uses_tcp().then(|| fanin_report::Tcp {
        segments: Some(after.segments - before.segments),
        retransmits: Some(after.retransmits - before.retransmits),
        timeouts: Some(after.timeouts - before.timeouts),
        fast_retransmits: Some(after.fast_retransmits - before.fast_retransmits),
        spurious_retransmits: Some(after.spurious_retransmits - before.spurious_retransmits),
    });
    let shares = utilisation(network, [before, within]);
    if shares.is_empty() {
        return;
    }
    let share = |port: PortIndex| shares[port as usize];
    let busiest = |ports: &mut dyn Iterator<Item = PortIndex>| ports.map(share).max_by(f64::total_cmp);
    let is_host = |node: u32| network.nodes[node as usize].kind == NodeKind::Host;
    let ports = || 0..2 * network.links.len() as PortIndex;
    summary.load = Some(fanin_report::Load {
        last_hop: busiest(&mut ports().filter(|&port| collectors.contains(&network.destination(port)))),
        uplink: busiest(
            &mut ports()
                .filter(|&port| !is_host(network.source(port)) && !is_host(network.destination(port))),
        ),
    });
}

/// By port, the share of its link's rate that it carried between two times; empty where they are equal.
pub(crate) fn utilisation(network: &Network, [before, within]: [&Totals; 2]) -> Vec<f64> {
    let seconds = within.at.saturating_since(before.at).as_secs_f64();
    if seconds == 0.0 {
        return Vec::new();
    }
    let share = |port: PortIndex| {
        let bytes = within.port_bytes[port as usize] - before.port_bytes[port as usize];
        bytes as f64 * 8.0 / seconds / network.links[port as usize / 2].rate.get() as f64
    };
    network.ports().map(share).collect()
}

fn queue_rows<W: Workload>(network: &Network, partition: &Partition<W>) -> Vec<QueueRow> {
    let Some(watch) = &partition.observer.watch else { return Vec::new() };
    let names: BTreeMap<PortIndex, Arc<str>> =
        watch.ports.iter().map(|&port| (port, network.port_name(port).into())).collect();
    let mut rows: Vec<QueueRow> = watch
        .samples
        .iter()
        .map(|sample| QueueRow {
            queue: names[&sample.port].clone(),
            time_ps: sample.at.get(),
            queue_bytes: sample.queue.bytes,
            queue_frames: sample.queue.frames,
            drops: sample.queue.drops,
            ecn_marks: sample.queue.marks,
            limit_bytes: None,
        })
        .collect();
    rows.sort_by(|one, other| (&one.queue, one.time_ps).cmp(&(&other.queue, other.time_ps)));
    rows
}

/// One row for each direction that carried data.
fn flow_rows<W: Workload>(
    partition: &Partition<W>,
    connections: &[Connection],
    names: &[Arc<str>],
) -> Vec<FlowRow> {
    let name = |end: usize| &names[connections[end / 2].nodes[end % 2] as usize];
    (0..partition.engine.ends.len())
        .filter_map(|end| {
            if partition.engine.ends[end].endpoint.counts()[0] == 0 {
                return None;
            }
            let (stats, acked_bytes) = partition.end_stats(end as u32);
            Some(FlowRow {
                flow: end as u64 / 2,
                source: name(end).clone(),
                destination: name(peer(end as u32) as usize).clone(),
                acked_bytes,
                segments: stats.segments,
                retransmits: stats.retransmits,
                timeouts: Some(stats.timeouts),
                fast_retransmits: Some(stats.fast_retransmits),
                spurious_retransmits: Some(stats.spurious_retransmits),
                cwnd_packets_max: None,
                rtt_min_ps: None,
                rtt_smoothed_ps: (!stats.srtt.is_zero()).then(|| stats.srtt.get()),
            })
        })
        .collect()
}

fn window_rows<W: Workload>(partition: &Partition<W>) -> Vec<WindowRow> {
    partition
        .engine
        .windows
        .iter()
        .map(|sample| WindowRow {
            flow: u64::from(sample.end / 2),
            time_ps: sample.at.get(),
            cwnd_bytes: sample.cwnd,
            rwnd_bytes: None,
            in_flight_bytes: sample.in_flight,
        })
        .collect()
}
