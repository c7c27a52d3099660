//! Background traffic: connections of other applications over the same ports.

use fanin_report::{BackgroundFigures, Summary};
use fanin_scenario::{Scenario, load_text};
use fanin_sim::{RunControl, RunEnd, RunOutcome, run};

/// A rack of three collectors at 1 Gb/s, with deep buffers, that is hardly loaded.
const RACK: &str = r#"
[run]
duration = "2 s"
warmup = "500 ms"
[readout]
hosts = 12
fragments_per_host = 6
response_delay = "100 us"
[collectors]
racks = 1
hosts_per_rack = 3
units_per_host = 4
processing_time = "2 ms"
[supervisor]
rate = "100 Hz"
policy = "node-round-robin"
[network]
readouts_per_group = 0
[tor]
buffer = "2 MB"
uplink_buffer = "2 MB"
"#;

const TRANSFERS: [&str; 4] = [
    "background.connections=4",
    "background.kind=transfers",
    "background.transfer_size=100 kB",
    "background.transfer_sigma=1",
];

fn scenario(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    load_text("test", text, &sets).unwrap_or_else(|errors| panic!("{}", errors.render(false))).scenario
}

/// Runs to the end; no event is lost.
fn played(text: &str, sets: &[&str]) -> RunOutcome {
    let scenario = scenario(text, sets);
    let outcome = run(&scenario, scenario.run.seed, &RunControl::default()).unwrap();
    assert_eq!(outcome.end, RunEnd::Complete, "{sets:?}");
    if let Some(events) = &outcome.summary.events {
        assert_eq!((events.collected, events.lost), (events.assigned, 0), "{sets:?}");
    }
    outcome
}

fn background(summary: &Summary) -> &BackgroundFigures {
    summary.background.as_ref().expect("background traffic")
}

fn incast(sets: &[&str]) -> RunOutcome {
    played("extends = \"incast\"\nrun.duration = \"2 s\"\nrun.warmup = \"1 s\"\n", sets)
}

#[test]
fn transfers_get_their_load() {
    for load in ["0.1", "0.6"] {
        let of_load = format!("background.load={load}");
        // Readouts at 10 Gb/s hold nothing up.
        let sets = [&TRANSFERS[..], &[&of_load, "readout.link.rate=10 Gb/s"]].concat();
        let outcome = played(RACK, &sets);
        let figures = background(&outcome.summary);
        let load: f64 = load.parse().unwrap();
        // Three collectors at 1 Gb/s; 1448 of 1538 bytes of a frame are payload.
        let share = figures.goodput_bps.unwrap() * 1538.0 / 1448.0 / 3e9;
        assert!((share / load - 1.0).abs() < 0.12, "{load}: {share}");
        let transfers = figures.transfers.unwrap() as f64;
        let wanted = 2.0 * load * 3e9 * 1448.0 / 1538.0 / 8e5;
        assert!((transfers / wanted - 1.0).abs() < 0.12, "{load}: {transfers} of {wanted}");
        // 100 kB in 8 ms at 1 Gb/s and more: alone 0.9 ms.
        let mean = figures.transfer_ms.as_ref().unwrap().mean;
        assert!(mean > 0.8 && mean < 20.0, "{load}: {mean} ms");
        assert_eq!(figures.connections, Some(12));
    }
}

#[test]
fn bulk_data_fill_the_links_that_the_system_leaves() {
    let sets = ["background.connections=4", "readout.link.rate=10 Gb/s", "tor.buffer=300 kB"];
    let outcome = played(RACK, &sets);
    let figures = background(&outcome.summary);
    let goodput = figures.goodput_bps.unwrap() + outcome.summary.goodput_bps.as_ref().unwrap().total;
    let wire = 3e9 * 1448.0 / 1538.0;
    assert!(goodput > 0.95 * wire && goodput <= wire * 1.001, "{goodput} of {wire}");
    assert_eq!((figures.transfers, &figures.transfer_ms), (None, &None));
    let (least, most) = (figures.goodput_bps_min.unwrap(), figures.goodput_bps_max.unwrap());
    assert!(least > 0.0 && least <= most, "{least} {most}");
    // CUBIC fills the buffer: its losses are its own.
    assert!(figures.retransmits.unwrap() > 0, "{figures:?}");
}

#[test]
fn two_bulk_connections_share_a_link_evenly() {
    let sets = ["workload.senders=1", "workload.request_size=100 kB", "background.connections=4"];
    let outcome = incast(&[&sets[..], &["run.duration=10 s", "tor.buffer=300 kB"]].concat());
    let figures = background(&outcome.summary);
    let mean = figures.goodput_bps.unwrap() / 4.0;
    assert!(figures.goodput_bps_min.unwrap() > 0.3 * mean, "{figures:?}");
    assert!(figures.goodput_bps_max.unwrap() < 2.5 * mean, "{figures:?}");
    // One sender with a request at a time gets its part.
    assert!(outcome.summary.requests.as_ref().unwrap().completed > 10);
}

