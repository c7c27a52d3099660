//! A connection from set-up to tear-down: the state machine of RFC 9293 around an [`Endpoint`].
//!
//! ```text
//!                        CLOSED ── connect: SYN ──▶ SYN-SENT ──┐
//!                          │                          │        │
//!                       listen                  SYN: SYN-ACK   │
//!                          ▼                          ▼        │ SYN-ACK: ACK
//!                        LISTEN ── SYN: SYN-ACK ▶ SYN-RECEIVED │
//!                                                     │ ACK    │
//!                                                     ▼        ▼
//!              ┌──────────── close: FIN ◀──────── ESTABLISHED ◀┘
//!              ▼                                      │ FIN: ACK
//!          FIN-WAIT-1 ── FIN: ACK ──▶ CLOSING         ▼
//!    ACK of FIN │  └ FIN + ACK: ACK ┐   │ ACK    CLOSE-WAIT
//!              ▼                    ▼   ▼             │ close: FIN
//!          FIN-WAIT-2 ── FIN: ACK ▶ TIME-WAIT         ▼
//!                                       │ 2MSL     LAST-ACK
//!                                       ▼             │ ACK of FIN
//!                                     CLOSED ◀────────┘
//! ```
//!
//! A FIN occupies one offset (RFC 9293 §3.4). It is one byte more of the endpoint's stream, so that loss detection and
//! retransmission treat it as data. Initial sequence numbers are not modelled: the first byte has offset 0.

mod handshake;
mod segment_arrives;
mod syn;

use fanin_units::{Duration, Instant};

use crate::config::Config;
use crate::endpoint::{Endpoint, Forced};
use crate::segment::{Flags, Segment};
use syn::SynTimer;

/// The state of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConnectionState {
    /// No connection exists.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN, waits for the peer's.
    SynSent,
    /// Has received and sent a SYN, waits for the ACK of its own SYN.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// The application has closed; the FIN is not acknowledged yet.
    FinWait1,
    /// The FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer has closed; the application may still send.
    CloseWait,
    /// Both ends have closed at once; the FIN is not acknowledged yet.
    Closing,
    /// Closed after the peer; waits for the ACK of the FIN.
    LastAck,
    /// Both ends have closed; acknowledges retransmitted FINs for two maximum segment lifetimes.
    TimeWait,
}

/// Reason of a connection's close.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloseReason {
    /// Both sides closed it, or the application closed it before it was established.
    Finished,
    /// The peer answered the SYN with a RST.
    Refused,
    /// The peer sent a RST.
    Reset,
    /// The peer answered no retransmission.
    TimedOut,
    /// The application aborted it.
    Aborted,
}

/// An error: the connection's state does not allow the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongState {
    /// The connection's state at the call.
    pub state: ConnectionState,
    /// The refused call.
    pub call: &'static str,
}

impl core::fmt::Display for WrongState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "cannot {} in state {:?}", self.call, self.state)
    }
}

impl core::error::Error for WrongState {}

/// Limits of a connection's set-up and tear-down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionLimits {
    /// Retransmissions of a SYN or SYN-ACK before the connection is given up (`tcp_syn_retries`).
    pub syn_retries_max: u32,
    /// Timeouts and window probes in a row, without any answer, before the connection is given up (`tcp_retries2`; R2 of
    /// RFC 9293 §3.8.3).
    pub retries_max: u32,
    /// Duration of TIME-WAIT: two maximum segment lifetimes (`TCP_TIMEWAIT_LEN`).
    pub time_wait: Duration,
    /// Least time between two challenge ACKs (RFC 5961 §7; `tcp_invalid_ratelimit`).
    pub challenge_interval: Duration,
}

/// The limits of Linux.
impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            syn_retries_max: 6,
            retries_max: 15,
            time_wait: Duration::from_secs(60),
            challenge_interval: Duration::from_millis(500),
        }
    }
}

/// One end of one connection, from SYN to TIME-WAIT. Payload has a length only; the [crate](crate) says how to drive
/// it.
#[derive(Clone, Debug)]
pub struct TcpConnection {
    state: ConnectionState,
    close_reason: Option<CloseReason>,
    limits: ConnectionLimits,
    /// The offer of this end in the handshake.
    offered: Config,
    /// The settings that both ends agreed on, once the peer's SYN has arrived.
    config: Config,
    endpoint: Endpoint,
    syn: SynTimer,
    /// True if the application has closed: the last byte of the endpoint's stream is the FIN.
    is_fin_queued: bool,
    /// Offset of the peer's FIN, once it has arrived, perhaps out of order.
    peer_fin: Option<u64>,
    /// Right edge of all windows offered so far.
    rcv_limit: u64,
    /// Bytes that the application has read.
    bytes_read: u64,
    /// A RST to send for a segment that belongs to no connection.
    reset: Option<Segment>,
    /// True if the application has aborted the connection: a RST has to be sent.
    sends_reset: bool,
    /// Timeouts and probes since the peer's last segment.
    unanswered: u32,
    /// Time of the last challenge ACK.
    challenged_at: Option<Instant>,
    /// End of TIME-WAIT.
    time_wait_until: Instant,
}

