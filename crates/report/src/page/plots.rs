//! The charts of a set of results, and the points in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::chart::{Axis, Chart, LOOKS, Mark, Series, Shape, swatch};
use super::format::{FigureForm, significant};
use super::swept;
use crate::{Bound, EventRow, QueueRow, RunResult, SAMPLES_OF_P99, ScheduleTimes};

const PS_PER_MS: f64 = 1e9;
/// Columns of a histogram.
const BINS: usize = 100;
/// Ratio of largest to smallest above which a time axis is logarithmic.
const LOG_FROM: f64 = 20.0;
/// Queues or connections shown of a single result.
const LINES_MAX: usize = 3;
/// Points of all charts together, so that a page of many results stays small.
const POINTS_MAX: usize = 40_000;

/// Returns the results that have lines in charts of many lines. If there are more results than line styles, they are chosen
/// evenly, from the first to the last.
pub(crate) fn drawn(count: usize) -> Vec<usize> {
    if count <= LOOKS {
        return (0..count).collect();
    }
    (0..LOOKS).map(|look| look * (count - 1) / (LOOKS - 1)).collect()
}

/// Returns the look of a result; `None` if the charts have no line for it.
pub(crate) fn look(index: usize, count: usize) -> Option<usize> {
    drawn(count).iter().position(|&drawn| drawn == index)
}

/// Returns true if the page has charts with a line for each result.
pub(super) fn has_lines(results: &[RunResult]) -> bool {
    results.iter().any(|RunResult { records, .. }| {
        !(records.events.is_empty()
            && records.queues.is_empty()
            && records.windows.is_empty()
            && records.io.is_empty())
    })
}

/// Returns the swatch of a result; empty if the charts have no line for it.
pub(super) fn swatch_of(index: usize, results: &[RunResult]) -> String {
    look(index, results.len()).filter(|_| has_lines(results)).map_or(String::new(), swatch)
}

/// Makes every chart that has rows, in the order of the page.
pub(crate) fn charts(all: &[RunResult]) -> Vec<Chart> {
    let indices = drawn(all.len());
    let results: Vec<&RunResult> = indices.iter().map(|&index| &all[index]).collect();
    let mut charts = swept::charts(all);
    let first = charts.len();
    charts.extend(over_each_other(&results));
    if results.len() < all.len() {
        for chart in &mut charts[first..] {
            let many = format!("{} of {} results.", results.len(), all.len());
            chart.caption = if chart.caption.is_empty() { many } else { format!("{many} {}", chart.caption) };
        }
    }
    charts
}

fn over_each_other(results: &[&RunResult]) -> Vec<Chart> {
    let budget = (POINTS_MAX / (results.len().max(1) * 6)).clamp(40, 500);
    let mut charts = Vec::new();
    charts.extend(collection_times(results, budget));
    charts.extend(queues(results, budget));
    charts.extend(windows(results, budget));
    charts.extend(io(results, budget));
    charts
}

/// Returns the collection times of events in the measured period, in milliseconds, in ascending order.
pub(crate) fn times_ms(result: &RunResult) -> Vec<f64> {
    let measured = |row: &&EventRow| {
        result.summary.measured_ps.is_none_or(|span| (span.from..span.until).contains(&row.assigned_ps))
    };
    let rows = result.records.events.iter().filter(measured);
    let mut times: Vec<u64> = rows.filter_map(|row| row.collection_time_ps).collect();
    times.sort_unstable();
    times.into_iter().map(|ps| ps as f64 / PS_PER_MS).collect()
}

/// One result's times, ascending, in milliseconds.
struct MeasuredTimes {
    label: String,
    look: usize,
    times: Vec<f64>,
}

