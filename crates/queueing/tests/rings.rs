//! Compares a port with a naive reference that inspects every ring at each step.

use std::collections::VecDeque;

use fanin_queueing::{
    AdmissionLimit, Aqm, Departure, Depth, EcnCodepoint, Frame, NextDeparture, NotCapable, RingService,
    RingSettings, Rings, Threshold, TokenBucket, Verdict,
};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate};
use proptest::prelude::*;

/// One ring of the naive port.
struct NaiveRing {
    queue: VecDeque<(Frame, u32)>,
    bucket: Option<TokenBucket>,
    settings: RingSettings,
    paused: bool,
    /// For every other ring: how often it was served since this one was, while this one could have been. A ring that is
    /// paused, re-rated or emptied joins the round anew.
    passed_over: Vec<u32>,
}

impl NaiveRing {
    fn bytes(&self) -> u64 {
        self.queue.iter().map(|(frame, _)| u64::from(frame.bytes)).sum()
    }

    /// Time at which the first frame may depart; `None` if none can.
    fn ready_at(&self) -> Option<Instant> {
        let &(frame, _) = self.queue.front().filter(|_| !self.paused)?;
        Some(self.bucket.map_or(Instant::START, |bucket| bucket.ready_at(frame.bytes)))
    }
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Arrive { ring: usize, bytes: u32, ecn: bool },
    Poll(usize),
    Pass { ring: usize, bytes: u32 },
    Pause { ring: usize, paused: bool },
    Shape { ring: usize, shaping: Option<(u64, u64)> },
    Resize { ring: usize, frames: u32 },
    Take(usize),
}

fn shaping() -> impl Strategy<Value = Option<(u64, u64)>> {
    let rate = prop_oneof![Just(10_000_000u64), Just(780_000_000), 1_000_000u64..20_000_000_000];
    let burst = prop_oneof![Just(0u64), Just(1_500), 0u64..40_000];
    proptest::option::weighted(0.8, (rate, burst))
}

fn quantities(shaping: Option<(u64, u64)>) -> Option<(Rate, Bytes)> {
    shaping.map(|(rate, burst)| (Rate::new(rate), Bytes::new(burst)))
}

fn steps(rings: usize) -> impl Strategy<Value = Vec<Step>> {
    let ring = 0..rings;
    let gap = prop_oneof![5 => 0u64..2_000_000, 2 => 0u64..200_000_000, 1 => 0u64..50_000_000_000];
    let step = prop_oneof![
        10 => gap.prop_map(Step::Wait),
        20 => (ring.clone(), 64u32..9018, any::<bool>()).prop_map(|(ring, bytes, ecn)| Step::Arrive { ring, bytes, ecn }),
        15 => (1usize..6).prop_map(Step::Poll),
        8 => (ring.clone(), 64u32..9018).prop_map(|(ring, bytes)| Step::Pass { ring, bytes }),
        2 => (ring.clone(), any::<bool>()).prop_map(|(ring, paused)| Step::Pause { ring, paused }),
        1 => (ring.clone(), shaping()).prop_map(|(ring, shaping)| Step::Shape { ring, shaping }),
        1 => (ring.clone(), 1u32..20).prop_map(|(ring, frames)| Step::Resize { ring, frames }),
        1 => ring.prop_map(Step::Take),
    ];
    proptest::collection::vec(step, 1..500)
}

fn settings() -> impl Strategy<Value = RingSettings> {
    let aqm = prop_oneof![
        4 => Just(Aqm::None),
        1 => (1u64..6).prop_map(|k| Aqm::Threshold(Threshold {
            depth: Depth::Packets(Packets::new(k)),
            not_capable: NotCapable::Drop,
        })),
    ];
    let bytes_max = prop_oneof![Just(u64::MAX), 9_018u64..60_000];
    (1u32..20, bytes_max, shaping(), 0u8..4, aqm).prop_map(
        |(frames_max, bytes_max, shaping, priority, aqm)| RingSettings {
            bytes_max: Bytes::new(bytes_max),
            shaping: quantities(shaping),
            priority,
            aqm,
            ..RingSettings::new(frames_max)
        },
    )
}

