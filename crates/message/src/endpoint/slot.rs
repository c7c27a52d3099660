//! One peer, and the table of all.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::assembler::Partial;
use crate::auth::KeyHandshake;
use crate::counters::Counters;
use crate::event::Listener;
use crate::options::{Address, Options};
use crate::outbox::Outbox;
use crate::tls::Session;

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Unused.
    Free,
    /// Ended for good; free as soon as the application has heard of it.
    Ended,
    /// To be tried again at this time.
    Waiting(Instant),
    /// Its host's name is being resolved.
    Resolving,
    /// TCP connects; given up at this time.
    Connecting(Instant),
    /// Greetings are exchanged; given up at this time.
    Greeting(Instant),
    /// Established.
    Open,
    /// Being closed, by which side first, and how far that is; cut off at this time.
    Closing(Closing, Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// This side closes; the outbox still has to be sent.
    Draining,
    /// This side has sent everything, and its end; the peer's end is awaited.
    Finishing,
    /// The peer closed, and the outbox still has to be sent.
    HalfClosed,
}

/// The kernel's interface that carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    Epoll,
    /// io_uring receives.
    Uring,
    /// io_uring receives until it has heard that it should not.
    Leaving,
}

/// How a connection came about.
pub(super) enum ConnectionOrigin {
    Accepted(Listener),
    Outgoing(Box<Outgoing>),
}

pub(super) struct Outgoing {
    pub(super) address: Address,
    pub(super) expects: Arc<str>,
    /// Attempts since the last connection that was established.
    pub(super) attempts: u32,
    /// The application has closed it: no further attempt.
    pub(super) given_up: bool,
}

pub(super) struct Slot {
    pub(super) generation: u32,
    pub(super) state: State,
    pub(super) established: bool,
    pub(super) fd: Option<OwnedFd>,
    pub(super) origin: ConnectionOrigin,
    pub(super) options: Arc<Options>,
    pub(super) name: Arc<str>,
    pub(super) tls: Option<Box<Session>>,
    /// Where the two sides are in proving that they have the shared key.
    pub(super) handshake: Option<Box<KeyHandshake>>,
    pub(super) partial: Partial,
    pub(super) outbox: Outbox,
    pub(super) counters: Counters,
    /// The time at which this slot is looked at next.
    pub(super) timer: Option<Instant>,
    pub(super) last_in: Instant,
    pub(super) last_out: Instant,
    /// Since when the kernel takes nothing.
    pub(super) blocked: Option<Instant>,
    /// The heartbeat that the peer promised.
    pub(super) promised: Duration,
    /// In the list of those that have something to send.
    pub(super) dirty: bool,
    /// Writing failed; what can still be read is read.
    pub(super) broken: bool,
    /// The application does not want to read.
    pub(super) paused: bool,
    /// No memory to read into.
    pub(super) starved: bool,
    /// A send was refused.
    pub(super) full: bool,
    /// The events that the kernel reports: bit 0 reading, bit 1 writing, bit 2 only once for each arrival; `None` while it
    /// is not asked at all.
    pub(super) watch: Option<u8>,
    /// Some options have to be set again after each read.
    pub(super) renew: bool,
    pub(super) carrier: Carrier,
    /// io_uring holds bytes of the outbox.
    pub(super) sending: bool,
    /// Small reads, one after the other.
    pub(super) small_reads: u8,
}

pub(super) const WATCH_READ: u8 = 1;
pub(super) const WATCH_WRITE: u8 = 2;
pub(super) const WATCH_EDGE: u8 = 4;

impl Slot {
    fn new(now: Instant, origin: ConnectionOrigin, options: Arc<Options>) -> Self {
        Self {
            generation: 0,
            state: State::Free,
            established: false,
            fd: None,
            origin,
            options,
            name: "".into(),
            tls: None,
            handshake: None,
            partial: Partial::default(),
            outbox: Outbox::default(),
            counters: Counters::default(),
            timer: None,
            last_in: now,
            last_out: now,
            blocked: None,
            promised: Duration::ZERO,
            dirty: false,
            broken: false,
            paused: false,
            starved: false,
            full: false,
            watch: None,
            renew: false,
            carrier: Carrier::Epoll,
            sending: false,
            small_reads: 0,
        }
    }

    /// Messages may be sent.
    #[inline]
    pub(super) fn can_send(&self) -> bool {
        matches!(self.state, State::Open | State::Closing(Closing::HalfClosed, _))
    }

    /// The kernel reports each arrival only once.
    pub(super) fn is_edge(&self) -> bool {
        self.watch.is_some_and(|watch| watch & WATCH_EDGE != 0)
    }

    /// Bytes may arrive.
    pub(super) fn can_read(&self) -> bool {
        self.fd.is_some()
            && matches!(
                self.state,
                State::Greeting(_) | State::Open | State::Closing(Closing::Draining | Closing::Finishing, _)
            )
    }
}

/// All peers.
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The longest unused first, so that a number is not used again soon.
    free: VecDeque<u32>,
    max: usize,
}

impl Slots {
    pub(super) fn new(max: usize) -> Self {
        Self { slots: Vec::new(), free: VecDeque::new(), max }
    }

    /// How many are in use.
    pub(super) fn used(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.used() >= self.max
    }

    pub(super) fn add(&mut self, now: Instant, origin: ConnectionOrigin, options: Arc<Options>) -> u32 {
        let mut slot = Slot::new(now, origin, options);
        if let Some(index) = self.free.pop_front() {
            slot.generation = self.slots[index as usize].generation.wrapping_add(1);
            self.slots[index as usize] = slot;
            return index;
        }
        self.slots.push(slot);
        (self.slots.len() - 1) as u32
    }

    pub(super) fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        debug_assert_eq!(slot.state, State::Ended);
        slot.state = State::Free;
        self.free.push_back(index);
    }

    #[inline]
    pub(super) fn at(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    pub(super) fn at_ref(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    pub(super) fn find(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize).filter(|slot| slot.state != State::Free)
    }

    /// The slot that a token means, unless that connection is gone.
    #[inline]
    pub(super) fn of_token(&self, token: u64) -> Option<u32> {
        let index = token as u32;
        let slot = self.slots.get(index as usize)?;
        (slot.generation == (token >> 32) as u32 && slot.fd.is_some()).then_some(index)
    }

    pub(super) fn indices(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }
}

pub(super) fn token(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}
