//! The plan never promises what the simulation breaks: where it says that no frame is lost, none is.

use fanin_plan::{BurstOutcome, Losses, Options, plan};
use fanin_scenario::{Scenario, load, load_text};
use fanin_sim::{RunControl, run};

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
        let plan = plan(&scenario, &Options::default()).unwrap();
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
        ("thesis-a-1000hz", &["shaping.credits=240", "run.duration=20 ms", "run.warmup=1 ms"]),
    ] {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = load(name, &sets).unwrap().scenario;
        let plan = plan(&scenario, &Options::default()).unwrap();
        assert_eq!(plan.losses(), Losses::Never, "{name} {sets:?}: {:?}", plan.proof);
        assert_eq!(drops(&scenario, 1), 0, "{name} {sets:?}");
    }
}

/// A small system, whose buffers are about as large as what is on its way.
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

/// Scenarios that are drawn at random; most of them promise nothing.
const CASES: u32 = 400;

/// Whatever the topology, workload, policy, sizes, scheme and technique: where the plan says never, no frame is dropped.
#[test]
fn never_is_never() {
    let mut state = 7_u64;
    let mut pick = |choices: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % choices
    };
    let mut proven = 0;
    for _ in 0..CASES {
        let topology = ["star", "racks", "hybrid", "leaf-spine"];
        let topology = topology[pick(topology.len())];
        let workload = ["event-building", "push", "fixed-fragment", "fixed-block", "all-to-all"];
        let workload = workload[pick(workload.len())];
        let policy = ["fcfs", "random", "node-round-robin", "node-load-balancing", "unit-round-robin"];
        let policy = policy[pick(policy.len())];
        let arrivals = ["periodic", "on-demand"];
        let arrivals = arrivals[pick(arrivals.len())];
        let size = [
            "100 B",
            "1 kB",
            "1.6 kB",
            "4 kB",
            "{distribution='log-normal', mean='1 kB', sigma=0.5, fragment_sd='100 B'}",
            "{distribution='polynomial', offset='200 B', slope='500 B', sigma=0.3}",
        ];
        let size = size[pick(size.len())];
        let scheme = ["dedicated", "shared", "dynamic-threshold", "voq", "daqring", "unlimited"];
        let scheme = scheme[pick(scheme.len())];
        let buffer = [20_u64, 60, 120, 250, 500, 1000, 4000];
        let buffer = buffer[pick(buffer.len())];
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
            &["transport.profile=linux-6"],
            &["transport.profile=textbook", "transport.rto_min=10 ms"],
            &["transport.initial_window=64"],
        ];
        let technique = technique[pick(technique.len())];
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
        for switch in &switches[..if everywhere { switches.len() } else { 1 }] {
            sets.push(format!("{switch}.buffering={scheme}"));
            sets.push(format!("{switch}.buffer={buffer} kB"));
        }
        if pick(2) == 0 {
            sets.push("network.flow_distribution=ecmp".to_owned());
        }
        sets.extend(technique.iter().map(|&set| set.to_owned()));
        let Ok(loaded) = load_text("small", &small(topology, workload), &sets) else { continue };
        let Ok(plan) = plan(&loaded.scenario, &Options::default()) else { continue };
        if plan.losses() == Losses::Never {
            let drops = drops(&loaded.scenario, seed);
            proven += 1;
            assert_eq!(drops, 0, "{:?} {}", sets, plan.verdict().1);
        }
    }
    assert!(proven > CASES / 10, "only {proven} of {CASES} are proven");
}
