//! The network that a run stands in, and what it did.

use fanin_report::Summary;
use fanin_scenario::Scenario;
use fanin_testbed::live::{Bench, Observed};

use super::Job;
use crate::commands::sim;
use crate::failure::Failure;

/// A switch that finds work in so many of its rounds has no time left for a burst.
const SWITCH_BUSY_MAX: f64 = 0.60;
/// A switch that is ready and waits for a core for more than this share of the time is not a switch of the scenario's.
const SWITCH_WAIT_MAX: f64 = 0.20;

/// Builds the network, if the run has one.
pub(super) fn build(job: &Job<'_>, scenario: &Scenario) -> Result<Option<Bench>, Failure> {
    if !job.in_namespaces {
        return Ok(None);
    }
    let bar = sim::bar(job.arguments.quiet, "{spinner} building the network");
    let bench = Bench::build(scenario, &job.folder.network(), &std::env::current_exe()?);
    bar.finish_and_clear();
    Ok(Some(bench?))
}

/// What the network did, for the summary.
pub(super) fn fill(summary: &mut Summary, observed: &Observed) {
    summary.network = Some(observed.network.clone());
    let (last_hop, uplink) = observed.load;
    summary.load = Some(fanin_report::Load { last_hop, uplink });
    summary.techniques.insert("headroom".into(), headroom(observed));
}

/// What the machine had left, and whether the measurement counts.
fn headroom(observed: &Observed) -> serde_json::Value {
    let effort = observed.effort;
    let mut figures = serde_json::json!({
        "valid": true,
        "switch_busy_share": effort.switch_busy,
        "switch_wait_share": effort.switch_wait,
        "switch_late_ms_max": 1e3 * effort.switch_late_s,
        "machine_busy_share": effort.machine_cpu,
        "frames_missed": observed.missed,
    });
    if let Some(why) = bottleneck(observed) {
        figures["valid"] = false.into();
        figures["why"] = why.into();
    }
    figures
}

/// Why the machine, not the network, made the result; `None` where it had head-room.
pub(super) fn bottleneck(observed: &Observed) -> Option<String> {
    let effort = observed.effort;
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    if observed.missed > 0 {
        return Some(format!("{} frames were lost before the switch saw them", observed.missed));
    }
    if effort.switch_busy > SWITCH_BUSY_MAX {
        return Some(format!("the switch had work in {} of its rounds", percent(effort.switch_busy)));
    }
    if effort.switch_wait > SWITCH_WAIT_MAX {
        return Some(format!("the switch waited for a core for {} of the time", percent(effort.switch_wait)));
    }
    None
}

/// Size, cost and head-room in lines for a person.
pub(super) fn notes(bench: &Bench, observed: &Observed) -> String {
    let (shape, effort) = (bench.shape(), observed.effort);
    let mut text = format!(
        "{:<18}{} hosts, {} switches, in {:.2} s ({})\n",
        "network",
        shape.hosts.len(),
        shape.bridges.len(),
        bench.built_in().as_secs_f64(),
        bench.run()
    );
    for note in &shape.notes {
        text += &format!("{:<18}{note}\n", "note");
    }
    text += &format!(
        "{:<18}switch: work in {:.1} % of its rounds, {:.0} % of a core with polling, ready and waiting {:.1} %, late by \
         {:.2} ms; all cores {:.0} % busy\n",
        "head-room",
        100.0 * effort.switch_busy,
        100.0 * effort.switch_cpu,
        100.0 * effort.switch_wait,
        1e3 * effort.switch_late_s,
        100.0 * effort.machine_cpu
    );
    if let Some(reason) = bottleneck(observed) {
        text += &format!("{:<18}this measurement is INVALID: {reason}\n", "bottleneck");
    }
    text
}
