//! The picture of a run: the outputs that lose or fill, the timeline, one late event, and the network with its hot links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use fanin_network::{Connection, Network, NodeIndex, PortIndex, Roles};
use fanin_report::{
    EventRow, LateCause, LateEvent, LateSource, LinkGroup, NetworkGroups, NodeGroup, PICTURE_SCHEMA,
    PortFigures, PortTimeline, RunPicture, RunTimeline, SourceDrops,
};
use fanin_scenario::Buffering;
use fanin_units::{Bytes, Duration};

use crate::index::{EndIndex, NIL};
use crate::partition::Partition;
use crate::timeline::TimelineRecorder;
use crate::trace::{LateTrace, TraceKind};
use crate::workload::Workload;

/// Outputs that are named in the summary and drawn.
const PORTS_MAX: usize = 5;
/// Sources that are named at an output.
const SOURCES_MAX: usize = 5;
/// Sources of a late event that are kept: those that finished last.
const LATE_SOURCES_MAX: usize = 512;
/// Losses and time-outs that are kept of each of them.
const MARKS_MAX: usize = 64;
/// Switches that stand for themselves in the drawing of the network; more stand together by kind.
const SWITCHES_MAX: usize = 8;

/// A finished run, as a picture needs it.
pub(crate) struct Finished<'a, W: Workload> {
    pub(crate) network: &'a Network,
    pub(crate) roles: &'a Roles,
    pub(crate) partition: &'a Partition<W>,
    pub(crate) connections: &'a [Connection],
    pub(crate) rows: &'a [EventRow],
    /// By port: the share of its rate that it carried while measuring.
    pub(crate) utilisation: &'a [f64],
}

/// The most bytes that one output of a switch may hold while all others are empty; `None` without a limit.
fn limit(network: &Network, port: PortIndex) -> Option<u64> {
    let settings = &network.switch(network.source(port))?.settings;
    let least =
        |limit: fanin_scenario::Limit| limit.0.map_or(settings.buffer, |own| own.min(settings.buffer));
    let bytes = match settings.buffering {
        Buffering::Dedicated => network.output_buffer(port)?,
        Buffering::Shared => least(settings.port_limit),
        // A frame is refused from alpha times the free memory on (Choudhury and Hahne): the last one passes that level.
        Buffering::DynamicThreshold => {
            let alpha = settings.alpha.as_f64();
            let stays_below = Bytes::new((settings.buffer.get() as f64 * alpha / (1.0 + alpha)) as u64);
            stays_below + Bytes::new(u64::from(network.frame_bytes))
        }
        Buffering::Daqring => Bytes::new(u64::from(network.frame_bytes)) * u64::from(settings.daqring.frames),
        // The limits of virtual output queues are those of the modules that frames come in by.
        Buffering::Voq | Buffering::Unlimited => return None,
    };
    Some(bytes.get())
}

