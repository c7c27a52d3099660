//! Thousands of worlds with faults, and equal worlds for equal seeds.

use std::sync::atomic::AtomicBool;

use fanin_world::{Campaign, campaign, run};

/// Worlds of `make test`; `scripts/worlds.sh` plays more.
const SEEDS: u64 = 5_000;

#[test]
fn every_world_keeps_its_promises() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let all = Campaign { from: 0, seeds: SEEDS, threads, failures_max: 5 };
    let progress = campaign(all, &AtomicBool::new(false), &|_| ());
    let failed: Vec<String> = progress.failed.iter().map(|failed| failed.to_string()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(progress.seeds, SEEDS);
    // The worlds are no still ones.
    assert!(progress.events > 40 * SEEDS && progress.faults > 2 * SEEDS, "{progress:?}");
}

#[test]
fn equal_seeds_give_equal_worlds() {
    let mut traces = Vec::new();
    for seed in 0..40 {
        let first = run(seed);
        assert_eq!(first, run(seed), "seed {seed}");
        traces.extend(first.map(|report| report.trace));
    }
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 40, "other seeds give other worlds");
}
