//! Messages that wait for one peer: small ones are collected in buffers, large ones are shared with their owner.

use std::collections::VecDeque;
use std::io::IoSlice;

use crate::frame::{HEADER_BYTES, Header};
use crate::pool::Payload;

/// Largest payload that is copied into a buffer, bytes; a separate piece would cost more.
pub(crate) const COPY_BYTES_MAX: usize = 4096;
/// Bytes in a buffer of small messages from which on a new buffer is used.
const TAIL_BYTES_MAX: usize = 64 << 10;
/// Maximum pieces in one call (`writev` takes up to 1024; above UIO_FASTIOV, 8, the kernel allocates, which costs
/// little).
pub(crate) const PIECES_MAX: usize = 64;
/// Maximum number of empty buffers kept for reuse, and the largest size kept.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 2 * TAIL_BYTES_MAX;

/// Buffers for small messages, shared by all outboxes of an endpoint.
#[derive(Default)]
pub(crate) struct Spare(Vec<Vec<u8>>);

impl Spare {
    fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    pub(crate) fn put(&mut self, piece: Piece) {
        if let Piece::Copied(mut bytes) = piece
            && self.0.len() < SPARE_MAX
            && bytes.capacity() <= SPARE_BYTES_MAX
        {
            bytes.clear();
            self.0.push(bytes);
        }
    }
}

/// Contiguous bytes to be sent.
pub(crate) enum Piece {
    Copied(Vec<u8>),
    Shared(Payload),
}

impl Piece {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Shared(payload) => payload,
        }
    }
}

struct Queued {
    piece: Piece,
    /// Messages that end in this piece.
    messages: u32,
}

/// A queue without allocation for its first piece. An outbox rarely holds more if the peer keeps up.
#[derive(Default)]
struct Pieces {
    first: Option<Queued>,
    others: VecDeque<Queued>,
}

impl Pieces {
    fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.first.iter().chain(&self.others)
    }

    fn back_mut(&mut self) -> Option<&mut Queued> {
        self.others.back_mut().or(self.first.as_mut())
    }

    fn push_back(&mut self, queued: Queued) {
        match &self.first {
            None => self.first = Some(queued),
            Some(_) => self.others.push_back(queued),
        }
    }

    fn pop_front(&mut self) -> Option<Queued> {
        let first = self.first.take();
        self.first = self.others.pop_front();
        if self.first.is_none() && self.others.capacity() > 0 {
            // An idle connection holds no memory.
            self.others = VecDeque::new();
        }
        first
    }
}

/// Messages that were not sent when a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unsent {
    /// Messages not given to the kernel completely.
    pub messages: u64,
    /// Bytes of these messages not given to the kernel, headers included.
    pub bytes: u64,
}

/// Send queue of one peer.
#[derive(Default)]
pub(crate) struct Outbox {
    pieces: Pieces,
    /// Bytes of the first piece that were sent.
    sent: usize,
    /// Waiting bytes, those in flight included.
    bytes: u64,
    /// Bytes that the kernel is sending, and the number of messages ending in them.
    flight: (u64, u32),
}

impl Outbox {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(crate) fn unsent(&self) -> Unsent {
        Unsent {
            messages: self.pieces.iter().map(|piece| u64::from(piece.messages)).sum(),
            bytes: self.bytes,
        }
    }

    /// Appends a message with a copied payload. Its first `sent` bytes, header included, are sent already.
    #[inline]
    pub(crate) fn push_copied(&mut self, header: Header, parts: &[&[u8]], sent: usize, spare: &mut Spare) {
        let tail = self.tail(HEADER_BYTES + header.size as usize - sent, spare);
        let mut skip = sent;
        for part in [&header.to_bytes()[..]].iter().chain(parts) {
            let here = skip.min(part.len());
            skip -= here;
            tail.extend_from_slice(&part[here..]);
        }
        self.end_message(HEADER_BYTES as u64 + u64::from(header.size) - sent as u64);
    }

    /// Appends a message of copied bytes and payloads after them; large payloads are shared instead of copied.
    pub(crate) fn push_shared(&mut self, header: Header, head: &[u8], bodies: &[Payload], spare: &mut Spare) {
        let tail = self.tail(HEADER_BYTES + head.len(), spare);
        tail.extend_from_slice(&header.to_bytes());
        tail.extend_from_slice(head);
        for body in bodies {
            if body.len() <= COPY_BYTES_MAX {
                self.tail(body.len(), spare).extend_from_slice(body);
            } else {
                self.pieces.push_back(Queued { piece: Piece::Shared(body.clone()), messages: 0 });
            }
        }
        self.end_message(HEADER_BYTES as u64 + u64::from(header.size));
    }

    fn end_message(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some(last) = self.pieces.back_mut() {
            last.messages += 1;
        }
    }

    /// Returns the buffer at the end of the queue, with room for `bytes` more.
    #[inline]
    fn tail(&mut self, bytes: usize, spare: &mut Spare) -> &mut Vec<u8> {
        let fits = match self.pieces.back_mut() {
            Some(Queued { piece: Piece::Copied(tail), .. }) => {
                tail.len() + bytes <= TAIL_BYTES_MAX.max(tail.capacity())
            }
            _ => false,
        };
        if !fits {
            self.pieces.push_back(Queued { piece: Piece::Copied(spare.take()), messages: 0 });
        }
        match self.pieces.back_mut() {
            Some(Queued { piece: Piece::Copied(tail), .. }) => tail,
            _ => unreachable!("a buffer was just added"),
        }
    }

