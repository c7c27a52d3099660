//! The schedule: a calendar queue of occurrences in two rings, and a heap for the far future.
//!
//! Time is divided into buckets, and buckets into blocks. The inner ring holds the buckets of the present block and of the next
//! one, each a short list sorted by time. Nearly all occurrences are arrivals of frames: a few microseconds ahead, at most one
//! a link. The outer ring holds the following blocks as unsorted arrays, for timers above all. A block is sorted into buckets
//! when it becomes the next one. Later occurrences wait in the heap. A bitmap finds the next list that is not empty.
//!
//! Of the occurrences of one instant departures come first. When the first of them is taken, the scheduled ones are
//! sorted by their ranks ([`Ties`]). Occurrences scheduled for this instant after that follow in the order of scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fanin_network::PortIndex;

use crate::index::NIL;
use crate::occurrence::Occurrence;
use crate::parcel::Parcel;
use crate::ties::Ties;

/// The time of an occurrence that is not scheduled.
pub(crate) const NEVER: u64 = u64::MAX;

/// Buckets in a block, as a power of two.
const BLOCK_BITS: u32 = 11;
/// The inner ring holds two blocks.
const BUCKETS: usize = 2 << BLOCK_BITS;
/// Blocks in the outer ring.
const BLOCKS: usize = 4096;

/// An occurrence of the inner ring, or a free node.
#[derive(Clone, Copy)]
struct ScheduleNode {
    /// The [`key`] of its time.
    key: u64,
    occurrence: Occurrence,
    /// The frame that arrives, of an arrival.
    frame: Parcel,
    next: u32,
}

/// The latest time of an occurrence in picoseconds: 106 days.
pub(crate) const LATEST: u64 = u64::MAX >> 1;

/// Returns the key of a time in the order of occurrences. The key is odd; [`first_key`] is the even key before it.
#[inline]
const fn key(time: u64) -> u64 {
    first_key(time) | 1
}

#[inline]
const fn first_key(time: u64) -> u64 {
    debug_assert!(time <= LATEST, "a time beyond the schedule");
    time << 1
}

/// Returns the first key behind a block. The last blocks end with the largest key.
const fn block_end(block: u64, shift: u32) -> u64 {
    let bits = BLOCK_BITS + shift;
    if block < u64::MAX >> bits { (block + 1) << bits } else { u64::MAX }
}

/// First and last node of a list; `last` is meaningless while `first` is [`NIL`].
#[derive(Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    const EMPTY: Self = Self { first: NIL, last: NIL };
}

/// One bit for each of `64 * WORDS` lists: set if the list is not empty.
struct Bitmap<const WORDS: usize> {
    words: [u64; WORDS],
}

impl<const WORDS: usize> Bitmap<WORDS> {
    const EMPTY: Self = Self { words: [0; WORDS] };

    #[inline]
    fn set(&mut self, place: usize) {
        self.words[place / 64 % WORDS] |= 1 << (place % 64);
    }

    #[inline]
    fn clear(&mut self, place: usize) {
        self.words[place / 64 % WORDS] &= !(1 << (place % 64));
    }

    /// Clears the first set bit of a word.
    #[inline]
    fn clear_first(&mut self, word: usize) {
        self.words[word % WORDS] &= self.words[word % WORDS] - 1;
    }

    /// Returns the places of all set bits.
    fn places(&self) -> impl Iterator<Item = usize> {
        let above = |&bits: &u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
        let words = self.words.iter().enumerate().filter(|&(_, &bits)| bits != 0);
        words.flat_map(move |(word, &bits)| {
            std::iter::successors(Some(bits), above)
                .map(move |bits| 64 * word + bits.trailing_zeros() as usize)
        })
    }

    /// Returns the first set bit from `start` on, with wrap-around.
    fn next(&self, start: usize) -> Option<usize> {
        let first = start / 64 % WORDS;
        let here = self.words[first] & (u64::MAX << (start % 64));
        if here != 0 {
            return Some(first * 64 + here.trailing_zeros() as usize);
        }
        self.next_from_word(first + 1)
    }

