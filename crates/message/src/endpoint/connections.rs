//! Setting up and ending connections.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::MessageEndpoint;
use super::parts::{Listening, Resolved, TOKEN_BELL, TOKEN_LISTENER, TOKEN_WAKER};
use super::slot::{Carrier, ConnectionOrigin, State, WATCH_EDGE, WATCH_READ, WATCH_WRITE, token};
use crate::epoll::{EDGE, READ, Ready, WRITE};
use crate::event::{Closed, EndpointEvent, Listener, NotAccepting, PeerId};
use crate::net::Socket;
use crate::options::Address;
use crate::socket::OsError;

/// Maximum connections accepted in one turn of a listener.
const ACCEPTS_MAX: usize = 64;

impl MessageEndpoint {
    pub(super) fn handle_ready(&mut self, ready: Ready) {
        match ready.token {
            TOKEN_WAKER => {
                if self.waker.take() {
                    self.events.push_back(EndpointEvent::Woken);
                }
            }
            TOKEN_BELL => {
                self.bell.take();
                self.handle_resolved();
                self.feed_starved();
            }
            TOKEN_LISTENER.. => self.accept(Listener((ready.token - TOKEN_LISTENER) as u32)),
            token => {
                let Some(index) = self.slots.of_token(token) else { return };
                if matches!(self.slots.at(index).state, State::Connecting(_)) {
                    return self.handle_connected(index);
                }
                if ready.writable && self.slots.at(index).blocked.is_some() {
                    self.flush_slot(index);
                }
                if ready.readable && self.slots.of_token(token).is_some() {
                    self.handle_readable(index);
                    if ready.ends && self.slots.of_token(token).is_some() {
                        self.look_again(index, true);
                    }
                }
            }
        }
    }

    /// Makes the next wait return at once for this connection; the kernel does not report its unread bytes again.
    pub(super) fn look_again(&mut self, index: u32, ends: bool) {
        let slot = self.slots.at_ref(index);
        if slot.is_edge() && slot.can_read() && !slot.is_paused && !slot.is_starved {
            self.net.look_again(token(index, slot.generation), ends);
        }
    }

    /// Accepts the waiting connections of a listener, up to the limits.
    pub(super) fn accept(&mut self, listener: Listener) {
        for _ in 0..ACCEPTS_MAX {
            let Some(Listening { fd: Some(fd), options, .. }) = self.listeners.get(listener.index()) else {
                return;
            };
            if self.slots.is_full() {
                let max = self.settings.limits.peers_max;
                return self.stop_accepting(listener, NotAccepting::Peers { max });
            }
            match fd.accept() {
                Ok((fd, caller)) => {
                    let options = Arc::clone(options);
                    self.go_on_accepting(listener);
                    let index = self.slots.add(self.now, ConnectionOrigin::Accepted(listener), options);
                    self.slots.at(index).caller = caller;
                    if let Some(max) = self.exceeded_rate(caller) {
                        self.totals.too_frequent += 1;
                        self.end(index, Closed::TooFrequent { max });
                        continue;
                    }
                    match fd.apply(&self.slots.at(index).options.socket) {
                        Ok(()) => {
                            self.attach(index, fd, WATCH_READ);
                            self.greet(index);
                            self.bound_strangers(index);
                        }
                        Err(error) => self.end(index, Closed::Option(error)),
                    }
                }
                Err(Errno::AGAIN) => return self.go_on_accepting(listener),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => {
                    let open = self.slots.used();
                    let reason = NotAccepting::System { error: errno.into(), open };
                    return self.stop_accepting(listener, reason);
                }
            }
        }
    }

    /// Returns the limit to the rate of connections if this caller exceeds it.
    fn exceeded_rate(&mut self, caller: Option<SocketAddr>) -> Option<u32> {
        let rates = self.rates.as_mut()?;
        let is_admitted = rates.admit(caller?.ip(), self.now);
        self.settings.limits.caller_connections_per_second_max.filter(|_| !is_admitted)
    }

    /// Adds an accepted connection to those without a complete greeting. If these exceed the limit, closes the oldest one of
    /// the address that has most of them.
    fn bound_strangers(&mut self, index: u32) {
        if !matches!(self.slots.at_ref(index).state, State::Greeting(_)) {
            return;
        }
        let limits = &self.settings.limits;
        let max = limits.greetings_max.min(limits.peers_max.div_ceil(2));
        // The end of one may free a descriptor, with which another listener accepts and displaces as well.
        while self.strangers.len() >= max
            && let Some(oldest) = self.strangers.oldest_of_most()
        {
            self.end(oldest, Closed::Displaced { max });
        }
        let slot = self.slots.at(index);
        slot.stranger = Some(self.strangers.add(slot.caller, index));
        assert!(self.strangers.len() <= max);
    }

    /// Removes a connection from those without a complete greeting.
    pub(super) fn leave_strangers(&mut self, index: u32) {
        let slot = self.slots.at(index);
        if let Some(number) = slot.stranger.take() {
            self.strangers.remove(slot.caller, number);
        }
    }