/// The profiles of ns-3 and the RFCs describe no kernel: background connections then have Linux' stack.
#[test]
fn background_connections_have_a_kernel_s_stack() {
    for profile in ["ns3-newreno", "textbook", "linux-2.6.26"] {
        let profile = format!("transport.profile={profile}");
        let outcome = incast(&[
            &profile,
            "workload.request_size=30 kB",
            "readout.link.rate=10 Gb/s",
            "tor.buffer=1 MB",
            "background.connections=2",
        ]);
        let figures = background(&outcome.summary);
        assert!(figures.goodput_bps.unwrap() > 1e8, "{profile}: {figures:?}");
        // A second has 81 000 frames on the link.
        assert!(figures.segments.unwrap() < 300_000, "{profile}: {figures:?}");
        assert!(figures.retransmits.unwrap() < 20_000, "{profile}: {figures:?}");
    }
}

#[test]
fn a_scenario_without_connections_is_the_same_to_the_bit() {
    for text in [RACK, "extends = \"incast\"\nrun.duration = \"100 ms\"\n"] {
        let sets =
            ["background.kind=transfers", "background.load=0.9", "background.congestion_control=newreno"];
        let [without, unused] = [&[][..], &sets].map(|sets| {
            let RunOutcome { mut summary, records, .. } = played(text, sets);
            summary.scenario = Default::default();
            (summary, records)
        });
        assert_eq!(without, unused);
        assert!(without.0.background.is_none());
    }
}

#[test]
fn a_run_repeats_to_the_bit_and_ends_with_its_workload() {
    let sets = [&TRANSFERS[..], &["background.load=0.5", "background.congestion_control=newreno"]].concat();
    let [one, other] = [1, 1].map(|_| played(RACK, &sets));
    assert_eq!((one.summary, &one.records), (other.summary, &other.records));
    // The table of flows ends with the background connections.
    let own = 12 * 3 + 3 + 12;
    let flows: Vec<_> =
        one.records.flows.iter().filter(|row| row.flow >= own && row.acked_bytes > 0).collect();
    assert_eq!(flows.len(), 12);
    assert!(flows.iter().all(|row| row.destination.starts_with("collector:")), "{flows:?}");
    let another = played(RACK, &[&sets[..], &["run.seed=2"]].concat());
    assert_ne!(one.records, another.records);
}

/// Background traffic in its own TCP, whatever the system's technique is.
#[test]
fn techniques_leave_background_traffic_alone() {
    let techniques: [&[&str]; 13] = [
        &[],
        &["shaping.credits=18"],
        &["shaping.method=paced-credits"],
        &["shaping.method=fastpass"],
        &["shaping.method=barrel-shifter"],
        &["transport.congestion_control=static"],
        &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold", "tor.ecn.threshold=20"],
        &["transport.congestion_control=diatcp"],
        &["transport.congestion_control=ictcp"],
        &["transport.congestion_control=m21tcp", "tor.m21=true", "core.m21=true"],
        &["transport.congestion_control=swift"],
        &["transport.congestion_control=sird"],
        &["tor.pause.mode=priority", "tor.pause.xoff=100 kB", "tor.pause.xon=50 kB"],
    ];
    for technique in techniques {
        for control in ["cubic", "bbr"] {
            let control = format!("background.congestion_control={control}");
            let sets = [&["background.connections=2", &control, "run.duration=1 s"][..], technique].concat();
            let outcome = played(RACK, &sets);
            let figures = background(&outcome.summary);
            // Six connections over three links of 1 Gb/s; their own links are as fast.
            assert!(figures.goodput_bps.unwrap() > 0.5e9, "{sets:?}: {figures:?}");
            // A marking switch drops the frames of others above its threshold, so that one may wait for a timeout.
            assert!(figures.goodput_bps_min.unwrap() > 0.0, "{sets:?}: {figures:?}");
        }
    }
}

#[test]
fn each_buffering_scheme_carries_it() {
    let schemes: [&[&str]; 6] = [
        &["tor.buffering=shared"],
        &["tor.buffering=dynamic-threshold"],
        &["tor.buffering=voq"],
        &["tor.buffering=daqring"],
        &["tor.buffering=unlimited"],
        &["tor.buffer=64 kB", "tor.uplink_buffer=64 kB"],
    ];
    for scheme in schemes {
        let sets = [&["background.connections=3", "run.duration=300 ms"][..], scheme].concat();
        let outcome = played(RACK, &sets);
        assert!(background(&outcome.summary).goodput_bps.unwrap() > 0.3e9, "{scheme:?}");
    }
}

#[test]
fn background_traffic_hides_no_stall() {
    // The arbiter fails, and hosts wait for its timeslots for hours.
    let failed = [
        "run.duration=1000 s",
        "run.stall_limit=1 s",
        "shaping.method=fastpass",
        "shaping.fastpass.fail_at=600 ms",
        "shaping.fastpass.failover=20 h",
        "transport.rto_max=1 s",
    ];
    let light = [&TRANSFERS[..], &["background.load=0.001"]].concat();
    let ends = [&[][..], &light].map(|background| {
        let sets = [&failed[..], background].concat();
        let outcome = run(&scenario(RACK, &sets), 1, &RunControl::default()).unwrap();
        let RunEnd::Stalled { at, diagnosis } = outcome.end else { panic!("{:?}", outcome.end) };
        assert!(diagnosis.contains("are not finished"), "{diagnosis}");
        (at - fanin_units::Instant::START).as_secs_f64()
    });
    assert!(ends[0] < 60.0 && ends[1] < 60.0, "{ends:?}");
}
