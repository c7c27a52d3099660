//! Plays the trials of a search, simulated or live.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use fanin_report::{Records, RunResult, ScenarioName};
use fanin_runs::{RunControl, SweepRun};
use fanin_scenario::Loaded;
use fanin_tune::{End, Goal, Score, SearchLimits, SearchOutcome, Target, Trial, TunedKey, search};
use indicatif::ProgressBar;

use crate::commands::live::{self, LiveEnd, ResultFolder};
use crate::commands::sim;
use crate::commands::source::Source;
use crate::failure::Failure;
use crate::threads::threads_or_cores;
use crate::{interrupt, output};

/// Runs of a trial before the search ends, because the machine was the bottleneck in each.
const ATTEMPTS: usize = 2;

/// Time that a run may take beyond its scenario's before it counts as hung.
const OVERTIME: Duration = Duration::from_secs(120);
/// Score of a combination of values that the scenario's checks or the live system refuse.
const REFUSED: Score = Score { violation: f64::INFINITY, objective: f64::MAX };

/// The place where the trials of a search are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialPlace {
    /// In the simulator, this number at a time.
    Simulator { threads: usize },
    /// On this machine, one after the other.
    Live,
}

impl TrialPlace {
    /// Returns the simulator with `threads` at a time, by default one for each core.
    pub(crate) fn simulator(threads: Option<u16>) -> Self {
        Self::Simulator { threads: threads_or_cores(threads) }
    }
}

/// A trial that was played.
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
    place: TrialPlace,
    out: Option<PathBuf>,
    quiet: bool,
    base: Loaded,
    /// The scale of the first live run, which the others keep; `None` before its result.
    scale: Option<f64>,
    played: Vec<Played>,
    failure: Option<Failure>,
}

impl<'a> Trials<'a> {
    pub(crate) fn new(
        source: &'a Source,
        keys: &'a [TunedKey],
        goal: &'a Goal,
        place: TrialPlace,
        out: Option<&Path>,
        quiet: bool,
    ) -> Result<Self, Failure> {
        // The warnings have been printed.
        let base = fanin_scenario::load(&source.source, &source.sets)?;
        let out = out.map(Path::to_owned);
        Ok(Self {
            source,
            keys,
            goal,
            place,
            out,
            quiet,
            base,
            scale: None,
            played: Vec::new(),
            failure: None,
        })
    }

    /// Returns the played trials, in order.
    pub(crate) fn played(&self) -> &[Played] {
        &self.played
    }

    /// Returns the name and hash of the scenario without the tuned settings.
    pub(crate) fn scenario(&self) -> ScenarioName {
        ScenarioName { name: self.base.name.clone(), hash: self.base.hash() }
    }

    /// Searches for the best point. The search ends early at a trial that fails; see [`Self::failure`].
    pub(crate) fn search(&mut self, limits: SearchLimits) -> SearchOutcome {
        let axes: Vec<_> = self.keys.iter().map(|key| key.axis).collect();
        let end: Option<End> = self.goal.end().filter(|_| axes.len() == 1);
        let bar = output::bar(
            self.quiet,
            match self.place {
                TrialPlace::Simulator { .. } => "{wide_bar} {pos} of at most {len} simulations",
                TrialPlace::Live => "{wide_bar} {pos} of at most {len} runs, {msg}",
            },
        );
        bar.set_length(limits.simulations as u64);
        let found = search(&axes, end, limits, &mut |trials| self.play(trials, &bar));
        bar.finish_and_clear();
        found
    }

