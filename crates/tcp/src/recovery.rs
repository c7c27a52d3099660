//! Fast recovery: what an endpoint remembers while segments are lost, SACKed or retransmitted, and the state machine.
//!
//! Follows `tcp_fastretrans_alert` and its callees of `net/ipv4/tcp_input.c`; RFC 5681 §3.2, RFC 6582, RFC 6675, RFC 8985.

use alloc::boxed::Box;

use fanin_units::Instant;

use crate::config::{Config, LossDetection, WindowUnit};
use crate::endpoint::{CongestionState, Endpoint, Forced};
use crate::flight::{LOST, SACKED};
use crate::timers::{TIMEOUT_MARGIN, Timer};

/// State of an endpoint while a segment is lost, SACKed or retransmitted; boxed, so that idle endpoints stay small.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryState {
    /// The episode ends when this offset is acknowledged (`high_seq`).
    pub(crate) high_seq: u64,
    /// All retransmissions lie below this offset.
    pub(crate) retransmitted_below: u64,
    /// SND.UNA when the reduction began that may be undone (`undo_marker`); `None` if there is nothing to undo.
    pub(crate) undo_marker: Option<u64>,
    /// Retransmissions since then that no DSACK has reported (`undo_retrans`); `None` before the first.
    pub(crate) undo_retrans: Option<u32>,
    /// Slow-start threshold before the reduction; 0 for none.
    pub(crate) prior_ssthresh: u32,
    /// Congestion window before the reduction.
    pub(crate) prior_cwnd: u32,
    /// Timestamp of the first retransmission of the episode (`retrans_stamp`).
    pub(crate) retrans_stamp: Option<u32>,
    /// RecoverFS of RFC 6937: the window when the reduction began.
    pub(crate) prr_prior_cwnd: u32,
    /// Units delivered and units sent since then (prr_delivered, prr_out).
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
    /// Rate halving lowers the window with the next ACK.
    pub(crate) halving_odd: bool,
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last among those delivered.
    pub(crate) rack_sent_at: u64,
    pub(crate) rack_end: u64,
    /// Round-trip time of the segment sent last that was delivered, in ps (RACK.rtt).
    pub(crate) rack_rtt: u64,
    /// RACK.segment has changed since losses were last looked for.
    pub(crate) rack_advanced: bool,
    /// Time until the youngest candidate is lost, in ps; 0 if there is none.
    pub(crate) rack_wait: u64,
    /// RACK.reo_wnd_mult: DSACKs widen the reordering window.
    pub(crate) rack_steps: u8,
    /// SND.NXT after the outstanding tail loss probe (TLP.end_seq), and whether the probe was a retransmission.
    pub(crate) tlp_high_seq: Option<(u64, bool)>,
    /// F-RTO watches whether the time-out was spurious (RFC 5682).
    pub(crate) frto: bool,
    /// A partial ACK of this recovery has restarted the timer (RFC 6582 §3.2 step 5).
    pub(crate) had_partial_ack: bool,
    /// Transmission time of the latest original that was delivered, for FACK's test of lost retransmissions.
    pub(crate) latest_delivery: u64,
}

impl RecoveryState {
    fn new(high_seq: u64) -> Self {
        Self {
            high_seq,
            retransmitted_below: 0,
            undo_marker: None,
            undo_retrans: None,
            prior_ssthresh: 0,
            prior_cwnd: 0,
            retrans_stamp: None,
            prr_prior_cwnd: 0,
            prr_delivered: 0,
            prr_out: 0,
            halving_odd: false,
            rack_sent_at: 0,
            rack_end: 0,
            rack_rtt: 0,
            rack_advanced: false,
            rack_wait: 0,
            rack_steps: 1,
            tlp_high_seq: None,
            frto: false,
            had_partial_ack: false,
            latest_delivery: 0,
        }
    }
}

