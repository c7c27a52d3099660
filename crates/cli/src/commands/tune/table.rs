//! The table, JSON and CSV of `fanin tune`.

use std::fmt::Write;
use std::path::Path;

use fanin_report::{
    FigureUnit, Interval, NAMED_FIGURES, NamedFigure, PageWords, RunResult, SWEEP_PAGE, ScenarioName,
    SweepPoint, interval,
};
use fanin_tune::{Goal, SearchLimits, SearchOutcome, Sense, Target, TriedPoint, TunedKey};
use fanin_units::Bytes;
use serde_json::{Map, Value, json};

use super::trials::{Played, TrialPlace, folder_name};
use crate::columns::aligned;
use crate::failure::Failure;
use crate::summary::rate;

/// The schema of the JSON.
const SCHEMA: &str = "fanin.tune/1";
/// The JSON's file in the folder of the simulations.
const TUNE_FILE: &str = "tune.json";
/// A table of the tried points.
const TUNE_CSV: &str = "tune.csv";
/// Points within this share of the best one are as good for most purposes.
const FLAT: f64 = 0.05;

/// A finished search with its objective and settings.
pub(crate) struct Tuned<'a> {
    pub(crate) place: TrialPlace,
    pub(crate) goal: &'a Goal,
    pub(crate) keys: &'a [TunedKey],
    pub(crate) limits: SearchLimits,
    pub(crate) found: &'a SearchOutcome,
    pub(crate) played: &'a [Played],
}

/// Formats a value with its unit.
pub(crate) fn figure_text(figure: &NamedFigure, value: f64) -> String {
    match figure.unit {
        FigureUnit::Millis => format!("{value:.2} ms"),
        FigureUnit::Bytes => Bytes::new(value.round() as u64).to_string(),
        FigureUnit::BitsPerSecond => rate(value),
        FigureUnit::Count if value.fract() == 0.0 => format!("{value}"),
        FigureUnit::Count => format!("{value:.1}"),
        FigureUnit::Factor => format!("{value:.3}"),
    }
}

/// Returns true if a value is an end of its setting's range.
fn is_end(key: &TunedKey, value: u64) -> bool {
    value == key.axis.low || value == key.axis.high
}

