use std::collections::BTreeMap;

use fanin_dataflow::Random;
use fanin_units::{Duration, Instant};

use super::*;

fn of(term: u64, leader: u8, partner: u64) -> Leadership {
    Leadership { term, leader, log: 100 + u64::from(leader), partner }
}

#[test]
fn messages_are_read_as_they_are_written() {
    let (one, other) = (of(3, 1, 0), of(4, 0, 7));
    let all = [
        SuccessionMessage::Leads(one),
        SuccessionMessage::Prepare { known: one, ballot: 5 },
        SuccessionMessage::Promise { term: 4, ballot: 5, accepted: None },
        SuccessionMessage::Promise { term: 4, ballot: 5, accepted: Some((2, other)) },
        SuccessionMessage::Accept { known: one, ballot: 5, value: other },
        SuccessionMessage::Accepted { term: 4, ballot: 5 },
        SuccessionMessage::Refused { term: 4, ballot: 9 },
        SuccessionMessage::Learned(other),
        SuccessionMessage::Follow { log: 1, position: 2, term: 3 },
        SuccessionMessage::Restart,
        SuccessionMessage::Leaves,
        SuccessionMessage::Log { term: 4, position: 10, text: b"1 2 xon\n".to_vec() },
        SuccessionMessage::Held { log: 1, position: 18 },
    ];
    for message in all {
        let bytes = message.encode();
        assert_eq!(SuccessionMessage::decode(&bytes), Some(message.clone()));
        if !matches!(message, SuccessionMessage::Log { .. }) {
            assert_eq!(SuccessionMessage::decode(&[&bytes[..], &[0]].concat()), None, "{message:?}");
        }
        assert_eq!(SuccessionMessage::decode(&bytes[..bytes.len().min(8)]).filter(|_| bytes.len() > 8), None);
    }
    assert_eq!(SuccessionMessage::decode(&[]), None);
    assert_eq!(SuccessionMessage::decode(&[99]), None);
}

#[test]
fn a_vote_survives_its_process() {
    let mut witness = Witness::default();
    assert_eq!(Witness::parse(&witness.to_text()), Some(witness));
    let known = of(2, 0, 9);
    let (ballot, value) = (7, of(3, 1, 0));
    witness.handle(&SuccessionMessage::Prepare { known, ballot });
    assert_eq!(Witness::parse(&witness.to_text()), Some(witness));
    witness.handle(&SuccessionMessage::Accept { known, ballot, value });
    assert_eq!(Witness::parse(&witness.to_text()), Some(witness));
    assert_eq!(Witness::parse("# fanin witness 1\n1 2 3\n"), None);
}

#[test]
fn a_witness_keeps_its_promise() {
    let mut witness = Witness::default();
    let known = Leadership::default();
    let prepare = |ballot| SuccessionMessage::Prepare { known, ballot };
    assert!(matches!(witness.handle(&prepare(4)), Some(SuccessionMessage::Promise { accepted: None, .. })));
    let refused = Some(SuccessionMessage::Refused { term: 1, ballot: 4 });
    // The same ballot may be one of an earlier life of its proposer.
    assert_eq!(witness.handle(&prepare(4)), refused);
    assert_eq!(witness.handle(&SuccessionMessage::Accept { known, ballot: 3, value: of(1, 1, 0) }), refused);
    let accept = SuccessionMessage::Accept { known, ballot: 4, value: of(1, 0, 0) };
    assert_eq!(witness.handle(&accept), Some(SuccessionMessage::Accepted { term: 1, ballot: 4 }));
    let promise = SuccessionMessage::Promise { term: 1, ballot: 5, accepted: Some((4, of(1, 0, 0))) };
    assert_eq!(witness.handle(&prepare(5)), Some(promise));
    // A later term is decided elsewhere: its news replace all that.
    assert_eq!(witness.handle(&SuccessionMessage::Learned(of(2, 1, 0))), None);
    assert_eq!(witness.handle(&prepare(9)), Some(SuccessionMessage::Learned(of(2, 1, 0))));
}

