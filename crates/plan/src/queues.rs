//! Every queue on the path to a collector: burst, capacity, loss.

use fanin_network::InputLinks;
use fanin_queueing::pause_headroom;
use fanin_scenario::{PauseMode, Scenario};
use fanin_units::{Bytes, Frequency, Rate, Ratio};

use crate::bounds::{EventSize, PortChoice, SharedLoad, overflow_share, peak_occupancy};
use crate::bracket::{LossBracket, busy_share, crowded_share, threshold_shares};
use crate::certain::{largest_waits, room_most, sure_to_wait};
use crate::derived::{Derived, brief, percent};
use crate::event_burst::Burst;
use crate::places::{QueuePlace, places};
use crate::system::{EventSpread, SystemFigures};
use crate::techniques::TECHNIQUES;

/// Shares of overflowing events below this count as zero.
const OVERFLOW_SHARE_MIN: Ratio = Ratio::new(10);

/// The outcome of a burst at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstOutcome {
    /// Everything that can wait at once fits.
    Fits,
    /// The burst of one event, or of an even spread of events, fits. A burst under first come, first served may not fit.
    MayLose,
    /// More bytes can wait at once than fit: frames are lost.
    Loses,
    /// The switch stops its neighbours instead of losing frames.
    HoldsBack,
    /// The queue has no limit.
    Unlimited,
}

/// Losses of a queue, as shares of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    /// Never: the queue fits all bytes that can be outstanding at once.
    Never,
    /// This share of the events loses frames by its size alone.
    InShare(Ratio),
    /// In every event.
    Always,
    /// Losses depend on effects outside of the model: the order of frames, overlapping events, sizes without an upper bound.
    Depends,
}

/// From this share of overflowing events on, all events count as overflowing.
const ALWAYS_SHARE: Ratio = Ratio::new(999_500);

/// One queue on the way to a collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Name of its place, such as `tor->collector`.
    pub name: String,
    /// Rate at which a burst enters.
    pub inflow: Rate,
    /// Rate at which the burst leaves.
    pub outflow: Rate,
    /// The bytes in flight at once, in frames.
    pub burst: Derived<Bytes>,
    /// The peak occupancy, in frames.
    pub peak: Derived<Bytes>,
    /// The capacity of the queue; `None` if it has no limit.
    pub capacity: Option<Bytes>,
    /// Share of events that overflow the queue without any other event.
    pub overflow_share: Option<Derived<Ratio>>,
    /// The verdict, for the plan's quantile of events.
    pub outcome: BurstOutcome,
    /// Losses of the queue.
    pub losses: Losses,
    /// Bounds of its losses; `None` if the queue has no limit, or the switch stops its neighbours.
    pub bracket: Option<LossBracket>,
    /// The verdict in words and numbers.
    pub reason: String,
}

/// Judges every queue on the way to a collector, the last one first.
pub(crate) fn queues(s: &Scenario, system: &SystemFigures, burst: &Burst, quantile: Ratio) -> Vec<Queue> {
    let places = places(&system.classes, &system.switches, system.collectors, system.is_closed_loop);
    places.iter().map(|place| judge(s, system, burst, place, quantile)).collect()
}

