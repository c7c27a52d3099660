//! Targets with their last answers, which are asked periodically.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::fetch::fetch;
use super::series::{MetricSeries, MetricsSample};
#[cfg(test)]
use super::target::MetricsEndpoint;
use super::target::TopTarget;

/// Time between two rounds of requests.
pub(super) const REFRESH: Duration = Duration::from_secs(1);
/// Rates are taken over this time: processes update their metrics once a second, so that rates over a shorter time would
/// flicker.
const WINDOW: Duration = Duration::from_secs(5);
/// Targets that are asked at the same time.
const ASKED_MAX: usize = 16;

/// A target and its last answers.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) target: TopTarget,
    /// The answers of about the last five seconds, the oldest first.
    samples: VecDeque<MetricsSample>,
    pub(super) silence: Option<Silence>,
}

/// A target that does not answer.
#[derive(Debug, Clone)]
pub(super) struct Silence {
    /// Time of the first request that had no answer.
    pub(super) since: SystemTime,
    pub(super) begun: Instant,
    pub(super) why: String,
    /// True if the target has answered before.
    pub(super) has_answered: bool,
}

impl Watched {
    pub(super) fn new(target: TopTarget) -> Self {
        Self { target, samples: VecDeque::new(), silence: None }
    }

    /// Makes a target with two answers for tests, the second one later by `between`.
    #[cfg(test)]
    pub(super) fn of_samples([first, mut last]: [MetricsSample; 2], between: Duration) -> Self {
        last.at = first.at + between;
        let target = TopTarget { name: String::new(), endpoint: MetricsEndpoint::Tcp(String::new()) };
        Self { target, samples: VecDeque::from([first, last]), silence: None }
    }

    fn handle(&mut self, asked: (Instant, SystemTime), answer: Result<MetricsSample, String>) {
        match answer {
            Ok(sample) => {
                // Answers before a silence are removed: a rate over the silence says nothing about the present.
                if self.silence.take().is_some() {
                    self.samples.clear();
                }
                let oldest = sample.at.checked_sub(WINDOW);
                while self.samples.len() > 1 && oldest.is_some_and(|oldest| self.samples[0].at < oldest) {
                    self.samples.pop_front();
                }
                self.samples.push_back(sample);
            }
            Err(why) => {
                let begun = self.silence.as_ref().map_or(asked, |silence| (silence.begun, silence.since));
                let (begun, since) = begun;
                self.silence = Some(Silence { since, begun, why, has_answered: !self.samples.is_empty() });
            }
        }
    }

    /// Returns the last answer, if the target answers.
    pub(super) fn sample(&self) -> Option<&MetricsSample> {
        self.samples.back().filter(|_| self.silence.is_none())
    }

    /// Returns a series' increase over the window, and the window in seconds; `None` before the second answer.
    fn increase(&self, name: &str, series: &MetricSeries) -> Option<(f64, f64)> {
        let (first, last) = (self.samples.front()?, self.sample()?);
        let seconds = (last.at - first.at).as_secs_f64();
        (seconds > 0.0).then(|| (last.increase(name, series, first), seconds))
    }

    /// Returns a series' increase a second; `None` before the second answer.
    pub(super) fn rate_of(&self, name: &str, series: &MetricSeries) -> Option<f64> {
        self.increase(name, series).map(|(increase, seconds)| increase / seconds)
    }

    /// Returns the increase a second of all series of a name together; `None` without such a series or before the second
    /// answer.
    pub(super) fn rate(&self, name: &str) -> Option<f64> {
        let all = self.sample()?.all(name);
        let rates: Vec<f64> = all.iter().filter_map(|series| self.rate_of(name, series)).collect();
        (!rates.is_empty()).then(|| rates.iter().sum())
    }

    /// Returns the sum of a gauge's series; `None` if the target has no such gauge.
    pub(super) fn gauge(&self, name: &str) -> Option<f64> {
        self.sample()?.sum(name)
    }
}

/// Asks all targets once, several at a time. Ends when the slowest has answered or its time is over.
pub(super) fn ask_all(watched: &mut [Watched], token: Option<&str>) {
    let asked = (Instant::now(), SystemTime::now());
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<&mut Watched>> = watched.iter_mut().map(Mutex::new).collect();
    std::thread::scope(|scope| {
        for _ in 0..ASKED_MAX.min(slots.len()) {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut one = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    let answer = fetch(&one.target, token)
                        .and_then(|text| MetricsSample::parse(&text, Instant::now()));
                    one.handle(asked, answer);
                }
            });
        }
    });
}
