//! The deadlines of a role.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use fanin_units::{Duration, Instant};

/// Returns `now + wait`, or [`Instant::FAR_FUTURE`] if the sum overflows.
#[inline]
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    now.checked_add(wait).unwrap_or(Instant::FAR_FUTURE)
}

/// Timers in the order of their times; equal times keep the order of setting.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<TimerEntry<T>>>,
    set: u64,
}

#[derive(Debug)]
struct TimerEntry<T> {
    at: Instant,
    order: u64,
    timer: T,
}

impl<T> PartialEq for TimerEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for TimerEntry<T> {}

impl<T> PartialOrd for TimerEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for TimerEntry<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<T> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), set: 0 }
    }

    pub(crate) fn set(&mut self, at: Instant, timer: T) {
        self.set += 1;
        self.heap.push(Reverse(TimerEntry { at, order: self.set, timer }));
    }

    /// Returns the number of timers.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns the time and the value of the earliest timer; `None` without timers.
    pub(crate) fn first(&self) -> Option<(Instant, &T)> {
        self.heap.peek().map(|Reverse(entry)| (entry.at, &entry.timer))
    }

    /// Removes and returns the earliest timer if it is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        if self.heap.peek()?.0.at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.timer)
    }

    /// Removes the earliest timer, due or not.
    pub(crate) fn drop_first(&mut self) {
        self.heap.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut timers = Timers::new();
        for (at, timer) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            timers.set(Instant::new(at), timer);
        }
        assert_eq!(timers.pop_due(Instant::new(2)), None);
        let order: [_; 4] = core::array::from_fn(|_| timers.pop_due(Instant::new(5)).unwrap());
        assert_eq!(order, ['a', 'b', 'c', 'd']);
    }
}
