//! First in, first out: a growing ring of plain values.

use alloc::boxed::Box;
use alloc::vec;

/// A first-in first-out queue. Its slots double when they run out and are never given back.
#[derive(Debug, Clone, Default)]
pub struct Fifo<T> {
    /// The slots: a power of two, or none yet.
    slots: Box<[T]>,
    head: u32,
    len: u32,
}

impl<T: Copy + Default> Fifo<T> {
    /// The largest number of values.
    pub const LEN_MAX: u32 = 1 << 26;

    /// An empty queue without memory.
    pub fn new() -> Self {
        Self { slots: Box::default(), head: 0, len: 0 }
    }

    /// The number of values.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if the queue is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for `len` values at once, so that pushing them allocates nothing.
    ///
    /// # Panics
    /// If that is more than [`Self::LEN_MAX`].
    pub fn reserve(&mut self, len: u32) {
        assert!(len <= Self::LEN_MAX, "a queue of {len} values; the most is {}", Self::LEN_MAX);
        if len as usize > self.slots.len() {
            self.grow(len.next_power_of_two());
        }
    }

    /// Adds a value behind all others.
    ///
    /// # Panics
    /// If it would hold more than [`Self::LEN_MAX`].
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len as usize == self.slots.len() {
            self.grow((self.len * 2).max(4));
        }
        let index = self.index(self.len);
        self.slots[index] = value;
        self.len += 1;
    }

    /// All values, in order.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        (0..self.len).map(|offset| self.slots[self.index(offset)])
    }

    /// The first value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head as usize) }
    }

    /// Takes the first value out.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.slots[self.head as usize];
        self.len -= 1;
        // A queue that ran empty starts over, so that one which stays short stays in one place of the cache.
        self.head = if self.len == 0 { 0 } else { self.index(1) as u32 };
        Some(value)
    }

    /// Takes out values from the front while `takes` returns true.
    #[inline]
    pub(crate) fn pop_while(&mut self, mut takes: impl FnMut(&T) -> bool) {
        let (mut head, mut left) = (self.head as usize, self.len);
        while left > 0 && self.slots.get(head).is_some_and(&mut takes) {
            head = (head + 1) & (self.slots.len() - 1);
            left -= 1;
        }
        self.len = left;
        self.head = if left == 0 { 0 } else { head as u32 };
    }

    /// Takes out the first value that `wanted` accepts, wherever it is; those behind it move up. Searches the whole queue.
    ///
    /// # Panics
    /// If there is none.
    #[cold]
    pub(crate) fn remove(&mut self, wanted: impl Fn(&T) -> bool) {
        let found = (0..self.len).find(|&offset| wanted(&self.slots[self.index(offset)]));
        let found = found.expect("a value that is removed is in the queue");
        for offset in found + 1..self.len {
            let (to, from) = (self.index(offset - 1), self.index(offset));
            self.slots[to] = self.slots[from];
        }
        self.len -= 1;
    }

    #[inline]
    fn index(&self, offset: u32) -> usize {
        (self.head.wrapping_add(offset)) as usize & (self.slots.len().wrapping_sub(1))
    }

    #[cold]
    fn grow(&mut self, capacity: u32) {
        assert!(capacity <= Self::LEN_MAX, "a queue outgrows its limit of {} values", Self::LEN_MAX);
        let mut slots = vec![T::default(); capacity as usize];
        for (offset, slot) in slots.iter_mut().enumerate().take(self.len as usize) {
            *slot = self.slots[self.index(offset as u32)];
        }
        self.slots = slots.into_boxed_slice();
        self.head = 0;
    }
}
