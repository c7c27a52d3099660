//! PAUSE (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Qbb).
//!
//! For each port, a switch counts the waiting bytes that came in by this port: the ingress occupancy. At XOFF it sends the
//! neighbour a PAUSE, and at XON a RESUME. The signal is a frame of its own in the reverse direction. It waits for the frame in
//! service, passes all queued frames, and takes its time on the wire. It takes effect after the neighbour's reaction time.
//! Frames behind a paused port wait, whatever their destination (head-of-line blocking). These frames fill the memory of the
//! neighbour, which then pauses its own neighbours.
//!
//! With priority flow control, bulk data (answers) are one priority. All other frames are another one, which goes first and
//! is never paused. A PAUSE lasts until a RESUME; renewals within its 65535 quanta are not simulated.
//!
//! Outputs are driven naively: when the link is free, the next frame that may go is sent. At one instant departures come
//! first, then the RESUMEs that they cause, then everything else.

use fanin_network::{PortIndex, reverse};
use fanin_queueing::{EcnCodepoint, PauseSignal, Verdict};
use fanin_units::Instant;

use super::output::Port;
use super::pausable::PausableFrame;
use crate::index::NIL;
use crate::occurrence::Occurrence;
use crate::parcel::Parcel;
use crate::schedule::Schedule;

mod deadlock;
mod flow_control;

pub(super) use flow_control::{FlowControl, PausingSwitch};

/// A PAUSE or RESUME that leaves a partition by a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeavingSignal {
    /// The sending port of the signal's link.
    pub(crate) port: PortIndex,
    /// Arrival at the far end, in picoseconds.
    pub(super) arrival: u64,
    pub(super) signal: PauseSignal,
}

/// The ports of a network with PAUSE, and their flow control.
pub(crate) struct PausingPorts<'a> {
    pub(super) ports: &'a mut [Port],
    pub(super) flow_control: &'a mut FlowControl,
}

impl PausingPorts<'_> {
    /// Adds the next connection. Its second end answers with bulk data if `carries_bulk` is true.
    pub(crate) fn add_connection(&mut self, carries_bulk: bool) {
        self.flow_control.add_connection(carries_bulk);
    }

    /// Handles a frame that arrives over the link of `input` at a switch's pausable output. Returns the memory's verdict.
    pub(super) fn arrive(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [input, index]: [PortIndex; 2],
        parcel: Parcel,
        ecn: EcnCodepoint,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let crossing = self.ports[input as usize].crossing(&self.ports[index as usize]);
        let (verdict, is_pause_due) =
            self.flow_control.arrive(Instant::new(now), (crossing, input), parcel, ecn, draw);
        if is_pause_due {
            self.send_signal(schedule, now, input, PauseSignal::Pause);
        }
        if verdict.is_accepted() {
            self.enqueue(schedule, now, [input, index], parcel);
        }
        verdict
    }

    /// Queues a frame that came in over the link of `input` at a pausable output; `input` is [`NIL`] at the output's own host.
    pub(super) fn enqueue(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [input, index]: [PortIndex; 2],
        parcel: Parcel,
    ) {
        let class = self.flow_control.class_of(parcel);
        self.ports[index as usize].pausable_mut().0.arrive(class, PausableFrame { parcel, input });
        self.serve(schedule, now, index);
    }

    /// Handles the end of a transmission, or a link that has become free.
    pub(super) fn depart(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let (out, _) = self.ports[index as usize].pausable_mut();
        let Some(sent) = out.take_departure(now) else { return };
        if let Some(sent) = sent {
            self.release(schedule, now, index, sent);
        }
        self.serve(schedule, now, index);
    }

    /// Sends the next permitted frame if the link is free, and schedules the next step.
    fn serve(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let (out, link) = self.ports[index as usize].pausable_mut();
        if let Some(frame) = out.serve(schedule, now, link, index) {
            self.release(schedule, now, index, frame);
        }
    }

    /// Frees the memory of a frame. A frame at a host has no account.
    fn release(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex, frame: PausableFrame) {
        let PausableFrame { parcel, input } = frame;
        if input == NIL {
            return;
        }
        let crossing = self.ports[input as usize].crossing(&self.ports[index as usize]);
        if self.flow_control.depart(now, (crossing, input), parcel) {
            schedule.insert_first(now, Occurrence::ResumeCheck(crossing.switch));
        }
    }

    /// Sends a RESUME to every paused neighbour of a switch whose ingress occupancy is at most XON.
    pub(crate) fn check_resumes(&mut self, schedule: &mut Schedule, now: u64, switch: u32) {
        for input in self.flow_control.take_resumed(now, switch) {
            self.send_signal(schedule, now, input, PauseSignal::Resume);
        }
    }

    /// Sends a signal to the neighbour on the link of `input`: after the frame in service, and before all queued ones. The
    /// neighbour obeys it after its reaction time.
    fn send_signal(&mut self, schedule: &mut Schedule, now: u64, input: PortIndex, signal: PauseSignal) {
        let wire_bytes = self.flow_control.signal_bytes;
        let back = self.ports[reverse(input) as usize].link_mut();
        let arrival = back.send_signal(now, wire_bytes, signal);
        if !back.leads_out() {
            self.schedule_signal(schedule, arrival, input);
        }
        self.flow_control.note_sent(schedule, now, signal);
    }

    /// Schedules the effect of a signal that arrives at the sender of `port`.
    fn schedule_signal(&self, schedule: &mut Schedule, arrival: u64, port: PortIndex) {
        let out =
            self.ports[port as usize].pausable().expect("the neighbour of a switch with PAUSE obeys it");
        schedule.insert(out.effect_at(arrival), Occurrence::PauseSignal(port));
    }

    /// Takes a signal from another partition, and schedules its effect.
    pub(crate) fn accept_signal(&mut self, schedule: &mut Schedule, leaving: LeavingSignal) {
        let LeavingSignal { port, arrival, signal } = leaving;
        let wire_bytes = self.flow_control.signal_bytes;
        self.ports[port as usize].link_mut().accept_signal(arrival, wire_bytes, signal);
        self.schedule_signal(schedule, arrival, reverse(port));
        if signal == PauseSignal::Pause {
            self.flow_control.schedule_check(schedule, arrival);
        }
    }

    /// Applies a signal at the port that receives it.
    pub(crate) fn handle_signal(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let signal = self.ports[reverse(index) as usize].link_mut().take_signal(now);
        let (out, _) = self.ports[index as usize].pausable_mut();
        match signal {
            PauseSignal::Pause => out.pause(now),
            PauseSignal::Resume => {
                out.resume(now);
                self.serve(schedule, now, index);
            }
        }
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/pause.rs"]
mod tests;
