//! Results of the same system with several seeds: means of their figures, with confidence intervals.

use serde_json::{Map, Value, json};

use crate::named::{NAMED_FIGURES, NamedFigure};
use crate::statistics::{Interval, interval};
use crate::{RunResult, Summary};

/// A figure over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeedFigure {
    /// Mean and interval over the seeds that have the figure.
    pub interval: Interval,
    /// Seeds that have the figure.
    pub known: usize,
    /// Number of all seeds.
    pub of: usize,
}

impl SeedFigure {
    /// Makes a figure from the values of each seed, `None` where a seed lacks it. Returns `None` if all seeds lack it.
    pub fn new(values: &[Option<f64>]) -> Option<Self> {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        Some(Self { interval: interval(&known)?, known: known.len(), of: values.len() })
    }

    /// Returns the ends of the interval; `None` for a single value.
    pub fn ends(&self) -> Option<[f64; 2]> {
        let Interval { mean, half } = self.interval;
        half.map(|half| [mean - half, mean + half])
    }

    /// Writes the figure in the form `12.3 ± 0.4`; equal values have no interval. `text` writes a number. Adds the number of
    /// seeds that have the figure if some lack it.
    pub fn text(&self, text: impl Fn(f64) -> String) -> String {
        let Interval { mean, half } = self.interval;
        let half = half.filter(|half| *half > 0.0);
        let half = half.map_or_else(String::new, |half| format!(" ± {}", text(half)));
        let known =
            if self.known < self.of { format!(" ({} of {})", self.known, self.of) } else { String::new() };
        text(mean) + &half + &known
    }

    /// Returns the figure as JSON: its mean, the ends of the interval, and the number of seeds that have it.
    pub fn value(&self) -> Value {
        let mut value = json!({ "mean": self.interval.mean, "seeds": self.known });
        if let Some([low, high]) = self.ends() {
            value["low"] = json!(low);
            value["high"] = json!(high);
        }
        value
    }
}

/// Computes the named figures over the seeds of a system. Figures that all seeds lack are left out.
pub fn seed_figures(summaries: &[&Summary]) -> Vec<(&'static NamedFigure, SeedFigure)> {
    let trees: Vec<Value> =
        summaries.iter().map(|summary| serde_json::to_value(summary).unwrap_or_default()).collect();
    let of_figure = |figure: &'static NamedFigure| {
        let values = summaries.iter().zip(&trees).map(|(summary, tree)| figure.of_tree(summary, tree));
        Some((figure, SeedFigure::new(&values.collect::<Vec<_>>())?))
    };
    NAMED_FIGURES.iter().filter_map(of_figure).collect()
}

/// Computes the named figures over the seeds of a system as JSON, with the column names of a sweep as keys.
pub fn seed_values(summaries: &[&Summary]) -> Value {
    let figures = seed_figures(summaries).into_iter();
    Value::Object(
        figures.map(|(figure, over)| (figure.column.to_owned(), over.value())).collect::<Map<_, _>>(),
    )
}

/// Returns the places of the candidates that may have the least value, in ascending order of their means. These are the
/// candidate with the least mean, and those whose intervals overlap its interval. A candidate without an interval, or with
/// seeds that lack the figure, is left out.
pub fn least(candidates: &[Option<SeedFigure>]) -> Vec<usize> {
    let known = candidates.iter().enumerate().filter_map(|(place, figure)| {
        let figure = figure.filter(|figure| figure.known == figure.of)?;
        Some((place, figure.interval.mean, figure.ends()?))
    });
    let mut known: Vec<(usize, f64, [f64; 2])> = known.collect();
    known.sort_by(|one, other| one.1.total_cmp(&other.1));
    let Some(&(_, _, [_, end])) = known.first() else { return Vec::new() };
    known.into_iter().filter(|(.., [low, _])| *low <= end).map(|(place, ..)| place).collect()
}

/// Results of one system that differ in their seeds.
pub(crate) struct SeedGroup {
    /// Label without the seed. If nothing remains, the scenario's name, or empty if all results are of one system.
    pub(crate) name: String,
    /// Places of the group's results in the list of all.
    pub(crate) places: Vec<usize>,
}

/// Groups results whose labels differ in their seeds alone. Returns no group if no system has several seeds.
pub(crate) fn groups(results: &[RunResult]) -> Vec<SeedGroup> {
    let mut groups: Vec<SeedGroup> = Vec::new();
    for (place, result) in results.iter().enumerate() {
        let name = without_seed(&result.label);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.places.push(place),
            None => groups.push(SeedGroup { name, places: vec![place] }),
        }
    }
    let differ = |group: &SeedGroup| {
        let mut seeds: Vec<Option<u64>> =
            group.places.iter().map(|&place| results[place].summary.seed).collect();
        seeds.sort_unstable();
        seeds.windows(2).all(|pair| pair[0] != pair[1])
    };
    let have_seeds = groups.iter().all(differ) && groups.iter().any(|group| group.places.len() > 1);
    if !have_seeds {
        return Vec::new();
    }
    if groups.len() > 1 {
        for group in groups.iter_mut().filter(|group| group.name.is_empty()) {
            group.name.clone_from(&results[group.places[0]].summary.scenario.name);
        }
    }
    groups
}

