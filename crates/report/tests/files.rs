//! Results go to a directory and come back; what is damaged or foreign is named.

use std::fs;
use std::path::PathBuf;

use fanin_report::{
    EventOutcome, EventRow, FlowRow, QueueRow, ReadError, Records, ResultKind, RunResult, ScenarioName, Span,
    Summary, WriteError, is_stored, read, read_all, write, write_once,
};
use fanin_units::Instant;

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fanin-report-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A page's end shows that it is whole.
const PAGE: &str = "<p>page</p></html>\n";

fn result() -> RunResult {
    let ms = 1_000_000_000;
    let events: Vec<EventRow> = (0..20)
        .map(|id| EventRow {
            id,
            size_bytes: 2_112_000,
            assigned_ps: id * 20 * ms,
            first_request_ps: Some(id * 20 * ms + 1_000),
            last_byte_ps: Some(id * 20 * ms + 19 * ms + id),
            collection_time_ps: Some(19 * ms + id),
            ideal_ps: Some(18 * ms),
            outcome: EventOutcome::Collected,
            ..EventRow::default()
        })
        .collect();
    let mut summary = Summary::new(
        ResultKind::Sim,
        "0.1.0",
        ScenarioName { name: "thesis-a-500hz".into(), hash: "4fe2".into() },
    );
    summary.fill_events(&events, Span { from: Instant::START, until: Instant::new(400 * ms) }, 1, false);
    let queue = QueueRow { queue: "tor→dcm".into(), queue_bytes: 12, ..QueueRow::default() };
    let flow = FlowRow { source: "ros".into(), destination: "dcm".into(), ..FlowRow::default() };
    let records = Records { events, queues: vec![queue], flows: vec![flow], ..Records::default() };
    RunResult {
        label: "out".into(),
        scenario_toml: Some("[run]\nduration = \"400 ms\"\n".into()),
        records,
        ..RunResult::new(summary)
    }
}

#[test]
fn a_result_comes_back_as_it_was() {
    let scratch = Scratch::new("back");
    let directory = scratch.0.join("deeper/out");
    let result = result();
    let written = write(&directory, &result, "<!doctype html>").unwrap();
    assert_eq!(read(&directory).unwrap(), result);
    let mut names: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    // No temporary file is left, and the list is complete.
    assert_eq!(names.len(), written.len());
    assert_eq!(
        names,
        ["events.parquet", "flows.parquet", "queues.parquet", "report.html", "scenario.toml", "summary.json"]
    );
    // The summary alone is a result too, without rows.
    let alone = read(&directory.join("summary.json")).unwrap();
    assert_eq!((&alone.summary, &alone.records), (&result.summary, &Records::default()));
}

