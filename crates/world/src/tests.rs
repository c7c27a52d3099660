//! Regression tests of bugs found by simulated worlds.

mod connections;
mod takeover;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use fanin_dataflow::{
    EventRecord, EventStep, EventStream, FragmentSet, L1Id, Message, Outcome, Peer, Random, Selection,
    StoreId, WriteJob,
};
use fanin_events::{Events, Fault, verify};
use fanin_message::Versions;
use fanin_node::audit::{AuditScope, Finding, audit_on};
use fanin_node::config::Role;
use fanin_node::data::{Chunk, Data, append};
use fanin_node::journal::{Journal, JournalLine, Rotation, read_on};
use fanin_node::machine::HostMachine;
use fanin_node::node::RoleNode as _;
use fanin_node::resume::resume_on;
use fanin_node::roles::CollectorNode;
use fanin_node::store::{EventStore, LastAcknowledged, StoreConfig, Stored};
use fanin_units::Instant;

use crate::machine::{ProcessLife, ProcessMachine};
use crate::plan::{InjectedFault, PlannedFault, WorldPlan};
use crate::shared::{Core, SharedCore};
use crate::verdict::WorldFailure;
use crate::world::World;

/// The clock of a process takes 213 days. Timers behind its end would never fire.
#[test]
fn a_process_stops_in_order_before_its_clock_ends() {
    let mut world = World::new(1);
    for host in 0..world.children.len() {
        world.start(host, 0);
        let process = world.children[host].process.as_mut().unwrap();
        assert!(process.turn().unwrap() && process.turn().unwrap());
        let day = 24 * 3600 * 1_000_000_000;
        world.shared.lock().now = 199 * day;
        assert!((0..10).all(|_| process.turn().unwrap()));
        world.shared.lock().now = 200 * day + 1_000_000_000;
        let ends = (0..100).any(|turn| {
            world.shared.lock().now += turn * 1_000_000_000;
            !process.turn().unwrap()
        });
        assert!(ends, "{:?}", world.plan.places[host]);
        world.shared.lock().now = 0;
    }
}

/// Makes a machine that may lose files with its power.
fn machine(seed: u64) -> (SharedCore, HostMachine) {
    let mut core = Core::new(seed, 1);
    (core.hosts[0].is_running, core.hosts[0].life) = (true, 1);
    let shared = SharedCore::new(core);
    let life = ProcessLife { host: 0, number: 1 };
    let machine = ProcessMachine { shared: shared.clone(), life };
    (shared, HostMachine::Simulated(Arc::new(machine)))
}

/// Returns the machine of the next life of its process, after a loss of power.
fn next_life(shared: &SharedCore) -> HostMachine {
    let mut core = shared.lock();
    if !core.hosts[0].is_running {
        core.lose_power(0);
    }
    core.hosts[0].life += 1;
    core.hosts[0].is_running = true;
    let life = ProcessLife { host: 0, number: core.hosts[0].life };
    drop(core);
    HostMachine::Simulated(Arc::new(ProcessMachine { shared: shared.clone(), life }))
}

fn assigned(event: u64) -> EventRecord {
    let step = EventStep::Assigned { collector: 0, unit: 0, due: Instant::START, direct: false };
    EventRecord { at: Instant::START, event: L1Id(event), step }
}

fn next(machine: &HostMachine, path: &Path) -> u64 {
    resume_on(machine, path).unwrap().next.map_or(0, |event| event.0)
}

