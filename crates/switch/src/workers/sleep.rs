//! The flag of a thread that sleeps: another thread wakes it in time, and hardly ever without need.
//!
//! The sleeper sets the flag and then checks once more for work. The other thread leaves work and then reads the flag. With a
//! fence between the two steps of each, at least one of them sees what the other did ("store buffering";
//! `tests/interleavings.rs` tries every order).

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether a thread sleeps, or is about to.
#[derive(Debug)]
pub(crate) struct SleepFlag {
    is_asleep: AtomicBool,
}

impl SleepFlag {
    /// The flag of a thread that is awake.
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

    /// Whether the caller must wake the thread for the work that it has just left.
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_asleep.load(Ordering::Relaxed)
    }
}
