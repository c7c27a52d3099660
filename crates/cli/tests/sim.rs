//! `fanin sim` from outside: exit codes, what stands where, files, sweeps, Ctrl-C.

mod common;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use common::{Folder, command, fanin, interrupt_after, stderr, stdout};
use serde_json::Value;

/// A system that is simulated in a fraction of a second.
const SMALL: &str = r#"
title = "small"
[run]
duration = "50 ms"
warmup = "10 ms"
[readout]
hosts = 16
fragments_per_host = 4
response_delay_sd = "100 us"
[collectors]
hosts_per_rack = 3
units_per_host = 4
processing_time = "5 ms"
[supervisor]
rate = "1 kHz"
policy = "random"
[network]
readouts_per_group = 8
[record]
queues = ["tor->collector:*"]
"#;

/// The small system as a file.
fn small(folder: &Folder) -> String {
    let path = folder.file("small.toml");
    std::fs::write(&path, SMALL).unwrap();
    path
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON alone: {error}\n{text}"))
}

/// A summary without what differs from run to run.
fn figures(summary: &Value) -> Value {
    let mut summary = summary.clone();
    summary.as_object_mut().unwrap().remove("speed");
    summary
}

/// The text shows a technique's own figures too, so that a PAUSE storm is visible without the JSON.
#[test]
fn the_text_has_each_techniques_figures() {
    let sets = [
        "run.duration=300 ms",
        "link.rate=1 Mb/s",
        "readout.link.rate=1 Gb/s",
        "workload.request_size=8 kB",
        "workload.senders=8",
        "tor.pause.mode=pause",
        "tor.pause.xoff=6 kB",
        "tor.pause.xon=2 kB",
        "tor.buffer=1 MB",
    ];
    let mut arguments = vec!["sim", "incast"];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
    let output = fanin(&arguments);
    let line = stdout(&output).lines().find(|line| line.starts_with("pause ")).unwrap_or_default();
    let storms = line.split(", ").find_map(|figure| figure.strip_prefix("storms "));
    assert!(storms.is_some_and(|storms| storms.parse::<u32>().is_ok_and(|storms| storms > 0)), "{line:?}");
    let plain = fanin(&["sim", "incast", "--set", "run.duration=10 ms"]);
    assert!(!stdout(&plain).contains("pause "), "{}", stdout(&plain));
}

#[test]
fn json_on_stdout_is_alone_and_follows_the_contract() {
    let folder = Folder::new("sim-json");
    let output = fanin(&["sim", &small(&folder), "--json", "-"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let summary = json(stdout(&output));
    assert_eq!((&summary["schema"], &summary["kind"]), (&"fanin.summary/1".into(), &"sim".into()));
    assert_eq!((&summary["events"]["assigned"], &summary["events"]["lost"]), (&50.into(), &0.into()));
    for key in [
        "/collection_time_ms/ideal",
        "/slowdown/p99",
        "/goodput_bps/total",
        "/load/last_hop",
        "/network/drops",
        "/tcp/timeouts",
        "/speed/packet_hops",
        "/ideal/how",
    ] {
        assert!(summary.pointer(key).is_some_and(|value| !value.is_null()), "{key} is absent");
    }
    assert!(
        summary["requests"].is_null() && !stdout(&output).contains("null"),
        "a key that does not apply is absent"
    );
    assert!(summary["slowdown"]["p50"].as_f64().unwrap() >= 1.0);
}

#[test]
fn a_barrier_fills_requests() {
    let output = fanin(&[
        "sim",
        "incast",
        "--set",
        "run.duration=20 ms",
        "--set",
        "workload.senders=2",
        "--set",
        "workload.request_size=10 kB",
        "--json",
        "-",
    ]);
    let summary = json(stdout(&output));
    assert!(summary["requests"]["completed"].as_u64().unwrap() > 10);
    assert!(summary["events"].is_null());
}

#[test]
fn without_json_a_summary_is_printed_and_quiet_prints_nothing() {
    let folder = Folder::new("sim-text");
    let path = small(&folder);
    let output = fanin(&["sim", &path]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stdout(&output).contains("collection time") || stdout(&output).contains("Collection time"),
        "{}",
        stdout(&output)
    );
    assert!(!stdout(&output).contains('\x1b'), "a pipe gets no colours");
    let output = fanin(&["sim", &path, "--quiet"]);
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(0), "", ""));
}

