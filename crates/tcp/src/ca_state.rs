//! The state of congestion control.

/// The state of congestion control (`tcp_ca_state` of Linux).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub enum CongestionState {
    /// No sign of loss.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs arrive, too few to prove a loss.
    Disorder,
    /// The congestion window is being reduced (CWR) after an ECN echo.
    Cwr,
    /// Fast recovery after a loss.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}
