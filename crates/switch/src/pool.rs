//! Packet memory: one mapping for all ports, divided into chunks. Frames stay in place, and only their handles move.
//!
//! The layout is that of AF_XDP's UMEM: each chunk begins with 256 bytes that the kernel keeps free before the frame
//! ("headroom"). A frame longer than a chunk continues in others; their addresses are stored in the headroom.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use fanin_units::Bytes;

use crate::chunk::{HEADROOM, chunk_bytes};
use crate::config::Hugepages;
use crate::prefetch::{CACHE_LINE, prefetch};

/// Number of offsets at which our own frames begin, in turn (cache colouring).
const COLOURS: u32 = 16;
/// Chunks of 2048 bytes in one way of a cache of 16 ways and 1 MB.
const CHUNKS_A_WAY: u32 = 32;
/// Size of a huge page, the unit of mapped memory.
const HUGE: usize = 2 << 20;

/// The first part of a frame: chunk, offset and length. A longer frame continues in another chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buffer {
    chunk: u32,
    offset: u16,
    len: u16,
}

impl Buffer {
    pub(crate) const fn new(chunk: u32, offset: u16, len: u16) -> Self {
        Self { chunk, offset, len }
    }

    /// Returns the bytes of the frame in this chunk.
    #[inline]
    pub(crate) const fn len(self) -> u32 {
        self.len as u32
    }
}

