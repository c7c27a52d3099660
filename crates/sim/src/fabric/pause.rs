//! PAUSE (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Qbb).
//!
//! A switch counts the bytes that came in by each port and wait in it, the ingress occupancy. At XOFF it sends the neighbour a
//! PAUSE, and at XON a RESUME. The signal is a frame of its own on the way back: it waits for the frame that is being sent,
//! goes before all that wait, takes its time on the wire, and takes effect after the neighbour's reaction time. Frames behind
//! a paused port wait wherever they are going (head-of-line blocking), fill the neighbour's memory, and pause that one's
//! neighbours in turn.
//!
//! With priority flow control bulk data (answers) are one priority, all other frames another one, which goes first and is
//! never paused. A PAUSE lasts until a RESUME: the frames that would renew it before its 65535 quanta are over are left out.
//!
//! Outputs are driven naively: when the link is free, the next frame that may go is sent. At one instant departures come
//! first, then the RESUMEs that they cause, then everything else.

use std::collections::VecDeque;

use fanin_queueing::{Class, Dedicated, Memory, PausableQueue, PauseSignal, PauseThresholds, Verdict};
use fanin_units::{Duration, Instant};

use super::link::Link;
use super::{Descriptor, Fabric, Hop, NEVER, OutputQueue, Parcel, Port};
use crate::index::NIL;
use crate::occurrence::Occurrence;
use crate::schedule::Schedule;
use fanin_network::PortIndex;

mod deadlock;
mod figures;

/// A MAC control frame on the wire: 64 bytes, preamble and gap.
const SIGNAL_BYTES: u32 = 84;
/// A port that is paused for so long is searched for a deadlock.
const SUSPECT: u64 = Duration::from_millis(10).get();

/// A frame in an output that can be paused.
#[derive(Clone, Copy, Default)]
struct Waiting {
    parcel: Parcel,
    /// The port over whose link it came in; none at its own host.
    input: PortIndex,
}

/// The memory that an output's frames take.
pub(super) enum Buffer {
    /// A host's, which has no limit.
    Unlimited,
    /// The output's own.
    Dedicated(Box<Dedicated>),
    /// The switch's.
    Shared,
}

/// How the sender at one end of a link obeys the receiver's PAUSE.
#[derive(Default)]
pub(super) struct PausedSender {
    /// A PAUSE is for bulk data only.
    only_bulk: bool,
    reaction: u64,
    /// Propagation of the link, by which signals come.
    link_delay: u64,
    /// Signals on their way.
    signals: VecDeque<PauseSignal>,
    paused_since: u64,
    pauses: u64,
    paused_for: u64,
    longest: u64,
}

impl PausedSender {
    /// A sender that a PAUSE stops after `reaction` picoseconds; signals travel for `link_delay`.
    pub(super) fn new(only_bulk: bool, reaction: u64, link_delay: u64) -> Self {
        Self { only_bulk, reaction, link_delay, ..Self::default() }
    }
}

/// An output that can be paused.
pub(super) struct PausableOutput {
    queue: PausableQueue<Waiting>,
    buffer: Buffer,
    /// Whether a frame takes memory until its last bit has left.
    counts_in_service: bool,
    /// The frame that is being sent and takes memory, and until when.
    in_service: Option<(u64, Waiting)>,
    /// When the pending occurrence is due; earlier ones do nothing.
    departure_at: u64,
    sender: PausedSender,
}

impl PausableOutput {
    pub(super) fn new(buffer: Buffer, counts_in_service: bool, sender: PausedSender) -> Self {
        Self {
            queue: PausableQueue::default(),
            buffer,
            counts_in_service,
            in_service: None,
            departure_at: NEVER,
            sender,
        }
    }

    const fn is_switch(&self) -> bool {
        !matches!(self.buffer, Buffer::Unlimited)
    }

    /// The output's own buffer, if it has one.
    pub(super) fn dedicated(&self) -> Option<&Dedicated> {
        if let Buffer::Dedicated(buffer) = &self.buffer { Some(buffer) } else { None }
    }

    pub(super) fn reset_marks(&mut self) {
        if let Buffer::Dedicated(buffer) = &mut self.buffer {
            buffer.reset_marks();
        }
    }

