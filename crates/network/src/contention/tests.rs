use proptest::prelude::*;

use super::*;
use crate::topology;

const GIGABIT: Rate = Rate::new(1_000_000_000);
/// Round trip of every collection here, in picoseconds.
const FIXED: u64 = 100_000_000;

/// Collectors with a gigabit each behind inputs of `inputs` gigabits together.
fn links(collectors: u32, inputs: u64) -> SharedLinks {
    let links = |count: u64| ParallelLinks { rate: Rate::new(count * GIGABIT.get()), slowest: GIGABIT };
    let shared = (inputs < u64::from(collectors)).then(|| links(inputs));
    SharedLinks {
        own: vec![links(1); collectors as usize],
        rings: vec![None; collectors as usize],
        inputs: vec![SharedInputs {
            collectors: (0..collectors).collect(),
            links: shared,
            frame: Bytes::ZERO,
            memory: Some(SwitchMemory { port: 0, total: 0, at_once: 0 }),
        }],
        notices: vec![Duration::ZERO; collectors as usize],
    }
}

fn collection(collector: u32, released_us: u64, wire_bytes: u64) -> MeasuredCollection {
    let ideal = Duration::new(FIXED) + GIGABIT.time_to_send(Bytes::new(wire_bytes));
    MeasuredCollection {
        collector,
        released: Instant::START + Duration::from_micros(released_us),
        work: CollectionWork { wire_bytes, joined_bytes: wire_bytes, least: ideal },
        ideal,
    }
}

#[test]
fn a_lone_collection_reaches_its_ideal() {
    let bound = links(1, 1).bound(&[collection(0, 5, 125_000)]).unwrap();
    let ideal = MeanAndTail { mean: 1.1e9, p99: 1.1e9 };
    assert_eq!(bound.least.time_ps.mean, ideal.mean);
    assert_eq!(bound.clairvoyant.time_ps, ideal);
    assert_eq!((bound.least.slowdown.mean, bound.least.slowdown.p99), (1.0, 1.0));
    assert!(links(1, 1).bound(&[]).is_none());
}

#[test]
fn two_at_once_on_one_link_take_one_and_a_half_times_the_wire() {
    let both = [collection(0, 0, 125_000), collection(0, 0, 125_000)];
    let bound = links(1, 1).bound(&both).unwrap();
    // The first takes 1.1 ms, the second 2.1 ms.
    assert_eq!((bound.least.time_ps.mean, bound.clairvoyant.time_ps.mean), (1.6e9, 1.6e9));
    assert_eq!(bound.clairvoyant.time_ps.p99, 2.1e9);
    assert!((bound.least.time_ps.p99 / 2.1e9 - 1.0).abs() < 2e-4, "{bound:?}");
    assert!((bound.least.slowdown.mean - 1.6 / 1.1).abs() < 1e-9, "{bound:?}");
}

#[test]
fn a_late_readout_raises_the_bound_of_its_busy_period_alone() {
    // Two at once take 1.1 and 2.1 ms, and a later one waits 5 ms for a readout.
    let mut all = [collection(0, 0, 125_000), collection(0, 0, 125_000), collection(0, 9_000, 125_000)];
    all[2].work.least = Duration::from_millis(5);
    let bound = links(1, 1).bound(&all).unwrap();
    assert!((bound.least.time_ps.mean - (1.1e9 + 2.1e9 + 5e9) / 3.0).abs() < 1.0, "{bound:?}");
    assert!((bound.least.slowdown.mean - (1.1 + 2.1 + 5.0) / 1.1 / 3.0).abs() < 1e-9, "{bound:?}");
    assert_eq!((bound.clairvoyant.time_ps.mean, bound.clairvoyant.time_ps.p99), (8.2e9 / 3.0, 5e9));
}

