//! Frames out of a stream of bytes, however it is cut up. No I/O: whoever reads asks for space, fills it, and takes
//! frames until there are none.
//!
//! All peers are read into one block, so that an idle connection holds no buffer. Messages that lie in it completely
//! are lent as they are. One that does not gets a buffer of its own, which the rest of it is read into directly: each
//! byte is copied at most once behind the kernel's copy, and those of large messages not at all.

use std::sync::Arc;

use crate::frame::{HEADER_BYTES, Header, Oversize};
use crate::limits::Limits;
use crate::pool::{Block, BufferPool, Payload};

/// Where a connection's last message was a large one, no more than this is read in front of the next: what is read
/// before its size is known has to be copied.
const AHEAD_BYTES_MAX: usize = 4096;

/// Memory for a frame is reserved up to this many bytes of its claimed size, …
const TRUSTED_BYTES: usize = 64 << 10;
/// … up to so many times what has arrived, and up to the size of the message before: memory is taken for bytes that come, not for bytes that are announced.
const TRUSTED_FACTOR: usize = 64;

/// A message that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedMessage {
    /// Its type.
    pub kind: u32,
    /// Its stream.
    pub stream: u32,
    /// Its bytes.
    pub payload: Payload,
}

/// The received part of an incomplete frame.
#[derive(Default)]
pub struct Partial {
    header: [u8; HEADER_BYTES],
    held: u8,
    /// Size of the last message, where that was a large one; zero otherwise.
    large: u32,
    message: Option<PartialMessage>,
}

struct PartialMessage {
    header: Header,
    block: Block,
    filled: usize,
}

impl Partial {
    /// Bytes of an unfinished frame that are here, header included; zero between frames.
    pub fn got(&self) -> u64 {
        self.message.as_ref().map_or(u64::from(self.held), |message| (HEADER_BYTES + message.filled) as u64)
    }

    /// True if the header of an unfinished message is here.
    pub(crate) fn is_begun(&self) -> bool {
        self.message.is_some()
    }

    /// Bytes of the unfinished frame in all, as far as they are known: 12 for one whose header is not complete.
    pub fn needed(&self) -> u64 {
        HEADER_BYTES as u64 + self.message.as_ref().map_or(0, |message| u64::from(message.header.size))
    }
}

/// There is no memory to read into: [`Limits::receive_bytes_max`] is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starved;

/// The common part of all connections' reading.
pub struct Assembler {
    pool: BufferPool,
    block_bytes: usize,
    block: Option<Arc<Block>>,
    start: usize,
    end: usize,
    /// Bytes in the buffers of unfinished messages.
    unfinished_bytes: u64,
    /// How many messages are unfinished.
    unfinished: usize,
}

impl Assembler {
    pub(crate) fn new(pool: BufferPool, block_bytes: usize) -> Self {
        Self { pool, block_bytes, block: None, start: 0, end: 0, unfinished_bytes: 0, unfinished: 0 }
    }

    /// An assembler of its own, without an endpoint around it: for tools that look into streams of bytes.
    ///
    /// # Errors
    ///
    /// Where the system has no file descriptor left for the pool's bell.
    pub fn standalone(limits: &Limits) -> std::io::Result<Self> {
        let pool =
            BufferPool::new(limits.receive_bytes_max, limits.idle_bytes_max, crate::wake::Waker::new()?);
        Ok(Self::new(pool, limits.receive_block_bytes))
    }

