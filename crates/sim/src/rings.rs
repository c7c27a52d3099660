//! Output ports whose frames wait in rings: the deep queues of a software switch ("daqrings").
//!
//! LCN'15 ("A Lossless Switch"), multi-host paper §II.B: every flow that is sensitive to incast is stored in a ring of
//! its destination, which holds a number of frames and is emptied at a rate of its own. What no rule names shares one
//! more ring of the port, without a rate, and goes first. With the ring of one destination at most, departures are foreseen
//! ([`OneRing`]). Where several rings take turns a departure is known only when it comes: it costs an occurrence more for each
//! frame than at a plain port.

use std::collections::{BTreeMap, VecDeque};

use fanin_network::PortIndex;
use fanin_queueing::{Departure, Discipline, Frame as Descriptor, Port as Queue, RingSettings, Verdict};
use fanin_scenario::{DaqringService, Daqrings};
use fanin_units::{Bytes, Instant, Rate};

use crate::Error;
use crate::fabric::{OneRing, Parcel};

/// In [`crate::memories::Place::memory`]: the rest of the number says which of the ringed ports this is.
pub(crate) const RINGED: u32 = 1 << 31;

/// The place of what no rule names.
pub(crate) const OTHERS: usize = 0;

/// One output port with its rings.
pub(crate) struct RingedPort {
    pub(crate) port: PortIndex,
    /// When the pending look at the port is due; `u64::MAX` where there is none.
    pub(crate) look_at: u64,
    pub(crate) queue: RingQueue,
    settings: Daqrings,
    /// The ring of each destination.
    rings: BTreeMap<u32, usize>,
    unstored_bytes: u32,
}

/// How the frames of such a port wait.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all ports are of the larger kind, which every frame looks at"
)]
pub(crate) enum RingQueue {
    /// With the ring of one destination at most.
    One(OneRing),
    /// With any number of them.
    Several(Box<SeveralRings>),
}

/// What all rings of a network did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RingFigures {
    /// Rings of destinations.
    pub(crate) rings: u64,
    /// The most frames that one of them held.
    pub(crate) frames_max: u64,
    /// The most bytes that one of them held.
    pub(crate) bytes_max: u64,
    /// Frames that passed through them.
    pub(crate) frames: u64,
    /// Frames that they refused.
    pub(crate) drops: u64,
    /// Memory that they take when full.
    pub(crate) memory_bytes: u64,
}

impl RingedPort {
    pub(crate) fn new(port: PortIndex, settings: &Daqrings, unstored_bytes: u32) -> Result<Self, Error> {
        Ok(Self {
            port,
            look_at: u64::MAX,
            queue: RingQueue::One(OneRing::new(settings.frames, unstored_bytes)?),
            settings: settings.clone(),
            rings: BTreeMap::new(),
            unstored_bytes,
        })
    }

    /// The ring of a destination, made where there is none yet; without one, the place of all others.
    ///
    /// # Panics
    /// If a second ring is wanted after the first frame: whether departures can be foreseen has to be known before.
    pub(crate) fn ring(&mut self, destination: Option<u32>) -> Result<usize, Error> {
        let Some(destination) = destination else { return Ok(OTHERS) };
        if let Some(&ring) = self.rings.get(&destination) {
            return Ok(ring);
        }
        let Daqrings { rate, burst, .. } = self.settings;
        let shaping = (!rate.is_zero()).then_some((rate, burst));
        let ring = match &mut self.queue {
            RingQueue::One(one) if self.rings.is_empty() => {
                one.set_shaping(shaping)?;
                OTHERS + 1
            }
            RingQueue::One(one) => {
                assert!(one.is_unused(), "port {} gets a second ring after its first frame", self.port);
                let mut several = SeveralRings::new(&self.settings, self.unstored_bytes)?;
                several.add_ring(shaping)?;
                let ring = several.add_ring(shaping)?;
                self.queue = RingQueue::Several(Box::new(several));
                ring
            }
            RingQueue::Several(several) => several.add_ring(shaping)?,
        };
        self.rings.insert(destination, ring);
        Ok(ring)
    }

    /// Frames in all rings, as far as anybody has looked.
    pub(crate) fn frames(&self) -> u64 {
        match &self.queue {
            RingQueue::One(one) => one.frames(),
            RingQueue::Several(several) => several.frames(),
        }
    }

