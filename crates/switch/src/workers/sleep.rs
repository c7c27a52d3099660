//! The flag of a sleeping thread: another thread that sees it wakes the sleeper.
//!
//! The sleeper sets the flag and then checks once more for work. The other thread adds work and then reads the flag. Each has
//! a fence between its two steps, so that at least one sees the other's write ("store buffering"). `tests/interleavings.rs`
//! tries every order.

use crate::sync::{AtomicBool, Ordering, fence};

/// A flag that is set while a thread sleeps or is about to.
#[derive(Debug)]
pub(crate) struct SleepFlag {
    is_asleep: AtomicBool,
}

impl SleepFlag {
    /// Makes the flag of a thread that is awake.
    pub(crate) fn new() -> Self {
        Self { is_asleep: AtomicBool::new(false) }
    }

    /// Sets the flag. The caller checks once more for work before it sleeps.
    pub(crate) fn begin(&self) {
        self.is_asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Clears the flag.
    pub(crate) fn end(&self) {
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Returns true if the caller, after adding work, must wake the thread.
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_asleep.load(Ordering::Relaxed)
    }
}