fn judge(
    s: &Scenario,
    system: &SystemFigures,
    burst: &Burst,
    place: &QueuePlace<'_>,
    quantile: Ratio,
) -> Queue {
    let switch = place.switch;
    let ring = switch.daqring.rate_below(place.outflow).filter(|_| place.has_rings);
    let outflow = ring.unwrap_or(place.outflow);
    let overhead = switch.frame_overhead.checked_mul(burst.packets.get()).unwrap_or(Bytes::MAX);
    let each = part_of(burst.frames.value.saturating_add(overhead), place);
    let bursts = bursts_at_once(system, place, each, outflow);
    let frames = each.checked_mul(bursts).unwrap_or(Bytes::MAX);
    let at_once = part_of(burst.at_once, place).checked_mul(bursts).unwrap_or(Bytes::MAX);
    let at_once = at_once.min(frames);
    let peak = peak(frames, at_once, place.inflow, outflow);
    let active = active_collectors(system, place);
    let capacity = capacity(place, burst, active);
    let mut queue = Queue {
        name: place.name.to_owned(),
        inflow: place.inflow,
        outflow,
        burst: split(&burst.frames, frames, place.split(), bursts),
        peak,
        capacity,
        overflow_share: None,
        outcome: BurstOutcome::Fits,
        losses: Losses::Depends,
        bracket: None,
        reason: String::new(),
    };
    let size = EventSize {
        mean: frames,
        sigma: if burst.varies_with_size { sigma_of_sum(system.sigma, bursts) } else { 0.0 },
    };
    // If windows grow, half of the bytes beyond the first windows wait.
    let grown = |capacity: Bytes| {
        if at_once == frames {
            Bytes::ZERO
        } else {
            capacity.saturating_add(capacity).saturating_sub(at_once)
        }
    };
    let mut shares = None;
    if let Some(capacity) = capacity
        && size.sigma > 0.0
    {
        let overflow = overflow_share(capacity, size, place.inflow, outflow, grown(capacity));
        shares = Some([overflow.value; 2]);
        queue.overflow_share = Some(overflow);
    }
    let has_threshold = switch.layout(&[place.is_uplink]).is_some_and(|layout| layout.has_threshold());
    if has_threshold && place.neighbours > 1 && !system.is_closed_loop && burst.is_unshaped {
        let flow = [place.inflow, outflow];
        shares = Some(threshold_shares(system, place, size, flow, &grown, active));
    }
    let tolerated = Ratio::ONE.saturating_sub(quantile);
    let takes_turns = TECHNIQUES.iter().any(|technique| (technique.takes_turns)(s));
    let pool = SharedDemand::new(system, burst, &queue, place, active, quantile);
    let waits = brief(queue.peak.value);
    shares = pool.as_ref().and_then(|pool| pool.shares).or(shares);
    // The largest event bounds all events, whatever distribution is fitted to the sizes.
    if let Some(capacity) = capacity
        && burst.is_unshaped
        && largest_waits(system, place, outflow).is_some_and(|waits| waits <= capacity)
        && shares.is_some()
    {
        shares = Some([Ratio::ZERO; 2]);
    }
    let [share, share_max] = shares.unwrap_or_default();
    let sure = sure_to_wait(s, system, place, outflow);
    let is_sure = room_most(place, capacity).is_some_and(|room| sure > room);
    let pool_models = pool.as_ref().is_some_and(|pool| pool.shares.is_some());
    let together = pool.as_ref().map(|pool| (pool.demand.max(queue.peak.value), pool.memory));
    (queue.outcome, queue.reason) = match capacity {
        None => (BurstOutcome::Unlimited, format!("{waits} wait, and the queue has no limit")),
        Some(_) if takes_turns => {
            (BurstOutcome::Fits, "transfers take turns, so that next to nothing waits".to_owned())
        }
        Some(capacity) if queue.peak.value > capacity || (!pool_models && share > tolerated) => {
            let arrivals = arrivals_text(system, burst, frames, place.split(), bursts);
            let mut reason =
                format!("{arrivals}, of which {waits} wait at once > {} at {}", brief(capacity), place.name);
            if queue.peak.value <= capacity {
                reason = format!(
                    "{arrivals}; {waits} fit {} at {}, but {} of the events are larger than fits",
                    brief(capacity),
                    place.name,
                    percent(share)
                );
            }
            stops(system, place, capacity, reason)
        }
        Some(capacity) if !pool_models && share_max > tolerated => (
            BurstOutcome::MayLose,
            format!(
                "{waits} fit {} at {} where hosts take turns; where they do not, up to {} of the events find too many \
                 ports filling",
                brief(capacity),
                place.name,
                percent(share_max)
            ),
        ),
        Some(capacity) => match pool {
            Some(ref pool) => pool.judge(system, place),
            None if system.spread == EventSpread::InTurn
                || system.is_closed_loop
                || queue.peak.value.is_zero() =>
            {
                (BurstOutcome::Fits, format!("{waits} wait, {} fit at {}", brief(capacity), place.name))
            }
            None if !burst.is_unshaped => (
                BurstOutcome::Fits,
                format!("{waits} wait ({}), {} fit at {}", burst.limit, brief(capacity), place.name),
            ),
            None => collisions(system, &queue, capacity, place),
        },
    };
    let is_known = share == share_max;
    let shares_known = shares.filter(|_| is_known).map(|[share, _]| share);
    queue.losses = match (queue.outcome, capacity, shares) {
        (BurstOutcome::Unlimited, ..) => Losses::Never,
        (BurstOutcome::Loses, ..) if share >= ALWAYS_SHARE && is_sure => Losses::Always,
        (BurstOutcome::Loses, ..) if share >= ALWAYS_SHARE => Losses::Depends,
        // Estimates below the allowed share are not reported as losses.
        (BurstOutcome::Loses | BurstOutcome::Fits, ..) if is_known && share > tolerated => {
            Losses::InShare(share)
        }
        (BurstOutcome::Loses, Some(capacity), None) if queue.peak.value > capacity && is_sure => {
            Losses::Always
        }
        _ => Losses::Depends,
    };
    if queue.outcome == BurstOutcome::Fits && is_known && !share.is_zero() {
        let effect = if pool_models { "find more in the memory" } else { "are larger than fits" };
        queue.reason.push_str(&format!(", but {} of the events {effect}", percent(share)));
    }
    if let Some(capacity) = capacity.filter(|_| queue.outcome != BurstOutcome::HoldsBack) {
        // Events that meet at one port may lose frames as well.
        let meets = crowded_share(system, outflow, queue.peak.value, capacity);
        // Background traffic fills queues, too, by an unknown amount.
        let is_alone = s.background.connections == 0;
        let is_bounded = burst.is_unshaped && !system.is_closed_loop && !takes_turns && is_alone;
        let shares = is_bounded.then(|| {
            let together = if pool_models { Ratio::ZERO } else { meets };
            [if is_sure { share } else { Ratio::ZERO }, share_max.saturating_add(together).min(Ratio::ONE)]
        });
        let (waiting, fits) = together.unwrap_or((queue.peak.value, capacity));
        let waiting =
            if queue.losses == Losses::Depends && waiting > fits { sure.min(fits) } else { waiting };
        // Room for twice the bytes holds two events that meet. Bytes that a technique limits do not increase if events meet.
        let has_room_for_two = !burst.is_unshaped || waiting.saturating_add(waiting) <= fits;
        let meets_at_random = pool.is_none() && burst.is_unshaped && queue.peak.value <= capacity;
        let expected = match queue.outcome {
            BurstOutcome::Fits | BurstOutcome::Loses if shares_known.is_some() => shares_known,
            BurstOutcome::Fits if has_room_for_two => Some(Ratio::ZERO),
            BurstOutcome::Loses if queue.peak.value > capacity => Some(Ratio::ONE),
            BurstOutcome::Loses if meets_at_random => Some(busy_share(system, outflow).min(Ratio::ONE)),
            _ => None,
        };
        let expected = expected.filter(|share| is_alone || !share.is_zero());
        queue.bracket = Some(LossBracket::new(s, system, place, waiting, fits, shares, expected));
    }
    queue
}

