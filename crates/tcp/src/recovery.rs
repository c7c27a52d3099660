//! Fast recovery: an endpoint's state while segments are lost, SACKed or retransmitted, and the state machine.
//!
//! Follows `tcp_fastretrans_alert` and its callees of `net/ipv4/tcp_input.c`; RFC 5681 §3.2, RFC 6582, RFC 6675, RFC 8985.

use alloc::boxed::Box;

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, LossDetection, WindowUnit};
use crate::endpoint::{Endpoint, Forced};
use crate::flight::{LOST, SACKED};
use crate::loss_detection::RackState;
use crate::reduction::ReductionCourse;
use crate::retransmit::RetransmissionBurst;
use crate::tail_loss_probe::ProbeState;
use crate::timers::{TIMEOUT_MARGIN, Timer};
use crate::undo::UndoState;

/// State of an endpoint while a segment is lost, SACKed or retransmitted; boxed, so that idle endpoints stay small.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryState {
    /// The episode ends when this offset is acknowledged (`high_seq`).
    high_seq: u64,
    /// All retransmissions lie below this offset.
    retransmitted_below: u64,
    /// True if a partial ACK of this recovery has restarted the timer (RFC 6582 §3.2 step 5).
    had_partial_ack: bool,
    /// True after a timeout until data is acknowledged (`icsk_retransmits`).
    has_timed_out: bool,
    /// Duplicate ACKs since the last new acknowledgement, outside of recovery; counted for ns-3 only.
    duplicates: u32,
    pub(crate) undo: UndoState,
    pub(crate) reduction: ReductionCourse,
    pub(crate) rack: RackState,
    pub(crate) probe: ProbeState,
    /// The paced burst of retransmissions that is being sent.
    pub(crate) burst: RetransmissionBurst,
}

impl RecoveryState {
    /// The state in `place`; an absent state is created with SND.NXT.
    #[inline]
    pub(crate) fn in_place(place: &mut Option<Box<Self>>, snd_nxt: u64) -> &mut Self {
        place.get_or_insert_with(|| {
            Box::new(Self {
                high_seq: snd_nxt,
                retransmitted_below: 0,
                had_partial_ack: false,
                has_timed_out: false,
                duplicates: 0,
                undo: UndoState::default(),
                reduction: ReductionCourse::default(),
                rack: RackState::new(),
                probe: ProbeState::default(),
                burst: RetransmissionBurst::default(),
            })
        })
    }

    /// The offset at which an acknowledgement ends the episode.
    pub(crate) fn high_seq(&self) -> u64 {
        self.high_seq
    }

    /// Begins an episode: it ends when all data below SND.NXT is acknowledged.
    pub(crate) fn begin_episode(&mut self, snd_nxt: u64) {
        assert!(snd_nxt >= self.high_seq, "SND.NXT runs backwards");
        self.high_seq = snd_nxt;
    }

    /// Notes that segments below SND.NXT are retransmitted.
    pub(crate) fn note_retransmissions(&mut self, snd_nxt: u64) {
        self.retransmitted_below = self.retransmitted_below.max(snd_nxt);
    }

    /// Notes that no retransmission lies at `offset` or above.
    pub(crate) fn forget_retransmissions(&mut self, offset: u64) {
        self.retransmitted_below = self.retransmitted_below.min(offset);
    }

    /// Counts a duplicate ACK. Returns how many there are since the last new acknowledgement.
    pub(crate) fn count_duplicate(&mut self) -> u32 {
        self.duplicates += 1;
        self.duplicates
    }

    /// Forgets the duplicate ACKs that were counted.
    pub(crate) fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Notes a timeout. Returns true if there was one since the last new acknowledgement.
    pub(crate) fn note_timeout(&mut self) -> bool {
        core::mem::replace(&mut self.has_timed_out, true)
    }

    /// Notes that data was acknowledged.
    pub(crate) fn forget_timeouts(&mut self) {
        self.has_timed_out = false;
    }

    /// Notes a partial ACK. Returns true if this recovery had one before.
    pub(crate) fn note_partial_ack(&mut self) -> bool {
        core::mem::replace(&mut self.had_partial_ack, true)
    }
}