#[test]
fn a_second_result_leaves_nothing_of_the_first_and_touches_nothing_else() {
    let scratch = Scratch::new("second");
    write(&scratch.0, &result(), "").unwrap();
    fs::write(scratch.0.join("notes.txt"), "mine").unwrap();
    let plan = RunResult::new(Summary::new(ResultKind::Plan, "0.1.0", ScenarioName::default()));
    write(&scratch.0, &plan, "").unwrap();
    let back = read(&scratch.0).unwrap();
    assert_eq!((back.summary, back.records), (plan.summary, Records::default()));
    assert!(!scratch.0.join("scenario.toml").exists());
    assert_eq!(fs::read_to_string(scratch.0.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn a_result_that_cannot_be_written_leaves_no_summary() {
    let scratch = Scratch::new("torn");
    write(&scratch.0, &result(), "").unwrap();
    let mut too_late = result();
    too_late.records.events[3].assigned_ps = u64::MAX;
    let error = write(&scratch.0, &too_late, "").unwrap_err().to_string();
    assert!(error.contains("events.parquet") && error.contains("`assigned_ps` of row 3"), "{error}");
    assert!(matches!(read(&scratch.0), Err(ReadError::NoSummary { .. })));
    let leftovers = fs::read_dir(&scratch.0).unwrap().filter_map(Result::ok);
    assert_eq!(leftovers.filter(|entry| entry.file_name().to_string_lossy().ends_with("tmp")).count(), 0);
}

#[test]
fn a_result_is_stored_once_and_whole() {
    let scratch = Scratch::new("once");
    let root = scratch.0.join("sweep");
    let (first, mut second) = (result(), result());
    second.summary.seed = Some(77);
    assert!(!is_stored(&root, "one"));
    assert!(write_once(&root, "one", &first, PAGE).unwrap());
    assert!(is_stored(&root, "one"));
    // An existing result stays.
    assert!(!write_once(&root, "one", &second, PAGE).unwrap());
    assert_eq!(read(&root.join("one")).unwrap().summary, first.summary);
    // A folder without a summary does no harm while it is empty, and nothing is left where it is not.
    fs::create_dir_all(root.join("two")).unwrap();
    assert!(write_once(&root, "two", &second, PAGE).unwrap());
    fs::create_dir_all(root.join("three/torn")).unwrap();
    let torn = write_once(&root, "three", &second, PAGE).unwrap_err();
    assert!(
        matches!(torn, WriteError::NoResult { .. }) && torn.to_string().ends_with("delete it, and run again")
    );
    let mut names: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["one", "three", "two"]);
    // A draft of a worker that was killed is no result.
    fs::create_dir_all(root.join(".four.host.1.0.tmp")).unwrap();
    fs::copy(root.join("one/summary.json"), root.join(".four.host.1.0.tmp/summary.json")).unwrap();
    assert_eq!(read_all(std::slice::from_ref(&root)).unwrap().len(), 2);
}

#[test]
fn a_result_that_was_cut_is_not_stored_and_is_replaced() {
    let scratch = Scratch::new("cut");
    let root = scratch.0.join("sweep");
    let (first, mut second) = (result(), result());
    second.summary.seed = Some(77);
    second.picture = Some(serde_json::from_str(include_str!("golden/picture.json")).unwrap());
    let first = RunResult { picture: second.picture.clone(), ..first };
    let tables = ["events.parquet", "flows.parquet", "queues.parquet"];
    for name in tables.iter().chain(&["summary.json", "picture.json", "scenario.toml", "report.html"]) {
        write_once(&root, "one", &first, PAGE).unwrap();
        assert!(is_stored(&root, "one"));
        let file = root.join("one").join(name);
        let whole = fs::read(&file).unwrap();
        for length in [0, 3, whole.len() / 2, whole.len() - 4] {
            fs::write(&file, &whole[..length]).unwrap();
            assert!(!is_stored(&root, "one"), "{name} of {length} bytes");
        }
        assert!(write_once(&root, "one", &second, PAGE).unwrap(), "{name}");
        assert_eq!(read(&root.join("one")).unwrap().summary.seed, Some(77));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1, "nothing is left of the old one");
        fs::remove_file(&file).unwrap();
        // Some results have no picture, and some no scenario.
        let is_optional = ["picture.json", "scenario.toml"].contains(name);
        assert_eq!(is_stored(&root, "one"), is_optional, "without {name}");
        fs::remove_dir_all(&root).unwrap();
    }
}

#[test]
fn a_copy_that_ended_before_the_summary_is_replaced() {
    let scratch = Scratch::new("copy");
    let root = scratch.0.join("sweep");
    write_once(&root, "whole", &result(), PAGE).unwrap();
    fs::create_dir_all(root.join("part")).unwrap();
    for name in ["events.parquet", "flows.parquet"] {
        fs::copy(root.join("whole").join(name), root.join("part").join(name)).unwrap();
    }
    assert!(!is_stored(&root, "part"));
    assert!(write_once(&root, "part", &result(), PAGE).unwrap());
    assert!(is_stored(&root, "part"));
    // A folder with a file of another kind stays.
    fs::create_dir_all(root.join("other")).unwrap();
    fs::write(root.join("other/notes.txt"), "mine").unwrap();
    assert!(matches!(write_once(&root, "other", &result(), PAGE), Err(WriteError::NoResult { .. })));
    assert_eq!(fs::read(root.join("other/notes.txt")).unwrap(), b"mine");
}

#[test]
fn drafts_of_processes_that_are_gone_are_removed_and_nothing_else_is() {
    let scratch = Scratch::new("drafts");
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = child.id();
    child.wait().unwrap();
    let dead = [format!(".events.parquet.{gone}.tmp"), format!(".report.html.{gone}.tmp")];
    let parent = std::os::unix::process::parent_id();
    let others = [
        // Of a live process; of a dead process; no draft of a result; no result's at all.
        format!(".events.parquet.{parent}.tmp"),
        ".events.parquet.me.tmp".to_owned(),
        format!("events.parquet.{gone}.tmp"),
        format!(".notes.txt.{gone}.tmp"),
    ];
    for name in dead.iter().chain(&others) {
        fs::write(scratch.0.join(name), "half a").unwrap();
    }
    write(&scratch.0, &result(), "").unwrap();
    assert!(dead.iter().all(|name| !scratch.0.join(name).exists()));
    assert!(others.iter().all(|name| scratch.0.join(name).exists()));
    assert_eq!(read(&scratch.0).unwrap(), RunResult { label: read(&scratch.0).unwrap().label, ..result() });
}

#[test]
fn foreign_and_damaged_summaries_are_named() {
    let scratch = Scratch::new("foreign");
    let path = scratch.0.join("summary.json");
    let message = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        let message = read(&scratch.0).unwrap_err().to_string();
        assert!(message.contains("summary.json"), "{message}");
        message
    };
    assert!(message(b"{\"schema\": \"fanin.summary/9\"}").contains("`fanin.summary/9`"));
    assert!(message(b"{\"schema\": \"fanin.summary/1\", \"kind\": \"dream\"}").contains("unknown variant"));
    assert!(message(b"{\"schema\": \"fanin.summary/1\"").contains("line 1 column"));
    assert!(message(b"[1, 2]").contains("not a summary"));
    assert!(message(b"\xff\xfe").contains("byte 0 is not UTF-8"));
    assert!(message(b"").contains("EOF"));
    let deep = [b"{\"schema\":".as_slice(), &b"[".repeat(100_000)].concat();
    assert!(message(&deep).contains("recursion") || message(&deep).contains("damaged"));
    let huge = br#"{"schema":"fanin.summary/1","kind":"sim","version":"0","scenario":{"name":"","hash":""},"duration_s":1e999}"#;
    assert!(message(huge).contains("out of range"));
    fs::remove_file(&path).unwrap();
    assert!(read(&scratch.0).unwrap_err().to_string().contains("has no summary.json"));
    assert!(matches!(read(&scratch.0.join("nowhere")), Err(ReadError::Io { .. })));
}

#[test]
fn any_damage_to_a_table_is_an_error_or_changes_values_only() {
    let scratch = Scratch::new("damage");
    write(&scratch.0, &result(), "").unwrap();
    let path = scratch.0.join("events.parquet");
    let whole = fs::read(&path).unwrap();
    let (mut refused, mut read_anyway) = (0, 0);
    for length in (0..whole.len()).step_by(97) {
        fs::write(&path, &whole[..length]).unwrap();
        let error = read(&scratch.0).unwrap_err().to_string();
        assert!(error.contains("events.parquet"), "{error}");
        refused += 1;
    }
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        match read(&scratch.0) {
            Ok(result) => {
                assert_eq!(result.records.events.len(), 20);
                read_anyway += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("events.parquet"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && read_anyway > 0, "{refused} refused, {read_anyway} read");
}
