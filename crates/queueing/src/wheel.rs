//! Rings that wait for tokens, in a timing wheel: the cost of an expiry does not grow with their number.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Instant;

/// Slots of the wheel: one word of summary bits over 64 words of 64 bits.
const SLOTS: u64 = 64 * 64;
/// Logarithm of a slot's duration: 2^16 ps, about 66 ns; the wheel spans 268 µs. Later timers wait in the last slot and are moved
/// on.
const SLOT_BITS: u32 = 16;
/// The end of a list.
const NIL: u32 = u32::MAX;
/// Time that stands for no waiting ring.
const NEVER: u64 = u64::MAX;

/// A timing wheel with one timer for each ring. It knows the earliest time exactly, not only its slot.
///
/// A single waiting ring takes no slot. The slots take 16 KiB a port. A rack's switch has dozens of ports with one shaped
/// ring each, and their slots would not fit the first-level cache.
#[derive(Debug, Clone)]
pub(crate) struct Wheel {
    /// The only waiting ring, in no slot; [`NIL`] if none or several wait.
    alone: u32,
    /// The first ring of each slot; allocated when two rings wait for the first time.
    heads: Box<[u32]>,
    words: [u64; 64],
    summary: u64,
    timers: Vec<RingTimer>,
    /// Number of a slot, counted from time zero; no ring waits in an earlier slot.
    cursor: u64,
    earliest: u64,
}

#[derive(Debug, Clone, Copy)]
struct RingTimer {
    at: u64,
    next: u32,
    slot: u32,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            alone: NIL,
            heads: Box::default(),
            words: [0; 64],
            summary: 0,
            timers: Vec::new(),
            cursor: 0,
            earliest: NEVER,
        }
    }

    /// Makes room for one more ring.
    pub(crate) fn add(&mut self) {
        self.timers.push(RingTimer { at: NEVER, next: NIL, slot: 0 });
    }

    /// The earliest time for which a ring waits.
    #[inline]
    pub(crate) const fn earliest(&self) -> Option<Instant> {
        if self.earliest == NEVER { None } else { Some(Instant::new(self.earliest)) }
    }

    /// Makes a ring wait until `at`, which is not before `now`. The ring must not wait yet.
    #[inline]
    pub(crate) fn park(&mut self, now: Instant, ring: u32, at: Instant) {
        assert!(at >= now, "a ring waits for a time that is over");
        assert_ne!(self.alone, ring, "a ring waits twice");
        if self.earliest == NEVER {
            self.cursor = now.get() >> SLOT_BITS;
            self.earliest = at.get();
            self.alone = ring;
            return;
        }
        if self.alone != NIL {
            self.join_first();
        }
        self.earliest = self.earliest.min(at.get());
        self.insert(ring, at.get());
    }

    /// Moves the ring that waited alone into the slots.
    #[inline(never)]
    fn join_first(&mut self) {
        if self.heads.is_empty() {
            self.heads = vec![NIL; SLOTS as usize].into_boxed_slice();
        }
        let first = core::mem::replace(&mut self.alone, NIL);
        self.insert(first, self.earliest);
    }

    #[inline]
    fn insert(&mut self, ring: u32, at: u64) {
        let ahead = (at >> SLOT_BITS).saturating_sub(self.cursor).min(SLOTS - 1);
        let slot = ((self.cursor + ahead) % SLOTS) as usize;
        assert_ne!(ring, NIL, "a slot takes no ring");
        self.timers[ring as usize] = RingTimer { at, next: self.heads[slot], slot: slot as u32 };
        self.heads[slot] = ring;
        self.words[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
    }

    /// Passes every ring due by `now` to `due`.
    #[inline]
    pub(crate) fn expire(&mut self, now: Instant, due: impl FnMut(u32)) {
        if self.earliest <= now.get() {
            self.expire_some(now, due);
        }
    }

    #[inline(never)]
    fn expire_some(&mut self, now: Instant, mut due: impl FnMut(u32)) {
        if self.alone != NIL {
            self.earliest = NEVER;
            due(core::mem::replace(&mut self.alone, NIL));
            return;
        }
        let last = now.get() >> SLOT_BITS;
        assert!(last >= self.cursor, "time runs backwards");
        while let Some(tick) = self.first()
            && tick <= last
        {
            self.cursor = tick;
            let mut ring = self.take((tick % SLOTS) as usize);
            while ring != NIL {
                let RingTimer { at, next, .. } = self.timers[ring as usize];
                if at <= now.get() {
                    due(ring);
                } else {
                    self.insert(ring, at);
                }
                ring = next;
            }
            if tick == last {
                break;
            }
        }
        self.cursor = last;
        self.find_earliest();
        assert!(self.earliest > now.get(), "a ring with tokens still waits for them");
    }

    /// Removes a waiting ring.
    pub(crate) fn remove(&mut self, ring: u32) {
        if self.alone != NIL {
            assert_eq!(self.alone, ring, "a ring waits alone and is not the one that is removed");
            self.alone = NIL;
            self.earliest = NEVER;
            return;
        }
        let slot = self.timers[ring as usize].slot as usize;
        let (mut other, mut is_found) = (self.take(slot), false);
        while other != NIL {
            let RingTimer { at, next, .. } = self.timers[other as usize];
            if other == ring {
                is_found = true;
            } else {
                self.insert(other, at);
            }
            other = next;
        }
        assert!(is_found, "ring {ring} does not wait for tokens");
        self.find_earliest();
    }

    /// Empties a slot and returns its list.
    #[inline]
    fn take(&mut self, slot: usize) -> u32 {
        let word = &mut self.words[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.summary &= !(1 << (slot / 64));
        }
        let head = core::mem::replace(&mut self.heads[slot], NIL);
        assert_ne!(head, NIL, "a slot without a ring is marked");
        head
    }

    /// The first slot from the cursor on that is not empty.
    #[inline]
    fn first(&self) -> Option<u64> {
        let from = (self.cursor % SLOTS) as usize;
        let here = self.words[from / 64] & (!0 << (from % 64));
        let slot = if here != 0 {
            from / 64 * 64 + here.trailing_zeros() as usize
        } else {
            // The later words first, then the earlier ones, then this word's lower bits.
            let behind = self.summary & (!0 << (from / 64)) & !(1 << (from / 64));
            let any = if behind != 0 { behind } else { self.summary };
            if any == 0 {
                return None;
            }
            let word = any.trailing_zeros() as usize;
            word * 64 + self.words[word].trailing_zeros() as usize
        };
        Some(self.cursor + (slot as u64).wrapping_sub(from as u64) % SLOTS)
    }

    fn find_earliest(&mut self) {
        self.earliest = NEVER;
        while let Some(tick) = self.first() {
            let slot = (tick % SLOTS) as usize;
            let (mut ring, mut earliest) = (self.heads[slot], NEVER);
            while ring != NIL {
                let timer = self.timers[ring as usize];
                earliest = earliest.min(timer.at);
                ring = timer.next;
            }
            if earliest >> SLOT_BITS <= tick || tick == self.cursor + SLOTS - 1 {
                self.earliest = earliest;
                return;
            }
            // All timers of the slot were beyond the wheel's span when added. They move to their slots now.
            let mut ring = self.take(slot);
            while ring != NIL {
                let RingTimer { at, next, .. } = self.timers[ring as usize];
                self.insert(ring, at);
                ring = next;
            }
        }
    }
}
