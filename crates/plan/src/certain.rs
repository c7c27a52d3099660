//! Certain losses: the least certain backlog against the most that the buffer holds.

use fanin_network::SwitchRole;
use fanin_scenario::{PauseMode, Scenario};
use fanin_units::{Bytes, Rate};

use crate::bounds::peak_occupancy;
use crate::places::QueuePlace;
use crate::proof::is_fixed;
use crate::queues::part_of;
use crate::system::SystemFigures;
use crate::techniques::TECHNIQUES;

/// Computes the bytes of one event that certainly wait at once: its first windows, less departures in the meantime. Answers are
/// assumed to arrive with the largest spread of their delays and requests. Zero if a technique may delay answers.
pub(crate) fn sure_to_wait(
    s: &Scenario,
    system: &SystemFigures,
    place: &QueuePlace<'_>,
    outflow: Rate,
) -> Bytes {
    let t = &s.transport;
    if TECHNIQUES.iter().any(|technique| (technique.delays_answers)(s)) {
        return Bytes::ZERO;
    }
    let windows = TECHNIQUES.iter().find_map(|technique| (technique.first_window)(s));
    let windows = windows.unwrap_or(t.initial_window.get());
    let most = TECHNIQUES.iter().filter_map(|technique| (technique.outstanding_max)(s, system)).min();
    let answers = most.unwrap_or(u64::MAX).min(system.answers_at_once());
    // Frames from other pods may arrive by few links, and more slowly than those of the own pod.
    let has_pods = system.has(SwitchRole::Spine);
    if has_pods || place.switch.pause.mode != PauseMode::Off {
        return Bytes::ZERO;
    }
    let mss = system.segments.mss();
    let windows = windows.min(t.receive_window.get() / mss);
    let frame = Bytes::new(system.segments.buffered(mss));
    let Some(answer) = least_answer(s, system) else { return Bytes::ZERO };
    let first = frame.checked_mul(windows).unwrap_or(Bytes::MAX).min(answer);
    let first = part_of(first * answers, place);
    let delays = if s.is_barrier() {
        Some(s.workload.service_delay_max)
    } else {
        // Normal delays lie within four standard deviations on either side.
        s.readout.response_delay_sd.checked_mul(8)
    };
    let requests = system.last_hop.checked_time_to_send(system.request.wire * answers);
    let spread = place
        .inflow
        .checked_time_to_send(first)
        .zip(requests)
        .and_then(|(time, requests)| time.checked_add(requests)?.checked_add(delays?));
    spread.map_or(Bytes::ZERO, |spread| first.saturating_sub(outflow.bytes_in(spread)))
}

/// Returns the bytes that nearly all answers exceed: the size of fixed answers, or a low quantile of log-normal ones. `None` if
/// fragments vary independently.
fn least_answer(s: &Scenario, system: &SystemFigures) -> Option<Bytes> {
    if is_fixed(s, system) {
        return Some(system.answer.buffered);
    }
    system.answer_max.is_none().then(|| {
        // One event in a thousand is smaller.
        let share = libm::exp(-3.1 * system.sigma - system.sigma * system.sigma / 2.0);
        Bytes::new((system.answer.buffered.get() as f64 * share) as u64)
    })
}

/// Returns the most bytes that a queue can hold while all others are empty; `None` without a limit.
pub(crate) fn room_most(place: &QueuePlace<'_>, capacity: Option<Bytes>) -> Option<Bytes> {
    if place.has_rings {
        return capacity;
    }
    let layout = place.switch.layout(&[place.is_uplink])?;
    let inputs = place.inputs.iter().map(|links| links.count).sum();
    // The frames from each input module have a memory of their own.
    layout.output_limit(0, 1)?.checked_mul(layout.modules_of(inputs))
}

/// Returns the most bytes of the largest event that wait at once; `None` if sizes have no upper bound.
pub(crate) fn largest_waits(system: &SystemFigures, place: &QueuePlace<'_>, outflow: Rate) -> Option<Bytes> {
    let payload = system.event_max?;
    let mss = system.segments.mss();
    // The end of each answer takes one more frame.
    let frames = payload.get().div_ceil(mss) + system.answers;
    let event = Bytes::new(system.segments.buffered(mss)).checked_mul(frames)?;
    Some(peak_occupancy(part_of(event, place), place.inflow, outflow).value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_does_not_divide_evenly_has_answers_of_two_sizes() {
        let sets = ["workload.kind=fixed-block", "workload.senders=4", "workload.request_size=40003 B"];
        let s = fanin_scenario::load("incast", &sets.map(str::to_owned)).unwrap().scenario;
        let system = SystemFigures::new(&s, None).unwrap();
        assert_eq!(system.answer_max, Some(Bytes::new(10_001)));
        assert_eq!(system.payload, Bytes::new(40_003));
        let smallest = system.segments.message(Bytes::new(10_000)).buffered;
        assert_eq!((system.answer.buffered, least_answer(&s, &system)), (smallest, Some(smallest)));
    }
}
