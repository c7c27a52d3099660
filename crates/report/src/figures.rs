//! Computes the figures of a summary from rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fanin_units::{Duration, Instant};

use crate::{
    BackgroundFigures, EventCounts, EventOutcome, EventRow, FlowRow, Goodput, MeasuredPeriod, Moments,
    PortFigures, QueueRow, RequestCounts, Slowdown, Summary, TcpFigures, Times, moments, quantile,
};

/// The measured part of a run: from the end of the warm-up to the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First moment that counts.
    pub from: Instant,
    /// First moment that no longer counts.
    pub until: Instant,
}

impl Span {
    /// Returns the length of the span.
    pub fn duration(self) -> Duration {
        self.until.saturating_since(self.from)
    }

    /// Returns true if an instant, in picoseconds, lies in the span.
    pub fn holds(self, time_ps: u64) -> bool {
        (self.from.get()..self.until.get()).contains(&time_ps)
    }
}

/// Computes the distribution of times given in picoseconds; `None` without any.
pub fn times(
    times_ps: impl IntoIterator<Item = u64>,
    ideals_ps: impl IntoIterator<Item = u64>,
) -> Option<Times> {
    let mut sorted: Vec<u64> = times_ps.into_iter().collect();
    sorted.sort_unstable();
    let Moments { mean, deviation } = moments(&sorted)?;
    let mut ideals: Vec<u64> = ideals_ps.into_iter().collect();
    ideals.sort_unstable();
    let at = |permille| quantile(&sorted, permille).map_or(0.0, millis);
    Some(Times {
        ideal: moments(&ideals).map(|ideal| ideal.mean / PS_PER_MS),
        mean: mean / PS_PER_MS,
        std: deviation / PS_PER_MS,
        min: at(0),
        p01: at(10),
        p25: at(250),
        p50: at(500),
        p75: at(750),
        p90: at(900),
        p99: at(990),
        p999: at(999),
        max: at(1000),
    })
}

const PS_PER_MS: f64 = 1e9;

fn millis(ps: u64) -> f64 {
    Duration::new(ps).as_millis_f64()
}

/// Computes the distribution of collection times over the events' own ideals; `None` if no row has both.
pub fn slowdown<'a>(rows: impl IntoIterator<Item = &'a EventRow>) -> Option<Slowdown> {
    let mut ratios: Vec<f64> = rows
        .into_iter()
        .filter_map(|row| Some((row.collection_time_ps?, row.ideal_ps.filter(|&ideal| ideal > 0)?)))
        .map(|(time, ideal)| time as f64 / ideal as f64)
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    Some(Slowdown {
        mean: ratios.iter().sum::<f64>() / ratios.len() as f64,
        p50: quantile(&ratios, 500)?,
        p99: quantile(&ratios, 990)?,
        max: quantile(&ratios, 1000)?,
    })
}

/// Computes the goodput of the rows completed within `span`, in bit/s of fragments; `None` for an empty span.
pub fn goodput<'a>(
    rows: impl IntoIterator<Item = &'a EventRow>,
    span: Span,
    collectors: u32,
) -> Option<Goodput> {
    let seconds = span.duration().as_secs_f64();
    let bytes: u128 = rows
        .into_iter()
        .filter(|row| row.last_byte_ps.is_some_and(|time| span.holds(time)))
        .map(|row| u128::from(row.size_bytes))
        .sum();
    (seconds > 0.0).then(|| {
        let total = (bytes * 8) as f64 / seconds;
        let per_collector_mean = (collectors > 0).then(|| total / f64::from(collectors));
        Goodput { total, per_collector_mean }
    })
}

/// Counts the outcomes of the rows; leaves the rate out.
///
/// Counts of accepted, rejected and stored events are present if `decided` is true: the workload takes decisions.
pub fn events<'a>(rows: impl IntoIterator<Item = &'a EventRow>, decided: bool) -> EventCounts {
    let mut figures = EventCounts::default();
    let (mut accepted, mut rejected, mut stored) = (0u64, 0u64, 0u64);
    let mut ids = Vec::new();
    let mut timeouts = Some(0u64);
    for row in rows {
        figures.assigned += 1;
        timeouts = add_known(timeouts, row.timeouts);
        if row.last_byte_ps.is_some() {
            figures.collected += 1;
            ids.push(row.id);
        }
        match row.outcome {
            EventOutcome::Assigned | EventOutcome::Collected => {}
            EventOutcome::Accepted => accepted += 1,
            EventOutcome::Rejected => rejected += 1,
            EventOutcome::Stored => {
                accepted += 1;
                stored += 1;
            }
            EventOutcome::Lost => figures.lost += 1,
            EventOutcome::Debug => figures.debug = Some(figures.debug.unwrap_or(0) + 1),
        }
    }
    if decided {
        (figures.accepted, figures.rejected, figures.stored) = (Some(accepted), Some(rejected), Some(stored));
    }
    figures.timeouts_mean = timeouts.and_then(|sum| mean(sum, figures.assigned));
    ids.sort_unstable();
    figures.duplicated = ids.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    figures
}

