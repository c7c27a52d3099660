//! `fanin init` from outside: questions, options, presets, and what is refused.

mod common;

use std::io::Write;
use std::process::{Output, Stdio};

use common::{Folder, command, fanin, stderr, stdout};

/// Runs the command with these lines on standard input.
fn answered(arguments: &[&str], lines: &str) -> Output {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn three_answers_make_a_scenario_that_runs() {
    let folder = Folder::new("init");
    let file = folder.file("rack.toml");
    let output = answered(&["init", &file], "24\nmany\n8 kB\n\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`many` is not a valid answer; for example: 64 kB"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains(&format!("fanin plan {file}")), "{}", stdout(&output));
    let text = std::fs::read_to_string(&file).unwrap();
    for line in ["senders = 24", "request_size = \"8 kB\"", "rate = \"10 Gb/s\"", "# Hosts that answer."] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    let run = fanin(&["sim", &file, "--set", "run.duration=20 ms", "--quiet", "--json", "-"]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));

    let again = fanin(&["init", &file]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(
        stderr(&again),
        format!("error: {file} exists: give another name, or --force to replace it\n")
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert_eq!(fanin(&["init", &file, "--force", "--like", "phase2"]).status.code(), Some(0));
    assert_eq!(fanin(&["scenario", "check", &file]).status.code(), Some(0));
}

#[test]
fn options_answer_the_questions() {
    let output = fanin(&["init", "-", "--senders", "3", "--size", "1 MB", "--rate", "25 Gb/s"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    assert!(stdout(&output).contains("title = \"3 hosts send 1 MB each to one host\""));
}

#[test]
fn wrong_input_exits_with_two() {
    let folder = Folder::new("init-wrong");
    let cases: [(&[&str], &str, &str); 10] = [
        (
            &["init", "-"],
            "0\nx\ny\n-1\n1e9\n",
            "`1e9` is not a valid answer to: How many hosts answer one host at once?",
        ),
        (&["init", "-", "--like", "incest"], "", "did you mean the preset `incast`?"),
        (&["init", "-", "--size", "7"], "", "invalid value '7' for '--size <SIZE>'"),
        // The option is at fault, and no line of a file that does not exist yet.
        (&["init", "-", "--size", "0 B"], "", "'0 B' for '--size <SIZE>': a size is positive"),
        (
            &["init", "-", "--size", "2 TB"],
            "",
            "'2 TB' for '--size <SIZE>': a size is positive, from 1 B to 1 TiB",
        ),
        (
            &["init", "-", "--size", "-1 kB"],
            "",
            "'-1 kB' for '--size <SIZE>': a number of bytes cannot be negative",
        ),
        (&["init", "-", "--rate", "0 b/s"], "", "'0 b/s' for '--rate <RATE>': a rate is positive"),
        (
            &["init", "-", "--rate", "1 b/s"],
            "",
            "'1 b/s' for '--rate <RATE>': a rate is positive, from 1 kb/s",
        ),
        (&["init", "/dev/null/x.toml"], "", "cannot write /dev/null/x.toml"),
        (&["init", "-", "--like", "incast", "--senders", "4"], "", "cannot be used with"),
    ];
    for (arguments, lines, expected) in cases {
        let output = answered(arguments, lines);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
