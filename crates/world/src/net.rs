//! The sockets of a world: connections with latency, limited buffers, partial writes, cut and slow links.
//!
//! Bytes of one direction arrive in order and complete, as TCP promises, or the connection is reset. A cut link holds
//! segments back; they arrive after the cut ends. A segment that overtakes another waits for it at the receiver. A
//! machine without power answers nothing.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use fanin_message::{Interest, Limits, OsError, Readiness, SimulatedNetwork, SimulatedSocket};

use crate::machine::ProcessLife;
use crate::plan::EndpointLimits;
use crate::shared::{Core, Host, SharedCore, WorldStep, instant};

/// A request for a connection, on its way.
#[derive(Debug)]
pub(crate) struct ConnectionRequest {
    from: u64,
    address: SocketAddr,
}

/// A segment that arrives at a socket.
#[derive(Debug)]
pub(crate) struct WorldSegment {
    from: u64,
    from_host: Host,
    to: u64,
    to_host: Host,
    /// Place of the segment among those of its direction; `None` for a refusal or a reset, which wait for nothing.
    order: Option<u64>,
    content: SegmentContent,
}

#[derive(Debug)]
enum SegmentContent {
    Bytes(Vec<u8>),
    /// The connection is established.
    Accepted {
        peer: u64,
    },
    /// The connection is refused.
    Refused,
    End,
    Reset,
}

#[derive(Debug, Default)]
struct SocketState {
    host: Host,
    address: Option<SocketAddr>,
    /// Connections that wait to be accepted; `None` unless the socket listens.
    waiting: Option<VecDeque<u64>>,
    peer: Option<(u64, Host)>,
    is_connected: bool,
    received: VecDeque<u8>,
    /// True if the peer sends nothing more.
    has_ended: bool,
    error: Option<OsError>,
    /// True if this side sends nothing more.
    is_shut: bool,
    /// Bytes sent that the peer's process has not received.
    outstanding: usize,
    /// Number of segments that were sent.
    segments_sent: u64,
    /// Number of segments that arrived in order.
    segments_received: u64,
    /// Segments that arrived before an earlier one, by their places.
    early: BTreeMap<u64, SegmentContent>,
    watch: Option<(u64, Interest)>,
    has_news: bool,
}

impl SocketState {
    /// Returns the place of the next segment.
    fn next_order(&mut self) -> u64 {
        self.segments_sent += 1;
        self.segments_sent - 1
    }

    /// Takes a segment that is next in order. Returns a number for the segment in the world's checksum.
    fn take(&mut self, content: SegmentContent, from_host: Host) -> u64 {
        match content {
            SegmentContent::Bytes(bytes) => {
                let length = bytes.len() as u64;
                self.received.extend(bytes);
                length
            }
            SegmentContent::Accepted { peer } => {
                self.peer = Some((peer, from_host));
                self.is_connected = true;
                1 << 32
            }
            SegmentContent::Refused => {
                self.error = Some(OsError(libc::ECONNREFUSED));
                2 << 32
            }
            SegmentContent::End => {
                self.has_ended = true;
                3 << 32
            }
            SegmentContent::Reset => {
                self.error = Some(OsError(libc::ECONNRESET));
                4 << 32
            }
        }
    }
}

/// A link between two machines, in one direction.
#[derive(Debug, Clone, Copy)]
struct MachineLink {
    latency_ns: u64,
    cut_until: u64,
    /// Time from the end of a cut until segments are sent again.
    resend_ns: u64,
    /// Time at which the last segments that a cut held back are sent again.
    resent_at: u64,
    extra_ns: u64,
}

/// All sockets of a world.
pub(crate) struct WorldNetwork {
    sockets: BTreeMap<u64, SocketState>,
    listening: BTreeMap<SocketAddr, u64>,
    by_host: Vec<Vec<u64>>,
    links: Vec<MachineLink>,
    hosts: usize,
    next: u64,
    /// The most bytes that a connection holds in one direction.
    capacity: usize,
    /// The most segments for the bytes of one call.
    pieces_max: u64,
    /// Limits of the endpoints of all machines.
    pub(crate) limits: Vec<EndpointLimits>,
}