#[test]
fn a_ring_is_a_slower_link_that_is_one_burst_ahead() {
    // A ring of half the rate takes 2 ms for each of two collections, less 10 us for what it passes at once.
    let both = [collection(0, 0, 125_000), collection(0, 0, 125_000)];
    let mut shared = links(1, 1);
    let ring = RingLimit { rate: Rate::new(GIGABIT.get() / 2), ahead: Duration::from_micros(10) };
    shared.rings = vec![Some(ring)];
    let bound = shared.bound(&both).unwrap();
    assert_eq!((bound.least.time_ps.mean, bound.clairvoyant.time_ps.mean), (3.09e9, 3.1e9));
    assert!((bound.least.time_ps.p99 / 4.09e9 - 1.0).abs() < 2e-4, "{bound:?}");
    // A burst that lasts longer than the round trip says nothing.
    shared.rings = vec![Some(RingLimit { ahead: Duration::from_micros(101), ..ring })];
    assert_eq!(shared.bound(&both).unwrap().least.time_ps.mean, 1.6e9);
}

#[test]
fn a_ring_limits_a_collector_if_all_answers_pass_it() {
    let rings = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = fanin_scenario::load("lcn15-all-to-one", &sets).unwrap().scenario;
        let (network, roles) = topology::build(&scenario).unwrap();
        SharedLinks::new(&network, &roles).rings
    };
    // A burst of 3036 B and a frame take 46.9 us at 0.78 Gb/s.
    let [Some(ring)] = rings(&[])[..] else { panic!("the ring is slower than the link") };
    assert_eq!(ring.rate, Rate::new(780_000_000));
    assert!((46_000_000..47_500_000).contains(&ring.ahead.get()), "{ring:?}");
    assert_eq!(rings(&["tor.daqring.rate=0 Gb/s"]), [None]);
    assert_eq!(rings(&["tor.daqring.rate=2 Gb/s"]), [None]);
    assert_eq!(rings(&["tor.buffering=unlimited"]), [None]);
    assert_eq!(rings(&["tor.daqring.flows=[\"readout:3->collector:*\"]"]), [None]);
}

/// Two collections of 1 ms on the link: the second one's answers come 0.5 ms later than the first one's.
#[test]
fn a_job_is_served_after_its_own_round_trip() {
    let mut both = [collection(0, 0, 125_000), collection(0, 0, 125_000)];
    both[1].ideal += Duration::from_micros(500);
    both[1].work.least = both[1].ideal;
    let bound = links(1, 1).bound(&both).unwrap();
    assert_eq!((bound.least.time_ps.mean, bound.clairvoyant.time_ps.mean), (1.6e9, 1.6e9));
    // With a pause of 1.5 ms nothing is in the way of the first one.
    both[1].ideal += Duration::from_millis(1);
    both[1].work.least = both[1].ideal;
    let bound = links(1, 1).bound(&both).unwrap();
    assert_eq!((bound.least.time_ps.mean, bound.clairvoyant.time_ps.mean), (1.85e9, 1.85e9));
}

#[test]
fn collectors_behind_one_input_share_it() {
    let apart = [collection(0, 0, 125_000), collection(1, 0, 125_000)];
    assert_eq!(links(2, 2).bound(&apart).unwrap().least.time_ps.mean, 1.1e9);
    let bound = links(2, 1).bound(&apart).unwrap();
    assert_eq!((bound.least.time_ps.mean, bound.clairvoyant.time_ps.mean), (1.6e9, 1.6e9));
}

#[test]
fn a_rack_behind_thin_uplinks_shares_them() {
    let scenario = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        fanin_scenario::load("thesis-a-1000hz", &sets).unwrap().scenario
    };
    let shared = |sets: &[&str]| {
        let (network, roles) = topology::build(&scenario(sets)).unwrap();
        SharedLinks::new(&network, &roles).inputs
    };
    let rates = |inputs: &[SharedInputs]| {
        inputs.iter().map(|one| one.links.map(|links| links.rate)).collect::<Vec<_>>()
    };
    let thin = shared(&["uplink.rate=1 Gb/s", "network.cores=1", "network.uplinks_per_core=1"]);
    assert_eq!(rates(&thin), vec![Some(GIGABIT); thin.len()]);
    assert!(rates(&shared(&["uplink.rate=400 Gb/s"])).iter().all(Option::is_none));
}