    /// Bytes in all rings, as far as anybody has looked.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.queue {
            RingQueue::One(one) => one.bytes(),
            RingQueue::Several(several) => several.bytes(),
        }
    }

    /// The most bytes that one ring held.
    pub(crate) fn bytes_max(&self) -> u64 {
        match &self.queue {
            RingQueue::One(one) => one.bytes_max(),
            RingQueue::Several(several) => several.bytes_max(),
        }
    }

    /// Sees what has left by `now`.
    pub(crate) fn settle(&mut self, now: u64) {
        if let RingQueue::One(one) = &mut self.queue {
            one.settle(now);
        }
    }

    /// Starts the high-water marks afresh.
    pub(crate) fn reset_marks(&mut self, now: u64) {
        match &mut self.queue {
            RingQueue::One(one) => one.reset_marks(now),
            RingQueue::Several(several) => several.reset_marks(),
        }
    }

    /// Adds what the rings of this port's destinations did.
    pub(crate) fn add_to(&self, figures: &mut RingFigures) {
        let rings = self.rings.len() as u64;
        figures.rings += rings;
        figures.memory_bytes += rings * u64::from(self.settings.frames) * self.settings.slot.get();
        match &self.queue {
            RingQueue::One(one) => one.add_to(figures),
            RingQueue::Several(several) => several.add_to(figures),
        }
    }
}

/// What one ring holds, as a switch stores frames.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    bytes: u64,
    bytes_max: u64,
}

/// The rings of a port with any number of them.
pub(crate) struct SeveralRings {
    queue: Queue<Parcel>,
    /// What no rule names.
    others: VecDeque<Parcel>,
    frames_limit: u32,
    held: Vec<Held>,
    /// Payload of all frames in the rings.
    pub(crate) payload: u64,
    unstored_bytes: u32,
}

impl SeveralRings {
    fn new(settings: &Daqrings, unstored_bytes: u32) -> Result<Self, Error> {
        let discipline = match settings.service {
            DaqringService::RoundRobin => Discipline::RoundRobin,
            DaqringService::LongestFirst => Discipline::LongestFirst,
        };
        let mut queue = Queue::new(discipline, None)?;
        queue.add_ring(&RingSettings::new(settings.frames))?;
        Ok(Self {
            queue,
            others: VecDeque::new(),
            frames_limit: settings.frames,
            held: vec![Held::default()],
            payload: 0,
            unstored_bytes,
        })
    }

    fn add_ring(&mut self, shaping: Option<(Rate, Bytes)>) -> Result<usize, Error> {
        let ring = self.queue.add_ring(&RingSettings { shaping, ..RingSettings::new(self.frames_limit) })?;
        self.held.push(Held::default());
        Ok(ring)
    }

    /// A frame with so much payload comes for a ring; false if the ring is full.
    ///
    /// The token bucket counts what the frame takes on the wire, so that a limit of the next link's rate is that link.
    pub(crate) fn handle_arrival(&mut self, now: u64, ring: usize, parcel: Parcel, payload: u16) -> bool {
        if ring == OTHERS {
            if self.others.len() >= self.frames_limit as usize {
                return false;
            }
            self.others.push_back(parcel);
            self.note(ring, parcel, payload);
            return true;
        }
        let verdict = self.queue.handle_arrival(
            Instant::new(now),
            ring,
            Descriptor::new(parcel.wire_bytes()),
            parcel,
            || 0,
        );
        let Verdict::Accepted { .. } = verdict else { return false };
        self.note(ring, parcel, payload);
        true
    }

    fn note(&mut self, ring: usize, parcel: Parcel, payload: u16) {
        let held = &mut self.held[ring];
        held.bytes += u64::from(parcel.wire_bytes() - self.unstored_bytes);
        held.bytes_max = held.bytes_max.max(held.bytes);
        self.payload += u64::from(payload);
    }

    /// The next frame that may go, or when to look again.
    pub(crate) fn poll_departure(&mut self, now: u64) -> Result<Parcel, Option<u64>> {
        if let Some(parcel) = self.others.pop_front() {
            self.held[OTHERS].bytes -= u64::from(parcel.wire_bytes() - self.unstored_bytes);
            return Ok(parcel);
        }
        match self.queue.poll_departure(Instant::new(now)) {
            Departure::Frame { ring, handle, .. } => {
                self.held[ring].bytes -= u64::from(handle.wire_bytes() - self.unstored_bytes);
                Ok(handle)
            }
            Departure::NotBefore(at) => Err(Some(at.get())),
            Departure::Empty => Err(None),
        }
    }

    /// A time before which nothing that is here may go.
    #[inline]
    pub(crate) fn none_before(&self) -> u64 {
        if self.others.is_empty() { self.queue.none_before().get() } else { 0 }
    }

    /// Frames in all rings.
    pub(crate) fn frames(&self) -> u64 {
        self.queue.frames() + self.others.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.held.iter().map(|held| held.bytes).sum()
    }

    fn bytes_max(&self) -> u64 {
        self.held.iter().map(|held| held.bytes_max).max().unwrap_or(0)
    }