    /// The frames that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.queue.waiting().map(|waiting| waiting.parcel)
    }

    /// The frames that take memory here: those that wait, and the one in service where that counts.
    fn stored(&self) -> impl Iterator<Item = Waiting> {
        self.queue.waiting().chain(self.in_service.map(|(_, waiting)| waiting))
    }

    /// Schedules what comes next: the end of the frame in service, or a departure when the link is free.
    fn schedule(&mut self, schedule: &mut Schedule, link: &Link, index: PortIndex) {
        let at = match self.in_service {
            Some((until, _)) => until,
            None if self.queue.has_ready() => link.free_at(),
            None => return,
        };
        if at < self.departure_at {
            self.departure_at = at;
            schedule.insert_first(at, Occurrence::Departure(index));
        }
    }
}

/// The bytes that came in over a link and wait in the switch at its end.
#[derive(Clone, Copy, Default)]
struct Ingress {
    occupancy: u64,
    /// Absent where the switch never pauses its neighbours.
    thresholds: Option<PauseThresholds>,
}

/// A switch of a network with PAUSE.
pub(super) struct PausingSwitch {
    /// Absent where each output has its own buffer.
    pub(super) memory: Option<Memory>,
    /// Whether only bulk data count as ingress occupancy, as with priority flow control.
    pub(super) counts_bulk_only: bool,
    /// Bookkeeping that it stores with each frame.
    pub(super) overhead: u32,
    /// Inputs whose neighbours are paused, in the order of the PAUSEs.
    pub(super) paused_inputs: Vec<PortIndex>,
    /// When they are checked next.
    pub(super) check_at: u64,
}

/// Which frames are of which class.
#[derive(Clone, Copy)]
struct Classes {
    has_priorities: bool,
    /// Ends below this are those of connections whose second ends answer with bulk data.
    bulk_ends: u32,
}

impl Classes {
    #[inline]
    fn of(self, parcel: Parcel) -> Class {
        let is_bulk = || parcel.end() < self.bulk_ends && parcel.end().is_multiple_of(2);
        if self.has_priorities && !is_bulk() { Class::Urgent } else { Class::Bulk }
    }
}

/// Flow control in a network in which some switch uses PAUSE.
pub(crate) struct FlowControl {
    /// By the port over whose link the frames came in.
    ingress: Vec<Ingress>,
    switches: Vec<PausingSwitch>,
    classes: Classes,
    /// The most ingress occupancy of all inputs whose neighbours can be paused.
    input_bytes_max: u64,
    pauses: u64,
    resumes: u64,
    is_check_scheduled: bool,
    /// The ports of a deadlock, once there is one: each waits for the next, the last for the first.
    pub(crate) deadlock: Vec<PortIndex>,
}

impl FlowControl {
    /// For switches and, by port, the thresholds of the switch that its link leads to.
    pub(super) fn new(
        switches: Vec<PausingSwitch>,
        thresholds: Vec<Option<PauseThresholds>>,
        has_priorities: bool,
    ) -> Self {
        Self {
            ingress: thresholds.into_iter().map(|thresholds| Ingress { occupancy: 0, thresholds }).collect(),
            switches,
            classes: Classes { has_priorities, bulk_ends: u32::MAX },
            input_bytes_max: 0,
            pauses: 0,
            resumes: 0,
            is_check_scheduled: false,
            deadlock: Vec::new(),
        }
    }

    /// Connections below this number are those whose second ends answer with bulk data.
    pub(crate) fn set_bulk_connections(&mut self, connections: u32) {
        self.classes.bulk_ends = 2 * connections;
    }

    /// The memory of a switch, if its outputs share one.
    pub(super) fn memory(&self, switch: u32) -> Option<&Memory> {
        self.switches.get(switch as usize)?.memory.as_ref()
    }