impl WorldNetwork {
    pub(crate) fn new(hosts: usize) -> Self {
        let link = MachineLink { latency_ns: 50_000, cut_until: 0, resend_ns: 0, resent_at: 0, extra_ns: 0 };
        let limits =
            EndpointLimits { receive_block_bytes: 128 << 10, outbox_bytes_max: 64 << 20, memory: None };
        Self {
            sockets: BTreeMap::new(),
            listening: BTreeMap::new(),
            by_host: vec![Vec::new(); hosts],
            links: vec![link; hosts * hosts],
            hosts,
            next: 0,
            capacity: 1 << 16,
            pieces_max: 1,
            limits: vec![limits; hosts],
        }
    }

    /// Sets the capacity of connections, the segments of a call, and the latency of each link.
    pub(crate) fn shape(&mut self, capacity: usize, pieces_max: u64, mut latency: impl FnMut() -> u64) {
        (self.capacity, self.pieces_max) = (capacity, pieces_max);
        self.links.iter_mut().for_each(|link| link.latency_ns = latency());
    }

    fn link(&mut self, from: Host, to: Host) -> &mut MachineLink {
        &mut self.links[from * self.hosts + to]
    }

    /// Holds back all segments in one direction until `until`. They are sent again `resend_ns` later.
    pub(crate) fn cut(&mut self, from: Host, to: Host, until: u64, resend_ns: u64) {
        let link = self.link(from, to);
        link.cut_until = link.cut_until.max(until);
        link.resend_ns = resend_ns;
        link.resent_at = link.resent_at.max(link.cut_until + resend_ns);
    }

    /// Returns the time at which all segments that cuts held back have been sent again and have arrived.
    pub(crate) fn resent_at(&self) -> u64 {
        self.links.iter().map(|link| link.resent_at + link.latency_ns).max().unwrap_or(0)
    }

    /// Adds `extra_ns` to the latency of one direction; zero ends the delay.
    pub(crate) fn slow(&mut self, from: Host, to: Host, extra_ns: u64) {
        self.link(from, to).extra_ns = extra_ns;
    }

    /// Returns true if a connection watched by a machine's process has bytes that were reported once and not read. An
    /// edge-triggered watch does not report them again.
    pub(crate) fn forgets_input(&self, host: Host) -> bool {
        let sockets = self.by_host[host].iter().filter_map(|id| self.sockets.get(id));
        sockets.filter(|socket| socket.error.is_none() && !socket.has_ended).any(|socket| {
            let is_watched = socket.watch.is_some_and(|(_, interest)| interest.read && interest.edge);
            is_watched && !socket.has_news && !socket.received.is_empty()
        })
    }

    /// Returns the number of sockets of a machine.
    pub(crate) fn open(&self, host: Host) -> usize {
        self.by_host[host].len()
    }

    fn add(&mut self, state: SocketState) -> u64 {
        self.next += 1;
        self.by_host[state.host].push(self.next);
        self.sockets.insert(self.next, state);
        self.next
    }

    fn remove(&mut self, id: u64) -> Option<SocketState> {
        let state = self.sockets.remove(&id)?;
        self.by_host[state.host].retain(|&other| other != id);
        if let Some(address) = state.address.filter(|_| state.waiting.is_some()) {
            self.listening.remove(&address);
        }
        Some(state)
    }
}

impl Core {
    /// Draws the arrival time of a segment that leaves now, if its link is not cut.
    fn arrival(&mut self, from: Host, to: Host) -> u64 {
        let MachineLink { latency_ns, extra_ns, .. } = *self.net.link(from, to);
        let jitter = self.between(0, latency_ns / 4);
        self.now + latency_ns + extra_ns + jitter
    }

    fn send_segment(&mut self, from: u64, from_host: Host, to: (u64, Host), content: SegmentContent) {
        let at = self.arrival(from_host, to.1);
        let order = self.net.sockets.get_mut(&from).map(SocketState::next_order);
        let segment = WorldSegment { from, from_host, to: to.0, to_host: to.1, order, content };
        self.at(at, WorldStep::Arrive(segment));
    }

