//! The summary's figures of network and transport.

use std::collections::BTreeSet;

use fanin_network::{CollectionWork, MeasuredCollection, NodeIndex, PortIndex, ScheduleFigures, SharedLinks};
use fanin_report::{
    Bound, EventRow, Load, MeanP99, NetworkFigures, ScheduleTimes, Span, Summary, TcpFigures, WarmupLosses,
};
use fanin_units::{Duration, Instant};

use crate::picture::Finished;

/// Picoseconds as milliseconds.
const MS: f64 = 1e-9;

impl Finished<'_> {
    /// Fills in the bound under contention of the events assigned within `span`, and of earlier ones that were still
    /// collected then. `work` returns `None` for an event in several collections.
    ///
    /// Times count from the moment at which an assignment can have arrived over idle links: a technique that fills these links
    /// delays its own events.
    pub fn fill_bound(
        &self,
        summary: &mut Summary,
        span: Span,
        work: impl Fn(&EventRow) -> Option<CollectionWork>,
    ) {
        let links = SharedLinks::new(self.network, self.roles);
        let collection = |row: &EventRow| {
            let (last_byte, time) = (row.last_byte_ps?, row.collection_time_ps?);
            let began = Instant::START + Duration::new(last_byte.checked_sub(time)?);
            let noticed = Instant::new(row.assigned_ps) + links.notice(row.collector);
            let ideal = Duration::new(row.ideal_ps.filter(|&ideal| ideal > 0)?);
            let released = noticed.min(began);
            let reached = Instant::new(last_byte).saturating_since(released);
            let measured = MeasuredCollection { collector: row.collector, released, work: work(row)?, ideal };
            Some((measured, (reached.get(), ideal.get())))
        };
        let is_measured = |row: &&EventRow| {
            let starts_before = row.assigned_ps < span.from.get();
            span.holds(row.assigned_ps)
                || (starts_before && row.last_byte_ps.is_some_and(|at| at > span.from.get()))
        };
        let (collections, mut times): (Vec<MeasuredCollection>, Vec<(u64, u64)>) =
            self.rows.iter().filter(is_measured).filter_map(collection).unzip();
        let Some(bound) = links.bound(&collections) else { return };
        let reached = ScheduleFigures::of(&mut times).slowdown;
        let figures = |figures: ScheduleFigures| ScheduleTimes {
            time_ms: MeanP99 { mean: figures.time_ps.mean * MS, p99: figures.time_ps.p99 * MS },
            slowdown: MeanP99 { mean: figures.slowdown.mean, p99: figures.slowdown.p99 },
        };
        let (least, clairvoyant) = (figures(bound.least), figures(bound.clairvoyant));
        let over = |schedule: &ScheduleTimes| MeanP99 {
            mean: reached.mean / schedule.slowdown.mean,
            p99: reached.p99 / schedule.slowdown.p99,
        };
        summary.slowdown_bound = Some(over(&least));
        summary.slowdown_clairvoyant = Some(over(&clairvoyant));
        summary.bound = Some(Bound { least, clairvoyant });
    }

    /// Fills in the figures of network and transport. Counts cover the time after the warm-up, with the drain; loads
    /// cover the measured time. `pauses` is the run's number of PAUSEs, if a switch uses PAUSE.
    pub fn fill_network(&self, summary: &mut Summary, uses_tcp: bool, pauses: Option<u64>) {
        let Self { network, before, after, .. } = self;
        let collectors: BTreeSet<NodeIndex> = self.roles.collectors.iter().copied().collect();
        let reverse = network.ports().filter(|&port| collectors.contains(&network.source(port)));
        let outputs = network.ports().filter(|&port| !network.is_host(network.source(port)));
        summary.network = Some(NetworkFigures {
            packets: Some(after.frames - before.frames),
            bytes: Some(after.bytes - before.bytes),
            reverse_bytes: Some(reverse.map(|port| after.port_bytes_since(before, port)).sum()),
            drops: Some(after.drops - before.drops),
            link_losses: after.link_losses.map(|lost| lost - before.link_losses.unwrap_or(0)),
            ecn_marks: Some(after.marks - before.marks),
            pauses,
            queue_bytes_max: outputs.map(|port| self.queue_bytes_max[port as usize]).max(),
            losing_share: self.losing_share(),
        });
        summary.warmup =
            (before.drops > 0).then_some(WarmupLosses { drops: before.drops, timeouts: before.own[2] });
        let [segments, retransmits, timeouts, fast_retransmits, spurious_retransmits, tail_loss_probes] =
            after.own_since(before).map(Some);
        summary.tcp = uses_tcp.then_some(TcpFigures {
            segments,
            retransmits,
            timeouts,
            fast_retransmits,
            spurious_retransmits,
            tail_loss_probes,
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

    /// Returns the share of events with a lost frame, of all events assigned in the measured time; `None` without events.
    fn losing_share(&self) -> Option<f64> {
        let measured = self.before.at.get()..self.within.at.get();
        let rows = self.rows.iter().filter(|row| measured.contains(&row.assigned_ps));
        let (mut events, mut losing) = (0_u64, 0_u64);
        for row in rows {
            events += 1;
            losing += u64::from(self.recorder.trace.is_losing(row.id));
        }
        (events > 0).then(|| losing as f64 / events as f64)
    }
}
