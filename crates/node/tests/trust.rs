//! An operator's guarantees: a run has its folder for itself, and no process is missed that hangs or dies at the wrong
//! moment. The audit says so when it cannot prove anything.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::System;
use common::hang_guard::HangGuard;
use fanin_dataflow::{EventStep, EventStream, L1Id, Message, Peer};
use fanin_message::{ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint, SharedKey};
use fanin_node::audit::{AuditScope, Finding, audit};
use fanin_node::codec::{decode, encode};
use fanin_node::config::Role;
use fanin_node::data::Data;
use fanin_node::launch::{LaunchError, LiveSystem, Loopback, SystemLaunch};
use fanin_units::Bytes;
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
        ideal_rate: None,
        predicted: Default::default(),
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
        folders: &[&aside],
        data: &[&aside.join("data")],
        loggers: true,
        assigned_min: finished.audit.totals.assigned,
        deletes_journals: false,
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
fn a_second_process_of_the_same_name_ends_and_the_first_one_works_on() {
    let mut system = System::start("second", &[]);
    system.work(200);
    for (role, index) in [("collector", "0"), ("logger", "1"), ("readout", "2"), ("supervisor", "0")] {
        let log = system.folder.join("second.log");
        let config = system.folder.join("system.toml");
        let mut command = std::process::Command::new(common::program());
        command.args(["node", role]).arg(&config).args(["--index", index]);
        let mut second = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        let status = loop {
            system.work(50);
            match second.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() < until => {}
                None => {
                    second.kill().unwrap();
                    second.wait().unwrap();
                    panic!("a second {role} {index} runs");
                }
            }
        };
        let said = std::fs::read_to_string(&log).unwrap();
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains("is already running in"), "{said}");
        std::fs::remove_file(log).unwrap();
    }
    let finished = system.finish();
    assert!(finished.audit.totals.stored > 0);
    assert_eq!((finished.restarts, finished.incarnations("collector-0")), (0, 1));
    finished.remove();
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
    let scope = AuditScope {
        folders: &[&system.folder],
        data: &[&data],
        loggers: true,
        assigned_min,
        deletes_journals: false,
    };
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
    let guard = HangGuard::new();
    while system.live.pid(Role::Readout, 1).is_none_or(|pid| pid == hung) {
        guard.check("another process of readout 1");
        system.work(100);
    }
    assert_eq!(system.live.hung().get("readout-1"), Some(&1));
    system.work(500);
    let finished = system.finish();
    assert!(finished.audit.totals.assigned > 0 && finished.incarnations("readout-1") >= 2);
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
        assert_eq!(finished.incarnations("supervisor"), 2);
        finished.remove();
    }
}

#[test]
fn a_supervisor_that_hangs_at_the_end_is_started_again_and_finishes_every_event() {
    let mut system = System::start("frozen-last", &["live.drain=15 s"]);
    system.work(600);
    system.signal(Role::Supervisor, 0, Signal::STOP);
    let finished = system.finish_by_force(&["supervisor"]);
    assert_eq!(finished.incarnations("supervisor"), 2);
    assert!(finished.audit.totals.assigned > 0);
    finished.remove();
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
    let mut endpoint =
        MessageEndpoint::new(EndpointSettings { name: "collector-0".into(), ..EndpointSettings::default() })
            .unwrap();
    endpoint.connect(name, address, ConnectionOptions { key, backoff: None, ..ConnectionOptions::default() });
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match endpoint.poll(Some(until)).unwrap() {
            Some(EndpointEvent::Failed { reason, .. } | EndpointEvent::Closed { reason, .. }) => {
                return reason.to_string();
            }
            Some(EndpointEvent::Message { .. } | EndpointEvent::Connected { .. }) | None => {
                panic!("a stranger was let in")
            }
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
        // A logger may start to listen after the first assignment.
        let guard = HangGuard::new();
        while std::net::TcpStream::connect(&address).is_err() {
            guard.check(format_args!("{name} to listen"));
            system.work(50);
        }
        let refusal = attempt(&address, &name, None);
        assert!(refusal.contains("the caller has no key"), "{refusal}");
        let refusal = attempt(&address, &name, Some(SharedKey::random().unwrap()));
        assert!(refusal.contains("the peer has another key"), "{refusal}");
    }
    system.work(400);
    let finished = system.finish();
    assert_eq!(finished.count(|step| matches!(step, EventStep::Reassigned { .. })), 0);
    finished.remove();
}

