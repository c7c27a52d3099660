use fanin_dataflow::{
    Delay, FragmentSet, FragmentSource, L1Id, Message, Peer, Readout, ReadoutConfig, ReadoutError,
    UniformSource,
};
use fanin_units::{Bytes, Duration, Instant};

use crate::{drain, ms, us};

const KILOBYTE: UniformSource = UniformSource { fragment: Bytes::new(1_000) };

fn ask<S: FragmentSource<Bytes>>(
    readout: &mut Readout<Bytes, S>,
    now: Instant,
    collector: u16,
    event: u64,
    count: u16,
) {
    let fragments = FragmentSet::first(count);
    let request = Message::Request { tag: event as u32, event: L1Id(event), fragments };
    readout.handle_message(now, Peer::Collector(collector), request).unwrap();
}

/// Answers so far: collector, event, bytes, missing.
fn answers<S: FragmentSource<Bytes>>(readout: &mut Readout<Bytes, S>) -> Vec<(Peer, u64, u64, u16)> {
    drain!(readout.poll_transmit())
        .into_iter()
        .filter_map(|(peer, message)| match message {
            Message::Answer { tag, event, missing, payload } => {
                assert_eq!(u64::from(tag), event.0);
                Some((peer, event.0, payload.get(), missing.len()))
            }
            _ => None,
        })
        .collect()
}

fn clear(readout: &mut Readout<Bytes, UniformSource>, now: Instant, events: &[u64]) {
    let events: Vec<L1Id> = events.iter().map(|&event| L1Id(event)).collect();
    readout.handle_message(now, Peer::Collector(0), Message::Clear(events.into())).unwrap();
}

/// A supervisor clears all events before the oldest open one. A collector cannot do that.
#[test]
fn a_supervisor_clears_an_event_and_all_before_it() {
    let config = ReadoutConfig { memory: Some(Bytes::new(1_000_000)), ..ReadoutConfig::default() };
    let mut readout = Readout::new(config, KILOBYTE).unwrap();
    for event in [3, 5, 200_000, 200_001, 200_003] {
        readout.handle_fragments(ms(0), L1Id(event), Bytes::new(10));
    }
    readout.handle_message(ms(1), Peer::Collector(0), Message::clear_up_to(L1Id(200_001))).unwrap();
    assert_eq!(readout.counters().events, 4);
    readout.handle_message(ms(1), Peer::Supervisor, Message::clear_up_to(L1Id(200_001))).unwrap();
    readout.check_invariants();
    assert_eq!((readout.counters().events, readout.counters().held), (1, 10));
    let deleted: Vec<u64> = drain!(readout.poll_record()).iter().map(|record| record.event.0).collect();
    assert_eq!(deleted, [200_001, 3, 5, 200_000]);
    readout.handle_message(ms(2), Peer::Supervisor, Message::clear_up_to(L1Id(300_000))).unwrap();
    assert_eq!(readout.counters().events, 0);
    readout.check_invariants();
}

#[test]
fn each_request_has_one_answer_after_its_own_delay() {
    let response_delay = Delay::Constant(Duration::from_micros(200));
    let mut readout =
        Readout::new(ReadoutConfig { response_delay, ..ReadoutConfig::default() }, KILOBYTE).unwrap();
    ask(&mut readout, us(0), 3, 1, 12);
    ask(&mut readout, us(50), 4, 2, 5);
    assert_eq!(readout.poll_deadline(), Some(us(200)));
    readout.handle_deadline(us(200));
    assert_eq!(answers(&mut readout), [(Peer::Collector(3), 1, 12_000, 0)]);
    readout.handle_deadline(us(250));
    assert_eq!(answers(&mut readout), [(Peer::Collector(4), 2, 5_000, 0)]);
    assert_eq!(readout.poll_deadline(), None);
}

#[test]
fn drawn_delays_may_overtake() {
    let response_delay = Delay::Uniform { min: Duration::ZERO, max: Duration::from_millis(1) };
    let mut readout =
        Readout::new(ReadoutConfig { response_delay, ..ReadoutConfig::default() }, KILOBYTE).unwrap();
    (0..100).for_each(|event| ask(&mut readout, us(0), 0, event, 1));
    readout.handle_deadline(ms(1));
    let order: Vec<u64> = answers(&mut readout).iter().map(|answer| answer.1).collect();
    assert_eq!(order.len(), 100);
    assert!(!order.is_sorted());
}

