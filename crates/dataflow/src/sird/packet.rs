//! SIRD's packets.

/// A packet from one end of a connection to the other. All but [`SirdPacket::Data`] are smallest frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SirdPacket {
    /// Bytes of a message.
    Data {
        /// Offset of the first one.
        start: u64,
        /// Offset behind the last one.
        end: u64,
        /// Offset of their message's end.
        message_end: u64,
        /// True if they were sent on credit.
        scheduled: bool,
        /// The sender has more credit than its link can serve at once (`sird.csn`, §4.3).
        congested: bool,
        /// True if they were sent before.
        is_copy: bool,
    },
    /// Asks for credit for a message, or about the arrival of an unscheduled one.
    Request {
        /// Offset of the message's first byte.
        start: u64,
        /// Offset of the message's end.
        end: u64,
        /// True if it is sent on credit.
        scheduled: bool,
    },
    /// Credit: scheduled messages may be sent up to here.
    Credit {
        /// The offset behind the last byte.
        until: u64,
    },
    /// Asks for overdue bytes again.
    Resend {
        /// Offset of the first one.
        start: u64,
        /// Offset behind the last one.
        end: u64,
    },
    /// Everything up to here has arrived.
    Arrived {
        /// The offset behind the last byte.
        until: u64,
    },
}
