//! The files of the log of two supervisors.

use super::*;

/// A file of the leader's log that begins at offset `at`: event 2 is assigned next, and event 1 is not finished.
fn next_file(at: u64, term: Leadership) -> String {
    format!(
        "# fanin journal 1 supervisor at {at} open 2 1:0 0 epoch-us 1000\n{}",
        TermLine::Leads(term).to_text()
    )
}

#[test]
fn a_follower_begins_a_file_where_its_leader_does() {
    let mut rig = Rig::new("files", Peer::Standby);
    let (alone, pairing) = rig.follow();
    let (before, at) = (rig.node.log.work(), rig.node.log.end());
    let text = next_file(at, alone) + "4 2 assigned 0 0 0 0\n";
    let end = at + text.len() as u64;
    rig.hear(Peer::Supervisor, &SuccessionMessage::Log { term: 1, position: at, text: text.into() });
    let (starts, log) = rig.files();
    assert_eq!(starts, [0, at]);
    assert_eq!((log.size(), log.term(), log.pairing(alone).map(|(value, _)| value)), (end, 1, Some(pairing)));
    assert_eq!(log.work(), rig.node.log.work());
    assert_eq!(
        (log.work().next, before.next),
        (Some(fanin_dataflow::L1Id(3)), Some(fanin_dataflow::L1Id(2)))
    );
    // The first file is deleted: the second one says all that goes on.
    let (_, part) = journal::parts(&HostMachine::Real, rig.journal.path()).unwrap().remove(0);
    std::fs::remove_file(part).unwrap();
    let (starts, log) = rig.files();
    assert_eq!(starts, [at]);
    assert_eq!((log.size(), log.term(), log.work()), (end, 1, rig.node.log.work()));
    // A log that ends there is a beginning, and an older one is none.
    assert!(log.begins_with(at, 0, at) && log.begins_with(at, 1, at) && log.begins_with(end, 1, at));
    assert!(!log.begins_with(at - 1, 1, at) && !log.begins_with(0, 0, at) && !log.begins_with(end, 2, at));
    assert!(journal::follows_deleted(&HostMachine::Real, rig.journal.path()).unwrap());
}

#[test]
fn a_log_without_a_beginning_follows_from_the_oldest_file_of_the_leader() {
    let mut rig = Rig::new("late", Peer::Standby);
    let (alone, _) = rig.follow();
    rig.said.clear();
    rig.hear(Peer::Supervisor, &SuccessionMessage::Restart { position: 5000 });
    let follow = SuccessionMessage::Follow { log: rig.node.log.id(), position: 5000, term: 0 };
    assert_eq!(rig.said.last(), Some(&follow));
    let text = next_file(5000, alone);
    let end = 5000 + text.len() as u64;
    rig.hear(Peer::Supervisor, &SuccessionMessage::Log { term: 1, position: 5000, text: text.into() });
    let (starts, log) = rig.files();
    assert_eq!((starts, log.size(), rig.node.log.size()), (vec![5000], end, end));
    assert_eq!((log.work().outstanding.len(), log.work().uncleared.len()), (1, 1));
    assert_eq!(log.work(), rig.node.log.work());
}

#[test]
fn a_leader_deletes_files_that_its_follower_has() {
    let mut rig = Rig::with("aside", Peer::Standby, "journal_size = \"300 B\"\njournal_parts = 1\n");
    rig.follow();
    rig.lose_leader();
    let (first, log) = rig.files();
    assert!(first.len() == 2 && first[0] == 0 && log.work() == rig.node.log.work(), "{first:?} {log:?}");
    // A follower without a line gets the oldest file, and those behind it.
    let follow = |position, term| SuccessionMessage::Follow { log: 9, position, term };
    rig.node.handle_connected(rig.now, Peer::Supervisor);
    rig.hear(Peer::Supervisor, &follow(0, 0));
    let sent = |rig: &Rig| -> Vec<(u64, usize)> {
        let log = |message: &SuccessionMessage| match message {
            SuccessionMessage::Log { position, text, .. } => Some((*position, text.len())),
            _ => None,
        };
        rig.said.iter().filter_map(log).collect()
    };
    let end = rig.node.log.size();
    let sent_to = |rig: &Rig| sent(rig).last().map_or(0, |(position, bytes)| position + *bytes as u64);
    assert_eq!((sent(&rig)[0].0, sent_to(&rig)), (0, end));
    // The first lines of the second file are not on the follower's disk: no further file is begun.
    let held = |position| SuccessionMessage::Held { log: 9, position };
    rig.hear(Peer::Supervisor, &held(first[1] - 1));
    for _ in 0..20 {
        rig.node.changes.push_back(LogChange::Append(b"9 2 xoff\n9 2 xon\n".repeat(2)));
        rig.turns();
    }
    assert_eq!(rig.files().0, first);
    rig.hear(Peer::Supervisor, &held(rig.node.log.size()));
    assert!(rig.node.known.is_paired());
    let (second, _) = rig.files();
    assert!(second.len() == 2 && second[0] == first[1], "{second:?} behind {first:?}");
    rig.hear(Peer::Supervisor, &held(rig.node.log.size()));
    assert_eq!(rig.said.iter().filter(|said| matches!(said, SuccessionMessage::Restart { .. })).count(), 0);
    // The lines behind it are deleted.
    rig.hear(Peer::Supervisor, &follow(first[1] - 1, 1));
    assert_eq!(rig.said.last(), Some(&SuccessionMessage::Restart { position: rig.files().0[0] }));
}

