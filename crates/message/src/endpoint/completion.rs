//! Connections on io_uring: their move to it, their completions, and their move back to epoll.

use rustix::io::Errno;
use rustix::net::Shutdown;

use super::MessageEndpoint;
use super::parts::Fed;
use super::slot::{Carrier, State};
use crate::event::Closed;
use crate::outbox::Piece;
use crate::sys::uring::{Chunk, Completion, Uring, same_generation};

/// Missing bytes above which a message is read directly into its own buffer; only the epoll path does this.
const DIRECT_BYTES_MIN: u64 = 64 << 10;
/// Consecutive small reads after which a connection moves to io_uring.
pub(super) const SMALL_READS_MIN: u8 = 2;
/// Maximum size of a small read, bytes.
const SMALL_READ_BYTES_MAX: usize = 16 << 10;

impl MessageEndpoint {
    pub(super) fn handle_done(&mut self, done: Completion) {
        match done {
            Completion::Received { index, generation, result, chunk, more } => {
                let ours = self.slots.find(index).is_some_and(|slot| {
                    slot.fd.is_some()
                        && slot.carrier != Carrier::Epoll
                        && same_generation(generation, slot.generation)
                });
                match (ours, chunk) {
                    (true, chunk) => self.handle_received(index, result, chunk, more),
                    (false, Some(chunk)) => self.recycle(chunk),
                    (false, None) => {}
                }
            }
            Completion::Sent { index, generation, result, bytes, offered } => {
                self.spare.put(Piece::Copied(bytes));
                let ours = self.slots.find(index).is_some_and(|slot| {
                    slot.fd.is_some() && slot.is_sending && same_generation(generation, slot.generation)
                });
                if ours {
                    self.handle_sent(index, result, offered);
                }
            }
        }
    }

    fn handle_received(&mut self, index: u32, result: i32, chunk: Option<Chunk>, more: bool) {
        let leaving = self.slots.at(index).carrier == Carrier::Leaving;
        if !more {
            self.slots.at(index).carrier = Carrier::Epoll;
        }
        match (result, chunk) {
            (1.., Some(chunk)) => {
                for counters in [&mut self.slots.at(index).counters, &mut self.totals] {
                    counters.reads += 1;
                    counters.bytes_in += chunk.len as u64;
                }
                self.fed = Some(Fed { index, len: chunk.len, chunk: Some(chunk), used: 0 });
                self.feed();
            }
            (0, chunk) => {
                chunk.into_iter().for_each(|chunk| self.recycle(chunk));
                return self.handle_end_of_stream(index);
            }
            (error, chunk) => {
                chunk.into_iter().for_each(|chunk| self.recycle(chunk));
                let errno = Errno::from_raw_os_error(-error);
                if !matches!(errno, Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR) {
                    let reason = self.how_broken(index, Closed::Broken(errno.into()));
                    return self.end(index, reason);
                }
            }
        }
        if !more {
            // Out of buffers, or cancelled: epoll reads the rest.
            if leaving || !self.come_to_uring(index) {
                self.watch(index);
            }
        }
    }

    /// Passes the next part of the received bytes to the assembler.
    pub(super) fn feed(&mut self) {
        let Some(fed) = &mut self.fed else { return };
        let slot = self.slots.at(fed.index);
        let mut left = fed.len - fed.used;
        let (spaces, starved) = self.assembler.space_anyway(&mut slot.partial, left);
        let mut taken = 0;
        for space in spaces {
            let here = left.min(space.len());
            taken += match (&fed.chunk, &self.uring, &mut slot.tls) {
                (Some(chunk), Some(uring), _) => {
                    let at = fed.used + taken;
                    space[..here].copy_from_slice(&uring.bytes(chunk)[at..at + here]);
                    here
                }
                (_, _, Some(tls)) => tls.take(&mut space[..here]),
                _ => here,
            };
            left -= here;
        }
        fed.used += taken;
        self.assembler.filled(&mut slot.partial, taken);
        slot.last_in = self.now;
        if let (true, Some(fd)) = (slot.renews_options, &slot.fd) {
            fd.renew(&slot.options.socket);
        }
        self.reading = Some(fed.index);
        let index = fed.index;
        if fed.used == fed.len
            && let Some(chunk) = self.fed.take().and_then(|fed| fed.chunk)
        {
            self.recycle(chunk);
        }
        let slot = self.slots.at(index);
        if starved {
            self.starve(index);
        } else if slot.partial.needed() - slot.partial.received() > DIRECT_BYTES_MIN {
            self.leave_uring(index);
        }
    }