/// An ACK on the slow path, as recovery sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvent {
    pub(crate) now: Instant,
    /// It acknowledges new data.
    pub(crate) advances: bool,
    /// A duplicate ACK (RFC 5681 §2).
    pub(crate) is_duplicate: bool,
    /// It reports a duplicate (RFC 2883).
    pub(crate) has_dsack: bool,
    /// Units newly delivered, SACKed ones included.
    pub(crate) delivered: u32,
    /// Units newly acknowledged.
    pub(crate) acked: u32,
    /// Units newly declared lost.
    pub(crate) lost: u32,
    pub(crate) has_ece: bool,
    /// Timestamp echoed, 0 without the option.
    pub(crate) ts_echo: u32,
}

impl Endpoint {
    /// The recovery state, which begins here if there is none.
    pub(crate) fn recovery_mut(&mut self) -> &mut RecoveryState {
        let high_seq = self.snd_nxt;
        self.recovery.get_or_insert_with(|| Box::new(RecoveryState::new(high_seq)))
    }

    /// Drops the recovery state when nothing is lost, SACKed or retransmitted any more.
    pub(crate) fn release_recovery(&mut self) {
        if let Some(recovery) = &self.recovery
            && self.ca_state == CongestionState::Open
            && self.flight.sacked + self.flight.lost + self.flight.retransmitted == 0
            && recovery.tlp_high_seq.is_none()
            && self.snd_una >= recovery.retransmitted_below
        {
            self.recovery = None;
        }
    }

