//! `fanin reproduce` from outside.

mod common;

use std::time::Duration;

use common::{command, fanin, interrupt_after, stderr, stdout};
use serde_json::Value;

#[test]
fn claims_that_hold_end_with_zero() {
    let output = fanin(&["reproduce", "I016", "--duration", "100 ms", "--json", "-"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let table: Value = serde_json::from_str(stdout(&output)).expect("JSON alone");
    assert_eq!(table["schema"], "fanin.claims/1");
    let claims = table["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 1);
    assert_eq!((&claims[0]["id"], &claims[0]["status"]), (&"I016".into(), &"holds".into()));
    assert!(claims[0]["measured"].as_str().unwrap().ends_with(" ms"));
    assert!(claims[0].get("why").is_none(), "a key that does not apply is absent");
}

#[test]
fn explained_deviations_are_no_failure_and_the_table_says_why() {
    let output = fanin(&["reproduce", "I013", "--duration", "100 ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("because  "), "{}", stdout(&output));
    assert!(stdout(&output).ends_with("1 claims: 0 hold, 1 do not for a known reason, 0 fail\n"));
    let output = fanin(&["reproduce", "I013", "--duration", "100 ms", "--markdown"]);
    assert!(stdout(&output).starts_with("| claim | says |"), "{}", stdout(&output));
    assert!(stdout(&output).contains("| explained: "), "{}", stdout(&output));
}

#[test]
fn claims_that_were_not_judged_have_a_count_of_their_own() {
    let output = fanin(&["reproduce", "I016", "--duration", "10 ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let end = "0 hold, 0 do not for a known reason, 0 fail, 1 were not judged\n";
    assert!(stdout(&output).ends_with(end), "{}", stdout(&output));
}

/// A claim that needs more time than it is given may fail, or has nothing to be judged by.
#[test]
fn a_claim_that_fails_is_one() {
    for (claim, duration, status, code) in [
        ("I012", "50 ms", "FAILS", 1),
        ("I011", "1 ms", "not judged: too short", 0),
        ("I016", "10 ms", "not judged: too short", 0),
    ] {
        let output = fanin(&["reproduce", claim, "--duration", duration, "--json", "-"]);
        assert_eq!(output.status.code(), Some(code), "{}", stdout(&output));
        assert_eq!(stderr(&output).contains(claim), code == 1, "{}", stderr(&output));
        let table: Value = serde_json::from_str(stdout(&output)).expect("JSON alone");
        let judged = &table["claims"][0];
        assert_eq!(judged["status"], status, "{judged}");
        let outcome = judged["measured"].as_str().unwrap();
        assert!(!outcome.contains("NaN") && !outcome.contains("inf"), "{outcome}");
    }
}

#[test]
fn wrong_arguments_exit_with_two() {
    for (arguments, expected) in [
        (&["reproduce", "X9"][..], "no claim's number begins with X9"),
        (&["reproduce", "I016", "--duration", "soon"], "soon"),
        (
            &["reproduce", "I016", "--json", "/tmp/"],
            "it is a folder; name a file in it, such as /tmp/result.json",
        ),
        (&["reproduce", "I016", "--threads", "0"], "a whole number from 1 to 65535"),
        (&["reproduce", "I016", "--duration", "10 ms", "--json", "/dev/null/x"], "cannot write /dev/null/x"),
    ] {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn ctrl_c_is_130() {
    let mut child = command(&["reproduce", "T0", "--duration", "1000 s"]).spawn().unwrap();
    interrupt_after(&mut child, Duration::from_millis(200));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(130), ""), "{}", stderr(&output));
}
