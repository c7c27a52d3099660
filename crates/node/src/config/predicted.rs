//! Bands predicted for a system's metrics, and the one table of their figures.
//!
//! The supervisor's metrics, `fanin top`, and tests of the dashboard and the alerts read this table.

use serde::{Deserialize, Serialize};

/// Upper limits of the buckets of `fanin_collection_time_seconds`, in seconds: the first, their ratio, and their number.
pub const COLLECTION_BUCKETS: (f64, f64, u16) = (0.0001, 2.0, 19);

/// Range of the expected values of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedBand {
    /// Smallest expected value, in the unit of the figure.
    pub low: f64,
    /// Largest expected value, in the unit of the figure.
    pub high: f64,
}

impl PredictedBand {
    /// Returns true if both limits are finite, not negative, and in order.
    pub fn is_sound(self) -> bool {
        self.low >= 0.0 && self.high >= self.low && self.high.is_finite()
    }
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredictedUnit {
    /// A time in seconds.
    Seconds,
    /// A number of bytes a second.
    BytesPerSecond,
    /// A count a second.
    PerSecond,
    /// A number of things at one moment.
    Count,
}

impl PredictedUnit {
    /// Returns the end of the metric's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Seconds => "_seconds",
            Self::BytesPerSecond => "_bytes",
            Self::PerSecond | Self::Count => "",
        }
    }
}

