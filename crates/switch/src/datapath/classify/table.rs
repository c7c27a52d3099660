//! Hash tables of rules that match the same bits.

use fanin_units::MIX_STEP;

use super::entry::{RuleEntry, RuleMatch};
use super::key::{KeyWords, RuleKey, WORDS};

/// Rules that match the same bits.
#[derive(Debug, Clone)]
pub(super) struct RuleGroup {
    /// The words that the rules match, each with its mask; zeros after the last one.
    used: [(u8, u64); WORDS],
    /// The greatest [`RuleMatch`] of the group.
    best: u64,
    table: RuleTable,
}

/// Open addressing: a power of two of slots, at most half of them taken. A slot holds a [`RuleMatch`], 0 if it is free, and
/// the values of the words. Rules for collectors match one word: four of their slots share a cache line.
#[derive(Debug, Clone)]
enum RuleTable {
    OneWord(Vec<[u64; 2]>),
    AllWords(Vec<[u64; 1 + WORDS]>),
}

impl RuleGroup {
    /// Makes the group of the entries with this mask.
    pub(super) fn new(mask: &KeyWords, entries: &[RuleEntry]) -> Self {
        let mut used = [(0, 0); WORDS];
        let mut len = 0;
        for (word, &bits) in (0u8..).zip(mask).filter(|&(_, &bits)| bits != 0) {
            used[len] = (word, bits);
            len += 1;
        }
        let own = || entries.iter().filter(|entry| entry.mask == *mask);
        let slots = (own().count() * 2).next_power_of_two();
        let table = match len {
            0 | 1 => RuleTable::OneWord(vec![[0; 2]; slots]),
            _ => RuleTable::AllWords(vec![[0; 1 + WORDS]; slots]),
        };
        let best = own().map(|entry| entry.found.0).max().unwrap_or(0);
        let mut group = Self { used, best, table };
        for entry in own() {
            group.insert(entry);
        }
        group
    }

    /// Returns the greatest [`RuleMatch`] of the group.
    pub(super) const fn best(&self) -> u64 {
        self.best
    }

    fn insert(&mut self, entry: &RuleEntry) {
        let values = self.used.map(|(word, bits)| entry.value[usize::from(word)] & bits);
        match &mut self.table {
            RuleTable::OneWord(slots) => insert(slots, [values[0]], entry.found),
            RuleTable::AllWords(slots) => insert(slots, values, entry.found),
        }
    }

    /// Returns the [`RuleMatch`] of the matching rule, or 0.
    #[inline]
    pub(super) fn find(&self, key: &RuleKey) -> u64 {
        match &self.table {
            RuleTable::OneWord(slots) => {
                let (word, bits) = self.used[0];
                let value = key.word(usize::from(word)) & bits;
                slots[slot_of(slots, [value])][0]
            }
            RuleTable::AllWords(slots) => {
                let values = self.used.map(|(word, bits)| key.word(usize::from(word)) & bits);
                slots[slot_of(slots, values)][0]
            }
        }
    }
}

fn insert<const N: usize, const WIDTH: usize>(
    slots: &mut [[u64; WIDTH]],
    values: [u64; N],
    found: RuleMatch,
) {
    let slot = &mut slots[slot_of(slots, values)];
    // Entries with the same values match the same frames: only the winner counts.
    slot[0] = slot[0].max(found.0);
    slot[1..].copy_from_slice(&values);
}

/// Returns the slot that holds these values, or else the free slot for them.
///
/// The highest bits of the product spread consecutive numbers evenly (Knuth, The Art of Computer Programming, volume 3,
/// section 6.4). So collectors' addresses hardly ever collide.
#[inline]
fn slot_of<const N: usize, const WIDTH: usize>(slots: &[[u64; WIDTH]], values: [u64; N]) -> usize {
    const { assert!(WIDTH == N + 1, "a slot holds a match and the values") };
    let hash = values.iter().fold(0u64, |hash, value| (hash.rotate_left(5) ^ value).wrapping_mul(MIX_STEP));
    let last = slots.len() - 1;
    let mut slot = (((hash >> 32) * slots.len() as u64) >> 32) as usize;
    while slots[slot][0] != 0 && slots[slot][1..] != values {
        slot = (slot + 1) & last;
    }
    slot
}
