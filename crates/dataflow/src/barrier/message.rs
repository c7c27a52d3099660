//! The two messages of a barrier workload, and the size of an answer.

use fanin_units::Bytes;

/// Size of a request. The papers say only that it fits one segment; 64 bytes fit.
pub const BARRIER_REQUEST_BYTES: u64 = 64;

/// The most senders that one aggregator can number.
pub const SENDERS_MAX: u32 = 1 << 16;

/// Rule for the bytes that senders answer to one request (`workload.request_size`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerSize {
    /// Every sender answers this many bytes (`workload.kind = "fixed-fragment"`): the total grows with the senders.
    FixedFragment(Bytes),
    /// All senders together answer this many bytes (`workload.kind = "fixed-block"`), in equal shares. If the block does
    /// not divide evenly, the first senders answer one byte more.
    FixedBlock(Bytes),
}

impl AnswerSize {
    /// Returns the bytes that sender number `sender` of `senders` answers.
    ///
    /// # Panics
    /// If the sender does not exist.
    #[must_use]
    pub fn answer(self, sender: u32, senders: u32) -> Bytes {
        assert!(sender < senders, "there is no sender {sender} among {senders}");
        match self {
            Self::FixedFragment(size) => size,
            Self::FixedBlock(size) => {
                let (share, rest) = (size.get() / u64::from(senders), size.get() % u64::from(senders));
                Bytes::new(share + u64::from(u64::from(sender) < rest))
            }
        }
    }

    /// Returns the sum of all senders' answers, in bytes.
    #[must_use]
    pub fn block(self, senders: u32) -> Bytes {
        match self {
            Self::FixedFragment(size) => size * u64::from(senders),
            Self::FixedBlock(size) => size,
        }
    }
}

/// A message between an aggregator and a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierMessage {
    /// Aggregator to sender: send your answer.
    Request {
        /// The number of the round, from 0.
        round: u64,
        /// False during the warm-up; figures leave its rounds out.
        is_measured: bool,
    },
    /// Sender to aggregator: the answer, or the part of it that has arrived.
    Answer {
        /// The size of this part.
        bytes: Bytes,
    },
}

impl BarrierMessage {
    /// Returns the name of the kind of message.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::Answer { .. } => "answer",
        }
    }

    /// Returns the bytes of the message on the stream.
    #[must_use]
    pub const fn wire_bytes(&self) -> Bytes {
        match self {
            Self::Request { .. } => Bytes::new(BARRIER_REQUEST_BYTES),
            Self::Answer { bytes } => *bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_block_is_divided_without_rest() {
        let size = AnswerSize::FixedBlock(Bytes::new(1003));
        let answers: Vec<u64> = (0..4).map(|sender| size.answer(sender, 4).get()).collect();
        assert_eq!(answers, [251, 251, 251, 250]);
        assert_eq!(size.block(4), Bytes::new(1003));
    }

    #[test]
    fn a_block_of_fragments_grows_with_the_senders() {
        let size = AnswerSize::FixedFragment(Bytes::new(250));
        assert_eq!((size.answer(3, 4), size.block(4)), (Bytes::new(250), Bytes::new(1000)));
    }
}
