//! Departures that are foreseen, beside those that are found when they come.

use std::fmt::Write as _;

use fanin_scenario::{Buffering, Daqrings, Switch};
use fanin_units::{Bytes, Duration, Rate};
use proptest::prelude::*;

use super::super::{Fabric, Hop, RINGED, Step};
use super::*;
use crate::index::NIL;
use crate::occurrence::Occurrence;
use fanin_network::{Network, SwitchKind};
use fanin_tcp::{Flags, Segment};

/// Two hosts behind a switch with rings, and the ways of what no rule names and of a ring's frames from one to the other.
/// With `several`, another ring of the same port, which stays empty: then departures are found when they come.
fn fabric(settings: &Daqrings, rate: u64, delay: Duration, several: bool) -> (Fabric, [Step; 2]) {
    let settings = Switch { buffering: Buffering::Daqring, daqring: settings.clone(), ..Switch::default() };
    let kinds = vec![SwitchKind { settings, has_uplinks: false, section: "tor" }];
    let mut network = Network { switches: kinds, ..Network::default() };
    let switch = network.add_switch("switch:0".into(), 0);
    for place in 0..2 {
        let host = network.add_host(format!("host:{place}"));
        network.join(host, switch, Rate::new(rate), delay);
    }
    let mut fabric = Fabric::new(&network, 1, true).unwrap();
    let mut route = |ring| fabric.add_route([0, 3].into_iter(), ring).unwrap();
    let routes = [route(None), route(Some(7))];
    if several {
        route(Some(8));
    }
    (fabric, routes)
}

/// The switch's port to the second host.
const PORT: PortIndex = 3;

/// The occurrences of a test: something is done, which may have to wait until all else of that instant is over.
const DEED: fn(u32) -> Occurrence = Occurrence::HostTimer;
const FRAME: fn(u32) -> Occurrence = Occurrence::EndpointTimer;
const OBSERVATION: fn(u32) -> Occurrence = Occurrence::SwitchLevels;

/// The port of an arrival.
fn port_of(what: Occurrence) -> PortIndex {
    let Occurrence::Arrival(port) = what else { panic!("not an arrival: {what:?}") };
    port
}

/// What is done.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// A frame with so much payload comes to the switch, for the ring or not.
    Comes(u16, bool),
    /// The high-water marks start afresh.
    Resets,
    /// Somebody looks at the queue.
    Looks,
}

/// What is done after so many picoseconds.
type Deeds = Vec<(u64, Deed)>;

struct Case {
    rings: Daqrings,
    rate: u64,
    delay: Duration,
}

/// How it is played: departures are foreseen, and frames come before or behind all that is due at their instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Play {
    Foreseen,
    ForeseenHastily,
    /// As they come: the frames come behind.
    Found,
}

