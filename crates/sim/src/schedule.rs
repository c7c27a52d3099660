//! What happens next: a calendar queue of occurrences.
//!
//! Nearly all occurrences are arrivals of frames, at most one pending for each link, a few microseconds ahead.
//! They lie in a ring of buckets, each a short list sorted by time; a bitmap finds the next bucket that holds
//! anything. The rare far ones (timers) wait in a binary heap until the ring reaches them.
//! Occurrences of one instant happen in the order in which they were scheduled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const BUCKETS: usize = 4096;
const MASK: u64 = BUCKETS as u64 - 1;
const WORDS: usize = BUCKETS / 64;
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    time: u64,
    what: u32,
    next: u32,
}

/// The pending occurrences: a time in picoseconds and a number that says what occurs.
pub(crate) struct Schedule {
    heads: Box<[u32; BUCKETS]>,
    occupied: Box<[u64; WORDS]>,
    /// One bit for each word of `occupied` that is not zero.
    summary: u64,
    /// A bucket spans `1 << shift` picoseconds.
    shift: u32,
    /// The bucket, counted from the start of time, that the last occurrence was taken from.
    cursor: u64,
    nodes: Vec<Node>,
    free: u32,
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_scheduled: u64,
    pending: usize,
}

impl Schedule {
    /// An empty schedule whose buckets span about `bucket_ps`, rounded down to a power of two.
    ///
    /// Speed is best when about one occurrence falls into a bucket; the order never depends on it.
    pub(crate) fn new(bucket_ps: u64) -> Self {
        Self {
            heads: Box::new([NIL; BUCKETS]),
            occupied: Box::new([0; WORDS]),
            summary: 0,
            shift: bucket_ps.clamp(1 << 8, 1 << 40).ilog2(),
            cursor: 0,
            nodes: Vec::new(),
            free: NIL,
            far: BinaryHeap::new(),
            far_scheduled: 0,
            pending: 0,
        }
    }

    /// How many occurrences are pending.
    pub(crate) fn pending(&self) -> usize {
        self.pending + self.far.len()
    }

    /// Adds an occurrence; `time` must not lie before the last one taken.
    #[inline]
    pub(crate) fn insert(&mut self, time: u64, what: u32) {
        let bucket = time >> self.shift;
        debug_assert!(bucket >= self.cursor, "an occurrence in the past");
        if bucket - self.cursor > MASK {
            self.insert_far(time, what);
        } else {
            self.insert_near(bucket, time, what);
        }
    }

    #[cold]
    fn insert_far(&mut self, time: u64, what: u32) {
        self.far.push(Reverse((time, self.far_scheduled, what)));
        self.far_scheduled += 1;
    }

    #[inline]
    fn insert_near(&mut self, bucket: u64, time: u64, what: u32) {
        let slot = (bucket & MASK) as usize;
        let node = if self.free == NIL {
            self.nodes.push(Node { time, what, next: NIL });
            (self.nodes.len() - 1) as u32
        } else {
            let node = self.free;
            let entry = &mut self.nodes[node as usize];
            self.free = entry.next;
            *entry = Node { time, what, next: NIL };
            node
        };
        self.pending += 1;
        let head = self.heads[slot];
        if head == NIL {
            self.heads[slot] = node;
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.summary |= 1 << (slot / 64);
        } else if self.nodes[head as usize].time > time {
            self.nodes[node as usize].next = head;
            self.heads[slot] = node;
        } else {
            let mut before = head;
            loop {
                let next = self.nodes[before as usize].next;
                if next == NIL || self.nodes[next as usize].time > time {
                    self.nodes[node as usize].next = next;
                    self.nodes[before as usize].next = node;
                    break;
                }
                before = next;
            }
        }
    }

    /// Takes the earliest occurrence.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, u32)> {
        let Some(slot) = self.next_slot() else { return self.pop_far() };
        let node = self.heads[slot];
        let Node { time, what, next } = self.nodes[node as usize];
        self.nodes[node as usize].next = self.free;
        self.free = node;
        self.heads[slot] = next;
        if next == NIL {
            let word = &mut self.occupied[slot / 64];
            *word &= !(1 << (slot % 64));
            if *word == 0 {
                self.summary &= !(1 << (slot / 64));
            }
        }
        self.pending -= 1;
        self.advance(time >> self.shift);
        Some((time, what))
    }

    /// Moves the ring on, and into it the far occurrences that it now reaches: before anything else can be
    /// inserted there, so that those scheduled earlier come first.
    #[inline]
    fn advance(&mut self, bucket: u64) {
        self.cursor = bucket;
        while let Some(&Reverse((time, _, what))) = self.far.peek() {
            let bucket = time >> self.shift;
            if bucket - self.cursor > MASK {
                break;
            }
            self.far.pop();
            self.insert_near(bucket, time, what);
        }
    }

    #[cold]
    fn pop_far(&mut self) -> Option<(u64, u32)> {
        let &Reverse((time, _, _)) = self.far.peek()?;
        self.advance(time >> self.shift);
        self.pop()
    }

    /// The first occupied bucket at or after the cursor, around the ring.
    #[inline]
    fn next_slot(&self) -> Option<usize> {
        let start = (self.cursor & MASK) as usize;
        let first = start / 64;
        let here = self.occupied[first] & (u64::MAX << (start % 64));
        if here != 0 {
            return Some(first * 64 + here.trailing_zeros() as usize);
        }
        let later = self.summary & (u64::MAX << first) & !(1 << first);
        let word = if later != 0 {
            later.trailing_zeros() as usize
        } else if self.summary != 0 {
            self.summary.trailing_zeros() as usize
        } else {
            return None;
        };
        // The summary covers exactly WORDS bits; the mask lets the compiler see it.
        let word = word % WORDS;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_of_a_sorted_list() {
        for bucket_ps in [1 << 8, 1 << 17, 1 << 30] {
            let mut schedule = Schedule::new(bucket_ps);
            let mut expected: Vec<(u64, u32)> = Vec::new();
            let mut state = 1_u64;
            let mut random = move || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                state >> 33
            };
            let mut now = 0;
            for what in 0..20_000_u32 {
                // Near, far and equal times.
                let ahead = match random() % 4 {
                    0 => 0,
                    1 => random() % 1_000,
                    2 => random() % 20_000_000,
                    _ => (random() % 8) * 200_000_000_000,
                };
                schedule.insert(now + ahead, what);
                let position = expected.partition_point(|&(time, _)| time <= now + ahead);
                expected.insert(position, (now + ahead, what));
                if random() % 3 != 0 {
                    let got = schedule.pop().unwrap();
                    assert_eq!(got, expected.remove(0));
                    now = got.0;
                }
            }
            assert_eq!(schedule.pending(), expected.len());
            for entry in expected {
                assert_eq!(schedule.pop(), Some(entry));
            }
            assert_eq!(schedule.pop(), None);
        }
    }
}