impl TcpConnection {
    /// Makes a closed connection that will offer the settings of `config`.
    pub fn new(config: Config) -> Self {
        Self::with_limits(config, ConnectionLimits::default())
    }

    /// Makes a connection as [`new`](Self::new) does, with other limits.
    ///
    /// # Panics
    /// If [`Config::mss`] is [`u16::MAX`]: a FIN counts as one byte more.
    pub fn with_limits(config: Config, limits: ConnectionLimits) -> Self {
        assert!(config.mss < u16::MAX, "the MSS leaves a FIN no room in a segment");
        Self {
            state: ConnectionState::Closed,
            close_reason: None,
            limits,
            endpoint: Endpoint::new(&config),
            syn: SynTimer::default(),
            is_fin_queued: false,
            peer_fin: None,
            rcv_limit: 0,
            bytes_read: 0,
            reset: None,
            sends_reset: false,
            unanswered: 0,
            challenged_at: None,
            time_wait_until: Instant::FAR_FUTURE,
            offered: config.clone(),
            config,
        }
    }

    /// The state of RFC 9293.
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    /// Reason of the close; `None` before the first open and while open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// The settings in force: the offered ones, reduced by the peer's agreement.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The endpoint inside, for counters and state. A FIN counts as one byte of its stream.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Opens the connection actively: the next [`poll_transmit`](Self::poll_transmit) returns a SYN.
    ///
    /// # Errors
    /// If the connection is neither closed nor listens.
    pub fn connect(&mut self) -> Result<(), WrongState> {
        self.open(ConnectionState::SynSent, "connect")
    }

    /// Opens the connection passively: waits for a SYN.
    ///
    /// # Errors
    /// If the connection is not closed.
    pub fn listen(&mut self) -> Result<(), WrongState> {
        self.open(ConnectionState::Listen, "listen")
    }

    fn open(&mut self, state: ConnectionState, call: &'static str) -> Result<(), WrongState> {
        let may_open = match self.state {
            ConnectionState::Closed => true,
            // RFC 9293 §3.10.1: a listening connection may be opened actively.
            ConnectionState::Listen => state == ConnectionState::SynSent,
            _ => false,
        };
        if !may_open {
            return Err(WrongState { state: self.state, call });
        }
        *self = Self {
            reset: self.reset,
            sends_reset: self.sends_reset,
            ..Self::with_limits(self.offered.clone(), self.limits)
        };
        self.state = state;
        self.syn = SynTimer::new(state == ConnectionState::Listen);
        Ok(())
    }

    /// Appends `bytes` to the stream. They are sent once the connection is established.
    ///
    /// # Errors
    /// After [`close`](Self::close), and in all states but SYN-SENT, SYN-RECEIVED, ESTABLISHED and CLOSE-WAIT.
    pub fn send(&mut self, bytes: u64) -> Result<(), WrongState> {
        match self.state {
            ConnectionState::SynSent
            | ConnectionState::SynReceived
            | ConnectionState::Established
            | ConnectionState::CloseWait
                if !self.is_fin_queued =>
            {
                self.endpoint.write(bytes);
                Ok(())
            }
            state => Err(WrongState { state, call: "send" }),
        }
    }

    /// Bytes of the peer's stream received in order.
    pub fn received(&self) -> u64 {
        let delivered = self.endpoint.delivered();
        self.peer_fin.map_or(delivered, |fin| delivered.min(fin))
    }

    /// Bytes received in order and not read yet.
    pub fn readable(&self) -> u64 {
        self.received() - self.bytes_read
    }

    /// Reads up to `bytes_max` bytes. Returns the number read. A window update may follow.
    pub fn read(&mut self, bytes_max: u64) -> u64 {
        let bytes = self.readable().min(bytes_max);
        self.bytes_read += bytes;
        assert!(self.bytes_read <= self.received(), "read before it arrived");
        self.endpoint.read(&self.config, bytes);
        bytes
    }

    /// Returns true if the peer has closed and all its data was received.
    pub fn is_receive_closed(&self) -> bool {
        self.peer_fin.is_some_and(|fin| self.endpoint.delivered() > fin)
    }

    /// Ends the application's data: a FIN follows the written bytes. The peer's data can still be read.
    pub fn close(&mut self) {
        match self.state {
            ConnectionState::Listen | ConnectionState::SynSent => self.enter_closed(CloseReason::Finished),
            // The FIN follows once the connection is established.
            ConnectionState::SynReceived => self.queue_fin(),
            ConnectionState::Established => {
                self.queue_fin();
                self.state = ConnectionState::FinWait1;
            }
            ConnectionState::CloseWait => {
                self.queue_fin();
                self.state = ConnectionState::LastAck;
            }
            _ => {}
        }
    }

