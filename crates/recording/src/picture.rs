//! The picture of a run: the outputs that lose or fill, the timeline, one late event, and the network with its hot links.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fanin_network::{Connection, Network, NodeIndex, PortIndex, Roles};
use fanin_report::{
    EventRow, LateEvent, LateSummary, PICTURE_SCHEMA, PortFigures, PortTimeline, RingTimeline, RunPicture,
    RunTimeline, SourceDrops,
};
use fanin_scenario::Scenario;
use fanin_units::{Bytes, Duration};

use crate::recorder::Recorder;
use crate::totals::RunTotals;

/// Most outputs that the summary names and the picture draws.
const PORTS_MAX: usize = 5;
/// Most sources that are named at an output.
const SOURCES_MAX: usize = 5;

/// A finished run, the source of its results.
pub struct Finished<'a> {
    /// The scenario of the run.
    pub scenario: &'a Scenario,
    /// The simulated network.
    pub network: &'a Network,
    /// The roles of the hosts.
    pub roles: &'a Roles,
    /// The connections, in order.
    pub connections: &'a [Connection],
    /// The observations of the run.
    pub recorder: &'a Recorder,
    /// The sums at the end of the warm-up.
    pub before: &'a RunTotals,
    /// The sums at the end of the measured time.
    pub within: &'a RunTotals,
    /// The sums at the end of the run, after all work in progress.
    pub after: &'a RunTotals,
    /// High-water mark of each port since the warm-up, in bytes; zero at hosts.
    pub queue_bytes_max: Vec<u64>,
    /// The rows of the events or requests.
    pub rows: Vec<EventRow>,
}

