//! The auditor finds what it is there to find: what a sound system left behind is spoilt in every way that matters.

mod common;

use std::path::{Path, PathBuf};

use common::System;
use fanin_events::atlas::{AtlasWriter, EventHeader, FileEnd, FileHeader};
use fanin_events::{Events, Fragment};
use fanin_node::audit::{AuditFailure, AuditScope, audit};

/// Damages files, given the folder of the journals and that of the stored events.
type Spoil = fn(&Path, &Path);

fn files(folder: &Path, part: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && path.to_string_lossy().contains(part))
        .collect();
    all.sort();
    all
}

fn first(folder: &Path, part: &str) -> PathBuf {
    files(folder, part).into_iter().next().unwrap_or_else(|| panic!("nothing like {part}"))
}

/// A system with loggers, of which at least these events were assigned, and which deletes no journal.
fn scope_of<'a>(folders: &'a [&'a Path], data: &'a [&'a Path], assigned_min: u64) -> AuditScope<'a> {
    AuditScope { folders, data, loggers: true, assigned_min, deletes_journals: false }
}

/// Takes out of the supervisor's journal the first line with this word.
fn forget(folder: &Path, word: &str) {
    edit(folder, |lines| {
        let place = lines.iter().position(|line| line.contains(word)).unwrap();
        lines.remove(place);
    });
}

/// Writes the first such line of the supervisor's journal twice.
fn repeat(folder: &Path, word: &str) {
    edit(folder, |lines| {
        let place = lines.iter().position(|line| line.contains(word)).unwrap();
        lines.insert(place, lines[place].clone());
    });
}

fn edit(folder: &Path, change: impl Fn(&mut Vec<String>)) {
    let path = folder.join("supervisor.journal");
    let mut lines: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

const SPOILERS: &[(&str, Spoil, &str)] = &[
    (
        "a file is gone",
        |_, data| std::fs::remove_file(first(data, "physics")).unwrap(),
        "recorded as stored, but no undamaged file has them",
    ),
    (
        "a byte of a file is another one",
        |_, data| {
            let path = first(data, "physics");
            let mut bytes = std::fs::read(&path).unwrap();
            let place = bytes.len() / 2;
            bytes[place] ^= 0x10;
            std::fs::write(path, bytes).unwrap();
        },
        "faults; the first: at byte",
    ),
    (
        "a file is cut short",
        |_, data| {
            let path = first(data, "physics");
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() - 500]).unwrap();
        },
        "faults; the first: at byte",
    ),
    (
        "a file is there twice",
        |_, data| {
            let path = first(data, "logger-0-physics");
            std::fs::copy(&path, path.with_file_name("logger-1-physics-99999.data")).unwrap();
        },
        "is on disk 2 times without a reason",
    ),
    (
        "a file of events that were taken back once is there twice",
        |folder, data| {
            let path = first(data, "logger-0-physics");
            std::fs::copy(&path, path.with_file_name("logger-1-physics-99999.data")).unwrap();
            edit(folder, |lines| {
                let taken = lines.iter().filter(|line| line.contains(" assigned "));
                let taken = taken.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
                let more: Vec<String> = taken.map(|begin| format!("{begin} reassigned 0")).collect();
                lines.extend(more);
            });
        },
        "is on disk 2 times; collectors shipped it 1 times",
    ),
    (
        "a fragment of an event is gone, and all checksums are right",
        |_, data| {
            let path = first(data, "physics");
            let bytes = std::fs::read(&path).unwrap();
            let mut writer = AtlasWriter::new(Vec::new(), &FileHeader::default()).unwrap();
            for (place, event) in Events::open(&bytes).unwrap().map(Result::unwrap).enumerate() {
                let l1_id = event.id.l1_id as u32;
                let header = EventHeader { l1_id, global_id: l1_id, ..EventHeader::default() };
                let kept = event.fragments.iter().skip(usize::from(place == 0));
                let kept = kept.map(|fragment| Fragment { offset: 0, ..*fragment });
                writer.write_event(&header, kept).unwrap();
            }
            std::fs::write(path, writer.finish(&FileEnd::default()).unwrap()).unwrap();
        },
        "bytes of fragments and their headers on disk; its collector shipped",
    ),
    (
        "a file is in the other stream",
        |_, data| {
            let path = first(data, "logger-0-physics");
            std::fs::rename(&path, path.with_file_name("logger-0-debug-99999.data")).unwrap();
        },
        "but the debug stream has it alone",
    ),
    (
        "an event was never finished",
        |folder, _| forget(folder, " completed "),
        "events were lost, assigned and never finished with: ",
    ),
    (
        "an event has a stand-in for a damaged fragment",
        |folder, data| {
            let path = first(data, "logger-0-physics");
            let bytes = std::fs::read(&path).unwrap();
            let mut writer = AtlasWriter::new(Vec::new(), &FileHeader::default()).unwrap();
            for event in Events::open(&bytes).unwrap().map(Result::unwrap) {
                let l1_id = event.id.l1_id as u32;
                let header = EventHeader { l1_id, global_id: l1_id, ..EventHeader::default() };
                let stand_in = |fragment: &Fragment<'_>| Fragment {
                    source: fragment.source,
                    status: fanin_node::data::STAND_IN,
                    offset: 0,
                    bytes: &[],
                };
                writer.write_event(&header, event.fragments.iter().map(stand_in)).unwrap();
                edit(folder, |lines| {
                    let completed = format!(" {l1_id} completed ");
                    let line = lines.iter_mut().find(|line| line.contains(&completed)).unwrap();
                    *line = line.replace(" stored", " debug");
                });
            }
            std::fs::write(
                path.with_file_name("logger-0-debug-99999.data"),
                writer.finish(&FileEnd::default()).unwrap(),
            )
            .unwrap();
            std::fs::remove_file(path).unwrap();
        },
        "are stored with stand-ins for damaged fragments: ",
    ),
    ("an event was finished twice", |folder, _| repeat(folder, " completed "), "was completed 2 times"),
    (
        "an event was assigned twice",
        |folder, _| repeat(folder, " assigned "),
        "was assigned 2 times, but taken back 0",
    ),
    ("an event came from nowhere", |folder, _| forget(folder, " assigned "), "was never assigned"),
    (
        "no collector decided a rejection",
        |folder, _| {
            for path in files(folder, "collector-") {
                let text = std::fs::read_to_string(&path).unwrap();
                let kept =
                    text.lines().filter(|line| !(line.contains(" decided ") && line.ends_with(" rejected")));
                std::fs::write(path, kept.collect::<Vec<_>>().join("\n") + "\n").unwrap();
            }
        },
        "was rejected, but no collector's journal has",
    ),
    (
        "a stored event is said to be rejected",
        |folder, _| {
            edit(folder, |lines| {
                let place = lines.iter().position(|line| line.ends_with(" stored")).unwrap();
                lines[place] = lines[place].replace(" stored", " rejected");
            });
            let event = std::fs::read_to_string(folder.join("supervisor.journal")).unwrap();
            for path in files(folder, "collector-") {
                let mut text = std::fs::read_to_string(&path).unwrap();
                // Every event has such a decision then; only one of them is on disk and said to be rejected.
                for line in event.lines().filter(|line| line.ends_with(" rejected")) {
                    let id = line.split(' ').nth(1).unwrap();
                    text += &format!("1 {id} decided 0 rejected\n");
                }
                std::fs::write(path, text).unwrap();
            }
        },
        "was both rejected and stored",
    ),
    (
        "the journals are gone",
        |folder, _| {
            files(folder, ".journal").into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        },
        "have 0 assigned events, and at least",
    ),
    (
        "all journals of a logger are gone",
        |folder, _| {
            files(folder, "logger-0.").into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        },
        "logger-0 has no journal, and other journals name it",
    ),
];

