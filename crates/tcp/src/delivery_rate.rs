//! Delivery rate of a connection, estimated from its ACKs (`net/ipv4/tcp_rate.c`).
//!
//! Each transmission notes the number of segments delivered before it. An ACK subtracts that from the present number.
//! The difference is divided by the longer of two intervals: in one the segments were sent, in the other they were
//! acknowledged.

use alloc::collections::VecDeque;

use fanin_units::{Duration, Instant};

/// Picoseconds of a microsecond, the clock of the kernel's rates.
pub(crate) const MICROSECOND: u64 = Duration::from_micros(1).get();

/// The state when segments were sent (`TCP_SKB_CB(skb)->tx`).
#[derive(Clone, Copy, Debug)]
struct Transmission {
    sent_at: u64,
    /// Segments delivered before, and the time of the last delivery, in ps.
    delivered: u64,
    delivered_at: u64,
    /// Transmission time of the first segment of this sample's flight.
    first_sent_at: u64,
    is_app_limited: bool,
}

/// The deliveries that an ACK reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) now: Instant,
    /// Segments newly delivered, SACKed ones included.
    pub(crate) delivered: u32,
    /// Segments newly declared lost.
    pub(crate) lost: u32,
    /// Transmission time of the newest segment covered, in ps.
    pub(crate) newest_sent_at: Option<u64>,
    /// Round-trip time of the newest segment, in ps; by the timestamp if a retransmission is acknowledged.
    pub(crate) rtt_ps: Option<u64>,
    /// True if the receiver may have delayed the ACK: it covers one short segment (`FLAG_ACK_MAYBE_DELAYED`).
    pub(crate) may_be_delayed: bool,
    /// Segments in the network before the ACK.
    pub(crate) prior_in_flight: u32,
}

/// A sample of the delivery rate (`struct rate_sample`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSample {
    /// Segments delivered in the interval, and its length in microseconds; none if the ACK gives no rate.
    pub(crate) rate: Option<(u64, u64)>,
    /// Number of delivered segments when the newest covered segment was sent.
    pub(crate) prior_delivered: u64,
    /// True if the application, not the network, limited the rate.
    pub(crate) is_app_limited: bool,
}

/// The delivery rate of one connection.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRate {
    /// Segments delivered so far, the SYN included, and the time of the last delivery, in ps.
    delivered: u64,
    delivered_at: u64,
    first_sent_at: u64,
    /// Number of delivered segments up to which the application limits samples; 0 for none.
    app_limited: u64,
    /// Transmissions, oldest first; one for each instant.
    transmissions: VecDeque<Transmission>,
}

impl DeliveryRate {
    /// The state after the handshake, whose SYN counts as delivered (`tcp_rcv_state_process`).
    pub(crate) fn new() -> Self {
        Self {
            delivered: 1,
            delivered_at: 0,
            first_sent_at: 0,
            app_limited: 0,
            transmissions: VecDeque::new(),
        }
    }

    /// Segments delivered so far, the SYN included.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Time of the last delivery, in ps.
    pub(crate) fn delivered_at(&self) -> u64 {
        self.delivered_at
    }

    /// Returns true if the application limits the present samples.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Notes that the application leaves the network idle, with `in_flight` segments outstanding
    /// (`tcp_rate_check_app_limited`).
    pub(crate) fn limit_by_app(&mut self, in_flight: u32) {
        self.app_limited = self.delivered + u64::from(in_flight);
    }

    /// Notes a sent segment; `is_idle` is true if nothing was outstanding (`tcp_rate_skb_sent`).
    pub(crate) fn on_sent(&mut self, now: Instant, is_idle: bool) {
        let now = now.get();
        if is_idle {
            self.first_sent_at = now;
            self.delivered_at = now;
            self.transmissions.clear();
        }
        if self.transmissions.back().is_some_and(|last| last.sent_at == now) {
            return;
        }
        self.transmissions.push_back(Transmission {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.is_app_limited(),
        });
    }

    /// Forgets transmissions before the oldest segment outstanding.
    pub(crate) fn forget_before(&mut self, sent_at: u64) {
        while self.transmissions.front().is_some_and(|oldest| oldest.sent_at < sent_at) {
            self.transmissions.pop_front();
        }
    }

    /// Handles an ACK (`tcp_rate_skb_delivered`, `tcp_rate_gen`). An interval below `min_rtt` ps gives no rate: ACKs that
    /// arrive together would make it too high.
    pub(crate) fn on_ack(&mut self, delivery: &Delivery, min_rtt: u64) -> RateSample {
        let now = delivery.now.get();
        self.delivered += u64::from(delivery.delivered);
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if delivery.delivered > 0 {
            self.delivered_at = now;
        }
        let none = RateSample { rate: None, prior_delivered: 0, is_app_limited: false };
        let Some(sent_at) = delivery.newest_sent_at else { return none };
        let place = self.transmissions.partition_point(|sent| sent.sent_at < sent_at);
        let Some(&sent) = self.transmissions.get(place).filter(|sent| sent.sent_at == sent_at) else {
            return none;
        };
        assert!(
            sent.delivered <= self.delivered && sent.first_sent_at <= sent_at,
            "a rate sample from the future"
        );
        self.first_sent_at = sent_at;
        let interval = (sent_at - sent.first_sent_at).max(now - sent.delivered_at);
        let is_rate = interval >= min_rtt && interval >= MICROSECOND;
        RateSample {
            rate: is_rate.then(|| (self.delivered - sent.delivered, interval / MICROSECOND)),
            prior_delivered: sent.delivered,
            is_app_limited: sent.is_app_limited,
        }
    }
}
