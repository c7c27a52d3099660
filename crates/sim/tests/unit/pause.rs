//! Outputs that PAUSE can stop.

use fanin_network::{Network, SwitchKind, SwitchRole};
use fanin_scenario::{Buffering, PauseMode, SwitchSettings};
use fanin_tcp::{Flags, Segment};
use fanin_units::{Bytes, Duration, Rate};
use proptest::prelude::*;

use super::*;
use crate::fabric::{ArrivalFate, Fabric, PathStep};
use crate::schedule::NEVER;
use crate::ties::Ties;

impl Fabric {
    /// Sends a segment on a path to an end.
    fn send(&mut self, schedule: &mut Schedule, now: u64, segment: &Segment, route: PathStep, end: u32) {
        let place = self.free_place();
        self.segments[place as usize] = *segment;
        let parcel = self.wrap(place, route, end);
        self.send_parcel(schedule, now, route.port, parcel);
    }
}

/// A ring of switches with a host each. Every host sends to the host `ahead` switches further on.
fn ring(switches: u32, ahead: u32, mode: PauseMode, xoff: u64) -> (Fabric, Vec<PathStep>, Network) {
    ring_of(switches, ahead, settings(mode, xoff))
}

fn settings(mode: PauseMode, xoff: u64) -> SwitchSettings {
    let mut settings = SwitchSettings { buffer: Bytes::new(200_000), ..SwitchSettings::default() };
    settings.pause.mode = mode;
    (settings.pause.xoff, settings.pause.xon) = (Bytes::new(xoff), Bytes::new(xoff / 2));
    settings
}

/// As [`ring`], with these settings of the switches.
fn ring_of(switches: u32, ahead: u32, settings: SwitchSettings) -> (Fabric, Vec<PathStep>, Network) {
    let kinds = vec![SwitchKind { settings, has_uplinks: false, role: SwitchRole::Tor }];
    let mut network = Network { switches: kinds, ..Network::default() };
    let (rate, delay) = (Rate::new(1_000_000_000), Duration::from_micros(1));
    let nodes: Vec<_> = (0..switches).map(|place| network.add_switch(format!("switch:{place}"), 0)).collect();
    let hosts: Vec<_> = (0..switches).map(|place| network.add_host(format!("host:{place}"))).collect();
    for place in 0..switches as usize {
        network.join(nodes[place], nodes[(place + 1) % switches as usize], rate, delay);
        network.join(hosts[place], nodes[place], rate, delay);
    }
    let mut fabric = Fabric::new(&network, 1).unwrap();
    let at = |place: u32| place % switches;
    let routes = (0..switches).map(|place| {
        // Link 2 k joins switches, link 2 k + 1 a host to its switch.
        let into = [4 * place + 2];
        let along = (0..ahead).map(|step| 4 * at(place + step));
        let path: Vec<_> = into.into_iter().chain(along).chain([4 * at(place + ahead) + 3]).collect();
        fabric.add_route(&path, |_| None).unwrap()
    });
    let routes: Vec<PathStep> = routes.collect();
    // Frames to its first end are bulk data, and those to its second end are urgent.
    fabric.pause().add_connection(true);
    (fabric, routes, network)
}

/// The result of an occurrence.
enum Turn {
    Arrival(ArrivalFate),
    Deadlock,
    Other,
}

/// Lets the fabric handle an occurrence; delivered and dropped frames are removed.
fn happen(fabric: &mut Fabric, schedule: &mut Schedule, now: u64, occurrence: Occurrence) -> Turn {
    match occurrence {
        Occurrence::Arrival(index) => {
            let fate = fabric.arrive(schedule, now, index);
            if let ArrivalFate::Delivered { segment, .. } | ArrivalFate::Dropped { segment, .. } = fate {
                fabric.remove(segment);
            }
            return Turn::Arrival(fate);
        }
        Occurrence::Departure(index) => fabric.depart(schedule, now, index),
        Occurrence::ResumeCheck(switch) => fabric.pause().check_resumes(schedule, now, switch),
        Occurrence::PauseSignal(index) => fabric.pause().handle_signal(schedule, now, index),
        Occurrence::DeadlockCheck if fabric.pause().check_deadlock(schedule, now) => return Turn::Deadlock,
        _ => {}
    }
    Turn::Other
}

/// Sends `frames` from each host at once; returns the delivered and the dropped frames, and true after a deadlock.
fn play(fabric: &mut Fabric, routes: &[PathStep], frames: u32) -> (u32, u32, bool) {
    let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32, Ties::default());
    let segment = Segment { payload: 1460, flags: Flags::ACK, ..Segment::default() };
    for _ in 0..frames {
        for &route in routes {
            fabric.send(&mut schedule, 0, &segment, route, 0);
        }
    }
    let (mut delivered, mut dropped) = (0, 0);
    let mut last = 0;
    while let Some((now, Some(occurrence))) = schedule.pop(NEVER) {
        last = now;
        match happen(fabric, &mut schedule, now, occurrence) {
            Turn::Arrival(ArrivalFate::Delivered { .. }) => delivered += 1,
            Turn::Arrival(ArrivalFate::Dropped { .. }) => dropped += 1,
            Turn::Arrival(ArrivalFate::Forwarded) | Turn::Other => {}
            Turn::Deadlock => {
                fabric.assert_conserved(&schedule, last, 0);
                return (delivered, dropped, true);
            }
        }
    }
    fabric.assert_conserved(&schedule, last, 0);
    (delivered, dropped, false)
}

