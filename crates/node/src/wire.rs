//! Connections between roles: who is who, messages in both directions, and what waits where a peer is slow.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use fanin_dataflow::{L1Id, Message, Peer};
use fanin_message::{
    Closed, Endpoint, Event, Limits, Options, Payload, SendError, Settings, SetupError, SocketError, Timing,
};

use crate::codec::{DecodeError, decode, encode};
use crate::config::{ConfigError, System, listen_address};
use crate::data::Data;
use crate::flows::Numbers;
use crate::source::Sources;
use crate::tcp::Accounts;
use crate::timeouts::Unacknowledged;
use crate::trace::{self, Trace};
use crate::transport::{self, World};
use crate::windows::Windows;

/// The largest message: an event.
const MESSAGE_BYTES_MAX: u32 = 512 << 20;
/// Received bytes that may be in use at a time.
const RECEIVE_BYTES_MAX: u64 = 2 << 30;
/// Messages that wait for one peer, beyond what its connection has in its own memory.
const BACKLOG_MESSAGES_MAX: usize = 100_000;
/// Requests that wait for room in a window are looked at again after so long: what comes of an answer in parts is no event.
const HELD_TURN: Duration = Duration::from_millis(1);
/// A peer that was shut out for nonsense is called again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How a process calls itself to others.
pub fn name(peer: Peer) -> String {
    match peer {
        Peer::Supervisor => "supervisor".to_owned(),
        Peer::Readout(place) => format!("readout-{place}"),
        Peer::Collector(place) => format!("collector-{place}"),
        Peer::Logger(place) => format!("logger-{place}"),
    }
}

/// Who calls himself so.
pub fn peer(name: &str) -> Option<Peer> {
    if name == "supervisor" {
        return Some(Peer::Supervisor);
    }
    let (role, place) = name.split_once('-')?;
    let place = place.parse().ok()?;
    match role {
        "readout" => Some(Peer::Readout(place)),
        "collector" => Some(Peer::Collector(place)),
        "logger" => Some(Peer::Logger(place)),
        _ => None,
    }
}

/// What the connections bring.
#[derive(Debug)]
pub enum Input {
    /// A connection stands.
    Connected(Peer),
    /// A connection is lost.
    Closed(Peer),
    /// A message arrived.
    Message(Peer, Message<Data>),
    /// What arrived is no message; its sender is shut out.
    Nonsense(Peer, DecodeError),
    /// Another thread has something to tell.
    Woken,
}

