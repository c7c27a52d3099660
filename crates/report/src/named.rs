//! The summary's figures by name, for a sweep's columns, objectives and constraints.

use serde_json::Value;

use crate::Summary;

/// The unit of a named figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// A time in milliseconds.
    Millis,
    /// An amount of bytes.
    Bytes,
    /// Bits a second.
    BitsPerSecond,
    /// A number of something.
    Count,
    /// A ratio of two figures.
    Factor,
}

/// A figure of the summary with a name.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedFigure {
    /// The short name, such as `p99`.
    pub name: &'static str,
    /// The name of its column in a sweep.
    pub column: &'static str,
    /// The unit of its values.
    pub unit: FigureUnit,
    /// JSON pointers into the summary; the first one that exists counts.
    places: &'static [&'static str],
    /// True for a 99th percentile, which needs at least a hundred samples.
    is_p99: bool,
}

/// Builds a row of [`NAMED_FIGURES`].
const fn figure(
    name: &'static str,
    column: &'static str,
    unit: FigureUnit,
    places: &'static [&'static str],
) -> NamedFigure {
    NamedFigure { name, column, unit, places, is_p99: false }
}

/// Builds a row of a 99th percentile.
const fn p99(
    name: &'static str,
    column: &'static str,
    unit: FigureUnit,
    places: &'static [&'static str],
) -> NamedFigure {
    NamedFigure { is_p99: true, ..figure(name, column, unit, places) }
}

use FigureUnit::{BitsPerSecond, Bytes, Count, Factor, Millis};

/// All named figures, in the order of a sweep's columns.
pub const NAMED_FIGURES: &[NamedFigure] = &[
    figure("collected", "events_collected", Count, &["/events/collected"]),
    figure("completed", "requests_completed", Count, &["/requests/completed"]),
    figure("ideal", "time_ms_ideal", Millis, &["/collection_time_ms/ideal", "/requests/time_ms/ideal"]),
    figure("mean", "time_ms_mean", Millis, &["/collection_time_ms/mean", "/requests/time_ms/mean"]),
    figure("p50", "time_ms_p50", Millis, &["/collection_time_ms/p50", "/requests/time_ms/p50"]),
    p99("p99", "time_ms_p99", Millis, &["/collection_time_ms/p99", "/requests/time_ms/p99"]),
    figure("max", "time_ms_max", Millis, &["/collection_time_ms/max", "/requests/time_ms/max"]),
    figure("slowdown", "slowdown_mean", Factor, &["/slowdown/mean"]),
    p99("slowdown_p99", "slowdown_p99", Factor, &["/slowdown/p99"]),
    figure("slowdown_bound", "slowdown_bound_mean", Factor, &["/slowdown_bound/mean"]),
    p99("slowdown_bound_p99", "slowdown_bound_p99", Factor, &["/slowdown_bound/p99"]),
    figure("goodput", "goodput_bps", BitsPerSecond, &["/goodput_bps/total"]),
    figure("drops", "drops", Count, &["/network/drops"]),
    figure("queue", "queue_bytes_max", Bytes, &["/network/queue_bytes_max"]),
    figure("timeouts", "timeouts", Count, &["/tcp/timeouts"]),
];

/// Returns the figure with this short name or column of a sweep.
pub fn named_figure(name: &str) -> Option<&'static NamedFigure> {
    NAMED_FIGURES.iter().find(|figure| figure.name == name || figure.column == name)
}

impl NamedFigure {
    /// Returns the figure of a result; `None` if the result has no such figure.
    pub fn of(&self, summary: &Summary) -> Option<f64> {
        self.of_tree(summary, &serde_json::to_value(summary).ok()?)
    }

    /// Applies [`NamedFigure::of`] to a summary in the form of a tree.
    pub(crate) fn of_tree(&self, summary: &Summary, tree: &Value) -> Option<f64> {
        let value = self.places.iter().find_map(|place| tree.pointer(place)?.as_f64());
        value.filter(|_| !self.is_p99 || summary.has_p99())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestCounts, ResultKind, ScenarioName, Times};

    #[test]
    fn names_are_unique_and_find_their_figure() {
        for figure in NAMED_FIGURES {
            assert_eq!(named_figure(figure.name), Some(figure));
            assert_eq!(named_figure(figure.column), Some(figure));
        }
        assert_eq!(named_figure("speed"), None);
    }

    #[test]
    fn a_p99_needs_a_hundred_samples() {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        let p99 = named_figure("p99").unwrap();
        assert_eq!(p99.of(&summary), None);
        for (completed, expected) in [(99, None), (100, Some(2.5))] {
            let time_ms = Some(Times { p99: 2.5, ..Times::default() });
            summary.requests = Some(RequestCounts { completed, time_ms, ..RequestCounts::default() });
            assert_eq!(p99.of(&summary), expected, "{completed} samples");
        }
    }
}
