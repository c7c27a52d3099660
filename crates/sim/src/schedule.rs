//! What happens next: a timing wheel of occurrences in three levels, and a heap for the far future.
//!
//! Nearly all occurrences are arrivals of frames, at most one pending for each link, a few microseconds ahead. They
//! lie in the inner ring of narrow buckets, each a short list sorted by time; a bitmap finds the next bucket that
//! holds anything. Timers lie unsorted in the outer ring, whose buckets are whole blocks of the inner one, and are dealt
//! out when their block comes near; those of some seconds, retransmission timers above all, in lists of whole eras of
//! blocks. What is later still waits in a binary heap.
//! Of the occurrences of one instant departures come first; all others happen in the order in which they were scheduled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::index::NIL;
use crate::occurrence::Occurrence;
use fanin_network::PortIndex;

/// Buckets in a block, as a power of two.
const BLOCK_BITS: u32 = 9;
/// The inner ring holds two blocks: the present one and the next.
const BUCKETS: usize = 2 << BLOCK_BITS;
/// Blocks in an era, as a power of two.
const ERA_BITS: u32 = 11;
/// The outer ring holds the blocks of two eras: of the present one and of the next.
const BLOCKS: usize = 2 << ERA_BITS;
/// Eras that have lists, the two of the outer ring among them.
const ERAS: usize = 64;

#[derive(Clone, Copy)]
struct Node {
    /// The [`key`] of its time.
    time: u64,
    what: Occurrence,
    next: u32,
}

/// Which of `64 * WORDS` places hold something.
struct Bitmap<const WORDS: usize> {
    words: Box<[u64; WORDS]>,
    /// One bit for each word that is not zero; at most 64 words.
    summary: u64,
}

impl<const WORDS: usize> Bitmap<WORDS> {
    fn new() -> Self {
        const { assert!(WORDS <= 64) };
        Self { words: Box::new([0; WORDS]), summary: 0 }
    }

    #[inline]
    fn set(&mut self, place: usize) {
        let word = place / 64 % WORDS;
        self.words[word] |= 1 << (place % 64);
        self.summary |= 1 << word;
    }

    #[inline]
    fn clear(&mut self, place: usize) {
        let word = place / 64 % WORDS;
        self.words[word] &= !(1 << (place % 64));
        if self.words[word] == 0 {
            self.summary &= !(1 << word);
        }
    }

