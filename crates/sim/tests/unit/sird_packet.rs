//! Packets of SIRD.

use super::*;

#[test]
fn a_segment_keeps_a_packet() {
    let (start, end, message_end) = (7, 1_467, 9_000);
    let packets = [
        SirdPacket::Data { start, end, message_end, scheduled: true, congested: false, is_copy: true },
        SirdPacket::Data { start, end, message_end, scheduled: false, congested: true, is_copy: false },
        SirdPacket::Request { start: 1, end: 1 << 40, scheduled: true },
        SirdPacket::Credit { until: 1 << 50 },
        SirdPacket::Resend { start: 3, end: 4 },
        SirdPacket::Arrived { until: 12 },
    ];
    for packet in packets {
        assert_eq!(from_segment(&to_segment(packet, Flags::TIMESTAMP)), packet);
    }
}