    fn reset_marks(&mut self) {
        for (ring, held) in self.held.iter_mut().enumerate() {
            held.bytes_max = held.bytes;
            self.queue.reset_marks(ring);
        }
    }

    fn add_to(&self, figures: &mut RingFigures) {
        for (ring, held) in self.held.iter().enumerate().skip(OTHERS + 1) {
            let counters = self.queue.counters(ring);
            figures.frames_max = figures.frames_max.max(self.queue.held(ring).frames_max);
            figures.bytes_max = figures.bytes_max.max(held.bytes_max);
            figures.frames += counters.enqueued.frames;
            figures.drops += counters.dropped_total().frames;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::{Bytes, Rate};

    const WIRE: u32 = 1538;

    fn port(settings: &Daqrings) -> RingedPort {
        RingedPort::new(0, settings, 20).unwrap()
    }

    fn several(port: &mut RingedPort) -> &mut SeveralRings {
        let RingQueue::Several(several) = &mut port.queue else { panic!("the port has one ring") };
        several
    }

    fn frame() -> Parcel {
        to(0)
    }

    fn to(end: u32) -> Parcel {
        Parcel::of(WIRE, end)
    }

    #[test]
    fn a_ring_holds_its_frames_and_no_more() {
        let mut port = port(&Daqrings { frames: 9000, ..Daqrings::default() });
        let ring = port.ring(Some(7)).unwrap();
        assert_eq!((ring, port.ring(Some(7)).unwrap(), port.ring(None).unwrap()), (1, 1, OTHERS));
        let other = port.ring(Some(8)).unwrap();
        let rings = several(&mut port);
        let taken = (0..9790).filter(|_| rings.handle_arrival(0, ring, frame(), 1448)).count();
        assert_eq!((taken, rings.frames(), rings.bytes()), (9000, 9000, 9000 * 1518));
        // One that is full keeps nothing out of the others.
        assert!(
            rings.handle_arrival(0, other, frame(), 1448) && rings.handle_arrival(0, OTHERS, frame(), 1448)
        );
        let mut figures = RingFigures::default();
        port.add_to(&mut figures);
        assert_eq!((figures.rings, figures.frames_max, figures.drops), (2, 9000, 790));
        assert_eq!(figures.memory_bytes, 2 * 9000 * 2048);
    }

    /// LCN'15, buffering: 9790 frames leave a ring of 0.78 Gb/s in 154 ms, to 1 %.
    #[test]
    fn a_ring_is_emptied_at_its_rate() {
        for service in [DaqringService::RoundRobin, DaqringService::LongestFirst] {
            let settings =
                Daqrings { frames: 14_000, rate: Rate::new(780_000_000), service, ..Daqrings::default() };
            let mut port = port(&settings);
            let ring = port.ring(Some(0)).unwrap();
            port.ring(Some(1)).unwrap();
            let port = several(&mut port);
            for _ in 0..9790 {
                assert!(port.handle_arrival(0, ring, frame(), 1448));
            }
            let (mut now, mut sent) = (0, 0);
            loop {
                match port.poll_departure(now) {
                    Ok(_) => sent += 1,
                    Err(Some(at)) => now = at,
                    Err(None) => break,
                }
            }
            let ms = now as f64 / 1e9;
            assert!(sent == 9790 && (ms / 154.4 - 1.0).abs() < 0.01, "{sent} frames in {ms} ms");
        }
    }

    #[test]
    fn the_longest_ring_goes_first() {
        let mut port = port(&Daqrings { service: DaqringService::LongestFirst, ..Daqrings::default() });
        let rings = [port.ring(Some(0)).unwrap(), port.ring(Some(1)).unwrap()];
        let port = several(&mut port);
        for (place, count) in [(0, 2), (1, 5)] {
            for _ in 0..count {
                assert!(port.handle_arrival(0, rings[place], to(place as u32), 1448));
            }
        }
        let ends: Vec<u32> = (0..7).map(|_| port.poll_departure(0).unwrap().end()).collect();
        assert_eq!(ends[..3], [1, 1, 1], "{ends:?}");
        assert_eq!(ends.iter().filter(|&&end| end == 0).count(), 2);
    }

    #[test]
    fn impossible_rings_are_refused() {
        let settings = Daqrings { rate: Rate::new(100), burst: Bytes::new(3036), ..Daqrings::default() };
        let error = port(&settings).ring(Some(0)).unwrap_err().to_string();
        assert!(error.contains("100 b/s"), "{error}");
        let error = RingedPort::new(0, &Daqrings { frames: 0, ..settings }, 20).err().unwrap().to_string();
        assert!(error.contains("got 0"), "{error}");
    }
}
