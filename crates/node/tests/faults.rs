//! The promises under faults, on real processes that are killed and frozen. Times are random; the seed is printed.

mod common;
#[path = "../../../tests/skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use common::hang_guard::HangGuard;
use common::{Limited, System, random, send, slow_disk};
use fanin_dataflow::{EventStep, Outcome, Peer};
use fanin_message::{ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint};
use fanin_node::config::Role;
use rustix::process::Signal;

#[test]
fn without_faults_everything_ends_as_it_should() {
    let mut system = System::start("undisturbed", &[]);
    system.work(1500);
    let finished = system.finish();
    let totals = finished.audit.totals;
    assert_eq!((totals.debug, totals.duplicates, finished.restarts), (0, 0, 0));
    assert!(totals.assigned > 100 && totals.stored > 20 && totals.rejected > 20, "{totals:?}");
    assert_eq!(finished.audit.missing, 0);
    assert!(finished.audit.files > 2, "files are rotated");
    assert_eq!(finished.count(|step| matches!(step, EventStep::Cleared)), totals.assigned);
    // Each of the four readouts deletes each event.
    assert_eq!(finished.count(|step| matches!(step, EventStep::Deleted)), 4 * totals.assigned);
    finished.remove();
}

#[test]
fn processors_that_crash_or_hang_cost_no_event() {
    let mut system = System::start("processors", &[]);
    let mut random = random("processors");
    for round in 0..8 {
        system.work(u64::from(random.below(200)) + 50);
        let processors = system.processors(round % 2);
        if processors.is_empty() {
            continue;
        }
        let pid = processors[random.below(processors.len() as u32) as usize];
        send(pid, if random.below(2) == 0 { Signal::KILL } else { Signal::STOP });
    }
    system.work(1200);
    let finished = system.finish();
    let totals = finished.audit.totals;
    assert!(totals.debug > 0, "{totals:?}");
    let undecided = |step: &EventStep| matches!(step, EventStep::Decided { outcome: Outcome::Debug, .. });
    assert_eq!(finished.count(undecided), totals.debug);
    assert_eq!(totals.duplicates, 0);
    finished.remove();
}

/// Kills and freezes processes of a role at random times. Each of the two happens at least once, and a freeze lasts
/// longer than every timeout on a process.
fn campaign(name: &str, role: Role, count: u16, rounds: u32, place: Limited) -> common::Finished {
    let mut system = System::start_in(name, &[], None, place);
    let mut random = random(name);
    for round in 0..rounds {
        system.work(u64::from(random.below(500)) + 300);
        let index = random.below(u32::from(count)) as u16;
        if round == 0 || round > 1 && random.below(2) == 0 {
            system.signal(role, index, Signal::KILL);
        } else {
            let shortest = if round == 1 { 2000 } else { 100 };
            system.signal(role, index, Signal::STOP);
            system.work(u64::from(random.below(500)) + shortest);
            system.signal(role, index, Signal::CONT);
        }
    }
    system.work(2000);
    let finished = system.finish();
    assert!(finished.audit.totals.assigned > 100, "{:?}", finished.audit);
    assert!(finished.restarts > 0, "one was killed");
    finished
}

#[test]
fn a_lost_collector_loses_no_event() {
    let finished = campaign("collectors", Role::Collector, 2, 4, Limited::default());
    assert!(finished.count(|step| matches!(step, EventStep::Reassigned { .. })) > 0);
    // Its events are stored unprocessed.
    assert!(finished.audit.totals.debug > 0, "{:?}", finished.audit);
    finished.remove();
}

#[test]
fn a_lost_logger_loses_no_event() {
    let library = slow_disk();
    let place = Limited { preload: Some(library.clone()), ..Limited::default() };
    let finished = campaign("loggers", Role::Logger, 2, 4, place);
    std::fs::remove_file(library).unwrap();
    // Events sent to it, and not on disk, went to the other one.
    assert!(finished.count(|step| matches!(step, EventStep::Shipped { attempt: 2.., .. })) > 0);
    finished.remove();
}

#[test]
fn a_lost_readout_leaves_marks() {
    let mut system = System::start("readouts", &[]);
    let mut random = random("readouts");
    system.work(u64::from(random.below(300)) + 100);
    // Away for longer than its peers listen for it and collectors wait for it: 1 s and 400 ms.
    system.signal(Role::Readout, 1, Signal::STOP);
    system.work(2500);
    system.signal(Role::Readout, 1, Signal::CONT);
    for _ in 0..2 {
        system.work(u64::from(random.below(400)) + 300);
        system.signal(Role::Readout, random.below(4) as u16, Signal::KILL);
    }
    system.work(1500);
    let finished = system.finish();
    let marked = finished.count(|step| matches!(step, EventStep::Missing { readout: 1, .. }));
    assert!(marked > 0 && finished.audit.missing > 0, "{:?}", finished.audit);
    finished.remove();
}

#[test]
fn a_supervisor_takes_up_its_work() {
    let finished = campaign("supervisor", Role::Supervisor, 1, 3, Limited::default());
    assert!(finished.incarnations("supervisor") > 1);
    finished.remove();
}

