//! Campaigns: the worlds of many seeds, on several threads.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::verdict;
use crate::world::World;
use crate::{WorldFailure, WorldReport, run};

/// The seeds of a campaign, its threads and its end.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// The first seed.
    pub from: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Number of threads.
    pub threads: usize,
    /// Number of failed seeds after which the campaign ends.
    pub failures_max: usize,
}

/// A seed with a failed world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedSeed {
    /// Number of the seed.
    pub seed: u64,
    /// The promise that did not hold.
    pub failure: WorldFailure,
}

impl fmt::Display for FailedSeed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, failure } = self;
        write!(
            out,
            "seed {seed} fails: {failure}\n  replay it: cargo run --package fanin-world -- replay {seed}"
        )
    }
}

/// Counts over the worlds of a campaign.
#[derive(Debug, Clone, Default)]
pub struct CampaignProgress {
    /// Worlds that were played.
    pub seeds: u64,
    /// Events that were assigned.
    pub events: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Most steps of a world without a failure.
    pub steps_max: u64,
    /// Simulated time of all worlds, of a failed one up to its failure.
    pub simulated: Duration,
    /// Wall-clock time of the campaign so far.
    pub wall: Duration,
    /// The seeds that failed, in order.
    pub failed: Vec<FailedSeed>,
}

impl CampaignProgress {
    /// Adds a world that was played, with its assigned events, faults and simulated nanoseconds.
    fn add(&mut self, seed: u64, result: Result<WorldReport, WorldFailure>, counts: (u64, u64, u64)) {
        let (events, faults, simulated_ns) = counts;
        self.seeds += 1;
        self.events += events;
        self.faults += faults;
        self.simulated += Duration::from_nanos(simulated_ns);
        match result {
            Ok(report) => self.steps_max = self.steps_max.max(report.steps),
            Err(failure) => self.failed.push(FailedSeed { seed, failure }),
        }
    }
}

/// Returns the assigned events, the faults and the simulated nanoseconds of a world.
fn counts_of(seed: u64, result: &Result<WorldReport, WorldFailure>) -> (u64, u64, u64) {
    match result {
        Ok(report) => (report.assigned, report.faults, report.simulated_ns),
        Err(_) => counts_of_failed(seed),
    }
}

/// Returns the assigned events, the faults and the simulated nanoseconds of a failed world up to its failure. It is played
/// again: equal seeds give equal worlds.
fn counts_of_failed(seed: u64) -> (u64, u64, u64) {
    let played = catch_unwind(|| {
        let mut world = World::new(seed);
        let _ = catch_unwind(AssertUnwindSafe(|| world.run()));
        let simulated_ns = world.shared.lock().now;
        (verdict::progress(&world).assigned, world.faults, simulated_ns)
    });
    // A world that fails before its begin has no counts.
    played.unwrap_or_default()
}

/// Plays a campaign until its end, or until `stop` is set. `tick` receives the progress about once a second.
pub fn campaign(
    campaign: Campaign,
    stop: &AtomicBool,
    tick: &(dyn Fn(&CampaignProgress) + Sync),
) -> CampaignProgress {
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let progress = Mutex::new((CampaignProgress::default(), Instant::now()));
    std::thread::scope(|scope| {
        for _ in 0..campaign.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= campaign.seeds || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let seed = campaign.from + number;
                    let result = run(seed);
                    // Outside the lock: a failed world is played once more.
                    let counts = counts_of(seed, &result);
                    let (all, ticked) = &mut *progress.lock().unwrap_or_else(PoisonError::into_inner);
                    all.wall = start.elapsed();
                    all.add(seed, result, counts);
                    if all.failed.len() >= campaign.failures_max {
                        break;
                    }
                    if ticked.elapsed() >= Duration::from_secs(1) {
                        *ticked = Instant::now();
                        tick(all);
                    }
                }
            });
        }
    });
    let (mut all, _) = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.wall = start.elapsed();
    all.failed.sort_by_key(|failed| failed.seed);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_world_counts_in_the_summary() {
        let (mut held, mut failed) = (CampaignProgress::default(), CampaignProgress::default());
        // The audit proves nothing about events whose journals were deleted, and does not count them.
        for seed in (0..).filter(|&seed| !World::new(seed).plan.deletes_journals).take(5) {
            for (all, result) in
                [(&mut held, run(seed)), (&mut failed, Err(WorldFailure::Livelock { count: 1 }))]
            {
                let counts = counts_of(seed, &result);
                all.add(seed, result, counts);
            }
        }
        assert!(held.failed.is_empty() && held.events > 0 && held.faults > 0, "{held:?}");
        assert_eq!(failed.failed.len(), 5);
        assert_eq!(
            (failed.seeds, failed.events, failed.faults, failed.simulated),
            (held.seeds, held.events, held.faults, held.simulated)
        );
    }
}