fn collection_times(results: &[&RunResult], budget: usize) -> Vec<Chart> {
    let times: Vec<MeasuredTimes> = results
        .iter()
        .enumerate()
        .map(|(look, result)| MeasuredTimes { label: result.label.clone(), look, times: times_ms(result) })
        .filter(|measured| !measured.times.is_empty())
        .collect();
    let low = times.iter().map(|measured| measured.times[0]).fold(f64::INFINITY, f64::min);
    let high = times.iter().map(|measured| measured.times[measured.times.len() - 1]).fold(0.0, f64::max);
    if !(low.is_finite() && high > 0.0) {
        return Vec::new();
    }
    let ideals: Vec<f64> = results
        .iter()
        .filter_map(|result| result.summary.times().and_then(|times| times.ideal))
        .filter(|ideal| ideal.is_finite() && *ideal > 0.0)
        .collect();
    // A schedule's mean is drawn only if it lies visibly above the times that it is compared with.
    let means = |of: fn(&Bound) -> &ScheduleTimes, others: &[f64]| -> Vec<f64> {
        let all = results.iter().filter_map(|result| Some(of(result.summary.bound.as_ref()?).time_ms.mean));
        all.filter(|mean| others.iter().all(|other| *mean > 1.01 * other)).collect()
    };
    let bounds = means(|bound| &bound.least, &ideals);
    let clairvoyant = means(|bound| &bound.clairvoyant, &[&ideals[..], &bounds].concat());
    let low = ideals.iter().copied().fold(low, f64::min);
    let high = ideals.iter().chain(&bounds).chain(&clairvoyant).copied().fold(high, f64::max);
    let log = low > 0.0 && high / low > LOG_FROM;
    // A margin keeps the first and last event off the frame.
    let (min, max) = if log {
        (low / 1.08, high * 1.08)
    } else {
        let air = (high - low).max(high * 0.02) * 0.04;
        ((low - air).max(0.0), high + air)
    };
    let (subject, events) = if results.iter().any(|result| result.summary.collection_time_ms.is_some()) {
        ("data-collection time", "events")
    } else {
        ("request time", "requests")
    };
    let scale = if log { ", logarithmic" } else { "" };
    let x = Axis { title: format!("{subject} in ms{scale}"), log, min, max };
    let marks = [
        marks_at("ideal", &ideals),
        marks_at("least mean", &bounds),
        marks_at("clairvoyant mean", &clairvoyant),
    ]
    .concat();
    vec![cdf(&times, events, &x, &marks, budget), histogram(&times, events, &x, &marks)]
}

/// Makes one mark for values that are equal on the plot.
fn marks_at(text: &str, values: &[f64]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for &at in values {
        if !marks.iter().any(|mark| (mark.at / at - 1.0).abs() < 0.01) {
            marks.push(Mark { text: text.into(), at, level: false });
        }
    }
    marks
}

/// Names the vertical lines of several kinds, since labels that would overlap are left out.
fn legend(marks: &[Mark]) -> String {
    let mut marks: Vec<&Mark> = marks.iter().collect();
    marks.sort_by(|one, other| one.at.total_cmp(&other.at));
    let texts: Vec<&str> = marks.iter().map(|mark| mark.text.as_str()).collect();
    if texts.iter().all(|text| *text == texts[0]) {
        return String::new();
    }
    format!("Vertical lines, from the left: {}.", texts.join(", "))
}

fn cdf(times: &[MeasuredTimes], events: &str, x: &Axis, marks: &[Mark], budget: usize) -> Chart {
    let series: Vec<Series> = times
        .iter()
        .map(|MeasuredTimes { label, look, times }| {
            let count = times.len();
            let step = (count as f64 / budget as f64).max(1.0);
            let mut ranks: Vec<usize> = (1..=count.min(budget))
                .map(|index| ((index as f64 * step) as usize).clamp(1, count))
                .collect();
            // The smallest and the largest time are always drawn.
            ranks.extend([1, count]);
            ranks.sort_unstable();
            ranks.dedup();
            let mut points: Vec<(f64, f64)> = Vec::with_capacity(ranks.len());
            for rank in ranks {
                let point = (times[rank - 1], 100.0 * rank as f64 / count as f64);
                match points.last_mut() {
                    Some(last) if last.0 == point.0 => *last = point,
                    _ => points.push(point),
                }
            }
            Series { name: label.clone(), points, band: Vec::new(), breaks: Vec::new(), look: *look }
        })
        .collect();
    let description: Vec<String> = times
        .iter()
        .map(|MeasuredTimes { label, times, .. }| {
            let at = |share: usize| significant(times[(times.len() * share).div_ceil(100).max(1) - 1]);
            let p99 = if times.len() as u64 >= SAMPLES_OF_P99 {
                format!(", p99 {} ms", at(99))
            } else {
                String::new()
            };
            format!("{label}: median {} ms{p99}.", at(50))
        })
        .collect();
    Chart {
        id: "collection-time-cdf".into(),
        title: format!("Share of {events} completed within a time"),
        caption: legend(marks),
        description: description.join(" "),
        x: x.clone(),
        y: Axis { title: format!("share of {events}, %"), log: false, min: 0.0, max: 100.0 },
        shape: Shape::Step,
        series,
        marks: marks.to_vec(),
        columns: Vec::new(),
        rows: Vec::new(),
    }
}

