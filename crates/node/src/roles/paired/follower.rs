//! The following supervisor, as its leader knows it.

/// A leader's state of the supervisor that follows its log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Follower {
    /// Identity of the follower's log.
    pub(super) log: u64,
    /// Offset in the log up to which lines were sent, bytes.
    pub(super) shipped: u64,
    /// Bytes of the log that the follower has on disk.
    pub(super) held: u64,
}
