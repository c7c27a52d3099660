//! The central arbiter of Fastpass: allocates timeslots to pairs of hosts.
//!
//! J. Perry et al., "Fastpass: A Centralized 'Zero-Queue' Datacenter Network", SIGCOMM 2014; thesis §6.4. A sender
//! reports its demand in timeslots for each destination. In every timeslot the arbiter allocates pairs, the least
//! recently served first. No link of their paths carries more than its rate.
//!
//! Thousands of pairs wait, and a timeslot serves a few dozen. Pairs that share the link of one host and the adjacent
//! link form a group. If one of these links is allocated, the whole group is skipped. Groups are sorted by their first
//! pair; the order is kept from one timeslot to the next.

use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::{mem, slice};

use fanin_units::{Duration, Instant};

/// Stands for the group of a pair that has not entered a group yet.
const NO_GROUP: u32 = u32::MAX;

/// Rank of an empty list, above that of every pair.
const RANK_NONE: u64 = u64::MAX;

/// Rank of the first turn, above the ranks of pairs without a turn so far.
const RANK_FIRST: u64 = 1 << 32;

/// One direction of a link.
#[derive(Debug, Clone, Copy)]
struct ArbiterLink {
    /// Transmission time of a timeslot's bytes, in ps.
    time: u64,
    /// Rest of a timeslot after that time, in ps.
    spare: u64,
    /// End of its last allocation, in ps.
    busy_until: u64,
    /// Number of pairs that use the link.
    pairs: u32,
}

/// The links of all hosts.
#[derive(Debug, Clone, Default)]
struct Links {
    links: Vec<ArbiterLink>,
    /// Earliest start of a timeslot, in ps, in which each link can take another pair. A separate vector, since most
    /// checks read nothing else.
    free_at: Vec<u64>,
}

impl Links {
    #[inline]
    fn is_free(&self, link: u32, start: u64) -> bool {
        self.free_at[link as usize] <= start
    }

    #[inline]
    fn are_free(&self, links: &[u32], start: u64) -> bool {
        links.iter().all(|&link| self.is_free(link, start))
    }

    #[inline]
    fn take(&mut self, number: u32, start: u64) {
        assert!(self.is_free(number, start), "a link is allocated twice in a timeslot");
        let link = &mut self.links[number as usize];
        link.busy_until = link.busy_until.max(start) + link.time;
        self.free_at[number as usize] = link.busy_until.saturating_sub(link.spare);
    }
}

#[derive(Debug, Clone)]
struct HostPair {
    /// The rank of its last turn; its own number before the first.
    rank: u64,
    /// Number of timeslots that it waits for.
    demand: u32,
    /// The pair's group; [`NO_GROUP`] until the first demand.
    group: u32,
    /// Index of its whole path in `paths`. Once it has a group, index of its inner path in `inner_paths`.
    path: u32,
}

/// Paths in one vector: the number of links of each, then the links.
#[derive(Debug, Clone, Default)]
struct PathTable(Vec<u32>);

impl PathTable {
    fn add(&mut self, links: &[u32]) -> u32 {
        let path = u32::try_from(self.0.len()).expect("paths have less than 2^32 links in all");
        self.0.push(links.len() as u32);
        self.0.extend_from_slice(links);
        path
    }

    #[inline]
    fn links(&self, path: u32) -> &[u32] {
        let links = &self.0[path as usize..];
        &links[1..][..links[0] as usize]
    }
}

/// A pair that waits in its group.
#[derive(Debug, Clone, Copy)]
struct WaitingPair {
    rank: u64,
    pair: u32,
    path: u32,
}

/// Pairs that wait for the link of one host and for the same adjacent link. Once one of these links is allocated, the
/// whole group is skipped.
#[derive(Debug, Clone)]
struct PairGroup {
    /// The host's link and the adjacent link; the same link twice if a path has only two links.
    links: [u32; 2],
    /// The rank of the first pair in `waiting`.
    front: u64,
    /// Start of the last timeslot in which the first pair had its turn, in ps.
    last_turn: u64,
    /// Sorted by rank. A served pair moves to the end, and the next one is near the front, so that few entries move.
    waiting: VecDeque<WaitingPair>,
}