#[test]
fn the_seed_decides_and_repeats() {
    let folder = Folder::new("sim-seed");
    let path = small(&folder);
    let run = |seed: &str| figures(&json(stdout(&fanin(&["sim", &path, "--seed", seed, "--json", "-"]))));
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
    assert_eq!(run("7")["seed"], 7);
}

#[test]
fn all_files_of_a_run_can_be_read_again() {
    let folder = Folder::new("sim-out");
    let (out, pcap) = (folder.file("out"), folder.file("link.pcapng"));
    let output = fanin(&["sim", &small(&folder), "--out", &out, "--pcap", &pcap, "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let names =
        ["summary.json", "events.parquet", "queues.parquet", "flows.parquet", "scenario.toml", "report.html"];
    for name in names {
        assert!(Path::new(&out).join(name).metadata().is_ok_and(|file| file.len() > 0), "{name} is missing");
    }
    let result = fanin_report::read(Path::new(&out)).unwrap();
    // Those of the warm-up are there as well.
    assert_eq!(result.records.events.len(), 60);
    assert!(
        result
            .records
            .events
            .iter()
            .all(|row| row.collection_time_ps >= row.ideal_ps && row.ideal_ps.is_some())
    );
    assert!(!result.records.queues.is_empty());
    assert!(result.records.flows.len() >= 48, "{} flows", result.records.flows.len());
    assert_eq!(
        json(stdout(&output)),
        json(&std::fs::read_to_string(Path::new(&out).join("summary.json")).unwrap())
    );
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("<!DOCTYPE html>") && page.contains("small"));

    // The resolved scenario is the same run again.
    let resolved = Path::new(&out).join("scenario.toml");
    let again = fanin(&["sim", resolved.to_str().unwrap(), "--json", "-"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(
        figures(&json(stdout(&again)))["collection_time_ms"],
        json(stdout(&output))["collection_time_ms"]
    );
    frames(&std::fs::read(&pcap).unwrap());
}

/// Walks a pcapng file: blocks of the right length, an interface with nanoseconds, frames in the order of time that
/// hold IPv4 and TCP.
fn frames(bytes: &[u8]) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(8)), (0x0a0d_0d0a, 0x1a2b_3c4d), "a section header in little-endian order");
    let (mut at, mut interfaces, mut seen, mut last) = (0, 0, 0, 0);
    while at < bytes.len() {
        let (kind, length) = (word(at), word(at + 4) as usize);
        assert!(
            length >= 12 && length % 4 == 0 && word(at + length - 4) as usize == length,
            "a block at {at}"
        );
        match kind {
            1 => {
                assert_eq!(word(at + 8) & 0xffff, 1, "Ethernet");
                // if_tsresol: 10^-9.
                assert!(
                    bytes[at..at + length].windows(5).any(|option| option == [9, 0, 1, 0, 9]),
                    "nanoseconds"
                );
                interfaces += 1;
            }
            6 => {
                let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
                assert!(time >= last, "frames in the order of time");
                last = time;
                let frame = &bytes[at + 28..at + 28 + word(at + 20) as usize];
                assert_eq!((&frame[12..14], frame[14], frame[23]), (&[8, 0][..], 0x45, 6), "IPv4 and TCP");
                assert!(word(at + 24) >= word(at + 20));
                seen += 1;
            }
            _ => {}
        }
        at += length;
    }
    assert_eq!((at, interfaces), (bytes.len(), 1));
    assert!(seen > 1000, "{seen} frames");
}

