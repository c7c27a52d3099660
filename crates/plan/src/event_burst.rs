//! The burst of events towards one collector, and a limit of it.

use fanin_units::{Bytes, Packets};

use crate::derived::{Derived, brief};
use crate::system::SystemFigures;

/// A limit of the bytes that can be in flight to one collector at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Burst {
    /// Bytes of the burst in frames.
    pub(crate) frames: Derived<Bytes>,
    /// Number of packets of the burst.
    pub(crate) packets: Packets,
    /// Bytes of the burst that enter at line rate. Acknowledgements release the rest, two bytes for each departing one.
    pub(crate) at_once: Bytes,
    /// The limiting quantity, in words.
    pub(crate) limit: &'static str,
    /// True if only the size of events limits the burst.
    pub(crate) is_unshaped: bool,
    /// True if the burst varies with the event's size. Events and credits for their fragments do, windows do not.
    pub(crate) varies_with_size: bool,
}

impl Burst {
    /// Makes a limit that does not vary with the event's size.
    pub(crate) fn limited(frames: Derived<Bytes>, packets: Packets, limit: &'static str) -> Self {
        let at_once = frames.value;
        Self {
            frames: frames.named("burst"),
            packets,
            at_once,
            limit,
            is_unshaped: false,
            varies_with_size: false,
        }
    }
}

/// All answers of the events that one collector collects at once.
pub(crate) struct EventBurst<'a> {
    pub(crate) system: &'a SystemFigures,
    /// Bytes of a full frame in a queue.
    pub(crate) frame: Bytes,
    /// Answers of an event.
    pub(crate) answers: u64,
    /// Events at once.
    pub(crate) events: u64,
}

impl<'a> EventBurst<'a> {
    pub(crate) fn new(system: &'a SystemFigures) -> Self {
        let frame = Bytes::new(system.segments.buffered(system.segments.mss()));
        Self { system, frame, answers: system.answers_at_once(), events: system.overlap }
    }

    /// Returns the packets of all answers.
    pub(crate) fn packets(&self) -> Packets {
        Packets::new(self.system.answer.segments.get() * self.answers * self.events)
    }

    /// Returns the limit if each flow sends `packets` packets at most.
    pub(crate) fn with_windows(
        &self,
        packets: u64,
        formula: &'static str,
        source: &'static str,
        limit: &'static str,
    ) -> Burst {
        // Each flow sends its window or its answers, whichever is smaller.
        let most = self.system.answer.buffered * self.events;
        let per_flow = self.frame.checked_mul(packets).unwrap_or(Bytes::MAX).min(most);
        let segments = packets.min(self.system.answer.segments.get() * self.events);
        let given = format!("{} × {}", self.answers, brief(per_flow));
        let frames = Derived::new("burst", per_flow * self.answers, formula, given, source);
        Burst::limited(frames, Packets::new(segments * self.answers), limit)
    }
}
