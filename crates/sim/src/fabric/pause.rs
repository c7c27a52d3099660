//! PAUSE (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Qbb).
//!
//! A switch counts the bytes that came in by each port and wait in it, the ingress occupancy. At XOFF it sends the neighbour a
//! PAUSE, and at XON a RESUME. The signal is a frame of its own on the way back. It waits for the frame in service, goes
//! before all queued frames, and takes its time on the wire. It takes effect after the neighbour's reaction time. Frames
//! behind a paused port wait wherever they are going (head-of-line blocking), fill the neighbour's memory, and pause that
//! one's neighbours in turn.
//!
//! With priority flow control bulk data (answers) are one priority, all other frames another one, which goes first and is
//! never paused. A PAUSE lasts until a RESUME: the frames that would renew it before its 65535 quanta are over are left out.
//!
//! Outputs are driven naively: when the link is free, the next frame that may go is sent. At one instant departures come
//! first, then the RESUMEs that they cause, then everything else.

use fanin_network::PortIndex;
use fanin_queueing::{Frame as Descriptor, PauseSignal, StoredFrame, Verdict};
use fanin_tcp::Flags;
use fanin_units::{Duration, Instant};

use super::flow_control::FlowControl;
use super::output::{OutputQueue, Port};
use super::parcel::Parcel;
use super::pausable::{PausableFrame, PausableOutput};
use super::{Fabric, Hop, ecn};
use crate::index::NIL;
use crate::occurrence::Occurrence;
use crate::schedule::{NEVER, Schedule};

mod deadlock;
mod figures;

/// A port that is paused for so long is searched for a deadlock.
const SUSPECT: u64 = Duration::from_millis(10).get();

/// A PAUSE or RESUME that leaves a partition by a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeavingSignal {
    /// The sending port of its link.
    pub(crate) port: PortIndex,
    /// Arrival at the far end, in picoseconds.
    arrival: u64,
    signal: PauseSignal,
}

impl FlowControl {
    /// Schedules the next search for a deadlock, unless one is scheduled.
    fn schedule_check(&mut self, schedule: &mut Schedule, now: u64) {
        if !self.is_check_scheduled {
            self.is_check_scheduled = true;
            schedule.insert(now + SUSPECT, Occurrence::DeadlockCheck);
        }
    }
}

impl Fabric {
    /// Returns true if a switch of the network uses PAUSE.
    pub(crate) fn uses_pause(&self) -> bool {
        self.flow_control.is_some()
    }

    /// Connections below this number have bulk data from their second ends, for PAUSE.
    pub(crate) fn set_bulk_connections(&mut self, connections: u32) {
        if let Some(flow_control) = &mut self.flow_control {
            flow_control.classes.bulk_ends = 2 * connections;
        }
    }

    /// The ports of a deadlock that was found: each waits for the next, the last for the first.
    pub(crate) fn deadlock(&self) -> &[PortIndex] {
        self.flow_control.as_ref().map_or(&[], |flow_control| &flow_control.deadlock)
    }

    /// Handles a frame from the link of `input` at a switch's pausable output.
    #[inline(never)]
    pub(super) fn arrive_at_pausable(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [input, index]: [PortIndex; 2],
        parcel: Parcel,
    ) -> Hop {
        let unstored = self.unstored_bytes;
        let input_number = usize::from(self.ports[input as usize].input);
        let Port { switch, output, .. } = self.ports[index as usize];
        let (flow_control, switch) =
            (self.flow_control.as_deref_mut().expect("a network with PAUSE"), switch as usize);
        let chance = &mut self.chances[switch];
        let draw = || (chance.bits() >> 32) as u32;
        let frame =
            Descriptor { bytes: parcel.wire_bytes() - unstored, ecn: ecn(&self.segments[parcel.segment()]) };
        let at = Instant::new(now);
        let memory = &mut flow_control.switches[switch].memory;
        let verdict = memory.arrive(at, input_number, usize::from(output), frame, draw);
        let Verdict::Accepted { marked } = verdict else {
            return Hop::Dropped { segment: parcel.segment(), end: parcel.end(), port: index };
        };
        let counted = flow_control.counted(switch, parcel, unstored);
        if flow_control.charge_ingress(switch, input, counted) {
            self.send_signal(schedule, now, input, PauseSignal::Pause);
        }
        if marked {
            self.segments[parcel.segment()].flags.insert(Flags::CE);
        }
        self.enqueue_pausable(schedule, now, index, PausableFrame { parcel, input });
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
        self.enqueue_pausable(schedule, now, index, PausableFrame { parcel, input: NIL });
    }

