//! The messages between the roles, and their sizes on the wire.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use fanin_units::{Bytes, Ratio};

use crate::{FragmentPayload, FragmentSet, L1Id};

/// Bytes of the frame header in front of each message: type, stream and size, 32 bits each (thesis fig. 3.15).
pub const FRAME_HEADER_BYTES: u64 = 12;

/// Bytes of an L1 ID in a message.
const L1_ID: u64 = 8;
/// Bytes of a status, flag or small number in a message.
const STATUS: u64 = 2;
/// Bytes of a fragment's name in a message, as ATLAS' 32-bit source identifiers.
const FRAGMENT: u64 = 4;

/// Most bytes of a message without lists and payload: [`Message::Offer`].
pub const CONTROL_BYTES_MAX: u64 = FRAME_HEADER_BYTES + 2 * L1_ID;

/// Returns the bytes on the stream of a request for `fragments` fragments.
pub const fn request_bytes(fragments: u64) -> Bytes {
    Bytes::new(FRAME_HEADER_BYTES + L1_ID + FRAGMENT * fragments)
}

/// Returns the bytes on the stream of an answer with `payload`, in which `missing` fragments are absent.
pub const fn answer_bytes(missing: u64, payload: Bytes) -> Bytes {
    Bytes::new(FRAME_HEADER_BYTES + L1_ID + STATUS + FRAGMENT * missing + payload.get())
}

/// Returns the bytes on the stream of a clear of `events` events.
pub const fn clear_bytes(events: u64) -> Bytes {
    Bytes::new(FRAME_HEADER_BYTES + L1_ID * events)
}

/// Returns the bytes on the stream of a whole event, for a logger.
pub const fn event_bytes(payload: Bytes) -> Bytes {
    Bytes::new(FRAME_HEADER_BYTES + L1_ID + STATUS + FRAGMENT + payload.get())
}

/// The final state of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A processing unit rejected the event.
    Rejected,
    /// A processing unit accepted the event, in a system without data loggers.
    Accepted,
    /// A processing unit accepted the event, and a logger has the event on disk.
    Stored,
    /// The event was stored undecided: the unit or the collector was lost.
    Debug,
}

/// Stream of files for stored events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventStream {
    /// Events that a unit accepted.
    Physics,
    /// Undecided events of lost units or collectors, for later study.
    Debug,
}

/// A finished event, as its collector reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedEvent {
    /// The event's L1 ID.
    pub event: L1Id,
    /// The event's final state.
    pub outcome: Outcome,
}

/// Fragments of one readout to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The readout's number.
    pub readout: u16,
    /// The fragments requested from this readout.
    pub fragments: FragmentSet,
}

/// The fragments of an event that a step collects, without those requested before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// All fragments not requested yet: full event building.
    #[default]
    Rest,
    /// All fragments of this share of the readouts (rounded up), in the collector's request order (thesis §4.2.1).
    Readouts(Ratio),
    /// This share of every readout's fragments (rounded up), the lowest numbers first.
    Fragments(Ratio),
    /// The region in the event's L1 result; inside an L1 result it stands for all fragments.
    Region,
    /// These fragments: the regions of interest of a Level-1 trigger.
    List(Arc<[Wanted]>),
}

/// Introduction of a collector, sent first on each new connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hello {
    /// The collector's units that are ready for an event.
    pub idle: Vec<u16>,
    /// Events that the collector still works on.
    pub busy: Vec<L1Id>,
    /// Recently finished events: the supervisor may have missed the report.
    pub done: Vec<FinishedEvent>,
}

