//! The lines of `fanin advise`, as text and as JSON.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use clap::ValueEnum;
use fanin_report::{ADVICE_PARTS, ADVICE_SCHEMA, SAMPLES_OF_P99, named_figure};
use fanin_scenario::Loaded;
use fanin_tune::{Constraint, Target, TriedPoint, TunedKey};
use serde_json::{Map, Value, json};

use crate::commands::tune::table::Tuned;
use crate::failure::Failure;

/// The files of the advice in its folder.
const FILES: [&str; 3] = ["advice.txt", "advice.json", fanin_report::SWEEP_PAGE];
/// A range of settings works if the mean is at most this much above the best.
const WORKS: f64 = 0.10;
/// Figures of a line without a search.
const FIGURES: [&str; 5] = ["mean", "p99", "slowdown_p99", "slowdown_bound", "drops"];

/// A part of the advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AdvicePart {
    /// The smallest buffer of each class of ports.
    Buffers,
    /// Ranges of credits, windows and ring rates.
    Ranges,
    /// Figures and needs of each technique.
    Techniques,
    /// Switches of the catalogue.
    Gear,
    /// Buffers with the error of a measured laboratory; needs --measured.
    Laboratory,
}

/// The smallest buffer that a search has found.
#[derive(Clone)]
pub(super) struct SmallestBuffer {
    pub(super) key: TunedKey,
    /// The value meets the constraints.
    pub(super) enough: u64,
    /// The largest smaller value that was tried and does not meet the constraints.
    pub(super) not_enough: Option<u64>,
}

impl AdvicePart {
    /// All parts, in the order of the text.
    pub(super) const ALL: [Self; 5] =
        [Self::Buffers, Self::Laboratory, Self::Ranges, Self::Techniques, Self::Gear];

    fn key(self) -> &'static str {
        match self {
            Self::Buffers => "buffers",
            Self::Ranges => "ranges",
            Self::Techniques => "techniques",
            Self::Gear => "gear",
            Self::Laboratory => "laboratory",
        }
    }

    fn title(self) -> &'static str {
        ADVICE_PARTS.iter().find(|(key, _)| *key == self.key()).map_or("", |(_, title)| title)
    }
}

/// Returns the name of a line's folder.
pub(super) fn folder_name(part: AdvicePart, name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    let name: String = name.to_lowercase().chars().map(plain).collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    format!("{}-{}", part.key(), words.join("-"))
}

/// One line of advice.
pub(super) struct AdviceLine {
    part: AdvicePart,
    name: String,
    /// The answer in words.
    answer: String,
    /// The support that the line's subject needs, or its description.
    about: String,
    /// True if the line meets the constraints; `None` if it could not be simulated.
    is_met: Option<bool>,
    folder: Option<String>,
    search: Value,
    /// The smallest buffer, where the line is a search for it.
    buffer: Option<SmallestBuffer>,
    /// More of the line in JSON.
    more: Map<String, Value>,
}

