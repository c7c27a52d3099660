//! Request-side traffic shaping by credits (thesis §4.3.1, ICC'15 §III.B).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The waiting request that is sent first when credits come back (`shaping.discipline`). The papers do not name the
/// discipline of the ATLAS software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum CreditDiscipline {
    /// The oldest request. If it does not fit, all wait: a collector's events are collected one after the other.
    #[default]
    Fifo,
    /// Events take turns, one request each. If the next one does not fit, all wait: a collector's events are collected
    /// side by side, and all end late.
    RoundRobin,
    /// A request of the event with the fewest fragments still to request. If it does not fit, all wait.
    SmallestRemaining,
    /// The oldest request that fits. No credit idles; large requests may wait long while small ones keep coming.
    FirstFit,
}

/// Credits that requests take and answers return, and the requests waiting for credits.
///
/// `T` is a request; each belongs to a slot, the collector's number for an event in collection. Adding a request, and
/// serving one after a credit has returned, cost O(1). [`CreditDiscipline::SmallestRemaining`] searches the slots with
/// requests after a request was added, or a slot changed or ran empty. [`CreditDiscipline::FirstFit`] searches the
/// distinct costs, at most 128.
#[derive(Debug)]
pub struct CreditPool<T> {
    /// The total number of credits; with `None` no request waits.
    credits: Option<u32>,
    used: u32,
    waiting: usize,
    queue: CreditQueue<T>,
}

#[derive(Debug)]
struct QueuedRequest<T> {
    request: T,
    slot: u32,
    cost: u16,
}

#[derive(Debug)]
enum CreditQueue<T> {
    Fifo(VecDeque<QueuedRequest<T>>),
    /// One queue for each slot, and the slots in the order of their turns.
    RoundRobin {
        queues: Vec<VecDeque<QueuedRequest<T>>>,
        turns: VecDeque<u32>,
    },
    /// One queue for each slot, the slots with requests, and the slot with the fewest remaining fragments, if known.
    Smallest {
        queues: Vec<SlotQueue<T>>,
        /// Number of times that a slot became urgent so far.
        urgent: u64,
        active: Vec<u32>,
        best: Option<u32>,
    },
    FirstFit {
        by_cost: Vec<VecDeque<(u64, QueuedRequest<T>)>>,
        order: u64,
    },
}

#[derive(Debug)]
struct SlotQueue<T> {
    requests: VecDeque<QueuedRequest<T>>,
    remaining: u64,
    /// Size of its fragments, relative to those of other slots.
    scale: f64,
    /// True if its next request is sent before those of other slots.
    is_urgent: bool,
    /// Position in the order of becoming urgent. Of equal slots, the lowest one goes first.
    order: u64,
}

impl<T> SlotQueue<T> {
    const fn new() -> Self {
        Self { requests: VecDeque::new(), remaining: 0, scale: 1.0, is_urgent: false, order: 0 }
    }

    /// Returns the slot's rank in the order of service; the least goes first. Positive floats have the same order as
    /// their bits.
    fn key(&self) -> (bool, u64, u64) {
        (!self.is_urgent, (self.remaining as f64 * self.scale).to_bits(), self.order)
    }
}

impl<T> CreditPool<T> {
    /// Makes a pool of `credits`; with `None` no request waits.
    pub fn new(credits: Option<u32>, discipline: CreditDiscipline) -> Self {
        let queue = match discipline {
            CreditDiscipline::Fifo => CreditQueue::Fifo(VecDeque::new()),
            CreditDiscipline::RoundRobin => {
                CreditQueue::RoundRobin { queues: Vec::new(), turns: VecDeque::new() }
            }
            CreditDiscipline::SmallestRemaining => {
                CreditQueue::Smallest { queues: Vec::new(), urgent: 0, active: Vec::new(), best: None }
            }
            CreditDiscipline::FirstFit => CreditQueue::FirstFit { by_cost: Vec::new(), order: 0 },
        };
        Self { credits, used: 0, waiting: 0, queue }
    }

    /// Returns the total number of credits; `None` without shaping.
    pub fn credits(&self) -> Option<u32> {
        self.credits
    }