/// An ACK on the slow path, with the inputs of recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvent {
    pub(crate) now: Instant,
    /// True if the ACK acknowledges new data.
    pub(crate) advances: bool,
    /// True for a duplicate ACK (RFC 5681 §2).
    pub(crate) is_duplicate: bool,
    /// SND.UNA before the ACK.
    pub(crate) prior_una: u64,
    /// True if the ACK reports a duplicate (RFC 2883).
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
    /// The recovery state; creates an absent one.
    pub(crate) fn recovery_mut(&mut self) -> &mut RecoveryState {
        RecoveryState::in_place(&mut self.recovery, self.send.nxt())
    }

    /// Drops the recovery state when nothing is lost, SACKed or retransmitted any more.
    pub(crate) fn release_recovery(&mut self) {
        if let Some(recovery) = &self.recovery
            && self.ca_state == CongestionState::Open
            && self.flight.sacked + self.flight.lost + self.flight.retransmitted == 0
            && !recovery.probe.is_outstanding()
            && !recovery.rack.is_window_wide()
            && self.send.una() >= recovery.retransmitted_below
        {
            self.recovery = None;
        }
    }

    /// Returns true if a tail loss probe is outstanding.
    pub(crate) fn has_tail_loss_probe(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.probe.is_outstanding())
    }

    /// Handles an ACK that may show loss, reordering or marks (`tcp_fastretrans_alert`).
    pub(crate) fn handle_dubious_ack(
        &mut self,
        config: &Config,
        now: Instant,
        ack: &mut AckEvent,
        original: bool,
        newly_sacked: bool,
    ) {
        let declared_before = self.flight.declared_lost;
        let lost_before = self.flight.lost + self.flight.retransmitted;
        if ack.has_ece {
            self.recovery_mut().undo.forget_ssthresh();
        }
        if self.is_held(config) {
            self.flight.sacked = 0;
            self.try_undo(config, ack);
            return;
        }
        self.end_episode(config, now, ack);
        match self.ca_state {
            CongestionState::Recovery => {
                if ack.advances {
                    if self.try_undo_partial(config, ack, original) {
                        return;
                    }
                    if !config.sack && self.ca_state == CongestionState::Recovery {
                        // RFC 6582 §3.2 step 5: a partial ACK shows the next hole, which is filled at once. Linux
                        // fills it when the window permits.
                        self.mark_head_lost(config);
                        if config.unit == WindowUnit::Bytes {
                            self.forced = Forced::LostHead;
                        }
                    }
                }
                let may_report = !ack.advances || config.is_linux_6();
                if ack.has_dsack && may_report && self.try_undo_dsack(config, now) {
                    self.keep_open();
                }
                self.detect_losses(config, now, ack, newly_sacked);
                let is_undone = self.ca_state != CongestionState::Recovery;
                if is_undone && config.is_linux_6() && self.flight.lost > 0 {
                    self.enter_recovery(config, ack.has_ece);
                }
            }
            CongestionState::Loss => {
                if self.try_undo_timeout(config, ack, original, newly_sacked) {
                    if !config.is_linux_6() {
                        return;
                    }
                    self.handle_ack_outside_recovery(config, now, ack, newly_sacked);
                } else {
                    let is_tested = config.is_linux_6() && self.test_timeout(ack, newly_sacked);
                    if ack.advances && !config.sack && !is_tested {
                        if config.is_linux_6() {
                            // The whole flight was declared lost at the timeout (`tcp_newreno_mark_lost`).
                            self.flight.sacked = 0;
                        } else {
                            self.mark_head_lost(config);
                        }
                    }
                    let retransmitted = self.flight.retransmitted;
                    self.detect_losses(config, now, ack, newly_sacked);
                    if config.is_linux_6() && self.flight.retransmitted < retransmitted {
                        // A retransmission is lost, too: the window falls again.
                        self.enter_recovery(config, ack.has_ece);
                    }
                }
            }
            CongestionState::Open | CongestionState::Disorder | CongestionState::Cwr => {
                self.handle_ack_outside_recovery(config, now, ack, newly_sacked);
            }
        }
        ack.lost = if config.is_linux_6() {
            (self.flight.declared_lost - declared_before) as u32
        } else {
            (self.flight.lost + self.flight.retransmitted).saturating_sub(lost_before)
        };
    }

    /// Returns true if recovery outlasts its end (`tcp_is_non_sack_preventing_reopen`). Without SACK it does until data above its end
    /// is acknowledged. So duplicates of the retransmissions begin no other recovery (RFC 6582 §4).
    fn is_held(&mut self, config: &Config) -> bool {
        let is_repairing = matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss);
        !config.sack
            && config.is_linux_6()
            && is_repairing
            && self.send.una() == self.recovery_mut().high_seq()
    }

    /// Handles an ACK while nothing is being repaired.
    fn handle_ack_outside_recovery(
        &mut self,
        config: &Config,
        now: Instant,
        ack: &AckEvent,
        newly_sacked: bool,
    ) {
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
            let snd_nxt = self.send.nxt();
            self.recovery_mut().begin_episode(snd_nxt);
        }
    }

    /// Ends recovery or a reduction once all data that was outstanding at its start is acknowledged.
    fn end_episode(&mut self, config: &Config, now: Instant, ack: &AckEvent) {
        let (snd_una, high_seq) = (self.send.una(), self.recovery_mut().high_seq);
        if snd_una < high_seq {
            return;
        }
        match self.ca_state {
            CongestionState::Open | CongestionState::Disorder => {}
            CongestionState::Cwr => {
                // Linux holds the state until something above its end is acknowledged, so that CWR has reached the receiver.
                if snd_una > high_seq || (self.flight.size == 0 && !config.is_linux_6()) {
                    self.end_reduction(config, now);
                }
            }
            CongestionState::Recovery => {
                self.flight.sacked = if config.sack { self.flight.sacked } else { 0 };
                if !self.try_undo(config, ack) {
                    self.recovery_mut().rack.note_recovery();
                    self.end_reduction(config, now);
                }
                self.ca_state = CongestionState::Open;
            }
            CongestionState::Loss => {
                self.flight.sacked = if config.sack { self.flight.sacked } else { 0 };
                if !self.try_undo(config, ack) {
                    let recovery = self.recovery_mut();
                    recovery.rack.note_recovery();
                    recovery.undo.clear();
                }
                self.ca_state = CongestionState::Open;
            }
        }
    }

    /// Enters fast recovery (`tcp_enter_recovery`).
    pub(crate) fn enter_recovery(&mut self, config: &Config, has_ece: bool) {
        assert!(
            self.ca_state != CongestionState::Recovery
                && (self.ca_state != CongestionState::Loss || config.is_linux_6()),
            "recovery begins again before it ends"
        );
        assert!(self.flight.size > 0, "recovery of nothing");
        self.counters.fast_retransmits += 1;
        let was_reducing = self.ca_state == CongestionState::Cwr;
        if !was_reducing {
            self.start_reduction(config, has_ece);
        }
        self.congestion.react_to_loss(config, &mut self.window);
        let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
        let retransmitted = self.flight.retransmitted;
        let recovery = self.recovery_mut();
        recovery.undo.begin(snd_una, retransmitted, config.is_linux_6());
        recovery.had_partial_ack = false;
        recovery.duplicates = 0;
        // Linux sets the end where the reduction begins (`tcp_init_cwnd_reduction`).
        if !(was_reducing && config.is_linux_6()) {
            recovery.begin_episode(snd_nxt);
        }
        self.ca_state = CongestionState::Recovery;
        if !self.congestion.models_path() {
            // Pacing delays the first retransmission, too (`tcp_xmit_retransmit_queue`).
            self.forced = Forced::LostHead;
        }
        if config.detection() == LossDetection::DuplicateAcks && !config.recovers_as_ns3() {
            self.mark_head_lost(config);
        }
    }

    /// Enters Open, or Disorder while anything is lost, SACKed or retransmitted (`tcp_try_keep_open`).
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

    /// Handles RACK's reordering timer: declares lost the segments that have waited long enough (`tcp_rack_reo_timeout`).
    pub(crate) fn handle_reordering_timeout(&mut self, config: &Config, now: Instant) {
        let prior_pipe = self.flight.pipe();
        self.detect_rack(config, now);
        if prior_pipe != self.flight.pipe()
            && (config.is_linux_6() || self.ca_state != CongestionState::Loss)
            && self.ca_state != CongestionState::Recovery
        {
            let event = AckEvent {
                now,
                advances: false,
                prior_una: self.send.una(),
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
        let wait = self.recovery_mut().rack.take_wait();
        if wait > 0 {
            self.timer.start(config, Timer::Reordering, now, wait + TIMEOUT_MARGIN);
        } else {
            self.restart_timer(config, now);
        }
    }
}
