//! Parses frames from a byte stream, without I/O. The reader asks for space, fills it, and takes frames until none is
//! complete.
//!
//! All connections share one read block, so an idle connection holds no buffer. A message that lies completely in the
//! block is lent from it. A longer message gets its own buffer, into which the rest is read directly. Small messages
//! are copied at most once after the kernel's copy, the rest of large ones not at all.

use std::sync::Arc;

use crate::frame::{HEADER_BYTES, Header, Oversize};
use crate::limits::Limits;
use crate::pool::{Block, BufferPool, Payload, PeerMemory};

/// Most bytes to read ahead of a message if the previous message of the connection was large. Bytes read before the
/// size is known must be copied.
const AHEAD_BYTES_MAX: usize = 4096;

/// Claimed size up to which a frame's memory is reserved at once, bytes.
const TRUSTED_BYTES: usize = 64 << 10;
/// Multiple of the received bytes up to which a frame's memory is also reserved. Memory thus follows the received
/// bytes, not the claimed size.
const TRUSTED_FACTOR: usize = 64;

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedMessage {
    /// Type of the message, below [`RESERVED_KINDS`](crate::RESERVED_KINDS).
    pub kind: u32,
    /// Stream of the message within its connection.
    pub stream: u32,
    /// Payload, without the header.
    pub payload: Payload,
}

/// The received part of an incomplete frame.
#[derive(Default)]
pub struct Partial {
    header: [u8; HEADER_BYTES],
    held: u8,
    /// Size in bytes of the last message if it was large; otherwise zero.
    large: u32,
    message: Option<PartialMessage>,
    /// Memory of the peer's received messages; `None`: without a limit.
    memory: Option<Arc<PeerMemory>>,
}

struct PartialMessage {
    header: Header,
    block: Block,
    filled: usize,
}

impl Partial {
    /// Counts the messages that follow for a peer with this memory.
    pub(crate) fn set_memory(&mut self, memory: Arc<PeerMemory>) {
        self.memory = Some(memory);
    }

    /// Returns true unless the peer waits until payloads of its messages are dropped.
    pub(crate) fn ends_wait(&self, pool: &BufferPool) -> bool {
        self.memory.as_ref().is_none_or(|memory| memory.ends_wait(pool))
    }

    /// Returns true if the peer waits for a buffer that its limit does not permit now.
    pub(crate) fn is_peer_full(&self, pool: &BufferPool) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_full(pool))
    }

    /// Returns true if the connection is read although the memory of all peers is used up. Urgent peers are, and greetings.
    pub(crate) fn is_urgent(&self) -> bool {
        self.memory.as_ref().is_none_or(|memory| memory.is_urgent())
    }

    /// Returns the bytes of the buffers that hold the peer's messages.
    pub(crate) fn peer_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.held_bytes())
    }

    /// Returns the received bytes of the incomplete frame, header included; zero between frames.
    pub fn received(&self) -> u64 {
        self.message.as_ref().map_or(u64::from(self.held), |message| (HEADER_BYTES + message.filled) as u64)
    }

    /// Returns true if the header of the incomplete frame has arrived.
    pub(crate) fn is_begun(&self) -> bool {
        self.message.is_some()
    }

    /// Returns the size in bytes of the buffer that the incomplete message needs next; `None` if it has room.
    fn grows_to(&self) -> Option<usize> {
        let message = self.message.as_ref()?;
        (message.filled == message.block.len())
            .then(|| believed(message.header.size as usize, message.filled))
    }

    /// Returns the size of the incomplete frame in bytes, header included; 12 until the header is complete.
    pub fn needed(&self) -> u64 {
        HEADER_BYTES as u64 + self.message.as_ref().map_or(0, |message| u64::from(message.header.size))
    }
}

/// An error: there is no memory to read into, as [`Limits::receive_bytes_max`] or [`Limits::peer_receive_bytes_max`] is
/// reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starved;

/// Read buffers shared by all connections of an endpoint.
pub struct Assembler {
    pool: BufferPool,
    block_bytes: usize,
    block: Option<Arc<Block>>,
    start: usize,
    end: usize,
    /// Bytes in the buffers of incomplete messages.
    unfinished_bytes: u64,
    /// Number of incomplete messages that have their own buffer.
    unfinished: usize,
}