/// `FANIN_ROUNDS` faults, eight unless given, of every kind at once. docs/running.md has the result of a long campaign.
#[test]
fn everything_at_once() {
    let rounds = std::env::var("FANIN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8);
    let mut system = System::start("everything", &[]);
    let mut random = random("everything");
    let roles = [(Role::Collector, 2), (Role::Logger, 2), (Role::Readout, 4), (Role::Supervisor, 1)];
    let mut done = BTreeMap::new();
    for _ in 0..rounds {
        system.work(u64::from(random.below(400)) + 100);
        let (role, count) = roles[random.below(4) as usize];
        let index = random.below(count) as u16;
        let fault = match random.below(8) {
            0..=3 => {
                system.signal(role, index, Signal::KILL);
                format!("{role} killed")
            }
            4 => {
                system.signal(role, index, Signal::STOP);
                system.work(u64::from(random.below(2500)) + 100);
                system.signal(role, index, Signal::CONT);
                format!("{role} frozen")
            }
            5 => {
                system.cut(random.below(2) as u16, random.below(4) as u16);
                "connection cut".to_owned()
            }
            kind => {
                let signal = if kind == 6 { Signal::KILL } else { Signal::STOP };
                system
                    .processors(random.below(2) as u16)
                    .first()
                    .into_iter()
                    .for_each(|&pid| send(pid, signal));
                if kind == 6 { "processor killed".to_owned() } else { "processor frozen".to_owned() }
            }
        };
        *done.entry(fault).or_insert(0_u32) += 1;
    }
    system.work(2500);
    let finished = system.finish();
    eprintln!("{done:?}: {:?}", finished.audit);
    let killed: u32 =
        done.iter().filter(|(fault, _)| fault.ends_with("killed")).map(|(_, count)| count).sum();
    assert!(killed == 0 || finished.restarts + finished.audit.totals.debug > 0, "{done:?}");
    assert!(finished.audit.totals.assigned > rounds, "{:?}", finished.audit);
    finished.remove();
}

#[test]
fn full_readouts_stop_the_trigger_and_lose_nothing() {
    let mut system = System::start(
        "memory",
        &["readout.fragment_size=300 B", "readout.memory=30 kB", "supervisor.rate=400 Hz"],
    );
    system.work(1500);
    let finished = system.finish();
    assert!(finished.count(|step| matches!(step, EventStep::Xoff)) > 0);
    assert!(finished.count(|step| matches!(step, EventStep::Xon)) > 0);
    assert_eq!((finished.audit.totals.debug, finished.audit.missing), (0, 0));
    finished.remove();
}

#[test]
fn nonsense_is_shut_out_and_costs_nothing() {
    let mut system = System::start("nonsense", &[]);
    system.work(300);
    for to in [Peer::Supervisor, Peer::Readout(0), Peer::Logger(1)] {
        let address: SocketAddr = system.live.system().address(to).unwrap().parse().unwrap();
        // Not even a greeting.
        std::net::TcpStream::connect(address).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        // A stranger, and a known name with messages that make no sense.
        talk(address, "intruder-1", &[]);
        talk(address, "collector-1", &[(99, 0, vec![1; 50]), (7, 0, vec![0; 5])]);
        talk(address, "collector-1", &[(1, 0, vec![0xff; 12])]);
    }
    system.work(1500);
    let finished = system.finish();
    assert!(finished.audit.totals.assigned > 100, "{:?}", finished.audit);
    finished.remove();
}

/// Connects under a name, sends messages, and waits until it is shut out or has been heard.
fn talk(address: SocketAddr, name: &str, messages: &[(u32, u32, Vec<u8>)]) {
    let mut endpoint =
        MessageEndpoint::new(EndpointSettings { name: name.to_owned(), ..EndpointSettings::default() })
            .unwrap();
    endpoint.connect("", address, ConnectionOptions { backoff: None, ..ConnectionOptions::default() });
    let until = Instant::now() + Duration::from_millis(500);
    while let Some(event) = endpoint.poll(Some(until)).unwrap() {
        match event {
            EndpointEvent::Connected { peer, .. } => {
                for (kind, stream, body) in messages {
                    let _ = endpoint.send(peer, *kind, *stream, &[body.as_slice()]);
                }
            }
            EndpointEvent::Closed { .. } | EndpointEvent::Failed { .. } => return,
            _ => {}
        }
    }
}

#[test]
fn settings_are_read_again_when_asked() {
    let mut system = System::start("reload", &["live.file_size=1 GB"]);
    let file = system.folder.join("system.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let log = system.folder.join("log").join("logger-0.log");
    let said = |system: &mut System, text: &str| {
        for _ in 0..50 {
            system.work(40);
            if std::fs::read_to_string(&log).unwrap().contains(text) {
                return true;
            }
        }
        false
    };
    let logger: SocketAddr = system.live.system().address(Peer::Logger(0)).unwrap().parse().unwrap();
    let data = system.live.system().data.clone();
    let finished_files = || {
        let names = std::fs::read_dir(&data).unwrap().flatten().map(|entry| entry.file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("logger-0-physics-") && name.ends_with(".data")).count()
    };
    // A stranger costs one line at the level `debug`.
    talk(logger, "intruder-1", &[]);
    system.work(300);
    assert_eq!(finished_files(), 0);
    assert!(!std::fs::read_to_string(&log).unwrap().contains("DEBUG"));
    let changed = format!("set = [\"live.file_size=20 kB\"]\n{text}\n[log]\nlevel = \"debug\"\n");
    std::fs::write(&file, changed).unwrap();
    system.signal(Role::Logger, 0, Signal::HUP);
    assert!(said(&mut system, "configuration read again"));
    talk(logger, "intruder-1", &[]);
    assert!(said(&mut system, "DEBUG"));
    let guard = HangGuard::new();
    while finished_files() == 0 {
        guard.check("a finished file of the new size");
        system.work(50);
    }
    std::fs::write(&file, "scenario = 7").unwrap();
    system.signal(Role::Logger, 0, Signal::HUP);
    assert!(said(&mut system, "invalid configuration; the settings stay"));
    std::fs::write(&file, text).unwrap();
    let finished = system.finish();
    assert_eq!(finished.restarts, 0);
    finished.remove();
}

#[test]
fn a_full_disk_makes_another_logger_take_over() {
    // 300 KiB a file for logger 0, which would write one large file.
    let small = Limited { file_kib: Some(300), ..Limited::default() };
    let mut system = System::start_in("full", &["live.file_size=1 GB", "logger.accept=0.9"], None, small);
    system.work(3000);
    // The error is named, and not taken for a full disk.
    let log = std::env::temp_dir().join(format!("fanin-limited-{}.log", std::process::id()));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("events cannot be written error=File too large"), "{log}");
    assert!(!log.contains("the disk is full"), "{log}");
    let finished = system.finish();
    assert_eq!(finished.audit.totals.debug, 0);
    let size = |logger: u32| -> u64 {
        let data = std::fs::read_dir(&finished.data).unwrap().flatten();
        let own = data
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("logger-{logger}-")));
        own.map(|entry| entry.metadata().unwrap().len()).sum()
    };
    assert!(size(0) <= 300 << 10, "{}", size(0));
    assert!(size(1) > 2 * size(0), "{} and {}", size(0), size(1));
    finished.remove();
}