/// Returns a sum, which is unknown if a part of it is.
fn add_known(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    sum.zip(more).map(|(sum, more)| sum + more)
}

fn mean(sum: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| sum as f64 / of as f64)
}

/// Computes the rate at which rows were completed within `span`, in 1/s; `None` for an empty span.
pub fn rate_hz<'a>(rows: impl IntoIterator<Item = &'a EventRow>, span: Span) -> Option<f64> {
    let seconds = span.duration().as_secs_f64();
    let finished =
        rows.into_iter().filter(|row| row.last_byte_ps.is_some_and(|time| span.holds(time))).count();
    (seconds > 0.0).then(|| finished as f64 / seconds)
}

impl BackgroundFigures {
    /// Fills in the goodput of all background connections from that of each, in bit/s.
    pub fn fill_goodput(&mut self, each: impl Iterator<Item = f64> + Clone) {
        self.goodput_bps = Some(each.clone().sum());
        self.goodput_bps_min = each.clone().min_by(f64::total_cmp);
        self.goodput_bps_max = each.max_by(f64::total_cmp);
    }
}

/// Sums the counters of all connections.
pub fn tcp<'a>(rows: impl IntoIterator<Item = &'a FlowRow>) -> TcpFigures {
    let mut sum = TcpFigures {
        segments: Some(0),
        retransmits: Some(0),
        timeouts: Some(0),
        // A sum is known only if each connection knows its part.
        fast_retransmits: Some(0),
        spurious_retransmits: Some(0),
        tail_loss_probes: None,
    };
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        *sum = sum.zip(more).map(|(sum, more)| sum.saturating_add(more));
    };
    for row in rows {
        add(&mut sum.segments, Some(row.segments));
        add(&mut sum.retransmits, Some(row.retransmits));
        add(&mut sum.timeouts, row.timeouts);
        add(&mut sum.fast_retransmits, row.fast_retransmits);
        add(&mut sum.spurious_retransmits, row.spurious_retransmits);
    }
    sum
}

/// Returns the most bytes that waited in one queue; `None` if no queue was watched.
pub fn queue_bytes_max<'a>(rows: impl IntoIterator<Item = &'a QueueRow>) -> Option<u64> {
    rows.into_iter().map(|row| row.queue_bytes).max()
}

/// Returns the watched queues that refused frames or were full at a sample within `span`: at most five, worst first.
pub fn ports_of_queues(rows: &[QueueRow], span: Span) -> Vec<PortFigures> {
    let mut queues: BTreeMap<&str, Vec<&QueueRow>> = BTreeMap::new();
    for row in rows {
        queues.entry(&row.queue).or_default().push(row);
    }
    let mut ports: Vec<PortFigures> = queues
        .into_iter()
        .filter_map(|(name, mut rows)| {
            rows.sort_by_key(|row| row.time_ps);
            let measured: Vec<&QueueRow> =
                rows.iter().filter(|row| span.holds(row.time_ps)).copied().collect();
            let (first, last) = (measured.first()?, measured.last()?);
            let increases = || measured.windows(2).filter(|pair| pair[1].drops > pair[0].drops);
            let queue_bytes_max = queue_bytes_max(measured.iter().copied())?;
            let limit_bytes = last.limit_bytes;
            let drops = last.drops.saturating_sub(first.drops);
            let is_full = limit_bytes.is_some_and(|limit| queue_bytes_max >= limit);
            (drops > 0 || is_full).then(|| PortFigures {
                name: name.to_owned(),
                drops,
                queue_bytes_max,
                limit_bytes,
                first_drop_ms: increases().next().map(|pair| millis(pair[1].time_ps)),
                last_drop_ms: increases().next_back().map(|pair| millis(pair[1].time_ps)),
                ..PortFigures::default()
            })
        })
        .collect();
    ports.sort_by_key(|port| Reverse((port.drops, port.queue_bytes_max)));
    ports.truncate(PORTS_MAX);
    ports
}

/// Outputs that a summary names.
const PORTS_MAX: usize = 5;

