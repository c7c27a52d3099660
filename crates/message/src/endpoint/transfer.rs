//! Reads and writes established plain connections, and handles the frames of all connections.

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::Shutdown;

use super::MessageEndpoint;
use super::slot::{Carrier, Closing, State};
use crate::event::{Closed, EndpointEvent, PeerId, SendError};
use crate::frame::{HEADER_BYTES, Header};
use crate::limits::RESERVED_KINDS;
use crate::net::Socket;
use crate::outbox::PIECES_MAX;
use crate::pool::Payload;

/// Messages of at least this size, bytes, are written directly from the caller's memory.
const DIRECT_BYTES_MIN: usize = 32 << 10;
/// Maximum reads of one connection in its turn. Reading continues only while a read fills all its space and ends within
/// a message.
const READS_MAX: u8 = 4;
/// Bytes in an outbox above which it is written at once.
const FLUSH_BYTES: u64 = 256 << 10;

impl MessageEndpoint {
    /// Handles a readable connection.
    pub(super) fn handle_readable(&mut self, index: u32) {
        debug_assert!(self.reading.is_none());
        let slot = self.slots.at(index);
        let Some(fd) = &slot.fd else { return };
        if !slot.can_read() || slot.is_paused || slot.is_starved {
            return self.watch(index);
        }
        if slot.tls.is_some() {
            return self.handle_readable_encrypted(index);
        }
        let Ok([first, second]) = self.assembler.space(&mut slot.partial) else {
            return self.starve(index);
        };
        let offered = first.len() + second.len();
        let received = fd.receive(first, second);
        for counters in [&mut slot.counters, &mut self.totals] {
            counters.reads += 1;
            counters.bytes_in += received.unwrap_or(0) as u64;
        }
        match received {
            Ok(0) => self.handle_end_of_stream(index),
            Ok(bytes) => {
                self.assembler.filled(&mut slot.partial, bytes);
                if slot.renews_options {
                    fd.renew(&slot.options.socket);
                }
                slot.last_in = self.now;
                self.reading = Some(index);
                self.more = bytes == offered;
                self.note_read(index, bytes);
            }
            Err(Errno::AGAIN) => {}
            Err(Errno::INTR) => self.look_again(index, false),
            Err(errno) => {
                let reason = self.how_broken(index, Closed::Broken(errno.into()));
                self.end(index, reason);
            }
        }
    }

    /// Stops reading from this connection until memory is free.
    pub(super) fn starve(&mut self, index: u32) {
        let slot = self.slots.at(index);
        if !slot.is_starved {
            slot.is_starved = true;
            slot.counters.starved += 1;
            self.totals.starved += 1;
            // The list may have this number from an earlier connection.
            if !self.starved.contains(&index) {
                self.starved.push(index);
            }
        }
        self.watch(index);
    }

