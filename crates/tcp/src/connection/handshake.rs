//! The three-way handshake: SYNs, their retransmission, and the options that both ends agree on.

use fanin_units::{Duration, Instant};

use super::{ConnectionState, TcpConnection};
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::segment::{Flags, Segment, SynOptions};

/// Least accepted MSS, TCP options included (`TCP_MIN_MSS`).
const MSS_MIN: u16 = 88;
/// RTO after a handshake with a retransmitted SYN (RFC 6298 §5.7; `TCP_TIMEOUT_FALLBACK`).
const RTO_FALLBACK: Duration = Duration::from_secs(3);
/// Largest window without the window scale option.
const WINDOW_UNSCALED_MAX: u32 = 65_535;

impl TcpConnection {
    /// The SYN or SYN-ACK, if it is due.
    pub(super) fn poll_syn(&mut self, now: Instant) -> Option<Segment> {
        if !core::mem::replace(&mut self.syn.is_due, false) {
            return None;
        }
        let config = &self.config;
        let is_answer = self.state == ConnectionState::SynReceived;
        let mut flags = Flags::SYN;
        if is_answer {
            flags.insert(Flags::ACK);
        }
        if config.ecn {
            // RFC 3168 §6.1.1: ECE and CWR ask for ECN, ECE alone agrees.
            flags.insert(if is_answer { Flags::ECE } else { Flags::ECE | Flags::CWR });
        }
        let mut syn = self.endpoint.make_segment(config, now, 0, 0, flags);
        if !is_answer {
            syn.ack = 0;
        }
        // A SYN is not sent as ECN-capable (RFC 3168 §6.1.1).
        syn.flags.remove(Flags::ECT);
        syn.window = syn.window.min(WINDOW_UNSCALED_MAX);
        syn.set_syn_options(SynOptions {
            // RFC 9293 §3.7.1: the MSS that this end accepts, independent of the peer's.
            mss: self.offered.mss.saturating_add(self.offered.option_bytes()),
            // RFC 7323 §2.2: an answer carries the scale only if the peer's SYN did.
            window_scale: (!is_answer || self.syn.peer_scales).then_some(config.window_scale),
            sack_permitted: config.sack,
        });
        // RFC 6298 §2.1 and §5.5.
        let delay = config.rto.initial.get().saturating_mul(1 << self.syn.retries.min(30));
        let delay = Duration::new(delay.min(config.rto.max.get()));
        self.syn.deadline = config.timer_expiry(now, delay);
        self.syn.first_sent_at.get_or_insert(now);
        Some(syn)
    }

    /// Takes the peer's SYN: agrees on its options, and replaces the endpoint by one with the agreed settings.
    pub(super) fn accept_syn(&mut self, segment: &Segment) {
        assert!(segment.flags.contains(Flags::SYN));
        self.config = negotiate(&self.offered, segment);
        self.syn.peer_scales = segment.syn_options().window_scale.is_some();
        let written = self.endpoint.written();
        self.endpoint = Endpoint::new(&self.config);
        self.endpoint.write(written);
        self.endpoint.set_reading(false);
        self.endpoint.receiver.note_timestamp(segment);
    }

    /// Completes the handshake with `segment`, which acknowledges this end's SYN.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment) {
        // Karn's algorithm: a SYN that was sent twice gives a sample only by its timestamp.
        let sample = match self.syn.first_sent_at {
            _ if segment.ts_echo != 0 && self.config.timestamps && self.syn.retries > 0 => {
                Some(self.config.since_timestamp(now, segment.ts_echo))
            }
            Some(sent_at) if self.syn.retries == 0 => Some(now.get() - sent_at.get()),
            _ => None,
        };
        match sample {
            Some(rtt_ps) => self.endpoint.sample_rtt(&self.config, rtt_ps),
            None => self.endpoint.rtt.set_initial(RTO_FALLBACK),
        }
        self.endpoint.start(&self.config, now, segment.window);
        self.rcv_limit = self.endpoint.receiver.window_end();
        self.state =
            if self.is_fin_queued { ConnectionState::FinWait1 } else { ConnectionState::Established };
        self.syn.deadline = Instant::FAR_FUTURE;
    }
}

/// The settings that both ends agree on: this end's offer, reduced by the peer's SYN.
fn negotiate(offered: &Config, syn: &Segment) -> Config {
    let options = syn.syn_options();
    let mut config = offered.clone();
    config.timestamps &= syn.flags.contains(Flags::TIMESTAMP);
    config.path_window &= syn.flags.contains(Flags::PATH_WINDOW);
    config.sack &= options.sack_permitted;
    config.dsack &= config.sack;
    // RFC 3168 §6.1.1: a SYN asks with ECE and CWR, a SYN-ACK agrees with ECE alone.
    let is_answer = syn.flags.contains(Flags::ACK);
    let has_cwr = syn.flags.contains(Flags::CWR);
    config.ecn &= syn.flags.contains(Flags::ECE) && has_cwr != is_answer;
    config.ecn_exact &= config.ecn;
    let mss = offered.mss.saturating_add(offered.option_bytes()).min(options.mss).max(MSS_MIN);
    config.mss = (mss - config.option_bytes()).min(u16::MAX - 1);
    if options.window_scale.is_none() {
        config.window_scale = 0;
        config.receive_window = config.receive_window.min(WINDOW_UNSCALED_MAX);
        config.receive_window_initial = config.receive_window_initial.min(WINDOW_UNSCALED_MAX);
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(flags: Flags, options: SynOptions) -> Segment {
        let mut syn = Segment { flags: Flags::SYN | flags, ..Segment::default() };
        syn.set_syn_options(options);
        syn
    }

    #[test]
    fn both_ends_agree_on_the_least() {
        let offered = Config { ecn: true, path_window: true, mss: 1440, ..Config::linux_6() };
        let all = Flags::TIMESTAMP | Flags::ECE | Flags::CWR | Flags::PATH_WINDOW;
        let full = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
        assert_eq!(negotiate(&offered, &syn(all, full)), offered);

        let bare = negotiate(&offered, &syn(Flags::NONE, SynOptions::default()));
        assert!(!bare.timestamps && !bare.sack && !bare.dsack && !bare.ecn && !bare.path_window);
        assert_eq!((bare.mss, bare.window_scale, bare.receive_window), (536, 0, 65_535));

        // Without timestamps and path window their 20 bytes are payload.
        assert_eq!(negotiate(&offered, &syn(Flags::NONE, full)).mss, 1460);
        let small = SynOptions { mss: 1000, ..full };
        assert_eq!(negotiate(&offered, &syn(all, small)).mss, 980);
        assert_eq!(negotiate(&offered, &syn(all, SynOptions { mss: 1, ..full })).mss, MSS_MIN - 20);

        // ECE and CWR in a SYN-ACK come from a host that reflects flags (RFC 3168 §6.1.1.1).
        assert!(!negotiate(&offered, &syn(all | Flags::ACK, full)).ecn);
        assert!(negotiate(&offered, &syn(Flags::ACK | Flags::ECE, full)).ecn);
    }
}
