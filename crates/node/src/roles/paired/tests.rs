mod journals;

use std::path::PathBuf;

use fanin_scenario::load_text;

use super::*;
use crate::config::{LogFormat, PredictedBands};
use crate::journal::{Journal, Rotation};
use crate::machine::HostMachine;
use crate::succession::Witness;

const SCENARIO: &str = "[readout]\nhosts = 3\n[collectors]\nhosts_per_rack = 1\n[logger]\nhosts = 1\n";

fn system(folder: &std::path::Path, live: &str) -> System {
    let address = |count: usize| vec!["127.0.0.1:7000".to_owned(); count];
    let loaded = load_text("scenario.toml", &format!("{SCENARIO}[live]\n{live}"), &[]).unwrap();
    System {
        path: folder.join("system.toml"),
        ideal_rate: loaded.scenario.link.rate,
        loaded,
        scenario_folder: PathBuf::new(),
        data: folder.join("data"),
        folder: folder.to_owned(),
        run: 1,
        supervisor: address(1).remove(0),
        standby: Some(address(1).remove(0)),
        readouts: address(3),
        collectors: address(1),
        loggers: address(1),
        listen: None,
        key: None,
        key_previous: None,
        open_keys: Vec::new(),
        tls: None,
        metrics: None,
        metrics_option: None,
        predicted: PredictedBands::default(),
        log_format: LogFormat::Text,
        log_level: tracing::Level::INFO,
        versions: crate::codec::VERSIONS,
        machine: HostMachine::Real,
    }
}

/// A supervisor with its journal, and three connected readouts that vote.
struct Rig {
    node: PairedSupervisor,
    journal: Journal,
    witnesses: [Witness; 3],
    now: Instant,
    folder: PathBuf,
    /// Messages to the other supervisor.
    said: Vec<SuccessionMessage>,
    metrics: Metrics,
}

impl Rig {
    fn new(test: &str, me: Peer) -> Self {
        Self::with(test, me, "")
    }

    fn with(test: &str, me: Peer, live: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("fanin-paired-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let system = system(&folder, live);
        let path = system.journal(&name(me));
        let mut lines = LogLines::default();
        let journal =
            Journal::open_shared(&HostMachine::Real, &path, &name(me), 1000, false, &mut lines).unwrap();
        let keep = system.scenario().live.journal_parts;
        let journal = journal.rotating(Rotation { size: 0, keep });
        let node = PairedSupervisor::new(&system, me, lines, Instant::START).unwrap();
        let witnesses = [Witness::default(); 3];
        let metrics = Metrics::new(&name(me));
        let mut rig =
            Self { node, journal, witnesses, now: Instant::START, folder, said: Vec::new(), metrics };
        for peer in [Peer::Readout(0), Peer::Readout(1), Peer::Readout(2), Peer::Collector(0)] {
            rig.node.handle_connected(rig.now, peer);
        }
        rig
    }

    fn hear(&mut self, peer: Peer, message: &SuccessionMessage) {
        self.node.handle_message(self.now, peer, Message::Succession(message.encode())).unwrap();
        self.turns();
    }

    /// Brings all changes and records to disk.
    fn commit(&mut self) {
        while let Some(change) = self.node.poll_log() {
            change.apply(&mut self.journal).unwrap();
        }
        while let Some((record, data)) = self.node.poll_record() {
            self.journal.add(&record, data);
        }
        self.journal.commit().unwrap();
        self.node.handle_committed(self.now, self.journal.span());
    }

    /// Acts as the process and the readouts until no work is left.
    fn turns(&mut self) {
        for turn in 0.. {
            assert!(turn < 1000, "the supervisor spins");
            self.commit();
            let sent: Vec<_> = std::iter::from_fn(|| self.node.poll_transmit()).collect();
            let mut is_idle = true;
            for (to, message) in sent {
                let Message::Succession(bytes) = message else { continue };
                let message = SuccessionMessage::decode(&bytes).unwrap();
                match to {
                    Peer::Readout(place) => {
                        if let Some(answer) = self.witnesses[usize::from(place)].handle(&message) {
                            is_idle = false;
                            let answer = Message::Succession(answer.encode());
                            self.node.handle_message(self.now, to, answer).unwrap();
                        }
                    }
                    to if to.is_supervisor() => self.said.push(message),
                    _ => {}
                }
            }
            if let Some(failure) = self.node.failure() {
                panic!("{failure}");
            }
            if is_idle && self.node.poll_deadline().is_none_or(|at| at > self.now) {
                return;
            }
            self.node.handle_deadline(self.now);
        }
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.now = self.now.checked_add(Duration::from_millis(10)).unwrap();
            self.turns();
        }
    }

