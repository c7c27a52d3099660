//! A collector without its connections: its messages are handed over.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;

use fanin_dataflow::{EventStream, FragmentSet, REMINDER_TAG, Selection};

use super::*;
use crate::data::append;

/// Writes a system file, which sets more of the scenario. Returns the system and its new folder.
fn system(test: &str, set: &str) -> (System, PathBuf) {
    let folder = std::env::temp_dir().join(format!("fanin-collector-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("system.toml");
    let text = format!(
        "scenario = \"replay\"\ninsecure = true\n\
         set = [\"readout.hosts=4\", \"collectors.hosts_per_rack=1\", \"logger.hosts=2\", \
         \"live.processors=\\\"timers\\\"\"{set}]\n[hosts]\nsupervisor = \"a:1\"\nreadouts = [\"r-[0-3]:1\"]\n\
         collectors = [\"c\"]\nloggers = [\"l:1\", \"m:1\"]\n"
    );
    std::fs::write(&path, text).unwrap();
    (System::load(&path).unwrap_or_else(|error| panic!("{error}")), folder)
}

/// A collector with all its connections, which builds the event 7. `proof` is the proof of the assignment.
fn building(system: &System, proof: &[u8]) -> CollectorNode {
    let wake: Wake = Arc::new(|| ());
    let mut node = CollectorNode::new(system, 0, &wake).unwrap_or_else(|error| panic!("{error}"));
    for peer in (0..4).map(Peer::Readout).chain([Peer::Logger(0), Peer::Logger(1), Peer::Supervisor]) {
        node.handle_connected(Instant::START, peer);
    }
    let result = Data::new(Chunk::from(proof.to_vec()));
    let assign = Message::Assign { event: L1Id(7), unit: 0, direct: true, region: Selection::Rest, result };
    for message in [Message::Welcome(Box::default()), assign] {
        node.handle_message(Instant::START, Peer::Supervisor, message).unwrap();
    }
    node
}

#[test]
fn processors_that_fail_after_the_first_event_of_a_run_are_tried_again() {
    let (system, folder) = system("hopeless", "");
    let wake: Wake = Arc::new(|| ());
    let hopeless = |journals: &[(&str, &str)]| {
        for (name, text) in journals {
            std::fs::write(folder.join(name), text).unwrap();
        }
        CollectorNode::new(&system, 0, &wake).unwrap().hopeless(0, ExitStatus::from_raw(0x100))
    };
    let header = "# fanin journal 1 collector-0 epoch-us 5\n";
    assert!(hopeless(&[("collector-0.journal", header)]).is_permanent(), "before the first event");
    let line = format!("{header}0 7 received 0\n");
    let again = hopeless(&[("collector-0.journal", &line)]);
    assert!(
        !again.is_permanent() && again.to_string().contains("repeatedly ended before it connected"),
        "{again}"
    );
    // The journal was just put aside.
    let parts = [("collector-0.journal", header), ("collector-0.00001.journal", &line)];
    assert!(!hopeless(&parts).is_permanent());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A request of the event 7: the readout, the tag, the fragments.
type SentRequest = (u16, u32, FragmentSet);

/// Returns the requests that the collector sends.
fn requests(node: &mut CollectorNode) -> Vec<SentRequest> {
    let sent = std::iter::from_fn(|| node.poll_transmit());
    sent.filter_map(|sent| match sent {
        (Peer::Readout(readout), Message::Request { tag, fragments, .. }) => Some((readout, tag, fragments)),
        _ => None,
    })
    .collect()
}

/// Answers a request with fragments of 10 bytes.
fn answer(node: &mut CollectorNode, at: Instant, (readout, tag, fragments): SentRequest) {
    let mut bytes = Vec::new();
    fragments.iter().for_each(|_| append(&mut bytes, 0, 0, &[1; 10]));
    let (missing, payload) = (FragmentSet::EMPTY, Data::new(Chunk::from(bytes)));
    let message = Message::Answer { tag, event: L1Id(7), missing, payload };
    node.handle_message(at, Peer::Readout(readout), message).unwrap();
}

/// Checks the bytes of the event when it was collected, and the readout that answered last.
fn assert_collected(node: &mut CollectorNode, requests: &[SentRequest]) {
    let records: Vec<_> = std::iter::from_fn(|| node.poll_record()).collect();
    let of = |record: &EventRecord| matches!(record.step, EventStep::Collected { .. });
    let bytes = records.iter().find(|(record, _)| of(record)).map(|(_, bytes)| *bytes);
    let fragments: u64 = requests.iter().map(|(.., fragments)| u64::from(fragments.len())).sum();
    assert_eq!(bytes, Some(fragments * 10));
    let last = requests.last().map(|(readout, ..)| (*readout, 1));
    assert_eq!(node.collections.last_answers.iter().map(|(&readout, &count)| (readout, count)).next(), last);
    assert_eq!(node.collections.last_answers.len(), 1);
}

const NO_SHAPING: &str = ", \"shaping.method=\\\"none\\\"\"";

#[test]
fn the_answer_to_a_reminder_adds_nothing_to_an_event() {
    let (system, folder) = system("reminder", NO_SHAPING);
    let mut node = building(&system, b"");
    let all = requests(&mut node);
    all.iter().for_each(|&request| answer(&mut node, Instant::START, request));
    answer(&mut node, Instant::START, (0, REMINDER_TAG, FragmentSet::first(1)));
    assert_collected(&mut node, &all);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_late_answer_to_a_repeated_request_adds_nothing_to_an_event() {
    let again = ", \"live.request_timeout=\\\"100 ms\\\"\", \"live.request_retries=1\"";
    let (system, folder) = system("late", &format!("{NO_SHAPING}{again}"));
    let mut node = building(&system, b"");
    let late = requests(&mut node);
    let at = Instant::START + Duration::from_millis(100);
    node.handle_deadline(at);
    let all = requests(&mut node);
    assert_eq!(all.len(), late.len());
    // One late answer arrives after the event is complete.
    for &request in late[1..].iter().chain(&all).chain(&late[..1]) {
        answer(&mut node, at, request);
    }
    assert_collected(&mut node, &all);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_event_that_ends_before_it_is_sent_keeps_its_proof() {
    let timeout = ", \"live.logger_timeout=\\\"100 ms\\\"\"";
    let (system, folder) = system("proof", &format!("{NO_SHAPING}{timeout}"));
    let proof = [3; 32];
    let mut node = building(&system, &proof);
    for request in requests(&mut node) {
        answer(&mut node, Instant::START, request);
    }
    let sent = |node: &mut CollectorNode| -> Vec<_> { std::iter::from_fn(|| node.poll_transmit()).collect() };
    let offered = |node: &mut CollectorNode| {
        let offer = sent(node).into_iter().find(|(_, message)| matches!(message, Message::Offer { .. }));
        offer.expect("the event is offered").0
    };
    let (event, stream) = (L1Id(7), EventStream::Debug);
    let first = offered(&mut node);
    node.handle_message(Instant::START, first, Message::Grant { event }).unwrap();
    sent(&mut node);
    let late = Instant::START + Duration::from_millis(100);
    node.handle_deadline(late);
    let second = offered(&mut node);
    // In one turn: a process takes the records before it sends.
    node.handle_message(late, second, Message::Grant { event }).unwrap();
    node.handle_message(late, first, Message::Stored { event, stream }).unwrap();
    while node.poll_record().is_some() {}
    let all = sent(&mut node);
    let copy = all.iter().find_map(|(peer, message)| match message {
        Message::Event { payload, .. } if *peer == second => payload.parts().first(),
        _ => None,
    });
    assert_eq!(copy.map(|part| part.to_vec()), Some(proof.to_vec()));
    let left: Vec<_> = node.tables().into_iter().filter(|(_, entries)| *entries > 0).collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
