//! Ports that can be stopped, by themselves.

use fanin_scenario::Switch;
use fanin_units::{Bytes, Rate};
use proptest::prelude::*;

use super::super::{Hop, Step};
use super::*;
use fanin_network::SwitchKind;
use fanin_tcp::Segment;

/// Switches in a ring, a host at each, that all send to the host `ahead` switches further on.
fn ring(switches: u32, ahead: u32, mode: PauseMode, xoff: u64) -> (Fabric, Vec<Step>, Network) {
    let mut settings = Switch { buffer: Bytes::new(200_000), ..Switch::default() };
    settings.pause.mode = mode;
    (settings.pause.xoff, settings.pause.xon) = (Bytes::new(xoff), Bytes::new(xoff / 2));
    let kinds = vec![SwitchKind { settings, has_uplinks: false, section: "tor" }];
    let mut network = Network { switches: kinds, ..Network::default() };
    let (rate, delay) = (Rate::new(1_000_000_000), Duration::from_micros(1));
    let nodes: Vec<_> = (0..switches).map(|place| network.add_switch(format!("switch:{place}"), 0)).collect();
    let hosts: Vec<_> = (0..switches).map(|place| network.add_host(format!("host:{place}"))).collect();
    for place in 0..switches as usize {
        network.join(nodes[place], nodes[(place + 1) % switches as usize], rate, delay);
        network.join(hosts[place], nodes[place], rate, delay);
    }
    let mut fabric = Fabric::new(&network, 1, true).unwrap();
    let at = |place: u32| place % switches;
    let routes = (0..switches).map(|place| {
        // Link 2 k joins switches, link 2 k + 1 a host to its switch.
        let into = [4 * place + 2];
        let along = (0..ahead).map(|step| 4 * at(place + step));
        fabric.add_route(into.into_iter().chain(along).chain([4 * at(place + ahead) + 3]), None).unwrap()
    });
    let routes: Vec<Step> = routes.collect();
    (fabric, routes, network)
}

/// What came of an occurrence.
enum Turn {
    Hop(Hop),
    Deadlock,
    Other,
}

/// Lets the fabric handle an occurrence; what has left it is removed.
fn happen(fabric: &mut Fabric, schedule: &mut Schedule, now: u64, what: Occurrence) -> Turn {
    match what {
        Occurrence::Arrival(index) => {
            let hop = fabric.arrive(schedule, now, index);
            if let Hop::Delivered { segment, .. } | Hop::Dropped { segment } = hop {
                fabric.remove(segment);
            }
            return Turn::Hop(hop);
        }
        Occurrence::Booking(index) => fabric.handle_booking(schedule, now, index),
        Occurrence::SwitchLevels(switch) => fabric.handle_levels(schedule, now, switch),
        Occurrence::PauseSignal(index) => fabric.handle_signal(schedule, now, index),
        _ if fabric.handle_deadlock_check(schedule, now) => return Turn::Deadlock,
        _ => {}
    }
    Turn::Other
}

/// Sends `frames` from each host at once; returns what was delivered and dropped, and whether it came to a deadlock.
fn play(fabric: &mut Fabric, routes: &[Step], frames: u32) -> (u32, u32, bool) {
    let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32);
    let segment = Segment { payload: 1460, flags: Flags::ACK, ..Segment::default() };
    for _ in 0..frames {
        for &route in routes {
            fabric.send(&mut schedule, 0, &segment, route, 0);
        }
    }
    let (mut delivered, mut dropped) = (0, 0);
    while let Some((now, what)) = schedule.pop() {
        match happen(fabric, &mut schedule, now, what) {
            Turn::Hop(Hop::Delivered { .. }) => delivered += 1,
            Turn::Hop(Hop::Dropped { .. }) => dropped += 1,
            Turn::Hop(Hop::Forwarded) | Turn::Other => {}
            Turn::Deadlock => {
                fabric.assert_conserved(0);
                return (delivered, dropped, true);
            }
        }
    }
    fabric.assert_conserved(0);
    (delivered, dropped, false)
}

#[test]
fn a_ring_of_stopped_ports_is_found_and_named() {
    for mode in [PauseMode::Pause, PauseMode::Priority] {
        let (mut fabric, routes, network) = ring(5, 3, mode, 30_000);
        let (delivered, dropped, deadlock) = play(&mut fabric, &routes, 400);
        assert!(deadlock && dropped == 0 && delivered < 5 * 400, "{delivered} {dropped}");
        let cycle = fabric.held.as_ref().unwrap().deadlock.clone();
        assert_eq!(cycle.len(), 5, "each switch waits for the next");
        for (place, &port) in cycle.iter().enumerate() {
            let next = cycle[(place + 1) % 5];
            assert_eq!(network.destination(port), network.source(next), "{}", network.port_name(port));
        }
    }
}

