//! The pictures of a run: queue, losses, timeouts and goodput on one time axis; a late event, source by source; the network.

use std::fmt::Write;

use serde_json::{Value, json};

use super::chart::{Axis, CHARACTER, shorter};
use super::format::{FigureForm, format_f64, significant, typeset};
use super::markup::escape;
use super::plots::{bytes_unit, time_unit};
use super::{dots, heat, network, waterfall};
use crate::{EventRow, PortTimeline, RunPicture, RunResult, RunTimeline, seeds};

/// Place for the values under the pointer. While it is empty it shows a hint on zooming.
pub(super) const OUTPUT: &str = "<output aria-live=\"polite\" data-hint=\"Drag to zoom, double-click to zoom out; keys + − 0\"></output>\n";

/// A drawing with its entry in the page's data.
pub(super) struct Drawing {
    pub(super) id: String,
    pub(super) data: Value,
    pub(super) html: String,
}

/// Most results that are drawn as pictures. More would be too small to read.
const RESULTS_MAX: usize = 4;
/// Bins of a picture that is made from tables.
const BINS: usize = 512;

/// A size of drawing: one for wide pages, one for narrow ones.
pub(super) struct Sheet {
    pub(super) name: &'static str,
    pub(super) width: f64,
    pub(super) ticks: usize,
}

pub(super) const SHEETS: [Sheet; 2] =
    [Sheet { name: "wide", width: 860.0, ticks: 9 }, Sheet { name: "narrow", width: 350.0, ticks: 4 }];

pub(super) const LEFT: f64 = 52.0;
pub(super) const RIGHT: f64 = 12.0;

/// Returns the room for a text by its number of characters, in units of the drawing. The room has a margin: text keeps its size
/// where a drawing is shown smaller than its own width.
pub(super) fn text_room(sheet: &Sheet, characters: usize) -> f64 {
    let larger = if sheet.name == "wide" { 1.4 } else { 1.15 };
    larger * CHARACTER * characters as f64
}

/// Writes the start of a drawing. `words` are its title and its description.
pub(super) fn open(sheet: &Sheet, height: f64, id: &str, words: [&str; 2], more: &str) -> String {
    let Sheet { name, width, .. } = sheet;
    let [title, description] = words.map(escape);
    let id = escape(&format!("{id}-{name}"));
    format!(
        "<svg class=\"{name}\" style=\"--units:{width}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" {more}>\
         <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>\n"
    )
}

/// All drawings of a page: `first` is next to the verdict, the others are below it.
#[derive(Default)]
pub(super) struct Pictures {
    pub(super) first: Vec<Drawing>,
    pub(super) others: Vec<Drawing>,
}

pub(super) fn pictures(results: &[RunResult]) -> Pictures {
    let several = results.len() > 1;
    let mut pictures = Pictures { first: Vec::new(), others: Vec::new() };
    pictures.others.extend(heat::draw(results));
    let dots = dots::draw(results);
    if seeds::groups(results).len() == 1 {
        pictures.first.extend(dots);
    } else {
        pictures.others.extend(dots);
    }
    if results.len() > RESULTS_MAX {
        return pictures;
    }
    let timelines: Vec<(usize, RunTimeline)> = results
        .iter()
        .enumerate()
        .filter_map(|(index, result)| Some((index, timeline(result)?)))
        .filter(|(_, timeline)| !timeline.ports.is_empty())
        .collect();
    let ideals = timelines.iter().filter_map(|(index, timeline)| ideal(&results[*index], timeline));
    let scale = Scale::of(timelines.iter().map(|(_, timeline)| timeline), ideals.fold(0.0, f64::max));
    for (index, timeline) in &timelines {
        let result = &results[*index];
        let of = if several { format!(": {}", result.label) } else { String::new() };
        let drawing = draw(
            timeline,
            &scale.suiting(timeline, ideal(result, timeline).unwrap_or(0.0)),
            result,
            *index,
            &of,
        );
        if several { pictures.others.push(drawing) } else { pictures.first.push(drawing) }
    }
    for (index, result) in results.iter().enumerate() {
        let Some(picture) = &result.picture else { continue };
        let of = if several { format!(": {}", result.label) } else { String::new() };
        if !several {
            pictures.others.extend(network::draw(&picture.topology, index));
        }
        pictures.others.extend(picture.late.as_ref().and_then(|late| waterfall::draw(late, index, &of)));
    }
    pictures
}

