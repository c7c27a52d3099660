//! The papers' set-ups: rings, push and all-to-all traffic, hybrids, planes, schedules.

use fanin_scenario::{Scenario, load_text};
use fanin_sim::{RunControl, RunEnd, RunOutcome, run};
use proptest::prelude::*;

/// Two racks of three collectors that run in milliseconds; the other set-ups differ from it.
const SMALL: &str = r#"
title = "small"
[run]
duration = "60 ms"
warmup = "20 ms"
[readout]
hosts = 12
fragments_per_host = 6
response_delay = "100 us"
[collectors]
racks = 2
hosts_per_rack = 3
units_per_host = 4
processing_time = "2 ms"
[supervisor]
rate = "2 kHz"
policy = "node-round-robin"
[logger]
accept = "10 %"
[network]
readouts_per_group = 6
# The stack of the papers' set-ups.
[transport]
profile = "linux-2.6.32"
"#;

fn scenario(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match load_text("test", text, &sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn small(sets: &[&str]) -> RunOutcome {
    checked(&scenario(SMALL, sets), sets)
}

fn preset(name: &str, sets: &[&str]) -> RunOutcome {
    checked(&scenario(&format!("extends = \"{name}\""), sets), sets)
}

/// Runs to the end. Every assigned event is collected once, and none faster than its bytes on the last link.
fn checked(scenario: &Scenario, sets: &[&str]) -> RunOutcome {
    let outcome =
        run(scenario, 1, &RunControl::default()).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    assert_eq!(outcome.end, RunEnd::Complete, "{sets:?}");
    let events = outcome.summary.events.as_ref().unwrap();
    assert!(events.assigned > 0, "{sets:?}");
    assert_eq!((events.collected, events.lost, events.duplicated), (events.assigned, 0, 0), "{sets:?}");
    let last = if scenario.workload.kind == fanin_scenario::WorkloadKind::AllToAll {
        scenario.readout.link.rate
    } else {
        scenario.link.rate
    };
    for row in &outcome.records.events {
        let wire = last.time_to_send(fanin_units::Bytes::new(row.size_bytes)).get();
        assert!(row.collection_time_ps.unwrap() > wire, "{sets:?}: {row:?}");
    }
    outcome
}

fn figure(outcome: &RunOutcome, technique: &str, key: &str) -> f64 {
    let figures = outcome.summary.techniques.get(technique).unwrap_or_else(|| panic!("no {technique}"));
    figures[key].as_f64().unwrap_or_else(|| panic!("{technique} has no {key}: {figures}"))
}

fn mean_ms(outcome: &RunOutcome) -> f64 {
    outcome.summary.collection_time_ms.as_ref().unwrap().mean
}

fn drops(outcome: &RunOutcome) -> u64 {
    outcome.summary.network.as_ref().unwrap().drops.unwrap()
}

fn timeouts(outcome: &RunOutcome) -> u64 {
    outcome.summary.tcp.as_ref().unwrap().timeouts.unwrap()
}

/// LCN'15, buffering: 9790 frames through one ring of 0.78 Gb/s take 154 ms if the ring holds them.
#[test]
fn a_ring_that_holds_the_burst_gives_its_expected_time() {
    let short = ["run.duration=200 ms", "run.warmup=0 s", "transport.window_state=warm"];
    let deep = preset("lcn15-all-to-one", &short);
    assert!((mean_ms(&deep) / 154.4 - 1.0).abs() < 0.01, "{}", mean_ms(&deep));
    assert_eq!((drops(&deep), timeouts(&deep)), (0, 0));
    let held = figure(&deep, "daqring", "frames_max");
    assert!(held > 9_000.0 && held < 9_900.0, "{held}");
    let shallow = preset("lcn15-all-to-one", &[&short[..], &["tor.daqring.frames=8500"]].concat());
    assert!(drops(&shallow) > 0 && figure(&shallow, "daqring", "frames_max") == 8_500.0);
    assert!(timeouts(&shallow) > 0 && mean_ms(&shallow) > 1.3 * mean_ms(&deep));
}

/// LCN'15, evaluation: with its rings unlimited, all hosts send and receive at the full rate.
#[test]
fn all_to_all_fills_every_link() {
    let sets = [
        "collectors.hosts_per_rack=24",
        "collectors.units_per_host=4",
        "transport.window_state=warm",
        "run.duration=30 ms",
        "run.warmup=20 ms",
        "tor.daqring.rate=0 b/s",
    ];
    let outcome = preset("lcn15-all-to-all", &sets);
    let load = outcome.summary.load.as_ref().unwrap().last_hop.unwrap();
    assert!(load > 0.9 && load <= 1.0, "{load}");
    assert_eq!(drops(&outcome), 0);
    // 990 packets over 11 flows: no collector asks the readout on its own host.
    assert!(outcome.records.events.iter().all(|row| row.size_bytes == 11 * 90 * 1447));
    assert_eq!(figure(&outcome, "daqring", "rings"), 24.0);
}

#[test]
fn redirected_flows_keep_a_shallow_switch_from_losing() {
    let sets = ["run.duration=40 ms", "run.warmup=20 ms", "collectors.units_per_host=4"];
    let rings = preset("multihost", &sets);
    assert_eq!((drops(&rings), timeouts(&rings)), (0, 0));
    assert_eq!(figure(&rings, "daqring", "rings"), 30.0);
    let alone = preset("multihost", &[&sets[..], &["network.hybrid.host_ports=0"]].concat());
    assert!(drops(&alone) > 0 && !alone.summary.techniques.contains_key("daqring"));
    // Rules may send only some flows to rings; a single slow host port holds these up.
    let some = preset("multihost", &[&sets[..], &["core.daqring.flows=[\"readout->collector:0\"]"]].concat());
    assert_eq!(figure(&some, "daqring", "rings"), 1.0);
    // The hardware may mark frames in its own queues; rings keep marks and make none.
    let marks = [
        "transport.congestion_control=dctcp",
        "transport.delayed_ack=false",
        "core.ecn.mode=threshold",
        "core.ecn.threshold=2",
    ];
    let marks = preset("multihost", &[&sets[..], &marks].concat());
    assert!(figure(&marks, "ecn", "marked") > 0.0 && figure(&marks, "daqring", "rings") == 30.0);
    let slow = ["network.hybrid.host_ports=1", "network.hybrid.link.rate=5 Gb/s"];
    let slow = preset("multihost", &[&sets[..], &slow].concat());
    assert!(mean_ms(&slow) > 1.3 * mean_ms(&rings), "{} {}", mean_ms(&slow), mean_ms(&rings));
}

#[test]
fn a_switch_has_rings_for_the_flows_of_its_own_section() {
    let of = |sets: &[&str]| small(&[&["core.buffering=daqring"], sets].concat());
    assert_eq!(figure(&of(&[]), "daqring", "rings"), 12.0);
    let one = of(&["core.daqring.flows=[\"readout->collector:0\"]"]);
    assert_eq!(figure(&one, "daqring", "rings"), 2.0);
    let tor = of(&["tor.daqring.flows=[\"readout->collector:0\"]"]);
    assert_eq!(figure(&tor, "daqring", "rings"), 12.0);
}

#[test]
fn planes_carry_a_collectors_flows_together_unless_they_are_hashed() {
    let sets = ["run.duration=20 ms", "run.warmup=10 ms"];
    let even = preset("leaf-spine", &sets);
    assert_eq!(drops(&even), 0);
    let hashed = preset("leaf-spine", &[&sets[..], &["network.flow_distribution=ecmp"]].concat());
    // Rings of one collector in several planes together exceed its link: the rack's shallow switch drops.
    assert!(drops(&hashed) > 0);
    assert!(figure(&hashed, "daqring", "rings") > figure(&even, "daqring", "rings"));
}

/// ICC'15 §IV.C.4: each phase of a collection has figures of its own, which add up to those of the events.
#[test]
fn steps_have_times_of_their_own() {
    let steps = "workload.steps=[{ name = \"L2\", fraction = 0.25, processing_time = \"1 ms\", accept = 0.3 }, \
                 { name = \"EB\", fraction = 1, processing_time = \"1 ms\", accept = 0 }]";
    let outcome = small(&[steps]);
    let events = outcome.summary.events.as_ref().unwrap().collected as f64;
    let (first, second) =
        (figure(&outcome, "step_L2", "collected"), figure(&outcome, "step_EB", "collected"));
    assert!(first == events && second > 0.1 * events && second < 0.5 * events, "{events} {first} {second}");
    let of = |step: &str, key: &str| figure(&outcome, step, key);
    let sum = first * of("step_L2", "time_ms_mean") + second * of("step_EB", "time_ms_mean");
    assert!((sum / events / mean_ms(&outcome) - 1.0).abs() < 1e-9, "{sum} {}", mean_ms(&outcome) * events);
    // Three quarters of the fragments against one.
    assert!(of("step_EB", "time_ms_mean") > 2.0 * of("step_L2", "time_ms_mean"));
    assert!(of("step_L2", "time_ms_max") >= of("step_L2", "time_ms_p99"));
    assert!(!small(&[]).summary.techniques.keys().any(|key| key.starts_with("step_")));
}

#[test]
fn readouts_may_push() {
    let asked = small(&[]);
    let pushed = small(&["workload.kind=push"]);
    assert_eq!(
        asked.summary.events.as_ref().unwrap().collected,
        pushed.summary.events.as_ref().unwrap().collected
    );
    // The request's round trip is gone, though the time now counts from the assignment.
    assert!(mean_ms(&pushed) < mean_ms(&asked), "{} {}", mean_ms(&pushed), mean_ms(&asked));
}

#[test]
fn a_central_arbiter_leaves_no_queues() {
    let plain = small(&["tor.buffer=40 kB"]);
    let paced = small(&["tor.buffer=40 kB", "shaping.method=fastpass"]);
    assert!(drops(&plain) > 0, "{}", drops(&plain));
    assert_eq!((drops(&paced), timeouts(&paced)), (0, 0));
    assert!(paced.summary.network.as_ref().unwrap().queue_bytes_max.unwrap() < 20_000);
    assert!(mean_ms(&paced) < mean_ms(&plain));
    // Thesis §6.4: a timeslot is a full frame on the readouts' links.
    assert_eq!(figure(&paced, "fastpass", "timeslot_us"), 12.304);
    assert!(figure(&paced, "fastpass", "slot_fill") <= 1.0);
    assert_eq!(figure(&paced, "fastpass", "slots_unused"), 0.0);
    let late = small(&["shaping.method=fastpass", "shaping.fastpass.advance=25 us"]);
    assert!(figure(&late, "fastpass", "slots_late") > 0.0);
    let larger = small(&["shaping.method=fastpass", "shaping.fastpass.slot_mtus=12"]);
    assert!(mean_ms(&larger) > mean_ms(&late));
}

/// Schedules that fill half of the links lend them for twice as long.
#[test]
fn schedules_leave_a_share_of_the_links_free() {
    let half = "shaping.utilisation=0.5";
    let fastpass = ["shaping.method=fastpass", "shaping.fastpass.slot_mtus=2"];
    let (all, less) = (small(&fastpass), small(&[&fastpass[..], &[half]].concat()));
    assert_eq!(figure(&all, "fastpass", "timeslot_us"), 24.608);
    assert_eq!(figure(&less, "fastpass", "timeslot_us"), 49.216);
    assert!(
        mean_ms(&less) > 1.4 * mean_ms(&all) && drops(&less) == 0,
        "{} {}",
        mean_ms(&less),
        mean_ms(&all)
    );
    let shifted = ["shaping.method=barrel-shifter", "shaping.barrel_shifter.barrier=clock"];
    let (all, less) = (small(&shifted), small(&[&shifted[..], &[half]].concat()));
    let phase_ms = |outcome: &RunOutcome| figure(outcome, "barrel_shifter", "phase_ms_mean");
    assert!((phase_ms(&less) / phase_ms(&all) - 2.0).abs() < 1e-3, "{} {}", phase_ms(&less), phase_ms(&all));
}

#[test]
fn an_arbiter_that_dies_is_replaced_or_done_without() {
    let dies =
        ["shaping.method=fastpass", "shaping.fastpass.fail_at=40 ms", "shaping.fastpass.failover=15 ms"];
    let alive = small(&dies[..1]);
    let longest = |outcome: &RunOutcome| outcome.summary.collection_time_ms.as_ref().unwrap().max;
    for standby in ["shaping.fastpass.standby=true", "shaping.fastpass.standby=false"] {
        let outcome = small(&[&dies[..], &[standby]].concat());
        assert!(longest(&outcome) > longest(&alive) + 10.0 && longest(&outcome) < 80.0, "{standby}");
        let figures =
            ["deaths", "takeovers", "packets_given_up"].map(|key| figure(&outcome, "fastpass", key));
        let is_replaced = standby.ends_with("true");
        assert_eq!((figures[0], figures[1]), (1.0, f64::from(u8::from(is_replaced))));
        assert_eq!(figures[2] > 0.0, !is_replaced, "{standby}: {figures:?}");
    }
}

#[test]
fn a_barrel_shifter_keeps_senders_apart() {
    let plain = small(&["tor.buffer=40 kB"]);
    assert!(drops(&plain) > 0);
    for barrier in ["complete", "clock"] {
        let barrier = format!("shaping.barrel_shifter.barrier={barrier}");
        let shifted = small(&["tor.buffer=40 kB", "shaping.method=barrel-shifter", &barrier]);
        assert_eq!((drops(&shifted), timeouts(&shifted)), (0, 0), "{barrier}");
        assert!(figure(&shifted, "barrel_shifter", "transfers") >= 12.0 * 160.0, "{barrier}");
        let phase_ms = figure(&shifted, "barrel_shifter", "phase_ms_mean");
        if barrier.ends_with("clock") {
            // Six fragments of 1.1 kB and a header of the message in five segments at 1 Gb/s, timestamps and framing counted.
            assert!((phase_ms - (6_600.0 + 5.0 * 90.0 + 40.0) * 8e-6).abs() < 1e-3, "{phase_ms} ms");
        } else {
            // At least one control message each way over 10 Gb/s; at most the answer and 160 us of control messages.
            assert!(phase_ms > 0.004 && phase_ms < 0.22, "{phase_ms} ms");
        }
    }
    let pushed = small(&["shaping.method=barrel-shifter", "workload.kind=push"]);
    assert_eq!(drops(&pushed), 0);
}

#[test]
fn a_barrel_shifter_goes_on_without_the_dead() {
    for barrier in ["complete", "clock"] {
        let text = SMALL.replace("[network]", "[shaping]\nmethod = \"barrel-shifter\"\n[network]");
        let barrier = format!("shaping.barrel_shifter.barrier={barrier}");
        let sets = [
            barrier.as_str(),
            "shaping.barrel_shifter.timeout=5 ms",
            "shaping.barrel_shifter.fail_at=40 ms",
            "shaping.barrel_shifter.failed_readouts=[3]",
            "shaping.barrel_shifter.failed_collectors=[1]",
        ];
        let outcome = run(&scenario(&text, &sets), 1, &RunControl::default()).unwrap();
        assert_eq!(outcome.end, RunEnd::Complete, "{barrier}");
        assert_eq!(figure(&outcome, "barrel_shifter", "excluded"), 2.0);
        assert!(figure(&outcome, "barrel_shifter", "incomplete") > 10.0);
        let events = outcome.summary.events.as_ref().unwrap();
        // Events of the dead collector go to the debug stream; all others are collected without the dead readout.
        assert!(events.debug > Some(0) && events.debug <= Some(8) && events.lost == 0, "{events:?}");
        assert!(events.collected > 100, "{events:?}");
    }
}

/// The barrier notices the failure after the last event was assigned.
#[test]
fn a_failure_noticed_late_assigns_nothing_more() {
    let text = SMALL.replace("[network]", "[shaping]\nmethod = \"barrel-shifter\"\n[network]");
    let sets = [
        "shaping.barrel_shifter.timeout=500 ms",
        "shaping.barrel_shifter.fail_at=40 ms",
        "shaping.barrel_shifter.failed_readouts=[0]",
    ];
    let outcome = run(&scenario(&text, &sets), 1, &RunControl::default()).unwrap();
    assert_eq!(outcome.end, RunEnd::Complete);
    let last = outcome.records.events.iter().map(|row| row.assigned_ps).max();
    assert!(last < Some(80_000_000_000), "assigned after the run's 80 ms: {last:?}");
}

/// A collector has no link to the readout on its own host.
#[test]
fn an_event_of_the_first_host_is_recorded() {
    let sets = ["record.events=[0]", "run.duration=2 ms", "run.warmup=0 s"];
    let outcome = preset("lcn15-all-to-all", &sets);
    assert!(!outcome.records.io.is_empty());
}

/// Full segments with SACK blocks are longer than a timeslot.
#[test]
fn long_segments_have_timeslots() {
    let sets = ["shaping.method=fastpass", "shaping.fastpass.answers_only=true"];
    preset("multihost", &[&sets[..], &["run.duration=5 ms", "run.warmup=0 s"]].concat());
}

#[test]
fn full_readouts_stop_the_trigger() {
    let unlimited = small(&[]);
    assert!(!unlimited.summary.techniques.contains_key("readout"));
    // Four events of 6.6 kB, deleted in pairs; without this limit six are under way.
    let sets = ["readout.memory=26 kB", "supervisor.clear_group=2"];
    let tight = small(&sets);
    assert!(figure(&tight, "readout", "xoffs") > 0.0);
    // Events that wait for XON come at once, before the next XOFF arrives: at most one for each unit.
    let held = figure(&tight, "readout", "held_bytes_max");
    assert!((26_000.0..24.0 * 6_600.0).contains(&held), "{held}");
    assert!(figure(&tight, "readout", "xoff_ms") > 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any set-up conserves its traffic (or the run panics), and nothing is faster than the wire. Methods that keep senders
    /// apart lose nothing behind a port with room for two answers.
    #[test]
    fn any_set_up_conserves_what_it_carries(
        method in 0usize..4, push in any::<bool>(), seed in 0u64..1000, rate in 500u32..3000, buffer in 60u32..200,
        order in 0usize..3,
    ) {
        let method = ["none", "credits", "fastpass", "barrel-shifter"][method];
        let push = push && method != "credits";
        let order = ["fixed", "rotated", "random"][order];
        let sets = [
            format!("shaping.method={method}"),
            format!("workload.kind={}", if push { "push" } else { "event-building" }),
            format!("supervisor.rate={rate} Hz"),
            format!("tor.buffer={buffer} kB"),
            format!("shaping.request_order={order}"),
            "run.duration=30 ms".to_owned(),
            "run.warmup=10 ms".to_owned(),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let scenario = scenario(SMALL, &sets);
        let outcome = run(&scenario, seed, &RunControl::default()).unwrap();
        prop_assert_eq!(&outcome.end, &RunEnd::Complete);
        for row in &outcome.records.events {
            prop_assert!(row.collection_time_ps.unwrap() > row.size_bytes * 8_000);
        }
        if matches!(method, "fastpass" | "barrel-shifter") {
            prop_assert_eq!(drops(&outcome), 0);
        }
    }
}

/// Answers of a live system are longer by a header in front of each fragment; their payload is the same.
#[test]
fn headers_of_fragments_are_sent_and_are_no_payload() {
    let [plain, live] = ["0 B", "16 B"].map(|header| {
        let header = format!("readout.fragment_header={header}");
        small(&[&header, "supervisor.rate=100 Hz", "logger.accept=0"])
    });
    assert_eq!(plain.summary.goodput_bps, live.summary.goodput_bps);
    let [plain, live] = [plain, live].map(|outcome| outcome.summary.collection_time_ms.unwrap());
    // 12 answers on an idle link of 1 Gb/s, each with 96 B more in its five segments.
    let expected = 12.0 * 96.0 * 8e-6;
    assert!((live.mean - plain.mean - expected).abs() < 1e-6, "{} {}", plain.mean, live.mean);
    assert!((live.ideal.unwrap() - plain.ideal.unwrap() - expected).abs() < 1e-6);
}
