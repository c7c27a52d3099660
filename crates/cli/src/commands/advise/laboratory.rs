//! A laboratory's measurement against its simulation: the error, carried to the buffers of the full system.

use std::path::Path;

use fanin_report::{NamedFigure, ResultKind, SCENARIO_FILE, named_figure};
use fanin_tune::{Goal, Objective, SearchLimits, Sense};
use serde_json::{Value, json};

use super::lines::{self, AdvicePart, SmallestBuffer};
use super::{Adviser, PRECISION};
use crate::commands::source::Source;
use crate::commands::tune::table::{Tuned, figure_text};
use crate::commands::tune::trials::{TrialPlace, Trials};
use crate::failure::Failure;

/// Compared figures: first the depth of the deepest queue, which scales the buffers.
const COMPARED: [&str; 3] = ["queue", "mean", "p99"];
/// Seeds of the laboratory's simulation, at least.
const SEEDS_MIN: u32 = 3;

/// The range of the ratio of measured to simulated values, over all laboratories and seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LaboratoryError {
    least: f64,
    most: f64,
}

impl LaboratoryError {
    /// Returns the least and the largest ratio of a measured value to simulated values; `None` if no simulated value is
    /// positive.
    fn of(measured: f64, simulated: &[f64]) -> Option<Self> {
        let ratios = simulated.iter().filter(|&&value| value > 0.0).map(|value| measured / value);
        ratios.fold(None, |range: Option<Self>, ratio| {
            Some(range.map_or(Self { least: ratio, most: ratio }, |range| Self {
                least: range.least.min(ratio),
                most: range.most.max(ratio),
            }))
        })
    }

    fn join(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Returns the range of the needed buffer in bytes: the bounds of the search, widened by the error.
    fn carry(self, buffer: &SmallestBuffer) -> [u64; 2] {
        let low = buffer.not_enough.unwrap_or(0) as f64 * self.least.min(1.0);
        let high = buffer.enough as f64 * self.most.max(1.0);
        // The range is known to three digits at most.
        let step = |bytes: f64| 10_f64.powi((bytes.max(1.0).log10().floor() as i32 - 2).max(0));
        [((low / step(low)).floor() * step(low)) as u64, ((high / step(high)).ceil() * step(high)) as u64]
    }

    /// Returns the range in words, or one value if the bounds are equal in words.
    fn words(self, text: impl Fn(f64) -> String) -> String {
        let [least, most] = [self.least, self.most].map(text);
        if least == most { least } else { format!("{least} to {most}") }
    }
}

/// One figure of a laboratory, measured and simulated.
struct LabFigure {
    figure: &'static NamedFigure,
    measured: f64,
    simulated: Vec<f64>,
    error: Option<LaboratoryError>,
}

/// The error of the laboratories, carried to the full system.
pub(super) struct CarriedError {
    error: LaboratoryError,
    /// The largest number of sources that was measured.
    sources: u32,
}

impl Adviser<'_> {
    /// Simulates each laboratory as it was measured. Returns the range of measured over simulated queue depths.
    pub(super) fn laboratories(&mut self) -> Result<Option<CarriedError>, Failure> {
        let mut carried: Option<CarriedError> = None;
        for folder in &self.arguments.measured {
            if self.advice.is_stopped {
                break;
            }
            if let Some(CarriedError { error, sources }) = self.laboratory(folder)? {
                carried = Some(carried.map_or(CarriedError { error, sources }, |known| CarriedError {
                    error: known.error.join(error),
                    sources: known.sources.max(sources),
                }));
            }
        }
        Ok(carried)
    }

