//! A standby on real processes: the supervisor is killed and not started again.

mod common;

use std::path::Path;
use std::time::Duration;

use common::System as LaunchedSystem;
use common::hang_guard::HangGuard;
use common::pair::{NEW, OLD, Pair, SCENARIO, patient};
use fanin_dataflow::EventStep;
use fanin_node::audit::{AuditScope, audit};
use fanin_node::config::Role;
use fanin_node::journal;
use fanin_node::launch::{Loopback, Placement};
use rustix::process::{Pid, Signal, kill_process};

/// The longest time between two assignments.
fn longest_stop(path: &Path) -> Duration {
    let mut times = Vec::new();
    journal::read(path, |epoch_us, line| {
        if matches!(line.record.step, EventStep::Assigned { direct: false, .. }) {
            times.push(epoch_us + line.record.at.get() / 1_000_000);
        }
    })
    .unwrap();
    Duration::from_micros(times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0))
}

#[test]
fn a_standby_goes_on_without_the_supervisor() {
    let mut pair = Pair::start("takeover");
    pair.wait("assigning", |pair| pair.assigned("standby") > 100);
    pair.wait_paired();
    pair.end(Role::Supervisor, 0, Signal::KILL);
    let before = pair.assigned("standby");
    pair.wait("assigning again", |pair| pair.assigned("standby") > before + 100);
    let journal = pair.folder.join("standby.journal");
    // A report: a busy machine lengthens it. Simulated worlds assert the limit of 3 s (`crates/world/src/tests/takeover.rs`).
    eprintln!("assignment stopped for {:?}", longest_stop(&journal));
    // Of the first supervisor's disk nothing is left.
    std::fs::remove_file(pair.folder.join("supervisor.journal")).unwrap();
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 200, "{audited:?}");
}

/// Returns the highest L1 ID that the present journal of a supervisor assigns.
fn newest(pair: &Pair, process: &str) -> u64 {
    let text = pair.text(process);
    let line = text.lines().rfind(|line| line.contains(" assigned "));
    line.and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
}

#[test]
fn the_journals_of_two_supervisors_are_bounded() {
    let scenario = SCENARIO.replace("drain =", "journal_size = \"8 kB\"\njournal_parts = 2\ndrain =");
    let mut pair = Pair::start_with("bounded", &scenario, NEW);
    // Each has deleted its first journal, which assigned event 0.
    let has_deleted = |pair: &Pair, process: &str| {
        let file = |number: u32| pair.folder.join(format!("{process}.{number:05}.journal"));
        (2..1000).any(|number| file(number).exists()) && !file(1).exists()
    };
    pair.wait("deleting", |pair| has_deleted(pair, "supervisor") && has_deleted(pair, "standby"));
    pair.wait_paired();
    // The standby takes over, and goes on deleting. The disk of the first supervisor is lost.
    pair.end(Role::Supervisor, 0, Signal::KILL);
    let before = newest(&pair, "standby");
    pair.wait("assigning again", |pair| newest(pair, "standby") > before + 300);
    let is_journal = |path: &Path| path.extension().is_some_and(|extension| extension == "journal");
    let files = |pair: &Pair, process: &str| -> Vec<(String, u64)> {
        let entries = std::fs::read_dir(&pair.folder).unwrap().map(|entry| entry.unwrap());
        let of = entries.filter(|entry| is_journal(&entry.path()));
        let of = of.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()));
        of.filter(|(name, _)| name.starts_with(process)).collect()
    };
    for (name, _) in files(&pair, "supervisor") {
        std::fs::remove_file(pair.folder.join(name)).unwrap();
    }
    std::fs::remove_file(pair.folder.join("supervisor.log-identity")).unwrap();
    // It begins in the middle of the log, and leads in its turn.
    pair.spawn(Role::Supervisor, 0);
    pair.wait_paired();
    pair.end(Role::Supervisor, 1, Signal::KILL);
    let before = newest(&pair, "supervisor");
    pair.wait("assigning once more", |pair| newest(pair, "supervisor") > before + 100);
    pair.spawn(Role::Supervisor, 1);
    pair.wait_paired();
    pair.end_all();
    for process in ["supervisor", "standby"] {
        let files = files(&pair, process);
        assert!(files.len() <= 3 && files.iter().all(|(_, bytes)| *bytes < 32_000), "{files:?}");
    }
    let (folder, data) = (pair.folder.clone(), pair.folder.join("data"));
    let scope = AuditScope {
        folders: &[&folder],
        data: &[&data],
        loggers: true,
        assigned_min: before,
        deletes_journals: true,
    };
    let audited = audit(&scope).unwrap_or_else(|finding| panic!("{}: {finding}", folder.display()));
    assert!(audited.unproven > 0 && audited.totals.assigned > 0, "{audited:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn both_supervisors_are_replaced_one_after_the_other() {
    let mut pair = Pair::start("turns");
    pair.wait("assigning", |pair| pair.assigned("standby") > 50);
    pair.wait_paired();
    // The standby takes over, and the first supervisor comes back as its standby.
    pair.end(Role::Supervisor, 0, Signal::KILL);
    let before = pair.assigned("standby");
    pair.wait("assigning again", |pair| pair.assigned("standby") > before + 50);
    pair.spawn(Role::Supervisor, 0);
    pair.wait_paired();
    // It has all events, and leads in its turn.
    pair.end(Role::Supervisor, 1, Signal::KILL);
    let before = pair.assigned("supervisor");
    pair.wait("assigning once more", |pair| pair.assigned("supervisor") > before + 50);
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 150, "{audited:?}");
}

