//! The central arbiter of Fastpass: which pairs of hosts may send in which timeslot.
//!
//! J. Perry et al., "Fastpass: A Centralized 'Zero-Queue' Datacenter Network", SIGCOMM 2014; thesis §6.4. Senders say
//! how many timeslots of data they have for each destination. For every timeslot the arbiter picks pairs such that no
//! link on their ways carries more than it can, the pair that was scheduled longest ago first.

use alloc::collections::binary_heap::PeekMut;
use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use fanin_units::{Duration, Instant};

/// One direction of a link.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// How long a timeslot's bytes take on it.
    time: u64,
    /// Until when it is taken.
    busy_until: u64,
}

#[derive(Debug, Clone)]
struct Pair {
    /// Its last turn; none yet is zero.
    last: u64,
    /// Timeslots that it waits for.
    demand: u32,
    lane: u32,
    /// Where its way stands among those of all pairs.
    way: u32,
    links: u32,
}

impl Pair {
    /// The links on the way, the destination's own last.
    fn way<'a>(&self, ways: &'a [u32]) -> &'a [u32] {
        &ways[self.way as usize..][..self.links as usize]
    }
}

/// Pairs that wait for one destination's link, and for the same link before it, by their last turn: once either is taken,
/// nobody in the lane has to be looked at.
#[derive(Debug, Clone, Default)]
struct Lane {
    links: [u32; 2],
    is_active: bool,
    /// Last turns and pairs, in order. Who had a turn goes to the end and who is next stands near the front, so that little
    /// is moved.
    waiting: VecDeque<(u64, u32)>,
    /// Which of them is looked at next in the present timeslot.
    next: usize,
}