#[test]
fn a_synchronised_journal_survives_a_loss_of_power() {
    let path = PathBuf::from("/run/supervisor.journal");
    for seed in 0..150 {
        let (shared, machine) = machine(seed);
        let mut committed = 0;
        for life in 0..3 {
            let rotation = Rotation { size: 700, keep: 0 };
            let journal = Journal::open_on(&machine, &path, "supervisor", life, true).unwrap();
            let mut journal = journal.rotating(rotation);
            assert_eq!(next(&machine, &path), committed, "seed {seed}");
            for _ in 0..seed % 50 {
                journal.add(&assigned(committed), 0);
                journal.commit().unwrap();
                committed += 1;
            }
            // A group that is not on disk yet, of several sectors.
            shared.lock().disks.of[0].errors_per_mille = 0;
            let file = machine.open(&path, fanin_node::machine::OpenMode::ReadWrite);
            let mut torn = file.unwrap();
            std::io::Seek::seek(&mut torn, std::io::SeekFrom::End(0)).unwrap();
            let group: String = (0..60).map(|n| format!("5 {} assigned 0 0 0 0\n", committed + n)).collect();
            std::io::Write::write_all(&mut torn, group.as_bytes()).unwrap();
            drop((journal, torn));
            shared.lock().lose_power(0);
            drop(Journal::open_on(&machine, &path, "supervisor", life, true).unwrap());
            let found = next(&machine, &path);
            assert!(
                found >= committed,
                "seed {seed}: event {found} is next, after {committed} were committed"
            );
            committed = found;
        }
    }
}

/// Lines behind damaged ones are kept where nothing was promised about either.
#[test]
fn a_journal_without_synchronisation_stays_readable_after_a_loss_of_power() {
    let path = PathBuf::from("/run/logger-0.journal");
    let mut kept = 0;
    for seed in 0..200 {
        let (shared, machine) = machine(seed);
        let mut journal = Journal::open_on(&machine, &path, "logger-0", 1, false).unwrap();
        machine.sync_folder(Path::new("/run")).unwrap();
        (0..100).for_each(|event| journal.add(&assigned(event), 0));
        journal.commit().unwrap();
        shared.lock().lose_power(0);
        drop(Journal::open_on(&machine, &path, "logger-0", 2, false).unwrap());
        read_on(&machine, &path, |_, JournalLine { record, .. }| kept += u64::from(record.event.0 < 100))
            .unwrap();
    }
    assert!(kept > 1000, "{kept}");
}

#[test]
fn a_disk_that_does_not_answer_does_not_replace_a_journal() {
    let path = PathBuf::from("/run/collector-0.journal");
    for seed in 0..300 {
        let (shared, machine) = machine(seed);
        let rotation = Rotation { size: 300, keep: 0 };
        let mut journal =
            Journal::open_on(&machine, &path, "collector-0", 1, false).unwrap().rotating(rotation);
        for event in 0..60 {
            // A full disk takes a part of a line; cutting it off may fail, too.
            shared.lock().disks.of[0].is_full = event % 5 == 1;
            shared.lock().disks.of[0].errors_per_mille = if event % 3 == 0 { 0 } else { 200 };
            journal.add(&assigned(event), 0);
            let _ = journal.commit();
        }
        shared.lock().disks.of[0].errors_per_mille = 0;
        shared.lock().disks.of[0].is_full = false;
        journal.commit().unwrap();
        let mut found = Vec::new();
        for part in machine.list(Path::new("/run")).unwrap() {
            if part.extension().is_some_and(|extension| extension == "journal") {
                read_on(&machine, &part, |_, line| found.push(line.record.event.0)).unwrap();
            }
        }
        found.sort_unstable();
        assert_eq!(found, (0..60).collect::<Vec<_>>(), "seed {seed}");
    }
}

fn job(number: u32) -> WriteJob<Data> {
    let mut bytes = Vec::new();
    append(&mut bytes, 7, 0, &[number as u8; 300]);
    WriteJob {
        id: StoreId(u64::from(number)),
        event: L1Id(u64::from(number)),
        collector: 0,
        stream: EventStream::Physics,
        missing: 0,
        payload: Data::new(Chunk::from(bytes)),
    }
}

/// Returns the paths of finished files of stored events. Their folder has copies of damaged ones, too.
fn finished(machine: &HostMachine, folder: &Path) -> Vec<PathBuf> {
    let mut paths = machine.list(folder).unwrap();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "data"));
    paths
}

