//! Request-side traffic shaping with credits: thesis §4.3.

use fanin_units::{Bytes, Duration, Rate, Ratio};

use crate::derived::{Count, Derived, brief, ratio_of};
use crate::wire::{SegmentFraming, WireMessage};

/// The requests for one event: their number, and the fragments of one readout host in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Requests an event takes.
    pub per_event: u64,
    /// Fragments of a request; each costs one credit.
    pub fragments: u64,
    /// The answer to one request on the wire.
    pub answer: WireMessage,
}

impl Requests {
    /// Makes requests of `fragments` fragments of `fragment` bytes each; an event takes `per_event` of them.
    pub fn new(framing: &SegmentFraming, per_event: u64, fragments: u64, fragment: Bytes) -> Self {
        Self { per_event, fragments, answer: framing.message(fragment * fragments) }
    }

    /// Returns the number of requests that `credits` permit at once. A request is sent whole or waits (thesis §4.3.1).
    pub(crate) fn concurrent(&self, credits: u64) -> u64 {
        credits / self.fragments
    }
}

/// Computes the smallest window that fills the last hop: `rate × RTT + block` (thesis §4.3.2).
///
/// `block` is the smallest unit of data that is sent: the answer to one request.
pub fn credit_window(rate: Rate, rtt: Duration, block: Bytes) -> Derived<Bytes> {
    Derived::new(
        "credit_window",
        rate.bytes_in(rtt).saturating_add(block),
        "rate × RTT + block",
        format!("{} × {} + {}", brief(rate), brief(rtt), brief(block)),
        "thesis §4.3.2",
    )
}

/// Computes the credits that fill `window` with fragments, rounded up to whole requests.
///
/// # Panics
/// If a request is empty.
pub fn credits_for_window(window: Bytes, requests: &Requests) -> Derived<Count> {
    let blocks = window.div_ceil(requests.answer.payload);
    Derived::new(
        "credits_for_window",
        Count(blocks.saturating_mul(requests.fragments)),
        "⌈window / block⌉ × fragments a request",
        format!("⌈{} / {}⌉ × {}", brief(window), brief(requests.answer.payload), requests.fragments),
        "thesis §4.3.2",
    )
}

/// Computes the most switch memory that the answers to requests with `credits` can take at once, headers included.
pub fn credit_burst(credits: u64, requests: &Requests) -> Derived<Bytes> {
    let concurrent = requests.concurrent(credits);
    Derived::new(
        "credit_burst",
        requests.answer.buffered.checked_mul(concurrent).unwrap_or(Bytes::MAX),
        "⌊credits / fragments a request⌋ × frames of an answer",
        format!("⌊{credits} / {}⌋ × {}", requests.fragments, brief(requests.answer.buffered)),
        "thesis §4.3.1",
    )
}

/// Computes the most credits whose burst a queue of `buffer` bytes absorbs while it drains at `outflow`.
///
/// # Panics
/// If a request is empty or `inflow` is zero.
pub fn credits_max(buffer: Bytes, inflow: Rate, outflow: Rate, requests: &Requests) -> Derived<Count> {
    let burst = super::burst_max(buffer, inflow, outflow).value;
    let answer = requests.answer.buffered;
    Derived::new(
        "credits_max",
        Count((burst.get() / answer.get()).saturating_mul(requests.fragments)),
        "⌊largest burst / frames of an answer⌋ × fragments a request",
        format!("⌊{} / {}⌋ × {}", brief(burst), brief(answer), requests.fragments),
        "thesis §4.3.2",
    )
}

/// Computes the share of the last hop that `credits` can keep busy.
///
/// With n requests under way, n answers leave in every cycle of one answer and one round trip.
///
/// # Panics
/// If rate and round-trip time are both zero and the answer is empty.
pub fn credit_utilisation(credits: u64, requests: &Requests, rate: Rate, rtt: Duration) -> Derived<Ratio> {
    let in_flight = requests.answer.wire.checked_mul(requests.concurrent(credits)).unwrap_or(Bytes::MAX);
    let window = rate.bytes_in(rtt).saturating_add(requests.answer.wire);
    let share = ratio_of(in_flight.get(), window.get());
    Derived::new(
        "credit_utilisation",
        if share > Ratio::ONE { Ratio::ONE } else { share },
        "wire bytes of the answers under way / (rate × RTT + answer), at most 1",
        format!(
            "{} / ({} × {} + {})",
            brief(in_flight),
            brief(rate),
            brief(rtt),
            brief(requests.answer.wire)
        ),
        "thesis §4.3.2",
    )
}

/// Computes the least collection time under credits. The last hop is busy for only [`credit_utilisation`] of that time.
///
/// `None` if the credits are fewer than one request costs, so that nothing is collected, or if the time exceeds 213 days.
pub fn credit_collection_time(
    credits: u64,
    requests: &Requests,
    rate: Rate,
    rtt: Duration,
) -> Option<Derived<Duration>> {
    let share = credit_utilisation(credits, requests, rate, rtt).value;
    if share.is_zero() {
        return None;
    }
    let wire = requests.answer.wire * requests.per_event;
    let busy = rate.checked_time_to_send(wire)?.checked_mul_ratio(1_000_000, share.get())?;
    Some(Derived::new(
        "collection_time_credits",
        rtt.saturating_add(busy),
        "RTT + wire bytes / (rate × utilisation)",
        format!("{} + {} / ({} × {})", brief(rtt), brief(wire), brief(rate), brief(share)),
        "thesis §4.3.2",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_credits_leave_the_link_idle() {
        let requests = Requests::new(&SegmentFraming::ETHERNET, 160, 12, Bytes::new(1_100));
        let (rate, rtt) = (Rate::new(1_000_000_000), Duration::from_micros(400));
        // 52.8 kB are four requests of 13.2 kB.
        let busy = credit_utilisation(48, &requests, rate, rtt);
        assert_eq!(busy.value, Ratio::new(874_023));
        let time = credit_collection_time(48, &requests, rate, rtt).unwrap().value;
        assert_eq!(time.as_nanos() / 10_000, 2_087);
        assert_eq!(credit_utilisation(60, &requests, rate, rtt).value, Ratio::ONE);
        assert_eq!(credit_collection_time(11, &requests, rate, rtt), None);
    }

    #[test]
    fn a_request_is_never_split() {
        let requests = Requests::new(&SegmentFraming::ETHERNET, 160, 12, Bytes::new(1_100));
        assert_eq!(credit_burst(23, &requests).value, requests.answer.buffered);
        assert_eq!(credit_burst(24, &requests).value, requests.answer.buffered * 2);
    }
}
