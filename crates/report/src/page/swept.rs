//! Times and goodput against the setting that differs between results, such as the points of a sweep.

use std::collections::{BTreeMap, BTreeSet};

use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};
use serde_json::json;
use toml::Value;

use super::alike::ignored;
use super::chart::{Axis, Chart, LOOKS, Mark, Series, Shape};
use super::contents::{OTHER_LABELS, SETTINGS, matters};
use super::following::{leading_and_following, with_note};
use super::format::{FigureForm, significant, words};
use crate::{RunResult, Summary};

/// Ratio of largest to smallest above which an axis is logarithmic.
const LOG_FROM: f64 = 20.0;

/// A result's settings by their dotted names.
type FlatSettings = BTreeMap<String, Value>;

fn flatten(prefix: &str, tree: &toml::Table, ignored: &[&str], out: &mut FlatSettings) {
    for (key, value) in tree {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(table) => flatten(&name, table, ignored, out),
            _ if ignored.contains(&name.as_str()) => {}
            _ => _ = out.insert(name, value.clone()),
        }
    }
}

fn flat(result: &RunResult, ignored: &[&str]) -> Option<FlatSettings> {
    let tree = result.scenario_toml.as_ref()?.parse::<toml::Table>().ok()?;
    let mut out = FlatSettings::new();
    flatten("", &tree, ignored, &mut out);
    // The JSON of a sweep has only the swept settings, which are not enough to decide.
    if out.contains_key("workload.kind") {
        let tree = Value::Table(tree);
        out.retain(|name, _| matters(name, &tree));
    }
    Some(out)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the settings that differ between results, sorted by name. Each has every result's value; `None` if the result lacks
/// it. Results without a known scenario count as equal.
pub(crate) fn differing(results: &[RunResult]) -> Vec<(String, Vec<Option<String>>)> {
    let ignored = ignored(results);
    let flats: Vec<Option<FlatSettings>> = results.iter().map(|result| flat(result, ignored)).collect();
    let known: Vec<&FlatSettings> = flats.iter().flatten().collect();
    let keys: BTreeSet<&String> = known.iter().flat_map(|flat| flat.keys()).collect();
    keys.into_iter()
        .filter(|key| known.windows(2).any(|pair| pair[0].get(*key) != pair[1].get(*key)))
        .map(|key| {
            let values = flats.iter().map(|flat| flat.as_ref()?.get(key).map(plain)).collect();
            (key.clone(), values)
        })
        .collect()
}

/// Returns true if results differ in their seeds.
pub(crate) fn has_seeds(results: &[RunResult]) -> bool {
    results.windows(2).any(|pair| pair[0].summary.seed != pair[1].summary.seed)
}

/// Returns the swept settings among those that differ. The labels of a sweep's points name them. Others are included if the
/// named ones do not determine them, as on a page of several sweeps. Of settings with equal values in all results, the one with
/// the shortest key is kept.
pub(super) fn swept(results: &[RunResult]) -> Vec<(String, Vec<Option<String>>)> {
    let mut found = differing(results);
    let is_named = |key: &str| {
        let names = |part: &str| part.split_once('=').is_some_and(|(name, _)| name == key);
        results.iter().any(|result| result.label.split([',', ' ']).any(names))
    };
    let named: Vec<Vec<Option<String>>> =
        found.iter().filter(|(key, _)| is_named(key)).map(|(_, values)| values.clone()).collect();
    let follows = |values: &[Option<String>]| {
        let mut known: BTreeMap<Vec<&Option<String>>, &Option<String>> = BTreeMap::new();
        values.iter().enumerate().all(|(index, value)| {
            *known.entry(named.iter().map(|values| &values[index]).collect()).or_insert(value) == value
        })
    };
    if !named.is_empty() {
        found.retain(|(key, values)| is_named(key) || !follows(values));
    }
    // Settings that depend on `link.delay` or `tor.buffer` have longer names, and are dropped in favour of these.
    found.sort_by_key(|(key, _)| (key.matches('.').count(), key.len()));
    let mut leading: Vec<(String, Vec<Option<String>>)> = Vec::new();
    for (key, values) in found {
        if !leading.iter().any(|(_, others)| *others == values) {
            leading.push((key, values));
        }
    }
    leading.sort_by(|one, other| one.0.cmp(&other.0));
    leading
}

/// Returns the label of a setting on the page.
pub(crate) fn label(key: &str) -> String {
    let known = SETTINGS.iter().chain(OTHER_LABELS).find(|(name, _)| *name == key);
    known.map_or_else(|| words(&key.replace('.', ": ")), |(_, label)| (*label).to_owned())
}

/// A quantity as a number in its base unit, and the units in which it may be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScaledQuantity {
    pub(super) number: f64,
    units: &'static [(f64, &'static str)],
}

