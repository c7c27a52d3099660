//! The bracket of a verdict `depends`: bounds of the share of events that lose frames, and of the waiting bytes.

use fanin_scenario::Scenario;
use fanin_units::{Bytes, Rate, Ratio};

use crate::bounds::{EventSize, overflow_share};
use crate::derived::{brief, percent, ratio_of};
use crate::places::QueuePlace;
use crate::proof::waiting_max;
use crate::system::{EventSpread, SystemFigures};

/// Lower and upper bounds of one queue's losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossBracket {
    /// The least and the largest share of the events that lose frames; `None` without a bound, as in a closed loop.
    pub share: Option<[Ratio; 2]>,
    /// The share that the model expects; `None` without an estimate.
    pub expected: Option<Ratio>,
    /// The most bytes that wait if the bursts of events do not meet.
    pub waiting: Bytes,
    /// The most bytes that can wait for any overlap of events; `None` without a bound.
    pub waiting_max: Option<Bytes>,
    /// Bytes for which the queue has room.
    pub fits: Bytes,
}

impl LossBracket {
    /// Makes the bracket of a queue with room for `fits`, in which `waiting` bytes wait if events do not overlap.
    pub(crate) fn new(
        s: &Scenario,
        system: &SystemFigures,
        place: &QueuePlace<'_>,
        waiting: Bytes,
        fits: Bytes,
        shares: Option<[Ratio; 2]>,
        expected: Option<Ratio>,
    ) -> Self {
        let switch = place.switch;
        let most = waiting_max(s, system, switch.frame_overhead).ok();
        // A dedicated port at the collectors' switch carries the data of one collector only.
        let is_coupled = switch.layout(&[place.is_uplink]).is_none_or(|layout| layout.couples_outputs());
        let own = !is_coupled && place.sharers == 1 && place.neighbours > 0;
        let waiting_max = most.map(|most| if own { most.to_collector } else { most.total }.max(waiting));
        let share = if waiting_max.is_some_and(|most| most <= fits) {
            Some([Ratio::ZERO; 2])
        } else {
            // A largest share of zero is the model's estimate and no bound.
            shares.filter(|[_, most]| !most.is_zero()).map(|[least, most]| [least.min(most), most])
        };
        let expected = match share {
            Some([_, most]) if most.is_zero() => Some(most),
            Some([least, most]) => expected.map(|expected| expected.clamp(least, most)),
            None => expected,
        };
        Self { share, expected, waiting, waiting_max, fits }
    }

    /// Writes the waiting bytes of the queue `name` in words.
    pub(crate) fn waiting_text(&self, name: &str) -> String {
        let (waiting, fits) = (brief(self.waiting), brief(self.fits));
        match self.waiting_max {
            Some(most) if most > self.waiting => {
                format!("between {waiting} and {} wait at {name}, where {fits} fit", brief(most))
            }
            Some(_) => format!("{waiting} wait at {name}, where {fits} fit"),
            None => format!("{waiting} or more wait at {name}, where {fits} fit"),
        }
    }

    /// Writes the bound of the waiting bytes in words, to follow a sentence on the queue. `None` if it adds nothing.
    pub(crate) fn waiting_max_text(&self) -> Option<String> {
        let most = self.waiting_max.filter(|most| *most > self.waiting)?;
        Some(format!("at most {} can wait there", brief(most)))
    }

    /// Writes the range of shares, such as `0 to 5.4 %`; `None` without one.
    pub(crate) fn range_text(&self) -> Option<String> {
        let [least, most] = self.share.filter(|[_, most]| !most.is_zero())?;
        let text = |share: Ratio| if share.is_zero() { "0 %".to_owned() } else { percent(share) };
        let (least, most) = (text(least), text(most));
        Some(if least == most { most } else { format!("{} to {most}", least.trim_end_matches(" %")) })
    }
}

/// Returns the share of events that meet another one at their collector, with hosts chosen at random.
pub(crate) fn busy_share(system: &SystemFigures, outflow: Rate) -> Ratio {
    ratio_of(
        system.offered(system.answer.buffered).get(),
        outflow.get().saturating_mul(system.collectors).max(1),
    )
}

/// Returns the share of events that meet others at their collector, where `waits` bytes of each together exceed `fits`.
pub(crate) fn crowded_share(system: &SystemFigures, outflow: Rate, waits: Bytes, fits: Bytes) -> Ratio {
    let others = (fits.get() / waits.get().max(1)).clamp(1, 32) as i32;
    let share = libm::pow(busy_share(system, outflow).as_f64(), f64::from(others));
    // Both events that meet may lose frames.
    Ratio::new(libm::round(2e6 * share).min(1e6) as u64)
}

/// Most terms of the sum over ports that fill at once.
const ACTIVE_MAX: u64 = 1_000;

/// Returns the share of the events that exceed a port's dynamic threshold, as lower and upper estimate.
///
/// With hosts in turn, `active` ports fill at once. With events at random, their number follows Poisson's distribution. First
/// come, first served lies between a port that fills alone and the larger of these two.
pub(crate) fn threshold_shares(
    system: &SystemFigures,
    place: &QueuePlace<'_>,
    size: EventSize,
    flow: [Rate; 2],
    grown: &dyn Fn(Bytes) -> Bytes,
    active: u64,
) -> [Ratio; 2] {
    let layout = place.switch.layout(&[place.is_uplink]).expect("a threshold is no ring");
    let share = |ports: u64| {
        let capacity = layout.output_limit(0, ports).expect("a pool has a size");
        overflow_share(capacity, size, flow[0], flow[1], grown(capacity)).value.as_f64()
    };
    let in_turn = share(active);
    // Little's law.
    let mean = system.rate.value.get() as f64 * system.ideal.value.get() as f64
        / (1e15 * place.events_one_in as f64);
    let most = place.neighbours.min(ACTIVE_MAX);
    let (mut at_random, mut probability, mut rest) = (0.0, libm::exp(-mean), 1.0);
    for others in 0..most.saturating_sub(1) {
        at_random += probability * share(others + 1);
        rest -= probability;
        probability *= mean / (others + 1) as f64;
    }
    at_random += rest.max(0.0) * share(most.max(1));
    let ratio = |share: f64| Ratio::new(libm::round(share * 1e6) as u64);
    let [in_turn, at_random] = [in_turn, at_random].map(ratio);
    match system.spread {
        EventSpread::InTurn => [in_turn; 2],
        // The lower estimate of first come, first served is a queue that fills alone.
        EventSpread::Fcfs => [ratio(share(1)), in_turn.max(at_random)],
        EventSpread::AtRandom => [at_random; 2],
    }
}