#[test]
fn deleted_events_are_missing() {
    let config = ReadoutConfig { memory: Some(Bytes::new(100_000)), ..ReadoutConfig::default() };
    let mut readout = Readout::new(config, KILOBYTE).unwrap();
    for event in 10..13 {
        assert!(readout.handle_fragments(ms(0), L1Id(event), Bytes::new(12_000)));
    }
    assert!(!readout.handle_fragments(ms(0), L1Id(11), Bytes::new(12_000)));
    clear(&mut readout, ms(1), &[11, 11, 99]);
    ask(&mut readout, ms(1), 0, 10, 12);
    ask(&mut readout, ms(1), 0, 11, 12);
    ask(&mut readout, ms(1), 0, 9, 3);
    let collector = Peer::Collector(0);
    assert_eq!(
        answers(&mut readout),
        [(collector, 10, 12_000, 0), (collector, 11, 0, 12), (collector, 9, 0, 3)]
    );
    let counters = readout.counters();
    assert_eq!((counters.events, counters.held, counters.deleted, counters.missing), (2, 24_000, 1, 15));
    // An event older than all stored ones is accepted, too.
    assert!(readout.handle_fragments(ms(2), L1Id(8), Bytes::new(1)));
    ask(&mut readout, ms(2), 0, 8, 1);
    assert_eq!(answers(&mut readout), [(collector, 8, 1_000, 0)]);
}

#[test]
fn fragments_that_are_late_are_waited_for() {
    let memory = Some(Bytes::new(100_000));
    let fragment_wait = Duration::from_millis(10);
    let mut readout =
        Readout::new(ReadoutConfig { memory, fragment_wait, ..ReadoutConfig::default() }, KILOBYTE).unwrap();
    let run = |readout: &mut Readout<Bytes, UniformSource>, end| {
        while let Some(at) = readout.poll_deadline().filter(|&at| at <= end) {
            readout.handle_deadline(at);
        }
    };
    ask(&mut readout, ms(0), 0, 5, 2);
    ask(&mut readout, ms(0), 0, 6, 2);
    run(&mut readout, ms(3));
    assert_eq!(answers(&mut readout), []);
    readout.handle_fragments(ms(3), L1Id(5), Bytes::new(2_000));
    run(&mut readout, ms(9));
    assert_eq!(answers(&mut readout), [(Peer::Collector(0), 5, 2_000, 0)]);
    run(&mut readout, ms(10));
    assert_eq!(answers(&mut readout), [(Peer::Collector(0), 6, 0, 2)]);
}

#[test]
fn a_full_memory_stops_the_trigger() {
    let config = ReadoutConfig { memory: Some(Bytes::new(30_000)), ..ReadoutConfig::default() };
    let mut readout = Readout::new(config, KILOBYTE).unwrap();
    readout.handle_connected(ms(0), Peer::Supervisor);
    let flow = |readout: &mut Readout<Bytes, UniformSource>| drain!(readout.poll_transmit());
    for event in 0..3 {
        assert!(!readout.is_full());
        assert_eq!(flow(&mut readout), []);
        readout.handle_fragments(ms(event), L1Id(event), Bytes::new(10_000));
    }
    assert!(readout.is_full());
    assert_eq!(
        (readout.counters().xoff_time, readout.xoff_time(ms(5))),
        (Duration::ZERO, Duration::from_millis(3))
    );
    assert_eq!(flow(&mut readout), [(Peer::Supervisor, Message::Flow { stop: true })]);
    // A new supervisor receives XOFF.
    readout.handle_closed(ms(3), Peer::Supervisor);
    readout.handle_connected(ms(4), Peer::Supervisor);
    assert_eq!(flow(&mut readout), [(Peer::Supervisor, Message::Flow { stop: true })]);
    clear(&mut readout, ms(7), &[1]);
    assert_eq!(flow(&mut readout), [(Peer::Supervisor, Message::Flow { stop: false })]);
    let counters = readout.counters();
    assert_eq!((counters.xoffs, counters.xoff_time), (1, Duration::from_millis(5)));
}

