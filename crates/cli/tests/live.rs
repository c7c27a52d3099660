//! `fanin run` and `fanin node` from outside.

mod common;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::hang_guard::HangGuard;
use common::{SMALL, fanin};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fanin-live-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Waits until the system under `folder` has completed ten events.
fn wait_for_ten_events(folder: &Path) {
    let guard = HangGuard::new();
    let journal = folder.join("live/supervisor.journal");
    while std::fs::read_to_string(&journal).unwrap_or_default().matches(" completed ").count() < 10 {
        guard.check("ten events");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_replay_is_built_stored_and_identical() {
    let folder = folder("replay");
    let out = folder.to_str().unwrap();
    let run = |more: &[&str]| {
        fanin(&[&["run", "replay", "--loopback", "--out", out][..], &SMALL[..], more].concat())
    };
    let windows = ["--set", "record.windows=[9]", "--set", "record.queue_interval=5 ms"];
    let trace = folder.join("trace.json");
    let output = run(&[&["--json", "-", "--trace", trace.to_str().unwrap()], &windows[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["schema"], &summary["kind"]), (&"fanin.summary/1".into(), &"run".into()));
    let events = &summary["events"];
    assert!(events["assigned"].as_u64() > Some(10) && events["stored"].as_u64() > Some(2), "{events}");
    assert_eq!((&events["lost"], &events["duplicated"]), (&0.into(), &0.into()));
    assert_eq!(events["assigned"], events["collected"]);
    for figure in ["collection_time_ms", "goodput_bps", "ideal", "slowdown", "speed"] {
        assert!(summary[figure].is_object(), "{figure} in {summary}");
    }
    let tcp = &summary["tcp"];
    assert!(tcp["segments"].as_u64() > Some(100) && tcp["retransmits"].is_u64(), "{tcp}");
    assert!(tcp["fast_retransmits"].is_null(), "the kernel does not count it by connection: {tcp}");
    assert_eq!(summary["transport"]["congestion_control"], "cubic", "{summary}");
    for file in [
        "flows.parquet",
        "summary.json",
        "events.parquet",
        "scenario.toml",
        "report.html",
        "live/supervisor.journal",
    ] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let records = fanin_report::read(&folder).unwrap().records;
    // Nothing is lost on a loopback, and so no timer ends.
    let of_events: u64 = records.events.iter().filter_map(|row| row.timeouts).sum();
    assert_eq!((of_events, &summary["events"]["timeouts_mean"]), (0, &0.0.into()), "{tcp}");
    assert!(records.windows.iter().all(|row| row.flow == 9) && !records.windows.is_empty());
    // The second collector's second readout, by the simulator's numbers.
    let name = |row: &fanin_report::FlowRow| (row.source.to_string(), row.destination.to_string());
    let traced = records.flows.iter().find(|row| row.flow == 9 && row.source.starts_with("readout"));
    assert_eq!(name(traced.unwrap()), ("readout-1".to_owned(), "collector-1".to_owned()));
    // The trace holds each event and each sample of a window.
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
    let entries = trace["traceEvents"].as_array().unwrap();
    let named = |start: &str| {
        entries.iter().filter(|entry| entry["name"].as_str().unwrap_or_default().starts_with(start)).count()
    };
    assert_eq!(
        (named("event "), named("connection 9")),
        (records.events.len(), records.windows.len()),
        "events and windows"
    );
    let mut files = 0;
    for entry in std::fs::read_dir(folder.join("live/data")).unwrap() {
        let path = entry.unwrap().path();
        let output = fanin(&["events", "verify", path.to_str().unwrap(), "--against", "km3net", "--cycle"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
        assert!(text(&output.stdout).contains("0 different, 0 added, 0 absent; 0 events unknown"));
        files += 1;
    }
    assert!(files > 0);

    // The same folder again: the events that the earlier run stored there are moved aside.
    let output = run(&["--set", "record.queues=[\"tor->collector:0\"]"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("`record.queues` is not written"), "{}", text(&output.stdout));
    assert!(!folder.join("windows.parquet").exists());
    assert!(folder.join("live.1/data").is_dir() && !folder.join("live.2").exists());
    assert!(text(&output.stdout).contains(" in the debug stream + 0 lost; "), "{}", text(&output.stdout));
    // A folder with other files is kept.
    std::fs::write(folder.join("live/system.toml"), "mine").unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("holds other files; choose an empty folder"),
        "{}",
        text(&output.stderr)
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn limits_of_a_loopback_run_are_reported_and_its_segments_captured() {
    let folder = folder("techniques");
    let pcap = folder.join("lo.pcapng");
    let more = ["--pcap", pcap.to_str().unwrap(), "--set", "transport.congestion_control=swift"];
    let output = fanin(&[&["run", "replay", "--loopback"], &SMALL[..], &more].concat());
    if output.status.code() == Some(3) {
        assert!(text(&output.stderr).contains("CAP_NET_RAW"), "{}", text(&output.stderr));
    } else {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.contains("not in force: transport.congestion_control = \"swift\""), "{said}");
        assert!(said.contains(" frames in "), "{said}");
        assert!(std::fs::metadata(&pcap).unwrap().len() > 10_000);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Processes whose command line names this file.
fn processes_of(file: &Path) -> usize {
    let name = file.to_str().unwrap().as_bytes().to_vec();
    let names = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(names);
    all.filter(|line| line.windows(name.len()).any(|window| window == name)).count()
}

#[test]
fn ctrl_c_ends_in_order_and_a_killed_parent_leaves_no_process() {
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let folder = folder(&format!("signal{signal}"));
        let out = folder.to_str().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fanin"));
        command
            .args(["run", "replay", "--loopback", "--out", out, "--quiet"])
            .args(SMALL)
            .args(["--set", "run.duration=100 s", "--set", "record.queue_interval=5 ms"])
            .args(["--set", "record.windows=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let guard = HangGuard::new();
        let journal = folder.join("live/supervisor.journal");
        let completed =
            || std::fs::read_to_string(&journal).unwrap_or_default().matches(" completed ").count();
        while completed() < 10 {
            guard.check("ten events");
            std::thread::sleep(Duration::from_millis(50));
        }
        let system = folder.canonicalize().unwrap().join("live/system.toml");
        assert!(processes_of(&system) > 10);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), code);
        let guard = HangGuard::new();
        while processes_of(&system) > 0 {
            guard.check(format_args!("the end of {} processes", processes_of(&system)));
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(folder.join("summary.json").exists(), code.is_some());
        // The traces of a run that was killed say as much as its journals.
        let explained = |event: u32| {
            let output = fanin(&["explain", &event.to_string(), "--in", out]);
            text(&output.stdout)
        };
        let said: String = (0..20).map(explained).collect();
        assert!(said.contains("The smallest congestion window during its collection was "), "{said}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn unsupported_scenarios_are_refused_with_a_reason() {
    let refused = |arguments: &[&str], reason: &str| {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(reason), "{arguments:?}: {}", text(&output.stderr));
    };
    refused(&["run", "replay", "--loopback", "--set", "workload.kind=push"], "workload.kind");
    refused(&["run", "thesis-a-1000hz", "--loopback"], "one machine runs at most 512");
    refused(&["run", "replay", "--set", "live.replay=none.raw"], "none.raw");
    refused(&["run", "replay", "--set", "readout.hosts=3"], "set readout.hosts to 4 or more");
    refused(&["run", "replay", "--set", "live.shipping_max=0"], "shipping_max");
    refused(&["node", "readout", "nothing.toml"], "cannot read nothing.toml");
    refused(&["node", "cook", "system.toml"], "possible values: supervisor, readout");
    let folder = folder("refused");
    let system = folder.join("system.toml");
    std::fs::write(
        &system,
        "scenario = \"replay\"\ninsecure = true\n[hosts]\nsupervisor = \"a:1\"\nreadouts = [\"r-[0-23]:1\"]\n\
         collectors = [\"c-[0-3]\"]\nloggers = [\"l-[0-1]:1\"]\n",
    )
    .unwrap();
    let path = system.to_str().unwrap();
    refused(&["node", "readout", path, "--index", "24"], "there is no readout 24; the system has 24");
    refused(&["node", "readout", path], "give --index");
    let text = std::fs::read_to_string(&system).unwrap();
    std::fs::write(&system, text.replace("insecure = true", "")).unwrap();
    refused(&["node", "readout", path, "--index", "0"], "peers are not authenticated; write `key = ");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn temporary_files_of_a_killed_run_are_removed() {
    let temporary = folder("temporary");
    let [dead, alive] = ["fanin-run-1", "fanin-run-2"].map(|name| temporary.join(name));
    for left in [&dead, &alive] {
        std::fs::create_dir_all(left.join("live")).unwrap();
        std::fs::write(left.join(".lock"), "").unwrap();
    }
    let lock = std::fs::File::open(alive.join(".lock")).unwrap();
    lock.lock().unwrap();
    let cleaned = || {
        let output = Command::new(env!("CARGO_BIN_EXE_fanin"))
            .args(["run", "--clean"])
            .env("TMPDIR", &temporary)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(cleaned().contains("1 folders of temporary files"));
    assert!(!dead.exists() && alive.exists(), "a run that goes on keeps its folder");
    assert!(!cleaned().contains("1 folders"));
    std::fs::remove_dir_all(&temporary).unwrap();
}

/// The numbers of processes of a role that read this file.
fn processes_in_role(file: &Path, role: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
        if words.contains(&role.as_bytes()) && words.contains(&file.to_str().unwrap().as_bytes()) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn events_that_frozen_loggers_cost_are_counted_and_named() {
    let folder = folder("frozen");
    let out = folder.to_str().unwrap();
    let json = folder.join("summary.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanin"));
    command.args(["run", "replay", "--loopback", "--out", out, "--json", json.to_str().unwrap()]).args(SMALL);
    command.args(["--set", "logger.hosts=2", "--set", "live.drain=1 s", "--set", "run.duration=1 s"]);
    // The loggers freeze in the warm-up: what they cost counts all the same.
    command.args(["--set", "run.warmup=4 s"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_ten_events(&folder);
    // A second run into the folder is refused, and costs the first one nothing.
    let second =
        fanin(&[&["run", "replay", "--loopback", "--out", out, "--overwrite"][..], &SMALL[..]].concat());
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("another run is using"), "{}", text(&second.stderr));
    let system = folder.canonicalize().unwrap().join("live/system.toml");
    let loggers = processes_in_role(&system, "logger");
    assert_eq!(loggers.len(), 2);
    for logger in loggers {
        assert!(Command::new("kill").args(["-STOP", &logger]).status().unwrap().success());
    }
    let output = child.wait_with_output().unwrap();
    let (said, complaint) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{complaint}");
    assert!(complaint.contains("events were lost, assigned and never finished with: "), "{complaint}");
    assert!(said.contains("ended by force: logger-0, logger-1"), "{said}");
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let events = &summary["events"];
    let count = |key: &str| events[key].as_u64().unwrap_or_default();
    assert!(count("lost") > 0, "{events}");
    assert_eq!(
        count("assigned"),
        count("rejected") + count("stored") + count("debug") + count("lost"),
        "{events}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_verdict_is_printed_even_if_the_tables_cannot_be_written() {
    let folder = folder("verdict");
    std::fs::create_dir_all(folder.join("events.parquet")).unwrap();
    let out = folder.to_str().unwrap();
    let output = fanin(&[&["run", "replay", "--loopback", "--out", out][..], &SMALL[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("events.parquet"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("events assigned = "), "{}", text(&output.stdout));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_readout_that_freezes_for_good_is_started_again_and_its_missing_fragments_are_a_failure() {
    let folder = folder("readout");
    let out = folder.to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanin"));
    command.args(["run", "replay", "--loopback", "--out", out]).args(SMALL);
    for set in [
        "live.silence_max=1 s",
        "live.readout_wait=300 ms",
        "live.request_timeout=500 ms",
        "run.duration=8 s",
    ] {
        command.args(["--set", set]);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_ten_events(&folder);
    let system = folder.canonicalize().unwrap().join("live/system.toml");
    let readouts = processes_in_role(&system, "readout");
    assert!(Command::new("kill").args(["-STOP", &readouts[0]]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let (said, complaint) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{complaint}");
    assert!(said.contains(" hung, and was killed: 1 ×"), "{said}");
    assert!(
        complaint.contains("fragments are missing, and the readouts did not work all the time: readout-"),
        "{complaint}"
    );
    // The audit, the summary and an explanation are there all the same.
    assert!(said.contains("events assigned = ") && folder.join("summary.json").is_file(), "{said}");
    let text_of = std::fs::read_to_string(folder.join("live/collector-0.journal")).unwrap();
    let line = text_of.lines().find(|line| line.contains(" missing ")).unwrap();
    let event = line.split(' ').nth(1).unwrap();
    let explained = fanin(&["explain", event, "--in", out]);
    let said = text(&explained.stdout);
    assert!(explained.status.success(), "{}", text(&explained.stderr));
    assert!(said.starts_with(&format!("event {event}: ")) && said.contains("did not deliver"), "{said}");
    let json = fanin(&["explain", event, "--in", out, "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(
        json["reasons"].as_array().unwrap().len() > 1 && json["steps"].as_array().unwrap().len() > 3,
        "{json}"
    );
    let unknown = fanin(&["explain", "4000000000", "--in", out]);
    assert_eq!(unknown.status.code(), Some(2));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_process_that_ends_is_reported_at_once_and_counted_at_the_end() {
    let folder = folder("crashed");
    let run = |more: &[&str]| {
        let out = ["run", "replay", "--loopback", "--overwrite", "--out", folder.to_str().unwrap()];
        let mut command = common::command(&[&out[..], &SMALL[..], more].concat());
        // Long enough for a busy machine to find and kill a process.
        let child = command.args(["--set", "run.duration=10 s"]).spawn().unwrap();
        wait_for_ten_events(&folder);
        let system = folder.canonicalize().unwrap().join("live/system.toml");
        let collectors = processes_in_role(&system, "collector");
        assert!(Command::new("kill").args(["-KILL", &collectors[0]]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let is_reported = |text: &str| {
        let mut lines = text.lines().filter(|line| line.contains("a process ended"));
        lines.any(|line| line.contains("WARN") && line.contains("process=\"collector-"))
    };
    let (said, complaint) = run(&[]);
    assert!(is_reported(&complaint), "{complaint}");
    assert!(said.contains(" ended without an order: 1 ×"), "{said}");
    assert!(!folder.join("launcher.log").exists());
    // Events of the first run would count as those of the second.
    std::fs::remove_dir_all(folder.join("live")).unwrap();
    let (_, complaint) = run(&["--quiet"]);
    assert_eq!(complaint, "");
    assert!(is_reported(&std::fs::read_to_string(folder.join("launcher.log")).unwrap()));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_audit_reads_the_folders_of_all_hosts() {
    let folder = folder("audited");
    let out = folder.join("run");
    let output =
        fanin(&[&["run", "replay", "--loopback", "--out", out.to_str().unwrap()][..], &SMALL[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let run_said: Vec<String> =
        text(&output.stdout).lines().filter(|line| line.starts_with("audit ")).map(str::to_owned).collect();
    let audit = |folders: &[&Path], more: &[&str]| {
        let folders: Vec<&str> = folders.iter().map(|folder| folder.to_str().unwrap()).collect();
        fanin(&[&["audit"][..], &folders, more].concat())
    };
    // As `fanin run` left it.
    let whole = audit(&[&out], &[]);
    assert_eq!((whole.status.code(), run_said.len()), (Some(0), 1), "{}", text(&whole.stderr));
    assert_eq!(text(&whole.stdout).lines().collect::<Vec<_>>(), run_said);
    // As two hosts leave it: the supervisor's and the readouts', and that of the collectors and loggers.
    let [first, second] = ["first", "second"].map(|host| folder.join(host));
    for host in [&first, &second] {
        std::fs::create_dir_all(host).unwrap();
    }
    for path in std::fs::read_dir(out.join("live")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".journal") {
            let host = if name.starts_with("supervisor") { &first } else { &second };
            std::fs::copy(&path, host.join(name)).unwrap();
        }
    }
    // An event is explained from the journals of both, as from the run's own folder.
    let explain = |folders: &[&Path]| {
        let folders = folders.iter().flat_map(|folder| ["--in", folder.to_str().unwrap()]);
        let output = fanin(&[&["explain", "3", "--json", "-"][..], &folders.collect::<Vec<_>>()].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let of_both = explain(&[&first, &second, &second]);
    let of_run = explain(&[&out]);
    assert_eq!((&of_both["steps"], &of_both["outcome"]), (&of_run["steps"], &of_run["outcome"]));
    let of_one = explain(&[&second]);
    let assigned =
        |explained: &serde_json::Value| explained["steps"].to_string().contains("assigned to unit");
    assert!(assigned(&of_both) && !assigned(&of_one), "{of_one}");
    let names = ["--in", out.to_str().unwrap(), "--in", first.to_str().unwrap()];
    let of_two_runs = fanin(&[&["explain", "3"][..], &names].concat());
    assert_eq!(of_two_runs.status.code(), Some(2));
    assert!(text(&of_two_runs.stderr).contains("in two runs"), "{}", text(&of_two_runs.stderr));
    let data = out.join("live/data");
    let both = audit(&[&first, &second, &data], &["--json", "-"]);
    assert_eq!(both.status.code(), Some(0), "{}", text(&both.stderr));
    let verdict: serde_json::Value = serde_json::from_slice(&both.stdout).unwrap();
    assert!(verdict["events"]["stored"].as_u64() > Some(2), "{verdict}");
    assert_eq!((&verdict["events"]["lost"], &verdict["findings"]), (&0.into(), &serde_json::json!([])));
    // Stored events are lost without the folder that has them.
    let without = audit(&[&first, &second], &[]);
    assert_eq!(without.status.code(), Some(1));
    assert!(text(&without.stdout).contains("FAILED"), "{}", text(&without.stdout));
    // Two runs do not make one system.
    let twice = audit(&[&out, &first], &[]);
    assert_eq!(twice.status.code(), Some(1));
    assert!(text(&twice.stderr).contains("in two runs"), "{}", text(&twice.stderr));
    for (empty, reason) in
        [(folder.clone(), "neither journals nor files"), (folder.join("none"), "No such file")]
    {
        let refused = audit(&[&empty], &[]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(reason), "{}", text(&refused.stderr));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Runs a command; whether it worked.
fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

/// Keeps a disk full until the command ends. Returns its output.
fn fill_until_the_end(mut child: Child, ballast: &Path) -> Output {
    let mut file = std::fs::File::options().create(true).append(true).open(ballast).unwrap();
    while child.try_wait().unwrap().is_none() {
        // Smaller and smaller blocks, until no byte is free.
        for size in [1 << 20, 1 << 12, 1] {
            while file.write(&vec![0; size]).is_ok_and(|written| written > 0) {}
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_run_whose_disk_is_full_to_the_end_says_what_was_lost() {
    let disk = folder("full-disk");
    let path = disk.to_str().unwrap();
    if !works("mount", &["-t", "tmpfs", "-o", "size=60M", "fanin-full-disk", path]) {
        std::fs::remove_dir(&disk).unwrap();
        return common::skip::skip("mounting a small disk needs root");
    }
    let tested = std::panic::catch_unwind(|| {
        let out = disk.join("run");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fanin"));
        command.args(["run", "replay", "--loopback", "--out", out.to_str().unwrap()]).args(SMALL);
        command.args(["--set", "run.duration=4 s", "--set", "live.drain=2 s"]);
        let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = pipes.spawn().unwrap();
        wait_for_ten_events(&out);
        let output = fill_until_the_end(child, &disk.join("ballast"));
        let (said, complaint) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}{complaint}");
        // The verdict is there, although no table could be written.
        let verdict = said
            .lines()
            .find(|line| line.contains(" events assigned = "))
            .unwrap_or_else(|| panic!("{said}"));
        let number = |before: &str| -> u64 {
            let (number, _) = verdict.split_once(before).unwrap_or_else(|| panic!("{verdict}"));
            number.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let [assigned, rejected, stored, debug, lost] =
            [" events assigned", " rejected", " stored", " in the debug stream", " lost"].map(number);
        assert!(assigned >= 10 && stored + rejected > 0 && lost > 0, "{verdict}");
        assert!(rejected + stored + debug + lost <= assigned, "{verdict}");
        let named = format!("FAILED: {lost} of {assigned} events were lost");
        assert!(said.contains(&named) && complaint.contains(&named[8..]), "{said}{complaint}");
        assert!(!out.join("summary.json").exists());
        assert!(
            complaint.contains("note: cannot write ") && complaint.contains("No space left"),
            "{complaint}"
        );
        // With free space again, an audit of the files has the same verdict.
        std::fs::remove_file(disk.join("ballast")).unwrap();
        let audited = fanin(&["audit", out.to_str().unwrap()]);
        assert_eq!(audited.status.code(), Some(1));
        assert!(text(&audited.stdout).contains(&named), "{}", text(&audited.stdout));
    });
    assert!(works("umount", &["--lazy", path]));
    std::fs::remove_dir(&disk).unwrap();
    if let Err(panic) = tested {
        std::panic::resume_unwind(panic);
    }
}
