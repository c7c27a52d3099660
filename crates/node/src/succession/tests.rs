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
        SuccessionMessage::Restart { position: 0 },
        SuccessionMessage::Restart { position: 1 << 40 },
        SuccessionMessage::Leaves,
        SuccessionMessage::Abstains { term: 4 },
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

/// Lets a witness vote in term 1.
fn begin(witness: &mut Witness) {
    let (known, ballot) = (Leadership::default(), 2);
    witness.handle(&SuccessionMessage::Prepare { known, ballot });
    let accept = SuccessionMessage::Accept { known, ballot, value: of(1, 0, 0) };
    assert_eq!(witness.handle(&accept), Some(SuccessionMessage::Accepted { term: 1, ballot }));
}

#[test]
fn a_vote_survives_its_process() {
    let mut witness = Witness::default();
    assert_eq!(Witness::parse(&witness.to_text()), Some(witness));
    begin(&mut witness);
    let known = of(1, 0, 0);
    let (ballot, value) = (7, of(2, 1, 9));
    let promise = SuccessionMessage::Promise { term: 2, ballot, accepted: None };
    assert_eq!(witness.handle(&SuccessionMessage::Prepare { known, ballot }), Some(promise));
    let accepted = SuccessionMessage::Accepted { term: 2, ballot };
    assert_eq!(witness.handle(&SuccessionMessage::Accept { known, ballot, value }), Some(accepted));
    let read = Witness::parse(&witness.to_text()).unwrap();
    witness.handle_closed();
    assert_eq!(read, witness);
    let text = "# fanin witness 1\n1 0 100 0 1 7 7 2 1 101 9\n";
    assert_eq!(witness.to_text(), text);
    for wrong in [
        "# fanin witness 1\n1 2 3\n",
        text.trim_end(),
        &text.replace(" 101 ", " "),
        &text.replace(" 1 7", " x 7"),
    ] {
        assert_eq!(Witness::parse(wrong), None, "{wrong}");
    }
}

/// A readout lost the file with its votes after they decided term 2, perhaps during the vote on term 3.
#[test]
fn a_witness_without_its_record_abstains_for_two_terms() {
    let mut witness = Witness::default();
    let mut ask = |message: SuccessionMessage| {
        // The record of an abstention survives the process.
        let asked = witness.asked;
        witness = Witness::parse(&witness.to_text()).unwrap();
        witness.asked = asked;
        witness.handle(&message)
    };
    let abstains = |term| Some(SuccessionMessage::Abstains { term });
    let prepare = |known, ballot| SuccessionMessage::Prepare { known, ballot };
    let accept = |known: Leadership, ballot| SuccessionMessage::Accept {
        known,
        ballot,
        value: of(known.term + 1, 0, 0),
    };
    assert_eq!(ask(SuccessionMessage::Leads(of(2, 0, 0))), abstains(2));
    // The `Prepare` of this ballot may have arrived before the loss.
    assert_eq!(ask(accept(of(2, 0, 0), 4)), abstains(2));
    assert_eq!(ask(SuccessionMessage::Learned(of(7, 0, 0))), abstains(7));
    assert_eq!(ask(prepare(of(7, 0, 0), 6)), abstains(7));
    assert_eq!(ask(accept(of(7, 0, 0), 8)), abstains(7));
    assert_eq!(ask(prepare(of(7, 0, 0), 10)), abstains(7));
    assert_eq!(ask(accept(of(7, 0, 0), 10)), abstains(7));
    assert_eq!(ask(SuccessionMessage::Learned(of(8, 0, 0))), abstains(8));
    assert_eq!(ask(SuccessionMessage::Learned(of(9, 0, 0))), None);
    let promise = SuccessionMessage::Promise { term: 10, ballot: 2, accepted: None };
    assert_eq!(ask(prepare(of(9, 0, 0), 2)), Some(promise));
}

/// The first supervisor begins with an empty folder and proposes term 1, while the other one leads in a later term.
#[test]
fn a_request_for_term_1_ends_no_abstention() {
    for accepted in [None, Some(Leadership { log: 200, ..of(1, 0, 0) })] {
        for decided in [of(1, 0, 0), of(5, 1, 0)] {
            let mut witness = Witness::default();
            let (known, ballot) = (Leadership::default(), 2);
            witness.handle(&SuccessionMessage::Prepare { known, ballot });
            if let Some(value) = accepted {
                witness.handle(&SuccessionMessage::Accept { known, ballot, value });
            }
            witness.handle(&SuccessionMessage::Learned(decided));
            assert!(witness.is_abstaining(), "{accepted:?} {decided}");
        }
    }
}

