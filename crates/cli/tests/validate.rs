//! `fanin validate` from outside: the simulation against what is on record, and a few cases for real.

mod common;

use common::{Folder, fanin, stderr, stdout};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/validation");

#[test]
fn the_simulation_is_what_was_measured() {
    let scratch = Folder::new("validate-recorded");
    let page = scratch.file("validation.md");
    let output = fanin(&["validate", CASES, "--recorded", "--markdown", &page]);
    let table = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{table}{}", stderr(&output));
    let rows = table.lines().filter(|line| line.contains(" / ") && line.contains("agrees")).count();
    assert_eq!(rows, 30, "cases agree:\n{table}");
    // The set's figures stand with its goals in the table and on the page.
    let goals = [
        "incast or not agrees in 33 of 33 cases",
        "mean without incast: median error ",
        "goodput with incast: median error ",
        "mean of event building with incast: median error ",
    ];
    for goal in goals {
        assert!(table.contains(goal), "{goal}:\n{table}");
    }
    // A reason for a difference that has gone says nothing true: it leaves the baseline.
    assert!(!table.contains("though it is known not to"), "{table}");
    let written = std::fs::read_to_string(page).unwrap();
    assert!(goals.iter().all(|goal| written.contains(&format!("\n- {goal}"))), "{written}");
    // The committed page has another day's figures, but the same cases.
    let committed = std::fs::read_to_string(format!("{CASES}/../../docs/validation.md")).unwrap();
    assert_eq!(case_names(&written), case_names(&committed), "write docs/validation.md again");
}

fn case_names(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| case"));
    rows.filter_map(|row| Some(row.split('|').nth(1)?.trim())).collect()
}

/// The cases that differ from what was measured, by set. A mended case leaves the list.
const DIFFERING: [(&str, &str, &[&str]); 2] = [
    (
        "drawn",
        "incast or not agrees in 44 of 45 cases",
        &["drawn-01", "drawn-08", "drawn-12", "drawn-28", "drawn-32", "drawn-37", "drawn-38", "drawn-45"],
    ),
    ("named", "incast or not agrees in 7 of 7 cases", &["building-racks-2k", "building-racks"]),
];

#[test]
fn the_same_random_and_named_cases_differ_as_on_record() {
    for (set, incast, expected) in DIFFERING {
        let scratch = Folder::new(&format!("validate-{set}"));
        let page = scratch.file("page.md");
        let output = fanin(&["validate", &format!("{CASES}/{set}"), "--recorded", "--markdown", &page]);
        let table = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{table}{}", stderr(&output));
        let differing: Vec<&str> = table
            .lines()
            .filter(|line| line.ends_with("  differs"))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(differing, expected, "{set}:\n{table}");
        assert!(table.contains(incast), "{incast}:\n{table}");
        let written = std::fs::read_to_string(page).unwrap();
        let committed = format!("{CASES}/../../docs/validation-{set}.md");
        let names = std::fs::read_to_string(&committed).unwrap();
        assert_eq!(case_names(&written), case_names(&names), "write {committed} again");
    }
}

#[test]
fn quick_cases_run_as_simulated() {
    if !common::privileged() {
        return;
    }
    let scratch = Folder::new("validate-live");
    // At half the rate, so that a machine that is busy with other tests has time enough.
    for case in ["cubic-04", "daqring-32"] {
        let text = format!(
            "extends = \"{CASES}/{case}.toml\"\n[run]\nduration = \"2 s\"\n[link]\nrate = \"50 Mb/s\"\n"
        );
        std::fs::write(scratch.file(&format!("{case}.toml")), text).unwrap();
    }
    let output = fanin(&["validate", scratch.path().to_str().unwrap(), "--out", &scratch.file("out")]);
    let table = stdout(&output);
    assert!([Some(0), Some(1)].contains(&output.status.code()), "{table}{}", stderr(&output));
    let rows: Vec<&str> =
        table.lines().filter(|line| line.starts_with("cubic-") || line.starts_with("daqring-")).collect();
    assert_eq!(rows.len(), 2, "{table}{}", stderr(&output));
    // After three attempts on a machine that is too busy a case is not measured, and the command fails.
    let (busy, measured): (Vec<&str>, Vec<&str>) =
        rows.into_iter().partition(|row| row.contains("not measured: "));
    assert_eq!(output.status.code(), Some(i32::from(!busy.is_empty())), "{table}{}", stderr(&output));
    for row in measured {
        assert!(row.contains("  agrees") && row.contains("no / no"), "{table}");
        let case = row.split_whitespace().next().unwrap();
        let page = std::fs::read_to_string(scratch.file(&format!("out/{case}/report.html"))).unwrap();
        assert!(page.contains("Is it as predicted?"), "{case}");
    }
    if !busy.is_empty() {
        common::skip::not_measured(busy.join(" "));
    }
}

#[test]
fn wrong_cases_exit_with_two() {
    let scratch = Folder::new("validate-wrong");
    let folder = scratch.path().to_str().unwrap().to_owned();
    let cases: [(&[&str], &str); 3] = [
        (&["validate", "/nowhere", "--recorded"], "/nowhere has no case"),
        (&["validate", &folder, "--recorded"], "has no case"),
        (&["validate", CASES, "--recorded", "--only", "nonsense"], "whose name begins with nonsense"),
    ];
    for (arguments, expected) in cases {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    std::fs::write(scratch.file("one.toml"), "extends = \"incast\"\n").unwrap();
    std::fs::write(scratch.file("baseline.toml"), "[case.one]\nmean = 1\n").unwrap();
    let output = fanin(&["validate", &folder, "--recorded"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("baseline.toml"), "{}", stderr(&output));
}

#[test]
fn a_difference_beyond_the_goals_is_one() {
    let scratch = Folder::new("validate-differs");
    let folder = scratch.path().to_str().unwrap().to_owned();
    std::fs::write(
        scratch.file("small.toml"),
        format!("extends = \"{CASES}/cubic-04.toml\"\n[run]\nduration = \"200 ms\"\n"),
    )
    .unwrap();
    let recorded = "[case.small]\ndate = \"2026-01-01\"\nkernel = \"6.18.0\"\ncompleted = 50\nmean_ms = 9.0\nideal_ms = 3.4\n\
                    goodput_bps = 35e6\nqueue_bytes_max = 40442\ndrops = 0\ntimeouts = 0\n";
    std::fs::write(scratch.file("baseline.toml"), recorded).unwrap();
    let output = fanin(&["validate", &folder, "--recorded"]);
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("differs"), "{}", stdout(&output));
    assert!(stderr(&output).contains("small"), "{}", stderr(&output));
    for (range, code, verdict) in
        [("[2.0, 3.0]", 0, "differs, as known"), ("[0.5, 1.5]", 1, "differs beyond its known range")]
    {
        let known =
            format!("[known.small]\nwhy = \"made up\"\nratio = {{ mean-ms = {range} }}\n\n{recorded}");
        std::fs::write(scratch.file("baseline.toml"), known).unwrap();
        let output = fanin(&["validate", &folder, "--recorded"]);
        assert_eq!(output.status.code(), Some(code), "{}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains(verdict), "{}", stdout(&output));
    }
}
