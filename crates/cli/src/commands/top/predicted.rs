//! The bands that a simulation predicted for a run, and the run's present figures.

use std::collections::BTreeMap;

use fanin_node::config::{LiveFigure, PREDICTED_FIGURES, PredictedUnit, histogram_quantile};

use super::table::{ScreenTable, Tone, bytes, millis, scaled};
use super::watched::Watched;

/// Returns a figure of the whole system now; `None` before two answers, or where nothing was measured.
fn now(all: &[Watched], figure: LiveFigure) -> Option<f64> {
    match figure {
        LiveFigure::Rate(counter, labels) => rate(all, counter, labels),
        LiveFigure::Mean(histogram) => {
            let count = rate(all, &format!("{histogram}_count"), &[]).filter(|&rate| rate > 0.0)?;
            Some(rate(all, &format!("{histogram}_sum"), &[])? / count)
        }
        LiveFigure::Level(gauge) => level(all, gauge),
        LiveFigure::Quantile(histogram, quantile) => {
            histogram_quantile(&buckets(all, &format!("{histogram}_bucket")), quantile)
        }
    }
}

/// Returns the increase a second of a counter with these labels at all processes.
fn rate(all: &[Watched], counter: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let of_one = |one: &Watched| {
        let series = one.sample()?.all(counter).iter();
        let wanted = series.filter(|series| labels.iter().all(|(key, value)| series.label(key) == *value));
        let rates = wanted.filter_map(|series| one.rate_of(counter, series));
        rates.reduce(|sum, rate| sum + rate)
    };
    all.iter().filter_map(of_one).reduce(|sum, rate| sum + rate)
}

/// Returns the sum of a gauge over all processes.
fn level(all: &[Watched], gauge: &str) -> Option<f64> {
    let levels = all.iter().filter_map(Watched::sample).flat_map(|sample| sample.all(gauge));
    levels.map(|series| series.value).reduce(|sum, value| sum + value)
}

/// Returns the buckets of a histogram over all processes: upper limits in order, each with its increase a second.
fn buckets(all: &[Watched], name: &str) -> Vec<(f64, f64)> {
    // Positive numbers are in the order of their bits.
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for one in all {
        for series in one.sample().map_or(&[][..], |sample| sample.all(name)) {
            let Ok(limit) = series.label("le").replace("+Inf", "inf").parse::<f64>() else { continue };
            if let Some(rate) = one.rate_of(name, series) {
                *sums.entry(limit.to_bits()).or_default() += rate;
            }
        }
    }
    sums.into_iter().map(|(limit, rate)| (f64::from_bits(limit), rate)).collect()
}

/// Returns the text of a figure.
fn text(unit: PredictedUnit, value: Option<f64>) -> String {
    match unit {
        PredictedUnit::Seconds => millis(value),
        PredictedUnit::BytesPerSecond => bytes(value),
        PredictedUnit::PerSecond | PredictedUnit::Count => scaled(value),
    }
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
    for figure in PREDICTED_FIGURES {
        let Some((low, high)) = band(all, &figure.series()) else { continue };
        let now = now(all, figure.live);
        let (tone, verdict) = match now {
            Some(now) if now < low => (Tone::Warning, "below"),
            Some(now) if now > high => (Tone::Warning, "above"),
            _ => (Tone::Plain, ""),
        };
        let [now, low, high] = [now, Some(low), Some(high)].map(|value| text(figure.unit, value));
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
             fanin_predicted_collection_time_median_seconds{bound=\"low\"} 0.003\n\
             fanin_predicted_collection_time_median_seconds{bound=\"high\"} 0.004\n\
             fanin_predicted_rejection_rate{bound=\"low\"} 7\n\
             fanin_predicted_rejection_rate{bound=\"high\"} 8\n\
             fanin_predicted_credits_used{bound=\"low\"} 20\n\
             fanin_predicted_credits_used{bound=\"high\"} 60\n\
             fanin_predicted_units_free{bound=\"low\"} 5\n\
             fanin_predicted_units_free{bound=\"high\"} 7\n\
             fanin_units_free{process=\"supervisor\"} 4\n\
             fanin_predicted_timeout_rate{bound=\"low\"} 0\n\
             fanin_predicted_timeout_rate{bound=\"high\"} 0.2\n";
        let collector = |count, sum: f64, timeouts| {
            format!(
                "fanin_up{{process=\"collector-0\",role=\"collector\"}} 1\n\
                 fanin_collection_time_seconds_count{{}} {count}\n\
                 fanin_collection_time_seconds_sum{{}} {sum}\n\
                 fanin_collection_time_seconds_bucket{{le=\"0.0032\"}} {count}\n\
                 fanin_collection_time_seconds_bucket{{le=\"0.0016\"}} 100\n\
                 fanin_collection_time_seconds_bucket{{le=\"+Inf\"}} {count}\n\
                 fanin_events_completed_total{{outcome=\"rejected\"}} {count}\n\
                 fanin_events_completed_total{{outcome=\"stored\"}} {count}\n\
                 fanin_credits_used{{}} 40\n\
                 fanin_tcp_timeouts_total{{}} {timeouts}\n"
            )
        };
        let before = collector(100, 1.0, 5);
        let after = collector(120, 1.1, 5);
        let idle = "fanin_up{process=\"collector-1\",role=\"collector\"} 1\nfanin_credits_used{} 30\n";
        let all = [watched([supervisor, supervisor]), watched([&before, &after]), watched([idle, idle])];
        let lines: Vec<String> = table(&all).lines().into_iter().map(|line| line.text).collect();
        let line = |row: &str| lines.iter().find(|line| line.starts_with(row)).unwrap().clone();
        assert!(line("collection ms").contains("5.00") && line("collection ms").ends_with("above"));
        assert!(line("collections/s").contains("10") && line("collections/s").ends_with("11"));
        // All times of the last seconds lie between 1.6 and 3.2 ms.
        assert!(line("median ms").contains(" 2.40 ") && line("median ms").ends_with("below"), "{lines:?}");
        assert!(line("rejected/s").contains(" 10 ") && line("rejected/s").ends_with("above"), "{lines:?}");
        // The credits of both collectors.
        assert!(
            line("credits used").contains(" 70 ") && line("credits used").ends_with("above"),
            "{lines:?}"
        );
        assert!(line("free units").contains(" 4 ") && line("free units").ends_with("below"), "{lines:?}");
        assert!(line("timeouts/s").contains(" 0 "));
        assert!(!lines.iter().any(|line| line.starts_with("data/s")), "no band, no row: {lines:?}");
        assert!(table(&all[1..]).lines().is_empty());
    }
}