/// Returns a leader without a follower whose files are at most 300 B long. It keeps one closed file, and has one.
fn leader_of_files(test: &str) -> (Rig, Vec<u64>) {
    let mut rig = Rig::with(test, Peer::Standby, "journal_size = \"300 B\"\njournal_parts = 1\n");
    rig.follow();
    rig.lose_leader();
    let starts = rig.files().0;
    assert!(starts.len() == 2 && starts[0] == 0, "{starts:?}");
    (rig, starts)
}

/// Lets a leader write a file's worth of lines. The next commit begins a file.
fn fill(rig: &mut Rig) {
    rig.node.changes.push_back(LogChange::Append(b"9 2 xoff\n9 2 xon\n".repeat(20)));
    rig.commit();
    assert!(rig.node.changes.contains(&LogChange::PutAside), "{:?}", rig.node.changes);
}

/// Returns the path of an entry of a log's folder that no process can read or remove as a file.
fn obstacle(rig: &Rig, extension: &str) -> PathBuf {
    let path = rig.journal.path().with_extension(extension);
    std::fs::create_dir(&path).unwrap();
    path
}

#[test]
fn a_failed_change_of_files_is_tried_again_a_file_later() {
    let mut rig = Rig::with("failing", Peer::Standby, "journal_size = \"300 B\"\njournal_parts = 1\n");
    rig.follow();
    let obstacle = obstacle(&rig, "journal-new");
    rig.lose_leader();
    for _ in 0..40 {
        rig.node.changes.push_back(LogChange::Append(b"9 2 xoff\n9 2 xon\n".repeat(3)));
        rig.turns();
    }
    // A follower begins a file at each of these headers, and deletes older ones.
    let text = std::fs::read_to_string(rig.journal.path()).unwrap();
    let begun: Vec<u64> = text.lines().filter_map(journal::offset).collect();
    assert!(begun.len() >= 4 && begun.windows(2).all(|pair| pair[1] - pair[0] >= 300), "{begun:?}");
    assert_eq!(rig.files().0, [0]);
    std::fs::remove_dir(obstacle).unwrap();
    rig.node.changes.push_back(LogChange::Append(b"9 2 xoff\n9 2 xon\n".repeat(20)));
    rig.turns();
    let (starts, log) = rig.files();
    assert!(starts.len() == 2 && starts[1] > *begun.last().unwrap(), "{starts:?}");
    assert_eq!(log.work(), rig.node.log.work());
}

#[test]
fn a_supervisor_goes_on_if_a_closed_file_cannot_be_removed() {
    let (mut rig, starts) = leader_of_files("surplus");
    let obstacle = obstacle(&rig, "00000.journal");
    fill(&mut rig);
    rig.turns();
    std::fs::remove_dir(obstacle).unwrap();
    let kept = rig.files().0;
    assert!(kept.len() == 3 && kept[..2] == starts, "{kept:?}: no gap in the log");
    fill(&mut rig);
    rig.turns();
    assert_eq!(rig.files().0[0], kept[2], "the next change removes what is left over");
}

/// Returns the offset of the first line that the leader sent, and the offset behind the last one.
fn sent(rig: &Rig) -> Option<(u64, u64)> {
    let mut lines = rig.said.iter().filter_map(|message| match message {
        SuccessionMessage::Log { position, text, .. } => Some((*position, position + text.len() as u64)),
        _ => None,
    });
    let first = lines.next()?;
    Some((first.0, lines.next_back().unwrap_or(first).1))
}

#[test]
fn a_standby_that_asks_before_a_change_of_files_is_served() {
    let (mut rig, starts) = leader_of_files("served");
    rig.node.handle_connected(rig.now, Peer::Supervisor);
    fill(&mut rig);
    rig.said.clear();
    // Its lines are in the file that the next commit deletes.
    rig.hear(Peer::Supervisor, &SuccessionMessage::Follow { log: 9, position: 0, term: 0 });
    assert_eq!(rig.files().0[0], starts[1]);
    assert!(rig.said.contains(&SuccessionMessage::Restart { position: starts[1] }), "{:?}", rig.said);
    rig.hear(Peer::Supervisor, &SuccessionMessage::Follow { log: 10, position: starts[1], term: 0 });
    assert_eq!(sent(&rig), Some((starts[1], rig.node.log.size())));
}

