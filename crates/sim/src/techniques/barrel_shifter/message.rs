//! The messages between the hosts of a shifter.

use fanin_dataflow::answer_bytes;
use fanin_units::Bytes;

use crate::techniques::hooks::ControlMessage;

/// Bytes of a message, as long as an answer without fragments.
const MESSAGE_BYTES: u64 = answer_bytes(0, Bytes::ZERO).get();

/// A message between the hosts of a shifter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ShiftMessage {
    /// Barrier to readout: a phase begins.
    Go { phase: u64 },
    /// Readout to collector: all answers of a phase have been sent before this message.
    End { phase: u64 },
    /// Readout to barrier: the readout has sent its answers of a phase, or had none.
    Sent { phase: u64, anything: bool },
    /// Collector to barrier: the collector has received all answers of a phase.
    Received { phase: u64 },
}

impl ShiftMessage {
    /// Returns the message as it travels.
    pub(super) const fn written(self) -> ControlMessage {
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
    pub(super) fn read(message: ControlMessage) -> Self {
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
#[path = "../../../tests/unit/barrel_shifter_message.rs"]
mod tests;
