//! The bands that a simulation predicted for a run, and the run's present figures.

use super::roles::role;
use super::table::{ScreenTable, Tone, bytes, millis, scaled};
use super::watched::Watched;

/// A figure of the whole system: its row, the metric of its band, its value now, and its text.
struct PredictedFigure {
    row: &'static str,
    metric: &'static str,
    now: fn(&[Watched]) -> Option<f64>,
    text: fn(Option<f64>) -> String,
}

const FIGURES: [PredictedFigure; 4] = [
    PredictedFigure {
        row: "collection ms",
        metric: "fanin_predicted_collection_time_seconds",
        now: |all| {
            let collections = rate(all, "collector", "fanin_collection_time_seconds_count");
            let collections = collections.filter(|&rate| rate > 0.0)?;
            Some(rate(all, "collector", "fanin_collection_time_seconds_sum")? / collections)
        },
        text: millis,
    },
    PredictedFigure {
        row: "collections/s",
        metric: "fanin_predicted_collection_rate",
        now: |all| rate(all, "collector", "fanin_collection_time_seconds_count"),
        text: scaled,
    },
    PredictedFigure {
        row: "data/s",
        metric: "fanin_predicted_data_rate_bytes",
        now: |all| rate(all, "collector", "fanin_fragments_bytes_total"),
        text: bytes,
    },
    PredictedFigure {
        row: "timeouts/s",
        metric: "fanin_predicted_timeout_rate",
        now: |all| rate(all, "", "fanin_tcp_timeouts_total"),
        text: scaled,
    },
];

/// Returns a metric's increase a second at all processes of a role; at all processes if `wanted` is empty.
fn rate(all: &[Watched], wanted: &str, name: &str) -> Option<f64> {
    let of_role = all.iter().filter(|one| wanted.is_empty() || role(one) == Some(wanted));
    of_role.filter_map(|one| one.rate(name)).reduce(|sum, rate| sum + rate)
}

/// Returns the bounds of a band, from the first process that serves them.
fn band(all: &[Watched], metric: &str) -> Option<(f64, f64)> {
    let bounds = all.iter().filter_map(Watched::sample).map(|sample| sample.all(metric));
    let bounds = bounds.into_iter().find(|bounds| !bounds.is_empty())?;
    let bound = |name| bounds.iter().find(|series| series.label("bound") == name).map(|series| series.value);
    Some((bound("low")?, bound("high")?))
}

/// Returns the table of the bands; without rows if nothing was predicted.
pub(super) fn table(all: &[Watched]) -> ScreenTable {
    let mut table = ScreenTable::new("PREDICTED", 1, &["figure", "now", "low", "high", ""]);
    for figure in &FIGURES {
        let Some((low, high)) = band(all, figure.metric) else { continue };
        let now = (figure.now)(all);
        let (tone, verdict) = match now {
            Some(now) if now < low => (Tone::Warning, "below"),
            Some(now) if now > high => (Tone::Warning, "above"),
            _ => (Tone::Plain, ""),
        };
        let [now, low, high] = [now, Some(low), Some(high)].map(figure.text);
        table.add(tone, vec![figure.row.to_owned(), now, low, high, verdict.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::series::MetricsSample;
    use super::*;

    fn watched(texts: [&str; 2]) -> Watched {
        let begin = Instant::now();
        let samples = texts.map(|text| MetricsSample::parse(text, begin).unwrap());
        Watched::of_samples(samples, Duration::from_secs(2))
    }

    #[test]
    fn a_figure_outside_its_band_is_named() {
        let supervisor = "fanin_up{process=\"supervisor\",role=\"supervisor\"} 1\n\
             fanin_predicted_collection_time_seconds{bound=\"low\"} 0.001\n\
             fanin_predicted_collection_time_seconds{bound=\"high\"} 0.002\n\
             fanin_predicted_collection_rate{bound=\"low\"} 9\n\
             fanin_predicted_collection_rate{bound=\"high\"} 11\n\
             fanin_predicted_timeout_rate{bound=\"low\"} 0\n\
             fanin_predicted_timeout_rate{bound=\"high\"} 0.2\n";
        let collector = |count, sum: f64, timeouts| {
            format!(
                "fanin_up{{process=\"collector-0\",role=\"collector\"}} 1\n\
                 fanin_collection_time_seconds_count{{}} {count}\n\
                 fanin_collection_time_seconds_sum{{}} {sum}\n\
                 fanin_tcp_timeouts_total{{}} {timeouts}\n"
            )
        };
        let before = collector(100, 1.0, 5);
        let after = collector(120, 1.1, 5);
        let all = [watched([supervisor, supervisor]), watched([&before, &after])];
        let lines: Vec<String> = table(&all).lines().into_iter().map(|line| line.text).collect();
        let line = |row: &str| lines.iter().find(|line| line.starts_with(row)).unwrap().clone();
        assert!(line("collection ms").contains("5.00") && line("collection ms").ends_with("above"));
        assert!(line("collections/s").contains("10") && line("collections/s").ends_with("11"));
        assert!(line("timeouts/s").contains(" 0 "));
        assert!(!lines.iter().any(|line| line.starts_with("data/s")), "no band, no row: {lines:?}");
        assert!(table(&all[1..]).lines().is_empty());
    }
}
