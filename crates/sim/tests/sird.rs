//! SIRD in whole runs: bounded queues, no loss, recovery where there is one, and its figures.

use fanin_report::Summary;
use fanin_scenario::{Scenario, load_text};
use fanin_sim::{RunControl, RunEnd, RunOutcome, run};
use proptest::prelude::*;

fn scenario(preset: &str, sets: &[String]) -> Scenario {
    let mut all = vec!["transport.congestion_control=sird".to_owned()];
    all.extend_from_slice(sets);
    match load_text("test", &format!("extends = \"{preset}\""), &all) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn outcome(preset: &str, sets: &[&str]) -> RunOutcome {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let outcome =
        run(&scenario(preset, &sets), 1, &RunControl::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.end, RunEnd::Complete, "{sets:?}");
    assert_not_too_fast(&outcome);
    outcome
}

fn assert_not_too_fast(outcome: &RunOutcome) {
    for row in &outcome.records.events {
        if let (Some(time), Some(ideal)) = (row.collection_time_ps, row.ideal_ps) {
            assert!(time >= ideal, "faster than the wire: {row:?}");
        }
    }
}

fn figure(summary: &Summary, figure: &str) -> f64 {
    summary.techniques["sird"][figure].as_f64().unwrap_or_else(|| panic!("no {figure}"))
}

/// An answer takes 21 s, sixteen times the limit and more, and nothing else moves.
#[test]
fn a_long_answer_is_not_stalled() {
    let sets = ["workload.senders=1", "workload.request_size=25 MB", "run.duration=100 ms", "run.warmup=0 s"];
    let slow = ["link.rate=10 Mb/s", "readout.link.rate=10 Mb/s", "run.stall_limit=1 s"];
    outcome("incast", &[&sets[..], &slow].concat());
}

#[test]
fn an_incast_of_any_size_fits_a_shallow_buffer() {
    for senders in ["4", "32", "128"] {
        let senders = format!("workload.senders={senders}");
        let sets = ["run.duration=200 ms", &senders, "workload.request_size=64 kB", "tor.buffer=64 kB"];
        let incast = outcome("incast", &sets);
        let network = incast.summary.network.clone().unwrap();
        assert_eq!(network.drops, Some(0), "{senders}");
        // The bucket, and the packets with which all senders may ask at once.
        assert!(network.queue_bytes_max.unwrap() < 40_000, "{senders} {network:?}");
        assert!(
            figure(&incast.summary, "credit_outstanding_bytes_max")
                <= figure(&incast.summary, "bucket_bytes_max")
        );
        assert_eq!(figure(&incast.summary, "timeouts"), 0.0);
        let times = incast.summary.requests.as_ref().unwrap().time_ms.clone().unwrap();
        assert!(times.max < 1.15 * times.ideal.unwrap() + 0.3, "{senders} {times:?}");
        // TCP carried nothing, and has no figures.
        assert!(incast.summary.tcp.is_none());
    }
}

#[test]
fn the_rack_of_the_thesis_without_any_other_shaping() {
    let sets = ["run.duration=200 ms", "run.warmup=100 ms", "supervisor.policy=node-round-robin"];
    let rack = outcome("thesis-a-1000hz", &sets);
    assert_eq!(rack.summary.network.as_ref().unwrap().drops, Some(0));
    let events = rack.summary.events.as_ref().unwrap();
    assert_eq!((events.collected, events.lost), (events.assigned, 0));
    let times = rack.summary.collection_time_ms.as_ref().unwrap();
    assert!(times.mean < 1.2 * times.ideal.unwrap(), "{times:?}");
}

#[test]
fn streams_of_many_messages_come_through_loss() {
    let sets = [
        "run.duration=100 ms",
        "supervisor.policy=node-round-robin",
        "supervisor.rate=200 Hz",
        "collectors.hosts_per_rack=8",
        "logger.accept=0.2",
        "tor.buffer=6 kB",
        "tor.uplink_buffer=8 kB",
    ];
    let rack = outcome("thesis-a-1000hz", &sets);
    assert!(rack.summary.network.as_ref().unwrap().drops.unwrap() > 50);
    assert!(figure(&rack.summary, "retransmits") > 20.0, "{:?}", rack.summary.techniques);
    let events = rack.summary.events.as_ref().unwrap();
    assert_eq!((events.collected, events.lost, events.duplicated), (events.assigned, 0, 0));
    assert!(rack.records.events.iter().any(fanin_report::EventRow::has_timeouts));
}

#[test]
fn credit_goes_to_the_smallest_or_to_all_in_turn() {
    let sets = |policy| ["run.duration=100 ms", "workload.senders=8", "workload.request_size=100 kB", policy];
    let smallest = outcome("incast", &sets("transport.sird.policy=smallest-remaining"));
    let turns = outcome("incast", &sets("transport.sird.policy=round-robin"));
    let completed = |outcome: &RunOutcome| outcome.summary.requests.as_ref().unwrap().completed;
    // A barrier waits for the last answer, so that the order matters little.
    assert!(completed(&smallest).abs_diff(completed(&turns)) <= 2);
    assert_ne!(smallest.records.events, turns.records.events);
}

#[test]
fn marks_and_full_senders_make_buckets_smaller() {
    // Every host sends to all others at once.
    let sets = [
        "run.duration=100 ms",
        "tor.buffering=dedicated",
        "tor.buffer=1 MB",
        "transport.sird.sender_threshold=0.2",
        "tor.ecn.mode=threshold",
        "tor.ecn.threshold=2",
    ];
    let rack = outcome("lcn15-all-to-all", &sets);
    assert!(figure(&rack.summary, "congested_senders_share") > 0.01, "{:?}", rack.summary.techniques);
    assert!(rack.summary.network.as_ref().unwrap().ecn_marks.unwrap() > 0);
}

#[test]
fn small_messages_need_no_credit() {
    let sets = ["run.duration=20 ms", "workload.senders=4", "workload.request_size=4 kB"];
    let incast = outcome("incast", &sets);
    assert_eq!(figure(&incast.summary, "credit_bytes"), 0.0);
    assert!(figure(&incast.summary, "unscheduled_bytes") > 1e6);
    let mut scheduled = sets.to_vec();
    scheduled.push("transport.sird.unscheduled=0");
    let incast = outcome("incast", &scheduled);
    assert_eq!(figure(&incast.summary, "unscheduled_bytes"), 0.0);
}

#[test]
fn a_capture_is_refused() {
    let control = RunControl { capture: true, ..RunControl::default() };
    let error = run(&scenario("incast", &[]), 1, &control).unwrap_err();
    assert!(error.to_string().contains("record.capture"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    /// All data arrive in spite of losses. Every run asserts that no byte and no credit is lost.
    #[test]
    fn finishes_under_loss(
        senders in 1..50_u32,
        kilobytes in 1..80_u32,
        buffer in prop::sample::select(vec!["3 kB", "6 kB", "64 kB"]),
        bucket in prop::sample::select(vec!["0.1", "1.5", "20"]),
        unscheduled in prop::sample::select(vec!["0", "1", "100"]),
        policy in prop::sample::select(vec!["smallest-remaining", "round-robin"]),
        seed in 0..1000_u64,
    ) {
        let sets = [
            "run.duration=30 ms".to_owned(),
            format!("workload.senders={senders}"),
            format!("workload.request_size={kilobytes} kB"),
            format!("tor.buffer={buffer}"),
            format!("transport.sird.bucket={bucket}"),
            format!("transport.sird.unscheduled={unscheduled}"),
            format!("transport.sird.policy={policy}"),
            "transport.sird.timeout=1 ms".to_owned(),
        ];
        let scenario = scenario("incast", &sets);
        let first = run(&scenario, seed, &RunControl::default()).unwrap();
        prop_assert_eq!(&first.end, &RunEnd::Complete, "{:?}", sets);
        assert_not_too_fast(&first);
        let queue = first.summary.network.as_ref().unwrap().queue_bytes_max.unwrap();
        prop_assert!(queue <= scenario.tor.buffer.get());
        let again = run(&scenario, seed, &RunControl::default()).unwrap();
        prop_assert_eq!(&first.records, &again.records);
        prop_assert_eq!(&first.summary.techniques, &again.summary.techniques);
    }
}
