//! The plan never promises what the simulation breaks: where it says that no frame is lost, none is.

use fanin_plan::{BurstOutcome, Losses, PlanOptions, plan};
use fanin_runs::{RunControl, fragment_sizes, run};
use fanin_scenario::{Scenario, load, load_text};

/// Frames that the simulation drops.
fn drops(scenario: &Scenario, seed: u64) -> u64 {
    let outcome = run(scenario, seed, &RunControl::default()).expect("the scenario runs");
    outcome.summary.network.map_or(0, |network| network.drops.unwrap_or_default())
}

/// Sixty readouts at 25 Gb/s, whose fragments vary much.
const VARYING: &str = "[readout]\nhosts = 60\nfragments_per_host = 1\nlink = { rate = '25 Gb/s' }\n\
    fragment_size = { distribution = 'log-normal', mean = '20 kB', sigma = 1.0 }\n\
    [collectors]\nhosts_per_rack = 20\n[link]\nrate = '25 Gb/s'\n[supervisor]\nrate = '5 kHz'\n\
    policy = 'node-load-balancing'\n[network]\ntopology = 'star'\n[run]\nduration = '200 ms'\n";

#[test]
fn large_events_of_a_wide_distribution_are_not_promised_to_fit() {
    for sets in [
        &["tor.buffer=1 MB"][..],
        &[
            "tor.buffering=dynamic-threshold",
            "tor.buffer=16 MB",
            "collectors.hosts_per_rack=8",
            "supervisor.rate=20 kHz",
        ],
    ] {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = load_text("varying", VARYING, &sets).unwrap().scenario;
        let plan = plan(&scenario, &PlanOptions::default()).unwrap();
        let (outcome, text) = plan.verdict();
        assert_ne!(plan.losses(), Losses::Never, "{text}");
        assert_eq!(outcome, BurstOutcome::Loses, "{sets:?}: {text}");
        assert!(matches!(plan.losses(), Losses::InShare(_)), "{text}");
        assert!(drops(&scenario, 1) > 0, "{sets:?}");
    }
}

#[test]
fn room_for_all_that_can_be_on_its_way_is_a_proof() {
    for (name, sets) in [
        ("incast", &["tor.buffer=8 MB"][..]),
        ("incast", &["tor.buffering=unlimited"]),
        ("incast", &["tor.buffering=dynamic-threshold", "tor.buffer=20 MB"]),
        ("thesis-a-1000hz", &["shaping.credits=120", "run.duration=20 ms", "run.warmup=1 ms"]),
    ] {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = load(name, &sets).unwrap().scenario;
        let plan = plan(&scenario, &PlanOptions::default()).unwrap();
        assert_eq!(plan.losses(), Losses::Never, "{name} {sets:?}: {:?}", plan.proof);
        assert_eq!(drops(&scenario, 1), 0, "{name} {sets:?}");
    }
}

#[test]
fn background_traffic_adds_to_loads_and_proves_nothing() {
    let planned = |name: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        plan(&load(name, &sets).unwrap().scenario, &PlanOptions::default()).unwrap()
    };
    let bulk = planned("incast", &["tor.buffer=8 MB", "background.connections=1"]);
    assert_ne!(bulk.losses(), Losses::Never, "{:?}", bulk.proof);
    assert!(bulk.proof.unwrap_err().contains("background traffic"), "{:?}", bulk.warnings);
    assert!(bulk.warnings.iter().any(|text| text.contains("always have data")), "{:?}", bulk.warnings);
    let alone = planned("thesis-a-500hz", &[]);
    let sets = ["background.connections=4", "background.kind=transfers", "background.load=0.2"];
    let both = planned("thesis-a-500hz", &sets);
    let more = both.last_hop_load().as_f64() - alone.last_hop_load().as_f64();
    assert!((more - 0.2).abs() < 1e-4, "{more}");
    // 39 links of 1 Gb/s, over two of 10 Gb/s.
    let more = both.uplink_load().unwrap().as_f64() - alone.uplink_load().unwrap().as_f64();
    assert!((more - 0.39).abs() < 1e-4, "{more}");
    let full = planned("thesis-a-1000hz", &sets);
    let is_overloaded = |text: &String| text.starts_with("core->tor is offered");
    assert!(full.warnings.iter().any(is_overloaded), "{:?}", full.warnings);
    assert!(!both.warnings.iter().any(is_overloaded), "{:?}", both.warnings);
}

