//! Assignment policies: the choice of the free processing unit for the next event (thesis §6.1).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::Random;
use crate::bitset::BitSet;

/// The processing units of a system in their fixed order: the units of a collector are consecutive.
#[derive(Debug, Clone)]
pub struct UnitLayout {
    /// The number of each collector's first unit, followed by the total number of units.
    firsts: Vec<u32>,
    collector_of: Vec<u16>,
}

impl UnitLayout {
    /// Makes a layout from the number of units on each collector.
    pub fn new(units: &[u16]) -> Self {
        let mut firsts = vec![0];
        let mut collector_of = Vec::new();
        for (collector, &units) in units.iter().enumerate() {
            collector_of.extend(core::iter::repeat_n(collector as u16, usize::from(units)));
            firsts.push(collector_of.len() as u32);
        }
        Self { firsts, collector_of }
    }

    /// Returns the number of collectors.
    pub fn collectors(&self) -> usize {
        self.firsts.len() - 1
    }

    /// Returns the number of units.
    pub fn units(&self) -> usize {
        self.collector_of.len()
    }

    /// Returns the number of a collector's unit in the whole system; `None` if there is no such unit.
    #[inline]
    pub fn unit(&self, collector: u16, unit: u16) -> Option<u32> {
        let number = *self.firsts.get(usize::from(collector))? + u32::from(unit);
        (number < *self.firsts.get(usize::from(collector) + 1)?).then_some(number)
    }

    /// Returns the numbers of all units of a collector.
    pub fn units_of(&self, collector: u16) -> core::ops::Range<u32> {
        self.firsts[usize::from(collector)]..self.firsts[usize::from(collector) + 1]
    }

    /// Returns the collector of a unit, and the unit's number on this collector.
    #[inline]
    pub fn place(&self, number: u32) -> (u16, u16) {
        let collector = self.collector_of[number as usize];
        (collector, (number - self.firsts[usize::from(collector)]) as u16)
    }
}

/// The free units, and the choice of one of them.
///
/// The supervisor adds only absent units, and removes only present ones.
pub trait Assignment: Send {
    /// Adds a unit that became free.
    fn add(&mut self, unit: u32);
    /// Removes a unit that is no longer free, as its collector was lost.
    fn remove(&mut self, unit: u32);
    /// Chooses a unit and removes it; returns `None` if no unit is free.
    fn take(&mut self, random: &mut Random) -> Option<u32>;
}

/// Rule by which the supervisor chooses an event's processing unit (thesis §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum Policy {
    /// First come, first served: the unit that has been idle longest.
    #[default]
    Fcfs,
    /// A random idle unit.
    Random,
    /// An idle unit of the next collector host in a fixed order; hosts without an idle unit are skipped.
    NodeRoundRobin,
    /// An idle unit of the host with the most idle units.
    NodeLoadBalancing,
    /// The next idle unit in a fixed order, with the units of a host in a row.
    UnitRoundRobin,
}

/// The host that wins a tie of `node-load-balancing`, where several hosts have equally many idle units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum TieBreak {
    /// The least recently served host, so that equal hosts take turns.
    #[default]
    LeastRecent,
    /// The host with the lowest number. At low load it sends event after event to the same few hosts, whose collections
    /// then overlap.
    Lowest,
    /// A random one, from the seed.
    Random,
}

impl Policy {
    /// Makes an empty pool of units with this policy; `tie_break` matters only to [`Self::NodeLoadBalancing`].
    pub fn build(self, tie_break: TieBreak, layout: &UnitLayout) -> Box<dyn Assignment> {
        match self {
            Self::Fcfs => Box::new(Fcfs { queue: VecDeque::with_capacity(layout.units()) }),
            Self::Random => Box::new(Dense::new(layout.units())),
            Self::NodeRoundRobin => Box::new(NodeRoundRobin {
                nodes: Nodes::new(layout),
                with_free: BitSet::new(layout.collectors()),
                next: 0,
            }),
            Self::NodeLoadBalancing => Box::new(NodeLoadBalancing::new(layout, tie_break)),
            Self::UnitRoundRobin => Box::new(UnitRoundRobin { free: BitSet::new(layout.units()), next: 0 }),
        }
    }
}

struct Fcfs {
    queue: VecDeque<u32>,
}

impl Assignment for Fcfs {
    fn add(&mut self, unit: u32) {
        self.queue.push_back(unit);
    }

    fn remove(&mut self, unit: u32) {
        self.queue.retain(|&queued| queued != unit);
    }

    fn take(&mut self, _random: &mut Random) -> Option<u32> {
        self.queue.pop_front()
    }
}

/// A set without an order, with the place of each member.
struct Dense {
    members: Vec<u32>,
    places: Vec<u32>,
}

impl Dense {
    fn new(size: usize) -> Self {
        Self { members: Vec::with_capacity(size), places: vec![0; size] }
    }
}

