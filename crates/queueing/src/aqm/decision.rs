//! The decision about a frame, for every kind of active queue management.

use crate::frame::EcnCodepoint;

/// The treatment of a frame that is due for a mark but is not ECN-capable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum NotCapable {
    /// Drops it (RFC 3168 §5).
    #[default]
    Drop,
    /// Admits it unmarked.
    Pass,
}

/// The decision of active queue management about one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AqmDecision {
    /// The frame passes unchanged. A limit of the memory may still refuse it.
    Pass,
    /// The frame is marked CE.
    Mark,
    /// The frame is dropped.
    Drop,
}

/// The decision about a frame that is due for a mark.
pub(super) const fn mark(ecn: EcnCodepoint, not_capable: NotCapable) -> AqmDecision {
    match (ecn, not_capable) {
        (EcnCodepoint::Capable | EcnCodepoint::Congestion, _) => AqmDecision::Mark,
        (EcnCodepoint::NotCapable, NotCapable::Drop) => AqmDecision::Drop,
        (EcnCodepoint::NotCapable, NotCapable::Pass) => AqmDecision::Pass,
    }
}
