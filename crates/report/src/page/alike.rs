//! Settings that do not tell results apart.

use std::collections::BTreeSet;

use crate::{ResultKind, RunResult};

/// Settings that do not make another system.
const IGNORED: &[&str] = &["run.duration", "run.warmup", "title", "source", "run.seed"];
/// Number of leading settings in [`IGNORED`] that fix the measured stretch of a simulation.
const OF_TIME: usize = 2;

/// Settings to ignore in a comparison of results. Simulations of several durations differ in them, so that two sweeps in
/// one folder stay apart. A measurement has a duration of its own, and may be slowed.
pub(super) fn ignored(results: &[RunResult]) -> &'static [&'static str] {
    let simulated = results.iter().filter(|result| result.summary.kind == ResultKind::Sim);
    let times: BTreeSet<(Option<String>, Option<String>)> = simulated
        .filter_map(|result| result.scenario_toml.as_ref()?.parse::<toml::Table>().ok())
        .map(|tree| {
            let text = |key: &str| Some(tree.get("run")?.get(key)?.to_string());
            (text("duration"), text("warmup"))
        })
        .collect();
    if times.len() > 1 { &IGNORED[OF_TIME..] } else { IGNORED }
}
