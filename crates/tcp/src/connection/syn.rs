//! The SYN of a connection, and the timer that retransmits it.

use fanin_units::Instant;

/// The SYN or SYN-ACK of a connection, with its retransmission timer.
#[derive(Clone, Debug)]
pub(super) struct SynTimer {
    /// True if `listen` opened the connection.
    pub(super) is_passive: bool,
    /// True if the SYN or SYN-ACK has to be sent.
    pub(super) is_due: bool,
    /// True if the peer's SYN had a window scale option.
    pub(super) peer_scales: bool,
    /// Time of its first transmission.
    pub(super) first_sent_at: Option<Instant>,
    /// Number of its retransmissions after a timeout.
    pub(super) retries: u32,
    pub(super) deadline: Instant,
}

impl Default for SynTimer {
    fn default() -> Self {
        Self::new(true)
    }
}

impl SynTimer {
    pub(super) fn new(is_passive: bool) -> Self {
        let deadline = Instant::FAR_FUTURE;
        Self {
            is_passive,
            is_due: !is_passive,
            peer_scales: false,
            first_sent_at: None,
            retries: 0,
            deadline,
        }
    }

    /// Time at which the SYN or SYN-ACK is retransmitted.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Sends the SYN or SYN-ACK, perhaps again.
    pub(super) fn send(&mut self) {
        self.is_due = true;
    }

    /// Handles an expired timer. Returns true if another retransmission is allowed.
    pub(super) fn retry(&mut self, retries_max: u32) -> bool {
        self.retries += 1;
        self.is_due = true;
        self.retries <= retries_max
    }
}
