//! `fanin top` against a real run, a switch over ports in memory, and targets that do not answer.

mod common;
#[path = "common/served.rs"]
mod served;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::hang_guard::HangGuard;
use common::{Folder, SMALL, fanin, stderr, stdout};
use served::{ServedSwitch, TOKEN};

/// Settings that follow those of a small system: credits, and a run longer than the test.
const LONG: [&str; 4] = ["--set", "shaping.credits=300", "--set", "run.duration=100 s"];

/// The line of a screen that begins with this.
fn line<'a>(screen: &'a str, begins: &str) -> &'a str {
    screen
        .lines()
        .find(|line| line.starts_with(begins))
        .unwrap_or_else(|| panic!("no `{begins}` in\n{screen}"))
}

/// The cell of a row under this column. Columns are two spaces apart at least.
fn cell<'a>(screen: &'a str, heading: &str, row: &str, column: &str) -> &'a str {
    let after = screen.split_once(heading).unwrap_or_else(|| panic!("no {heading} in\n{screen}")).1;
    let header = after.lines().nth(1).unwrap();
    let end = header.find(column).unwrap_or_else(|| panic!("no {column} in {header}")) + column.len();
    let line = line(after, row);
    line[..end.min(line.len())].rsplit("  ").next().unwrap().trim()
}

#[test]
fn a_run_is_shown_with_its_rates_and_what_does_not_answer() {
    let folder = Folder::new("top-run");
    let out = folder.file("run");
    let mut run = Command::new(env!("CARGO_BIN_EXE_fanin"))
        .args(["run", "replay", "--loopback", "--metrics", "--out", &out])
        .args(SMALL)
        .args(LONG)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let journal = format!("{out}/live/supervisor.journal");
    let guard = HangGuard::new();
    while std::fs::read_to_string(&journal).unwrap_or_default().matches(" completed ").count() < 20 {
        guard.check("20 events");
        std::thread::sleep(Duration::from_millis(20));
    }
    // An address at which nothing listens, and one that accepts and stays silent.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute_at = mute.local_addr().unwrap().to_string();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let shown = fanin(&["top", "--once", &out, &mute_at, &format!("http://{closed}/metrics")]);
    let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    let ended = run.wait().unwrap();
    let screen = stdout(&shown);
    assert_eq!((shown.status.code(), stderr(&shown)), (Some(0), ""), "{screen}");
    assert!(killed.success() && ended.code() == Some(130));

    // One supervisor, two collectors, eight readouts and the preset's two loggers.
    assert!(screen.lines().next().unwrap().ends_with("13 of 15 answer"), "{screen}");
    for heading in ["SUPERVISORS (1)", "COLLECTORS (2)", "READOUTS (8)", "LOGGERS (2)"] {
        assert!(screen.contains(heading), "{heading} in\n{screen}");
    }
    let rate: f64 = cell(screen, "SUPERVISORS", "supervisor", "assigned/s").parse().unwrap();
    assert!((20.0..60.0).contains(&rate), "40 Hz are assigned: {rate} in\n{screen}");
    assert!(cell(screen, "COLLECTORS", "collector-1", "credits").ends_with("/300"), "{screen}");
    let over: f64 = cell(screen, "COLLECTORS", "collector-0", "over ideal").parse().unwrap();
    assert!(over > 0.5, "a collection is not much faster than one stream: {over} in\n{screen}");
    assert_eq!(cell(screen, "READOUTS", "readout-7", "state"), "ready");
    let system = line(screen, "collection  ");
    assert!(system.contains(" x the ideal ") && system.contains("slowest source readout-"), "{system}");
    let shares: f64 = (0..8)
        .map(|n| cell(screen, "READOUTS", &format!("readout-{n}"), "answers last"))
        .map(|share| share.trim_end_matches(" %").parse::<f64>().unwrap())
        .sum();
    assert!((99.0..101.0).contains(&shares), "{shares} in\n{screen}");

    let silent = line(screen, &mute_at);
    assert!(
        silent.contains(" UTC, never answered  ") && silent.ends_with("no answer within 2 s"),
        "{silent}"
    );
    assert!(line(screen, &closed).ends_with("nothing listens there: connection refused"), "{screen}");
}

