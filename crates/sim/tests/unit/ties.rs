//! The order within an instant: by names and seed alone.

use std::collections::{BTreeMap, BTreeSet};

use fanin_dataflow::Random;
use fanin_network::topology;

use super::*;
use crate::parcel::Parcel;
use crate::schedule::{NEVER, Schedule};

const SENDERS: u32 = 8;

fn star() -> Network {
    let sets = [format!("workload.senders={SENDERS}")];
    topology::build(&fanin_scenario::load("incast", &sets).unwrap().scenario).unwrap().0
}

/// The occurrences of some instants, of all kinds that have names.
fn occurrences(network: &Network) -> Vec<(u64, Occurrence)> {
    let mut all = Vec::new();
    for time in [5, 5_000, 9_000_000, 40_000_000_000, 7_000_000_000_000_000] {
        for port in network.ports() {
            all.extend([(time, Occurrence::Departure(port)), (time, Occurrence::PauseSignal(port))]);
        }
        all.extend((0..2 * SENDERS).map(|end| (time, Occurrence::EndpointTimer(end))));
        all.extend((0..=SENDERS).map(|host| (time, Occurrence::HostTimer(host))));
        all.extend((0..5).map(|of| (time, Occurrence::Technique { technique: 0, kind: 1, of })));
    }
    all
}

fn order(network: &Network, seed: u64, scheduled: &[(u64, Occurrence)]) -> Vec<(u64, Occurrence)> {
    let ports = network.ports().end;
    let mut schedule = Schedule::new(1 << 20, ports, Ties::new(network, seed));
    for sender in 0..SENDERS {
        // Each sender's link is one of the ports; the other end's first port is the collector's.
        schedule.ties.connect([1, 2 * sender + 3], [0, sender + 1], 0);
    }
    for &(time, occurrence) in scheduled {
        if matches!(occurrence, Occurrence::Departure(_)) {
            schedule.insert_first(time, occurrence);
        } else {
            schedule.insert(time, occurrence);
        }
    }
    // One port has one arrival.
    network.ports().for_each(|port| schedule.insert_arrival(5, port, Parcel::default()));
    let pop = || schedule.pop(NEVER).and_then(|(time, occurrence)| Some((time, occurrence?)));
    std::iter::from_fn(pop).collect()
}

#[test]
fn the_order_does_not_depend_on_who_was_scheduled_first() {
    let network = star();
    let mut scheduled = occurrences(&network);
    let (first, other) = (order(&network, 1, &scheduled), order(&network, 2, &scheduled));
    assert_eq!(first.len(), scheduled.len() + network.ports().len());
    let mut random = Random::new(3);
    for _ in 0..50 {
        random.shuffle(&mut scheduled);
        assert_eq!(order(&network, 1, &scheduled), first);
    }
    assert_ne!(other, first, "the seed decides");
    let is_departure = |&(_, occurrence): &(u64, Occurrence)| matches!(occurrence, Occurrence::Departure(_));
    let instant: Vec<_> = first.iter().filter(|&&(time, _)| time == 5).collect();
    assert!(instant.is_sorted_by_key(|&entry| !is_departure(entry)), "departures come first");
}

#[test]
fn the_ends_of_connections_have_salts_of_their_own() {
    let network = star();
    let salts = |seed, senders: &mut dyn Iterator<Item = u32>| {
        let mut ties = Ties::new(&network, seed);
        let salts = senders.map(|sender| (sender, ties.connect([1, 2 * sender + 3], [0, sender + 1], 0)));
        salts.collect::<BTreeMap<_, _>>()
    };
    let first = salts(1, &mut (0..SENDERS));
    let different: BTreeSet<u32> = first.values().flatten().copied().collect();
    assert_eq!(different.len() as u32, 2 * SENDERS);
    assert_eq!(first, salts(1, &mut (0..SENDERS).rev()));
    let mut ties = Ties::new(&network, 1);
    let parallel: BTreeSet<u32> = (0..5).flat_map(|number| ties.connect([1, 3], [0, 1], number)).collect();
    assert_eq!(parallel.len(), 10);
    let other = salts(2, &mut (0..SENDERS));
    assert!(first.iter().all(|(sender, salts)| other[sender] != *salts));
}
