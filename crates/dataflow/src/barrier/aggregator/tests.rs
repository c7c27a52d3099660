use alloc::vec::Vec;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::START + Duration::from_millis(ms)
}

fn answer(bytes: u64) -> BarrierMessage {
    BarrierMessage::Answer { bytes: Bytes::new(bytes) }
}

fn config(senders: u32) -> AggregatorConfig {
    AggregatorConfig {
        senders,
        warmup: Duration::from_millis(10),
        stall_limit: Some(Duration::from_millis(50)),
        ..AggregatorConfig::default()
    }
}

/// Makes an aggregator with three connected senders, and drains the first round's requests.
fn running() -> Aggregator {
    let mut aggregator = Aggregator::new(config(3)).unwrap();
    (0..3).for_each(|sender| aggregator.handle_connected(at(0), Peer::Readout(sender)));
    assert_eq!(requests(&mut aggregator), [(0, 0, false), (1, 0, false), (2, 0, false)]);
    aggregator
}

/// Returns the requests that leave now, sorted: sender, round, and true if the round is measured.
fn requests(aggregator: &mut Aggregator) -> Vec<(u16, u64, bool)> {
    let mut requests = requests_in_order(aggregator);
    requests.sort_unstable();
    requests
}

fn requests_in_order(aggregator: &mut Aggregator) -> Vec<(u16, u64, bool)> {
    let next = || {
        let (Peer::Readout(sender), BarrierMessage::Request { round, is_measured }) =
            aggregator.poll_transmit()?
        else {
            panic!("requests to senders only")
        };
        Some((sender, round, is_measured))
    };
    core::iter::from_fn(next).collect()
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refuse = |senders, request_size| {
        Aggregator::new(AggregatorConfig { senders, request_size, ..config(1) }).unwrap_err()
    };
    let size = Bytes::new(3);
    assert_eq!(refuse(0, AnswerSize::FixedFragment(size)), AggregatorError::Senders { senders: 0 });
    assert_eq!(
        refuse(SENDERS_MAX + 1, AnswerSize::FixedFragment(size)),
        AggregatorError::Senders { senders: SENDERS_MAX + 1 }
    );
    assert_eq!(refuse(4, AnswerSize::FixedBlock(size)), AggregatorError::EmptyAnswer { size, senders: 4 });
}

#[test]
fn a_round_follows_a_round_until_it_is_stopped() {
    let mut aggregator = running();
    for (time, sender) in [(1, 0), (2, 2)] {
        aggregator.handle_message(at(time), Peer::Readout(sender), answer(1_000)).unwrap();
        assert_eq!(aggregator.poll_record(), None);
    }
    // An answer may arrive in parts.
    aggregator.handle_message(at(3), Peer::Readout(1), answer(400)).unwrap();
    assert_eq!((aggregator.unanswered(), aggregator.owed(1)), (1, Bytes::new(600)));
    aggregator.handle_message(at(12), Peer::Readout(1), answer(600)).unwrap();
    let round = BarrierRecord::Round { round: 0, start: at(0), end: at(12) };
    assert_eq!(aggregator.poll_record(), Some(round));
    assert_eq!(requests(&mut aggregator), [(0, 1, true), (1, 1, true), (2, 1, true)], "the warm-up is over");
    assert_eq!((aggregator.rounds(), aggregator.round_start()), (1, at(12)));

    aggregator.handle_stop(at(13));
    assert!(!aggregator.is_done(), "the round in progress is completed");
    (0..3).for_each(|sender| {
        aggregator.handle_message(at(14), Peer::Readout(sender), answer(1_000)).unwrap();
    });
    assert!(aggregator.is_done());
    assert_eq!((aggregator.poll_transmit(), aggregator.poll_deadline()), (None, None));
    assert_eq!(aggregator.rounds(), 2);
}

#[test]
fn the_first_round_waits_for_the_last_sender() {
    let mut aggregator = Aggregator::new(config(2)).unwrap();
    aggregator.handle_connected(at(0), Peer::Readout(1));
    assert_eq!((aggregator.poll_transmit(), aggregator.poll_deadline()), (None, None));
    aggregator.handle_connected(at(5), Peer::Readout(0));
    assert_eq!(requests(&mut aggregator).len(), 2);
    assert_eq!(aggregator.round_start(), at(5));

    let mut stopped = Aggregator::new(config(1)).unwrap();
    stopped.handle_stop(at(0));
    stopped.handle_connected(at(1), Peer::Readout(0));
    assert!(stopped.is_done() && stopped.poll_transmit().is_none(), "no round begins after a stop");
}

