//! PAUSE frames of IEEE 802.3x (annex 31B) on one port: told to stop, we stop; with too much queued, we tell.

use fanin_queueing::{PauseSignal, PauseThresholds};
use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::address::Mac;
use crate::config::PortSpec;
use crate::frame::pause_frame;

/// A quantum lasts 512 bit times.
const QUANTUM: Bytes = Bytes::new(64);
/// The rate by which quanta are counted where the port's is not known.
const RATE_UNKNOWN: Rate = Rate::new(10_000_000_000);

/// One port's PAUSE.
#[derive(Debug)]
pub(crate) struct Pauser {
    thresholds: Option<PauseThresholds>,
    reacts: bool,
    quantum: Duration,
    address: Mac,
    /// A signal that is due, until it has been sent.
    due: Option<u16>,
    /// When the other end must be told again.
    again_at: Instant,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl Pauser {
    pub(crate) fn new(spec: &PortSpec, index: usize) -> Self {
        let [high, low] = (index as u16).to_be_bytes();
        Self {
            thresholds: spec.pause.thresholds().unwrap_or_default(),
            reacts: spec.pause.react,
            quantum: spec.rate.unwrap_or(RATE_UNKNOWN).time_to_send(QUANTUM),
            // A locally administered address that stands for the port; nobody answers to it.
            address: Mac([0x02, 0xfa, 0x21, 0x00, high, low]),
            due: None,
            again_at: Instant::FAR_FUTURE,
            received: 0,
            sent: 0,
        }
    }

    /// A PAUSE frame came in. Returns until when to be silent, where this port obeys.
    pub(crate) fn handle_frame(&mut self, now: Instant, quanta: u16) -> Option<Instant> {
        self.received += 1;
        self.reacts.then(|| now + self.quantum * u64::from(quanta))
    }

    /// So much of what came in by this port is queued. Returns a frame that is to be sent.
    pub(crate) fn poll_frame(&mut self, now: Instant, held: u64) -> Option<[u8; 60]> {
        let thresholds = self.thresholds.as_mut()?;
        match thresholds.handle_level(held) {
            Some(PauseSignal::Pause) => self.due = Some(u16::MAX),
            Some(PauseSignal::Resume) => self.due = Some(0),
            None if thresholds.is_paused() && now >= self.again_at => self.due = Some(u16::MAX),
            None => {}
        }
        self.due.map(|quanta| pause_frame(self.address, quanta))
    }

    /// Whether the other end was told to stop, or is about to be.
    pub(crate) fn is_paused(&self) -> bool {
        self.thresholds.as_ref().is_some_and(PauseThresholds::is_paused)
    }

    /// When there is a frame to send even if nothing happens.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        match self.due {
            Some(_) => Some(now),
            None => self.is_paused().then_some(self.again_at),
        }
    }

    /// The frame that [`Self::poll_frame`] gave is on its way.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.sent += 1;
        // Told again in half the time that it lasts.
        let lasts = self.quantum * u64::from(self.due.take().unwrap_or(0));
        self.again_at = now + Duration::new(lasts.get() / 2);
    }
}
