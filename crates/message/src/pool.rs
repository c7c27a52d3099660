//! Reused buffers, and payloads that share them.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::wake::Waker;

/// Smallest buffer that a pool lends, bytes.
const CLASS_BYTES_MIN: usize = 512;
/// Number of size classes: four for each factor of two, so that a buffer is at most a quarter larger than requested.
const CLASSES: usize = 96;

/// Bytes of a message, lent from a buffer. The buffer returns to its pool when its last payload is dropped.
///
/// Cloning and slicing share the buffer without a copy. A payload can be sent on to other peers, and kept without
/// limit; [`Payload::keep`] describes the cost.
#[derive(Clone)]
pub struct Payload {
    store: Store,
    start: usize,
    end: usize,
}

#[derive(Clone)]
enum Store {
    Static(&'static [u8]),
    Vector(Arc<Vec<u8>>),
    Slice(Arc<[u8]>),
    Block(Arc<Block>),
}

impl Payload {
    /// A payload without bytes.
    pub const EMPTY: Self = Self::from_static(&[]);

    /// Creates a payload of static bytes.
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self { store: Store::Static(bytes), start: 0, end: bytes.len() }
    }

    pub(crate) fn from_block(block: Arc<Block>, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= block.data.len());
        Self { store: Store::Block(block), start: range.start, end: range.end }
    }

    /// Returns bytes `range` of this payload, which share its buffer.
    ///
    /// # Panics
    ///
    /// If `range` is out of bounds.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {} bytes", self.len());
        Self { store: self.store.clone(), start: self.start + range.start, end: self.start + range.end }
    }

    /// Returns a payload for long keeping. If the payload fills less than half of its buffer, it is copied to a buffer
    /// of its own size.
    ///
    /// Many messages share one receive buffer, which is reused after all of them are dropped. A kept small payload
    /// would hold the whole buffer.
    #[must_use]
    pub fn keep(self) -> Self {
        if self.len() * 2 >= self.buffer_bytes() { self } else { Self::from(self.to_vec()) }
    }

    /// Returns the memory that this payload keeps alive, in bytes. Other payloads in the same buffer share this memory.
    pub fn buffer_bytes(&self) -> usize {
        match &self.store {
            Store::Static(bytes) => bytes.len(),
            Store::Vector(bytes) => bytes.capacity(),
            Store::Slice(bytes) => bytes.len(),
            Store::Block(block) => block.data.len(),
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all: &[u8] = match &self.store {
            Store::Static(bytes) => bytes,
            Store::Vector(bytes) => bytes,
            Store::Slice(bytes) => bytes,
            Store::Block(block) => &block.data,
        };
        &all[self.start..self.end]
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Arc::new(bytes))
    }
}

impl From<Arc<Vec<u8>>> for Payload {
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        let end = bytes.len();
        Self { store: Store::Vector(bytes), start: 0, end }
    }
}

impl From<Arc<[u8]>> for Payload {
    fn from(bytes: Arc<[u8]>) -> Self {
        let end = bytes.len();
        Self { store: Store::Slice(bytes), start: 0, end }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        write!(f, "Payload({} B: {:02x?}", self.len(), &self[..self.len().min(SHOWN)])?;
        f.write_str(if self.len() > SHOWN { "…)" } else { ")" })
    }
}

/// A buffer of a pool. Its bytes are always initialised, so reading into it needs no `unsafe`.
pub(crate) struct Block {
    data: Box<[u8]>,
    pool: Arc<Shared>,
    /// The peer whose received messages the buffer holds.
    peer: Option<Arc<PeerMemory>>,
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    /// Counts the buffer for a peer, and no longer for the former one.
    #[inline]
    pub(crate) fn count_for(&mut self, peer: Option<&Arc<PeerMemory>>) {
        let is_counted = peer.map_or(self.peer.is_none(), |peer| self.is_of(peer));
        if is_counted {
            return;
        }
        if let Some(peer) = peer {
            peer.held_bytes.fetch_add(self.data.len() as u64, Ordering::SeqCst);
        }
        if let Some(former) = std::mem::replace(&mut self.peer, peer.cloned()) {
            former.release(self.data.len() as u64, &self.pool);
        }
    }

    /// Returns true if the buffer is counted for `peer`.
    pub(crate) fn is_of(&self, peer: &Arc<PeerMemory>) -> bool {
        self.peer.as_ref().is_some_and(|owner| Arc::ptr_eq(owner, peer))
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.data
    }
}

impl std::ops::DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.count_for(None);
        self.pool.take_back(std::mem::take(&mut self.data));
    }
}

/// Memory of the received messages of one peer, with its limit ([`Limits::peer_receive_bytes_max`]). The limit binds while
/// more than half of the pool is lent.
///
/// [`Limits::peer_receive_bytes_max`]: crate::Limits::peer_receive_bytes_max
#[derive(Debug)]
pub(crate) struct PeerMemory {
    held_bytes: AtomicU64,
    held_bytes_max: u64,
    /// Size in bytes of the buffer for which the peer waits; 0 if it does not wait.
    wanted_bytes: AtomicU64,
    /// True if the peer is read although the memory of all peers is used up.
    is_urgent: bool,
}