    /// Handles a request for a connection that reaches the machine of its address.
    pub(crate) fn handle_connect(&mut self, request: ConnectionRequest) {
        let Some(caller) = self.net.sockets.get(&request.from) else { return };
        let (from, from_host) = (request.from, caller.host);
        let to_host = host_of(request.address);
        if !self.hosts[to_host].is_up {
            // No answer comes; the caller's own limit ends the attempt.
            return;
        }
        let link = *self.net.link(from_host, to_host);
        if link.cut_until > self.now {
            return self.at(link.cut_until + link.resend_ns, WorldStep::Connect(request));
        }
        let Some(&listener) = self.net.listening.get(&request.address) else {
            return self.send_segment(0, to_host, (from, from_host), SegmentContent::Refused);
        };
        let accepted = SocketState {
            host: to_host,
            address: Some(request.address),
            peer: Some((from, from_host)),
            is_connected: true,
            has_news: true,
            ..SocketState::default()
        };
        let peer = self.net.add(accepted);
        if let Some(listening) = self.net.sockets.get_mut(&listener) {
            listening.has_news = true;
            listening.waiting.get_or_insert_default().push_back(peer);
        }
        self.send_segment(peer, to_host, (from, from_host), SegmentContent::Accepted { peer });
        let now = self.now;
        self.call(to_host, now);
    }

    /// Handles a segment that reaches its machine.
    pub(crate) fn handle_segment(&mut self, segment: WorldSegment) {
        let (from_host, to_host) = (segment.from_host, segment.to_host);
        if !self.hosts[to_host].is_up {
            return;
        }
        let link = *self.net.link(from_host, to_host);
        if link.cut_until > self.now {
            return self.at(link.cut_until + link.resend_ns, WorldStep::Arrive(segment));
        }
        let Some(socket) = self.net.sockets.get_mut(&segment.to) else {
            // The socket is closed, which the sender learns by a reset.
            if !matches!(segment.content, SegmentContent::Reset | SegmentContent::Refused) {
                self.send_segment(0, to_host, (segment.from, from_host), SegmentContent::Reset);
            }
            return;
        };
        socket.has_news = true;
        let mut word = 0;
        if let Some(order) = segment.order {
            socket.early.insert(order, segment.content);
            while let Some(content) = socket.early.remove(&socket.segments_received) {
                socket.segments_received += 1;
                word ^= socket.take(content, from_host);
            }
        } else {
            word = socket.take(segment.content, from_host);
        }
        self.note(word ^ segment.to << 40);
        let now = self.now;
        self.call(to_host, now);
    }

    /// Reports to a socket's process that the socket may have room again.
    pub(crate) fn handle_room(&mut self, id: u64) {
        if let Some(socket) = self.net.sockets.get_mut(&id) {
            socket.has_news = true;
            let (host, now) = (socket.host, self.now);
            self.call(host, now);
        }
    }

    /// Closes a socket as its process does, or the kernel in its place.
    pub(crate) fn close_socket(&mut self, id: u64) {
        let Some(mut socket) = self.net.remove(id) else { return };
        for waiting in std::mem::take(&mut socket.waiting).into_iter().flatten() {
            self.reset_socket(waiting);
        }
        if let Some(peer) = socket.peer.filter(|_| socket.error.is_none()) {
            // With unread bytes, a reset is sent in place of an end.
            let content = if !socket.received.is_empty() {
                SegmentContent::Reset
            } else if socket.is_shut {
                return;
            } else {
                SegmentContent::End
            };
            let at = self.arrival(socket.host, peer.1);
            let (from_host, order) = (socket.host, Some(socket.next_order()));
            let segment = WorldSegment { from: id, from_host, to: peer.0, to_host: peer.1, order, content };
            self.at(at, WorldStep::Arrive(segment));
        }
    }

    fn reset_socket(&mut self, id: u64) {
        if let Some(socket) = self.net.remove(id)
            && let Some(peer) = socket.peer
        {
            self.send_segment(0, socket.host, peer, SegmentContent::Reset);
        }
    }

    /// Resets the connections between two machines, at both ends.
    pub(crate) fn reset_between(&mut self, a: Host, b: Host) {
        let between = |socket: &SocketState| socket.peer.is_some_and(|(_, host)| host == b);
        let ids: Vec<u64> = self.net.by_host[a]
            .iter()
            .copied()
            .filter(|id| self.net.sockets.get(id).is_some_and(between))
            .collect();
        for id in ids {
            let Some(peer) = self.net.sockets.get(&id).and_then(|socket| socket.peer) else { continue };
            self.send_segment(0, b, (id, a), SegmentContent::Reset);
            self.send_segment(0, a, peer, SegmentContent::Reset);
        }
    }