/// A logger says of each event whether it is on disk, on a disk that fails at random; later everything works again.
#[test]
fn stored_events_are_readable_after_faults_of_the_disk() {
    for seed in 0..300 {
        let (shared, machine) = machine(seed);
        let folder = PathBuf::from("/data");
        let config =
            StoreConfig { folder: folder.clone(), process: "logger-0".to_owned(), file_bytes: 2_000, run: 1 };
        let store =
            EventStore::start(&machine, config.clone(), &LastAcknowledged::default(), Arc::new(|| ()))
                .unwrap();
        let task = shared.lock().hosts[0].store.clone().unwrap();
        let turn = || task.lock().unwrap_or_else(PoisonError::into_inner).turn(Duration::ZERO);
        let (mut safe, mut last) = (Vec::new(), false);
        for number in 0..40 {
            shared.lock().disks.of[0].errors_per_mille = if number < 30 { 150 } else { 0 };
            turn();
            store.write(job(number));
            turn();
            while let Some(stored) = store.poll() {
                if let Stored::Safe(id) = stored {
                    safe.push(id);
                    last |= id == StoreId(39);
                }
            }
        }
        assert!(last, "seed {seed}: a disk that works again stores");
        if seed % 2 == 0 {
            shared.lock().lose_power(0);
        }
        drop(store);
        drop(EventStore::start(&machine, config, &LastAcknowledged::default(), Arc::new(|| ())).unwrap());
        let mut found = Vec::new();
        for path in finished(&machine, &folder) {
            let bytes = machine.read(&path).unwrap();
            for event in Events::open(&bytes).unwrap() {
                found.push(StoreId(event.unwrap_or_else(|error| panic!("seed {seed}: {error}")).id.l1_id));
            }
        }
        let lost: Vec<_> = safe.iter().filter(|id| !found.contains(id)).collect();
        assert!(lost.is_empty(), "seed {seed}: {lost:?}");
    }
}

/// The power fails between the write of a group and its `fsync`. Any of its sectors may be lost.
#[test]
fn an_event_with_a_lost_sector_is_cut_off() {
    let mut cut = 0;
    for seed in 0..100 {
        let (shared, first) = machine(seed);
        let folder = PathBuf::from("/data");
        let process = "logger-0".to_owned();
        let config = StoreConfig { folder: folder.clone(), process, file_bytes: 1 << 20, run: 1 };
        let store =
            EventStore::start(&first, config.clone(), &LastAcknowledged::default(), Arc::new(|| ())).unwrap();
        let task = shared.lock().hosts[0].store.clone().unwrap();
        for number in 0..4 {
            // The last group's write is the first change, and its `fsync` the second.
            shared.lock().disks.of[0].changes_left = if number == 3 { 2 } else { 0 };
            store.write(job(number));
            task.lock().unwrap_or_else(PoisonError::into_inner).turn(Duration::ZERO);
        }
        assert_eq!(shared.lock().power_failed.take(), Some(0));
        drop(store);
        let second = next_life(&shared);
        drop(EventStore::start(&second, config, &LastAcknowledged::default(), Arc::new(|| ())).unwrap());
        for path in finished(&second, &folder) {
            let bytes = second.read(&path).unwrap();
            let report = verify(&bytes).unwrap();
            // The fragments bear no L1 IDs.
            let faults = report.faults.iter().filter(|error| !matches!(error.fault, Fault::L1Id { .. }));
            assert_eq!(faults.count(), 0, "seed {seed}: {:?}", report.faults);
            let events = Events::open(&bytes).unwrap().count();
            assert!(events >= 3, "seed {seed}: {events} of 3 events that were stored");
            cut += u32::from(events == 3);
        }
    }
    assert!(cut > 50, "{cut}");
}

/// A failed `fsync` leaves lines in the page cache that the kernel considers clean. The next life of the process reads
/// them, and its later commits must survive.
#[test]
fn lines_that_a_failed_fsync_left_do_not_cost_later_ones() {
    let path = PathBuf::from("/run/supervisor.journal");
    let mut left = 0;
    for seed in 0..300 {
        let (shared, first) = machine(seed);
        let mut journal = Journal::open_on(&first, &path, "supervisor", 1, true).unwrap();
        shared.lock().disks.of[0].errors_per_mille = 700;
        (0..20).for_each(|event| journal.add(&assigned(event), 0));
        let failed = journal.commit().is_err();
        shared.lock().disks.of[0].errors_per_mille = 0;
        drop(journal);
        let second = next_life(&shared);
        let mut journal = Journal::open_on(&second, &path, "supervisor", 2, true).unwrap();
        left += u32::from(failed && next(&second, &path) == 20);
        journal.add(&assigned(30), 0);
        journal.commit().unwrap();
        shared.lock().lose_power(0);
        let third = next_life(&shared);
        drop(Journal::open_on(&third, &path, "supervisor", 3, true).unwrap());
        assert_eq!(next(&third, &path), 31, "seed {seed}");
    }
    assert!(left > 10, "{left}");
}