#[test]
fn a_process_of_a_named_host_listens_at_no_other_address() {
    let folder = std::env::temp_dir().join(format!("fanin-node-listen-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    drop(held);
    let text = format!(
        "scenario = \"replay\"\nset = [\"readout.hosts=4\", \"collectors.hosts_per_rack=1\", \"logger.hosts=1\"]\n\
         insecure = true\n[hosts]\nsupervisor = \"localhost:{port}\"\nreadouts = [\"ros-[0-3]:7100\"]\ncollectors = [\"dcm-0\"]\nloggers = [\"sfo-0:7200\"]\n"
    );
    let path = folder.join("system.toml");
    std::fs::write(&path, text).unwrap();
    let system = fanin_node::config::System::load(&path).unwrap();
    let (_, sources) = fanin_node::source::supply(system.scenario(), &system.scenario_folder).unwrap();
    let wire = fanin_node::wire::PeerConnections::open(&system, Peer::Supervisor, sources).unwrap();
    let connects = |ip: &str| std::net::TcpStream::connect((ip, port)).is_ok();
    assert!(connects("127.0.0.1"));
    assert!(!connects("127.0.0.2"), "it listens at addresses that its name does not have");
    drop(wire);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_logger_refuses_an_event_that_was_never_assigned() {
    let mut system = System::start("unassigned", &["logger.accept=1"]);
    // Some events are stored, which the end of the test compares.
    system.work(500);
    let address = system.live.system().address(Peer::Logger(0)).unwrap().to_owned();
    let key = system.live.system().key.clone();
    let mut endpoint =
        MessageEndpoint::new(EndpointSettings { name: "collector-1".into(), ..EndpointSettings::default() })
            .unwrap();
    endpoint.connect("logger-0", address.as_str(), ConnectionOptions { key, ..ConnectionOptions::default() });
    let event = L1Id(3_000_000_000);
    let send = |endpoint: &mut MessageEndpoint, to, message: Message<Data>| {
        let (kind, stream) = (message.message_type(), message.stream_id());
        let mut bytes = Vec::new();
        let payload = encode(message, 1, &mut bytes);
        payload.parts().iter().for_each(|part| bytes.extend_from_slice(part));
        endpoint.send(to, kind, stream, &[bytes.as_slice()]).unwrap();
    };
    let mut fragment = Vec::new();
    fanin_node::data::append(&mut fragment, 7, 0, b"made up");
    let size = Bytes::new(fragment.len() as u64);
    let until = Instant::now() + Duration::from_secs(30);
    let answer = loop {
        match endpoint.poll(Some(until)).unwrap() {
            Some(EndpointEvent::Connected { peer, .. }) => {
                send(&mut endpoint, peer, Message::Offer { event, size });
            }
            Some(EndpointEvent::Message { peer, kind, stream, payload }) => {
                match decode(kind, stream, &payload, 1).unwrap() {
                    // The connection takes the place of collector-1's, and gets the answers that wait for it.
                    Message::Stored { event: other, .. } | Message::Grant { event: other }
                        if other != event => {}
                    Message::Grant { .. } => {
                        let payload = Data::new(fragment.clone().into());
                        let stream = EventStream::Physics;
                        send(&mut endpoint, peer, Message::Event { event, stream, missing: 0, payload });
                    }
                    message => break message.name(),
                }
            }
            Some(_) => {}
            None => panic!("no answer"),
        }
    };
    assert_eq!(answer, "refuse");
    drop(endpoint);
    let finished = system.finish();
    // The collector whose place was taken may have sent an event to the other logger again.
    let totals = finished.audit.totals;
    assert_eq!(
        finished.count(|step| matches!(step, EventStep::Stored { .. })),
        totals.stored + totals.debug + totals.duplicates
    );
    finished.remove();
}

#[test]
fn the_21st_quick_end_of_a_process_does_not_end_the_run() {
    let mut system = System::start("crashes", &["logger.accept=0.9"]);
    let until = Instant::now() + Duration::from_secs(240);
    while system.live.without().is_empty() && Instant::now() < until {
        system.signal(Role::Logger, 0, Signal::KILL);
        system.work(50);
    }
    assert_eq!(system.live.without().get("logger-0"), Some(&21));
    // The other logger takes all events.
    system.work(500);
    let finished = system.finish();
    assert!(finished.audit.totals.stored > 0);
    assert_eq!(finished.audit.totals.debug, 0);
    finished.remove();
}

/// Writes the keys of a system's file, and makes one process after the other read it, under load.
fn reload(system: &mut System, keys: &str) {
    let path = system.folder.join("system.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let others = text.lines().filter(|line| !line.starts_with("key"));
    let text: Vec<&str> = keys.lines().chain(others).collect();
    std::fs::write(&path, text.join("\n")).unwrap();
    let roles = [(Role::Logger, 2), (Role::Readout, 4), (Role::Collector, 2), (Role::Supervisor, 1)];
    let processes = roles.into_iter().flat_map(|(role, count)| (0..count).map(move |index| (role, index)));
    for (role, index) in processes {
        let log = system.folder.join(format!("log/{}.log", common::name(role, index)));
        let read = || std::fs::read_to_string(&log).unwrap().matches("configuration read again").count();
        let before = read();
        system.signal(role, index, Signal::HUP);
        let guard = HangGuard::new();
        while read() == before {
            guard.check(format_args!("{role} {index} to read its file"));
            system.work(50);
        }
        // A connection cut in between is made again, with the keys that each side has by then.
        system.cut(index % 2, index % 4);
    }
}

#[test]
fn keys_change_role_by_role_under_load() {
    let mut system = System::start("keys", &["supervisor.rate=300 Hz"]);
    let (old, new) = (system.live.system().key.clone().unwrap(), SharedKey::random().unwrap());
    std::fs::write(system.folder.join("new.key"), new.to_hex()).unwrap();
    // First both keys, until all processes have the new one.
    reload(&mut system, "key = \"new.key\"\nkey_previous = \"peers.key\"");
    for (role, index) in [(Role::Collector, 1), (Role::Readout, 2)] {
        system.signal(role, index, Signal::KILL);
        system.work(1500);
    }
    system.set_key(new.clone());
    let assigned = system.live.assigned();
    reload(&mut system, "key = \"new.key\"");
    system.work(500);
    assert!(system.live.assigned() > assigned, "nothing is assigned");
    for peer in [Peer::Supervisor, Peer::Readout(0), Peer::Logger(1)] {
        let address = system.live.system().address(peer).unwrap().to_owned();
        let refusal = attempt(&address, &fanin_node::names::name(peer), Some(old.clone()));
        assert!(refusal.contains("the peer has another key"), "{refusal}");
    }
    // A key that the file changes applies at once; the address of another process waits for a restart.
    let path = system.folder.join("system.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("run = ", "run = 1")).unwrap();
    system.signal(Role::Readout, 0, Signal::HUP);
    system.work(500);
    std::fs::write(&path, text).unwrap();
    let log = std::fs::read_to_string(system.folder.join("log/readout-0.log")).unwrap();
    let waits = log.lines().find(|line| line.contains("wait for a restart")).expect("a line about it");
    assert!(waits.contains("keys=run") && !waits.contains("key_previous"), "{waits}");
    let finished = system.finish();
    for logger in ["logger-0", "logger-1"] {
        let log = std::fs::read_to_string(finished.folder.join(format!("log/{logger}.log"))).unwrap();
        assert!(!log.contains("never assigned"), "{log}");
    }
    assert_eq!(finished.restarts, 2);
    finished.remove();
}