impl<W: Workload> Finished<'_, W> {
    fn timeline(&self) -> &TimelineRecorder {
        &self.partition.observer.timeline
    }

    fn name(&self, node: NodeIndex) -> String {
        self.network.nodes[node as usize].name.clone()
    }

    /// The host at the other end of a connection than a receiving end.
    fn source_of(&self, end: EndIndex) -> NodeIndex {
        self.connections[end as usize / 2].nodes[1 - end as usize % 2]
    }

    fn drops(&self, port: PortIndex) -> u64 {
        self.timeline().losses.get(&port).map_or(0, |losses| losses.frames)
    }

    fn bytes_max(&self, port: PortIndex) -> u64 {
        self.partition.engine.fabric.port_bytes_max(port)
    }

    /// Outputs of switches that lost frames or held anything, worst first.
    fn worst(&self) -> Vec<PortIndex> {
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

    /// The outputs that lost frames, or had no room for one more: at most five, worst first.
    pub(crate) fn ports(&self, late: Option<&LateEvent>) -> Vec<PortFigures> {
        let is_full = |port: PortIndex| {
            let frame = u64::from(self.network.frame_bytes);
            limit(self.network, port).is_some_and(|limit| self.bytes_max(port) + frame > limit)
        };
        let found = self.worst().into_iter().filter(|&port| self.drops(port) > 0 || is_full(port));
        found.take(PORTS_MAX).map(|port| self.figures(port, late)).collect()
    }

    fn figures(&self, port: PortIndex, late: Option<&LateEvent>) -> PortFigures {
        let losses = self.timeline().losses.get(&port).copied().unwrap_or_default();
        let ms = |ps: u64| (losses.frames > 0).then(|| Duration::new(ps).as_millis_f64());
        let mut by_source: BTreeMap<NodeIndex, u64> = BTreeMap::new();
        for (&(_, end), frames) in self.timeline().lost_by_end.range((port, 0)..=(port, EndIndex::MAX)) {
            *by_source.entry(self.source_of(end)).or_default() += frames;
        }
        let mut sources: Vec<_> = by_source.into_iter().map(|(node, drops)| (Reverse(drops), node)).collect();
        sources.sort_unstable();
        let name = self.network.port_name(port);
        let struck = late.filter(|late| late.chain.iter().any(|cause| cause.port.as_ref() == Some(&name)));
        PortFigures {
            drops: losses.frames,
            dropped_bytes: Some(losses.bytes),
            queue_bytes_max: self.bytes_max(port),
            limit_bytes: limit(self.network, port),
            utilisation: self.utilisation.get(port as usize).copied(),
            first_drop_ms: ms(losses.first),
            last_drop_ms: ms(losses.last),
            sources_total: (!sources.is_empty()).then_some(sources.len() as u64),
            sources: sources
                .iter()
                .take(SOURCES_MAX)
                .map(|&(Reverse(drops), node)| SourceDrops { name: self.name(node), drops })
                .collect(),
            late: struck.map(|late| fanin_report::LateSummary {
                event: late.id,
                time_ms: Duration::new(late.time_ps).as_millis_f64(),
                text: late.text.clone(),
                chain: late.chain.clone(),
            }),
            name,
        }
    }

    /// The picture.
    pub(crate) fn picture(&self) -> RunPicture {
        RunPicture {
            schema: PICTURE_SCHEMA.into(),
            timeline: self.run_timeline(),
            late: self.partition.observer.trace.late.as_ref().map(|late| self.late_event(late)),
            topology: self.topology(),
        }
    }

    fn run_timeline(&self) -> RunTimeline {
        let recorder = self.timeline();
        let bins = recorder.bins();
        let cut = |values: &[u64]| values[..bins].to_vec();
        let ports = self.worst().into_iter().filter_map(|port| {
            let row = recorder.row(port)?;
            Some(PortTimeline {
                name: self.network.port_name(port),
                limit_bytes: limit(self.network, port),
                queue_bytes: cut(&row.queue_bytes),
                drops: cut(&row.drops),
            })
        });
        RunTimeline {
            bin_ps: recorder.width,
            delivered_bytes: cut(&recorder.delivered_bytes),
            timeouts: cut(&recorder.timeouts),
            ports: ports.take(PORTS_MAX).collect(),
        }
    }

    fn late_event(&self, late: &LateTrace) -> LateEvent {
        let mut sources: BTreeMap<u32, LateSource> = BTreeMap::new();
        for entry in &late.entries {
            let source = sources.entry(entry.connection).or_insert_with(|| LateSource {
                name: self.name(self.connections[entry.connection as usize].nodes[1]),
                ..LateSource::default()
            });
            let keep = |times: &mut Vec<u64>| {
                if times.len() < MARKS_MAX {
                    times.push(entry.at);
                }
            };
            match entry.what {
                TraceKind::Request => _ = source.request_ps.get_or_insert(entry.at),
                TraceKind::FirstByte => _ = source.first_byte_ps.get_or_insert(entry.at),
                TraceKind::LastByte => source.last_byte_ps = Some(entry.at),
                TraceKind::Loss => keep(&mut source.losses_ps),
                TraceKind::Timeout => keep(&mut source.timeouts_ps),
            }
        }
        let collector =
            late.entries.first().map(|entry| self.connections[entry.connection as usize].nodes[0]);
        let mut sources: Vec<LateSource> = sources.into_values().collect();
        sources.sort_by_key(|source| Reverse(source.last_byte_ps));
        let sources_total = sources.len() as u64;
        let mut event = LateEvent {
            id: late.of.event,
            collector: collector.map_or_else(String::new, |node| self.name(node)),
            assigned_ps: late.of.assigned,
            collected_ps: late.of.at,
            time_ps: late.of.time,
            ideal_ps: self.rows.get(late.of.event as usize).and_then(|row| row.ideal_ps),
            chain: self.chain(late, &sources),
            sources,
            sources_total,
            text: String::new(),
        };
        event.text = fanin_report::late_text(&event);
        event.sources.truncate(LATE_SOURCES_MAX);
        event
    }

    /// The causes of an event's lateness, in the order of time.
    fn chain(&self, late: &LateTrace, sources: &[LateSource]) -> Vec<LateCause> {
        let since = |at: u64| Duration::new(at.saturating_sub(late.of.assigned)).as_millis_f64();
        let mut chain = Vec::new();
        let requests: Vec<u64> = sources.iter().filter_map(|source| source.request_ps).collect();
        if let (Some(&first), Some(&last)) = (requests.iter().min(), requests.iter().max())
            && last > first
        {
            chain.push(LateCause {
                what: "credit-wait".into(),
                from_ms: since(first),
                until_ms: since(last),
                count: Some(requests.iter().filter(|&&at| at > first).count() as u64),
                ..LateCause::default()
            });
        }
        let mut by_port: BTreeMap<PortIndex, u64> = BTreeMap::new();
        for entry in late.entries.iter().filter(|entry| entry.port != NIL) {
            *by_port.entry(entry.port).or_default() += 1;
        }
        let losing = by_port.into_iter().max_by_key(|&(port, count)| (count, Reverse(port)));
        let collector =
            late.entries.first().map(|entry| self.connections[entry.connection as usize].nodes[0]);
        let last_hop = collector
            .and_then(|node| self.network.ports().find(|&port| self.network.destination(port) == node));
        if let Some(port) = losing.map(|(port, _)| port).or(last_hop)
            && let Some(row) = self.timeline().row(port)
        {
            let bin = |at: u64| ((at / self.timeline().width) as usize).min(row.queue_bytes.len() - 1);
            let queue_bytes = row.queue_bytes[bin(late.of.assigned)..=bin(late.of.at)].iter().max().copied();
            chain.push(LateCause {
                what: "queue".into(),
                from_ms: 0.0,
                until_ms: since(late.of.at),
                port: Some(self.network.port_name(port)),
                queue_bytes,
                ..LateCause::default()
            });
        }
        let of = |times: fn(&LateSource) -> &Vec<u64>| {
            let all: Vec<u64> = sources.iter().flat_map(|source| times(source).iter().copied()).collect();
            let struck = sources.iter().filter(|source| !times(source).is_empty());
            let longest = struck.clone().max_by_key(|source| source.last_byte_ps);
            let (first, last) = (all.iter().min().copied()?, all.iter().max().copied()?);
            Some((
                first,
                last,
                all.len() as u64,
                struck.count() as u64,
                longest.map(|source| source.name.clone()),
            ))
        };
        if let Some((first, last, _, struck, _)) = of(|source| &source.losses_ps) {
            let count = late.entries.iter().filter(|entry| entry.what == TraceKind::Loss).count() as u64;
            chain.push(LateCause {
                what: "loss".into(),
                from_ms: since(first),
                until_ms: since(last),
                count: Some(count),
                sources: Some(struck),
                port: losing.map(|(port, _)| self.network.port_name(port)),
                ..LateCause::default()
            });
        }
        if let Some((first, last, count, struck, source)) = of(|source| &source.timeouts_ps) {
            chain.push(LateCause {
                what: "rto".into(),
                from_ms: since(first),
                until_ms: since(last),
                count: Some(count),
                sources: Some(struck),
                source,
                ..LateCause::default()
            });
        }
        chain
    }

    /// Nodes in groups; the host behind the worst output stands alone.
    fn topology(&self) -> NetworkGroups {
        let network = self.network;
        let switches = (0..network.nodes.len() as NodeIndex).filter(|&node| !network.is_host(node)).count();
        let apart =
            self.worst().first().map(|&port| network.destination(port)).filter(|&node| network.is_host(node));
        let mut neighbours: Vec<BTreeSet<NodeIndex>> = vec![BTreeSet::new(); network.nodes.len()];
        for port in network.ports() {
            neighbours[network.source(port) as usize].insert(network.destination(port));
        }
        // What nodes have in common: the kind, and the switches that they are joined to where those are few.
        let key = |node: NodeIndex| {
            let alone = (switches <= SWITCHES_MAX && !network.is_host(node)) || apart == Some(node);
            let joined = match switches <= SWITCHES_MAX && network.is_host(node) {
                true => neighbours[node as usize].clone(),
                false => BTreeSet::new(),
            };
            (network.kind_name(node), joined, alone.then_some(node))
        };
        let mut members: BTreeMap<_, Vec<NodeIndex>> = BTreeMap::new();
        for node in 0..network.nodes.len() as NodeIndex {
            members.entry(key(node)).or_default().push(node);
        }
        let mut group_of = vec![0; network.nodes.len()];
        for (group, nodes) in members.values().enumerate() {
            nodes.iter().for_each(|&node| group_of[node as usize] = group);
        }
        let columns = self.columns(&group_of, members.len());
        let groups = members.values().zip(columns).map(|(nodes, column)| NodeGroup {
            name: if nodes.len() == 1 { self.name(nodes[0]) } else { network.kind_name(nodes[0]).to_owned() },
            count: nodes.len() as u64,
            is_switch: !network.is_host(nodes[0]),
            column,
        });
        let mut links: BTreeMap<(usize, usize), LinkGroup> = BTreeMap::new();
        for port in network.ports() {
            let [from, to] =
                [network.source(port), network.destination(port)].map(|node| group_of[node as usize]);
            let link =
                links.entry((from, to)).or_insert_with(|| LinkGroup { from, to, ..LinkGroup::default() });
            let utilisation = self.utilisation.get(port as usize).copied().unwrap_or(0.0);
            link.count += 1;
            link.drops += self.drops(port);
            link.rate_bps = network.link(port).rate.get() as f64;
            if utilisation > link.utilisation || link.hottest.is_empty() {
                (link.utilisation, link.hottest) = (utilisation, network.port_name(port));
            }
        }
        NetworkGroups { groups: groups.collect(), links: links.into_values().collect() }
    }

    /// The column of each group: its distance from the sources; all that only receives stands last.
    fn columns(&self, group_of: &[usize], groups: usize) -> Vec<u64> {
        let group = |node: NodeIndex| group_of[node as usize];
        let mut column = vec![None; groups];
        let sources: BTreeSet<usize> = self.roles.readouts.iter().map(|&node| group(node)).collect();
        let mut present: Vec<usize> = sources.iter().copied().collect();
        present.iter().for_each(|&group| column[group] = Some(0));
        let mut distance = 0;
        while !present.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for port in
                self.network.ports().filter(|&port| present.contains(&group(self.network.source(port))))
            {
                let node = self.network.destination(port);
                if column[group(node)].is_none() {
                    column[group(node)] = Some(distance);
                    if !self.network.is_host(node) {
                        next.push(group(node));
                    }
                }
            }
            present = next;
        }
        let last = column.iter().flatten().copied().max().unwrap_or(0);
        for &node in &self.roles.collectors {
            if !sources.contains(&group(node)) {
                column[group(node)] = Some(last);
            }
        }
        if let Some(node) = self.roles.supervisor {
            column[group(node)] = Some(0);
        }
        column.into_iter().map(|column| column.unwrap_or(last)).collect()
    }
}
