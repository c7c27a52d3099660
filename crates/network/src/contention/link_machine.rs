//! One link machine and its jobs: the least sums and the fewest late jobs of any preemptive schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most rounds in which jobs leave a schedule.
const SPLITS_MAX: u32 = 4;

/// A collection on one link machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkJob {
    /// The time from which it can be served: the collection's release and `fixed`.
    pub(super) release: u64,
    /// The collection's time outside the link machine.
    pub(super) fixed: u64,
    /// The job's length on the link machine, in picoseconds.
    pub(super) work: u64,
    pub(super) ideal: u64,
    /// The least time of the collection, at least the ideal.
    pub(super) least: u64,
}

impl LinkJob {
    pub(super) fn ideal(&self) -> f64 {
        self.ideal.max(1) as f64
    }
}

/// A link, or several links together, as one machine of scheduling theory, where jobs may be preempted.
#[derive(Debug)]
pub(super) struct LinkMachine {
    /// The jobs in the order of their release.
    pub(super) jobs: Vec<LinkJob>,
}

impl LinkMachine {
    pub(super) fn new(mut jobs: Vec<LinkJob>) -> Self {
        jobs.sort_unstable_by_key(|job| job.release);
        Self { jobs }
    }

    /// The busy periods: between them the link machine is idle in every schedule that idles only without released jobs.
    fn busy_periods(&self) -> impl Iterator<Item = &[LinkJob]> {
        let mut end = 0;
        self.jobs.chunk_by(move |one, next| {
            end = one.release.max(end) + one.work;
            next.release < end
        })
    }

    /// The least sum of collection times, in picoseconds. Shortest remaining time first is optimal on one link machine
    /// (Schrage 1968).
    pub(super) fn time_sum_min(&self) -> f64 {
        let schedule = |jobs: &[LinkJob]| {
            let mut times = vec![0.0; jobs.len()];
            play(
                jobs,
                |_, remaining| u64::MAX - remaining,
                |place, _, end, remaining| {
                    if remaining == 0 {
                        times[place] = (end - jobs[place].release + jobs[place].fixed) as f64;
                    }
                },
            );
            times
        };
        self.busy_periods().map(|jobs| sum_min(jobs, schedule, |job| job.least as f64)).sum()
    }

    /// A lower bound of the sum of slowdowns. With weights `1 / ideal` a job's completion is at least its mean busy
    /// time plus half its work. The weighted sum of mean busy times is least if the largest ratio of weight to work is
    /// served first. (Goemans, Queyranne, Schulz, Skutella, Wang 2002.)
    pub(super) fn slowdown_sum_min(&self) -> f64 {
        let schedule = |jobs: &[LinkJob]| mean_busy_times(jobs, LinkJob::ideal);
        self.busy_periods().map(|jobs| sum_min(jobs, schedule, |job| job.least as f64 / job.ideal())).sum()
    }

    /// A lower bound of the number of collections that exceed the allowed time. Within a busy period all jobs count as
    /// released at its begin; there Moore and Hodgson's rule (1968) leaves the fewest late.
    pub(super) fn late_min(&self, allowed: impl Fn(&LinkJob) -> f64) -> usize {
        let of_period = |jobs: &[LinkJob]| {
            let begin = jobs[0].release;
            late_of(jobs, |job| (job.release - begin) as f64 + allowed(job) - job.fixed as f64, &allowed)
        };
        self.busy_periods().map(of_period).sum()
    }
}

/// Returns each job's mean busy time plus half its work, in the schedule with the least sum. Each is in its own `unit` of
/// picoseconds.
pub(super) fn mean_busy_times(jobs: &[LinkJob], unit: impl Fn(&LinkJob) -> f64) -> Vec<f64> {
    let rest = |job: &LinkJob| (0.5 * job.work as f64 + job.fixed as f64) / unit(job);
    let mut times: Vec<f64> = jobs.iter().map(rest).collect();
    play(
        jobs,
        // The order of positive floats is that of their bits.
        |job, _| (1.0 / (job.work.max(1) as f64 * unit(job))).to_bits(),
        |place, begin, end, _| {
            let job = &jobs[place];
            let middle = 0.5 * ((begin - job.release) as f64 + (end - job.release) as f64);
            times[place] += (end - begin) as f64 / job.work as f64 * middle / unit(job);
        },
    );
    times
}