#[test]
fn collectors_on_one_host_share_its_links() {
    let scenario = fanin_scenario::load("lcn15-all-to-all", &[]).unwrap().scenario;
    let (network, roles) = topology::build(&scenario).unwrap();
    let inputs = SharedLinks::new(&network, &roles).inputs;
    assert_eq!(inputs.len(), 12);
    for (host, one) in inputs.iter().enumerate() {
        assert_eq!(one.collectors, (0..12).map(|number| host as u32 + 12 * number).collect::<Vec<_>>());
        assert_eq!(one.links.map(|links| links.rate), Some(Rate::new(10_000_000_000)));
        assert_eq!(one.frame, Bytes::ZERO);
    }
}

/// The figures if whole collections are served in the given order, without idling while one may be served. At a time, each
/// collector has at most one in service, and all together have at most `inputs`.
fn served_in(order: &[usize], collections: &[MeasuredCollection], inputs: usize) -> ScheduleFigures {
    let work = |one: &MeasuredCollection| GIGABIT.time_to_send(Bytes::new(one.work.wire_bytes));
    let released = |one: &MeasuredCollection| (one.released + one.ideal.saturating_sub(work(one))).get();
    let mut waiting = order.to_vec();
    // Ends of the collections in service, with their collectors.
    let mut serving: Vec<(u64, u32)> = Vec::new();
    let (mut now, mut times) = (0, Vec::new());
    while !waiting.is_empty() {
        serving.retain(|&(end, _)| end > now);
        let may = |one: &MeasuredCollection| {
            released(one) <= now && serving.iter().all(|&(_, collector)| collector != one.collector)
        };
        let next = waiting.iter().position(|&place| may(&collections[place]));
        let Some(next) = next.filter(|_| serving.len() < inputs) else {
            let ends = serving.iter().map(|&(end, _)| end);
            let releases = waiting.iter().map(|&place| released(&collections[place]));
            now = ends.chain(releases).filter(|&at| at > now).min().unwrap();
            continue;
        };
        let one = &collections[waiting.remove(next)];
        let end = now + work(one).get();
        serving.push((end, one.collector));
        times.push(((end - one.released.get()).max(one.work.least.get()), one.ideal.get()));
    }
    ScheduleFigures::of(&mut times)
}

/// The figures if the inputs run ahead of the last links, in quanta of 100 us of a last link. The first collection in the order
/// is served whose port has room in its memory. `room` is the memory of a port in quanta.
fn served_ahead(
    order: &[usize],
    collections: &[MeasuredCollection],
    inputs: u64,
    room: u64,
) -> ScheduleFigures {
    const QUANTUM: u64 = 100_000_000;
    let work = |one: &MeasuredCollection| GIGABIT.time_to_send(Bytes::new(one.work.wire_bytes));
    let released: Vec<u64> =
        collections.iter().map(|one| (one.released + one.ideal.saturating_sub(work(one))).get()).collect();
    let mut left: Vec<u64> = collections.iter().map(|one| work(one).get()).collect();
    // Ends of the quanta that have passed the inputs and not the last link, by collector.
    let mut held: BTreeMap<u32, std::collections::VecDeque<u64>> = BTreeMap::new();
    let mut ends: Vec<u64> = vec![0; collections.len()];
    let mut now = 0;
    while left.iter().any(|&left| left > 0) {
        held.values_mut().for_each(|ends| ends.retain(|&end| end > now));
        let has_room =
            |one: &MeasuredCollection| held.get(&one.collector).is_none_or(|ends| ends.len() as u64 <= room);
        let may =
            |place: &&usize| left[**place] > 0 && released[**place] <= now && has_room(&collections[**place]);
        let Some(&place) = order.iter().find(may) else {
            let releases = released.iter().zip(&left).filter(|&(_, &left)| left > 0).map(|(&at, _)| at);
            let drained = held.values().flatten().copied();
            now = releases.chain(drained).filter(|&at| at > now).min().unwrap();
            continue;
        };
        let quantum = left[place].min(QUANTUM);
        left[place] -= quantum;
        now += quantum.div_ceil(inputs);
        let ends_of = held.entry(collections[place].collector).or_default();
        // A quantum is on the last link after it has passed the inputs, as a frame is.
        ends[place] = ends_of.back().map_or(now, |&last| last.max(now)) + quantum;
        ends_of.push_back(ends[place]);
    }
    let time = |(one, &end): (&MeasuredCollection, &u64)| {
        ((end - one.released.get()).max(one.work.least.get()), one.ideal.get())
    };
    ScheduleFigures::of(&mut collections.iter().zip(&ends).map(time).collect::<Vec<_>>())
}

