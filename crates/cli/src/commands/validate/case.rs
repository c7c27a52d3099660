//! One case: simulated, measured, judged.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanin_report::{Agreement, Comparison, GOALS, RunResult, ScenarioName, Summary, compare};
use fanin_runs::{RunControl, RunOutcome};
use fanin_scenario::Loaded;

use super::baseline::{KnownDifference, Recorded};
use crate::commands::live::{self, LiveEnd};
use crate::failure::Failure;
use crate::{build_info, interrupt};

/// Simulations of a case, each as long as the run: a longer simulation has deeper queues and rarer drops. Several simulations
/// cost little, and only the measurement then depends on chance.
const SIMULATIONS: u64 = 10;
/// A run counts as hung if it takes this much longer than its scenario.
const OVERTIME: Duration = Duration::from_secs(90);

/// A case of the set.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    path: PathBuf,
    loaded: Loaded,
}

/// The measurement that a simulation is compared with.
#[derive(Debug)]
pub(super) enum Measurement {
    /// The case was run just now.
    Live(Box<LiveRun>),
    /// The baseline's measurement.
    Recorded(Recorded),
    /// No measurement, for this reason.
    Missing(String),
}

/// A run: the only one, or the median of several rounds.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub(super) result: RunResult,
    /// Spread of the rounds, if several.
    pub(super) rounds: Option<String>,
}

impl From<RunResult> for Measurement {
    fn from(result: RunResult) -> Self {
        Self::Live(Box::new(LiveRun { result, rounds: None }))
    }
}

impl Measurement {
    /// Returns the run of a case with the median goodput; of an even number, the lower one.
    ///
    /// # Panics
    /// If `runs` is empty.
    pub(super) fn middle(mut runs: Vec<RunResult>) -> Self {
        let goodput =
            |run: &RunResult| run.summary.goodput_bps.as_ref().map_or(0.0, |goodput| goodput.total / 1e6);
        runs.sort_by(|left, right| goodput(left).total_cmp(&goodput(right)));
        let (least, most) = (goodput(&runs[0]), goodput(&runs[runs.len() - 1]));
        let rounds = (runs.len() > 1).then(|| format!("{} runs, {least:.1} to {most:.1} Mb/s", runs.len()));
        let result = runs.swap_remove((runs.len() - 1) / 2);
        Self::Live(Box::new(LiveRun { result, rounds }))
    }

    /// Returns true for a measurement without the machine as bottleneck.
    pub(super) fn is_sound(&self) -> bool {
        match self {
            Self::Live(run) => run.result.summary.invalid().is_none(),
            Self::Recorded(_) => true,
            Self::Missing(_) => false,
        }
    }

    pub(super) fn summary(&self) -> Option<Summary> {
        match self {
            Self::Live(run) => Some(run.result.summary.clone()),
            Self::Recorded(recorded) => Some(recorded.summary()),
            Self::Missing(_) => None,
        }
    }
}

/// A case with its verdict.
#[derive(Debug)]
pub(super) struct JudgedCase {
    pub(super) name: String,
    /// The title of the case.
    pub(super) title: String,
    pub(super) measured: Measurement,
    /// The comparison; `None` without a measurement.
    pub(super) comparison: Option<Comparison>,
    /// Reason and range of a known deviation.
    pub(super) known: Option<KnownDifference>,
}

impl JudgedCase {
    pub(super) fn new(
        case: &Case,
        predicted: &Summary,
        measured: Measurement,
        known: Option<KnownDifference>,
    ) -> Self {
        let comparison = measured.summary().map(|measured| compare(predicted, &measured, GOALS));
        let title = case.loaded.scenario.title.clone();
        Self { name: case.name.clone(), title, measured, comparison, known }
    }

    /// Returns true for a valid measurement that agrees with the simulation.
    pub(super) fn agrees(&self) -> bool {
        self.measured.is_sound() && self.comparison.as_ref().is_some_and(Comparison::agrees)
    }

    /// Returns true for a valid measurement that agrees, or differs within its known ranges.
    pub(super) fn passes(&self) -> bool {
        self.agrees() || self.measured.is_sound() && self.differs_as_known()
    }

    fn differs_as_known(&self) -> bool {
        let Some((known, comparison)) = self.known.as_ref().zip(self.comparison.as_ref()) else {
            return false;
        };
        let mut differing = comparison.claims.iter().filter(|claim| claim.verdict == Agreement::Differs);
        differing.all(|claim| known.covers(claim))
    }
}

impl Case {
    pub(super) fn load(name: String, path: PathBuf) -> Result<Self, Failure> {
        let loaded = fanin_scenario::load(&path.to_string_lossy(), &[])?;
        Ok(Self { name, path, loaded })
    }

