//! The following supervisor, as its leader knows it.

/// The other supervisor's request to follow. It is answered after a commit, as the files of the log are known then.
#[derive(Debug, Clone, Copy)]
pub(super) struct FollowRequest {
    /// Identity of its log.
    pub(super) log: u64,
    /// Bytes of its log.
    pub(super) position: u64,
    /// The last term in its log.
    pub(super) term: u64,
    /// True if the answer failed once.
    pub(super) is_late: bool,
}

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