    /// Returns the first set bit from word `first` on, with wrap-around.
    #[inline]
    fn next_from_word(&self, first: usize) -> Option<usize> {
        let first = first % WORDS;
        if self.words[first] != 0 {
            return Some(first * 64 + self.words[first].trailing_zeros() as usize);
        }
        let mut later = (1..=WORDS).map(|offset| (first + offset) % WORDS);
        let word = later.find(|&word| self.words[word] != 0)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

/// The scheduled occurrences, each with its time in picoseconds.
pub(crate) struct Schedule {
    /// The inner ring.
    buckets: Box<[Chain; BUCKETS]>,
    used_buckets: Bitmap<{ BUCKETS / 64 }>,
    /// The outer ring: the occurrences of each block with their keys, in the order of scheduling. Arrays are read in a row,
    /// where the nodes of a list would be far apart in memory.
    blocks: Vec<Vec<(u64, Occurrence)>>,
    used_blocks: Bitmap<{ BLOCKS / 64 }>,
    /// Memory of emptied blocks, for the next ones.
    spare: Vec<Vec<(u64, Occurrence)>>,
    /// The far future: key, number in the order of scheduling, occurrence.
    far: BinaryHeap<Reverse<(u64, u64, Occurrence)>>,
    far_scheduled: u64,
    /// A bucket spans `1 << shift` keys.
    shift: u32,
    /// The first bucket with an occurrence, counted from time zero; [`NEVER`] while the inner ring is empty. The search for it
    /// runs when the previous occurrence is taken, and need not wait for insertions in between
    /// (docs/engineering/simulator-speed.md).
    first: u64,
    /// The present block, counted from time zero.
    block: u64,
    /// The first key behind the present block.
    block_end: u64,
    /// The first key behind the inner ring.
    near_end: u64,
    /// Node `p` below this number is reserved for the arrival over the link of port `p`, with its frame; others are shared.
    ports: u32,
    nodes: Vec<ScheduleNode>,
    /// First of the free shared nodes.
    free: u32,
    pub(crate) ties: Ties,
    /// Largest key taken so far.
    taken: u64,
    /// Ranks and nodes during a sort; kept to reuse its memory.
    tied: Vec<(u64, u32)>,
}

impl Schedule {
    /// Makes an empty schedule for `ports` ports. Buckets span about `bucket_ps`, rounded down to a power of two. The order is
    /// the same with any width; about one occurrence a bucket is fastest.
    pub(crate) fn new(bucket_ps: u64, ports: u32, ties: Ties) -> Self {
        let frame = Parcel::default();
        let arrival = |port| ScheduleNode { key: 0, occurrence: Occurrence::Arrival(port), frame, next: NIL };
        let shift = 1 + bucket_ps.clamp(1 << 8, 1 << 36).ilog2();
        Self {
            buckets: Box::new([Chain::EMPTY; BUCKETS]),
            used_buckets: Bitmap::EMPTY,
            blocks: vec![Vec::new(); BLOCKS],
            used_blocks: Bitmap::EMPTY,
            spare: Vec::new(),
            far: BinaryHeap::new(),
            far_scheduled: 0,
            shift,
            first: NEVER,
            block: 0,
            block_end: block_end(0, shift),
            near_end: block_end(1, shift),
            ports,
            nodes: (0..ports).map(arrival).collect(),
            free: NIL,
            ties,
            taken: 0,
            tied: Vec::new(),
        }
    }

    /// Returns all scheduled occurrences, in no order.
    fn occurrences(&self) -> impl Iterator<Item = Occurrence> {
        let node = |number: u32| self.nodes.get(number as usize);
        let list = move |place: usize| {
            std::iter::successors(node(self.buckets[place].first), move |at: &&ScheduleNode| node(at.next))
        };
        let near = self.used_buckets.places().flat_map(list).map(|node| node.occurrence);
        let later = self.blocks.iter().flatten().map(|&(_, occurrence)| occurrence);
        near.chain(later).chain(self.far.iter().map(|&Reverse((.., occurrence))| occurrence))
    }

    /// Returns true if more than `count` occurrences are scheduled.
    pub(crate) fn holds_more_than(&self, count: usize) -> bool {
        self.occurrences().nth(count).is_some()
    }

    /// Returns the frames whose arrivals are scheduled, each with the port of its link, in no order.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (PortIndex, Parcel)> {
        self.occurrences().filter_map(|occurrence| match occurrence {
            Occurrence::Arrival(port) => Some((port, self.frame(port))),
            _ => None,
        })
    }

    /// Returns the frame whose arrival over the link of `port` is scheduled, or was taken last.
    #[inline]
    pub(crate) fn frame(&self, port: PortIndex) -> Parcel {
        self.nodes[port as usize].frame
    }

    /// Returns the block of a key, counted from time zero.
    #[inline]
    const fn block_of(&self, key: u64) -> u64 {
        key >> self.shift >> BLOCK_BITS
    }

    /// Schedules an occurrence; `time` must not lie before the last one taken, nor beyond [`LATEST`].
    #[inline]
    pub(crate) fn insert(&mut self, time: u64, occurrence: Occurrence) {
        self.insert_key(key(time), occurrence);
    }

    /// Schedules an occurrence before all those of its instant from [`Self::insert`].
    #[inline]
    pub(crate) fn insert_first(&mut self, time: u64, occurrence: Occurrence) {
        self.insert_key(first_key(time), occurrence);
    }

    #[inline(never)]
    fn insert_key(&mut self, key: u64, occurrence: Occurrence) {
        assert!(key >> 1 >= self.taken >> 1, "an occurrence in the past");
        if key < self.near_end {
            let node = self.take_node(key, occurrence);
            self.insert_near(key, node);
        } else {
            self.insert_later(key, occurrence);
        }
    }

    /// Schedules the arrival of a frame over the link of `port`, which has no arrival scheduled.
    #[inline(always)]
    pub(crate) fn insert_arrival(&mut self, time: u64, port: PortIndex, frame: Parcel) {
        let key = key(time);
        self.nodes[port as usize].frame = frame;
        debug_assert!(key >> 1 >= self.taken >> 1, "an occurrence in the past");
        if key < self.near_end {
            self.set_arrival(key, port);
            self.insert_near(key, port);
        } else {
            self.insert_later(key, Occurrence::Arrival(port));
        }
    }

    /// Writes the node of a port's arrival.
    #[inline]
    fn set_arrival(&mut self, key: u64, port: PortIndex) {
        let node = &mut self.nodes[port as usize];
        node.key = key;
        node.next = NIL;
    }

    /// Takes a free shared node for an occurrence.
    #[inline]
    fn take_node(&mut self, key: u64, occurrence: Occurrence) -> u32 {
        let new = ScheduleNode { key, occurrence, frame: Parcel::default(), next: NIL };
        let node = self.free;
        if node == NIL {
            self.nodes.push(new);
            return (self.nodes.len() - 1) as u32;
        }
        let place = &mut self.nodes[node as usize];
        self.free = place.next;
        *place = new;
        node
    }

    /// Schedules an occurrence beyond the inner ring.
    #[inline(never)]
    fn insert_later(&mut self, key: u64, occurrence: Occurrence) {
        if self.block_of(key) - self.block < BLOCKS as u64 {
            self.insert_outer(key, occurrence);
        } else {
            self.far.push(Reverse((key, self.far_scheduled, occurrence)));
            self.far_scheduled += 1;
        }
    }

    /// Inserts a node into its bucket, after all nodes of the same or an earlier time.
    #[inline(always)]
    fn insert_near(&mut self, key: u64, node: u32) {
        let bucket = key >> (self.shift % u64::BITS);
        let slot = bucket as usize % BUCKETS;
        let Chain { first, last } = self.buckets[slot];
        if first == NIL {
            self.buckets[slot] = Chain { first: node, last: node };
            self.used_buckets.set(slot);
            if bucket < self.first {
                self.move_first(bucket);
            }
        } else if self.nodes[last as usize].key <= key {
            // The usual case, also for many timers that expire at one tick.
            self.nodes[last as usize].next = node;
            self.buckets[slot].last = node;
        } else if self.nodes[first as usize].key > key {
            self.nodes[node as usize].next = first;
            self.buckets[slot].first = node;
        } else {
            let mut before = first;
            while self.nodes[self.nodes[before as usize].next as usize].key <= key {
                before = self.nodes[before as usize].next;
            }
            self.nodes[node as usize].next = self.nodes[before as usize].next;
            self.nodes[before as usize].next = node;
        }
    }

    /// Notes an earlier first bucket. A call for this rare case lets [`Self::pop`] take the next occurrence without waiting for
    /// the comparison.
    #[cold]
    #[inline(never)]
    fn move_first(&mut self, bucket: u64) {
        assert!(bucket >> BLOCK_BITS >= self.block, "a bucket before the present block");
        self.first = bucket;
    }

    /// Appends an occurrence to its block of the outer ring.
    fn insert_outer(&mut self, key: u64, occurrence: Occurrence) {
        let place = self.block_of(key) as usize % BLOCKS;
        let block = &mut self.blocks[place];
        if block.capacity() == 0 {
            *block = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(64));
        }
        block.push((key, occurrence));
        self.used_blocks.set(place);
    }