    /// Stops watching a listener for a while; otherwise the kernel would report the same waiting connection endlessly.
    fn stop_accepting(&mut self, listener: Listener, reason: NotAccepting) {
        let resume = Some(self.now + Listening::PAUSE);
        let listening = &mut self.listeners[listener.index()];
        listening.resume = resume;
        if let Some(fd) = &listening.fd {
            let token = TOKEN_LISTENER + u64::from(listener.0);
            let _ = self.net.modify(fd, token, rustix::event::epoll::EventFlags::empty());
        }
        if listening.reported.is_none_or(|reported| self.now >= reported + Listening::REPORT) {
            listening.reported = Some(self.now);
            self.events.push_back(EndpointEvent::NotAccepting { listener, reason });
        }
    }

    fn go_on_accepting(&mut self, listener: Listener) {
        let listening = &mut self.listeners[listener.index()];
        if listening.resume.take().is_some()
            && let Some(fd) = &listening.fd
        {
            let _ = self.net.modify(fd, TOKEN_LISTENER + u64::from(listener.0), READ);
        }
    }

    /// Starts an attempt to connect.
    pub(super) fn attempt(&mut self, index: u32) {
        let ConnectionOrigin::Outgoing(outgoing) = &mut self.slots.at(index).origin else { return };
        outgoing.attempts += 1;
        match outgoing.address.clone() {
            Address::Socket(address) => self.start(index, address),
            Address::Host(host) => self.resolve(index, &host),
        }
    }

    fn start(&mut self, index: u32, address: SocketAddr) {
        let slot = self.slots.at(index);
        match self.net.connect(address, &slot.options.socket) {
            Ok(fd) => {
                slot.state = State::Connecting(self.now + slot.options.timing.greeting_max);
                self.attach(index, fd, WATCH_WRITE);
                self.arm_next(index);
            }
            Err(error) => self.end(index, Closed::Unreachable { address, error }),
        }
    }

    /// Resolves a host name on a new thread, because the system's resolver blocks.
    fn resolve(&mut self, index: u32, host: &Arc<str>) {
        let slot = self.slots.at(index);
        slot.state = State::Resolving;
        let (generation, host) = (slot.generation, Arc::clone(host));
        let (sender, bell) = (self.resolved.0.clone(), self.bell.clone());
        let thread = std::thread::Builder::new().name("resolver".into()).spawn({
            let host = Arc::clone(&host);
            move || {
                let result = host.to_socket_addrs().map(Iterator::collect).map_err(|error| error.to_string());
                // The endpoint may have been dropped meanwhile.
                let _ = sender.send(Resolved { index, generation, result });
                bell.wake();
            }
        });
        if let Err(error) = thread {
            self.end(index, Closed::Unresolved { host, error: error.to_string().into() });
        }
    }

    fn handle_resolved(&mut self) {
        while let Ok(Resolved { index, generation, result }) = self.resolved.1.try_recv() {
            let slot = self.slots.at(index);
            if slot.generation != generation || slot.state != State::Resolving {
                continue;
            }
            let ConnectionOrigin::Outgoing(outgoing) = &slot.origin else { continue };
            let Address::Host(host) = outgoing.address.clone() else { continue };
            let turn = outgoing.attempts as usize;
            match result {
                // Each attempt tries the next address.
                Ok(addresses) if !addresses.is_empty() => {
                    self.start(index, addresses[turn % addresses.len()]);
                }
                Ok(_) => self.end(index, Closed::Unresolved { host, error: "the name has none".into() }),
                Err(error) => self.end(index, Closed::Unresolved { host, error: error.into() }),
            }
        }
    }

    /// Handles a connecting socket that became writable or failed.
    fn handle_connected(&mut self, index: u32) {
        let Some(fd) = &self.slots.at(index).fd else { return };
        match fd.connect_result() {
            Ok(()) => {
                self.greet(index);
                self.watch(index);
                self.flush_slot(index);
            }
            Err(errno) => self.end(index, Closed::Broken(errno.into())),
        }
    }

    fn attach(&mut self, index: u32, fd: Socket, watch: u8) {
        let slot = self.slots.at(index);
        slot.generation = slot.generation.wrapping_add(1);
        slot.renews_options = slot.options.socket.wears_off();
        slot.watch = Some(watch);
        let interest = if watch == WATCH_READ { READ } else { WRITE };
        match self.net.add(&fd, token(index, slot.generation), interest) {
            Ok(()) => slot.fd = Some(fd),
            Err(error) => {
                self.end(index, Closed::Broken(OsError::of(&error)));
            }
        }
    }