/// Why a process cannot talk to others.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connections cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// It cannot listen.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: String,
        /// Why.
        error: SocketError,
    },
    /// Its certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] Box<ConfigError>),
    /// There are no sockets.
    #[error("no socket: {0}")]
    Socket(#[from] fanin_message::OsError),
    /// What TCP counts cannot be kept.
    #[error("cannot keep what TCP counts: {0}")]
    Accounts(std::io::Error),
    /// Windows cannot be traced.
    #[error("cannot keep the windows that `record.windows` asks for: {0}")]
    Trace(std::io::Error),
    /// The kernel's waiting failed.
    #[error("waiting for messages failed: {0}")]
    Poll(#[from] std::io::Error),
}

/// What waits for a peer that is slow.
#[derive(Debug)]
struct Waiting {
    kind: u32,
    stream: u32,
    /// The event whose request or answer it is.
    event: Option<L1Id>,
    head: Vec<u8>,
    bodies: Vec<Payload>,
}

/// Connections whose windows are traced.
#[derive(Debug)]
struct Traced {
    trace: Trace,
    /// Whose, and the connections' numbers.
    flows: Vec<(Peer, u64)>,
    every: Duration,
    next: Instant,
}

impl Traced {
    /// Those of a process that the scenario wants to see; `None` where it has none.
    fn of(system: &System, me: Peer) -> std::io::Result<Option<Self>> {
        let record = &system.scenario().record;
        let numbers = Numbers::of(system.scenario());
        let readouts = (0..system.readouts.len() as u16).map(Peer::Readout);
        let collectors = (0..system.collectors.len() as u16).map(Peer::Collector);
        let loggers = (0..system.loggers.len() as u16).map(Peer::Logger);
        let all = [Peer::Supervisor].into_iter().chain(readouts).chain(collectors).chain(loggers);
        let is_wanted =
            |&(_, flow): &(Peer, u64)| record.windows.iter().any(|&wanted| u64::from(wanted) == flow);
        let flows: Vec<(Peer, u64)> =
            all.filter_map(|other| Some((other, numbers.traced(me, other)?))).filter(is_wanted).collect();
        if flows.is_empty() {
            return Ok(None);
        }
        let trace = Trace::open(&system.folder, &name(me))?;
        Ok(Some(Self { trace, flows, every: trace::interval(record), next: Instant::now() }))
    }
}

/// All connections of a process.
pub struct Wire {
    endpoint: Endpoint,
    me: Peer,
    system: System,
    sources: Sources,
    options: Options,
    /// Who is connected, by the endpoint's number.
    who: HashMap<usize, Peer>,
    where_is: HashMap<Peer, fanin_message::Peer>,
    backlog: HashMap<Peer, VecDeque<Waiting>>,
    again: Vec<(Instant, Peer)>,
    /// Whose connections have a descriptor, by the endpoint's number: also those that others have taken the place of.
    counted: HashMap<usize, Peer>,
    /// What TCP counts.
    pub accounts: Accounts,
    /// Whose messages its time-outs hold up.
    unacknowledged: Unacknowledged,
    traced: Option<Traced>,
    /// A collector that shares its window out among the readouts.
    windows: Option<Windows>,
    /// Requests that its window has no room for yet, in order.
    held: Vec<(Peer, Waiting)>,
    /// Inputs that one event brought together.
    pending: VecDeque<Input>,
    head: Vec<u8>,
    is_stopping: bool,
    /// Messages and bytes sent and received.
    pub counters: WireCounters,
}

/// What was sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Bytes sent, frame headers included.
    pub bytes_sent: u64,
    /// Bytes received, frame headers included.
    pub bytes_received: u64,
    /// Messages whose peer was gone.
    pub messages_undeliverable: u64,
    /// Messages that made no sense.
    pub messages_invalid: u64,
    /// Connections lost.
    pub connections_lost: u64,
}

