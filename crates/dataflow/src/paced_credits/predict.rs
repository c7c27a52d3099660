//! The predicted sizes of answers.

use fanin_units::{Bytes, Instant};

use super::{ByteCredit, PacedCredits, RelativeSize};

/// The first answers of an event are predicted larger than usual, by this many mean deviations.
const EVENT_DEVIATIONS: f64 = 2.0;

impl PacedCredits {
    /// Returns the bytes on the wire of an answer with `payload` bytes. Padding is left out: only answers of a few bytes are
    /// shorter than Ethernet's shortest frame.
    #[inline]
    pub(super) fn on_wire(&self, payload: f64) -> f64 {
        let (segment, frame) = (self.config.segment.get() as f64, self.config.frame.get() as f64);
        let bytes = payload + self.config.header.get() as f64;
        let frames = ((bytes - 1.0) / segment) as u64 + 1;
        bytes + frames as f64 * (frame - segment)
    }

    /// Returns the usual payload bytes of a readout's fragment, before its first answer the mean over all readouts. Zero
    /// if unknown.
    #[inline]
    pub(super) fn usual(&self, readout: u16) -> f64 {
        let own = self.sizes[usize::from(readout)];
        if own > 0.0 { own } else { self.fragment }
    }

    /// Returns the predicted payload of an answer, in bytes. An event without answers may be larger than usual.
    #[inline]
    pub(super) fn predict(&self, readout: u16, fragments: u16, event: RelativeSize) -> f64 {
        let factor = event.factor().unwrap_or(1.0 + EVENT_DEVIATIONS * self.deviation);
        self.usual(readout) * f64::from(fragments) * factor
    }

    /// Predicts the outstanding answers of an event again, whose size is better known now. Without that, requests of a large
    /// event would leave too soon for a round trip, and those of a small one too late.
    #[inline]
    pub(super) fn predict_again(&mut self, size: RelativeSize) {
        let (Some(event), Some(factor)) = (size.event, size.factor()) else { return };
        let mut change = 0.0;
        for place in 0..self.requests.len() {
            let request = self.requests[place];
            if request.is_outstanding && request.event == Some(event) {
                let bytes = (self.on_wire(request.usual * factor) as u64).max(1);
                change += bytes as f64 - request.bytes as f64;
                self.outstanding = self.outstanding - request.bytes + bytes;
                self.requests[place].bytes = bytes;
            }
        }
        self.outstanding_max = self.outstanding_max.max(self.outstanding);
        self.owe(change);
    }

    /// Delays or advances the next request by the error of a prediction, in bytes.
    #[inline]
    pub(super) fn owe(&mut self, bytes: f64) {
        if self.delay.is_some() {
            let debt = bytes / self.pace();
            self.next = Instant::new((self.next.get() as f64 + debt).max(0.0) as u64);
        }
    }

    /// Returns the bytes that are predicted now for a request without an answer.
    ///
    /// # Panics
    /// If the credit was returned.
    pub fn predicted(&self, credit: ByteCredit) -> Bytes {
        let bytes = match credit.number.checked_sub(self.first) {
            Some(place) => {
                self.requests.get(place as usize).filter(|one| one.is_outstanding).map(|one| one.bytes)
            }
            None => self.overdue.get(&credit.number).map(|one| one.bytes),
        };
        Bytes::new(bytes.expect("a credit comes back once"))
    }
}
