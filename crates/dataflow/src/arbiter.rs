//! The central arbiter of Fastpass: which pairs of hosts may send in which timeslot.
//!
//! J. Perry et al., "Fastpass: A Centralized 'Zero-Queue' Datacenter Network", SIGCOMM 2014; thesis §6.4. Senders say
//! how many timeslots of data they have for each destination. For every timeslot the arbiter picks pairs such that no
//! link on their ways carries more than it can, the pair that was scheduled longest ago first.
//!
//! Thousands of pairs wait and few dozens get a timeslot. So nobody is looked at whose lane is taken: pairs stand in lanes,
//! one for each host at the busier end of their way and the link beside it, and lanes in the order of their first pairs,
//! which is kept from one timeslot to the next.

use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::{mem, slice};

use fanin_units::{Duration, Instant};

/// No lane.
const NIL: u32 = u32::MAX;

/// The rank of nobody.
const NOBODY: u64 = u64::MAX;

/// The rank of the first turn, above those of pairs that never had one.
const RANK_FIRST: u64 = 1 << 32;

/// One direction of a link.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// How long a timeslot's bytes take on it.
    time: u64,
    /// What is left of a timeslot then.
    spare: u64,
    /// Until when it is taken.
    busy_until: u64,
    /// On how many pairs' ways it is.
    pairs: u32,
}

/// All links.
#[derive(Debug, Clone, Default)]
struct Links {
    links: Vec<Link>,
    /// From which timeslot on each takes one more pair: all that has to be looked at of most, close together.
    opens_at: Vec<u64>,
}

impl Links {
    #[inline(always)]
    fn is_open(&self, link: u32, start: u64) -> bool {
        self.opens_at[link as usize] <= start
    }

    #[inline(always)]
    fn are_open(&self, links: &[u32], start: u64) -> bool {
        links.iter().all(|&link| self.is_open(link, start))
    }

    #[inline(always)]
    fn take(&mut self, number: u32, start: u64) {
        let link = &mut self.links[number as usize];
        link.busy_until = link.busy_until.max(start) + link.time;
        self.opens_at[number as usize] = link.busy_until.saturating_sub(link.spare);
    }
}

#[derive(Debug, Clone)]
struct Pair {
    /// Its last turn; its number where it had none.
    rank: u64,
    /// Timeslots that it waits for.
    demand: u32,
    /// [`NIL`] until it first asks.
    lane: u32,
    /// Where its way stands among those of all pairs; once it has a lane, where what comes before the lane does.
    way: u32,
}

/// Links, one way behind the other, and before each how many they are.
#[derive(Debug, Clone, Default)]
struct Ways(Vec<u32>);

impl Ways {
    fn add(&mut self, links: &[u32]) -> u32 {
        let way = u32::try_from(self.0.len()).expect("ways have less than 2^32 links in all");
        self.0.push(links.len() as u32);
        self.0.extend_from_slice(links);
        way
    }

    #[inline(always)]
    fn links(&self, way: u32) -> &[u32] {
        let links = &self.0[way as usize..];
        &links[1..][..links[0] as usize]
    }
}

/// A pair in its lane.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    rank: u64,
    pair: u32,
    way: u32,
}

/// Pairs that wait for the link of one host, and for the same link beside it: once either is taken, nobody in the lane has
/// to be looked at.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Lane {
    /// The host's link, and the one beside it; the same twice where that is no one else's.
    links: [u32; 2],
    /// The rank of the first that waits.
    front: u64,
    /// The timeslot in which it was last looked at in its turn.
    looked_at: u64,
    /// In order. Who had a turn goes to the end and who is next stands near the front, so that little is moved.
    waiting: VecDeque<Waiting>,
}

impl Lane {
    #[inline(always)]
    fn is_open(&self, links: &Links, start: u64) -> bool {
        links.is_open(self.links[0], start) & links.is_open(self.links[1], start)
    }

    /// The first from a place on whose whole way is open, of those that have not had a turn in the present timeslot. Who finds a
    /// link taken finds it so in all this timeslot.
    #[inline(always)]
    fn find(
        &self,
        place: usize,
        links: &Links,
        ways: &Ways,
        start: u64,
        rank_before: u64,
    ) -> Option<(u64, usize)> {
        if !self.is_open(links, start) {
            return None;
        }
        (self.waiting.iter().enumerate().skip(place))
            .take_while(|(_, waiting)| waiting.rank <= rank_before)
            .find(|(_, waiting)| links.are_open(ways.links(waiting.way), start))
            .map(|(place, waiting)| (waiting.rank, place))
    }
}

/// A lane, by the first in it.
#[derive(Debug, Clone, Copy)]
struct Front {
    rank: u64,
    lane: u32,
    way: u32,
}

impl Front {
    const END: Self = Self { rank: NOBODY, lane: NIL, way: 0 };
}