    /// Receives the log of a leader of term 1. In it, a pairing with this supervisor begins and an event is not finished.
    fn follow(&mut self) -> (Leadership, Leadership) {
        let alone = Leadership { term: 1, leader: 0, log: 5, partner: 0 };
        let pairing = Leadership { term: 2, partner: self.node.log.id(), ..alone };
        let (known, ballot) = (Leadership::default(), 2);
        for witness in &mut self.witnesses {
            witness.handle(&SuccessionMessage::Prepare { known, ballot });
            witness.handle(&SuccessionMessage::Accept { known, ballot, value: alone });
            witness.handle(&SuccessionMessage::Learned(alone));
        }
        self.node.handle_connected(self.now, Peer::Supervisor);
        self.hear(Peer::Supervisor, &SuccessionMessage::Leads(alone));
        let text = format!(
            "# fanin journal 1 supervisor epoch-us 1000\n{}1 0 assigned 0 0 0 0\n2 1 assigned 0 1 0 0\n3 0 completed 0 stored\n{}",
            TermLine::Leads(alone).to_text(),
            TermLine::Pairs(pairing).to_text()
        );
        self.hear(Peer::Supervisor, &SuccessionMessage::Log { term: 1, position: 0, text: text.into() });
        (alone, pairing)
    }

    /// Returns the offsets at which the files of the log start, and what a process that starts again reads from them.
    fn files(&self) -> (Vec<u64>, SharedLog) {
        let path = self.journal.path();
        let starts =
            journal::log_files(&HostMachine::Real, path).unwrap().into_iter().map(|(start, _)| start);
        let mut lines = LogLines::of_parts(&HostMachine::Real, path).unwrap();
        let again =
            Journal::open_shared(&HostMachine::Real, path, "standby", 1000, true, &mut lines).unwrap();
        assert_eq!(again.span(), self.journal.span());
        (starts.collect(), SharedLog::open(&HostMachine::Real, path, lines).unwrap())
    }

    fn lose_leader(&mut self) {
        self.node.handle_closed(self.now, Peer::Supervisor);
        self.pass(3000);
    }

    fn outstanding(&self) -> usize {
        self.node.tables().iter().find(|(table, _)| *table == "outstanding").map_or(0, |(_, size)| *size)
    }