impl PeerMemory {
    pub(crate) fn new(held_bytes_max: u64, is_urgent: bool) -> Arc<Self> {
        Arc::new(Self { held_bytes: 0.into(), held_bytes_max, wanted_bytes: 0.into(), is_urgent })
    }

    /// Returns true if the peer is read although the memory of all peers is used up.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// As [`fits`](Self::fits); if it returns false, the endpoint is woken when the peer may have the buffer.
    pub(crate) fn admits(&self, bytes: usize, pool: &BufferPool) -> bool {
        if self.fits(bytes as u64, pool) {
            return true;
        }
        self.wanted_bytes.store(bytes as u64, Ordering::SeqCst);
        // Memory may have returned between the two lines above, before `wanted_bytes` was set.
        self.ends_wait(pool)
    }

    /// Returns true if the peer waits for no buffer, or if there is now room for it; it then waits no longer.
    pub(crate) fn ends_wait(&self, pool: &BufferPool) -> bool {
        let wanted = self.wanted_bytes.load(Ordering::SeqCst);
        if !self.fits(wanted, pool) {
            // Other peers' buffers may end the wait, too. One may have returned before `wanted` was set.
            pool.shared.wanted.store(true, Ordering::SeqCst);
            if !self.fits(wanted, pool) {
                return false;
            }
        }
        self.wanted_bytes.store(0, Ordering::SeqCst);
        true
    }

    /// Returns true if the peer may have another buffer of `bytes`. A peer without a buffer always may.
    #[inline]
    pub(crate) fn fits(&self, bytes: u64, pool: &BufferPool) -> bool {
        self.fits_in(bytes, &pool.shared)
    }

    #[inline]
    fn fits_in(&self, bytes: u64, pool: &Shared) -> bool {
        let held = self.held_bytes.load(Ordering::SeqCst);
        held == 0 || bytes == 0 || held + bytes <= self.held_bytes_max || !pool.is_scarce(bytes)
    }

    /// Returns the bytes of the buffers that hold the peer's messages.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::SeqCst)
    }

    /// Returns true if the peer waits for a buffer that its limit does not permit now.
    pub(crate) fn is_full(&self, pool: &BufferPool) -> bool {
        !self.fits(self.wanted_bytes.load(Ordering::SeqCst), pool)
    }

    fn release(&self, bytes: u64, pool: &Shared) {
        self.held_bytes.fetch_sub(bytes, Ordering::SeqCst);
        let wanted = self.wanted_bytes.load(Ordering::SeqCst);
        if wanted > 0 && self.fits_in(wanted, pool) {
            pool.waker.wake();
        }
    }
}

/// Use of the memory in which an endpoint receives bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveMemory {
    /// Bytes of all buffers in use: of received messages, of incomplete ones, and the read block.
    pub lent_bytes: u64,
    /// Bytes of the buffers that hold the messages of one connected peer; the largest number of all peers.
    pub peer_bytes: u64,
    /// True if reading from a peer is stopped until its own messages are dropped.
    pub is_peer_stopped: bool,
    /// True if reading from a connection is stopped although there is memory for it.
    pub is_stopped_with_room: bool,
}

/// Buffers of one endpoint, with a limit of the bytes lent.
#[derive(Clone)]
pub(crate) struct BufferPool {
    shared: Arc<Shared>,
}

struct Shared {
    lent_bytes: AtomicU64,
    lent_bytes_max: u64,
    idle_bytes_max: u64,
    idle: Mutex<IdleBuffers>,
    /// True if a connection waits for memory and has to be woken.
    wanted: AtomicBool,
    waker: Waker,
}

struct IdleBuffers {
    bytes: u64,
    classes: Vec<Vec<Box<[u8]>>>,
}

impl BufferPool {
    pub(crate) fn new(lent_bytes_max: u64, idle_bytes_max: u64, waker: Waker) -> Self {
        let idle = Mutex::new(IdleBuffers { bytes: 0, classes: (0..CLASSES).map(|_| Vec::new()).collect() });
        Self {
            shared: Arc::new(Shared {
                lent_bytes: AtomicU64::new(0),
                lent_bytes_max,
                idle_bytes_max,
                idle,
                wanted: AtomicBool::new(false),
                waker,
            }),
        }
    }

    /// Returns the bytes of all buffers that are lent now.
    pub(crate) fn lent_bytes(&self) -> u64 {
        self.shared.lent_bytes.load(Ordering::Relaxed)
    }

    /// Lends a buffer of at least `bytes`. Returns `None` if that exceeds the limit; the pool then wakes the endpoint
    /// when memory returns. A pool without lent buffers always lends one, of any size.
    pub(crate) fn take(&self, bytes: usize) -> Option<Block> {
        self.admits(size_of_class(class(bytes)) as u64).then(|| self.take_anyway(bytes))
    }