    /// The memories of all switches whose outputs share one.
    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        self.switches.iter().filter_map(|switch| switch.memory.as_ref())
    }

    pub(super) fn reset_marks(&mut self) {
        self.switches.iter_mut().filter_map(|switch| switch.memory.as_mut()).for_each(Memory::reset_marks);
    }

    /// How much a frame adds to the ingress occupancy in a switch.
    #[inline]
    fn counted(&self, switch: usize, parcel: Parcel, unstored_bytes: u32) -> u64 {
        let PausingSwitch { counts_bulk_only, overhead, .. } = self.switches[switch];
        let counts = !counts_bulk_only || self.classes.of(parcel) == Class::Bulk;
        if counts { u64::from(parcel.wire_bytes() - unstored_bytes + overhead) } else { 0 }
    }

    /// A frame adds to an ingress occupancy. Returns whether the neighbour has to be paused.
    #[inline]
    fn charge_ingress(&mut self, switch: usize, input: PortIndex, counted: u64) -> bool {
        let ingress = &mut self.ingress[input as usize];
        ingress.occupancy += counted;
        let Some(thresholds) = ingress.thresholds.as_mut().filter(|_| counted > 0) else { return false };
        self.input_bytes_max = self.input_bytes_max.max(ingress.occupancy);
        // Only departures bring the occupancy down to XON.
        if thresholds.is_paused() || thresholds.handle_level(ingress.occupancy) != Some(PauseSignal::Pause) {
            return false;
        }
        debug_assert!(!self.switches[switch].paused_inputs.contains(&input), "a neighbour is paused twice");
        self.switches[switch].paused_inputs.push(input);
        true
    }

    /// A frame leaves the switch's memory. Returns whether its neighbour may go on.
    #[inline]
    fn credit_ingress(&mut self, input: PortIndex, counted: u64) -> bool {
        let ingress = &mut self.ingress[input as usize];
        debug_assert!(ingress.occupancy >= counted, "more left than came in by port {input}");
        ingress.occupancy -= counted;
        ingress
            .thresholds
            .is_some_and(|thresholds| thresholds.is_paused() && ingress.occupancy <= thresholds.xon().get())
    }
}

impl Fabric {
    /// A frame that came in over the link of `input` arrives at a switch's output that can be paused.
    #[inline(never)]
    pub(super) fn arrive_at_pausable(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [input, index]: [PortIndex; 2],
        mut parcel: Parcel,
    ) -> Hop {
        let unstored = self.unstored_bytes;
        let input_number = usize::from(self.ports[input as usize].input);
        let Port { queue: OutputQueue::Pausable(out), switch, output, .. } = &mut self.ports[index as usize]
        else {
            unreachable!("the output can be paused");
        };
        let (flow_control, switch) =
            (self.flow_control.as_deref_mut().expect("a network with PAUSE"), *switch as usize);
        let chance = &mut self.chances[switch];
        let draw = || (chance.bits() >> 32) as u32;
        let frame = Descriptor { bytes: parcel.wire_bytes() - unstored, ecn: parcel.ecn() };
        let at = Instant::new(now);
        let verdict = match &mut out.buffer {
            Buffer::Dedicated(buffer) => buffer.arrive(at, frame, draw),
            Buffer::Shared => {
                let memory = flow_control.switches[switch].memory.as_mut().expect("its outputs share one");
                memory.arrive(at, input_number, usize::from(*output), frame, draw)
            }
            Buffer::Unlimited => unreachable!("a switch stores what it forwards"),
        };
        let Verdict::Accepted { marked } = verdict else {
            return Hop::Dropped { segment: parcel.segment() };
        };
        let counted = flow_control.counted(switch, parcel, unstored);
        if flow_control.charge_ingress(switch, input, counted) {
            self.send_signal(schedule, now, input, PauseSignal::Pause);
        }
        if marked {
            parcel = self.mark(parcel);
        }
        self.enqueue_pausable(schedule, now, index, Waiting { parcel, input });
        Hop::Forwarded
    }

    /// A frame of a host arrives at its own output, which can be paused.
    pub(super) fn send_from_pausable(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        parcel: Parcel,
    ) {
        self.enqueue_pausable(schedule, now, index, Waiting { parcel, input: NIL });
    }

    fn enqueue_pausable(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex, waiting: Waiting) {
        let class = self.flow_control.as_ref().expect("a network with PAUSE").classes.of(waiting.parcel);
        let OutputQueue::Pausable(out) = &mut self.ports[index as usize].queue else {
            unreachable!("the output can be paused");
        };
        out.queue.arrive(class, waiting);
        self.serve_pausable(schedule, now, index);
    }