#[test]
fn inputs_run_ahead_of_the_last_links_as_far_as_the_memory_reaches() {
    // Two inputs. One last link is busy from 0 to 10 ms, two others from 5 to 15 ms.
    let late = |number: u32| collection(1 + number % 2, 5_000, 125_000);
    let all: Vec<MeasuredCollection> =
        (0..10).map(|_| collection(0, 0, 125_000)).chain((0..20).map(late)).collect();
    let mean_ms = |port: u64| {
        let mut links = links(3, 2);
        links.inputs[0].memory = Some(SwitchMemory { port, total: u64::MAX, at_once: 0 });
        links.bound(&all).unwrap().least.time_ps.mean / 1e9
    };
    // Alone they take 1.1 to 10.1 ms. An excess grows by one link for 5 ms, lasts for 5 ms, and falls by two links.
    let alone = 5.6;
    assert!((mean_ms(0) - (alone + (12.5 + 25.0 + 6.25) / 30.0)).abs() < 1e-6, "{}", mean_ms(0));
    // In the first 5 ms, the inputs bring 2.5 ms of the first link in advance. The excess begins 2.5 ms later.
    let half = alone + (3.125 + 12.5 + 1.5625) / 30.0;
    assert!((mean_ms(312_500) - half).abs() < 1e-6, "{}", mean_ms(312_500));
    // They bring all the rest: nothing is delayed.
    assert!((mean_ms(625_000) - alone).abs() < 1e-6, "{}", mean_ms(625_000));
}

