//! The free space of a file system, read by a thread of its own: on a network disk that hangs, `statvfs` does not return.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time between two readings.
const READ_EVERY: Duration = Duration::from_secs(10);
/// Stands for an unknown number of bytes.
const UNKNOWN: u64 = u64::MAX;

/// The free space as of the last reading. Its thread ends some time after it is dropped.
#[derive(Debug)]
pub(crate) struct FreeSpace(Arc<AtomicU64>);

impl FreeSpace {
    /// Calls `read` again and again in a new thread. It is unknown after a call that returns `None`, and in a system without a
    /// further thread.
    pub(crate) fn watch(read: impl Fn() -> Option<u64> + Send + 'static) -> Self {
        let bytes = Arc::new(AtomicU64::new(UNKNOWN));
        let seen = Arc::downgrade(&bytes);
        let thread = std::thread::Builder::new().name("free-space".into()).spawn(move || {
            loop {
                let free = read().unwrap_or(UNKNOWN);
                let Some(bytes) = seen.upgrade() else { return };
                bytes.store(free, Ordering::Relaxed);
                drop(bytes);
                std::thread::sleep(READ_EVERY);
            }
        });
        if let Err(error) = thread {
            tracing::warn!(%error, "the free space of the journal's disk is not read");
        }
        Self(bytes)
    }

    /// Returns the free bytes as of the last reading; `None` before the first one, and after one that failed.
    pub(crate) fn bytes(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&bytes| bytes != UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_disk_that_hangs_does_not_block() {
        let (answer, answers) = mpsc::channel();
        let (began, begun) = mpsc::channel();
        let free = FreeSpace::watch(move || {
            began.send(()).ok()?;
            answers.recv().ok()
        });
        begun.recv().unwrap();
        // The reading has begun and does not end.
        assert_eq!(free.bytes(), None);
        answer.send(7).unwrap();
        while free.bytes().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(free.bytes(), Some(7));
    }
}
