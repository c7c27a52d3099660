//! `fanin compare` from outside.

mod common;

use std::time::Duration;

use common::{Folder, command, fanin, interrupt_after, stderr, stdout};
use serde_json::Value;

const SMALL: [&str; 4] = ["--duration", "20 ms", "--warmup", "0 s"];

#[test]
fn techniques_stand_side_by_side() {
    let mut arguments = vec!["compare", "incast", "--techniques", "none,deep-buffers,sird,barrel-shifter"];
    arguments.extend(SMALL);
    let output = fanin(&[&arguments[..], &["--json", "-"]].concat());
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let table: Value = serde_json::from_str(stdout(&output)).expect("JSON alone");
    assert_eq!(table["schema"], "fanin.compared/1");
    let rows = table["scenarios"][0]["techniques"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "deep-buffers", "sird", "barrel-shifter"]);
    assert!(rows[0]["drops"].as_u64().unwrap() > 0 && rows[2]["drops"] == 0, "{rows:#?}");
    assert_eq!(rows[1]["extra_reverse"].as_f64(), Some(0.0));
    assert!(
        rows[3]["refused"].as_str().unwrap().contains("a barrel shifter needs several collectors"),
        "{rows:#?}"
    );
    assert!(rows[3].get("mean_ms").is_none(), "a key that does not apply is absent");

    // `report` makes the page of the table alone.
    let folder = Folder::new("compare-json");
    let (json, page) = (folder.file("table.json"), folder.file("page.html"));
    std::fs::write(&json, stdout(&output)).unwrap();
    let reported = fanin(&["report", &json, "--out", &page]);
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    let page = std::fs::read_to_string(page).unwrap();
    for words in ["Techniques on incast", "All results", ">deep-buffers<", "barrel-shifter is not possible"] {
        assert!(page.contains(words), "{words}");
    }

    let output = fanin(&[&arguments[..], &["--markdown"]].concat());
    for line in ["## incast: ", "| technique | mean, ms |", "| `sird` | ", "not possible: a barrel shifter"] {
        assert!(stdout(&output).contains(line), "{line}: {}", stdout(&output));
    }
    // The same on any number of threads.
    let text = |threads| fanin(&[&arguments[..], &["--threads", threads]].concat()).stdout;
    assert_eq!(text("1"), text("3"));
}

#[test]
fn seeds_give_intervals_and_overlaps_are_said() {
    let folder = Folder::new("compare-seeds");
    let out = folder.file("out");
    let techniques = ["--techniques", "none,deep-buffers,static,barrel-shifter", "--repeat", "3"];
    let sets = ["--set", "workload.senders=10", "--duration", "1 s", "--warmup", "0 s"];
    let arguments = [&["compare", "incast"][..], &techniques, &sets].concat();
    let output = fanin(&[&arguments[..], &["--json", "-", "--out", &out]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table: Value = serde_json::from_str(stdout(&output)).expect("JSON alone");
    let scenario = &table["scenarios"][0];
    let rows = scenario["techniques"].as_array().unwrap();
    assert_eq!(rows.len(), 10, "a row for each run, and one for the impossible technique");
    let seeds: Vec<_> = rows[..3].iter().map(|row| row["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [1, 2, 3]);
    let over = scenario["over_seeds"].as_array().unwrap();
    assert_eq!((over.len(), &over[0]["seeds"]), (3, &serde_json::json!([1, 2, 3])));
    let mean = &over[0]["figures"]["time_ms_mean"];
    let of_rows = rows[..3].iter().map(|row| row["mean_ms"].as_f64().unwrap()).sum::<f64>() / 3.0;
    assert!((mean["mean"].as_f64().unwrap() - of_rows).abs() < 1e-9, "{mean} {of_rows}");
    assert!(mean["low"].as_f64().unwrap() < of_rows && of_rows < mean["high"].as_f64().unwrap());
    // Techniques without losses take as long as each other. Those that collapse do not.
    let least: Vec<&str> =
        scenario["least_mean"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(!least.contains(&"none") && !least.is_empty(), "{least:?}");

    let page = std::fs::read_to_string(folder.path().join("out/index.html")).unwrap();
    for words in [
        "Over the seeds",
        "3 of 9 results: <bdi>none</bdi>.",
        "Least mean time:",
        "barrel-shifter is not possible",
        "class=\"interval\"",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("barrel-shifter is not possible").count(), 1);
    let reported = fanin(&["report", &out, "--out", &folder.file("page.html")]);
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    let again = std::fs::read_to_string(folder.file("page.html")).unwrap();
    assert!(again.contains("Over the seeds") && again.contains("Least mean time:"), "of the folder");

    let output = fanin(&arguments);
    let text = stdout(&output);
    assert!(text.contains("means over 3 seeds ± half of their intervals of 95 %"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("none ") && line.contains(" ± ")), "{text}");
    assert!(text.contains("least mean: "), "{text}");
    assert!(fanin(&["compare", "incast", "--repeat", "0"]).status.code() == Some(2));
}

#[test]
fn settings_of_each_technique_are_listed() {
    let output = fanin(&["compare", "--list", "--techniques", "static"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("--set \"transport.static_window=2\""), "{}", stdout(&output));
}

#[test]
fn wrong_input_exits_with_two() {
    for (arguments, expected) in [
        (&["compare", "incast", "--techniques", "nothing"][..], "there are none, deep-buffers, credits"),
        (&["compare", "no-such-scenario"], "fanin scenario list"),
        (&["compare", "incast", "--duration", "soon"], "soon"),
    ] {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn ctrl_c_is_130() {
    let arguments = ["compare", "incast", "--techniques", "deep-buffers", "--duration", "10000 s"];
    let mut child = command(&arguments).spawn().unwrap();
    interrupt_after(&mut child, Duration::from_millis(200));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
}

#[test]
fn too_few_events_have_no_figures_and_a_note() {
    let arguments = ["compare", "incast", "--techniques", "none,static", "--duration", "100 ms", "--warmup"];
    let output = fanin(&[&arguments[..], &["500 ms", "--json", "-"]].concat());
    let table: Value = serde_json::from_str(stdout(&output)).expect("JSON alone");
    let rows = table["scenarios"][0]["techniques"].as_array().unwrap();
    // In collapse no round ends within 100 ms.
    assert_eq!((&rows[0]["completed"], rows[0].get("mean_ms")), (&0.into(), None), "{rows:#?}");
    assert!(rows[1]["mean_ms"].as_f64().unwrap() > 10.0 && rows[1].get("p99_ms").is_none(), "{rows:#?}");

    let output = fanin(&[&arguments[..], &["500 ms"]].concat());
    let row = stdout(&output).lines().find(|line| line.starts_with("none")).unwrap().to_owned();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(&cells[1..4], ["–", "–", "–"], "{row}");
    assert!(stderr(&output).contains("less than five minimum RTOs"), "{}", stderr(&output));
    assert!(stderr(&output).contains("None of the requests was completed"), "{}", stderr(&output));
}
