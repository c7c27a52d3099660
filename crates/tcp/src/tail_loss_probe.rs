//! Tail loss probes (RFC 8985 §7; `tcp_send_loss_probe`, `tcp_process_tlp_ack`).

use fanin_units::Instant;

use crate::config::Config;
use crate::endpoint::{CongestionState, Endpoint};
use crate::recovery::AckEvent;
use crate::segment::Segment;
use crate::timers::Timer;

impl Endpoint {
    /// Sends a probe (RFC 8985 §7.3): new data if the offered window has room, else the last segment once more.
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
                let last = *self.flight.runs.back()?;
                // The last segment of the last run.
                let tail = match last.len % u32::from(last.mss) {
                    0 => u32::from(last.mss).min(last.len),
                    rest => rest,
                };
                self.flight.split_at(config, last.end() - u64::from(tail));
                let index = self.flight.runs.len() - 1;
                self.retransmit(config, now, index)
            }
        };
        let snd_nxt = self.snd_nxt;
        self.recovery_mut().tlp_high_seq = Some((snd_nxt, is_retransmission));
        // The RTO counts from the probe.
        let rto = self.rtt.rto(config).get();
        self.start_timer(config, Timer::Retransmission, now.get(), rto);
        Some(segment)
    }

    /// Takes an ACK while a probe is outstanding (RFC 8985 §7.4.2): a probe that repaired a loss reduces the window.
    pub(crate) fn settle_probe(
        &mut self,
        config: &Config,
        event: &AckEvent,
        acknowledged: u64,
        newly_sacked: bool,
    ) {
        let Some((high_seq, is_retransmission)) = self.recovery_mut().tlp_high_seq else { return };
        if acknowledged < high_seq {
            return;
        }
        if !is_retransmission || event.has_dsack {
            self.recovery_mut().tlp_high_seq = None;
        } else if acknowledged > high_seq {
            // The original was lost: the window falls as after any other loss.
            self.recovery_mut().tlp_high_seq = None;
            if !matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss) {
                self.start_reduction(config, false);
                self.window.cwnd = self.window.ssthresh;
                self.cwnd_stamp = event.now.get();
                self.keep_open();
            }
        } else if !event.advances && !newly_sacked && event.is_duplicate {
            // Both the original and the probe arrived.
            self.recovery_mut().tlp_high_seq = None;
        }
        if self.recovery_mut().tlp_high_seq.is_none() && self.ca_state == CongestionState::Open {
            let snd_una = self.snd_una;
            let recovery = self.recovery_mut();
            recovery.retransmitted_below = recovery.retransmitted_below.min(snd_una.max(high_seq));
        }
    }
}