#[test]
fn without_a_circle_all_arrives() {
    // To the next switch only: no port waits for another of the ring.
    for (ahead, mode, xoff) in
        [(1, PauseMode::Pause, 30_000), (1, PauseMode::Priority, 4_000), (0, PauseMode::Pause, 4_000)]
    {
        let (mut fabric, routes, _) = ring(5, ahead, mode, xoff);
        assert_eq!(play(&mut fabric, &routes, 400), (5 * 400, 0, false));
    }
}

#[test]
fn a_stop_takes_effect_after_the_signal_has_passed() {
    // Five hosts of one switch each send to the same host, so that their switch has to stop them.
    let settings = |xoff: u64, buffer: u64| {
        let mut settings = Switch { buffer: Bytes::new(buffer), ..Switch::default() };
        settings.pause.mode = PauseMode::Pause;
        (settings.pause.xoff, settings.pause.xon) = (Bytes::new(xoff), Bytes::new(xoff - 2_000));
        settings
    };
    let (rate, delay) = (Rate::new(1_000_000_000), Duration::from_micros(25));
    let reaction = Switch::default().pause.reaction;
    let headroom = fanin_queueing::pause_headroom(rate, delay, reaction, Bytes::new(1538)).get();
    for (xoff, spare) in [(10_000, headroom), (40_000, headroom), (10_000, headroom / 8)] {
        let kinds = vec![SwitchKind {
            settings: settings(xoff, 5 * (xoff + spare)),
            has_uplinks: false,
            section: "tor",
        }];
        let mut network = Network { switches: kinds, ..Network::default() };
        let switch = network.add_switch("switch:0".into(), 0);
        for place in 0..6 {
            let host = network.add_host(format!("host:{place}"));
            network.join(host, switch, rate, delay);
        }
        let mut fabric = Fabric::new(&network, 1, true).unwrap();
        let routes: Vec<Step> =
            (0..5).map(|host| fabric.add_route([2 * host, 11].into_iter(), None).unwrap()).collect();
        let (delivered, dropped, deadlock) = play(&mut fabric, &routes, 500);
        assert!(!deadlock);
        assert_eq!(delivered + dropped, 2_500);
        assert_eq!(dropped == 0, spare == headroom, "{xoff} {spare} {dropped}");
        let figures = fabric.held.as_ref().unwrap().figures(1);
        assert!(figures.input_bytes_max <= xoff + headroom && figures.input_bytes_max > xoff);
        assert_eq!((figures.hosts_stopped, figures.switch_ports_stopped), (5, 0));
        assert_eq!(figures.pauses, figures.resumes);
    }
}

/// When a host sends, in microseconds; which; how many frames of how much payload; whether they are bulk data.
type Send = (u16, u8, u8, u16, bool);