fn collector() -> CollectorNode {
    // One without a standby: with two supervisors, a collector obeys the one that says that it leads.
    let alone = |world: &World| world.system(0).standby.is_none();
    let world = (1..).map(World::new).find(alone).expect("every second world");
    CollectorNode::new(world.system(0), 0, &(Arc::new(|| ()) as Arc<dyn Fn() + Send + Sync>)).unwrap()
}

#[test]
fn a_late_answer_leaves_nothing_behind() {
    let mut node = collector();
    node.handle_connected(Instant::START, Peer::Readout(0));
    let answer =
        Message::Answer { tag: 9, event: L1Id(4), missing: FragmentSet::EMPTY, payload: job(4).payload };
    let _ = node.handle_message(Instant::START, Peer::Readout(0), answer);
    assert!(node.tables().iter().all(|(_, entries)| *entries == 0), "{:?}", node.tables());
}

/// The supervisor takes an event from a collector that it has lost, and gives it to the same one: the proof stays.
#[test]
fn an_event_that_is_assigned_again_keeps_its_proof() {
    let mut node = collector();
    node.handle_connected(Instant::START, Peer::Supervisor);
    let assign = |direct| Message::Assign {
        event: L1Id(4),
        unit: 0,
        direct,
        region: Selection::Rest,
        result: Data::new(Chunk::from(vec![1; 32])),
    };
    let proofs = |node: &CollectorNode| node.tables().iter().find(|(name, _)| *name == "proofs").unwrap().1;
    let welcome = |events: &[L1Id]| Message::Welcome(Box::from(events));
    node.handle_message(Instant::START, Peer::Supervisor, welcome(&[])).unwrap();
    node.handle_message(Instant::START, Peer::Supervisor, assign(false)).unwrap();
    while node.poll_record().is_some() {}
    assert_eq!(proofs(&node), 1);
    node.handle_closed(Instant::START, Peer::Supervisor);
    node.handle_connected(Instant::START, Peer::Supervisor);
    node.handle_message(Instant::START, Peer::Supervisor, welcome(&[L1Id(4)])).unwrap();
    node.handle_message(Instant::START, Peer::Supervisor, assign(true)).unwrap();
    let mut was_abandoned = false;
    while let Some((record, _)) = node.poll_record() {
        was_abandoned |= record.step == EventStep::Abandoned;
    }
    assert!(was_abandoned && proofs(&node) == 1);
}

/// An assignment that the state machine refuses leaves nothing behind.
#[test]
fn a_refused_assignment_leaves_no_proof() {
    let mut node = collector();
    let result = Data::new(Chunk::from(vec![1; 32]));
    let region = Selection::Rest;
    let assign = Message::Assign { event: L1Id(4), unit: 0, direct: false, region, result };
    // No unit was announced, as the supervisor is not connected.
    node.handle_message(Instant::START, Peer::Supervisor, assign).unwrap_err();
    assert!(node.tables().iter().all(|(_, entries)| *entries == 0), "{:?}", node.tables());
}

/// A supervisor that was suspended makes assignments for ended connections. They must not be sent on the new connections,
/// where the collectors have not said hello yet. `verdict` finds each message that a process refuses.
#[test]
fn messages_for_a_lost_connection_are_not_sent_on_the_next() {
    let mut paused = 0;
    for seed in (0..60).filter(|&seed| World::new(seed).system(0).standby.is_none()) {
        let mut world = World::new(seed);
        let (at, until) = (400_000_000, 2_700_000_000);
        world.plan.faults = vec![PlannedFault { at, until, kind: InjectedFault::Pause(0) }];
        world.plan.stop_at = 4_000_000_000;
        (world.plan.is_rolling, world.plan.is_long, world.plan.is_held) = (false, false, false);
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        paused += 1;
    }
    assert!(paused > 20, "{paused}");
}