    fn metric(&self, wanted: &str) -> String {
        self.node.measure(self.now, &self.metrics);
        let text = self.metrics.text();
        let line = text.lines().find(|line| line.starts_with(wanted)).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_takeover_does_not_read_the_journal() {
    let mut rig = Rig::new("read", Peer::Standby);
    let (_, pairing) = rig.follow();
    rig.hear(Peer::Supervisor, &SuccessionMessage::Learned(pairing));
    // Reading the journal would fail now.
    let file = std::fs::OpenOptions::new().write(true).open(rig.journal.path()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"no journal", 0).unwrap();
    rig.lose_leader();
    assert!(rig.node.lead.is_some());
    assert_eq!((rig.node.known.term, rig.outstanding()), (3, 1));
}

#[test]
fn a_log_knows_the_work_that_it_leaves() {
    let mut rig = Rig::new("work", Peer::Standby);
    rig.follow();
    let left = crate::resume::resume(rig.journal.path()).unwrap();
    assert_eq!((left.outstanding.len(), left.uncleared.len()), (1, 1));
    assert_eq!(rig.node.log.work(), left);
    let mut lines = LogLines::default();
    let path = rig.journal.path();
    drop(Journal::open_shared(&HostMachine::Real, path, "standby", 1000, true, &mut lines).unwrap());
    let open = SharedLog::open(&HostMachine::Real, path, lines).unwrap();
    assert_eq!(open.work(), left);
    rig.hear(Peer::Supervisor, &SuccessionMessage::Restart { position: 0 });
    assert_eq!(rig.node.log.work(), crate::resume::Resume::default());
}

/// The leader is lost before the pairing is decided, or before it can announce the decision.
#[test]
fn a_standby_takes_over_if_the_leader_is_lost_while_it_pairs() {
    for is_decided in [false, true] {
        let mut rig = Rig::new(&format!("pairing-{is_decided}"), Peer::Standby);
        let (known, value) = rig.follow();
        if is_decided {
            for witness in &mut rig.witnesses[..2] {
                witness.handle(&SuccessionMessage::Prepare { known, ballot: 2 });
                witness.handle(&SuccessionMessage::Accept { known, ballot: 2, value });
            }
        }
        assert!(rig.node.succession().unwrap().is_pairing);
        rig.lose_leader();
        assert!(rig.node.lead.is_some());
        assert_eq!(rig.node.known, Leadership { term: 3, leader: 1, log: value.partner, partner: 0 });
    }
}

#[test]
fn a_standby_takes_nothing_over_from_a_leader_that_went_on_alone() {
    let mut rig = Rig::new("alone", Peer::Standby);
    let (known, _) = rig.follow();
    let value = Leadership { term: 2, ..known };
    for witness in &mut rig.witnesses[..2] {
        witness.handle(&SuccessionMessage::Prepare { known, ballot: 2 });
        witness.handle(&SuccessionMessage::Accept { known, ballot: 2, value });
    }
    rig.lose_leader();
    assert!(rig.node.lead.is_none());
    assert_eq!(rig.node.known, value);
}

#[test]
fn a_supervisor_says_whether_it_is_paired_and_what_it_lacks() {
    let mut rig = Rig::new("metrics", Peer::Standby);
    assert_eq!(rig.node.lacks(), Some("no supervisor leads"));
    assert!(!rig.node.owns_journal(), "a line of its own would end the copy");
    let (_, pairing) = rig.follow();
    assert_eq!(rig.node.lacks(), Some("the leader is not paired with this supervisor"));
    assert_eq!(rig.metric("fanin_supervisor_paired"), "0");
    rig.hear(Peer::Supervisor, &SuccessionMessage::Learned(pairing));
    assert_eq!(rig.node.lacks(), None);
    assert_eq!(rig.metric("fanin_supervisor_paired"), "1");
    assert_eq!(rig.metric("fanin_supervisor_term"), "2");
    rig.lose_leader();
    // It leads alone: it can work, and has no partner.
    assert_eq!(rig.node.lacks(), None);
    assert!(rig.node.owns_journal());
    assert_eq!(
        (rig.metric("fanin_supervisor_leads"), rig.metric("fanin_supervisor_paired")),
        ("1".into(), "0".into())
    );
}

#[test]
fn a_stop_of_the_trigger_counts_while_it_lasts() {
    let mut rig = Rig::new("stop", Peer::Standby);
    rig.follow();
    rig.lose_leader();
    let stopped = |rig: &Rig| rig.metric("fanin_xoff_time_seconds_total").parse::<f64>().unwrap();
    // It leads, an event is due, and no unit is free.
    rig.pass(1000);
    assert_eq!(rig.metric("fanin_xoff_total"), "1");
    let before = stopped(&rig);
    rig.pass(1000);
    assert_eq!(rig.metric("fanin_xoff_total"), "1");
    assert!((stopped(&rig) - before - 1.0).abs() < 1e-6, "{before} s, then {} s", stopped(&rig));
}

#[test]
fn a_leader_that_was_replaced_serves_no_events_as_its_own() {
    let mut rig = Rig::new("replaced", Peer::Standby);
    rig.follow();
    rig.lose_leader();
    assert_eq!(
        (rig.metric("fanin_supervisor_leads"), rig.metric("fanin_events_outstanding")),
        ("1".into(), "1".into())
    );
    let term = rig.node.known.term + 1;
    rig.hear(
        Peer::Readout(0),
        &SuccessionMessage::Learned(Leadership { term, leader: 0, log: 7, partner: 0 }),
    );
    assert_eq!(
        (rig.metric("fanin_supervisor_leads"), rig.metric("fanin_events_outstanding")),
        ("0".into(), "0".into())
    );
}

#[test]
fn a_readout_that_lost_its_file_votes_again_after_two_terms_of_the_same_leader() {
    let mut rig = Rig::new("renew", Peer::Supervisor);
    rig.turns();
    assert_eq!((rig.node.known.term, rig.node.lead.is_some()), (1, true));
    rig.node.handle_closed(rig.now, Peer::Readout(2));
    rig.witnesses[2] = Witness::default();
    rig.pass(1000);
    assert_eq!(rig.node.known.term, 1);
    rig.node.handle_connected(rig.now, Peer::Readout(2));
    rig.pass(1000);
    assert!(!rig.witnesses[2].is_abstaining());
    let alone = Leadership { term: 3, leader: 0, log: rig.node.log.id(), partner: 0 };
    assert_eq!((rig.node.known, rig.node.lead.is_some()), (alone, true));
}

/// The standby has the pairing decided that its leader began, and learns of a readout's abstention. Only the leader can
/// renew the term.
#[test]
fn a_readout_votes_again_if_the_standby_decided_the_term() {
    let mut rig = Rig::new("decided", Peer::Supervisor);
    rig.turns();
    let known = rig.node.known;
    rig.node.handle_connected(rig.now, Peer::Standby);
    rig.hear(Peer::Standby, &SuccessionMessage::Follow { log: 9, position: 0, term: 0 });
    let held = |rig: &Rig| SuccessionMessage::Held { log: 9, position: rig.node.log.size() };
    rig.pass(100);
    rig.hear(Peer::Standby, &held(&rig));
    let (value, _) = rig.node.log.pairing(known).unwrap();
    // A readout lost its file: the pairing in progress brings the next term.
    rig.node.handle_closed(rig.now, Peer::Readout(2));
    rig.witnesses[2] = Witness::default();
    rig.node.handle_connected(rig.now, Peer::Readout(2));
    rig.turns();
    assert!(rig.witnesses[2].is_abstaining());
    for witness in &mut rig.witnesses {
        witness.handle(&SuccessionMessage::Prepare { known, ballot: 3 });
        witness.handle(&SuccessionMessage::Accept { known, ballot: 3, value });
        witness.handle(&SuccessionMessage::Learned(value));
    }
    assert!(rig.witnesses[2].is_abstaining());
    rig.hear(Peer::Standby, &SuccessionMessage::Learned(value));
    assert!(!rig.witnesses[2].is_abstaining() && rig.node.lead.is_some());
    assert_eq!(rig.node.known, Leadership { term: 3, ..value });
}
