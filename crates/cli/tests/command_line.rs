//! The command line from outside: what it prints where, and its exit codes.

use std::process::{Command, Output, Stdio};

fn fanin(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fanin")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn help_and_version_are_no_errors() {
    let version = fanin(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert!(stdout(&version).starts_with(concat!("fanin ", env!("CARGO_PKG_VERSION"))));
    let help = fanin(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(stdout(&help).contains("Exit codes: 0 done"));
    assert_eq!(stderr(&help), "");
}

#[test]
fn wrong_usage_is_two_and_goes_to_stderr() {
    for arguments in [&["plann"][..], &[], &["completions", "tcsh"], &["--colour"]] {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert_ne!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn every_command_has_an_example_in_its_help() {
    for arguments in [&["completions", "--help"][..], &["man", "--help"]] {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains("Example: fanin "), "{arguments:?}");
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = fanin(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains("completions"), "{shell}");
    }
}

#[test]
fn man_pages_are_written_and_a_bad_folder_is_two() {
    let dir = std::env::temp_dir().join(format!("fanin-man-{}", std::process::id()));
    let output = fanin(&["man", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let page = std::fs::read_to_string(dir.join("fanin.1")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(page.contains(".SH SYNOPSIS"));

    let output = fanin(&["man", "/dev/null/man"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: cannot write /dev/null/man:"), "{}", stderr(&output));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fanin"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn pipes_get_no_colours() {
    for arguments in [&["--help"][..], &["plann"]] {
        let output = fanin(arguments);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{arguments:?}");
    }
}
