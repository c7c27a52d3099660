//! Messages of the barrel shifter.

use super::*;

#[test]
fn each_message_is_read_as_it_was_written() {
    let phase = 1 << 40;
    let sent = [false, true].map(|anything| ShiftMessage::Sent { phase, anything });
    let others = [ShiftMessage::Go { phase }, ShiftMessage::End { phase }, ShiftMessage::Received { phase }];
    for message in sent.into_iter().chain(others) {
        assert_eq!(ShiftMessage::read(message.written()), message);
    }
}
