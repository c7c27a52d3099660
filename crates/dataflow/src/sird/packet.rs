//! SIRD's packets.

/// A packet from one end of a connection to the other. All but [`SirdPacket::Data`] are minimum-size frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SirdPacket {
    /// Bytes of a message.
    Data {
        /// Offset of the first byte.
        start: u64,
        /// Offset after the last byte.
        end: u64,
        /// Offset of the message's end.
        message_end: u64,
        /// True if the bytes were sent on credit.
        scheduled: bool,
        /// True if the sender has more credit than its link can serve at once (`sird.csn`, §4.3).
        congested: bool,
        /// True if the bytes were sent before.
        is_copy: bool,
    },
    /// Requests credit for a message, or asks about the arrival of an unscheduled one.
    Request {
        /// Offset of the message's first byte.
        start: u64,
        /// Offset of the message's end.
        end: u64,
        /// True if the message is sent on credit.
        scheduled: bool,
    },
    /// Credit: scheduled messages may be sent up to this offset.
    Credit {
        /// The offset after the last byte.
        until: u64,
    },
    /// Requests overdue bytes again.
    Resend {
        /// Offset of the first byte.
        start: u64,
        /// Offset after the last byte.
        end: u64,
    },
    /// All bytes up to this offset have arrived.
    Arrived {
        /// The offset after the last byte.
        until: u64,
    },
}
