//! Places of HTTP connections: if all are taken, a stranger makes room. A client that has shown the token keeps its place.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fanin_message::{CallerRates, caller_group, first_of_most};
use tokio::task::JoinHandle;

/// Concurrent connections of each listener.
pub(super) const CONNECTIONS_MAX: usize = 32;
/// New connections a second that one address may make. Further ones are closed at once.
const CALLER_CONNECTIONS_PER_SECOND_MAX: u32 = 1000;

/// Decisions about a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceAdmission {
    /// There is a place.
    Free,
    /// Authorized clients have all places.
    Full,
    /// The address connects too often.
    TooFrequent,
}

/// The places of a listener.
#[derive(Debug)]
pub(super) struct HttpPlaces {
    rates: CallerRates,
    /// The connections, the oldest first.
    taken: Vec<TakenPlace>,
}

#[derive(Debug)]
struct TakenPlace {
    caller: IpAddr,
    /// True once a request of the connection was authorized.
    is_authorized: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl HttpPlaces {
    pub(super) fn new() -> Self {
        Self { rates: CallerRates::new(CALLER_CONNECTIONS_PER_SECOND_MAX), taken: Vec::new() }
    }

    /// Makes room for a connection if all places are taken: ends the oldest unauthorized one of the address with most of them.
    pub(super) fn admit(&mut self, caller: IpAddr) -> PlaceAdmission {
        if !self.rates.admit(caller, Instant::now()) {
            return PlaceAdmission::TooFrequent;
        }
        self.taken.retain(|place| !place.task.is_finished());
        if self.taken.len() < CONNECTIONS_MAX {
            return PlaceAdmission::Free;
        }
        let is_stranger = |place: &TakenPlace| !place.is_authorized.load(Ordering::Relaxed);
        let strangers: Vec<usize> =
            (0..self.taken.len()).filter(|&place| is_stranger(&self.taken[place])).collect();
        let callers = strangers.iter().map(|&place| self.taken[place].caller);
        let Some(first) = first_of_most(callers) else { return PlaceAdmission::Full };
        self.taken.remove(strangers[first]).task.abort();
        PlaceAdmission::Free
    }

    /// Notes an admitted connection with the task that serves it.
    pub(super) fn add(&mut self, caller: IpAddr, is_authorized: Arc<AtomicBool>, task: JoinHandle<()>) {
        assert!(self.taken.len() < CONNECTIONS_MAX);
        self.taken.push(TakenPlace { caller: caller_group(caller), is_authorized, task });
    }
}
