//! PAUSE frames (IEEE 802.3 annex 31B): a port holds its transmitter when it receives one, and sends them when the frames that came
//! in by it fill the switch.

use std::sync::Arc;

use fanin_queueing::{PauseSignal, PauseThresholds};
use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::address::Mac;
use crate::config::{Config, PortSpec};
use crate::frame::pause_frame;
use crate::workers::SharedCounts;

/// A quantum lasts 512 bit times.
const QUANTUM: Bytes = Bytes::new(64);
/// The rate that quanta count for a port without a rate.
const RATE_ASSUMED: Rate = Rate::new(10_000_000_000);
/// While a neighbour is paused, the frames that other workers hold are counted this often: they release them without a message.
const COUNT_EVERY: Duration = Duration::from_micros(20);

/// PAUSE of all ports of a switch, the part of one worker.
#[derive(Debug)]
pub(super) struct PauseControl {
    ports: Vec<PortPause>,
    /// True if any port sends PAUSE frames.
    is_sending: bool,
    worker: usize,
    has_others: bool,
    /// By input: bytes that this worker queued or handed over, less those that it released. Another worker may release what
    /// this one queued, so that only the sum over workers is an occupancy.
    held: Vec<u64>,
    shared: Arc<SharedCounts>,
}

impl PauseControl {
    /// No port is paused, and nothing is held.
    pub(super) fn new(config: &Config, worker: usize, has_others: bool, shared: Arc<SharedCounts>) -> Self {
        Self {
            ports: config.port.iter().enumerate().map(|(n, spec)| PortPause::new(spec, n)).collect(),
            is_sending: config.port.iter().any(|port| port.pause.xoff.is_some()),
            worker,
            has_others,
            held: vec![0; config.port.len()],
            shared,
        }
    }

    /// Returns true if any port sends PAUSE frames.
    #[inline]
    pub(super) const fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// This worker queued a frame of an input, or handed it to another worker.
    #[inline]
    pub(super) fn hold(&mut self, input: usize, bytes: u32) {
        if self.is_sending {
            self.held[input] = self.held[input].wrapping_add(bytes.into());
        }
    }

    /// This worker released a frame of an input.
    #[inline]
    pub(super) fn release(&mut self, input: usize, bytes: u32) {
        if self.is_sending {
            self.held[input] = self.held[input].wrapping_sub(bytes.into());
        }
    }

    /// Counts a PAUSE frame that came in. Returns until when the port must hold its transmitter, if it obeys.
    pub(super) fn handle_frame(&mut self, now: Instant, port: usize, quanta: u16) -> Option<Instant> {
        self.ports[port].handle_frame(now, quanta)
    }

    /// Publishes what this worker holds, once a round and before [`Self::poll_frame`].
    pub(super) fn publish(&self) {
        if self.has_others {
            self.shared.publish(self.worker, &self.held);
        }
    }

    /// The PAUSE or RESUME frame that a port must send now.
    pub(super) fn poll_frame(&mut self, now: Instant, port: usize) -> Option<[u8; 60]> {
        let occupancy = self.occupancy(port);
        self.ports[port].poll_frame(now, occupancy)
    }

    /// Bytes that all workers hold of the frames that came in by a port of this worker.
    pub(super) fn occupancy(&self, port: usize) -> u64 {
        let own = self.held[port];
        if self.has_others { self.shared.held(self.worker, own, port) } else { own }
    }

    /// The frame of [`Self::poll_frame`] was sent.
    pub(super) fn handle_sent(&mut self, now: Instant, port: usize) {
        self.ports[port].handle_sent(now);
    }

    /// When a port may have a frame to send even if no frame moves.
    pub(super) fn next_at(&self, now: Instant, port: usize) -> Option<Instant> {
        let port = &self.ports[port];
        let count_at = (self.has_others && port.has_paused_peer()).then(|| now + COUNT_EVERY);
        [port.next_at(now), count_at].into_iter().flatten().min()
    }

    /// PAUSE frames received and sent by a port.
    pub(super) fn counters(&self, port: usize) -> (u64, u64) {
        (self.ports[port].received, self.ports[port].sent)
    }
}

/// PAUSE on one port.
#[derive(Debug)]
struct PortPause {
    thresholds: Option<PauseThresholds>,
    reacts: bool,
    quantum: Duration,
    /// The source address of the port's PAUSE frames.
    address: Mac,
    /// The quanta of a frame that is due, until it was sent.
    due: Option<u16>,
    /// When PAUSE must be sent again, so that it does not run out.
    again_at: Instant,
    received: u64,
    sent: u64,
}

impl PortPause {
    fn new(spec: &PortSpec, index: usize) -> Self {
        let [high, low] = (index as u16).to_be_bytes();
        Self {
            thresholds: spec.pause.thresholds().unwrap_or_default(),
            reacts: spec.pause.react,
            quantum: spec.rate.unwrap_or(RATE_ASSUMED).time_to_send(QUANTUM),
            // A locally administered address that stands for the port; no station has it.
            address: Mac([0x02, 0xfa, 0x21, 0x00, high, low]),
            due: None,
            again_at: Instant::FAR_FUTURE,
            received: 0,
            sent: 0,
        }
    }

    fn handle_frame(&mut self, now: Instant, quanta: u16) -> Option<Instant> {
        self.received += 1;
        self.reacts.then(|| now + self.quantum * u64::from(quanta))
    }

    fn poll_frame(&mut self, now: Instant, occupancy: u64) -> Option<[u8; 60]> {
        let thresholds = self.thresholds.as_mut()?;
        match thresholds.handle_level(occupancy) {
            Some(PauseSignal::Pause) => self.due = Some(u16::MAX),
            Some(PauseSignal::Resume) => self.due = Some(0),
            None if thresholds.is_paused() && now >= self.again_at => self.due = Some(u16::MAX),
            None => {}
        }
        self.due.map(|quanta| pause_frame(self.address, quanta))
    }

    fn has_paused_peer(&self) -> bool {
        self.thresholds.as_ref().is_some_and(PauseThresholds::is_paused)
    }

    fn next_at(&self, now: Instant) -> Option<Instant> {
        match self.due {
            Some(_) => Some(now),
            None => self.has_paused_peer().then_some(self.again_at),
        }
    }

    fn handle_sent(&mut self, now: Instant) {
        self.sent += 1;
        // PAUSE is repeated after half the time that it lasts.
        let lasts = self.quantum * u64::from(self.due.take().unwrap_or(0));
        self.again_at = now + Duration::new(lasts.get() / 2);
    }
}
