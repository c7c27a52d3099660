//! Campaigns: the worlds of many seeds, on several threads.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{WorldFailure, run};

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
    /// Events that were assigned in worlds without a failure.
    pub events: u64,
    /// Faults that happened in worlds without a failure.
    pub faults: u64,
    /// Most steps of a world without a failure.
    pub steps_max: u64,
    /// Simulated time of all worlds without a failure.
    pub simulated: Duration,
    /// Wall-clock time of the campaign so far.
    pub wall: Duration,
    /// The seeds that failed, in order.
    pub failed: Vec<FailedSeed>,
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
                    let (all, ticked) = &mut *progress.lock().unwrap_or_else(PoisonError::into_inner);
                    all.seeds += 1;
                    all.wall = start.elapsed();
                    match result {
                        Ok(report) => {
                            all.events += report.assigned;
                            all.faults += report.faults;
                            all.steps_max = all.steps_max.max(report.steps);
                            all.simulated += Duration::from_nanos(report.simulated_ns);
                        }
                        Err(failure) => all.failed.push(FailedSeed { seed, failure }),
                    }
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