/// Returns the verdict if a single event fits, but two events may arrive at one collector at a time.
fn collisions(
    system: &SystemFigures,
    queue: &Queue,
    capacity: Bytes,
    place: &QueuePlace<'_>,
) -> (BurstOutcome, String) {
    let waits = queue.peak.value;
    if waits.saturating_add(waits) <= capacity {
        return (
            BurstOutcome::Fits,
            format!("{} wait, {} fit at {}", brief(waits), brief(capacity), place.name),
        );
    }
    let busy = busy_share(system, queue.outflow);
    let text = format!(
        "one event fits ({} of {}), two at once do not; assigned without regard to hosts, about {} of the events \
         find another on its way at {}",
        brief(waits),
        brief(capacity),
        brief(busy),
        place.name
    );
    match system.spread {
        _ if busy <= OVERFLOW_SHARE_MIN => (BurstOutcome::Fits, text),
        EventSpread::Fcfs => (BurstOutcome::MayLose, text),
        EventSpread::InTurn | EventSpread::AtRandom => stops(system, place, capacity, text),
    }
}

fn arrivals_text(system: &SystemFigures, burst: &Burst, frames: Bytes, split: u64, bursts: u64) -> String {
    let mut text = if burst.is_unshaped {
        let events = system.overlap;
        let payload = system.answer.payload * system.answers_at_once() * events;
        let events = if events > 1 { format!("{events} events at once, ") } else { String::new() };
        format!("burst {events}{} + headers = {}", brief(payload), brief(burst.frames.value))
    } else {
        format!("burst {} ({})", brief(burst.frames.value), burst.limit)
    };
    if bursts > 1 {
        text.push_str(&format!(" for each of {bursts} collectors at once"));
    }
    if split > 1 {
        text.push_str(&format!(", {} on each of {split} ways", brief(frames)));
    }
    text
}

