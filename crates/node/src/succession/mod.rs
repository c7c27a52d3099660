//! The vote of the readouts on the supervisor that leads, of two.
//!
//! A [`Leadership`] has a term. Each term is decided once, by single-decree Paxos: the readouts are the acceptors
//! ([`Witness`]), the two supervisors propose ([`Proposer`]). In a term, one supervisor leads alone, or is paired with the log
//! of the other. A paired leader acts on a record once the partner has it on disk. It leads alone only after a term in which it is
//! alone was decided, and the partner takes over only in the same way. Only one of the two can be decided, so that
//!
//! - a supervisor that takes over has every record that was acted upon;
//! - a supervisor that was replaced can act on nothing more, whether it knows that or not.
//!
//! A log has an identity, which it gets when it is begun. A pairing names it: a standby that lost its disk is not
//! the one of the pairing, and does not take over.
//!
//! # A lost record of votes
//!
//! A readout that lost its file (or its disk) cannot know in which terms it voted, and a second vote could decide a term twice. It looks
//! like a new one. It learns decided terms, but abstains until it knows a term in which it cannot have voted:
//!
//! - It votes in term 1 when it is asked to. Only the first supervisor asks for that, always for the same value while it has its log. Two
//!   votes for one value are one vote. The readout goes on voting only if term 1 is decided with the value that it accepted. If the
//!   supervisor that asked still has its log, no readout knew a term either. If it lost the log, it asked for a new value.
//! - Else it waits for a request for promises (`Prepare`) and for the `Accept` of the same ballot, on one connection. Let them name the
//!   decided term A. Its earlier life voted in term K + 1 at most, where K is the latest term that it knew. A majority had accepted K while it
//!   knew K - 1. The `Accept` proves that a majority has promised since, knowing A. This readout is not in that majority, as it abstains.
//!   A readout that votes is in both, and it forgets no term, so that A >= K - 1. The earlier life voted in term A + 2 at most: from
//!   A + 3 on, this one votes.
//!
//! A readout in both majorities may have lost its own file in between. It voted again only after it knew a later term than its earlier
//! life did, so that the argument holds for it, too.
//!
//! The leader hears that a readout abstains, and has the present term decided again under the next two numbers: then all vote. With
//! one or two readouts there is no majority without the one that abstains. The leader goes on, and no further term is decided. Two
//! leaders of one term need a first supervisor without its log and a majority without its files. None
//! of them may have heard of a term.

mod log;
mod message;
mod proposer;
mod witness;

use std::fmt;

pub use log::TermLine;
pub(crate) use log::{identity_path, read_part};
pub use message::SuccessionMessage;
pub use proposer::Proposer;
pub use witness::Witness;

/// A decided term: the supervisor that leads, and the log that has all its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Leadership {
    /// Number of the term, from 1; 0 before the first decision.
    pub term: u64,
    /// The supervisor that leads: 0, or 1 for the standby.
    pub leader: u8,
    /// Identity of its log.
    pub log: u64,
    /// Identity of the partner's log; 0: it leads alone.
    pub partner: u64,
}

impl Leadership {
    /// True if the leader acts on what its partner has on disk, too.
    pub fn is_paired(&self) -> bool {
        self.partner != 0
    }

    /// Reads the words that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ').map(str::parse::<u64>);
        let mut next = || words.next()?.ok();
        let (term, leader) = (next()?, u8::try_from(next()?).ok()?);
        let (log, partner) = (next()?, next()?);
        words.next().is_none().then_some(Self { term, leader, log, partner })
    }
}

impl fmt::Display for Leadership {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term, leader, log, partner } = self;
        write!(out, "{term} {leader} {log} {partner}")
    }
}

#[cfg(test)]
mod tests;
