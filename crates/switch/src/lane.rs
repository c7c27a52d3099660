//! A ring between two workers: one puts in, the other takes out (single producer, single consumer).
//!
//! Both ends keep their own position in a cache line of their own, and look at the other's only where they must.

#[cfg(all(test, loom))]
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use std::mem::MaybeUninit;
#[cfg(not(all(test, loom)))]
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The standard library's cell in the form of loom's.
#[cfg(not(all(test, loom)))]
#[derive(Debug)]
struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(all(test, loom)))]
impl<T> UnsafeCell<T> {
    const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_gives_the_value_back() {
        let (mut sender, mut receiver) = lane(4);
        for round in 0..10 {
            for value in 0..4 {
                assert_eq!(sender.put(round * 4 + value), Ok(()));
            }
            assert_eq!(sender.put(99), Err(99));
            for value in 0..4 {
                assert_eq!(receiver.take(), Some(round * 4 + value));
            }
            assert_eq!(receiver.take(), None);
        }
    }

    #[test]
    fn everything_arrives_in_order() {
        const VALUES: u32 = 100_000;
        let (mut sender, mut receiver) = lane(64);
        let producer = std::thread::spawn(move || {
            for value in 0..VALUES {
                while sender.put(value).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for wanted in 0..VALUES {
            let value = loop {
                match receiver.take() {
                    Some(value) => break value,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(value, wanted);
        }
        producer.join().unwrap();
    }
}

/// Every interleaving: `RUSTFLAGS="--cfg loom" cargo test -p fanin-switch --lib lane`.
#[cfg(all(test, loom))]
mod model {
    use super::*;

    #[test]
    fn no_interleaving_loses_doubles_or_reorders() {
        loom::model(|| {
            let (mut sender, mut receiver) = lane(2);
            let producer = loom::thread::spawn(move || {
                let mut put = 0;
                for value in 1..=3 {
                    // A full ring is given up on, so that every run ends.
                    if sender.put(value).is_err() {
                        break;
                    }
                    put = value;
                }
                put
            });
            let mut taken = 0;
            for _ in 0..3 {
                if let Some(value) = receiver.take() {
                    assert_eq!(value, taken + 1);
                    taken = value;
                }
            }
            let put = producer.join().unwrap();
            while let Some(value) = receiver.take() {
                assert_eq!(value, taken + 1);
                taken = value;
            }
            assert_eq!(taken, put);
        });
    }
}
