//! PAUSE thresholds (IEEE 802.3x, 802.1Qbb).

use fanin_units::{Bytes, Duration, Rate};

/// A signal to the sender at the other end of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSignal {
    /// Stop sending (XOFF).
    Pause,
    /// Send again (XON).
    Resume,
}

/// A PAUSE frame on the wire: 64 bytes, preamble and gap.
const SIGNAL_BYTES: Bytes = Bytes::new(84);

/// What may still come in over a link after its upper threshold was passed: the memory above [`PauseThresholds`]' `xoff` that
/// each input needs so that nothing is lost (IEEE 802.1Q annex N).
///
/// The signal waits for a frame of up to `frame_max` bytes on the wire that is being sent, takes its own time, travels for
/// `delay`, and works after `reaction`; the neighbour then ends a frame, which travels back.
pub fn pause_headroom(rate: Rate, delay: Duration, reaction: Duration, frame_max: Bytes) -> Bytes {
    let signal = rate.time_to_send(frame_max) + rate.time_to_send(SIGNAL_BYTES) + delay * 2 + reaction;
    // The frame that passed the threshold, the one that is being sent when the signal works, and rounding.
    rate.bytes_in(signal).saturating_add(frame_max * 2).saturating_add(Bytes::new(1))
}

/// The thresholds of one input, and the last signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseThresholds {
    xoff: u64,
    xon: u64,
    paused: bool,
}

/// The thresholds are out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the threshold to resume, {xon}, must lie below the one to pause, {xoff}")]
pub struct PauseError {
    /// The threshold to pause.
    pub xoff: Bytes,
    /// The threshold to resume.
    pub xon: Bytes,
}

impl PauseThresholds {
    /// Pauses at an occupancy of `xoff` or more, and resumes at `xon` or less.
    ///
    /// What arrives after the signal until it takes effect (a round trip of the link, a frame being sent at either end, the
    /// reaction time) must fit above `xoff`: that headroom is the caller's to plan.
    pub const fn new(xoff: Bytes, xon: Bytes) -> Result<Self, PauseError> {
        if xon.get() >= xoff.get() {
            return Err(PauseError { xoff, xon });
        }
        Ok(Self { xoff: xoff.get(), xon: xon.get(), paused: false })
    }

    /// The occupancy is `bytes` now. Returns the signal that is due, if one is.
    #[inline]
    pub const fn handle_level(&mut self, bytes: u64) -> Option<PauseSignal> {
        if !self.paused && bytes >= self.xoff {
            self.paused = true;
            Some(PauseSignal::Pause)
        } else if self.paused && bytes <= self.xon {
            self.paused = false;
            Some(PauseSignal::Resume)
        } else {
            None
        }
    }

    /// The threshold to pause.
    pub const fn xoff(&self) -> Bytes {
        Bytes::new(self.xoff)
    }

    /// The threshold to resume.
    pub const fn xon(&self) -> Bytes {
        Bytes::new(self.xon)
    }

    /// Whether the last signal was to pause.
    pub const fn is_paused(&self) -> bool {
        self.paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_once_each_way() {
        let mut input = PauseThresholds::new(Bytes::new(100), Bytes::new(40)).unwrap();
        let said: [_; 7] = [99, 100, 200, 41, 40, 60, 100].map(|level| input.handle_level(level));
        use PauseSignal::{Pause, Resume};
        assert_eq!(said, [None, Some(Pause), None, None, Some(Resume), None, Some(Pause)]);
        assert!(PauseThresholds::new(Bytes::new(40), Bytes::new(40)).is_err());
    }
}