fn services() -> impl Strategy<Value = RingService> {
    prop_oneof![
        Just(RingService::RoundRobin),
        Just(RingService::LongestFirst),
        Just(RingService::StrictPriority)
    ]
}

fn rings_and_steps() -> impl Strategy<Value = (Vec<RingSettings>, Vec<Step>)> {
    prop_oneof![3 => 1usize..6, 1 => 60usize..140]
        .prop_flat_map(|rings| (proptest::collection::vec(settings(), rings), steps(rings)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn does_what_a_naive_port_does(
        (settings, steps) in rings_and_steps(),
        service in services(),
        first in proptest::option::weighted(0.4, any::<prop::sample::Index>()),
        port_shaping in proptest::option::weighted(0.3, (100_000_000u64..20_000_000_000, 0u64..20_000)),
    ) {
        let mut port = Rings::<u32>::new(service, quantities(port_shaping)).unwrap();
        let mut open_at = quantities(port_shaping).map(|(rate, burst)| TokenBucket::new(rate, burst).unwrap());
        let rings = settings.len();
        let mut naive: Vec<NaiveRing> = settings
            .iter()
            .map(|settings| {
                port.add_ring(settings).unwrap();
                NaiveRing {
                    queue: VecDeque::new(),
                    bucket: settings.shaping.map(|(rate, burst)| TokenBucket::new(rate, burst).unwrap()),
                    settings: settings.clone(),
                    paused: false,
                    passed_over: vec![0; rings],
                }
            })
            .collect();
        let first = first.map(|first| first.index(rings));
        if let Some(first) = first {
            port.serve_first(first);
        }
        let mut now = Instant::START;
        let mut handle = 0;
        let mut offered = vec![0u64; rings];
        for step in steps {
            match step {
                Step::Wait(gap) => now = now + Duration::new(gap),
                Step::Arrive { ring, bytes, ecn } => {
                    let frame = Frame { bytes, ecn: if ecn { EcnCodepoint::Capable } else { EcnCodepoint::NotCapable } };
                    handle += 1;
                    offered[ring] += 1;
                    let reference = &mut naive[ring];
                    let over = match &reference.settings.aqm {
                        Aqm::Threshold(Threshold { depth: Depth::Packets(k), .. }) => {
                            reference.queue.len() as u64 > k.get()
                        }
                        _ => false,
                    };
                    let full = reference.queue.len() as u32 >= reference.settings.frames_max
                        || reference.bytes() + u64::from(bytes) > reference.settings.bytes_max.get();
                    let expected = match (over, ecn, full) {
                        (true, false, _) => Verdict::Dropped(AdmissionLimit::Early),
                        (_, _, true) => Verdict::Dropped(AdmissionLimit::Ring),
                        _ => Verdict::Accepted { marked: over },
                    };
                    if let Verdict::Accepted { marked } = expected {
                        let ecn = if marked { EcnCodepoint::Congestion } else { frame.ecn };
                        reference.queue.push_back((Frame { ecn, ..frame }, handle));
                    }
                    prop_assert_eq!(port.arrive(now, ring, frame, handle, || unreachable!()), expected);
                }
                Step::Poll(times) => {
                    for _ in 0..times {
                        let departure = port.depart(now);
                        check(&mut naive, &mut open_at, (service, first), now, departure)?;
                    }
                }
                Step::Pass { ring, bytes } => {
                    let is_clear = open_at.is_none()
                        && naive.iter().filter_map(NaiveRing::ready_at).all(|ready_at| ready_at > now);
                    prop_assert_eq!(port.is_clear(now), is_clear);
                    let reference = &mut naive[ring];
                    let has_tokens = reference.bucket.is_none_or(|bucket| bucket.ready_at(bytes) <= now);
                    let is_idle = reference.queue.is_empty()
                        && !reference.paused
                        && matches!(reference.settings.aqm, Aqm::None);
                    let passes =
                        is_idle && has_tokens && u64::from(bytes) <= reference.settings.bytes_max.get();
                    prop_assert!(port.may_cut_through(now, ring) || !passes);
                    let any_number = is_idle && reference.bucket.is_none();
                    prop_assert_eq!(port.cut_through_max(ring) >= bytes, passes && any_number);
                    if is_clear {
                        let before = port.occupancy(ring);
                        prop_assert_eq!(port.cut_through(now, ring, bytes), passes);
                        prop_assert_eq!(port.occupancy(ring), before, "what passes is not held");
                        if let (true, Some(bucket)) = (passes, &mut reference.bucket) {
                            bucket.take(now, bytes);
                        }
                        offered[ring] += u64::from(passes);
                    }
                }
                Step::Pause { ring, paused } => {
                    if paused != port.is_paused(ring) {
                        if paused { port.pause(ring) } else { port.resume(now, ring) }
                    }
                    naive[ring].paused = paused;
                    naive[ring].passed_over.fill(0);
                }
                Step::Shape { ring, shaping } => {
                    let shaping = quantities(shaping);
                    port.set_shaping(now, ring, shaping).unwrap();
                    let bucket = &mut naive[ring].bucket;
                    *bucket = match (*bucket, shaping) {
                        (Some(mut bucket), Some((rate, burst))) => {
                            bucket.set(now, rate, burst).unwrap();
                            Some(bucket)
                        }
                        (None, Some((rate, burst))) => Some(TokenBucket::new(rate, burst).unwrap()),
                        (_, None) => None,
                    };
                    naive[ring].passed_over.fill(0);
                }
                Step::Resize { ring, frames } => {
                    let bytes_max = naive[ring].settings.bytes_max;
                    port.set_capacity(ring, frames, bytes_max).unwrap();
                    naive[ring].settings.frames_max = frames;
                }
                Step::Take(ring) => {
                    prop_assert_eq!(port.depart_at_once(now, ring), naive[ring].queue.pop_front());
                    naive[ring].passed_over.fill(0);
                }
            }
        }
        port.assert_conserved();
        for (ring, reference) in naive.iter().enumerate() {
            let (held, counters) = (port.occupancy(ring), port.counters(ring));
            prop_assert_eq!((held.frames, held.bytes), (reference.queue.len() as u64, reference.bytes()));
            prop_assert_eq!(offered[ring], counters.enqueued.frames + counters.dropped_total().frames);
            prop_assert_eq!(counters.enqueued.frames, counters.departed.frames + held.frames);
            prop_assert!(held.frames_max >= held.frames && held.bytes_max >= held.bytes);
        }
        prop_assert_eq!(port.frames(), naive.iter().map(|ring| ring.queue.len() as u64).sum::<u64>());
        // All frames depart in the end, at the times that the port itself gives.
        (0..rings).for_each(|ring| {
            if naive[ring].paused {
                port.resume(now, ring);
            }
            naive[ring].paused = false;
        });
        loop {
            let departure = port.depart(now);
            check(&mut naive, &mut open_at, (service, first), now, departure)?;
            match departure {
                Departure::Frame { .. } => {}
                Departure::NotBefore(at) => now = at,
                Departure::Empty => break,
            }
        }
        prop_assert_eq!(port.frames(), 0);
        port.assert_conserved();
    }
}

type Shaper = Option<TokenBucket>;

/// Returns true if the naive port permits a departure, and carries it out there, too.
fn check(
    naive: &mut [NaiveRing],
    shaper: &mut Shaper,
    (service, first): (RingService, Option<usize>),
    now: Instant,
    departure: Departure<u32>,
) -> Result<(), TestCaseError> {
    // A frame of zero length needs no tokens: it may depart once the debt beyond the burst is gone.
    let open_at = shaper.map_or(Instant::START, |bucket| bucket.ready_at(0));
    let ready: Vec<bool> = naive.iter().map(|ring| ring.ready_at().is_some_and(|at| at <= now)).collect();
    let earliest = naive.iter().filter_map(NaiveRing::ready_at).min();
    match departure {
        Departure::Empty => prop_assert_eq!(earliest, None),
        Departure::NotBefore(at) => {
            let earliest = earliest.expect("something is queued");
            prop_assert!(at > now);
            prop_assert_eq!(at, earliest.max(open_at));
        }
        Departure::Frame { ring, frame, handle } => {
            prop_assert!(open_at <= now);
            prop_assert!(ready[ring], "ring {ring} may not send yet");
            let key = |index: usize| {
                let ring = &naive[index];
                let key = match service {
                    RingService::RoundRobin => 0,
                    RingService::LongestFirst => ring.queue.len(),
                    RingService::StrictPriority => ring.settings.priority.into(),
                };
                (first == Some(index), key)
            };
            let highest = (0..naive.len()).filter(|&other| ready[other]).map(key).max();
            prop_assert_eq!(Some(key(ring)), highest);
            for (other, reference) in naive.iter_mut().enumerate() {
                // Round-robin: no ring but the first is served twice while another of the same rank waits.
                if other != ring && first != Some(ring) && ready[other] && service == RingService::RoundRobin
                {
                    reference.passed_over[ring] += 1;
                    prop_assert!(reference.passed_over[ring] <= 1, "ring {ring} twice before ring {other}");
                }
            }
            let reference = &mut naive[ring];
            prop_assert_eq!(reference.queue.pop_front(), Some((frame, handle)));
            if let Some(bucket) = &mut reference.bucket {
                bucket.take(now, frame.bytes);
            }
            reference.passed_over.fill(0);
            if let Some(bucket) = shaper {
                bucket.take(now, frame.bytes);
            }
        }
    }
    // A ring that cannot send at this moment joins the round anew when it can.
    for ring in naive.iter_mut().filter(|ring| ring.ready_at().is_none_or(|at| at > now)) {
        ring.passed_over.fill(0);
    }
    Ok(())
}

#[test]
fn a_full_or_paused_ring_delays_no_other() {
    let mut port = Rings::<u32>::new(RingService::RoundRobin, None).unwrap();
    for _ in 0..3 {
        port.add_ring(&RingSettings::new(2)).unwrap();
    }
    let now = Instant::START;
    for handle in 0..10 {
        port.arrive(now, 0, Frame::new(1_500), handle, || 0);
        port.arrive(now, 1, Frame::new(1_500), 100 + handle, || 0);
    }
    assert_eq!(port.counters(0).dropped_by(AdmissionLimit::Ring).frames, 8);
    port.pause(0);
    assert!(port.arrive(now, 2, Frame::new(64), 7, || 0).is_accepted());
    let mut sent = Vec::new();
    assert_eq!(port.depart_many(now, 10, |ring, _, handle| sent.push((ring, handle))), NextDeparture::Never);
    assert_eq!(sent, [(1, 100), (2, 7), (1, 101)]);
    assert_eq!(port.depart(now), Departure::Empty);
    port.resume(now, 0);
    assert!(matches!(port.depart(now), Departure::Frame { ring: 0, handle: 0, .. }));
}

#[test]
fn a_shaped_port_is_a_link() {
    let gigabit = (Rate::new(1_000_000_000), Bytes::ZERO);
    let mut port = Rings::<u32>::new(RingService::RoundRobin, Some(gigabit)).unwrap();
    port.add_ring(&RingSettings::new(1_000)).unwrap();
    for handle in 0..1_200 {
        port.arrive(Instant::START, 0, Frame::new(1_250), handle, || 0);
    }
    assert_eq!(port.counters(0).dropped_by(AdmissionLimit::Ring).frames, 200);
    let (mut now, mut sent) = (Instant::START, 0);
    loop {
        match port.depart(now) {
            Departure::Frame { handle, .. } => {
                assert_eq!(
                    (handle, now),
                    (sent, Instant::START + Duration::from_micros(10) * u64::from(sent))
                );
                sent += 1;
            }
            Departure::NotBefore(at) => now = at,
            Departure::Empty => break,
        }
    }
    assert_eq!(sent, 1_000);
}

#[test]
fn rings_keep_their_rates_side_by_side() {
    // LCN'15: 144 rings of 0.78 Gb/s on 12 x 10 Gb/s, 12 a port. Ring 0 has a far lower rate, 10 Mb/s.
    let mut port = Rings::<u32>::new(RingService::RoundRobin, None).unwrap();
    let rates = |ring: usize| if ring == 0 { 10_000_000 } else { 780_000_000 };
    for ring in 0..12 {
        let shaping = Some((Rate::new(rates(ring)), Bytes::new(3_000)));
        port.add_ring(&RingSettings { shaping, ..RingSettings::new(64) }).unwrap();
    }
    let end = Instant::START + Duration::from_millis(500);
    let mut sent = [0u64; 12];
    let mut now = Instant::START;
    for ring in 0..12 {
        port.arrive(now, ring, Frame::new(1_538), 0, || 0);
        port.arrive(now, ring, Frame::new(1_538), 0, || 0);
    }
    while now < end {
        match port.depart(now) {
            Departure::Frame { ring, frame, .. } => {
                sent[ring] += u64::from(frame.bytes);
                assert!(port.arrive(now, ring, Frame::new(1_538), 0, || 0).is_accepted());
            }
            Departure::NotBefore(at) => now = at,
            Departure::Empty => unreachable!("every ring is refilled"),
        }
    }
    for (ring, &sent) in sent.iter().enumerate() {
        let ideal = Rate::new(rates(ring)).bytes_in(Duration::from_millis(500)).get();
        assert!(sent.abs_diff(ideal) * 100 <= ideal, "ring {ring}: {sent} of {ideal}");
    }
}

#[test]
fn a_caller_who_comes_late_keeps_the_rates() {
    let rate = Rate::new(100_000_000);
    for shapes_the_port in [false, true] {
        let shaping = Some((rate, Bytes::ZERO));
        let port = Rings::new(RingService::RoundRobin, shaping.filter(|_| shapes_the_port)).unwrap();
        let mut port: Rings<u32> = port.with_overhead(24).with_lateness(Duration::from_millis(5));
        let mut settings = RingSettings::new(1_000);
        settings.shaping = shaping.filter(|_| !shapes_the_port);
        port.add_ring(&settings).unwrap();
        let at = |micros| Instant::START + Duration::from_micros(micros);
        (0..1_000).for_each(|n| {
            port.arrive(at(0), 0, Frame::new(1_226), n, || 0);
        });
        // A frame takes 100 us. A port polled every 3.33 ms sends as much as one polled continuously.
        let sent = |port: &mut Rings<u32>, now| {
            let mut sent = 0;
            port.depart_many(now, 10_000, |_, _, _| sent += 1);
            sent
        };
        assert_eq!((0..10).map(|n| sent(&mut port, at(3_330 * n))).sum::<u32>(), 300);
        // More than 5 ms are not compensated, nor is the time for which the link was held.
        assert_eq!(sent(&mut port, at(129_970)), 51);
        port.note_paused_until(at(133_000));
        assert_eq!(sent(&mut port, at(133_000)), 1);
        // An empty ring does not save up time, either.
        while port.frames() > 0 {
            port.depart_at_once(at(133_000), 0);
        }
        (0..10).for_each(|n| {
            port.arrive(at(140_000), 0, Frame::new(1_226), n, || 0);
        });
        assert_eq!(sent(&mut port, at(140_150)), 2);
    }
}