/// All that can be seen of a port: each arrival at the far end with its time and its number, each drop, all that is looked at, and the figures.
fn outcome(case: &Case, deeds: &Deeds, play: Play) -> (Vec<(u64, u32)>, String) {
    let (mut fabric, routes) = fabric(&case.rings, case.rate, case.delay, play == Play::Found);
    let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32);
    let mut at = 0;
    for (number, (after, _)) in (0..).zip(deeds) {
        at += after;
        schedule.insert(at, DEED(number));
    }
    // A frame comes to the switch; returns when and which if it is dropped.
    let come =
        |fabric: &mut Fabric, schedule: &mut Schedule, now, (index, payload, in_ring): (u32, u16, bool)| {
            let place = fabric.free_place();
            let segment = Segment { payload, flags: Flags::ACK, ..Segment::default() };
            fabric.segments[place as usize] = segment;
            let route = routes[usize::from(in_ring)];
            let parcel = fabric.wrap(place, Step { next: NIL, ..route }, index);
            let number = fabric.ports[PORT as usize].place.memory & !RINGED;
            let Hop::Dropped { segment } = fabric.arrive_at_rings(schedule, now, number, route.next, parcel)
            else {
                return None;
            };
            fabric.remove(segment);
            Some((now, index))
        };
    let (mut arrivals, mut drops, mut seen) = (Vec::new(), Vec::new(), String::new());
    while let Some((now, what)) = schedule.pop() {
        let deed = |number: u32| deeds[number as usize].1;
        match what {
            Occurrence::Arrival(index) => {
                let Hop::Delivered { end, segment, .. } = fabric.arrive(&mut schedule, now, index) else {
                    panic!("the host is the last");
                };
                fabric.remove(segment);
                arrivals.push((now, end));
            }
            Occurrence::RingService(number) => fabric.look_at_rings(&mut schedule, now, number),
            Occurrence::HostTimer(number) => match deed(number) {
                Deed::Comes(payload, in_ring) if play == Play::ForeseenHastily => {
                    drops.extend(come(&mut fabric, &mut schedule, now, (number, payload, in_ring)));
                }
                _ => schedule.insert(now, FRAME(number)),
            },
            Occurrence::EndpointTimer(number) => match deed(number) {
                Deed::Comes(payload, in_ring) => {
                    drops.extend(come(&mut fabric, &mut schedule, now, (number, payload, in_ring)));
                }
                _ => schedule.insert(now, OBSERVATION(number)),
            },
            Occurrence::SwitchLevels(number) if matches!(deed(number), Deed::Resets) => {
                fabric.reset_marks(now);
            }
            _ => {
                fabric.assert_conserved(0);
                let (queue, payload) = (fabric.queue(now, PORT), fabric.payload_in_flight());
                let (marks, drops) = (fabric.queue_bytes_max(), fabric.drops_and_marks());
                writeln!(seen, "{now}: {queue:?} {payload} {marks:?} {drops:?}").unwrap();
            }
        }
    }
    fabric.assert_conserved(0);
    let figures = fabric.ring_figures().unwrap();
    assert_eq!(figures.rings, 1 + u64::from(play == Play::Found));
    let figures = RingFigures { rings: 0, memory_bytes: 0, ..figures };
    let (bytes, marks, hops) =
        (fabric.ports[PORT as usize].wire_bytes, fabric.queue_bytes_max(), fabric.hops());
    (arrivals, format!("{drops:?}\n{seen}{figures:?} {bytes} {marks:?} {hops}"))
}

fn deeds() -> impl Strategy<Value = Deeds> {
    // In steps in which frames leave, so that much happens at one instant, and in others.
    let after = prop_oneof![
        5 => Just(0_u64),
        3 => (0_u64..40).prop_map(|step| step * 672_000),
        2 => (0_u64..4).prop_map(|step| step * 12_304_000),
        3 => 0_u64..30_000_000,
        1 => 0_u64..600_000_000,
    ];
    let payload = prop::sample::select(vec![0_u16, 0, 724, 1460, 1460, 1460]);
    let deed = prop_oneof![
        12 => (payload.clone(), Just(true)).prop_map(|(payload, ring)| Deed::Comes(payload, ring)),
        6 => (payload, any::<bool>()).prop_map(|(payload, ring)| Deed::Comes(payload, ring)),
        1 => Just(Deed::Resets),
        3 => Just(Deed::Looks),
    ];
    prop::collection::vec((after, deed), 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn foresight_changes_nothing(
        deeds in deeds(),
        frames in prop_oneof![1_u32..8, 8_u32..60, Just(4096)],
        rate in prop::sample::select(vec![1_000_000_000_u64, 10_000_000_000, 777_000_000]),
        // Of the ring: as fast as the link, a little slower, half of it, far slower, faster.
        share in prop::sample::select(vec![0_u64, 95, 78, 50, 5, 100, 130]),
        burst in prop::sample::select(vec![0_u64, 1_000, 1_538, 3_036, 30_000]),
        delay in prop::sample::select(vec![0_u64, 100, 1_000, 25_000]).prop_map(Duration::from_nanos),
        longest_first: bool,
    ) {
        let service = match longest_first {
            true => fanin_scenario::DaqringService::LongestFirst,
            false => fanin_scenario::DaqringService::RoundRobin,
        };
        let ring_rate = Rate::new(rate / 100 * share);
        let rings = Daqrings { frames, rate: ring_rate, burst: Bytes::new(burst), service, ..Daqrings::default() };
        let case = Case { rings, rate, delay };
        let found = outcome(&case, &deeds, Play::Found);
        prop_assert_eq!(&outcome(&case, &deeds, Play::Foreseen), &found);
        prop_assert_eq!(&outcome(&case, &deeds, Play::ForeseenHastily), &found);
    }
}

/// So many frames for a ring at once.
fn burst(frames: usize) -> Deeds {
    vec![(0, Deed::Comes(1460, true)); frames]
}

fn case(rate: u64) -> Case {
    let rings = Daqrings { rate: Rate::new(rate), ..Daqrings::default() };
    Case { rings, rate: 1_000_000_000, delay: Duration::from_micros(1) }
}

/// How many looks at rings it takes until all frames have left.
fn looks(case: &Case, deeds: &Deeds) -> usize {
    let (mut fabric, routes) = fabric(&case.rings, case.rate, case.delay, false);
    let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32);
    for (end, &(_, deed)) in (0..).zip(deeds) {
        let Deed::Comes(payload, in_ring) = deed else { continue };
        let segment = Segment { payload, flags: Flags::ACK, ..Segment::default() };
        fabric.send(&mut schedule, 0, &segment, routes[usize::from(in_ring)], end);
    }
    let (mut looks, mut arrived) = (0, 0);
    while let Some((now, what)) = schedule.pop() {
        match what {
            Occurrence::RingService(number) => {
                looks += 1;
                fabric.look_at_rings(&mut schedule, now, number);
            }
            _ => {
                if let Hop::Delivered { segment, .. } = fabric.arrive(&mut schedule, now, port_of(what)) {
                    arrived += 1;
                    fabric.remove(segment);
                }
            }
        }
    }
    assert_eq!(arrived, deeds.len());
    looks
}

