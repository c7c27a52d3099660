//! A ring between two workers: one puts in, the other takes out (single producer, single consumer).
//!
//! Both ends keep their own position in a cache line of their own, and look at the other's only where they must.
//! `tests/interleavings.rs` tries every interleaving of the two.

use std::mem::MaybeUninit;

use crate::sync::{Arc, AtomicUsize, Ordering, UnsafeCell};

#[repr(align(64))]
#[derive(Debug)]
struct Position(AtomicUsize);

#[derive(Debug)]
struct Shared<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// The next slot to be filled.
    tail: Position,
    /// The next slot to be emptied.
    head: Position,
}

// SAFETY: a slot is touched by the sender only while it is empty and by the receiver only while it is full; the positions,
// written with Release and read with Acquire, pass it from one to the other. There is one of each.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above; what is left in the slots may be dropped by either side's thread.
unsafe impl<T: Send> Send for Shared<T> {}

/// The end that puts in.
#[derive(Debug)]
pub(crate) struct Sender<T> {
    shared: Arc<Shared<T>>,
    tail: usize,
    head_seen: usize,
}

/// The end that takes out.
#[derive(Debug)]
pub(crate) struct Receiver<T> {
    shared: Arc<Shared<T>>,
    head: usize,
    tail_seen: usize,
}

/// A ring for `len` values, rounded up to a power of two. Values are plain: those left in it at the end are forgotten.
pub(crate) fn lane<T: Copy>(len: usize) -> (Sender<T>, Receiver<T>) {
    let len = len.max(1).next_power_of_two();
    let shared = Arc::new(Shared {
        slots: (0..len).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        tail: Position(AtomicUsize::new(0)),
        head: Position(AtomicUsize::new(0)),
    });
    (
        Sender { shared: Arc::clone(&shared), tail: 0, head_seen: 0 },
        Receiver { shared, head: 0, tail_seen: 0 },
    )
}

impl<T: Copy> Sender<T> {
    /// Puts a value in; where the ring is full, gives it back.
    #[inline]
    pub(crate) fn put(&mut self, value: T) -> Result<(), T> {
        let len = self.shared.slots.len();
        if self.tail.wrapping_sub(self.head_seen) == len {
            self.head_seen = self.shared.head.0.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head_seen) == len {
                return Err(value);
            }
        }
        self.shared.slots[self.tail & (len - 1)].with_mut(|slot| {
            // SAFETY: the slot is empty, as the receiver's position says, and ours until the store below.
            unsafe { (*slot).write(value) };
        });
        self.tail = self.tail.wrapping_add(1);
        self.shared.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }
}

impl<T: Copy> Receiver<T> {
    /// Whether there is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.shared.tail.0.load(Ordering::Acquire)
    }

    /// Takes the oldest value out.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<T> {
        if self.head == self.tail_seen {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return None;
            }
        }
        let last = self.shared.slots.len() - 1;
        let value = self.shared.slots[self.head & last].with(|slot| {
            // SAFETY: the slot is full, as the sender's position says, and ours until the store below.
            unsafe { (*slot).assume_init() }
        });
        self.head = self.head.wrapping_add(1);
        self.shared.head.0.store(self.head, Ordering::Release);
        Some(value)
    }
}
