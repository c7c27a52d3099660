//! The arbiter allocates the right pairs, in the right order.

use std::collections::{BTreeMap, BTreeSet};
use std::vec;

use proptest::prelude::*;

use super::*;

/// A full frame at 1 Gb/s.
const SLOT: Duration = Duration::from_nanos(12_304);

/// Makes an arbiter with `sources` × `destinations` pairs. `up` and `down` are the transmission times of a timeslot on
/// the links.
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
    /// No port has two senders or two receivers in one timeslot. Every demand is served once. Allocations are maximal:
    /// no further pair fits.
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

/// A naive search: tries all pairs in the order of their last turns.
struct Naive {
    busy_until: Vec<u64>,
    /// Last turn, and number of timeslots waited for.
    pairs: Vec<(u64, u32)>,
    turns: u64,
}

impl Naive {
    fn allocate(&mut self, start: u64, times: &[u64], paths: &[Vec<u32>]) -> Vec<u32> {
        let end = start + SLOT.get();
        let mut order: Vec<usize> = (0..paths.len()).filter(|&pair| self.pairs[pair].1 > 0).collect();
        order.sort_by_key(|&pair| (self.pairs[pair].0, pair));
        let mut given = Vec::new();
        for pair in order {
            let is_free = |&link: &u32| {
                let time = times[link as usize].min(SLOT.get());
                self.busy_until[link as usize].max(start) + time <= end
            };
            if paths[pair].iter().all(is_free) {
                for &link in &paths[pair] {
                    let busy_until = &mut self.busy_until[link as usize];
                    *busy_until = (*busy_until).max(start) + times[link as usize];
                }
                self.turns += 1;
                self.pairs[pair] = (self.turns, self.pairs[pair].1 - 1);
                given.push(pair as u32);
            }
        }
        given
    }
}

proptest! {
    /// Groups change no result. For any paths, rates and demands the naive search allocates the same timeslots to the
    /// same pairs, in the same order.
    #[test]
    fn groups_change_no_result(
        times in prop::collection::vec(prop::sample::select(vec![1_230_u64, 4_000, 6_152, 12_304, 30_000]), 6..14),
        paths in prop::collection::vec(prop::collection::vec(0_u32..14, 1..6), 1..40),
        steps in prop::collection::vec(prop::collection::vec((0_usize..40, 0_u32..4), 0..12), 1..40),
        forgets_at in 0_usize..60,
    ) {
        let times: Vec<u64> = times.iter().map(|time| time * 1000).collect();
        let paths: Vec<Vec<u32>> = (paths.into_iter())
            .map(|path| {
                let mut path: Vec<u32> = path.into_iter().map(|link| link % times.len() as u32).collect();
                // No path uses a link twice.
                let mut seen = BTreeSet::new();
                path.retain(|&link| seen.insert(link));
                path
            })
            .collect();
        let mut arbiter = Arbiter::new(SLOT);
        times.iter().for_each(|&time| _ = arbiter.add_link(Duration::new(time)));
        paths.iter().for_each(|path| _ = arbiter.add_pair(path));
        let mut naive =
            Naive { busy_until: vec![0; times.len()], pairs: vec![(0, 0); paths.len()], turns: 0 };
        let mut number = 0;
        let mut steps = steps.into_iter();
        loop {
            let step = steps.next();
            for &(pair, slots) in step.iter().flatten() {
                let pair = pair % paths.len();
                arbiter.handle_demand(pair as u32, slots);
                naive.pairs[pair].1 += slots;
            }
            if number == forgets_at as u64 {
                arbiter.forget();
                naive.pairs.iter_mut().for_each(|pair| pair.1 = 0);
            }
            let waits = naive.pairs.iter().any(|pair| pair.1 > 0);
            prop_assert_eq!(arbiter.is_idle(), !waits);
            if step.is_none() && !waits {
                break;
            }
            number += 1;
            let expected = naive.allocate(number * SLOT.get(), &times, &paths);
            prop_assert_eq!(slot(&mut arbiter, number), expected, "timeslot {}", number);
        }
    }
}
