//! SIRD's packets, in the fields of a segment.

use fanin_dataflow::SirdPacket;
use fanin_tcp::{Flags, Segment};

const DATA: u32 = 0;
const REQUEST: u32 = 1;
const CREDIT: u32 = 2;
const RESEND: u32 = 3;
const ARRIVED: u32 = 4;

const SCHEDULED: u32 = 1;
const CONGESTED: u32 = 2;

/// Converts a packet to a segment. Headers are as long as TCP's with the same `flags`, so that transports compare.
pub(super) fn to_segment(packet: SirdPacket, flags: Flags) -> Segment {
    let bit = |is: bool, bit: u32| if is { bit } else { 0 };
    let control = |offset, ack, window| Segment { offset, ack, window, flags, ..Segment::default() };
    match packet {
        SirdPacket::Data { start, end, message_end, scheduled, congested, is_copy } => {
            let copy = if is_copy { Flags::RETRANSMISSION } else { Flags::NONE };
            Segment {
                ts_value: bit(scheduled, SCHEDULED) | bit(congested, CONGESTED),
                payload: u16::try_from(end - start).expect("a packet has less than 65536 bytes"),
                flags: flags | Flags::ECT | copy,
                ..control(start, message_end, DATA)
            }
        }
        SirdPacket::Request { start, end, scheduled } => {
            Segment { ts_value: bit(scheduled, SCHEDULED), ..control(start, end, REQUEST) }
        }
        SirdPacket::Credit { until } => control(0, until, CREDIT),
        SirdPacket::Resend { start, end } => control(start, end, RESEND),
        SirdPacket::Arrived { until } => control(0, until, ARRIVED),
    }
}

/// Returns the packet in a segment.
pub(super) fn from_segment(segment: &Segment) -> SirdPacket {
    let (start, end) = (segment.offset, segment.ack);
    let scheduled = segment.ts_value & SCHEDULED != 0;
    match segment.window {
        DATA => SirdPacket::Data {
            start,
            end: start + u64::from(segment.payload),
            message_end: end,
            scheduled,
            congested: segment.ts_value & CONGESTED != 0,
            is_copy: segment.flags.contains(Flags::RETRANSMISSION),
        },
        REQUEST => SirdPacket::Request { start, end, scheduled },
        CREDIT => SirdPacket::Credit { until: end },
        RESEND => SirdPacket::Resend { start, end },
        ARRIVED => SirdPacket::Arrived { until: end },
        kind => unreachable!("a packet of kind {kind}"),
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/sird_packet.rs"]
mod tests;
