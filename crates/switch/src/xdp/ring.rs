//! The rings that a socket shares with the kernel. Each has one producer and one consumer; one of them is the kernel.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kernel wants to be woken (XDP_RING_NEED_WAKEUP).
const NEED_WAKEUP: u32 = 1;

/// A ring, with our position, which is published to the kernel in batches.
#[derive(Debug)]
pub(super) struct Ring<T> {
    base: NonNull<u8>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    slots: NonNull<T>,
    mask: u32,
    /// Our position, and the last known one of the other side.
    mine: u32,
    theirs: u32,
}

// SAFETY: a ring is used by one thread at a time, which owns it; the kernel's side is synchronised by the atomics.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of `len` slots, a power of two, that has been set up on the socket.
    pub(super) fn map(
        socket: &OwnedFd,
        offset: i64,
        offsets: &libc::xdp_ring_offset,
        len: u32,
    ) -> io::Result<Self> {
        let bytes = offsets.desc as usize + len as usize * size_of::<T>();
        // SAFETY: a shared mapping of the socket's own ring at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                offset,
            )
        };
        let Some(base) =
            NonNull::new(base.cast::<u8>()).filter(|base| base.as_ptr().cast() != libc::MAP_FAILED)
        else {
            return Err(io::Error::last_os_error());
        };
        // SAFETY: the kernel gave these offsets for the mapping just made, aligned for their types.
        let at = |offset: u64| unsafe { base.add(offset as usize) };
        Ok(Self {
            base,
            bytes,
            producer: at(offsets.producer).cast(),
            consumer: at(offsets.consumer).cast(),
            flags: at(offsets.flags).cast(),
            slots: at(offsets.desc).cast(),
            mask: len - 1,
            mine: 0,
            theirs: 0,
        })
    }

    #[inline]
    fn atomic(of: &NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: lies in the mapping, which lives as long as the ring.
        unsafe { of.as_ref() }
    }

    #[inline]
    fn slot(&self, position: u32) -> NonNull<T> {
        // SAFETY: masked to lie among the slots of the mapping.
        unsafe { self.slots.add((position & self.mask) as usize) }
    }

    /// Returns true if the kernel must be called for progress.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        Self::atomic(&self.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }

    // The producer's side: fill and transmit.

    /// Returns the number of free slots.
    #[inline]
    pub(super) fn room(&mut self) -> u32 {
        let room = |ring: &Self| ring.mask + 1 - ring.mine.wrapping_sub(ring.theirs);
        if room(self) <= self.mask / 2 {
            self.theirs = Self::atomic(&self.consumer).load(Ordering::Acquire);
        }
        room(self)
    }

    /// Fills a slot; there must be room. The kernel sees it after [`Self::submit`].
    #[inline]
    pub(super) fn put(&mut self, value: T) {
        // SAFETY: a slot that the kernel has consumed, as `room` said, and will not read before `submit`.
        unsafe { self.slot(self.mine).write(value) };
        self.mine = self.mine.wrapping_add(1);
    }

    /// Publishes the filled slots to the kernel.
    #[inline]
    pub(super) fn submit(&self) {
        Self::atomic(&self.producer).store(self.mine, Ordering::Release);
    }

    /// Returns the number of slots that the kernel has not consumed yet.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.mine.wrapping_sub(Self::atomic(&self.consumer).load(Ordering::Relaxed))
    }

    /// Returns the values that the kernel has not consumed, after its last access.
    pub(super) fn unconsumed(&self) -> impl Iterator<Item = T> + '_ {
        let waiting = self.waiting();
        // SAFETY: slots that this side has filled, and the kernel reads no more.
        (0..waiting)
            .map(move |n| unsafe { self.slot(self.mine.wrapping_sub(waiting).wrapping_add(n)).read() })
    }

    /// Returns the number of values that this side has put or taken, modulo 2³².
    pub(super) const fn position(&self) -> u32 {
        self.mine
    }

    // The consumer's side: receive and completion.

    /// Takes the next value, if any.
    #[inline]
    pub(super) fn take(&mut self) -> Option<T> {
        if self.mine == self.theirs {
            self.theirs = Self::atomic(&self.producer).load(Ordering::Acquire);
            if self.mine == self.theirs {
                return None;
            }
        }
        // SAFETY: a slot that the kernel has filled, as its position said, and does not change before `release`.
        let value = unsafe { self.slot(self.mine).read() };
        self.mine = self.mine.wrapping_add(1);
        Some(value)
    }

    /// Returns the taken slots to the kernel.
    #[inline]
    pub(super) fn release(&self) {
        Self::atomic(&self.consumer).store(self.mine, Ordering::Release);
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, which has no other user.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
