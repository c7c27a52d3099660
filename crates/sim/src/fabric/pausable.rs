//! An output that PAUSE can stop, and the effect of PAUSE on it. The output is driven naively.

use fanin_network::PortIndex;
use fanin_queueing::{Class, InService, NaiveOutput};
use fanin_units::{Duration, Instant};

use super::link::LinkState;
use super::output::PendingDeparture;
use crate::occurrence::Occurrence;
use crate::parcel::Parcel;
use crate::schedule::Schedule;

/// Least duration of a pause that counts as a storm: the shortest time after which watchdogs of switches act.
const STORM: u64 = Duration::from_millis(100).get();

/// Figures of flow control.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct PauseFigures {
    /// PAUSE and RESUME signals sent.
    pub(crate) pauses: u64,
    pub(crate) resumes: u64,
    /// Ports of hosts and of switches that were paused at least once.
    pub(crate) hosts_stopped: u64,
    pub(crate) switch_ports_stopped: u64,
    /// The longest single pause in milliseconds, and the largest share of the time for which one port was paused.
    pub(crate) stop_ms_max: f64,
    pub(crate) stopped_share_max: f64,
    /// Number of ports with a single pause of a tenth of a second or longer.
    pub(crate) storms: u64,
    /// High-water mark of the ingress occupancy, over all inputs whose neighbours can be paused.
    pub(crate) input_bytes_max: u64,
}

/// A frame in an output that can be paused.
#[derive(Clone, Copy, Default)]
pub(super) struct PausableFrame {
    pub(super) parcel: Parcel,
    /// The sending port of the frame's last link; [`NIL`](crate::index::NIL) at the frame's own host.
    pub(super) input: PortIndex,
}

/// An output that can be paused.
pub(super) struct PausableOutput {
    output: NaiveOutput<PausableFrame>,
    departure: PendingDeparture,
    /// The classes that a PAUSE stops.
    classes: &'static [Class],
    /// The time from the arrival of a signal to its effect, in picoseconds.
    reaction: u64,
    paused_since: u64,
    pauses: u64,
    paused_total: u64,
    longest: u64,
}

impl PausableOutput {
    /// Makes an output that a PAUSE stops after `reaction` picoseconds, either for bulk data only or for all frames.
    pub(super) fn new(in_service: InService, only_bulk: bool, reaction: u64) -> Self {
        Self {
            output: NaiveOutput::new(in_service),
            departure: PendingDeparture::none(),
            classes: if only_bulk { &[Class::Bulk] } else { &[Class::Bulk, Class::Urgent] },
            reaction,
            paused_since: 0,
            pauses: 0,
            paused_total: 0,
            longest: 0,
        }
    }

    /// Queues a frame behind all others of its class.
    pub(super) fn arrive(&mut self, class: Class, frame: PausableFrame) {
        self.output.arrive(class, frame);
    }

    /// Takes the departure that is due at `now`; `None` if the occurrence is out of date. Returns the departed frame, if its
    /// memory was not freed before.
    pub(super) fn take_departure(&mut self, now: u64) -> Option<Option<PausableFrame>> {
        self.departure.take(now).then(|| self.output.settle(Instant::new(now)))
    }

    /// Sends the next permitted frame, if the link is free, and schedules the following step. Returns the frame if its memory
    /// is free at once.
    pub(super) fn serve(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        link: &mut LinkState,
        index: PortIndex,
    ) -> Option<PausableFrame> {
        let mut released = None;
        if link.free_at() <= now {
            let send =
                |frame: PausableFrame| Instant::new(link.send_next(schedule, now, index, frame.parcel));
            released = self.output.depart(send);
        }
        let next = self.output.next_departure(Instant::new(link.free_at()));
        if let Some(at) = next.map(Instant::get)
            && self.departure.expect(at)
        {
            schedule.insert_first(at, Occurrence::Departure(index));
        }
        released
    }

    /// Returns the time at which a signal that arrives at `arrival` takes effect.
    pub(super) const fn effect_at(&self, arrival: u64) -> u64 {
        arrival + self.reaction
    }

    /// Lets a PAUSE take effect.
    pub(super) fn pause(&mut self, now: u64) {
        self.classes.iter().for_each(|&class| self.output.pause(class));
        self.pauses += 1;
        assert!(now >= self.paused_since, "time runs backwards");
        self.paused_since = now;
    }

    /// Lets a RESUME take effect.
    pub(super) fn resume(&mut self, now: u64) {
        self.classes.iter().for_each(|&class| self.output.resume(class));
        let paused_for = now - self.paused_since;
        self.paused_total += paused_for;
        self.longest = self.longest.max(paused_for);
        assert!(self.longest <= self.paused_total, "a pause is longer than all together");
    }

    /// Returns the duration of the present pause in picoseconds; `None` if the output is not paused.
    pub(super) fn paused_for(&self, now: u64) -> Option<u64> {
        self.output.is_paused(Class::Bulk).then(|| now - self.paused_since)
    }

    /// Returns the frames that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = PausableFrame> {
        self.output.waiting()
    }

    /// Returns the frames that occupy memory.
    pub(super) fn stored(&self) -> impl Iterator<Item = PausableFrame> {
        self.output.stored()
    }

    /// Adds the pauses of this output, of a host or a switch, up to `now`.
    pub(super) fn add_to(&self, figures: &mut PauseFigures, is_host: bool, now: u64) {
        let open = self.paused_for(now).unwrap_or(0);
        let longest = self.longest.max(open);
        let ports = if is_host { &mut figures.hosts_stopped } else { &mut figures.switch_ports_stopped };
        *ports += u64::from(self.pauses > 0);
        figures.stop_ms_max = figures.stop_ms_max.max(longest as f64 / 1e9);
        let share = (self.paused_total + open) as f64 / now.max(1) as f64;
        figures.stopped_share_max = figures.stopped_share_max.max(share);
        figures.storms += u64::from(longest >= STORM);
    }

    /// Asserts that a departure is scheduled if the output may send a frame.
    pub(super) fn assert_departs(&self, link: &LinkState, index: usize) {
        let is_pending = self.output.next_departure(Instant::new(link.free_at())).is_some();
        assert!(!is_pending || self.departure.is_expected(), "port {index} has frames and no departure");
    }
}