fn histogram(times: &[MeasuredTimes], events: &str, x: &Axis, marks: &[Mark]) -> Chart {
    let place = |index: usize| {
        let share = index as f64 / BINS as f64;
        if x.log { x.min * (x.max / x.min).powf(share) } else { x.min + (x.max - x.min) * share }
    };
    let edges: Vec<f64> = (0..=BINS).map(place).collect();
    let counted: Vec<Vec<usize>> = times
        .iter()
        .map(|MeasuredTimes { times, .. }| {
            let below: Vec<usize> =
                edges.iter().map(|edge| times.partition_point(|time| time < edge)).collect();
            below
                .windows(2)
                .enumerate()
                .map(|(index, pair)| if index == BINS - 1 { times.len() } else { pair[1] } - pair[0])
                .collect()
        })
        .collect();
    let tallest = counted.iter().flatten().copied().max().unwrap_or(1);
    let series = times
        .iter()
        .zip(&counted)
        .map(|(measured, counts)| {
            let mut points: Vec<(f64, f64)> = Vec::with_capacity(BINS + 1);
            points.extend(edges.iter().zip(counts).map(|(&edge, &count)| (edge, count as f64)));
            points.push((x.max, 0.0));
            Series {
                name: measured.label.clone(),
                points,
                band: Vec::new(),
                breaks: Vec::new(),
                look: measured.look,
            }
        })
        .collect();
    let rows = (0..BINS)
        .filter(|&bin| counted.iter().any(|counts| counts[bin] > 0))
        .map(|bin| {
            let name = format!("{} to {} ms", significant(edges[bin]), significant(edges[bin + 1]));
            (name, counted.iter().map(|counts| json!(counts[bin])).collect())
        })
        .collect();
    Chart {
        id: "collection-time-histogram".into(),
        title: format!("{} by their time", if events == "events" { "Events" } else { "Requests" }),
        caption: "The count is logarithmic: a single slow one is visible among a million fast ones.".into(),
        description: format!("Histogram with {BINS} columns; the tallest holds {tallest} {events}."),
        x: x.clone(),
        // The axis begins at half an event, so that one event differs from none.
        y: Axis {
            title: format!("{events}, logarithmic"),
            log: true,
            min: 0.5,
            max: tallest.max(2) as f64 * 1.3,
        },
        shape: Shape::Area,
        series,
        marks: marks.to_vec(),
        columns: times.iter().map(|measured| (measured.label.clone(), FigureForm::Number)).collect(),
        rows,
    }
}

/// Groups the rows by queue, the deepest queues first.
fn by_queue(rows: &[QueueRow]) -> Vec<(Arc<str>, Vec<&QueueRow>)> {
    let mut queues: BTreeMap<Arc<str>, Vec<&QueueRow>> = BTreeMap::new();
    for row in rows {
        queues.entry(row.queue.clone()).or_default().push(row);
    }
    let mut queues: Vec<_> = queues.into_iter().collect();
    let peak = |rows: &[&QueueRow]| rows.iter().map(|row| row.queue_bytes).max().unwrap_or(0);
    queues.sort_by_key(|(_, rows)| std::cmp::Reverse(peak(rows)));
    for (_, rows) in &mut queues {
        rows.sort_by_key(|row| row.time_ps);
    }
    queues
}