/// A message from one role to another.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<P> {
    /// Collector to supervisor: the first message of a connection.
    Hello(Box<Hello>),
    /// Supervisor to collector: the answer to [`Message::Hello`]. It lists events of `busy` and `done` that are no
    /// longer assigned to this collector; the collector forgets them. An empty list also answers a collector's
    /// [`Message::Flow`]: no assignment follows.
    Welcome(Box<[L1Id]>),
    /// Collector to supervisor: a unit is ready for an event; often it just rejected one.
    Ready {
        /// The unit, counted from zero on its collector.
        unit: u16,
        /// The finished event, if its outcome is final.
        done: Option<FinishedEvent>,
    },
    /// Collector to supervisor: an event is finished; its unit became ready earlier.
    Done(FinishedEvent),
    /// Supervisor to collector: an event for a unit.
    Assign {
        /// The event's L1 ID.
        event: L1Id,
        /// The processing unit's number on its collector.
        unit: u16,
        /// True: store the event without processing, since it was lost with another collector (thesis §3.7.4).
        direct: bool,
        /// The region of interest of the Level-1 trigger.
        region: Selection,
        /// The L1 result itself.
        result: P,
    },
    /// Collector to readout: send these fragments.
    Request {
        /// The request's number between these two roles; the answer repeats it.
        tag: u32,
        /// The event's L1 ID.
        event: L1Id,
        /// The fragments to send.
        fragments: FragmentSet,
    },
    /// Readout to collector: all fragments of one request, in one message.
    Answer {
        /// The request's tag.
        tag: u32,
        /// The event's L1 ID.
        event: L1Id,
        /// Requested fragments that this readout lacks.
        missing: FragmentSet,
        /// The fragments that the readout has.
        payload: P,
    },
    /// Collector or supervisor to readout: these events are finished, and their fragments may be deleted. If a supervisor
    /// names one event twice and no other ([`Self::clear_up_to`]), all events before it are finished, too. An older readout
    /// deletes that event alone.
    Clear(Arc<[L1Id]>),
    /// Readout to supervisor: memory is full, or no longer full (XOFF, XON). A readout that stops in order also sends
    /// XOFF. Collector to supervisor, only with `stop`: the collector stops in order, and its units take no further
    /// event.
    Flow {
        /// True: the trigger stops.
        stop: bool,
    },
    /// Collector to logger: offers an event for storage (thesis §3.8.1).
    Offer {
        /// The event's L1 ID.
        event: L1Id,
        /// The size of the event.
        size: Bytes,
    },
    /// Logger to collector: send the event.
    Grant {
        /// The event's L1 ID.
        event: L1Id,
    },
    /// Logger to collector: the logger cannot store the event. The collector offers the event to another logger.
    Refuse {
        /// The event's L1 ID.
        event: L1Id,
    },
    /// Collector to logger: the granted event will not arrive.
    Withdraw {
        /// The event's L1 ID.
        event: L1Id,
    },
    /// Collector to logger: a whole event.
    Event {
        /// The event's L1 ID.
        event: L1Id,
        /// Stream to store it in.
        stream: EventStream,
        /// Number of its missing fragments.
        missing: u32,
        /// The fragments of the event.
        payload: P,
    },
    /// Logger to collector: the event is safely on disk.
    Stored {
        /// The event's L1 ID.
        event: L1Id,
        /// The stream of its file. Before a restart, the collector may have sent the event for another stream.
        stream: EventStream,
    },
    /// Between drivers: the leading supervisor, and the log that both supervisors share. Roles never receive this message.
    Succession(Box<[u8]>),
}

impl<P> Message<P> {
    /// Makes a supervisor's [`Self::Clear`] of an event and all events before it.
    pub fn clear_up_to(event: L1Id) -> Self {
        Self::Clear([event; 2].into())
    }

    /// Returns the name of the kind of message.
    pub const fn name(&self) -> &'static str {
        NAMES[self.message_type() as usize - 1]
    }

    /// Returns the first field of the frame header: the kind of message.
    pub const fn message_type(&self) -> u32 {
        match self {
            Self::Hello(_) => 1,
            Self::Welcome(_) => 2,
            Self::Ready { .. } => 3,
            Self::Done(_) => 4,
            Self::Assign { .. } => 5,
            Self::Request { .. } => 6,
            Self::Answer { .. } => 7,
            Self::Clear(_) => 8,
            Self::Flow { .. } => 9,
            Self::Offer { .. } => 10,
            Self::Grant { .. } => 11,
            Self::Refuse { .. } => 12,
            Self::Withdraw { .. } => 13,
            Self::Event { .. } => 14,
            Self::Stored { .. } => 15,
            Self::Succession(_) => 16,
        }
    }

    /// Returns the second field of the frame header: the unit or the tag, otherwise zero.
    pub const fn stream_id(&self) -> u32 {
        match self {
            Self::Ready { unit, .. } | Self::Assign { unit, .. } => *unit as u32,
            Self::Request { tag, .. } | Self::Answer { tag, .. } => *tag,
            _ => 0,
        }
    }
}

