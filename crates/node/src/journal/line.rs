//! The text of a record: one line of a journal.

use std::fmt::Write as _;

use fanin_dataflow::{EventRecord, EventStep, EventStream, L1Id, Outcome};
use fanin_units::{Bytes, Instant};

pub(crate) const HEADER: &str = "# fanin journal 1";

pub(crate) const OUTCOMES: [(Outcome, &str); 4] = [
    (Outcome::Rejected, "rejected"),
    (Outcome::Accepted, "accepted"),
    (Outcome::Stored, "stored"),
    (Outcome::Debug, "debug"),
];
const STREAMS: [(EventStream, &str); 2] = [(EventStream::Physics, "physics"), (EventStream::Debug, "debug")];

/// Returns the words of a header behind a key; none if it does not have the key.
pub(crate) fn header_words<'a>(header: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    header.split_whitespace().skip_while(move |word| *word != key).skip(1)
}

/// Returns the name of an outcome in journals, metrics and explanations.
pub(crate) fn outcome_name(outcome: Outcome) -> &'static str {
    word(&OUTCOMES, &outcome)
}

/// A line of a journal: a record, with the fragment bytes that the process adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalLine {
    /// The record; its times count from the epoch of its header.
    pub record: EventRecord,
    /// For [`EventStep::Collected`]: fragment bytes of the event so far, without headers. Zero for other steps.
    pub data: u64,
}