impl Assignment for Dense {
    fn add(&mut self, unit: u32) {
        debug_assert!(!self.members.contains(&unit), "a member is added twice");
        self.places[unit as usize] = self.members.len() as u32;
        self.members.push(unit);
    }

    fn remove(&mut self, unit: u32) {
        let place = self.places[unit as usize] as usize;
        assert_eq!(self.members.get(place), Some(&unit), "a unit is removed that is no member");
        self.members.swap_remove(place);
        if let Some(&moved) = self.members.get(place) {
            self.places[moved as usize] = place as u32;
        }
    }

    fn take(&mut self, random: &mut Random) -> Option<u32> {
        if self.members.is_empty() {
            return None;
        }
        let unit = self.members[random.below(self.members.len() as u32) as usize];
        self.remove(unit);
        Some(unit)
    }
}

/// The free units of each collector. The unit that became free last is taken first; the network is not affected by this
/// choice.
struct Nodes {
    layout: UnitLayout,
    free: Vec<Vec<u32>>,
}

impl Nodes {
    fn new(layout: &UnitLayout) -> Self {
        let free =
            (0..layout.collectors()).map(|node| Vec::with_capacity(layout.units_of(node as u16).len()));
        Self { free: free.collect(), layout: layout.clone() }
    }

    fn node_of(&self, unit: u32) -> usize {
        usize::from(self.layout.collector_of[unit as usize])
    }

    fn remove(&mut self, node: usize, unit: u32) {
        if let Some(place) = self.free[node].iter().position(|&free| free == unit) {
            self.free[node].swap_remove(place);
        }
    }
}

struct NodeRoundRobin {
    nodes: Nodes,
    with_free: BitSet,
    next: usize,
}

impl Assignment for NodeRoundRobin {
    fn add(&mut self, unit: u32) {
        let node = self.nodes.node_of(unit);
        self.nodes.free[node].push(unit);
        self.with_free.insert(node);
    }

    fn remove(&mut self, unit: u32) {
        let node = self.nodes.node_of(unit);
        self.nodes.remove(node, unit);
        if self.nodes.free[node].is_empty() {
            self.with_free.remove(node);
        }
    }

    fn take(&mut self, _random: &mut Random) -> Option<u32> {
        let node = self.with_free.next_cyclic(self.next)?;
        let unit = self.nodes.free[node].pop()?;
        if self.nodes.free[node].is_empty() {
            self.with_free.remove(node);
        }
        self.next = node + 1;
        Some(unit)
    }
}

/// Collectors in buckets by their number of free units: a choice costs the same for 39 and for 2000 collectors.
struct NodeLoadBalancing {
    nodes: Nodes,
    tie_break: TieBreak,
    /// Collectors by number of free units; bucket 0 is never searched.
    buckets: Vec<Bucket>,
    /// Highest bucket that may have a member.
    most: usize,
    next: usize,
}

struct Bucket {
    ordered: BitSet,
    dense: Dense,
}

impl NodeLoadBalancing {
    fn new(layout: &UnitLayout, tie_break: TieBreak) -> Self {
        let nodes = layout.collectors();
        let most = (0..nodes).map(|node| layout.units_of(node as u16).len()).max().unwrap_or(0);
        let bucket = || Bucket { ordered: BitSet::new(nodes), dense: Dense::new(nodes) };
        let buckets = (0..=most).map(|_| bucket()).collect();
        Self { nodes: Nodes::new(layout), tie_break, buckets, most: 0, next: 0 }
    }

    fn leave(&mut self, free: usize, node: usize) {
        if free > 0 {
            self.buckets[free].ordered.remove(node);
            self.buckets[free].dense.remove(node as u32);
        }
    }

    fn enter(&mut self, free: usize, node: usize) {
        if free > 0 {
            self.buckets[free].ordered.insert(node);
            self.buckets[free].dense.add(node as u32);
            self.most = self.most.max(free);
        }
        assert!(free < self.buckets.len(), "a node has more free units than units");
        while self.most > 0 && self.buckets[self.most].dense.members.is_empty() {
            self.most -= 1;
        }
    }
}

impl Assignment for NodeLoadBalancing {
    fn add(&mut self, unit: u32) {
        let node = self.nodes.node_of(unit);
        let free = self.nodes.free[node].len();
        self.leave(free, node);
        self.nodes.free[node].push(unit);
        self.enter(free + 1, node);
    }

    fn remove(&mut self, unit: u32) {
        let node = self.nodes.node_of(unit);
        let free = self.nodes.free[node].len();
        self.leave(free, node);
        self.nodes.remove(node, unit);
        self.enter(free - 1, node);
    }

