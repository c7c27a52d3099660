//! Encodes and decodes the messages of the data flow. Every received byte is checked. `fanin-message` writes the header.
//!
//! All numbers are little-endian. [`encode`] shows the order of the fields. A message takes exactly
//! [`Message::wire_bytes`] bytes, so simulated and real networks carry the same number of bytes.
//!
//! The two sides of a connection agree on a version in their greetings. Only this file depends on the version:
//!
//! | version | differs from the one before |
//! |---|---|
//! | 1 | |
//! | 2 | messages about the leading supervisor end with the CRC-32 of their content: votes and the shared log tolerate no damaged byte |

use std::sync::Arc;

use fanin_dataflow::{
    EventStream, FinishedEvent, FragmentSet, Hello, L1Id, Message, Outcome, Selection, Wanted, message_name,
};
use fanin_message::Versions;
use fanin_units::{Bytes, Ratio};

use crate::data::{Chunk, Data};

// The sizes of `fanin-dataflow` count the header that `fanin-message` writes.
const _: () = assert!(fanin_dataflow::FRAME_HEADER_BYTES == fanin_message::HEADER_BYTES as u64);

/// Versions of the messages that this release supports.
pub const VERSIONS: Versions = Versions { lowest: 1, highest: 2 };
/// The first version in which messages about the leading supervisor have a checksum.
const CHECKED_SUCCESSION: u16 = 2;
/// Size of a checksum (CRC-32, IEEE) in bytes.
const CHECKSUM_BYTES: usize = 4;

/// Code of an absent outcome.
const NO_OUTCOME: u16 = u16::MAX;
/// Bit in the number of a listed fragment that marks the last fragment of its readout.
const LAST: u32 = 1 << 31;
/// Flag of an assignment whose event is stored without processing.
const DIRECT: u16 = 1 << 8;

const OUTCOMES: [Outcome; 4] = [Outcome::Rejected, Outcome::Accepted, Outcome::Stored, Outcome::Debug];
const STREAMS: [EventStream; 2] = [EventStream::Physics, EventStream::Debug];

/// Errors of decoding a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No message has this type.
    #[error("message type {0} is not in 1 to 16")]
    Type(u32),
    /// The message ends before its fields do.
    #[error("{message}: {needed} more bytes for {field}, {left} left")]
    Short {
        /// The kind of message.
        message: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Bytes that the field takes.
        needed: u64,
        /// Bytes that are left in the message.
        left: u64,
    },
    /// Bytes follow the message's last field.
    #[error("{message}: {left} bytes after the last field")]
    Long {
        /// The kind of message.
        message: &'static str,
        /// Number of bytes left.
        left: usize,
    },
    /// The message was damaged in transit: its checksum is wrong.
    #[error("{message}: its checksum is {found:#010x}, that of its content {computed:#010x}")]
    Checksum {
        /// The kind of message.
        message: &'static str,
        /// The received checksum.
        found: u32,
        /// The checksum of the received content.
        computed: u32,
    },
    /// A field has a value that is not defined.
    #[error("{message}: {field} is {value}")]
    Value {
        /// The kind of message.
        message: &'static str,
        /// Name of the field.
        field: &'static str,
        /// The value found.
        value: u64,
    },
}