impl AdviceLine {
    /// Makes the line of a search, or of a single point.
    pub(super) fn new(
        part: AdvicePart,
        name: &str,
        tuned: &Tuned<'_>,
        about: &str,
        folder: Option<String>,
        search: Value,
    ) -> Self {
        let best = tuned.found.best();
        let is_met = best.is_some_and(|best| best.is_feasible());
        let figures = || {
            let texts = FIGURES.iter().filter_map(|name| {
                let (figure, best) = (named_figure(name)?, best?);
                tuned.figure(figure, best)?;
                let words = match *name {
                    "slowdown_p99" => "slowdown at p99",
                    "slowdown_bound" => "mean over the least possible",
                    name => name,
                };
                Some(format!("{words} {}", tuned.cell(figure, best)))
            });
            texts.collect::<Vec<_>>().join(", ")
        };
        let least = |best: &TriedPoint| {
            let failed = tuned.found.tried.iter().filter(|point| !point.is_feasible());
            failed.map(|point| point.values[0]).filter(|less| *less < best.values[0]).max()
        };
        let buffer = match (best, tuned.keys.first()) {
            (Some(best), Some(key)) if is_met && part == AdvicePart::Buffers => {
                Some(SmallestBuffer { key: key.clone(), enough: best.values[0], not_enough: least(best) })
            }
            _ => None,
        };
        let answer = match (best, tuned.keys.first()) {
            (Some(best), Some(_)) if !is_met => tuned.nearest(best),
            (Some(best), Some(key)) if matches!(tuned.goal.objective.target, Target::Key(_)) => {
                let value = best.values[0];
                let less = least(best).map_or_else(
                    || "the least that was tried".to_owned(),
                    |less| format!("{} is not", key.kind.text(less)),
                );
                format!("{} is enough, {less}", key.kind.text(value))
            }
            (Some(best), Some(key)) => {
                let (low, high) = tuned.found.flat(0, WORKS).unwrap_or((best.values[0], best.values[0]));
                let text = |value| key.kind.text(value);
                format!("{} to {}, best {}: {}", text(low), text(high), text(best.values[0]), figures())
            }
            (_, _) if is_met => format!("yes: {}", figures()),
            (_, _) => format!("no: {}", figures()),
        };
        let mut more = Map::new();
        let samples = best.and_then(|best| tuned.samples(best));
        let answer = match samples {
            Some((count, seeds)) => {
                let unseen = (is_met && count < SAMPLES_OF_P99).then(|| unseen_share(count));
                let is_barrier = tuned.played.iter().any(|played| played.result.summary.requests.is_some());
                let word = if is_barrier { "request" } else { "event" };
                let mut value = json!({ format!("{word}s"): count, "seeds": seeds });
                let few = unseen.map_or_else(String::new, |share| {
                    value["unseen_share"] = json!(share);
                    format!(
                        "; too few: what happens in up to {:.0} % of the {word}s may not have been seen, so lengthen \
                         run.duration or take more --seeds",
                        (100.0 * share).ceil()
                    )
                });
                more.insert("samples".to_owned(), value);
                format!("{answer} ({}, {}{few})", counted(count, word), counted(seeds as u64, "seed"))
            }
            None => answer,
        };
        Self {
            part,
            name: name.to_owned(),
            answer,
            about: about.to_owned(),
            is_met: Some(is_met),
            folder,
            search,
            buffer,
            more,
        }
    }
}

/// Returns the largest share of a kind of event that is compatible with none among `count` events, with a confidence of 95 %.
fn unseen_share(count: u64) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / count.max(1) as f64)
}