    /// Returns the credits that requests hold now.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Returns the number of requests that wait for credits.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a request of `slot`; the request costs `cost` credits.
    pub fn push(&mut self, slot: u32, cost: u16, request: T) {
        assert!(cost > 0, "a request of nothing waits for credits");
        self.waiting += 1;
        let entry = QueuedRequest { request, slot, cost };
        match &mut self.queue {
            CreditQueue::Fifo(queue) => queue.push_back(entry),
            CreditQueue::RoundRobin { queues, turns } => {
                grow(queues, slot as usize, VecDeque::new);
                let queue = &mut queues[slot as usize];
                if queue.is_empty() {
                    turns.push_back(slot);
                }
                queue.push_back(entry);
            }
            CreditQueue::Smallest { queues, active, best, .. } => {
                grow(queues, slot as usize, SlotQueue::new);
                let queue = &mut queues[slot as usize];
                if queue.requests.is_empty() {
                    active.push(slot);
                }
                queue.remaining += u64::from(cost);
                queue.requests.push_back(entry);
                *best = None;
            }
            CreditQueue::FirstFit { by_cost, order } => {
                grow(by_cost, usize::from(cost), VecDeque::new);
                by_cost[usize::from(cost)].push_back((*order, entry));
                *order += 1;
            }
        }
    }

    /// Puts the next request of a slot before those of other slots, because the sizes of its answers are unknown. Also
    /// resets the slot's scale to 1. Only [`CreditDiscipline::SmallestRemaining`] uses urgency.
    pub fn set_urgent(&mut self, slot: u32) {
        if let CreditQueue::Smallest { queues, urgent, best, .. } = &mut self.queue {
            grow(queues, slot as usize, SlotQueue::new);
            let queue = &mut queues[slot as usize];
            *urgent += 1;
            (queue.scale, queue.is_urgent, queue.order) = (1.0, true, *urgent);
            *best = None;
        }
    }

    /// Sets the size of a slot's fragments, relative to those of other slots. Only
    /// [`CreditDiscipline::SmallestRemaining`] uses the scale.
    pub fn set_scale(&mut self, slot: u32, scale: f64) {
        if let CreditQueue::Smallest { queues, best, .. } = &mut self.queue
            && let Some(queue) = queues.get_mut(slot as usize)
        {
            assert!(scale.is_finite() && scale >= 0.0, "a relative size of {scale}");
            queue.scale = scale;
            *best = None;
        }
    }

    /// Puts the rest of a request that was just popped behind all others of its slot. Returns the rest's `cost` to the
    /// pool.
    ///
    /// # Panics
    /// If more credits return than were taken.
    pub fn put_behind(&mut self, slot: u32, cost: u16, request: T) {
        self.give_back(cost);
        if let CreditQueue::Fifo(queue) = &mut self.queue {
            // The slots stay in their order.
            let end = queue.iter().position(|entry| entry.slot != slot).unwrap_or(queue.len());
            queue.insert(end, QueuedRequest { request, slot, cost });
            self.waiting += 1;
        } else {
            self.push(slot, cost, request);
        }
    }