/// Returns a label without the part that names the seed.
fn without_seed(label: &str) -> String {
    let is_seed = |part: &str| part.starts_with("run.seed=") || part.to_lowercase().starts_with("seed ");
    let kept = |part| match str::split_once(part, ": ") {
        // The first part may begin with its folder's name.
        Some((folder, rest)) if is_seed(rest) => Some(folder),
        _ => (!is_seed(part)).then_some(part),
    };
    label.split(", ").filter_map(kept).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestCounts, ResultKind, ScenarioName, Times};

    fn summary(seed: u64, completed: u64, mean: f64) -> Summary {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        let time_ms = (completed > 0).then(|| Times { mean, p99: 2.0 * mean, ..Times::default() });
        summary.requests = Some(RequestCounts { completed, time_ms, ..RequestCounts::default() });
        summary.seed = Some(seed);
        summary
    }

    #[test]
    fn seeds_that_lack_a_figure_are_counted() {
        let summaries =
            [summary(1, 200, 1.0), summary(2, 200, 2.0), summary(3, 200, 3.0), summary(4, 0, 0.0)];
        let all: Vec<&Summary> = summaries.iter().collect();
        let values = seed_values(&all);
        let mean = &values["time_ms_mean"];
        assert_eq!((mean["mean"].as_f64(), mean["seeds"].as_u64()), (Some(2.0), Some(3)));
        // Student's t of three values, whose deviation is 1.
        assert!((mean["high"].as_f64().unwrap() - 2.0 - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{mean}");
        assert_eq!(values["requests_completed"]["seeds"], 4);
        let (_, figure) = *seed_figures(&all).iter().find(|(figure, _)| figure.name == "mean").unwrap();
        assert_eq!(figure.text(|number| format!("{number:.1}")), "2.0 ± 2.5 (3 of 4)");
        let one = seed_values(&all[..1]);
        assert_eq!(one["time_ms_mean"], json!({ "mean": 1.0, "seeds": 1 }), "one value has no interval");
        assert!(seed_values(&all[3..]).get("time_ms_mean").is_none());
    }

    #[test]
    fn intervals_that_overlap_the_least_are_as_good() {
        let of = |values: &[f64]| SeedFigure::new(&values.iter().copied().map(Some).collect::<Vec<_>>());
        let low = of(&[10.0, 11.0, 12.0]);
        let near = of(&[12.0, 13.0, 14.0]);
        let far = of(&[30.0, 31.0, 32.0]);
        assert_eq!(least(&[far, near, low, None]), [2, 1]);
        assert_eq!(least(&[far, low]), [1]);
        assert_eq!(least(&[of(&[1.0]), far]), [1], "a single value has no interval");
        let partly = SeedFigure::new(&[Some(1.0), Some(1.1), None]);
        assert_eq!(least(&[partly, far]), [1], "a seed without the figure may be the worst of all");
        assert!(least(&[None, of(&[1.0])]).is_empty());
    }

    #[test]
    fn labels_that_differ_in_the_seed_make_a_group() {
        let labelled = |label: &str, seed: u64| RunResult {
            label: label.into(),
            ..RunResult::new(summary(seed, 100, 1.0))
        };
        let names = |results: &[RunResult]| -> Vec<(String, usize)> {
            groups(results).into_iter().map(|group| (group.name, group.places.len())).collect()
        };
        let seeds = [labelled("run.seed=1", 1), labelled("run.seed=2", 2)];
        assert_eq!(names(&seeds), [(String::new(), 2)]);
        assert!(names(&seeds[..1]).is_empty());
        let techniques =
            [labelled("none, run.seed=1", 1), labelled("none, run.seed=2", 2), labelled("a.b=1, Seed 3", 3)];
        assert_eq!(names(&techniques), [("none".to_owned(), 2), ("a.b=1".to_owned(), 1)]);
        // Folders that were joined, and a folder of seeds alone next to another result.
        let joined =
            [labelled("a: run.seed=1", 1), labelled("a: run.seed=2", 2), labelled("b: run.seed=1", 1)];
        assert_eq!(names(&joined), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        let mut mixed = [labelled("run.seed=1", 1), labelled("run.seed=2", 2), labelled("other", 1)];
        mixed[0].summary.scenario.name = "incast".to_owned();
        assert_eq!(names(&mixed), [("incast".to_owned(), 2), ("other".to_owned(), 1)]);
        // Results of one name that share a seed are something else.
        assert!(names(&[labelled("one", 1), labelled("one", 1)]).is_empty());
    }
}
