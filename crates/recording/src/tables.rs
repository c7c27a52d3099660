//! The tables of a run: queues, flows, links of recorded events, windows; and the frames of a capture.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanin_network::PortIndex;
use fanin_report::{FlowRow, IoRow, QueueRow, Records, WindowRow};
use fanin_tcp::Stats;

use crate::capture::LinkCapture;
use crate::picture::Finished;
use crate::samples::WindowSample;

/// The counters of one end of a connection that sent data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndStats {
    /// The number of the end.
    pub end: u32,
    /// The counters of the end's transport.
    pub stats: Stats,
    /// Number of acknowledged bytes.
    pub acked_bytes: u64,
}

impl Finished<'_> {
    /// Converts the run into its tables, with one row of flows for each of `ends`.
    pub fn into_records(self, ends: impl Iterator<Item = EndStats>) -> Records {
        Records {
            queues: self.queue_rows(),
            flows: self.flow_rows(ends),
            io: self.io_rows(),
            windows: self.window_rows(),
            events: self.rows,
        }
    }

    /// Returns the recorded frames on the link of a port, in both directions. `window_scale` is the right shift of the windows
    /// in their headers.
    pub fn capture(&self, port: PortIndex, window_scale: u8) -> LinkCapture {
        let ends = self.connections.iter().map(|connection| connection.nodes);
        let frames = self.recorder.seen.iter().filter(|seen| seen.port / 2 == port / 2);
        LinkCapture {
            link: self.network.port_name(port),
            rate: self.network.link(port).rate,
            framing: self.network.framing,
            window_scale,
            ends: ends.flat_map(|[first, second]| [[first, second], [second, first]]).collect(),
            nodes: self.network.nodes.iter().map(|node| node.name.clone()).collect(),
            frames: frames.copied().collect(),
        }
    }

    /// Returns the traffic of the recorded events on the links of their collectors.
    fn io_rows(&self) -> Vec<IoRow> {
        let mut io = Vec::new();
        for row in self.rows.iter().filter(|row| self.scenario.record.events.contains(&row.id)) {
            let (Some(first), Some(last)) = (row.first_request_ps, row.last_byte_ps) else { continue };
            let node = self.roles.collectors[row.collector as usize];
            let (mut to_collector_bytes, mut from_collector_bytes) = (0, 0);
            for seen in &self.recorder.seen {
                if !(first..=last).contains(&seen.at.get()) {
                    continue;
                }
                if self.network.destination(seen.port) == node {
                    to_collector_bytes += u64::from(seen.wire_bytes);
                } else if self.network.source(seen.port) == node {
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

    fn queue_rows(&self) -> Vec<QueueRow> {
        let Some(watch) = &self.recorder.watch else { return Vec::new() };
        let names: BTreeMap<PortIndex, Arc<str>> =
            watch.ports.iter().map(|&port| (port, self.network.port_name(port).into())).collect();
        let mut rows: Vec<QueueRow> = watch
            .samples
            .iter()
            .map(|sample| QueueRow {
                queue: names[&sample.port].clone(),
                time_ps: sample.at,
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

    fn flow_rows(&self, ends: impl Iterator<Item = EndStats>) -> Vec<FlowRow> {
        let names: Vec<Arc<str>> = self.network.nodes.iter().map(|node| node.name.as_str().into()).collect();
        let row = |EndStats { end, stats, acked_bytes }| {
            let nodes = self.connections[end as usize / 2].nodes;
            let name = |side: usize| names[nodes[side] as usize].clone();
            FlowRow {
                flow: u64::from(end / 2),
                source: name(end as usize % 2),
                destination: name(1 - end as usize % 2),
                acked_bytes,
                segments: stats.segments,
                retransmits: stats.retransmits,
                timeouts: Some(stats.timeouts),
                fast_retransmits: Some(stats.fast_retransmits),
                spurious_retransmits: Some(stats.spurious_retransmits),
                cwnd_packets_max: None,
                rtt_min_ps: None,
                rtt_smoothed_ps: (!stats.srtt.is_zero()).then(|| stats.srtt.get()),
            }
        };
        ends.map(row).collect()
    }

    fn window_rows(&self) -> Vec<WindowRow> {
        let row = |sample: &WindowSample| WindowRow {
            flow: u64::from(sample.end / 2),
            time_ps: sample.at,
            cwnd_bytes: sample.cwnd,
            rwnd_bytes: None,
            in_flight_bytes: sample.in_flight,
        };
        self.recorder.windows.iter().map(row).collect()
    }
}