/// The arbiter's memory: links, pairs of hosts and their demands.
#[derive(Debug, Clone)]
pub struct Arbiter {
    slot: u64,
    links: Links,
    pairs: Vec<Pair>,
    /// The whole ways of pairs.
    paths: Ways,
    /// What comes before lanes: once for all pairs that share it, so that all of it stays in the near cache.
    ways: Ways,
    way_of: BTreeMap<Vec<u32>, u32>,
    lanes: Vec<Lane>,
    /// The lane of each two links that are last on some way.
    lane_of: BTreeMap<[u32; 2], u32>,
    /// Pairs that wait.
    waiting: usize,
    /// Lanes by their first pairs, as they were after the last timeslot.
    order: Vec<Front>,
    /// Lanes that have got another first pair since; what it was before is found out by its rank.
    fresh: Vec<Front>,
    /// The order for the next timeslot.
    kept: Vec<Front>,
    /// Empty; kept for their memory.
    unused: [Vec<Front>; 2],
    /// Those behind others in their lane that may have a turn after all: rank, lane, place.
    behind: BinaryHeap<Reverse<(u64, u32, usize)>>,
    rank: u64,
}

impl Arbiter {
    /// An arbiter of timeslots that last so long.
    pub fn new(slot: Duration) -> Self {
        Self {
            slot: slot.get(),
            links: Links::default(),
            pairs: Vec::new(),
            paths: Ways::default(),
            ways: Ways::default(),
            way_of: BTreeMap::new(),
            lanes: Vec::new(),
            lane_of: BTreeMap::new(),
            waiting: 0,
            order: Vec::new(),
            fresh: Vec::new(),
            kept: Vec::new(),
            unused: [Vec::new(), Vec::new()],
            behind: BinaryHeap::new(),
            rank: RANK_FIRST,
        }
    }

    /// Adds a link, one direction of it, on which the data of one timeslot take so long; returns its number. A link
    /// that takes less than a timeslot for them has room for several pairs, one that takes more is left alone for as
    /// long as it needs.
    pub fn add_link(&mut self, time: Duration) -> u32 {
        let time = time.get();
        let spare = self.slot - time.min(self.slot);
        self.links.links.push(Link { time, spare, busy_until: 0, pairs: 0 });
        self.links.opens_at.push(0);
        (self.links.links.len() - 1) as u32
    }

    /// Adds a pair of hosts with the links on its way, the destination's own last; returns its number.
    ///
    /// # Panics
    /// If the way is empty or names a link that was not added.
    pub fn add_pair(&mut self, path: &[u32]) -> u32 {
        assert!(!path.is_empty(), "a way has a link");
        let way = self.paths.add(path);
        for &link in path {
            self.links.links.get_mut(link as usize).expect("a way has links that were added").pairs += 1;
        }
        let pair = self.pairs.len() as u32;
        self.pairs.push(Pair { rank: u64::from(pair), demand: 0, lane: NIL, way });
        pair
    }

    /// Puts a pair into a lane at that end of its way at which more pairs meet: there it waits longest.
    #[cold]
    fn enter_lane(&mut self, number: u32) {
        let mut path = self.paths.links(self.pairs[number as usize].way).to_vec();
        let pairs_on = |link: u32| self.links.links[link as usize].pairs;
        if pairs_on(path[0]) > pairs_on(path[path.len() - 1]) {
            path.reverse();
        }
        let last = path.pop().expect("a way has a link");
        // The link beside is the other host's own where there are only two: then it is nobody else's.
        let before = if path.len() > 1 { path.pop().unwrap_or(last) } else { last };
        self.pairs[number as usize].way = match self.way_of.get(&path) {
            Some(&way) => way,
            None => {
                let way = self.ways.add(&path);
                self.way_of.insert(path, way);
                way
            }
        };
        let lanes = &mut self.lanes;
        let links = [last, before];
        self.pairs[number as usize].lane = *self.lane_of.entry(links).or_insert_with(|| {
            lanes.push(Lane { links, front: NOBODY, looked_at: NOBODY, waiting: VecDeque::new() });
            (lanes.len() - 1) as u32
        });
    }

    /// A pair has so many timeslots more to send.
    pub fn handle_demand(&mut self, pair: u32, slots: u32) {
        if self.pairs[pair as usize].lane == NIL {
            self.enter_lane(pair);
        }
        let asking = &mut self.pairs[pair as usize];
        if asking.demand == 0 && slots > 0 {
            self.waiting += 1;
            let &mut Pair { rank, way, lane: number, .. } = asking;
            let lane = &mut self.lanes[number as usize];
            let waiting = Waiting { rank, pair, way };
            if rank < lane.front {
                lane.front = rank;
                lane.waiting.push_front(waiting);
                self.fresh.push(Front { rank, lane: number, way });
            } else {
                let place = lane.waiting.partition_point(|before| before.rank < rank);
                lane.waiting.insert(place, waiting);
            }
        }
        asking.demand += slots;
    }

    /// Timeslots that a pair waits for.
    pub fn demand(&self, pair: u32) -> u32 {
        self.pairs[pair as usize].demand
    }

