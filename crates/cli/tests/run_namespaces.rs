//! `fanin run` in namespaces, from outside: these need root.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{alone, ledger_of, privileged, wait_for};

fn fanin(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanin"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fanin-ns-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// A small incast: 100 Mb/s, 10 kB from each sender.
const INCAST: [&str; 20] = [
    "--set",
    "transport.profile=linux-6",
    "--set",
    "workload.request_size=10 kB",
    "--set",
    "workload.service_delay_max=1 ms",
    "--set",
    "link.rate=100 Mb/s",
    "--set",
    "readout.link.rate=100 Mb/s",
    "--set",
    "link.delay=25 us",
    "--set",
    "run.warmup=300 ms",
    "--set",
    "run.duration=1500 ms",
    "--set",
    "tor.buffer=64 kB",
    "--place",
    "namespaces",
];

/// Ends well, or with 4 because others keep this machine busy.
fn done(output: &Output) -> serde_json::Value {
    assert!(matches!(output.status.code(), Some(0 | 4)), "{:?} {}", output.status, text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

#[test]
fn an_incast_is_lossless_in_a_ring_and_not_in_a_shallow_buffer() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = folder("incast");
    let out = folder.to_str().unwrap();
    let run = |more: &[&str]| {
        let base = ["run", "incast", "--json", "-", "--out", out, "--set", "workload.senders=24"];
        let base = [&base[..], &["--set", "record.windows=[23]"]].concat();
        done(&fanin(&[&base[..], &INCAST[..], more].concat()).output().unwrap())
    };
    let shallow = run(&[]);
    assert_eq!((&shallow["kind"], &shallow["schema"]), (&"run".into(), &"fanin.summary/1".into()));
    let machine = &shallow["machine"];
    assert!(machine["scale"].as_f64() > Some(0.0) && machine["valid"].is_boolean(), "{shallow}");
    assert!(machine["capacity_bps"].as_f64() > machine["demand_bps"].as_f64(), "{shallow}");
    let network = &shallow["network"];
    // 24 senders' first windows are 240 kB; 64 kB cannot hold them. Nothing of that is the machine's.
    assert!(network["drops"].as_u64() > Some(0), "{shallow}");
    assert!(network["queue_bytes_max"].as_u64() > Some(50_000), "{shallow}");
    // The switch counts check sequences, which the buffer was given room for by whole frames.
    assert!(network["queue_bytes_max"].as_u64() <= Some(66_000), "{shallow}");
    assert!(shallow["tcp"]["retransmits"].as_u64() > Some(0), "{shallow}");
    for file in ["summary.json", "events.parquet", "queues.parquet", "flows.parquet", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let records = fanin_report::read(&folder).unwrap().records;
    assert!(
        records.windows.len() > 20 && records.windows.iter().all(|row| row.flow == 23),
        "{:?}",
        records.windows
    );
    let deep = run(&[
        "--set",
        "tor.buffering=daqring",
        "--set",
        "tor.daqring.rate=95 Mb/s",
        "--set",
        "transport.congestion_control=cubic",
    ]);
    assert_eq!(deep["network"]["drops"].as_u64(), Some(0), "{deep}");
    let rounds = |summary: &serde_json::Value| summary["requests"]["completed"].as_u64().unwrap();
    assert!(rounds(&deep) > rounds(&shallow), "{deep} {shallow}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn windows_that_are_shared_out_fit_a_shallow_buffer() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let run = |more: &[&str]| {
        let base = ["run", "incast", "--json", "-", "--set", "workload.senders=24"];
        let common = ["--set", "transport.delayed_ack=false"];
        done(&fanin(&[&base[..], &INCAST[..], &common[..], more].concat()).output().unwrap())
    };
    let drops = |summary: &serde_json::Value| summary["network"]["drops"].as_u64().unwrap();
    let completed = |summary: &serde_json::Value| summary["requests"]["completed"].as_u64().unwrap();
    let cubic = run(&[]);
    assert!(drops(&cubic) > 200, "{cubic}");
    // On a quiet machine nothing is lost. Another program may hold a host up for milliseconds. Its peers' kernels
    // then probe for lost tails, and these few copies come on top of the windows.
    let lossless = |summary: &serde_json::Value| {
        assert!(drops(summary) * 10 < drops(&cubic), "{summary} {cubic}");
        assert!(completed(summary) > completed(&cubic), "{summary} {cubic}");
    };
    // 38 full frames are 58 of the 64 kB; answers of other rounds' ends and acknowledgements find room as well.
    lossless(&run(&[
        "--set",
        "transport.congestion_control=diatcp",
        "--set",
        "transport.diatcp.global_window=38",
    ]));
    if cfg!(feature = "bpf") {
        let m21 = run(&["--set", "transport.congestion_control=m21tcp", "--set", "tor.m21=true"]);
        lossless(&m21);
        assert!(m21["m21tcp"]["bounds_changed"].as_u64() >= Some(24), "{m21}");
    } else {
        let base = ["run", "incast", "--quiet", "--place", "namespaces", "--set", "tor.m21=true"];
        let more = ["--set", "transport.congestion_control=m21tcp"];
        let output = fanin(&[&base[..], &more[..]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("cargo feature `bpf`"), "{}", text(&output.stderr));
    }
}

#[test]
fn windows_are_shared_out_where_events_overlap() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/validation/building-shallow.toml");
    let run = |more: &[&str]| {
        let base = ["run", case, "--json", "-", "--place", "namespaces", "--set", "supervisor.rate=60 Hz"];
        let time = ["--set", "run.duration=2 s"];
        done(&fanin(&[&base[..], &time[..], more].concat()).output().unwrap())
    };
    let drops = |summary: &serde_json::Value| summary["network"]["drops"].as_u64().unwrap();
    let cubic = run(&[]);
    assert!(drops(&cubic) > 200, "{cubic}");
    let shared =
        ["--set", "transport.congestion_control=diatcp", "--set", "transport.diatcp.global_window=38"];
    let shared = run(&shared);
    // Copies that a busy machine has the kernels send come on top of the windows.
    assert!(drops(&shared) * 10 < drops(&cubic), "{shared} {cubic}");
    assert!(shared["events"]["collected"].as_u64() > Some(60), "{shared}");
}

#[test]
fn events_have_their_time_outs_and_connections_their_windows() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/validation/building-shallow.toml");
    let (measured, simulated) = (folder("timeouts-run"), folder("timeouts-sim"));
    let run = |command: &str, out: &Path, more: &[&str]| {
        let base = [command, case, "--json", "-", "--out", out.to_str().unwrap()];
        // With one unit a collector has one event at a time: then no timeout is that of two.
        let keys = [
            "collectors.units_per_host=1",
            "run.warmup=0 s",
            "run.duration=2 s",
            // Six segments of sixteen senders: tails are lost again and again, and only timers bring them.
            "tor.buffer=16 kB",
            "record.windows=[0,3]",
            "record.queue_interval=2 ms",
        ];
        let keys: Vec<&str> = keys.iter().flat_map(|key| ["--set", key]).collect();
        let summary = done(&fanin(&[&base[..], &keys[..], more].concat()).output().unwrap());
        (summary, fanin_report::read(out).unwrap().records)
    };
    let (summary, records) = run("run", &measured, &["--place", "namespaces"]);
    if summary["tcp"]["timeouts"].is_null() {
        eprintln!("not looked at: timeouts, which this kernel does not count");
    } else {
        let of_events: u64 = records.events.iter().filter_map(|row| row.timeouts).sum();
        let of_flows: u64 = records.flows.iter().filter_map(|row| row.timeouts).sum();
        assert!(0 < of_events && of_events <= of_flows, "{of_events} of {of_flows}");
        assert!(summary["events"]["timeouts_mean"].as_f64() > Some(0.0), "{summary}");
        // Events without a timeout were faster, in the mean, than those with one.
        let mean = |slow: bool| {
            let rows = records.events.iter().filter(|row| row.has_timeouts() == slow);
            let times: Vec<u64> = rows.filter_map(|row| row.collection_time_ps).collect();
            times.iter().sum::<u64>() as f64 / times.len() as f64
        };
        assert!(mean(true) > mean(false) || mean(false).is_nan(), "{} {}", mean(true), mean(false));
    }
    let of = |flow: u64| records.windows.iter().filter(move |row| row.flow == flow);
    for flow in [0, 3] {
        assert!(of(flow).count() > 10, "{} samples", of(flow).count());
        assert!(of(flow).any(|row| row.in_flight_bytes > 0), "answers were on their way");
        assert!(of(flow).all(|row| row.cwnd_bytes >= 1000 && row.rwnd_bytes > Some(0)));
        let row =
            records.flows.iter().find(|row| row.flow == flow && row.source.starts_with("readout")).unwrap();
        let most = of(flow).map(|row| row.cwnd_bytes).max().unwrap();
        assert!(most / 1460 <= row.cwnd_packets_max.unwrap(), "{most} {row:?}");
    }
    let (_, predicted) = run("sim", &simulated, &[]);
    assert!(predicted.windows.iter().any(|row| row.flow == 3));
    let page = measured.join("both.html");
    let output = fanin(&["report", simulated.to_str().unwrap(), measured.to_str().unwrap(), "--out"])
        .arg(&page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let html = std::fs::read_to_string(&page).unwrap();
    for expected in ["Congestion windows", "Timeouts that hold up an event, mean"] {
        assert!(html.contains(expected), "the page lacks {expected}");
    }
    for folder in [measured, simulated] {
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_switch_that_stops_its_neighbour_loses_nothing() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let run = |more: &[&str]| {
        let base = ["run", "thesis-a-1000hz", "--json", "-", "--place", "namespaces"];
        // 320 kB at once into a rack's switch of 96 kB, behind one that holds everything.
        let keys = [
            "transport.profile=linux-6",
            "transport.congestion_control=cubic",
            "readout.hosts=16",
            "readout.fragments_per_host=4",
            "readout.fragment_size=5 kB",
            "readout.link.rate=100 Mb/s",
            "readout.response_delay=0 s",
            "network.cores=1",
            "network.readouts_per_group=0",
            "collectors.hosts_per_rack=1",
            "collectors.units_per_host=2",
            "supervisor.rate=12 Hz",
            "link.rate=100 Mb/s",
            "uplink.rate=200 Mb/s",
            "core.buffering=unlimited",
            "tor.buffering=dedicated",
            "tor.buffer=96 kB",
            "tor.uplink_buffer=1 MB",
            "run.scale=1",
            "run.warmup=300 ms",
            "run.duration=2 s",
        ];
        let keys: Vec<&str> = keys.iter().flat_map(|key| ["--set", key]).collect();
        done(&fanin(&[&base[..], &keys[..], more].concat()).output().unwrap())
    };
    let figure = |summary: &serde_json::Value, key: &str| summary["network"][key].as_u64().unwrap();
    let silent = run(&[]);
    assert!(figure(&silent, "drops") > 30 && figure(&silent, "pauses") == 0, "{silent}");
    let pausing = run(&[
        "--set",
        "tor.pause.mode=pause",
        "--set",
        "tor.pause.xoff=30 kB",
        "--set",
        "tor.pause.xon=15 kB",
    ]);
    // 66 kB are free when the neighbour receives PAUSE, which takes 5 ms to fill. Nothing is lost unless a switch waits that
    // long for a core.
    assert!(figure(&pausing, "pauses") > 0, "{pausing}");
    assert!(figure(&pausing, "drops") * 10 < figure(&silent, "drops"), "{pausing} {silent}");
    // Each event is paused about ten times. A paused link resumes with the RESUME frame. Ten whole pauses, of 168 ms each, would
    // outlast most of the run.
    let events = |key: &str| pausing["events"][key].as_u64().unwrap();
    assert!(figure(&pausing, "pauses") > 3 * events("collected"), "{pausing}");
    assert!(2 * events("collected") > events("assigned"), "{pausing}");
}

#[test]
fn events_are_built_through_two_cores() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let settings = [
        "run",
        "thesis-a-1000hz",
        "--json",
        "-",
        "--place",
        "namespaces",
        "--set",
        "readout.hosts=6",
        "--set",
        "readout.fragments_per_host=4",
        "--set",
        "network.readouts_per_group=4",
        "--set",
        "aggregation.buffering=dedicated",
        "--set",
        "collectors.hosts_per_rack=2",
        "--set",
        "collectors.units_per_host=1",
        "--set",
        "supervisor.rate=20 Hz",
        "--set",
        "run.scale=0.1",
        "--set",
        "run.warmup=50 ms",
        "--set",
        "run.duration=150 ms",
    ];
    let summary = done(&fanin(&settings).output().unwrap());
    let events = &summary["events"];
    assert!(events["collected"].as_u64() > Some(1), "{summary}");
    assert_eq!((&events["lost"], &events["duplicated"]), (&0.into(), &0.into()), "{summary}");
    assert!(summary["load"]["uplink"].as_f64() > Some(0.0), "{summary}");
}

/// Busy loops during the run, on its one core and with a higher priority.
struct Loops(Vec<std::process::Child>);

impl Loops {
    fn start(count: usize) -> Self {
        let one = || {
            Command::new("taskset")
                .args(["-c", "0", "nice", "-n", "-5", "timeout", "300", "sh", "-c", "while :; do :; done"])
                .spawn()
                .unwrap()
        };
        Self((0..count).map(|_| one()).collect())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // `timeout` ends the loop that it started when it receives SIGTERM.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

/// Runs a small system on one core while eight busy loops take it.
///
/// A process of the batch class waits for the end of a loop's slice each time it wakes. One of the normal class may
/// take the core at once, as it has used little of it.
fn run_on_a_busy_core(more: &[&str]) -> Output {
    let fanin = env!("CARGO_BIN_EXE_fanin");
    let base = [
        "--batch",
        "0",
        "taskset",
        "-c",
        "0",
        fanin,
        "run",
        "replay",
        "--json",
        "-",
        "--place",
        "namespaces",
    ];
    let sets = [
        "readout.hosts=4",
        "collectors.hosts_per_rack=1",
        "collectors.units_per_host=1",
        "readout.fragment_size=40 B",
        "supervisor.rate=50 Hz",
        "run.warmup=50 ms",
    ];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let _loops = Loops::start(16);
    Command::new("chrt").args(base).args(sets).args(more).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn hosts_that_wait_for_a_core_make_a_measurement_invalid() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let output = run_on_a_busy_core(&["--set", "run.scale=0.1", "--set", "run.duration=200 ms"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let machine = &summary["machine"];
    // A scale that is given is kept.
    assert_eq!(
        (&machine["valid"], &machine["spoilt"]),
        (&false.into(), &serde_json::Value::Null),
        "{machine}"
    );
    assert!(machine["reason"].is_string() && machine["host_late_ms"].as_f64() > Some(0.0), "{machine}");
}

/// The core is taken the whole time, so that every attempt is spoilt.
#[test]
fn a_run_that_the_machine_spoils_begins_again_at_half_the_scale() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = folder("spoilt");
    let output = run_on_a_busy_core(&["--out", folder.to_str().unwrap(), "--set", "run.duration=400 ms"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let machine = &summary["machine"];
    assert_eq!(machine["valid"], false, "{machine}");
    let spoilt: Vec<&str> =
        machine["spoilt"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!((spoilt.len(), said.matches("starting again at scale ").count()), (3, 3), "{said}");
    // Each attempt has half the scale of the one before.
    let scale = |line: &str| -> f64 {
        line.strip_prefix("at scale ").unwrap().split(':').next().unwrap().parse().unwrap()
    };
    let mut expected = scale(spoilt[0]);
    for attempt in &spoilt {
        assert!((scale(attempt) - expected).abs() < 1e-6, "{spoilt:?}");
        expected /= 2.0;
    }
    assert!((machine["scale"].as_f64().unwrap() - expected).abs() < 2e-6, "{machine}");
    // The events of the last attempt alone are there, and all of them.
    assert!(folder.join("live/data").is_dir() && !folder.join("live.1").exists());
    assert_eq!(
        (&summary["events"]["lost"], &summary["events"]["duplicated"]),
        (&0.into(), &0.into()),
        "{summary}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn events_are_built_through_the_switch() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = folder("events");
    let settings = [
        "run",
        "replay",
        "--json",
        "-",
        "--out",
        folder.to_str().unwrap(),
        "--place",
        "namespaces",
        "--set",
        "readout.hosts=4",
        "--set",
        "collectors.hosts_per_rack=1",
        "--set",
        "collectors.units_per_host=1",
        "--set",
        "supervisor.rate=5 Hz",
        "--set",
        "link.rate=100 Mb/s",
        "--set",
        "readout.link.rate=100 Mb/s",
        "--set",
        "logger.accept=0.5",
        "--set",
        "run.warmup=100 ms",
        "--set",
        "run.duration=1500 ms",
    ];
    let summary = done(&fanin(&settings).output().unwrap());
    let events = &summary["events"];
    assert!(events["collected"].as_u64() > Some(3), "{summary}");
    assert_eq!((&events["lost"], &events["duplicated"]), (&0.into(), &0.into()), "{summary}");
    // 1.03 MB at 100 Mb/s take 87 ms, through whatever network.
    assert!(summary["collection_time_ms"]["min"].as_f64() > Some(80.0), "{summary}");
    assert!(summary["ideal"]["how"].as_str().unwrap().contains("on the wire"), "{summary}");
    let stored: Vec<PathBuf> = std::fs::read_dir(folder.join("live/data"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "data"))
        .collect();
    assert!(!stored.is_empty());
    for file in stored {
        let checked = fanin(&["events", "verify", file.to_str().unwrap(), "--against", "km3net", "--cycle"]);
        let output = { checked }.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stdout));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn nothing_is_left_after_an_interrupt_or_a_kill() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let long = |folder: &Path| {
        let base =
            ["run", "incast", "--quiet", "--out", folder.to_str().unwrap(), "--set", "workload.senders=4"];
        let more = ["--set", "run.duration=60 s"];
        let child =
            fanin(&[&base[..], &INCAST[..], &more[..]].concat()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("round", || folder.join("live/aggregator.started").exists().then_some(()));
        let (path, ledger) = wait_for("ledger", || ledger_of(child.id()));
        let namespaces: Vec<PathBuf> = ledger["namespaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| Path::new("/run/netns").join(name.as_str().unwrap()))
            .collect();
        assert!(namespaces.len() == 6 && namespaces.iter().all(|path| path.exists()), "{ledger}");
        (child, path, namespaces)
    };
    let gone = |path: &Path, namespaces: &[PathBuf]| {
        !path.exists() && namespaces.iter().all(|namespace| !namespace.exists())
    };
    let kill = |signal: &str, pid: u32| {
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
    };

    let interrupted = folder("interrupted");
    let (mut child, ledger, namespaces) = long(&interrupted);
    kill("-INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(gone(&ledger, &namespaces), "{namespaces:?}");
    assert!(interrupted.join("summary.json").exists(), "what was measured is written");

    let killed = folder("killed");
    let (mut child, ledger, namespaces) = long(&killed);
    kill("-KILL", child.id());
    child.wait().unwrap();
    // The processes inside end with it; the namespaces stay until the next clean-up.
    let output = fanin(&["run", "--clean"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(gone(&ledger, &namespaces), "{namespaces:?} {}", text(&output.stdout));
    for folder in [interrupted, killed] {
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn an_impossible_network_is_refused_before_it_is_built() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let refused = |settings: &[&str]| {
        let base = ["run", "incast", "--quiet", "--place", "namespaces"];
        let output = fanin(&[&base[..], settings].concat()).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    // Between our switches links stop; hosts' ends of a virtual link know no PAUSE frames.
    let (code, said) = refused(&["--set", "tor.pause.mode=pause", "--set", "tor.buffer=256 kB"]);
    assert!(code == Some(2) && said.contains("`tor.pause.mode`"), "{code:?} {said}");
    let (code, said) = refused(&["--set", "record.events=[4]"]);
    assert!(code == Some(2) && said.contains("`record.events` is [4]"), "{code:?} {said}");
    let (code, said) = refused(&["--set", "transport.congestion_control=swift"]);
    assert!(code == Some(2) && said.contains("transport.congestion_control"), "{code:?} {said}");
    let check = fanin(&["run", "--check"]).output().unwrap();
    assert!(matches!(check.status.code(), Some(0 | 3)), "{}", text(&check.stderr));
    let table = text(&check.stdout);
    for feature in ["CAP_NET_ADMIN", "writable /proc/sys", "AF_XDP", "minimum RTO", "BPF programs"] {
        assert!(table.lines().any(|line| line.starts_with(feature)), "{feature} in {table}");
    }
}

/// Each host of a network gets kernel settings, so a container whose `/proc/sys` is read-only cannot have one.
#[test]
fn a_read_only_proc_sys_is_refused_before_a_network_is_built() {
    if !privileged() {
        return;
    }
    let script =
        "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$0\" \"$@\"";
    for arguments in [&["run", "--check"][..], &["run", "incast", "--quiet"]] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_fanin")]);
        let output = command.args(arguments).args(["--place", "namespaces"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains("need writable /proc/sys (it is mounted read-only: `mount -o remount"),
            "{said}"
        );
    }
}
