//! The endpoint: the connections of one thread.

mod completion;
mod connections;
mod encrypted;
mod greeting;
mod parts;
mod slot;
mod strangers;
mod timers;
mod transfer;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak, mpsc};
use std::time::Instant;

use crate::assembler::Assembler;
use crate::auth::SharedKey;
use crate::backoff::Jitter;
use crate::callers::CallerRates;
use crate::counters::Counters;
use crate::epoll::READ;
use crate::event::{Closed, EndpointEvent, Listener, PeerId, SendError};
use crate::hello::NAME_BYTES_MAX;
use crate::limits::Limits;
use crate::net::{Net, SimulatedNetwork};
use crate::options::{Address, Backend, ConnectionOptions, EndpointSettings, Greeting, SameName};
use crate::outbox::Spare;
use crate::pool::{BufferPool, Payload, PeerMemory};
use crate::socket::{OptionError, OsError, SocketError, SocketOptions};
use crate::sys::uring::Uring;
use crate::tcp_info::TcpInfo;
use crate::wake::Waker;

use parts::{Fed, Listening, Resolved, SlotDeadline, TOKEN_BELL, TOKEN_LISTENER, TOKEN_WAKER};
use slot::{Closing, ConnectionOrigin, Outgoing, Slots, State};
use strangers::Strangers;

const LISTENERS_MAX: usize = 1 << 16;
/// Minimum size of read blocks, bytes.
const BLOCK_BYTES_MIN: usize = 4096;

/// Connections to any number of peers, driven by one thread.
///
/// All I/O happens inside [`poll`](Self::poll), which also reports all events; other calls do not wait. Small messages
/// are collected, and sent after the last message of a read was polled. The replies to many requests thus take one
/// call.
pub struct MessageEndpoint {
    settings: EndpointSettings,
    name: Arc<str>,
    /// Limits before the greeting, when only the crate's own messages are allowed.
    greeting_limits: Limits,
    slots: Slots,
    strangers: Strangers,
    /// `None` without a limit to the rate of connections.
    rates: Option<CallerRates>,
    listeners: Vec<Listening>,
    names: HashMap<(Listener, Arc<str>), u32>,
    // Dropped before epoll, as it watches epoll's descriptor.
    uring: Option<Uring>,
    net: Net,
    /// Bytes from io_uring or from a TLS layer that are being parsed.
    fed: Option<Fed>,
    waker: Waker,
    bell: Waker,
    assembler: Assembler,
    pool: BufferPool,
    spare: Spare,
    events: VecDeque<EndpointEvent>,
    /// The connection being parsed.
    reading: Option<u32>,
    /// True if the last read filled all the space given to it.
    more: bool,
    reads_in_turn: u8,
    /// Connections with messages to send.
    dirty: Vec<u32>,
    /// Connections waiting for memory.
    starved: Vec<u32>,
    /// Memory of received messages by the peer's name. A peer that connects again finds its former messages counted.
    memories: HashMap<Arc<str>, Weak<PeerMemory>>,
    timers: BinaryHeap<SlotDeadline>,
    now: Instant,
    totals: Counters,
    random: Jitter,
    resolved: (mpsc::Sender<Resolved>, mpsc::Receiver<Resolved>),
}

/// An endpoint can be created in one thread and polled in another.
const _: fn(MessageEndpoint) = |endpoint| {
    fn may_move<T: Send>(_: T) {}
    may_move(endpoint);
};

/// Invalid settings, or a missing feature of the system.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The system refuses a descriptor that every endpoint needs.
    #[error("cannot create an endpoint: {0}")]
    System(#[from] io::Error),
    /// io_uring is too old or not permitted.
    #[error("io_uring is not available: {0}")]
    Uring(io::Error),
    /// The name is too long.
    #[error("the name {0:?} has more than {NAME_BYTES_MAX} bytes")]
    Name(String),
    /// A limit is too small.
    #[error("{limit} is {value}; the minimum is {needed}")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// The configured value.
        value: u64,
        /// Smallest value allowed.
        needed: u64,
    },
}