fn copy(from: &Path, to: &Path, part: &str) {
    std::fs::create_dir_all(to).unwrap();
    for path in files(from, part) {
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn broken_promises_are_found() {
    let mut system = System::start("audit", &[]);
    system.work(800);
    let finished = system.finish();
    assert!(finished.audit.totals.stored > 10, "{:?}", finished.audit);
    let assigned = finished.audit.totals.assigned;
    for (case, spoil, finding) in SPOILERS {
        let folder = finished.folder.join("spoilt");
        let data = folder.join("data");
        copy(&finished.folder, &folder, ".journal");
        copy(&finished.data, &data, ".data");
        let folders = [folder.as_path()];
        let files = [data.as_path()];
        let scope = scope_of(&folders, &files, assigned);
        assert_eq!(audit(&scope).unwrap(), finished.audit, "before {case}");
        spoil(&folder, &data);
        let found = audit(&scope).unwrap_err().to_string();
        assert!(found.contains(finding), "{case}: {found}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
    finished.remove();
}

fn write_journal(folder: &Path, name: &str, lines: &str) {
    std::fs::write(folder.join(name), format!("# fanin journal 1 epoch-us 1000\n{lines}")).unwrap();
}

/// An event that was recorded as stored is lost if its file is gone, and is named once.
#[test]
fn an_event_in_a_file_that_is_gone_is_lost() {
    let folder = std::env::temp_dir().join(format!("fanin-file-gone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, lines: &str| write_journal(&folder, name, lines);
    // Event 7 ended as stored, and so says the logger. Event 8 was rejected elsewhere after its logger had stored it.
    // Event 9 has no end.
    write(
        "supervisor.journal",
        "0 7 assigned 0 0 0 0\n1 7 completed 0 stored\n0 8 assigned 0 0 0 0\n1 8 reassigned 0\n\
         1 8 assigned 1 0 0 0\n2 8 completed 1 rejected\n0 9 assigned 0 0 0 0\n",
    );
    write("collector-0.journal", "");
    write("collector-1.journal", "1 8 decided 0 rejected\n");
    write("logger-0.journal", "1 7 stored 0 physics 0\n1 8 stored 0 debug 0\n1 9 stored 0 physics 0\n");
    let folders = [folder.as_path()];
    let scope = scope_of(&folders, &folders, 3);
    let failure = audit(&scope).unwrap_err();
    assert_eq!(failure.lost_events().map(|event| event.0).collect::<Vec<_>>(), [9, 7]);
    assert_eq!((failure.audit.totals.assigned, failure.audit.totals.rejected, failure.lost()), (3, 1, 2));
    assert_eq!(
        failure.to_string(),
        "1 of 3 events were lost, assigned and never finished with: 9\n  \
         1 of 3 events were lost, recorded as stored, but no undamaged file has them: 7\n  \
         a logger's journal has event 8 as stored, but no undamaged file has it"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A loss of power may cost lines since the collector's journal was last put aside or opened, and no earlier ones.
#[test]
fn a_new_boot_excuses_only_events_whose_lines_it_can_have_cost() {
    let folder = std::env::temp_dir().join(format!("fanin-excused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let second = |seconds: u64| seconds * 1_000_000_000_000;
    // Each of two events was rejected, after 10 s and after 100 s, and no line has the decision.
    let lines: String = [(7, 10), (8, 100)]
        .map(|(event, at)| {
            let at = second(at);
            format!("{at} {event} assigned 0 0 0 0\n{at} {event} completed 0 rejected\n")
        })
        .concat();
    write("supervisor.journal", &format!("# fanin journal 1 supervisor epoch-us 0\n{lines}"));
    // The collector's journal was put aside after 99 s, has a line of 150 s, and its machine started again after 200 s.
    let aside = format!("# fanin journal 1 collector-0 boot a epoch-us 0\n{} 9 received 0\n", second(99));
    write("collector-0.00001.journal", &aside);
    let headers = ["a epoch-us 0", "b epoch-us 200000000"]
        .map(|end| format!("# fanin journal 1 collector-0 boot {end}\n"));
    write("collector-0.journal", &format!("{}{} 9 received 0\n{}", headers[0], second(150), headers[1]));
    write(
        "supervisor.00001.journal",
        &format!("# fanin journal 1 supervisor epoch-us 0\n{} 9 assigned 0 0 0 0\n", second(99)),
    );
    let folders = [folder.as_path()];
    let scope = scope_of(&folders, &[], 3);
    let failure = audit(&scope).unwrap_err();
    let findings: Vec<String> = failure.findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 2, "{failure}");
    assert!(findings[0].contains("1 of 3 events were lost") && findings[0].ends_with(": 9"), "{failure}");
    assert!(findings[1].starts_with("event 7 was rejected, but no collector's journal"), "{failure}");
    assert_eq!(failure.audit.unknown.events, 1);
    // Nothing can be proven for a supervisor's journal that a loss of power may have cut off.
    let text =
        "# fanin journal 1 supervisor boot a epoch-us 0\n# fanin journal 1 supervisor boot b epoch-us 5\n";
    write("supervisor.00002.journal", text);
    let failure = audit(&scope).unwrap_err().to_string();
    assert!(failure.contains("supervisor.00002.journal: the machine was rebooted"), "{failure}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Events that a leading supervisor wrote down without its partner's acknowledgement reached no collector.
#[test]
fn an_event_that_was_only_written_down_is_not_lost() {
    let folder = std::env::temp_dir().join(format!("fanin-written-down-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let header = |process: &str| format!("# fanin journal 1 {process} epoch-us 1000\n");
    let held = header("supervisor") + "# fanin pairs 1 0 7 8\n# fanin leads 1 0 7 8\n";
    write("supervisor.journal", &format!("{held}0 0 assigned 0 0 0 0\n9 0 reassigned 0\n"));
    write("standby.journal", &held);
    write("standby.log-identity", "8");
    let folders = [folder.as_path()];
    let scope = scope_of(&folders, &[], 1);
    assert_eq!(audit(&scope).unwrap().totals.assigned, 0);
    // A collector that received it contradicts that, and so does a partner of another log.
    write("collector-0.journal", &(header("collector-0") + "5 0 received 0\n"));
    assert!(audit(&scope).unwrap_err().to_string().contains("1 of 1 events were lost"));
    std::fs::remove_file(folder.join("collector-0.journal")).unwrap();
    write("standby.log-identity", "9");
    assert!(audit(&scope).unwrap_err().to_string().contains("1 of 1 events were lost"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Only `live.journal_parts` deletes journals. What it did not delete is missing.
#[test]
fn an_absent_journal_is_a_finding_unless_the_system_deletes_its_older_ones() {
    let folder = std::env::temp_dir().join(format!("fanin-absent-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, lines: &str| write_journal(&folder, name, lines);
    for (event, part) in [".00001", ".00002", ".00003", ""].iter().enumerate() {
        let assigned = format!("{event} {event} assigned 0 0 0 0\n{event} {event} completed 0 rejected\n");
        write(&format!("supervisor{part}.journal"), &assigned);
        write(&format!("collector-0{part}.journal"), &format!("{event} {event} decided 0 rejected\n"));
    }
    let folders = [folder.as_path()];
    let scope = scope_of(&folders, &[], 4);
    assert_eq!(audit(&scope).unwrap().totals.rejected, 4);
    for gone in ["supervisor.00002", "supervisor.00001", "collector-0.00001"] {
        std::fs::rename(folder.join(format!("{gone}.journal")), folder.join("aside")).unwrap();
        let found = audit(&scope).unwrap_err().to_string();
        assert!(found.contains("the journal before it is gone"), "{gone}: {found}");
        let deletes = AuditScope { deletes_journals: true, ..scope };
        assert!(audit(&deletes).unwrap().unproven > 0, "{gone}");
        // The newest events were assigned, and no journal has them.
        let found = audit(&AuditScope { assigned_min: 5, ..deletes }).unwrap_err().to_string();
        assert!(found.contains("have 4 assigned events, and at least 5"), "{found}");
        std::fs::rename(folder.join("aside"), folder.join(format!("{gone}.journal"))).unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A group that a loss of power tore was never acknowledged. Its damage is no finding, wherever in the group it is.
#[test]
fn damage_in_an_unfinished_file_is_a_finding_only_in_front_of_acknowledged_events() {
    let folder = std::env::temp_dir().join(format!("fanin-torn-group-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, lines: &str| write_journal(&folder, name, lines);
    let mut writer = AtlasWriter::new(Vec::new(), &FileHeader::default()).unwrap();
    let mut ends = Vec::new();
    for l1_id in 0..4 {
        let header = EventHeader { l1_id, global_id: l1_id, run: 7, ..EventHeader::default() };
        writer.write_event(&header, [Fragment { source: 1, status: 0, offset: 0, bytes: &[5; 40] }]).unwrap();
        ends.push(writer.output().len());
    }
    let mut bytes = writer.output().clone();
    let damaged = ends[1] - 30;
    bytes[damaged] ^= 0x10;
    std::fs::write(folder.join("logger-0-physics-00000.data.writing"), bytes).unwrap();
    // Event 1 is damaged. Event 2 is behind it, and has no acknowledgement of this logger.
    let step = |event: u64, step: &str| format!("{event} {event} {step}\n");
    let all = |events: &[u64], text: &str| events.iter().map(|&event| step(event, text)).collect::<String>();
    let finished = |stored: &[u64], rejected: &[u64]| {
        all(&[0, 1, 2, 3], "assigned 0 0 0 0")
            + &all(stored, "completed 0 stored")
            + &all(rejected, "reassigned 0")
            + &all(rejected, "assigned 0 0 0 0")
            + &all(rejected, "completed 0 rejected")
    };
    let collector = all(&[0, 1, 2, 3], "shipped 0 1 physics 56 0") + &all(&[1, 2, 3], "decided 0 rejected");
    write("collector-0.journal", &collector);
    let folders = [folder.as_path()];
    let scope = scope_of(&folders, &folders, 4);
    let audited = |stored: &[u64], rejected: &[u64]| {
        write("supervisor.journal", &finished(stored, rejected));
        write("logger-0.journal", &all(stored, "stored 0 physics 0"));
        write("logger-1.journal", &all(&[2], "stored 0 physics 0"));
        audit(&scope).map_err(|failure| failure.to_string())
    };
    assert_eq!(audited(&[0], &[1, 2, 3]).unwrap().totals.stored, 1);
    let found = audited(&[0, 2, 3], &[1]).unwrap_err();
    assert!(found.contains("2 faults; the first: at byte") && !found.contains("lost"), "{found}");
    let found = audited(&[0, 1], &[2, 3]).unwrap_err();
    let lost = "1 of 4 events were lost, recorded as stored, but no undamaged file has them: 1";
    assert_eq!(found, lost);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// An event that was open when its journal was deleted has its outcome in a later one, or is lost.
#[test]
fn an_event_that_was_open_before_the_journals_that_are_left_is_lost_without_an_outcome() {
    let folder = std::env::temp_dir().join(format!("fanin-open-before-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let header = "# fanin journal 1 supervisor open 9 5:1,6:0 - epoch-us 1000\n";
    let write = |lines: &str| {
        std::fs::write(folder.join("supervisor.00002.journal"), format!("{header}{lines}")).unwrap();
    };
    std::fs::write(
        folder.join("collector-0.journal"),
        "# fanin journal 1 epoch-us 1000\n7 9 decided 0 rejected\n",
    )
    .unwrap();
    std::fs::write(folder.join("collector-1.journal"), "# fanin journal 1 epoch-us 1000\n").unwrap();
    let folders = [folder.as_path()];
    let scope = AuditScope { deletes_journals: true, ..scope_of(&folders, &[], 10) };
    let rest = "5 6 completed 0 rejected\n6 9 assigned 0 0 0 0\n7 9 completed 0 rejected\n";
    write(rest);
    let failure = audit(&scope).unwrap_err();
    assert_eq!(failure.lost_events().map(|event| event.0).collect::<Vec<_>>(), [5]);
    // The lost event counts as assigned, and no longer as unproven where a later record names it.
    let equation = |failure: &AuditFailure| {
        let (totals, unproven) = (failure.audit.totals, failure.audit.unproven);
        (totals.assigned, totals.rejected, failure.lost(), unproven)
    };
    assert_eq!(equation(&failure), (2, 1, 1, 1));
    assert!(failure.to_string().starts_with("1 of 2 events were lost"), "{failure}");
    write(&format!("4 5 cleared\n{rest}"));
    assert_eq!(equation(&audit(&scope).unwrap_err()), (2, 1, 1, 1));
    write(&format!("5 5 completed 1 rejected\n{rest}"));
    assert_eq!(audit(&scope).unwrap().totals.rejected, 1);
    // The journals that are left may have no assignment: their header has the number of events.
    write("5 5 completed 1 rejected\n5 6 completed 0 rejected\n");
    assert!(audit(&scope).unwrap_err().to_string().contains("have 9 assigned events, and at least 10"));
    audit(&AuditScope { assigned_min: 9, ..scope }).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