/// Returns the recorded timeline, or else one made from the tables.
fn timeline(result: &RunResult) -> Option<RunTimeline> {
    if let Some(RunPicture { timeline, .. }) = &result.picture {
        return Some(timeline.clone());
    }
    let queues = &result.records.queues;
    let end = queues.iter().map(|row| row.time_ps).max()?;
    let bin_ps = end / BINS as u64 + 1;
    let bin = |at: u64| ((at / bin_ps) as usize).min(BINS - 1);
    let mut ports: Vec<PortTimeline> = Vec::new();
    let mut drops = 0;
    for row in queues {
        if ports.last().is_none_or(|port| *port.name != *row.queue) {
            drops = row.drops;
            ports.push(PortTimeline {
                name: row.queue.to_string(),
                limit_bytes: row.limit_bytes,
                queue_bytes: vec![0; BINS],
                drops: vec![0; BINS],
                rings: Vec::new(),
                delivered_bytes: None,
            });
        }
        let Some(port) = ports.last_mut() else { continue };
        let level = &mut port.queue_bytes[bin(row.time_ps)];
        *level = row.queue_bytes.max(*level);
        port.drops[bin(row.time_ps)] += row.drops.saturating_sub(drops);
        drops = row.drops;
    }
    let rank = |port: &PortTimeline| {
        (port.drops.iter().sum::<u64>(), port.queue_bytes.iter().copied().max().unwrap_or(0))
    };
    ports.sort_by_key(|port| std::cmp::Reverse(rank(port)));
    ports.truncate(1);
    let delivered = |is_counted: &dyn Fn(&EventRow) -> bool| {
        let mut bytes = vec![0; BINS];
        for row in result.records.events.iter().filter(|row| is_counted(row)) {
            if let Some(at) = row.last_byte_ps {
                bytes[bin(at)] += row.size_bytes;
            }
        }
        bytes
    };
    for port in &mut ports {
        let collector =
            port.name.rsplit_once("->collector:").and_then(|(_, number)| number.parse::<u32>().ok());
        port.delivered_bytes = collector.map(|collector| delivered(&|row| row.collector == collector));
    }
    let delivered_bytes = delivered(&|_| true);
    Some(RunTimeline { bin_ps, delivered_bytes, timeouts: vec![0; BINS], probes: Vec::new(), ports })
}

/// Upper end of the axis of bytes, as a multiple of the largest value.
const QUEUE_HEADROOM: f64 = 1.12;