/// Runs a command; whether it worked.
fn works(program: &str, arguments: &[&str]) -> bool {
    std::process::Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

#[test]
fn a_disk_that_has_room_again_is_used_again() {
    let disk = std::env::temp_dir().join(format!("fanin-node-disk-{}", std::process::id()));
    std::fs::create_dir_all(&disk).unwrap();
    let path = disk.to_str().unwrap();
    if !works("mount", &["-t", "tmpfs", "-o", "size=60M", "fanin-node-test", path]) {
        return skip::skip("mounting a small disk needs root");
    }
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![0; 58 << 20]).unwrap();
    let tested = std::panic::catch_unwind(|| {
        let mut system = System::start_in(
            "room",
            &["logger.hosts=1", "logger.accept=0.9"],
            Some(&disk),
            Limited::default(),
        );
        // It fills up, events pile up in the collectors, and the trigger stops.
        system.work(3000);
        std::fs::remove_file(disk.join("ballast")).unwrap();
        system.work(2000);
        let finished = system.finish();
        assert!(finished.audit.totals.stored > 100, "{:?}", finished.audit);
        assert!(finished.count(|step| matches!(step, EventStep::Xoff)) > 0);
        finished.remove();
    });
    // The test's processes are gone: the disk is not in use.
    assert!(works("umount", &[path]));
    std::fs::remove_dir(&disk).unwrap();
    if let Err(panic) = tested {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_processor_that_never_comes_up_ends_the_run_with_its_own_words() {
    let command = r#"live.processor=["sh", "-c", "echo no such module >&2; exit 3"]"#;
    let Err(error) = System::try_start("hopeless", &[command], None, Limited::default()) else {
        panic!("it started");
    };
    let text = error.to_string();
    assert!(text.contains("repeatedly ended before it connected (exit status: 3)"), "{text}");
    assert!(text.starts_with("collector-") && text.contains("\nno such module\n"), "{text}");
    std::fs::remove_dir_all(std::env::temp_dir().join(format!("fanin-node-hopeless-{}", std::process::id())))
        .unwrap();
}

#[test]
fn processes_end_with_the_one_that_started_them() {
    let mut system = System::start("orphans", &[]);
    system.work(200);
    let collector = system.live.pid(Role::Collector, 0).unwrap();
    let processors = system.processors(0);
    assert_eq!(processors.len(), 2);
    send(collector, Signal::KILL);
    let gone = |pid: u32| !std::path::Path::new(&format!("/proc/{pid}")).exists() || is_zombie(pid);
    for _ in 0..200 {
        if processors.iter().all(|&pid| gone(pid)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(processors.iter().all(|&pid| gone(pid)), "{processors:?}");
    system.work(1000);
    system.finish().remove();
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with('Z'))
}