    /// Takes the next request, with its credits. Returns `None` if no request waits, or if the credits do not suffice.
    pub fn pop(&mut self) -> Option<T> {
        if self.waiting == 0 {
            return None;
        }
        let available = self.credits.map_or(u32::MAX, |credits| credits.saturating_sub(self.used));
        let fits = |entry: &QueuedRequest<T>| u32::from(entry.cost) <= available;
        let entry = match &mut self.queue {
            CreditQueue::Fifo(queue) => {
                queue.front().filter(|entry| fits(entry))?;
                queue.pop_front()?
            }
            CreditQueue::RoundRobin { queues, turns } => {
                let slot = *turns.front()?;
                let queue = &mut queues[slot as usize];
                queue.front().filter(|entry| fits(entry))?;
                turns.pop_front();
                let entry = queue.pop_front()?;
                if !queue.is_empty() {
                    turns.push_back(slot);
                }
                assert!(turns.len() <= queues.len(), "a slot has two turns");
                entry
            }
            CreditQueue::Smallest { queues, active, best, .. } => {
                if best.is_none() {
                    *best = active.iter().copied().min_by_key(|&slot| (queues[slot as usize].key(), slot));
                }
                let slot = (*best)?;
                let queue = &mut queues[slot as usize];
                queue.requests.front().filter(|entry| fits(entry))?;
                let entry = queue.requests.pop_front()?;
                queue.remaining -= u64::from(entry.cost);
                assert!(
                    !queue.requests.is_empty() || queue.remaining == 0,
                    "an event without requests has a remainder"
                );
                // Serving the best slot lowers its remainder: it stays the best until it is empty.
                if core::mem::take(&mut queue.is_urgent) {
                    *best = None;
                }
                if queue.requests.is_empty() {
                    active.retain(|&other| other != slot);
                    *best = None;
                }
                entry
            }
            CreditQueue::FirstFit { by_cost, .. } => {
                let end = by_cost.len().min(available as usize + 1);
                let oldest = by_cost[..end]
                    .iter()
                    .enumerate()
                    .filter_map(|(cost, queue)| queue.front().map(|(order, _)| (*order, cost)))
                    .min()?;
                by_cost[oldest.1].pop_front()?.1
            }
        };
        self.waiting -= 1;
        self.used += u32::from(entry.cost);
        assert!(
            self.credits.is_none_or(|credits| self.used <= credits),
            "more credits are used than there are"
        );
        Some(entry.request)
    }

    /// Returns the credits of a request.
    ///
    /// # Panics
    /// If more credits return than were taken.
    pub fn give_back(&mut self, cost: u16) {
        self.used = self.used.checked_sub(u32::from(cost)).expect("only credits that were taken come back");
    }

    /// Removes all waiting requests of a slot.
    pub fn remove(&mut self, slot: u32) {
        let keep = |entry: &QueuedRequest<T>| entry.slot != slot;
        match &mut self.queue {
            CreditQueue::Fifo(queue) => queue.retain(keep),
            CreditQueue::RoundRobin { queues, turns } => {
                if let Some(queue) = queues.get_mut(slot as usize) {
                    queue.clear();
                }
                turns.retain(|&other| other != slot);
            }
            CreditQueue::Smallest { queues, active, best, .. } => {
                if let Some(queue) = queues.get_mut(slot as usize) {
                    queue.requests.clear();
                    queue.remaining = 0;
                }
                active.retain(|&other| other != slot);
                *best = None;
            }
            CreditQueue::FirstFit { by_cost, .. } => {
                by_cost.iter_mut().for_each(|queue| queue.retain(|(_, entry)| keep(entry)));
            }
        }
        self.waiting = match &self.queue {
            CreditQueue::Fifo(queue) => queue.len(),
            CreditQueue::RoundRobin { queues, .. } => queues.iter().map(VecDeque::len).sum(),
            CreditQueue::Smallest { queues, .. } => queues.iter().map(|queue| queue.requests.len()).sum(),
            CreditQueue::FirstFit { by_cost, .. } => by_cost.iter().map(VecDeque::len).sum(),
        };
    }
}

