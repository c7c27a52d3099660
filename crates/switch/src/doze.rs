//! When a thread that sleeps must be woken: never too late, and hardly ever for nothing.
//!
//! One thread says that it will sleep and then looks once more for something to do; the other leaves something to do and then
//! looks whether the first sleeps. With a fence between the two steps of each, at least one of them sees the other
//! ("store buffering"; `tests/interleavings.rs` tries every order).

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether a thread sleeps, or is about to.
#[derive(Debug)]
pub(crate) struct Doze {
    asleep: AtomicBool,
}

impl Doze {
    pub(crate) fn new() -> Self {
        Self { asleep: AtomicBool::new(false) }
    }

    /// Others can see from now on that this thread sleeps. It looks once more for something to do before it does.
    pub(crate) fn begin(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// It is awake again.
    pub(crate) fn end(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Whether the other thread must be woken for what has just been left for it.
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed)
    }
}
