//! No event is faster than its own ideal, and no run than its bound, in any system.

use std::fmt::Write;

use fanin_scenario::{Scenario, load_text};
use fanin_sim::{RunControl, RunEnd, run};
use proptest::prelude::*;

/// Systems that run in milliseconds, as text of a scenario file.
fn systems() -> impl Strategy<Value = String> {
    let network = (1_u32..=40, 1_u32..=8, 1_u32..=3, 1_u32..=4, any::<bool>());
    let sizes = (60_u32..=4_000, 0_u32..=50, 0_u32..=300, 1_u32..=100);
    let stack =
        prop::sample::select(vec!["linux-2.6.26", "linux-2.6.32", "linux-6", "ns3-newreno", "textbook"]);
    let rates = (
        prop::sample::select(vec!["100 Mb/s", "1 Gb/s", "10 Gb/s"]),
        prop::sample::select(vec!["100 Mb/s", "1 Gb/s", "10 Gb/s"]),
        prop::sample::select(vec!["100 Mb/s", "1 Gb/s", "10 Gb/s"]),
        prop::sample::select(vec!["500 Hz", "3 kHz"]),
    );
    let delays = (0_u32..=500, 0_u32..=200, 0_u32..=20);
    let shaping = prop::option::of(prop::option::of(8_u32..=200));
    let policy = prop::sample::select(vec![
        "fcfs",
        "random",
        "node-round-robin",
        "node-load-balancing",
        "unit-round-robin",
    ]);
    let buffer = (
        prop::sample::select(vec!["dedicated", "shared", "dynamic-threshold", "voq"]),
        prop::sample::select(vec!["30 kB", "200 kB", "5 MB"]),
        // Rate and burst of a rack switch's rings.
        prop::option::of((
            prop::sample::select(vec!["70 Mb/s", "700 Mb/s", "7 Gb/s"]),
            prop::sample::select(vec!["1518 B", "3036 B", "30 kB"]),
        )),
    );
    (network, sizes, stack, rates, delays, shaping, policy, buffer).prop_map(
        |(network, sizes, stack, rates, delays, shaping, policy, buffer)| {
            let (readouts, fragments, racks, hosts, star) = network;
            let (mean, sigma, deviation, percent) = sizes;
            let racks = if star { 1 } else { racks };
            // A share is one readout at least.
            let percent = percent.max(100_u32.div_ceil(readouts));
            let mut text = format!(
                "[run]\nduration = \"20 ms\"\nwarmup = \"0 s\"\n[readout]\nhosts = {readouts}\nfragments_per_host = {fragments}\n\
                 response_delay = \"{} us\"\nresponse_delay_sd = \"{} us\"\n\
                 [readout.fragment_size]\ndistribution = \"log-normal\"\nmean = \"{mean} B\"\nsigma = 0.{sigma:02}\n\
                 fragment_sd = \"{deviation} B\"\n[readout.link]\nrate = \"{}\"\n\
                 [collectors]\nracks = {racks}\nhosts_per_rack = {hosts}\nunits_per_host = 3\nprocessing_time = \"2 ms\"\n\
                 [supervisor]\nrate = \"{}\"\npolicy = \"{policy}\"\n[transport]\nprofile = \"{stack}\"\n\
                 [network]\ntopology = \"{}\"\nreadouts_per_group = 8\n[link]\nrate = \"{}\"\ndelay = \"{} us\"\n\
                 [uplink]\nrate = \"{}\"\n[tor]\nbuffering = \"{}\"\nbuffer = \"{}\"\nuplink_buffer = \"5 MB\"\n\
                 [workload]\nfraction = \"{percent} %\"\n",
                delays.0,
                delays.1.min(delays.0),
                rates.0,
                rates.3,
                if star { "star" } else { "racks" },
                rates.1,
                delays.2,
                rates.2,
                if buffer.2.is_some() { "daqring" } else { buffer.0 },
                buffer.1,
            );
            if let Some((rate, burst)) = buffer.2 {
                // Writing to a string cannot fail.
                let _ = write!(text, "[tor.daqring]\nrate = \"{rate}\"\nburst = \"{burst}\"\n");
            }
            // Writing to a string cannot fail.
            let _ = match shaping.map(|credits| credits.map(|count| count.max(fragments))) {
                Some(Some(count)) => write!(text, "[shaping]\nmethod = \"credits\"\ncredits = {count}\n"),
                Some(None) => write!(text, "[shaping]\nmethod = \"paced-credits\"\n"),
                None => Ok(()),
            };
            text
        },
    )
}