impl Tuned<'_> {
    /// Returns the simulations of a point, with their numbers.
    fn of_point<'a>(&'a self, point: &'a TriedPoint) -> impl Iterator<Item = (usize, &'a Played)> {
        self.played.iter().enumerate().filter(move |(_, played)| played.trial.values == point.values)
    }

    /// Returns the events or requests of a point over all its seeds, and the number of seeds; `None` if a seed has no such
    /// count.
    pub(crate) fn samples(&self, point: &TriedPoint) -> Option<(u64, usize)> {
        let counts = self.of_point(point).map(|(_, played)| played.result.summary.samples());
        let counts: Vec<u64> = counts.collect::<Option<_>>()?;
        (!counts.is_empty()).then(|| (counts.iter().sum(), counts.len()))
    }

    /// Returns a figure's mean of a point over its seeds, with the interval; `None` if a seed lacks the figure.
    pub(crate) fn figure(&self, figure: &NamedFigure, point: &TriedPoint) -> Option<Interval> {
        let values: Option<Vec<f64>> =
            self.of_point(point).map(|(_, played)| figure.of(&played.result.summary)).collect();
        interval(&values?)
    }

    /// Returns the settings of a point as `--set` takes them.
    fn set(&self, point: &TriedPoint) -> Vec<String> {
        self.keys.iter().zip(&point.values).map(|(key, value)| key.set(*value)).collect()
    }

    /// Returns the figures that the table shows: the objective and the constraints' figures, each once.
    fn shown(&self) -> Vec<&'static NamedFigure> {
        let objective = match &self.goal.objective.target {
            Target::Figure(figure) => Some(*figure),
            Target::Key(_) => None,
        };
        let mut shown: Vec<&'static NamedFigure> = objective.into_iter().collect();
        for constraint in &self.goal.constraints {
            if !shown.contains(&constraint.figure) {
                shown.push(constraint.figure);
            }
        }
        shown
    }

    /// Returns a figure of a point as text, with its interval.
    pub(crate) fn cell(&self, figure: &NamedFigure, point: &TriedPoint) -> String {
        let Some(Interval { mean, half }) = self.figure(figure, point) else { return "-".to_owned() };
        let half = half.filter(|half| *half > 0.0).map_or_else(String::new, |half| {
            // The unit stands once.
            let text = figure_text(figure, half);
            format!(" ± {text}")
        });
        figure_text(figure, mean) + &half
    }

    /// Returns the table of all tried points, and the answer in sentences.
    pub(crate) fn text(&self) -> String {
        let figures = self.shown();
        let heads = self.keys.iter().map(|key| key.key.clone()).chain(["seeds".to_owned()]);
        let heads: Vec<String> =
            heads.chain(figures.iter().map(|figure| figure.name.to_owned())).chain(["".to_owned()]).collect();
        let mut points: Vec<&TriedPoint> = self.found.tried.iter().collect();
        points.sort_by(|one, other| one.values.cmp(&other.values));
        let best = self.found.best();
        let rows: Vec<Vec<String>> = points
            .iter()
            .map(|point| {
                let values = self.keys.iter().zip(&point.values).map(|(key, value)| key.kind.text(*value));
                let figures = figures.iter().map(|figure| self.cell(figure, point));
                let verdict = match (point.is_feasible(), Some(*point) == best) {
                    (true, true) => "best",
                    (true, false) => "",
                    (false, true) => "nearest",
                    (false, false) => "not met",
                };
                let cells = values.chain([point.scores.len().to_string()]).chain(figures);
                cells.chain([verdict.to_owned()]).collect()
            })
            .collect();
        let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
        let mut out = String::new();
        for line in aligned(&rows, |_| false) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out.push('\n');
        let _ = writeln!(out, "{}", self.tried());
        if self.found.simulations >= self.limits.simulations {
            out.push_str("note: that is all that --simulations allows; more may find a better value\n");
        }
        if let Some(best) = best.filter(|best| best.is_feasible()) {
            for line in self.described(best) {
                let _ = writeln!(out, "{line}");
            }
        }
        out
    }

    /// Returns the answer in sentences: the question, and the best point with its confidence. Further sentences give the range
    /// of nearly equal values, and note a point at the end of a range.
    fn answer(&self) -> Vec<String> {
        let sense = if self.goal.objective.sense == Sense::Minimise { "smallest" } else { "largest" };
        let over: Vec<String> =
            self.keys.iter().map(|key| format!("{} within {}", key.key, key.range())).collect();
        let question = format!(
            "Objective: the {sense} {}. Constraints: {}. Ranges: {}. {}",
            self.goal.objective.name(),
            self.constraints(),
            over.join(", "),
            self.tried()
        );
        let mut answer = vec![question];
        match self.found.best() {
            Some(best) if best.is_feasible() => {
                answer.extend(self.described(best));
                if !self.keys.iter().zip(&best.values).any(|(key, value)| is_end(key, *value)) {
                    answer.push("the best lies within each range, at no end of one".to_owned());
                }
            }
            Some(best) => answer.push(self.nearest(best)),
            None => answer.push("nothing was tried".to_owned()),
        }
        answer
    }

    /// Returns the numbers of points and trials, and of events or requests in live runs.
    fn tried(&self) -> String {
        let (points, trials) = (self.found.tried.len(), self.found.simulations);
        match self.place {
            TrialPlace::Simulator { .. } => format!("{points} points tried in {trials} simulations"),
            TrialPlace::Live => {
                let samples: u64 =
                    self.played.iter().filter_map(|played| played.result.summary.samples()).sum();
                let unit = if self.played.iter().any(|played| played.result.summary.requests.is_some()) {
                    "requests"
                } else {
                    "events"
                };
                format!("{points} points tried in {trials} live runs of {samples} {unit} in all")
            }
        }
    }

    /// Describes the best point, a line for each statement.
    fn described(&self, best: &TriedPoint) -> Vec<String> {
        let set = self.set(best).join(" ");
        let objective = &self.goal.objective;
        let mut lines = vec![match &objective.target {
            Target::Figure(figure) => {
                let half = self.figure(figure, best).and_then(|interval| interval.half);
                let sure = match half {
                    Some(_) => format!(" (95 % confidence over {} seeds)", best.scores.len()),
                    None => " (one seed; --seeds 3 gives an interval)".to_owned(),
                };
                format!("best: {set} with {} {}{sure}", figure.name, self.cell(figure, best))
            }
            Target::Key(_) => {
                let which = if objective.sense == Sense::Minimise { "smallest" } else { "largest" };
                let constraints = self.constraints();
                let seeds = best.scores.len();
                format!(
                    "best: {set}, the {which} tried that meets {constraints} with {seeds} of {} seeds",
                    self.limits.seeds
                )
            }
        }];
        for (number, key) in self.keys.iter().enumerate() {
            let flat =
                self.found.flat(number, FLAT).filter(|_| matches!(objective.target, Target::Figure(_)));
            if let Some((low, high)) = flat {
                let (low, high) = (key.kind.text(low), key.kind.text(high));
                lines.push(format!("within 5 % of it: {} from {low} to {high}", key.key));
            }
            if is_end(key, best.values[number]) {
                lines.push(format!(
                    "note: {} is at the end of its range {}; a wider one may hold a better value",
                    key.key,
                    key.range()
                ));
            }
        }
        lines
    }

    fn constraints(&self) -> String {
        if self.goal.constraints.is_empty() {
            return "no constraint".to_owned();
        }
        self.goal.constraints.iter().map(|constraint| constraint.text.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the note that no point meets the constraints, with the settings and figures of the nearest point.
    pub(crate) fn nearest(&self, best: &TriedPoint) -> String {
        let ranges: Vec<String> =
            self.keys.iter().map(|key| format!("{} within {}", key.key, key.range())).collect();
        let figures: Vec<String> = self
            .shown()
            .iter()
            .map(|figure| match self.figure(figure, best) {
                Some(_) => format!("{} {}", figure.name, self.cell(figure, best)),
                None => format!("no {}", figure.name),
            })
            .collect();
        let unmet = match (self.goal.constraints.is_empty(), self.goal.objective.name()) {
            (true, objective) => format!("gives {objective}"),
            (false, _) => format!("meets {}", self.constraints()),
        };
        format!(
            "no tried value of {} {unmet}; nearest was {} with {}",
            ranges.join(", "),
            self.set(best).join(" "),
            figures.join(", ")
        )
    }

    /// Returns the search as JSON.
    pub(crate) fn value(&self, scenario: &ScenarioName) -> Value {
        let objective = &self.goal.objective;
        let sense = if objective.sense == Sense::Minimise { "minimise" } else { "maximise" };
        let over: Vec<Value> = self
            .keys
            .iter()
            .map(|key| json!({ "key": key.key, "low": key.kind.text(key.axis.low), "high": key.kind.text(key.axis.high) }))
            .collect();
        let constraints: Vec<&str> =
            self.goal.constraints.iter().map(|constraint| constraint.text.as_str()).collect();
        let points: Vec<Value> = self.found.tried.iter().map(|point| self.point(point)).collect();
        let mut value = json!({
            "schema": SCHEMA,
            "scenario": scenario,
            sense: objective.name(),
            "subject": constraints,
            "over": over,
            "seeds": self.limits.seeds,
            "precision": self.limits.precision,
            "in": match self.place {
                TrialPlace::Simulator { .. } => "sim",
                TrialPlace::Live => "run",
            },
            "simulations": self.found.simulations,
            "stopped": self.found.is_stopped,
            "answer": self.answer(),
        });
        if let Some(best) = self.found.best() {
            let mut about = self.point(best);
            let flat: Map<String, Value> = self
                .keys
                .iter()
                .enumerate()
                .filter_map(|(number, key)| {
                    let (low, high) = self.found.flat(number, FLAT)?;
                    Some((key.key.clone(), json!([key.kind.text(low), key.kind.text(high)])))
                })
                .collect();
            if !flat.is_empty() && matches!(objective.target, Target::Figure(_)) {
                about["within_5_percent"] = Value::Object(flat);
            }
            let place = if best.is_feasible() { "best" } else { "nearest" };
            value[place] = about;
        }
        value["points"] = Value::Array(points);
        value
    }

    /// Returns a tried point as JSON: settings, the means of its figures with intervals, and the folders of its simulations.
    fn point(&self, point: &TriedPoint) -> Value {
        let mut figures = Map::new();
        for figure in NAMED_FIGURES {
            if let Some(Interval { mean, half }) = self.figure(figure, point) {
                let mut about = json!({ "mean": mean });
                if let Some(half) = half {
                    about["low"] = json!(mean - half);
                    about["high"] = json!(mean + half);
                }
                figures.insert(figure.column.to_owned(), about);
            }
        }
        let folders: Vec<String> = self.of_point(point).map(|(number, _)| folder_name(number)).collect();
        json!({
            "set": self.set(point),
            "seeds": point.scores.len(),
            "meets": point.is_feasible(),
            "figures": figures,
            "folders": folders,
        })
    }

    fn csv(&self) -> String {
        let known: Vec<&NamedFigure> = NAMED_FIGURES
            .iter()
            .filter(|figure| self.found.tried.iter().any(|point| self.figure(figure, point).is_some()))
            .collect();
        let keys = self.keys.iter().map(|key| key.key.clone());
        let columns =
            known.iter().flat_map(|figure| [figure.column.to_owned(), format!("{}_half", figure.column)]);
        let head: Vec<String> = keys.chain(["seeds".to_owned(), "meets".to_owned()]).chain(columns).collect();
        let mut text = head.join(",") + "\n";
        for point in &self.found.tried {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let figures = known.iter().flat_map(|figure| {
                let interval = self.figure(figure, point);
                [number(interval.map(|i| i.mean)), number(interval.and_then(|i| i.half))]
            });
            let values = self.keys.iter().zip(&point.values).map(|(key, value)| key.kind.text(*value));
            let counts = [point.scores.len().to_string(), point.is_feasible().to_string()];
            text += &(values.chain(counts).chain(figures).collect::<Vec<_>>().join(",") + "\n");
        }
        text
    }

    /// Writes the search and, as a sweep does, all its simulations with their page.
    pub(crate) fn write(&self, folder: &Path, value: &Value) -> Result<(), Failure> {
        let points: Vec<SweepPoint<'_>> = self
            .played
            .iter()
            .map(|played| SweepPoint { set: &played.set, summary: &played.result.summary })
            .collect();
        let labelled = |played: &Played| {
            let mut result = played.result.clone();
            let seed = result.summary.seed.map(|seed| format!("run.seed={seed}"));
            result.label = played.set.iter().cloned().chain(seed).collect::<Vec<_>>().join(", ");
            result
        };
        let results: Vec<RunResult> = self.played.iter().map(labelled).collect();
        fanin_report::write_sweep(folder, &points, &results)?;
        let (title, answer) = fanin_report::tuned_words(value);
        let words = PageWords { name: Some(&title), answer: &answer, ..PageWords::default() };
        let page = folder.join(SWEEP_PAGE);
        std::fs::write(&page, fanin_report::page_of(&results, &words))
            .map_err(|error| Failure::Write { path: page.clone(), error })?;
        // Values of JSON alone: no figure is missing or infinite.
        let mut text = serde_json::to_string_pretty(value).expect("a search is JSON");
        text.push('\n');
        for (name, text) in [(TUNE_CSV, self.csv()), (TUNE_FILE, text)] {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| Failure::Write { path, error })?;
        }
        Ok(())
    }
}