/// A table of sizes, in which few fragments are large.
const TABLE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/promises.csv");

fn write_table() {
    let mut rows = "event,source,bytes\n".to_owned();
    for row in 0_u64..16 * 9 {
        let bytes = if row % 31 == 0 { 12_000 } else { 100 + row * row * 37 % 1_900 };
        rows.push_str(&format!("{},{},{bytes}\n", row / 16, row % 16));
    }
    std::fs::write(TABLE, rows).unwrap();
}

/// A small system.
fn small(topology: &str, workload: &str) -> String {
    format!(
        "[readout]\nhosts = 8\nfragments_per_host = 2\nresponse_delay = '20 us'\nlink = {{ rate = '1 Gb/s' }}\n\
         [collectors]\nhosts_per_rack = 3\nunits_per_host = 2\nprocessing_time = '200 us'\n\
         [supervisor]\nrate = '4 kHz'\n[workload]\nkind = '{workload}'\nsenders = 8\nrequest_size = '20 kB'\n\
         [network]\ntopology = '{topology}'\nreadouts_per_group = 4\n\
         hybrid = {{ host_ports = {} }}\ncores = {}\n\
         [logger]\nhosts = 1\naccept = 0.5\n[run]\nduration = '30 ms'\nwarmup = '0 s'\n",
        if topology == "hybrid" { 2 } else { 0 },
        if topology == "racks" { 2 } else { 1 },
    )
}

/// Scenarios that are drawn at random; many of them promise nothing.
const CASES: u32 = 400;
/// Buffers of which the smallest with a promise is searched.
const BUFFER_MAX: u64 = 64_000_000;

/// The scenario with buffers of this many bytes in some switches, if the plan has this verdict on its losses.
fn with_verdict(
    losses: Losses,
    buffer: u64,
    (text, sets, switches): (&str, &[String], &[&str]),
) -> Option<(Scenario, Vec<String>)> {
    let buffers = switches.iter().map(|switch| format!("{switch}.buffer={buffer} B"));
    let sets: Vec<String> = sets.iter().cloned().chain(buffers).collect();
    let scenario = load_text("small", text, &sets).ok()?.scenario;
    let options = PlanOptions { fragment_sizes: fragment_sizes(&scenario).ok(), ..PlanOptions::default() };
    let plan = plan(&scenario, &options).ok()?;
    (plan.losses() == losses).then_some((scenario, sets))
}

/// The scenario with the smallest buffers for which the plan says never, to 2 %; `None` if it says so for none.
fn tightest(text: &str, sets: &[String], switches: &[&str]) -> Option<(Scenario, Vec<String>)> {
    let with = |buffer| with_verdict(Losses::Never, buffer, (text, sets, switches));
    let mut found = with(BUFFER_MAX)?;
    let (mut low, mut high) = (1_000, BUFFER_MAX);
    while high * 50 > low * 51 {
        let middle = (low * high).isqrt();
        match with(middle) {
            Some(smaller) => (found, high) = (smaller, middle),
            None => low = middle + 1,
        }
    }
    Some(found)
}

/// The scenario with the largest buffers for which the plan says always, to a half; `None` if it says so for none.
fn widest(text: &str, sets: &[String], switches: &[&str]) -> Option<(Scenario, Vec<String>)> {
    (0..7).rev().find_map(|halvings| with_verdict(Losses::Always, 8_000 << halvings, (text, sets, switches)))
}