    fn queue_fin(&mut self) {
        if !self.is_fin_queued {
            self.is_fin_queued = true;
            self.endpoint.write(1);
            // Nagle's rule does not hold up a FIN.
            self.config.nodelay = true;
        }
    }

    /// Sets Nagle's rule: with `nodelay` short segments do not wait for outstanding data (`TCP_NODELAY`, see
    /// [`Config::nodelay`]).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.offered.nodelay = nodelay;
        // Nagle's rule does not hold up a FIN.
        self.config.nodelay = nodelay || self.is_fin_queued;
    }

    /// Drops the connection at once. The peer receives a RST where RFC 9293 §3.10.5 requires one.
    pub fn abort(&mut self) {
        let sends_reset = matches!(
            self.state,
            ConnectionState::SynReceived
                | ConnectionState::Established
                | ConnectionState::FinWait1
                | ConnectionState::FinWait2
                | ConnectionState::CloseWait
        );
        self.sends_reset = sends_reset;
        if self.state != ConnectionState::Closed {
            self.enter_closed(CloseReason::Aborted);
        }
    }

    /// The next segment to put on the network now, or `None`. Call until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if let Some(reset) = self.reset.take() {
            return Some(reset);
        }
        if core::mem::take(&mut self.sends_reset) {
            // With ACK and timestamps, as of a synchronized state (tcp_send_active_reset).
            let offset = self.endpoint.sent();
            return Some(self.endpoint.make_segment(&self.config, now, offset, 0, Flags::RST | Flags::ACK));
        }
        match self.state {
            ConnectionState::Closed | ConnectionState::Listen => None,
            ConnectionState::SynSent | ConnectionState::SynReceived => self.poll_syn(now),
            _ => {
                let mut segment = self.endpoint.poll_transmit(&self.config, now)?;
                if self.is_fin_queued && segment.payload > 0 && segment.end() == self.endpoint.written() {
                    segment.payload -= 1;
                    segment.flags.insert(Flags::FIN);
                    if segment.payload == 0 {
                        segment.flags.remove(Flags::PSH);
                    }
                }
                Some(segment)
            }
        }
    }

    /// Time at which [`handle_deadline`](Self::handle_deadline) is due; `None` for never. It may be earlier than a
    /// timer's expiry: the call then only updates the deadline.
    pub fn poll_deadline(&self) -> Option<Instant> {
        let deadline = match self.state {
            ConnectionState::Closed | ConnectionState::Listen => Instant::FAR_FUTURE,
            ConnectionState::SynSent | ConnectionState::SynReceived => self.syn.deadline(),
            _ => self.endpoint.poll_deadline().min(self.time_wait_until),
        };
        (deadline < Instant::FAR_FUTURE).then_some(deadline)
    }

    /// Runs the timers that have expired. Drain [`poll_transmit`](Self::poll_transmit) afterwards.
    pub fn handle_deadline(&mut self, now: Instant) {
        match self.state {
            ConnectionState::Closed | ConnectionState::Listen => {}
            ConnectionState::SynSent | ConnectionState::SynReceived => {
                if self.syn.deadline() <= now && !self.syn.retry(self.limits.syn_retries_max) {
                    self.enter_closed(CloseReason::TimedOut);
                }
            }
            ConnectionState::TimeWait if self.time_wait_until <= now => {
                self.enter_closed(CloseReason::Finished);
            }
            _ => {
                let timeouts = self.endpoint.timeouts();
                self.endpoint.handle_deadline(&self.config, now);
                let is_probing = self.endpoint.forced == Forced::WindowProbe;
                if self.endpoint.timeouts() > timeouts || is_probing {
                    self.unanswered += 1;
                }
                if self.unanswered > self.limits.retries_max {
                    self.enter_closed(CloseReason::TimedOut);
                }
            }
        }
    }

    fn enter_closed(&mut self, reason: CloseReason) {
        assert_ne!(self.state, ConnectionState::Closed, "a connection closes twice");
        self.state = ConnectionState::Closed;
        self.close_reason = Some(reason);
        self.time_wait_until = Instant::FAR_FUTURE;
    }

    /// Panics if an invariant does not hold. For tests; it walks the whole flight.
    pub fn check(&self) {
        self.endpoint.check(&self.config);
        assert!(self.bytes_read <= self.received(), "read before it was received");
        assert_eq!(self.state == ConnectionState::TimeWait, self.time_wait_until < Instant::FAR_FUTURE);
        let is_closing = matches!(
            self.state,
            ConnectionState::FinWait1
                | ConnectionState::FinWait2
                | ConnectionState::Closing
                | ConnectionState::LastAck
                | ConnectionState::TimeWait
        );
        assert!(!is_closing || self.is_fin_queued, "{:?} without a FIN", self.state);
    }
}
