//! The inputs of a congestion control that models the path, from an endpoint's events, and the pacing of bursts.

use fanin_units::Instant;

use crate::congestion::{PathState, SentSegment};
use crate::delivery_rate::Delivery;
use crate::endpoint::Endpoint;
use crate::flight::NewlyAcked;
use crate::{Config, Segment};

impl Endpoint {
    pub(crate) fn path_state(&self, config: &Config) -> PathState {
        PathState {
            in_flight: self.flight.pipe(),
            state: self.ca_state,
            srtt: self.rtt.smoothed(config).get(),
            min_rtt: self.rtt.min_ps(config).unwrap_or(0),
            mss: self.send.mss(),
            lost: self.flight.declared_lost,
        }
    }

    /// Returns true if pacing delays the next burst (`tcp_pacing_check`). Then notes the departure time of the burst as a
    /// deadline.
    #[inline]
    pub(crate) fn is_paced(&mut self, now: Instant) -> bool {
        self.congestion.models_path() && self.waits_for_pacing(now)
    }

    #[cold]
    fn waits_for_pacing(&mut self, now: Instant) -> bool {
        let Some(pacing) = self.congestion.pacing() else { return false };
        let next = pacing.next_send_at();
        let waits = next > now.get() && self.burst.is_new();
        if waits {
            self.timer.note_deadline(Instant::new(next));
        }
        waits
    }

    /// Informs the model of a segment of `bytes` bytes before it is sent. `is_first` is true for the first segment of a burst.
    #[cold]
    pub(crate) fn note_paced(&mut self, config: &Config, now: Instant, bytes: u32, is_first: bool) {
        let path = self.path_state(config);
        let is_idle = self.flight.size == 0;
        let is_empty = self.flight.pipe() == 0;
        let sent = SentSegment { bytes, segments: self.counters.segments, is_first, is_idle, is_empty };
        self.congestion.on_sent(now, &mut self.window, &path, sent);
    }

    /// Notes for the model that the application limited the rate until this write (`tcp_rate_check_app_limited`). Less than a segment
    /// must be unsent, the window must have room, and every loss must be retransmitted.
    #[cold]
    pub(crate) fn note_write(&mut self) {
        let in_flight = self.flight.pipe();
        let is_short = self.send.unsent() < u64::from(self.send.mss());
        let has_room = in_flight < self.window.cwnd;
        let is_repaired = self.flight.lost <= self.flight.retransmitted;
        if is_short && has_room && is_repaired {
            self.congestion.on_app_limited(in_flight);
        }
    }

    /// Passes an ACK to the model, after the flight and the state are up to date.
    #[cold]
    pub(crate) fn model_ack(&mut self, config: &Config, delivery: &Delivery) {
        let path = self.path_state(config);
        let oldest = self.flight.runs.iter().map(|run| run.sent_at).min().unwrap_or(u64::MAX);
        let salt = self.timer.salt();
        self.congestion.on_delivery(&mut self.window, delivery, &path, oldest, salt);
    }

    /// Passes an ACK of the fast path to the model. It covers `acked` segments of `bytes` bytes; the newest was sent at `sent_at`
    /// ps.
    #[cold]
    pub(crate) fn model_fast_ack(
        &mut self,
        config: &Config,
        now: Instant,
        sent_at: u64,
        [acked, prior_in_flight]: [u32; 2],
        bytes: u64,
    ) {
        let delivery = Delivery {
            now,
            delivered: acked,
            lost: 0,
            newest_sent_at: Some(sent_at),
            rtt_ps: Some(now.get() - sent_at),
            may_be_delayed: acked == 1 && bytes < u64::from(self.send.mss()),
            prior_in_flight,
        };
        self.model_ack(config, &delivery);
    }

    /// The deliveries that an ACK of the slow path reports. `bytes` of them are acknowledged cumulatively.
    pub(crate) fn delivery_of(
        &self,
        config: &Config,
        now: Instant,
        segment: &Segment,
        newly: &NewlyAcked,
        [delivered, lost, prior_in_flight]: [u32; 3],
        bytes: u64,
    ) -> Delivery {
        let newest_sent_at = newly.newest_sent_at;
        // tcp_ack_update_rtt: the timestamp measures where a retransmission hides which copy was acknowledged.
        let by_timestamp = || {
            let is_measured = segment.ts_echo != 0 && bytes > 0;
            is_measured.then(|| config.since_timestamp(now, segment.ts_echo).max(config.timestamp_tick.get()))
        };
        let by_transmission = newly.last_sent_at.filter(|_| !newly.has_retransmitted);
        let rtt_ps = by_transmission.map(|sent_at| now.get() - sent_at).or_else(by_timestamp);
        let is_runt = bytes > 0 && bytes < u64::from(self.send.mss());
        let may_be_delayed = is_runt && newly.acked == 1 && by_transmission.is_some();
        Delivery { now, delivered, lost, newest_sent_at, rtt_ps, may_be_delayed, prior_in_flight }
    }
}
