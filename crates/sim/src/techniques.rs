//! The figures of the techniques in force, each under its own key of the summary.

use fanin_queueing::Limit;
use fanin_report::Summary;
use fanin_scenario::{CongestionControl, Scenario};
use serde_json::{Value, json};

use crate::world::{Workload, World};

/// Fills in what the techniques that a scenario uses have to say, over the whole run.
pub(crate) fn fill<W: Workload>(summary: &mut Summary, scenario: &Scenario, world: &World<W>) {
    let mut add = |key: &str, figures: Value| {
        summary.techniques.insert(key.to_owned(), figures);
    };
    if let Some(figures) = early_signals(world) {
        add("ecn", figures);
    }
    if scenario.transport.congestion_control == CongestionControl::Dctcp {
        add("dctcp", dctcp(world));
    }
}

/// What markers did to the frames that they looked at.
fn early_signals<W: Workload>(world: &World<W>) -> Option<Value> {
    let (mut offered, mut marked, mut dropped) = (0, 0, 0);
    let mut any = false;
    for memory in world.fabric.memories.iter().map(|memory| memory.memory()).filter(|memory| memory.marks()) {
        any = true;
        for output in 0..memory.outputs_len() {
            let counters = memory.counters(output);
            offered += counters.enqueued.frames + counters.dropped_total().frames;
            marked += counters.marked.frames;
            dropped += counters.dropped_by(Limit::Early).frames;
        }
    }
    let share = if offered == 0 { 0.0 } else { marked as f64 / offered as f64 };
    any.then(
        || json!({ "frames": offered, "marked": marked, "marked_share": share, "dropped_early": dropped }),
    )
}

/// The marked share as the senders of data see it at the end, and how often they reduced their windows.
fn dctcp<W: Workload>(world: &World<W>) -> Value {
    let stats =
        (0..world.ends_len() as u32).map(|end| world.end_stats(end).0).filter(|stats| stats.segments > 1);
    let (mut senders, mut sum, mut max, mut reductions) = (0_u64, 0_u64, 0, 0);
    for stats in stats {
        senders += 1;
        sum += u64::from(stats.alpha_ppm);
        max = max.max(stats.alpha_ppm);
        reductions += stats.ecn_reductions;
    }
    let mean = if senders == 0 { 0.0 } else { sum as f64 / senders as f64 / 1e6 };
    json!({ "alpha_mean": mean, "alpha_max": f64::from(max) / 1e6, "reductions": reductions })
}