const PLAIN: &[(f64, &str)] = &[(1.0, "")];
const PACKETS: &[(f64, &str)] = &[(1.0, "packets")];
const BYTES: &[(f64, &str)] = &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")];
const TIMES: &[(f64, &str)] = &[(1.0, "ps"), (1e3, "ns"), (1e6, "µs"), (1e9, "ms"), (1e12, "s")];
const RATES: &[(f64, &str)] = &[(1.0, "b/s"), (1e3, "kb/s"), (1e6, "Mb/s"), (1e9, "Gb/s")];
const FREQUENCIES: &[(f64, &str)] = &[(1e3, "Hz"), (1e6, "kHz"), (1e9, "MHz")];
const RATIOS: &[(f64, &str)] = &[(1e6, "")];

pub(super) fn quantity(text: &str) -> Option<ScaledQuantity> {
    let of = |number: u64, units| Some(ScaledQuantity { number: number as f64, units });
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(ScaledQuantity { number, units: PLAIN });
    }
    text.parse::<Bytes>()
        .ok()
        .and_then(|bytes| of(bytes.get(), BYTES))
        .or_else(|| text.parse::<Duration>().ok().and_then(|time| of(time.get(), TIMES)))
        .or_else(|| text.parse::<Rate>().ok().and_then(|rate| of(rate.get(), RATES)))
        .or_else(|| text.parse::<Packets>().ok().and_then(|packets| of(packets.get(), PACKETS)))
        .or_else(|| text.parse::<Frequency>().ok().and_then(|frequency| of(frequency.get(), FREQUENCIES)))
        .or_else(|| text.parse::<Ratio>().ok().and_then(|ratio| of(ratio.get(), RATIOS)))
}

/// The setting along the x axis: its key, its unit, and each result's value in that unit.
struct Along {
    key: String,
    at: Vec<f64>,
    unit: (f64, &'static str),
}

/// Chooses the setting with the most values among those that are numbers of one quantity in all results.
fn along(differing: &[(String, Vec<Option<String>>)]) -> Option<Along> {
    differing
        .iter()
        .filter_map(|(key, values)| {
            let quantities: Option<Vec<ScaledQuantity>> =
                values.iter().map(|value| value.as_deref().and_then(quantity)).collect();
            let quantities =
                quantities.filter(|all| all.windows(2).all(|pair| pair[0].units == pair[1].units))?;
            let max = quantities.iter().map(|quantity| quantity.number).fold(0.0, f64::max);
            let units = quantities.first()?.units;
            let unit = *units.iter().rev().find(|(factor, _)| max >= *factor).unwrap_or(&units[0]);
            let at: Vec<f64> = quantities.iter().map(|quantity| quantity.number / unit.0).collect();
            Some(Along { key: key.clone(), at, unit })
        })
        .max_by_key(|along| {
            let distinct: BTreeSet<u64> = along.at.iter().map(|x| x.to_bits()).collect();
            (distinct.len(), std::cmp::Reverse(along.key.clone()))
        })
}

/// A figure of a summary, in the chart's unit.
type FigureOf = fn(&Summary) -> Option<f64>;
/// Values of a curve at their x; `None` where one is unknown.
type CurveValues = Vec<(f64, Option<f64>)>;

/// A chart of a figure of the summary: its title, path and unit.
struct Shown {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    form: FigureForm,
    curves: &'static [(&'static str, FigureOf)],
    ideal: FigureOf,
    /// True for counts. They are drawn only if one is above zero.
    is_count: bool,
}

const SHOWN: [Shown; 3] = [
    Shown {
        id: "time-against-setting",
        title: "time",
        unit: "ms",
        form: FigureForm::Millis,
        curves: &[
            ("mean", |summary| summary.times().map(|times| times.mean)),
            ("p99", |summary| summary.times().filter(|_| summary.has_p99()).map(|times| times.p99)),
        ],
        ideal: |summary| summary.times().and_then(|times| times.ideal),
        is_count: false,
    },
    Shown {
        id: "goodput-against-setting",
        title: "goodput",
        unit: "Mb/s",
        form: FigureForm::Bits,
        curves: &[("", |summary| summary.goodput_bps.as_ref().map(|goodput| goodput.total / 1e6))],
        ideal: |_| None,
        is_count: false,
    },
    Shown {
        id: "drops-against-setting",
        title: "dropped frames",
        unit: "",
        form: FigureForm::Number,
        curves: &[("", |summary| summary.network.as_ref()?.drops.map(|drops| drops as f64))],
        ideal: |_| None,
        is_count: true,
    },
];

