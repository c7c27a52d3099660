//! The connections of a process: sends and receives messages.
//!
//! Each part of [`PeerConnections`] has one task:
//!
//! - `table`: the connections by peer; `dialer`: outgoing connections; `reach`: needed peers without a connection;
//! - `limits`: limits of connections, above all without a greeting, and log lines about refused ones;
//! - `backlog`: messages that wait because a connection is full;
//! - `sharing`: the shared window of a DIATCP collector;
//! - `observer`, `timeouts`: the kernel's TCP counters.

mod backlog;
mod dialer;
mod error;
mod limits;
mod observer;
mod reach;
mod sharing;
mod table;
mod timeouts;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fanin_dataflow::{L1Id, Message, Peer};
use fanin_message::{
    Closed, ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint, Payload,
    PeerId as Connection, ReceiveMemory, SendError, SharedKey, SocketOptions, Timing,
};

use crate::codec::{DecodeError, decode, encode};
use crate::config::{System, listen_addresses, port};
use crate::data::Data;
use crate::machine::HostMachine;
use crate::names::{name, peer};
use crate::source::Sources;
use crate::tcp::Sums;
use crate::transport::{self, Environment, Fitted};

use backlog::{Backlog, QueuedMessage};
use dialer::Dialer;
use limits::RefusedConnections;
pub(crate) use limits::{CALLER_CONNECTIONS_PER_SECOND_MAX, EVENT_BYTES_MAX};
use observer::TcpObserver;
use reach::Reachability;
use sharing::WindowSharing;
use table::ConnectionTable;

pub use error::WireError;

/// Interval at which held requests are tried again. Bytes of an incomplete answer make room in the window without an
/// event of the endpoint.
const HELD_TURN: Duration = Duration::from_millis(1);

/// An input from the connections of a process.
#[derive(Debug)]
pub enum WireInput {
    /// A connection to a peer was made.
    Connected(Peer),
    /// The connection to a peer is lost.
    Closed(Peer),
    /// A message arrived.
    Message(Peer, Message<Data>),
    /// A peer sent an invalid message; its connection is closed.
    Invalid(Peer, DecodeError),
    /// Another thread of this process called the waker.
    Woken,
}

/// Counters of messages and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Number of messages sent.
    pub messages_sent: u64,
    /// Number of messages received.
    pub messages_received: u64,
    /// Bytes sent, frame headers included.
    pub bytes_sent: u64,
    /// Bytes received, frame headers included.
    pub bytes_received: u64,
    /// Messages dropped because their peer was not connected, or because they are too large.
    pub messages_undeliverable: u64,
    /// Messages that could not be decoded or were not expected in the role's state.
    pub messages_invalid: u64,
    /// Number of connections lost.
    pub connections_lost: u64,
    /// Connections that ended in the greeting because the two sides have no common version.
    pub no_common_version: u64,
    /// Connections to this process that ended without a valid greeting.
    pub connections_refused: u64,
}

/// All connections of a process.
pub struct PeerConnections {
    endpoint: MessageEndpoint,
    system: System,
    sources: Sources,
    options: ConnectionOptions,
    dialer: Dialer,
    table: ConnectionTable,
    backlog: Backlog,
    observer: TcpObserver,
    reach: Reachability,
    refused: RefusedConnections,
    /// The shared window of a DIATCP collector; `None` for other processes.
    sharing: Option<WindowSharing>,
    /// Further inputs from an event of the endpoint that yields several.
    pending: VecDeque<WireInput>,
    /// Buffer that the fields of messages reuse.
    head: Vec<u8>,
    is_stopping: bool,
    /// True if the endpoint was shut down.
    is_shut: bool,
    counters: WireCounters,
}