#[test]
fn a_request_on_an_older_connection_ends_no_abstention() {
    let mut witness = Witness::default();
    let (known, ballot) = (of(7, 0, 0), 6);
    witness.handle(&SuccessionMessage::Prepare { known, ballot });
    witness.handle_closed();
    witness.handle(&SuccessionMessage::Accept { known, ballot, value: of(8, 0, 0) });
    witness.handle(&SuccessionMessage::Learned(of(9, 0, 0)));
    assert!(witness.is_abstaining());
}

#[test]
fn a_witness_keeps_its_promise() {
    let mut witness = Witness::default();
    let known = Leadership::default();
    let prepare = |ballot| SuccessionMessage::Prepare { known, ballot };
    assert!(!witness.is_abstaining());
    assert!(matches!(witness.handle(&prepare(4)), Some(SuccessionMessage::Promise { accepted: None, .. })));
    let refused = Some(SuccessionMessage::Refused { term: 1, ballot: 4 });
    // An earlier incarnation of the proposer may have used the same ballot.
    assert_eq!(witness.handle(&prepare(4)), refused);
    assert_eq!(witness.handle(&SuccessionMessage::Accept { known, ballot: 3, value: of(1, 1, 0) }), refused);
    let accept = SuccessionMessage::Accept { known, ballot: 4, value: of(1, 0, 0) };
    assert_eq!(witness.handle(&accept), Some(SuccessionMessage::Accepted { term: 1, ballot: 4 }));
    let promise = SuccessionMessage::Promise { term: 1, ballot: 5, accepted: Some((4, of(1, 0, 0))) };
    assert_eq!(witness.handle(&prepare(5)), Some(promise));
    // A later term was decided: it replaces the state of earlier ones.
    assert_eq!(witness.handle(&SuccessionMessage::Learned(of(1, 0, 0))), None);
    assert_eq!(witness.handle(&SuccessionMessage::Learned(of(2, 1, 0))), None);
    assert_eq!(witness.handle(&prepare(9)), Some(SuccessionMessage::Learned(of(2, 1, 0))));
}

/// Two proposers and their witnesses on a network that loses, delays and reorders messages. Witnesses may lose their
/// files.
struct SimulatedVote {
    random: Random,
    now: Instant,
    witnesses: Vec<Witness>,
    proposers: [Proposer; 2],
    requests: Vec<(usize, usize, SuccessionMessage)>,
    answers: Vec<(usize, usize, SuccessionMessage)>,
    decided: BTreeMap<u64, Leadership>,
    known: [Leadership; 2],
    /// Remaining steps for which each proposer is cut off from the network.
    isolated: [u32; 2],
    /// Number of lost files. `returns` counts the witnesses that vote again afterwards.
    losses: u32,
    returns: u32,
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
            isolated: [0; 2],
            losses: 0,
            returns: 0,
        }
    }

    /// Restarts a witness without its file, on new connections, if the other voting witnesses are a majority.
    fn lose_file(&mut self) {
        let lost = self.random.below(self.witnesses.len() as u32) as usize;
        let votes = |place: usize| place != lost && !self.witnesses[place].is_abstaining();
        if (0..self.witnesses.len()).filter(|&place| votes(place)).count() > self.witnesses.len() / 2 {
            self.losses += 1;
            self.witnesses[lost] = Witness::default();
            self.requests.retain(|(_, to, _)| *to != lost);
        }
    }

    fn learn(&mut self, me: usize, value: Leadership) {
        let first = *self.decided.entry(value.term).or_insert(value);
        assert_eq!(first, value, "a term is decided once");
        if value.term > self.known[me].term {
            self.known[me] = value;
            self.proposers[me].handle_decided(value);
            // The worst case: the proposer is cut off, and a readout loses its vote.
            if self.random.below(4) == 0 {
                self.isolated[me] = 80;
                self.lose_file();
            }
        }
    }

    fn step(&mut self) {
        self.now = self.now.checked_add(Duration::from_millis(u64::from(self.random.below(40)))).unwrap();
        for me in 0..2 {
            self.isolated[me] = self.isolated[me].saturating_sub(1);
            let known = self.known[me];
            // Only the first supervisor proposes the first term.
            if self.random.below(4) == 0 && (me == 0 || known.term > 0) {
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
                // The witness restarts with the state from its file.
                let asked = self.witnesses[to].asked.filter(|_| self.random.below(20) > 0);
                self.witnesses[to] = Witness::parse(&self.witnesses[to].to_text()).unwrap();
                self.witnesses[to].asked = asked;
                let was_abstaining = self.witnesses[to].is_abstaining();
                if self.random.below(5) > 0
                    && self.isolated[me] == 0
                    && let Some(answer) = self.witnesses[to].handle(&message)
                {
                    self.answers.push((me, to, answer));
                }
                self.returns += u32::from(was_abstaining && !self.witnesses[to].is_abstaining());
            }
            if !self.answers.is_empty() && self.random.below(5) > 0 {
                let place = self.random.below(self.answers.len() as u32) as usize;
                let (me, from, message) = self.answers.swap_remove(place);
                if self.isolated[me] > 0 {
                    continue;
                }
                if let SuccessionMessage::Learned(value) = message {
                    self.learn(me, value);
                } else if let Some(value) = self.proposers[me].handle(from as u16, &message) {
                    self.learn(me, value);
                }
            }
        }
        if self.random.below(60) == 0 {
            // A supervisor restarts, and remembers only the decided terms.
            let me = self.random.below(2) as usize;
            self.proposers[me] = Proposer::new(me as u8, self.witnesses.len());
            self.requests.retain(|(from, ..)| *from != me);
            self.answers.retain(|(to, ..)| *to != me);
            self.witnesses.iter_mut().for_each(Witness::handle_closed);
        }
    }
}

