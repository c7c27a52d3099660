//! What holds for every technique, whatever its settings: nothing is faster than the wire, no queue is above its limit, all that
//! was asked for arrives, and the same seed gives the same run. That no byte is lost or invented every run asserts by itself.

use fanin_scenario::{Scenario, load_text};
use fanin_sim::{Control, End, Outcome, run};
use proptest::prelude::*;

/// Settings that choose a technique, each with two that vary.
const TECHNIQUES: [&[&str]; 12] = [
    &[],
    &["transport.congestion_control=static"],
    &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold"],
    &["transport.ecn=true", "tor.ecn.mode=red-mark"],
    &["tor.ecn.mode=red-drop", "tor.ecn.gentle=true"],
    &["transport.congestion_control=m21tcp", "tor.m21=true"],
    &["transport.congestion_control=m21tcp", "tor.m21=true", "transport.m21tcp.rewrite_echo=true"],
    &[
        "transport.congestion_control=diatcp",
        "transport.diatcp.deadline_aware=true",
        "workload.deadline=5 ms",
    ],
    &["transport.congestion_control=ictcp"],
    &["transport.congestion_control=swift"],
    &["transport.congestion_control=sird"],
    &["tor.pause.mode=pause", "tor.pause.xoff=6 kB", "tor.pause.xon=3 kB"],
];

fn scenario(sets: &[String]) -> Scenario {
    match load_text("test", "extends = \"incast\"", sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn outcome(scenario: &Scenario, seed: u64) -> Outcome {
    run(scenario, seed, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn whatever_the_technique(
        technique in 0..TECHNIQUES.len(),
        profile in prop::sample::select(vec!["ns3-newreno", "linux-2.6.32", "linux-6", "textbook"]),
        senders in 1..50_u32,
        kilobytes in 1..80_u32,
        buffer in prop::sample::select(vec!["16 kB", "64 kB", "1 MB"]),
        buffering in prop::sample::select(vec!["dedicated", "shared", "dynamic-threshold"]),
        counts: bool,
        delayed: bool,
        rto_ms in prop::sample::select(vec![1, 10, 200]),
        seed in 0..1000_u64,
    ) {
        let mut sets: Vec<String> = TECHNIQUES[technique].iter().map(|&set| set.to_owned()).collect();
        sets.extend([
            "run.duration=30 ms".to_owned(),
            format!("transport.profile={profile}"),
            format!("workload.senders={senders}"),
            format!("workload.request_size={kilobytes} kB"),
            format!("tor.buffer={buffer}"),
            format!("tor.buffering={buffering}"),
            format!("tor.count_in_service={counts}"),
            format!("transport.delayed_ack={delayed}"),
            format!("transport.rto_min={rto_ms} ms"),
        ]);
        let scenario = scenario(&sets);
        let first = outcome(&scenario, seed);
        prop_assert_eq!(&first.end, &End::Complete, "{:?}", sets);
        for row in &first.records.events {
            if let (Some(time), Some(ideal)) = (row.collection_time_ps, row.ideal_ps) {
                prop_assert!(time >= ideal, "{:?} {:?}", sets, row);
            }
        }
        let network = first.summary.network.clone().unwrap();
        prop_assert!(network.queue_bytes_max.unwrap() <= scenario.tor.buffer.get(), "{:?} {:?}", sets, network);
        let again = outcome(&scenario, seed);
        prop_assert_eq!(&first.records, &again.records);
        prop_assert_eq!(&first.summary.techniques, &again.summary.techniques);
    }
}

/// An answer shorter than a segment takes less than one on the links before the last: seed 229 was faster than an ideal that
/// did not know.
#[test]
fn short_answers_have_a_shorter_ideal() {
    let sets = ["run.duration=30 ms", "workload.senders=13", "workload.request_size=1 kB"];
    let outcome = outcome(&scenario(&sets.map(str::to_owned)), 229);
    assert!(outcome.records.events.len() > 50);
    for row in &outcome.records.events {
        assert!(row.collection_time_ps >= row.ideal_ps, "{row:?}");
    }
    // Four times 25 us; a request of 284 B over two links, an answer of 1078 B over the first, thirteen of them over the last.
    let ideal_ps = 100_000_000 + (2 * 142 + 1078 + 13 * 1078) * 8_000;
    assert_eq!(outcome.records.events[0].ideal_ps, Some(ideal_ps));
}
