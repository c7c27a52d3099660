//! Messages between supervisors, and between supervisors and witnesses, and their encoding.

use super::Leadership;

/// A message about who leads, or a piece of the leader's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuccessionMessage {
    /// Leader to all: this connection is to the leader of a term.
    Leads(Leadership),
    /// Supervisor to witness: promise to accept no older ballot for the term after `known`.
    Prepare {
        /// The latest decided term that the proposer knows.
        known: Leadership,
        /// Ballot of the attempt.
        ballot: u64,
    },
    /// Witness to supervisor: the promise.
    Promise {
        /// The term that is being decided.
        term: u64,
        /// Ballot of the request.
        ballot: u64,
        /// The value that the witness accepted last, with its ballot; `None` if it has accepted none.
        accepted: Option<(u64, Leadership)>,
    },
    /// Supervisor to witness: accept this value for the term after `known`.
    Accept {
        /// The latest decided term that the proposer knows.
        known: Leadership,
        /// Ballot of the attempt.
        ballot: u64,
        /// The proposed value.
        value: Leadership,
    },
    /// Witness to supervisor: the value is accepted, and on disk.
    Accepted {
        /// The term that is being decided.
        term: u64,
        /// Ballot of the request.
        ballot: u64,
    },
    /// Witness to supervisor: the request is refused, because this ballot or a newer one was promised.
    Refused {
        /// The term that is being decided.
        term: u64,
        /// The promised ballot.
        ballot: u64,
    },
    /// Witness to supervisor: it has no record of earlier votes, and does not vote in the term after `term`.
    Abstains {
        /// The latest decided term that the witness knows.
        term: u64,
    },
    /// To supervisors and witnesses: a decided term. A receiver that knows a later term answers with it.
    Learned(Leadership),
    /// Follower to leader: send the log from this position on.
    Follow {
        /// Identity of the follower's log.
        log: u64,
        /// Size of the follower's log, bytes.
        position: u64,
        /// The last term in the follower's log; 0 without one.
        term: u64,
    },
    /// Leader to follower: begin an empty log. The follower's log is not the start of the leader's, or the leader has deleted
    /// the lines behind it.
    Restart {
        /// Offset at which the leader's oldest file starts: 0 while nothing is deleted.
        position: u64,
    },
    /// Follower to leader: the follower is stopping, and the leader must lead alone.
    Leaves,
    /// Leader to follower: whole lines of the log.
    Log {
        /// The leader's term.
        term: u64,
        /// Offset of the first line in the log, bytes.
        position: u64,
        /// Whole lines of the log.
        text: Vec<u8>,
    },
    /// Follower to leader: the follower's log is on disk up to `position`.
    Held {
        /// Identity of the follower's log.
        log: u64,
        /// Size of the follower's log, bytes.
        position: u64,
    },
}

impl SuccessionMessage {
    /// Encodes the message: a tag of one byte, then 64-bit little-endian numbers.
    pub fn encode(&self) -> Box<[u8]> {
        let mut out = Vec::new();
        let mut put = |tag: u8, numbers: &[u64]| {
            out.push(tag);
            numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        };
        let of = |one: &Leadership| [one.term, u64::from(one.leader), one.log, one.partner];
        match self {
            Self::Leads(one) => put(1, &of(one)),
            Self::Prepare { known, ballot } => put(2, &[&of(known)[..], &[*ballot]].concat()),
            Self::Promise { term, ballot, accepted: None } => put(3, &[*term, *ballot]),
            Self::Promise { term, ballot, accepted: Some((older, value)) } => {
                put(4, &[&[*term, *ballot, *older], &of(value)[..]].concat());
            }
            Self::Accept { known, ballot, value } => {
                put(5, &[&of(known)[..], &[*ballot], &of(value)[..]].concat());
            }
            Self::Accepted { term, ballot } => put(6, &[*term, *ballot]),
            Self::Refused { term, ballot } => put(7, &[*term, *ballot]),
            Self::Learned(one) => put(8, &of(one)),
            Self::Follow { log, position, term } => put(9, &[*log, *position, *term]),
            // An earlier release knows only the beginning of a log.
            Self::Restart { position: 0 } => put(10, &[]),
            Self::Restart { position } => put(15, &[*position]),
            Self::Leaves => put(13, &[]),
            Self::Abstains { term } => put(14, &[*term]),
            Self::Log { term, position, text } => {
                put(11, &[*term, *position]);
                out.extend_from_slice(text);
            }
            Self::Held { log, position } => put(12, &[*log, *position]),
        }
        out.into()
    }

    /// Decodes a message; returns `None` if the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&tag, mut rest) = bytes.split_first()?;
        let mut next = || {
            let (number, more) = rest.split_first_chunk::<8>()?;
            rest = more;
            Some(u64::from_le_bytes(*number))
        };
        fn one(next: &mut impl FnMut() -> Option<u64>) -> Option<Leadership> {
            let (term, leader) = (next()?, u8::try_from(next()?).ok()?);
            Some(Leadership { term, leader, log: next()?, partner: next()? })
        }
        let message = match tag {
            1 => Self::Leads(one(&mut next)?),
            2 => Self::Prepare { known: one(&mut next)?, ballot: next()? },
            3 => Self::Promise { term: next()?, ballot: next()?, accepted: None },
            4 => {
                let (term, ballot, older) = (next()?, next()?, next()?);
                Self::Promise { term, ballot, accepted: Some((older, one(&mut next)?)) }
            }
            5 => Self::Accept { known: one(&mut next)?, ballot: next()?, value: one(&mut next)? },
            6 => Self::Accepted { term: next()?, ballot: next()? },
            7 => Self::Refused { term: next()?, ballot: next()? },
            8 => Self::Learned(one(&mut next)?),
            9 => Self::Follow { log: next()?, position: next()?, term: next()? },
            10 => Self::Restart { position: 0 },
            15 => Self::Restart { position: next()? },
            11 => {
                let (term, position) = (next()?, next()?);
                return Some(Self::Log { term, position, text: rest.to_vec() });
            }
            12 => Self::Held { log: next()?, position: next()? },
            13 => Self::Leaves,
            14 => Self::Abstains { term: next()? },
            _ => return None,
        };
        rest.is_empty().then_some(message)
    }
}
