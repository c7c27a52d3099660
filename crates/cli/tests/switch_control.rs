//! `fanin switch show`, `set`, `capture` and the rest, against a switch over ports in memory.

mod common;
#[path = "common/served.rs"]
mod served;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::hang_guard::HangGuard;
use common::{Folder, fanin, stderr, stdout};
use served::{ServedSwitch, TOKEN};

#[test]
fn a_running_switch_is_shown_changed_and_captured() {
    let folder = Folder::new("switch-control");
    let ServedSwitch { socket, server, running, counts } = ServedSwitch::start(&folder);
    let guard = HangGuard::new();
    while counts.arrived.load(Ordering::Relaxed) < 100 {
        guard.check("100 frames");
        std::thread::sleep(Duration::from_millis(5));
    }

    let shown = fanin(&["switch", "show", "rings", "--at", &socket]);
    assert_eq!((shown.status.code(), stderr(&shown)), (Some(0), ""));
    let lines: Vec<&str> = stdout(&shown).lines().collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[0].starts_with("ring     port          frames"), "{}", lines[0]);
    assert!(lines[1].starts_with("ring-8   collector-8") && lines[1].contains("10 Gb/s"), "{}", lines[1]);
    let ports = fanin(&["switch", "show", "ports", "--at", &socket]);
    assert!(stdout(&ports).lines().nth(1).unwrap().starts_with("source-0      up "), "{}", stdout(&ports));
    let rules = fanin(&["switch", "show", "rules", "--at", &socket]);
    assert!(stdout(&rules).contains("destination_mac 02:00:00:00:00:08"), "{}", stdout(&rules));
    let stations = fanin(&["switch", "show", "mac", "--at", &socket]);
    assert!(
        stdout(&stations).contains("02:00:00:00:00:0b     0  collector-11  static  -"),
        "{}",
        stdout(&stations)
    );

    let set =
        fanin(&["switch", "set", "ring-9", "rate=1 Gb/s", "frames=null", "bytes=2 MiB", "--at", &socket]);
    assert_eq!((set.status.code(), stderr(&set)), (Some(0), ""));
    let spec: serde_json::Value = serde_json::from_str(stdout(&set)).unwrap();
    assert_eq!((&spec["rate"], &spec["bytes"]), (&"1 Gb/s".into(), &"2 MiB".into()));
    assert!(spec["frames"].is_null());
    assert_eq!(fanin(&["switch", "reset-marks", "--at", &socket]).status.code(), Some(0));

    let file = folder.file("ring.pcapng");
    let capture =
        fanin(&["switch", "capture", "--ring", "ring-8", "--seconds", "1", "--out", &file, "--at", &socket]);
    assert_eq!(capture.status.code(), Some(0), "{}", stderr(&capture));
    assert!(std::fs::metadata(&file).unwrap().len() > 10_000);

    // Over HTTP, with the token in a file.
    let address = server.http_address().unwrap().to_string();
    let token = folder.file("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let json = fanin(&["switch", "show", "rings", "--json", "--at", &address, "--token-file", &token]);
    let items: serde_json::Value = serde_json::from_str(stdout(&json)).unwrap();
    assert_eq!(items[1]["spec"]["rate"], "1 Gb/s");

    // A refused capture says why, and leaves no file and no frame behind.
    let missing = folder.file("missing.pcapng");
    for (arguments, part) in [
        (vec!["show", "rings", "--at", address.as_str()], "send the token"),
        (vec!["set", "ring-99", "rate=null", "--at", &socket], "there is no ring `ring-99`"),
        (vec!["set", "ring-9", "rat=null", "--at", &socket], "unknown field `rat`, expected one of `frames`"),
        (vec!["set", "ring-9", "rate", "--at", &socket], "`rate` has no `=`"),
        (vec!["capture", "--port", "p", "--out", &missing, "--at", &socket], "there is no port `p`"),
        (vec!["show", "rings", "--at", "/nowhere/at.sock"], "no switch answers at /nowhere/at.sock"),
        (vec!["show", "rings", "--at", "nowhere"], "neither IP:PORT nor the path of a socket"),
        (vec!["show", "rings", "--at", &address, "--token-file", "/nowhere/token"], "cannot read the token"),
        (vec!["capture", "--out", "-"], "required"),
        (vec!["show"], "required"),
    ] {
        let output = fanin(&[&["switch"], arguments.as_slice()].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    assert!(!std::path::Path::new(&missing).exists());

    server.stop();
    running.stop();
    let [sent, arrived, reordered, wrong] = [&counts.sent, &counts.arrived, &counts.reordered, &counts.wrong]
        .map(|count| count.load(Ordering::Relaxed));
    assert_eq!((sent, 0, 0), (arrived, reordered, wrong));
}
