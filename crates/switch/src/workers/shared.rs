//! Values that all workers of a switch read. They are the occupancy of each shared memory account, each worker's bytes
//! of each input's frames, and each output's M21TCP window.
//!
//! No value guards other memory, so every access is relaxed. Additions to an account are atomic; each other value has one writer.

use fanin_queueing::Ingress;

use crate::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Window of an output without a limit.
pub(crate) const NO_WINDOW: u32 = u32::MAX;

/// The occupancy of one account, alone in its cache line.
#[repr(align(64))]
#[derive(Debug)]
struct AccountBytes(AtomicU64);

/// A memory account that several workers charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommonAccount {
    /// A pool, or the memory of an input module.
    Pool(usize),
    /// The limit of an input port.
    Input(usize),
}

/// The values that all workers of a switch read.
#[derive(Debug)]
pub(crate) struct SharedCounts {
    /// Occupancy by pool; pools are at most as many as ports.
    pools: Vec<AccountBytes>,
    /// Occupancy by input port.
    inputs: Vec<AccountBytes>,
    /// Bytes by worker and input: queued or handed over by the worker, minus released bytes.
    held: Vec<Vec<AtomicI64>>,
    /// M21TCP windows by output.
    windows: Vec<AtomicU32>,
}

impl SharedCounts {
    /// Makes the values of empty workers, without limits on windows.
    pub(crate) fn new(workers: usize, ports: usize) -> Self {
        let accounts = || (0..ports).map(|_| AccountBytes(AtomicU64::new(0))).collect();
        Self {
            pools: accounts(),
            inputs: accounts(),
            held: (0..workers).map(|_| (0..ports).map(|_| AtomicI64::new(0)).collect()).collect(),
            windows: (0..ports).map(|_| AtomicU32::new(NO_WINDOW)).collect(),
        }
    }

    fn account(&self, account: CommonAccount) -> &AtomicU64 {
        match account {
            CommonAccount::Pool(pool) => &self.pools[pool].0,
            CommonAccount::Input(input) => &self.inputs[input].0,
        }
    }

    /// Reserves bytes of an account, and returns the occupancy before. If the bytes do not fit, the caller returns them. So two
    /// workers never both get the last bytes.
    #[inline]
    pub(crate) fn take(&self, account: CommonAccount, bytes: u64) -> u64 {
        self.account(account).fetch_add(bytes, Ordering::Relaxed)
    }

    /// Returns reserved bytes to an account.
    ///
    /// # Panics
    /// If fewer were taken.
    #[inline]
    pub(crate) fn give(&self, account: CommonAccount, bytes: u64) {
        let before = self.account(account).fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{account:?} gets {bytes} bytes back, and {before} were taken");
    }

    /// Returns the occupancy of an account.
    #[inline]
    pub(crate) fn taken(&self, account: CommonAccount) -> u64 {
        self.account(account).load(Ordering::Relaxed)
    }

    /// Publishes the bytes that a worker holds of each input's frames. Only that worker calls this.
    pub(crate) fn publish(&self, worker: usize, ingress: &[Ingress]) {
        for (shared, own) in self.held[worker].iter().zip(ingress.iter().map(Ingress::held)) {
            // An unchanged line stays in the caches of the readers.
            if shared.load(Ordering::Relaxed) != own {
                shared.store(own, Ordering::Relaxed);
            }
        }
    }

    /// Returns the bytes of an input's frames that all workers but the given one hold. The number is negative if they have
    /// released frames that this worker counts.
    ///
    /// The input's own worker counts a frame before any other worker can release it. So the sum with its own part may be too
    /// large for a round, but never too small.
    pub(crate) fn held_by_others(&self, worker: usize, port: usize) -> i64 {
        let others = self.held.iter().enumerate().filter(|&(other, _)| other != worker);
        others.map(|(_, row)| row[port].load(Ordering::Relaxed)).sum()
    }

    /// Publishes the window of the flows to an output. Only the output's worker calls this.
    #[inline]
    pub(crate) fn set_window(&self, output: usize, window: u32) {
        if self.windows[output].load(Ordering::Relaxed) != window {
            self.windows[output].store(window, Ordering::Relaxed);
        }
    }

    /// Returns the window of the flows to an output.
    #[inline]
    pub(crate) fn window(&self, output: usize) -> u32 {
        self.windows[output].load(Ordering::Relaxed)
    }
}
