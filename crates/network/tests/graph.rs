//! Properties of the graph of every shipped scenario, and of random ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use fanin_network::{
    DataPaths, Ideal, LINKS_MAX, Network, NetworkError, PortIndex, Roles, SegmentFraming, connections,
    find_routes, topology,
};
use fanin_scenario::{Buffering, Scenario, ShapingMethod, load, role_configs};
use fanin_units::{Bytes, Duration};
use proptest::prelude::*;

/// The time of one frame along a path with empty queues: transmission on every link, plus all delays.
fn pass(network: &Network, path: &[PortIndex], frame: Bytes) -> Duration {
    let hop = |&port: &PortIndex| {
        let link = network.link(port);
        link.rate.time_to_send(frame) + link.delay + network.latency(port)
    };
    path.iter().map(hop).sum()
}

/// Compares a scenario's facts about its topology with the graph.
fn compare_facts(scenario: &Scenario, network: &Network) {
    let facts = scenario.topology_facts();
    let sections: BTreeSet<&str> = network.switches_used().map(|kind| kind.section()).collect();
    assert_eq!(facts.switches.iter().copied().collect::<BTreeSet<_>>(), sections, "sections of switches");
    let has_uplinks = network.ports().any(|port| network.is_uplink(port));
    assert_eq!(facts.reads("uplink"), has_uplinks, "uplinks");
}

/// Compares the rate at which each collector may request with its part of its host's links.
fn compare_rates(scenario: &Scenario, network: &Network, roles: &Roles) {
    let mut paced = scenario.clone();
    paced.shaping.method = ShapingMethod::PacedCredits;
    for (place, &host) in (0..).zip(&roles.collectors) {
        let links = network.ports().filter(|&port| network.source(port) == host);
        let rate: u64 = links.map(|port| network.link(port).rate.get()).sum();
        let sharing = roles.collectors.iter().filter(|&&other| other == host).count() as u64;
        let config = role_configs::collector(&paced, place, Vec::new()).unwrap();
        let paced = config.paced_credits.unwrap();
        assert_eq!(paced.rate.get(), rate / sharing, "collector {place}");
    }
}