    /// Where the next bytes of a connection go: first the one slice, then the other. Never both are empty.
    ///
    /// # Errors
    ///
    /// [`Starved`] where the pool's limit is reached; the connection has to wait.
    pub fn space<'a>(&'a mut self, partial: &'a mut Partial) -> Result<[&'a mut [u8]; 2], Starved> {
        debug_assert_eq!(self.start, self.end, "frames were left behind");
        (self.start, self.end) = (0, 0);
        if let Some(message) = &mut partial.message {
            let size = message.header.size as usize;
            if message.filled == message.block.len() {
                let bytes = believed(size, message.filled);
                let mut larger = self.pool.take(bytes).ok_or(Starved)?;
                larger[..message.filled].copy_from_slice(&message.block[..message.filled]);
                self.unfinished_bytes += larger.len() as u64 - message.block.len() as u64;
                message.block = larger;
            }
            let room = size.min(message.block.len());
            let rest = &mut message.block[message.filled..room];
            // What follows the message comes in the same call, unless the message alone fills one.
            if room == size
                && rest.len() < self.block_bytes
                && let Some(block) = writable(&mut self.block, &self.pool, self.block_bytes)
            {
                let ahead = if partial.large > 0 { AHEAD_BYTES_MAX } else { block.len() };
                return Ok([rest, &mut block[..ahead]]);
            }
            return Ok([rest, &mut []]);
        }
        let block = writable(&mut self.block, &self.pool, self.block_bytes).ok_or(Starved)?;
        let held = usize::from(partial.held);
        block[..held].copy_from_slice(&partial.header[..held]);
        let end = if partial.large > 0 { AHEAD_BYTES_MAX } else { block.len() };
        Ok([&mut block[held..end], &mut []])
    }

    /// Where bytes go that are here already, `bytes` of them or more, whatever the limit says; tells also whether that
    /// is exceeded by them.
    pub(crate) fn space_anyway<'a>(
        &'a mut self,
        partial: &'a mut Partial,
        bytes: usize,
    ) -> ([&'a mut [u8]; 2], bool) {
        let mut starved = false;
        if let Some(message) = &mut partial.message
            && message.filled == message.block.len()
        {
            let wanted = believed(message.header.size as usize, message.filled);
            let mut larger = self.pool.take(wanted).unwrap_or_else(|| {
                starved = true;
                self.pool.take_anyway((message.filled + bytes).min(wanted))
            });
            larger[..message.filled].copy_from_slice(&message.block[..message.filled]);
            self.unfinished_bytes += larger.len() as u64 - message.block.len() as u64;
            message.block = larger;
        }
        if self.block.as_mut().is_none_or(|block| Arc::get_mut(block).is_none()) {
            starved |= writable(&mut self.block, &self.pool, self.block_bytes).is_none();
            if self.block.is_none() {
                self.block = Some(Arc::new(self.pool.take_anyway(self.block_bytes)));
            }
        }
        let Ok(space) = self.space(partial) else { unreachable!("there is room") };
        (space, starved)
    }

    /// `bytes` of the space were filled.
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

    /// The next frame of what was filled. After `None`, all is used up, and space may be asked for again.
    ///
    /// # Errors
    ///
    /// [`Oversize`] where a header claims more than its type may have. There is nothing to be found behind it: the
    /// connection has to end, and [`discard`](Self::discard) be called.
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

    /// Give up what is left of a connection's bytes.
    pub fn discard(&mut self, partial: &mut Partial) {
        (self.start, self.end) = (0, 0);
        self.forget(partial);
    }

    /// Give up the unfinished frame of a connection that is not being read now.
    pub fn forget(&mut self, partial: &mut Partial) {
        if let Some(message) = partial.message.take() {
            self.unfinished_bytes -= message.block.len() as u64;
            self.unfinished -= 1;
        }
        *partial = Partial::default();
    }

    /// Bytes of buffers that this assembler itself holds: those of unfinished messages, and the block.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.unfinished_bytes + self.block.as_ref().map_or(0, |block| block.len() as u64)
    }

    /// How many connections are in the middle of a large message.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished
    }

    fn begin(&mut self, header: Header, partial: &mut Partial) {
        let Some(block) = &self.block else { unreachable!("bytes without a block") };
        let bytes = &block[self.start + HEADER_BYTES..self.end];
        let size = header.size as usize;
        // What was read has to go somewhere, even where the limit is reached: it is one block at most, and nothing
        // more is read for as long as that holds.
        // Who has sent a large message is believed to send another one of that size.
        let wanted = believed(size, bytes.len()).max(size.min(partial.large as usize));
        partial.large = if size >= self.block_bytes { header.size } else { 0 };
        let mut own = match self.pool.take(wanted) {
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
        let PartialMessage { header, block, filled } = partial.message.take()?;
        self.unfinished_bytes -= block.len() as u64;
        self.unfinished -= 1;
        let payload = Payload::from_block(Arc::new(block), 0..filled);
        Some(ArrivedMessage { kind: header.kind, stream: header.stream, payload })
    }
}

/// The common block, if no payload still refers to it; else another one.
fn writable<'a>(block: &'a mut Option<Arc<Block>>, pool: &BufferPool, bytes: usize) -> Option<&'a mut Block> {
    if block.as_mut().is_none_or(|block| Arc::get_mut(block).is_none()) {
        *block = None;
        *block = Some(Arc::new(pool.take(bytes)?));
    }
    block.as_mut().and_then(Arc::get_mut)
}

/// Memory that is taken for a message of `size` bytes of which `got` are here.
fn believed(size: usize, got: usize) -> usize {
    size.min(TRUSTED_BYTES.max(got.saturating_mul(TRUSTED_FACTOR)))
}