/// The arbiter's memory: links, pairs of hosts and their demands.
#[derive(Debug, Clone)]
pub struct Arbiter {
    slot: u64,
    links: Vec<Link>,
    pairs: Vec<Pair>,
    /// The ways of all pairs, one behind the other.
    ways: Vec<u32>,
    lanes: Vec<Lane>,
    /// The lane of each two links that are the last on some way.
    lane_of: BTreeMap<[u32; 2], u32>,
    /// Lanes in which somebody waits.
    active: Vec<u32>,
    turns: u64,
    order: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Arbiter {
    /// An arbiter of timeslots that last so long.
    pub fn new(slot: Duration) -> Self {
        Self {
            slot: slot.get(),
            links: Vec::new(),
            pairs: Vec::new(),
            ways: Vec::new(),
            lanes: Vec::new(),
            lane_of: BTreeMap::new(),
            active: Vec::new(),
            turns: 0,
            order: BinaryHeap::new(),
        }
    }

    /// Adds a link, one direction of it, on which the data of one timeslot take so long; returns its number. A link
    /// that takes less than a timeslot for them has room for several pairs, one that takes more is left alone for as
    /// long as it needs.
    pub fn add_link(&mut self, time: Duration) -> u32 {
        self.links.push(Link { time: time.get(), busy_until: 0 });
        (self.links.len() - 1) as u32
    }

    /// Adds a pair of hosts with the links on its way, the destination's own last; returns its number.
    ///
    /// # Panics
    /// If the way is empty or names a link that was not added.
    pub fn add_pair(&mut self, path: &[u32]) -> u32 {
        assert!(path.iter().all(|&link| (link as usize) < self.links.len()), "a link that does not exist");
        let last = *path.last().expect("a way has a link");
        // The link before is the source's own where there are only two: then it is nobody else's.
        let before = if path.len() > 2 { path[path.len() - 2] } else { last };
        let links = [last, before];
        let lane = *self.lane_of.entry(links).or_insert_with(|| {
            self.lanes.push(Lane { links, ..Lane::default() });
            (self.lanes.len() - 1) as u32
        });
        let way = u32::try_from(self.ways.len()).expect("ways have less than 2^32 links in all");
        self.ways.extend_from_slice(path);
        self.pairs.push(Pair { last: 0, demand: 0, lane, way, links: path.len() as u32 });
        (self.pairs.len() - 1) as u32
    }

    /// A pair has so many timeslots more to send.
    pub fn handle_demand(&mut self, pair: u32, slots: u32) {
        let waiting = &mut self.pairs[pair as usize];
        if waiting.demand == 0 && slots > 0 {
            let lane = &mut self.lanes[waiting.lane as usize];
            let place = lane.waiting.partition_point(|&before| before < (waiting.last, pair));
            lane.waiting.insert(place, (waiting.last, pair));
            if !lane.is_active {
                lane.is_active = true;
                self.active.push(waiting.lane);
            }
        }
        waiting.demand += slots;
    }

    /// Timeslots that a pair waits for.
    pub fn demand(&self, pair: u32) -> u32 {
        self.pairs[pair as usize].demand
    }

    /// Whether nobody waits.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Forgets all demands, as an arbiter that takes over knows none.
    pub fn forget(&mut self) {
        for pair in &mut self.pairs {
            pair.demand = 0;
        }
        for lane in &mut self.lanes {
            lane.waiting.clear();
            lane.is_active = false;
        }
        self.active.clear();
    }

    /// Gives out the timeslot that begins at `start`: each pair that `allocated` is told of may send for a timeslot.
    ///
    /// The result is a greedy matching in the order of least recent turns: a pair is left out only where a link on its way is taken.
    pub fn allocate(&mut self, start: Instant, mut allocated: impl FnMut(u32)) {
        let start = start.get();
        let end = start + self.slot;
        // A pair has one turn in a timeslot: what had one stands behind this.
        let turns_before = self.turns;
        let Self { links, pairs, ways, lanes, active, order, .. } = self;
        let is_free = |link: &Link| link.busy_until.max(start) + link.time.min(end - start) <= end;
        let is_open =
            |links: &[Link], lane: &Lane| lane.links.iter().all(|&link| is_free(&links[link as usize]));
        // Of each lane the first that waits; the next of it only when that has had its chance. Merged, this is the order
        // of all pairs.
        order.clear();
        for &lane in active.iter() {
            let lane = &mut lanes[lane as usize];
            lane.next = 0;
            if is_open(links, lane)
                && let Some(&first) = lane.waiting.front()
            {
                order.push(Reverse(first));
            }
        }
        while let Some(mut first) = order.peek_mut() {
            let Reverse((_, number)) = *first;
            let pair = &mut pairs[number as usize];
            let lane = &mut lanes[pair.lane as usize];
            let way = pair.way(ways);
            if way.iter().all(|&link| is_free(&links[link as usize])) {
                for &link in way {
                    let link = &mut links[link as usize];
                    link.busy_until = link.busy_until.max(start) + link.time;
                }
                self.turns += 1;
                lane.waiting.remove(lane.next);
                pair.last = self.turns;
                pair.demand -= 1;
                if pair.demand > 0 {
                    lane.waiting.push_back((pair.last, number));
                }
                allocated(number);
            } else {
                lane.next += 1;
            }
            if is_open(links, lane)
                && let Some(&following) = lane.waiting.get(lane.next)
                && following.0 <= turns_before
            {
                // In its place: that is half of taking one out and putting another in.
                *first = Reverse(following);
            } else {
                PeekMut::pop(first);
            }
        }
        active.retain(|&lane| {
            let lane = &mut lanes[lane as usize];
            lane.is_active = !lane.waiting.is_empty();
            lane.is_active
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A full frame at 1 Gb/s.
    const SLOT: Duration = Duration::from_nanos(12_304);

    /// `sources` × `destinations` pairs; all links as fast as the timeslots are made for, unless said otherwise.
    fn arbiter(sources: u32, destinations: u32, up: Duration, down: Duration) -> Arbiter {
        let mut arbiter = Arbiter::new(SLOT);
        (0..sources).for_each(|_| _ = arbiter.add_link(up));
        (0..destinations).for_each(|_| _ = arbiter.add_link(down));
        for source in 0..sources {
            for destination in 0..destinations {
                arbiter.add_pair(&[source, sources + destination]);
            }
        }
        arbiter
    }

    fn slot(arbiter: &mut Arbiter, number: u64) -> Vec<u32> {
        let mut pairs = Vec::new();
        arbiter.allocate(Instant::START + SLOT * number, |pair| pairs.push(pair));
        pairs
    }

    #[test]
    fn the_least_recently_scheduled_goes_first() {
        let mut arbiter = arbiter(3, 1, SLOT, SLOT);
        (0..3).for_each(|pair| arbiter.handle_demand(pair, 2));
        let order: Vec<u32> = (0..6).flat_map(|number| slot(&mut arbiter, number)).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        assert!(arbiter.is_idle() && slot(&mut arbiter, 6).is_empty());
    }

    #[test]
    fn an_uplink_ten_times_as_fast_carries_ten_pairs() {
        // Thesis §6.4: 39 hosts of 1 Gb/s behind a 10 Gb/s uplink.
        let mut arbiter = Arbiter::new(SLOT);
        let uplink = arbiter.add_link(Duration::from_nanos(1_230) + Duration::new(400));
        for _ in 0..39 {
            let (up, down) = (arbiter.add_link(SLOT), arbiter.add_link(SLOT));
            let pair = arbiter.add_pair(&[up, uplink, down]);
            arbiter.handle_demand(pair, 3);
        }
        let counts: Vec<usize> = (0..12).map(|number| slot(&mut arbiter, number).len()).collect();
        assert_eq!(counts, [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 7]);
    }

    #[test]
    fn a_fast_destination_takes_several_pairs_but_each_once() {
        let quick = Duration::from_nanos(1_230);
        let mut arbiter = arbiter(3, 1, quick, quick);
        (0..3).for_each(|pair| arbiter.handle_demand(pair, 2));
        assert_eq!([slot(&mut arbiter, 0), slot(&mut arbiter, 1)], [[0, 1, 2], [0, 1, 2]]);
    }

    #[test]
    fn a_slow_destination_is_left_alone_while_it_receives() {
        let mut arbiter = arbiter(1, 1, SLOT, SLOT * 10);
        arbiter.handle_demand(0, 3);
        let taken: Vec<u64> = (0..40).filter(|&number| !slot(&mut arbiter, number).is_empty()).collect();
        assert_eq!(taken, [0, 10, 20]);
    }

    proptest! {
        /// No port has two senders or two receivers in one timeslot; every demand is served, once; and no pair could have
        /// been added to what was allocated.
        #[test]
        fn a_timeslot_is_a_maximal_matching(
            sources in 1u32..9, destinations in 1u32..9, demands in prop::collection::vec((0u32..81, 1u32..5), 1..40),
        ) {
            let mut arbiter = arbiter(sources, destinations, SLOT, SLOT);
            let mut wanted = BTreeMap::new();
            for (pair, slots) in demands {
                let pair = pair % (sources * destinations);
                arbiter.handle_demand(pair, slots);
                *wanted.entry(pair).or_insert(0) += slots;
            }
            let mut number = 0;
            while !arbiter.is_idle() {
                let before = wanted.clone();
                let taken = slot(&mut arbiter, number);
                number += 1;
                let is_busy = |pair: u32| taken.iter().any(|other| {
                    other / destinations == pair / destinations || other % destinations == pair % destinations
                });
                for (place, &pair) in taken.iter().enumerate() {
                    for &other in &taken[..place] {
                        prop_assert!(pair / destinations != other / destinations, "a source sends twice");
                        prop_assert!(pair % destinations != other % destinations, "a port has two senders");
                    }
                    let left = wanted.get_mut(&pair).expect("it asked");
                    *left -= 1;
                    prop_assert_eq!(arbiter.demand(pair), *left);
                }
                for (&pair, &left) in &before {
                    prop_assert!(left == 0 || is_busy(pair), "{} could have been added", pair);
                }
                prop_assert!(number < 1000);
            }
            prop_assert!(wanted.values().all(|&left| left == 0));
        }
    }
}
