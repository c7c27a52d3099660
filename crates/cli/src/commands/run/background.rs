//! Background traffic of a live run.

use fanin_node::background::{BackgroundLaunch, BackgroundResult, LiveBackground};
use fanin_node::techniques::technique;
use fanin_report::{Records, Summary};
use fanin_scenario::{Loaded, Scenario};
use fanin_testbed::live::{Bench, LiveRefusal};

use super::job::Job;
use crate::failure::Failure;

/// Refuses background traffic without a network, and with a congestion control that is a program of the system.
pub(super) fn check(loaded: &Loaded, has_network: bool) -> Result<(), Failure> {
    let background = &loaded.scenario.background;
    if background.connections == 0 {
        return Ok(());
    }
    let refuse = |key: &str, given: String, needed: &str| {
        let (key, needed) = (key.to_owned(), needed.to_owned());
        Err(Failure::Refused(LiveRefusal::Value { key, given, needed }))
    };
    if !has_network {
        let given = background.connections.to_string();
        let needed = "0 on the loopback, which has no ports to share; namespaces have them";
        return refuse("background.connections", given, needed);
    }
    if technique(background.congestion_control).is_none_or(|technique| technique.is_program) {
        let given = serde_json::json!(background.congestion_control).to_string();
        let needed = "the kernel's own: \"newreno\", \"cubic\" or \"bbr\"";
        return refuse("background.congestion_control", given, needed);
    }
    Ok(())
}

/// Starts the background traffic of a run, if it has any.
pub(super) fn start(job: &Job<'_>, bench: Option<&Bench>) -> Result<Option<LiveBackground>, Failure> {
    let Some(bench) = bench else { return Ok(None) };
    let program = std::env::current_exe()?;
    let folder = job.folder.network().join("background");
    let launch = BackgroundLaunch { loaded: &job.slow, folder: &folder, program: &program, place: bench };
    Ok(LiveBackground::start(&launch)?)
}

/// Ends the background traffic of a run, and reads its results.
pub(super) fn finish(
    job: &Job<'_>,
    live: Option<LiveBackground>,
) -> Result<Option<BackgroundResult>, Failure> {
    Ok(live.map(|live| live.finish(&job.slow)).transpose()?)
}

/// Fills in the figures and rows of background traffic. `start_unix_us` is the start of the run, from which the warm-up counts.
pub(super) fn fill(
    job: &Job<'_>,
    summary: &mut Summary,
    records: &mut Records,
    result: Option<&BackgroundResult>,
    start_unix_us: u64,
) -> String {
    let Some(result) = result else { return String::new() };
    let slow = &job.slow.scenario;
    let from = start_unix_us + micros(slow.run.warmup);
    let scale = job.carried.as_ref().map_or(1.0, |carried| carried.chosen.scale.as_f64());
    summary.background = Some(result.figures(from, from + micros(slow.run.duration), scale));
    if !slow.live.standby {
        // A standby's connections have these numbers.
        records.flows.extend(result.flows(first(slow)));
    }
    match result.skipped() {
        0 => String::new(),
        skipped => format!(
            "{:<18}{skipped} transfers of the background were skipped: too many waited for their connections\n",
            "note"
        ),
    }
}

/// Returns the number of the first background connection.
fn first(scenario: &Scenario) -> u64 {
    scenario.connections_total() - scenario.background_connections()
}

fn micros(time: fanin_units::Duration) -> u64 {
    time.as_nanos() / 1_000
}