impl Assembler {
    pub(crate) fn new(pool: BufferPool, block_bytes: usize) -> Self {
        Self { pool, block_bytes, block: None, start: 0, end: 0, unfinished_bytes: 0, unfinished: 0 }
    }

    /// Creates an assembler without an endpoint, for tools that parse byte streams.
    ///
    /// # Errors
    ///
    /// The system's error if it has no file descriptor left for the pool's event counter.
    pub fn standalone(limits: &Limits) -> std::io::Result<Self> {
        let pool =
            BufferPool::new(limits.receive_bytes_max, limits.idle_bytes_max, crate::wake::Waker::new()?);
        Ok(Self::new(pool, limits.receive_block_bytes))
    }

    /// Returns the space for the next bytes of a connection: the first slice, then the second. At least one is not
    /// empty.
    ///
    /// # Errors
    ///
    /// [`Starved`] if the limit of the pool or of the peer is reached; the connection has to wait.
    pub fn space<'a>(&'a mut self, partial: &'a mut Partial) -> Result<[&'a mut [u8]; 2], Starved> {
        debug_assert_eq!(self.start, self.end, "unparsed frames are left");
        let grown = partial.grows_to();
        if !self.admits_next(partial, grown) {
            return Err(Starved);
        }
        if let Some(wanted) = grown {
            let larger = take(&self.pool, wanted, partial.is_urgent()).ok_or(Starved)?;
            self.grow(partial, larger);
        }
        let is_urgent = partial.is_urgent();
        self.space_admitted(partial, is_urgent)
    }

    /// Returns true if the peer's limit permits the next buffer: `grown` bytes for the incomplete message, or the shared
    /// block for the next one.
    fn admits_next(&mut self, partial: &Partial, grown: Option<usize>) -> bool {
        let Some(bytes) = grown.or(partial.message.is_none().then_some(self.block_bytes)) else {
            return true;
        };
        let Some(memory) = &partial.memory else { return true };
        if memory.fits(bytes as u64, &self.pool) {
            return true;
        }
        // Payloads of an earlier read of this peer may refer to the shared block, or none of them any more.
        if self.block.as_ref().is_some_and(|block| block.is_of(memory)) {
            match self.block.as_mut().and_then(Arc::get_mut) {
                Some(block) => block.count_for(None),
                // The drop of the last payload then frees the block, and wakes the endpoint.
                None => self.block = None,
            }
        }
        memory.admits(bytes, &self.pool)
    }

    /// Moves an incomplete message to a larger buffer.
    fn grow(&mut self, partial: &mut Partial, mut larger: Block) {
        let Some(message) = &mut partial.message else { return };
        larger[..message.filled].copy_from_slice(&message.block[..message.filled]);
        self.unfinished_bytes += larger.len() as u64 - message.block.len() as u64;
        message.block = larger;
    }

    /// Returns the space for the next bytes. `anyway` permits a read block beyond the limit of the pool.
    fn space_admitted<'a>(
        &'a mut self,
        partial: &'a mut Partial,
        anyway: bool,
    ) -> Result<[&'a mut [u8]; 2], Starved> {
        (self.start, self.end) = (0, 0);
        let memory = partial.memory.as_ref();
        if let Some(message) = &mut partial.message {
            let size = message.header.size as usize;
            let room = size.min(message.block.len());
            let rest = &mut message.block[message.filled..room];
            // The following message arrives in the same call, unless this message fills one by itself, or the peer's limit is
            // reached. Blocks that end within such messages would follow each other beyond it.
            if room == size
                && rest.len() < self.block_bytes
                && (anyway || memory.is_none_or(|memory| memory.fits(self.block_bytes as u64, &self.pool)))
                && let Some(block) = writable(&mut self.block, &self.pool, self.block_bytes, anyway)
            {
                block.count_for(memory);
                let ahead = if partial.large > 0 { AHEAD_BYTES_MAX } else { block.len() };
                return Ok([rest, &mut block[..ahead]]);
            }
            return Ok([rest, &mut []]);
        }
        let block = writable(&mut self.block, &self.pool, self.block_bytes, anyway).ok_or(Starved)?;
        assert!(
            anyway || self.pool.keeps_limit_with(block.len()),
            "a block beyond the limit is for urgent peers"
        );
        block.count_for(memory);
        let held = usize::from(partial.held);
        block[..held].copy_from_slice(&partial.header[..held]);
        let end = if partial.large > 0 { AHEAD_BYTES_MAX } else { block.len() };
        Ok([&mut block[held..end], &mut []])
    }

    /// Returns space for at least `bytes` received bytes, even beyond the limits of the pool and of the peer. The flag is
    /// true if the connection has to wait, as a limit that holds for it is exceeded.
    pub(crate) fn space_anyway<'a>(
        &'a mut self,
        partial: &'a mut Partial,
        bytes: usize,
    ) -> ([&'a mut [u8]; 2], bool) {
        let grown = partial.grows_to();
        let is_admitted = self.admits_next(partial, grown);
        let is_urgent = partial.is_urgent();
        let mut starved = !is_admitted;
        if let Some(wanted) = grown {
            let larger = is_admitted.then(|| take(&self.pool, wanted, is_urgent)).flatten();
            let larger = larger.unwrap_or_else(|| {
                starved = true;
                let received = partial.received() as usize - HEADER_BYTES;
                self.pool.take_anyway((received + bytes).min(wanted))
            });
            self.grow(partial, larger);
        }
        starved |= writable(&mut self.block, &self.pool, self.block_bytes, is_urgent).is_none();
        let Ok(space) = self.space_admitted(partial, true) else { unreachable!("there is room") };
        (space, starved)
    }

    /// Notes that `bytes` of the space were filled.
    pub fn filled(&mut self, partial: &mut Partial, bytes: usize) {
        if let Some(message) = &mut partial.message {
            let room = (message.header.size as usize).min(message.block.len());
            let here = bytes.min(room - message.filled);
            message.filled += here;
            self.end = bytes - here;
        } else {
            self.end = usize::from(partial.held) + bytes;
            partial.held = 0;
        }
    }

    /// Returns the next complete frame. `None`: all bytes are used, and the caller may request space again.
    ///
    /// # Errors
    ///
    /// [`Oversize`] if a header claims more than the limit of its type. The stream then has no known frame boundary:
    /// the caller ends the connection, and calls [`discard`](Self::discard).
    #[inline]
    pub fn next_frame(
        &mut self,
        partial: &mut Partial,
        limits: &Limits,
    ) -> Result<Option<ArrivedMessage>, Oversize> {
        if let Some(message) = &partial.message {
            if message.filled < message.header.size as usize {
                return Ok(None);
            }
            return Ok(self.finished(partial));
        }
        let left = self.end - self.start;
        if left == 0 {
            return Ok(None);
        }
        let Some(block) = &self.block else { unreachable!("bytes without a block") };
        let bytes = &block[self.start..self.end];
        let Some((header, bytes)) = bytes.split_first_chunk() else {
            partial.header[..left].copy_from_slice(bytes);
            partial.held = left as u8;
            self.start = self.end;
            return Ok(None);
        };
        let header = Header::from_bytes(header);
        header.check(limits)?;
        let (kind, stream, size) = (header.kind, header.stream, header.size as usize);
        if bytes.len() < size {
            self.begin(header, partial);
            return Ok(None);
        }
        partial.large = 0;
        let start = self.start + HEADER_BYTES;
        self.start = start + size;
        let payload = match size {
            0 => Payload::EMPTY,
            _ => Payload::from_block(Arc::clone(block), start..self.start),
        };
        Ok(Some(ArrivedMessage { kind, stream, payload }))
    }

    /// Discards the unread bytes of the connection that is being parsed.
    pub fn discard(&mut self, partial: &mut Partial) {
        (self.start, self.end) = (0, 0);
        self.forget(partial);
    }

    /// Discards the incomplete frame of a connection that is not being parsed.
    pub fn forget(&mut self, partial: &mut Partial) {
        if let Some(message) = partial.message.take() {
            self.unfinished_bytes -= message.block.len() as u64;
            self.unfinished -= 1;
        }
        *partial = Partial::default();
    }

    /// Returns the bytes of the buffers that this assembler holds: the block and those of incomplete messages.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.unfinished_bytes + self.block.as_ref().map_or(0, |block| block.len() as u64)
    }

    /// Returns the number of connections with an incomplete message in a buffer of its own.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished
    }

    fn begin(&mut self, header: Header, partial: &mut Partial) {
        let Some(block) = &self.block else { unreachable!("bytes without a block") };
        let bytes = &block[self.start + HEADER_BYTES..self.end];
        let size = header.size as usize;
        // The bytes were read already, so they need memory even beyond the limit. The excess is at most one block, and
        // reading stops while the limit is exceeded. A peer that sent a large message is expected to send another one
        // of that size.
        let wanted = believed(size, bytes.len()).max(size.min(partial.large as usize));
        partial.large = if size >= self.block_bytes { header.size } else { 0 };
        let is_admitted = partial.memory.as_ref().is_none_or(|memory| memory.fits(wanted as u64, &self.pool));
        let is_urgent = partial.is_urgent();
        let mut own = match is_admitted.then(|| take(&self.pool, wanted, is_urgent)).flatten() {
            Some(own) => own,
            None => self.pool.take_anyway(bytes.len()),
        };
        own[..bytes.len()].copy_from_slice(bytes);
        self.unfinished_bytes += own.len() as u64;
        self.unfinished += 1;
        partial.message = Some(PartialMessage { header, filled: bytes.len(), block: own });
        self.start = self.end;
    }

    fn finished(&mut self, partial: &mut Partial) -> Option<ArrivedMessage> {
        let PartialMessage { header, mut block, filled } = partial.message.take()?;
        self.unfinished_bytes -= block.len() as u64;
        self.unfinished -= 1;
        block.count_for(partial.memory.as_ref());
        let payload = Payload::from_block(Arc::new(block), 0..filled);
        Some(ArrivedMessage { kind: header.kind, stream: header.stream, payload })
    }
}