fn grow<T>(items: &mut Vec<T>, index: usize, new: impl FnMut() -> T) {
    if items.len() <= index {
        items.resize_with(index + 1, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order of service. Slot 0 has 3 requests of 4 credits, slot 1 has 2 of 2, and slot 2 has 3 of 1.
    /// Credits return one request at a time.
    fn order(discipline: CreditDiscipline, credits: u32) -> Vec<(u32, u16)> {
        let mut pool = CreditPool::new(Some(credits), discipline);
        for (slot, cost, count) in [(0, 4, 3), (1, 2, 2), (2, 1, 3)] {
            (0..count).for_each(|_| pool.push(slot, cost, (slot, cost)));
        }
        let mut served = Vec::new();
        let mut out = VecDeque::new();
        while served.len() < 8 {
            while let Some(request) = pool.pop() {
                assert!(pool.used() <= credits);
                served.push(request);
                out.push_back(request.1);
            }
            pool.give_back(out.pop_front().unwrap());
        }
        out.into_iter().for_each(|cost| pool.give_back(cost));
        assert_eq!((pool.used(), pool.waiting()), (0, 0));
        served
    }

    #[test]
    fn each_discipline_has_its_order() {
        let slots = |discipline| order(discipline, 5).into_iter().map(|(slot, _)| slot).collect::<Vec<_>>();
        assert_eq!(slots(CreditDiscipline::Fifo), [0, 0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(slots(CreditDiscipline::RoundRobin), [0, 1, 2, 0, 1, 2, 0, 2]);
        assert_eq!(slots(CreditDiscipline::SmallestRemaining), [2, 2, 2, 1, 1, 0, 0, 0]);
        // 4 + 1 fit into 5 at once; requests that cost 2 follow when a 4 has returned.
        assert_eq!(slots(CreditDiscipline::FirstFit), [0, 2, 0, 2, 0, 2, 1, 1]);
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut pool = CreditPool::new(None, CreditDiscipline::RoundRobin);
        (0..1000).for_each(|n| pool.push(0, 128, n));
        assert_eq!((0..1000).map_while(|_| pool.pop()).count(), 1000);
    }

    #[test]
    fn the_rest_of_a_request_waits_behind_its_slot() {
        for (discipline, expected) in [
            (CreditDiscipline::Fifo, [(0, 2), (0, 1), (1, 1), (2, 1)]),
            (CreditDiscipline::RoundRobin, [(0, 2), (1, 1), (2, 1), (0, 1)]),
            (CreditDiscipline::SmallestRemaining, [(1, 1), (2, 1), (0, 2), (0, 1)]),
            (CreditDiscipline::FirstFit, [(0, 2), (1, 1), (2, 1), (0, 1)]),
        ] {
            let mut pool = CreditPool::new(None, discipline);
            pool.push(0, 2, (0, 1));
            assert_eq!(pool.pop(), Some((0, 1)));
            [(0, 2), (1, 1), (2, 1)].iter().for_each(|&request| pool.push(request.0, 1, request));
            pool.put_behind(0, 1, (0, 1));
            assert_eq!((pool.used(), pool.waiting()), (1, 4));
            let order: Vec<_> = core::iter::from_fn(|| pool.pop()).collect();
            assert_eq!(order, expected, "{discipline:?}");
        }
    }

    #[test]
    fn the_slot_with_the_fewest_bytes_goes_first_after_one_request_of_each() {
        let mut pool = CreditPool::new(None, CreditDiscipline::SmallestRemaining);
        for slot in 0..3 {
            pool.set_urgent(slot);
            (0..3).for_each(|_| pool.push(slot, 4, slot));
        }
        assert_eq!([(); 3].map(|()| pool.pop()), [Some(0), Some(1), Some(2)]);
        // Slot 1 is the smallest; of the others, slot 2 has a request more.
        [(0, 3.0), (1, 0.5), (2, 1.0)].iter().for_each(|&(slot, scale)| pool.set_scale(slot, scale));
        pool.push(2, 4, 2);
        let order: Vec<_> = core::iter::from_fn(|| pool.pop()).collect();
        assert_eq!(order, [1, 1, 2, 2, 2, 0, 0]);
    }

    #[test]
    fn of_equal_slots_the_first_one_goes_first() {
        let mut pool = CreditPool::new(None, CreditDiscipline::SmallestRemaining);
        for slot in [2, 0, 1] {
            pool.set_urgent(slot);
            (0..2).for_each(|_| pool.push(slot, 4, slot));
        }
        let first = pool.pop();
        let order: Vec<_> = core::iter::from_fn(|| pool.pop()).collect();
        assert_eq!((first, &order[2..]), (Some(2), &[2, 0, 1][..]));
    }

    #[test]
    fn a_slot_can_be_removed() {
        for discipline in [
            CreditDiscipline::Fifo,
            CreditDiscipline::RoundRobin,
            CreditDiscipline::SmallestRemaining,
            CreditDiscipline::FirstFit,
        ] {
            let mut pool = CreditPool::new(Some(10), discipline);
            (0..9).for_each(|n| pool.push(n % 3, 1, n % 3));
            pool.remove(1);
            assert_eq!(pool.waiting(), 6, "{discipline:?}");
            let mut served: Vec<u32> = core::iter::from_fn(|| pool.pop()).collect();
            served.sort_unstable();
            assert_eq!(served, [0, 0, 0, 2, 2, 2], "{discipline:?}");
        }
    }
}