    /// Takes the earliest occurrence. If that is later than `until`, takes nothing, and returns only a time: after `until`, and
    /// not after the occurrence. `None` if nothing is scheduled.
    #[inline(always)]
    pub(crate) fn pop(&mut self, until: u64) -> Option<(u64, Option<Occurrence>)> {
        if self.first == NEVER
            && let Some(later) = self.skip(until)?
        {
            return Some((later, None));
        }
        let slot = self.first as usize % BUCKETS;
        debug_assert_eq!(self.used_buckets.next(slot), Some(slot), "the first bucket is empty");
        let mut node = self.buckets[slot].first;
        let ScheduleNode { key, mut next, .. } = self.nodes[node as usize];
        if key >> 1 > until {
            return Some((key >> 1, None));
        }
        if key > self.taken {
            self.taken = key;
            if next != NIL && self.nodes[next as usize].key == key {
                node = self.order(slot, key);
                next = self.nodes[node as usize].next;
            }
        } else {
            assert!(key >> 1 == self.taken >> 1, "time runs backwards");
        }
        // An arrival's node has the number of its port, so that the port need not wait for the node.
        let occurrence = if node < self.ports { Occurrence::Arrival(node) } else { self.take_shared(node) };
        self.buckets[slot].first = next;
        if next == NIL {
            self.used_buckets.clear_first(slot / 64);
            self.first = match self.used_buckets.next_from_word(slot / 64) {
                Some(later) => self.first + (later.wrapping_sub(slot) % BUCKETS) as u64,
                None => NEVER,
            };
        }
        if key >= self.block_end {
            self.enter_block(self.block + 1);
        }
        Some((key >> 1, Some(occurrence)))
    }