#[test]
fn a_readout_that_stops_waits_until_its_fragments_are_deleted() {
    let memory = Some(Bytes::new(2_000));
    let mut readout = Readout::new(ReadoutConfig { memory, ..ReadoutConfig::default() }, KILOBYTE).unwrap();
    readout.handle_connected(ms(0), Peer::Supervisor);
    assert!(readout.handle_fragments(ms(0), L1Id(1), Bytes::new(1_000)));
    readout.handle_stop();
    readout.handle_stop();
    assert_eq!(drain!(readout.poll_transmit()), [(Peer::Supervisor, Message::Flow { stop: true })]);
    // Another event was assigned before; memory is full, and no longer full.
    assert!(readout.handle_fragments(ms(1), L1Id(2), Bytes::new(1_000)));
    clear(&mut readout, ms(2), &[1]);
    assert!(!readout.is_idle());
    readout.handle_closed(ms(2), Peer::Supervisor);
    assert!(readout.is_idle(), "no supervisor deletes them");
    readout.handle_connected(ms(2), Peer::Supervisor);
    assert_eq!(drain!(readout.poll_transmit()), [(Peer::Supervisor, Message::Flow { stop: true })]);
    assert!(!readout.is_idle());
    clear(&mut readout, ms(3), &[2]);
    assert!(readout.is_idle());
    assert_eq!(drain!(readout.poll_transmit()), []);
}

#[test]
fn too_long_a_history_is_full_too() {
    let config =
        ReadoutConfig { memory: Some(Bytes::new(30_000)), events_max: 4, ..ReadoutConfig::default() };
    let mut readout = Readout::new(config, KILOBYTE).unwrap();
    assert!(readout.handle_fragments(ms(0), L1Id(0), Bytes::new(1)));
    assert!(readout.handle_fragments(ms(0), L1Id(3), Bytes::new(1)));
    assert!(readout.is_full());
    assert!(!readout.handle_fragments(ms(0), L1Id(4), Bytes::new(1)));
    clear(&mut readout, ms(0), &[0]);
    assert!(!readout.is_full());
    assert!(readout.handle_fragments(ms(0), L1Id(4), Bytes::new(1)));
}

#[test]
fn no_collector_gets_the_answers_of_a_lost_connection() {
    let response_delay = Delay::Constant(Duration::from_micros(200));
    let mut readout =
        Readout::new(ReadoutConfig { response_delay, ..ReadoutConfig::default() }, KILOBYTE).unwrap();
    ask(&mut readout, us(0), 0, 1, 1);
    readout.handle_closed(us(10), Peer::Collector(0));
    readout.handle_closed(us(10), Peer::Collector(0));
    readout.handle_connected(us(20), Peer::Collector(0));
    ask(&mut readout, us(30), 0, 2, 1);
    readout.handle_deadline(us(300));
    assert_eq!(answers(&mut readout), [(Peer::Collector(0), 2, 1_000, 0)]);
    assert_eq!(readout.counters().undeliverable, 1);
}

#[test]
fn nonsense_is_refused() {
    let response_delay = Delay::Constant(Duration::from_micros(200));
    let config = ReadoutConfig { response_delay, answers_max: 1, ..ReadoutConfig::default() };
    let mut readout = Readout::new(config.clone(), KILOBYTE).unwrap();
    let request = |count| Message::Request { tag: 0, event: L1Id(0), fragments: FragmentSet::first(count) };
    let mut why = |peer, message| readout.handle_message(us(0), peer, message).map_err(|error| error.why);
    assert_eq!(why(Peer::Collector(0), request(0)), Err("it asks for nothing"));
    assert!(why(Peer::Logger(0), request(1)).is_err());
    assert_eq!(why(Peer::Collector(0), request(1)), Ok(()));
    assert_eq!(why(Peer::Collector(0), request(1)), Err("too many answers are in preparation"));
    let error = |config| Readout::<Bytes, _>::new(config, KILOBYTE).err();
    assert_eq!(
        error(ReadoutConfig { memory: Some(Bytes::ZERO), ..config.clone() }),
        Some(ReadoutError::NoMemory)
    );
    assert_eq!(error(ReadoutConfig { events_max: 0, ..config.clone() }), Some(ReadoutError::NoMemory));
    assert_eq!(error(ReadoutConfig { answers_max: 0, ..config }), Some(ReadoutError::NoAnswers));
}