    /// Closes all sockets of a machine, with `has_power` as its kernel does. Otherwise their peers receive nothing.
    pub(crate) fn close_all(&mut self, host: Host, has_power: bool) {
        for id in self.net.by_host[host].clone() {
            if has_power {
                self.close_socket(id);
            } else {
                self.net.remove(id);
            }
        }
    }
}

/// Returns the machine of an address; machine `n` has `10.0.0.(n + 1)`.
fn host_of(address: SocketAddr) -> Host {
    let SocketAddr::V4(address) = address else { return 0 };
    usize::from(address.ip().octets()[3]).saturating_sub(1)
}

/// The network as one life of a process sees it.
pub(crate) struct ProcessNetwork {
    pub(crate) shared: SharedCore,
    pub(crate) life: ProcessLife,
}

impl SimulatedNetwork for ProcessNetwork {
    fn now(&self) -> std::time::Instant {
        instant(self.shared.lock().now)
    }

    fn random(&mut self) -> [u8; 32] {
        let mut core = self.shared.lock();
        let mut bytes = [0; 32];
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&core.random.bits().to_le_bytes());
        }
        bytes
    }

    fn limits(&self, limits: Limits) -> Limits {
        self.shared.lock().net.limits[self.life.host].applied(limits)
    }

    fn listen(&mut self, address: SocketAddr) -> Result<Box<dyn SimulatedSocket>, OsError> {
        let mut core = self.shared.lock();
        if core.net.listening.contains_key(&address) {
            return Err(OsError(libc::EADDRINUSE));
        }
        let listening = SocketState {
            host: self.life.host,
            address: Some(address),
            waiting: Some(VecDeque::new()),
            ..SocketState::default()
        };
        let id = core.net.add(listening);
        core.net.listening.insert(address, id);
        Ok(Box::new(ProcessSocket { shared: self.shared.clone(), life: self.life, id }))
    }

    fn connect(&mut self, address: SocketAddr) -> Result<Box<dyn SimulatedSocket>, OsError> {
        let mut core = self.shared.lock();
        let id = core.net.add(SocketState { host: self.life.host, ..SocketState::default() });
        let at = core.arrival(self.life.host, host_of(address));
        core.at(at, WorldStep::Connect(ConnectionRequest { from: id, address }));
        Ok(Box::new(ProcessSocket { shared: self.shared.clone(), life: self.life, id }))
    }

    fn ready(&mut self, ready: &mut Vec<Readiness>) {
        let core = &mut *self.shared.lock();
        if !core.is_alive(self.life.host, self.life.number) {
            return;
        }
        let capacity = core.net.capacity;
        for id in &core.net.by_host[self.life.host] {
            let Some(socket) = core.net.sockets.get_mut(id) else { continue };
            let Some((token, interest)) = socket.watch else { continue };
            if interest.edge && !socket.has_news {
                continue;
            }
            let is_broken = socket.error.is_some();
            let has_input = !socket.received.is_empty()
                || socket.has_ended
                || socket.waiting.as_ref().is_some_and(|waiting| !waiting.is_empty());
            let has_room = socket.is_connected && socket.outstanding < capacity;
            let readable = is_broken || interest.read && has_input;
            let writable = is_broken || interest.write && has_room;
            if readable || writable {
                socket.has_news = false;
                let ends = is_broken || interest.edge && socket.has_ended;
                ready.push(Readiness { token, readable, writable, ends });
            }
        }
    }
}

/// A socket of one life of a process.
struct ProcessSocket {
    shared: SharedCore,
    life: ProcessLife,
    id: u64,
}

impl ProcessSocket {
    fn with<T>(&self, otherwise: T, act: impl FnOnce(&mut SocketState) -> T) -> T {
        let mut core = self.shared.lock();
        if !core.is_alive(self.life.host, self.life.number) {
            return otherwise;
        }
        core.net.sockets.get_mut(&self.id).map_or(otherwise, act)
    }
}

const AGAIN: OsError = OsError(libc::EAGAIN);

