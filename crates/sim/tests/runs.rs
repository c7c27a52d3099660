//! Whole runs: properties that hold for all scenarios.

use std::sync::atomic::AtomicBool;

use fanin_report::{LevelRow, Records, Summary};
use fanin_scenario::{EcnMode, PauseMode, Scenario, load_text};
use fanin_sim::{RunControl, RunEnd, RunOutcome, run};

/// A small system of two racks that runs in milliseconds.
const SMALL: &str = r#"
title = "small"
[run]
duration = "100 ms"
warmup = "20 ms"
[readout]
hosts = 24
fragments_per_host = 4
response_delay_sd = "100 us"
[readout.fragment_size]
distribution = "log-normal"
mean = "1.1 kB"
sigma = 0.25
fragment_sd = "200 B"
[collectors]
racks = 2
hosts_per_rack = 3
units_per_host = 4
processing_time = "5 ms"
[supervisor]
rate = "1 kHz"
policy = "random"
[logger]
hosts = 2
accept = "10 %"
[network]
readouts_per_group = 8
[record]
queues = ["tor->collector:*"]
windows = [3]
events = [40]
"#;

fn scenario(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match load_text("test", text, &sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn preset(name: &str, sets: &[&str]) -> Scenario {
    scenario(&format!("extends = \"{name}\""), sets)
}

fn outcome(scenario: &Scenario, seed: u64) -> RunOutcome {
    run(scenario, seed, &RunControl::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// All results except those that depend on the machine.
fn figures(outcome: &RunOutcome) -> (Summary, Records) {
    let mut summary = outcome.summary.clone();
    summary.speed = None;
    (summary, outcome.records.clone())
}

#[test]
fn levels_follow_from_the_events_of_their_time() {
    let (credits, units, collectors) = (24, 24, 6);
    let outcome = outcome(&scenario(SMALL, &["shaping.credits=24"]), 1);
    assert!(outcome.levels.len() > 400, "{} levels", outcome.levels.len());
    for row in &outcome.levels {
        // A level is that before the occurrences of its time.
        let at = row.time_ps;
        let open =
            |begin: Option<u64>, end: Option<u64>| begin < Some(at) && begin.is_some() && end >= Some(at);
        let events = || outcome.records.events.iter();
        let assigned = events().filter(|event| open(Some(event.assigned_ps), event.last_byte_ps)).count();
        let collecting = events().filter(|event| open(event.first_request_ps, event.last_byte_ps)).count();
        let levels = row.levels;
        assert!(levels.events_outstanding >= assigned as u64, "{row:?}: {assigned} events");
        assert!(levels.units_free + collecting as u64 <= units, "{row:?}: {collecting} events");
        assert_eq!(levels.credits_used > 0, collecting > 0, "{row:?}: {collecting} events");
        assert!(levels.credits_used <= credits * collectors, "{row:?}");
    }
    let most = |of: fn(&LevelRow) -> u64| outcome.levels.iter().map(of).max();
    assert!(most(|row| row.levels.credits_used) > Some(credits), "two collectors have requests at a time");
    assert!(most(|row| row.levels.requests_waiting) > Some(0), "an event has more requests than credits");
    assert!(most(|row| row.levels.units_free) > Some(units / 2), "units are free at times");
}

#[test]
fn every_event_is_collected_once() {
    let outcome = outcome(&scenario(SMALL, &[]), 1);
    assert_eq!(outcome.end, RunEnd::Complete);
    let events = outcome.summary.events.clone().unwrap();
    assert_eq!((events.assigned, events.collected), (100, 100));
    assert_eq!((events.lost, events.duplicated), (0, 0));
    assert_eq!(events.accepted.unwrap() + events.rejected.unwrap(), 100);
    assert_eq!(events.stored, events.accepted);
    assert!(events.accepted.unwrap() > 0, "some events reach a logger");
    // No event can be faster than its bytes on the wire.
    for row in &outcome.records.events {
        let wire_ps = row.size_bytes * 8_000;
        assert!(row.collection_time_ps.unwrap() > wire_ps, "{row:?}");
        assert!(row.first_request_ps.unwrap() >= row.assigned_ps && row.last_byte_ps > row.first_request_ps);
    }
}

#[test]
fn records_show_what_was_asked_for() {
    let small = scenario(SMALL, &[]);
    let control = RunControl { capture: true, ..RunControl::default() };
    let outcome = run(&small, 1, &control).unwrap();
    let records = &outcome.records;
    let queues: std::collections::BTreeSet<&str> = records.queues.iter().map(|row| &*row.queue).collect();
    assert_eq!(queues.len(), 6);
    assert!(queues.contains("tor:1->collector:5"), "{queues:?}");
    assert!(records.queues.iter().any(|row| row.queue_bytes > 0));
    assert!(records.windows.iter().all(|row| row.flow == 3) && !records.windows.is_empty());
    // The traffic of an event is its fragments with headers, and the requests the other way.
    let event = &records.events[40];
    let last = records.io.last().unwrap();
    assert!(last.event == 40 && last.to_collector_bytes > event.size_bytes);
    assert!(last.from_collector_bytes >= 24 * 100 && last.from_collector_bytes < last.to_collector_bytes);
    // The capture holds all data that the collector was sent.
    let capture = outcome.capture.as_ref().unwrap();
    let node = capture.nodes.iter().position(|name| name == "collector:0").unwrap() as u32;
    let data: u64 = (capture.frames.iter())
        .filter(|seen| capture.ends[seen.end as usize][0] == node)
        .map(|seen| u64::from(seen.segment.payload))
        .sum();
    let collected: u64 =
        records.events.iter().filter(|row| row.collector == 0).map(|row| row.size_bytes).sum();
    assert!(data > collected, "{data} {collected}");
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let scenario = scenario(SMALL, &["tor.buffer=30 kB"]);
    let [first, again, other] = [1, 1, 2].map(|seed| figures(&outcome(&scenario, seed)));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn sizes_that_the_caller_has_not_read_are_refused() {
    for set in [
        "readout.fragment_size={ distribution = \"file\", path = \"km3net\" }",
        "readout.fragment_size={ distribution = \"per-source\", path = \"km3net\", sigma = 0.2 }",
    ] {
        let scenario = preset("thesis-a-1000hz", &[set]);
        let error = run(&scenario, 1, &RunControl::default()).unwrap_err();
        assert_eq!(error, fanin_sim::Error::SizesNotRead { path: "km3net".to_owned() });
    }
}

#[test]
fn more_collectors_do_not_change_the_sizes_of_events() {
    let sizes = |sets: &[&str]| -> Vec<u64> {
        let outcome = outcome(&scenario(SMALL, sets), 5);
        outcome.records.events.iter().take(80).map(|row| row.size_bytes).collect()
    };
    assert_eq!(sizes(&[]), sizes(&["collectors.racks=3"]));
}

#[test]
fn two_ways_to_count_a_queue_agree() {
    // A limit on each port of a never-full pool equals a buffer on each port. The queueing crate's memory counts the first,
    // the link's own ring the second.
    for in_service in ["true", "false"] {
        let count = format!("tor.count_in_service={in_service}");
        let own = ["tor.buffer=20 kB", "tor.uplink_buffer=20 kB", "tor.frame_overhead=10 B", &count];
        let pooled = [
            "tor.buffering=shared",
            "tor.buffer=200 MB",
            "tor.port_limit=20 kB",
            "tor.frame_overhead=10 B",
            &count,
        ];
        let [own, pooled] = [&own[..], &pooled[..]].map(|sets| outcome(&scenario(SMALL, sets), 3));
        assert!(own.summary.network.as_ref().unwrap().drops.unwrap() > 0);
        assert_eq!(figures(&own), figures(&pooled));
    }
}

#[test]
fn a_large_memory_that_fills_is_counted_after_all() {
    // A port may hold 256 MB. A memory of 1 GB never fills; one of 257 MB does.
    let sets =
        ["workload.senders=64", "workload.request_size=8 MB", "run.duration=300 ms", "tor.buffering=voq"];
    let with = |buffer: &str| {
        let buffer = format!("tor.buffer={buffer}");
        let sets: Vec<&str> = sets.iter().copied().chain([&*buffer, "tor.port_limit=256 MB"]).collect();
        outcome(&preset("incast", &sets), 1)
    };
    let large = with("1 GB");
    assert_eq!(large.summary.network.as_ref().unwrap().drops, Some(0));
    let tight = with("257 MB");
    let queued = tight.summary.network.as_ref().unwrap().queue_bytes_max.unwrap();
    assert!(queued <= 257_000_000, "{queued}");
}

#[test]
fn losses_are_made_good() {
    let outcome = outcome(&preset("incast", &["workload.senders=32", "run.duration=1 s"]), 1);
    let network = outcome.summary.network.clone().unwrap();
    let tcp = outcome.summary.tcp.clone().unwrap();
    assert!(network.drops.unwrap() > 100 && tcp.timeouts.unwrap() > 0);
    assert!(tcp.retransmits.unwrap() >= network.drops.unwrap() / 2);
    assert!(network.queue_bytes_max.unwrap() <= 64_000);
    assert!(outcome.summary.requests.unwrap().completed >= 1);
}

#[test]
fn a_link_loses_its_share_of_the_frames() {
    let sets = ["workload.senders=8", "tor.buffer=64 MB", "run.duration=2 s", "run.warmup=0 s"];
    let lossy = |share: &str| {
        let all = [&sets[..], &["readout.link.loss=0", share]].concat();
        outcome(&preset("incast", &all), 1).summary
    };
    let summary = lossy("link.loss=0.01");
    let network = summary.network.unwrap();
    // Each frame of the senders, and each acknowledgement, passes the lossy link once.
    let share = network.link_losses.unwrap() as f64 / network.packets.unwrap() as f64;
    assert!((0.008..0.012).contains(&share), "{share}");
    assert_eq!(network.drops, Some(0), "no switch dropped a frame");
    assert!(summary.tcp.unwrap().retransmits > Some(50));
    let late = lossy("link.loss=0");
    assert_eq!(late.network.unwrap().link_losses, None);
}

#[test]
fn without_loss_the_incast_runs_at_the_wire() {
    for senders in ["1", "16", "64"] {
        let senders = format!("workload.senders={senders}");
        let outcome = outcome(&preset("incast", &[&senders, "tor.buffer=64 MB", "run.duration=1 s"]), 1);
        assert_eq!(outcome.summary.network.as_ref().unwrap().drops, Some(0));
        let slowdown = outcome.summary.slowdown.clone().unwrap();
        assert!(slowdown.mean >= 1.0, "faster than the wire: {slowdown:?}");
        // A single sender pays for slow start; many fill the link at once.
        assert!(senders == "workload.senders=1" || slowdown.mean < 1.01, "{senders}: {slowdown:?}");
    }
}

#[test]
fn a_stopped_run_gives_what_it_has() {
    let stop = AtomicBool::new(false);
    let seen = |now: fanin_units::Instant, _| {
        if now.get() > 50_000_000_000 {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let control = RunControl { stop: &stop, progress: &seen, capture: false };
    let outcome = run(&preset("thesis-a-1000hz", &["shaping.credits=480"]), 1, &control).unwrap();
    assert_eq!(outcome.end, RunEnd::Stopped);
    assert!(!outcome.records.events.is_empty());
}

#[test]
fn a_network_that_is_being_built_is_given_up() {
    // The stop flag is set before the start: the 6000 connections are not opened one after another.
    let stop = AtomicBool::new(true);
    let control = RunControl { stop: &stop, ..RunControl::default() };
    for name in ["thesis-a-1000hz", "incast"] {
        let outcome = run(&preset(name, &[]), 1, &control).unwrap();
        assert_eq!((outcome.end, outcome.records.flows.len()), (RunEnd::Stopped, 0), "{name}");
        assert_eq!(outcome.summary.speed.unwrap().packet_hops, Some(0));
    }
}

#[test]
fn a_run_that_cannot_move_says_who_waits() {
    // A buffer that holds requests but no full frame. A scenario file with such a buffer is refused.
    let mut small = scenario(SMALL, &["run.duration=10 s", "run.stall_limit=3 s"]);
    small.tor.buffer = fanin_units::Bytes::new(1_000);
    let outcome = outcome(&small, 1);
    let RunEnd::Stalled { at, diagnosis } = &outcome.end else { panic!("{:?}", outcome.end) };
    // Every timer of RTO has expired 15 times, the last of them after 120 s.
    assert!(at.get() < 16 * 121_000_000_000_000, "{at}");
    assert!(diagnosis.contains("collector 0 waits for"), "{diagnosis}");
    assert!(diagnosis.contains("events are not finished"), "{diagnosis}");
}

#[test]
fn unsupported_scenarios_are_refused() {
    // A ring's rate that the scenario's check refuses, in a scenario not read from a file.
    let mut slow = scenario(SMALL, &["tor.buffering=daqring"]);
    slow.tor.daqring.rate = fanin_units::Rate::new(5_000);
    let error = run(&slow, 1, &RunControl::default()).unwrap_err();
    assert!(error.to_string().starts_with("daqring"), "{error}");
}

/// Runs a network with rings after a change that the scenario's check refuses.
fn run_with_rings(change: impl FnOnce(&mut Scenario)) {
    let mut rings = scenario(SMALL, &["tor.buffering=daqring"]);
    change(&mut rings);
    let _ = run(&rings, 1, &RunControl::default());
}

#[test]
#[should_panic(expected = "PAUSE with rings passed the check")]
fn pause_with_rings_was_checked() {
    run_with_rings(|scenario| scenario.aggregation.pause.mode = PauseMode::Pause);
}

#[test]
#[should_panic(expected = "marks of rings passed the check")]
fn marks_of_rings_were_checked() {
    run_with_rings(|scenario| scenario.tor.ecn.mode = EcnMode::Threshold);
}

#[test]
#[should_panic(expected = "M21TCP's option in rings passed the check")]
fn the_option_in_rings_was_checked() {
    run_with_rings(|scenario| scenario.tor.m21 = true);
}

#[test]
fn every_stack_gets_through_every_buffer() {
    // Each run checks its accounts at the end, and panics if they do not balance.
    let buffers = [
        &["tor.buffer=16 kB"][..],
        &["tor.buffering=shared", "tor.buffer=48 kB", "tor.pool_charge=input"],
        &["tor.buffering=dynamic-threshold", "tor.buffer=64 kB", "tor.alpha=0.5"],
        &["tor.buffering=voq", "tor.buffer=64 kB", "tor.port_limit=32 kB", "tor.module_ports=2"],
        &["tor.buffer=20 kB", "tor.count_in_service=false", "tor.latency=3 us", "link.rate=300 Mb/s"],
    ];
    let stacks = [
        &["transport.profile=linux-2.6.32"][..],
        &["transport.profile=linux-2.6.26", "transport.window_state=warm"],
        &["transport.profile=linux-6", "transport.offload_burst=64 kB"],
        &["transport.profile=ns3-newreno"],
        &["transport.profile=textbook", "transport.rto_min=20 ms"],
        &["transport.congestion_control=static", "transport.static_window=3"],
    ];
    let mut dropped = 0;
    for (seed, (buffer, stack)) in
        buffers.iter().flat_map(|buffer| stacks.iter().map(move |stack| (buffer, stack))).enumerate()
    {
        let sets: Vec<&str> = [*buffer, *stack, &["run.duration=40 ms"]].concat();
        let outcome = outcome(&scenario(SMALL, &sets), seed as u64);
        assert_eq!(outcome.end, RunEnd::Complete, "{sets:?}");
        let events = outcome.summary.events.clone().unwrap();
        // In collapse all units wait, and few events are assigned in so short a time.
        assert!(events.assigned > 0 && events.assigned == events.collected, "{sets:?}: {events:?}");
        dropped += outcome.summary.network.as_ref().unwrap().drops.unwrap();
    }
    assert!(dropped > 1000, "{dropped}");
}

#[test]
fn the_ports_that_lose_are_named_under_every_buffering() {
    for buffering in ["dedicated", "shared", "dynamic-threshold", "voq", "daqring"] {
        let key = format!("tor.buffering={buffering}");
        let sets =
            [&key, "workload.senders=40", "tor.buffer=64 kB", "tor.daqring.frames=40", "run.duration=300 ms"];
        let outcome = outcome(&preset("incast", &sets), 1);
        let drops = outcome.summary.network.as_ref().and_then(|network| network.drops).unwrap();
        assert!(drops > 0, "{buffering}");
        let port = &outcome.summary.ports[0];
        assert_eq!((port.name.as_str(), port.drops), ("tor:0->collector:0", drops), "{buffering}");
        assert_eq!(port.limit_bytes.is_none(), buffering == "voq");
        let limit = port.limit_bytes.unwrap_or(port.queue_bytes_max);
        assert!(
            port.queue_bytes_max <= limit && port.queue_bytes_max * 10 > limit * 8,
            "{buffering}: {port:?}"
        );
        let late = port.late.as_ref().unwrap();
        let chain: Vec<_> = late.chain.iter().map(|cause| cause.kind.as_str()).collect();
        assert_eq!(chain, ["queue", "loss", "rto"], "{buffering}: {}", late.text);
        let timeline = &outcome.picture.as_ref().unwrap().timeline;
        assert_eq!(timeline.ports[0].drops.iter().sum::<u64>(), drops, "{buffering}");
        assert_eq!(
            Some(timeline.timeouts.iter().sum::<u64>()),
            outcome.summary.tcp.as_ref().and_then(|tcp| tcp.timeouts)
        );
    }
}

#[test]
fn a_late_event_names_the_tail_loss_probes_that_it_waited_for() {
    let sets = [
        "transport.profile=linux-6",
        "workload.senders=40",
        "workload.request_size=8 kB",
        "tor.buffer=64 kB",
    ];
    let outcome = outcome(&preset("incast", &sets), 1);
    let probes = outcome.summary.tcp.as_ref().and_then(|tcp| tcp.tail_loss_probes).unwrap();
    assert!(probes > 0);
    let late = outcome.picture.unwrap().late.unwrap();
    let cause = late.chain.iter().find(|cause| cause.kind == "tail-loss-probe").expect(&late.text);
    assert!(late.text.contains("waiting for tail loss probes ("), "{}", late.text);
    let sent: Vec<u64> = late.sources.iter().flat_map(|source| source.probes_ps.iter().copied()).collect();
    let count = cause.count.unwrap();
    assert!((1..=sent.len() as u64).contains(&count) && sent.len() as u64 <= probes, "{count} {sent:?}");
    let last_ms = sent.iter().map(|at| (at - late.assigned_ps) as f64 / 1e9).fold(0.0, f64::max);
    assert!(cause.until_ms <= last_ms + 1e-9, "{} {last_ms}", cause.until_ms);
}

#[test]
fn the_picture_shows_the_event_that_took_longest_for_its_ideal() {
    let outcome = outcome(&scenario(SMALL, &["tor.buffer=20 kB", "shaping.credits=8"]), 1);
    let picture = outcome.picture.unwrap();
    let late = picture.late.unwrap();
    let row = &outcome.records.events[late.id as usize];
    assert_eq!(row.collection_time_ps, Some(late.time_ps));
    let measured = outcome.summary.measured_ps.unwrap();
    let within = outcome.records.events.iter().filter(|row| row.assigned_ps >= measured.from);
    let slowdown = |time: u64, ideal: u64| time as f64 / ideal as f64;
    let all = within.filter_map(|row| Some(slowdown(row.collection_time_ps?, row.ideal_ps?)));
    let (largest, shown) = (all.fold(0.0, f64::max), slowdown(late.time_ps, late.ideal_ps.unwrap()));
    assert!(shown * 1.05 >= largest && shown <= largest, "{shown} {largest}");
    assert_eq!((late.sources.len(), late.sources_total), (24, 24));
    for source in &late.sources {
        let times = [source.request_ps, source.first_byte_ps, source.last_byte_ps].map(Option::unwrap);
        assert!(
            times.is_sorted() && times[0] >= late.assigned_ps && times[2] <= late.collected_ps,
            "{source:?}"
        );
    }
    assert!(late.chain.iter().any(|cause| cause.kind == "credit-wait"), "{}", late.text);
    // Equal parts are grouped.
    let groups = &picture.topology.groups;
    assert!(groups.iter().any(|group| group.name == "readout" && group.column == 0), "{groups:?}");
    assert_eq!(
        groups.iter().filter(|group| group.name == "readout").map(|group| group.count).sum::<u64>(),
        24
    );
    assert!(groups.len() < 20, "{groups:?}");
}

#[test]
fn a_run_that_moves_is_not_stalled() {
    // One round takes 0.4 s, eight times the limit and the measured time.
    let sets = [
        "workload.senders=4",
        "workload.request_size=12 MB",
        "tor.buffer=100 MB",
        "run.duration=50 ms",
        "run.stall_limit=50 ms",
    ];
    let outcome = outcome(&preset("incast", &sets), 1);
    assert_eq!(outcome.end, RunEnd::Complete);
    assert!(outcome.records.events[0].collection_time_ps.unwrap() > 400_000_000_000);
}

#[test]
fn a_run_that_awaits_a_timer_is_not_stalled() {
    // The senders that lost a whole flight wait for their RTO of at least 200 ms, twice the limit.
    let timeouts = outcome(&preset("incast", &["run.duration=2 s", "run.stall_limit=100 ms"]), 1);
    assert_eq!(timeouts.end, RunEnd::Complete);
    assert!(timeouts.summary.tcp.unwrap().timeouts > Some(0));
    // An event each 100 s, though for 60 s nothing moves.
    let rare = ["supervisor.rate=0.01 Hz", "supervisor.arrivals=periodic", "run.duration=400 s"];
    let rare = outcome(&scenario(SMALL, &rare), 1);
    assert_eq!((rare.end, rare.records.events.len() > 2), (RunEnd::Complete, true));
}

#[test]
fn queues_are_not_sampled_until_the_memory_is_full() {
    let sets = ["record.queues=[\"tor->collector\"]", "record.queue_interval=1 ps"];
    let error = run(&preset("incast", &sets), 1, &RunControl::default()).unwrap_err().to_string();
    assert!(error.starts_with("record.queue_interval: 1 queues every 1 ps"), "{error}");
}