/// Appends the fields of a message to `out` in the given version, and returns the payload that follows the fields.
///
/// # Panics
/// If an entry of a list of wanted fragments names no fragment. The wire format cannot express an empty entry.
pub fn encode(message: Message<Data>, version: u16, out: &mut Vec<u8>) -> Data {
    let l1 = |out: &mut Vec<u8>, event: L1Id| out.extend_from_slice(&event.0.to_le_bytes());
    let short = |out: &mut Vec<u8>, value: u16| out.extend_from_slice(&value.to_le_bytes());
    let word = |out: &mut Vec<u8>, value: u32| out.extend_from_slice(&value.to_le_bytes());
    match message {
        Message::Hello(hello) => {
            let Hello { idle, busy, done } = *hello;
            for count in [idle.len(), busy.len(), done.len()] {
                word(out, count as u32);
            }
            idle.iter().for_each(|&unit| short(out, unit));
            busy.iter().for_each(|&event| l1(out, event));
            for FinishedEvent { event, outcome } in done {
                l1(out, event);
                short(out, code(&OUTCOMES, outcome));
            }
        }
        Message::Welcome(events) => events.iter().for_each(|&event| l1(out, event)),
        Message::Ready { done, .. } => {
            l1(out, done.map_or(L1Id(0), |done| done.event));
            short(out, done.map_or(NO_OUTCOME, |done| code(&OUTCOMES, done.outcome)));
        }
        Message::Done(FinishedEvent { event, outcome }) => {
            l1(out, event);
            short(out, code(&OUTCOMES, outcome));
        }
        Message::Assign { event, direct, region, result, .. } => {
            l1(out, event);
            let (kind, count) = match &region {
                Selection::Rest => (0, 0),
                Selection::Region => (1, 0),
                Selection::Readouts(_) => (2, 0),
                Selection::Fragments(_) => (3, 0),
                Selection::List(list) => (4, list.len() as u16),
            };
            short(out, kind | if direct { DIRECT } else { 0 });
            short(out, count);
            match &region {
                Selection::Rest | Selection::Region => {}
                Selection::Readouts(share) | Selection::Fragments(share) => word(out, share.get() as u32),
                Selection::List(list) => list.iter().for_each(|wanted| {
                    assert!(!wanted.fragments.is_empty(), "a list names no fragment of a readout");
                    short(out, wanted.readout);
                    names(out, wanted.fragments, LAST);
                }),
            }
            return result;
        }
        Message::Request { event, fragments, .. } => {
            l1(out, event);
            names(out, fragments, 0);
        }
        Message::Answer { event, missing, payload, .. } => {
            l1(out, event);
            short(out, missing.len());
            names(out, missing, 0);
            return payload;
        }
        Message::Clear(events) => events.iter().for_each(|&event| l1(out, event)),
        Message::Flow { stop } => short(out, u16::from(stop)),
        Message::Offer { event, size } => {
            l1(out, event);
            out.extend_from_slice(&size.get().to_le_bytes());
        }
        Message::Grant { event } | Message::Refuse { event } | Message::Withdraw { event } => {
            l1(out, event);
            short(out, 0);
        }
        Message::Stored { event, stream } => {
            l1(out, event);
            short(out, code(&STREAMS, stream));
        }
        Message::Succession(content) => {
            out.extend_from_slice(&content);
            if version >= CHECKED_SUCCESSION {
                word(out, crc32fast::hash(&content));
            }
        }
        Message::Event { event, stream, missing, payload } => {
            l1(out, event);
            short(out, code(&STREAMS, stream));
            word(out, missing);
            return payload;
        }
    }
    Data::default()
}