    fn take(&mut self, random: &mut Random) -> Option<u32> {
        if self.most == 0 {
            return None;
        }
        let bucket = &self.buckets[self.most];
        let node = match self.tie_break {
            TieBreak::LeastRecent => bucket.ordered.next_cyclic(self.next)?,
            TieBreak::Lowest => bucket.ordered.next_cyclic(0)?,
            TieBreak::Random => {
                let members = &bucket.dense.members;
                members[random.below(members.len() as u32) as usize] as usize
            }
        };
        self.leave(self.most, node);
        let unit = self.nodes.free[node].pop()?;
        self.enter(self.nodes.free[node].len(), node);
        self.next = node + 1;
        Some(unit)
    }
}

struct UnitRoundRobin {
    free: BitSet,
    next: usize,
}

impl Assignment for UnitRoundRobin {
    fn add(&mut self, unit: u32) {
        self.free.insert(unit as usize);
    }

    fn remove(&mut self, unit: u32) {
        self.free.remove(unit as usize);
    }

    fn take(&mut self, _random: &mut Random) -> Option<u32> {
        let unit = self.free.next_cyclic(self.next)?;
        self.free.remove(unit);
        self.next = unit + 1;
        Some(unit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Policy, TieBreak); 7] = [
        (Policy::Fcfs, TieBreak::LeastRecent),
        (Policy::Random, TieBreak::LeastRecent),
        (Policy::NodeRoundRobin, TieBreak::LeastRecent),
        (Policy::NodeLoadBalancing, TieBreak::LeastRecent),
        (Policy::NodeLoadBalancing, TieBreak::Lowest),
        (Policy::NodeLoadBalancing, TieBreak::Random),
        (Policy::UnitRoundRobin, TieBreak::LeastRecent),
    ];

    /// Returns the collectors of the first `count` takes, from three collectors with three free units each.
    fn takes(policy: Policy, count: usize) -> Vec<u16> {
        let layout = UnitLayout::new(&[3, 3, 3]);
        let mut pool = policy.build(TieBreak::LeastRecent, &layout);
        (0..9).for_each(|unit| pool.add(unit));
        let mut random = Random::new(3);
        (0..count).map(|_| layout.place(pool.take(&mut random).unwrap()).0).collect()
    }

    #[test]
    fn each_policy_has_its_order() {
        assert_eq!(takes(Policy::Fcfs, 9), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(takes(Policy::UnitRoundRobin, 9), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(takes(Policy::NodeRoundRobin, 9), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(takes(Policy::NodeLoadBalancing, 6), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn ties_are_broken_as_asked() {
        // One unit becomes free at once each time: by the lowest number, the same host takes every event.
        for (tie_break, expected) in [(TieBreak::Lowest, [0, 0, 0, 0]), (TieBreak::LeastRecent, [0, 1, 2, 0])]
        {
            let layout = UnitLayout::new(&[2, 2, 2]);
            let mut pool = Policy::NodeLoadBalancing.build(tie_break, &layout);
            (0..6).for_each(|unit| pool.add(unit));
            let mut random = Random::new(1);
            let nodes = expected.map(|_| {
                let unit = pool.take(&mut random).unwrap();
                pool.add(unit);
                layout.place(unit).0
            });
            assert_eq!(nodes, expected, "{tie_break:?}");
        }
    }

    #[test]
    fn every_policy_gives_back_exactly_what_it_was_given() {
        for (policy, tie_break) in ALL {
            let layout = UnitLayout::new(&[4, 1, 7, 0, 3]);
            let mut pool = policy.build(tie_break, &layout);
            let mut inside = vec![false; layout.units()];
            let mut random = Random::new(11);
            for _ in 0..5_000 {
                let unit = random.below(layout.units() as u32);
                match (random.below(3), inside[unit as usize]) {
                    (0 | 1, false) => {
                        pool.add(unit);
                        inside[unit as usize] = true;
                    }
                    (0, true) => {
                        pool.remove(unit);
                        inside[unit as usize] = false;
                    }
                    _ => match pool.take(&mut random) {
                        Some(unit) => {
                            assert!(inside[unit as usize], "{policy:?}");
                            inside[unit as usize] = false;
                        }
                        None => assert!(!inside.contains(&true), "{policy:?}"),
                    },
                }
                // The busiest collector is never chosen while another has more units free.
                if policy == Policy::NodeLoadBalancing
                    && let Some(unit) = pool.take(&mut random)
                {
                    let free = |node: u16| layout.units_of(node).filter(|&u| inside[u as usize]).count();
                    let chosen = free(layout.place(unit).0);
                    assert!((0..5).all(|node| free(node) <= chosen));
                    pool.add(unit);
                }
            }
        }
    }

    #[test]
    fn units_have_places() {
        let layout = UnitLayout::new(&[2, 0, 3]);
        assert_eq!(layout.unit(2, 1), Some(3));
        assert_eq!((layout.unit(2, 3), layout.unit(1, 0), layout.unit(3, 0)), (None, None, None));
        assert_eq!(layout.place(4), (2, 2));
    }
}