    /// The first occupied place from `start` on, round the ring.
    #[inline]
    fn next(&self, start: usize) -> Option<usize> {
        let first = start / 64 % WORDS;
        let here = self.words[first] & (u64::MAX << (start % 64));
        if here != 0 {
            return Some(first * 64 + here.trailing_zeros() as usize);
        }
        let later = self.summary & (u64::MAX << first) & !(1 << first);
        let word = match (later, self.summary) {
            (0, 0) => return None,
            (0, any) => any.trailing_zeros(),
            (later, _) => later.trailing_zeros(),
        };
        let word = word as usize % WORDS;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

/// The place of a time among all occurrences: what comes first at an instant has an even one.
#[inline]
const fn key(time: u64) -> u64 {
    first_key(time) | 1
}

#[inline]
const fn first_key(time: u64) -> u64 {
    debug_assert!(time < 1 << 63, "a time beyond the schedule");
    time << 1
}

/// The pending occurrences, each with its time in picoseconds.
pub(crate) struct Schedule {
    /// First and last node of each bucket; the last is of no account where the first is [`NIL`].
    buckets: Box<[(u32, u32); BUCKETS]>,
    near: Bitmap<{ BUCKETS / 64 }>,
    /// First and last node of each block.
    blocks: Box<[(u32, u32); BLOCKS]>,
    outer: Bitmap<{ BLOCKS / 64 }>,
    /// First and last node of each era.
    eras: [(u32, u32); ERAS],
    /// How many nodes they hold.
    in_eras: usize,
    /// A bucket spans `1 << shift` keys.
    shift: u32,
    /// Node `p` below this number is reserved for the arrival over the link of port `p`; the others are shared.
    ports: u32,
    /// The bucket, counted from the start of time, that the last occurrence was taken from.
    cursor: u64,
    /// The first bucket beyond the two blocks that the inner ring holds.
    near_end: u64,
    /// The first block beyond the two eras that the outer ring holds.
    outer_end: u64,
    nodes: Vec<Node>,
    free: u32,
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_scheduled: u64,
    pending: usize,
    /// Owned occurrences that have come near since somebody last looked.
    came_near: Vec<u32>,
}

impl Schedule {
    /// An empty schedule for so many ports. Buckets span about `bucket_ps`, rounded down to a power of two.
    ///
    /// Speed is best when about one occurrence falls into a bucket; the order never depends on it.
    pub(crate) fn new(bucket_ps: u64, ports: u32) -> Self {
        Self {
            buckets: Box::new([(NIL, NIL); BUCKETS]),
            near: Bitmap::new(),
            blocks: Box::new([(NIL, NIL); BLOCKS]),
            outer: Bitmap::new(),
            eras: [(NIL, NIL); ERAS],
            in_eras: 0,
            shift: 1 + bucket_ps.clamp(1 << 8, 1 << 36).ilog2(),
            ports,
            cursor: 0,
            near_end: 2 << BLOCK_BITS,
            outer_end: BLOCKS as u64,
            nodes: (0..ports)
                .map(|port| Node { time: 0, what: Occurrence::Arrival(port), next: NIL })
                .collect(),
            free: NIL,
            far: BinaryHeap::new(),
            far_scheduled: 0,
            pending: 0,
            came_near: Vec::new(),
        }
    }

    /// The owned occurrences that waited beyond the inner ring and have entered it since the last call, a block or less
    /// before they are due. To be given back to [`Self::take_back`].
    #[inline(always)]
    pub(crate) fn came_near(&mut self) -> Option<Vec<u32>> {
        (!self.came_near.is_empty()).then(|| std::mem::take(&mut self.came_near))
    }

    /// Whether an occurrence at `time` lies in the inner ring.
    #[inline(always)]
    pub(crate) const fn is_near(&self, time: u64) -> bool {
        key(time) >> self.shift < self.near_end
    }

    /// Takes the list of [`Self::came_near`] back, to be filled again.
    pub(crate) fn take_back(&mut self, mut list: Vec<u32>) {
        list.clear();
        self.came_near = list;
    }

    /// How many occurrences are pending.
    pub(crate) fn pending(&self) -> usize {
        self.pending + self.far.len()
    }

    /// Adds an occurrence; `time` must not lie before the last one taken.
    #[inline]
    pub(crate) fn insert(&mut self, time: u64, what: Occurrence) {
        self.insert_at(key(time), what);
    }

    /// Adds an occurrence that comes before all others of its instant but those that were added so before.
    #[inline]
    pub(crate) fn insert_first(&mut self, time: u64, what: Occurrence) {
        self.insert_at(first_key(time), what);
    }

    #[inline]
    fn insert_at(&mut self, time: u64, what: Occurrence) {
        let bucket = time >> self.shift;
        debug_assert!(bucket >= self.cursor, "an occurrence in the past");
        let node = self.lend(time, what);
        if self.is_far(bucket) {
            self.insert_far(time, node);
            return;
        }
        self.pending += 1;
        if bucket < self.near_end {
            self.insert_near(bucket, time, node);
        } else {
            self.insert_later(bucket, node);
        }
    }

    /// Adds the arrival over the link of `port`; of each port, one is pending at most.
    #[inline]
    pub(crate) fn insert_arrival(&mut self, time: u64, port: PortIndex) {
        debug_assert!(port < self.ports);
        let time = key(time);
        let bucket = time >> self.shift;
        let node = &mut self.nodes[port as usize];
        node.time = time;
        node.next = NIL;
        if bucket < self.near_end {
            self.pending += 1;
            self.insert_near(bucket, time, port);
        } else {
            self.insert_arrival_later(bucket, time, port);
        }
    }

    #[cold]
    fn insert_arrival_later(&mut self, bucket: u64, time: u64, node: u32) {
        if self.is_far(bucket) {
            self.insert_far(time, node);
        } else {
            self.pending += 1;
            self.insert_later(bucket, node);
        }
    }

    /// Whether a bucket lies beyond the eras that have lists.
    #[inline]
    const fn is_far(&self, bucket: u64) -> bool {
        bucket >> BLOCK_BITS >= self.outer_end + ((ERAS as u64 - 2) << ERA_BITS)
    }

    #[cold]
    fn insert_far(&mut self, time: u64, node: u32) {
        self.far.push(Reverse((time, self.far_scheduled, node)));
        self.far_scheduled += 1;
    }

    /// A shared node.
    #[inline]
    fn lend(&mut self, time: u64, what: Occurrence) -> u32 {
        let node = Node { time, what, next: NIL };
        if self.free == NIL {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.free;
        let entry = &mut self.nodes[index as usize];
        self.free = entry.next;
        *entry = node;
        index
    }

    /// Into the outer ring, or the list of its era.
    #[inline]
    fn insert_later(&mut self, bucket: u64, node: u32) {
        let block = bucket >> BLOCK_BITS;
        let place = block as usize % BLOCKS;
        let list = if block < self.outer_end {
            if self.blocks[place].0 == NIL {
                self.outer.set(place);
            }
            &mut self.blocks[place]
        } else {
            self.in_eras += 1;
            &mut self.eras[(block >> ERA_BITS) as usize % ERAS]
        };
        if list.0 == NIL {
            *list = (node, node);
        } else {
            self.nodes[list.1 as usize].next = node;
            list.1 = node;
        }
    }

    #[inline]
    fn insert_near(&mut self, bucket: u64, time: u64, node: u32) {
        let slot = bucket as usize % BUCKETS;
        let (head, tail) = self.buckets[slot];
        if head == NIL {
            self.buckets[slot] = (node, node);
            self.near.set(slot);
        } else if self.nodes[tail as usize].time <= time {
            // Also where timers of a hundred thousand connections run out at one tick.
            self.nodes[tail as usize].next = node;
            self.buckets[slot].1 = node;
        } else if self.nodes[head as usize].time > time {
            self.nodes[node as usize].next = head;
            self.buckets[slot].0 = node;
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
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(u64, Occurrence)> {
        let Some(slot) = self.near.next(self.cursor as usize % BUCKETS) else { return self.pop_outer() };
        let node = self.buckets[slot].0;
        let entry = &mut self.nodes[node as usize];
        let Node { time, what, next } = *entry;
        if node >= self.ports {
            entry.next = self.free;
            self.free = node;
        }
        self.buckets[slot].0 = next;
        if next == NIL {
            self.near.clear(slot);
        }
        self.pending -= 1;
        let bucket = time >> self.shift;
        self.cursor = bucket;
        // The next block begins a block's length before the end.
        if bucket + (1 << BLOCK_BITS) >= self.near_end {
            self.deal_out();
        }
        Some((time >> 1, what))
    }

    /// The inner ring is empty: goes to the block before the next one that holds anything.
    #[cold]
    fn pop_outer(&mut self) -> Option<(u64, Occurrence)> {
        let block = self.cursor >> BLOCK_BITS;
        let next = match self.outer.next(block as usize % BLOCKS) {
            Some(place) => block + (place as u64).wrapping_sub(block) % BLOCKS as u64,
            None if self.in_eras > 0 => {
                let first = self.outer_end >> ERA_BITS;
                let is_used = |era: &u64| self.eras[*era as usize % ERAS].0 != NIL;
                (first..first + ERAS as u64 - 2).find(is_used)? << ERA_BITS
            }
            None => self.far.peek()?.0.0 >> self.shift >> BLOCK_BITS,
        };
        self.cursor = self.cursor.max((next - 1) << BLOCK_BITS);
        self.deal_out();
        self.pop()
    }

    /// The cursor has entered another block. Fills the eras from the heap, the outer ring from the eras, then the inner
    /// ring's next block from the outer: each before anything else can be inserted there, so that what was scheduled earlier
    /// comes first.
    #[cold]
    fn deal_out(&mut self) {
        let block = self.cursor >> BLOCK_BITS;
        self.near_end = (block + 2) << BLOCK_BITS;
        let outer_end = ((block >> ERA_BITS) + 2) << ERA_BITS;
        if outer_end > self.outer_end {
            let came = self.outer_end >> ERA_BITS..outer_end >> ERA_BITS;
            self.outer_end = outer_end;
            for era in came.take(ERAS) {
                self.deal_out_era(era as usize % ERAS);
            }
            self.deal_out_far();
        }
        for block in [block, block + 1] {
            let place = block as usize % BLOCKS;
            let (mut node, _) = std::mem::replace(&mut self.blocks[place], (NIL, NIL));
            if node == NIL {
                continue;
            }
            self.outer.clear(place);
            while node != NIL {
                let Node { time, next, .. } = self.nodes[node as usize];
                self.nodes[node as usize].next = NIL;
                self.insert_near(time >> self.shift, time, node);
                if node < self.ports {
                    self.came_near.push(node);
                }
                node = next;
            }
        }
    }

    fn deal_out_era(&mut self, place: usize) {
        let (mut node, _) = std::mem::replace(&mut self.eras[place], (NIL, NIL));
        while node != NIL {
            let Node { time, next, .. } = self.nodes[node as usize];
            self.nodes[node as usize].next = NIL;
            self.in_eras -= 1;
            self.insert_later(time >> self.shift, node);
            node = next;
        }
    }

    fn deal_out_far(&mut self) {
        while let Some(&Reverse((time, _, node))) = self.far.peek() {
            let bucket = time >> self.shift;
            if self.is_far(bucket) {
                break;
            }
            self.far.pop();
            self.pending += 1;
            self.insert_later(bucket, node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::occurrence::Occurrence::{Arrival, HostTimer};

    #[test]
    fn keeps_the_order_of_a_sorted_list() {
        for bucket_ps in [1 << 8, 1 << 16, 1 << 30] {
            let mut schedule = Schedule::new(bucket_ps, 50);
            let mut is_pending = [false; 50];
            let mut expected: Vec<(u64, Occurrence)> = Vec::new();
            let mut state = 1_u64;
            let mut random = move || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                state >> 33
            };
            let mut now = 0;
            for number in 0..30_000_u32 {
                // Equal, near, far and very far times.
                let ahead = match random() % 7 {
                    0 => 0,
                    // Within the eras of one of the widths or another.
                    6 => random() % (1 << (20 + random() % 28)),
                    1 => random() % 1_000,
                    2 => random() % 20_000_000,
                    3 => random() % 2_000_000_000,
                    4 => (random() % 8) * 100_000_000_000,
                    _ => (random() % 4) * 3_000_000_000_000,
                };
                // Every other one is an arrival, of which each port has one at a time.
                let port = number % 50;
                let what = if number % 2 == 0 && !is_pending[port as usize] {
                    is_pending[port as usize] = true;
                    schedule.insert_arrival(now + ahead, port);
                    Arrival(port)
                } else {
                    schedule.insert(now + ahead, HostTimer(number));
                    HostTimer(number)
                };
                let position = expected.partition_point(|&(time, _)| time <= now + ahead);
                expected.insert(position, (now + ahead, what));
                if random() % 3 != 0 {
                    let got = schedule.pop().unwrap();
                    assert_eq!(got, expected.remove(0));
                    now = got.0;
                    if let Arrival(port) = got.1 {
                        is_pending[port as usize] = false;
                    }
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