/// Checks the graph, and the routes of all connections. Returns the number of routes that pass a software switch.
fn check(scenario: &Scenario) -> usize {
    let (network, roles) = topology::build(scenario).unwrap();
    compare_facts(scenario, &network);
    if !scenario.is_barrier() {
        compare_rates(scenario, &network, &roles);
    }
    let segments = SegmentFraming::of(&scenario.transport, network.framing);
    assert_eq!(scenario.full_frame_wire(), segments.wire_max(), "a full frame");
    let names: BTreeSet<&str> = network.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(names.len(), network.nodes.len(), "names are unique");
    for port in network.ports() {
        let back = port ^ 1;
        assert_eq!(
            (network.source(port), network.destination(port)),
            (network.destination(back), network.source(back))
        );
        assert!(std::ptr::eq(network.link(port), network.link(back)), "one link, both ways");
        let has_buffer = network.output_buffer(port).is_some();
        let kind = network.switch(network.source(port));
        assert_eq!(has_buffer, kind.is_some_and(|kind| kind.settings.buffering == Buffering::Dedicated));
    }

    let connections = connections(scenario, &roles);
    assert_eq!(connections.len() as u64, scenario.connections_total());
    let mut found = vec![[None; 2]; connections.len()];
    let (mut redirected, mut shortest) = (0, Duration::new(u64::MAX));
    // An empty request, and an answer of one segment.
    let headers = 38 + 40 + scenario.transport.option_bytes().get();
    let payload = scenario.transport.segment_payload().get().min(1000);
    let (request, answer) = (Bytes::new(84), Bytes::new((headers + payload).max(84)));
    let mut there = vec![Duration::ZERO; connections.len()];
    let outcome = find_routes(scenario, &network, &roles, &connections, |route| {
        let connection = &connections[route.connection];
        let [from, to] = [connection.nodes[route.side], connection.nodes[1 - route.side]];
        assert!(
            found[route.connection][route.side].replace(route.path.len()).is_none(),
            "each is found once"
        );
        if from == to {
            assert!(route.path.is_empty());
            return Ok::<_, NetworkError>(ControlFlow::Continue(()));
        }
        assert_eq!(network.source(route.path[0]), from, "a path begins at its sender");
        assert_eq!(network.destination(*route.path.last().unwrap()), to, "a path ends at its receiver");
        for hop in route.path.windows(2) {
            assert_eq!(network.destination(hop[0]), network.source(hop[1]), "hops follow each other");
            assert!(!network.is_host(network.source(hop[1])), "hosts do not forward");
        }
        let ports: BTreeSet<PortIndex> = route.path.iter().copied().collect();
        assert_eq!(ports.len(), route.path.len(), "a path uses a port once");
        let nodes: BTreeSet<u32> = route.path.iter().map(|&port| network.source(port)).collect();
        let is_redirected = roles.software.is_some_and(|software| nodes.contains(&software));
        // A redirected path passes the core twice, and no other node.
        assert_eq!(nodes.len() + usize::from(is_redirected), route.path.len(), "a path has no loop");
        redirected += usize::from(is_redirected);
        if connection.roles[0].0 == "collector" && connection.roles[1].0 == "readout" {
            let frame = [request, answer][route.side];
            there[route.connection] += pass(&network, route.path, frame);
        }
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    assert!(outcome.is_continue());
    assert!(found.iter().flatten().all(Option::is_some), "every host reaches every peer");

    for (connection, time) in connections.iter().zip(there) {
        let is_data = connection.roles[0].0 == "collector" && connection.roles[1].0 == "readout";
        if is_data && connection.nodes[0] != connection.nodes[1] {
            shortest = shortest.min(time);
        }
    }
    // No collection is faster than the fastest path. The ideal is that of the nearest pair, without detours.
    let ideal = Ideal::new(scenario, &network, &roles, Duration::ZERO, 0, payload).unwrap();
    // A readout on the host of its only collectors is asked without a network.
    if network.framing == fanin_network::FrameOverhead::ETHERNET && shortest < Duration::new(u64::MAX) {
        let time = ideal.time(ideal.segments().wire_bytes(payload));
        assert!(time <= shortest + Duration::from_micros(1), "{time} of {shortest}");
        if redirected == 0 {
            // The request carries TCP's options, and its frame may be longer than the minimum of 84 bytes.
            assert!(time >= shortest, "{time} of {shortest}");
        }
    }
    redirected
}

#[test]
fn shipped_scenarios_are_sound() {
    for name in fanin_scenario::presets().iter().map(|preset| preset.name) {
        let scenario = load(name, &[]).unwrap().scenario;
        // Another test counts the connections of the largest; a corner of it is enough here.
        let sets: Vec<String> = if scenario.connections_total() > 200_000 {
            vec!["collectors.racks=3".to_owned(), "collectors.hosts_per_rack=4".to_owned()]
        } else {
            Vec::new()
        };
        check(&load(name, &sets).unwrap().scenario);
    }
    let small = load("thesis-a-1000hz", &["transport.mss=576 B".to_owned()]).unwrap().scenario;
    assert_eq!(small.full_frame_wire(), Bytes::new(654));
    check(&small);
}

/// A preset of each topology, and the star whose collectors share hosts.
const PRESETS: [&str; 5] = ["thesis-a-1000hz", "leaf-spine", "multihost", "replay", "lcn15-all-to-all"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_size_of_any_topology_is_sound(
        preset in prop::sample::select(PRESETS.to_vec()),
        racks in 1_u32..5, per_rack in 1_u32..5, readouts in 1_u32..30, links in 1_u32..4,
        group in 0_u32..9, cores in 1_u32..4, uplinks in 1_u32..3, ecmp: bool,
    ) {
        let mut scenario = load(preset, &[]).unwrap().scenario;
        let is_star = ["replay", "lcn15-all-to-all"].contains(&preset);
        scenario.collectors.racks = if is_star { 1 } else { racks };
        scenario.collectors.hosts_per_rack = per_rack;
        scenario.readout.hosts = readouts;
        scenario.readout.links_per_host = links;
        scenario.network.readouts_per_group = group;
        scenario.network.cores = if preset == "multihost" { 1 } else { cores };
        scenario.network.uplinks_per_core = uplinks;
        if ecmp {
            scenario.network.flow_distribution = fanin_scenario::FlowDistribution::Ecmp;
        }
        let redirected = check(&scenario);
        prop_assert_eq!(redirected > 0, preset == "multihost");
    }
}

/// The network is refused at its first link too many, with the key that asks for most links.
#[test]
fn networks_of_too_many_links_are_refused() {
    let scenario = |preset: &str, sets: &[&str]| {
        load(preset, &sets.iter().map(|&set| set.to_owned()).collect::<Vec<_>>()).unwrap().scenario
    };
    let cases: [(&str, &[&str], &str); 3] = [
        // 1024 racks with 64 links to each of 64 cores.
        (
            "thesis-a-1000hz",
            &[
                "network.cores=64",
                "network.uplinks_per_core=64",
                "network.readouts_per_group=0",
                "collectors.racks=1024",
            ],
            "network.uplinks_per_core",
        ),
        // 819200 collectors, 16 links of each of 65535 readouts, and 64 links of each of 4096 racks.
        (
            "multihost",
            &[
                "network.uplinks_per_core=64",
                "network.readouts_per_group=0",
                "readout.links_per_host=16",
                "readout.hosts=65535",
                "collectors.racks=4096",
                "collectors.hosts_per_rack=200",
            ],
            "network.uplinks_per_core",
        ),
        // 64 planes, each with 64 × 1024 links between leaf and spine switches.
        (
            "leaf-spine",
            &["network.leaf_spine.planes=64", "network.leaf_spine.pods=64", "network.leaf_spine.spines=1024"],
            "network.leaf_spine.planes",
        ),
    ];
    for (preset, sets, key) in cases {
        assert_eq!(
            topology::build(&scenario(preset, sets)).unwrap_err(),
            NetworkError::Links { key },
            "{preset}"
        );
    }
}

#[test]
fn a_network_of_the_most_links_is_built() {
    let build = |collectors: u32| {
        let mut scenario = load("replay", &["readout.links_per_host=16".to_owned()]).unwrap().scenario;
        scenario.readout.hosts = 65_535;
        scenario.logger.hosts = 1;
        scenario.collectors.racks = 1;
        scenario.collectors.hosts_per_rack = collectors;
        topology::build(&scenario)
    };
    // Besides the collectors': 16 links of each readout, and the supervisor's and the logger's.
    let last = (LINKS_MAX - 16 * 65_535 - 2) as u32;
    assert_eq!(build(last + 1).unwrap_err(), NetworkError::Links { key: "readout.links_per_host" });
    assert_eq!(build(last).unwrap().0.links.len(), LINKS_MAX);
}

/// Recomputes the classes of links from the paths of all pairs of hosts, one by one.
fn recount(scenario: &Scenario) {
    let (network, roles) = topology::build(scenario).unwrap();
    let connections = connections(scenario, &roles);
    let mut crossed: BTreeMap<String, (BTreeSet<PortIndex>, f64)> = BTreeMap::new();
    let mut pairs = 0.0;
    let _ = find_routes(scenario, &network, &roles, &connections, |route| {
        let connection = &connections[route.connection];
        let is_data = connection.roles.map(|(role, _)| role) == ["collector", "readout"] && route.side == 1;
        if !is_data || route.path.is_empty() {
            return Ok::<_, NetworkError>(ControlFlow::Continue(()));
        }
        pairs += 1.0;
        for (hop, &port) in route.path.iter().enumerate() {
            let from = if hop == 0 { "readout" } else { network.kind_name(network.source(port)) };
            let is_last = hop + 1 == route.path.len();
            let onto = if is_last { "collector" } else { network.kind_name(network.destination(port)) };
            let class = crossed.entry(format!("{from}->{onto}")).or_default();
            class.0.insert(port);
            class.1 += 1.0;
        }
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    let data = DataPaths::new(scenario, &network, &roles).unwrap();
    let names: BTreeSet<&str> = data.classes.iter().map(|class| &*class.name).collect();
    for name in crossed.keys() {
        assert!(names.contains(&**name), "{name} is missing");
    }
    for class in &data.classes {
        let Some((ports, share)) = crossed.get(&class.name) else {
            panic!("{} carries no data", class.name);
        };
        // Few connections need not use every link; no other link is used.
        assert!(ports.len() as u64 <= class.count, "{}: {} of {}", class.name, ports.len(), class.count);
        let share = share / pairs;
        assert!((class.share.as_f64() - share).abs() < 2e-6, "{}: {} of {share}", class.name, class.share);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The share of the data on each class of links equals the sum over all paths, one by one.
    #[test]
    fn classes_of_links_are_those_of_all_paths(
        preset in prop::sample::select(vec!["thesis-a-1000hz", "leaf-spine", "multihost", "incast", "lcn15-all-to-all"]),
        racks in 1_u32..6, per_rack in 1_u32..5, readouts in 2_u32..30, links in 1_u32..4, group in 0_u32..9,
        cores in 1_u32..4, uplinks in 1_u32..3, pods in 1_u32..4, planes in 1_u32..3, spines in 1_u32..4, ecmp: bool,
    ) {
        let mut scenario = load(preset, &[]).unwrap().scenario;
        if matches!(preset, "thesis-a-1000hz" | "leaf-spine" | "multihost") {
            scenario.collectors.racks = racks;
            scenario.collectors.hosts_per_rack = per_rack;
        }
        scenario.readout.hosts = readouts;
        scenario.workload.senders = readouts;
        scenario.readout.links_per_host = if preset == "leaf-spine" { 1 } else { links };
        scenario.network.readouts_per_group = group;
        scenario.network.cores = if preset == "multihost" { 1 } else { cores };
        scenario.network.uplinks_per_core = uplinks;
        let leaf_spine = &mut scenario.network.leaf_spine;
        (leaf_spine.pods, leaf_spine.planes, leaf_spine.spines) = (pods, planes, spines);
        if ecmp {
            scenario.network.flow_distribution = fanin_scenario::FlowDistribution::Ecmp;
        }
        recount(&scenario);
    }
}
