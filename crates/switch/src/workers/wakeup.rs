//! Waking a thread that waits in `poll(2)`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use super::sleep::SleepFlag;

/// An eventfd by which one thread wakes another, and the flag of the sleeping thread.
#[derive(Debug)]
pub(crate) struct Wakeup {
    file: File,
    sleep: SleepFlag,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: opens a descriptor and touches no memory.
        let file = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(file) };
        Ok(Self { file, sleep: SleepFlag::new() })
    }

    /// Makes the descriptor readable.
    pub(crate) fn wake(&self) {
        // The write fails only if the counter is full, and then the descriptor is readable anyway.
        let _ = (&self.file).write(&1u64.to_ne_bytes());
    }

    /// Wakes the other thread if it sleeps or is about to. The caller has written the work before.
    #[inline]
    pub(crate) fn wake_sleeper(&self) {
        if self.sleep.must_wake() {
            self.wake();
        }
    }

    /// Announces that this thread will sleep. The caller checks once more for work before that.
    pub(crate) fn begin_sleep(&self) {
        self.sleep.begin();
    }

    /// Announces that this thread is awake, and discards the wake-ups so far.
    pub(crate) fn end_sleep(&self) {
        self.sleep.end();
        let _ = (&self.file).read(&mut [0; 8]);
    }

    /// Returns the descriptor on which the sleeping thread waits.
    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