impl Summary {
    /// Fills `events`, `collection_time_ms`, `slowdown`, `goodput_bps` and `duration_s` from rows.
    ///
    /// Counts and times cover the events assigned within `span`. Goodput and rate cover the events completed within `span`.
    /// Lost events count whenever they were assigned.
    pub fn fill_events(&mut self, rows: &[EventRow], span: Span, collectors: u32, decided: bool) {
        let mut events = EventCounts { rate_hz: rate_hz(rows, span), ..events(within(rows, span), decided) };
        let is_outside = |row: &&EventRow| row.outcome == EventOutcome::Lost && !span.holds(row.assigned_ps);
        let lost_outside = rows.iter().filter(is_outside).count() as u64;
        (events.assigned, events.lost) = (events.assigned + lost_outside, events.lost + lost_outside);
        self.events = Some(events);
        self.collection_time_ms = collection_times(rows, span);
        self.slowdown = slowdown(within(rows, span));
        self.goodput_bps = goodput(rows, span, collectors);
        self.fill_span(span);
    }

    /// Fills `requests`, `slowdown`, `goodput_bps` and `duration_s` from the rounds of a barrier-synchronised workload. Each
    /// row is a round.
    pub fn fill_requests(&mut self, rows: &[EventRow], span: Span, collectors: u32) {
        let completed = within(rows, span).filter(|row| row.collection_time_ps.is_some()).count() as u64;
        let time_ms = collection_times(rows, span);
        let (rounds, timeouts) = within(rows, span)
            .fold((0, Some(0)), |(rounds, sum), row| (rounds + 1, add_known(sum, row.timeouts)));
        let timeouts_mean = timeouts.and_then(|sum| mean(sum, rounds));
        self.requests = Some(RequestCounts { completed, time_ms, deadlines_met: None, timeouts_mean });
        self.slowdown = slowdown(within(rows, span));
        self.goodput_bps = goodput(rows, span, collectors);
        self.fill_span(span);
    }

    /// Clears the timeouts of events and rounds, also those of their rows. For sources that do not count them all.
    pub fn forget_timeouts(&mut self, rows: &mut [EventRow]) {
        for row in rows {
            row.timeouts = None;
        }
        if let Some(events) = &mut self.events {
            events.timeouts_mean = None;
        }
        if let Some(requests) = &mut self.requests {
            requests.timeouts_mean = None;
        }
    }

    /// Counts the requests that took at most `deadline_ps`. Call after [`Self::fill_requests`].
    pub fn fill_deadlines(&mut self, rows: &[EventRow], span: Span, deadline_ps: u64) {
        let is_met = |row: &&EventRow| row.collection_time_ps.is_some_and(|time| time <= deadline_ps);
        if let Some(requests) = &mut self.requests {
            requests.deadlines_met = Some(within(rows, span).filter(is_met).count() as u64);
        }
    }

    fn fill_span(&mut self, span: Span) {
        self.duration_s = Some(span.duration().as_secs_f64());
        self.measured_ps = Some(MeasuredPeriod { from: span.from.get(), until: span.until.get() });
    }
}

fn within(rows: &[EventRow], span: Span) -> impl Iterator<Item = &EventRow> {
    rows.iter().filter(move |row| span.holds(row.assigned_ps))
}