#[test]
fn a_trace_holds_each_event_and_no_two_of_one_unit_at_a_time() {
    let folder = Folder::new("sim-trace");
    let (path, out) = (small(&folder), folder.file("trace.json"));
    let output = fanin(&["sim", &path, "--quiet", "--trace", &out, "--json", "-"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let trace = json(&std::fs::read_to_string(&out).unwrap());
    let mut slices: Vec<(u64, u64, f64, f64)> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["ph"] == "X" && entry["name"].as_str().unwrap().starts_with("event "))
        .map(|entry| {
            let (begin, lasted) = (entry["ts"].as_f64().unwrap(), entry["dur"].as_f64().unwrap());
            (entry["pid"].as_u64().unwrap(), entry["tid"].as_u64().unwrap(), begin, begin + lasted)
        })
        .collect();
    slices.sort_by(|one, other| one.partial_cmp(other).unwrap());
    let assigned = json(stdout(&output))["events"]["assigned"].as_u64().unwrap();
    assert!(slices.len() as u64 >= assigned && assigned > 0, "{} of {assigned}", slices.len());
    for pair in slices.windows(2) {
        let (one, other) = (pair[0], pair[1]);
        assert!((one.0, one.1) != (other.0, other.1) || one.3 <= other.2, "{one:?} and {other:?} overlap");
    }
}

#[test]
fn a_trace_shows_the_worst_ports_and_the_latest_event() {
    let folder = Folder::new("sim-trace-ports");
    let out = folder.file("trace.json");
    let set = ["--set", "workload.senders=16", "--set", "run.duration=1 s"];
    let output = fanin(&[&["sim", "incast", "--quiet", "--trace", &out, "--json", "-"], &set[..]].concat());
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let (trace, summary) = (json(&std::fs::read_to_string(&out).unwrap()), json(stdout(&output)));
    let entries = trace["traceEvents"].as_array().unwrap();
    let process = |name: &str| {
        let named = |entry: &&Value| {
            entry["name"] == "process_name" && entry["args"]["name"].as_str().unwrap().starts_with(name)
        };
        entries.iter().find(named).unwrap_or_else(|| panic!("no process {name}"))["pid"].as_u64().unwrap()
    };
    let of = |process: u64, name: &str| -> Vec<&Value> {
        entries.iter().filter(|entry| entry["pid"] == process && entry["name"] == name).collect()
    };
    let port = &summary["ports"][0];
    let worst = process(&format!("port {}, limit", port["name"].as_str().unwrap()));
    assert!(of(worst, "dropped frames").iter().any(|entry| entry["args"]["frames"].as_u64() > Some(0)));
    let deepest = of(worst, "queue").iter().filter_map(|entry| entry["args"]["bytes"].as_u64()).max();
    assert!(deepest >= port["queue_bytes_max"].as_u64(), "{deepest:?} of {port:#}");
    let goodput = of(process("network"), "goodput");
    let fastest = goodput.iter().filter_map(|entry| entry["args"]["bits_per_second"].as_u64()).max().unwrap();
    assert!((100_000_000..1_000_000_000).contains(&fastest), "{fastest} bit/s");
    assert!(
        of(process("network"), "timeouts").iter().any(|entry| entry["args"]["expired"].as_u64() > Some(0))
    );
    // Sources of the slowest event are tracks; timeouts lie within their requests.
    let late = process("late event");
    let requests = of(late, "request");
    assert_eq!(requests.len(), 16);
    let span = |entry: &Value| {
        let begin = entry["ts"].as_f64().unwrap();
        (entry["tid"].as_u64().unwrap(), begin, begin + entry["dur"].as_f64().unwrap())
    };
    let waits = of(late, "RTO");
    assert!(!waits.is_empty());
    for wait in waits {
        let (thread, begin, end) = span(wait);
        let request = requests.iter().map(|entry| span(entry)).find(|request| request.0 == thread).unwrap();
        assert!(request.1 <= begin && end <= request.2, "{wait} in {request:?}");
        assert!(end - begin > 100_000.0, "the minimum RTO is 200 ms: {wait}");
    }
}

#[test]
fn a_sweep_is_in_order_and_the_same_on_any_number_of_threads() {
    let folder = Folder::new("sim-sweep");
    let path = small(&folder);
    let run = |threads: &str, out: &str| {
        let output = fanin(&[
            "sim",
            &path,
            "--sweep",
            "supervisor.rate=800 Hz,200 Hz",
            "--sweep",
            "supervisor.policy=fcfs,random",
            "--threads",
            threads,
            "--out",
            out,
            "--json",
            "-",
        ]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
        json(stdout(&output))
    };
    let (one, many) = (folder.file("one"), folder.file("many"));
    let (first, second) = (run("1", &one), run("4", &many));
    let sets: Vec<String> =
        first["points"].as_array().unwrap().iter().map(|point| point["set"].to_string()).collect();
    assert_eq!(
        sets,
        [
            r#"["supervisor.rate=800 Hz","supervisor.policy=fcfs"]"#,
            r#"["supervisor.rate=800 Hz","supervisor.policy=random"]"#,
            r#"["supervisor.rate=200 Hz","supervisor.policy=fcfs"]"#,
            r#"["supervisor.rate=200 Hz","supervisor.policy=random"]"#,
        ]
    );
    for (number, (a, b)) in
        first["points"].as_array().unwrap().iter().zip(second["points"].as_array().unwrap()).enumerate()
    {
        assert_eq!(figures(&a["summary"]), figures(&b["summary"]));
        let read =
            |out: &str| fanin_report::read(&Path::new(out).join(format!("{number:03}"))).unwrap().records;
        assert!(read(&one) == read(&many), "the records of point {number} differ");
    }
}

#[test]
fn shards_and_a_stopped_sweep_are_resumed_to_the_same_points() {
    let folder = Folder::new("sim-sweep-resumed");
    let (path, out) = (small(&folder), folder.file("out"));
    let sweep = |rates: &str, more: &[&str]| {
        let sweep = format!("supervisor.rate={rates}");
        let output =
            fanin(&[&["sim", &path, "--sweep", &sweep, "--out", &out, "--json", "-"], more].concat());
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
        json(stdout(&output))["points"].as_array().unwrap().clone()
    };
    let stored = || {
        let mut found: Vec<(PathBuf, SystemTime)> = std::fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .map(|path| (path.clone(), path.join("summary.json").metadata().unwrap().modified().unwrap()))
            .collect();
        found.sort();
        found
    };
    let rates = "800 Hz,400 Hz,200 Hz";
    let second = sweep(rates, &["--shard", "2/2"]);
    assert_eq!(second.len(), 1);
    assert!(second[0]["set"].to_string().contains("400 Hz"), "{second:?}");
    let before = stored();
    assert_eq!(before.len(), 1);
    assert_eq!(before[0].0.file_name().unwrap().len(), 32);
    let table = Path::new(&out).join("sweep.csv");
    assert!(!table.exists(), "a shard has no table of the whole sweep");
    let all = sweep(rates, &["--resume"]);
    assert_eq!(all.len(), 3);
    assert_eq!(std::fs::read_to_string(&table).unwrap().lines().count(), 4, "a head and three points");
    // Existing points are kept, and the figures are those of an uninterrupted sweep.
    let after = stored();
    assert!(after.len() == 3 && after.contains(&before[0]), "{after:?}");
    let straight = folder.file("straight");
    let sweep_of = format!("supervisor.rate={rates}");
    let output = fanin(&["sim", &path, "--sweep", &sweep_of, "--out", &straight, "--json", "-"]);
    for (one, other) in all.iter().zip(json(stdout(&output))["points"].as_array().unwrap()) {
        assert_eq!(figures(&one["summary"]), figures(&other["summary"]));
    }
    // Another duration is another result.
    sweep(rates, &["--resume", "--set", "run.duration=60 ms"]);
    assert_eq!(stored().len(), 6);
    // Points of the other layout would stand twice on a page.
    for (folder, option, how) in [(&straight, "--resume", "without"), (&out, "--quiet", "with")] {
        let refused = fanin(&["sim", &path, "--sweep", &sweep_of, "--out", folder, option]);
        let expected = format!(
            "error: {folder} holds a sweep made {how} --resume: choose another folder, or sweep {how} --resume\n"
        );
        assert_eq!((refused.status.code(), stderr(&refused)), (Some(2), &*expected));
    }
    assert_eq!(stored().len(), 6);
    let page = folder.file("page.html");
    assert_eq!(fanin(&["report", &out, "--out", &page]).status.code(), Some(0));
}

#[test]
fn ctrl_c_writes_what_was_measured() {
    let folder = Folder::new("sim-stopped");
    let out = folder.file("out");
    let path = small(&folder);
    let sets = ["--set", "run.duration=80000 s", "--set", "record.queues=[]"];
    let arguments = [&["sim", &path, "--out", &out, "--json", "-"], &sets[..]].concat();
    let mut child = command(&arguments).spawn().unwrap();
    interrupt_after(&mut child, Duration::from_millis(300));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    // The rows of 80 000 seconds need more than a gigabyte.
    let said = stderr(&output);
    let (note, error) = said.split_once('\n').unwrap();
    assert!(
        note.starts_with("note: the simulation needs at least ") && note.ends_with(" MB of memory"),
        "{note}"
    );
    assert_eq!(error, "error: stopped; the results until then are written\n");
    let summary = json(stdout(&output));
    assert!(summary["events"]["collected"].as_u64().unwrap() > 0, "{summary}");
    let result = fanin_report::read(Path::new(&out)).unwrap();
    assert!(result.records.events.len() as u64 > summary["events"]["collected"].as_u64().unwrap());
}

#[test]
fn after_ctrl_c_a_large_result_is_written_and_a_note_says_so() {
    let folder = Folder::new("sim-stopped-large");
    let out = folder.file("out");
    let path = small(&folder);
    let sets = ["--set", "run.duration=600 ms", "--set", "record.queue_interval=100 ns", "--out", &out];
    let arguments = [&["sim", &path, "--quiet"], &sets[..]].concat();
    let mut child = command(&arguments).spawn().unwrap();
    interrupt_after(&mut child, Duration::from_millis(500));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let rows = fanin_report::read(Path::new(&out)).unwrap().records.queues.len();
    assert!(rows > 100_000, "{rows} rows in half a second of processor time");
    assert_eq!(
        stderr(&output),
        "stopped: writing the result; press Ctrl-C again to abort\n\
         error: stopped; the results until then are written\n"
    );
}

#[test]
fn ctrl_c_ends_a_sweep_with_the_points_that_are_whole() {
    let folder = Folder::new("sim-sweep-stopped");
    let path = small(&folder);
    let out = folder.file("out");
    let arguments = [
        "sim",
        &path,
        "--set",
        "record.queues=[]",
        "--sweep",
        "run.duration=50 ms,80000 s,80001 s",
        "--threads",
        "2",
        "--out",
        &out,
        "--json",
        "-",
    ];
    let mut child = command(&arguments).spawn().unwrap();
    // The first point takes a moment, the others would take a day.
    interrupt_after(&mut child, Duration::from_secs(1));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let swept = json(stdout(&output));
    let points = swept["points"].as_array().unwrap();
    assert!(!points.is_empty() && points[0]["summary"]["events"]["collected"] == 50, "{swept}");
    assert!(Path::new(&out).join("000/summary.json").exists());
}

/// A profile without BBR is refused when its run begins: the points before and after it are kept.
#[test]
fn an_unplayable_point_of_a_sweep_costs_only_itself() {
    let folder = Folder::new("sim-sweep-unplayable");
    for (out, more) in [("numbers", &[][..]), ("hashes", &["--resume"])] {
        let out = folder.file(out);
        let arguments = [
            "sim",
            "incast",
            "--set",
            "run.duration=50 ms",
            "--set",
            "workload.senders=2",
            "--sweep",
            "transport.profile=linux-6,linux-2.6.32",
            "--sweep",
            "transport.congestion_control=bbr,cubic",
            "--out",
            &out,
            "--json",
            "-",
        ];
        let output = fanin(&[&arguments, more].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let refused = "transport.profile=linux-2.6.32 transport.congestion_control=bbr";
        assert!(said.contains(&format!("{refused} has no result: ")), "{said}");
        assert!(said.contains(&format!("error: these points have no result: {refused}\n")), "{said}");
        let swept = json(stdout(&output));
        let sets: Vec<String> = swept["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| format!("{} {}", point["set"][0], point["set"][1]).replace("transport.", ""))
            .collect();
        let expected = ["linux-6 bbr", "linux-6 cubic", "linux-2.6.32 cubic"].map(|set| {
            let (profile, control) = set.split_once(' ').unwrap();
            format!("\"profile={profile}\" \"congestion_control={control}\"")
        });
        assert_eq!(sets, expected, "{said}");
        for file in ["sweep.csv", "sweep.json", "index.html"] {
            assert!(Path::new(&out).join(file).exists(), "{file} is missing");
        }
    }
    // The folder of a point keeps the point's number.
    let numbers = folder.file("numbers");
    let is_there = ["000", "001", "002", "003"].map(|point| Path::new(&numbers).join(point).exists());
    assert_eq!(is_there, [true, true, false, true]);
}

#[test]
fn a_run_that_cannot_move_ends_with_who_waits_for_whom() {
    let output = fanin(&[
        "sim",
        "incast",
        "--set",
        "run.duration=5 s",
        "--set",
        "readout.link.loss=0.999999",
        "--json",
        "-",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("the aggregator has waited since"), "{}", stderr(&output));
    assert!(json(stdout(&output))["network"]["packets"].as_u64().unwrap() > 0, "what was measured is there");

    let folder = Folder::new("sim-stalled");
    let output = fanin(&[
        "sim",
        &small(&folder),
        "--quiet",
        "--set",
        "readout.link.loss=0.999999",
        "--set",
        "run.duration=5 s",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("events are not finished"), "{}", stderr(&output));
    assert!(stderr(&output).contains("waits for"), "{}", stderr(&output));
}

#[test]
fn unsupported_scenarios_are_refused_before_anything_runs() {
    let folder = Folder::new("sim-refused");
    let (path, out) = (small(&folder), folder.file("out"));
    let cases: [(&[&str], &str); 15] = [
        (&["sim"], "required"),
        (
            &["sim", &path, "--set", "record.queues=[\"tor->collecter\"]"],
            "record.queues: no queue is called \"tor->collecter\"\n --> --set:1:16\n",
        ),
        (
            &["sim", &path, "--sweep", "logger.accept=0,1", "--sweep", "logger.accept=0.5"],
            "`logger.accept` is swept twice: give all its values at once",
        ),
        (
            &["sim", &path, "--sweep", "run.seed=4,5", "--seed", "9"],
            "--sweep run.seed and --seed both choose the seeds: leave one of them out",
        ),
        (&["sim", &path, "--sweep", "run.seed=4,5", "--repeat", "2"], "--sweep run.seed and --repeat both"),
        (&["sim", "incest"], "did you mean the preset `incast`?"),
        (&["sim", &path, "--set", "shaping.method=credits", "--set", "shaping.credits=3"], "credits"),
        (&["sim", &path, "--set", "tor.buffer=100 B"], "buffer"),
        (
            &["sim", &path, "--set", "record.capture=nowhere", "--pcap", "/dev/null"],
            "no link is called \"nowhere\"",
        ),
        (&["sim", &path, "--pcap", "/dev/null/x"], "cannot write /dev/null/x"),
        (&["sim", &path, "--sweep", "tor.buffer="], "write KEY=V1,V2"),
        (&["sim", &path, "--sweep", "tor.buffer=1 MB", "--shard", "3/2"], "I from 1 to N"),
        (&["sim", &path, "--resume"], "--sweep"),
        (&["sim", &path, "--sweep", "tor.bufer=1 MB"], "did you mean `buffer`?"),
        (&["sim", &path, "--threads", "0"], "a whole number from 1 to 65535"),
    ];
    for (arguments, expected) in cases {
        let output = fanin(&[arguments, &["--out", &out]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
        assert!(!Path::new(&out).exists(), "{arguments:?} wrote something");
    }
}