impl SimulatedSocket for ProcessSocket {
    fn watch(&self, token: u64, interest: Option<Interest>) {
        self.with((), |socket| {
            socket.watch = interest.map(|interest| (token, interest));
            // Input that is there already is reported after a change of the interest.
            socket.has_news = true;
        });
    }

    fn accept(&self) -> Result<Box<dyn SimulatedSocket>, OsError> {
        let id = self.with(None, |socket| socket.waiting.as_mut()?.pop_front()).ok_or(AGAIN)?;
        Ok(Box::new(Self { shared: self.shared.clone(), life: self.life, id }))
    }

    fn receive(&self, bytes: &mut [u8]) -> Result<usize, OsError> {
        let mut core = self.shared.lock();
        if !core.is_alive(self.life.host, self.life.number) {
            return Err(OsError(libc::ENETDOWN));
        }
        let Some(socket) = core.net.sockets.get_mut(&self.id) else { return Err(OsError(libc::EBADF)) };
        if socket.received.is_empty() {
            return match (socket.error, socket.has_ended) {
                (Some(error), _) => Err(error),
                (None, true) => Ok(0),
                (None, false) => Err(AGAIN),
            };
        }
        let count = bytes.len().min(socket.received.len());
        for (place, byte) in bytes.iter_mut().zip(socket.received.drain(..count)) {
            *place = byte;
        }
        let (peer, host) = (socket.peer, socket.host);
        if let Some((peer, peer_host)) = peer {
            let capacity = core.net.capacity;
            let mut was_full = false;
            if let Some(sender) = core.net.sockets.get_mut(&peer) {
                was_full = sender.outstanding >= capacity;
                sender.outstanding = sender.outstanding.saturating_sub(count);
            }
            if was_full {
                let at = core.arrival(host, peer_host);
                core.at(at, WorldStep::Room(peer));
            }
        }
        Ok(count)
    }

    fn has_unread(&self) -> bool {
        self.with(false, |socket| !socket.received.is_empty())
    }

    fn send(&self, bytes: &[u8]) -> Result<usize, OsError> {
        let mut core = self.shared.lock();
        if !core.is_alive(self.life.host, self.life.number) {
            return Err(OsError(libc::ENETDOWN));
        }
        let (capacity, pieces_max) = (core.net.capacity, core.net.pieces_max);
        let Some(socket) = core.net.sockets.get_mut(&self.id) else { return Err(OsError(libc::EBADF)) };
        if let Some(error) = socket.error {
            return Err(error);
        }
        let Some(peer) = socket.peer.filter(|_| socket.is_connected && !socket.is_shut) else {
            return Err(OsError(libc::EPIPE));
        };
        let count = bytes.len().min(capacity.saturating_sub(socket.outstanding));
        if count == 0 {
            return if bytes.is_empty() { Ok(0) } else { Err(AGAIN) };
        }
        socket.outstanding += count;
        let host = socket.host;
        let mut left = &bytes[..count];
        let mut pieces = core.between(1, pieces_max);
        while !left.is_empty() {
            let size = if pieces <= 1 { left.len() } else { core.between(1, left.len() as u64) as usize };
            let (piece, rest) = left.split_at(size);
            core.send_segment(self.id, host, peer, SegmentContent::Bytes(piece.to_vec()));
            (left, pieces) = (rest, pieces.saturating_sub(1));
        }
        Ok(count)
    }

    fn shutdown(&self, both: bool) {
        let mut core = self.shared.lock();
        if !core.is_alive(self.life.host, self.life.number) {
            return;
        }
        let Some(socket) = core.net.sockets.get_mut(&self.id) else { return };
        socket.has_ended |= both;
        if std::mem::replace(&mut socket.is_shut, true) {
            return;
        }
        let (host, peer) = (socket.host, socket.peer);
        if let Some(peer) = peer {
            core.send_segment(self.id, host, peer, SegmentContent::End);
        }
    }

    fn error(&self) -> Option<OsError> {
        self.with(Some(OsError(libc::ENETDOWN)), |socket| socket.error)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.with(None, |socket| socket.address)
    }
}

impl Drop for ProcessSocket {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        if core.is_alive(self.life.host, self.life.number) {
            core.close_socket(self.id);
        }
    }
}
