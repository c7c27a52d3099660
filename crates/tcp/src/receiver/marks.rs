//! ECN marks at the receiver: echoed until CWR (RFC 3168 §6.1.3), or exactly (RFC 8257 §3.2).

use super::{ECHO_MARKS, Receiver};
use crate::config::Config;
use crate::segment::{Flags, Segment};

/// Quick ACKs after the first mark (`tcp_enter_quickack_mode(sk, 2)`).
const QUICK_ACKS_AFTER_MARK: u32 = 2;

impl Receiver {
    /// Notes the mark of a data segment.
    pub(super) fn note_marks(&mut self, config: &Config, segment: &Segment) {
        if segment.flags.contains(Flags::CWR) && config.is_linux_6() {
            // The sender's window may be one segment (`tcp_ecn_accept_cwr`).
            self.ack_now();
        }
        if config.ecn_exact {
            // A duplicate changes no echo: it ends before `tcp_data_ecn_check`.
            let is_new = segment.offset + u64::from(segment.payload) > self.rcv_nxt;
            if is_new || !config.is_linux_6() {
                self.note_exact_mark(segment);
            }
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.flags &= !ECHO_MARKS;
        }
        if segment.flags.contains(Flags::CE) {
            if self.flags & ECHO_MARKS == 0 {
                self.enter_quick_acks(QUICK_ACKS_AFTER_MARK);
            }
            self.flags |= ECHO_MARKS;
        } else if !segment.flags.contains(Flags::ECT) && config.is_linux_6() {
            // Without ECT it is most likely a retransmission (`__tcp_ecn_check_ce`).
            self.enter_quick_acks(QUICK_ACKS_AFTER_MARK);
        }
    }

    /// DCTCP's receiver (RFC 8257 §3.2, figure 1; `dctcp_ece_ack_update`). When the mark changes, an ACK with the old mark
    /// covers the earlier segments, and one with the new mark follows at once.
    fn note_exact_mark(&mut self, segment: &Segment) {
        let is_marked = segment.flags.contains(Flags::CE);
        if is_marked == (self.flags & ECHO_MARKS != 0) {
            return;
        }
        self.flags ^= ECHO_MARKS;
        if self.rcv_nxt > self.rcv_wup {
            self.before_change = self.rcv_nxt;
        }
        self.ack_now();
    }

    /// Makes an outgoing segment acknowledge only the data before the change of the mark, with the old mark. The ACK of the
    /// rest stays due.
    pub(super) fn fill_before_change(&mut self, segment: &mut Segment) {
        segment.window += (self.rcv_nxt - self.before_change) as u32;
        segment.ack = core::mem::take(&mut self.before_change);
        self.rcv_wup = segment.ack;
        if self.flags & ECHO_MARKS == 0 {
            segment.flags.insert(Flags::ECE);
        } else {
            segment.flags.remove(Flags::ECE);
        }
    }
}
