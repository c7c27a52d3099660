//! Records written to a journal are read back, however the writing process ended.

use std::path::PathBuf;

use fanin_dataflow::{EventRecord, EventStep, EventStream, L1Id, Outcome};
use fanin_node::journal::{Journal, JournalLine, Rotation, read};
use fanin_node::machine::HostMachine;
use fanin_node::resume::{Resume, UnfinishedWork, resume};
use fanin_units::{Bytes, Instant};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fanin-journal-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn record(event: u64, step: EventStep) -> EventRecord {
    EventRecord { at: Instant::new(1000 + event), event: L1Id(event), step }
}

const fn assigned(collector: u16) -> EventStep {
    EventStep::Assigned { collector, unit: 2, due: Instant::new(7), direct: false }
}

const fn completed(collector: u16) -> EventStep {
    EventStep::Completed { collector, outcome: Outcome::Rejected }
}

#[test]
fn every_kind_of_record_comes_back() {
    let at = Instant::new(5);
    let all = [
        EventStep::Assigned { collector: 3, unit: 4, due: at, direct: true },
        EventStep::Reassigned { from: 9 },
        EventStep::Completed { collector: 1, outcome: Outcome::Rejected },
        EventStep::Duplicated { collector: 1, outcome: Outcome::Debug },
        EventStep::Xoff,
        EventStep::Xon,
        EventStep::Received { unit: 2 },
        EventStep::FirstRequest { step: 1 },
        EventStep::Answered { readout: 5, requested: at, bytes: Bytes::new(77) },
        EventStep::Missing { readout: 5, fragments: 12 },
        EventStep::Collected {
            step: 1,
            building: true,
            began: at,
            first_request: at,
            requests: 24,
            bytes: Bytes::new(9),
            missing: 3,
        },
        EventStep::Decided { unit: 1, outcome: Outcome::Stored },
        EventStep::TooLarge { bytes: Bytes::new(700), limit: Bytes::new(600) },
        EventStep::Shipped {
            logger: 1,
            attempt: 2,
            stream: EventStream::Debug,
            bytes: Bytes::new(4),
            missing: 1,
        },
        EventStep::Acknowledged { logger: 1 },
        EventStep::Abandoned,
        EventStep::Cleared,
        EventStep::Stored { collector: 2, stream: EventStream::Physics, missing: 8 },
        EventStep::StandIns { fragments: 4 },
        EventStep::Deleted,
    ];
    let folder = folder("all");
    let path = folder.join("collector-0.journal");
    let mut journal = Journal::open(&path, "collector-0", 42, false).unwrap();
    let lines: Vec<JournalLine> = all
        .iter()
        .enumerate()
        .map(|(n, &step)| {
            let data = if matches!(step, EventStep::Collected { .. }) { 123 } else { 0 };
            JournalLine { record: record(n as u64, step), data }
        })
        .collect();
    lines.iter().for_each(|line| journal.add(&line.record, line.data));
    journal.commit().unwrap();
    let mut found = Vec::new();
    read(&path, |epoch, line| {
        assert_eq!(epoch, 42);
        found.push(line);
    })
    .unwrap();
    assert_eq!(found, lines);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_supervisor_resumes_from_any_torn_journal() {
    let folder = folder("torn");
    let path = folder.join("supervisor.journal");
    let mut journal = Journal::open(&path, "supervisor", 1, true).unwrap();
    for (event, step) in [
        (0, assigned(0)),
        (1, assigned(1)),
        (0, EventStep::Completed { collector: 0, outcome: Outcome::Rejected }),
        (0, EventStep::Cleared),
        (1, EventStep::Reassigned { from: 1 }),
        (1, EventStep::Assigned { collector: 2, unit: 0, due: Instant::new(7), direct: true }),
        (2, assigned(0)),
        (2, EventStep::Completed { collector: 0, outcome: Outcome::Stored }),
    ] {
        journal.add(&record(event, step), 0);
    }
    journal.commit().unwrap();
    drop(journal);
    let whole = Resume {
        next: Some(L1Id(3)),
        outstanding: vec![(L1Id(1), 2)],
        uncleared: vec![L1Id(2)],
        cleared: vec![L1Id(0)],
    };
    assert_eq!(resume(&path).unwrap(), whole);

    let bytes = std::fs::read(&path).unwrap();
    for cut in 0..bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let torn = resume(&path).unwrap();
        // Opening it passes the same lines on, whether damaged ones are cut off or taken out.
        for sync in [true, false] {
            let mut work = UnfinishedWork::of_parts(&HostMachine::Real, &path).unwrap();
            let name = "supervisor";
            drop(Journal::open_shared(&HostMachine::Real, &path, name, 2, sync, &mut work).unwrap());
            assert_eq!(work.to_resume(), torn, "{cut} bytes, {sync}");
        }
        // Going on with it keeps what was whole, and what is written then is read too.
        let mut journal = Journal::open(&path, "supervisor", 2, false).unwrap();
        journal.add(&record(9, assigned(7)), 0);
        journal.commit().unwrap();
        let again = resume(&path).unwrap();
        assert_eq!(again.next, Some(L1Id(10)));
        assert_eq!(again.outstanding.len(), torn.outstanding.len() + 1);
        assert!(again.outstanding.contains(&(L1Id(9), 7)));
    }
    assert_eq!(resume(&folder.join("none")).unwrap(), Resume::default());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_damaged_journal_names_its_line() {
    let folder = folder("damaged");
    let path = folder.join("x.journal");
    for (text, why) in [
        ("7 1 assigned 0 0 7 0\n", "x.journal:1: a journal begins with `# fanin journal 1`"),
        ("# fanin journal 1 x epoch-us q\n", "x.journal:1: its header names no epoch"),
        ("# fanin journal 1 x epoch-us 1\n7 1 assigned 0\n", "x.journal:2: it has too few fields"),
        ("# fanin journal 1 x epoch-us 1\n7 1 cleared 0\n", "x.journal:2: it has too many fields"),
        ("# fanin journal 1 x epoch-us 1\n7 1 sold\n", "x.journal:2: its kind is unknown"),
        (
            "# fanin journal 1 x epoch-us 1\n7 -1 cleared\n",
            "x.journal:2: a field is not a number, or is out of range",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = read(&path, |_, _| {}).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_journal_that_has_grown_is_put_aside_and_still_read() {
    let folder = folder("rotation");
    let path = folder.join("supervisor.journal");
    let rotation = Rotation { size: 400, keep: 3 };
    let mut journal = Journal::open(&path, "supervisor", 1, false).unwrap().rotating(rotation);
    for event in 0..100 {
        journal.add(&record(event, assigned(1)), 0);
        if event != 97 {
            journal.add(&record(event, completed(1)), 0);
            journal.add(&record(event, EventStep::Cleared), 0);
        }
        journal.commit().unwrap();
    }
    drop(journal);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!((names.len(), names[3].as_str()), (4, "supervisor.journal"), "{names:?}");
    assert!(names[..3].iter().all(|name| name.len() == "supervisor.00001.journal".len()), "{names:?}");
    let last: u32 = names[2]["supervisor.".len()..][..5].parse().unwrap();
    assert!(last > 8, "{names:?}");
    let left = resume(&path).unwrap();
    assert_eq!((left.next, left.outstanding, left.uncleared), (Some(L1Id(100)), vec![(L1Id(97), 1)], vec![]));
    // Killed between the two renamings: there is no file of the plain name.
    std::fs::rename(&path, folder.join(format!("supervisor.{:05}.journal", last + 1))).unwrap();
    assert_eq!(resume(&path).unwrap().next, Some(L1Id(100)));
    let journal = Journal::open(&path, "supervisor", 2, false).unwrap();
    drop(journal);
    assert_eq!(resume(&path).unwrap().next, Some(L1Id(100)));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_failed_rotation_leaves_the_configured_size_in_force() {
    let folder = folder("unrotated");
    let path = folder.join("supervisor.journal");
    let rotation = Rotation { size: 1000, keep: 0 };
    let mut journal = Journal::open(&path, "supervisor", 1, false).unwrap().rotating(rotation);
    let mut events = 0..;
    let mut add_event = |journal: &mut Journal| {
        journal.add(&record(events.next().unwrap(), assigned(1)), 0);
        journal.commit().unwrap();
    };
    let is_rotated = |number: u32| folder.join(format!("supervisor.{number:05}.journal")).exists();
    // A folder in the place of the next file: each rotation fails, and is tried again after 1000 further bytes.
    let obstacle = path.with_extension("journal-new");
    std::fs::create_dir(&obstacle).unwrap();
    while journal.size() < 3500 {
        add_event(&mut journal);
    }
    assert!(!is_rotated(1));
    std::fs::remove_dir(&obstacle).unwrap();
    // Returns the size of the journal before the line with which it is put aside.
    let mut size_before = |number| loop {
        let before = journal.size();
        add_event(&mut journal);
        if is_rotated(number) {
            return before;
        }
        assert!(before < 10_000, "the journal goes on growing");
    };
    assert!(size_before(1) < 5000);
    assert!(size_before(2) < 1000 && size_before(3) < 1000);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The supervisor resumes an event whose assignment was in a journal that is deleted.
#[test]
fn unfinished_events_outlive_the_journals_that_are_deleted() {
    let folder = folder("open");
    let path = folder.join("supervisor.journal");
    let rotation = Rotation { size: 300, keep: 1 };
    let mut journal = Journal::open(&path, "supervisor", 7, true).unwrap().rotating(rotation);
    let mut work = UnfinishedWork::default();
    let mut add = |journal: &mut Journal, record| {
        work.take(&record);
        journal.add(&record, 0);
        journal.commit_with(|| work.to_resume().to_words()).unwrap();
    };
    add(&mut journal, record(1, assigned(1)));
    for event in 2..100 {
        add(&mut journal, record(event, assigned(0)));
        add(&mut journal, record(event, completed(0)));
        add(&mut journal, record(event, EventStep::Cleared));
    }
    drop(journal);
    assert!(!folder.join("supervisor.00001.journal").exists());
    let left = resume(&path).unwrap();
    assert_eq!((left.next, &left.outstanding[..]), (Some(L1Id(100)), &[(L1Id(1), 1)][..]));
    // So does a supervisor that opens its journal, and no line is taken for a damaged one.
    let mut work = UnfinishedWork::of_parts(&HostMachine::Real, &path).unwrap();
    drop(Journal::open_reading(&HostMachine::Real, &path, "supervisor", 9, true, &mut work).unwrap());
    assert_eq!(work.to_resume().outstanding, left.outstanding);
    let waits = Resume { uncleared: vec![L1Id(3), L1Id(4)], ..left };
    assert_eq!(waits.to_words(), " open 100 1:1 3,4");
    std::fs::remove_dir_all(folder).unwrap();
}
