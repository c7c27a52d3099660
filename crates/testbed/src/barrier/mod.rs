//! The barrier-synchronised workloads of the datacentre papers as processes: an aggregator asks all senders at once, and
//! asks again when the last answer is complete (M21TCP §II.A).
//!
//! Like the simulator's: one connection to each sender, kept for the whole run; a request is 64 bytes; each sender waits
//! a random time up to `workload.service_delay_max` before it answers.

mod aggregator;
mod config;
mod info;
mod launch;
mod sender;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use aggregator::{Rounds, aggregate};
pub use config::{System, answer_bytes};
pub use launch::{Launch, Live, Told, told};
pub use sender::{Sent, send};

/// Why a process of the workload does not work.
#[derive(Debug, Error)]
pub enum BarrierError {
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not say what it should.
    #[error("{}: {text}", path.display())]
    Garbled {
        /// Which.
        path: PathBuf,
        /// Where, and what would be right.
        text: String,
    },
    /// Windows that were traced cannot be read.
    #[error(transparent)]
    Trace(#[from] fanin_node::trace::TraceError),
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] fanin_scenario::Errors),
    /// There is no such sender.
    #[error("there is no sender {got}; the system has {count}")]
    NoSuchSender {
        /// The number asked for.
        got: u16,
        /// How many there are.
        count: usize,
    },
    /// The network.
    #[error("{what} {address}: {source}")]
    Network {
        /// What was tried.
        what: &'static str,
        /// With whom.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else speaks here.
    #[error("{address} sent what is no request of an aggregator")]
    Nonsense {
        /// Who.
        address: String,
    },
    /// A sender ended the connection.
    #[error("{address} ended the connection in round {round}")]
    Gone {
        /// Who.
        address: String,
        /// When.
        round: u64,
    },
    /// Nothing came for `run.stall_limit`.
    #[error("{answered} of {senders} senders have answered round {round}, and nothing came for {seconds} s")]
    Stalled {
        /// Senders that answered.
        answered: usize,
        /// All.
        senders: usize,
        /// Which round.
        round: u64,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A process ended that should not have.
    #[error("{process} ended ({status}); it said:\n{said}")]
    Ended {
        /// Which.
        process: String,
        /// How.
        status: String,
        /// Its log.
        said: String,
    },
    /// A process cannot be started.
    #[error("cannot start {process}: {source}")]
    Spawn {
        /// Which.
        process: String,
        /// What the system said.
        source: io::Error,
    },
}

impl BarrierError {
    /// Whether trying again cannot help: what was asked for is wrong.
    pub const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::File { .. }
                | Self::Garbled { .. }
                | Self::Trace(_)
                | Self::Scenario(_)
                | Self::NoSuchSender { .. }
        )
    }
}

/// A request's bytes, as the studies have it: it fits a segment, and its size does not matter.
const REQUEST_BYTES: usize = 64;
/// What every request begins with.
const MAGIC: [u8; 8] = *b"fanin-rq";

/// One request: the round's number, and whether it is measured or still warm-up.
fn request(round: u64, measured: bool) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&round.to_le_bytes());
    bytes[16] = u8::from(measured);
    bytes
}

/// The round and whether it is measured; `None` for anything else.
fn parse_request(bytes: &[u8; REQUEST_BYTES]) -> Option<(u64, bool)> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    let (round, rest) = rest.split_first_chunk::<8>()?;
    (*head == MAGIC && rest[0] <= 1).then(|| (u64::from_le_bytes(*round), rest[0] == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        assert_eq!(parse_request(&request(7 << 40, true)), Some((7 << 40, true)));
        assert_eq!(parse_request(&request(0, false)), Some((0, false)));
        let mut wrong = request(1, true);
        wrong[0] ^= 1;
        assert_eq!(parse_request(&wrong), None);
        wrong = request(1, true);
        wrong[16] = 2;
        assert_eq!(parse_request(&wrong), None);
    }
}