fn scenario(text: &str) -> Scenario {
    load_text("random", text, &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false))).scenario
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_event_is_faster_than_its_ideal_and_no_run_than_its_bound(text in systems(), seed in any::<u64>()) {
        let outcome = run(&scenario(&text), seed, &RunControl::default()).expect("it can be simulated");
        prop_assert_eq!(outcome.end, RunEnd::Complete);
        prop_assert!(!outcome.records.events.is_empty());
        for row in &outcome.records.events {
            let (Some(time), Some(ideal)) = (row.collection_time_ps, row.ideal_ps) else {
                panic!("an event without a time: {row:?}");
            };
            // An ideal counts the frames of each answer. With requests in parts, TCP may join two answers in one frame.
            let least = if text.contains("paced-credits") { ideal - ideal / 200 } else { ideal };
            prop_assert!(time >= least, "{time} ps is less than {ideal} ps: {row:?}");
            prop_assert!(ideal > 0);
        }
        let slowdown = outcome.summary.slowdown.expect("events have ideals");
        prop_assert!(slowdown.p50 >= 0.995);
        let bound = outcome.summary.slowdown_bound.expect("events have a bound");
        prop_assert!(bound.mean.min(bound.p99) >= 1.0 - 1e-9, "{bound:?}");
    }
}

/// A collection without other traffic reaches its ideal.
#[test]
fn an_isolated_event_is_nearly_ideal() {
    let alone = "extends = \"thesis-a-500hz\"\n[run]\nduration = \"1 s\"\nwarmup = \"500 ms\"\n[supervisor]\nrate = \"20 Hz\"\n\
                 policy = \"node-round-robin\"\n[shaping]\nmethod = \"credits\"\ncredits = 480\n";
    let outcome = run(&scenario(alone), 1, &RunControl::default()).expect("it can be simulated");
    let slowdown = outcome.summary.slowdown.expect("events have ideals");
    assert!(slowdown.p50 >= 1.0 && slowdown.max < 1.03, "{slowdown:?}");
}

/// T014: a collection alone in the network takes its round trip and its bytes on the wire. That is 1.5 ms for 132 kB and 18.4
/// ms for the full event (thesis §4.2.2; with every header and timestamp, see `docs/papers.md`).
#[test]
fn isolated_collections_of_the_thesis_take_their_ideal_time() {
    for (fraction, expected_ms) in [("0.0625", 1.528), ("1", 18.448)] {
        let text = format!(
            "extends = \"thesis-a-500hz\"\n[run]\nduration = \"1 s\"\nwarmup = \"500 ms\"\n[supervisor]\nrate = \"20 Hz\"\n\
             policy = \"node-round-robin\"\n[workload]\nfraction = {fraction}\n[tor]\nbuffer = \"4 MB\"\n"
        );
        let outcome = run(&scenario(&text), 1, &RunControl::default()).expect("it can be simulated");
        let times = outcome.summary.collection_time_ms.expect("events were collected");
        let ideal = times.ideal.expect("events have ideals");
        // The thesis leaves out the headers of messages and the switches on the path, which take 20 to 50 us.
        assert!(
            (0.0..0.06).contains(&(ideal - expected_ms)),
            "the ideal is {ideal} ms, not {expected_ms} ms"
        );
        // Answers come early or late by 100 us, so that small collections differ from the mean's ideal, not from their own.
        let slowdown = outcome.summary.slowdown.expect("events have ideals");
        assert!(slowdown.p50 >= 1.0 && slowdown.p99 < 1.1, "{slowdown:?}, {} ms of {ideal} ms", times.mean);
    }
}

/// T004: a connection carries one window of data each round trip (thesis §2.2.2).
#[test]
fn a_window_bounds_the_throughput() {
    let text = "extends = \"incast\"\n[run]\nduration = \"2 s\"\n[link]\ndelay = \"1 ms\"\n[workload]\nsenders = 1\n\
                request_size = \"1 MB\"\n[transport]\nprofile = \"linux-6\"\ncongestion_control = \"static\"\nstatic_window = 4\n\
                offload_burst = \"0 B\"\n";
    let outcome = run(&scenario(text), 1, &RunControl::default()).expect("it can be simulated");
    let times =
        outcome.summary.requests.and_then(|requests| requests.time_ms).expect("requests were completed");
    let goodput = 1e6 * 8.0 / (times.mean / 1e3);
    // Two links of 1 ms there and back; a segment of 1448 B takes 12 us on each link at 1 Gb/s.
    let bound = 4.0 * 1448.0 * 8.0 / 0.004;
    assert!(goodput <= bound && goodput > 0.97 * bound, "{goodput} of {bound}");
}