proptest! {
    /// No schedule is better than the bound, not even the clairvoyant one.
    #[test]
    fn no_schedule_beats_the_bound(
        jobs in prop::collection::vec((0_u64..20_000, 100_u64..2_000_000), 1..60),
        keys in prop::collection::vec(any::<u32>(), 60),
        late_us in prop::collection::vec(prop_oneof![Just(0), 0_u64..5_000], 60),
        outside_us in prop::collection::vec(prop_oneof![Just(0), 0_u64..3_000], 60),
        shape in (1_u32..6).prop_flat_map(|collectors| (Just(collectors), 1..=u64::from(collectors))),
        favoured in 0_u32..4,
    ) {
        let (collectors, inputs) = shape;
        let collections: Vec<MeasuredCollection> = jobs
            .iter()
            .enumerate()
            .map(|(number, &(began, bytes))| {
                // The first collector may have most of them, as with first come, first served.
                let place = (number as u32 % (collectors + favoured)).saturating_sub(favoured);
                let mut one = collection(place, began, bytes);
                one.ideal += Duration::from_micros(outside_us[number]);
                one.work.least = one.ideal.max(Duration::from_micros(late_us[number]));
                one
            })
            .collect();
        let bound = links(collectors, inputs).bound(&collections).unwrap();
        let mut order: Vec<usize> = (0..collections.len()).collect();
        order.sort_by_key(|&place| keys[place]);
        let first_come = {
            let mut order = order.clone();
            order.sort_by_key(|&place| collections[place].released);
            order
        };
        let least = bound.least;
        let served = |order: &[usize]| served_in(order, &collections, inputs as usize);
        let shortest = {
            let mut order = order.clone();
            order.sort_by_key(|&place| collections[place].work.wire_bytes);
            order
        };
        for reached in [bound.clairvoyant, served(&order), served(&first_come), served(&shortest)] {
            for (least, reached) in [(least.time_ps, reached.time_ps), (least.slowdown, reached.slowdown)] {
                prop_assert!(least.mean <= reached.mean * (1.0 + 1e-9), "{least:?} {reached:?}");
                prop_assert!(least.p99 <= reached.p99 * (1.0 + 1e-9), "{least:?} {reached:?}");
            }
        }
        // Inputs that run ahead may be better, up to the bound for their memory.
        for room in [0, 1, 5] {
            let mut links = links(collectors, inputs);
            // A quantum has 12.5 kB; one is on the last link.
            let port = 12_500 * (room + 1);
            links.inputs[0].memory = Some(SwitchMemory { port, total: u64::MAX, at_once: 12_500 });
            let least = links.bound(&collections).unwrap().least;
            for order in [&order, &first_come] {
                let reached = served_ahead(order, &collections, inputs, room);
                prop_assert!(least.time_ps.mean <= reached.time_ps.mean * (1.0 + 1e-9), "{least:?} {reached:?}");
                let (least, reached) = (least.slowdown.mean, reached.slowdown.mean);
                prop_assert!(least <= reached * (1.0 + 1e-9), "{least:?} {reached:?}");
            }
        }
    }

    /// On one link the clairvoyant schedule reaches the least mean time.
    #[test]
    fn shortest_first_is_optimal_on_one_link(
        jobs in prop::collection::vec((0_u64..20_000, 100_u64..2_000_000), 1..60),
    ) {
        let collections: Vec<MeasuredCollection> =
            jobs.iter().map(|&(began, bytes)| collection(0, began, bytes)).collect();
        let bound = links(1, 1).bound(&collections).unwrap();
        prop_assert!((bound.least.time_ps.mean / bound.clairvoyant.time_ps.mean - 1.0).abs() < 1e-6, "{bound:?}");
    }
}

#[test]
fn the_memory_of_a_switch_is_that_of_its_scheme() {
    let memory = |sets: &[&str]| {
        let all = ["tor.buffer=1.518 MB", "core.buffering=dedicated"].iter().chain(sets);
        let all: Vec<String> = all.map(|&set| set.to_owned()).collect();
        let scenario = fanin_scenario::load("thesis-a-1000hz", &all).unwrap().scenario;
        let (network, roles) = topology::build(&scenario).unwrap();
        let to_collector = network.ports().find(|&port| network.destination(port) == roles.collectors[0]);
        SwitchMemory::of(&network, network.source(to_collector.unwrap()), 39, 2)
    };
    // A frame of 1518 B in memory has 1538 B on the wire. A port has one more in service.
    let (port, frame) = (1_538_000 + 1538, 1538);
    let dedicated = memory(&["tor.buffering=dedicated"]).unwrap();
    assert_eq!(dedicated, SwitchMemory { port, total: 39 * port, at_once: 2 * frame });
    let shared = memory(&["tor.buffering=shared"]).unwrap();
    assert_eq!(shared, SwitchMemory { port, total: 1_538_000 + 39 * frame, at_once: 2 * frame });
    // A port never has more than the whole memory, whatever its part is.
    let threshold = memory(&["tor.buffering=dynamic-threshold"]).unwrap();
    assert!(threshold.port <= port && threshold.total == shared.total, "{threshold:?}");
    // Frames wait at their inputs: an output may have all modules' memory.
    let voq = memory(&["tor.buffering=voq", "tor.module_ports=8"]).unwrap();
    assert!(voq.port >= port && voq.total >= voq.port, "{voq:?}");
    for unlimited in ["tor.buffering=unlimited", "tor.buffering=daqring"] {
        assert_eq!(memory(&[unlimited]), None, "{unlimited}");
    }
    assert_eq!(memory(&["tor.buffering=dedicated", "tor.pause.mode=pause"]), None);
}
