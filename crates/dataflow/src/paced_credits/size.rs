//! The size of an event, as its answers show it.

/// The least size of an event, relative to usual ones: an empty first answer must not end the pacing of all others.
const RELATIVE_SIZE_MIN: f64 = 1.0 / 4.0;

/// The size of an event relative to usual ones, as known from its answers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RelativeSize {
    /// Distinguishes the events of a receiver.
    pub(super) event: Option<u64>,
    /// Bytes that arrived.
    pub(super) bytes: f64,
    /// Usual bytes of these answers.
    pub(super) usual: f64,
}

impl RelativeSize {
    /// Returns the size of an event without answers. They will correct the prediction of its outstanding requests. `event`
    /// distinguishes it from the receiver's other events.
    pub fn of_event(event: u64) -> Self {
        Self { event: Some(event), ..Self::default() }
    }

    /// Returns the bytes of the event's answers over usual ones, at least [`RELATIVE_SIZE_MIN`]; `None` without
    /// answers.
    pub(crate) fn factor(self) -> Option<f64> {
        (self.usual > 0.0).then(|| (self.bytes / self.usual).max(RELATIVE_SIZE_MIN))
    }
}