/// Reduces samples to at most about `budget` points. A point holds the largest value of its interval, the value at its start
/// included.
fn envelope(samples: &[(u64, u64)], budget: usize) -> Vec<(u64, u64)> {
    if samples.len() <= budget {
        return samples.to_vec();
    }
    let (first, last) = (samples[0].0, samples[samples.len() - 1].0);
    let width = ((last - first) / budget as u64).max(1);
    let mut points: Vec<(u64, u64)> = Vec::with_capacity(budget + 2);
    let (mut at, mut carried) = (0, 0);
    let mut from = first;
    while from <= last {
        let end = from.saturating_add(width);
        let mut highest = carried;
        while let Some(&(_, value)) = samples.get(at).filter(|(time, _)| *time < end) {
            highest = highest.max(value);
            carried = value;
            at += 1;
        }
        if points.last().is_none_or(|&(_, value)| value != highest) {
            points.push((from, highest));
        }
        if end == u64::MAX {
            break;
        }
        from = end;
    }
    points.push((last, carried));
    points
}

/// Returns a unit for bytes up to `max`: its name and its size in bytes.
pub(super) fn bytes_unit(max: u64) -> (&'static str, f64) {
    match max {
        0..2_000 => ("B", 1.0),
        2_000..2_000_000 => ("kB", 1e3),
        2_000_000..2_000_000_000 => ("MB", 1e6),
        _ => ("GB", 1e9),
    }
}

/// Returns a unit for times up to `max_ps`: its name and its size in picoseconds.
pub(super) fn time_unit(max_ps: u64) -> (&'static str, f64) {
    match max_ps {
        0..2_000_000 => ("ns", 1e3),
        2_000_000..2_000_000_000 => ("µs", 1e6),
        2_000_000_000..2_000_000_000_000 => ("ms", 1e9),
        _ => ("s", 1e12),
    }
}

/// Name, look, and samples of (picoseconds, bytes).
type Samples = (String, usize, Vec<(u64, u64)>);

/// Axes and series of bytes against time, with units that suit.
struct OverTime {
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    per_byte: f64,
}

fn over_time(lines: Vec<Samples>, time: &str, bytes: &str, budget: usize) -> OverTime {
    let all = || lines.iter().flat_map(|(.., samples)| samples);
    let (time_max, bytes_max) =
        (all().map(|sample| sample.0).max().unwrap_or(0), all().map(|sample| sample.1).max().unwrap_or(0));
    let ((time_name, per_time), (bytes_name, per_byte)) = (time_unit(time_max), bytes_unit(bytes_max));
    let x = Axis::from_zero(format!("{time}, {time_name}"), time_max as f64 / per_time);
    let y = Axis::from_zero(format!("{bytes}, {bytes_name}"), bytes_max as f64 / per_byte * 1.06);
    let series = lines
        .into_iter()
        .map(|(name, look, samples)| {
            let points = envelope(&samples, budget);
            let points = points
                .iter()
                .map(|&(time, bytes)| (time as f64 / per_time, bytes as f64 / per_byte))
                .collect();
            Series { name, points, band: Vec::new(), breaks: Vec::new(), look }
        })
        .collect();
    OverTime { x, y, series, per_byte }
}

