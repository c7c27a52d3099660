//! SIRD's packets, in the fields of a segment.

use fanin_tcp::{Flags, Segment};

/// The content of a packet. All but [`Packet::Data`] are smallest frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packet {
    /// Bytes of a message.
    Data {
        /// Offset of the first one.
        offset: u64,
        /// Where its message ends.
        message_end: u64,
        /// They were sent on credit.
        scheduled: bool,
        /// The sender has more credit than its link can serve at once (`sird.csn`, §4.3).
        congested: bool,
    },
    /// A sender asks for credit for a message, or whether one that needs none has arrived.
    Request { start: u64, end: u64, scheduled: bool },
    /// Credit: scheduled messages may be sent up to here.
    Credit { until: u64 },
    /// These bytes are overdue.
    Resend { start: u64, end: u64 },
    /// Everything up to here has arrived.
    Arrived { until: u64 },
}

const DATA: u32 = 0;
const REQUEST: u32 = 1;
const CREDIT: u32 = 2;
const RESEND: u32 = 3;
const ARRIVED: u32 = 4;

const SCHEDULED: u32 = 1;
const CONGESTED: u32 = 2;

impl Packet {
    /// As a segment: headers are as long as TCP's with the same `flags`, so that transports compare.
    pub(super) fn segment(self, payload: u16, flags: Flags) -> Segment {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let (offset, ack, window, ts_value) = match self {
            Self::Data { offset, message_end, scheduled, congested } => {
                (offset, message_end, DATA, bit(scheduled, SCHEDULED) | bit(congested, CONGESTED))
            }
            Self::Request { start, end, scheduled } => (start, end, REQUEST, bit(scheduled, SCHEDULED)),
            Self::Credit { until } => (0, until, CREDIT, 0),
            Self::Resend { start, end } => (start, end, RESEND, 0),
            Self::Arrived { until } => (0, until, ARRIVED, 0),
        };
        Segment { offset, ack, window, ts_value, payload, flags, ..Segment::default() }
    }

    /// The packet in a segment.
    pub(super) fn of(segment: &Segment) -> Self {
        let (start, end) = (segment.offset, segment.ack);
        let scheduled = segment.ts_value & SCHEDULED != 0;
        match segment.window {
            DATA => {
                let congested = segment.ts_value & CONGESTED != 0;
                Self::Data { offset: start, message_end: end, scheduled, congested }
            }
            REQUEST => Self::Request { start, end, scheduled },
            CREDIT => Self::Credit { until: end },
            RESEND => Self::Resend { start, end },
            ARRIVED => Self::Arrived { until: end },
            kind => unreachable!("a packet of kind {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_keeps_a_packet() {
        let packets = [
            Packet::Data { offset: 7, message_end: 9_000, scheduled: true, congested: false },
            Packet::Data { offset: 7, message_end: 9_000, scheduled: false, congested: true },
            Packet::Request { start: 1, end: 1 << 40, scheduled: true },
            Packet::Credit { until: 1 << 50 },
            Packet::Resend { start: 3, end: 4 },
            Packet::Arrived { until: 12 },
        ];
        for packet in packets {
            assert_eq!(Packet::of(&packet.segment(0, Flags::ACK)), packet);
        }
    }
}
