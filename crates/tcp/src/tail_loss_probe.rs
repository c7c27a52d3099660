//! Tail loss probes (RFC 8985 §7; `tcp_send_loss_probe`, `tcp_process_tlp_ack`).

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::flight::SACKED;
use crate::recovery::AckEvent;
use crate::segment::Segment;
use crate::timers::Timer;

/// A tail loss probe that is outstanding.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeState {
    /// SND.NXT after the probe (TLP.end_seq), and true for a retransmission; `None` if no probe is outstanding.
    sent: Option<(u64, bool)>,
}

/// The outcome of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProbeFate {
    Outstanding,
    /// Nothing was lost.
    Needless,
    /// The probe arrived instead of its original, which was lost.
    RepairedLoss,
}

impl ProbeState {
    /// Returns true if a probe is outstanding.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns true if the outstanding probe was the last segment before `end`.
    pub(crate) fn ends_at(&self, end: u64) -> bool {
        self.sent.is_some_and(|(probe_end, _)| probe_end == end)
    }

    /// Ends the wait for the probe's ACK, after a reduction or a timeout.
    pub(crate) fn cancel(&mut self) {
        self.sent = None;
    }

    /// The outcome of the probe that ends at `end`, after an ACK of all bytes below `ack` (RFC 8985 §7.4.2).
    fn judge(end: u64, is_retransmission: bool, event: &AckEvent, ack: u64, newly_sacked: bool) -> ProbeFate {
        if !is_retransmission || event.has_dsack {
            ProbeFate::Needless
        } else if ack > end {
            ProbeFate::RepairedLoss
        } else if !event.advances && !newly_sacked && event.is_duplicate {
            // Both the original and the probe arrived.
            ProbeFate::Needless
        } else {
            ProbeFate::Outstanding
        }
    }
}

impl Endpoint {
    /// Sends a probe (RFC 8985 §7.3): new data if the offered window has room, otherwise the last segment without a SACK again.
    pub(crate) fn send_tail_loss_probe(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        if self.flight.size == 0 {
            return None;
        }
        self.counters.tail_loss_probes += 1;
        let new = self.send_new_forced(config, now);
        let is_retransmission = new.is_none();
        let segment = match new {
            Some(segment) => segment,
            None => {
                // Only RACK has no probe while the last segment is SACKed: its timer or its losses go first.
                let behind = self.flight.runs.iter().rev().position(|run| !run.is(SACKED)).unwrap_or(0);
                let last = *self.flight.runs.iter().rev().nth(behind)?;
                // The last segment of this run.
                let tail = match last.len % u32::from(last.mss) {
                    0 => u32::from(last.mss).min(last.len),
                    rest => rest,
                };
                self.flight.split_at(config, last.end() - u64::from(tail));
                let index = self.flight.runs.len() - 1 - behind;
                self.resend(config, now, index)
            }
        };
        assert!(segment.payload > 0, "a probe has no data, so that it brings no SACK");
        let snd_nxt = self.send.nxt();
        self.recovery_mut().probe.sent = Some((snd_nxt, is_retransmission));
        // The RTO counts from the probe.
        let rto = self.rtt.rto(config).get();
        self.timer.start(config, Timer::Retransmission, now, rto);
        Some(segment)
    }

    /// Handles an ACK while a probe is outstanding (RFC 8985 §7.4.2): a probe that repaired a loss reduces the window.
    pub(crate) fn judge_probe(
        &mut self,
        config: &Config,
        event: &AckEvent,
        acknowledged: u64,
        newly_sacked: bool,
    ) {
        let Some((end, is_retransmission)) = self.recovery_mut().probe.sent else { return };
        if acknowledged < end {
            return;
        }
        match ProbeState::judge(end, is_retransmission, event, acknowledged, newly_sacked) {
            ProbeFate::Outstanding => return,
            ProbeFate::Needless => self.recovery_mut().probe.cancel(),
            ProbeFate::RepairedLoss => {
                self.recovery_mut().probe.cancel();
                // The window is reduced as after any other loss.
                if !matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss) {
                    self.start_reduction(config, false);
                    self.window.cwnd = self.window.ssthresh;
                    self.usage.set_full_at(event.now);
                    self.keep_open();
                }
            }
        }
        if self.ca_state == CongestionState::Open {
            let snd_una = self.send.una();
            self.recovery_mut().forget_retransmissions(snd_una.max(end));
        }
    }
}