#[test]
fn a_switch_is_shown_with_its_rings_drops_and_token() {
    let folder = Folder::new("top-switch");
    let ServedSwitch { socket, server, running, counts } = ServedSwitch::start(&folder);
    // A ring of one frame at a low rate drops nearly all that it gets.
    let set = fanin(&["switch", "set", "ring-9", "rate=10 kb/s", "frames=1", "--at", &socket]);
    assert_eq!(set.status.code(), Some(0), "{}", stderr(&set));

    let shown = fanin(&["top", "--once", &socket]);
    let screen = stdout(&shown);
    assert_eq!((shown.status.code(), stderr(&shown)), (Some(0), ""), "{screen}");
    assert!(screen.contains("SWITCHES (1)"), "{screen}");
    let ring = |name: &str| {
        screen
            .lines()
            .find(|line| line.contains(&format!("  {name}  ")))
            .unwrap_or_else(|| panic!("{screen}"))
    };
    assert!(ring("ring-8").contains("8192 frames") && ring("ring-8").contains("[..........]"), "{screen}");
    assert!(ring("ring-9").contains("[##########]") && ring("ring-9").contains("100.0 %"), "{screen}");
    let drops = screen.split_once("DROPS").unwrap().1;
    let dropped =
        drops.lines().find(|line| line.contains("ring ring-9")).unwrap_or_else(|| panic!("{drops}"));
    let rate: f64 = dropped.rsplit("  ").next().unwrap().trim().parse().unwrap();
    assert!(rate > 10.0 && dropped.contains("  ring  "), "{dropped}");

    let http = server.http_address().unwrap().to_string();
    let refused = fanin(&["top", "--once", &http]);
    assert_eq!(
        (refused.status.code(), stderr(&refused)),
        (Some(1), "error: no process and no switch answered\n")
    );
    assert!(
        stdout(&refused).contains("401 Unauthorized: give its token with --token-file"),
        "{}",
        stdout(&refused)
    );
    let token = folder.file("token");
    std::fs::write(&token, TOKEN).unwrap();
    let shown = fanin(&["top", "--once", &http, "--token-file", &token]);
    assert!(shown.status.success() && stdout(&shown).contains("  ring-10  "), "{}", stdout(&shown));
    assert!(counts.sent.load(Ordering::Relaxed) > 0, "the traffic of its rings");
    running.stop();
}

/// Runs the view on a pseudo-terminal, types `keys` when it shows an address, and returns its output and exit code.
fn on_a_terminal(address: &str, keys: &[u8]) -> (String, Option<i32>) {
    let program = env!("CARGO_BIN_EXE_fanin");
    let command = format!("stty rows 30 cols 150; {program} top {address}; code=$?; stty -a; exit $code");
    let mut script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let (mut said, mut block, mut is_typed) = (Vec::new(), [0; 4096], false);
    while let Ok(count @ 1..) = output.read(&mut block) {
        said.extend_from_slice(&block[..count]);
        if !is_typed && String::from_utf8_lossy(&said).contains("NO ANSWER") {
            is_typed = true;
            input.write_all(keys).unwrap();
        }
    }
    (String::from_utf8_lossy(&said).into_owned(), script.wait().unwrap().code())
}

#[test]
fn a_view_leaves_by_q_and_ctrl_c_and_restores_the_terminal() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (keys, code) in [(&b"q"[..], Some(0)), (&b"\x03"[..], Some(130))] {
        let (said, ended) = on_a_terminal(&closed, keys);
        assert_eq!(ended, code, "{said}");
        let (before, after) = said.split_once("\x1b[?1049l").unwrap_or_else(|| panic!("{said:?}"));
        assert!(before.contains("\x1b[?1049h") && before.contains("0 of 1 answer"), "{said:?}");
        // Lines are edited and echoed again, and Ctrl-C is a signal again (termios(3)).
        for word in ["icanon", "echo", "isig"] {
            assert!(after.split_whitespace().any(|found| found == word), "{word} in {after:?}");
        }
        assert!(after.contains("\x1b[?25h"), "the cursor is shown again: {after:?}");
    }
}

#[test]
fn failures_to_show_are_reported() {
    let refused = |arguments: &[&str], reason: &str| {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(reason), "{arguments:?}: {}", stderr(&output));
    };
    let folder = Folder::new("top-empty");
    refused(&["top", "127.0.0.1:1"], "is not a terminal; `fanin top --once` prints");
    refused(&["top", "--once", &folder.file("")], "start the run with --metrics");
    refused(&["top", "--once", "nowhere"], "`nowhere` is not a target: give HOST:PORT");
}