fn word<T: PartialEq>(all: &[(T, &'static str)], one: &T) -> &'static str {
    all.iter().find(|(other, _)| other == one).map_or("", |(_, word)| word)
}

/// Appends the line of a record.
pub(super) fn format(record: &EventRecord, data: u64, out: &mut String) {
    let EventRecord { at, event, step } = record;
    // Writing to a string cannot fail.
    let _ = write!(out, "{} {} ", at.get(), event.0);
    let _ = match step {
        EventStep::Assigned { collector, unit, due, direct } => {
            write!(out, "assigned {collector} {unit} {} {}", due.get(), u8::from(*direct))
        }
        EventStep::Reassigned { from } => write!(out, "reassigned {from}"),
        EventStep::Completed { collector, outcome } => {
            write!(out, "completed {collector} {}", outcome_name(*outcome))
        }
        EventStep::Duplicated { collector, outcome } => {
            write!(out, "duplicated {collector} {}", outcome_name(*outcome))
        }
        EventStep::Xoff => write!(out, "xoff"),
        EventStep::Xon => write!(out, "xon"),
        EventStep::Received { unit } => write!(out, "received {unit}"),
        EventStep::FirstRequest { step } => write!(out, "first-request {step}"),
        EventStep::Answered { readout, requested, bytes } => {
            write!(out, "answered {readout} {} {}", requested.get(), bytes.get())
        }
        EventStep::Missing { readout, fragments } => write!(out, "missing {readout} {fragments}"),
        EventStep::Collected { step, building, began, first_request, requests, bytes, missing } => write!(
            out,
            "collected {step} {} {} {} {requests} {} {missing} {data}",
            u8::from(*building),
            began.get(),
            first_request.get(),
            bytes.get()
        ),
        EventStep::Decided { unit, outcome } => write!(out, "decided {unit} {}", outcome_name(*outcome)),
        EventStep::TooLarge { bytes, limit } => write!(out, "too-large {} {}", bytes.get(), limit.get()),
        EventStep::Shipped { logger, attempt, stream, bytes, missing } => {
            write!(out, "shipped {logger} {attempt} {} {} {missing}", word(&STREAMS, stream), bytes.get())
        }
        EventStep::Acknowledged { logger } => write!(out, "acknowledged {logger}"),
        EventStep::Abandoned => write!(out, "abandoned"),
        EventStep::Cleared => write!(out, "cleared"),
        EventStep::Stored { collector, stream, missing } => {
            write!(out, "stored {collector} {} {missing}", word(&STREAMS, stream))
        }
        EventStep::StandIns { fragments } => write!(out, "stand-ins {fragments}"),
        EventStep::Deleted => write!(out, "deleted"),
        EventStep::TimedOut { times } => write!(out, "timed-out {times}"),
    };
    out.push('\n');
}

/// Parses the line of a record, without its newline.
pub(crate) fn parse(line: &str) -> Result<JournalLine, &'static str> {
    let mut words = line.split(' ');
    let mut next = || words.next().ok_or("it has too few fields");
    fn number<T: std::str::FromStr>(word: &str) -> Result<T, &'static str> {
        word.parse().map_err(|_| "a field is not a number, or is out of range")
    }
    fn time(word: &str) -> Result<Instant, &'static str> {
        number(word).map(Instant::new)
    }
    fn one_of<T: Copy>(all: &[(T, &str)], word: &str) -> Result<T, &'static str> {
        all.iter().find(|(_, name)| *name == word).map(|(one, _)| *one).ok_or("a field has an unknown value")
    }
    let flag = |word: &str| number::<u8>(word).map(|flag| flag != 0);
    let at = time(next()?)?;
    let event = L1Id(number(next()?)?);
    let mut data = 0;
    let step = match next()? {
        "assigned" => EventStep::Assigned {
            collector: number(next()?)?,
            unit: number(next()?)?,
            due: time(next()?)?,
            direct: flag(next()?)?,
        },
        "reassigned" => EventStep::Reassigned { from: number(next()?)? },
        "completed" => {
            EventStep::Completed { collector: number(next()?)?, outcome: one_of(&OUTCOMES, next()?)? }
        }
        "duplicated" => {
            EventStep::Duplicated { collector: number(next()?)?, outcome: one_of(&OUTCOMES, next()?)? }
        }
        "xoff" => EventStep::Xoff,
        "xon" => EventStep::Xon,
        "received" => EventStep::Received { unit: number(next()?)? },
        "first-request" => EventStep::FirstRequest { step: number(next()?)? },
        "answered" => EventStep::Answered {
            readout: number(next()?)?,
            requested: time(next()?)?,
            bytes: Bytes::new(number(next()?)?),
        },
        "missing" => EventStep::Missing { readout: number(next()?)?, fragments: number(next()?)? },
        "collected" => {
            let step = EventStep::Collected {
                step: number(next()?)?,
                building: flag(next()?)?,
                began: time(next()?)?,
                first_request: time(next()?)?,
                requests: number(next()?)?,
                bytes: Bytes::new(number(next()?)?),
                missing: number(next()?)?,
            };
            data = number(next()?)?;
            step
        }
        "decided" => EventStep::Decided { unit: number(next()?)?, outcome: one_of(&OUTCOMES, next()?)? },
        "too-large" => {
            EventStep::TooLarge { bytes: Bytes::new(number(next()?)?), limit: Bytes::new(number(next()?)?) }
        }
        "shipped" => EventStep::Shipped {
            logger: number(next()?)?,
            attempt: number(next()?)?,
            stream: one_of(&STREAMS, next()?)?,
            bytes: Bytes::new(number(next()?)?),
            missing: number(next()?)?,
        },
        "acknowledged" => EventStep::Acknowledged { logger: number(next()?)? },
        "abandoned" => EventStep::Abandoned,
        "cleared" => EventStep::Cleared,
        "stored" => EventStep::Stored {
            collector: number(next()?)?,
            stream: one_of(&STREAMS, next()?)?,
            missing: number(next()?)?,
        },
        "stand-ins" => EventStep::StandIns { fragments: number(next()?)? },
        "deleted" => EventStep::Deleted,
        "timed-out" => EventStep::TimedOut { times: number(next()?)? },
        _ => return Err("its kind is unknown"),
    };
    if words.next().is_some() {
        return Err("it has too many fields");
    }
    Ok(JournalLine { record: EventRecord { at, event, step }, data })
}