    fn laboratory(&mut self, folder: &Path) -> Result<Option<CarriedError>, Failure> {
        let measured = fanin_report::read_head(folder)?;
        let path = folder.join(SCENARIO_FILE);
        if measured.summary.kind == ResultKind::Plan || !path.is_file() {
            return Err(Failure::NoLaboratory { folder: folder.to_owned() });
        }
        let source = Source { source: path.display().to_string(), sets: Vec::new() };
        let sources = fanin_scenario::load(&source.source, &source.sets)?.scenario.senders();
        let full = self.loaded.scenario.senders();
        let goal = Goal::new(Objective::new(Sense::Minimise, "mean")?, Vec::new())?;
        let name = lines::folder_name(AdvicePart::Laboratory, &measured.label);
        let out = self.arguments.out.as_ref().map(|out| out.join(&name));
        let place = TrialPlace::simulator(self.arguments.threads);
        let mut trials = Trials::new(&source, &[], &goal, place, out.as_deref(), self.arguments.quiet)?;
        let seeds = self.arguments.seeds.max(SEEDS_MIN);
        let limits = SearchLimits { seeds, simulations: seeds as usize, precision: PRECISION };
        let found = trials.search(limits);
        if let Some(failure) = trials.failure() {
            return Err(failure);
        }
        self.advice.is_stopped |= found.is_stopped;
        if found.is_stopped {
            return Ok(None);
        }
        let tuned = Tuned { place, goal: &goal, keys: &[], limits, found: &found, played: trials.played() };
        let search = tuned.value(&trials.scenario());
        if let Some(out) = &out {
            tuned.write(out, &search)?;
        }
        let compared: Vec<LabFigure> = COMPARED
            .iter()
            .filter_map(|name| {
                let figure = named_figure(name)?;
                let value = figure.of(&measured.summary)?;
                let simulated: Option<Vec<f64>> =
                    trials.played().iter().map(|played| figure.of(&played.result.summary)).collect();
                let simulated = simulated?;
                let error = LaboratoryError::of(value, &simulated);
                Some(LabFigure { figure, measured: value, simulated, error })
            })
            .collect();
        let drops = named_figure("drops").expect("drops is a figure");
        let dropped = drops.of(&measured.summary).unwrap_or(0.0) > 0.0;
        let simulated_drops =
            trials.played().iter().any(|played| drops.of(&played.result.summary).unwrap_or(0.0) > 0.0);
        let queue = compared.iter().find(|one| one.figure.name == COMPARED[0]);
        let error = queue.and_then(|queue| queue.error).filter(|_| !dropped && !simulated_drops);
        let mut notes = Vec::new();
        let simulated: Option<Vec<u64>> =
            trials.played().iter().map(|played| played.result.summary.samples()).collect();
        if let (Some(events), Some(simulated)) = (measured.summary.samples(), simulated) {
            let word = if measured.summary.requests.is_some() { "request" } else { "event" };
            let [measured, all] = [events, simulated.iter().sum()].map(|count| lines::counted(count, word));
            let seeds = lines::counted(simulated.len() as u64, "seed");
            notes.push(format!("measured: {measured}; simulated: {all}, {seeds}"));
        }
        if sources < full {
            notes.push(format!(
                "{sources} sources were measured, the scenario has {full}: that the error stays the same is assumed"
            ));
        }
        if measured.summary.kind == ResultKind::Sim {
            notes.push("this result is a simulation, not a measurement".to_owned());
        }
        if let Some(why) = measured.summary.invalid() {
            notes.push(format!("the measurement marks itself invalid: {why}"));
        }
        if queue.is_none() {
            notes.push("no depth of a queue was measured, so that no error is carried to buffers".to_owned());
        } else if error.is_none() {
            let losses = match (dropped, simulated_drops) {
                (true, true) => "the laboratory and its simulation lose frames",
                (true, false) => "the laboratory loses frames, its simulation none",
                _ => "the laboratory loses no frames, its simulation does",
            };
            notes.push(format!(
                "{losses}: a full queue does not say how deep it would become; measure with a larger buffer"
            ));
        }
        let answer = compared.iter().map(LabFigure::text).collect::<Vec<_>>().join("; ");
        let value = json!({
            "figures": compared.iter().map(LabFigure::value).collect::<Vec<_>>(),
            "measured": folder.display().to_string(),
            "sources": { "measured": sources, "scenario": full },
            "search": search,
        });
        self.advice.compared(&measured.label, &answer, &notes.join("; "), out.map(|_| name), value);
        Ok(error.map(|error| CarriedError { error, sources }))
    }

