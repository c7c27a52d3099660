//! The state of one peer, and the table of all peers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::assembler::Partial;
use crate::auth::KeyHandshake;
use crate::counters::Counters;
use crate::event::Listener;
use crate::net::Socket;
use crate::options::{Address, ConnectionOptions};
use crate::outbox::Outbox;
use crate::tls::Session;

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The slot is unused.
    Free,
    /// Ended permanently; free after the application has polled the end.
    Ended,
    /// The next attempt starts at this time.
    Waiting(Instant),
    /// The host name is being resolved.
    Resolving,
    /// TCP is connecting, until this time at most.
    Connecting(Instant),
    /// Greetings are being exchanged, until this time at most.
    Greeting(Instant),
    /// The connection is established.
    Open,
    /// The connection is being closed, until this time at most.
    Closing(Closing, Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// This side closes, and its outbox is not empty.
    Draining,
    /// This side has sent everything and its FIN, and waits for the peer's FIN.
    Finishing,
    /// The peer has closed, and the outbox is not empty.
    HalfClosed,
}

/// Kernel interface that carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    Epoll,
    /// io_uring receives for this connection.
    Uring,
    /// io_uring receives until its cancellation completes.
    Leaving,
}

/// Origin of a connection.
pub(super) enum ConnectionOrigin {
    Accepted(Listener),
    Outgoing(Box<Outgoing>),
}

pub(super) struct Outgoing {
    pub(super) address: Address,
    pub(super) expects: Arc<str>,
    /// Attempts since the last established connection.
    pub(super) attempts: u32,
    /// True if the application has closed the peer: no further attempt follows.
    pub(super) given_up: bool,
}

pub(super) struct Slot {
    pub(super) generation: u32,
    pub(super) state: State,
    pub(super) established: bool,
    pub(super) fd: Option<Socket>,
    pub(super) origin: ConnectionOrigin,
    pub(super) options: Arc<ConnectionOptions>,
    pub(super) name: Arc<str>,
    /// The version that both sides speak, once both greetings are known.
    pub(super) version: u16,
    /// Address of the caller of an accepted connection.
    pub(super) caller: Option<SocketAddr>,
    /// Number among the accepted connections without a complete greeting; `None` for others.
    pub(super) stranger: Option<u64>,
    pub(super) tls: Option<Box<Session>>,
    /// State of the proof of the shared key.
    pub(super) handshake: Option<Box<KeyHandshake>>,
    pub(super) partial: Partial,
    pub(super) outbox: Outbox,
    pub(super) counters: Counters,
    /// Time at which this slot is checked next.
    pub(super) timer: Option<Instant>,
    pub(super) last_in: Instant,
    pub(super) last_out: Instant,
    /// Time since which the kernel takes no bytes.
    pub(super) blocked: Option<Instant>,
    /// Heartbeat interval that the peer announced.
    pub(super) promised: Duration,
    /// True if the slot is in the list of slots with messages to send.
    pub(super) is_queued: bool,
    /// True if writing failed; reading continues until the end.
    pub(super) is_broken: bool,
    /// True if the application has paused reading.
    pub(super) is_paused: bool,
    /// True if reading waits for memory.
    pub(super) is_starved: bool,
    /// True if a send was refused because the outbox was full.
    pub(super) was_refused: bool,
    /// Events that the kernel reports: bit 0 reading, bit 1 writing, bit 2 edge-triggered. `None`: not registered.
    pub(super) watch: Option<u8>,
    /// True if the kernel resets some options, which have to be set again after each read.
    pub(super) renews_options: bool,
    pub(super) carrier: Carrier,
    /// True if io_uring is sending bytes of the outbox.
    pub(super) is_sending: bool,
    /// Number of small reads in a row.
    pub(super) small_reads: u8,
}

pub(super) const WATCH_READ: u8 = 1;
pub(super) const WATCH_WRITE: u8 = 2;
pub(super) const WATCH_EDGE: u8 = 4;

impl Slot {
    fn new(now: Instant, origin: ConnectionOrigin, options: Arc<ConnectionOptions>) -> Self {
        Self {
            generation: 0,
            state: State::Waiting(now),
            established: false,
            fd: None,
            origin,
            options,
            name: "".into(),
            version: 0,
            caller: None,
            stranger: None,
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
            is_queued: false,
            is_broken: false,
            is_paused: false,
            is_starved: false,
            was_refused: false,
            watch: None,
            renews_options: false,
            carrier: Carrier::Epoll,
            is_sending: false,
            small_reads: 0,
        }
    }

    /// Returns true if messages can be sent.
    #[inline]
    pub(super) fn can_send(&self) -> bool {
        matches!(self.state, State::Open | State::Closing(Closing::HalfClosed, _))
    }

    /// Returns true if epoll reports each arrival only once.
    pub(super) fn is_edge(&self) -> bool {
        self.watch.is_some_and(|watch| watch & WATCH_EDGE != 0)
    }

    /// Returns true if bytes can arrive.
    pub(super) fn can_read(&self) -> bool {
        self.fd.is_some()
            && matches!(
                self.state,
                State::Greeting(_) | State::Open | State::Closing(Closing::Draining | Closing::Finishing, _)
            )
    }
}

/// Table of all peers.
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Free numbers, the longest unused first, so that a number is not reused soon.
    free: VecDeque<u32>,
    max: usize,
}

impl Slots {
    pub(super) fn new(max: usize) -> Self {
        Self { slots: Vec::new(), free: VecDeque::new(), max }
    }

    /// Returns the number of slots in use.
    pub(super) fn used(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.used() >= self.max
    }

    pub(super) fn add(
        &mut self,
        now: Instant,
        origin: ConnectionOrigin,
        options: Arc<ConnectionOptions>,
    ) -> u32 {
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

    /// Returns the slot of a token, unless its connection has ended.
    #[inline]
    pub(super) fn of_token(&self, token: u64) -> Option<u32> {
        let index = token as u32;
        let slot = self.slots.get(index as usize)?;
        (slot.generation == (token >> 32) as u32 && slot.fd.is_some()).then_some(index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    pub(super) fn indices(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }
}

pub(super) fn token(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}
