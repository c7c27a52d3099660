//! A set of small numbers that finds the next member fast.

use alloc::vec;
use alloc::vec::Vec;

/// A set with one bit for each number, and one for each non-zero word: 4096 numbers are searched in two steps.
#[derive(Debug, Clone)]
pub(crate) struct BitSet {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl BitSet {
    pub(crate) fn new(size: usize) -> Self {
        let words = size.div_ceil(64).max(1);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    #[inline]
    pub(crate) fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
        self.summary[index / 4096] |= 1 << (index / 64 % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
        if self.words[index / 64] == 0 {
            self.summary[index / 4096] &= !(1 << (index / 64 % 64));
        }
    }

    /// Returns the first member at or after `start`, wrapping around to zero; `None` if the set is empty.
    pub(crate) fn next_cyclic(&self, start: usize) -> Option<usize> {
        self.next(start).or_else(|| self.next(0))
    }

    fn next(&self, start: usize) -> Option<usize> {
        let word = start / 64;
        let here = self.words.get(word)? & u64::MAX << (start % 64);
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        let word = word + 1;
        let mut group = word / 64;
        let mut words = self.summary.get(group)? & u64::MAX << (word % 64);
        while words == 0 {
            group += 1;
            words = *self.summary.get(group)?;
        }
        let word = group * 64 + words.trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_plain_search_finds() {
        for size in [1, 63, 64, 65, 4096, 4097, 48_000] {
            let mut set = BitSet::new(size);
            assert_eq!(set.next_cyclic(0), None);
            let mut random = crate::Random::new(size as u64);
            let mut members: Vec<usize> = (0..20).map(|_| random.below(size as u32) as usize).collect();
            members.iter().for_each(|&member| set.insert(member));
            members.sort_unstable();
            for _ in 0..200 {
                let start = random.below(size as u32) as usize;
                let found = members.iter().find(|&&member| member >= start).or(members.first());
                assert_eq!(set.next_cyclic(start), found.copied(), "{size} {start}");
            }
            for &member in &members {
                set.remove(member);
            }
            assert_eq!(set.next_cyclic(0), None);
        }
    }
}