    /// Takes the failure that ended the search.
    pub(crate) fn failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Plays a batch. Returns a score for each trial; fewer after Ctrl-C or a failure.
    fn play(&mut self, trials: &[Trial], bar: &ProgressBar) -> Vec<Score> {
        let loaded: Vec<Option<(Vec<String>, Loaded)>> =
            trials.iter().map(|trial| self.load(trial)).collect();
        let known: Vec<&(Vec<String>, Loaded)> = loaded.iter().flatten().collect();
        let finished = match self.place {
            TrialPlace::Simulator { threads } => self.simulate(&known, threads, bar),
            TrialPlace::Live => self.measure(&known, bar),
        };
        let mut finished = finished.into_iter();
        let mut scores = Vec::new();
        for (trial, loaded) in trials.iter().zip(loaded) {
            let Some((set, _)) = loaded else {
                scores.push(REFUSED);
                continue;
            };
            match finished.next() {
                Some(Ok(Some(result))) => {
                    scores.push(self.goal.score(&result.summary, self.objective_value(trial)));
                    self.played.push(Played { set, trial: trial.clone(), result });
                }
                Some(Ok(None)) => scores.push(REFUSED),
                Some(Err(Failure::Stopped)) | None => break,
                Some(Err(failure)) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        scores
    }

    fn simulate(
        &self,
        trials: &[&(Vec<String>, Loaded)],
        threads: usize,
        bar: &ProgressBar,
    ) -> Vec<Result<Option<RunResult>, Failure>> {
        let runs: Vec<SweepRun> = trials
            .iter()
            .map(|(_, loaded)| SweepRun { scenario: loaded.scenario.clone(), seed: loaded.scenario.run.seed })
            .collect();
        let control = RunControl { stop: interrupt::flag(), ..RunControl::default() };
        let before = self.played.len();
        let out = self.out.as_deref();
        fanin_runs::sweep_each(&runs, threads, &control, &|number, outcome| {
            let (mut result, ending) = sim::finish(&trials[number].1, outcome?, None)?;
            if let Err(Failure::Stopped) = ending {
                return Err(Failure::Stopped);
            }
            if let Some(folder) = out {
                sim::write(&folder.join(folder_name(before + number)), &result)?;
            }
            result.records = Records::default();
            bar.inc(1);
            Ok(Some(result))
        })
    }

    /// Runs the trials one after the other, up to the first that fails.
    fn measure(
        &mut self,
        trials: &[&(Vec<String>, Loaded)],
        bar: &ProgressBar,
    ) -> Vec<Result<Option<RunResult>, Failure>> {
        let mut results = Vec::new();
        let mut number = self.played.len();
        for (set, loaded) in trials {
            bar.set_message(set.join(" "));
            let result = self.measure_one(&folder_name(number), set, loaded);
            let has_failed = result.is_err();
            number += usize::from(matches!(result, Ok(Some(_))));
            results.push(result);
            if has_failed {
                break;
            }
            bar.inc(1);
        }
        results
    }

    /// Runs a trial, and once more if the machine was the bottleneck. `None`: the live system refuses these values.
    fn measure_one(
        &mut self,
        folder: &str,
        set: &[String],
        loaded: &Loaded,
    ) -> Result<Option<RunResult>, Failure> {
        let results = ResultFolder::new(self.out.as_deref(), "tune")?;
        let run = &loaded.scenario.run;
        let seed = format!("run.seed={}", run.seed);
        let scale = self.scale.map(|scale| format!("run.scale={scale}"));
        let sets: Vec<String> =
            self.source.sets.iter().chain(set).cloned().chain([seed]).chain(scale).collect();
        let seconds = (run.warmup + run.duration).as_secs_f64();
        let limit = self.scale.map(|scale| Duration::from_secs_f64(seconds / scale) + OVERTIME);
        let mut reason = String::new();
        for _ in 0..ATTEMPTS {
            let end =
                live::measure(Path::new(&self.source.source), &sets, &results.path.join(folder), limit)?;
            if interrupt::flag().load(Ordering::Relaxed) {
                return Err(Failure::Stopped);
            }
            reason = match end {
                LiveEnd::Measured { mut result, fault: None } => match result.summary.invalid() {
                    Some(reason) => reason.to_owned(),
                    None => {
                        let machine = result.summary.machine.as_ref();
                        self.scale = self.scale.or(machine.and_then(|machine| machine.scale));
                        result.records = Records::default();
                        return Ok(Some(*result));
                    }
                },
                LiveEnd::TooSlow(reason) => reason,
                // The reason why the first run is refused holds for the others, as a rule.
                LiveEnd::Refused(_) if self.scale.is_some() => return Ok(None),
                LiveEnd::Measured { fault: Some(reason), .. }
                | LiveEnd::Refused(reason)
                | LiveEnd::Missing(reason) => {
                    return Err(Failure::TrialRun { set: set.join(" "), reason });
                }
            };
        }
        Err(Failure::Bottleneck { reason })
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

/// Returns the name of a trial's folder.
pub(crate) fn folder_name(number: usize) -> String {
    format!("{number:03}")
}
