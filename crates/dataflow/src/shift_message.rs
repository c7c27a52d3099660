//! The messages between the hosts of a barrel shifter.

use fanin_units::Bytes;

use crate::message::answer_bytes;

/// A message between hosts, with content for its technique only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlMessage {
    /// The bytes that the message takes in a stream.
    pub bytes: u64,
    /// A number that the technique chooses.
    pub kind: u8,
    /// Content of the message.
    pub value: u64,
}

/// Bytes of a message, as long as an answer without fragments.
const MESSAGE_BYTES: u64 = answer_bytes(0, Bytes::ZERO).get();

/// A message between the hosts of a shifter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShiftMessage {
    /// Barrier to readout: a phase begins.
    Go {
        /// Number of the phase.
        phase: u64,
    },
    /// Readout to collector: all answers of a phase have been sent before this message.
    End {
        /// Number of the phase.
        phase: u64,
    },
    /// Readout to barrier: the readout has sent its answers of a phase, or had none.
    Sent {
        /// Number of the phase.
        phase: u64,
        /// True if the readout had an answer to send.
        anything: bool,
    },
    /// Collector to barrier: the collector has received all answers of a phase.
    Received {
        /// Number of the phase.
        phase: u64,
    },
}

impl ShiftMessage {
    /// Returns the message as it travels.
    pub const fn written(self) -> ControlMessage {
        let (kind, value) = match self {
            Self::Go { phase } => (0, phase),
            Self::End { phase } => (1, phase),
            Self::Sent { phase, anything: false } => (2, phase),
            Self::Sent { phase, anything: true } => (3, phase),
            Self::Received { phase } => (4, phase),
        };
        ControlMessage { bytes: MESSAGE_BYTES, kind, value }
    }

    /// Returns the message that was [written](Self::written).
    ///
    /// # Panics
    /// If no shifter writes such a message.
    pub fn read(message: ControlMessage) -> Self {
        let phase = message.value;
        match message.kind {
            0 => Self::Go { phase },
            1 => Self::End { phase },
            2 => Self::Sent { phase, anything: false },
            3 => Self::Sent { phase, anything: true },
            4 => Self::Received { phase },
            kind => unreachable!("a shifter writes no message of kind {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_read_as_it_was_written() {
        let phase = 1 << 40;
        let sent = [false, true].map(|anything| ShiftMessage::Sent { phase, anything });
        let others =
            [ShiftMessage::Go { phase }, ShiftMessage::End { phase }, ShiftMessage::Received { phase }];
        for message in sent.into_iter().chain(others) {
            assert_eq!(ShiftMessage::read(message.written()), message);
        }
    }
}
