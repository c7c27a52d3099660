//! The handshake. Connections of a data-acquisition system are opened once and stay; a run may start with
//! them open.

use fanin_units::Instant;

use crate::config::Config;
use crate::endpoint::{Endpoint, Force, Phase, Timer};
use crate::segment::{Flags, Segment};

impl Endpoint {
    pub(super) fn handle_opening(&mut self, config: &Config, now: Instant, segment: &Segment) {
        let is_syn = segment.flags.contains(Flags::SYN);
        self.receiver.note_timestamp(segment);
        match self.phase {
            Phase::Listen if is_syn => {
                self.phase = Phase::SynReceived;
                self.force = Force::Syn;
            }
            Phase::SynSent if is_syn && segment.flags.contains(Flags::ACK) => {
                self.establish(config, now, segment);
                self.receiver.ack_now();
            }
            Phase::SynReceived if is_syn => self.force = Force::Syn,
            Phase::SynReceived => self.establish(config, now, segment),
            // A SYN-ACK sent again: our ACK was lost.
            Phase::Established if is_syn => self.receiver.ack_now(),
            _ => {}
        }
    }

    fn establish(&mut self, config: &Config, now: Instant, segment: &Segment) {
        self.phase = Phase::Established;
        self.force = Force::None;
        self.timer = Timer::None;
        self.update_window(config, segment.ack + u64::from(segment.window), segment.window);
        // Karn: a SYN that was sent again gives no sample.
        if self.rtt.backoff == 0 && self.last_sent_at > 0 {
            self.sample_rtt(config, now.get() - self.last_sent_at, config.rtt_tick.get());
        }
        self.rtt.backoff = 0;
        self.last_sent_at = 0;
        self.window_was_used(now);
    }

    pub(super) fn poll_opening(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        if self.force != Force::Syn {
            return None;
        }
        self.force = Force::None;
        let mut flags = Flags::SYN;
        if self.phase == Phase::SynReceived {
            flags.insert(Flags::ACK);
        }
        self.last_sent_at = now.get().max(1);
        self.start_timer(config, Timer::Retransmission, now.get(), self.rtt.rto(config).get());
        self.acks += 1;
        Some(self.finish(config, now, 0, 0, flags))
    }
}