#[test]
fn departures_take_few_occurrences() {
    // Frames come as fast as the link takes them: a ring at its rate has none that waits, a slower one some.
    assert_eq!(looks(&case(0), &burst(1000)), 0);
    let slower = looks(&case(950_000_000), &burst(1000));
    assert!((1..20).contains(&slower), "{slower}");
    // Each of these waits for its tokens when the link has long been free.
    let slow = looks(&case(500_000_000), &burst(1000));
    assert!((900..1000).contains(&slow), "{slow}");
}

#[test]
fn what_no_rule_names_goes_first() {
    // Every third frame passes all of the ring but the one that has begun.
    let deeds: Deeds = (0..900).map(|frame| (0, Deed::Comes(1460, frame % 3 != 1))).collect();
    let (arrivals, _) = outcome(&case(0), &deeds, Play::Foreseen);
    let ends: Vec<u32> = arrivals.into_iter().map(|(_, end)| end).collect();
    let passes = |end: &u32| end % 3 == 1;
    let in_order = (1..900).filter(passes).chain((1..900).filter(|end| !passes(end)));
    assert_eq!(ends, [0].into_iter().chain(in_order).collect::<Vec<_>>());
}

#[test]
fn what_is_due_comes_first() {
    // The second frame of the ring has its tokens when one comes that no rule names: after two of its times on the wire.
    let mut case = case(500_000_000);
    case.rings.burst = Bytes::new(1538);
    let deeds = vec![
        (0, Deed::Comes(1460, true)),
        (0, Deed::Comes(1460, true)),
        (2 * 12_304_000, Deed::Comes(1460, false)),
    ];
    for play in [Play::Foreseen, Play::ForeseenHastily, Play::Found] {
        let (arrivals, _) = outcome(&case, &deeds, play);
        assert_eq!(arrivals, [(13_304_000, 0), (37_912_000, 1), (50_216_000, 2)], "{play:?}");
    }
}

#[test]
#[should_panic(expected = "second ring after its first frame")]
fn a_choice_is_not_added_to_what_was_foreseen() {
    let case = case(0);
    let (mut fabric, routes) = fabric(&case.rings, case.rate, case.delay, false);
    let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32);
    fabric.send(&mut schedule, 0, &Segment::default(), routes[1], 0);
    while let Some((now, what)) = schedule.pop() {
        fabric.arrive(&mut schedule, now, port_of(what));
    }
    let _ = fabric.add_route([0, PORT].into_iter(), Some(8));
}