    /// The frame in service has left, or the link is free.
    pub(super) fn depart_pausable(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let OutputQueue::Pausable(out) = &mut self.ports[index as usize].queue else {
            unreachable!("the output can be paused");
        };
        if out.departure_at != now {
            return;
        }
        out.departure_at = NEVER;
        if let Some((until, waiting)) = out.in_service {
            assert_eq!(until, now, "the frame in service leaves when it is due");
            out.in_service = None;
            self.release(schedule, now, index, waiting);
        }
        self.serve_pausable(schedule, now, index);
    }

    /// Sends the next frame that may go, if the link is free, and schedules what comes next.
    fn serve_pausable(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let Port { queue: OutputQueue::Pausable(out), link, .. } = &mut self.ports[index as usize] else {
            unreachable!("the output can be paused");
        };
        if link.free_at() <= now
            && let Some(waiting) = out.queue.depart()
        {
            debug_assert!(out.in_service.is_none(), "the link sends one frame at a time");
            let until = link.send_next(schedule, now, index, waiting.parcel);
            let is_released = out.is_switch() && !out.counts_in_service;
            if out.is_switch() && out.counts_in_service {
                out.in_service = Some((until, waiting));
            }
            out.schedule(schedule, link, index);
            if is_released {
                self.release(schedule, now, index, waiting);
            }
        } else {
            out.schedule(schedule, link, index);
        }
    }

    /// Gives back the memory of a frame.
    fn release(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex, waiting: Waiting) {
        let unstored = self.unstored_bytes;
        let Waiting { parcel, input } = waiting;
        let input_number = usize::from(self.ports[input as usize].input);
        let Port { queue: OutputQueue::Pausable(out), switch, output, .. } = &mut self.ports[index as usize]
        else {
            unreachable!("the output can be paused");
        };
        let (flow_control, switch) =
            (self.flow_control.as_deref_mut().expect("a network with PAUSE"), *switch as usize);
        let (at, bytes) = (Instant::new(now), parcel.wire_bytes() - unstored);
        match &mut out.buffer {
            Buffer::Dedicated(buffer) => buffer.depart(at, bytes),
            Buffer::Shared => {
                let memory = flow_control.switches[switch].memory.as_mut().expect("its outputs share one");
                memory.depart(at, input_number, usize::from(*output), bytes);
            }
            Buffer::Unlimited => unreachable!("a host's frames take no memory"),
        }
        let counted = flow_control.counted(switch, parcel, unstored);
        let check_at = &mut flow_control.switches[switch].check_at;
        let is_checked = *check_at == now;
        if flow_control.credit_ingress(input, counted) && !is_checked {
            flow_control.switches[switch].check_at = now;
            schedule.insert_first(now, Occurrence::ResumeCheck(switch as u32));
        }
    }

    /// Sends a RESUME to every paused neighbour of a switch whose ingress occupancy is down to XON.
    pub(crate) fn check_resumes(&mut self, schedule: &mut Schedule, now: u64, switch: u32) {
        let Some(flow_control) = &mut self.flow_control else { return };
        let FlowControl { switches, ingress, .. } = &mut **flow_control;
        let switch = &mut switches[switch as usize];
        debug_assert_eq!(switch.check_at, now, "a check is scheduled for each of its occurrences");
        switch.check_at = NEVER;
        let mut resumed = Vec::new();
        switch.paused_inputs.retain(|&input| {
            let Ingress { occupancy, thresholds } = &mut ingress[input as usize];
            let thresholds = thresholds.as_mut().expect("a switch with thresholds paused its neighbour");
            let is_resumed = thresholds.handle_level(*occupancy) == Some(PauseSignal::Resume);
            if is_resumed {
                resumed.push(input);
            }
            !is_resumed
        });
        for input in resumed {
            self.send_signal(schedule, now, input, PauseSignal::Resume);
        }
    }