    /// Frees a shared node; returns its occurrence.
    #[cold]
    fn take_shared(&mut self, node: u32) -> Occurrence {
        let place = &mut self.nodes[node as usize];
        place.next = self.free;
        self.free = node;
        place.occurrence
    }

    /// Sorts the occurrences at the front of a bucket that have this key by their ranks; returns the new first node.
    #[inline(never)]
    fn order(&mut self, slot: usize, key: u64) -> u32 {
        let salt = self.ties.salt(key >> 1);
        let mut node = self.buckets[slot].first;
        while node != NIL && self.nodes[node as usize].key == key {
            let ScheduleNode { occurrence, next, .. } = self.nodes[node as usize];
            self.tied.push((self.ties.rank(salt, occurrence), node));
            node = next;
        }
        // Stable: occurrences of equal ranks keep their order.
        self.tied.sort_by_key(|&(rank, _)| rank);
        let rest = node;
        if rest == NIL {
            self.buckets[slot].last = self.tied[self.tied.len() - 1].1;
        }
        let mut next = rest;
        for (_, node) in self.tied.drain(..).rev() {
            self.nodes[node as usize].next = next;
            next = node;
        }
        self.buckets[slot].first = next;
        next
    }

    /// Moves an empty inner ring to the block before the next non-empty one. If that block begins after `until`, does not move
    /// and returns the block's begin. Returns `None` if nothing is scheduled.
    #[cold]
    fn skip(&mut self, until: u64) -> Option<Option<u64>> {
        let present = self.block as usize;
        let next = match self.used_blocks.next(present % BLOCKS) {
            Some(place) => self.block + (place.wrapping_sub(present) % BLOCKS) as u64,
            None => self.block_of(self.far.peek()?.0.0),
        };
        assert!(next >= self.block + 2, "the inner ring skips one of its own blocks");
        let begin = (next - 1) << BLOCK_BITS << self.shift >> 1;
        if begin > until {
            return Some(Some(begin));
        }
        self.enter_block(next - 1);
        assert!(self.first != NEVER, "the block entered holds no occurrence");
        Some(None)
    }

    /// Enters another block. The outer ring takes the occurrences of its new span from the heap, and the inner ring takes its
    /// two blocks from the outer ring. Nothing else was inserted there before, so that the order of scheduling is kept.
    #[cold]
    fn enter_block(&mut self, present: u64) {
        self.block = present;
        self.block_end = block_end(present, self.shift);
        self.near_end = block_end(present + 1, self.shift);
        while let Some(&Reverse((key, _, occurrence))) = self.far.peek() {
            if self.block_of(key) - present >= BLOCKS as u64 {
                break;
            }
            self.far.pop();
            self.insert_outer(key, occurrence);
        }
        for block in [present, present + 1] {
            let place = block as usize % BLOCKS;
            self.used_blocks.clear(place);
            let mut later = std::mem::take(&mut self.blocks[place]);
            for (key, occurrence) in later.drain(..) {
                let node = match occurrence {
                    Occurrence::Arrival(port) => {
                        self.set_arrival(key, port);
                        port
                    }
                    _ => self.take_node(key, occurrence),
                };
                self.insert_near(key, node);
            }
            if later.capacity() > 0 {
                self.spare.push(later);
            }
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/schedule.rs"]
mod tests;
