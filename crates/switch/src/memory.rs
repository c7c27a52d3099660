//! Ports in memory: for tests, benchmarks, and programs that make their own frames.

use std::collections::VecDeque;

use crate::driver::{Driver, Received};
use crate::pool::{Buffer, Pool};
use crate::prefetch::{CACHE_LINE, prefetch};

/// A port in memory. The switch receives injected frames; the test takes sent ones.
#[derive(Debug)]
pub struct MemoryPort {
    pub(crate) incoming: VecDeque<Received<Buffer>>,
    pub(crate) outgoing: VecDeque<Received<Buffer>>,
    /// Free slots of its transmit ring.
    pub(crate) room: usize,
    pub(crate) is_up: bool,
}

impl Default for MemoryPort {
    fn default() -> Self {
        Self { incoming: VecDeque::new(), outgoing: VecDeque::new(), room: usize::MAX, is_up: true }
    }
}

/// Any number of ports in memory.
#[derive(Debug)]
pub struct MemoryPorts {
    pool: Pool,
    ports: Vec<MemoryPort>,
}

impl MemoryPorts {
    /// Makes ports over a worker's share of packet memory.
    pub fn new(pool: Pool, ports: usize) -> Self {
        Self { pool, ports: (0..ports).map(|_| MemoryPort::default()).collect() }
    }

    /// Injects a frame at a port; returns false without packet memory.
    pub fn inject(&mut self, port: usize, frame: &[u8]) -> bool {
        let Some(handle) = self.pool.put(frame) else { return false };
        self.ports[port].incoming.push_back(Received { handle, bytes: frame.len() as u32 });
        true
    }

    /// Takes the next frame that the switch has sent by a port.
    pub fn take(&mut self, port: usize) -> Option<Vec<u8>> {
        let frame = self.ports[port].outgoing.pop_front()?;
        let mut bytes = Vec::with_capacity(frame.bytes as usize);
        self.pool.copy_out(frame.handle, frame.bytes, &mut bytes);
        self.pool.free(frame.handle, frame.bytes);
        Some(bytes)
    }

    /// Limits the frames that a port still sends.
    pub fn set_room(&mut self, port: usize, frames: usize) {
        self.ports[port].room = frames;
    }

    /// Connects or cuts a port's link.
    pub fn set_up(&mut self, port: usize, is_up: bool) {
        self.ports[port].is_up = is_up;
    }

    /// Returns the packet memory.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl MemoryPort {
    pub(crate) fn receive(&mut self, frames_max: usize, into: &mut Vec<Received<Buffer>>) {
        let count = frames_max.min(self.incoming.len());
        let (first, second) = self.incoming.as_slices();
        let first = &first[..count.min(first.len())];
        into.extend_from_slice(first);
        into.extend_from_slice(&second[..count - first.len()]);
        self.incoming.drain(..count);
    }

    pub(crate) fn transmit(&mut self, frames: &[Received<Buffer>]) -> usize {
        let count = if self.is_up { frames.len().min(self.room) } else { 0 };
        self.room = self.room.saturating_sub(count);
        self.outgoing.extend(&frames[..count]);
        count
    }
}

/// The methods of [`Driver`] that are the same for every driver over a [`Pool`].
macro_rules! over_a_pool {
    () => {
        #[inline]
        fn head(&self, handle: Buffer) -> &[u8] {
            self.pool.head(handle)
        }

        #[inline]
        fn head_mut(&mut self, handle: Buffer) -> &mut [u8] {
            self.pool.head_mut(handle)
        }

        fn grow_front(&mut self, handle: &mut Buffer, bytes: u16) -> bool {
            self.pool.grow_front(handle, bytes)
        }

        fn cut_front(&mut self, handle: &mut Buffer, bytes: u16) {
            self.pool.cut_front(handle, bytes);
        }

        fn make(&mut self, frame: &[u8]) -> Option<Buffer> {
            self.pool.put(frame)
        }

        fn copy_out(&self, frame: Received<Buffer>, into: &mut Vec<u8>) {
            self.pool.copy_out(frame.handle, frame.bytes, into);
        }

        #[inline]
        fn free(&mut self, frame: Received<Buffer>) {
            self.pool.free(frame.handle, frame.bytes);
        }

        #[inline]
        fn room(&self) -> usize {
            self.pool.free_len()
        }

        fn poll_stray(&mut self, worker: usize) -> Option<Buffer> {
            self.pool.poll_stranger(worker)
        }

        fn handle_stray(&mut self, handle: Buffer) {
            self.pool.give_back(handle);
        }

        fn capacity(&self) -> usize {
            self.pool.share_len()
        }
    };
}
pub(crate) use over_a_pool;

impl Driver for MemoryPorts {
    type Handle = Buffer;

