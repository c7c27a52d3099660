//! Every technique in whole runs: it loses nothing, is never faster than the wire, keeps its bounds and reports its figures.

use fanin_report::Summary;
use fanin_scenario::{Scenario, load_text};
use fanin_sim::{RunControl, RunEnd, RunOutcome, run};

fn preset(name: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match load_text("test", &format!("extends = \"{name}\""), &sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn outcome(name: &str, sets: &[&str]) -> RunOutcome {
    let outcome =
        run(&preset(name, sets), 1, &RunControl::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.end, RunEnd::Complete, "{sets:?}");
    for row in &outcome.records.events {
        if let (Some(time), Some(ideal)) = (row.collection_time_ps, row.ideal_ps) {
            assert!(time >= ideal, "faster than the wire: {row:?}");
        }
    }
    outcome
}

fn figure(summary: &Summary, path: &str) -> f64 {
    let (key, figure) = path.split_once('.').unwrap();
    let section = summary.techniques.get(key).unwrap_or_else(|| panic!("no section {key}"));
    section[figure].as_f64().unwrap_or_else(|| panic!("no {figure} in {section}"))
}

fn goodput_mbps(outcome: &RunOutcome) -> f64 {
    outcome.summary.goodput_bps.as_ref().unwrap().total / 1e6
}

const SHORT: &str = "run.duration=500 ms";

#[test]
fn dctcp_keeps_the_queue_at_its_threshold() {
    let sets = [
        SHORT,
        "workload.senders=4",
        "transport.congestion_control=dctcp",
        "tor.ecn.mode=threshold",
        "tor.ecn.threshold=20",
    ];
    let dctcp = outcome("m21tcp-ffw", &sets);
    let network = dctcp.summary.network.clone().unwrap();
    assert_eq!(network.drops, Some(0));
    assert!(network.ecn_marks.unwrap() > 100);
    // K, and the data that four senders add in the round trip before the marks take effect.
    assert!(network.queue_bytes_max.unwrap() < 60_000, "{network:?}");
    assert!(goodput_mbps(&dctcp) > 800.0, "{}", goodput_mbps(&dctcp));
    let alpha = figure(&dctcp.summary, "dctcp.alpha_mean");
    assert!(alpha > 0.02 && alpha < 0.9, "{alpha}");
    assert!(figure(&dctcp.summary, "dctcp.reductions") > 10.0);
    assert_eq!(figure(&dctcp.summary, "ecn.marked"), network.ecn_marks.unwrap() as f64);
    // The plain stack fills the whole buffer.
    let plain = outcome("m21tcp-ffw", &[SHORT, "workload.senders=4"]);
    assert!(plain.summary.network.unwrap().queue_bytes_max.unwrap() > 60_000);
    assert!(plain.summary.techniques.is_empty());
}

#[test]
fn red_marks_or_drops() {
    let red = ["workload.senders=8", SHORT, "tor.ecn.min=15", "tor.ecn.max=25", "tor.ecn.gentle=true"];
    let mut sets = red.to_vec();
    sets.push("tor.ecn.mode=red-drop");
    let drop = outcome("m21tcp-ffw", &sets);
    assert!(figure(&drop.summary, "ecn.dropped_early") > 0.0);
    assert_eq!(figure(&drop.summary, "ecn.marked"), 0.0);
    for (weight, unit) in [("0.002", "packets"), ("1", "bytes")] {
        let (weight, unit) = (format!("tor.ecn.weight={weight}"), format!("tor.ecn.unit={unit}"));
        let mut sets = red.to_vec();
        sets.extend(["tor.ecn.mode=red-mark", "transport.ecn=true", &weight, &unit]);
        let mark = outcome("m21tcp-ffw", &sets);
        assert!(figure(&mark.summary, "ecn.marked") > 0.0, "{sets:?}");
        assert_eq!(
            mark.summary.network.clone().unwrap().ecn_marks.unwrap() as f64,
            figure(&mark.summary, "ecn.marked")
        );
    }
}

const M21: [&str; 3] = [SHORT, "transport.congestion_control=m21tcp", "tor.m21=true"];

#[test]
fn m21tcp_never_overflows_while_there_is_a_segment_for_each_flow() {
    // 64 KiB hold 98 frames of 576 bytes on Ethernet (642 stored); 8 bytes of each segment are the option.
    for senders in ["1", "8", "40", "98"] {
        for framing in ["ethernet", "point-to-point"] {
            for rewrite in ["true", "false"] {
                let senders = format!("workload.senders={senders}");
                let framing = format!("network.framing={framing}");
                let rewrite = format!("transport.m21tcp.rewrite_echo={rewrite}");
                let mut sets = M21.to_vec();
                sets.extend([senders.as_str(), &framing, &rewrite, "tor.count_in_service=true"]);
                let outcome = outcome("m21tcp-fbw", &sets);
                let network = outcome.summary.network.clone().unwrap();
                assert_eq!(network.drops, Some(0), "{sets:?}");
                assert!(network.queue_bytes_max.unwrap() <= 65_536);
                assert_eq!(outcome.summary.tcp.clone().unwrap().timeouts, Some(0), "{sets:?}");
                assert!(figure(&outcome.summary, "m21tcp.window_bytes_min") >= 568.0);
                assert_eq!(figure(&outcome.summary, "m21tcp.frames_below_segment"), 0.0);
                let ideal = outcome.summary.ideal.clone().unwrap().goodput_bps.unwrap() / 1e6;
                assert!(goodput_mbps(&outcome) > 0.75 * ideal, "{sets:?} {}", goodput_mbps(&outcome));
            }
        }
    }
}

#[test]
fn beyond_a_segment_for_each_flow_m21tcp_cannot_help() {
    let mut sets = M21.to_vec();
    sets.extend(["workload.senders=160", "workload.request_size=10 kB", "workload.service_delay_max=0 s"]);
    let outcome = outcome("m21tcp-ffw", &sets);
    assert!(figure(&outcome.summary, "m21tcp.frames_below_segment") > 0.0);
    assert!(outcome.summary.network.clone().unwrap().drops.unwrap() > 0);
}

#[test]
fn the_least_of_several_switches_arrives() {
    let sets = [
        "run.duration=100 ms",
        "transport.congestion_control=m21tcp",
        "collectors.hosts_per_rack=4",
        "readout.hosts=32",
        "readout.response_delay_sd=0 s",
        "supervisor.rate=200 Hz",
        "tor.m21=true",
        "tor.buffer=1 MB",
        "core.m21=true",
        "core.buffering=dedicated",
    ];
    let window = |core: &str| {
        let core = format!("core.buffer={core}");
        let mut sets = sets.to_vec();
        sets.push(&core);
        let outcome = outcome("thesis-a-500hz", &sets);
        figure(&outcome.summary, "m21tcp.window_bytes_min")
    };
    // A rack's port shares 1 MB among 32 readouts and the supervisor: 20 segments of 1440. The core has 16 readouts for
    // four collectors on each uplink, and the supervisor's four connections.
    assert_eq!(window("10 MB") / 1440.0, 19.0);
    assert_eq!(window("500 kB") / 1440.0, 4.0);
}

#[test]
fn diatcp_keeps_to_its_global_window() {
    for (window, senders) in [("16", "16"), ("40", "16"), ("8", "16"), ("40", "64")] {
        for aware in ["true", "false"] {
            let window = format!("transport.diatcp.global_window={window}");
            let senders = format!("workload.senders={senders}");
            let aware = format!("transport.diatcp.deadline_aware={aware}");
            let cc = "transport.congestion_control=diatcp";
            let sets = [SHORT, cc, &window, &senders, &aware, "workload.deadline=30 ms"];
            let outcome = outcome("incast", &sets);
            let network = outcome.summary.network.clone().unwrap();
            assert_eq!(network.drops, Some(0), "{sets:?}");
            assert_eq!(outcome.summary.tcp.clone().unwrap().timeouts, Some(0), "{sets:?}");
            let granted = figure(&outcome.summary, "diatcp.granted_segments_max");
            assert_eq!(granted, f64::from(window.rsplit_once('=').unwrap().1.parse::<u32>().unwrap()));
            // Equation (8): the queued data are at most the granted data.
            assert!(network.queue_bytes_max.unwrap() as f64 <= granted * 1518.0, "{sets:?} {network:?}");
            assert!(figure(&outcome.summary, "diatcp.window_updates") > 0.0);
            // Its lower bound: ten segments fill the path of 126 us; eight leave a fifth of it idle.
            let slowdown = outcome.summary.slowdown.clone().unwrap().mean;
            let expected = if granted < 10.0 { 1.15..1.4 } else { 1.0..1.02 };
            assert!(expected.contains(&slowdown), "{sets:?}: {slowdown}");
        }
    }
}

/// `TCP_WINDOW_CLAMP` sends no window update: a sender learns of a larger window by an acknowledgement of its own data.
#[test]
fn diatcp_of_linux_waits_with_a_larger_window() {
    let cc = "transport.congestion_control=diatcp";
    for (profile, updates) in [("linux-6", false), ("linux-2.6.32", true)] {
        let profile = format!("transport.profile={profile}");
        let outcome = outcome("incast", &[SHORT, cc, &profile, "transport.diatcp.global_window=40"]);
        assert_eq!(figure(&outcome.summary, "diatcp.window_updates") > 0.0, updates, "{profile}");
        assert_eq!(outcome.summary.tcp.clone().unwrap().timeouts, Some(0), "{profile}");
        let slowdown = outcome.summary.slowdown.clone().unwrap().mean;
        assert!((1.0..1.02).contains(&slowdown), "{profile}: {slowdown}");
    }
}

#[test]
fn diatcp_behind_a_software_router() {
    let sets = ["run.duration=200 ms", "transport.congestion_control=diatcp"];
    let diatcp = outcome("icc15-router", &sets);
    assert_eq!(diatcp.summary.network.clone().unwrap().drops, Some(0));
    assert_eq!(figure(&diatcp.summary, "diatcp.senders_max"), 160.0);
    // More frames come back than with plain TCP: windows are updated all the time.
    let plain =
        outcome("icc15-router", &["run.duration=200 ms", "shaping.credits=421", "shaping.method=credits"]);
    let per_event = |outcome: &RunOutcome| {
        let packets = outcome.summary.network.clone().unwrap().packets.unwrap() as f64;
        packets / outcome.summary.events.clone().unwrap().collected as f64
    };
    assert!(per_event(&diatcp) > per_event(&plain), "{} {}", per_event(&diatcp), per_event(&plain));
}

#[test]
fn pause_never_drops_within_its_bound() {
    // 16 inputs, each with a threshold of 4 kB and 13 kB of headroom for links of 25 us.
    for mode in ["pause", "priority"] {
        let mode = format!("tor.pause.mode={mode}");
        let sets = [SHORT, &mode, "tor.pause.xoff=4 kB", "tor.pause.xon=2 kB", "tor.buffer=280 kB"];
        let pause = outcome("incast", &sets);
        let network = pause.summary.network.clone().unwrap();
        assert_eq!((network.drops, pause.summary.tcp.clone().unwrap().timeouts), (Some(0), Some(0)));
        assert_eq!(network.pauses.unwrap() as f64, figure(&pause.summary, "pause.pauses"));
        assert!(network.pauses.unwrap() > 100);
        assert_eq!(figure(&pause.summary, "pause.hosts_stopped"), 16.0);
        assert_eq!(figure(&pause.summary, "pause.storms"), 0.0);
        let slowdown = pause.summary.slowdown.clone().unwrap().mean;
        assert!((1.0..1.05).contains(&slowdown), "{slowdown}");
    }
    // Without it, the same buffer overflows.
    let plain = outcome("incast", &[SHORT, "tor.buffer=64 kB"]);
    assert!(plain.summary.network.unwrap().drops.unwrap() > 0);
}

/// A storm is counted for each sender, if the receiver is so slow that its switch keeps them stopped.
#[test]
fn a_storm_is_counted() {
    let storms = |rate: &str| {
        let rate = format!("link.rate={rate}");
        let sets = [
            "run.duration=300 ms",
            &rate,
            "readout.link.rate=1 Gb/s",
            "workload.request_size=8 kB",
            "workload.senders=8",
            "tor.pause.mode=pause",
            "tor.pause.xoff=6 kB",
            "tor.pause.xon=2 kB",
            "tor.buffer=1 MB",
        ];
        let slow = outcome("incast", &sets);
        assert_eq!(slow.summary.network.clone().unwrap().drops, Some(0));
        (figure(&slow.summary, "pause.storms"), figure(&slow.summary, "pause.stop_ms_max"))
    };
    // A sender resumes when some 4 kB of its own have left, of eight senders' in turn: 256 kb, 256 ms at 1 Mb/s.
    let (slow, longest) = storms("1 Mb/s");
    assert!((1.0..=8.0).contains(&slow) && longest > 100.0, "{slow} {longest}");
    let (none, longest) = storms("100 Mb/s");
    assert!(none == 0.0 && longest < 100.0, "{none} {longest}");
}

#[test]
fn pause_that_never_stops_a_port_changes_nothing() {
    let rack: Vec<&str> =
        RACK[..5].iter().chain(&["shaping.credits=120", "shaping.method=credits"]).copied().collect();
    let incast = |more: &[&'static str]| -> Vec<&str> { [SHORT].iter().chain(more).copied().collect() };
    let cases = [
        ("incast", "63 kB", incast(&["tor.buffer=64 kB"])),
        (
            "incast",
            "63 kB",
            incast(&["tor.buffer=64 kB", "tor.count_in_service=false", "tor.buffering=shared"]),
        ),
        ("incast", "200 kB", incast(&["tor.buffer=210 kB", "tor.buffering=dynamic-threshold"])),
        ("incast", "63 kB", incast(&["tor.buffer=64 kB", "transport.ecn=true", "tor.ecn.mode=red-mark"])),
        ("thesis-a-500hz", "700 kB", rack.clone()),
        ("thesis-b-500hz", "785 kB", rack),
    ];
    for (name, xoff, mut sets) in cases {
        let mut plain = outcome(name, &sets);
        let xoff = format!("tor.pause.xoff={xoff}");
        sets.extend(["tor.pause.mode=pause", &xoff, "tor.pause.xon=10 kB"]);
        let mut paused = outcome(name, &sets);
        assert_eq!(figure(&paused.summary, "pause.pauses"), 0.0, "{name} {sets:?}");
        assert_eq!(paused.records, plain.records, "{name} {sets:?}");
        paused.summary.techniques.remove("pause");
        for summary in [&mut plain.summary, &mut paused.summary] {
            summary.speed = None;
            summary.scenario = Default::default();
            summary.network.as_mut().unwrap().pauses = None;
        }
        assert_eq!(paused.summary, plain.summary, "{name} {sets:?}");
    }
}

/// A rack of four whose switch stops the core; buffers too small for a burst.
const RACK: [&str; 9] = [
    "run.duration=200 ms",
    "run.warmup=0 s",
    "collectors.hosts_per_rack=4",
    "supervisor.rate=150 Hz",
    "readout.response_delay_sd=0 s",
    "tor.buffer=786 kB",
    "tor.pause.xoff=300 kB",
    "tor.pause.xon=200 kB",
    "supervisor.policy=node-round-robin",
];

#[test]
fn a_stopped_core_holds_up_all_hosts_behind_it() {
    let run = |more: &[&str]| {
        let mut sets = RACK.to_vec();
        sets.extend(more);
        outcome("thesis-a-500hz", &sets)
    };
    let time = |outcome: &RunOutcome| outcome.summary.collection_time_ms.clone().unwrap();
    let pause = run(&["tor.pause.mode=pause"]);
    assert_eq!(pause.summary.network.clone().unwrap().drops, Some(0));
    assert_eq!(figure(&pause.summary, "pause.switch_ports_stopped"), 2.0, "one uplink from each core");
    let priority = run(&["tor.pause.mode=priority"]);
    assert_eq!(priority.summary.network.clone().unwrap().drops, Some(0));
    // A limit for each single event also loses nothing, and does not wait for other events.
    let credits = run(&["shaping.method=credits", "shaping.credits=480"]);
    assert!(time(&pause).mean >= time(&credits).mean, "{:?} {:?}", time(&pause), time(&credits));
    assert!(time(&priority).max < 200.0 && time(&pause).max < 200.0, "no timeout");
    let plain = run(&[]);
    assert!(plain.summary.network.clone().unwrap().drops.unwrap() > 0);
    // Pauses spread: a core with little memory pauses the groups before it.
    let spread = run(&[
        "tor.pause.mode=pause",
        "core.pause.mode=pause",
        "core.buffering=dedicated",
        "core.buffer=4 MB",
        "core.pause.xoff=60 kB",
        "core.pause.xon=30 kB",
    ]);
    assert_eq!(spread.summary.network.clone().unwrap().drops, Some(0));
    assert!(figure(&spread.summary, "pause.switch_ports_stopped") > 10.0);
}

#[test]
fn minimum_rto_of_microseconds_repairs_at_once() {
    let least = |rto: &str, sets: &[&str]| {
        let rto = format!("transport.rto_min={rto}");
        let mut all = vec![SHORT, "transport.timer_granularity=1 us", &rto];
        all.extend(sets);
        goodput_mbps(&outcome("incast", &all))
    };
    // Vasudevan et al. 2009: a lower minimum avoids the collapse, randomised or not.
    let (slow, fast) = (least("200 ms", &[]), least("200 us", &[]));
    assert!(slow < 300.0 && fast > 600.0, "{slow} {fast}");
    let spread = least("200 us", &["transport.rto_spread=0.5"]);
    assert!(spread > 600.0, "{spread}");
    let delayed = least("1 ms", &["transport.delayed_ack=true", "transport.delayed_ack_timeout=1 us"]);
    assert!(delayed > 600.0, "{delayed}");
}

/// A window of one packet waits for each acknowledgement in all stacks. The delay follows the kernel's rule, which begins
/// with quick acknowledgements, or the scenario's setting.
#[test]
fn delayed_acknowledgements_wait_no_longer_than_they_may() {
    let mean_ms = |profile: &str, more: &[&str]| {
        let profile = format!("transport.profile={profile}");
        let mut sets = vec![
            "run.duration=2 s",
            "workload.senders=1",
            "workload.request_size=28960 B",
            "transport.congestion_control=static",
            "transport.static_window=1",
            "transport.timer_granularity=1 us",
            &profile,
        ];
        sets.extend(more);
        outcome("incast", &sets).summary.requests.unwrap().time_ms.unwrap().mean
    };
    for profile in ["linux-2.6.32", "linux-6", "textbook"] {
        let off = mean_ms(profile, &["transport.delayed_ack=false"]);
        let waits = |timeout: &str| mean_ms(profile, &["transport.delayed_ack=true", timeout]);
        let (one, hundred, four) = (
            waits("transport.delayed_ack_timeout=1 us"),
            waits("transport.delayed_ack_timeout=100 us"),
            waits("transport.delayed_ack_timeout=4 ms"),
        );
        // 20 segments, of which all but the last are full.
        assert!((off..off + 20.0 * 0.002).contains(&one), "{profile}: {off} {one}");
        assert!((off + 10.0 * 0.1..off + 22.0 * 0.1).contains(&hundred), "{profile}: {off} {hundred}");
        assert!((off + 10.0 * 4.0..off + 22.0 * 4.0).contains(&four), "{profile}: {off} {four}");
    }
}

#[test]
fn static_windows_fill_no_more_than_equation_7_says() {
    for (senders, window) in [(2, 3), (8, 4), (16, 2), (40, 1), (16, 3)] {
        let sets = [
            SHORT.to_owned(),
            "transport.congestion_control=static".to_owned(),
            format!("transport.static_window={window}"),
            format!("workload.senders={senders}"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let outcome = outcome("incast", &sets);
        let network = outcome.summary.network.clone().unwrap();
        // ICC'15 eqs (6) and (7), with packets as frames in a switch. 64 kB hold 42 of them.
        let in_flight = senders * window * 1_518;
        assert_eq!(figure(&outcome.summary, "static.windows_bytes"), in_flight as f64);
        assert!(network.queue_bytes_max.unwrap() <= in_flight.min(64_000), "{sets:?} {network:?}");
        assert_eq!(network.drops.unwrap() == 0, in_flight <= 64_000 + 10 * 1_518, "{sets:?} {network:?}");
    }
}

#[test]
fn ictcp_keeps_the_windows_to_what_the_link_takes() {
    // Two segments from each of 16 senders fit, and so does the round trip; from each of 64 they do not.
    let ictcp = |senders: &str| outcome("incast", &[SHORT, "transport.congestion_control=ictcp", senders]);
    for senders in ["workload.senders=2", "workload.senders=16"] {
        let few = ictcp(senders);
        assert_eq!(few.summary.network.clone().unwrap().drops, Some(0), "{senders}");
        let slowdown = few.summary.slowdown.clone().unwrap().mean;
        assert!((1.0..1.35).contains(&slowdown), "{senders}: {slowdown}");
        assert!(figure(&few.summary, "ictcp.window_segments_max") >= 2.0);
    }
    assert!(figure(&ictcp("workload.senders=2").summary, "ictcp.increases") > 0.0);
    assert!(ictcp("workload.senders=64").summary.network.unwrap().drops.unwrap() > 0);
}

#[test]
fn swift_keeps_the_delay_near_its_target() {
    for (target, senders) in [("200 us", 2_u32), ("400 us", 8)] {
        let target_set = format!("transport.swift.target={target}");
        let senders_set = format!("workload.senders={senders}");
        let sets = [
            "run.duration=1 s",
            "transport.congestion_control=swift",
            "transport.swift.scaling=0 s",
            "tor.buffer=1 MB",
            &target_set,
            &senders_set,
        ];
        let swift = outcome("incast", &sets);
        let network = swift.summary.network.clone().unwrap();
        assert_eq!(network.drops, Some(0));
        let delay = figure(&swift.summary, "swift.delay_us_mean");
        assert!(delay < 500.0, "{delay}");
        // The queue holds the target delay at the link's rate, and the initial windows.
        assert!(network.queue_bytes_max.unwrap() < 300_000, "{network:?}");
        let slowdown = swift.summary.slowdown.clone().unwrap().mean;
        assert!((1.0..1.1).contains(&slowdown), "{slowdown}");
        // Without it the windows grow and fill the buffer.
        let plain = outcome("incast", &["run.duration=1 s", "tor.buffer=1 MB", &senders_set]);
        assert!(plain.summary.network.unwrap().queue_bytes_max > network.queue_bytes_max);
    }
}

#[test]
fn requests_within_their_deadline_are_counted() {
    let sets = |deadline| ["workload.senders=32", SHORT, "workload.request_size=64 kB", deadline];
    let requests = |deadline| outcome("incast", &sets(deadline)).summary.requests.unwrap();
    let none = requests("workload.deadline=0 s");
    assert_eq!(none.deadlines_met, None);
    let times = none.time_ms.unwrap();
    assert!(times.max > 150.0, "a timeout is there: {times:?}");
    let some = requests("workload.deadline=100 ms");
    let met = some.deadlines_met.unwrap();
    assert!(met < some.completed, "{met} of {}", some.completed);
    assert_eq!(requests("workload.deadline=10 s").deadlines_met, Some(some.completed));
}

#[test]
fn paced_credits_need_no_setting() {
    // Thesis switch A with a twelfth of its buffer, as shipped otherwise.
    let sets = [
        "shaping.method=paced-credits",
        "supervisor.policy=node-round-robin",
        "tor.buffer=64 kB",
        "run.duration=200 ms",
        "run.warmup=100 ms",
    ];
    let paced = outcome("thesis-a-1000hz", &sets);
    let (network, tcp) = (paced.summary.network.as_ref().unwrap(), paced.summary.tcp.as_ref().unwrap());
    assert_eq!((network.drops, tcp.timeouts), (Some(0), Some(0)));
    let slowdown = paced.summary.slowdown.as_ref().unwrap();
    // A collector's second and third event: the delay has been probed a few times only.
    assert!(slowdown.mean < 1.02 && slowdown.p99 < 1.10, "{slowdown:?}");
    assert_eq!(figure(&paced.summary, "paced_credits.losses"), 0.0);
    // A round trip of 400 us is 50 kB, their variation of 100 us half of that, and an answer 7 kB.
    assert!(figure(&paced.summary, "paced_credits.window_bytes_mean") < 100e3);
    assert!(figure(&paced.summary, "paced_credits.outstanding_bytes_max") < 150e3);
    // A fixed number of credits that suits 786 kB drops frames here.
    let fixed = outcome("thesis-a-1000hz", &[&["shaping.credits=480"], &sets[1..]].concat());
    assert!(fixed.summary.network.unwrap().drops.unwrap() > 0);
}