/// Decodes a message in the given version. `kind` and `stream` are the type and the stream of its header, `body` holds
/// the bytes after the header.
///
/// # Errors
/// If a field is missing or invalid, if bytes follow the last field, or if the checksum is wrong.
pub fn decode(kind: u32, stream: u32, body: &Chunk, version: u16) -> Result<Message<Data>, DecodeError> {
    let message = message_name(kind).ok_or(DecodeError::Type(kind))?;
    let mut fields = Fields { message, bytes: body, at: 0 };
    let unit =
        |fields: &Fields<'_>| u16::try_from(stream).map_err(|_| fields.value("the unit", u64::from(stream)));
    let message = match kind {
        1 => {
            let counts = [fields.word("a count")?, fields.word("a count")?, fields.word("a count")?];
            // The size of the lists is known before memory is allocated for them.
            let sizes = counts.iter().zip([2, 8, 10]).map(|(&count, size)| u64::from(count) * size);
            fields.needs("its lists", sizes.sum())?;
            let idle = (0..counts[0]).map(|_| fields.short("a unit")).collect::<Result<_, _>>()?;
            let busy = (0..counts[1]).map(|_| fields.event()).collect::<Result<_, _>>()?;
            let done = (0..counts[2]).map(|_| fields.done()).collect::<Result<_, _>>()?;
            Message::Hello(Box::new(Hello { idle, busy, done }))
        }
        2 => Message::Welcome(fields.events()?.into()),
        3 => {
            let unit = unit(&fields)?;
            let event = fields.event()?;
            let done = match fields.short("the outcome")? {
                NO_OUTCOME => None,
                outcome => {
                    Some(FinishedEvent { event, outcome: fields.one_of(&OUTCOMES, "the outcome", outcome)? })
                }
            };
            Message::Ready { unit, done }
        }
        4 => Message::Done(fields.done()?),
        5 => {
            let unit = unit(&fields)?;
            let event = fields.event()?;
            let flags = fields.short("the flags")?;
            let count = fields.short("the length of the list")?;
            let region = fields.region(flags & !DIRECT, count)?;
            // A small proof would hold its whole receive buffer until the event ends.
            let result = Data::new(fields.rest(body).keep());
            Message::Assign { event, unit, direct: flags & DIRECT != 0, region, result }
        }
        6 => {
            let event = fields.event()?;
            let mut fragments = FragmentSet::EMPTY;
            while !fields.is_at_end() {
                fragments = fields.name(fragments)?;
            }
            Message::Request { tag: stream, event, fragments }
        }
        7 => {
            let event = fields.event()?;
            let count = fields.short("the number of missing fragments")?;
            fields.needs("the missing fragments", u64::from(count) * 4)?;
            let mut missing = FragmentSet::EMPTY;
            for _ in 0..count {
                missing = fields.name(missing)?;
            }
            Message::Answer { tag: stream, event, missing, payload: Data::new(fields.rest(body)) }
        }
        8 => Message::Clear(fields.events()?.into()),
        9 => match fields.short("the flag")? {
            flag @ (0 | 1) => Message::Flow { stop: flag == 1 },
            flag => return Err(fields.value("the flag", u64::from(flag))),
        },
        10 => Message::Offer { event: fields.event()?, size: Bytes::new(fields.long("the size")?) },
        11 => Message::Grant { event: fields.event_alone()? },
        12 => Message::Refuse { event: fields.event_alone()? },
        13 => Message::Withdraw { event: fields.event_alone()? },
        14 => {
            let event = fields.event()?;
            let stream = fields.stream()?;
            let missing = fields.word("the number of missing fragments")?;
            Message::Event { event, stream, missing, payload: Data::new(fields.rest(body)) }
        }
        15 => Message::Stored { event: fields.event()?, stream: fields.stream()? },
        16 if version >= CHECKED_SUCCESSION => Message::Succession(fields.all_checked()?),
        16 => Message::Succession(fields.all()),
        _ => return Err(DecodeError::Type(kind)),
    };
    if !fields.is_at_end() {
        return Err(DecodeError::Long { message: fields.message, left: fields.bytes.len() - fields.at });
    }
    Ok(message)
}

fn code<T: PartialEq + Copy>(all: &[T], one: T) -> u16 {
    all.iter().position(|other| *other == one).expect("every case has a code") as u16
}

fn names(out: &mut Vec<u8>, fragments: FragmentSet, last: u32) {
    let count = fragments.len();
    for (place, fragment) in fragments.iter().enumerate() {
        let flag = if place + 1 == usize::from(count) { last } else { 0 };
        out.extend_from_slice(&(u32::from(fragment) | flag).to_le_bytes());
    }
}