/// A lower bound of the sum of a figure over the jobs of a busy period. `schedule` gives each job's figure in the schedule with the
/// least sum, `least` a job's least figure alone. Jobs that need more alone than in the schedule leave it, round by round.
fn sum_min(
    jobs: &[LinkJob],
    schedule: impl Fn(&[LinkJob]) -> Vec<f64>,
    least: impl Fn(&LinkJob) -> f64,
) -> f64 {
    let mut best: f64 = jobs.iter().map(&least).sum();
    let (mut scheduled, mut alone) = (jobs.to_vec(), 0.0);
    for _ in 0..SPLITS_MAX {
        let figures = schedule(&scheduled);
        best = best.max(alone + figures.iter().sum::<f64>());
        let (mut figures, before) = (figures.into_iter(), scheduled.len());
        scheduled.retain(|job| {
            let stays = figures.next().is_some_and(|figure| figure >= least(job));
            alone += if stays { 0.0 } else { least(job) };
            stays
        });
        if scheduled.len() == before {
            break;
        }
    }
    best
}

/// Plays one link machine: of the released jobs the one with the largest key is served. `key` takes a job and its
/// remaining work. `serve` takes the job's place, the begin and end of its service, and its remaining work then.
fn play(jobs: &[LinkJob], key: impl Fn(&LinkJob, u64) -> u64, mut serve: impl FnMut(usize, u64, u64, u64)) {
    let mut ready: BinaryHeap<(u64, Reverse<usize>, u64)> = BinaryHeap::new();
    let (mut next, mut now) = (0, 0);
    loop {
        if ready.is_empty() {
            match jobs.get(next) {
                Some(job) => now = job.release.max(now),
                None => return,
            }
        }
        while let Some(job) = jobs.get(next).filter(|job| job.release <= now) {
            ready.push((key(job, job.work), Reverse(next), job.work));
            next += 1;
        }
        let Some((_, Reverse(place), remaining)) = ready.pop() else { continue };
        let job = &jobs[place];
        let until = jobs.get(next).map_or(u64::MAX, |job| job.release);
        let end = now.saturating_add(remaining).min(until);
        let remaining = remaining - (end - now);
        serve(place, now, end, remaining);
        if remaining > 0 {
            ready.push((key(job, remaining), Reverse(place), remaining));
        }
        now = end;
    }
}

/// The smallest number of late jobs if all are released at time 0, by Moore and Hodgson. A job is always late if its
/// least time alone exceeds the allowed time.
fn late_of(jobs: &[LinkJob], due: impl Fn(&LinkJob) -> f64, allowed: impl Fn(&LinkJob) -> f64) -> usize {
    let mut order: Vec<(f64, u64)> = Vec::with_capacity(jobs.len());
    let mut late = 0;
    for job in jobs {
        if job.least as f64 > allowed(job) {
            late += 1;
        } else {
            order.push((due(job), job.work));
        }
    }
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut kept, mut end) = (BinaryHeap::new(), 0_u64);
    for (due, work) in order {
        kept.push(work);
        end += work;
        if end as f64 > due {
            // Dropping the longest job leaves the most time to the others.
            end -= kept.pop().unwrap_or(0);
            late += 1;
        }
    }
    late
}

/// The smallest level between `from` and `to` with at most `most` late, to a ten-thousandth; never above the true
/// level.
pub(super) fn least_level(from: f64, to: f64, most: usize, late: impl Fn(f64) -> usize) -> f64 {
    if late(from) <= most {
        return from;
    }
    let (mut low, mut high) = (from, to.max(from));
    while high - low > 1e-4 * high {
        let middle = 0.5 * (low + high);
        if late(middle) > most { low = middle } else { high = middle }
    }
    low
}
