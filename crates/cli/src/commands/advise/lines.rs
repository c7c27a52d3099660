//! The lines of `fanin advise`, as text and as JSON.

use std::fmt::Write;
use std::path::Path;

use clap::ValueEnum;
use fanin_report::named_figure;
use fanin_scenario::Loaded;
use fanin_tune::{Constraint, Target};
use serde_json::{Value, json};

use crate::commands::tune::table::Tuned;
use crate::failure::Failure;

/// The schema of the JSON.
const SCHEMA: &str = "fanin.advice/1";
/// The files of the advice in its folder.
const FILES: [&str; 2] = ["advice.txt", "advice.json"];
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
}

impl AdvicePart {
    /// All parts, in the order of the text.
    pub(super) const ALL: [Self; 4] = [Self::Buffers, Self::Ranges, Self::Techniques, Self::Gear];

    fn key(self) -> &'static str {
        match self {
            Self::Buffers => "buffers",
            Self::Ranges => "ranges",
            Self::Techniques => "techniques",
            Self::Gear => "gear",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Buffers => "Smallest buffers (each with all other buffers large)",
            Self::Ranges => "Ranges that work (mean within 10 % of the best)",
            Self::Techniques => "Techniques (settings of `fanin compare --list`)",
            Self::Gear => "Switches of the catalogue at the collectors",
        }
    }
}

/// The folder of a line.
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
    /// Support that it needs, or what it is.
    about: String,
    /// True if it meets the constraints; absent where it could not be simulated.
    is_met: Option<bool>,
    folder: Option<String>,
    search: Value,
}

impl AdviceLine {
    /// The line of a search, or of a single point.
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
                Some(format!("{name} {}", tuned.cell(figure, best)))
            });
            texts.collect::<Vec<_>>().join(", ")
        };
        let answer = match (best, tuned.keys.first()) {
            (Some(best), Some(_)) if !is_met => tuned.nearest(best),
            (Some(best), Some(key)) if matches!(tuned.goal.objective.target, Target::Key(_)) => {
                let value = best.values[0];
                let failed = tuned.found.tried.iter().filter(|point| !point.is_feasible());
                let less = failed.map(|point| point.values[0]).filter(|less| *less < value).max();
                let less = less.map_or_else(
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
        Self {
            part,
            name: name.to_owned(),
            answer,
            about: about.to_owned(),
            is_met: Some(is_met),
            folder,
            search,
        }
    }
}

/// All lines of the advice.
#[derive(Default)]
pub(super) struct Advice {
    pub(super) lines: Vec<AdviceLine>,
    pub(super) is_stopped: bool,
}

impl Advice {
    /// Adds a line that cannot be simulated.
    pub(super) fn refused(&mut self, part: AdvicePart, name: &str, why: &str, about: &str) {
        let answer = format!("not possible: {why}");
        let (name, about) = (name.to_owned(), about.to_owned());
        self.lines.push(AdviceLine {
            part,
            name,
            answer,
            about,
            is_met: None,
            folder: None,
            search: Value::Null,
        });
    }

    /// The advice for a person.
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

    /// The advice as JSON.
    pub(super) fn value(&self, loaded: &Loaded, constraints: &[Constraint]) -> Value {
        let subject: Vec<&str> = constraints.iter().map(|constraint| constraint.text.as_str()).collect();
        let mut value = json!({
            "schema": SCHEMA,
            "scenario": { "name": loaded.name, "hash": loaded.hash() },
            "subject": subject,
            "stopped": self.is_stopped,
        });
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
        let json = serde_json::to_string_pretty(value).expect("advice is JSON") + "\n";
        std::fs::create_dir_all(folder).map_err(|error| Failure::Write { path: folder.to_owned(), error })?;
        for (name, text) in FILES.into_iter().zip([text, &json]) {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| Failure::Write { path, error })?;
        }
        Ok(())
    }
}