struct Fields<'a> {
    message: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn needs(&self, field: &'static str, needed: u64) -> Result<(), DecodeError> {
        let left = (self.bytes.len() - self.at) as u64;
        if left < needed {
            Err(DecodeError::Short { message: self.message, field, needed, left })
        } else {
            Ok(())
        }
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        self.needs(field, N as u64)?;
        let mut value = [0; N];
        value.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        Ok(value)
    }

    fn short(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.take(field).map(u16::from_le_bytes)
    }

    fn word(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.take(field).map(u32::from_le_bytes)
    }

    fn long(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.take(field).map(u64::from_le_bytes)
    }

    fn value(&self, field: &'static str, value: u64) -> DecodeError {
        DecodeError::Value { message: self.message, field, value }
    }

    fn one_of<T: Copy>(&self, all: &[T], field: &'static str, code: u16) -> Result<T, DecodeError> {
        all.get(usize::from(code)).copied().ok_or_else(|| self.value(field, u64::from(code)))
    }

    fn event(&mut self) -> Result<L1Id, DecodeError> {
        self.long("an L1 ID").map(L1Id)
    }

    fn event_alone(&mut self) -> Result<L1Id, DecodeError> {
        let event = self.event()?;
        match self.short("the status")? {
            0 => Ok(event),
            status => Err(self.value("the status", u64::from(status))),
        }
    }

    fn stream(&mut self) -> Result<EventStream, DecodeError> {
        let stream = self.short("the stream")?;
        self.one_of(&STREAMS, "the stream", stream)
    }

    fn done(&mut self) -> Result<FinishedEvent, DecodeError> {
        let event = self.event()?;
        let outcome = self.short("an outcome")?;
        Ok(FinishedEvent { event, outcome: self.one_of(&OUTCOMES, "an outcome", outcome)? })
    }

    fn events(&mut self) -> Result<Vec<L1Id>, DecodeError> {
        let mut events = Vec::with_capacity((self.bytes.len() - self.at) / 8);
        while !self.is_at_end() {
            events.push(self.event()?);
        }
        Ok(events)
    }

    /// Reads the number of a fragment and adds it to `set`. Fails if `set` has the fragment already.
    fn name(&mut self, set: FragmentSet) -> Result<FragmentSet, DecodeError> {
        let fragment = self.word("a fragment")?;
        self.add(set, fragment)
    }

    fn add(&self, set: FragmentSet, fragment: u32) -> Result<FragmentSet, DecodeError> {
        let wrong = || self.value("a fragment", u64::from(fragment));
        let number = u16::try_from(fragment).ok().filter(|&n| n < FragmentSet::FRAGMENTS_MAX);
        let number = number.filter(|&number| !set.contains(number)).ok_or_else(wrong)?;
        Ok(set.union(FragmentSet::from_bits(1 << number)))
    }

    fn region(&mut self, kind: u16, count: u16) -> Result<Selection, DecodeError> {
        if kind != 4 && count != 0 {
            return Err(self.value("the length of the list", u64::from(count)));
        }
        Ok(match kind {
            0 => Selection::Rest,
            1 => Selection::Region,
            2 => Selection::Readouts(self.share()?),
            3 => Selection::Fragments(self.share()?),
            4 => {
                // Each entry takes at least 6 bytes: a readout and one fragment.
                self.needs("the list", u64::from(count) * 6)?;
                let mut list = Vec::with_capacity(usize::from(count));
                for _ in 0..count {
                    let readout = self.short("a readout")?;
                    let mut fragments = FragmentSet::EMPTY;
                    loop {
                        let named = self.word("a fragment")?;
                        fragments = self.add(fragments, named & !LAST)?;
                        if named & LAST != 0 {
                            break;
                        }
                    }
                    list.push(Wanted { readout, fragments });
                }
                Selection::List(Arc::from(list))
            }
            kind => return Err(self.value("the kind of selection", u64::from(kind))),
        })
    }

    fn share(&mut self) -> Result<Ratio, DecodeError> {
        let share = u64::from(self.word("a share")?);
        if share > Ratio::ONE.get() { Err(self.value("a share", share)) } else { Ok(Ratio::new(share)) }
    }

    fn all(&mut self) -> Box<[u8]> {
        self.at = self.bytes.len();
        self.bytes.into()
    }

    /// Returns all bytes except the checksum at their end, after checking it.
    fn all_checked(&mut self) -> Result<Box<[u8]>, DecodeError> {
        self.needs("its checksum", CHECKSUM_BYTES as u64)?;
        let content = &self.bytes[..self.bytes.len() - CHECKSUM_BYTES];
        self.at = content.len();
        let (found, computed) = (self.word("its checksum")?, crc32fast::hash(content));
        if found != computed {
            return Err(DecodeError::Checksum { message: self.message, found, computed });
        }
        Ok(content.into())
    }

    fn rest(&mut self, body: &Chunk) -> Chunk {
        let rest = body.slice(self.at..self.bytes.len());
        self.at = self.bytes.len();
        rest
    }
}