    /// Returns true if the limit permits to lend `bytes`, or if nothing is lent. If not, the pool wakes the endpoint when
    /// memory returns.
    pub(crate) fn admits(&self, bytes: u64) -> bool {
        let shared = &self.shared;
        if !self.has_room(bytes) {
            shared.wanted.store(true, Ordering::SeqCst);
            // Memory may have returned between the two lines above, before `wanted` was set.
            if !self.has_room(bytes) {
                return false;
            }
            shared.wanted.store(false, Ordering::SeqCst);
        }
        true
    }

    /// Returns true if the limit permits to lend `bytes`, or if nothing is lent.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let lent = self.shared.lent_bytes.load(Ordering::SeqCst);
        lent == 0 || lent + bytes <= self.shared.lent_bytes_max
    }

    /// Returns true if the limit holds, or if a buffer of `bytes` is the only one lent.
    pub(crate) fn keeps_limit_with(&self, bytes: usize) -> bool {
        self.lent_bytes() <= self.shared.lent_bytes_max.max(bytes as u64)
    }

    /// Lends a buffer of at least `bytes`, even beyond the limit; the caller bounds their number.
    pub(crate) fn take_anyway(&self, bytes: usize) -> Block {
        let class = class(bytes);
        let size = size_of_class(class);
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let data = idle.classes[class].pop();
        if data.is_some() {
            idle.bytes -= size as u64;
        }
        drop(idle);
        self.shared.lent_bytes.fetch_add(size as u64, Ordering::SeqCst);
        let data = data.unwrap_or_else(|| vec![0; size].into());
        Block { data, pool: Arc::clone(&self.shared), peer: None }
    }
}

impl Shared {
    /// Returns true if more than half of the limit is lent after another `bytes`.
    fn is_scarce(&self, bytes: u64) -> bool {
        self.lent_bytes.load(Ordering::SeqCst) + bytes > self.lent_bytes_max / 2
    }

    fn take_back(&self, data: Box<[u8]>) {
        let bytes = data.len() as u64;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.bytes + bytes <= self.idle_bytes_max {
            idle.bytes += bytes;
            idle.classes[class(data.len())].push(data);
            drop(idle);
        }
        self.lent_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if self.wanted.swap(false, Ordering::SeqCst) {
            self.waker.wake();
        }
    }
}

/// Returns the class of buffers for `bytes`.
fn class(bytes: usize) -> usize {
    let bytes = bytes.max(CLASS_BYTES_MIN);
    // Factor of two above the smallest class, and its quarter, rounded up.
    let octave = (bytes - 1).ilog2() as usize;
    let quarter = ((bytes - 1) >> (octave - 2)) & 3;
    ((octave + 1) * 4 + quarter).saturating_sub(CLASS_BYTES_MIN.ilog2() as usize * 4 + 3)
}

/// Returns the size of the buffers of a class, in bytes.
fn size_of_class(class: usize) -> usize {
    let position = class + CLASS_BYTES_MIN.ilog2() as usize * 4 + 3;
    let (octave, quarter) = (position / 4 - 1, position % 4);
    (1 << octave) + ((quarter + 1) << (octave - 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(max: u64) -> BufferPool {
        BufferPool::new(max, max, Waker::new().unwrap())
    }

    #[test]
    fn a_buffer_is_at_least_as_large_and_at_most_a_quarter_larger() {
        for bytes in
            (512..10_000).chain([65_535, 65_536, 65_537, 1_000_000, (1 << 20) + 1, u32::MAX as usize])
        {
            let size = size_of_class(class(bytes));
            assert!(size >= bytes && size * 4 <= bytes * 5 + 8, "{bytes} in {size}");
            assert_eq!(class(size), class(bytes), "{bytes}");
        }
        assert_eq!(size_of_class(class(1)), CLASS_BYTES_MIN);
        assert!(class(u32::MAX as usize) < CLASSES);
    }

    #[test]
    fn buffers_come_back_and_the_limit_holds() {
        let pool = pool(4096);
        let first = pool.take(3000).unwrap();
        let size = first.len() as u64;
        assert_eq!(pool.lent_bytes(), size);
        assert!(pool.take(3000).is_none());
        let address = first.as_ptr();
        let payload = Payload::from_block(Arc::new(first), 10..20);
        let other = payload.slice(2..4);
        drop(payload);
        assert_eq!(pool.lent_bytes(), size, "a slice keeps the buffer");
        drop(other);
        assert_eq!(pool.lent_bytes(), 0);
        assert_eq!(pool.take(3000).unwrap().as_ptr(), address, "the same buffer again");
        assert!(pool.take(1 << 20).is_some(), "one buffer may always be lent");
    }

    #[test]
    fn keeping_copies_only_what_would_hold_back_much() {
        let pool = pool(1 << 20);
        let block = Arc::new(pool.take(4096).unwrap());
        let small = Payload::from_block(Arc::clone(&block), 0..100).keep();
        let large = Payload::from_block(block, 0..3000).keep();
        assert_eq!((small.buffer_bytes(), large.buffer_bytes()), (100, 4096));
        assert_eq!(format!("{small:?}"), format!("Payload(100 B: {:02x?}…)", [0; 16]));
    }
}
