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
        /// Where their message ends.
        message_end: u64,
        /// They were sent on credit.
        scheduled: bool,
        /// The sender has more credit than its link can serve at once (`sird.csn`, §4.3).
        congested: bool,
        /// They were sent before.
        is_copy: bool,
    },
    /// A sender asks for credit for a message, or whether one that needs none has arrived.
    Request {
        /// Where the message begins.
        start: u64,
        /// Where it ends.
        end: u64,
        /// It is sent on credit.
        scheduled: bool,
    },
    /// Credit: scheduled messages may be sent up to here.
    Credit {
        /// The offset behind the last byte.
        until: u64,
    },
    /// These bytes are overdue.
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
