//! A growing ring of plain values.

use alloc::vec;
use alloc::vec::Vec;

/// First-in first-out; its slots double when they run out and are never given back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring<T> {
    /// A power of two of them, or none yet.
    slots: Vec<T>,
    head: u32,
    len: u32,
}

impl<T: Copy + Default> Ring<T> {
    /// The most a ring can be asked to hold.
    pub(crate) const LEN_MAX: u32 = 1 << 26;

    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), head: 0, len: 0 }
    }

    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for `len` values at once, so that pushing them allocates nothing.
    pub(crate) fn reserve(&mut self, len: u32) {
        assert!(len <= Self::LEN_MAX, "a ring of {len} values; the most is {}", Self::LEN_MAX);
        if len as usize > self.slots.len() {
            self.grow(len.next_power_of_two());
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if self.len as usize == self.slots.len() {
            self.grow((self.len * 2).max(4));
        }
        let index = self.index(self.len);
        self.slots[index] = value;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head as usize) }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// Takes the first value out if it is wanted.
    #[inline]
    pub(crate) fn pop_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let value = *self.front().filter(|&value| wanted(value))?;
        self.len -= 1;
        // A queue that ran empty starts over, so that one which stays short stays in one place of the cache.
        self.head = if self.len == 0 { 0 } else { self.index(1) as u32 };
        Some(value)
    }

    #[inline]
    fn index(&self, offset: u32) -> usize {
        (self.head.wrapping_add(offset)) as usize & (self.slots.len().wrapping_sub(1))
    }

    #[cold]
    fn grow(&mut self, capacity: u32) {
        assert!(capacity <= Self::LEN_MAX, "a ring outgrows its limit of {} values", Self::LEN_MAX);
        let mut slots = vec![T::default(); capacity as usize];
        for (offset, slot) in slots.iter_mut().enumerate().take(self.len as usize) {
            *slot = self.slots[self.index(offset as u32)];
        }
        self.slots = slots;
        self.head = 0;
    }
}
