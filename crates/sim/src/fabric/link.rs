//! One direction of a link: its rate, its delay, and the frames on their way over it. The schedule holds the first of these.
//! `LinkLosses` draws the frames that it loses.

use std::collections::VecDeque;

use fanin_queueing::{Fifo, PauseSignal};
use fanin_units::{Duration, Rate};

use crate::parcel::Parcel;
use crate::schedule::Schedule;
use fanin_network::PortIndex;

/// The node at the far end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FarEnd {
    Host,
    Switch,
    /// A node of another partition, which handles the arrivals.
    Partition,
}

/// One direction of a link.
///
/// Only the arrival of the first frame on the link is pending in the schedule, which holds that frame.
pub(super) struct LinkState {
    /// Frames behind the one in the schedule, in order, sent or with booked departures. Each has its arrival at the far end in
    /// picoseconds. On a link to another partition all frames.
    frames: Fifo<(u64, Parcel)>,
    /// PAUSE and RESUME frames on their way, in order, each with its arrival at the far end in picoseconds.
    signals: VecDeque<(u64, PauseSignal)>,
    /// Time from which the link is free, in picoseconds: the end of the last transmission.
    free_at: u64,
    propagation: u64,
    /// Propagation, and the latency of the switch at the far end.
    delay: u64,
    /// [`Rate::byte_ps`] of the rate.
    byte_ps: u32,
    /// Number of observers of arriving frames.
    taps: u16,
    /// True if the arrival of an earlier frame is scheduled, so that the next frame goes into `frames`. Always true if the link
    /// leads out: the other partition schedules the arrivals.
    has_scheduled_arrival: bool,
    /// The node at the link's far end.
    far_end: FarEnd,
    rate: Rate,
    /// Bytes sent, with everything on the wire counted.
    wire_bytes: u64,
}

impl LinkState {
    /// Makes an idle link. `propagation`, and the `latency` of the switch at the far end, are in picoseconds.
    pub(super) fn new(rate: Rate, propagation: u64, latency: u64) -> Self {
        Self {
            frames: Fifo::new(),
            signals: VecDeque::new(),
            free_at: 0,
            propagation,
            delay: propagation + latency,
            byte_ps: rate.byte_ps(),
            taps: 0,
            has_scheduled_arrival: false,
            far_end: FarEnd::Host,
            rate,
            wire_bytes: 0,
        }
    }

    /// Returns the time in picoseconds for which a frame occupies the link.
    #[inline]
    pub(super) fn time_to_send(&self, wire_bytes: u32) -> u64 {
        self.rate.time_by_byte(self.byte_ps, wire_bytes).get()
    }

    /// Returns the time from which the link is free, in picoseconds.
    #[inline]
    pub(super) const fn free_at(&self) -> u64 {
        self.free_at
    }

    pub(super) const fn delay(&self) -> u64 {
        self.delay
    }

    /// Adds or removes one observer of the arriving frames.
    pub(super) const fn tap(&mut self, on: bool) {
        self.taps = if on { self.taps + 1 } else { self.taps - 1 };
    }

    /// Returns true if an observer notes the frames that arrive.
    #[inline]
    pub(super) const fn is_tapped(&self) -> bool {
        self.taps > 0
    }

