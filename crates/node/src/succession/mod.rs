//! The vote of the readouts on which of two supervisors leads.
//!
//! A [`Leadership`] has a term. Each term is decided once, by single-decree Paxos: the readouts are the acceptors
//! ([`Witness`]), and the two supervisors are the proposers ([`Proposer`]). In a term, one supervisor leads alone, or
//! paired with the log of the other. A paired leader acts on a record once its partner has the record on disk. The leader
//! leads alone only after a term without a partner was decided. The partner takes over only after such a term of its own
//! was decided. Only one value of a term can be decided. Therefore
//!
//! - a supervisor that takes over has every record acted upon;
//! - a replaced supervisor cannot act on further records, even if it does not know that it was replaced.
//!
//! A log has an identity, which is chosen when the log is begun. A pairing names the identity of the partner's log. A
//! standby that lost its disk has a log with another identity, and cannot take over.
//!
//! # A lost record of votes
//!
//! A readout that lost its file (or its disk) cannot know in which terms it voted, and a second vote could decide a term
//! twice. It is indistinguishable from a new readout. It learns decided terms, but abstains until it knows a term in
//! which it cannot have voted:
//!
//! - It votes in term 1 if a supervisor proposes term 1. Only the first supervisor does, with the same value as long as it
//!   has its log. Two votes for one value count as one. The readout continues to vote only if term 1 is decided with the
//!   value that it accepted. If the proposing supervisor still has its log, no readout knew a term. If it lost its log,
//!   it proposed a new value.
//! - Otherwise it waits for a request for promises (`Prepare`) and for the `Accept` of the same ballot, on one connection.
//!   Let both name the decided term A. Its earlier incarnation voted in term K + 1 at most, where K is the latest term that it
//!   knew. A majority had accepted K while it knew K - 1. The `Accept` proves that a majority has promised since, knowing
//!   A. The abstaining readout is not in this majority. A voting readout is in both majorities and forgets no term, so
//!   that A >= K - 1. The earlier incarnation voted in term A + 2 at most: the readout votes again from term A + 3 on.
//!
//! A readout in both majorities may have lost its own file in between. It voted again only after it knew a later term
//! than its earlier incarnation did, so the argument holds for this readout, too.
//!
//! The leader learns that a readout abstains, and has the present leadership decided again in the next two terms. Then
//! all readouts vote. One or two readouts have no majority without the abstaining one: the leader continues, and no
//! further term is decided. Two leaders in one term are possible only if the first supervisor lost its log and a majority
//! lost its files. In addition, none of them may have learned of a term.

mod log;
mod message;
mod proposer;
mod witness;

use std::fmt;

pub use log::TermLine;
pub(crate) use log::identity_path;
pub use message::SuccessionMessage;
pub use proposer::Proposer;
pub use witness::Witness;

/// The value of a term: the supervisor that leads, its log, and the log of its partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Leadership {
    /// Number of the term, from 1; 0 before the first decision.
    pub term: u64,
    /// Number of the supervisor that leads: 0, or 1 for the standby.
    pub leader: u8,
    /// Identity of the leader's log.
    pub log: u64,
    /// Identity of the partner's log; 0 if the leader leads alone.
    pub partner: u64,
}

impl Leadership {
    /// Returns true if the leader has a partner, and acts only on records that the partner has on disk.
    pub fn is_paired(&self) -> bool {
        self.partner != 0
    }

    /// Parses the text that [`fmt::Display`] writes; returns `None` for any other text.
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
