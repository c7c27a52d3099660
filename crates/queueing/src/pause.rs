//! The rule by which a switch pauses the senders at its inputs (IEEE 802.3 annex 31B, 802.1Qbb).
//!
//! An input's ingress occupancy is the memory of the frames that entered by it and are still queued, at any output. Both
//! callers charge a frame as the switch's memory does ([`FrameCharge`](crate::FrameCharge)). At XOFF
//! or more a PAUSE to its sender is due, and at XON or less a RESUME. In between nothing is due (hysteresis), so that
//! signals alternate.
//!
//! [`Ingress`] holds the ingress occupancy and the last signal, for the simulator and the live switch. Its callers send each
//! signal: the simulator as a control frame, the live switch's driver as a frame with quanta that expire. The callers also
//! decide which frames count. The live switch also passes each worker the occupancies of the other workers.

use fanin_units::{Bytes, Duration, Rate};

/// A signal to the sender at the other end of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSignal {
    /// Stop sending (XOFF).
    Pause,
    /// Send again (XON).
    Resume,
}

/// The headroom of an input: its memory above the `xoff` of [`PauseThresholds`]. With this headroom the input loses no
/// frame after the switch has sent PAUSE (IEEE 802.1Q annex N).
///
/// The PAUSE frame has `pause` bytes on the wire. It waits for a frame in service of up to `frame_max` bytes on the
/// wire, travels for `delay`, and takes effect after `reaction`. The neighbour then ends its own frame in service,
/// which travels back.
pub fn pause_headroom(
    rate: Rate,
    delay: Duration,
    reaction: Duration,
    frame_max: Bytes,
    pause: Bytes,
) -> Bytes {
    let signal = rate.time_to_send(frame_max) + rate.time_to_send(pause) + delay * 2 + reaction;
    // The frame that reached XOFF, the neighbour's frame in service when PAUSE takes effect, and rounding.
    rate.bytes_in(signal).saturating_add(frame_max * 2).saturating_add(Bytes::new(1))
}

/// The ingress occupancies at which an input's sender is paused and resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseThresholds {
    xoff: u64,
    xon: u64,
}

/// The thresholds are out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the threshold to resume, {xon}, must lie below the one to pause, {xoff}")]
pub struct PauseError {
    /// The occupancy at which to pause.
    pub xoff: Bytes,
    /// The occupancy at which to resume.
    pub xon: Bytes,
}

impl PauseThresholds {
    /// Pauses at an occupancy of `xoff` or more, and resumes at `xon` or less.
    ///
    /// Frames that arrive before the signal takes effect must fit above `xoff`. The caller plans that headroom
    /// ([`pause_headroom`]).
    ///
    /// # Errors
    /// If `xon` is not below `xoff`.
    pub const fn new(xoff: Bytes, xon: Bytes) -> Result<Self, PauseError> {
        if xon.get() >= xoff.get() {
            return Err(PauseError { xoff, xon });
        }
        Ok(Self { xoff: xoff.get(), xon: xon.get() })
    }

    /// The occupancy at which to resume.
    pub const fn xon(self) -> Bytes {
        Bytes::new(self.xon)
    }
}

/// One input: its ingress occupancy, and the last signal to its sender.
///
/// Each of several workers may keep an account of one input. A frame may arrive at one account and depart from another,
/// so that an account may be negative. Their sum is the occupancy. The worker of the input polls for signals.
/// `elsewhere` is the sum of the other accounts, 0 if there is one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ingress {
    /// Arrived bytes minus departed bytes of this account.
    held: i64,
    /// The thresholds; `None` if the sender is never paused.
    thresholds: Option<PauseThresholds>,
    is_paused: bool,
}

impl Ingress {
    /// An empty input; its sender is never paused without thresholds.
    pub const fn new(thresholds: Option<PauseThresholds>) -> Self {
        Self { held: 0, thresholds, is_paused: false }
    }

    /// Adds queued bytes of this input.
    #[inline]
    pub const fn arrive(&mut self, bytes: u64) {
        assert!(bytes <= i64::MAX.cast_unsigned(), "an arrival of more bytes than an input counts");
        self.held += bytes.cast_signed();
    }

    /// Subtracts departed bytes of this input.
    #[inline]
    pub const fn depart(&mut self, bytes: u64) {
        assert!(bytes <= i64::MAX.cast_unsigned(), "a departure of more bytes than an input counts");
        self.held -= bytes.cast_signed();
    }

    /// Arrived bytes minus departed bytes of this account.
    #[inline]
    pub const fn held(&self) -> i64 {
        self.held
    }

    /// The ingress occupancy: the bytes of this account and of the others.
    ///
    /// # Panics
    /// If more departed than arrived.
    #[inline]
    pub const fn occupancy(&self, elsewhere: i64) -> u64 {
        let occupancy = self.held + elsewhere;
        assert!(occupancy >= 0, "more bytes of an input departed than arrived");
        occupancy.cast_unsigned()
    }

    /// The signal that is due, if any. It stays due until [`Self::poll_signal`] returns it, or until the occupancy crosses the
    /// threshold again.
    ///
    /// # Panics
    /// If more departed than arrived.
    #[inline]
    pub const fn signal_due(&self, elsewhere: i64) -> Option<PauseSignal> {
        let occupancy = self.occupancy(elsewhere);
        match self.thresholds {
            Some(PauseThresholds { xoff, .. }) if !self.is_paused && occupancy >= xoff => {
                Some(PauseSignal::Pause)
            }
            Some(PauseThresholds { xon, .. }) if self.is_paused && occupancy <= xon => {
                Some(PauseSignal::Resume)
            }
            _ => None,
        }
    }

    /// Returns the signal that is due and counts it as sent. The caller sends it.
    ///
    /// # Panics
    /// If more departed than arrived.
    #[inline]
    pub const fn poll_signal(&mut self, elsewhere: i64) -> Option<PauseSignal> {
        let signal = self.signal_due(elsewhere);
        match signal {
            Some(PauseSignal::Pause) => self.is_paused = true,
            Some(PauseSignal::Resume) => self.is_paused = false,
            None => {}
        }
        signal
    }

    /// The thresholds, if the sender can be paused.
    #[inline]
    pub const fn thresholds(&self) -> Option<PauseThresholds> {
        self.thresholds
    }

    /// Returns true if the last signal was PAUSE.
    #[inline]
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_once_each_way() {
        let mut input = Ingress::new(PauseThresholds::new(Bytes::new(100), Bytes::new(40)).ok());
        let mut level = 0;
        let signals: [_; 7] = [99, 100, 200, 41, 40, 60, 100].map(|next: u64| {
            if next > level {
                input.arrive(next - level);
            } else {
                input.depart(level - next);
            }
            level = next;
            assert_eq!(input.occupancy(0), level);
            input.poll_signal(0)
        });
        use PauseSignal::{Pause, Resume};
        assert_eq!(signals, [None, Some(Pause), None, None, Some(Resume), None, Some(Pause)]);
        assert!(PauseThresholds::new(Bytes::new(40), Bytes::new(40)).is_err());
    }

    #[test]
    fn without_thresholds_no_signal_is_due() {
        let mut input = Ingress::new(None);
        input.arrive(u64::MAX >> 2);
        assert_eq!((input.poll_signal(0), input.is_paused()), (None, false));
    }

    #[test]
    #[should_panic(expected = "more bytes of an input departed")]
    fn a_departure_without_its_arrival_is_a_mistake() {
        let mut input = Ingress::new(None);
        input.arrive(100);
        input.depart(101);
        let _ = input.signal_due(0);
    }
}