    /// Takes a frame whose first bit leaves at `start`, and whose last bit has left at `departure`.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        schedule: &mut Schedule,
        [start, departure]: [u64; 2],
        index: PortIndex,
        parcel: Parcel,
    ) {
        assert!(self.free_at <= start && start < departure, "two frames are on the wire at once");
        self.free_at = departure;
        self.wire_bytes += u64::from(parcel.wire_bytes());
        let arrival = departure + self.delay;
        if self.has_scheduled_arrival {
            self.frames.push((arrival, parcel));
        } else {
            self.has_scheduled_arrival = true;
            schedule.insert_arrival(arrival, index, parcel);
        }
    }

    /// Sends a frame as soon as the link is free; returns its departure.
    #[inline(always)]
    pub(super) fn send_next(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        parcel: Parcel,
    ) -> u64 {
        let start = now.max(self.free_at);
        let departure = start + self.time_to_send(parcel.wire_bytes());
        self.send(schedule, [start, departure], index, parcel);
        departure
    }

    /// Occupies the link with a message outside the simulated frames; returns the time from which the link is free.
    pub(super) fn occupy(&mut self, now: u64, wire_bytes: u32) -> u64 {
        self.free_at = now.max(self.free_at) + self.time_to_send(wire_bytes);
        self.free_at
    }

    /// Sends a PAUSE or RESUME frame after the frame in service. Returns the arrival of the signal at the far end, which does
    /// not store the signal.
    pub(super) fn send_signal(&mut self, now: u64, wire_bytes: u32, signal: PauseSignal) -> u64 {
        let arrival = self.occupy(now, wire_bytes) + self.propagation;
        self.push_signal(arrival, wire_bytes, signal);
        arrival
    }

    /// Takes a PAUSE or RESUME frame from another partition.
    pub(super) fn accept_signal(&mut self, arrival: u64, wire_bytes: u32, signal: PauseSignal) {
        // A frame that the neighbour sent later may have been accepted earlier.
        self.free_at = self.free_at.max(arrival - self.propagation);
        self.push_signal(arrival, wire_bytes, signal);
    }

    fn push_signal(&mut self, arrival: u64, wire_bytes: u32, signal: PauseSignal) {
        self.wire_bytes += u64::from(wire_bytes);
        let alternates = self.signals.back().is_none_or(|&(at, last)| at < arrival && last != signal);
        assert!(alternates, "two signals of a link overlap, or are the same");
        self.signals.push_back((arrival, signal));
    }

    /// Takes the next PAUSE or RESUME frame, with its arrival, off a link that leads to another partition.
    pub(super) fn take_leaving_signal(&mut self) -> Option<(u64, PauseSignal)> {
        assert!(self.leads_out(), "a signal is taken off a link whose far end is in this partition");
        self.signals.pop_front()
    }

    /// Takes the first PAUSE or RESUME frame, which has arrived by `now`; panics if none has.
    pub(super) fn take_signal(&mut self, now: u64) -> PauseSignal {
        let (arrival, signal) = self.signals.pop_front().expect("a signal for each of its occurrences");
        assert!(arrival <= now, "a signal takes effect before it arrives");
        signal
    }

    /// Returns true if a PAUSE or RESUME frame is under way, or has not taken effect.
    pub(super) fn has_signals(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Takes the frame that arrives, and schedules the next arrival.
    #[inline(always)]
    pub(super) fn arrive(&mut self, schedule: &mut Schedule, index: PortIndex) -> Parcel {
        debug_assert!(self.has_scheduled_arrival, "a frame arrives without a scheduled arrival");
        let arrived = schedule.frame(index);
        match self.frames.pop() {
            Some((arrival, next)) => schedule.insert_arrival(arrival, index, next),
            None => self.has_scheduled_arrival = false,
        }
        arrived
    }

    /// Returns the node at the link's far end.
    #[inline]
    pub(super) const fn far_end(&self) -> FarEnd {
        self.far_end
    }

    /// Makes the link lead to a switch.
    pub(super) const fn lead_to_switch(&mut self) {
        self.far_end = FarEnd::Switch;
    }

    /// Returns true if the link leads to another partition.
    pub(super) const fn leads_out(&self) -> bool {
        matches!(self.far_end, FarEnd::Partition)
    }

    /// Makes the link lead to another partition. Keeps frames for [`Self::take_leaving`] and signals for
    /// [`Self::take_leaving_signal`], without arrivals.
    pub(super) fn lead_out(&mut self) {
        assert!(!self.has_scheduled_arrival, "a link with frames on it is made to lead out");
        (self.far_end, self.has_scheduled_arrival) = (FarEnd::Partition, true);
    }

    /// Takes the next frame, with its arrival, off a link that leads to another partition.
    pub(super) fn take_leaving(&mut self) -> Option<(u64, Parcel)> {
        assert!(self.leads_out(), "a frame is taken off a link whose far end is in this partition");
        self.frames.pop()
    }

    /// Returns the sent or booked frames that the schedule does not hold, in order.
    pub(super) fn frames(&self) -> impl Iterator<Item = Parcel> {
        self.frames.iter().map(|(_, parcel)| parcel)
    }

    /// Returns the bytes sent, with everything on the wire counted.
    pub(super) const fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Returns the bytes of all frames but those of [`Self::frames`]; zero on a link to another partition.
    pub(super) fn started_bytes(&self) -> u64 {
        if self.leads_out() {
            return 0;
        }
        self.wire_bytes - self.frames().map(|parcel| u64::from(parcel.wire_bytes())).sum::<u64>()
    }

    /// Asserts that the link carried no more than its rate, and kept the order of its frames.
    pub(super) fn assert_conserved(&self, index: usize) {
        let carried = self.rate.bytes_in(Duration::new(self.free_at)).get();
        assert!(
            self.wire_bytes <= carried,
            "port {index} sent {} bytes until {} ps, where its rate allows {carried}",
            self.wire_bytes,
            self.free_at
        );
        let in_order = self.frames.iter().is_sorted_by_key(|(arrival, _)| arrival);
        assert!(in_order, "frames overtake each other on port {index}");
    }
}