impl PeerConnections {
    /// Listens at the address of this process, if it has one, and connects to its partners.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn open(system: &System, me: Peer, sources: Sources) -> Result<Self, WireError> {
        let limits = limits::connection_limits(system);
        let silence = crate::clock::std_duration(system.scenario().live.silence_max);
        let timing = Timing { heartbeat: silence / 5, silence_max: silence, ..Timing::default() };
        let fitted = match &system.machine {
            HostMachine::Real => transport::fit(system.scenario(), Environment::Hosts)?,
            HostMachine::Simulated(_) => Fitted::default(),
        };
        for reason in &fitted.unmet {
            tracing::warn!(%reason, "not in force");
        }
        let tls = system.tls(&name(me)).map_err(Box::new)?;
        let loopback_source = system.key.as_ref().map(SharedKey::loopback_address);
        let (key, key_previous) = (system.key.clone(), system.key_previous.clone());
        let options = ConnectionOptions {
            timing,
            tls,
            key,
            key_previous,
            socket: SocketOptions { loopback_source, ..fitted.socket },
            ..ConnectionOptions::default()
        };
        let is_collector = matches!(me, Peer::Collector(_));
        let settings = EndpointSettings {
            name: name(me),
            versions: system.versions,
            limits,
            urgent: limits::urgent(system, me),
            ..EndpointSettings::default()
        };
        let mut wire = Self {
            endpoint: match &system.machine {
                HostMachine::Real => MessageEndpoint::new(settings)?,
                HostMachine::Simulated(machine) => MessageEndpoint::simulated(settings, machine.network())?,
            },
            system: system.clone(),
            sources,
            options,
            dialer: Dialer::new(me),
            table: ConnectionTable::default(),
            backlog: Backlog::default(),
            observer: TcpObserver::open(system, me)?,
            reach: Reachability::new(system, me, system.machine.now()),
            refused: RefusedConnections::default(),
            sharing: if is_collector { WindowSharing::of(system.scenario()) } else { None },
            pending: VecDeque::new(),
            head: Vec::new(),
            is_stopping: false,
            is_shut: false,
            counters: WireCounters::default(),
        };
        if let Some(address) = system.address(me) {
            // Without a valid port (port 0 in some tests), the process neither listens nor connects.
            if port(address).is_none() {
                return Ok(wire);
            }
            wire.listen(address, me)?;
        }
        for partner in wire.dialer.partners(system) {
            wire.connect(partner);
        }
        Ok(wire)
    }

    /// Listens at every address of the host. Fails only if it can listen at none of them.
    fn listen(&mut self, address: &str, me: Peer) -> Result<(), WireError> {
        let options = ConnectionOptions { names: callers(&self.system, me), ..self.options.clone() };
        let resolved = listen_addresses(address, self.system.listen)
            .map_err(|error| WireError::Resolve { address: address.to_owned(), error })?;
        let mut refused = None;
        let mut is_listening = false;
        for socket in resolved {
            match self.endpoint.listen(socket, options.clone()) {
                Ok(_) => {
                    tracing::info!(%socket, "listening");
                    is_listening = true;
                }
                Err(error) => {
                    tracing::warn!(%socket, %error, "cannot listen at an address of this host's name");
                    refused = Some(error);
                }
            }
        }
        match refused {
            Some(error) if !is_listening => Err(WireError::Listen { address: address.to_owned(), error }),
            _ => Ok(()),
        }
    }

    fn connect(&mut self, partner: Peer) {
        if let Some(address) = self.system.address(partner).map(str::to_owned) {
            let connection = self.endpoint.connect(&name(partner), address.as_str(), self.options.clone());
            self.dialer.handle_dialed(connection.index(), partner);
        }
    }

    /// Takes over the keys of `system` for the greetings that follow. Connections stay.
    pub fn set_keys(&mut self, system: &System) {
        let (key, previous) = (&system.key, &system.key_previous);
        (self.options.key, self.options.key_previous) = (key.clone(), previous.clone());
        self.endpoint.set_keys(key.as_ref(), previous.as_ref());
    }

    /// Returns the waker by which another thread ends a waiting [`Self::poll`].
    pub fn waker(&self) -> fanin_message::Waker {
        self.endpoint.waker()
    }

    /// Returns true if a peer is connected.
    pub fn is_connected(&self, peer: Peer) -> bool {
        self.table.of(peer).is_some()
    }

    /// Returns the number of connected peers.
    pub fn connected(&self) -> usize {
        self.table.len()
    }

    /// Returns a list of the connections that the role needs and lacks; `None` if it lacks none.
    pub fn lacks(&self) -> Option<String> {
        self.reach.lacks()
    }

    /// Logs peers that have been missing for a while, and the number of refused connections, both at a low rate.
    pub fn log_unreachable(&mut self, now: Instant) {
        self.refused.log(now);
        if !self.is_stopping {
            self.reach.log(now);
        }
    }

    /// Returns the number of connected peers with an older version than this process.
    pub fn older(&self) -> usize {
        self.table.count_below(self.system.versions.highest)
    }

    /// Returns the counters of messages, bytes and connections.
    pub fn counters(&self) -> &WireCounters {
        &self.counters
    }

    /// Returns the counters of the endpoint, those of strangers' connections included.
    pub fn totals(&self) -> &fanin_message::Counters {
        self.endpoint.totals()
    }

    /// Returns the number of times that TCP's counters could not be written to their file.
    pub fn tcp_counts_failed(&self) -> u64 {
        self.observer.failures()
    }

    /// Returns TCP's counters over all connections.
    pub fn tcp_totals(&self) -> Sums {
        self.observer.totals()
    }

    /// Returns the next input; waits until `deadline` at most, and returns `None` then.
    ///
    /// # Errors
    /// If waiting for events fails.
    pub fn poll(&mut self, deadline: Instant) -> Result<Option<WireInput>, WireError> {
        if let Some(input) = self.pending.pop_front() {
            return Ok(Some(input));
        }
        if !self.is_stopping {
            self.dialer.due(self.system.machine.now()).into_iter().for_each(|peer| self.connect(peer));
        }
        loop {
            self.send_admitted();
            let holds = self.sharing.as_ref().is_some_and(WindowSharing::holds_requests);
            let until = if holds { deadline.min(self.system.machine.now() + HELD_TURN) } else { deadline };
            match self.endpoint.poll(Some(until))? {
                Some(event) => {
                    if let Some(input) = self.handle_event(event) {
                        return Ok(Some(input));
                    }
                }
                None if until >= deadline || self.system.machine.now() >= deadline => return Ok(None),
                None => {}
            }
        }
    }

    fn handle_event(&mut self, event: EndpointEvent) -> Option<WireInput> {
        match event {
            EndpointEvent::Connected { peer: connection, name, version, .. } => {
                let Some(partner) = peer(&name) else {
                    tracing::warn!(%name, "rejected a connection: no process of the system has this name");
                    self.endpoint.abort(connection);
                    return None;
                };
                Some(self.handle_connected(partner, connection, version))
            }
            EndpointEvent::Message { peer: connection, kind, stream, payload } => {
                let partner = self.table.peer_of(connection)?;
                Some(self.handle_message(partner, kind, stream, &payload))
            }
            EndpointEvent::Writable { peer: connection } => {
                let partner = self.table.peer_of(connection)?;
                self.send_backlog(partner);
                None
            }
            EndpointEvent::Closed { peer: connection, reason, retry, unsent, tcp } => {
                if retry.is_none() {
                    self.dialer.handle_ended(connection.index());
                }
                let removed = self.table.remove(connection)?;
                let partner = removed.peer;
                self.observer.handle_end(partner, removed.was_current, tcp.as_deref());
                if !removed.was_current {
                    return None;
                }
                self.forget(partner);
                self.reach.handle_closed(self.system.machine.now(), partner, reason.to_string());
                if self.is_stopping || matches!(reason, Closed::Local) {
                    tracing::info!(peer = %partner, %reason, "disconnected");
                } else {
                    self.counters.connections_lost += 1;
                    tracing::warn!(peer = %partner, %reason, ?unsent, "connection lost");
                }
                if retry.is_none() && self.dialer.connects_to(partner) && !self.is_stopping {
                    self.dialer.schedule(self.system.machine.now(), partner);
                }
                Some(WireInput::Closed(partner))
            }
            EndpointEvent::Failed { peer: connection, name, caller, reason, retry } => {
                tracing::debug!(%reason, ?retry, "no connection");
                let dialed = self.dialer.dialed(connection.index());
                if let Closed::NoCommonVersion(versions) = &reason {
                    self.counters.no_common_version += 1;
                    if let Some(partner) = dialed.or_else(|| peer(&versions.peer)) {
                        self.reach.handle_other_versions(self.system.machine.now(), partner, &reason);
                    }
                } else if dialed.is_none() && !matches!(reason, Closed::Local | Closed::Aborted) {
                    self.refused.handle_refused(self.system.machine.now(), &name, caller, &reason);
                    self.counters.connections_refused = self.refused.total();
                    if let Some(partner) = peer(&name) {
                        self.reach.handle_failed(partner, limits::refusal_of_peer(&reason));
                    }
                }
                if let Some(partner) = dialed.filter(|partner| self.table.of(*partner).is_none()) {
                    self.reach.handle_failed(partner, reason.to_string());
                }
                if retry.is_none() {
                    self.dialer.handle_ended(connection.index());
                }
                None
            }
            EndpointEvent::NotAccepting { reason, .. } => {
                tracing::error!(%reason, "accepting no further connections");
                None
            }
            EndpointEvent::Woken => Some(WireInput::Woken),
        }
    }

    fn handle_connected(&mut self, partner: Peer, connection: Connection, version: u16) -> WireInput {
        tracing::info!(peer = %partner, version, "connected");
        self.reach.handle_connected(self.system.machine.now(), partner);
        // Messages in flight on an older connection that this one replaces are lost.
        self.forget(partner);
        if let (Some(sharing), Peer::Readout(place)) = (&mut self.sharing, partner) {
            sharing.handle_connected(&mut self.endpoint, place, connection);
        }
        let info = self.endpoint.tcp_info(connection);
        self.observer.handle_connected(partner, self.system.machine.now(), info.as_ref());
        if self.table.insert(partner, connection, version) {
            // The end of the older connection is not reported yet: it came to another address of this host, and the
            // endpoint keeps names by listener. The role must receive the end before the new connection.
            self.pending.push_back(WireInput::Connected(partner));
            return WireInput::Closed(partner);
        }
        WireInput::Connected(partner)
    }

    fn handle_message(&mut self, partner: Peer, kind: u32, stream: u32, payload: &Payload) -> WireInput {
        self.counters.messages_received += 1;
        self.counters.bytes_received += payload.len() as u64 + fanin_dataflow::FRAME_HEADER_BYTES;
        match decode(kind, stream, payload, self.table.version_of(partner)) {
            Ok(message) => {
                if let (Some(sharing), Peer::Readout(place), Message::Answer { .. }) =
                    (&mut self.sharing, partner, &message)
                {
                    sharing.handle_answer(&mut self.endpoint, &self.table, place);
                }
                WireInput::Message(partner, message)
            }
            Err(error) => {
                self.reject(partner);
                WireInput::Invalid(partner, error)
            }
        }
    }

    /// Drops the waiting messages for a peer.
    fn forget(&mut self, partner: Peer) {
        self.backlog.clear(partner);
        if let (Some(sharing), Peer::Readout(place)) = (&mut self.sharing, partner) {
            sharing.handle_lost(place);
        }
    }

    /// Closes the connection of a peer that sent an invalid or unexpected message, and counts the message.
    pub fn reject(&mut self, partner: Peer) {
        self.counters.messages_invalid += 1;
        self.abort(partner);
    }

    fn abort(&mut self, partner: Peer) {
        if let Some(connection) = self.table.of(partner) {
            self.endpoint.abort(connection);
        }
    }

    /// Sends a message, or queues it if the connection is full. Drops a message for a peer that is not connected; the role
    /// learns of the lost connection.
    pub fn send(&mut self, to: Peer, message: Message<Data>) {
        let Some(connection) = self.table.of(to) else {
            self.counters.messages_undeliverable += 1;
            return;
        };
        let is_request = matches!(message, Message::Request { .. });
        let (kind, stream) = (message.message_type(), message.stream_id());
        let event = match &message {
            Message::Request { event, .. } | Message::Answer { event, .. } => Some(*event),
            _ => None,
        };
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        let payload = encode(message, self.table.version_of(to), &mut head);
        let mut bodies: Vec<Payload> = payload.parts().to_vec();
        if !payload.missing().is_empty() {
            let mut missing = Vec::new();
            payload.encode_missing(&|readout, fragment| self.sources.name(readout, fragment), &mut missing);
            bodies.push(missing.into());
        }
        let message = QueuedMessage { kind, stream, event, head, bodies };
        if let (Some(sharing), Peer::Readout(place), true) = (&mut self.sharing, to, is_request) {
            return sharing.hold(place, message);
        }
        self.send_or_queue(connection, to, message);
    }

    fn send_or_queue(&mut self, connection: Connection, to: Peer, message: QueuedMessage) {
        if !self.backlog.has(to) && self.try_send(to, connection, &message) {
            self.head = message.head;
        } else if let Err(queued) = self.backlog.push(to, message) {
            tracing::error!(peer = %to, queued, "closed a connection: the peer is too slow");
            self.abort(to);
        }
    }

    /// Sends or drops a message. Returns false if the connection is full, and the message must wait.
    fn try_send(&mut self, to: Peer, connection: Connection, message: &QueuedMessage) -> bool {
        let QueuedMessage { kind, stream, event, head, bodies } = message;
        let now = self.system.machine.now();
        if event.is_some() {
            self.observer.handle_sending(&self.endpoint, to, connection, now);
        }
        match self.endpoint.send_shared(connection, *kind, *stream, head, bodies) {
            Ok(()) => {
                self.counters.messages_sent += 1;
                self.counters.bytes_sent += message.bytes();
                self.observer.handle_sent(to, now, *event, message.bytes());
                true
            }
            Err(SendError::Full { .. }) => false,
            Err(error) => {
                // The message cannot be sent later: the connection has ended, or the message is too large.
                tracing::debug!(%error, "dropped a message");
                self.counters.messages_undeliverable += 1;
                true
            }
        }
    }

    fn send_backlog(&mut self, partner: Peer) {
        let Some(connection) = self.table.of(partner) else { return };
        let Some(mut queue) = self.backlog.take(partner) else { return };
        while let Some(message) = queue.pop_front() {
            if !self.try_send(partner, connection, &message) {
                queue.push_front(message);
                break;
            }
        }
        self.backlog.put_back(partner, queue);
    }

    /// Sends the held requests for whose answers the collector's window has room.
    fn send_admitted(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        for request in sharing.admit(&mut self.endpoint, &self.table) {
            let to = Peer::Readout(request.readout);
            let Some(connection) = self.table.of(to) else { continue };
            if request.window_shrinks {
                self.endpoint.send_heartbeat(connection);
            }
            self.send_or_queue(connection, to, request.message);
        }
    }

    /// Samples the kernel's counters of connections with unacknowledged messages or traced windows, if they are due.
    pub fn sample(&mut self, now: Instant) {
        self.observer.sample(&self.endpoint, &self.table, now);
    }

    /// Returns the time at which [`Self::sample`] is due; `None` if it is not needed.
    pub fn next_sample(&self) -> Option<Instant> {
        self.observer.next_sample()
    }

    /// Returns the next event that TCP's retransmission timeouts delayed, and the number of timeouts.
    pub fn poll_timed_out(&mut self) -> Option<(L1Id, u32)> {
        self.observer.poll_timed_out()
    }

    /// Writes TCP's counters to their file if they are due, and always if `is_end`, which marks the end of the process.
    pub fn account(&mut self, now: Instant, is_end: bool) {
        let shared = self.sharing.as_ref().map(WindowSharing::counters);
        self.observer.account(&self.endpoint, &self.table, shared, now, is_end);
    }

    /// Returns the time at which [`Self::poll`] is due even if nothing arrives; `None` if there is none.
    pub fn poll_deadline(&self) -> Option<Instant> {
        if !self.pending.is_empty() {
            return Some(self.system.machine.now());
        }
        [self.endpoint.poll_deadline(), self.dialer.next(), self.next_sample()].into_iter().flatten().min()
    }

    /// Returns the number of waiting messages, and the memory of received and incomplete messages.
    pub fn held(&self) -> (usize, ReceiveMemory) {
        (self.backlog.len(), self.endpoint.receive_memory())
    }

    /// Checks the connections that this process makes.
    pub fn check(&self) {
        self.dialer.check();
    }

    /// Begins to close all connections in order: waiting messages are sent first. [`Self::close_turn`] continues.
    pub fn begin_close(&mut self) {
        self.is_stopping = true;
    }

    /// Continues an orderly close, and waits until `until` at most. Returns false when all connections are closed or the
    /// time is over.
    pub fn close_turn(&mut self, until: Instant) -> bool {
        let is_late = self.system.machine.now() >= until;
        if !self.is_shut && (is_late || self.backlog.is_empty()) {
            self.is_shut = true;
            self.endpoint.shutdown();
        }
        if is_late || self.is_shut && self.endpoint.is_empty() {
            return false;
        }
        match self.endpoint.poll(Some(until)) {
            Ok(Some(event)) => {
                drop(self.handle_event(event));
                true
            }
            Ok(None) => self.system.machine.now() < until,
            Err(_) => false,
        }
    }
}

/// Returns the names of the processes that may connect to a process.
fn callers(system: &System, me: Peer) -> Vec<String> {
    let collectors = (0..system.collectors.len() as u16).map(Peer::Collector);
    let readouts = (0..system.readouts.len() as u16).map(Peer::Readout);
    let mut names: Vec<String> = collectors.map(name).collect();
    if me.is_supervisor() {
        names.extend(readouts.map(name));
    }
    if me == Peer::Supervisor && system.standby.is_some() {
        names.push(name(Peer::Standby));
    }
    names
}
