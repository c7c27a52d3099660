//! Laws that hold for random scenarios and networks, between two runs or within the records of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanin_network::{Link, Network, Node, NodeIndex, NodeKind, Roles, topology};
use fanin_report::{Records, Summary};
use fanin_scenario::{Scenario, load_text};
use fanin_sim::{RecordedSizes, RunControl, RunEnd, RunOutcome, run_on};
use fanin_units::Duration;
use proptest::prelude::*;

/// The random scenarios of each law. `.ci/nightly` tries more.
fn cases() -> u32 {
    std::env::var("FANIN_LAWS_CASES").map_or(48, |cases| cases.parse().expect("a number of cases"))
}

/// A star of senders that answer one collector at a barrier, or a star in which three collectors build events.
fn star(is_barrier: bool, senders: u32, kilobytes: u32, buffer: u32, more: &[&str]) -> Scenario {
    let workload = if is_barrier {
        format!(
            "extends = \"incast\"\n[workload]\nsenders = {senders}\nrequest_size = \"{} kB\"\n",
            senders * kilobytes
        )
    } else {
        format!(
            "[readout]\nhosts = {senders}\nfragment_size = \"{kilobytes} kB\"\nfragments_per_host = 1\nresponse_delay_sd = \"50 us\"\n\
             response_delay = \"200 us\"\n[collectors]\nracks = 1\nhosts_per_rack = 3\nunits_per_host = 4\nprocessing_time = \"2 ms\"\n\
             [supervisor]\nrate = \"300 Hz\"\narrivals = \"poisson\"\n[network]\ntopology = \"star\"\n"
        )
    };
    // Timers that expire in the same tick would be a tie, which the hosts' names decide.
    let text = format!(
        "{workload}[run]\nduration = \"60 ms\"\nwarmup = \"0 s\"\n[transport]\ntimer_granularity = \"1 ps\"\n\
         [tor]\nbuffering = \"shared\"\nbuffer = \"{buffer} kB\"\n"
    );
    let sets: Vec<String> = more.iter().map(|&set| set.to_owned()).collect();
    load_text("test", &text, &sets).unwrap_or_else(|errors| panic!("{}", errors.render(false))).scenario
}

/// The scenario's network with a delay of its own for each link, in ps.
fn network(scenario: &Scenario, delays: &[u64]) -> (Network, Roles) {
    let (mut network, roles) = topology::build(scenario).unwrap();
    for (link, &delay) in network.links.iter_mut().zip(delays.iter().cycle()) {
        link.delay = Duration::new(delay);
    }
    (network, roles)
}

fn play(
    scenario: &Scenario,
    seed: u64,
    network: &Network,
    roles: &Roles,
    control: &RunControl<'_>,
) -> RunOutcome {
    let outcome = run_on(scenario, &RecordedSizes::None, seed, control, network, roles).unwrap();
    assert_eq!(outcome.end, RunEnd::Complete);
    outcome
}

/// The results without those of ports, which have names, and those of the machine's speed.
fn figures(outcome: RunOutcome) -> (Summary, Records) {
    let mut summary = outcome.summary;
    (summary.speed, summary.ports) = (None, Vec::new());
    (summary, outcome.records)
}