    /// Cleans up after a connection that has ended: drops its received bytes and cancels its requests.
    pub(super) fn drop_from_uring(&mut self, index: u32) {
        if self.fed.as_ref().is_some_and(|fed| fed.index == index)
            && let Some(chunk) = self.fed.take().and_then(|fed| fed.chunk)
        {
            self.recycle(chunk);
        }
        let slot = self.slots.at(index);
        // The kernel keeps the socket open until all requests on it have ended.
        if (slot.carrier != Carrier::Epoll || slot.is_sending)
            && let Some(fd) = &slot.fd
        {
            fd.shutdown(Shutdown::Both);
        }
        slot.carrier = Carrier::Epoll;
        slot.is_sending = false;
    }

    fn recycle(&mut self, chunk: Chunk) {
        if let Some(uring) = &mut self.uring {
            uring.recycle(chunk);
        }
    }

    /// Counts consecutive small reads of the epoll path. After [`SMALL_READS_MIN`], the connection may move to
    /// io_uring.
    pub(super) fn note_read(&mut self, index: u32, bytes: usize) {
        let slot = self.slots.at(index);
        if slot.carrier == Carrier::Epoll {
            let small = bytes <= SMALL_READ_BYTES_MAX;
            slot.small_reads = if small { slot.small_reads.saturating_add(1) } else { 0 };
        }
    }

    /// Moves a connection to io_uring if it qualifies; returns true if it did.
    pub(super) fn come_to_uring(&mut self, index: u32) -> bool {
        let Some(uring) = &mut self.uring else { return false };
        let slot = self.slots.at(index);
        let Some(fd) = &slot.fd else { return false };
        let fit = slot.state == State::Open
            && slot.carrier == Carrier::Epoll
            && slot.tls.is_none()
            && slot.small_reads >= SMALL_READS_MIN
            && !(slot.is_paused || slot.is_starved || slot.is_broken || slot.blocked.is_some())
            && slot.partial.needed() - slot.partial.received() <= DIRECT_BYTES_MIN;
        if !fit {
            return false;
        }
        if slot.watch.take().is_some() {
            // The descriptor is registered, so this does not fail.
            let _ = self.net.remove(fd);
        }
        let Some(descriptor) = fd.descriptor() else { return false };
        slot.carrier = Carrier::Uring;
        uring.receive(descriptor, index, slot.generation);
        true
    }

    /// Cancels receiving by io_uring. The connection moves back to epoll after its last completion.
    pub(super) fn leave_uring(&mut self, index: u32) {
        let Some(uring) = &mut self.uring else { return };
        let slot = self.slots.at(index);
        if slot.carrier == Carrier::Uring {
            slot.carrier = Carrier::Leaving;
            slot.small_reads = 0;
            uring.cancel_receive(index, slot.generation);
        }
    }

    /// Submits the waiting bytes of a peer; returns true if io_uring took them.
    pub(super) fn send_by_uring(&mut self, index: u32) -> bool {
        let Some(uring) = &mut self.uring else { return false };
        let slot = self.slots.at(index);
        let Some(fd) = &slot.fd else { return false };
        if slot.carrier != Carrier::Uring || slot.blocked.is_some() {
            return false;
        }
        let Some(descriptor) = fd.descriptor() else { return false };
        let Some((bytes, offset)) = slot.outbox.take_flight() else { return false };
        uring.send(descriptor, index, slot.generation, bytes, offset);
        slot.is_sending = true;
        slot.blocked = Some(self.now);
        if slot.timer.is_none() {
            self.arm_next(index);
        }
        true
    }