impl MessageEndpoint {
    /// Creates an endpoint without connections.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the name is too long, if a limit is too small, or if the system refuses a descriptor or
    /// io_uring.
    pub fn new(settings: EndpointSettings) -> Result<Self, SetupError> {
        Self::over(Net::kernel()?, settings)
    }

    /// Creates an endpoint in a simulated network, where [`poll`](Self::poll) never waits. It returns `None` when there
    /// is nothing left to do; poll again at [`poll_deadline`](Self::poll_deadline).
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn simulated(
        settings: EndpointSettings,
        network: Box<dyn SimulatedNetwork>,
    ) -> Result<Self, SetupError> {
        let limits = network.limits(settings.limits.clone());
        let settings = EndpointSettings { backend: Backend::Epoll, limits, ..settings };
        Self::over(Net::simulated(network), settings)
    }

    fn over(mut net: Net, settings: EndpointSettings) -> Result<Self, SetupError> {
        if settings.name.len() > NAME_BYTES_MAX {
            return Err(SetupError::Name(settings.name));
        }
        let limits = &settings.limits;
        let block = limits.receive_block_bytes;
        // Block sizes are rounded up by at most a quarter.
        let receive_min = (u64::from(limits.largest()) + 2 * block as u64) * 5 / 4 + 8192;
        for (limit, value, needed) in [
            ("receive_block_bytes", block as u64, BLOCK_BYTES_MIN as u64),
            ("receive_bytes_max", limits.receive_bytes_max, receive_min),
            ("peer_receive_bytes_max", limits.peer_receive_bytes_max, 1),
            ("peers_max", limits.peers_max as u64, 1),
            ("greetings_max", limits.greetings_max as u64, 1),
        ] {
            if value < needed {
                return Err(SetupError::Limit { limit, value, needed });
            }
        }
        let uring = match settings.backend {
            Backend::Auto | Backend::Epoll => None,
            Backend::Uring => Some(Uring::new(net.epoll().descriptor()?).map_err(SetupError::Uring)?),
        };
        let (waker, bell) = (net.waker(TOKEN_WAKER)?, net.waker(TOKEN_BELL)?);
        let pool = BufferPool::new(limits.receive_bytes_max, limits.idle_bytes_max, bell.clone());
        let now = net.now();
        let seed = if net.is_simulated() {
            let [a, b, c, d, e, f, g, h, ..] = net.random()?;
            u64::from_le_bytes([a, b, c, d, e, f, g, h])
        } else {
            std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), &settings.name)
        };
        Ok(Self {
            name: settings.name.as_str().into(),
            greeting_limits: Limits { message_bytes_max: 0, by_kind: Vec::new(), ..limits.clone() },
            slots: Slots::new(limits.peers_max),
            strangers: Strangers::default(),
            rates: limits.caller_connections_per_second_max.map(CallerRates::new),
            listeners: Vec::new(),
            names: HashMap::new(),
            uring,
            net,
            fed: None,
            waker,
            bell,
            assembler: Assembler::new(pool.clone(), block),
            pool,
            spare: Spare::default(),
            events: VecDeque::new(),
            reading: None,
            more: false,
            reads_in_turn: 0,
            dirty: Vec::new(),
            starved: Vec::new(),
            memories: HashMap::new(),
            timers: BinaryHeap::new(),
            now,
            totals: Counters::default(),
            random: Jitter(seed),
            resolved: mpsc::channel(),
            settings,
        })
    }

    /// Accepts connections on `address`. With port 0 the system chooses a port
    /// ([`local_address`](Self::local_address)).
    ///
    /// # Errors
    ///
    /// [`SocketError`] if the system refuses the address or an option.
    ///
    /// # Panics
    ///
    /// If the endpoint has 65 536 listeners already.
    pub fn listen(
        &mut self,
        address: SocketAddr,
        options: ConnectionOptions,
    ) -> Result<Listener, SocketError> {
        assert!(self.listeners.len() < LISTENERS_MAX, "more than {LISTENERS_MAX} listeners");
        let fd = self.net.listen(address, &options.socket)?;
        let listener = Listener(self.listeners.len() as u32);
        let token = TOKEN_LISTENER + u64::from(listener.0);
        self.net.add(&fd, token, READ).map_err(|error| OsError::of(&error))?;
        self.listeners.push(Listening {
            fd: Some(fd),
            options: Arc::new(options),
            resume: None,
            reported: None,
        });
        Ok(listener)
    }

    /// Returns the address that a listener is bound to; `None` after it was closed.
    pub fn local_address(&self, listener: Listener) -> Option<SocketAddr> {
        self.listeners.get(listener.index())?.fd.as_ref()?.local_address()
    }

    /// Stops accepting on `listener`. Its connections stay open.
    pub fn close_listener(&mut self, listener: Listener) {
        if let Some(listening) = self.listeners.get_mut(listener.index()) {
            listening.fd = None;
            listening.resume = None;
        }
    }

    /// Connects to the peer called `name` (empty: to any peer) at `address`, and again after each loss, as
    /// [`ConnectionOptions::backoff`] says. [`poll`](Self::poll) reports the result.
    ///
    /// # Panics
    ///
    /// If the number of peers exceeds [`Limits::peers_max`].
    pub fn connect(&mut self, name: &str, address: impl Into<Address>, options: ConnectionOptions) -> PeerId {
        assert!(!self.slots.is_full(), "more than peers_max = {} peers", self.settings.limits.peers_max);
        let expects: Arc<str> = name.into();
        let outgoing =
            Outgoing { address: address.into(), expects: Arc::clone(&expects), attempts: 0, given_up: false };
        let index =
            self.slots.add(self.now, ConnectionOrigin::Outgoing(Box::new(outgoing)), Arc::new(options));
        self.slots.at(index).name = expects;
        self.attempt(index);
        PeerId(index)
    }

    /// Returns the next event, and waits for it until `deadline` (`None`: without limit). Returns `None` at the
    /// deadline. A deadline in the past polls without waiting.
    ///
    /// # Errors
    ///
    /// The system's error if waiting itself fails; the endpoint is then unusable.
    #[inline]
    pub fn poll(&mut self, deadline: Option<Instant>) -> io::Result<Option<EndpointEvent>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                self.delivered(&event);
                return Ok(Some(event));
            }
            if let Some(index) = self.reading {
                if let Some(event) = self.next_frame(index) {
                    return Ok(Some(event));
                }
                continue;
            }
            if self.fed.is_some() {
                self.feed();
                continue;
            }
            if let Some(ready) = self.net.next() {
                self.reads_in_turn = 0;
                self.handle_ready(ready);
                continue;
            }
            if let Some(uring) = &mut self.uring {
                if let Some(done) = uring.next() {
                    self.handle_done(done);
                    continue;
                }
                if self.poll_epoll_behind_uring()? {
                    continue;
                }
            }
            self.flush_all();
            if !self.events.is_empty() {
                continue;
            }
            if self.wait(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Sends a message with the concatenation of `parts` as payload. Small messages are copied and collected. A large one is
    /// written directly from `parts`; only the rest refused by the kernel is copied.
    ///
    /// # Errors
    ///
    /// [`SendError`]; no part of the message is then sent.
    ///
    /// # Panics
    ///
    /// If the type is reserved ([`RESERVED_KINDS`](crate::RESERVED_KINDS)).
    #[inline]
    pub fn send(&mut self, peer: PeerId, kind: u32, stream: u32, parts: &[&[u8]]) -> Result<(), SendError> {
        let size = parts.iter().map(|part| part.len() as u64).sum();
        let header = self.admit(peer, kind, stream, size)?;
        self.push(peer.0, header, parts);
        Ok(())
    }

    /// Sends a message with the payload `head`, which is copied, followed by `bodies`. Large bodies are shared with the caller
    /// until they are sent, and not copied.
    ///
    /// # Errors
    ///
    /// [`SendError`]; no part of the message is then sent.
    ///
    /// # Panics
    ///
    /// If the type is reserved ([`RESERVED_KINDS`](crate::RESERVED_KINDS)).
    pub fn send_shared(
        &mut self,
        peer: PeerId,
        kind: u32,
        stream: u32,
        head: &[u8],
        bodies: &[Payload],
    ) -> Result<(), SendError> {
        let size = head.len() as u64 + bodies.iter().map(|body| body.len() as u64).sum::<u64>();
        let header = self.admit(peer, kind, stream, size)?;
        self.push_shared(peer.0, header, head, bodies);
        Ok(())
    }

    /// Gives all waiting messages to the kernel now, before the next [`poll`](Self::poll).
    pub fn flush(&mut self) {
        self.flush_all();
        if let Some(uring) = &mut self.uring {
            uring.submit();
        }
    }

    /// Stops reading from a peer; TCP's window then stops the peer. Messages that were read already are still reported.
    pub fn pause(&mut self, peer: PeerId) {
        if self.slots.find(peer.0).is_some() {
            self.slots.at(peer.0).is_paused = true;
            self.watch(peer.0);
        }
    }

    /// Continues reading from a peer.
    pub fn resume(&mut self, peer: PeerId) {
        if self.slots.find(peer.0).is_some() {
            let slot = self.slots.at(peer.0);
            slot.is_paused = false;
            slot.last_in = self.now;
            self.watch(peer.0);
        }
    }

    /// Closes a connection without loss, and does not connect again. Sends the waiting messages, and receives the
    /// peer's messages until it closes, too, within [`drain_max`](crate::Timing::drain_max). [`EndpointEvent::Closed`]
    /// follows, or [`EndpointEvent::Failed`] if the connection was not established.
    pub fn close(&mut self, peer: PeerId) {
        let Some(slot) = self.slots.find(peer.0) else { return };
        let (state, drain_max) = (slot.state, slot.options.timing.drain_max);
        self.give_up(peer.0);
        match state {
            State::Open => {
                let until = self.net.now() + drain_max;
                self.slots.at(peer.0).state = State::Closing(Closing::Draining, until);
                self.arm(peer.0, until);
                self.flush_slot(peer.0);
            }
            State::Free | State::Ended | State::Closing(..) => {}
            State::Waiting(_) | State::Resolving | State::Connecting(_) | State::Greeting(_) => {
                self.end(peer.0, Closed::Local);
            }
        }
    }

    /// Ends a connection at once, and does not connect again. Waiting messages are lost, and counted.
    pub fn abort(&mut self, peer: PeerId) {
        if self.slots.find(peer.0).is_some_and(|slot| slot.state != State::Ended) {
            self.give_up(peer.0);
            self.end(peer.0, Closed::Aborted);
        }
    }

    /// Closes all listeners and, without loss, all connections. After the last one has ended,
    /// [`is_empty`](Self::is_empty) is true.
    pub fn shutdown(&mut self) {
        for listener in 0..self.listeners.len() {
            self.close_listener(Listener(listener as u32));
        }
        for index in self.slots.indices() {
            self.close(PeerId(index));
        }
    }

    /// Returns true if the endpoint has no peer. Peers that wait for their next attempt count, too.
    pub fn is_empty(&self) -> bool {
        self.slots.used() == 0
    }

    /// Returns the number of peers in any state.
    pub fn peers(&self) -> usize {
        self.slots.used()
    }

    /// Sets the keys of all listeners and of all outgoing connections ([`ConnectionOptions::key`],
    /// [`ConnectionOptions::key_previous`]) for the
    /// greetings that follow. Established connections stay.
    pub fn set_keys(&mut self, key: Option<&SharedKey>, previous: Option<&SharedKey>) {
        let set = |options: &mut Arc<ConnectionOptions>| {
            let options = Arc::make_mut(options);
            (options.key, options.key_previous) = (key.cloned(), previous.cloned());
        };
        self.listeners.iter_mut().for_each(|listening| set(&mut listening.options));
        for index in self.slots.indices() {
            let slot = self.slots.at(index);
            if matches!(slot.origin, ConnectionOrigin::Outgoing(_)) {
                set(&mut slot.options);
            }
        }
    }

    /// Sets the options of a peer's socket, for this connection and the following ones. Does nothing for an unknown
    /// peer.
    ///
    /// # Errors
    ///
    /// [`OptionError`] for the first option that the system refuses; the options before it are set.
    pub fn set_options(&mut self, peer: PeerId, socket: SocketOptions) -> Result<(), OptionError> {
        if self.slots.find(peer.0).is_none() {
            return Ok(());
        }
        let slot = self.slots.at(peer.0);
        if let Some(fd) = &slot.fd {
            fd.apply(&socket)?;
        }
        slot.renews_options = socket.wears_off();
        slot.options = Arc::new(ConnectionOptions { socket, ..ConnectionOptions::clone(&slot.options) });
        Ok(())
    }

    /// Sets only the window clamp of a peer's socket ([`SocketOptions::window_clamp`]), now and after each read.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if the system refuses it.
    pub fn set_window_clamp(&mut self, peer: PeerId, bytes: u32) -> Result<(), OptionError> {
        if self.slots.find(peer.0).is_none() {
            return Ok(());
        }
        let slot = self.slots.at(peer.0);
        if slot.options.socket.window_clamp == Some(bytes) {
            return Ok(());
        }
        if let Some(fd) = &slot.fd {
            fd.clamp_window(bytes)?;
        }
        slot.renews_options = true;
        Arc::make_mut(&mut slot.options).socket.window_clamp = Some(bytes);
        Ok(())
    }

    /// Sends a heartbeat now, in its own segment if nothing else is waiting. Does nothing if the peer is not
    /// connected, or has no greeting.
    ///
    /// TCP accepts a smaller window only with a new sequence number (RFC 9293 §3.10.7.4, SND.WL1). A heartbeat before
    /// a request makes the request carry one.
    pub fn send_heartbeat(&mut self, peer: PeerId) {
        let Some(slot) = self.slots.find(peer.0) else { return };
        if slot.can_send() && slot.options.greeting == Greeting::Names {
            self.heartbeat(peer.0);
            self.flush_slot(peer.0);
        }
    }

    /// Returns the kernel's `tcp_info` of a peer's connection; `None` without a connection.
    pub fn tcp_info(&self, peer: PeerId) -> Option<TcpInfo> {
        self.slots.find(peer.0)?.fd.as_ref()?.tcp_info()
    }

    /// Returns a handle with which other threads interrupt [`poll`](Self::poll).
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Returns the counters of a peer, over all its connections; `None` for an unknown peer.
    pub fn counters(&self, peer: PeerId) -> Option<&Counters> {
        self.slots.find(peer.0).map(|slot| &slot.counters)
    }

    /// Returns the counters of all peers, past and present.
    pub fn totals(&self) -> &Counters {
        &self.totals
    }

    /// Returns the bytes that wait to be sent to a peer, headers included; zero for an unknown peer.
    pub fn outbox_bytes(&self, peer: PeerId) -> u64 {
        self.slots.find(peer.0).map_or(0, |slot| slot.outbox.bytes())
    }

    /// Returns the memory of a peer's received messages; peers without a name have one for each connection.
    fn memory_of(&mut self, name: &Arc<str>) -> Arc<PeerMemory> {
        if let Some(memory) = self.memories.get(name).and_then(Weak::upgrade) {
            return memory;
        }
        let is_urgent = self.settings.urgent.iter().any(|urgent| **urgent == **name);
        let memory = PeerMemory::new(self.settings.limits.peer_receive_bytes_max, is_urgent);
        if !name.is_empty() {
            if self.memories.len() > 2 * self.slots.used() {
                self.memories.retain(|_, memory| memory.strong_count() > 0);
            }
            self.memories.insert(Arc::clone(name), Arc::downgrade(&memory));
        }
        memory
    }

    /// Returns the bytes of all receive buffers in use: of received messages, of incomplete ones, and the read block.
    pub fn receive_bytes(&self) -> u64 {
        self.pool.lent_bytes()
    }

    fn delivered(&mut self, event: &EndpointEvent) {
        if let EndpointEvent::Closed { peer, retry: None, .. }
        | EndpointEvent::Failed { peer, retry: None, .. } = event
        {
            self.slots.release(peer.0);
        }
    }

    /// Ends further attempts to connect.
    fn give_up(&mut self, index: u32) {
        if let ConnectionOrigin::Outgoing(outgoing) = &mut self.slots.at(index).origin {
            outgoing.given_up = true;
        }
    }

    /// Returns the listener's policy for a second connection with the same name.
    fn same_name(&self, listener: Listener) -> SameName {
        self.listeners[listener.index()].options.same_name
    }
}