/// The launcher of a world kills a process that hangs by the real launcher's rule (`ActivityWatch`).
#[test]
fn a_process_that_is_stopped_for_long_is_killed_and_a_short_pause_is_none() {
    let (mut long, mut short) = (0, 0);
    for seed in 0..30 {
        for (lasts, hangs) in [(2_000_000_000, 0), (6_000_000_000, 1)] {
            let mut world = World::new(seed);
            let at = 400_000_000;
            let last = world.plan.places.len() - 1;
            world.plan.faults =
                vec![PlannedFault { at, until: at + lasts, kind: InjectedFault::Pause(last) }];
            world.plan.stop_at = at + lasts;
            (world.plan.is_rolling, world.plan.is_long, world.plan.is_held) = (false, false, false);
            world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
            assert_eq!(world.hangs, hangs, "seed {seed}");
            *(if hangs > 0 { &mut long } else { &mut short }) += 1;
        }
    }
    assert_eq!((long, short), (30, 30));
}

/// The launcher of a world replaces a supervisor that does not stop in time, as the real one: no event is lost.
#[test]
fn a_supervisor_that_is_stopped_at_the_end_is_replaced() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        let (at, lasts) = (400_000_000, 100_000_000_000);
        world.plan.faults = vec![PlannedFault { at, until: at + lasts, kind: InjectedFault::Pause(0) }];
        world.plan.stop_at = at;
        world.plan.hasty_stop = Some(2_000_000_000);
        (world.plan.is_rolling, world.plan.is_long, world.plan.is_held) = (false, false, false);
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        // A standby waits for the other supervisor, and may be replaced, too.
        let most = if world.plan.has_standby() { 2 } else { 1 };
        assert!((1..=most).contains(&world.replaced) && world.hangs == 0, "seed {seed}: {}", world.replaced);
    }
}

/// A supervisor that dies just before its time for stopping is over has a restart planned after it. It gets as long again.
#[test]
fn a_supervisor_that_dies_at_the_end_of_its_stop_is_started_again() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        let (at, limit) = (400_000_000, 2_000_000_000);
        let death = at + limit - 20_000_000;
        world.plan.faults = vec![
            PlannedFault { at, until: death, kind: InjectedFault::Pause(0) },
            PlannedFault { at: death, until: death + 1_000_000, kind: InjectedFault::Kill(0) },
        ];
        world.plan.stop_at = at;
        world.plan.hasty_stop = Some(limit);
        (world.plan.is_rolling, world.plan.is_long, world.plan.is_held) = (false, false, false);
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

/// A collector that dies while its disk is full loses lines of its journal, and no event. `docs/howto/disasters.md` names what
/// the audit says then.
#[test]
fn a_collector_that_dies_with_its_disk_loses_lines_and_no_event() {
    let (mut found, mut whole) = (0, 0);
    for seed in 0..120 {
        let mut world = World::new(seed);
        let place = world.plan.places.iter().position(|place| place.role == Role::Collector).unwrap();
        let ms = |ms: u64| ms * 1_000_000;
        let full = InjectedFault::DiskFull(place);
        world.plan.faults = vec![
            PlannedFault { at: ms(300), until: ms(2500), kind: full },
            PlannedFault { at: ms(1500), until: ms(1501), kind: InjectedFault::Kill(place) },
        ];
        world.plan.stop_at = ms(4000);
        (world.plan.is_rolling, world.plan.is_long, world.plan.is_held) = (false, false, false);
        match world.run() {
            Ok(_) => whole += 1,
            Err(WorldFailure::Audit(text)) => {
                let named = ["no collector's journal has a processor's decision", "shipped it"];
                assert!(!text.contains("lost"), "seed {seed}: {text}");
                for finding in text.lines().filter(|line| line.contains("event ")) {
                    assert!(named.iter().any(|named| finding.contains(named)), "seed {seed}: {text}");
                }
                found += 1;
            }
            Err(failure) => panic!("seed {seed}: {failure}"),
        }
    }
    assert!(found > 5 && whole > 5, "{found} with findings, {whole} without");
}

