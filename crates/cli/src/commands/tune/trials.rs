//! Simulates the trials of a search.

use std::path::{Path, PathBuf};

use fanin_report::{Records, RunResult, ScenarioName};
use fanin_runs::{RunControl, SweepRun};
use fanin_scenario::Loaded;
use fanin_tune::{End, Goal, Score, SearchLimits, SearchOutcome, Target, Trial, TunedKey, search};
use indicatif::ProgressBar;

use crate::commands::sim;
use crate::commands::source::Source;
use crate::failure::Failure;
use crate::{interrupt, output};

/// Returns the default number of simulations at a time: the number of cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A trial that was simulated.
pub(crate) struct Played {
    /// The settings, as for `--set`.
    pub(crate) set: Vec<String>,
    /// The point and its seed.
    pub(crate) trial: Trial,
    /// The trial's result, without tables.
    pub(crate) result: RunResult,
}

/// The trials of one search.
pub(crate) struct Trials<'a> {
    source: &'a Source,
    keys: &'a [TunedKey],
    goal: &'a Goal,
    threads: usize,
    out: Option<PathBuf>,
    quiet: bool,
    base: Loaded,
    played: Vec<Played>,
    failure: Option<Failure>,
}

impl<'a> Trials<'a> {
    pub(crate) fn new(
        source: &'a Source,
        keys: &'a [TunedKey],
        goal: &'a Goal,
        threads: usize,
        out: Option<&Path>,
        quiet: bool,
    ) -> Result<Self, Failure> {
        // The warnings have been printed.
        let base = fanin_scenario::load(&source.source, &source.sets)?;
        let out = out.map(Path::to_owned);
        Ok(Self { source, keys, goal, threads, out, quiet, base, played: Vec::new(), failure: None })
    }

    /// Returns the simulated trials, in order.
    pub(crate) fn played(&self) -> &[Played] {
        &self.played
    }

    /// Returns the name and hash of the scenario without the tuned settings.
    pub(crate) fn scenario(&self) -> ScenarioName {
        ScenarioName { name: self.base.name.clone(), hash: self.base.hash() }
    }

    /// Searches for the best point.
    pub(crate) fn search(&mut self, limits: SearchLimits) -> Result<SearchOutcome, Failure> {
        let axes: Vec<_> = self.keys.iter().map(|key| key.axis).collect();
        let end: Option<End> = self.goal.end().filter(|_| axes.len() == 1);
        let bar = output::bar(self.quiet, "{wide_bar} {pos} of at most {len} simulations");
        bar.set_length(limits.simulations as u64);
        let found = search(&axes, end, limits, &mut |trials| self.play(trials, &bar));
        bar.finish_and_clear();
        self.failure.take().map_or(Ok(found), Err)
    }

    /// Simulates a batch. Returns a score for each trial; fewer after Ctrl-C or a failure.
    fn play(&mut self, trials: &[Trial], bar: &ProgressBar) -> Vec<Score> {
        let loaded: Vec<Option<(Vec<String>, Loaded)>> =
            trials.iter().map(|trial| self.load(trial)).collect();
        let runs: Vec<SweepRun> = loaded
            .iter()
            .flatten()
            .map(|(_, loaded)| SweepRun { scenario: loaded.scenario.clone(), seed: loaded.scenario.run.seed })
            .collect();
        let known: Vec<&Loaded> = loaded.iter().flatten().map(|(_, loaded)| loaded).collect();
        let control = RunControl { stop: interrupt::flag(), ..RunControl::default() };
        let before = self.played.len();
        let out = self.out.as_deref();
        let finished = fanin_runs::sweep_each(&runs, self.threads, &control, &|number, outcome| {
            let (mut result, ending) = sim::finish(known[number], outcome?, None)?;
            if let Err(Failure::Stopped) = ending {
                return Err(Failure::Stopped);
            }
            if let Some(folder) = out {
                sim::write(&folder.join(folder_name(before + number)), &result)?;
            }
            result.records = Records::default();
            bar.inc(1);
            Ok(result)
        });
        let mut finished = finished.into_iter();
        let mut scores = Vec::new();
        for (trial, loaded) in trials.iter().zip(loaded) {
            let Some((set, _)) = loaded else {
                // The scenario refuses this combination of values, as its checks say.
                scores.push(Score { violation: f64::INFINITY, objective: f64::MAX });
                continue;
            };
            match finished.next() {
                Some(Ok(result)) => {
                    scores.push(self.goal.score(&result.summary, self.objective_value(trial)));
                    self.played.push(Played { set, trial: trial.clone(), result });
                }
                Some(Err(Failure::Stopped)) | None => break,
                Some(Err(failure)) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        scores
    }

    /// Loads the scenario of a trial, with its settings; `None` if the scenario's checks refuse the values.
    fn load(&self, trial: &Trial) -> Option<(Vec<String>, Loaded)> {
        let set: Vec<String> =
            self.keys.iter().zip(&trial.values).map(|(key, value)| key.set(*value)).collect();
        let seed = self.base.scenario.run.seed.saturating_add(u64::from(trial.seed));
        let sets = self.source.sets.iter().chain(&set).cloned().chain([format!("run.seed={seed}")]);
        let loaded = fanin_scenario::load(&self.source.source, &sets.collect::<Vec<_>>()).ok()?;
        Some((set, loaded))
    }

    /// Returns the value of the objective, if the objective is a setting.
    fn objective_value(&self, trial: &Trial) -> Option<f64> {
        let Target::Key(objective) = &self.goal.objective.target else { return None };
        let at = self.keys.iter().position(|key| key.key == *objective)?;
        Some(trial.values[at] as f64)
    }
}

/// Returns the name of a simulation's folder.
pub(crate) fn folder_name(number: usize) -> String {
    format!("{number:03}")
}