/// What came of the sends: each delivery with its time, all figures, and the marks of the first switch.
fn outcome(lines: [u32; 3], sends: &[Send], mode: PauseMode, counts: bool, ahead: u32) -> String {
    let (mut fabric, routes, _) = ring(4, ahead, mode, 8_000);
    let held = fabric.held.as_mut().unwrap();
    [held.line_max, held.line_low, held.line_free] = lines;
    held.foresees_levels = lines[0] > 1;
    held.set_bulk_connections(1);
    fabric.ports.iter_mut().for_each(|port| port.counts_in_service = counts);
    let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32);
    for (number, send) in (0..).zip(sends) {
        // What two hosts do never meets in one instant: whose turn is first would depend on when each was scheduled.
        let at = Duration::from_micros(send.0.into()).get() + u64::from(send.1 % 4) * 1_009;
        schedule.insert(at, Occurrence::HostTimer(number));
    }
    let mut log = Vec::new();
    while let Some((now, what)) = schedule.pop() {
        assert!(
            now < Duration::from_millis(500).get(),
            "nothing moves: {:?}",
            fabric.held.as_ref().unwrap().figures(now)
        );
        match what {
            Occurrence::HostTimer(number) => {
                let (_, host, frames, payload, is_bulk) = sends[number as usize];
                let segment = Segment { payload, flags: Flags::ACK, ..Segment::default() };
                let route = routes[usize::from(host) % routes.len()];
                for _ in 0..frames {
                    fabric.send(&mut schedule, now, &segment, route, u32::from(!is_bulk));
                }
            }
            _ => match happen(&mut fabric, &mut schedule, now, what) {
                Turn::Hop(Hop::Delivered { wire_bytes, end, .. }) => {
                    let Occurrence::Arrival(port) = what else { panic!("not an arrival") };
                    log.push((now, port, wire_bytes, end));
                }
                Turn::Hop(Hop::Dropped { .. }) => log.push((now, NIL, 0, 0)),
                Turn::Hop(Hop::Forwarded) | Turn::Other => {}
                Turn::Deadlock => break,
            },
        }
    }
    fabric.assert_conserved(0);
    let held = fabric.held.as_ref().unwrap();
    let marks: Vec<_> = fabric.ports.iter().map(|port| (port.held_max, port.drops)).collect();
    format!("{:?} {:?} {marks:?} {log:?}", held.deadlock, held.figures(1 << 50))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    /// How many departures are foreseen changes nothing: with a line of one frame, each is decided when it is due, and a switch
    /// that has stopped somebody looks at each release. Nor does foresight of the instant at which they may go on.
    #[test]
    fn foresight_changes_nothing(
        // In steps of 6 us, half a full frame, so that many things happen at one instant.
        sends in prop::collection::vec(
            ((0_u16..200).prop_map(|step| step * 6), any::<u8>(), 1_u8..30, prop::sample::select(vec![0_u16, 724, 1462]), any::<bool>()),
            1..40,
        ),
        priority: bool, counts: bool, ahead in 1_u32..3,
    ) {
        let mode = if priority { PauseMode::Priority } else { PauseMode::Pause };
        let shortest = outcome([1, 0, 1], &sends, mode, counts, ahead);
        prop_assert_eq!(&outcome([LINE_MAX, LINE_MAX / 4, u32::MAX], &sends, mode, counts, ahead), &shortest);
        prop_assert_eq!(&outcome([5, 2, 7], &sends, mode, counts, ahead), &shortest);
    }
}

/// Frames of a stopped port's other priority may fill its line when it may go on: what waits for its bulk data has to be looked
/// after all the same, or a neighbour that was stopped because of them would never go on.
#[test]
fn bulk_that_goes_on_behind_urgent_frames_lets_the_neighbour_go_on() {
    const FULL: u16 = 1462;
    let bulk = |at, host| (at, host, 10, FULL, true);
    let sends: [Send; 7] = [
        bulk(0, 0),
        bulk(0, 0),
        bulk(0, 1),
        bulk(0, 2),
        (0, 3, 12, FULL, false),
        // On their way when the ports go on that were stopped.
        (168, 1, 39, 724, false),
        (192, 2, 39, FULL, false),
    ];
    for counts in [false, true] {
        let foreseen = [LINE_MAX, LINE_MAX / 4, u32::MAX];
        let foreseen = outcome(foreseen, &sends, PauseMode::Priority, counts, 2);
        assert_eq!(foreseen, outcome([1, 0, 1], &sends, PauseMode::Priority, counts, 2), "{counts}");
        assert!(foreseen.starts_with("[] "), "no deadlock");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// So it is whatever streams of urgent frames pass bulk data that are stopped and go on.
    #[test]
    fn foresight_changes_nothing_where_urgent_frames_pass(
        bulk in prop::collection::vec(((0_u16..60).prop_map(|step| step * 6), any::<u8>(), 10_u8..60), 4..20),
        urgent in prop::collection::vec(
            ((0_u16..200).prop_map(|step| step * 6), any::<u8>(), 1_u8..60, prop::sample::select(vec![0_u16, 724, 1462])),
            1..30,
        ),
        counts: bool, ahead in 1_u32..3,
    ) {
        let bulk = bulk.into_iter().map(|(at, host, frames)| (at, host, frames, 1462, true));
        let urgent = urgent.into_iter().map(|(at, host, frames, payload)| (at, host, frames, payload, false));
        let sends: Vec<Send> = bulk.chain(urgent).collect();
        let mode = PauseMode::Priority;
        let shortest = outcome([1, 0, 1], &sends, mode, counts, ahead);
        let foreseen = [LINE_MAX, LINE_MAX / 4, u32::MAX];
        prop_assert_eq!(&outcome(foreseen, &sends, mode, counts, ahead), &shortest);
    }
}
