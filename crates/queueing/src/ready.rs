//! Rings that may send now: served in turn, or by the highest key and in turn among equal keys.

use alloc::vec;
use alloc::vec::Vec;

use crate::fifo::Fifo;

/// Number that stands for no ring.
const NIL: u32 = u32::MAX;
/// The highest key: three levels of 64.
pub(crate) const KEY_MAX: u32 = 64 * 64 * 64 - 1;

/// Rings that may send now.
#[derive(Debug, Clone)]
pub(crate) enum ReadyRings {
    /// Ring numbers by turn, sixteen in a cache line.
    InTurn(Fifo<u32>),
    /// The highest key first.
    ByKey(Keyed),
}

impl ReadyRings {
    /// Makes room for one more ring.
    pub(crate) fn add(&mut self) {
        if let Self::ByKey(keyed) = self {
            keyed.add();
        }
    }

    /// Makes room for keys up to `key`.
    pub(crate) fn reserve_keys(&mut self, key: u32) {
        if let Self::ByKey(keyed) = self {
            keyed.reserve_keys(key);
        }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        match self {
            Self::InTurn(turn) => turn.is_empty(),
            Self::ByKey(keyed) => keyed.is_empty(),
        }
    }

    /// Adds a ring that is not ready yet.
    #[inline]
    pub(crate) fn insert(&mut self, ring: u32, key: impl FnOnce() -> u32) {
        match self {
            Self::InTurn(turn) => turn.push(ring),
            Self::ByKey(keyed) => keyed.insert(ring, key()),
        }
    }

    /// Removes a ring. [`Self::InTurn`] searches the whole list for it; only a pause, a change of settings or the emptying of
    /// a ring does so.
    pub(crate) fn remove(&mut self, ring: u32) {
        match self {
            Self::InTurn(turn) => turn.remove(|&other| other == ring),
            Self::ByKey(keyed) => keyed.remove(ring),
        }
    }

    /// Takes out the next ring to serve.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        match self {
            Self::InTurn(turn) => turn.pop(),
            Self::ByKey(keyed) => keyed.pop(),
        }
    }
}

/// One circular list for each key, and a tree of bits to find the highest key in use. The cost of an operation does not
/// depend on the number of rings.
#[derive(Debug, Clone)]
pub(crate) struct Keyed {
    heads: Vec<u32>,
    nodes: Vec<RingNode>,
    leaves: Vec<u64>,
    middle: Vec<u64>,
    root: u64,
}

#[derive(Debug, Clone, Copy)]
struct RingNode {
    next: u32,
    previous: u32,
    key: u32,
}

impl Keyed {
    pub(crate) fn new() -> Self {
        let mut ready =
            Self { heads: Vec::new(), nodes: Vec::new(), leaves: Vec::new(), middle: vec![0; 64], root: 0 };
        ready.reserve_keys(0);
        ready
    }

    /// Makes room for one more ring.
    pub(crate) fn add(&mut self) {
        self.nodes.push(RingNode { next: NIL, previous: NIL, key: 0 });
    }

    /// Makes room for keys up to `key`.
    pub(crate) fn reserve_keys(&mut self, key: u32) {
        let words = key.min(KEY_MAX) as usize / 64 + 1;
        if words > self.leaves.len() {
            self.leaves.resize(words, 0);
            self.heads.resize(words * 64, NIL);
        }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.root == 0
    }

    /// Adds a ring that is not ready yet, behind the others of its key.
    #[inline]
    pub(crate) fn insert(&mut self, ring: u32, key: u32) {
        assert!(key <= KEY_MAX, "a key above the largest");
        let head = self.heads[key as usize];
        if head == NIL {
            self.heads[key as usize] = ring;
            self.nodes[ring as usize] = RingNode { next: ring, previous: ring, key };
            self.leaves[key as usize / 64] |= 1 << (key % 64);
            self.middle[key as usize / 4096] |= 1 << (key / 64 % 64);
            self.root |= 1 << (key / 4096);
        } else {
            let last = self.nodes[head as usize].previous;
            self.nodes[ring as usize] = RingNode { next: head, previous: last, key };
            self.nodes[last as usize].next = ring;
            self.nodes[head as usize].previous = ring;
        }
    }

    /// Removes a ring.
    #[inline]
    pub(crate) fn remove(&mut self, ring: u32) {
        let RingNode { next, previous, key } = self.nodes[ring as usize];
        assert_ne!(self.heads[key as usize], NIL, "a ring leaves a key that has none");
        if next == ring {
            self.heads[key as usize] = NIL;
            let leaf = &mut self.leaves[key as usize / 64];
            *leaf &= !(1 << (key % 64));
            if *leaf == 0 {
                let middle = &mut self.middle[key as usize / 4096];
                *middle &= !(1 << (key / 64 % 64));
                if *middle == 0 {
                    self.root &= !(1 << (key / 4096));
                }
            }
            return;
        }
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
        if self.heads[key as usize] == ring {
            self.heads[key as usize] = next;
        }
    }

    /// Takes out the next ring to serve.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        if self.root == 0 {
            return None;
        }
        let high = self.root.ilog2() as usize;
        let middle = high * 64 + self.middle[high].ilog2() as usize;
        let key = middle * 64 + self.leaves[middle].ilog2() as usize;
        let ring = self.heads[key];
        assert_ne!(ring, NIL, "a key without a ring is marked");
        self.remove(ring);
        Some(ring)
    }
}