    fn enqueue_pausable(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        waiting: PausableFrame,
    ) {
        let class = self.flow_control.as_ref().expect("a network with PAUSE").classes.of(waiting.parcel);
        let OutputQueue::Pausable(out) = &mut self.ports[index as usize].queue else {
            unreachable!("the output can be paused");
        };
        out.output.arrive(class, waiting);
        self.serve_pausable(schedule, now, index);
    }

    /// The frame in service has left, or the link is free.
    pub(super) fn depart_pausable(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let OutputQueue::Pausable(out) = &mut self.ports[index as usize].queue else {
            unreachable!("the output can be paused");
        };
        if !out.departure.take(now) {
            return;
        }
        if let Some(sent) = out.output.settle(Instant::new(now)) {
            self.release(schedule, now, index, sent);
        }
        self.serve_pausable(schedule, now, index);
    }

    /// Sends the next permitted frame if the link is free, and schedules the next step.
    fn serve_pausable(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let Port { queue: OutputQueue::Pausable(out), link, .. } = &mut self.ports[index as usize] else {
            unreachable!("the output can be paused");
        };
        let mut released = None;
        if link.free_at() <= now {
            let send =
                |frame: PausableFrame| Instant::new(link.send_next(schedule, now, index, frame.parcel));
            released = out.output.depart(send);
        }
        out.schedule(schedule, link, index);
        if let Some(frame) = released {
            self.release(schedule, now, index, frame);
        }
    }

    /// Gives back the memory of a frame; that of a host has no account.
    fn release(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex, frame: PausableFrame) {
        let PausableFrame { parcel, input } = frame;
        let Port { switch, output, .. } = self.ports[index as usize];
        if switch == NIL {
            return;
        }
        let unstored = self.unstored_bytes;
        let input_number = usize::from(self.ports[input as usize].input);
        let flow_control = self.flow_control.as_deref_mut().expect("a network with PAUSE");
        let memory = &mut flow_control.switches[switch as usize].memory;
        let bytes = parcel.wire_bytes() - unstored;
        memory.depart(Instant::new(now), input_number, usize::from(output), bytes);
        let counted = flow_control.counted(switch as usize, parcel, unstored);
        let check_at = &mut flow_control.switches[switch as usize].check_at;
        let is_checked = *check_at == now;
        if flow_control.credit_ingress(input, counted) && !is_checked {
            flow_control.switches[switch as usize].check_at = now;
            schedule.insert_first(now, Occurrence::ResumeCheck(switch));
        }
    }

    /// Sends a RESUME to every paused neighbour with an ingress occupancy of at most XON at a switch.
    pub(crate) fn check_resumes(&mut self, schedule: &mut Schedule, now: u64, switch: u32) {
        let Some(flow_control) = &mut self.flow_control else { return };
        let FlowControl { switches, ingress, .. } = &mut **flow_control;
        let switch = &mut switches[switch as usize];
        assert_eq!(switch.check_at, now, "a check is scheduled for each of its occurrences");
        switch.check_at = NEVER;
        let mut resumed = Vec::new();
        switch.paused_inputs.retain(|&input| {
            let is_resumed = ingress[input as usize].poll_signal(0) == Some(PauseSignal::Resume);
            if is_resumed {
                resumed.push(input);
            }
            !is_resumed
        });
        for input in resumed {
            self.send_signal(schedule, now, input, PauseSignal::Resume);
        }
    }