/// A readout whose disk is full when the first leader is chosen cannot write its vote. It votes once its disk takes it: a
/// system in which a readout abstains has not recovered (`World::is_secured`).
#[test]
fn a_vote_that_the_disk_refused_is_written_later() {
    let mut full = 0;
    for seed in 0..120 {
        let mut world = World::new(seed);
        let readouts = world.plan.places.iter().filter(|place| place.role == Role::Readout).count();
        if !world.plan.has_standby() || readouts < 3 {
            continue;
        }
        let kind = InjectedFault::DiskFull(2);
        world.plan.faults = vec![PlannedFault { at: 1, until: 2_500_000_000, kind }];
        world.plan.stop_at = 4_000_000_000;
        (world.plan.is_rolling, world.plan.is_long) = (false, false);
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        full += 1;
    }
    assert!(full > 10, "{full}");
}

/// Seeds draw upgrades, their reversal, and systems of both versions.
#[test]
fn seeds_draw_processes_of_both_versions() {
    let (mut upgrades, mut reversals, mut mixed) = (0, 0, 0);
    for seed in 0..600 {
        let plan = WorldPlan::draw(&mut Random::new(seed));
        let is_old = |versions: &Versions| *versions == Versions::default();
        let old = plan.versions.iter().filter(|versions| is_old(versions)).count();
        match plan.versions_restarted {
            Some(versions) if is_old(&versions) => reversals += u32::from(old == 0),
            Some(_) => upgrades += u32::from(old == plan.places.len()),
            None => mixed += u32::from((1..plan.places.len()).contains(&old)),
        }
    }
    assert!(upgrades > 10 && reversals > 10 && mixed > 100, "{upgrades}, {reversals}, {mixed}");
}

/// Lines that the machine of a collector lost with its power leave earlier events unknown in part. A later event without
/// a decision is a finding.
#[test]
fn a_rejection_that_was_lost_with_the_power_is_unknown() {
    let folder = PathBuf::from("/run");
    let path = folder.join("collector-0.journal");
    let record = |at, event, step| EventRecord { at, event: L1Id(event), step };
    let decided = EventStep::Decided { unit: 0, outcome: Outcome::Rejected };
    let completed = EventStep::Completed { collector: 0, outcome: Outcome::Rejected };
    let mut unknown = 0;
    for seed in 0..40 {
        let (shared, first) = machine(seed);
        let supervisor = folder.join("supervisor.journal");
        let mut supervisor = Journal::open_on(&first, &supervisor, "supervisor", 1, true).unwrap();
        let mut collector = Journal::open_on(&first, &path, "collector-0", 1, false).unwrap();
        for event in 0..40 {
            supervisor.add(&assigned(event), 0);
            supervisor.add(&record(Instant::START, event, completed), 0);
            collector.add(&record(Instant::START, event, decided), 0);
        }
        supervisor.commit().unwrap();
        collector.commit().unwrap();
        let scope = AuditScope {
            folders: &[&folder],
            data: &[],
            loggers: true,
            assigned_min: 40,
            deletes_journals: false,
        };
        let audit = audit_on(&first, &scope).unwrap();
        assert_eq!((audit.totals.rejected, audit.unknown.events), (40, 0));
        shared.lock().lose_power(0);
        // The collector starts again a millisecond later.
        let second = next_life(&shared);
        drop(Journal::open_on(&second, &path, "collector-0", 1000, false).unwrap());
        let audit = audit_on(&second, &scope).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        assert_eq!(audit.totals.rejected, 40);
        assert_eq!(audit.unknown.collectors.contains(&0), audit.unknown.events > 0, "seed {seed}");
        unknown += audit.unknown.events;
        let supervisor = folder.join("supervisor.journal");
        let mut supervisor = Journal::open_on(&second, &supervisor, "supervisor", 2000, true).unwrap();
        supervisor.add(&assigned(40), 0);
        supervisor.add(&record(Instant::START, 40, completed), 0);
        supervisor.commit().unwrap();
        let findings = audit_on(&second, &scope).unwrap_err().findings;
        assert!(matches!(findings[..], [Finding::NotDecided(L1Id(40))]), "seed {seed}: {findings:?}");
    }
    assert!(unknown > 100, "{unknown}");
}
