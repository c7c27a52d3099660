//! Laws that hold for every technique with any settings. Nothing is faster than the wire, no queue is above its limit, all
//! requested data arrive, and the same seed gives the same run. Every run itself asserts that no byte is lost or invented. A
//! lossless technique loses nothing in a buffer of exactly the size that it needs, with any other settings.

use fanin_queueing::pause_headroom;
use fanin_scenario::{Scenario, load_text};
use fanin_sim::{RunControl, RunEnd, RunOutcome, run};
use fanin_units::{Bytes, Duration, Rate};
use proptest::prelude::*;
use proptest::sample::select;

/// Settings that choose a technique for the classical incast.
const INCAST: [&[&str]; 20] = [
    &[],
    &["transport.congestion_control=static"],
    &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold"],
    &["transport.ecn=true", "tor.ecn.mode=red-mark"],
    &["transport.ecn=true", "tor.ecn.mode=red-mark", "tor.ecn.weight=1", "tor.ecn.unit=bytes"],
    &["tor.ecn.mode=red-drop", "tor.ecn.gentle=true"],
    &["transport.congestion_control=m21tcp", "tor.m21=true"],
    &["transport.congestion_control=m21tcp", "tor.m21=true", "transport.m21tcp.charge=flow"],
    &[
        "transport.congestion_control=m21tcp",
        "tor.m21=true",
        "transport.m21tcp.rewrite_echo=true",
        "transport.m21tcp.idle=200 us",
    ],
    &["transport.congestion_control=diatcp"],
    &[
        "transport.congestion_control=diatcp",
        "transport.diatcp.deadline_aware=true",
        "workload.deadline=5 ms",
    ],
    &["transport.rto_spread=0.5", "transport.timer_granularity=1 us", "transport.delayed_ack_timeout=1 us"],
    &["transport.congestion_control=ictcp"],
    &["transport.congestion_control=swift"],
    &["transport.congestion_control=sird"],
    &["tor.pause.mode=pause", "tor.pause.xoff=6 kB", "tor.pause.xon=3 kB"],
    &["tor.pause.mode=priority", "tor.pause.xoff=6 kB", "tor.pause.xon=3 kB"],
    &["tor.buffering=daqring", "tor.daqring.frames=40", "tor.daqring.rate=900 Mb/s"],
    &["shaping.method=fastpass", "shaping.fastpass.delay=10 us", "shaping.fastpass.delay_sd=3 us"],
    &["shaping.method=fastpass", "shaping.fastpass.clock_error=50 us", "shaping.fastpass.slot_mtus=3"],
];

/// Settings that choose it for a small rack behind core routers. Its switch stops their uplinks if it uses PAUSE.
const RACK: [&[&str]; 28] = [
    &[],
    &["shaping.method=paced-credits"],
    &["shaping.method=paced-credits", "shaping.discipline=smallest-remaining"],
    &["shaping.method=credits", "shaping.credits=18"],
    &["shaping.method=credits", "shaping.credits=6", "shaping.discipline=round-robin"],
    &["transport.congestion_control=static"],
    &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold", "core.ecn.mode=threshold"],
    &["transport.ecn=true", "tor.ecn.mode=red-mark"],
    &["tor.ecn.mode=red-drop"],
    &["transport.congestion_control=m21tcp", "tor.m21=true"],
    &["transport.congestion_control=diatcp", "transport.diatcp.global_window=30"],
    &["transport.rto_min=1 ms", "transport.delayed_ack=false"],
    &["transport.congestion_control=ictcp"],
    &["transport.congestion_control=swift"],
    &["transport.congestion_control=sird"],
    &["tor.pause.mode=pause", "tor.pause.xoff=20 kB", "tor.pause.xon=10 kB"],
    &["tor.pause.mode=priority", "tor.pause.xoff=20 kB", "tor.pause.xon=10 kB"],
    &[
        "tor.pause.mode=priority",
        "tor.pause.xoff=20 kB",
        "tor.pause.xon=10 kB",
        "core.pause.mode=priority",
        "core.pause.xoff=20 kB",
        "core.pause.xon=10 kB",
    ],
    &["tor.buffering=daqring", "tor.daqring.frames=60"],
    &["tor.buffering=daqring", "tor.daqring.rate=500 Mb/s", "tor.daqring.service=longest-first"],
    // Several rings at one port take turns: those of a rack's collectors.
    &["core.buffering=daqring", "core.daqring.frames=30", "core.daqring.rate=400 Mb/s"],
    &["core.buffering=daqring", "core.daqring.frames=30", "core.daqring.service=longest-first"],
    &["shaping.method=fastpass"],
    &["shaping.method=fastpass", "shaping.fastpass.advance=25 us", "shaping.fastpass.clock_error=1 ms"],
    &["shaping.method=fastpass", "shaping.fastpass.fail_at=15 ms", "shaping.fastpass.standby=false"],
    &["shaping.method=barrel-shifter"],
    &["shaping.method=barrel-shifter", "shaping.barrel_shifter.barrier=clock"],
    &["shaping.method=barrel-shifter", "workload.kind=push"],
];

