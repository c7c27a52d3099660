//! First in, first out: a growing ring of plain values.

use alloc::boxed::Box;
use alloc::vec;

/// A first-in first-out queue. Its memory doubles when it is full, and is never freed.
#[derive(Debug, Clone, Default)]
pub struct Fifo<T> {
    /// The slots. Their number is a power of two, or 0 before the first value.
    slots: Box<[T]>,
    /// Counts of values taken out and put in so far, which wrap. As in the kernel's `kfifo`, a value's slot is its count
    /// modulo the number of slots.
    out: u32,
    put: u32,
}

impl<T: Copy + Default> Fifo<T> {
    /// The largest number of values.
    pub const LEN_MAX: u32 = 1 << 26;

    /// An empty queue without memory.
    pub fn new() -> Self {
        Self { slots: Box::default(), out: 0, put: 0 }
    }

    /// The number of values.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.put.wrapping_sub(self.out)
    }

    /// Returns true if the queue is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.put == self.out
    }

    /// Makes room for `len` values at once, so that pushing them allocates nothing.
    ///
    /// # Panics
    /// If `len` exceeds [`Self::LEN_MAX`].
    pub fn reserve(&mut self, len: u32) {
        assert!(len <= Self::LEN_MAX, "a queue holds {len} values, more than {}", Self::LEN_MAX);
        if len as usize > self.slots.len() {
            self.grow(len.next_power_of_two());
        }
    }

    /// Adds a value behind all others.
    ///
    /// # Panics
    /// If the queue would hold more than [`Self::LEN_MAX`].
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len() as usize == self.slots.len() {
            self.grow((self.len() * 2).max(4));
        }
        let place = self.place(self.put);
        self.slots[place] = value;
        self.put = self.put.wrapping_add(1);
    }

    /// All values, in order.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        (0..self.len()).map(|offset| self.slots[self.place(self.out.wrapping_add(offset))])
    }

    /// The first value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.slots.get(self.place(self.out)) }
    }

    /// Removes all values. The next one takes the first slot, which is likely to be in a cache.
    #[inline]
    pub(crate) const fn clear(&mut self) {
        (self.out, self.put) = (0, 0);
    }

    /// Removes and returns the first value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.out = self.out.wrapping_add(1);
        Some(value)
    }

    /// Removes and returns the first value, if `wanted` accepts it.
    #[inline]
    pub(crate) fn pop_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let value = *self.front().filter(|&first| wanted(first))?;
        self.out = self.out.wrapping_add(1);
        Some(value)
    }

    /// Removes the first value that `wanted` accepts, at any place; later values move up. Searches the whole queue.
    ///
    /// # Panics
    /// If no value is accepted.
    #[cold]
    pub(crate) fn remove(&mut self, wanted: impl Fn(&T) -> bool) {
        let mut offsets = 0..self.len();
        let found = offsets.find(|&offset| wanted(&self.slots[self.place(self.out.wrapping_add(offset))]));
        let found = found.expect("a value that is removed is in the queue");
        let found = self.out.wrapping_add(found);
        for offset in 1..self.put.wrapping_sub(found) {
            let behind = found.wrapping_add(offset);
            self.slots[self.place(behind.wrapping_sub(1))] = self.slots[self.place(behind)];
        }
        self.put = self.put.wrapping_sub(1);
    }

    /// The slot of the value with this count.
    #[inline]
    fn place(&self, count: u32) -> usize {
        count as usize & self.slots.len().wrapping_sub(1)
    }

    #[cold]
    fn grow(&mut self, capacity: u32) {
        assert!(capacity <= Self::LEN_MAX, "a queue outgrows its limit of {} values", Self::LEN_MAX);
        assert!(
            capacity.is_power_of_two() && capacity > self.len(),
            "a queue gets {capacity} slots, which is no power of two or too few"
        );
        let mut slots = vec![T::default(); capacity as usize];
        slots.iter_mut().zip(self.iter()).for_each(|(slot, value)| *slot = value);
        (self.out, self.put) = (0, self.len());
        self.slots = slots.into_boxed_slice();
    }
}
