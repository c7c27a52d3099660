//! Links that lead from one partition to another: frames leave as values.

use fanin_network::PortIndex;
use fanin_tcp::Segment;

use super::Fabric;
use super::pause::LeavingSignal;
use crate::parcel::Parcel;
use crate::schedule::Schedule;

/// A frame that leaves a partition by a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeavingFrame {
    /// The sending port of the link.
    pub(crate) port: PortIndex,
    /// Arrival of the last bit at the far end, in picoseconds: at least the link's delay from now.
    pub(crate) arrival: u64,
    /// The connection end that receives the frame.
    pub(crate) end: u32,
    pub(crate) segment: Segment,
    /// The number of the frame's next step, which is the same in every partition.
    next: u32,
}

impl Fabric {
    /// Makes the link of a port lead to another partition. Its frames wait for [`Self::take_leaving`], its PAUSE signals for
    /// [`Self::take_leaving_signal`].
    pub(crate) fn lead_out(&mut self, port: PortIndex) {
        self.ports[port as usize].link_mut().lead_out();
    }

    /// Takes the next frame that has left by the link of a port.
    pub(crate) fn take_leaving(&mut self, port: PortIndex) -> Option<LeavingFrame> {
        let (arrival, parcel) = self.ports[port as usize].link_mut().take_leaving()?;
        let segment = self.segments[parcel.segment()];
        self.remove(parcel.segment());
        Some(LeavingFrame { port, arrival, end: parcel.end(), segment, next: parcel.next() })
    }

    /// Takes the next signal of PAUSE that has left by the link of a port.
    pub(crate) fn take_leaving_signal(&mut self, port: PortIndex) -> Option<LeavingSignal> {
        let (arrival, signal) = self.ports[port as usize].link_mut().take_leaving_signal()?;
        Some(LeavingSignal { port, arrival, signal })
    }

    /// Takes a frame from another partition, and schedules its arrival.
    pub(crate) fn accept(&mut self, schedule: &mut Schedule, frame: &LeavingFrame) {
        let LeavingFrame { port, arrival, end, segment, next } = *frame;
        let place = self.take_place();
        self.segments[place as usize] = segment;
        let parcel = Parcel::new(next, end, self.wire_bytes(&segment), place);
        let link = self.ports[port as usize].link_mut();
        let departure = arrival - link.delay();
        let start = departure - link.time_to_send(parcel.wire_bytes());
        link.send(schedule, [start, departure], port, parcel);
    }
}