    /// Returns the next message of the connection that is being parsed, or the event of its end.
    #[inline]
    pub(super) fn next_frame(&mut self, index: u32) -> Option<EndpointEvent> {
        loop {
            let slot = self.slots.at(index);
            let greeting = matches!(slot.state, State::Greeting(_));
            let limits = if greeting { &self.greeting_limits } else { &self.settings.limits };
            let frame = match self.assembler.next_frame(&mut slot.partial, limits) {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.reading = None;
                    // The rest of a large message has probably arrived.
                    let again = slot.partial.is_begun() && slot.carrier == Carrier::Epoll;
                    let more = std::mem::take(&mut self.more);
                    if more && again && self.reads_in_turn < READS_MAX {
                        self.reads_in_turn += 1;
                        self.handle_readable(index);
                        if self.reading.is_some() || !self.events.is_empty() {
                            return None;
                        }
                    } else if more {
                        self.look_again(index, false);
                    }
                    // More bytes of the same connection may be waiting to be parsed.
                    if self.fed.is_none() {
                        if self.slots.at(index).is_queued {
                            self.flush_slot(index);
                        } else if self.uring.is_some() {
                            self.come_to_uring(index);
                        }
                    }
                    return None;
                }
                Err(oversize) => {
                    self.end(index, Closed::Oversize(oversize));
                    return None;
                }
            };
            if frame.kind >= RESERVED_KINDS || greeting {
                self.handle_control(index, &frame);
                if self.reading.is_none() || !self.events.is_empty() {
                    return None;
                }
                continue;
            }
            slot.counters.messages_in += 1;
            self.totals.messages_in += 1;
            return Some(EndpointEvent::Message {
                peer: PeerId(index),
                kind: frame.kind,
                stream: frame.stream,
                payload: frame.payload,
            });
        }
    }

    pub(super) fn handle_end_of_stream(&mut self, index: u32) {
        let clean = self.how_broken(index, Closed::Remote);
        let slot = self.slots.at(index);
        let waits = !slot.outbox.is_empty() && !slot.is_broken;
        if slot.tls.as_ref().is_some_and(|tls| !tls.farewell) && clean == Closed::Remote {
            // The stream may have been cut by an attacker in the network.
            return self.end(index, Closed::Tls("the connection ended without a TLS close_notify".into()));
        }
        let reason = match slot.state {
            _ if clean != Closed::Remote => clean,
            // The peer has closed first; waiting messages are still sent to it.
            State::Open | State::Closing(Closing::Draining, _) if waits => {
                let until = self.now + slot.options.timing.drain_max;
                slot.state = State::Closing(Closing::HalfClosed, until);
                self.arm(index, until);
                return self.flush_slot(index);
            }
            State::Closing(Closing::Draining | Closing::Finishing, _) => Closed::Local,
            _ => Closed::Remote,
        };
        self.end(index, reason);
    }

    /// Returns `otherwise`, or [`Closed::Truncated`] in the middle of a frame.
    pub(super) fn how_broken(&mut self, index: u32, otherwise: Closed) -> Closed {
        let partial = &self.slots.at(index).partial;
        match partial.received() {
            0 => otherwise,
            received => Closed::Truncated { received, needed: partial.needed() },
        }
    }

    /// Returns true if unread bytes of this connection may be waiting, in the kernel or in a completion of io_uring.
    pub(super) fn has_unread(&mut self, index: u32) -> bool {
        if self.uring.as_ref().is_some_and(crate::sys::uring::Uring::has_done) {
            return true;
        }
        self.slots.at(index).fd.as_ref().is_some_and(Socket::has_unread)
    }

    /// Returns the header of a message that can be sent now.
    #[inline]
    pub(super) fn admit(
        &mut self,
        peer: PeerId,
        kind: u32,
        stream: u32,
        size: u64,
    ) -> Result<Header, SendError> {
        assert!(
            kind < RESERVED_KINDS,
            "type {kind:#x} is reserved; types of applications are below {RESERVED_KINDS:#x}"
        );
        let limits = &self.settings.limits;
        let (limit, max) = (limits.size_max(kind), limits.outbox_bytes_max);
        if size > u64::from(limit) {
            return Err(SendError::Oversize { kind, size, limit });
        }
        if self.slots.find(peer.0).is_none_or(|slot| !slot.can_send()) {
            return Err(SendError::NotConnected);
        }
        let slot = self.slots.at(peer.0);
        let waiting = slot.outbox.bytes();
        if waiting != 0 && waiting + size + HEADER_BYTES as u64 > max {
            slot.was_refused = true;
            slot.counters.full += 1;
            self.totals.full += 1;
            return Err(SendError::Full { waiting, max });
        }
        Ok(Header { kind, stream, size: size as u32 })
    }

    /// Queues a message with copied bytes, or writes it at once if it is large.
    #[inline]
    pub(super) fn push(&mut self, index: u32, header: Header, parts: &[&[u8]]) {
        let slot = self.slots.at(index);
        let direct = header.size as usize >= DIRECT_BYTES_MIN
            && slot.outbox.is_empty()
            && !slot.is_broken
            && slot.tls.is_none();
        let sent = if direct { self.send_directly(index, header, parts) } else { 0 };
        if sent == HEADER_BYTES + header.size as usize {
            return;
        }
        let slot = self.slots.at(index);
        slot.outbox.push_copied(header, parts, sent, &mut self.spare);
        if sent > 0 {
            slot.blocked = Some(self.now);
            self.watch(index);
            self.arm_next(index);
        } else {
            self.queued(index);
        }
    }

    pub(super) fn push_shared(&mut self, index: u32, header: Header, head: &[u8], bodies: &[Payload]) {
        self.slots.at(index).outbox.push_shared(header, head, bodies, &mut self.spare);
        self.queued(index);
    }

    #[inline]
    fn queued(&mut self, index: u32) {
        let slot = self.slots.at(index);
        if !slot.is_queued {
            slot.is_queued = true;
            self.dirty.push(index);
        }
        if slot.outbox.bytes() >= FLUSH_BYTES && slot.blocked.is_none() {
            self.flush_slot(index);
        }
    }

    /// Writes a message directly from the caller's memory; returns the number of bytes written.
    fn send_directly(&mut self, index: u32, header: Header, parts: &[&[u8]]) -> usize {
        let slot = self.slots.at(index);
        let Some(fd) = &slot.fd else { return 0 };
        let header_bytes = header.to_bytes();
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        slices[0] = IoSlice::new(&header_bytes);
        let mut count = 1;
        for (slice, part) in slices[1..].iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
            count += 1;
        }
        match fd.send_pieces(&slices[..count]) {
            Ok(sent) => {
                let whole = sent == HEADER_BYTES + header.size as usize;
                slot.last_out = self.now;
                for counters in [&mut slot.counters, &mut self.totals] {
                    counters.writes += 1;
                    counters.bytes_out += sent as u64;
                    counters.messages_out += u64::from(whole);
                }
                sent
            }
            // The next flush meets the same error and handles it.
            Err(_) => 0,
        }
    }

    pub(super) fn flush_all(&mut self) {
        while let Some(index) = self.dirty.pop() {
            if self.slots.at(index).is_queued {
                self.flush_slot(index);
            }
        }
    }

    /// Writes a peer's waiting bytes as far as the kernel takes them.
    pub(super) fn flush_slot(&mut self, index: u32) {
        let slot = self.slots.at(index);
        slot.is_queued = false;
        // Bytes in flight come first; their completion calls this again.
        if slot.is_sending || !slot.outbox.is_empty() && self.send_by_uring(index) {
            return;
        }
        let slot = self.slots.at(index);
        if slot.fd.is_none() || slot.is_broken || matches!(slot.state, State::Connecting(_)) {
            return;
        }
        let blocked = if slot.tls.is_some() { self.write_encrypted(index) } else { self.write_plain(index) };
        self.after_write(index, blocked);
    }

    /// Writes the waiting bytes of a peer; returns true if the kernel took only a part.
    fn write_plain(&mut self, index: u32) -> bool {
        let slot = self.slots.at(index);
        let Some(fd) = &slot.fd else { return false };
        let mut blocked = false;
        while !slot.outbox.is_empty() && !blocked {
            let (offered, result) = match slot.outbox.single() {
                Some(bytes) => (bytes.len(), fd.send(bytes)),
                None => {
                    let mut slices = [IoSlice::new(&[]); PIECES_MAX];
                    let (count, bytes) = slot.outbox.slices(&mut slices);
                    (bytes, fd.send_pieces(&slices[..count]))
                }
            };
            match result {
                Ok(bytes) => {
                    let messages = slot.outbox.consume(bytes, &mut self.spare);
                    slot.last_out = self.now;
                    slot.blocked = None;
                    for counters in [&mut slot.counters, &mut self.totals] {
                        counters.writes += 1;
                        counters.bytes_out += bytes as u64;
                        counters.messages_out += messages;
                    }
                    // Another write would fail; the kernel reports when it takes more.
                    blocked = bytes < offered;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => blocked = true,
                Err(_) => {
                    // Bytes that the peer sent before the failure are still read; reading then returns the error.
                    slot.is_broken = true;
                    slot.is_paused = false;
                    break;
                }
            }
        }
        blocked
    }

    /// Handles the result of a write.
    fn after_write(&mut self, index: u32, blocked: bool) {
        let slot = self.slots.at(index);
        if blocked && slot.blocked.is_none() {
            slot.blocked = Some(self.now);
        }
        let half = slot.outbox.bytes() * 2 <= self.settings.limits.outbox_bytes_max;
        if slot.was_refused && half {
            slot.was_refused = false;
            self.events.push_back(EndpointEvent::Writable { peer: PeerId(index) });
        }
        let broken = slot.is_broken;
        let sent = slot.outbox.is_empty();
        match slot.state {
            State::Closing(Closing::HalfClosed, _) if sent && !blocked || broken => {
                self.end(index, Closed::Remote);
            }
            State::Closing(Closing::Draining, until) if sent && !blocked => {
                self.end_encryption(index);
                let slot = self.slots.at(index);
                if let Some(fd) = &slot.fd {
                    fd.shutdown(Shutdown::Write);
                }
                slot.state = State::Closing(Closing::Finishing, until);
            }
            _ if blocked => self.arm_next(index),
            _ => {}
        }
        if broken {
            self.look_again(index, true);
        }
        self.watch(index);
    }
}