/// Makes the charts over the differing setting, if one or two settings differ.
pub(crate) fn charts(results: &[RunResult]) -> Vec<Chart> {
    let (differing, following) = leading_and_following(results);
    if results.len() < 2 || differing.is_empty() || differing.len() > 2 {
        return Vec::new();
    }
    // Times of events and times of requests have different meanings and are not drawn together.
    let has = |is: fn(&Summary) -> bool| results.iter().any(|result| is(&result.summary));
    if has(|summary| summary.requests.is_some()) && has(|summary| summary.events.is_some()) {
        return Vec::new();
    }
    let Some(along) = along(&differing) else { return Vec::new() };
    // Two points are a comparison, not a curve.
    if along.at.iter().map(|x| x.to_bits()).collect::<BTreeSet<u64>>().len() < 3 {
        return Vec::new();
    }
    with_note(SHOWN.iter().filter_map(|shown| chart(shown, results, &differing, &along)), &following)
}

fn chart(
    shown: &Shown,
    results: &[RunResult],
    differing: &[(String, Vec<Option<String>>)],
    along: &Along,
) -> Option<Chart> {
    let several_kinds = results.windows(2).any(|pair| pair[0].summary.kind != pair[1].summary.kind);
    let other = differing.iter().find(|(key, _)| *key != along.key);
    // Keys: number of the curve, place of the other setting's value, name.
    let mut lines: BTreeMap<(usize, usize, String), CurveValues> = BTreeMap::new();
    let places = other.map(|(_, values)| places(values)).unwrap_or_default();
    for (index, result) in results.iter().enumerate() {
        for (order, (name, figure)) in shown.curves.iter().enumerate() {
            let y = figure(&result.summary).filter(|y| y.is_finite() && *y >= 0.0);
            let group =
                other.and_then(|(key, values)| Some(format!("{} {}", label(key), values[index].as_deref()?)));
            let kind = several_kinds.then(|| result.summary.kind.name().to_owned());
            let parts = [(!name.is_empty()).then(|| (*name).to_owned()), group, kind];
            let name = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
            let place = places.get(index).copied().unwrap_or(0);
            lines.entry((order, place, name)).or_default().push((along.at[index], y));
        }
    }
    lines.retain(|_, points| points.iter().any(|(_, y)| y.is_some()));
    let is_known = || lines.values().flatten().filter_map(|(_, y)| *y);
    if lines.is_empty() || lines.len() > LOOKS || shown.is_count && is_known().all(|y| y == 0.0) {
        return None;
    }
    let mut series: Vec<Series> = Vec::new();
    for ((.., name), mut points) in lines {
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        let Means { points, band, breaks } = means(&points);
        series.push(Series { name, points, band, breaks, look: series.len() });
    }
    let points = || series.iter().flat_map(|series| &series.points);
    let highest = series.iter().flat_map(|series| &series.band).map(|band| band.1);
    let lowest = series.iter().flat_map(|series| &series.band).map(|band| band.0);
    let ends: Vec<f64> = lowest.chain(highest).collect();
    let caption = if ends.is_empty() {
        String::new()
    } else {
        "Lines join the means over seeds. Bands reach from the least seed to the largest.".to_owned()
    };
    let x = axis(along.axis_title(), points().map(|point| point.0), along.at.iter().copied());
    let ideals: Vec<f64> = results.iter().filter_map(|result| (shown.ideal)(&result.summary)).collect();
    let same_ideal = ideals.windows(2).all(|pair| (pair[0] / pair[1] - 1.0).abs() < 0.01);
    let ideal = ideals.first().copied().filter(|ideal| same_ideal && ideal.is_finite() && *ideal > 0.0);
    let scale =
        if shown.is_count { shown.title.to_owned() } else { format!("{}, {}", shown.title, shown.unit) };
    let y = axis(scale, points().map(|point| point.1), ideal.into_iter().chain(ends));
    let marks = ideal.map(|at| Mark { text: "ideal".into(), at, level: true }).into_iter().collect();
    let names = label(&along.key);
    let time_title = if results.iter().any(|result| result.summary.collection_time_ms.is_some()) {
        "Collection time"
    } else {
        "Request time"
    };
    let title = match shown.title {
        "time" => time_title,
        "goodput" => "Goodput",
        _ => "Dropped frames",
    };
    let rows = (0..results.len())
        .map(|index| {
            let at = significant(along.at[index]);
            let name = format!("{at} {} ({})", along.unit.1, results[index].label);
            let figures = shown.curves.iter().map(|(_, figure)| {
                let factor = if shown.form == FigureForm::Bits { 1e6 } else { 1.0 };
                json!(figure(&results[index].summary).map(|figure| figure * factor))
            });
            (name, figures.collect())
        })
        .collect();
    let columns = shown
        .curves
        .iter()
        .map(|(name, _)| (if name.is_empty() { title.to_owned() } else { (*name).to_owned() }, shown.form));
    Some(Chart {
        id: shown.id.into(),
        title: format!("{title} against {}", lower(&names)),
        caption,
        description: format!("{} curves over {} results.", series.len(), results.len()),
        x,
        y,
        shape: Shape::Points,
        series,
        marks,
        columns: columns.collect(),
        rows,
    })
}