/// Returns the shared block if no payload refers to it, otherwise a new one. `anyway` permits one beyond the limit of the
/// pool. Without it, a block that was taken beyond the limit is given back: messages of any peer could hold it.
fn writable<'a>(
    block: &'a mut Option<Arc<Block>>,
    pool: &BufferPool,
    bytes: usize,
    anyway: bool,
) -> Option<&'a mut Block> {
    let is_free = block.as_mut().is_some_and(|block| Arc::get_mut(block).is_some());
    if !is_free || !anyway && !pool.has_room(0) {
        *block = None;
        *block = Some(Arc::new(take(pool, bytes, anyway)?));
    }
    block.as_mut().and_then(Arc::get_mut)
}

/// Lends a buffer of at least `bytes`; `anyway` permits one beyond the limit of the pool.
fn take(pool: &BufferPool, bytes: usize, anyway: bool) -> Option<Block> {
    if anyway { Some(pool.take_anyway(bytes)) } else { pool.take(bytes) }
}

/// Returns the memory in bytes to reserve for a message of `size` bytes of which `received` have arrived.
fn believed(size: usize, received: usize) -> usize {
    size.min(TRUSTED_BYTES.max(received.saturating_mul(TRUSTED_FACTOR)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Waker;

    /// Each read block ends 24 B before the end of a message, whose buffer then has room for these: sizes of buffers are rounded
    /// up. All messages are kept.
    #[test]
    fn blocks_that_end_within_messages_keep_to_the_limit_of_their_peer() {
        const BLOCK: usize = 4096;
        const MESSAGE: usize = 2048;
        let pool = BufferPool::new(16 * BLOCK as u64, 0, Waker::without_kernel());
        let memory = PeerMemory::new(BLOCK as u64, false);
        let mut assembler = Assembler::new(pool, BLOCK);
        let mut partial = Partial::default();
        partial.set_memory(memory);
        let header = Header { kind: 0, stream: 0, size: MESSAGE as u32 }.to_bytes();
        let mut stream = header.into_iter().chain([7; MESSAGE]).cycle();
        let mut kept = Vec::new();
        while let Ok(space) = assembler.space(&mut partial) {
            let bytes = space.iter().map(|part| part.len()).sum();
            space.into_iter().flatten().for_each(|byte| *byte = stream.next().unwrap());
            assembler.filled(&mut partial, bytes);
            while let Some(message) = assembler.next_frame(&mut partial, &Limits::default()).unwrap() {
                kept.push(message);
            }
        }
        // The limit of the peer binds while more than half of the pool is lent.
        let held = partial.peer_bytes();
        assert!(held <= (8 * BLOCK + BLOCK + 2 * BLOCK) as u64, "{held} bytes");
        assert!(kept.len() * MESSAGE > 4 * BLOCK, "{} messages", kept.len());
    }
}