/// Returns the outcome of a burst above the capacity: loss, unless the switch sends PAUSE in time. PAUSE needs room at each
/// input for its threshold, and for the bytes then in flight (IEEE 802.1Q annex N).
fn stops(
    system: &SystemFigures,
    place: &QueuePlace<'_>,
    capacity: Bytes,
    reason: String,
) -> (BurstOutcome, String) {
    let pause = &place.switch.pause;
    if pause.mode == PauseMode::Off {
        return (BurstOutcome::Loses, reason);
    }
    let frame = system.segments.wire_max();
    let signal = Bytes::new(u64::from(system.segments.framing.pause_bytes()));
    let room = |links: &InputLinks| {
        let headroom = pause_headroom(links.rate, links.delay, pause.reaction, frame, signal);
        let each = pause.xoff.saturating_add(headroom);
        each.checked_mul(links.count).unwrap_or(Bytes::MAX)
    };
    let needed = place.inputs.iter().map(room).fold(Bytes::ZERO, Bytes::saturating_add);
    if needed <= capacity {
        return (BurstOutcome::HoldsBack, reason);
    }
    let ports: u64 = place.inputs.iter().map(|links| links.count).sum();
    let late = format!(
        "; PAUSE comes too late: {ports} ports may each hold {} and the frames in flight, {} together",
        brief(pause.xoff),
        brief(needed)
    );
    (BurstOutcome::Loses, reason + &late)
}

/// Returns the part of a collector's bytes that passes one queue, rounded up.
pub(crate) fn part_of(bytes: Bytes, place: &QueuePlace<'_>) -> Bytes {
    let part = (u128::from(bytes.get()) * u128::from(place.part)).div_ceil(u128::from(place.whole));
    Bytes::new(u64::try_from(part).unwrap_or(u64::MAX))
}

fn split(burst: &Derived<Bytes>, frames: Bytes, ways: u64, bursts: u64) -> Derived<Bytes> {
    if ways == 1 && bursts == 1 {
        return Derived { value: frames, ..burst.clone() };
    }
    Derived::new(
        "burst",
        frames,
        "bursts at once × burst / ways",
        format!("{bursts} × {} / {ways}", brief(burst.value)),
        burst.source,
    )
}

/// Computes the scale parameter of a log-normal distribution with the relative variance of a sum of `events` log-normal sizes
/// (Fenton and Wilkinson).
fn sigma_of_sum(sigma: f64, events: u64) -> f64 {
    libm::sqrt(libm::log1p(libm::expm1(sigma * sigma) / events as f64))
}