    fn handle_sent(&mut self, index: u32, result: i32, offered: usize) {
        let slot = self.slots.at(index);
        slot.is_sending = false;
        slot.blocked = None;
        let taken = usize::try_from(result).unwrap_or(0);
        let messages = slot.outbox.land(taken == offered);
        if taken > 0 {
            slot.last_out = self.now;
            for counters in [&mut slot.counters, &mut self.totals] {
                counters.writes += 1;
                counters.bytes_out += taken as u64;
                counters.messages_out += messages;
            }
        }
        if taken < offered {
            slot.is_broken = true;
        }
        self.flush_slot(index);
    }

    /// Waits on io_uring if available, otherwise on epoll.
    pub(super) fn wait_for_kernel(&mut self, timeout: Option<std::time::Duration>) -> std::io::Result<()> {
        let Some(uring) = &mut self.uring else { return self.net.wait(timeout) };
        uring.wait(timeout)
    }

    /// Takes epoll's events if the ring reported that epoll is ready; returns true in this case.
    pub(super) fn poll_epoll_behind_uring(&mut self) -> std::io::Result<bool> {
        let ready = self.uring.as_mut().is_some_and(Uring::take_epoll_ready);
        if ready {
            self.net.wait(Some(std::time::Duration::ZERO))?;
        }
        Ok(ready)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Backend, ConnectionOptions, EndpointEvent, EndpointSettings};

    fn carriers(endpoint: &mut MessageEndpoint) -> Vec<Carrier> {
        endpoint.slots.indices().map(|index| endpoint.slots.at(index).carrier).collect()
    }

    #[test]
    fn io_uring_carries_small_messages_and_epoll_large_ones() {
        let settings =
            |backend| EndpointSettings { backend, name: "x".into(), ..EndpointSettings::default() };
        let Ok(mut server) = MessageEndpoint::new(settings(Backend::Uring)) else {
            return crate::skip::skip("this kernel has no io_uring");
        };
        let mut client = MessageEndpoint::new(settings(Backend::Epoll)).unwrap();
        let listener = server.listen("127.0.0.1:0".parse().unwrap(), ConnectionOptions::default()).unwrap();
        let address = server.local_address(listener).unwrap();
        let to_server = client.connect("", address, ConnectionOptions::default());
        let soon = || Some(Instant::now() + Duration::from_millis(1));
        let (mut seen, guard) = (Vec::new(), crate::hang_guard::HangGuard::new());
        while seen.len() < 8 {
            guard.check(format_args!("{seen:?}"));
            if let Some(EndpointEvent::Message { peer, stream, payload, .. }) = server.poll(soon()).unwrap() {
                server.send(peer, 1, stream, &[]).unwrap();
                seen.push((payload.len(), carriers(&mut server)[0]));
            }
            match client.poll(soon()).unwrap() {
                Some(EndpointEvent::Connected { .. }) => client.send(to_server, 1, 1, &[b"small"]).unwrap(),
                Some(EndpointEvent::Message { stream, .. }) => {
                    let size = if stream == 3 { 900_000 } else { 9 };
                    client.send(to_server, 1, stream + 1, &[&vec![0; size]]).unwrap();
                }
                _ => {}
            }
        }
        assert_eq!(seen[1], (9, Carrier::Uring));
        assert_eq!(seen[2], (9, Carrier::Uring));
        assert!(
            seen[3].0 == 900_000 && seen[3].1 != Carrier::Uring,
            "the large one is not its business: {seen:?}"
        );
        assert_eq!(seen[7], (9, Carrier::Uring), "and small ones come back: {seen:?}");
    }
}