    fn ports_len(&self) -> usize {
        self.ports.len()
    }

    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<Buffer>>) {
        let start = into.len();
        self.ports[port].receive(frames_max, into);
        for frame in &into[start..] {
            self.pool.prefetch(frame.handle);
        }
    }

    fn transmit(&mut self, port: usize, frames: &[Received<Buffer>]) -> usize {
        self.ports[port].transmit(frames)
    }

    fn flush(&mut self, _: usize) {}

    fn is_up(&mut self, port: usize) -> bool {
        self.ports[port].is_up
    }

    over_a_pool!();
}

/// Ports in memory for benchmarks: each sent frame is received again, so that only the switch takes time.
#[derive(Debug)]
pub struct CirculatingPorts {
    pool: Pool,
    incoming: Vec<VecDeque<Received<Buffer>>>,
    /// The port of each frame, by its chunk.
    origins: Vec<u16>,
    /// Buffers for copies of payloads: written to a frame on receipt, read on transmission, as a device does.
    payload: Option<(Vec<u8>, Vec<u8>)>,
    /// Frames sent since the start.
    pub sent: u64,
    /// Bytes of the frames sent.
    pub sent_bytes: u64,
}

/// Bytes at the start of a frame that are not copied: its headers.
const HEADERS: usize = 64;
/// Distance of the prefetch ahead of the copy, in frames: a device has many cache lines in flight.
const FETCHES_AHEAD: usize = 2;

/// Prefetches the frame [`FETCHES_AHEAD`] places later in a burst.
#[inline]
fn fetch_ahead(pool: &Pool, frames: &[Received<Buffer>], place: usize) {
    if let Some(frame) = frames.get(place + FETCHES_AHEAD) {
        pool.head(frame.handle).chunks(CACHE_LINE).for_each(|line| prefetch(line.as_ptr()));
    }
}

impl CirculatingPorts {
    /// Makes ports with these frames, each with its input port. With `copies`, payloads are written on
    /// receipt and read on transmission, as devices do.
    ///
    /// # Panics
    /// If the pool is too small for the frames, or a frame is longer than a chunk.
    pub fn new<'a>(
        mut pool: Pool,
        ports: usize,
        frames: impl IntoIterator<Item = (usize, &'a [u8])>,
        copies: bool,
    ) -> Self {
        let mut origins = vec![0; pool.bytes() / pool.chunk_bytes() as usize];
        let mut incoming: Vec<VecDeque<_>> = (0..ports).map(|_| VecDeque::new()).collect();
        for (port, frame) in frames {
            let handle = pool.put(frame).expect("packet memory for all frames");
            assert_eq!(handle.len() as usize, frame.len(), "a circulating frame lies in one chunk");
            origins[pool.chunk_of(handle)] = port as u16;
            incoming[port].push_back(Received { handle, bytes: frame.len() as u32 });
        }
        let room = pool.room() as usize;
        let payload = copies.then(|| (vec![7; room], vec![0; room]));
        Self { pool, incoming, origins, payload, sent: 0, sent_bytes: 0 }
    }

    /// Returns the number of frames that wait to be received.
    pub fn waiting(&self) -> usize {
        self.incoming.iter().map(VecDeque::len).sum()
    }
}

impl Driver for CirculatingPorts {
    type Handle = Buffer;

    fn ports_len(&self) -> usize {
        self.incoming.len()
    }

    #[inline]
    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<Buffer>>) {
        let incoming = &mut self.incoming[port];
        let count = frames_max.min(incoming.len());
        let start = into.len();
        let (first, second) = incoming.as_slices();
        let first = &first[..count.min(first.len())];
        into.extend_from_slice(first);
        into.extend_from_slice(&second[..count - first.len()]);
        drop(incoming.drain(..count));
        // A device writes headers first.
        for frame in &into[start..] {
            self.pool.prefetch(frame.handle);
        }
        if let Some((payload, _)) = &self.payload {
            let frames = &into[start..];
            for (place, frame) in frames.iter().enumerate() {
                fetch_ahead(&self.pool, frames, place);
                if let Some(data) = self.pool.head_mut(frame.handle).get_mut(HEADERS..) {
                    data.copy_from_slice(&payload[..data.len()]);
                }
            }
        }
    }

    #[inline]
    fn transmit(&mut self, _: usize, frames: &[Received<Buffer>]) -> usize {
        if let Some((_, sink)) = &mut self.payload {
            for (place, frame) in frames.iter().enumerate() {
                fetch_ahead(&self.pool, frames, place);
                let data = self.pool.head(frame.handle);
                sink[..data.len()].copy_from_slice(data);
            }
        }
        for frame in frames {
            self.sent_bytes += u64::from(frame.bytes);
            let origin = usize::from(self.origins[self.pool.chunk_of(frame.handle)]);
            self.incoming[origin].push_back(*frame);
        }
        self.sent += frames.len() as u64;
        frames.len()
    }

    fn flush(&mut self, _: usize) {}

    fn is_up(&mut self, _: usize) -> bool {
        true
    }

    over_a_pool!();
}