impl PairGroup {
    #[inline]
    fn is_free(&self, links: &Links, start: u64) -> bool {
        links.is_free(self.links[0], start) && links.is_free(self.links[1], start)
    }

    /// Returns the rank and place of the first pair, from `place` on, with a free path and without a turn in this
    /// timeslot. Allocated links stay allocated until the timeslot's end.
    #[inline]
    fn find(
        &self,
        place: usize,
        links: &Links,
        paths: &PathTable,
        start: u64,
        rank_before: u64,
    ) -> Option<(u64, usize)> {
        if !self.is_free(links, start) {
            return None;
        }
        (self.waiting.iter().enumerate().skip(place))
            .take_while(|(_, waiting)| waiting.rank <= rank_before)
            .find(|(_, waiting)| links.are_free(paths.links(waiting.path), start))
            .map(|(place, waiting)| (waiting.rank, place))
    }
}

/// A group with the rank and path of its first pair.
#[derive(Debug, Clone, Copy)]
struct Front {
    rank: u64,
    group: u32,
    path: u32,
}

impl Front {
    const END: Self = Self { rank: RANK_NONE, group: NO_GROUP, path: 0 };
}

/// The Fastpass arbiter: links, pairs of hosts and their demands.
#[derive(Debug, Clone)]
pub struct Arbiter {
    slot: u64,
    links: Links,
    pairs: Vec<HostPair>,
    /// The whole paths of pairs.
    paths: PathTable,
    /// Paths without their group's links. Pairs with equal links share one entry, which keeps the table in the cache.
    inner_paths: PathTable,
    inner_path_of: BTreeMap<Vec<u32>, u32>,
    groups: Vec<PairGroup>,
    /// The group of each pair of links at the busier end of a path.
    group_of: BTreeMap<[u32; 2], u32>,
    /// Number of waiting pairs.
    waiting: usize,
    /// Groups by the rank of their first pair, as of the last timeslot.
    order: Vec<Front>,
    /// Groups with a new first pair. Their entry in `order` has an old rank, and is ignored.
    new_fronts: Vec<Front>,
    /// The order for the next timeslot.
    next_order: Vec<Front>,
    /// Empty vectors, kept for their memory.
    unused: [Vec<Front>; 2],
    /// Pairs with a free path behind the first of their group: rank, group, place.
    later_pairs: BinaryHeap<Reverse<(u64, u32, usize)>>,
    rank: u64,
}

impl Arbiter {
    /// Makes an arbiter with timeslots of `slot`.
    pub fn new(slot: Duration) -> Self {
        Self {
            slot: slot.get(),
            links: Links::default(),
            pairs: Vec::new(),
            paths: PathTable::default(),
            inner_paths: PathTable::default(),
            inner_path_of: BTreeMap::new(),
            groups: Vec::new(),
            group_of: BTreeMap::new(),
            waiting: 0,
            order: Vec::new(),
            new_fronts: Vec::new(),
            next_order: Vec::new(),
            unused: [Vec::new(), Vec::new()],
            later_pairs: BinaryHeap::new(),
            rank: RANK_FIRST,
        }
    }

    /// Adds one direction of a link and returns its number. `time` is the transmission time of one timeslot's bytes. If it
    /// is below a timeslot, the link takes several pairs; if above, the link is busy for several timeslots.
    pub fn add_link(&mut self, time: Duration) -> u32 {
        let time = time.get();
        let spare = self.slot - time.min(self.slot);
        self.links.links.push(ArbiterLink { time, spare, busy_until: 0, pairs: 0 });
        self.links.free_at.push(0);
        (self.links.links.len() - 1) as u32
    }

    /// Adds a pair of hosts with the links of its path, the destination's own last; returns the pair's number.
    ///
    /// # Panics
    /// If the path is empty or names a link that was not added.
    pub fn add_pair(&mut self, path: &[u32]) -> u32 {
        assert!(!path.is_empty(), "a path has no link");
        let place = self.paths.add(path);
        for &link in path {
            self.links.links.get_mut(link as usize).expect("a path has links that were added").pairs += 1;
        }
        let pair = self.pairs.len() as u32;
        self.pairs.push(HostPair { rank: u64::from(pair), demand: 0, group: NO_GROUP, path: place });
        pair
    }

