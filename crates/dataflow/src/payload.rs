//! Payloads of messages, which are measured, joined and cut by fragment, but never read.

use core::fmt;

use fanin_units::Bytes;

use crate::L1Id;

/// The payload of a message. Its content is left to the driver; the roles use only its size.
pub trait FragmentPayload: Clone + Default {
    /// Returns the payload's bytes on the wire.
    fn size(&self) -> Bytes;

    /// Appends the answer of one readout to the event in this payload.
    fn append(&mut self, readout: u16, part: Self);

    /// Marks fragments of a readout as permanently missing.
    fn mark_missing(&mut self, readout: u16, fragments: FragmentSet) {
        let _ = (readout, fragments);
    }
}

/// The simulator's payload: a length.
impl FragmentPayload for Bytes {
    #[inline]
    fn size(&self) -> Bytes {
        *self
    }

    #[inline]
    fn append(&mut self, _readout: u16, part: Self) {
        *self += part;
    }
}

/// A set of fragments of one readout; fragments are numbered from zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FragmentSet([u64; 2]);

impl FragmentSet {
    /// The set without a fragment.
    pub const EMPTY: Self = Self([0; 2]);
    /// The most fragments that one readout may serve.
    pub const FRAGMENTS_MAX: u16 = 128;

    /// Returns the fragments 0 to `count` − 1.
    ///
    /// # Panics
    /// If `count` exceeds [`Self::FRAGMENTS_MAX`].
    #[inline]
    pub const fn first(count: u16) -> Self {
        assert!(count <= Self::FRAGMENTS_MAX, "a readout serves more than 128 fragments");
        let bits = if count == 128 { u128::MAX } else { (1 << count) - 1 };
        Self::from_bits(bits)
    }

    /// Returns the set of fragments `n` with bit `n` set.
    #[inline]
    pub const fn from_bits(bits: u128) -> Self {
        Self([bits as u64, (bits >> 64) as u64])
    }

    /// Returns the set as bits, fragment `n` at bit `n`.
    #[inline]
    pub const fn bits(self) -> u128 {
        self.0[0] as u128 | (self.0[1] as u128) << 64
    }

    /// Returns the number of fragments.
    #[inline]
    pub const fn len(self) -> u16 {
        (self.0[0].count_ones() + self.0[1].count_ones()) as u16
    }

    /// Returns true if the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0[0] | self.0[1] == 0
    }

    /// Returns true if a fragment is in the set.
    pub const fn contains(self, fragment: u16) -> bool {
        fragment < Self::FRAGMENTS_MAX && self.bits() >> fragment & 1 == 1
    }

    /// Returns the fragments in either set.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    /// Returns the fragments in both sets.
    #[inline]
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    /// Returns the fragments that are not in `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self([self.0[0] & !other.0[0], self.0[1] & !other.0[1]])
    }

    /// Returns the `count` lowest fragments of the set, or all if it has fewer.
    #[must_use]
    pub fn lowest(self, count: u16) -> Self {
        if count >= self.len() {
            return self;
        }
        let mut left = self.bits();
        for _ in 0..count {
            left &= left - 1;
        }
        Self::from_bits(self.bits() & !left)
    }

    /// Returns the fragments in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        let mut left = self.bits();
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let lowest = left.trailing_zeros() as u16;
            left &= left - 1;
            Some(lowest)
        })
    }
}

impl fmt::Debug for FragmentSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

/// The source of a readout's fragments: memory in a live process, a distribution of sizes in the simulator.
pub trait FragmentSource<P> {
    /// Returns the wanted fragments of an event, and the set of those that do not exist here.
    fn read(&mut self, event: L1Id, wanted: FragmentSet) -> (P, FragmentSet);

    /// Forgets an event: all its fragments may be deleted.
    fn delete(&mut self, event: L1Id) {
        let _ = event;
    }

    /// Forgets an event and all events before it.
    fn delete_up_to(&mut self, event: L1Id) {
        self.delete(event);
    }
}

/// Fragments of one constant size that always exist.
#[derive(Debug, Clone, Copy)]
pub struct UniformSource {
    /// The size of each fragment.
    pub fragment: Bytes,
}

impl FragmentSource<Bytes> for UniformSource {
    fn read(&mut self, _event: L1Id, wanted: FragmentSet) -> (Bytes, FragmentSet) {
        (self.fragment * u64::from(wanted.len()), FragmentSet::EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn sets_of_fragments() {
        let twelve = FragmentSet::first(12);
        assert_eq!(twelve.len(), 12);
        assert_eq!(FragmentSet::first(128).len(), 128);
        assert_eq!(FragmentSet::first(0), FragmentSet::EMPTY);
        assert_eq!(twelve.lowest(5), FragmentSet::first(5));
        let rest = twelve.without(FragmentSet::first(5));
        assert_eq!(rest.iter().collect::<Vec<_>>(), [5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(rest.lowest(2).iter().collect::<Vec<_>>(), [5, 6]);
        assert_eq!(rest.union(FragmentSet::first(5)), twelve);
        assert!(rest.contains(11) && !rest.contains(4) && !rest.contains(200));
        let high = FragmentSet::from_bits(1 << 100 | 1 << 3);
        assert_eq!(high.iter().collect::<Vec<_>>(), [3, 100]);
        assert_eq!(high.lowest(1).iter().collect::<Vec<_>>(), [3]);
    }
}