    /// Sets the events that the kernel reports to those needed now.
    pub(super) fn watch(&mut self, index: u32) {
        if self.come_to_uring(index) {
            return;
        }
        let slot = self.slots.at(index);
        let Some(fd) = &slot.fd else { return };
        let read = slot.can_read() && !slot.is_paused && !slot.is_starved;
        let write = slot.blocked.is_some() && !slot.is_broken || matches!(slot.state, State::Connecting(_));
        // Edge-triggered reading needs epoll alone: with io_uring in between, the ring would also have to be re-armed.
        let edge = read && self.uring.is_none() && slot.state == State::Open && slot.tls.is_none();
        let bits = [(read, WATCH_READ), (write, WATCH_WRITE), (edge, WATCH_EDGE)];
        let bits = bits.into_iter().filter(|(is_wanted, _)| *is_wanted).fold(0, |bits, (_, bit)| bits | bit);
        let wanted = (bits != 0).then_some(bits);
        if slot.carrier != Carrier::Epoll {
            // io_uring reports its own writes; epoll watches anything else.
            if !read || slot.blocked.is_some() && !slot.is_sending {
                self.leave_uring(index);
            }
            return;
        }
        if wanted == slot.watch {
            return;
        }
        let token = token(index, slot.generation);
        let flags = |watch: u8| {
            let mut flags = rustix::event::epoll::EventFlags::empty();
            flags.set(READ, watch & WATCH_READ != 0);
            flags.set(WRITE, watch & WATCH_WRITE != 0);
            flags.set(EDGE, watch & WATCH_EDGE != 0);
            flags
        };
        // A connection without wanted events is removed; otherwise the kernel would report its end again and again.
        let result = match (slot.watch, wanted) {
            (None, Some(watch)) => self.net.add(fd, token, flags(watch)),
            (Some(_), Some(watch)) => self.net.modify(fd, token, flags(watch)),
            (_, None) => self.net.remove(fd),
        };
        slot.watch = wanted;
        if let Err(error) = result {
            self.end(index, Closed::Broken(OsError::of(&error)));
        }
    }

    /// Ends a connection or an attempt with a reason: reports it, and schedules the next attempt, if any.
    pub(super) fn end(&mut self, index: u32, reason: Closed) {
        let slot = self.slots.at(index);
        if matches!(slot.state, State::Free | State::Ended) {
            return;
        }
        self.leave_strangers(index);
        self.drop_from_uring(index);
        self.end_encryption(index);
        let slot = self.slots.at(index);
        let descriptor = slot.fd.take();
        let had_descriptor = descriptor.is_some();
        let tcp = descriptor.filter(|_| slot.established).and_then(|fd| fd.tcp_info()).map(Box::new);
        let unsent = slot.outbox.unsent();
        for counters in [&mut slot.counters, &mut self.totals] {
            counters.closed += 1;
            counters.messages_unsent += unsent.messages;
            *counter_of(counters, &reason).unwrap_or(&mut 0) += 1;
        }
        let established = std::mem::take(&mut slot.established);
        let retry = match &slot.origin {
            ConnectionOrigin::Accepted(_) => None,
            ConnectionOrigin::Outgoing(outgoing) if outgoing.given_up => None,
            ConnectionOrigin::Outgoing(outgoing) => {
                // A lost connection is retried as soon as a refused one.
                let attempt = outgoing.attempts.max(1);
                slot.options.backoff.and_then(|backoff| backoff.pause(attempt, self.random.next()))
            }
        };
        slot.state = retry.map_or(State::Ended, |pause: Duration| State::Waiting(self.now + pause));
        slot.timer = None;
        (slot.blocked, slot.is_broken, slot.was_refused, slot.is_starved, slot.is_paused) =
            (None, false, false, false, false);
        (slot.watch, slot.tls, slot.handshake) = (None, None, None);
        slot.promised = Duration::ZERO;
        slot.outbox.clear(&mut self.spare);
        if self.reading == Some(index) {
            self.assembler.discard(&mut slot.partial);
            (self.reading, self.more) = (None, false);
        } else {
            self.assembler.forget(&mut slot.partial);
        }
        let peer = PeerId(index);
        if let ConnectionOrigin::Accepted(listener) = slot.origin {
            let key = (listener, Arc::clone(&slot.name));
            if self.names.get(&key) == Some(&index) {
                self.names.remove(&key);
            }
        }
        let (name, caller) = (Arc::clone(&slot.name), slot.caller);
        self.events.push_back(if established {
            EndpointEvent::Closed { peer, reason, unsent, tcp, retry }
        } else {
            EndpointEvent::Failed { peer, name, caller, reason, retry }
        });
        self.arm_next(index);
        if had_descriptor {
            self.resume_listeners();
        }
    }
}

/// Returns the counter of a reason, if it has one.
fn counter_of<'a>(counters: &'a mut crate::Counters, reason: &Closed) -> Option<&'a mut u64> {
    Some(match reason {
        Closed::Oversize(_) => &mut counters.oversize,
        Closed::Truncated { .. } => &mut counters.truncated,
        Closed::Silent(_) => &mut counters.silent,
        Closed::Stalled(_) => &mut counters.stalled,
        Closed::NoCommonVersion(_) => &mut counters.no_common_version,
        Closed::BadHello(_)
        | Closed::WrongName { .. }
        | Closed::GreetingLate(_)
        | Closed::Displaced { .. }
        | Closed::TooFrequent { .. }
        | Closed::Refused(_)
        | Closed::Superseded(_)
        | Closed::NameTaken(_)
        | Closed::Reserved(_)
        | Closed::Unauthenticated(_)
        | Closed::Tls(_) => &mut counters.refused,
        _ => return None,
    })
}