/// Returns the place of each value among all values, ascending. Words come last, in the order of their first occurrence.
fn places(values: &[Option<String>]) -> Vec<usize> {
    let mut known: Vec<&str> = Vec::new();
    for value in values.iter().flatten() {
        if !known.contains(&value.as_str()) {
            known.push(value);
        }
    }
    let number = |text: &&str| quantity(text).map_or(f64::INFINITY, |quantity| quantity.number);
    known.sort_by(|one, other| number(one).total_cmp(&number(other)));
    let place = |value: &Option<String>| known.iter().position(|other| Some(*other) == value.as_deref());
    values.iter().map(|value| place(value).unwrap_or(0)).collect()
}

/// The points of a curve, each the mean over seeds.
#[derive(Debug, Default, PartialEq)]
struct Means {
    points: Vec<(f64, f64)>,
    /// The least and the largest value at each point; empty if each x has one value.
    band: Vec<(f64, f64)>,
    /// Indices of points after an x without a value.
    breaks: Vec<usize>,
}

/// Computes the mean over seeds at each x. Points are in ascending order.
fn means(values: &[(f64, Option<f64>)]) -> Means {
    let mut means = Means::default();
    let mut has_seeds = false;
    let mut is_cut = false;
    for group in values.chunk_by(|one, other| one.0.to_bits() == other.0.to_bits()) {
        let known = || group.iter().filter_map(|(_, y)| *y);
        let count = known().count();
        if count == 0 {
            is_cut = !means.points.is_empty();
            continue;
        }
        if std::mem::take(&mut is_cut) {
            means.breaks.push(means.points.len());
        }
        has_seeds |= count > 1;
        means.points.push((group[0].0, known().sum::<f64>() / count as f64));
        means.band.push((known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max)));
    }
    if !has_seeds {
        means.band.clear();
    }
    means
}

impl Along {
    fn axis_title(&self) -> String {
        let name = lower(&label(&self.key));
        if self.unit.1.is_empty() { name } else { format!("{name}, {}", self.unit.1) }
    }
}

/// Writes a heading for use within a sentence: in lower case, except for abbreviations.
pub(super) fn lower(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().collect::<String>() + characters.as_str()
        }
        _ => text.to_owned(),
    }
}

