//! SEGMENT ARRIVES: each state's handling of a segment (RFC 9293 §3.10.7), with the checks of RFC 5961.

use fanin_units::Instant;

use super::{CloseReason, ConnectionState, TcpConnection};
use crate::segment::{Flags, Segment};

impl TcpConnection {
    /// Handles a segment from the network. Drain [`poll_transmit`](Self::poll_transmit) afterwards.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        match self.state {
            ConnectionState::Closed => self.refuse(segment),
            ConnectionState::Listen => self.handle_in_listen(segment),
            ConnectionState::SynSent => self.handle_in_syn_sent(now, segment),
            ConnectionState::SynReceived => self.handle_in_syn_received(now, segment),
            _ => self.handle_synchronized(now, segment),
        }
    }

    /// Answers a segment that belongs to no connection with a RST (RFC 9293 §3.10.7.1).
    fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.reset = Some(if segment.flags.contains(Flags::ACK) {
            Segment { offset: segment.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            Segment { ack: segment.end(), flags: Flags::RST | Flags::ACK, ..Segment::default() }
        });
    }

    /// Handles a segment in LISTEN (RFC 9293 §3.10.7.2).
    fn handle_in_listen(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            return self.refuse(segment);
        }
        if segment.flags.contains(Flags::SYN) {
            self.accept_syn(segment);
            self.syn.send();
            self.state = ConnectionState::SynReceived;
        }
    }

    /// Handles a segment in SYN-SENT (RFC 9293 §3.10.7.3).
    fn handle_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let has_ack = segment.flags.contains(Flags::ACK);
        if has_ack && segment.ack != 0 {
            // The segment acknowledges data that this end never sent.
            return self.refuse(segment);
        }
        if segment.flags.contains(Flags::RST) {
            if has_ack {
                self.enter_closed(CloseReason::Refused);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.accept_syn(segment);
        if has_ack {
            self.establish(now, segment);
            self.endpoint.receiver.ack_now();
        } else {
            // Simultaneous open (RFC 9293 §3.5, figure 8).
            self.syn.send();
            self.state = ConnectionState::SynReceived;
        }
    }

    /// Handles a segment in SYN-RECEIVED (its part of RFC 9293 §3.10.7.4).
    fn handle_in_syn_received(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            if segment.offset != 0 {
                return;
            }
            if self.syn.is_passive {
                let config = self.offered.clone();
                *self = Self::with_limits(config, self.limits);
                self.state = ConnectionState::Listen;
            } else {
                self.enter_closed(CloseReason::Refused);
            }
            return;
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        if !segment.flags.contains(Flags::ACK) {
            if is_syn {
                // The peer retransmits its SYN: the SYN-ACK was lost.
                self.syn.send();
            }
            return;
        }
        if segment.ack != 0 {
            return self.refuse(segment);
        }
        self.establish(now, segment);
        if is_syn {
            // Simultaneous open: both ends sent SYN-ACKs.
            self.endpoint.receiver.ack_now();
        } else {
            self.handle_synchronized(now, segment);
        }
    }

    /// Handles a segment from ESTABLISHED on (RFC 9293 §3.10.7.4).
    fn handle_synchronized(&mut self, now: Instant, segment: &Segment) {
        let rcv_nxt = self.endpoint.delivered();
        self.rcv_limit = self.rcv_limit.max(self.endpoint.receiver.window_end());
        if segment.flags.contains(Flags::RST) {
            return self.handle_reset(now, segment, rcv_nxt);
        }
        // RFC 5961 §4.2: a SYN is never trusted; a restarted peer answers the challenge ACK with a RST.
        if segment.flags.contains(Flags::SYN) {
            return self.challenge(now);
        }
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        // RFC 5961 §5.2: an ACK of data not sent yet, or older than any window, may be forged.
        let oldest = self.endpoint.acked().saturating_sub(u64::from(self.endpoint.send.window_max()));
        if segment.ack > self.endpoint.sent() || segment.ack < oldest {
            return self.challenge(now);
        }
        let data_end = segment.offset + u64::from(segment.payload);
        let is_in_window = segment.offset <= self.rcv_limit && data_end <= self.rcv_limit;
        let is_after_fin = self.peer_fin.is_some_and(|fin| data_end > fin && segment.offset <= fin);
        if !is_in_window || is_after_fin {
            self.endpoint.receiver.ack_now();
            return;
        }
        let has_fin = segment.flags.contains(Flags::FIN);
        // A FIN is the byte after the last one.
        let Some(payload) = segment.payload.checked_add(u16::from(has_fin)) else { return };
        let mut segment = *segment;
        segment.flags.remove(Flags::FIN);
        segment.payload = payload;
        self.unanswered = 0;
        // tcp_fin: the ACK of a FIN without data may wait for the application, which is expected to close as well.
        let may_wait = has_fin
            && payload == 1
            && self.config.is_linux_6()
            && self.state == ConnectionState::Established
            && self.endpoint.receiver.expect_answer(segment.offset);
        let before = self.endpoint.receiver.ack_state();
        self.endpoint.handle_segment(&self.config, now, &segment);
        if may_wait {
            self.endpoint.acknowledge_fin(&self.config, now, before);
        }
        if has_fin {
            self.peer_fin.get_or_insert(data_end);
            if !may_wait {
                self.endpoint.receiver.ack_now();
            }
            if rcv_nxt <= data_end && self.is_receive_closed() {
                self.endpoint.receiver.handle_fin();
            }
        }
        self.follow_fins(now, has_fin);
    }

    /// Handles a RST (RFC 5961 §3.2). Only a RST at RCV.NXT counts; elsewhere in the window it is answered by a challenge
    /// ACK.
    fn handle_reset(&mut self, now: Instant, segment: &Segment, rcv_nxt: u64) {
        if segment.offset != rcv_nxt {
            if segment.offset > rcv_nxt && segment.offset < self.rcv_limit {
                self.challenge(now);
            }
            return;
        }
        match self.state {
            // RFC 1337: an old RST must not cut TIME-WAIT short.
            ConnectionState::TimeWait => {}
            ConnectionState::Closing | ConnectionState::LastAck => self.enter_closed(CloseReason::Finished),
            _ => self.enter_closed(CloseReason::Reset),
        }
    }

    /// Sends a challenge ACK, unless one was sent just before (RFC 5961 §7).
    fn challenge(&mut self, now: Instant) {
        let is_allowed = self
            .challenged_at
            .is_none_or(|at| now.get().saturating_sub(at.get()) >= self.limits.challenge_interval.get());
        if is_allowed {
            self.challenged_at = Some(now);
            self.endpoint.receiver.ack_now();
        }
    }

    /// Changes state once this end's FIN is acknowledged or the peer's has been received in order.
    fn follow_fins(&mut self, now: Instant, has_fin: bool) {
        let is_fin_acked = self.is_fin_queued && self.endpoint.acked() == self.endpoint.written();
        let is_peer_closed = self.is_receive_closed();
        match (self.state, is_fin_acked, is_peer_closed) {
            (ConnectionState::Established, _, true) => self.state = ConnectionState::CloseWait,
            (ConnectionState::FinWait1, true, true) => self.enter_time_wait(now),
            (ConnectionState::FinWait1, true, false) => self.state = ConnectionState::FinWait2,
            (ConnectionState::FinWait1, false, true) => self.state = ConnectionState::Closing,
            (ConnectionState::FinWait2, _, true) => self.enter_time_wait(now),
            (ConnectionState::Closing, true, _) => self.enter_time_wait(now),
            (ConnectionState::LastAck, true, _) => self.enter_closed(CloseReason::Finished),
            // The peer retransmits its FIN: the ACK was lost, and the 2MSL start again.
            (ConnectionState::TimeWait, ..) if has_fin => self.enter_time_wait(now),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        assert!(
            self.is_fin_queued && self.is_receive_closed(),
            "TIME-WAIT is entered before both ends have closed"
        );
        self.state = ConnectionState::TimeWait;
        self.time_wait_until = now + self.limits.time_wait;
    }
}
