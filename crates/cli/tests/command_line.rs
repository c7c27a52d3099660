//! The command line from outside: what it prints where, and its exit codes.

mod common;

use common::{Folder, command, fanin, stderr, stdout};

/// The presets that checks outside the project use.
const PRESETS: [&str; 18] = [
    "thesis-a-500hz",
    "thesis-a-1000hz",
    "thesis-b-500hz",
    "thesis-b-1000hz",
    "icc15-1dcm",
    "icc15-147",
    "icc15-39dcm",
    "icc15-router",
    "lcn15-all-to-all",
    "lcn15-all-to-one",
    "multihost",
    "leaf-spine",
    "leaf-spine-terabit",
    "m21tcp-ffw",
    "m21tcp-fbw",
    "incast",
    "replay",
    "phase2",
];

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
fn a_file_named_like_a_preset_needs_its_path() {
    let folder = Folder::new("namesake");
    std::fs::write(folder.path().join("incast"), "extends = 'incast'\nworkload.senders = 3\n").unwrap();
    let check = |source: &str| {
        let arguments = ["scenario", "show", source];
        command(&arguments).current_dir(folder.path()).output().unwrap()
    };
    let preset = check("incast");
    assert!(!stdout(&preset).contains("senders = 3"), "{}", stdout(&preset));
    assert!(stderr(&preset).contains("`incast` is the preset; write `./incast`"), "{}", stderr(&preset));
    let file = check("./incast");
    assert!(stdout(&file).contains("senders = 3"), "{}", stdout(&file));
    assert!(!stderr(&file).contains("preset"), "{}", stderr(&file));
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let mut waiting = subcommands(&[]);
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        seen += 1;
        let help = help(&path);
        assert!(help.contains("Example: fanin "), "{path:?} has no example");
        waiting.extend(subcommands(&path));
    }
    assert!(seen >= 8, "only {seen} commands were found");
}

fn help(path: &[String]) -> String {
    let mut arguments: Vec<_> = path.iter().map(String::as_str).collect();
    arguments.push("--help");
    let output = fanin(&arguments);
    assert_eq!(output.status.code(), Some(0), "{path:?}");
    stdout(&output).to_owned()
}

fn subcommands(path: &[String]) -> Vec<Vec<String>> {
    let help = help(path);
    let Some((_, rest)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = rest.split("\n\n").next().unwrap().lines();
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names
        .filter(|name| !name.is_empty() && *name != "help")
        .map(|name| [path, &[name.to_owned()]].concat())
        .collect()
}

#[test]
fn the_presets_of_the_contract_are_listed_and_sound() {
    let output = fanin(&["scenario", "list"]);
    assert_eq!(output.status.code(), Some(0));
    let names: Vec<_> = stdout(&output).lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, PRESETS);
    for name in PRESETS {
        let output = fanin(&["scenario", "check", name]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    }
}

#[test]
fn show_prints_the_same_scenario_again() {
    let shown = fanin(&["scenario", "show", "thesis-b-1000hz", "--set", "shaping.credits=480"]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(stdout(&shown).contains("credits = 480"), "{}", stdout(&shown));
    let folder = Folder::new("shown");
    let file = folder.file("shown.toml");
    std::fs::write(&file, &shown.stdout).unwrap();
    let again = fanin(&["scenario", "show", &file]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let settings = |output| -> Vec<String> {
        let lines = stdout(output).lines().skip(1);
        lines.map(|line| line.split(" #").next().unwrap().trim_end().to_owned()).collect()
    };
    assert_eq!(settings(&shown), settings(&again));
}

#[test]
fn a_wrong_scenario_is_two_with_its_line_and_the_nearest_key() {
    let cases: [(&[&str], &str); 4] = [
        (&["scenario", "check", "incest"], "did you mean the preset `incast`?"),
        (&["scenario", "show", "incast", "--set", "tor.bufer=3"], "did you mean `buffer`?"),
        (&["scenario", "show", "incast", "--set", "link.rate=10 GB"], "--set:1:11"),
        (&["scenario", "check", "incast", "--set", "run.seed"], "has no `=`"),
    ];
    for (arguments, expected) in cases {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn the_schema_is_json_and_names_the_sections() {
    let output = fanin(&["scenario", "schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for section in ["run", "readout", "collectors", "workload", "transport", "shaping", "tor", "core"] {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = fanin(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        let script = stdout(&output);
        for word in ["completions", "thesis-a-1000hz", "workload.senders="] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn bash_completes_presets_and_keys() {
    let folder = Folder::new("completions");
    let script = folder.file("fanin.bash");
    std::fs::write(&script, stdout(&fanin(&["completions", "bash"]))).unwrap();
    for (words, expected) in [
        ("fanin plan thesis-b", "thesis-b-500hz thesis-b-1000hz"),
        ("fanin sim incast --set workload.sen", "workload.senders="),
        ("fanin sim incast --sweep logger.acc", "logger.accept="),
        ("fanin init --like lcn15-all-to-o", "lcn15-all-to-one"),
    ] {
        let count = words.split(' ').count() - 1;
        let (current, before) = (words.rsplit(' ').next().unwrap(), words.rsplit(' ').nth(1).unwrap());
        let typed = format!(
            "source {script}; COMP_WORDS=({words}); COMP_CWORD={count}; _fanin fanin '{current}' '{before}'; \
             echo ${{COMPREPLY[@]}}"
        );
        let output = std::process::Command::new("bash").args(["-c", &typed]).output().unwrap();
        assert_eq!(str::from_utf8(&output.stdout).unwrap().trim(), expected, "{words}: {}", stderr(&output));
    }
}

#[test]
fn man_pages_are_written_and_a_bad_folder_is_two() {
    let folder = Folder::new("man");
    let output = fanin(&["man", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let page = std::fs::read_to_string(folder.file("fanin.1")).unwrap();
    assert!(page.contains(".SH SYNOPSIS"));

    let output = fanin(&["man", "/dev/null/man"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: cannot write /dev/null/man:"), "{}", stderr(&output));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = command(&["completions", "bash"]).spawn().unwrap();
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
