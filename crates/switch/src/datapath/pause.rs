//! PAUSE frames (IEEE 802.3 annex 31B): a port holds its transmitter when it receives one, and sends one when its ingress
//! occupancy requires it.
//!
//! [`Ingress`] of `fanin-queueing` decides when a signal is due, as in the simulator. This file handles the frames that carry
//! it: their quanta expire, so that PAUSE is repeated, and a driver may have no room for one.

use std::sync::Arc;

use fanin_queueing::{FrameCharge, Ingress, PauseSignal};
use fanin_units::{Bytes, Duration, Instant};

use crate::address::Mac;
use crate::config::{Config, PortSpec, RATE_ASSUMED};
use crate::frame::pause_frame;
use crate::workers::SharedCounts;

/// A quantum lasts 512 bit times.
const QUANTUM: Bytes = Bytes::new(64);
/// Interval at which other workers' frames are counted while a neighbour is paused: they release frames without a message.
const COUNT_EVERY: Duration = Duration::from_micros(20);

/// One worker's part of the PAUSE of all ports.
#[derive(Debug)]
pub(super) struct PauseControl {
    ports: Vec<PortPause>,
    /// True if any port sends PAUSE frames.
    is_sending: bool,
    worker: usize,
    has_others: bool,
    /// Memory of the frames by input that this worker queued or handed over, minus that of released frames. The input's worker
    /// decides the signals.
    ingress: Vec<Ingress>,
    /// The memory that each frame counts with, also in a ring.
    charge: FrameCharge,
    shared: Arc<SharedCounts>,
}

impl PauseControl {
    /// Begins with no port paused and no bytes held.
    pub(super) fn new(config: &Config, worker: usize, has_others: bool, shared: Arc<SharedCounts>) -> Self {
        Self {
            ports: config.port.iter().enumerate().map(|(n, spec)| PortPause::new(spec, n)).collect(),
            is_sending: config.port.iter().any(|port| port.pause.xoff.is_some()),
            worker,
            has_others,
            ingress: config
                .port
                .iter()
                .map(|spec| Ingress::new(spec.pause.thresholds().expect("a configuration that was checked")))
                .collect(),
            charge: config.layout().frame_charge(),
            shared,
        }
    }

    /// Returns true if any port sends PAUSE frames.
    #[inline]
    pub(super) const fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Adds a frame of an input that this worker queued or handed to another worker.
    #[inline]
    pub(super) fn hold(&mut self, input: usize, bytes: u32) {
        if self.is_sending {
            self.ingress[input].arrive(self.charge.of(bytes));
        }
    }

    /// Subtracts a frame of an input that this worker released.
    #[inline]
    pub(super) fn release(&mut self, input: usize, bytes: u32) {
        if self.is_sending {
            self.ingress[input].depart(self.charge.of(bytes));
        }
    }

    /// Asserts that the ingress occupancy agrees with the queued frames, given as input and bytes. With several workers only
    /// the sum is known; [`Ingress::occupancy`] checks it.
    ///
    /// # Panics
    /// If one differs.
    pub(super) fn assert_holds(&self, queued: impl Iterator<Item = (usize, u32)>) {
        if !self.is_sending || self.has_others {
            return;
        }
        let mut held = vec![0i64; self.ingress.len()];
        queued.for_each(|(input, bytes)| held[input] += self.charge.of(bytes).cast_signed());
        assert!(
            self.ingress.iter().map(Ingress::held).eq(held),
            "the ingress occupancy is not what is queued"
        );
    }

    /// Counts a received PAUSE frame. Returns the end of the pause if the port obeys PAUSE.
    pub(super) fn handle_frame(&mut self, now: Instant, port: usize, quanta: u16) -> Option<Instant> {
        self.ports[port].handle_frame(now, quanta)
    }

    /// Publishes the ingress occupancy of this worker, once a round and before [`Self::poll_frame`].
    pub(super) fn publish(&self) {
        if self.has_others {
            self.shared.publish(self.worker, &self.ingress);
        }
    }

    /// Returns the PAUSE or RESUME frame that a port must send now; `None` if none is due.
    pub(super) fn poll_frame(&mut self, now: Instant, port: usize) -> Option<[u8; 60]> {
        let elsewhere = self.elsewhere(port);
        let signal = self.ingress[port].poll_signal(elsewhere);
        self.ports[port].poll_frame(now, signal, self.ingress[port].is_paused())
    }

    /// Returns the bytes from an input of this worker that other workers hold.
    fn elsewhere(&self, port: usize) -> i64 {
        if self.has_others { self.shared.held_by_others(self.worker, port) } else { 0 }
    }

    /// Returns the bytes from an input of this worker that all workers hold.
    #[cfg(test)]
    pub(super) fn occupancy(&self, port: usize) -> u64 {
        self.ingress[port].occupancy(self.elsewhere(port))
    }

    /// Notes that the frame of [`Self::poll_frame`] was sent.
    pub(super) fn handle_sent(&mut self, now: Instant, port: usize) {
        self.ports[port].handle_sent(now);
    }

    /// Returns the next time at which a port may have to send a frame, even if no frame moves.
    pub(super) fn next_at(&self, now: Instant, port: usize) -> Option<Instant> {
        let is_paused = self.ingress[port].is_paused();
        let count_at = (self.has_others && is_paused).then(|| now + COUNT_EVERY);
        [self.ports[port].next_at(now, is_paused), count_at].into_iter().flatten().min()
    }

    /// Returns the numbers of PAUSE frames that a port received and sent.
    pub(super) fn counters(&self, port: usize) -> (u64, u64) {
        (self.ports[port].received, self.ports[port].sent)
    }
}

/// The PAUSE frames of one port.
#[derive(Debug)]
struct PortPause {
    reacts: bool,
    quantum: Duration,
    /// The source address of the port's PAUSE frames.
    address: Mac,
    /// The quanta of the frame that is due, until it is sent.
    due: Option<u16>,
    /// Time of the next PAUSE, before the last one expires.
    again_at: Instant,
    received: u64,
    sent: u64,
}

impl PortPause {
    fn new(spec: &PortSpec, index: usize) -> Self {
        let [high, low] = (index as u16).to_be_bytes();
        Self {
            reacts: spec.pause.react,
            quantum: spec.rate.unwrap_or(RATE_ASSUMED).time_to_send(QUANTUM),
            // The source of PAUSE frames is a locally administered address with the port's number. No station has it.
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

    fn poll_frame(&mut self, now: Instant, signal: Option<PauseSignal>, is_paused: bool) -> Option<[u8; 60]> {
        match signal {
            Some(PauseSignal::Pause) => self.due = Some(u16::MAX),
            Some(PauseSignal::Resume) => self.due = Some(0),
            None if is_paused && now >= self.again_at => self.due = Some(u16::MAX),
            None => {}
        }
        self.due.map(|quanta| pause_frame(self.address, quanta))
    }

    fn next_at(&self, now: Instant, is_paused: bool) -> Option<Instant> {
        match self.due {
            Some(_) => Some(now),
            None => is_paused.then_some(self.again_at),
        }
    }

    fn handle_sent(&mut self, now: Instant) {
        let quanta = self.due.take().expect("a PAUSE frame is sent only where one is due");
        self.sent += 1;
        // PAUSE is repeated after half its duration.
        let lasts = self.quantum * u64::from(quanta);
        self.again_at = now + Duration::new(lasts.get() / 2);
    }
}