/// Estimates the number of bursts to different collectors that pass one queue at the same time.
fn bursts_at_once(system: &SystemFigures, place: &QueuePlace<'_>, burst: Bytes, outflow: Rate) -> u64 {
    if place.sharers == 1 || system.is_closed_loop {
        return place.sharers;
    }
    // Little's law with the time that a burst takes to leave, rounded up.
    let bits = u128::from(burst.get()) * 8 * u128::from(system.rate.value.get());
    let bursts = bits.div_ceil(1_000 * u128::from(outflow.get()) * u128::from(place.events_one_in));
    u64::try_from(bursts).unwrap_or(u64::MAX).clamp(1, place.sharers)
}

/// Computes the peak occupancy. In slow start each acknowledged byte releases two bytes, so that half of the bytes beyond the
/// first windows wait.
fn peak(frames: Bytes, at_once: Bytes, inflow: Rate, outflow: Rate) -> Derived<Bytes> {
    let fluid = peak_occupancy(frames, inflow, outflow);
    let rest = frames.saturating_sub(at_once);
    let grown = at_once.saturating_add(Bytes::new(rest.get().div_ceil(2)));
    if grown >= fluid.value {
        return fluid;
    }
    Derived::new(
        "peak_occupancy",
        grown,
        "first windows + half of the rest, released in slow start",
        format!("{} + {} / 2", brief(at_once), brief(rest)),
        "RFC 5681 §3.1",
    )
}

/// Estimates the collectors of this memory that collect at the same time, at least one.
fn active_collectors(system: &SystemFigures, place: &QueuePlace<'_>) -> u64 {
    if place.neighbours == 1 {
        return 1;
    }
    if system.is_closed_loop {
        return place.neighbours;
    }
    // Little's law, rounded up.
    let events = u128::from(system.rate.value.get()) * u128::from(system.ideal.value.get());
    let active = events.div_ceil(1_000_000_000_000_000 * u128::from(place.events_one_in));
    u64::try_from(active).unwrap_or(u64::MAX).clamp(1, place.neighbours)
}

fn capacity(place: &QueuePlace<'_>, burst: &Burst, active: u64) -> Option<Bytes> {
    let switch = place.switch;
    if place.has_rings {
        // A ring's limit counts frames of any size.
        let slots = u128::from(switch.daqring.frames);
        let bytes = slots * u128::from(burst.frames.value.get()) / u128::from(burst.packets.get().max(1));
        return Some(Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX)));
    }
    switch.layout(&[place.is_uplink])?.output_limit(0, active)
}

/// The bytes that all collectors with queues in one memory need together.
struct SharedDemand {
    memory: Bytes,
    /// Demand for the most even assignment that the policy may give.
    demand: Bytes,
    /// Demand for the least even assignment that the policy may give.
    demand_at_random: Bytes,
    /// Shares of the events that overflow the memory, for the two assignments; `None` without a model.
    shares: Option<[Ratio; 2]>,
    /// The collectors, in words.
    takers: String,
}