    /// Carries the laboratories' error to the smallest buffers, and simulates the largest buffers of the widened range.
    pub(super) fn scaled(&mut self, carried: &CarriedError) -> Result<(), Failure> {
        let CarriedError { error, sources } = carried;
        let full = self.loaded.scenario.senders();
        let holds = if *sources < full {
            format!("which is assumed to hold from {sources} sources to {full}")
        } else {
            "which is assumed to hold at full size".to_owned()
        };
        let found: Vec<SmallestBuffer> = self.advice.buffers();
        let keys = self.effective_buffers();
        let goal = self.goal(Sense::Minimise, "mean")?;
        for buffer in &found {
            let [low, high] = error.carry(buffer);
            let others = keys.iter().filter(|key| key.key != buffer.key.key);
            let mut sets: Vec<String> = others.map(|key| key.set(key.axis.high)).collect();
            sets.push(buffer.key.set(high));
            let text = |value| buffer.key.kind.text(value);
            let about = format!(
                "{} by simulation; the laboratory's deepest queue was {} times its simulation's, {holds}",
                text(buffer.enough),
                error.words(|ratio| format!("{ratio:.2}"))
            );
            let lines = self.advice.lines.len();
            self.line(AdvicePart::Laboratory, &buffer.key.key, &sets, &[], &goal, &about)?;
            if self.advice.lines.len() == lines {
                break;
            }
            self.advice.prefix_last(&format!(
                "the full system needs {} to {}; simulated with {}: ",
                text(low),
                text(high),
                text(high)
            ));
            let range = json!({
                "key": buffer.key.key, "bytes_min": low, "bytes_max": high, "simulated_bytes": buffer.enough,
                "measured_over_simulated": [error.least, error.most],
            });
            self.advice.extend_last("needs", range);
        }
        Ok(())
    }
}

impl LabFigure {
    fn text(&self) -> String {
        let text = |value| figure_text(self.figure, value);
        let least = self.simulated.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.simulated.iter().copied().fold(0.0, f64::max);
        let simulated =
            if least == most { text(least) } else { format!("{} to {}", text(least), text(most)) };
        let error = self.error.map_or_else(String::new, |error| {
            format!(" ({} %)", error.words(|ratio| format!("{:+.0}", (ratio - 1.0) * 100.0)))
        });
        format!("{} {} measured, {simulated} simulated{error}", self.figure.name, text(self.measured))
    }

    fn value(&self) -> Value {
        let mut value =
            json!({ "figure": self.figure.name, "measured": self.measured, "simulated": self.simulated });
        if let Some(error) = self.error {
            value["measured_over_simulated"] = json!([error.least, error.most]);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use fanin_scenario::load;
    use fanin_tune::{KeyRange, TunedKey};

    use super::*;

    #[test]
    fn the_error_of_a_laboratory_widens_the_buffer() {
        let error = LaboratoryError::of(120.0, &[100.0, 80.0]).unwrap();
        assert_eq!(error, LaboratoryError { least: 1.2, most: 1.5 });
        assert_eq!(LaboratoryError::of(1.0, &[0.0]), None);
        let joined = error.join(LaboratoryError::of(90.0, &[100.0]).unwrap());
        assert_eq!(joined, LaboratoryError { least: 0.9, most: 1.5 });
        let key = TunedKey::new(&KeyRange::objective("tor.buffer"), &load("incast", &[]).unwrap().scenario)
            .unwrap();
        let buffer = SmallestBuffer { key, enough: 1000, not_enough: Some(900) };
        assert_eq!(joined.carry(&buffer), [810, 1500]);
        let large = SmallestBuffer { enough: 1_234_567, not_enough: Some(1_234_567), ..buffer.clone() };
        assert_eq!(LaboratoryError { least: 1.0, most: 1.0 }.carry(&large), [1_230_000, 1_240_000]);
        assert_eq!(joined.words(|ratio| format!("{ratio:.1}")), "0.9 to 1.5");
        assert_eq!(LaboratoryError { least: 0.82, most: 0.824 }.words(|ratio| format!("{ratio:.2}")), "0.82");
        // A simulation that was too careful still bounds from above.
        assert_eq!(LaboratoryError { least: 0.5, most: 0.8 }.carry(&buffer), [450, 1000]);
    }
}