    /// Returns whether a tail loss probe is outstanding.
    pub(crate) fn has_tail_loss_probe(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.tlp_high_seq.is_some())
    }

    /// Takes an ACK that may tell of loss, reordering or marks (`tcp_fastretrans_alert`).
    pub(crate) fn handle_dubious_ack(
        &mut self,
        config: &Config,
        now: Instant,
        ack: &mut AckEvent,
        original: bool,
        newly_sacked: bool,
    ) {
        let lost_before = self.flight.lost + self.flight.retransmitted;
        if ack.has_ece {
            self.recovery_mut().prior_ssthresh = 0;
        }
        self.end_episode(config, now, ack);
        match self.ca_state {
            CongestionState::Recovery => {
                if ack.advances {
                    if self.try_undo_partial(config, ack, original) {
                        return;
                    }
                    if !config.sack {
                        // RFC 6582 §3.2 step 5: a partial ACK names the next hole, which is filled at once. In Linux the
                        // window decides when.
                        self.mark_head_lost(config);
                        if config.unit == WindowUnit::Bytes {
                            self.forced = Forced::LostHead;
                        }
                    }
                } else if ack.has_dsack && self.try_undo_dsack(config, now) {
                    self.keep_open();
                }
                self.detect_losses(config, now, ack, newly_sacked);
            }
            CongestionState::Loss => {
                // RFC 5682: a segment arrived that was sent before the time-out.
                if self.recovery_mut().frto
                    && original
                    && config.undo
                    && (ack.advances || newly_sacked)
                    && self.undo_timeout(config, now)
                {
                    return;
                }
                if ack.advances {
                    self.recovery_mut().frto = false;
                    if self.try_undo(config, ack) {
                        self.keep_open();
                        return;
                    }
                    if !config.sack {
                        self.mark_head_lost(config);
                    }
                }
                self.detect_losses(config, now, ack, newly_sacked);
            }
            CongestionState::Open | CongestionState::Disorder | CongestionState::Cwr => {
                if ack.advances && !config.sack {
                    self.flight.sacked = 0;
                }
                if self.ca_state == CongestionState::Disorder && ack.has_dsack {
                    self.try_undo_dsack(config, now);
                }
                self.detect_losses(config, now, ack, newly_sacked);
                if self.flight.lost > 0 || self.is_time_to_recover(config) {
                    self.enter_recovery(config, ack.has_ece);
                    self.detect_losses(config, now, ack, newly_sacked);
                } else if ack.has_ece && self.ca_state != CongestionState::Cwr {
                    self.start_reduction(config, true);
                    self.ca_state = CongestionState::Cwr;
                    self.counters.ecn_reductions += 1;
                } else if self.ca_state != CongestionState::Cwr {
                    self.keep_open();
                    let high_seq = self.snd_nxt;
                    self.recovery_mut().high_seq = high_seq;
                }
            }
        }
        ack.lost = (self.flight.lost + self.flight.retransmitted).saturating_sub(lost_before);
    }

    /// Ends recovery or reduction if all is acknowledged that was outstanding when it began.
    fn end_episode(&mut self, config: &Config, now: Instant, ack: &AckEvent) {
        let high_seq = self.recovery_mut().high_seq;
        if self.snd_una < high_seq {
            return;
        }
        match self.ca_state {
            CongestionState::Open | CongestionState::Disorder => {}
            CongestionState::Cwr => {
                if self.snd_una > high_seq || self.flight.size == 0 {
                    self.end_reduction(config, now);
                }
            }
            CongestionState::Recovery => {
                self.flight.sacked = if config.sack { self.flight.sacked } else { 0 };
                if !self.try_undo(config, ack) {
                    self.end_reduction(config, now);
                }
                self.ca_state = CongestionState::Open;
            }
            CongestionState::Loss => {
                self.flight.sacked = if config.sack { self.flight.sacked } else { 0 };
                if !self.try_undo(config, ack) {
                    self.clear_undo();
                }
                self.ca_state = CongestionState::Open;
            }
        }
    }

    /// Enters fast recovery (`tcp_enter_recovery`).
    fn enter_recovery(&mut self, config: &Config, has_ece: bool) {
        assert!(!matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss));
        self.counters.fast_retransmits += 1;
        if self.ca_state != CongestionState::Cwr {
            self.start_reduction(config, has_ece);
        }
        let snd_una = self.snd_una;
        let snd_nxt = self.snd_nxt;
        let retransmitted = self.flight.retransmitted;
        let recovery = self.recovery_mut();
        recovery.undo_marker = Some(snd_una);
        recovery.undo_retrans = (retransmitted > 0).then_some(retransmitted);
        recovery.retrans_stamp = None;
        recovery.had_partial_ack = false;
        recovery.high_seq = snd_nxt;
        self.ca_state = CongestionState::Recovery;
        self.forced = Forced::LostHead;
        if config.detection() == LossDetection::DuplicateAcks {
            self.mark_head_lost(config);
        }
    }

    /// Open, or Disorder while anything is lost, SACKed or retransmitted (`tcp_try_keep_open`).
    pub(crate) fn keep_open(&mut self) {
        let left = self.flight.sacked + self.flight.lost + self.flight.retransmitted;
        self.ca_state = if left > 0 { CongestionState::Disorder } else { CongestionState::Open };
    }

    /// Declares the first segment lost (`tcp_mark_head_lost`).
    fn mark_head_lost(&mut self, config: &Config) {
        let Some(run) = self.flight.runs.front() else { return };
        if run.is(LOST | SACKED) {
            return;
        }
        self.flight.mark_first_lost(config);
        if !config.sack {
            self.flight.sacked = self.flight.sacked.min(self.flight.size - self.flight.lost);
        }
    }

    /// RACK's reordering timer expired: declares lost what has waited long enough (`tcp_rack_reo_timeout`).
    pub(crate) fn handle_reordering_timeout(&mut self, config: &Config, now: Instant) {
        let prior_pipe = self.flight.pipe();
        self.detect_rack(config, now);
        if prior_pipe != self.flight.pipe()
            && !matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss)
        {
            let event = AckEvent {
                now,
                advances: false,
                is_duplicate: false,
                has_dsack: false,
                delivered: config.segment_units(),
                acked: 0,
                lost: prior_pipe - self.flight.pipe(),
                has_ece: false,
                ts_echo: 0,
            };
            self.enter_recovery(config, false);
            if !self.congestion.governs_recovery(config) {
                self.reduce(config, &event);
            }
        }
        let wait = core::mem::take(&mut self.recovery_mut().rack_wait);
        if wait > 0 {
            self.start_timer(config, Timer::Reordering, now.get(), wait + TIMEOUT_MARGIN);
        } else {
            self.restart_timer(config, now);
        }
    }
}
