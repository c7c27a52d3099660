//! Reading and writing of encrypted connections.

use std::io;

use super::MessageEndpoint;
use super::parts::Fed;
use super::slot::ConnectionOrigin;
use crate::event::Closed;
use crate::socket::OsError;
use crate::tls::SessionError;

impl MessageEndpoint {
    /// Starts TLS, if configured, on a connected socket; returns false if the connection ended.
    pub(super) fn begin_encryption(&mut self, index: u32) -> bool {
        let slot = self.slots.at(index);
        let Some(tls) = &slot.options.tls else { return true };
        let session = match &slot.origin {
            ConnectionOrigin::Accepted(_) => tls.accept(),
            ConnectionOrigin::Outgoing(outgoing) => tls.connect(&outgoing.expects),
        };
        match session {
            Ok(session) => {
                slot.tls = Some(Box::new(session));
                true
            }
            Err(words) => {
                self.end(index, Closed::Tls(words.into()));
                false
            }
        }
    }

    /// Handles an encrypted connection that is readable.
    pub(super) fn handle_readable_encrypted(&mut self, index: u32) {
        let slot = self.slots.at(index);
        let (Some(fd), Some(tls)) = (&slot.fd, &mut slot.tls) else { return };
        let arrived = match tls.receive(fd) {
            Ok(arrived) => arrived,
            Err(SessionError::Tls(words)) => return self.end(index, Closed::Tls(words.into())),
            Err(SessionError::Socket(error)) => {
                let error = OsError::of(&error);
                let reason = self.how_broken(index, Closed::Broken(error));
                return self.end(index, reason);
            }
        };
        let answers = tls.waits() || !slot.outbox.is_empty();
        slot.last_in = self.now;
        if let (true, Some(fd)) = (slot.renews_options, &slot.fd) {
            fd.renew(&slot.options.socket);
        }
        for counters in [&mut slot.counters, &mut self.totals] {
            counters.reads += 1;
            counters.bytes_in += arrived.readable as u64;
        }
        if arrived.readable > 0 {
            self.fed = Some(Fed::decrypted(index, arrived.readable));
            self.feed();
        } else if arrived.ended || slot.tls.as_ref().is_some_and(|tls| tls.farewell) {
            return self.handle_end_of_stream(index);
        }
        // TLS handshake messages have to be answered.
        if answers {
            self.flush_slot(index);
        }
    }

    /// Encrypts and writes the waiting bytes; returns true if the kernel took only a part.
    pub(super) fn write_encrypted(&mut self, index: u32) -> bool {
        let slot = self.slots.at(index);
        let (Some(fd), Some(tls)) = (&slot.fd, &mut slot.tls) else { return false };
        loop {
            if let Some(piece) = slot.outbox.first() {
                let bytes = tls.put(piece);
                let messages = slot.outbox.consume(bytes, &mut self.spare);
                for counters in [&mut slot.counters, &mut self.totals] {
                    counters.bytes_out += bytes as u64;
                    counters.messages_out += messages;
                }
            }
            if !tls.waits() {
                // Nothing waits, or all bytes wait for the peer's part of the handshake.
                slot.blocked = None;
                return false;
            }
            match tls.send(fd) {
                Ok(_) => {
                    (slot.last_out, slot.blocked) = (self.now, None);
                    slot.counters.writes += 1;
                    self.totals.writes += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => {
                    (slot.is_broken, slot.is_paused) = (true, false);
                    return false;
                }
            }
        }
    }

    /// Sends `close_notify`, as far as the kernel has room for it.
    pub(super) fn end_encryption(&mut self, index: u32) {
        let slot = self.slots.at(index);
        if let (Some(fd), Some(tls)) = (&slot.fd, &mut slot.tls) {
            tls.say_farewell();
            let _ = tls.send(fd);
        }
    }
}