    /// Sends a signal to the neighbour whose frames come in over the link of `input`: after the frame that is being sent, and
    /// before all that wait.
    fn send_signal(&mut self, schedule: &mut Schedule, now: u64, input: PortIndex, signal: PauseSignal) {
        let back = &mut self.ports[input as usize ^ 1];
        let sent = back.link.occupy(now, SIGNAL_BYTES);
        back.link.wire_bytes += u64::from(SIGNAL_BYTES);
        let OutputQueue::Pausable(out) = &mut self.ports[input as usize].queue else {
            unreachable!("the neighbour of a switch with PAUSE obeys it");
        };
        let PausedSender { signals, link_delay, reaction, .. } = &mut out.sender;
        signals.push_back(signal);
        schedule.insert(sent + *link_delay + *reaction, Occurrence::PauseSignal(input));
        let flow_control = self.flow_control.as_mut().expect("a network with PAUSE");
        match signal {
            PauseSignal::Pause => flow_control.pauses += 1,
            PauseSignal::Resume => flow_control.resumes += 1,
        }
        if signal == PauseSignal::Pause && !flow_control.is_check_scheduled {
            flow_control.is_check_scheduled = true;
            schedule.insert(now + SUSPECT, Occurrence::DeadlockCheck);
        }
    }

    /// A signal takes effect at the port that it was sent to.
    pub(crate) fn handle_signal(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let OutputQueue::Pausable(out) = &mut self.ports[index as usize].queue else {
            unreachable!("only outputs that can be paused receive signals");
        };
        let PausableOutput { queue, sender, .. } = &mut **out;
        let is_paused = queue.is_paused(Class::Bulk);
        match sender.signals.pop_front().expect("a signal for each of its occurrences") {
            PauseSignal::Pause => {
                assert!(!is_paused, "port {index} is paused twice");
                queue.pause(Class::Bulk);
                if !sender.only_bulk {
                    queue.pause(Class::Urgent);
                }
                sender.pauses += 1;
                sender.paused_since = now;
            }
            PauseSignal::Resume => {
                assert!(is_paused, "port {index} resumes and was not paused");
                queue.resume(Class::Bulk);
                queue.resume(Class::Urgent);
                let paused_for = now - sender.paused_since;
                sender.paused_for += paused_for;
                sender.longest = sender.longest.max(paused_for);
                self.serve_pausable(schedule, now, index);
            }
        }
    }

    /// Asserts that buffers, memories and ingress occupancies add up to the frames that wait.
    ///
    /// # Panics
    /// If they do not.
    pub(super) fn assert_pausable_conserved(&self) {
        let Some(flow_control) = &self.flow_control else { return };
        let mut ingress = vec![0; self.ports.len()];
        for (index, port) in self.ports.iter().enumerate() {
            let OutputQueue::Pausable(out) = &port.queue else { continue };
            let is_pending = out.in_service.is_some() || out.queue.has_ready();
            assert!(!is_pending || out.departure_at != NEVER, "port {index} has frames and no departure");
            if !out.is_switch() {
                continue;
            }
            let frames = out.stored().count() as u64;
            let held = match &out.buffer {
                Buffer::Dedicated(buffer) => buffer.occupancy(),
                _ => {
                    let memory = flow_control.memory(port.switch).expect("its outputs share one");
                    memory.output(usize::from(port.output))
                }
            };
            assert_eq!(held.frames, frames, "port {index} stores other frames than wait there");
            for Waiting { parcel, input } in out.stored() {
                ingress[input as usize] +=
                    flow_control.counted(port.switch as usize, parcel, self.unstored_bytes);
            }
        }
        for (input, (account, expected)) in flow_control.ingress.iter().zip(ingress).enumerate() {
            assert_eq!(account.occupancy, expected, "the ingress occupancy of port {input}");
        }
        let paused = flow_control.ingress.iter().filter_map(|ingress| ingress.thresholds);
        let listed: usize = flow_control.switches.iter().map(|switch| switch.paused_inputs.len()).sum();
        assert_eq!(
            paused.filter(PauseThresholds::is_paused).count(),
            listed,
            "each paused input is listed once"
        );
        assert_eq!(
            flow_control.pauses,
            flow_control.resumes + listed as u64,
            "each PAUSE is followed by a RESUME, or still holds"
        );
    }
}

#[cfg(test)]
mod tests;