    /// Puts a pair into the group at the end of its path that more pairs share: the pair waits longest there.
    #[cold]
    fn enter_group(&mut self, number: u32) {
        let mut path = self.paths.links(self.pairs[number as usize].path).to_vec();
        let pairs_on = |link: u32| self.links.links[link as usize].pairs;
        if pairs_on(path[0]) > pairs_on(path[path.len() - 1]) {
            path.reverse();
        }
        let last = path.pop().expect("a path has a link");
        // A path of two links has no link between its ends: the second link is the other host's.
        let before = if path.len() > 1 { path.pop().unwrap_or(last) } else { last };
        self.pairs[number as usize].path = match self.inner_path_of.get(&path) {
            Some(&place) => place,
            None => {
                let place = self.inner_paths.add(&path);
                self.inner_path_of.insert(path, place);
                place
            }
        };
        let groups = &mut self.groups;
        let links = [last, before];
        self.pairs[number as usize].group = *self.group_of.entry(links).or_insert_with(|| {
            groups.push(PairGroup {
                links,
                front: RANK_NONE,
                last_turn: RANK_NONE,
                waiting: VecDeque::new(),
            });
            (groups.len() - 1) as u32
        });
    }

    /// Adds `slots` timeslots to the demand of a pair.
    pub fn handle_demand(&mut self, pair: u32, slots: u32) {
        if self.pairs[pair as usize].group == NO_GROUP {
            self.enter_group(pair);
        }
        let asking = &mut self.pairs[pair as usize];
        if asking.demand == 0 && slots > 0 {
            self.waiting += 1;
            let &mut HostPair { rank, path, group: number, .. } = asking;
            let group = &mut self.groups[number as usize];
            let waiting = WaitingPair { rank, pair, path };
            if rank < group.front {
                group.front = rank;
                group.waiting.push_front(waiting);
                self.new_fronts.push(Front { rank, group: number, path });
            } else {
                let place = group.waiting.partition_point(|before| before.rank < rank);
                assert!(group.waiting.get(place).is_none_or(|next| next.rank > rank), "a pair waits twice");
                group.waiting.insert(place, waiting);
            }
        }
        asking.demand += slots;
    }

    /// Returns the number of timeslots that a pair waits for.
    pub fn demand(&self, pair: u32) -> u32 {
        self.pairs[pair as usize].demand
    }

    /// Returns true if no pair waits.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    /// Forgets all demands, as a standby arbiter that takes over has none.
    pub fn forget(&mut self) {
        for pair in &mut self.pairs {
            pair.demand = 0;
        }
        for group in &mut self.groups {
            group.waiting.clear();
            group.front = RANK_NONE;
        }
        self.waiting = 0;
        self.order.clear();
        self.new_fronts.clear();
    }

