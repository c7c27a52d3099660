//! `fanin report` from outside.

mod common;

use std::collections::BTreeSet;

use common::{Folder, fanin, stderr, stdout};

#[test]
fn plans_of_several_scenarios_meet_on_one_page() {
    let scratch = Folder::new("page");
    let (shallow, credits, page) =
        (scratch.file("shallow.json"), scratch.file("credits.json"), scratch.file("page.html"));
    for (file, sets) in [(&shallow, &[][..]), (&credits, &["--set", "shaping.credits=480"])] {
        let output = fanin(&[&["plan", "thesis-a-1000hz", "--json", file], sets].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let output = fanin(&["report", &shallow, &credits, "--out", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    let html = std::fs::read_to_string(page).unwrap();
    for expected in ["<!DOCTYPE html>", "shallow", "credits", "2116.1 kB"] {
        assert!(html.contains(expected), "the page lacks {expected}");
    }
}

#[test]
fn files_without_a_result_exit_with_two() {
    let scratch = Folder::new("no-result");
    let (page, json) = (scratch.file("page.html"), scratch.file("other.json"));
    std::fs::write(&json, "{\"schema\": \"something/9\"}").unwrap();
    let searched = scratch.file("tune.json");
    std::fs::write(&searched, "{\"schema\": \"fanin.tune/1\", \"points\": []}").unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["report", &searched, "--out", &page], "`fanin tune … --out DIR` makes their page"),
        (&["report", "--out", &page], "<RESULT>..."),
        (&["report", "/nowhere", "--out", &page], "/nowhere"),
        (&["report", scratch.path().to_str().unwrap(), "--out", &page], "has no summary.json"),
        (&["report", &json, "--out", &page], "something/9"),
    ];
    for (arguments, expected) in cases {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    assert!(!std::path::Path::new(&page).exists(), "nothing is written where something is wrong");
}

#[test]
fn a_sweep_and_a_measurement_are_read_as_they_were_written() {
    let scratch = Folder::new("sweep");
    let (points, page) = (scratch.file("points"), scratch.file("page.html"));
    let sweep =
        ["--sweep", "workload.senders=4,8,12", "--set", "run.duration=100 ms", "--quiet", "--out", &points];
    let output = fanin(&[&["sim", "incast"][..], &sweep].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = fanin(&["report", &points, "--out", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Points are called by what was swept.
    let rows: Vec<&str> =
        stdout(&output).lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(rows, ["workload.senders=4", "workload.senders=8", "workload.senders=12"]);
    let html = std::fs::read_to_string(&page).unwrap();
    for expected in ["Request time against senders", "Goodput against senders", "workload.senders=12"] {
        assert!(html.contains(expected), "the page lacks {expected}");
    }
    // Two of its points, by their folders: one is made a measurement.
    let (first, second) = (scratch.file("points/000"), scratch.file("points/001"));
    let summary = scratch.file("points/001/summary.json");
    let text = std::fs::read_to_string(&summary).unwrap();
    std::fs::write(&summary, text.replacen("\"kind\": \"sim\"", "\"kind\": \"run\"", 1)).unwrap();
    let output = fanin(&["report", &first, &second, "--out", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let html = std::fs::read_to_string(&page).unwrap();
    for expected in ["Is it as predicted?", "Their scenarios differ", "goal: ±"] {
        assert!(html.contains(expected), "the page lacks {expected}");
    }
}

#[test]
fn sweeps_of_several_durations_in_one_folder_stay_apart() {
    let scratch = Folder::new("durations");
    let (points, page) = (scratch.file("points"), scratch.file("page.html"));
    for duration in ["run.duration=50 ms", "run.duration=100 ms"] {
        let sweep =
            ["--sweep", "workload.senders=4,8", "--set", duration, "--quiet", "--resume", "--out", &points];
        let output = fanin(&[&["sim", "incast"][..], &sweep].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let output = fanin(&["report", &points, "--out", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = stdout(&output);
    for named in ["50 ms, Senders 4,", "100 ms, Senders 4,", "50 ms, Senders 8,"] {
        let named = format!("Measured time {named}");
        assert_eq!(rows.matches(&named).count(), 1, "{named}: {rows}");
    }
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Measured time 50 ms"), "the page names the durations");
}

#[test]
fn results_of_reproduce_have_names_of_their_own() {
    let scratch = Folder::new("reproduced");
    let (folder, json, page) =
        (scratch.file("claims"), scratch.file("table.json"), scratch.file("page.html"));
    let output =
        fanin(&["reproduce", "I016", "I013", "--duration", "100 ms", "--out", &folder, "--json", &json]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    // The folder of the runs, and the JSON alone.
    for given in [&folder, &json] {
        let output = fanin(&["report", given, "--out", &page]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let rows: Vec<&str> =
            stdout(&output).lines().skip(1).map(|line| line.split(", simulation").next().unwrap()).collect();
        assert!(rows.len() > 1 && rows.iter().any(|row| row.contains(", shaping.credits=")), "{rows:?}");
        assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "{rows:?}");
        let html = std::fs::read_to_string(&page).unwrap();
        for expected in ["Claims of the papers", "I016", "icc15-147, shaping.credits=396"] {
            assert!(html.contains(expected), "the page of {given} lacks {expected}");
        }
    }
}

#[test]
fn the_json_of_an_advice_has_its_page() {
    let scratch = Folder::new("advised");
    let (folder, json, page) = (scratch.file("advice"), scratch.file("copy.json"), scratch.file("page.html"));
    let sets = ["--set=run.duration=100 ms", "--set=workload.request_size=20 kB", "--set=workload.senders=8"];
    let more = ["advise", "incast", "-q", "--only", "buffers", "--out", &folder, "--json", &json];
    let output = fanin(&[&more[..], &sets].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = fanin(&["report", &json, "--out", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // The same page but for its links, since the file may lie anywhere.
    let own = std::fs::read_to_string(scratch.file("advice/index.html")).unwrap();
    let linked = "<a href=\"buffers-tor.buffer/index.html\"><bdi>tor.buffer</bdi></a>";
    assert!(own.contains(linked));
    assert_eq!(std::fs::read_to_string(&page).unwrap(), own.replace(linked, "<bdi>tor.buffer</bdi>"));
    let output = fanin(&["report", &json, &folder, "--out", &page]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("has a page of its own; give it alone"), "{}", stderr(&output));
}