impl Finished<'_> {
    pub(crate) fn name(&self, node: NodeIndex) -> String {
        self.network.nodes[node as usize].name.clone()
    }

    /// Returns the host that sends to a receiving end: the node of the connection's other end.
    fn source_of(&self, end: u32) -> NodeIndex {
        self.connections[end as usize / 2].nodes[1 - end as usize % 2]
    }

    pub(crate) fn drops(&self, port: PortIndex) -> u64 {
        self.recorder.losses.of(port).frames
    }

    fn bytes_max(&self, port: PortIndex) -> u64 {
        self.queue_bytes_max[port as usize]
    }

    /// Returns each port's utilisation in the measured time, as a share of its link's rate. Empty without measured time.
    pub(crate) fn utilisation(&self) -> Vec<f64> {
        self.within.utilisation_since(self.before, self.network)
    }

    /// Returns the outputs of switches that lost or queued frames, worst first.
    pub(crate) fn worst(&self) -> Vec<PortIndex> {
        let network = self.network;
        let mut ports: Vec<_> = network
            .ports()
            .filter(|&port| !network.is_host(network.source(port)))
            .map(|port| (Reverse(self.drops(port)), Reverse(self.bytes_max(port)), port))
            .filter(|&(Reverse(drops), Reverse(bytes), _)| drops + bytes > 0)
            .collect();
        ports.sort_unstable();
        ports.into_iter().map(|(.., port)| port).collect()
    }

    /// Returns figures of the outputs that lost frames, or had no room for one more frame: at most five, worst first.
    pub fn ports(&self, late: Option<&LateEvent>) -> Vec<PortFigures> {
        let is_full = |port: PortIndex| {
            let frame = u64::from(self.network.frame_bytes);
            self.network.queue_limit(port).is_some_and(|limit| self.bytes_max(port) + frame > limit.get())
        };
        let found = self.worst().into_iter().filter(|&port| self.drops(port) > 0 || is_full(port));
        let shares = self.utilisation();
        let share = |port: PortIndex| shares.get(port as usize).copied();
        found.take(PORTS_MAX).map(|port| self.figures(port, share(port), late)).collect()
    }

    fn figures(&self, port: PortIndex, utilisation: Option<f64>, late: Option<&LateEvent>) -> PortFigures {
        let losses = self.recorder.losses.of(port);
        let ms = |ps: u64| (losses.frames > 0).then(|| Duration::new(ps).as_millis_f64());
        let mut by_source: BTreeMap<NodeIndex, u64> = BTreeMap::new();
        for (end, frames) in self.recorder.losses.ends(port) {
            *by_source.entry(self.source_of(end)).or_default() += frames;
        }
        let mut sources: Vec<_> = by_source.into_iter().map(|(node, drops)| (Reverse(drops), node)).collect();
        sources.sort_unstable();
        let name = self.network.port_name(port);
        let limit = self.network.queue_limit(port).map(Bytes::get);
        // With a shared pool, the limit in force is the occupancy of the port at the drop.
        let frame = u64::from(self.network.frame_bytes);
        let falls = limit.filter(|&limit| losses.frames > 0 && losses.queue_bytes_first + frame <= limit);
        let struck = late.filter(|late| late.chain.iter().any(|cause| cause.port.as_ref() == Some(&name)));
        PortFigures {
            drops: losses.frames,
            dropped_bytes: Some(losses.bytes),
            queue_bytes_max: self.bytes_max(port),
            limit_bytes: limit,
            first_drop_limit_bytes: falls.map(|_| losses.queue_bytes_first),
            utilisation,
            first_drop_ms: ms(losses.first),
            last_drop_ms: ms(losses.last),
            sources_total: (!sources.is_empty()).then_some(sources.len() as u64),
            sources: sources
                .iter()
                .take(SOURCES_MAX)
                .map(|&(Reverse(drops), node)| SourceDrops { name: self.name(node), drops })
                .collect(),
            late: struck.map(LateSummary::of),
            name,
        }
    }

    /// Draws the picture of the run.
    pub fn picture(&self) -> RunPicture {
        RunPicture {
            schema: PICTURE_SCHEMA.into(),
            timeline: self.run_timeline(),
            late: self.recorder.trace.latest().map(|late| self.late_event(&late)),
            topology: self.topology(),
        }
    }

    /// Returns a host's role and index, as in `readout:3`, or `host` itself without a role. `host` is the host's number in the
    /// connections.
    fn host_name(&self, host: u32) -> String {
        let of = |connection: &Connection| connection.hosts.iter().position(|&one| one == host);
        let named = self.connections.iter().find_map(|one| Some(one.roles[of(one)?]));
        named.map_or_else(|| host.to_string(), |(role, index)| format!("{role}:{index}"))
    }

    fn run_timeline(&self) -> RunTimeline {
        let recorder = &self.recorder.timeline;
        let bins = recorder.bins();
        let cut = |values: &[u64]| values[..bins].to_vec();
        let ports = self.worst().into_iter().filter_map(|port| {
            let row = recorder.row(port)?;
            Some(PortTimeline {
                name: self.network.port_name(port),
                limit_bytes: self.network.queue_limit(port).map(Bytes::get),
                queue_bytes: cut(&row.queue_bytes),
                drops: row.drops_until(bins),
                rings: recorder
                    .rings
                    .of(port)
                    .into_iter()
                    .map(|(host, bins)| RingTimeline {
                        destination: self.host_name(host),
                        queue_bytes: cut(bins),
                    })
                    .collect(),
                delivered_bytes: self
                    .network
                    .is_host(self.network.destination(port))
                    .then(|| row.delivered_until(bins, self.after.port_payload[port as usize])),
            })
        });
        let mut delivered_bytes = cut(&recorder.delivered_bytes);
        // The last bin is not closed, and takes the remaining payload.
        let rest = self.after.port_payload.iter().sum::<u64>() - delivered_bytes.iter().sum::<u64>();
        if let Some(last) = delivered_bytes.last_mut() {
            *last += rest;
        }
        RunTimeline {
            bin_ps: recorder.width,
            delivered_bytes,
            timeouts: cut(&recorder.timeouts),
            probes: if recorder.probes.iter().any(|&count| count > 0) {
                cut(&recorder.probes)
            } else {
                Vec::new()
            },
            ports: ports.take(PORTS_MAX).collect(),
        }
    }
}