    /// Allocates the timeslot from `start` on; calls `allocated` with each pair that may send in it.
    ///
    /// The result is a greedy matching in the order of least recent turns. A pair is left out only if a link of its path
    /// is allocated.
    pub fn allocate(&mut self, start: Instant, mut allocated: impl FnMut(u32)) {
        let start = start.get();
        // A pair has one turn in a timeslot: a served pair has a rank above this limit.
        let rank_before = self.rank;
        // Visits the first pair of each group, and later pairs only after it had its turn. Pairs are thus visited in
        // the order of their ranks.
        self.new_fronts.sort_unstable_by_key(|front| front.rank);
        let (mut order, mut new_before) = (mem::take(&mut self.order), mem::take(&mut self.new_fronts));
        [self.next_order, self.new_fronts] = mem::take(&mut self.unused);
        let (mut in_order, mut in_new) = (order.iter(), new_before.iter());
        let next = |fronts: &mut slice::Iter<'_, Front>| fronts.next().copied().unwrap_or(Front::END);
        let (mut old, mut new) = (next(&mut in_order), next(&mut in_new));
        let mut later_rank = RANK_NONE;
        loop {
            let front = if old.rank <= new.rank { old } else { new };
            while later_rank < front.rank {
                later_rank = self.try_later_pair(start, rank_before, &mut allocated);
            }
            if old.rank <= new.rank {
                if front.rank == RANK_NONE {
                    break;
                }
                old = next(&mut in_order);
            } else {
                new = next(&mut in_new);
            }
            let group = &mut self.groups[front.group as usize];
            if group.front != front.rank || group.last_turn == start {
                // Out of date: the group has an entry for another first pair, or has had its turn.
                continue;
            }
            group.last_turn = start;
            let is_group_free = group.is_free(&self.links, start);
            let mut following = 0;
            if is_group_free && self.links.are_free(self.inner_paths.links(front.path), start) {
                self.grant(start, front.group, 0, &mut allocated);
            } else {
                self.next_order.push(front);
                following = 1;
            }
            if is_group_free
                && let group = &self.groups[front.group as usize]
                && let Some((rank, place)) =
                    group.find(following, &self.links, &self.inner_paths, start, rank_before)
            {
                self.later_pairs.push(Reverse((rank, front.group, place)));
                later_rank = later_rank.min(rank);
            }
        }
        assert!(self.later_pairs.is_empty(), "a timeslot ends before all pairs had their turn");
        self.order = mem::take(&mut self.next_order);
        debug_assert!(self.order.is_sorted_by_key(|front| front.rank), "groups out of order");
        order.clear();
        new_before.clear();
        self.unused = [order, new_before];
    }

    /// Tries the lowest rank in `later_pairs`. Returns the next rank there.
    #[cold]
    fn try_later_pair(&mut self, start: u64, rank_before: u64, allocated: &mut impl FnMut(u32)) -> u64 {
        let next = |later: &BinaryHeap<Reverse<(u64, u32, usize)>>| {
            later.peek().map_or(RANK_NONE, |&Reverse((rank, ..))| rank)
        };
        let Some(Reverse((_, number, place))) = self.later_pairs.pop() else { return RANK_NONE };
        let (links, paths) = (&self.links, &self.inner_paths);
        // A link that was free may be allocated by now.
        let found = self.groups[number as usize].find(place, links, paths, start, rank_before);
        let mut following = found;
        if let Some((_, found)) = found
            && found == place
        {
            self.grant(start, number, place, allocated);
            following =
                self.groups[number as usize].find(place, &self.links, &self.inner_paths, start, rank_before);
        }
        if let Some((rank, place)) = following {
            self.later_pairs.push(Reverse((rank, number, place)));
        }
        next(&self.later_pairs)
    }

    /// Allocates the timeslot to the pair at `place` of a group.
    #[inline]
    fn grant(&mut self, start: u64, number: u32, place: usize, allocated: &mut impl FnMut(u32)) {
        let group = &mut self.groups[number as usize];
        let taken = if place == 0 { group.waiting.pop_front() } else { group.waiting.remove(place) };
        let Some(WaitingPair { pair: granted, path, .. }) = taken else { return };
        let pair = &mut self.pairs[granted as usize];
        assert!(pair.demand > 0 && pair.group == number, "a pair without demand waits, or in another group");
        self.rank += 1;
        pair.rank = self.rank;
        pair.demand -= 1;
        if pair.demand > 0 {
            group.waiting.push_back(WaitingPair { rank: pair.rank, pair: granted, path });
        } else {
            self.waiting -= 1;
        }
        for &link in self.inner_paths.links(path) {
            self.links.take(link, start);
        }
        let [last, before] = group.links;
        self.links.take(last, start);
        if before != last {
            self.links.take(before, start);
        }
        if place == 0 {
            group.front = RANK_NONE;
            if let Some(&WaitingPair { rank, path, .. }) = group.waiting.front() {
                group.front = rank;
                self.new_fronts.push(Front { rank, group: number, path });
            }
        }
        allocated(granted);
    }
}

#[cfg(test)]
mod tests;