/// Returns a count with its noun, such as `1 seed` or `3 seeds`.
pub(super) fn counted(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// All lines of the advice.
#[derive(Default)]
pub(super) struct Advice {
    pub(super) lines: Vec<AdviceLine>,
    /// Sentences that say why figures of some simulations say little.
    pub(super) cautions: BTreeSet<String>,
    pub(super) is_stopped: bool,
}

impl Advice {
    /// Adds a line that cannot be simulated.
    pub(super) fn refused(&mut self, part: AdvicePart, name: &str, why: &str, about: &str) {
        self.note(part, name, &format!("not possible: {why}"), about);
    }

    /// Adds a line without simulations.
    pub(super) fn note(&mut self, part: AdvicePart, name: &str, answer: &str, about: &str) {
        self.lines.push(AdviceLine {
            part,
            name: name.to_owned(),
            answer: answer.to_owned(),
            about: about.to_owned(),
            is_met: None,
            folder: None,
            search: Value::Null,
            buffer: None,
            more: Map::new(),
        });
    }

    /// Adds the comparison of a laboratory with its simulation.
    pub(super) fn compared(
        &mut self,
        name: &str,
        answer: &str,
        about: &str,
        folder: Option<String>,
        value: Value,
    ) {
        self.note(AdvicePart::Laboratory, name, answer, about);
        let line = self.lines.last_mut().expect("a line was added");
        line.folder = folder;
        line.more.insert("laboratory".to_owned(), value);
    }

    /// Puts words before the last line's answer.
    pub(super) fn prefix_last(&mut self, words: &str) {
        if let Some(line) = self.lines.last_mut() {
            line.answer.insert_str(0, words);
        }
    }

    /// Adds a key to the last line's JSON.
    pub(super) fn extend_last(&mut self, key: &str, value: Value) {
        if let Some(line) = self.lines.last_mut() {
            line.more.insert(key.to_owned(), value);
        }
    }

    /// Returns the smallest buffers that were found.
    pub(super) fn buffers(&self) -> Vec<SmallestBuffer> {
        self.lines.iter().filter_map(|line| line.buffer.clone()).collect()
    }

    /// Returns the names of the lines of a part that meet the constraints.
    pub(super) fn met(&self, part: AdvicePart) -> impl Iterator<Item = &str> {
        self.lines
            .iter()
            .filter(move |line| line.part == part && line.is_met == Some(true))
            .map(|line| &*line.name)
    }

    /// Returns the advice as text for people.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for part in AdvicePart::ALL {
            let lines: Vec<&AdviceLine> = self.lines.iter().filter(|line| line.part == part).collect();
            let width = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
            if lines.is_empty() {
                continue;
            }
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}", part.title());
            for line in lines {
                let _ = writeln!(out, "  {:<width$}  {}", line.name, line.answer);
                if !line.about.is_empty() {
                    let _ = writeln!(out, "  {:<width$}    {}", "", line.about);
                }
                if let Some(folder) = &line.folder {
                    let _ = writeln!(out, "  {:<width$}    {folder}/{}", "", fanin_report::SWEEP_PAGE);
                }
            }
            out.push('\n');
        }
        out
    }

    /// Returns the advice as JSON.
    pub(super) fn value(&self, loaded: &Loaded, constraints: &[Constraint]) -> Value {
        let subject: Vec<&str> = constraints.iter().map(|constraint| constraint.text.as_str()).collect();
        let mut value = json!({
            "schema": ADVICE_SCHEMA,
            "scenario": { "name": loaded.name, "hash": loaded.hash() },
            "subject": subject,
            "stopped": self.is_stopped,
        });
        if !self.cautions.is_empty() {
            value["cautions"] = json!(self.cautions);
        }
        for part in AdvicePart::ALL {
            let lines = self.lines.iter().filter(|line| line.part == part).map(|line| {
                let mut value = json!({ "name": line.name, "answer": line.answer });
                if !line.about.is_empty() {
                    value["about"] = json!(line.about);
                }
                if let Some(is_met) = line.is_met {
                    value["meets"] = json!(is_met);
                    value["search"] = line.search.clone();
                }
                if let Some(folder) = &line.folder {
                    value["folder"] = json!(folder);
                }
                for (key, more) in &line.more {
                    value[key] = more.clone();
                }
                value
            });
            let lines: Vec<Value> = lines.collect();
            if !lines.is_empty() {
                value[part.key()] = Value::Array(lines);
            }
        }
        value
    }

    /// Writes the advice into the folder of its simulations.
    pub(super) fn write(&self, folder: &Path, value: &Value, text: &str) -> Result<(), Failure> {
        // Values of JSON alone: no figure is missing or infinite.
        let page = fanin_report::advice_page(value).expect("an advice has the keys of its page");
        let json = serde_json::to_string_pretty(value).expect("advice is JSON") + "\n";
        std::fs::create_dir_all(folder).map_err(|error| Failure::Write { path: folder.to_owned(), error })?;
        for (name, text) in FILES.into_iter().zip([text, &json, &page]) {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| Failure::Write { path, error })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_events_leave_a_large_share_unseen() {
        // The rule of three: of 100 events without one, 3 % are not excluded.
        assert!((unseen_share(100) - 0.0295).abs() < 1e-3 && (unseen_share(1) - 0.95).abs() < 1e-12);
        assert!(unseen_share(9) > 0.28);
    }
}
