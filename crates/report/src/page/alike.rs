//! Settings that are ignored in a comparison of results.

use std::collections::BTreeSet;

use crate::{ResultKind, RunResult};

/// Settings that do not change the simulated system.
const IGNORED: &[&str] = &["run.duration", "run.warmup", "title", "source", "run.seed"];
/// Number of the first settings of [`IGNORED`] that fix the measured time.
const OF_TIME: usize = 2;

/// Returns the settings to ignore in a comparison of results. Durations count if simulations differ in them, which keeps two
/// sweeps in one folder apart. Otherwise they are ignored, because a measurement has its own duration and may be slowed down.
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
