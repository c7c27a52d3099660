//! The partner of a supervisor that leads.

/// The other supervisor as a leader sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Follower {
    /// Identity of its log.
    pub(super) log: u64,
    /// Bytes that were sent.
    pub(super) shipped: u64,
    /// Bytes that it has on disk.
    pub(super) held: u64,
}