#[test]
fn a_follower_whose_lines_are_deleted_begins_anew() {
    let (mut rig, starts) = leader_of_files("anew");
    rig.node.handle_connected(rig.now, Peer::Supervisor);
    fill(&mut rig);
    rig.turns();
    rig.node.follower = Some(Follower { log: 9, shipped: starts[0], held: starts[0] });
    rig.turns();
    assert!(rig.said.contains(&SuccessionMessage::Restart { position: starts[1] }), "{:?}", rig.said);
    assert!(rig.node.follower.is_none());
}

#[test]
fn a_standby_is_served_once_the_files_can_be_listed() {
    let (mut rig, _) = leader_of_files("listed");
    rig.node.handle_connected(rig.now, Peer::Supervisor);
    let obstacle = obstacle(&rig, "00000.journal");
    rig.hear(Peer::Supervisor, &SuccessionMessage::Follow { log: 9, position: 0, term: 0 });
    assert_eq!(sent(&rig), None);
    std::fs::remove_dir(obstacle).unwrap();
    rig.pass(400);
    assert_eq!(sent(&rig), Some((0, rig.node.log.size())));
}

#[test]
fn a_deposed_leader_begins_no_file() {
    let (mut rig, starts) = leader_of_files("deposed");
    fill(&mut rig);
    let size = rig.journal.span().end;
    let next = Leadership { term: rig.node.known.term + 1, leader: 0, log: 7, partner: 0 };
    rig.hear(Peer::Readout(0), &SuccessionMessage::Learned(next));
    assert!(rig.node.lead.is_none());
    assert_eq!((rig.files().0, rig.journal.span().end), (starts, size));
}

#[test]
fn the_last_closed_file_goes_on_if_no_line_of_the_present_one_is_left() {
    let mut rig = Rig::new("emptied", Peer::Standby);
    let (alone, _) = rig.follow();
    let (work, at) = (rig.node.log.work(), rig.node.log.end());
    let text = next_file(at, alone).into();
    rig.hear(Peer::Supervisor, &SuccessionMessage::Log { term: 1, position: at, text });
    let path = rig.journal.path().to_owned();
    assert_eq!(rig.files().0, [0, at]);
    std::fs::write(&path, "a damaged line\n").unwrap();
    let open = || {
        let mut lines = LogLines::of_parts(&HostMachine::Real, &path).unwrap();
        let journal =
            Journal::open_shared(&HostMachine::Real, &path, "standby", 1000, true, &mut lines).unwrap();
        (journal.span(), SharedLog::open(&HostMachine::Real, &path, lines))
    };
    let (span, log) = open();
    let log = log.unwrap();
    assert_eq!((span, log.size(), log.work()), (JournalSpan { start: 0, end: at }, at, work));
    assert!(journal::parts(&HostMachine::Real, &path).unwrap().is_empty());
    // A file of the log that does not name its offset.
    std::fs::rename(&path, path.with_extension("00001.journal")).unwrap();
    std::fs::write(&path, "# fanin journal 1 standby epoch-us 1000\n").unwrap();
    let failure = open().1.unwrap_err().to_string();
    assert!(failure.contains("a part of the log is missing"), "{failure}");
}

#[test]
fn a_header_with_other_work_than_the_lines_before_it_is_refused() {
    let mut rig = Rig::new("other-work", Peer::Standby);
    let (alone, _) = rig.follow();
    let at = rig.node.log.end();
    let text = next_file(at, alone).replace("open 2 1:0", "open 7 6:0").into();
    let message = SuccessionMessage::Log { term: 1, position: at, text };
    rig.node.handle_message(rig.now, Peer::Supervisor, Message::Succession(message.encode())).unwrap();
    assert!(matches!(rig.node.failure(), Some(ProcessError::Own { .. })));
}

#[test]
fn no_words_of_work_are_longer_than_their_limit() {
    let mut work = crate::resume::UnfinishedWork::default();
    assert_eq!((work.words_max(), work.to_resume().to_words().len()), (0, 0));
    for event in [0, 9, 99, 999, 12_345_678] {
        for collector in [0, 65_535] {
            let step = fanin_dataflow::EventStep::Assigned {
                collector,
                unit: 0,
                due: Instant::START,
                direct: false,
            };
            work.take(&EventRecord { at: Instant::START, event: fanin_dataflow::L1Id(event), step });
            let words = work.to_resume().to_words();
            assert!(words.len() <= work.words_max(), "{words}, {} B", work.words_max());
        }
    }
}

/// The header of the next file has the unfinished events, which a message must hold.
#[test]
fn no_file_begins_while_too_many_events_are_unfinished() {
    let (mut rig, starts) = leader_of_files("many");
    let events = (2..=20_000).map(|event| format!("9 {event} assigned 0 0 0 0\n")).collect::<String>();
    events.lines().for_each(|line| rig.node.log.note_record(&journal::parse(line).unwrap().record));
    rig.node.changes.push_back(LogChange::Append(events.into_bytes()));
    rig.turns();
    assert!(rig.node.has_much_work);
    assert_eq!(rig.files().0, starts);
}
