//! An output with rings, by itself.

use fanin_scenario::RingService;
use fanin_units::{Bytes, Rate};
use proptest::prelude::*;

use super::*;
use crate::index::NIL;
use crate::ties::Ties;

#[path = "../../../queueing/tests/common/served_first.rs"]
mod served_first;

const WIRE: u32 = 1538;

fn output(settings: &Daqrings) -> RingOutput {
    RingOutput::new(settings, 20).unwrap()
}

fn frame() -> Parcel {
    to(0)
}

fn to(end: u32) -> Parcel {
    Parcel::new(NIL, end, WIRE, 0)
}

#[test]
fn a_ring_holds_its_frames_and_no_more() {
    let mut port = output(&Daqrings { frames: 9000, ..Daqrings::default() });
    let ring = port.ring(Some(7)).unwrap();
    assert_eq!((ring, port.ring(Some(7)).unwrap(), port.ring(None).unwrap()), (1, 1, PLAIN));
    let other = port.ring(Some(8)).unwrap();
    let taken = (0..9790).filter(|_| port.arrive(0, ring, frame())).count();
    assert_eq!((taken, port.frames(), port.bytes()), (9000, 9000, 9000 * 1518));
    // A full ring refuses only its own frames.
    assert!(port.arrive(0, other, frame()) && port.arrive(0, PLAIN, frame()));
    let mut figures = RingFigures::default();
    port.add_to(&mut figures);
    assert_eq!((figures.rings, figures.frames_max, figures.drops), (2, 9000, 790));
    assert_eq!((figures.memory_bytes, port.drops()), (2 * 9000 * 2048, 790));
}

/// LCN'15, buffering: 9790 frames leave a ring of 0.78 Gb/s in 154 ms, to 1 %.
#[test]
fn a_ring_is_emptied_at_its_rate() {
    for service in [RingService::RoundRobin, RingService::LongestFirst] {
        let rate = Rate::new(780_000_000);
        let mut port = output(&Daqrings { frames: 14_000, rate, service, ..Daqrings::default() });
        let ring = port.ring(Some(0)).unwrap();
        port.ring(Some(1)).unwrap();
        for _ in 0..9790 {
            assert!(port.arrive(0, ring, frame()));
        }
        let (mut now, mut sent) = (0, 0);
        loop {
            match port.depart(Instant::new(now)) {
                Ok(_) => sent += 1,
                Err(NEVER) => break,
                Err(at) => now = at,
            }
        }
        let ms = now as f64 / 1e9;
        assert!(sent == 9790 && (ms / 154.4 - 1.0).abs() < 0.01, "{sent} frames in {ms} ms");
    }
}

#[test]
fn the_longest_ring_goes_first() {
    let mut port = output(&Daqrings { service: RingService::LongestFirst, ..Daqrings::default() });
    let rings = [port.ring(Some(0)).unwrap(), port.ring(Some(1)).unwrap()];
    for (place, count) in [(0, 2), (1, 5)] {
        for _ in 0..count {
            assert!(port.arrive(0, rings[place], to(place as u32)));
        }
    }
    let ends: Vec<u32> = (0..7).map(|_| port.depart(Instant::START).unwrap().end()).collect();
    assert_eq!(ends[..3], [1, 1, 1], "{ends:?}");
    assert_eq!(ends.iter().filter(|&&end| end == 0).count(), 2);
}

/// Plays arrivals at an output before a link of 1 Gb/s and 1 us, with the departures between them. Returns the arrival of
/// each frame at the far end.
fn play(settings: &Daqrings, arrivals: &[(u64, bool)]) -> Vec<(u64, u32)> {
    let mut port = output(settings);
    let ring = port.ring(Some(7)).unwrap();
    let mut link = LinkState::new(Rate::new(1_000_000_000), 1_000_000, 0);
    let mut schedule = Schedule::new(1 << 20, 1, Ties::default());
    for (number, &(at, _)) in (0..).zip(arrivals) {
        schedule.insert(at, Occurrence::HostTimer(number));
    }
    let mut arrived = Vec::new();
    while let Some((now, Some(occurrence))) = schedule.pop(NEVER) {
        match occurrence {
            Occurrence::HostTimer(number) => {
                let ring = if arrivals[number as usize].1 { ring } else { PLAIN };
                assert!(port.arrive(now, ring, to(number)));
                port.serve(&mut schedule, now, &mut link, 0);
            }
            Occurrence::Departure(_) => {
                if port.take_departure(now) {
                    port.serve(&mut schedule, now, &mut link, 0);
                }
            }
            _ => arrived.push((now, link.arrive(&mut schedule, 0).end())),
        }
        port.assert_conserved();
        link.assert_conserved(0);
    }
    assert_eq!(port.frames(), 0, "all frames have left");
    arrived
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn frames_that_no_rule_names_go_first_as_in_the_live_switch(
        steps in served_first::steps(),
        frames_max in 1..9usize,
        longest_first: bool,
    ) {
        let service = if longest_first { RingService::LongestFirst } else { RingService::RoundRobin };
        let mut port = output(&Daqrings { frames: frames_max as u32, service, ..Daqrings::default() });
        for end in 1..served_first::RINGS as u32 {
            port.ring(Some(end)).unwrap();
        }
        served_first::compare(longest_first, frames_max, &steps, |step, number| match step {
            Some(ring) => port.arrive(0, ring as u16, to(number)).then_some(number),
            None => port.depart(Instant::START).ok().map(|parcel| parcel.end()),
        });
    }
}

#[test]
fn frames_that_no_rule_names_go_first() {
    // Every third frame passes all frames of the ring except the one in service.
    let arrivals: Vec<(u64, bool)> = (0..900).map(|frame| (0, frame % 3 != 1)).collect();
    let ends: Vec<u32> = play(&Daqrings::default(), &arrivals).into_iter().map(|(_, end)| end).collect();
    let passes = |end: &u32| end % 3 == 1;
    let in_order = (1..900).filter(passes).chain((1..900).filter(|end| !passes(end)));
    assert_eq!(ends, [0].into_iter().chain(in_order).collect::<Vec<_>>());
}

#[test]
fn a_departure_at_the_instant_of_an_arrival_comes_first() {
    // The ring's second frame has its tokens when a frame without a rule arrives: after two of its times on the wire.
    let settings = Daqrings { rate: Rate::new(500_000_000), burst: Bytes::new(1538), ..Daqrings::default() };
    let arrivals = [(0, true), (0, true), (2 * 12_304_000, false)];
    assert_eq!(play(&settings, &arrivals), [(13_304_000, 0), (37_912_000, 1), (50_216_000, 2)]);
}

#[test]
fn impossible_rings_are_refused() {
    let settings = Daqrings { rate: Rate::new(100), burst: Bytes::new(3036), ..Daqrings::default() };
    let error = output(&settings).ring(Some(0)).unwrap_err().to_string();
    assert!(error.contains("100 b/s"), "{error}");
    let error = RingOutput::new(&Daqrings { frames: 0, ..settings }, 20).err().unwrap().to_string();
    assert!(error.contains("not 0"), "{error}");
}