impl Wire {
    /// Listens where others expect this process, and calls those that it works with.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn open(system: &System, me: Peer, sources: Sources) -> Result<Self, WireError> {
        let limits = Limits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            receive_bytes_max: RECEIVE_BYTES_MAX,
            ..Limits::default()
        };
        let silence = crate::clock::std_duration(system.scenario().live.silence_max);
        let timing = Timing { heartbeat: silence / 5, silence_max: silence, ..Timing::default() };
        let fitted = transport::fit(system.scenario(), World::Hosts)?;
        for reason in &fitted.unmet {
            tracing::warn!(%reason, "not in force");
        }
        let tls = system.tls(&name(me)).map_err(Box::new)?;
        let options = Options { timing, tls, socket: fitted.socket, ..Options::default() };
        let mut wire = Self {
            endpoint: Endpoint::new(Settings { name: name(me), limits, ..Settings::default() })?,
            me,
            system: system.clone(),
            sources,
            options,
            who: HashMap::new(),
            where_is: HashMap::new(),
            backlog: HashMap::new(),
            again: Vec::new(),
            counted: HashMap::new(),
            accounts: Accounts::open(&system.folder, &name(me)).map_err(WireError::Accounts)?,
            unacknowledged: Unacknowledged::default(),
            traced: Traced::of(system, me).map_err(WireError::Trace)?,
            windows: if matches!(me, Peer::Collector(_)) { Windows::of(system.scenario()) } else { None },
            held: Vec::new(),
            pending: VecDeque::new(),
            head: Vec::new(),
            is_stopping: false,
            counters: WireCounters::default(),
        };
        if let Some(address) = system.address(me) {
            let collectors = (0..system.collectors.len() as u16).map(Peer::Collector);
            let readouts = (0..system.readouts.len() as u16).map(Peer::Readout);
            let mut names: Vec<String> = collectors.map(name).collect();
            if me == Peer::Supervisor {
                names.extend(readouts.map(name));
            }
            let options = Options { names, ..wire.options.clone() };
            let socket = listen_address(address).filter(|socket| socket.port() != 0);
            let Some(socket) = socket else { return Ok(wire) };
            wire.endpoint
                .listen(socket, options)
                .map_err(|error| WireError::Listen { address: address.to_owned(), error })?;
        }
        let partners: Vec<Peer> = match me {
            Peer::Supervisor | Peer::Logger(_) => Vec::new(),
            Peer::Readout(_) => vec![Peer::Supervisor],
            Peer::Collector(_) => {
                let readouts = (0..system.readouts.len() as u16).map(Peer::Readout);
                let loggers = (0..system.loggers.len() as u16).map(Peer::Logger);
                [Peer::Supervisor].into_iter().chain(readouts).chain(loggers).collect()
            }
        };
        for partner in partners {
            wire.call(partner);
        }
        Ok(wire)
    }

    fn call(&mut self, partner: Peer) {
        if let Some(address) = self.system.address(partner).map(str::to_owned) {
            self.endpoint.connect(&name(partner), address.as_str(), self.options.clone());
        }
    }

    /// Rings when another thread has something to tell.
    pub fn waker(&self) -> fanin_message::Waker {
        self.endpoint.waker()
    }

    /// Whether there is a connection to a peer.
    pub fn is_connected(&self, peer: Peer) -> bool {
        self.where_is.contains_key(&peer)
    }

    /// Peers with a connection.
    pub fn connected(&self) -> usize {
        self.where_is.len()
    }

    /// The next input, waiting no longer than to `deadline`.
    ///
    /// # Errors
    /// If waiting itself fails.
    pub fn poll(&mut self, deadline: Instant) -> Result<Option<Input>, WireError> {
        if let Some(input) = self.pending.pop_front() {
            return Ok(Some(input));
        }
        self.call_again();
        loop {
            self.ask();
            let until =
                if self.held.is_empty() { deadline } else { deadline.min(Instant::now() + HELD_TURN) };
            match self.endpoint.poll(Some(until))? {
                Some(event) => {
                    if let Some(input) = self.input(event) {
                        return Ok(Some(input));
                    }
                }
                None if until >= deadline || Instant::now() >= deadline => return Ok(None),
                None => {}
            }
        }
    }

    fn call_again(&mut self) {
        let now = Instant::now();
        if self.is_stopping || self.again.iter().all(|(at, _)| *at > now) {
            return;
        }
        let due: Vec<Peer> = self.again.iter().filter(|(at, _)| *at <= now).map(|&(_, peer)| peer).collect();
        self.again.retain(|(at, _)| *at > now);
        due.into_iter().for_each(|peer| self.call(peer));
    }

    fn input(&mut self, event: Event) -> Option<Input> {
        match event {
            Event::Connected { peer: connection, name, .. } => {
                let Some(partner) = peer(&name) else {
                    tracing::warn!(%name, "somebody connected who is nobody");
                    self.endpoint.abort(connection);
                    return None;
                };
                tracing::info!(peer = %partner, "connected");
                // What an older connection owed goes with it, also where its end is not known yet.
                self.note_lost(partner);
                if let (Some(windows), Peer::Readout(place)) = (&mut self.windows, partner) {
                    windows.handle_connected(place);
                    windows.handle_received(place, received(&self.endpoint, connection));
                    clamp(&mut self.endpoint, connection, windows.segment);
                }
                let info = self.endpoint.tcp_info(connection);
                self.unacknowledged.handle_connected(partner, Instant::now(), info.as_ref());
                self.who.insert(connection.index(), partner);
                self.counted.insert(connection.index(), partner);
                self.backlog.remove(&partner);
                match self.where_is.insert(partner, connection) {
                    // The end of the older connection is not known yet, and comes first all the same.
                    Some(older) if older != connection => {
                        self.who.remove(&older.index());
                        self.pending.push_back(Input::Connected(partner));
                        Some(Input::Closed(partner))
                    }
                    _ => Some(Input::Connected(partner)),
                }
            }
            Event::Message { peer: connection, kind, stream, payload } => {
                let partner = *self.who.get(&connection.index())?;
                self.counters.messages_received += 1;
                self.counters.bytes_received += payload.len() as u64 + fanin_dataflow::FRAME_HEADER_BYTES;
                match decode(kind, stream, &payload) {
                    Ok(message) => {
                        self.note_answer(partner, &message);
                        Some(Input::Message(partner, message))
                    }
                    Err(error) => {
                        self.counters.messages_invalid += 1;
                        self.shut_out(partner);
                        Some(Input::Nonsense(partner, error))
                    }
                }
            }
            Event::Writable { peer: connection } => {
                let partner = *self.who.get(&connection.index())?;
                self.send_backlog(partner);
                None
            }
            Event::Closed { peer: connection, reason, retry, unsent, tcp } => {
                if let Some(partner) = self.counted.remove(&connection.index()) {
                    self.accounts.handle_end(&name(partner), tcp.as_deref());
                }
                let partner = self.who.remove(&connection.index())?;
                // A younger connection may stand already.
                if self.where_is.get(&partner) == Some(&connection) {
                    self.where_is.remove(&partner);
                    self.backlog.remove(&partner);
                    self.unacknowledged.handle_end(partner, tcp.as_deref());
                    self.note_lost(partner);
                }
                let expected = self.is_stopping || matches!(reason, Closed::Local);
                if expected {
                    tracing::info!(peer = %partner, %reason, "disconnected");
                } else {
                    self.counters.connections_lost += 1;
                    tracing::warn!(peer = %partner, %reason, ?unsent, "connection lost");
                }
                if retry.is_none() && self.calls(partner) && !self.is_stopping {
                    self.again.push((Instant::now() + AGAIN_AFTER, partner));
                }
                (!self.where_is.contains_key(&partner)).then_some(Input::Closed(partner))
            }
            Event::Failed { reason, retry, .. } => {
                tracing::debug!(%reason, ?retry, "no connection");
                None
            }
            Event::NotAccepting { reason, .. } => {
                tracing::error!(%reason, "no more connections are accepted");
                None
            }
            Event::Woken => Some(Input::Woken),
        }
    }

    /// Whether this side makes the connection.
    fn calls(&self, partner: Peer) -> bool {
        match self.me {
            Peer::Supervisor | Peer::Logger(_) => false,
            Peer::Readout(_) => partner == Peer::Supervisor,
            Peer::Collector(_) => true,
        }
    }

    /// Ends a connection whose peer sent nonsense.
    pub fn shut_out(&mut self, partner: Peer) {
        if let Some(&connection) = self.where_is.get(&partner) {
            self.endpoint.abort(connection);
        }
    }

    /// Sends a message, now or when its peer takes more. One for a peer that is not there is dropped: the data flow
    /// hears of the lost connection.
    pub fn send(&mut self, to: Peer, message: Message<Data>) {
        let Some(&connection) = self.where_is.get(&to) else {
            self.counters.messages_undeliverable += 1;
            return;
        };
        let is_held = match (&mut self.windows, to, &message) {
            (Some(windows), Peer::Readout(place), Message::Request { .. }) => {
                windows.handle_wanted(place);
                true
            }
            _ => false,
        };
        let (kind, stream) = (message.message_type(), message.stream_id());
        let event = match &message {
            Message::Request { event, .. } | Message::Answer { event, .. } => Some(*event),
            _ => None,
        };
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        let payload = encode(message, &mut head);
        let mut bodies: Vec<Payload> = payload.parts().to_vec();
        if !payload.missing().is_empty() {
            let mut missing = Vec::new();
            payload.encode_missing(&|readout, fragment| self.sources.name(readout, fragment), &mut missing);
            bodies.push(missing.into());
        }
        let waiting = Waiting { kind, stream, event, head, bodies };
        if is_held {
            return self.held.push((to, waiting));
        }
        self.put(connection, to, waiting);
    }

    /// Sends it, or keeps it until the peer takes more.
    fn put(&mut self, connection: fanin_message::Peer, to: Peer, waiting: Waiting) {
        let queued = self.backlog.get(&to).map_or(0, VecDeque::len);
        if queued == 0 && self.try_send(to, connection, &waiting) {
            self.head = waiting.head;
        } else if queued < BACKLOG_MESSAGES_MAX {
            self.backlog.entry(to).or_default().push_back(waiting);
        } else {
            tracing::error!(peer = %to, queued, "a peer is too slow; its connection is ended");
            self.shut_out(to);
        }
    }

    /// False means that it has to wait.
    fn try_send(&mut self, to: Peer, connection: fanin_message::Peer, waiting: &Waiting) -> bool {
        let Waiting { kind, stream, event, head, bodies } = waiting;
        let now = Instant::now();
        // Who joins others may not be laid what held them up before.
        if event.is_some() && self.unacknowledged.waits(to) {
            self.look_at(to, connection, now);
        }
        match self.endpoint.send_shared(connection, *kind, *stream, head, bodies) {
            Ok(()) => {
                let bytes = head.len() + bodies.iter().map(|body| body.len()).sum::<usize>();
                let bytes = bytes as u64 + fanin_dataflow::FRAME_HEADER_BYTES;
                self.counters.messages_sent += 1;
                self.counters.bytes_sent += bytes;
                self.unacknowledged.handle_sent(to, now, *event, bytes);
                true
            }
            Err(SendError::Full { .. }) => false,
            Err(error) => {
                // The end of the connection is reported by itself; a message that is too large never fits.
                tracing::debug!(%error, "a message is not sent");
                self.counters.messages_undeliverable += 1;
                true
            }
        }
    }

    fn send_backlog(&mut self, partner: Peer) {
        let Some(&connection) = self.where_is.get(&partner) else { return };
        let Some(mut queue) = self.backlog.remove(&partner) else { return };
        while let Some(waiting) = queue.pop_front() {
            if !self.try_send(partner, connection, &waiting) {
                queue.push_front(waiting);
                break;
            }
        }
        if !queue.is_empty() {
            self.backlog.insert(partner, queue);
        }
    }

    /// Asks the kernel about connections on which something waits, or whose windows are traced, where it is time to.
    pub fn look(&mut self, now: Instant) {
        for peer in self.unacknowledged.due(now) {
            if let Some(&connection) = self.where_is.get(&peer) {
                self.look_at(peer, connection, now);
            }
        }
        let Some(traced) = self.traced.as_mut().filter(|traced| traced.next <= now) else { return };
        traced.next = now + traced.every;
        for (peer, flow) in &traced.flows {
            if let Some(info) =
                self.where_is.get(peer).and_then(|&connection| self.endpoint.tcp_info(connection))
            {
                traced.trace.handle_sample(*flow, &info);
                // The largest window that was seen is the largest of these, too.
                self.accounts.handle_sample(&name(*peer), info);
            }
        }
    }

    fn look_at(&mut self, peer: Peer, connection: fanin_message::Peer, now: Instant) {
        if let Some(info) = self.endpoint.tcp_info(connection) {
            self.unacknowledged.handle_look(peer, now, &info, self.endpoint.outbox_bytes(connection));
        }
    }

    /// When [`Self::look`] has something to do.
    pub fn next_look(&self) -> Option<Instant> {
        let traced = self.traced.as_ref().map(|traced| traced.next);
        [self.unacknowledged.next_look(), traced].into_iter().flatten().min()
    }

    /// The next event that time-outs of TCP have held up, and how many.
    pub fn poll_timed_out(&mut self) -> Option<(L1Id, u32)> {
        self.unacknowledged.poll()
    }

    /// Asks the kernel what it counted, where it is time to; `is_end`: for the last time.
    pub fn account(&mut self, now: Instant, is_end: bool) {
        if !is_end && !self.accounts.is_due(now) {
            return;
        }
        for (partner, connection) in &self.where_is {
            if let Some(info) = self.endpoint.tcp_info(*connection) {
                self.accounts.handle_sample(&name(*partner), info);
            }
        }
        self.accounts.shared = self.windows.as_ref().map(|windows| windows.shares.counters);
        self.accounts.commit(now, is_end);
        if let Some(traced) = &mut self.traced {
            traced.trace.flush();
        }
    }

    /// Sends the requests that find room in the collector's window, all windows being set before the first goes: a window
    /// that is shared out anew with each request is far too large for the first ones.
    fn ask(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        for (peer, connection) in &self.where_is {
            if let Peer::Readout(place) = peer {
                windows.handle_received(*place, received(&self.endpoint, *connection));
            }
        }
        let mut going = Vec::new();
        for (to, waiting) in std::mem::take(&mut self.held) {
            match to {
                Peer::Readout(place) if !windows.admit(place) => self.held.push((to, waiting)),
                _ => going.push((to, waiting)),
            }
        }
        let (endpoint, where_is) = (&mut self.endpoint, &self.where_is);
        windows.settle(|place, bytes| {
            if let Some(&connection) = where_is.get(&Peer::Readout(place)) {
                clamp(endpoint, connection, bytes);
            }
        });
        for (to, waiting) in going {
            let Some(&connection) = self.where_is.get(&to) else { continue };
            if let (Some(windows), Peer::Readout(place)) = (&mut self.windows, to)
                && windows.shrinks(place)
            {
                self.endpoint.send_heartbeat(connection);
            }
            self.put(connection, to, waiting);
        }
    }

    fn note_answer(&mut self, from: Peer, message: &Message<Data>) {
        if let (Some(windows), Peer::Readout(place), Message::Answer { .. }) =
            (&mut self.windows, from, message)
            && let Some(bytes) = windows.handle_answer(place)
            && let Some(&connection) = self.where_is.get(&from)
        {
            clamp(&mut self.endpoint, connection, bytes);
        }
    }

    fn note_lost(&mut self, partner: Peer) {
        if let (Some(windows), Peer::Readout(place)) = (&mut self.windows, partner) {
            windows.handle_lost(place);
            self.held.retain(|(to, _)| *to != partner);
        }
    }

    /// Ends all connections in good order; what waits is sent first, but no longer than `limit`.
    pub fn close(&mut self, limit: Duration) {
        self.is_stopping = true;
        let until = Instant::now() + limit;
        while self.backlog.values().any(|queue| !queue.is_empty()) && Instant::now() < until {
            match self.endpoint.poll(Some(until)) {
                Ok(Some(event)) => drop(self.input(event)),
                Ok(None) | Err(_) => break,
            }
        }
        self.endpoint.shutdown();
        while !self.endpoint.is_empty() && Instant::now() < until {
            match self.endpoint.poll(Some(until)) {
                Ok(Some(event)) => drop(self.input(event)),
                Ok(None) | Err(_) => break,
            }
        }
    }
}

fn clamp(endpoint: &mut Endpoint, connection: fanin_message::Peer, bytes: u64) {
    if let Err(error) = endpoint.set_window_clamp(connection, u32::try_from(bytes).unwrap_or(u32::MAX)) {
        tracing::error!(%error, "a window is not shared out");
    }
}

/// Bytes that came on the connections of a peer.
fn received(endpoint: &Endpoint, connection: fanin_message::Peer) -> u64 {
    endpoint.counters(connection).map_or(0, |counters| counters.bytes_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_peers_are_the_same() {
        for one in [Peer::Supervisor, Peer::Readout(0), Peer::Collector(7), Peer::Logger(65_535)] {
            assert_eq!(peer(&name(one)), Some(one));
        }
        for nobody in ["", "readout", "readout-", "readout-65536", "reader-1", "supervisor-1"] {
            assert_eq!(peer(nobody), None, "{nobody}");
        }
    }
}