impl SharedDemand {
    fn new(
        system: &SystemFigures,
        burst: &Burst,
        queue: &Queue,
        place: &QueuePlace<'_>,
        active: u64,
        quantile: Ratio,
    ) -> Option<Self> {
        if place.neighbours < 2 || place.has_rings {
            return None;
        }
        // If frames are charged to the output, the collectors of a split switch are in two pools. If to the
        // input, all frames from the uplinks are in the uplinks' pool.
        let outputs = vec![place.is_uplink; usize::try_from(place.neighbours).ok()?];
        let memory = place.switch.layout(&outputs)?.common_pools()?;
        if burst.is_unshaped && !system.is_closed_loop && system.steps.len() == 1 {
            let load = SharedLoad {
                size: EventSize { mean: queue.burst.value, sigma: system.sigma },
                rate: Frequency::new((system.rate.value.get() / place.events_one_in).max(1)),
                inflow: queue.inflow,
                outflow: queue.outflow,
                ports: place.neighbours,
                assignment: PortChoice::InTurn,
            };
            if load.port_load() < Ratio::ONE {
                let at_random = SharedLoad { assignment: PortChoice::AtRandom, ..load };
                let (least, most) = match system.spread {
                    EventSpread::InTurn => (load, load),
                    EventSpread::Fcfs => (load, at_random),
                    EventSpread::AtRandom => (at_random, at_random),
                };
                let [demand, demand_at_random] =
                    [least, most].map(|load| load.memory(quantile.as_f64()).value);
                let shares = Some([least, most].map(|load| load.share_above(memory)));
                let takers = format!(
                    "the events of {} collectors, in {} of the time,",
                    place.neighbours,
                    brief(quantile)
                );
                return Some(Self { memory, demand, demand_at_random, shares, takers });
            }
        }
        let demand = queue.peak.value.checked_mul(active).unwrap_or(Bytes::MAX);
        let takers = format!("{active} collectors at once");
        Some(Self { memory, demand, demand_at_random: demand, shares: None, takers })
    }

    fn judge(&self, system: &SystemFigures, place: &QueuePlace<'_>) -> (BurstOutcome, String) {
        let (Self { takers, .. }, name) = (self, place.name);
        let [demand, at_random, memory] = [self.demand, self.demand_at_random, self.memory].map(brief);
        if self.demand > self.memory {
            let reason = format!("{takers} take {demand} together > {memory} shared at {name}");
            return stops(system, place, self.memory, reason);
        }
        if self.demand_at_random > self.memory {
            let text = format!(
                "{takers} take {demand} together where hosts take turns, but up to {at_random} > {memory} where they do \
                 not, at {name}"
            );
            return (BurstOutcome::MayLose, text);
        }
        (BurstOutcome::Fits, format!("{takers} take {demand} together, {memory} shared at {name}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Simulates a queue in steps of one packet. Each departing packet is acknowledged a round trip later, and releases two
    /// more.
    fn slow_start_peak(packets: u64, first: u64, inflow: u64, round_trip: usize) -> u64 {
        let (mut waiting, mut arriving, mut unsent, mut peak) = (0, first, packets - first, 0);
        let mut acknowledged: VecDeque<bool> = (0..round_trip).map(|_| false).collect();
        while waiting + arriving + unsent > 0 {
            let arrived = arriving.min(inflow);
            waiting += arrived;
            arriving -= arrived;
            let leaves = waiting > 0;
            waiting -= u64::from(leaves);
            peak = peak.max(waiting);
            acknowledged.push_back(leaves);
            if acknowledged.pop_front() == Some(true) {
                let released = unsent.min(2);
                unsent -= released;
                arriving += released;
            }
        }
        peak
    }

    #[test]
    fn half_of_what_slow_start_releases_waits() {
        let rate = |links: u64| Rate::new(1_000_000_000 * links);
        let frame = 1_000;
        for (packets, first, inflow) in
            [(1_600, 480, 20), (1_600, 160, 20), (400, 300, 2), (1_600, 1_600, 20)]
        {
            let bytes = |packets| Bytes::new(packets * frame);
            let computed = peak(bytes(packets), bytes(first), rate(inflow), rate(1)).value.get() / frame;
            let stepped = slow_start_peak(packets, first, inflow, 8);
            assert!(
                stepped <= computed && stepped * 10 >= computed * 9,
                "{packets} {first} {inflow}: computed {computed}, stepped {stepped}"
            );
        }
    }

    #[test]
    fn a_sum_of_events_varies_less_than_one() {
        assert!((sigma_of_sum(0.25, 1) - 0.25).abs() < 1e-12);
        assert!((sigma_of_sum(0.25, 4) - 0.126).abs() < 1e-3);
        assert!(sigma_of_sum(0.0, 4).abs() < 1e-12);
    }
}