    /// Simulates the case with several seeds. Returns the run with the median mean time, and in it the median of the deepest
    /// queues.
    pub(super) fn simulate(&self, folder: &Path) -> Result<RunResult, Failure> {
        let scenario = &self.loaded.scenario;
        let control = RunControl { stop: interrupt::flag(), ..RunControl::default() };
        let seeds = (0..SIMULATIONS).map(|number| scenario.run.seed.wrapping_add(number));
        let mut outcomes =
            seeds.map(|seed| fanin_runs::run(scenario, seed, &control)).collect::<Result<Vec<_>, _>>()?;
        let middle = (outcomes.len() - 1) / 2;
        let queue = |outcome: &RunOutcome| outcome.summary.network.as_ref()?.queue_bytes_max;
        outcomes.sort_by_key(queue);
        let deepest = queue(&outcomes[middle]);
        // A run that completes nothing has no mean: it is the slowest.
        let mean = |outcome: &RunOutcome| outcome.summary.times().map_or(f64::INFINITY, |times| times.mean);
        outcomes.sort_by(|left, right| mean(left).total_cmp(&mean(right)));
        let mut outcome = outcomes.swap_remove(middle);
        if let Some(network) = &mut outcome.summary.network {
            network.queue_bytes_max = deepest;
        }
        let mut result = RunResult::new(outcome.summary);
        result.label = "simulated".into();
        result.summary.scenario = ScenarioName { name: self.name.clone(), hash: self.loaded.hash() };
        result.summary.commit = build_info::COMMIT.map(str::to_owned);
        result.scenario_toml = Some(self.loaded.to_toml());
        result.records = outcome.records;
        write(&folder.join("sim"), &result)?;
        Ok(result)
    }

    /// Runs the case, as `fanin run` does, and returns the measurement.
    pub(super) fn measure(&self, out: &Path) -> Result<Measurement, Failure> {
        let run = &self.loaded.scenario.run;
        let limit = Duration::from_nanos((run.warmup + run.duration).as_nanos()) + OVERTIME;
        Ok(match live::measure(&self.path, &[], out, Some(limit))? {
            LiveEnd::Measured { mut result, .. } => {
                result.label = "measured".into();
                (*result).into()
            }
            LiveEnd::TooSlow(reason) | LiveEnd::Refused(reason) | LiveEnd::Missing(reason) => {
                Measurement::Missing(reason)
            }
        })
    }

    /// Writes a page with the simulation and the measurement.
    pub(super) fn page(
        &self,
        folder: &Path,
        predicted: &RunResult,
        measured: &Measurement,
    ) -> Result<(), Failure> {
        let mut results = vec![predicted.clone()];
        if let Measurement::Live(run) = measured {
            results.push(run.result.clone());
        }
        let path = folder.join(fanin_report::PAGE_FILE);
        std::fs::write(&path, fanin_report::page(&results)).map_err(|error| Failure::Write { path, error })
    }
}

fn write(folder: &Path, result: &RunResult) -> Result<(), Failure> {
    fanin_report::write(folder, result, &fanin_report::page(std::slice::from_ref(result)))?;
    Ok(())
}

/// Returns the headroom of the machine in a few words; `None` if the summary lacks its figures.
pub(super) fn headroom(summary: &Summary) -> Option<String> {
    let machine = summary.machine.as_ref()?;
    let (busy, wait, late) = (machine.switch_busy?, machine.switch_wait?, machine.switch_late_ms?);
    let hosts = machine.host_late_ms.map(|late| format!("; hosts late {late:.2} ms")).unwrap_or_default();
    Some(format!(
        "switch busy {:.0} %, waiting {:.0} %, late {late:.2} ms{hosts}",
        100.0 * busy,
        100.0 * wait
    ))
}

/// Returns the build profile of the measuring program: an unoptimised program takes more of the machine.
pub(super) fn build() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let bpf = if cfg!(feature = "bpf") { " with bpf" } else { "" };
    format!("{profile}{bpf}")
}

/// Returns the release of the kernel.
pub(super) fn kernel() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = text.trim().split('-').next().unwrap_or_default().to_owned();
    if version.is_empty() { "unknown".into() } else { version }
}

/// Returns the present day in UTC, such as 2026-11-21.
pub(super) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date((seconds / 86_400) as i64)
}

/// Returns the date of a day, which is counted from 1970-01-01, in the Gregorian calendar. Years count from March, so that the
/// leap day comes last.
fn date(days: i64) -> String {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, civil) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{civil:02}-{day:02}", year + era * 400 + i64::from(civil <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_run_counts() {
        let run = |mbps: f64| {
            let mut summary = Summary::new(fanin_report::ResultKind::Run, "1", ScenarioName::default());
            summary.goodput_bps = Some(fanin_report::Goodput { total: mbps * 1e6, per_collector_mean: None });
            RunResult::new(summary)
        };
        for (runs, middle, said) in [
            (vec![31.0], 31.0, None),
            (vec![37.5, 29.0, 33.0], 33.0, Some("3 runs, 29.0 to 37.5 Mb/s")),
            (vec![4.0, 1.0, 3.0, 2.0], 2.0, Some("4 runs, 1.0 to 4.0 Mb/s")),
        ] {
            let Measurement::Live(live) = Measurement::middle(runs.into_iter().map(run).collect()) else {
                panic!("a live run");
            };
            assert_eq!(live.result.summary.goodput_bps.unwrap().total, middle * 1e6);
            assert_eq!(live.rounds.as_deref(), said);
        }
    }

    #[test]
    fn days_have_dates() {
        let cases = [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_778, "2026-11-21")];
        for (days, expected) in cases {
            assert_eq!(date(days), expected);
        }
    }
}
