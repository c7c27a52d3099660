//! An account of memory that frames of several outputs share: its level, and its limit.

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
        self.within_limit(charge).is_none()
    }

    #[inline]
    pub(crate) const fn free(&self) -> u64 {
        self.limit.saturating_sub(self.level.bytes)
    }

    /// Returns true if `charge` bytes more would exceed the limit or set a high-water mark. Departures that are not settled
    /// yet could prevent both.
    #[inline]
    pub(crate) fn depends_on_departures(&self, charge: u64) -> bool {
        self.below_high_water(charge).is_none()
    }

    /// The occupied bytes after a further charge of `charge` bytes; `None` if they exceed the limit.
    #[inline]
    pub(crate) const fn within_limit(&self, charge: u64) -> Option<u64> {
        let level = self.level.bytes + charge;
        if level <= self.limit { Some(level) } else { None }
    }

    /// The occupied bytes after a further charge of `charge` bytes; `None` if they exceed the limit or the high-water mark.
    /// Departures that are not settled yet could prevent both.
    #[inline]
    pub(crate) fn below_high_water(&self, charge: u64) -> Option<u64> {
        self.within_limit(charge).filter(|&level| level <= self.level.bytes_max)
    }

    /// Raises the occupancy to `level` bytes, which the caller has checked against the limit.
    #[inline]
    pub(crate) fn raise_to(&mut self, level: u64) {
        debug_assert!(
            (self.level.bytes..=self.limit).contains(&level),
            "an admission passes the limit, or lowers the level"
        );
        self.level.bytes = level;
        self.level.bytes_max = self.level.bytes_max.max(level);
    }

    /// Charges a frame that the account does not refuse.
    ///
    /// # Panics
    /// If the charge exceeds the limit.
    #[inline]
    pub(crate) fn admit(&mut self, charge: u64) {
        let level = self.within_limit(charge).expect("an admitted frame fits below the limit");
        self.raise_to(level);
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
        assert!(bytes <= bytes_max, "{kind} {number} holds more than its high-water mark");
    }
}