const SMALL_RACK: &str = r#"
[run]
duration = "20 ms"
warmup = "5 ms"
[readout]
hosts = 12
fragments_per_host = 6
response_delay = "100 us"
response_delay_sd = "30 us"
[collectors]
racks = 2
hosts_per_rack = 3
units_per_host = 4
processing_time = "2 ms"
[supervisor]
policy = "node-round-robin"
[network]
readouts_per_group = 6
"#;

fn scenario(text: &str, sets: &[String]) -> Scenario {
    match load_text("test", text, sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn incast(sets: &[String]) -> Scenario {
    scenario("extends = \"incast\"", sets)
}

fn outcome(scenario: &Scenario, seed: u64) -> RunOutcome {
    run(scenario, seed, &RunControl::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn owned(sets: &[&str]) -> Vec<String> {
    sets.iter().map(|&set| set.to_owned()).collect()
}

/// Asserts that all requested data have arrived, and nothing faster than its own ideal.
fn assert_sound(outcome: &RunOutcome, sets: &[String]) {
    assert_eq!(outcome.end, RunEnd::Complete, "{sets:?}");
    assert!(!outcome.records.events.is_empty(), "{sets:?}");
    for row in &outcome.records.events {
        let (Some(time), Some(ideal)) = (row.collection_time_ps, row.ideal_ps) else {
            panic!("{sets:?}: without a time or an ideal: {row:?}");
        };
        assert!(time >= ideal, "{sets:?}: {} ps too fast: {row:?}", ideal - time);
    }
    if let Some(events) = &outcome.summary.events {
        assert_eq!((events.collected, events.lost, events.duplicated), (events.assigned, 0, 0), "{sets:?}");
    }
}

/// Runs again, and asserts that results depend only on the scenario and the seed.
fn assert_repeats(outcome_before: &RunOutcome, scenario: &Scenario, seed: u64) {
    let again = outcome(scenario, seed);
    assert_eq!(outcome_before.records, again.records);
    assert_eq!(outcome_before.summary.techniques, again.summary.techniques);
}

fn drops(outcome: &RunOutcome) -> u64 {
    outcome.summary.network.as_ref().and_then(|network| network.drops).expect("a network's figures")
}

fn queue_max(outcome: &RunOutcome) -> u64 {
    outcome.summary.network.as_ref().and_then(|network| network.queue_bytes_max).expect("a network's figures")
}

/// ns-3 may close the window until the next ACK of a recovery, also under Swift.
#[test]
fn a_window_of_swift_may_close_as_in_ns3() {
    let sets = [
        "run.duration=30 ms",
        "transport.profile=ns3-newreno",
        "transport.congestion_control=swift",
        "transport.delayed_ack=false",
        "transport.rto_min=10 ms",
        "workload.senders=22",
        "workload.request_size=69 kB",
        "tor.buffer=64 kB",
        "tor.count_in_service=false",
    ];
    let sets = owned(&sets);
    assert_sound(&outcome(&incast(&sets), 49), &sets);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_the_technique(
        technique in 0..INCAST.len(),
        profile in select(vec!["ns3-newreno", "linux-2.6.32", "linux-2.6.26", "linux-6", "textbook"]),
        senders in 1..50_u32,
        kilobytes in 1..80_u32,
        buffer in select(vec!["16 kB", "64 kB", "1 MB"]),
        buffering in select(vec!["dedicated", "shared", "dynamic-threshold"]),
        counts: bool,
        delayed: bool,
        rto_ms in select(vec![1, 10, 200]),
        seed in 0..1000_u64,
    ) {
        let mut sets = vec![
            "run.duration=30 ms".to_owned(),
            format!("transport.profile={profile}"),
            format!("workload.senders={senders}"),
            format!("workload.request_size={kilobytes} kB"),
            format!("tor.buffer={buffer}"),
            format!("tor.buffering={buffering}"),
            format!("tor.count_in_service={counts}"),
            format!("transport.delayed_ack={delayed}"),
            format!("transport.rto_min={rto_ms} ms"),
        ];
        sets.extend(owned(INCAST[technique]));
        let scenario = incast(&sets);
        let first = outcome(&scenario, seed);
        assert_sound(&first, &sets);
        let limit = match first.summary.techniques.get("daqring") {
            // Frames of answers in the ring, and as many in the plain queue.
            Some(_) => 2 * 40 * 1_518,
            None => scenario.tor.buffer.get(),
        };
        prop_assert!(queue_max(&first) <= limit, "{:?} {:?}", sets, first.summary.network);
        assert_repeats(&first, &scenario, seed);
    }

    #[test]
    fn whatever_the_technique_in_a_rack(
        technique in 0..RACK.len(),
        profile in select(vec!["linux-2.6.32", "linux-2.6.26", "linux-6", "textbook"]),
        rate in 200..3000_u32,
        buffer in 40..200_u32,
        bytes in 60..3000_u32,
        sigma in 0..40_u32,
        order in select(vec!["fixed", "rotated", "random"]),
        distribution in select(vec!["per-destination", "ecmp"]),
        seed in 0..1000_u64,
    ) {
        let mut sets = vec![
            format!("transport.profile={profile}"),
            format!("supervisor.rate={rate} Hz"),
            format!("tor.buffer={buffer} kB"),
            format!(
                "readout.fragment_size={{ distribution = \"log-normal\", mean = \"{bytes} B\", sigma = 0.{sigma:02} }}"
            ),
            format!("shaping.request_order={order}"),
            format!("network.flow_distribution={distribution}"),
        ];
        sets.extend(owned(RACK[technique]));
        let scenario = scenario(SMALL_RACK, &sets);
        let first = outcome(&scenario, seed);
        assert_sound(&first, &sets);
        assert_repeats(&first, &scenario, seed);
    }
}

/// The keys that each of the other set-ups changes in the small rack.
const SETUPS: [(&str, &[&str]); 5] = [
    (
        "all-to-all",
        &[
            "workload.kind=all-to-all",
            "network.topology=star",
            "collectors.racks=1",
            "collectors.hosts_per_rack=24",
        ],
    ),
    ("push", &["workload.kind=push"]),
    (
        "leaf-spine",
        &["network.topology=leaf-spine", "network.leaf_spine.planes=2", "network.flow_distribution=ecmp"],
    ),
    (
        "hybrid",
        &[
            "network.topology=hybrid",
            "network.cores=1",
            "network.hybrid.host_ports=2",
            "core.daqring.rate=600 Mb/s",
        ],
    ),
    (
        "on demand, several links, accepted events",
        &["supervisor.arrivals=on-demand", "readout.links_per_host=2", "logger.accept=0.3"],
    ),
];

/// Every technique runs in every set-up, or is refused by the scenario with a reason, never later.
#[test]
fn every_technique_in_every_set_up() {
    let mut refused = Vec::new();
    for (name, setup) in SETUPS {
        for technique in RACK {
            let mut sets = owned(setup);
            sets.extend(owned(technique));
            let loaded = match load_text("test", SMALL_RACK, &sets) {
                Ok(loaded) => loaded,
                Err(errors) => {
                    assert!(errors.problems().iter().all(|problem| problem.location().is_some()), "{sets:?}");
                    refused.push((name, technique[0]));
                    continue;
                }
            };
            assert_sound(&outcome(&loaded.scenario, 1), &sets);
        }
    }
    let expected: Vec<(&str, &str)> = vec![
        ("push", "shaping.method=paced-credits"),
        ("push", "shaping.method=paced-credits"),
        ("push", "shaping.method=credits"),
        ("push", "shaping.method=credits"),
        // Racks with daqrings at the core, and PAUSE.
        ("hybrid", "tor.pause.mode=pause"),
        ("hybrid", "tor.pause.mode=priority"),
        ("hybrid", "tor.pause.mode=priority"),
    ];
    assert_eq!(refused, expected);
}

/// A full frame in a switch.
const FRAME: u64 = 1_518;

/// A lossless technique, with the buffer that it needs.
#[derive(Clone, Debug)]
enum Lossless {
    /// ICC'15 eq. (4): all windows together.
    Static { window: u64 },
    /// ICC'15 eq. (9): the receiver's global window.
    Diatcp { window: u64, aware: bool },
    /// M21TCP §III: a segment for each flow.
    M21 { rewrite: bool },
    /// 802.1Q annex N: each input's threshold, and the data still under way.
    Pause { priority: bool, xoff: u64, hysteresis: u64, delay_us: u64, reaction_us: u64, counts: bool },
    /// LCN'15: a ring that holds the answers.
    Ring { megabits: u64 },
    /// SIRD: the credit of the receiver, and a request of each sender.
    Sird,
    /// Thesis §6.4: no host sends outside its timeslots.
    Fastpass { mtus: u64 },
}

impl Lossless {
    /// Its settings, with a buffer of exactly the size that it needs.
    fn sets(&self, senders: u64, kilobytes: u64) -> Vec<String> {
        let bytes = |bytes: u64| format!("tor.buffer={bytes} B");
        match *self {
            Self::Static { window } => vec![
                "transport.congestion_control=static".to_owned(),
                format!("transport.static_window={window}"),
                bytes(senders * window * FRAME),
            ],
            Self::Diatcp { window, aware } => vec![
                "transport.congestion_control=diatcp".to_owned(),
                format!("transport.diatcp.global_window={window}"),
                format!("transport.diatcp.deadline_aware={aware}"),
                "workload.deadline=5 ms".to_owned(),
                bytes(window * FRAME),
            ],
            Self::M21 { rewrite } => vec![
                "transport.congestion_control=m21tcp".to_owned(),
                "tor.m21=true".to_owned(),
                format!("transport.m21tcp.rewrite_echo={rewrite}"),
                bytes(senders * FRAME),
            ],
            Self::Pause { priority, xoff, hysteresis, delay_us, reaction_us, counts } => {
                let (delay, reaction) = (Duration::from_micros(delay_us), Duration::from_micros(reaction_us));
                let headroom = pause_headroom(
                    Rate::new(1_000_000_000),
                    delay,
                    reaction,
                    Bytes::new(1_538),
                    Bytes::new(84),
                );
                vec![
                    format!("tor.pause.mode={}", if priority { "priority" } else { "pause" }),
                    format!("tor.pause.xoff={xoff} B"),
                    format!("tor.pause.xon={} B", xoff.saturating_sub(hysteresis).max(1)),
                    format!("tor.pause.reaction={reaction_us} us"),
                    format!("link.delay={delay_us} us"),
                    format!("tor.count_in_service={counts}"),
                    bytes(senders * (xoff + headroom.get())),
                ]
            }
            Self::Ring { megabits } => vec![
                "tor.buffering=daqring".to_owned(),
                format!("tor.daqring.rate={megabits} Mb/s"),
                // An answer's last segment is short, and its message has a header.
                format!("tor.daqring.frames={}", senders * (kilobytes * 1_000 / 1_448 + 2)),
            ],
            Self::Sird => {
                vec![
                    "transport.congestion_control=sird".to_owned(),
                    "transport.sird.unscheduled=0".to_owned(),
                    bytes(2 * 17_000 + senders * 100),
                ]
            }
            Self::Fastpass { mtus } => vec![
                "shaping.method=fastpass".to_owned(),
                format!("shaping.fastpass.slot_mtus={mtus}"),
                // Two timeslots: frames of the last one are still queued when those of the next one arrive.
                bytes(2 * mtus * FRAME),
            ],
        }
    }
}

fn lossless() -> impl Strategy<Value = Lossless> {
    prop_oneof![
        (1..8_u64).prop_map(|window| Lossless::Static { window }),
        (1..200_u64, any::<bool>()).prop_map(|(window, aware)| Lossless::Diatcp { window, aware }),
        any::<bool>().prop_map(|rewrite| Lossless::M21 { rewrite }),
        (any::<bool>(), 2_000..40_000_u64, 1..30_000_u64, 0..60_u64, 0..20_u64, any::<bool>()).prop_map(
            |(priority, xoff, hysteresis, delay_us, reaction_us, counts)| Lossless::Pause {
                priority,
                xoff,
                hysteresis,
                delay_us,
                reaction_us,
                counts,
            },
        ),
        (100..2_000_u64).prop_map(|megabits| Lossless::Ring { megabits }),
        Just(Lossless::Sird),
        (1..6_u64).prop_map(|mtus| Lossless::Fastpass { mtus }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn lossless_techniques_drop_nothing_within_their_bound(
        technique in lossless(),
        profile in select(vec!["linux-2.6.32", "linux-6", "textbook"]),
        senders in 1..40_u64,
        kilobytes in 4..60_u64,
        seed in 0..1000_u64,
    ) {
        let mut sets = vec![
            "run.duration=20 ms".to_owned(),
            format!("transport.profile={profile}"),
            "transport.timestamps=true".to_owned(),
            "transport.rto_min=200 ms".to_owned(),
            format!("workload.senders={senders}"),
            format!("workload.request_size={kilobytes} kB"),
        ];
        sets.extend(technique.sets(senders, kilobytes));
        let outcome = outcome(&incast(&sets), seed);
        assert_sound(&outcome, &sets);
        prop_assert_eq!(drops(&outcome), 0, "{:?} {:?}", sets, outcome.summary.network);
        if let Lossless::Diatcp { window, .. } = technique {
            // The figure is the most granted at once, and never exceeds the global window.
            let granted = outcome.summary.techniques["diatcp"]["granted_segments_max"].as_u64();
            prop_assert!(granted.is_some_and(|granted| granted > 0 && granted <= window), "{:?} {:?}", sets, granted);
        }
    }

    /// Credits bound the data under way to a collector (thesis §4.3.1), plus the supervisor's messages.
    #[test]
    fn credits_bound_the_burst(
        requests in 1..12_u64,
        bytes in 100..2_500_u64,
        rate in 200..3000_u32,
        discipline in select(vec!["fifo", "round-robin", "smallest-remaining", "first-fit"]),
        order in select(vec!["fixed", "rotated", "random"]),
        seed in 0..1000_u64,
    ) {
        // Six fragments an answer; 40 B of headers of the message at most, segments of 1448 B.
        let answer = 6 * bytes + 40;
        let burst = requests * (answer + answer.div_ceil(1_448) * 70);
        let spare = 6 * 400;
        let sets = [
            format!("shaping.credits={}", 6 * requests),
            format!("shaping.discipline={discipline}"),
            format!("shaping.request_order={order}"),
            format!("supervisor.rate={rate} Hz"),
            format!("readout.fragment_size={bytes} B"),
            format!("tor.buffer={} B", (burst + spare).max(FRAME)),
        ];
        let outcome = outcome(&scenario(SMALL_RACK, &sets), seed);
        assert_sound(&outcome, &sets);
        prop_assert_eq!(drops(&outcome), 0, "{:?} {:?}", sets, outcome.summary.network);
    }

    /// A switch that stops its neighbours drops nothing if each input has its headroom, in any network behind it.
    #[test]
    fn pause_never_drops(
        priority: bool,
        too_small: bool,
        xoff_kb in 3..40_u64,
        rate in 200..3000_u32,
        uplink_gbps in 1..11_u64,
        delay_us in 0..20_u64,
        reaction_us in 0..10_u64,
        core_too: bool,
        seed in 0..1000_u64,
    ) {
        let xoff = xoff_kb * 1_000;
        let mode = if priority { "priority" } else { "pause" };
        let (delay, reaction) = (Duration::from_micros(delay_us), Duration::from_micros(reaction_us));
        let room = |gbps: u64| {
            xoff + pause_headroom(Rate::new(gbps * 1_000_000_000), delay, reaction, Bytes::new(1_538), Bytes::new(84)).get()
        };
        // A rack's switch has two uplinks and three collectors; a core router two racks, two groups and the services.
        let tor = 2 * room(uplink_gbps) + 3 * room(1);
        let core = 4 * room(uplink_gbps) + 2 * room(10);
        let mut sets = vec![
            format!("supervisor.rate={rate} Hz"),
            format!("link.delay={delay_us} us"),
            format!("uplink.rate={uplink_gbps} Gb/s"),
            format!("tor.pause.mode={mode}"),
            format!("tor.pause.xoff={xoff} B"),
            format!("tor.pause.xon={} B", xoff / 2),
            format!("tor.pause.reaction={reaction_us} us"),
            format!("tor.buffer={tor} B"),
        ];
        if core_too {
            sets.extend([
                format!("core.pause.mode={mode}"),
                format!("core.pause.xoff={xoff} B"),
                format!("core.pause.xon={} B", xoff / 2),
                format!("core.pause.reaction={reaction_us} us"),
                "core.buffering=dedicated".to_owned(),
                format!("core.buffer={core} B"),
            ]);
        }
        if too_small {
            // Fragments are so large that a burst is many times the buffer.
            sets.push("readout.fragment_size=9 kB".to_owned());
        }
        let outcome = outcome(&scenario(SMALL_RACK, &sets), seed);
        assert_sound(&outcome, &sets);
        prop_assert_eq!(drops(&outcome), 0, "{:?} {:?}", sets, outcome.summary.network);
    }
}

/// An answer shorter than a segment takes less time than a segment on the links before the last. Seed 229 was faster than an
/// ideal without this rule.
#[test]
fn short_answers_have_a_shorter_ideal() {
    let sets = ["run.duration=30 ms", "workload.senders=13", "workload.request_size=1 kB"];
    let outcome = outcome(&incast(&owned(&sets)), 229);
    assert!(outcome.records.events.len() > 50);
    for row in &outcome.records.events {
        assert!(row.collection_time_ps >= row.ideal_ps, "{row:?}");
    }
    // Four times 25 us. A request of 284 B over two links, an answer of 1078 B over the first, thirteen of
    // them over the last.
    let ideal_ps = 100_000_000 + (2 * 142 + 1078 + 13 * 1078) * 8_000;
    assert_eq!(outcome.records.events[0].ideal_ps, Some(ideal_ps));
}
