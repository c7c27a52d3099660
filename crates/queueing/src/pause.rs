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

/// The headroom of an input: the memory above the `xoff` of [`PauseThresholds`] that it needs to lose no frame after
/// sending PAUSE (IEEE 802.1Q annex N).
///
/// The PAUSE frame waits for a frame in service of up to `frame_max` bytes on the wire, takes its own time on the wire,
/// travels for `delay`, and takes effect after `reaction`. The neighbour then ends the frame in service, which travels
/// back.
pub fn pause_headroom(rate: Rate, delay: Duration, reaction: Duration, frame_max: Bytes) -> Bytes {
    let signal = rate.time_to_send(frame_max) + rate.time_to_send(SIGNAL_BYTES) + delay * 2 + reaction;
    // The frame that reached XOFF, the neighbour's frame in service when PAUSE takes effect, and rounding.
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
    /// Frames that arrive before the signal takes effect must fit above `xoff`. The caller plans that headroom
    /// ([`pause_headroom`]).
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

    /// Returns true if the last signal was PAUSE.
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