/// Two proposers and their witnesses on a network that loses, delays and reorders.
struct SimulatedVote {
    random: Random,
    now: Instant,
    witnesses: Vec<Witness>,
    proposers: [Proposer; 2],
    requests: Vec<(usize, usize, SuccessionMessage)>,
    answers: Vec<(usize, usize, SuccessionMessage)>,
    decided: BTreeMap<u64, Leadership>,
    known: [Leadership; 2],
}

impl SimulatedVote {
    fn new(seed: u64, witnesses: usize) -> Self {
        Self {
            random: Random::new(seed),
            now: Instant::START,
            witnesses: vec![Witness::default(); witnesses],
            proposers: [Proposer::new(0, witnesses), Proposer::new(1, witnesses)],
            requests: Vec::new(),
            answers: Vec::new(),
            decided: BTreeMap::new(),
            known: [Leadership::default(); 2],
        }
    }

    fn learn(&mut self, me: usize, value: Leadership) {
        let first = *self.decided.entry(value.term).or_insert(value);
        assert_eq!(first, value, "a term is decided once");
        if value.term > self.known[me].term {
            self.known[me] = value;
            self.proposers[me].handle_decided(value);
        }
    }

    fn step(&mut self) {
        self.now = self.now.checked_add(Duration::from_millis(u64::from(self.random.below(40)))).unwrap();
        for me in 0..2 {
            let known = self.known[me];
            if self.random.below(4) == 0 {
                self.proposers[me].propose(self.now, known, of(known.term + 1, me as u8, 0));
            }
            self.proposers[me].handle_deadline(self.now);
            while let Some(message) = self.proposers[me].poll_transmit() {
                (0..self.witnesses.len()).for_each(|to| self.requests.push((me, to, message.clone())));
            }
        }
        for _ in 0..4 {
            if !self.requests.is_empty() {
                let place = self.random.below(self.requests.len() as u32) as usize;
                let (me, to, message) = self.requests.swap_remove(place);
                // The state survives its process, as from a file.
                self.witnesses[to] = Witness::parse(&self.witnesses[to].to_text()).unwrap();
                if self.random.below(5) > 0
                    && let Some(answer) = self.witnesses[to].handle(&message)
                {
                    self.answers.push((me, to, answer));
                }
            }
            if !self.answers.is_empty() && self.random.below(5) > 0 {
                let place = self.random.below(self.answers.len() as u32) as usize;
                let (me, from, message) = self.answers.swap_remove(place);
                if let SuccessionMessage::Learned(value) = message {
                    self.learn(me, value);
                } else if let Some(value) = self.proposers[me].handle(from as u16, &message) {
                    self.learn(me, value);
                }
            }
        }
        if self.random.below(60) == 0 {
            // A supervisor starts again, and remembers the decided terms alone.
            let me = self.random.below(2) as usize;
            self.proposers[me] = Proposer::new(me as u8, self.witnesses.len());
        }
    }
}

#[test]
fn a_term_is_decided_once_whatever_is_lost() {
    let mut terms = 0;
    for seed in 0..300 {
        let mut vote = SimulatedVote::new(seed, 1 + seed as usize % 5);
        (0..600).for_each(|_| vote.step());
        terms += vote.decided.len();
    }
    assert!(terms > 3000, "{terms} terms were decided");
}

#[test]
fn lines_about_terms_are_read_as_they_are_written() {
    for line in [TermLine::Leads(of(1, 0, 0)), TermLine::Pairs(of(2, 1, 5))] {
        assert_eq!(TermLine::parse(line.to_text().as_bytes()), Some(line));
    }
    assert_eq!(TermLine::parse(b"# fanin journal 1 supervisor epoch-us 7\n"), None);
    assert_eq!(TermLine::parse(b"# fanin leads 1 2 3\n"), None);
}
