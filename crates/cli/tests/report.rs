//! `fanin report` from outside.

mod common;

use common::{Folder, fanin, stderr};

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
    for expected in ["<!DOCTYPE html>", "shallow", "credits", "2112.8 kB"] {
        assert!(html.contains(expected), "the page lacks {expected}");
    }
}

#[test]
fn what_is_no_result_is_two() {
    let scratch = Folder::new("no-result");
    let (page, json) = (scratch.file("page.html"), scratch.file("other.json"));
    std::fs::write(&json, "{\"schema\": \"something/9\"}").unwrap();
    let cases: [(&[&str], &str); 4] = [
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
