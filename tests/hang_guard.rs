//! A limit on the loops of tests that wait for a process or for the kernel.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Much longer than any step of a test takes, also on a busy machine.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A wait that began when the guard was made.
#[derive(Clone, Copy)]
pub(crate) struct HangGuard(Instant);

impl HangGuard {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Ends a test that hangs, and says what it waits for.
    ///
    /// # Panics
    /// If the wait began more than a minute ago.
    #[track_caller]
    pub(crate) fn check(&self, awaited: impl Display) {
        assert!(self.0.elapsed() < LONGEST_WAIT, "waited for more than {LONGEST_WAIT:?}: {awaited}");
    }
}