    /// Whether nobody waits.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    /// Forgets all demands, as an arbiter that takes over knows none.
    pub fn forget(&mut self) {
        for pair in &mut self.pairs {
            pair.demand = 0;
        }
        for lane in &mut self.lanes {
            lane.waiting.clear();
            lane.front = NOBODY;
        }
        self.waiting = 0;
        self.order.clear();
        self.fresh.clear();
    }

    /// Gives out the timeslot that begins at `start`: each pair that `allocated` is told of may send for a timeslot.
    ///
    /// The result is a greedy matching in the order of least recent turns: a pair is left out only where a link on its way is taken.
    pub fn allocate(&mut self, start: Instant, mut allocated: impl FnMut(u32)) {
        let start = start.get();
        // A pair has one turn in a timeslot: what had one stands behind this.
        let rank_before = self.rank;
        // Of each lane the first that waits, and what stands behind it only when that has had its chance: this is the order of
        // all pairs.
        self.fresh.sort_unstable_by_key(|front| front.rank);
        let (mut order, mut fresh_before) = (mem::take(&mut self.order), mem::take(&mut self.fresh));
        [self.kept, self.fresh] = mem::take(&mut self.unused);
        let (mut in_order, mut in_fresh) = (order.iter(), fresh_before.iter());
        let next = |fronts: &mut slice::Iter<'_, Front>| fronts.next().copied().unwrap_or(Front::END);
        let (mut old, mut fresh) = (next(&mut in_order), next(&mut in_fresh));
        let mut behind = NOBODY;
        loop {
            let front = if old.rank <= fresh.rank { old } else { fresh };
            while behind < front.rank {
                behind = self.look_behind(start, rank_before, &mut allocated);
            }
            if old.rank <= fresh.rank {
                if front.rank == NOBODY {
                    break;
                }
                old = next(&mut in_order);
            } else {
                fresh = next(&mut in_fresh);
            }
            let lane = &mut self.lanes[front.lane as usize];
            if lane.front != front.rank || lane.looked_at == start {
                // Another one was first when the timeslot began, and stands elsewhere.
                continue;
            }
            lane.looked_at = start;
            let is_lane_open = lane.is_open(&self.links, start);
            let mut following = 0;
            if is_lane_open && self.links.are_open(self.ways.links(front.way), start) {
                self.grant(start, front.lane, 0, &mut allocated);
            } else {
                self.kept.push(front);
                following = 1;
            }
            if is_lane_open
                && let lane = &self.lanes[front.lane as usize]
                && let Some((rank, place)) = lane.find(following, &self.links, &self.ways, start, rank_before)
            {
                self.behind.push(Reverse((rank, front.lane, place)));
                behind = behind.min(rank);
            }
        }
        self.order = mem::take(&mut self.kept);
        order.clear();
        fresh_before.clear();
        self.unused = [order, fresh_before];
    }

    /// Gives the first of those behind others its chance. Returns the rank of the next.
    #[cold]
    fn look_behind(&mut self, start: u64, rank_before: u64, allocated: &mut impl FnMut(u32)) -> u64 {
        let next = |behind: &BinaryHeap<Reverse<(u64, u32, usize)>>| {
            behind.peek().map_or(NOBODY, |&Reverse((rank, ..))| rank)
        };
        let Some(Reverse((_, number, place))) = self.behind.pop() else { return NOBODY };
        let (links, ways) = (&self.links, &self.ways);
        // What was open may be taken by now.
        let found = self.lanes[number as usize].find(place, links, ways, start, rank_before);
        let mut following = found;
        if let Some((_, found)) = found
            && found == place
        {
            self.grant(start, number, place, allocated);
            following = self.lanes[number as usize].find(place, &self.links, &self.ways, start, rank_before);
        }
        if let Some((rank, place)) = following {
            self.behind.push(Reverse((rank, number, place)));
        }
        next(&self.behind)
    }

    /// Gives the timeslot to one in a lane whose way is open.
    #[inline(always)]
    fn grant(&mut self, start: u64, number: u32, place: usize, allocated: &mut impl FnMut(u32)) {
        let lane = &mut self.lanes[number as usize];
        let taken = if place == 0 { lane.waiting.pop_front() } else { lane.waiting.remove(place) };
        let Some(Waiting { pair: granted, way, .. }) = taken else { return };
        let pair = &mut self.pairs[granted as usize];
        self.rank += 1;
        pair.rank = self.rank;
        pair.demand -= 1;
        if pair.demand > 0 {
            lane.waiting.push_back(Waiting { rank: pair.rank, pair: granted, way });
        } else {
            self.waiting -= 1;
        }
        for &link in self.ways.links(way) {
            self.links.take(link, start);
        }
        let [last, before] = lane.links;
        self.links.take(last, start);
        if before != last {
            self.links.take(before, start);
        }
        if place == 0 {
            lane.front = NOBODY;
            if let Some(&Waiting { rank, way, .. }) = lane.waiting.front() {
                lane.front = rank;
                self.fresh.push(Front { rank, lane: number, way });
            }
        }
        allocated(granted);
    }
}

#[cfg(test)]
mod tests;