#[test]
fn a_supervisor_goes_on_without_its_standby() {
    let mut pair = Pair::start("alone");
    pair.wait("assigning", |pair| pair.assigned("standby") > 50);
    pair.wait_paired();
    pair.end(Role::Supervisor, 1, Signal::KILL);
    let before = pair.assigned("supervisor");
    pair.wait("assigning alone", |pair| pair.assigned("supervisor") > before + 50);
    // A standby that lost its disk gets all events again.
    std::fs::remove_file(pair.folder.join("standby.journal")).unwrap();
    pair.spawn(Role::Supervisor, 1);
    pair.wait_paired();
    pair.end(Role::Supervisor, 0, Signal::KILL);
    let before = pair.assigned("standby");
    pair.wait("assigning again", |pair| pair.assigned("standby") > before + 50);
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 150, "{audited:?}");
}

#[test]
fn every_process_is_upgraded_in_order_and_nothing_is_lost() {
    let scenario = patient();
    let mut pair = Pair::start_with("rolling", &scenario, OLD);
    let assigned = |pair: &Pair| pair.assigned("supervisor").max(pair.assigned("standby"));
    pair.wait("assigning", |pair| assigned(pair) > 50);
    assert!(!pair.log("standby").contains("version=2"));
    pair.versions = NEW;
    pair.replace_each();
    // The last connections between the supervisors, and to a readout that was upgraded before them.
    for (process, peer) in [("standby", "supervisor"), ("supervisor", "standby"), ("supervisor", "readout 0")]
    {
        let log = pair.log(process);
        let last = log.lines().rfind(|line| line.contains(&format!(" connected peer={peer} version=")));
        assert!(last.is_some_and(|line| line.contains("version=2")), "{process}, {peer}: {last:?}");
    }
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert_eq!((audited.totals.debug, audited.missing), (0, 0), "{audited:?}");
    assert_eq!(audited.totals.assigned, audited.totals.rejected + audited.totals.stored, "{audited:?}");
}

#[test]
fn collectors_with_real_processors_are_restarted_in_order_and_nothing_is_lost() {
    let scenario = patient().replace("processors = \"timers\"", "processors = \"processes\"");
    assert!(scenario.contains("\"processes\""));
    let mut pair = Pair::start_with("processors", &scenario, NEW);
    pair.wait("assigning", |pair| pair.assigned("supervisor") > 50);
    pair.replace_each();
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert_eq!((audited.totals.debug, audited.missing), (0, 0), "{audited:?}");
    assert_eq!(audited.totals.assigned, audited.totals.rejected + audited.totals.stored, "{audited:?}");
}

#[test]
fn a_process_of_other_versions_is_refused_until_it_is_replaced() {
    let mut pair = Pair::prepare("versions", SCENARIO, NEW);
    let metrics = Loopback::default().address(Role::Supervisor, 0).unwrap().to_string();
    pair.spawn_with(Role::Supervisor, 0, &["--metrics", &metrics]);
    pair.spawn_with(Role::Readout, 2, &["--versions", "3-4"]);
    for (role, index) in [
        (Role::Supervisor, 1),
        (Role::Logger, 0),
        (Role::Logger, 1),
        (Role::Readout, 0),
        (Role::Readout, 1),
        (Role::Collector, 0),
        (Role::Collector, 1),
    ] {
        pair.spawn(role, index);
    }
    let remedy = "upgrade \"supervisor\" to a release that speaks version 3";
    let here = format!(
        "\"supervisor\" speaks versions 1 to 2 of the messages, \"readout-2\" versions 3 to 4; {remedy}"
    );
    let there = format!(
        "\"readout-2\" speaks versions 3 to 4 of the messages, \"supervisor\" versions 1 to 2; {remedy}"
    );
    pair.wait("refused", |pair| {
        pair.log("supervisor").contains(&here) && pair.log("readout-2").contains(&there)
    });
    let counted = |pair: &Pair| {
        let text = http_text(&metrics, "/metrics");
        let line = text.lines().find(|line| line.starts_with("fanin_no_common_version_total{"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or_else(|| {
            panic!("{text}\n{}", pair.log("supervisor"));
        })
    };
    pair.wait("counted", |pair| counted(pair) > 0);
    // The others work meanwhile, and one line says it all: attempts are repeated, and the log is not.
    pair.wait("counted again", |pair| counted(pair) > 3);
    assert_eq!(pair.log("supervisor").matches(&here).count(), 1);
    pair.end(Role::Readout, 2, Signal::KILL);
    pair.spawn(Role::Readout, 2);
    pair.wait_paired();
    let before = pair.assigned("supervisor");
    pair.wait("assigning", |pair| pair.assigned("supervisor") > before + 50);
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 50, "{audited:?}");
}

/// The body of the answer to a request.
fn http_text(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut text = String::new();
    let Ok(mut stream) = std::net::TcpStream::connect(address) else { return text };
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn a_launched_system_goes_on_when_its_supervisor_is_killed_again_and_again() {
    let mut system = LaunchedSystem::start("standby", &["live.standby=true"]);
    let terms = |system: &LaunchedSystem| system.live.standby().unwrap().unwrap();
    let guard = HangGuard::new();
    while terms(&system).paired == 0 {
        guard.check(format_args!("a pair: {:?}", terms(&system)));
        system.work(50);
    }
    let kill = |system: &LaunchedSystem| {
        let pid = system.live.pid(Role::Supervisor, 0).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    while terms(&system).takeovers == 0 {
        guard.check(format_args!("a takeover: {:?}", terms(&system)));
        kill(&system);
        system.work(50);
    }
    let before = system.live.assigned();
    while system.live.assigned() < before + 50 {
        guard.check(format_args!("50 events more than {before}, of {}", system.live.assigned()));
        kill(&system);
        system.work(50);
    }
    let finished = system.finish();
    assert!(finished.audit.totals.assigned > 50, "{:?}", finished.audit);
    finished.remove();
}
