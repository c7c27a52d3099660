//! A bounded ring from one thread to another: single producer, single consumer.
//!
//! Each end keeps its own position, and reads the other's only when the ring looks full or empty. Each position has a cache
//! line of its own, so that the ends do not share one. `tests/interleavings.rs` tries every interleaving.

use std::mem::MaybeUninit;

use crate::sync::{Arc, AtomicUsize, Ordering, UnsafeCell};

#[repr(align(64))]
#[derive(Debug)]
struct RingPosition(AtomicUsize);

#[derive(Debug)]
struct SpscRing<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// The next slot to be filled.
    tail: RingPosition,
    /// The next slot to be emptied.
    head: RingPosition,
}

// SAFETY: the producer touches a slot only while it is empty, the consumer only while it is full. The positions, written with
// Release and read with Acquire, pass the slot from one to the other. There is one of each.
unsafe impl<T: Send> Sync for SpscRing<T> {}
// SAFETY: as above; either thread may drop the ring.
unsafe impl<T: Send> Send for SpscRing<T> {}

/// The producer's end.
#[derive(Debug)]
pub(crate) struct SpscSender<T> {
    ring: Arc<SpscRing<T>>,
    tail: usize,
    head_seen: usize,
}

/// The consumer's end.
#[derive(Debug)]
pub(crate) struct SpscReceiver<T> {
    ring: Arc<SpscRing<T>>,
    head: usize,
    tail_seen: usize,
}

/// Makes a ring for `len` values, rounded up to a power of two. Values are plain; values left at the end are not dropped.
pub(crate) fn spsc<T: Copy>(len: usize) -> (SpscSender<T>, SpscReceiver<T>) {
    let len = len.max(1).next_power_of_two();
    let ring = Arc::new(SpscRing {
        slots: (0..len).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        tail: RingPosition(AtomicUsize::new(0)),
        head: RingPosition(AtomicUsize::new(0)),
    });
    (
        SpscSender { ring: Arc::clone(&ring), tail: 0, head_seen: 0 },
        SpscReceiver { ring, head: 0, tail_seen: 0 },
    )
}

impl<T: Copy> SpscSender<T> {
    /// Appends a value.
    ///
    /// # Errors
    /// The value itself if the ring is full.
    #[inline]
    pub(crate) fn put(&mut self, value: T) -> Result<(), T> {
        let len = self.ring.slots.len();
        if self.tail.wrapping_sub(self.head_seen) == len {
            self.head_seen = self.ring.head.0.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head_seen) == len {
                return Err(value);
            }
        }
        self.ring.slots[self.tail & (len - 1)].with_mut(|slot| {
            // SAFETY: the slot is empty, as the receiver's position says, and ours until the store below.
            unsafe { (*slot).write(value) };
        });
        self.tail = self.tail.wrapping_add(1);
        self.ring.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }
}

impl<T: Copy> SpscReceiver<T> {
    /// Returns true if the ring is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.ring.tail.0.load(Ordering::Acquire)
    }

    /// Removes the oldest value.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<T> {
        if self.head == self.tail_seen {
            self.tail_seen = self.ring.tail.0.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return None;
            }
        }
        let last = self.ring.slots.len() - 1;
        let value = self.ring.slots[self.head & last].with(|slot| {
            // SAFETY: the slot is full, as the sender's position says, and ours until the store below.
            unsafe { (*slot).assume_init() }
        });
        self.head = self.head.wrapping_add(1);
        self.ring.head.0.store(self.head, Ordering::Release);
        Some(value)
    }
}