fn collection_times(rows: &[EventRow], span: Span) -> Option<Times> {
    let collected = || within(rows, span).filter(|row| row.collection_time_ps.is_some());
    times(collected().filter_map(|row| row.collection_time_ps), collected().filter_map(|row| row.ideal_ps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResultKind, ScenarioName};

    const MS: u64 = 1_000_000_000;

    fn collected(id: u64, assigned_ms: u64, took_ms: u64) -> EventRow {
        EventRow {
            id,
            size_bytes: 1_000_000,
            assigned_ps: assigned_ms * MS,
            first_request_ps: Some(assigned_ms * MS),
            last_byte_ps: Some((assigned_ms + took_ms) * MS),
            collection_time_ps: Some(took_ms * MS),
            ideal_ps: Some(10 * MS),
            outcome: EventOutcome::Collected,
            ..EventRow::default()
        }
    }

    fn span(from_ms: u64, until_ms: u64) -> Span {
        Span { from: Instant::new(from_ms * MS), until: Instant::new(until_ms * MS) }
    }

    #[test]
    fn the_warm_up_is_left_out() {
        let rows = [
            EventRow { timeouts: Some(9), ..collected(1, 0, 500) }, // Assigned in the warm-up, completed while measuring.
            collected(2, 100, 20),
            EventRow { timeouts: Some(2), ..collected(3, 200, 30) },
            EventRow { timeouts: Some(1), ..collected(4, 300, 40) },
            collected(5, 1000, 20), // Completed after the end.
            EventRow { id: 6, assigned_ps: 400 * MS, outcome: EventOutcome::Lost, ..EventRow::default() },
        ];
        let mut summary = Summary::new(ResultKind::Sim, "0", ScenarioName::default());
        summary.fill_events(&rows, span(100, 1010), 2, false);
        let events = summary.events.unwrap();
        assert_eq!((events.assigned, events.collected, events.lost, events.duplicated), (5, 4, 1, 0));
        assert_eq!((events.accepted, events.stored), (None, None));
        assert_eq!(events.rate_hz, Some(4.0 / 0.91));
        assert_eq!(events.timeouts_mean, Some(0.6), "3 of 5 that were assigned while measuring");
        let times = summary.collection_time_ms.unwrap();
        assert_eq!((times.min, times.p50, times.max, times.ideal), (20.0, 20.0, 40.0, Some(10.0)));
        assert_eq!(times.mean, 27.5);
        assert_eq!(summary.slowdown.unwrap().max, 4.0);
        let goodput = summary.goodput_bps.unwrap();
        assert_eq!(goodput.total, 32e6 / 0.91);
        assert_eq!(goodput.per_collector_mean, Some(16e6 / 0.91));
    }

    #[test]
    fn a_lost_event_counts_whenever_it_was_assigned() {
        let lost = |id, at_ms| EventRow {
            id,
            assigned_ps: at_ms * MS,
            timeouts: Some(7),
            outcome: EventOutcome::Lost,
            ..EventRow::default()
        };
        let stored = EventRow { outcome: EventOutcome::Stored, ..collected(2, 100, 20) };
        let rows = [lost(1, 0), stored, lost(3, 200), lost(4, 5000), collected(5, 5000, 1)];
        let mut summary = Summary::new(ResultKind::Run, "0", ScenarioName::default());
        summary.fill_events(&rows, span(100, 1010), 2, true);
        let events = summary.events.unwrap();
        assert_eq!((events.assigned, events.stored, events.lost), (4, Some(1), 3));
        assert_eq!(events.timeouts_mean, Some(3.5), "of those that were assigned while measuring");
    }

    #[test]
    fn decisions_count_upwards() {
        let with = |id, outcome| EventRow { outcome, ..collected(id, 0, 10) };
        let rows = [
            with(1, EventOutcome::Stored),
            with(2, EventOutcome::Accepted),
            with(3, EventOutcome::Rejected),
            with(3, EventOutcome::Rejected),
        ];
        let events = events(&rows, true);
        assert_eq!((events.accepted, events.rejected, events.stored), (Some(2), Some(2), Some(1)));
        assert_eq!(events.duplicated, 1);
    }

    #[test]
    fn nothing_measured_gives_no_figures() {
        let mut summary = Summary::new(ResultKind::Run, "0", ScenarioName::default());
        summary.fill_requests(&[], span(5, 5), 1);
        assert_eq!(summary.requests, Some(RequestCounts::default()));
        assert_eq!((&summary.goodput_bps, &summary.slowdown), (&None, &None));
        assert!(summary.to_json().is_ok());
    }

    #[test]
    fn the_queues_that_lose_come_first() {
        let row = |queue: &str, at: u64, queue_bytes, drops| QueueRow {
            queue: queue.into(),
            time_ps: at * MS,
            queue_bytes,
            drops,
            limit_bytes: Some(64),
            ..QueueRow::default()
        };
        let rows = [
            row("idle", 1, 10, 0),
            row("full", 1, 64, 0),
            row("losing", 0, 9, 3),
            row("losing", 1, 50, 4),
            row("losing", 2, 60, 9),
            row("losing", 3, 5, 9),
        ];
        let ports = ports_of_queues(&rows, span(1, 9));
        let names: Vec<_> = ports.iter().map(|port| (port.name.as_str(), port.drops)).collect();
        assert_eq!(names, [("losing", 5), ("full", 0)], "drops of the warm-up do not count");
        assert_eq!((ports[0].first_drop_ms, ports[0].last_drop_ms), (Some(2.0), Some(2.0)));
    }

    #[test]
    fn one_connection_that_does_not_know_makes_the_sum_unknown() {
        let known = FlowRow { segments: 10, spurious_retransmits: Some(1), ..FlowRow::default() };
        let unknown = FlowRow { segments: 5, retransmits: 2, ..FlowRow::default() };
        let sum = tcp([&known, &unknown]);
        assert_eq!((sum.segments, sum.retransmits, sum.spurious_retransmits), (Some(15), Some(2), None));
    }
}