/// The value of a figure in a running system, from its metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LiveFigure {
    /// Increase a second of a counter with these labels, summed over all processes.
    Rate(&'static str, &'static [(&'static str, &'static str)]),
    /// Mean of the histogram with this name.
    Mean(&'static str),
    /// Present value of a gauge, summed over all processes.
    Level(&'static str),
    /// A quantile of the histogram with this name, over all processes.
    Quantile(&'static str, f64),
}

impl LiveFigure {
    /// Returns the query of the figure over `range`, in PromQL. A level needs no range.
    pub fn query(self, range: &str) -> String {
        match self {
            Self::Rate(counter, []) => format!("sum(rate({counter}[{range}]))"),
            Self::Rate(counter, labels) => {
                let labels: Vec<String> =
                    labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
                format!("sum(rate({counter}{{{}}}[{range}]))", labels.join(", "))
            }
            Self::Level(gauge) => format!("sum({gauge})"),
            Self::Mean(histogram) => {
                format!("sum(rate({histogram}_sum[{range}])) / sum(rate({histogram}_count[{range}]))")
            }
            Self::Quantile(histogram, quantile) => {
                format!("histogram_quantile({quantile}, sum by (le) (rate({histogram}_bucket[{range}])))")
            }
        }
    }
}

/// A figure that a simulation predicts.
#[derive(Debug, Clone, Copy)]
pub struct PredictedFigure {
    /// Key in `[metrics.predicted]`; the metric is `fanin_predicted_KEY`, with the unit.
    pub key: &'static str,
    /// Unit of the figure and its band.
    pub unit: PredictedUnit,
    /// Help text of its metric.
    pub help: &'static str,
    /// Name of its row in `fanin top`.
    pub row: &'static str,
    /// Title of its panel in the dashboard.
    pub panel: &'static str,
    /// Value of the figure in a running system.
    pub live: LiveFigure,
    /// Returns its band.
    pub band: fn(&PredictedBands) -> Option<PredictedBand>,
}

impl PredictedFigure {
    /// Returns the name of the series with its band.
    pub fn series(&self) -> String {
        format!("fanin_predicted_{}{}", self.key, self.unit.suffix())
    }

    /// Returns the query of a limit of its band, `low` or `high`, in PromQL.
    pub fn limit(&self, bound: &str) -> String {
        format!("max({}{{bound=\"{bound}\"}})", self.series())
    }
}

/// Makes the type of the bands, and the table.
macro_rules! figures {
    ($($(#[$about:meta])* $key:ident, $unit:ident, $help:literal, $row:literal, $panel:literal, $live:expr;)*) => {
        /// Predicted figures of a whole system over some seconds (`[metrics.predicted]`). The supervisor serves them as
        /// metrics. A figure without a prediction is `None`.
        #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct PredictedBands {
            $($(#[$about])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<PredictedBand>,)*
        }

        /// All figures that a simulation can predict.
        pub const PREDICTED_FIGURES: &[PredictedFigure] = &[$(PredictedFigure {
            key: stringify!($key),
            unit: PredictedUnit::$unit,
            help: $help,
            row: $row,
            panel: $panel,
            live: $live,
            band: |bands| bands.$key,
        }),*];
    };
}

const TIME: &str = "fanin_collection_time_seconds";

figures! {
    /// Mean collection time, in seconds.
    collection_time, Seconds, "Predicted mean time of a collection", "collection ms", "Collection time",
        LiveFigure::Mean(TIME);
    /// Median of the collection time, in seconds, as the histogram's buckets give it.
    collection_time_median, Seconds, "Predicted median time of a collection", "median ms", "Collection time, median",
        LiveFigure::Quantile(TIME, 0.5);
    /// 99 % quantile of the collection time, in seconds, as the histogram's buckets give it.
    collection_time_p99, Seconds, "Predicted 99 % quantile of the time of a collection", "99 % ms", "Collection time, 99 %",
        LiveFigure::Quantile(TIME, 0.99);
    /// 99.9 % quantile of the collection time, in seconds, as the histogram's buckets give it.
    collection_time_p999, Seconds, "Predicted 99.9 % quantile of the time of a collection", "99.9 % ms", "Collection time, 99.9 %",
        LiveFigure::Quantile(TIME, 0.999);
    /// Collections a second.
    collection_rate, PerSecond, "Predicted collections a second", "collections/s", "Collections",
        LiveFigure::Rate("fanin_collection_time_seconds_count", &[]);
    /// Fragment bytes that all collectors receive a second.
    data_rate, BytesPerSecond, "Predicted bytes of fragments received a second", "data/s", "Data collected",
        LiveFigure::Rate("fanin_fragments_bytes_total", &[("role", "collector")]);
    /// Events assigned a second.
    assignment_rate, PerSecond, "Predicted events assigned a second", "assigned/s", "Events assigned",
        LiveFigure::Rate("fanin_events_assigned_total", &[]);
    /// Events rejected a second.
    rejection_rate, PerSecond, "Predicted events rejected a second", "rejected/s", "Events rejected",
        LiveFigure::Rate("fanin_events_completed_total", &[("outcome", "rejected")]);
    /// Events stored a second.
    storage_rate, PerSecond, "Predicted events stored a second", "stored/s", "Events stored",
        LiveFigure::Rate("fanin_events_completed_total", &[("outcome", "stored")]);
    /// Retransmission timeouts (RTO) of TCP a second.
    timeout_rate, PerSecond, "Predicted timeouts of TCP a second", "timeouts/s", "TCP timeouts",
        LiveFigure::Rate("fanin_tcp_timeouts_total", &[]);
    /// Segments that TCP sends again a second.
    retransmission_rate, PerSecond, "Predicted segments that TCP sends again a second", "sent again/s", "TCP segments sent again",
        LiveFigure::Rate("fanin_tcp_retransmits_total", &[]);
    /// Events that are assigned and not finished, at any moment.
    events_outstanding, Count, "Predicted events that are assigned and not finished", "outstanding", "Events in the system",
        LiveFigure::Level("fanin_events_outstanding");
    /// Processing units that wait for an event, at any moment.
    units_free, Count, "Predicted processing units that wait for an event", "free units", "Free units",
        LiveFigure::Level("fanin_units_free");
    /// Credits that requests of all collectors hold, at any moment.
    credits_used, Count, "Predicted credits that are out, of all collectors", "credits used", "Credits in use, all collectors",
        LiveFigure::Level("fanin_credits_used");
    /// Requests of all collectors that wait for credits, at any moment.
    requests_waiting, Count, "Predicted requests that wait for credits, of all collectors", "requests waiting", "Requests waiting, all collectors",
        LiveFigure::Level("fanin_requests_waiting");
}

impl PredictedBands {
    /// Returns the bands that are predicted, with their keys.
    pub fn known(&self) -> impl Iterator<Item = (&'static str, PredictedBand)> {
        PREDICTED_FIGURES.iter().filter_map(|figure| Some((figure.key, (figure.band)(self)?)))
    }

    /// Returns the bands as lines for the section `[metrics]` of a system's file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (key, PredictedBand { low, high }) in self.known() {
            text += &format!("predicted.{key} = {{ low = {low:?}, high = {high:?} }}\n");
        }
        text
    }
}

/// Returns a quantile as PromQL's `histogram_quantile` does, linear within a bucket. `buckets` has upper limits in order, the
/// last one infinite, each with the count up to it. Returns `None` without a value.
pub fn histogram_quantile(buckets: &[(f64, f64)], quantile: f64) -> Option<f64> {
    let total = buckets.last().map(|&(_, count)| count).filter(|&count| count > 0.0)?;
    let rank = quantile * total;
    let place = buckets.iter().position(|&(_, count)| count >= rank)?;
    let (begin, before) = if place == 0 { (0.0, 0.0) } else { buckets[place - 1] };
    let (end, count) = buckets[place];
    if !end.is_finite() {
        return Some(begin);
    }
    let share = if count > before { (rank - before) / (count - before) } else { 0.0 };
    Some(begin + (end - begin) * share)
}

/// Returns a quantile of collection times in seconds as `histogram_quantile` finds it in the metric's buckets.
pub fn collection_quantile(times: impl IntoIterator<Item = f64>, quantile: f64) -> Option<f64> {
    let (first, ratio, count) = COLLECTION_BUCKETS;
    let limits = (0..count).map(|number| first * ratio.powi(i32::from(number))).chain([f64::INFINITY]);
    let mut buckets: Vec<(f64, f64)> = limits.map(|limit| (limit, 0.0)).collect();
    for time in times {
        let place = buckets.partition_point(|&(limit, _)| limit < time);
        buckets[place].1 += 1.0;
    }
    for place in 1..buckets.len() {
        buckets[place].1 += buckets[place - 1].1;
    }
    histogram_quantile(&buckets, quantile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_promql() {
        let buckets = [(1.0, 2.0), (2.0, 2.0), (4.0, 10.0), (f64::INFINITY, 11.0)];
        assert_eq!(histogram_quantile(&buckets, 0.1), Some(0.55));
        assert_eq!(histogram_quantile(&buckets, 0.5), Some(2.875));
        // Beyond the last finite limit PromQL returns that limit.
        assert_eq!(histogram_quantile(&buckets, 0.99), Some(4.0));
        assert_eq!(histogram_quantile(&[(1.0, 0.0), (f64::INFINITY, 0.0)], 0.5), None);
        assert_eq!(histogram_quantile(&[], 0.5), None);
        // All times are 0.3 ms: the bucket from 0.2 to 0.4 ms has them.
        let median = collection_quantile([0.0003; 10], 0.5).unwrap();
        assert!((median - 0.0003).abs() < 1e-12, "{median}");
        let tail = collection_quantile([0.0003; 10], 0.99).unwrap();
        assert!((tail - 0.000_398).abs() < 1e-12, "{tail}");
        assert_eq!(collection_quantile([], 0.5), None);
    }

    #[test]
    fn each_key_reads_its_own_band() {
        for figure in PREDICTED_FIGURES {
            let text = format!("{} = {{ low = 1.0, high = 2.0 }}", figure.key);
            let bands: PredictedBands = toml::from_str(&text).unwrap();
            assert_eq!((figure.band)(&bands), Some(PredictedBand { low: 1.0, high: 2.0 }), "{text}");
            assert_eq!(bands.known().map(|(key, _)| key).collect::<Vec<_>>(), [figure.key]);
        }
    }
}