    /// Sends a signal to the neighbour on the link of `input`: after the frame in service, and before all queued ones. The
    /// neighbour handles it when its reaction time is over.
    fn send_signal(&mut self, schedule: &mut Schedule, now: u64, input: PortIndex, signal: PauseSignal) {
        let back = &mut self.ports[input as usize ^ 1].link;
        let arrival = back.send_signal(now, self.framing.pause_bytes(), signal);
        if !back.leads_out() {
            self.schedule_signal(schedule, arrival, input);
        }
        let flow_control = self.flow_control.as_mut().expect("a network with PAUSE");
        match signal {
            PauseSignal::Pause => flow_control.pauses += 1,
            PauseSignal::Resume => flow_control.resumes += 1,
        }
        if signal == PauseSignal::Pause {
            flow_control.schedule_check(schedule, now);
        }
    }

    /// Schedules the effect of a signal that arrives at the sender of `port`.
    fn schedule_signal(&self, schedule: &mut Schedule, arrival: u64, port: PortIndex) {
        let OutputQueue::Pausable(out) = &self.ports[port as usize].queue else {
            unreachable!("the neighbour of a switch with PAUSE obeys it");
        };
        schedule.insert(arrival + out.sender.reaction, Occurrence::PauseSignal(port));
    }

    /// Takes the next signal that has left by the link of a port.
    pub(crate) fn take_leaving_signal(&mut self, port: PortIndex) -> Option<LeavingSignal> {
        let (arrival, signal) = self.ports[port as usize].link.take_leaving_signal()?;
        Some(LeavingSignal { port, arrival, signal })
    }

    /// Takes a signal from another partition: it takes effect when it is due.
    pub(crate) fn accept_signal(&mut self, schedule: &mut Schedule, leaving: LeavingSignal) {
        let LeavingSignal { port, arrival, signal } = leaving;
        let wire_bytes = self.framing.pause_bytes();
        self.ports[port as usize].link.accept_signal(arrival, wire_bytes, signal);
        self.schedule_signal(schedule, arrival, port ^ 1);
        if signal == PauseSignal::Pause {
            let flow_control = self.flow_control.as_mut().expect("a network with PAUSE");
            flow_control.schedule_check(schedule, arrival);
        }
    }

    /// A signal takes effect at the port that it was sent to.
    pub(crate) fn handle_signal(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let signal = self.ports[index as usize ^ 1].link.take_signal(now);
        let OutputQueue::Pausable(out) = &mut self.ports[index as usize].queue else {
            unreachable!("only outputs that can be paused receive signals");
        };
        let PausableOutput { output, sender, .. } = &mut **out;
        match signal {
            PauseSignal::Pause => {
                sender.stopped_classes().for_each(|class| output.pause(class));
                sender.pauses += 1;
                sender.paused_since = now;
            }
            PauseSignal::Resume => {
                sender.stopped_classes().for_each(|class| output.resume(class));
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
    /// If an account differs.
    pub(super) fn assert_pausable_conserved(&self) {
        let Some(flow_control) = &self.flow_control else { return };
        let mut ingress = vec![0; self.ports.len()];
        let mut stored = vec![Vec::new(); flow_control.switches.len()];
        for (index, port) in self.ports.iter().enumerate() {
            let OutputQueue::Pausable(out) = &port.queue else { continue };
            let is_pending = out.output.next_departure(Instant::new(port.link.free_at())).is_some();
            assert!(!is_pending || out.departure.is_expected(), "port {index} has frames and no departure");
            if port.switch == NIL {
                continue;
            }
            for PausableFrame { parcel, input } in out.output.stored() {
                stored[port.switch as usize].push(StoredFrame {
                    input: usize::from(self.ports[input as usize].input),
                    output: usize::from(port.output),
                    bytes: parcel.wire_bytes() - self.unstored_bytes,
                });
                ingress[input as usize] +=
                    flow_control.counted(port.switch as usize, parcel, self.unstored_bytes);
            }
        }
        for (memory, stored) in flow_control.memories().zip(stored) {
            memory.assert_conserved(stored.into_iter());
        }
        for (input, (account, expected)) in flow_control.ingress.iter().zip(ingress).enumerate() {
            assert_eq!(account.occupancy(0), expected, "the ingress occupancy of port {input}");
        }
        let listed: usize = flow_control.switches.iter().map(|switch| switch.paused_inputs.len()).sum();
        assert_eq!(
            flow_control.ingress.iter().filter(|ingress| ingress.is_paused()).count(),
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
#[path = "../../tests/unit/pause.rs"]
mod tests;