/// Whatever the topology, workload, policy, sizes, scheme and technique: where the plan says never, no frame is dropped, and where
/// it says always, some are. Each scenario has the smallest buffers, or the largest, with that promise.
#[test]
fn never_is_never_and_always_always() {
    write_table();
    let table = format!("{{distribution='file', path='{TABLE}'}}");
    let mut state = 7_u64;
    let mut pick = |choices: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % choices
    };
    let (mut proven, mut certain) = (0, 0);
    for _ in 0..CASES {
        let topology = ["star", "racks", "hybrid", "leaf-spine"];
        let topology = topology[pick(topology.len())];
        let workload = ["event-building", "push", "fixed-fragment", "fixed-block", "all-to-all"];
        let workload = workload[pick(workload.len())];
        let topology = if workload.starts_with("fixed") { "star" } else { topology };
        let policy = ["fcfs", "random", "node-round-robin", "node-load-balancing", "unit-round-robin"];
        let policy = policy[pick(policy.len())];
        let arrivals = ["periodic", "on-demand", "poisson"];
        let arrivals = arrivals[pick(arrivals.len())];
        let size = [
            "100 B",
            "1 kB",
            "1.6 kB",
            "4 kB",
            "{distribution='empirical', edges=['100 B', '1 kB', '9 kB'], counts=[95, 5]}",
            "{distribution='empirical', edges=['1 B', '1 B', '1448 B', '30 kB'], counts=[50, 45, 5]}",
            &table,
            "{distribution='log-normal', mean='1 kB', sigma=0.5, fragment_sd='100 B'}",
        ];
        let size = size[pick(size.len())];
        let scheme = ["dedicated", "shared", "dynamic-threshold", "voq", "daqring"];
        let scheme = scheme[pick(scheme.len())];
        let technique = [
            &[][..],
            &["transport.congestion_control=static", "transport.static_window=1"],
            &["transport.congestion_control=static", "transport.static_window=4"],
            &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold"],
            &["transport.congestion_control=diatcp"],
            &["transport.congestion_control=swift"],
            &["shaping.credits=4"],
            &["shaping.credits=8"],
            &["shaping.method=fastpass"],
            &["tor.pause.mode=pause", "tor.pause.xoff=6 kB", "tor.pause.xon=3 kB"],
            &["transport.profile=linux-2.6.32"],
            &["transport.profile=textbook", "transport.rto_min=10 ms"],
            &["transport.initial_window=64"],
            &["transport.receive_window=4 kB"],
            &["transport.rto_min=20 ms", "transport.delayed_ack=false"],
            &["transport.rto_min=20 ms", "transport.delayed_ack_timeout=1 ms"],
        ];
        let technique = technique[pick(technique.len())];
        let more = [
            &[][..],
            &["logger.link.rate=100 Mb/s", "logger.accept=1"],
            &["supervisor.link.rate=100 Mb/s", "supervisor.clear_group=1"],
            &["tor.frame_overhead=200 B"],
            &["tor.latency=100 us", "tor.count_in_service=false"],
            &["transport.offload_burst=64 kB", "transport.receive_offload=true"],
            &["transport.mtu=9 kB"],
            &["link.rate=100 Mb/s"],
            &["collectors.racks=2", "readout.response_delay_sd=100 us"],
        ];
        let more = more[pick(more.len())];
        let (everywhere, seed) = (pick(2) == 0, pick(1000) as u64);
        let mut sets = vec![
            format!("supervisor.policy={policy}"),
            format!("supervisor.arrivals={arrivals}"),
            format!("readout.fragment_size={size}"),
        ];
        let switches: &[&str] = match topology {
            "star" => &["tor"],
            "leaf-spine" => &["tor", "leaf", "spine"],
            _ => &["tor", "core", "aggregation"],
        };
        let switches = &switches[..if everywhere { switches.len() } else { 1 }];
        sets.extend(switches.iter().map(|switch| format!("{switch}.buffering={scheme}")));
        if pick(2) == 0 {
            sets.push("network.flow_distribution=ecmp".to_owned());
        }
        sets.extend(technique.iter().chain(more).map(|&set| set.to_owned()));
        if let Some((scenario, sets)) = widest(&small(topology, workload), &sets, switches) {
            certain += 1;
            assert!(drops(&scenario, seed) > 0, "{topology} {workload} {sets:?}");
        }
        if let Some((scenario, sets)) = tightest(&small(topology, workload), &sets, switches) {
            proven += 1;
            assert_eq!(drops(&scenario, seed), 0, "{topology} {workload} {sets:?}");
        }
    }
    assert!(proven > CASES / 6, "only {proven} of {CASES} are proven");
    assert!(certain > CASES / 20, "only {certain} of {CASES} are certain to lose");
}
