//! An operator's guarantees: a run has its folder for itself, no process is missed that hangs or dies at the wrong moment,
//! and the audit says so when it cannot prove anything.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::System;
use fanin_dataflow::Peer;
use fanin_message::{Endpoint, Event, Options, Settings, SharedKey};
use fanin_node::audit::{AuditScope, Finding, audit};
use fanin_node::config::Role;
use fanin_node::launch::{LaunchError, LiveSystem, Loopback, SystemLaunch};
use rustix::process::Signal;

fn launch_into(folder: &Path, overwrite: bool) -> Result<(), LaunchError> {
    let loaded = fanin_scenario::load("replay", &["readout.hosts=4".to_owned()]).unwrap();
    let launch = SystemLaunch {
        loaded: &loaded,
        folder,
        overwrite,
        scenario_folder: "".as_ref(),
        data: None,
        program: &common::program(),
        restart: true,
        metrics: false,
    };
    LiveSystem::start(&launch, Loopback::default()).map(drop)
}

#[test]
fn a_second_run_leaves_the_first_alone_and_a_later_one_its_events() {
    let mut system = System::start("folder", &[]);
    system.work(300);
    let error = launch_into(&system.folder, false).unwrap_err();
    assert!(matches!(error, LaunchError::InUse { .. }), "{error}");
    assert!(matches!(launch_into(&system.folder, true), Err(LaunchError::InUse { .. })));
    system.work(300);
    let finished = system.finish();
    assert!(finished.audit.totals.stored > 0);
    // When it has ended, its events are moved aside, or deleted on demand.
    let folder = finished.folder.clone();
    let aside = folder.with_file_name(format!("{}.1", folder.file_name().unwrap().to_string_lossy()));
    let _ = std::fs::remove_dir_all(&aside);
    launch_into(&folder, false).unwrap();
    let moved = AuditScope {
        folder: &aside,
        data: &aside.join("data"),
        loggers: true,
        assigned_min: finished.audit.totals.assigned,
    };
    assert_eq!(audit(&moved).unwrap(), finished.audit);
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("data").join("logger-0-physics-00000.data"), "an event").unwrap();
    launch_into(&folder, true).unwrap();
    assert!(!folder.join("data").join("logger-0-physics-00000.data").exists());
    std::fs::remove_dir_all(&aside).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_audit_of_nothing_or_of_too_little_fails() {
    let mut system = System::start("nothing", &[]);
    system.work(300);
    // The folder is removed in the middle of the run.
    std::fs::remove_dir_all(&system.folder).unwrap();
    system.work(300);
    system.live.stop();
    let assigned_min = system.live.assigned();
    assert!(assigned_min > 0);
    let data = system.folder.join("data");
    let scope = AuditScope { folder: &system.folder, data: &data, loggers: true, assigned_min };
    let failure = audit(&scope).unwrap_err();
    assert!(
        matches!(failure.findings[..], [Finding::FewerAssigned { found: 0, seen, .. }, ..] if seen == assigned_min),
        "{failure}"
    );
    let _ = std::fs::remove_dir_all(&system.folder);
}

#[test]
fn a_readout_that_hangs_is_started_again() {
    let mut system = System::start("hangs", &["live.silence_max=500 ms"]);
    system.work(300);
    let hung = system.live.pid(Role::Readout, 1).unwrap();
    system.signal(Role::Readout, 1, Signal::STOP);
    let until = Instant::now() + Duration::from_secs(60);
    while system.live.pid(Role::Readout, 1).is_none_or(|pid| pid == hung) && Instant::now() < until {
        system.work(100);
    }
    assert_eq!(system.live.hung().get("readout-1"), Some(&1));
    system.work(500);
    let finished = system.finish();
    assert!(finished.audit.totals.assigned > 0 && finished.lives("readout-1") >= 2);
    finished.remove();
}

#[test]
fn a_supervisor_that_dies_just_before_the_end_still_finishes_every_event() {
    for wait_ms in [0, 40] {
        let mut system = System::start("last", &[]);
        system.work(600);
        system.signal(Role::Supervisor, 0, Signal::KILL);
        if wait_ms > 0 {
            system.work(wait_ms);
        }
        let finished = system.finish();
        assert_eq!(finished.lives("supervisor"), 2);
        finished.remove();
    }
}

#[test]
fn deleted_journals_leave_events_unproven_and_the_others_proven() {
    let mut system = System::start("parts", &["live.journal_parts=1", "live.journal_size=8 kB"]);
    system.work(2500);
    let finished = system.finish();
    assert!(finished.audit.unproven > 0 && finished.audit.totals.assigned > 0, "{:?}", finished.audit);
    finished.remove();
}

/// How an attempt to connect as `collector-0` ends.
fn attempt(address: &str, name: &str, key: Option<SharedKey>) -> String {
    let mut endpoint = Endpoint::new(Settings { name: "collector-0".into(), ..Settings::default() }).unwrap();
    endpoint.connect(name, address, Options { key, backoff: None, ..Options::default() });
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match endpoint.poll(Some(until)).unwrap() {
            Some(Event::Failed { reason, .. } | Event::Closed { reason, .. }) => return reason.to_string(),
            Some(Event::Message { .. } | Event::Connected { .. }) | None => panic!("a stranger got in"),
            Some(_) => {}
        }
    }
}

#[test]
fn a_stranger_without_the_key_takes_no_event() {
    let mut system = System::start("stranger", &[]);
    for peer in [Peer::Supervisor, Peer::Readout(0), Peer::Logger(1)] {
        let address = system.live.system().address(peer).unwrap().to_owned();
        let name = fanin_node::names::name(peer);
        let refusal = attempt(&address, &name, None);
        assert!(refusal.contains("the caller has no key"), "{refusal}");
        let refusal = attempt(&address, &name, Some(SharedKey::random().unwrap()));
        assert!(refusal.contains("the peer has another key"), "{refusal}");
    }
    system.work(400);
    let finished = system.finish();
    assert_eq!(finished.count(|what| matches!(what, fanin_dataflow::What::Reassigned { .. })), 0);
    finished.remove();
}