#[test]
fn a_ring_of_stopped_ports_is_found_and_named() {
    for mode in [PauseMode::Pause, PauseMode::Priority] {
        let (mut fabric, routes, network) = ring(5, 3, mode, 30_000);
        let (delivered, dropped, deadlock) = play(&mut fabric, &routes, 400);
        assert!(deadlock && dropped == 0 && delivered < 5 * 400, "{delivered} {dropped}");
        let cycle = fabric.deadlock().to_vec();
        assert_eq!(cycle.len(), 5, "each switch waits for the next");
        for (place, &port) in cycle.iter().enumerate() {
            let next = cycle[(place + 1) % 5];
            assert_eq!(network.destination(port), network.source(next), "{}", network.port_name(port));
        }
    }
}

#[test]
fn without_a_circle_all_arrives() {
    // To the next switch only: no port of the ring waits for another.
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
        let mut settings = SwitchSettings { buffer: Bytes::new(buffer), ..SwitchSettings::default() };
        settings.pause.mode = PauseMode::Pause;
        (settings.pause.xoff, settings.pause.xon) = (Bytes::new(xoff), Bytes::new(xoff - 2_000));
        settings
    };
    let (rate, delay) = (Rate::new(1_000_000_000), Duration::from_micros(25));
    let reaction = SwitchSettings::default().pause.reaction;
    let headroom =
        fanin_queueing::pause_headroom(rate, delay, reaction, Bytes::new(1538), Bytes::new(84)).get();
    for (xoff, spare) in [(10_000, headroom), (40_000, headroom), (10_000, headroom / 8)] {
        let kinds = vec![SwitchKind {
            settings: settings(xoff, 5 * (xoff + spare)),
            has_uplinks: false,
            role: SwitchRole::Tor,
        }];
        let mut network = Network { switches: kinds, ..Network::default() };
        let switch = network.add_switch("switch:0".into(), 0);
        for place in 0..6 {
            let host = network.add_host(format!("host:{place}"));
            network.join(host, switch, rate, delay);
        }
        let mut fabric = Fabric::new(&network, 1).unwrap();
        let routes: Vec<PathStep> =
            (0..5).map(|host| fabric.add_route(&[2 * host, 11], |_| None).unwrap()).collect();
        let (delivered, dropped, deadlock) = play(&mut fabric, &routes, 500);
        assert!(!deadlock);
        assert_eq!(delivered + dropped, 2_500);
        assert_eq!(dropped == 0, spare == headroom, "{xoff} {spare} {dropped}");
        let figures = fabric.pause_figures(1).unwrap();
        assert!(figures.input_bytes_max <= xoff + headroom && figures.input_bytes_max > xoff);
        assert_eq!((figures.hosts_stopped, figures.switch_ports_stopped), (5, 0));
        assert_eq!(figures.pauses, figures.resumes);
    }
}

/// Time in steps of 6 us, sending host, number of frames, payload of each, and true for bulk data.
type Send = (u64, usize, u8, u16, bool);

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    /// Each frame is delivered or dropped, and every account is zero at the end. A RESUME follows each PAUSE, unless there is
    /// a deadlock.
    #[test]
    fn every_account_is_zero_when_all_has_left(
        sends in prop::collection::vec(
            (0_u64..200, 0_usize..4, 1_u8..40, prop::sample::select(vec![0_u16, 724, 1462]), any::<bool>()),
            1..40,
        ),
        priority: bool, counts: bool, pool: bool, ahead in 1_u32..3,
    ) {
        let mode = if priority { PauseMode::Priority } else { PauseMode::Pause };
        let buffering = if pool { Buffering::Shared } else { Buffering::Dedicated };
        let (mut fabric, routes, _) =
            ring_of(4, ahead, SwitchSettings { count_in_service: counts, buffering, ..settings(mode, 8_000) });
        let mut sends: Vec<Send> = sends;
        sends.sort_unstable_by_key(|send| send.0);
        let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32, Ties::default());
        for (number, send) in (0..).zip(&sends) {
            schedule.insert(Duration::from_micros(6 * send.0).get(), Occurrence::HostTimer(number));
        }
        let (mut left, mut last, mut deadlock) = (0_u32, 0, false);
        while let Some((now, Some(occurrence))) = schedule.pop(NEVER) {
            last = now;
            if let Occurrence::HostTimer(number) = occurrence {
                let (_, host, frames, payload, is_bulk) = sends[number as usize];
                let segment = Segment { payload, flags: Flags::ACK, ..Segment::default() };
                for _ in 0..frames {
                    fabric.send(&mut schedule, now, &segment, routes[host], u32::from(!is_bulk));
                }
                fabric.assert_conserved(&schedule, now, 0);
                continue;
            }
            match happen(&mut fabric, &mut schedule, now, occurrence) {
                Turn::Arrival(ArrivalFate::Delivered { .. } | ArrivalFate::Dropped { .. }) => left += 1,
                Turn::Arrival(ArrivalFate::Forwarded) | Turn::Other => {}
                Turn::Deadlock => {
                    deadlock = true;
                    break;
                }
            }
        }
        fabric.assert_conserved(&schedule, last, 0);
        if !deadlock {
            prop_assert_eq!(left, sends.iter().map(|send| u32::from(send.2)).sum::<u32>());
            let figures = fabric.pause_figures(last).unwrap();
            prop_assert_eq!(figures.pauses, figures.resumes);
            prop_assert_eq!(fabric.payload_in_flight(&schedule), 0);
            prop_assert!(fabric.buffers().all(|buffer| buffer.occupancy().bytes == 0));
        }
    }
}