fn queues(results: &[&RunResult], budget: usize) -> Option<Chart> {
    let single = results.iter().filter(|result| !result.records.queues.is_empty()).count() == 1;
    let mut lines: Vec<Samples> = Vec::new();
    let mut limits: Vec<u64> = Vec::new();
    let mut rows_of_table = Vec::new();
    let mut watched = 0;
    for (index, result) in results.iter().enumerate() {
        let queues = by_queue(&result.records.queues);
        watched += queues.len();
        for (name, rows) in queues.into_iter().take(if single { LINES_MAX } else { 1 }) {
            let title = if single { name.to_string() } else { format!("{}: {name}", result.label) };
            let peak = rows.iter().map(|row| row.queue_bytes).max();
            let limit = rows.iter().filter_map(|row| row.limit_bytes).max();
            let drops = rows.last().map(|row| row.drops);
            limits.extend(limit);
            rows_of_table.push((title.clone(), vec![json!(peak), json!(limit), json!(drops)]));
            let look = if single { lines.len() } else { index };
            lines.push((title, look, rows.iter().map(|row| (row.time_ps, row.queue_bytes)).collect()));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let shown = lines.len();
    let OverTime { x, mut y, series, per_byte } = over_time(lines, "time", "bytes waiting", budget);
    limits.sort_unstable();
    limits.dedup();
    let mut marks = Vec::new();
    for limit in limits {
        let at = limit as f64 / per_byte;
        // A limit far above every value would flatten the curve. The table has the limit.
        if at <= y.max * 3.0 {
            y.max = y.max.max(at * 1.1);
            marks.push(Mark { text: "limit".into(), at, level: true });
        }
    }
    let caption = if watched > shown {
        "The deepest of the watched queues. Each point is the highest level of its stretch of time."
    } else {
        "Each point is the highest level of its stretch of time."
    };
    Some(Chart {
        id: "queue-depth".into(),
        title: "Queue depth over time".into(),
        caption: caption.into(),
        description: format!("{shown} of {watched} watched queues against time."),
        x,
        y,
        shape: Shape::Trace,
        series,
        marks,
        columns: vec![
            ("Highest".into(), FigureForm::Bytes),
            ("Limit".into(), FigureForm::Bytes),
            ("Frames refused".into(), FigureForm::Number),
        ],
        rows: rows_of_table,
    })
}

fn windows(results: &[&RunResult], budget: usize) -> Option<Chart> {
    let single = results.len() == 1;
    let mut lines: Vec<Samples> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let mut flows: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for row in &result.records.windows {
            flows.entry(row.flow).or_default().push((row.time_ps, row.cwnd_bytes));
        }
        for (flow, mut samples) in flows.into_iter().take(if single { LINES_MAX } else { 1 }) {
            samples.sort_unstable();
            let name = format!("connection {flow}");
            let look = if single { lines.len() } else { index };
            lines.push((if single { name } else { format!("{}: {name}", result.label) }, look, samples));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let description = format!("{} congestion windows against time.", lines.len());
    let OverTime { x, y, series, .. } = over_time(lines, "time", "congestion window", budget);
    Some(Chart {
        id: "congestion-window".into(),
        title: "Congestion windows".into(),
        caption: String::new(),
        description,
        x,
        y,
        shape: Shape::Trace,
        series,
        marks: Vec::new(),
        columns: Vec::new(),
        rows: Vec::new(),
    })
}

/// Charts the first watched event of each result, in both directions.
fn io(results: &[&RunResult], budget: usize) -> Vec<Chart> {
    let mut ways: [Vec<Samples>; 2] = [Vec::new(), Vec::new()];
    for (look, result) in results.iter().enumerate() {
        let Some(event) = result.records.io.first().map(|row| row.event) else { continue };
        let mut rows: Vec<_> = result.records.io.iter().filter(|row| row.event == event).collect();
        rows.sort_by_key(|row| row.since_request_ps);
        let name = format!("{}, event {event}", result.label);
        ways[0].push((
            name.clone(),
            look,
            rows.iter().map(|row| (row.since_request_ps, row.to_collector_bytes)).collect(),
        ));
        ways[1].push((
            name,
            look,
            rows.iter().map(|row| (row.since_request_ps, row.from_collector_bytes)).collect(),
        ));
    }
    let [to, from] = ways;
    let mut charts = Vec::new();
    for (id, title, lines) in [
        ("io-to-collector", "One event: bytes that reached the collector", to),
        ("io-from-collector", "One event: bytes that left the collector", from),
    ] {
        if lines.is_empty() {
            continue;
        }
        let names: Vec<&str> = lines.iter().map(|line| line.0.as_str()).collect();
        let description = format!("Cumulative bytes on the wire against time: {}.", names.join(", "));
        let OverTime { x, y, series, .. } =
            over_time(lines, "time since the first request", "bytes on the wire so far", budget);
        charts.push(Chart {
            id: id.into(),
            title: title.into(),
            caption: String::new(),
            description,
            x,
            y,
            shape: Shape::Step,
            series,
            marks: Vec::new(),
            columns: Vec::new(),
            rows: Vec::new(),
        });
    }
    charts
}
