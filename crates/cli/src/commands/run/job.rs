//! A run's inputs and outputs, for both kinds of workload.

use std::path::PathBuf;

use fanin_report::{RunResult, Summary};
use fanin_scenario::Loaded;
use fanin_testbed::live::Bench;
use fanin_testbed::{DeviceTap, TapTotals};
use fanin_units::Ratio;

use super::arguments::Arguments;
use super::carried::Carried;
use super::folder::{LIVE_FOLDER, RunFolder};
use crate::commands::sim::write_trace;
use crate::failure::Failure;
use crate::output;

/// The inputs of a run.
pub(super) struct Job<'a> {
    pub(super) arguments: &'a Arguments,
    /// The scenario as requested; figures refer to it.
    pub(super) loaded: Loaded,
    /// The scenario that runs: the same, slowed down by the scale of [`Self::carried`].
    pub(super) slow: Loaded,
    /// The machine's capacity and the chosen scale, if the run has its own network.
    pub(super) carried: Option<Carried>,
    /// Attempts of this run that the machine spoilt.
    pub(super) spoilt: Vec<SpoiltAttempt>,
    pub(super) folder: RunFolder,
    /// The folder of relative paths in the scenario.
    pub(super) scenario_folder: PathBuf,
}

/// An attempt with figures made by the machine, not the network.
pub(super) struct SpoiltAttempt {
    pub(super) scale: Ratio,
    pub(super) reason: String,
}

impl SpoiltAttempt {
    pub(super) fn text(&self) -> String {
        format!("at scale {}: {}", self.scale, self.reason)
    }
}

/// Outcomes of an attempt.
pub(super) enum AttemptEnd {
    /// The attempt's results are written.
    Done,
    /// The machine spoilt the attempt, and no part of it is kept.
    Spoilt(String),
}

/// Attempts after the first one.
const AGAIN_MAX: usize = 3;

impl Job<'_> {
    /// Returns true if a spoilt attempt is followed by one at half the scale.
    pub(super) fn may_begin_again(&self) -> bool {
        let halved = self.carried.as_ref().and_then(|carried| carried.chosen.halved());
        self.spoilt.len() < AGAIN_MAX && halved.is_some()
    }

    /// Returns the reason, in one line, for which the run begins again after this failure; `None` if it does not.
    pub(super) fn spoilt_by(&self, failure: &Failure) -> Option<String> {
        let is_stopped = crate::interrupt::flag().load(std::sync::atomic::Ordering::Relaxed);
        if is_stopped || !failure.is_of_slow_machine() || !self.may_begin_again() {
            return None;
        }
        // Lines of logs follow the first line.
        failure.to_string().lines().next().map(str::to_owned)
    }

    /// Halves the scale after an attempt that the machine spoilt, and prints the reason.
    ///
    /// # Panics
    /// If the scale cannot be halved.
    pub(super) fn begin_again(&mut self, reason: String) {
        let carried = self.carried.as_mut().expect("a network has a scale");
        let scale = carried.chosen.scale;
        carried.chosen = carried.chosen.halved().expect("a smaller scale");
        self.slow.scenario = self.loaded.scenario.slowed(carried.chosen.scale);
        if !self.arguments.quiet {
            eprintln!(
                "note: the machine spoilt the run at scale {scale}: {reason}; starting again at scale {}",
                carried.chosen.scale
            );
        }
        self.spoilt.push(SpoiltAttempt { scale, reason });
    }
}

/// Returns a line if the scenario asks for `record.queues`, which a run on the loopback cannot write; otherwise an empty text.
pub(super) fn unrecorded(job: &Job<'_>) -> String {
    let queues = &job.loaded.scenario.record.queues;
    if job.carried.is_some() || queues.is_empty() {
        return String::new();
    }
    format!("{:<18}`record.queues` is not written: a loopback has no switch\n", "record")
}

/// Prints the text for people, and writes the result where the arguments ask for it.
pub(super) fn finish(job: &Job<'_>, result: &RunResult, text: &str) -> Result<(), Failure> {
    let arguments = job.arguments;
    // The text is printed first: it appears even if the disk takes no tables.
    if arguments.prints() {
        output::print(text)?;
        result.cautions().iter().for_each(|caution| output::note(caution));
    }
    if let Some(out) = &arguments.out {
        fanin_report::write(out, result, &fanin_report::page(std::slice::from_ref(result)))?;
    }
    if let Some(path) = &arguments.trace {
        write_trace(path, result)?;
    }
    if let Some(json) = &arguments.json {
        json.write(&result.summary)?;
    }
    if arguments.prints()
        && let Some(out) = &arguments.out
    {
        let page = out.join(fanin_report::PAGE_FILE);
        let data = out.join(LIVE_FOLDER).join("data");
        let stored =
            if data.is_dir() { format!("; stored events: {}", data.display()) } else { String::new() };
        output::print(&format!("\nThe page: {}{stored}\n", page.display()))?;
    }
    Ok(())
}

/// Starts the capture of `--pcap`, if given; its ports on the loopback are chosen later.
pub(super) fn start_capture(job: &Job<'_>, bench: Option<&Bench>) -> Result<Option<DeviceTap>, Failure> {
    let Some(file) = &job.arguments.pcap else { return Ok(None) };
    Ok(Some(match bench {
        Some(bench) => bench.capture(&job.loaded.scenario.record.capture, file)?,
        None => DeviceTap::start("lo", file)?,
    }))
}

/// Ends the capture, and returns a line on its content.
pub(super) fn end_capture(job: &Job<'_>, tap: Option<DeviceTap>) -> Result<String, Failure> {
    let (Some(file), Some(tap)) = (&job.arguments.pcap, tap) else { return Ok(String::new()) };
    let TapTotals { frames, dropped } = tap.stop()?;
    let lacks =
        if dropped > 0 { format!("; {dropped} came too fast and are missing") } else { String::new() };
    Ok(format!("{:<18}{frames} frames in {}{lacks}\n", "capture", file.display()))
}

/// Makes a summary with the scenario's name, version and seed.
pub(super) fn summary_of(loaded: &Loaded) -> Summary {
    let name = fanin_report::ScenarioName { name: loaded.name.clone(), hash: loaded.hash() };
    let mut summary = Summary::new(fanin_report::ResultKind::Run, crate::build_info::VERSION, name);
    summary.commit = crate::build_info::COMMIT.map(str::to_owned);
    summary.seed = Some(loaded.scenario.run.seed);
    summary
}