/// Random delays of links, 5 to 60 us.
fn delays() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(5_000_000..60_000_000u64, 31)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Hosts that take one another's places take one another's results. Here each takes another's name. Each answer is one burst, and
    /// none is lost. Hosts that acknowledgements clock would meet at one picosecond, as sums of delays commute. Names decide such
    /// ties, and `ties.rs` shows that they do so fairly.
    #[test]
    fn permuted_hosts_give_permuted_results(
        is_barrier in any::<bool>(), senders in 2u32..12, kilobytes in 1u32..14, seed in 0u64..1000,
        delays in delays(), order in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let scenario = star(is_barrier, senders, kilobytes, 1000, &[]);
        let (network, roles) = network(&scenario, &delays);
        let mut renamed = network.clone();
        // The readouts in the order of `order`, the collectors turned by one.
        let collectors = roles.collectors.len();
        let places: Vec<NodeIndex> =
            order.iter().filter_map(|&place| roles.readouts.get(place)).copied()
            .chain((0..collectors).map(|place| roles.collectors[(place + 1) % collectors])).collect();
        let mut names: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
        for (&node, &place) in roles.readouts.iter().chain(&roles.collectors).zip(&places) {
            let name = &network.nodes[place as usize].name;
            renamed.nodes[node as usize].name.clone_from(name);
            names.insert(name.as_str().into(), network.nodes[node as usize].name.as_str().into());
        }
        let control = RunControl::default();
        let (summary, records) = figures(play(&scenario, seed, &network, &roles, &control));
        let (renamed_summary, mut renamed_records) = figures(play(&scenario, seed, &renamed, &roles, &control));
        for flow in &mut renamed_records.flows {
            for name in [&mut flow.source, &mut flow.destination] {
                *name = names.get(name).unwrap_or(name).clone();
            }
        }
        prop_assert_eq!(renamed_records.events, records.events);
        prop_assert_eq!(renamed_records.flows, records.flows);
        prop_assert_eq!(renamed_summary, summary);
    }

    /// A readout that no collector asks, and a rack of such hosts, change nothing.
    #[test]
    fn idle_hosts_and_racks_change_nothing(
        is_barrier in any::<bool>(), senders in 2u32..12, kilobytes in 4u32..40, buffer in 12u32..60, seed in 0u64..1000,
        delays in delays(), hosts in 1u32..4, racks in 0u32..2, more in 0usize..4,
    ) {
        let more: &[&str] = [
            &[][..],
            &["tor.ecn.mode=threshold", "transport.ecn=true"],
            &["tor.pause.mode=pause", "tor.pause.xoff=6 kB", "tor.pause.xon=3 kB"],
            &["tor.ecn.mode=red-drop"],
        ][more];
        let scenario = star(is_barrier, senders, kilobytes, buffer, more);
        let (network, roles) = network(&scenario, &delays);
        let mut larger = network.clone();
        let switch = larger.nodes.iter().position(|node| node.kind != NodeKind::Host).unwrap();
        let mut switches = vec![switch as NodeIndex];
        let mut add = |name: String, kind: NodeKind, to: NodeIndex| {
            larger.nodes.push(Node { name, kind });
            let node = larger.nodes.len() as NodeIndex - 1;
            let link = Link { ends: [node, to], ..network.links[0] };
            larger.links.push(link);
            node
        };
        for rack in 0..racks {
            let kind = network.nodes[switch].kind;
            switches.push(add(format!("idle-switch:{rack}"), kind, switches[0]));
        }
        for (number, host) in switches.iter().flat_map(|&switch| (0..hosts).map(move |_| switch)).enumerate() {
            add(format!("idle:{number}"), NodeKind::Host, host);
        }
        let control = RunControl::default();
        let (summary, records) = figures(play(&scenario, seed, &network, &roles, &control));
        let (mut larger_summary, larger_records) = figures(play(&scenario, seed, &larger, &roles, &control));
        if racks > 0 {
            // A network with uplinks has their load.
            let uplink = larger_summary.load.as_mut().and_then(|load| load.uplink.take());
            prop_assert_eq!(uplink, Some(0.0));
        }
        prop_assert_eq!(larger_records, records);
        prop_assert_eq!(larger_summary, summary);
    }

    /// Little's law for a switch's output: its mean occupancy is the rate of arrivals by the mean time of a frame in it. The queue's
    /// samples give the occupancy, captures of the links into and out of the switch the times.
    #[test]
    fn little_s_law_holds_for_queue_samples(
        senders in 1u32..5, kilobytes in 10u32..60, seed in 0u64..1000, delays in delays(), is_counted in any::<bool>(),
    ) {
        let mut scenario = star(true, senders, kilobytes, 10_000, &["record.queues=[\"tor->collector:0\"]"]);
        scenario.record.queue_interval = Duration::from_nanos(1009);
        scenario.workload.service_delay_max = Duration::from_micros(400);
        scenario.run.duration = Duration::from_millis(20);
        scenario.tor.count_in_service = is_counted;
        let (network, roles) = network(&scenario, &delays);
        let mut capture = |link: &str| {
            link.clone_into(&mut scenario.record.capture);
            let control = RunControl { capture: true, ..RunControl::default() };
            let outcome = play(&scenario, seed, &network, &roles, &control);
            // The other direction of the link is captured, too.
            let port = network.ports_named(link)[0];
            let frames = outcome.capture.unwrap().frames.into_iter().filter(|frame| frame.port == port);
            (frames.collect::<Vec<_>>(), outcome.records.queues)
        };
        let (out, samples) = capture("tor->collector:0");
        let to_collector: Vec<_> = (0..senders).flat_map(|sender| capture(&format!("readout:{sender}->tor:0")).0).collect();
        prop_assert_eq!(to_collector.len(), out.len(), "all frames pass the output");
        let link = network.links.iter().find(|link| link.ends.contains(&roles.collectors[0])).unwrap();
        // In frame picoseconds. A frame leaves with its last bit, or with its first one.
        let served = |bytes: u32| u64::from(bytes) * 8_000_000_000_000 / link.rate.get();
        let left: u64 = out
            .iter()
            .map(|frame| frame.at.get() - link.delay.get() - if is_counted { 0 } else { served(frame.wire_bytes) })
            .sum();
        let sojourn = left - to_collector.iter().map(|frame| frame.at.get()).sum::<u64>();
        let sampled = samples.iter().map(|sample| sample.queue_frames).sum::<u64>() * 1_009_000;
        // A sample finds a frame's time to a step of the samples, which is a matter of chance for each frame.
        let error = sampled.abs_diff(sojourn) as f64;
        let scatter = 1_009_000.0 * (out.len() as f64).sqrt();
        prop_assert!(error < 4.0 * scatter, "{sampled} against {sojourn} frame picoseconds, scatter {scatter}");
    }
}