/// Makes an axis that holds all values. It is logarithmic if they are far apart.
fn axis(title: String, values: impl Iterator<Item = f64>, more: impl IntoIterator<Item = f64>) -> Axis {
    let all: Vec<f64> = values.chain(more).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    if low > 0.0 && high / low > LOG_FROM {
        let title = format!("{title}, logarithmic");
        return Axis { title, log: true, min: low / 1.15, max: high * 1.15 };
    }
    Axis::from_zero(title, high * 1.06)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestCounts, ResultKind, ScenarioName, Times};

    fn result(kind: ResultKind, credits: u64, policy: &str, mean: f64) -> RunResult {
        let mut summary = Summary::new(kind, "1", ScenarioName::default());
        let times = Times { ideal: Some(10.0), mean, p99: mean * 2.0, ..Times::default() };
        summary.requests =
            Some(RequestCounts { completed: 100, time_ms: Some(times), ..RequestCounts::default() });
        let toml = format!(
            "title = \"{credits}\"\n[run]\nseed = {credits}\n[shaping]\ncredits = {credits}\nmethod = \"{policy}\"\n"
        );
        RunResult { scenario_toml: Some(toml), ..RunResult::new(summary) }
    }

    #[test]
    fn a_sweep_becomes_curves_over_its_setting() {
        let results: Vec<_> = [48, 96, 480, 192]
            .into_iter()
            .map(|credits| result(ResultKind::Sim, credits, "credits", credits as f64))
            .collect();
        let keys: Vec<_> = differing(&results).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["shaping.credits"], "titles and seeds make no other system");
        let charts = charts(&results);
        assert_eq!(charts.len(), 1, "there is no goodput to show");
        let chart = &charts[0];
        assert_eq!(chart.title, "Request time against credits");
        let names: Vec<_> = chart.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["mean", "p99"]);
        let x: Vec<_> = chart.series[0].points.iter().map(|point| point.0).collect();
        assert_eq!(x, [48.0, 96.0, 192.0, 480.0]);
        assert_eq!(chart.marks.len(), 1, "one ideal");
    }

    #[test]
    fn a_second_setting_or_kind_makes_curves_of_its_own() {
        let mut results = Vec::new();
        for kind in [ResultKind::Sim, ResultKind::Run] {
            results.extend([48, 96, 480].map(|credits| result(kind, credits, "credits", 1.0)));
        }
        let names = |results: &[RunResult]| -> Vec<String> {
            charts(results)[0].series.iter().map(|series| series.name.clone()).collect()
        };
        assert_eq!(names(&results).len(), 4);
        assert!(names(&results)[0].contains("measurement"), "{:?}", names(&results));
        results.truncate(3);
        results.extend([48, 96, 480].map(|credits| result(ResultKind::Sim, credits, "none", 1.0)));
        assert_eq!(names(&results)[0], "mean, Shaping credits");
    }

    #[test]
    fn seeds_become_a_band_around_their_mean() {
        let points = [(1.0, 2.0), (1.0, 4.0), (1.0, 9.0), (2.0, 1.0)].map(|(x, y)| (x, Some(y)));
        let band = vec![(2.0, 9.0), (1.0, 1.0)];
        assert_eq!(means(&points), Means { points: vec![(1.0, 5.0), (2.0, 1.0)], band, breaks: Vec::new() });
        assert_eq!(means(&points[2..]).band, []);
    }

    #[test]
    fn a_line_breaks_where_a_value_is_missing() {
        let mut results: Vec<_> =
            [1, 2, 3, 4, 5].map(|credits| result(ResultKind::Sim, credits, "credits", 1.0)).into();
        results[2].summary.requests.as_mut().unwrap().completed = 50;
        let charts = charts(&results);
        let breaks: Vec<_> = charts[0].series.iter().map(|series| series.breaks.clone()).collect();
        assert_eq!(breaks, [vec![], vec![2]], "the mean is known, the p99 of 50 is not");
        let html = charts[0].html(&json!({}));
        let line = html.split("class=\"line s1 n1\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 2), "{line}");
    }

    #[test]
    fn settings_that_follow_a_swept_one_are_no_axes() {
        let at = |buffer: u64, senders: u64, label: String| {
            let mut result = result(ResultKind::Sim, 1, "none", (buffer * senders) as f64);
            let toml = format!(
                "[tor]\nbuffer = \"{buffer} kB\"\nuplink_buffer = \"{buffer} kB\"\n[core]\nports = {}\n\
                 [workload]\nsenders = {senders}\n",
                2 * senders + 1
            );
            result.scenario_toml = Some(toml);
            result.label = label;
            result
        };
        let line: Vec<_> = [64, 128, 256].map(|buffer| at(buffer, 8, String::new())).into();
        let found = charts(&line);
        assert_eq!(
            (found[0].title.as_str(), found[0].series.len()),
            ("Request time against rack switch buffer", 2)
        );
        let points = [64, 128, 256]
            .iter()
            .flat_map(|&buffer| [4, 8, 16].map(|senders| (buffer, senders)))
            .map(|(buffer, senders)| {
                at(buffer, senders, format!("workload.senders={senders}, tor.buffer={buffer} kB, run.seed=1"))
            });
        let points: Vec<_> = points.collect();
        let keys: Vec<_> = swept(&points).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["tor.buffer", "workload.senders"]);
        assert_eq!(charts(&points)[0].series.len(), 6, "mean and p99 for each of three");
    }

    #[test]
    fn points_of_two_sweeps_differ_in_what_one_of_them_swept() {
        let at = |buffer: u64, senders: u64, label: String| {
            let mut result = result(ResultKind::Sim, 1, "none", 1.0);
            let toml = format!(
                "[tor]\nbuffer = \"{buffer} kB\"\nuplink_buffer = \"{buffer} kB\"\n[workload]\nsenders = {senders}\n"
            );
            result.scenario_toml = Some(toml);
            result.label = label;
            result
        };
        let one = [4, 8, 16].map(|senders| at(64, senders, format!("workload.senders={senders}")));
        let other = [4, 8, 16]
            .map(|senders| at(256, senders, format!("workload.senders={senders}, tor.buffer=256 kB")));
        let keys = |results: &[RunResult]| swept(results).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(&one), ["workload.senders"]);
        assert_eq!(keys(&[one.clone(), other].concat()), ["tor.buffer", "workload.senders"]);
        // The second one has another buffer in the scenario itself.
        let other = [4, 8, 16].map(|senders| at(256, senders, format!("workload.senders={senders}")));
        assert_eq!(keys(&[one, other].concat()), ["tor.buffer", "workload.senders"]);
    }

    #[test]
    fn curves_of_a_second_setting_stand_in_its_order() {
        let mut results = Vec::new();
        for senders in [4, 8, 12, 16] {
            for credits in [48, 96, 480] {
                let mut one = result(ResultKind::Sim, credits, "credits", 1.0);
                let toml = format!("[shaping]\ncredits = {credits}\n[workload]\nsenders = {senders}\n");
                one.scenario_toml = Some(toml);
                results.push(one);
            }
        }
        // Four values against three: the senders are the axis, and the credits make the curves.
        let names: Vec<String> =
            charts(&results)[0].series.iter().take(3).map(|series| series.name.clone()).collect();
        assert_eq!(names, ["mean, Credits 48", "mean, Credits 96", "mean, Credits 480"]);
        let values: Vec<_> = ["1 MB", "64 kB", "128 kB", "64 kB"].map(|text| Some(text.to_owned())).into();
        assert_eq!(places(&values), [2, 0, 1, 0]);
    }

    #[test]
    fn settings_without_effect_are_no_axis() {
        let at = |senders: u64| {
            let mut one = result(ResultKind::Sim, 1, "none", 1.0);
            one.scenario_toml = Some(format!("[workload]\nkind = \"event-building\"\nsenders = {senders}\n"));
            one
        };
        let building = [4, 8, 16].map(at);
        assert!(differing(&building).is_empty() && charts(&building).is_empty());
        let mut mixed: Vec<_> =
            [48, 96, 480].map(|credits| result(ResultKind::Sim, credits, "credits", 1.0)).into();
        assert_eq!(charts(&mixed).len(), 1);
        mixed[2].summary.requests = None;
        mixed[2].summary.events = Some(crate::EventCounts::default());
        assert!(charts(&mixed).is_empty(), "requests and events share no axis");
    }

    #[test]
    fn drops_are_drawn_where_there_are_some() {
        let at = |credits: u64, drops: u64| {
            let mut one = result(ResultKind::Sim, credits, "credits", 1.0);
            one.summary.network.get_or_insert_default().drops = Some(drops);
            one
        };
        let ids = |drops: [u64; 3]| -> Vec<String> {
            let results: Vec<_> =
                [48, 96, 480].iter().zip(drops).map(|(&key, drops)| at(key, drops)).collect();
            charts(&results).iter().map(|chart| chart.id.clone()).collect()
        };
        assert_eq!(ids([0, 0, 0]), ["time-against-setting"]);
        assert_eq!(ids([0, 3, 9]), ["time-against-setting", "drops-against-setting"]);
    }

    #[test]
    fn words_are_no_axis() {
        let results: Vec<_> = ["a", "b", "c"].map(|policy| result(ResultKind::Sim, 1, policy, 1.0)).into();
        assert!(charts(&results).is_empty());
        assert_eq!(differing(&results).len(), 1);
        assert!(charts(&results[..1]).is_empty() && charts(&[]).is_empty());
    }

    #[test]
    fn quantities_have_numbers() {
        let number = |text| quantity(text).map(|quantity| quantity.number);
        let cases = [("480", 480.0), ("64 kB", 64e3), ("200 ms", 2e11), ("1 Gb/s", 1e9), ("2 packets", 2.0)];
        for (text, expected) in cases {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        assert_eq!(number("fcfs"), None);
    }
}