    /// Returns the first piece of the queue.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.pieces.first.as_ref().map(|first| &first.piece.bytes()[self.sent..])
    }

    /// Returns the first piece of the queue if it is the only one.
    #[inline]
    pub(crate) fn single(&self) -> Option<&[u8]> {
        if self.pieces.others.is_empty() { self.first() } else { None }
    }

    /// Fills `slices` with the first pieces of the queue; returns their number and their bytes.
    pub(crate) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; PIECES_MAX]) -> (usize, usize) {
        let (mut count, mut bytes, mut skip) = (0, 0, self.sent);
        for (slice, queued) in slices.iter_mut().zip(self.pieces.iter()) {
            let piece = &queued.piece.bytes()[skip..];
            skip = 0;
            *slice = IoSlice::new(piece);
            count += 1;
            bytes += piece.len();
        }
        (count, bytes)
    }

    /// Removes the first `bytes`, which were sent; returns the number of completed messages.
    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize, spare: &mut Spare) -> u64 {
        self.bytes -= bytes as u64;
        self.sent += bytes;
        let mut messages = 0;
        while let Some(first) = &self.pieces.first {
            let length = first.piece.bytes().len();
            if self.sent < length {
                break;
            }
            self.sent -= length;
            let Some(first) = self.pieces.pop_front() else { break };
            messages += u64::from(first.messages);
            spare.put(first.piece);
        }
        messages
    }

    /// Takes the first piece for a write that keeps the buffer until it completes. Returns the buffer, and the offset
    /// of the first byte to send. `None` if the piece is shared, or another write is in flight.
    pub(crate) fn take_flight(&mut self) -> Option<(Vec<u8>, usize)> {
        if self.flight.0 != 0 || !matches!(self.pieces.first.as_ref()?.piece, Piece::Copied(_)) {
            return None;
        }
        let Queued { piece: Piece::Copied(bytes), messages } = self.pieces.pop_front()? else { return None };
        let offset = std::mem::take(&mut self.sent);
        self.flight = ((bytes.len() - offset) as u64, messages);
        Some((bytes, offset))
    }

    /// Ends a write in flight; returns the number of messages that it completed.
    pub(crate) fn land(&mut self, whole: bool) -> u64 {
        if !whole {
            return 0;
        }
        let (bytes, messages) = std::mem::take(&mut self.flight);
        self.bytes -= bytes;
        u64::from(messages)
    }

    /// Removes all messages, and keeps their buffers for reuse.
    pub(crate) fn clear(&mut self, spare: &mut Spare) {
        while let Some(queued) = self.pieces.pop_front() {
            spare.put(queued.piece);
        }
        (self.sent, self.bytes, self.flight) = (0, 0, (0, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(outbox: &mut Outbox, step: usize, spare: &mut Spare) -> Vec<u8> {
        let mut out = Vec::new();
        while !outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); PIECES_MAX];
            let (count, bytes) = outbox.slices(&mut slices);
            let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            assert_eq!(all.len(), bytes);
            let take = step.min(bytes);
            out.extend_from_slice(&all[..take]);
            outbox.consume(take, spare);
        }
        out
    }

    #[test]
    fn bytes_leave_in_order_however_the_kernel_takes_them() {
        let large = Payload::from((0..20_000u32).map(|i| i as u8).collect::<Vec<u8>>());
        let small = Payload::from(vec![9; 100]);
        let mut expected = Vec::new();
        let header = |size: usize| Header { kind: 1, stream: 2, size: size as u32 };
        for step in [1, 7, 1000, 1 << 20] {
            let (mut outbox, mut spare) = (Outbox::default(), Spare::default());
            outbox.push_copied(header(5), &[b"he", b"llo"], 0, &mut spare);
            outbox.push_copied(header(5), &[b"he", b"llo"], 13, &mut spare);
            outbox.push_shared(header(20_103), b"abc", &[large.clone(), small.clone()], &mut spare);
            assert_eq!(outbox.unsent().messages, 3);
            expected.clear();
            expected.extend_from_slice(&header(5).to_bytes());
            expected.extend_from_slice(b"helloello");
            expected.extend_from_slice(&header(20_103).to_bytes());
            expected.extend_from_slice(b"abc");
            expected.extend_from_slice(&large);
            expected.extend_from_slice(&small);
            assert_eq!(outbox.bytes(), expected.len() as u64);
            assert_eq!(drain(&mut outbox, step, &mut spare), expected, "step {step}");
            assert_eq!(outbox.unsent(), Unsent::default());
        }
    }

    #[test]
    fn many_small_messages_share_a_buffer() {
        let (mut outbox, mut spare) = (Outbox::default(), Spare::default());
        for _ in 0..100 {
            outbox.push_copied(Header { kind: 1, stream: 0, size: 10 }, &[&[0; 10]], 0, &mut spare);
        }
        assert_eq!(outbox.single().map(<[u8]>::len), Some(2200));
        assert_eq!(outbox.consume(2199, &mut spare), 0);
        assert_eq!(outbox.consume(1, &mut spare), 100);
        assert!(outbox.single().is_none());
    }
}
