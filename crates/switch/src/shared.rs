//! What the workers of one switch know in common, beside what their lanes carry: how much of the common pool is taken, how much
//! of each port's frames is held by anybody, and the window of M21TCP at each output.
//!
//! No value guards other memory, so that every access is relaxed: what counts is that additions to one value are not lost, and
//! who may write the others.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// No window.
pub(crate) const NO_WINDOW: u32 = u32::MAX;

/// One worker's numbers, apart from those that others write.
#[repr(align(64))]
#[derive(Debug)]
struct Row(Vec<AtomicU64>);

/// A number of its own cache line.
#[repr(align(64))]
#[derive(Debug)]
struct Pool(AtomicU64);

/// The values.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Bytes taken of the pool.
    pool: Pool,
    /// By worker: of each port's frames, bytes that this worker has let in or handed over, less those that it let go.
    held: Vec<Row>,
    /// By output.
    windows: Vec<AtomicU32>,
}

impl Shared {
    /// Nothing is held, and there is no window.
    pub(crate) fn new(workers: usize, ports: usize) -> Self {
        Self {
            pool: Pool(AtomicU64::new(0)),
            held: (0..workers).map(|_| Row((0..ports).map(|_| AtomicU64::new(0)).collect())).collect(),
            windows: (0..ports).map(|_| AtomicU32::new(NO_WINDOW)).collect(),
        }
    }

    /// Takes bytes of the pool, and says how many were taken before. Whoever finds that they do not fit gives them back: so no two
    /// workers both get the last of it.
    #[inline]
    pub(crate) fn take_of_pool(&self, bytes: u64) -> u64 {
        self.pool.0.fetch_add(bytes, Ordering::Relaxed)
    }

    /// Gives bytes of the pool back.
    #[inline]
    pub(crate) fn give_to_pool(&self, bytes: u64) {
        self.pool.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes taken of the pool.
    #[inline]
    pub(crate) fn pool(&self) -> u64 {
        self.pool.0.load(Ordering::Relaxed)
    }

    /// A worker says what it has let in or handed over of each port's frames, less what it let go. Only that worker does.
    pub(crate) fn publish(&self, worker: usize, held: &[u64]) {
        for (shared, &own) in self.held[worker].0.iter().zip(held) {
            // What has not changed stays in the cache of those who read it.
            if shared.load(Ordering::Relaxed) != own {
                shared.store(own, Ordering::Relaxed);
            }
        }
    }

    /// What all workers hold of a port's frames, where `own` is what the port's own worker has to say.
    ///
    /// A port's frames are added by its own worker alone, before any other can let them go. So others may say too much by a
    /// round, and never too little.
    pub(crate) fn held(&self, worker: usize, own: u64, port: usize) -> u64 {
        let others = self.held.iter().enumerate().filter(|&(other, _)| other != worker);
        others.fold(own, |sum, (_, row)| sum.wrapping_add(row.0[port].load(Ordering::Relaxed)))
    }

    /// The worker of an output says which window its flows have.
    #[inline]
    pub(crate) fn set_window(&self, output: usize, window: u32) {
        if self.windows[output].load(Ordering::Relaxed) != window {
            self.windows[output].store(window, Ordering::Relaxed);
        }
    }

    /// The window of flows to an output.
    #[inline]
    pub(crate) fn window(&self, output: usize) -> u32 {
        self.windows[output].load(Ordering::Relaxed)
    }
}