#[test]
fn forbidden_messages_are_refused() {
    let mut aggregator = Aggregator::new(config(2)).unwrap();
    let refused = |aggregator: &mut Aggregator, peer, message| {
        let before = (aggregator.unanswered(), aggregator.owed(0), aggregator.owed(1));
        let refused = aggregator.handle_message(at(1), peer, message).unwrap_err();
        assert_eq!(before, (aggregator.unanswered(), aggregator.owed(0), aggregator.owed(1)));
        refused.why
    };
    let request = BarrierMessage::Request { round: 0, is_measured: true };
    assert_eq!(refused(&mut aggregator, Peer::Readout(0), request), "an aggregator receives answers only");
    let unknown = "no sender is connected as this peer";
    assert_eq!(refused(&mut aggregator, Peer::Readout(0), answer(1)), unknown);
    assert_eq!(refused(&mut aggregator, Peer::Readout(2), answer(1)), unknown);
    assert_eq!(refused(&mut aggregator, Peer::Collector(0), answer(1)), unknown);
    (0..2).for_each(|sender| aggregator.handle_connected(at(0), Peer::Readout(sender)));
    assert_eq!(refused(&mut aggregator, Peer::Readout(0), answer(1_000)), "nothing was requested");
    requests(&mut aggregator);
    let long = "it is longer than the answer that was requested";
    assert_eq!(refused(&mut aggregator, Peer::Readout(0), answer(1_001)), long);
    aggregator.handle_message(at(1), Peer::Readout(0), answer(1_000)).unwrap();
    assert_eq!(refused(&mut aggregator, Peer::Readout(0), answer(1)), long);
    aggregator.handle_message(at(1), Peer::Readout(1), answer(0)).unwrap();
}

#[test]
fn a_sender_that_comes_back_is_asked_again() {
    let mut aggregator = running();
    aggregator.handle_message(at(1), Peer::Readout(0), answer(1_000)).unwrap();
    aggregator.handle_message(at(1), Peer::Readout(1), answer(999)).unwrap();
    for sender in [0, 1] {
        aggregator.handle_closed(at(2), Peer::Readout(sender));
        aggregator.handle_closed(at(2), Peer::Readout(sender));
        assert_eq!(aggregator.poll_record(), Some(BarrierRecord::Lost { sender, round: 0 }));
    }
    assert_eq!(aggregator.poll_record(), None, "a second call records nothing");
    assert_eq!((aggregator.owed(0), aggregator.owed(1)), (Bytes::ZERO, Bytes::new(1_000)));
    aggregator.handle_connected(at(3), Peer::Readout(1));
    assert_eq!(requests(&mut aggregator), [(1, 0, false)]);
    aggregator.handle_message(at(4), Peer::Readout(1), answer(1_000)).unwrap();
    aggregator.handle_message(at(4), Peer::Readout(2), answer(1_000)).unwrap();
    assert_eq!(aggregator.rounds(), 1);
    // The next round begins without sender 0, which receives the request when it is back.
    assert_eq!(requests(&mut aggregator), [(1, 1, false), (2, 1, false)]);
    aggregator.handle_connected(at(20), Peer::Readout(0));
    assert_eq!(requests(&mut aggregator), [(0, 1, false)]);
}

#[test]
fn a_new_connection_replaces_one_that_seemed_to_stand() {
    let mut aggregator = running();
    aggregator.handle_message(at(1), Peer::Readout(1), answer(999)).unwrap();
    aggregator.handle_connected(at(2), Peer::Readout(1));
    assert_eq!(requests(&mut aggregator), [(1, 0, false)]);
    aggregator.handle_connected(at(2), Peer::Readout(1));
    aggregator.handle_connected(at(2), Peer::Readout(1));
    assert_eq!(requests(&mut aggregator), [(1, 0, false)], "requests to a dead connection are dropped");
    assert_eq!(aggregator.owed(1), Bytes::new(1_000));
}

#[test]
fn silence_is_recorded() {
    let mut aggregator = running();
    aggregator.handle_message(at(30), Peer::Readout(0), answer(1_000)).unwrap();
    aggregator.handle_deadline(at(50));
    assert_eq!((aggregator.poll_record(), aggregator.poll_deadline()), (None, Some(at(80))));
    aggregator.handle_deadline(at(80));
    assert_eq!(aggregator.poll_record(), Some(BarrierRecord::Stalled { round: 0, answered: 1 }));
    assert_eq!(aggregator.poll_deadline(), Some(at(130)), "it is said once in each limit");
}

#[test]
fn every_sender_is_asked_first_equally_often() {
    let rounds = 3_000;
    let mut aggregator = Aggregator::new(AggregatorConfig { seed: 5, ..config(3) }).unwrap();
    (0..3).for_each(|sender| aggregator.handle_connected(at(0), Peer::Readout(sender)));
    let mut first = [0_i32; 3];
    for _ in 0..rounds {
        let order = requests_in_order(&mut aggregator);
        assert_eq!(order.len(), 3);
        first[usize::from(order[0].0)] += 1;
        for (sender, ..) in order {
            aggregator.handle_message(at(1), Peer::Readout(sender), answer(1_000)).unwrap();
        }
    }
    // Four standard errors of 1000 are 103.
    assert!(first.iter().all(|&count| (count - rounds / 3).abs() < 103), "{first:?}");
}