/// The scales that all pictures of a page share.
#[derive(Clone)]
struct Scale {
    x: Axis,
    time: (&'static str, f64),
    queue: Axis,
    bytes: (&'static str, f64),
    rate: Axis,
    rate_unit: (&'static str, f64),
}

/// Returns the payload rate in each bin, in bit/s. The rate is that of the host behind the first port, or of all hosts if a
/// switch is behind the port.
fn rates(timeline: &RunTimeline) -> impl Iterator<Item = f64> {
    let seconds = timeline.bin_ps.max(1) as f64 / 1e12;
    let own = timeline.ports.first().and_then(|port| port.delivered_bytes.as_ref());
    own.unwrap_or(&timeline.delivered_bytes).iter().map(move |&bytes| bytes as f64 * 8.0 / seconds)
}

/// Returns the host behind a port with known goodput.
fn host_behind(port: &PortTimeline) -> Option<&str> {
    port.delivered_bytes.as_ref().and_then(|_| port.name.rsplit_once("->")).map(|(_, host)| host)
}

/// Returns the ideal goodput of the collector behind the first port, in bit/s; `None` if no collector is behind it.
fn ideal(result: &RunResult, timeline: &RunTimeline) -> Option<f64> {
    let host = timeline.ports.first().and_then(host_behind)?;
    let bps = result.summary.ideal.as_ref()?.goodput_bps?;
    host.starts_with("collector").then_some(bps)
}

/// A picture has its own axis of bytes if the page's largest value is more than this many times its own.
const OWN_SCALE: u64 = 4;

/// Returns the most bytes that a picture of the first port shows.
fn bytes_max(timeline: &RunTimeline) -> u64 {
    let Some(port) = timeline.ports.first() else { return 1 };
    let peak = port.queue_bytes.iter().copied().max().unwrap_or(0);
    // A limit far above the queue would flatten the queue's curve.
    let limit = port.limit_bytes.filter(|&limit| limit <= peak.saturating_mul(3));
    limit.unwrap_or(0).max(peak).max(1)
}

impl Scale {
    /// Returns the scale for one picture, with its own axes of bytes or rates if the page's would flatten its curves.
    fn suiting(&self, timeline: &RunTimeline, ideal_bps: f64) -> Self {
        let own = bytes_max(timeline);
        let is_flat = own.saturating_mul(OWN_SCALE) < (self.queue.max * self.bytes.1 / QUEUE_HEADROOM) as u64;
        let scale = if is_flat { self.with_bytes(own) } else { self.clone() };
        // The page's axis may hold the payload of all hosts, and this picture that of one host.
        let bps = rates(timeline).fold(ideal_bps, f64::max);
        if bps * (OWN_SCALE as f64) < self.rate.max * self.rate_unit.1 { scale.with_rate(bps) } else { scale }
    }

    fn with_rate(self, bps: f64) -> Self {
        let rate_unit = rate_unit(bps);
        Self { rate: Axis::from_zero("", bps / rate_unit.1 * 1.1), rate_unit, ..self }
    }

    fn with_bytes(&self, bytes_max: u64) -> Self {
        let bytes = bytes_unit(bytes_max);
        Self {
            queue: Axis::from_zero("", bytes_max as f64 / bytes.1 * QUEUE_HEADROOM),
            bytes,
            ..self.clone()
        }
    }

    /// Makes the scale of all timelines. `ideal_bps` is the largest ideal that is drawn.
    fn of<'a>(timelines: impl Iterator<Item = &'a RunTimeline> + Clone, ideal_bps: f64) -> Self {
        let end = timelines.clone().map(|one| one.bin_ps * one.timeouts.len() as u64).max().unwrap_or(1);
        let time = time_unit(end);
        let bytes_max = timelines.clone().map(bytes_max).max().unwrap_or(1);
        let bytes = bytes_unit(bytes_max);
        let bps = timelines.flat_map(rates).fold(ideal_bps, f64::max);
        let rate_unit = rate_unit(bps);
        Self {
            x: Axis { title: format!("time, {}", time.0), log: false, min: 0.0, max: end as f64 / time.1 },
            time,
            queue: Axis::from_zero("", bytes_max as f64 / bytes.1 * QUEUE_HEADROOM),
            bytes,
            rate: Axis::from_zero("", bps / rate_unit.1 * 1.1),
            rate_unit,
        }
    }
}

fn rate_unit(bps: f64) -> (&'static str, f64) {
    if bps >= 2e9 { ("Gb/s", 1e9) } else { ("Mb/s", 1e6) }
}

/// Heights of the parts of the picture, from the top.
const QUEUE: [f64; 2] = [26.0, 196.0];
const DROPS: f64 = 214.0;
const TIMEOUTS: f64 = 234.0;
const RATE: [f64; 2] = [282.0, 378.0];
const HEIGHT: f64 = 416.0;

fn draw(timeline: &RunTimeline, scale: &Scale, result: &RunResult, index: usize, of: &str) -> Drawing {
    let port = &timeline.ports[0];
    // In a shared memory the limit falls as other outputs fill it: drops begin below the limit of an empty memory.
    let row = result.summary.ports.iter().find(|row| row.name == port.name);
    let fallen = row.and_then(|row| row.first_drop_limit_bytes);
    let name = typeset(&port.name);
    let id = format!("timeline-{index}");
    let title = format!("The queue at {name}{of}");
    let per_bin = timeline.bin_ps as f64 / scale.time.1;
    let drops: u64 = port.drops.iter().sum();
    let timeouts: u64 = timeline.timeouts.iter().sum();
    let probes: u64 = timeline.probes.iter().sum();
    let peak = port.queue_bytes.iter().copied().max().unwrap_or(0);
    let description = format!(
        "Queue, dropped frames, timeouts and goodput over time. The queue reaches {}; {drops} frames are dropped, {timeouts} \
         retransmission timers expire.",
        format_f64(peak as f64, FigureForm::Bytes)
    );
    let points = |values: &mut dyn Iterator<Item = f64>| -> Vec<(f64, f64)> {
        values.enumerate().map(|(bin, value)| (bin as f64 * per_bin, value)).collect()
    };
    let queue = points(&mut port.queue_bytes.iter().map(|&bytes| bytes as f64 / scale.bytes.1));
    let rate = points(&mut rates(timeline).map(|bps| bps / scale.rate_unit.1));
    let counts = |values: &[u64]| points(&mut values.iter().map(|&count| count as f64));
    let host = host_behind(port);
    let delivered = host.map_or_else(
        || "payload delivered to all hosts".to_owned(),
        |host| format!("payload delivered to {}", escape(host)),
    );
    let ideal = ideal(result, timeline);
    let mut html = format!("<figure class=\"picture\" data-chart=\"{id}\">\n<h3>{}</h3>\n", escape(&title));
    for sheet in &SHEETS {
        let right = sheet.width - RIGHT;
        let more = format!(
            "tabindex=\"0\" data-plot=\"{LEFT} {right} {} {}\" data-x=\"lin 0 {}\"",
            QUEUE[0], RATE[1], scale.x.max
        );
        html += &open(sheet, HEIGHT, &id, [&title, &description], &more);
        let px = |x: f64| LEFT + scale.x.place(x) * (right - LEFT);
        panel(&mut html, &scale.queue, QUEUE, right, &format!("bytes waiting, {}", scale.bytes.0));
        panel(&mut html, &scale.rate, RATE, right, &format!("{delivered}, {}", scale.rate_unit.0));
        html += "<g class=\"zoom\">";
        steps(&mut html, &queue, &scale.queue, QUEUE, &px, per_bin, "s0");
        steps(&mut html, &rate, &scale.rate, RATE, &px, per_bin, "s2");
        ticks(&mut html, &port.drops, DROPS, &px, per_bin, "drop");
        ticks(&mut html, &timeline.probes, TIMEOUTS, &px, per_bin, "probe");
        ticks(&mut html, &timeline.timeouts, TIMEOUTS, &px, per_bin, "rto");
        html += "</g>\n";
        for (text, at, count) in [
            ("drops", DROPS, drops),
            (if probes > 0 { "timers" } else { "RTOs" }, TIMEOUTS, timeouts + probes),
        ] {
            let dim = if count == 0 { " none" } else { "" };
            let _ = write!(
                html,
                "<text class=\"tick{dim}\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{text}</text>\
                 <path class=\"grid\" d=\"M{LEFT} {}H{right}\"/>",
                LEFT - 7.0,
                at + 4.0,
                at + 7.0
            );
        }
        if let Some(limit) = fallen
            .or(port.limit_bytes)
            .map(|limit| limit as f64 / scale.bytes.1)
            .filter(|&limit| limit <= scale.queue.max)
        {
            let y = place(&scale.queue, limit, QUEUE);
            let at = if fallen.is_some() { " at the first drop" } else { "" };
            let text = format!("limit {}{at}", format_f64(limit * scale.bytes.1, FigureForm::Bytes));
            level(&mut html, y, right, y - 5.0, &text);
        }
        if let Some(best) = ideal.map(|bps| bps / scale.rate_unit.1).filter(|best| *best <= scale.rate.max) {
            // The time of an event includes its request, so that a curve may exceed the ideal.
            let whole = if result.summary.collection_time_ms.is_some() { "event" } else { "request" };
            let text = format!("ideal for a whole {whole}");
            // A narrow picture has no room for the whole text behind the panel's title.
            let text = if sheet.name == "wide" { &*text } else { "ideal" };
            level(&mut html, place(&scale.rate, best, RATE), right, RATE[0] - 12.0, text);
        }
        time_axis(&mut html, &scale.x, sheet, RATE[1]);
        html += "</svg>\n";
    }
    html += OUTPUT;
    let (step_unit, step_factor) = time_unit(timeline.bin_ps);
    let _ = write!(
        html,
        "<figcaption class=\"note\">Each step is {} {} wide and shows the deepest queue within it.{}</figcaption>\n</figure>\n",
        significant(timeline.bin_ps as f64 / step_factor),
        step_unit,
        if probes > 0 {
            " Timers: tail loss probes (violet) and retransmission timeouts (orange) end the wait for lost frames."
        } else if timeouts > 0 {
            " RTOs: retransmission timeouts, which end the wait for lost frames."
        } else {
            ""
        }
    );
    let series = |name: String, points: &[(f64, f64)]| {
        let points: Vec<Value> = points.iter().map(|&(x, y)| json!([shorter(x), shorter(y)])).collect();
        json!({ "name": name, "points": points })
    };
    let data = json!({
        "title": title, "x": scale.x.title, "y": "", "nearest": false, "rows": [],
        "series": [
            series(format!("queue in {}", scale.bytes.0), &queue),
            series("drops".into(), &counts(&port.drops)),
            series("timeouts".into(), &counts(&timeline.timeouts)),
            series("tail loss probes".into(), &counts(&timeline.probes)),
            series(format!("{delivered}, in {}", scale.rate_unit.0), &rate),
        ],
    });
    Drawing { id, data, html }
}

fn place(axis: &Axis, value: f64, [top, bottom]: [f64; 2]) -> f64 {
    bottom - axis.place(value) * (bottom - top)
}

/// Writes grid, labels and title of a panel.
fn panel(html: &mut String, axis: &Axis, span: [f64; 2], right: f64, title: &str) {
    let _ = write!(html, "<text class=\"axis\" x=\"0\" y=\"{}\">{title}</text>", span[0] - 12.0);
    for tick in axis.ticks(4) {
        let y = place(axis, tick, span);
        let _ = write!(
            html,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 7.0,
            y + 4.0,
            significant(tick)
        );
    }
}

/// Writes a dotted horizontal line, with its text above.
fn level(html: &mut String, y: f64, right: f64, label_y: f64, text: &str) {
    let _ = write!(
        html,
        "<path class=\"mark\" d=\"M{LEFT} {y:.1}H{right}\"/><g class=\"tick\"><text class=\"mark\" x=\"{right}\" y=\"{:.1}\" \
         text-anchor=\"end\">{}</text></g>",
        label_y,
        escape(text)
    );
}

/// Writes an area of steps.
fn steps(
    html: &mut String,
    points: &[(f64, f64)],
    axis: &Axis,
    span: [f64; 2],
    px: &dyn Fn(f64) -> f64,
    width: f64,
    look: &str,
) {
    let mut path = format!("M{LEFT} {:.1}", span[1]);
    let mut last = f64::NAN;
    for &(x, value) in points {
        let y = place(axis, value, span);
        if (y - last).abs() >= 0.05 || last.is_nan() {
            let _ = write!(path, "H{:.2}V{y:.1}", px(x));
            last = y;
        }
    }
    let end = points.last().map_or(0.0, |point| point.0) + width;
    let _ = write!(path, "H{:.2}V{:.1}", px(end), span[1]);
    let _ = writeln!(
        html,
        "<path class=\"area {look}\" d=\"{path}Z\"/><path class=\"line thin {look}\" d=\"{path}\"/>"
    );
}

/// Writes a tick for each bin with a count. The tick is taller for larger counts.
fn ticks(html: &mut String, counts: &[u64], at: f64, px: &dyn Fn(f64) -> f64, width: f64, class: &str) {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut path = String::new();
    for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = 5.0 + 9.0 * (count as f64).ln_1p() / most.ln_1p();
        let _ = write!(path, "M{:.2} {:.1}v{height:.1}", px((bin as f64 + 0.5) * width), at + 7.0 - height);
    }
    if !path.is_empty() {
        let _ = write!(html, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

/// Writes the labels of a time axis below `bottom`.
pub(super) fn time_axis(html: &mut String, axis: &Axis, sheet: &Sheet, bottom: f64) {
    let right = sheet.width - RIGHT;
    html.push_str("<g class=\"x-axis\">");
    for tick in axis.ticks(sheet.ticks) {
        let x = LEFT + axis.place(tick) * (right - LEFT);
        let text = significant(tick);
        let half = CHARACTER * text.chars().count() as f64 / 2.0;
        let (x_text, anchor) = if x + half > sheet.width { (sheet.width, "end") } else { (x, "middle") };
        let _ = write!(
            html,
            "<path class=\"notch\" d=\"M{x:.1} {bottom}v4\"/><text class=\"tick\" x=\"{x_text:.1}\" y=\"{}\" \
             text-anchor=\"{anchor}\">{text}</text>",
            bottom + 17.0
        );
    }
    let _ = write!(
        html,
        "</g><path class=\"base\" d=\"M{LEFT} {bottom}H{right}\"/><text class=\"axis\" x=\"{right}\" y=\"{}\" \
         text-anchor=\"end\">{}</text>",
        bottom + 34.0,
        escape(&axis.title)
    );
}