/// Returns the name of a message type, the first field of the frame header; `None` if no message has this type.
pub fn message_name(message_type: u32) -> Option<&'static str> {
    NAMES.get(message_type.checked_sub(1)? as usize).copied()
}

/// Names by message type, from 1.
const NAMES: [&str; 16] = [
    "hello",
    "welcome",
    "ready",
    "done",
    "assign",
    "request",
    "answer",
    "clear",
    "flow",
    "offer",
    "grant",
    "refuse",
    "withdraw",
    "event",
    "stored",
    "succession",
];

impl<P: FragmentPayload> Message<P> {
    /// Returns the message's bytes on the stream: the frame header, the fields, and the payload.
    ///
    /// The fields take 8 bytes for an L1 ID or a size, and 4 for a fragment's name; flags and outcomes take 2. Units
    /// and tags are in the header's stream field. These sizes match the 10 bytes and about 100 bytes of the messages in
    /// thesis table 3.1.
    pub fn wire_bytes(&self) -> Bytes {
        let fields = match self {
            Self::Hello(hello) => {
                let lists = 3 * FRAGMENT;
                lists
                    + hello.idle.len() as u64 * STATUS
                    + hello.busy.len() as u64 * L1_ID
                    + hello.done.len() as u64 * (L1_ID + STATUS)
            }
            Self::Welcome(events) => events.len() as u64 * L1_ID,
            Self::Ready { .. } | Self::Done(_) => L1_ID + STATUS,
            Self::Assign { region, result, .. } => {
                let list = match region {
                    Selection::Rest | Selection::Region => 0,
                    Selection::Readouts(_) | Selection::Fragments(_) => FRAGMENT,
                    Selection::List(list) => {
                        list.iter().map(|wanted| STATUS + FRAGMENT * u64::from(wanted.fragments.len())).sum()
                    }
                };
                L1_ID + 2 * STATUS + list + result.size().get()
            }
            Self::Request { fragments, .. } => return request_bytes(u64::from(fragments.len())),
            Self::Answer { missing, payload, .. } => {
                return answer_bytes(u64::from(missing.len()), payload.size());
            }
            Self::Clear(events) => return clear_bytes(events.len() as u64),
            Self::Flow { .. } => STATUS,
            Self::Offer { .. } => 2 * L1_ID,
            Self::Grant { .. } | Self::Refuse { .. } | Self::Withdraw { .. } | Self::Stored { .. } => {
                L1_ID + STATUS
            }
            Self::Event { payload, .. } => return event_bytes(payload.size()),
            Self::Succession(content) => content.len() as u64,
        };
        Bytes::new(FRAME_HEADER_BYTES + fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_thesis() {
        // Table 3.1: ready 10 B, request about 100 B for 20 kB of fragments, offer and stored 10 B.
        let ready: Message<Bytes> = Message::Ready { unit: 3, done: None };
        assert_eq!(ready.wire_bytes(), Bytes::new(12 + 10));
        let request: Message<Bytes> =
            Message::Request { tag: 1, event: L1Id(1), fragments: FragmentSet::first(18) };
        assert_eq!(request.wire_bytes(), Bytes::new(12 + 80));
        let answer = Message::Answer {
            tag: 1,
            event: L1Id(1),
            missing: FragmentSet::first(2),
            payload: Bytes::new(11_000),
        };
        assert_eq!(answer.wire_bytes(), Bytes::new(12 + 8 + 2 + 2 * 4 + 11_000));
        assert_eq!((answer.name(), answer.stream_id()), ("answer", 1));
        let offer: Message<Bytes> = Message::Offer { event: L1Id(1), size: Bytes::new(1) };
        assert_eq!(offer.wire_bytes(), Bytes::new(CONTROL_BYTES_MAX));
    }

    #[test]
    fn a_message_stays_small() {
        assert!(size_of::<Message<Bytes>>() <= 56, "{}", size_of::<Message<Bytes>>());
    }
}