#[test]
fn a_term_is_decided_once_whatever_is_lost() {
    let (mut terms, mut losses, mut returns) = (0, 0, 0);
    for seed in 0..400 {
        let mut vote = SimulatedVote::new(seed, 1 + seed as usize % 5);
        (0..600).for_each(|_| vote.step());
        terms += vote.decided.len();
        (losses, returns) = (losses + vote.losses, returns + vote.returns);
    }
    assert!(terms > 3000, "{terms} terms were decided, {losses} files lost, {returns} returns");
    assert!(losses > 500 && returns > losses / 3, "{returns} of {losses} witnesses vote again");
}

/// Exchanges messages between a proposer and the witnesses that it reaches until none is left. Returns the decided value.
fn vote(proposer: &mut Proposer, witnesses: &mut [Witness], reached: &[usize]) -> Option<Leadership> {
    let mut decided = None;
    while let Some(message) = proposer.poll_transmit() {
        for &place in reached {
            if let Some(answer) = witnesses[place].handle(&message) {
                decided = decided.or(proposer.handle(place as u16, &answer));
            }
        }
    }
    decided
}

#[test]
fn a_lost_file_gives_no_second_leader_of_a_term() {
    let mut witnesses = [Witness::default(); 3];
    witnesses.iter_mut().for_each(begin);
    let (first, known, mut now) = (of(2, 0, 0), of(1, 0, 0), Instant::START);
    let mut proposers = [Proposer::new(0, 3), Proposer::new(1, 3)];
    proposers[0].propose(now, known, first);
    assert_eq!(vote(&mut proposers[0], &mut witnesses, &[0, 1]), Some(first));
    // One of the two witnesses that decided term 2 loses its file. The other supervisor does not reach the second of them.
    witnesses[1] = Witness::default();
    proposers[1].propose(now, known, of(2, 1, 0));
    for reached in [[1, 2].as_slice(), &[1, 2], &[0, 1, 2]] {
        let decided = vote(&mut proposers[1], &mut witnesses, reached);
        assert!(decided.is_none_or(|value| value == first), "{decided:?}");
        now = now.checked_add(Duration::from_secs(5)).unwrap();
        proposers[1].handle_deadline(now);
    }
    assert!(!proposers[1].is_busy());
}

#[test]
fn lines_about_terms_are_read_as_they_are_written() {
    for line in [TermLine::Leads(of(1, 0, 0)), TermLine::Pairs(of(2, 1, 5))] {
        assert_eq!(TermLine::parse(line.to_text().as_bytes()), Some(line));
    }
    assert_eq!(TermLine::parse(b"# fanin journal 1 supervisor epoch-us 7\n"), None);
    assert_eq!(TermLine::parse(b"# fanin leads 1 2 3\n"), None);
}
