//! Two supervisors: the time for which assignment stops when one is lost for good, and the size of their journals.

use std::path::{Path, PathBuf};

use fanin_dataflow::EventStep;
use fanin_node::config::Role;
use fanin_node::journal::{follows_deleted, read_on};
use fanin_units::Duration;

use crate::plan::{InjectedFault, PlannedFault, ProcessPlace};
use crate::world::{MS, RESUME_MAX, World};

/// Returns the closed files of a supervisor's journal in their order.
fn closed(world: &World, folder: &Path, name: &str) -> Vec<PathBuf> {
    let is_closed = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        file.starts_with(&format!("{name}.0")) && file.ends_with(".journal")
    };
    let mut files = world.audit_machine().list(folder).unwrap();
    files.retain(is_closed);
    files.sort();
    files
}

/// Returns the longest time between two assignments in the standby's journal, in nanoseconds, and its number of files. The
/// assignments of the first supervisor are lines of it, too.
fn longest_stop(world: &World) -> (u64, usize) {
    let folder = world.folder(world.plan.places.len() - 1);
    let mut files = closed(world, folder, "standby");
    files.push(folder.join("standby.journal"));
    let mut times = Vec::new();
    for path in &files {
        read_on(&world.audit_machine(), path, |epoch_us, line| {
            if matches!(line.record.step, EventStep::Assigned { direct: false, .. }) {
                times.push(epoch_us * 1_000 + line.record.at.get() / 1_000);
            }
        })
        .unwrap();
    }
    (times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap(), files.len())
}

/// Plays worlds whose only fault is the loss of the first supervisor's machine. `has_power`: its kernel closes the
/// connections. Returns the number of takeovers, that of logs with several files, and the longest stop, in nanoseconds.
fn play(has_power: bool) -> (u32, u32, u64) {
    let (mut takeovers, mut in_files, mut longest) = (0, 0, 0);
    for seed in 0..200 {
        let mut world = World::new(seed);
        if !world.plan.has_standby() {
            continue;
        }
        let at = (2_000 + 7 * seed) * MS;
        let kind = InjectedFault::LoseForGood(0, has_power);
        world.plan.faults = vec![PlannedFault { at, until: at + MS, kind }];
        world.plan.stop_at = at + 2 * RESUME_MAX;
        world.set_live(|live| {
            // The default. The supervisors' own limit notices a dead host then, not a lost connection.
            live.silence_max = Duration::from_secs(5);
            // The longest stop is read from all journals. With a limit that is not reached, the two still begin files.
            live.journal_parts = live.journal_parts.saturating_mul(100_000);
        });
        (world.plan.is_rolling, world.plan.is_long) = (false, false);
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        let is_first = |place: ProcessPlace| (place.role, place.index) == (Role::Supervisor, 0);
        if world.folders().iter().any(|(place, ..)| is_first(*place)) {
            // The two were not paired: the process was killed, and started again.
            continue;
        }
        let (stop, files) = longest_stop(&world);
        in_files += u32::from(files > 1);
        assert!(stop < RESUME_MAX, "seed {seed}: assignment stopped for {} ms", stop / MS);
        takeovers += 1;
        longest = longest.max(stop);
    }
    (takeovers, in_files, longest)
}

#[test]
fn a_takeover_stops_assignment_for_less_than_3_s() {
    let (takeovers, in_files, longest) = play(false);
    eprintln!("{takeovers} dead hosts, {in_files} logs of several files: {} ms at most", longest / MS);
    assert!(takeovers > 50 && in_files > 0, "{takeovers}, {in_files}");
    // A dead host is noticed by its silence alone, a dead process at once.
    let (takeovers, _, longest_of_process) = play(true);
    eprintln!("{takeovers} dead processes: {} ms at most", longest_of_process / MS);
    assert!(takeovers > 50 && longest_of_process < longest, "{takeovers}, {longest_of_process} ns");
}

/// Returns true if two supervisors begin and delete files of 2 kB.
fn has_small_journals(world: &World) -> bool {
    let plan = &world.plan;
    plan.has_standby() && plan.deletes_journals && plan.scenario.contains("journal_size = \"2 kB\"")
}

/// The two keep the newest closed journals (`live.journal_parts`), and their present ones stay small.
#[test]
fn journals_of_two_supervisors_are_bounded() {
    let (mut logs, mut deleted, mut largest) = (0, 0, 0);
    for seed in 0..400 {
        let mut world = World::new(seed);
        if !has_small_journals(&world) {
            continue;
        }
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        let machine = world.audit_machine();
        for (place, folder, _) in world.folders() {
            if place.role != Role::Supervisor {
                continue;
            }
            let name = fanin_node::names::process_name(place.role, place.index);
            let closed = closed(&world, &folder, &name).len();
            // The power may fail before the oldest file is deleted.
            assert!(closed <= 5, "seed {seed}: {closed} closed journals of {name}");
            let path = folder.join(format!("{name}.journal"));
            largest = largest.max(machine.read(&path).unwrap().len());
            logs += 1;
            deleted += u32::from(follows_deleted(&machine, &path).unwrap() || closed > 0);
        }
    }
    eprintln!("{deleted} of {logs} logs have several files, {largest} B at most");
    assert!(logs >= 20 && 2 * deleted > logs, "{deleted} of {logs}");
    assert!(largest < 8_000, "{largest} B");
}

/// A supervisor of a pair loses its power between the two renames of a change of files.
#[test]
fn a_change_of_files_that_the_power_interrupts_is_undone() {
    let (mut worlds, mut restored) = (0, 0);
    for seed in 0..400 {
        let mut world = World::new(seed);
        if !has_small_journals(&world) || world.plan.is_held {
            continue;
        }
        let host = if seed % 2 == 0 { 0 } else { world.plan.places.len() - 1 };
        world.shared.lock().disks.of[host].fails_between_renames = true;
        let kind = InjectedFault::PowerLossAtChange(host, 0);
        world.plan.faults = vec![PlannedFault { at: 10 * MS, until: 2_000 * MS, kind }];
        world.plan.stop_at = 2_000 * MS + 2 * RESUME_MAX;
        (world.plan.is_rolling, world.plan.is_long) = (false, false);
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        worlds += 1;
        restored += world.shared.lock().disks.restored;
    }
    eprintln!("{restored} changes of files were undone in {worlds} worlds");
    assert!(restored > 0, "{worlds} worlds");
}