/// The mapping that all workers' shares refer to.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is plain memory, and each chunk has one holder.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(bytes: usize, hugepages: Hugepages) -> io::Result<Self> {
        let map = |flags: libc::c_int| {
            // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory of ours.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
                    -1,
                    0,
                )
            };
            match NonNull::new(base.cast::<u8>()) {
                Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(base),
                _ => Err(io::Error::last_os_error()),
            }
        };
        if hugepages != Hugepages::Off {
            match map(libc::MAP_HUGETLB | libc::MAP_POPULATE) {
                Ok(base) => return Ok(Self { base, bytes }),
                Err(error) if hugepages == Hugepages::Require => return Err(error),
                Err(_) => {}
            }
        }
        let base = map(0)?;
        // Miri does not support it.
        if !cfg!(miri) {
            // SAFETY: the range is the mapping just made. Transparent huge pages are optional.
            unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(Self { base, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping made in `new`, and has no other user.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// One worker's share of the packet memory: it can access all chunks, and allocates only its own.
#[derive(Debug)]
pub struct Pool {
    mapping: Arc<Mapping>,
    shift: u32,
    chunks: u32,
    free: Vec<u32>,
    /// Freed chunks of other workers, by worker, to be sent back.
    strangers: Vec<Vec<u32>>,
    worker: usize,
    chunks_each: u32,
    /// In debug builds, true for each free chunk, to detect double frees.
    #[cfg(debug_assertions)]
    is_free: Vec<bool>,
}

impl Pool {
    /// Maps memory of this size with chunks for this MTU, and divides it into a share for each worker.
    ///
    /// # Errors
    /// If the system cannot provide this memory.
    pub fn new(memory: Bytes, mtu: Bytes, hugepages: Hugepages, workers: usize) -> io::Result<Vec<Self>> {
        let bytes = (memory.get() as usize).next_multiple_of(HUGE);
        let mapping = Arc::new(Mapping::new(bytes, hugepages)?);
        let chunk = chunk_bytes(mtu);
        let chunks = (bytes / chunk as usize) as u32;
        let each = chunks / workers as u32;
        Ok((0..workers)
            .map(|worker| {
                let first = worker as u32 * each;
                Self {
                    mapping: Arc::clone(&mapping),
                    shift: chunk.ilog2(),
                    chunks,
                    // The first chunks are allocated first.
                    free: (first..first + each).rev().collect(),
                    strangers: vec![Vec::new(); workers],
                    worker,
                    chunks_each: each,
                    #[cfg(debug_assertions)]
                    is_free: (0..chunks).map(|chunk| chunk >= first && chunk < first + each).collect(),
                }
            })
            .collect())
    }

    /// Returns the number of free chunks in this share.
    #[inline]
    pub fn free_len(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of chunks of this share, free or not.
    pub const fn share_len(&self) -> usize {
        self.chunks_each as usize
    }

    /// Returns the size of a chunk in bytes.
    #[inline]
    pub const fn chunk_bytes(&self) -> u32 {
        1 << self.shift
    }

    /// Returns the most bytes of a frame in one chunk.
    pub const fn room(&self) -> u32 {
        self.chunk_bytes() - HEADROOM
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.mapping.base.as_ptr()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.mapping.bytes
    }

    /// Allocates a chunk.
    #[inline]
    pub(crate) fn take_chunk(&mut self) -> Option<u32> {
        let chunk = self.free.pop()?;
        #[cfg(debug_assertions)]
        {
            assert!(std::mem::take(&mut self.is_free[chunk as usize]), "chunk {chunk} allocated twice");
        }
        Some(chunk)
    }

    /// Frees a chunk.
    #[inline]
    pub(crate) fn give_chunk(&mut self, chunk: u32) {
        let home = (chunk / self.chunks_each) as usize;
        if home == self.worker {
            #[cfg(debug_assertions)]
            {
                let was = std::mem::replace(&mut self.is_free[chunk as usize], true);
                assert!(!was, "chunk {chunk} freed twice");
            }
            assert!(self.free.len() < self.share_len(), "chunk {chunk} is freed, and all are free");
            self.free.push(chunk);
        } else {
            self.strangers[home].push(chunk);
        }
    }

    /// Returns the next freed chunk of another worker, to be sent there.
    #[inline]
    pub(crate) fn poll_stranger(&mut self, worker: usize) -> Option<Buffer> {
        self.strangers[worker].pop().map(|chunk| Buffer::new(chunk, 0, 0))
    }

    /// Takes back a chunk of this share that another worker has freed.
    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        self.give_chunk(buffer.chunk);
    }

    #[inline]
    fn at(&self, chunk: u32, offset: u32, len: u32) -> NonNull<u8> {
        assert!(
            chunk < self.chunks && offset + len <= self.chunk_bytes(),
            "a buffer outside of packet memory"
        );
        // SAFETY: just checked to lie inside the mapping.
        unsafe { self.mapping.base.add(((chunk as usize) << self.shift) + offset as usize) }
    }

    /// Returns the part of a frame in its first chunk.
    #[inline]
    pub fn head(&self, buffer: Buffer) -> &[u8] {
        let start = self.at(buffer.chunk, buffer.offset.into(), buffer.len.into());
        // SAFETY: inside the mapping, initialised (anonymous memory is zero), and not written to while `self` is borrowed.
        // Only the holder of a buffer uses its chunk.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), buffer.len.into()) }
    }

    /// The mutable form of [`Self::head`].
    #[inline]
    pub fn head_mut(&mut self, buffer: Buffer) -> &mut [u8] {
        let start = self.at(buffer.chunk, buffer.offset.into(), buffer.len.into());
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), buffer.len.into()) }
    }

    /// Prefetches the start of a frame.
    #[inline]
    pub fn prefetch(&self, buffer: Buffer) {
        prefetch(self.at(buffer.chunk, buffer.offset.into(), buffer.len.into()).as_ptr());
    }

    /// Returns the part of a frame after `buffer`.
    #[inline]
    pub(crate) fn next(&self, buffer: Buffer) -> Buffer {
        let [a, b, c, d, e, f, g, h] = *self.note(buffer);
        Buffer {
            chunk: u32::from_le_bytes([a, b, c, d]),
            offset: u16::from_le_bytes([e, f]),
            len: u16::from_le_bytes([g, h]),
        }
    }

    pub(crate) fn set_next(&mut self, buffer: Buffer, next: Buffer) {
        let start = self.at(buffer.chunk, 0, 8);
        let mut note = [0; 8];
        note[..4].copy_from_slice(&next.chunk.to_le_bytes());
        note[4..6].copy_from_slice(&next.offset.to_le_bytes());
        note[6..].copy_from_slice(&next.len.to_le_bytes());
        // SAFETY: the first bytes of a chunk in our hands, in the headroom that neither the frame nor the kernel uses.
        unsafe { start.cast::<[u8; 8]>().write_unaligned(note) };
    }

    fn note(&self, buffer: Buffer) -> &[u8; 8] {
        let start = self.at(buffer.chunk, 0, 8);
        // SAFETY: as in `set_next`; an array of bytes has no alignment.
        unsafe { start.cast::<[u8; 8]>().as_ref() }
    }

    /// Returns the offset of a buffer in packet memory.
    #[inline]
    pub(crate) const fn offset_of(&self, buffer: Buffer) -> u64 {
        ((buffer.chunk as u64) << self.shift) + buffer.offset as u64
    }

    /// Returns the number of a buffer's chunk.
    #[inline]
    pub(crate) const fn chunk_of(&self, buffer: Buffer) -> usize {
        buffer.chunk as usize
    }

    /// Returns the parts of a frame of `bytes` bytes.
    pub(crate) fn parts(&self, buffer: Buffer, bytes: u32) -> impl Iterator<Item = Buffer> + '_ {
        let mut rest = bytes;
        let mut next = Some(buffer);
        std::iter::from_fn(move || {
            let part = next?;
            rest = rest.saturating_sub(part.len());
            next = (rest > 0 && part.len() > 0).then(|| self.next(part));
            Some(part)
        })
    }

    /// Frees all parts of a frame of `bytes` bytes.
    #[inline]
    pub fn free(&mut self, buffer: Buffer, bytes: u32) {
        let mut part = buffer;
        let mut rest = bytes;
        while rest > part.len() && part.len() > 0 {
            let next = self.next(part);
            rest -= part.len();
            self.give_chunk(part.chunk);
            part = next;
        }
        self.give_chunk(part.chunk);
    }

    /// Copies a frame into free chunks; returns `None` and allocates none if too few are free.
    pub fn put(&mut self, frame: &[u8]) -> Option<Buffer> {
        let room = self.room() as usize;
        if self.free.len() < frame.len().div_ceil(room).max(1) {
            return None;
        }
        let mut first: Option<Buffer> = None;
        let mut last: Option<Buffer> = None;
        let mut rest = frame;
        while first.is_none() || !rest.is_empty() {
            let (part, more) = rest.split_at(rest.len().min(room));
            let chunk = self.take_chunk()?;
            // Frames at equal offsets of their chunks would share a few sets of the cache. Therefore neighbours, and frames a
            // cache way apart, get different offsets.
            let colours = COLOURS.min((room - part.len()) as u32 / CACHE_LINE as u32 + 1);
            let offset = HEADROOM + CACHE_LINE as u32 * ((chunk + chunk / CHUNKS_A_WAY) % colours);
            let buffer = Buffer::new(chunk, offset as u16, part.len() as u16);
            self.head_mut(buffer).copy_from_slice(part);
            if let Some(last) = last {
                self.set_next(last, buffer);
            }
            first = first.or(Some(buffer));
            last = Some(buffer);
            rest = more;
        }
        first
    }

    /// Appends all bytes of a frame to `into`.
    pub fn copy_out(&self, buffer: Buffer, bytes: u32, into: &mut Vec<u8>) {
        for part in self.parts(buffer, bytes) {
            into.extend_from_slice(self.head(part));
        }
    }

    /// Adds `bytes` bytes at the front of a frame. Returns false if the headroom is used up.
    pub(crate) fn grow_front(&self, buffer: &mut Buffer, bytes: u16) -> bool {
        // The first eight bytes of the chunk hold the address of the next part.
        let fits = buffer.offset >= bytes + 8;
        if fits {
            buffer.offset -= bytes;
            buffer.len += bytes;
        }
        fits
    }

    /// Cuts `bytes` bytes off the front of a frame; its first chunk must have them.
    pub(crate) fn cut_front(&self, buffer: &mut Buffer, bytes: u16) {
        assert!(buffer.len >= bytes, "a frame of {} bytes loses {bytes}", buffer.len);
        buffer.offset += bytes;
        buffer.len -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(mtu: u64) -> Pool {
        Pool::new(Bytes::new(4 << 20), Bytes::new(mtu), Hugepages::Off, 1).unwrap().remove(0)
    }

    #[test]
    fn frames_of_any_length_come_out_as_they_went_in() {
        for (mtu, sizes) in [(1500, vec![0, 1, 60, 1514, 1792]), (9000, vec![60, 3840, 3841, 9018, 12_000])] {
            let mut pool = pool(mtu);
            let before = pool.free_len();
            for size in sizes {
                let frame: Vec<u8> = (0..size).map(|n: usize| (n * 7 % 251) as u8).collect();
                let buffer = pool.put(&frame).unwrap();
                let mut out = Vec::new();
                pool.copy_out(buffer, size as u32, &mut out);
                assert!(out == frame, "{size} bytes");
                pool.free(buffer, size as u32);
                assert_eq!(pool.free_len(), before);
            }
        }
    }

    #[test]
    fn an_empty_pool_gives_nothing_and_loses_nothing() {
        let mut pool = pool(9000);
        let mut held = Vec::new();
        while let Some(buffer) = pool.put(&[1; 9000]) {
            held.push(buffer);
        }
        assert!(pool.free_len() < 3);
        for buffer in held {
            pool.free(buffer, 9000);
        }
        assert_eq!(pool.free_len(), pool.share_len());
    }

    #[test]
    fn workers_have_shares_of_their_own() {
        let mut pools = Pool::new(Bytes::new(4 << 20), Bytes::new(1500), Hugepages::Off, 2).unwrap();
        let frame = pools[0].put(&[7; 100]).unwrap();
        assert_eq!(pools[1].head(frame), [7; 100]);
        pools[1].free(frame, 100);
        let chunk = pools[1].poll_stranger(0).unwrap();
        let before = pools[0].free_len();
        pools[0].give_back(chunk);
        assert_eq!(pools[0].free_len(), before + 1);
    }
}
