//! An account of memory that frames of several outputs share: its level, and the limit that it must not exceed.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::frame::MemoryOccupancy;

/// The account of a pool, a module, a virtual output queue or an input.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    level: MemoryOccupancy,
    limit: u64,
}

impl Account {
    pub(crate) const fn new(limit: Bytes) -> Self {
        Self { level: MemoryOccupancy { bytes: 0, bytes_max: 0 }, limit: limit.get() }
    }

    pub(crate) const fn level(&self) -> &MemoryOccupancy {
        &self.level
    }

    /// Sets another limit. Charged bytes stay charged, even above it.
    pub(crate) const fn set_limit(&mut self, limit: Bytes) {
        self.limit = limit.get();
    }

    /// Returns true if `charge` bytes more would exceed the limit.
    #[inline]
    pub(crate) const fn refuses(&self, charge: u64) -> bool {
        self.level.bytes + charge > self.limit
    }

    #[inline]
    pub(crate) const fn free(&self) -> u64 {
        self.limit.saturating_sub(self.level.bytes)
    }

    /// Returns true if `charge` bytes more would exceed the limit or set a high-water mark. Departures that are not settled
    /// yet could prevent both.
    #[inline]
    pub(crate) fn depends_on_departures(&self, charge: u64) -> bool {
        self.level.bytes + charge > self.limit.min(self.level.bytes_max)
    }

    /// Charges a frame that the account does not refuse.
    ///
    /// # Panics
    /// If the charge exceeds the limit.
    #[inline]
    pub(crate) fn admit(&mut self, charge: u64) {
        assert!(!self.refuses(charge), "a frame is admitted above the limit");
        self.level.bytes += charge;
        self.level.bytes_max = self.level.bytes_max.max(self.level.bytes);
    }

    /// Frees the memory of a frame.
    #[inline]
    pub(crate) fn depart(&mut self, charge: u64) {
        self.level.remove(charge);
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        self.level.reset_high_water_marks();
    }
}

/// Asserts that each account holds exactly the charges of its frames. A frame is its input, its output and its charge in
/// bytes. `account_of` maps input and output to the index of an account.
///
/// # Panics
/// If an account holds more or fewer bytes.
pub(crate) fn assert_holds<'a>(
    accounts: impl IntoIterator<Item = &'a Account>,
    kind: &str,
    frames: &[(usize, usize, u64)],
    account_of: impl Fn(usize, usize) -> usize,
) {
    let accounts: Vec<&Account> = accounts.into_iter().collect();
    let mut expected = vec![0; accounts.len()];
    for &(input, output, charge) in frames {
        expected[account_of(input, output)] += charge;
    }
    for (number, (account, expected)) in accounts.into_iter().zip(expected).enumerate() {
        let MemoryOccupancy { bytes, bytes_max } = account.level;
        assert_eq!(bytes, expected, "{kind} {number} has other bytes than its frames");
        assert!(bytes <= bytes_max, "the high-water mark of {kind} {number}");
    }
}
