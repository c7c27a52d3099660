//! `fanin tune` from outside: what it finds, what it refuses, what it writes.

mod common;

use std::time::Duration;

use common::{Folder, command, fanin, interrupt_after, stderr, stdout};
use serde_json::Value;

/// Reads of 8 servers whose answers overflow a small buffer.
const SMALL: [&str; 8] = [
    "incast",
    "-q",
    "--set=run.duration=400 ms",
    "--set=run.warmup=10 ms",
    "--set=workload.senders=8",
    "--set=workload.request_size=80 kB",
    "--json",
    "-",
];

fn tune(more: &[&str]) -> std::process::Output {
    fanin(&["tune"].iter().chain(&SMALL).chain(more).copied().collect::<Vec<_>>())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON alone: {error}\n{text}"))
}

/// The point of a search that tried these settings.
fn point<'a>(value: &'a Value, set: &str) -> Option<&'a Value> {
    value["points"].as_array().unwrap().iter().find(|point| point["set"][0] == set)
}

#[test]
fn the_smallest_buffer_without_loss_is_found() {
    let output = tune(&["--minimise", "tor.buffer", "--subject", "drops=0", "--seeds", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = json(stdout(&output));
    assert_eq!(value["schema"], "fanin.tune/1");
    assert_eq!(value["best"]["figures"]["drops"]["mean"], 0.0);
    // Below it is a tried value that drops, closer than the precision.
    let bytes = |point: &Value| -> f64 {
        let text = point["set"][0].as_str().unwrap().strip_prefix("tor.buffer=").unwrap().to_owned();
        let (number, unit) = text.split_once(' ').unwrap();
        let factor = match unit {
            "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            "KiB" => 1024.0,
            other => panic!("{other}"),
        };
        number.parse::<f64>().unwrap() * factor
    };
    let best = bytes(&value["best"]);
    let points = value["points"].as_array().unwrap();
    let below = points
        .iter()
        .filter(|point| bytes(point) < best)
        .max_by(|one, other| bytes(one).total_cmp(&bytes(other)));
    let below = below.expect("a smaller buffer was tried");
    assert_eq!(below["meets"], false);
    assert!(best / bytes(below) < 1.06, "{best} and {}", bytes(below));
    assert!(points.iter().filter(|point| bytes(point) > best).all(|point| point["meets"] == true));
}

#[test]
fn a_figure_is_minimised_the_same_on_any_number_of_threads() {
    let with = |threads: &str| {
        let output = tune(&[
            "--minimise",
            "mean",
            "--subject",
            "completed>0",
            "--over",
            "tor.buffer=16..256 kB",
            "--seeds",
            "2",
            "--simulations",
            "20",
            "--threads",
            threads,
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    let text = with("1");
    assert_eq!(text, with("3"));
    let value = json(&text);
    assert!(value["simulations"].as_u64().unwrap() <= 20);
    let mean = |point: &Value| point["figures"]["time_ms_mean"]["mean"].as_f64();
    let best = mean(&value["best"]).unwrap();
    let whole = value["points"].as_array().unwrap().iter().filter(|point| point["seeds"] == 2);
    assert!(whole.filter(|point| point["meets"] == true).filter_map(mean).all(|mean| mean >= best));
    let ends = ["tor.buffer=16 kB", "tor.buffer=256 kB"];
    assert!(ends.iter().all(|end| point(&value, end).is_some()), "{text}");
    assert!(value["best"]["figures"]["time_ms_mean"]["low"].as_f64().is_some_and(|low| low <= best));
}

#[test]
fn several_settings_stay_within_their_ranges() {
    let output = tune(&[
        "--maximise",
        "goodput",
        "--over",
        "tor.buffer=16..64 kB,workload.senders=4..16",
        "--seeds",
        "1",
        "--simulations",
        "15",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = json(stdout(&output));
    for point in value["points"].as_array().unwrap() {
        let senders = point["set"][1].as_str().unwrap().strip_prefix("workload.senders=").unwrap();
        assert!((4..=16).contains(&senders.parse::<u32>().unwrap()), "{point}");
    }
    assert!(value["simulations"].as_u64().unwrap() > 4);
}

#[test]
fn no_value_that_meets_the_constraints_is_said_plainly() {
    let output = tune(&["--minimise", "mean", "--subject", "drops=0", "--over", "tor.buffer=4..16 kB"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains(
            "no tried value of tor.buffer within 4 kB..16 kB meets drops=0; nearest was tor.buffer="
        ),
        "{said}"
    );
    let value = json(stdout(&output));
    assert!(value["best"].is_null() && value["nearest"]["meets"] == false);
}

#[test]
fn a_folder_holds_the_search_the_sweep_and_each_simulation() {
    let folder = Folder::new("tune-out");
    let out = folder.file("found");
    let mut arguments = vec!["tune"];
    arguments.extend(SMALL.iter().filter(|argument| !["-q", "--json", "-"].contains(argument)));
    arguments.extend([
        "--minimise",
        "mean",
        "--over",
        "tor.buffer=16..256 kB",
        "--simulations",
        "9",
        "--out",
        &out,
    ]);
    let output = fanin(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("tor.buffer  seeds  mean"), "{text}");
    assert!(text.contains("best: tor.buffer=") && text.contains("within 5 % of it:"), "{text}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join("found").join(name)).unwrap();
    let value = json(&read("tune.json"));
    assert_eq!(read("tune.csv").lines().count(), 1 + value["points"].as_array().unwrap().len());
    assert_eq!(json(&read("sweep.json"))["points"].as_array().unwrap().len(), 9);
    assert!(read("index.html").contains("tor.buffer"));
    for folder in value["best"]["folders"].as_array().unwrap() {
        let summary = json(&read(&format!("{}/summary.json", folder.as_str().unwrap())));
        assert_eq!(summary["kind"], "sim");
    }
}

#[test]
fn wrong_input_says_what_would_be_right() {
    let refused = |more: &[&str], text: &str| {
        let output = tune(more);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
        assert!(said.contains(text), "{more:?}: {said}");
        assert_eq!(stdout(&output), "", "nothing was simulated");
    };
    let mean = |over: &'static str| ["--minimise", "mean", "--over", over];
    refused(&mean("workload.sendrs=2..8"), "did you mean `senders`?");
    refused(&mean("supervisor.policy"), "`supervisor.policy` is \"fcfs\", not a number");
    refused(&mean("tor"), "`tor` is a section, not a number");
    refused(&mean("run.seed=1..9"), "choose the first with --seed, their number with --seeds");
    refused(&mean("tor.buffer=1..2"), "`tor.buffer` is a size, not `1`");
    refused(&mean("tor.buffer=9..2 kB"), "the range 9 kB..2 kB of `tor.buffer` is empty");
    refused(&mean("tor.buffer=64 kB"), "KEY=LOW..HIGH");
    refused(&mean("workload.senders=0..8"), "not from 1 to 65535");
    refused(&mean("tor.buffer,tor.buffer"), "given twice");
    refused(&["--minimise", "speed", "--over", "tor.buffer"], "no figure `speed`; the figures are");
    refused(&["--minimise", "mean"], "nothing to tune");
    refused(&["--over", "tor.buffer"], "--minimise");
    let subject = |text: &'static str| ["--minimise", "mean", "--over", "tor.buffer", "--subject", text];
    refused(&subject("p99<20"), "`p99` is a time, not `20`");
    refused(&subject("p99<20 kB"), "not `20 kB`");
    refused(&subject("speed<20"), "no figure `speed`");
    refused(&subject("drops"), "not a constraint");
    refused(&subject("drops<0"), "no value of `drops` can meet `drops<0`");
    let both = [&subject("p99<20 ms")[..], &["--subject", "p99>30 ms"]].concat();
    refused(&both, "can meet `p99<20 ms` and `p99>30 ms`");
}

#[test]
fn ctrl_c_keeps_what_was_simulated() {
    let folder = Folder::new("tune-stop");
    let out = folder.file("found");
    let mut child = command(&[
        "tune",
        "thesis-a-1000hz",
        "--minimise",
        "mean",
        "--over",
        "shaping.credits=60..1200",
        "--set",
        "run.duration=200 ms",
        "--set",
        "run.warmup=0 ms",
        "--simulations",
        "1000",
        "--seeds",
        "500",
        "--threads",
        "1",
        "--out",
        &out,
    ])
    .spawn()
    .unwrap();
    interrupt_after(&mut child, Duration::from_millis(1500));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let text = std::fs::read_to_string(folder.path().join("found/tune.json")).unwrap();
    assert_eq!(json(&text)["stopped"], true);
}
