use fanin_dataflow::{
    EventStep, EventStream, L1Id, Logger, LoggerConfig, LoggerError, Message, Peer, WriteModel,
};
use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::{drain, ms};

fn handle(logger: &mut Logger<Bytes>, now: Instant, collector: u16, message: Message<Bytes>) {
    logger.handle_message(now, Peer::Collector(collector), message).unwrap();
}

fn offer(event: u64, size: u64) -> Message<Bytes> {
    Message::Offer { event: L1Id(event), size: Bytes::new(size) }
}

fn full(event: u64, size: u64) -> Message<Bytes> {
    Message::Event { event: L1Id(event), stream: EventStream::Physics, missing: 0, payload: Bytes::new(size) }
}

fn said(logger: &mut Logger<Bytes>) -> Vec<(u16, &'static str)> {
    drain!(logger.poll_transmit())
        .into_iter()
        .map(|(peer, message)| match peer {
            Peer::Collector(collector) => (collector, message.name()),
            other => panic!("a message to {other}"),
        })
        .collect()
}

#[test]
fn events_are_granted_as_memory_allows_and_answered_when_stored() {
    let config = LoggerConfig { logger_memory: Bytes::new(25_000), ..LoggerConfig::default() };
    let mut logger = Logger::new(config).unwrap();
    for (collector, event) in [(0, 1), (1, 2), (2, 3)] {
        handle(&mut logger, ms(0), collector, offer(event, 10_000));
    }
    assert_eq!(said(&mut logger), [(0, "grant"), (1, "grant")]);
    handle(&mut logger, ms(1), 0, full(1, 10_000));
    assert_eq!(said(&mut logger), []);
    let job = logger.poll_write().unwrap();
    assert_eq!((job.event, job.collector, job.payload), (L1Id(1), 0, Bytes::new(10_000)));
    logger.handle_stored(ms(5), job.id);
    logger.handle_stored(ms(5), job.id);
    assert_eq!(said(&mut logger), [(0, "stored"), (2, "grant")]);
    let records = drain!(logger.poll_record());
    let stored = EventStep::Stored { collector: 0, stream: EventStream::Physics, missing: 0 };
    assert_eq!(records.iter().map(|record| record.step).collect::<Vec<_>>(), [stored]);
    // A lost collector does not keep its place in the queue.
    logger.handle_closed(ms(6), Peer::Collector(1));
    handle(&mut logger, ms(7), 2, Message::Withdraw { event: L1Id(3) });
    assert_eq!(logger.counters().held, 0);
    // A single event is always accepted.
    handle(&mut logger, ms(7), 2, offer(9, 1_000_000));
    assert_eq!(said(&mut logger), [(2, "grant")]);
}

#[test]
fn a_disk_takes_its_time() {
    let write = WriteModel::Timed { rate: Rate::new(800_000_000), latency: Duration::from_millis(2) };
    let mut logger = Logger::new(LoggerConfig { write, ..LoggerConfig::default() }).unwrap();
    for event in [1, 2] {
        handle(&mut logger, ms(0), 0, offer(event, 100_000));
        handle(&mut logger, ms(0), 0, full(event, 100_000));
    }
    assert_eq!(logger.poll_deadline(), Some(ms(3)));
    logger.handle_deadline(ms(3));
    assert_eq!(logger.poll_deadline(), Some(ms(4)));
    logger.handle_deadline(ms(4));
    assert_eq!((logger.counters().stored, logger.counters().bytes, logger.unwritten()), (2, 200_000, 0));
}

#[test]
fn a_full_disk_turns_events_away() {
    let mut logger =
        Logger::new(LoggerConfig { logger_memory: Bytes::new(10_000), ..LoggerConfig::default() }).unwrap();
    handle(&mut logger, ms(0), 0, offer(1, 10_000));
    handle(&mut logger, ms(0), 0, full(1, 10_000));
    handle(&mut logger, ms(0), 1, offer(2, 10_000));
    assert_eq!(said(&mut logger), [(0, "grant")]);
    logger.handle_disk_full(true);
    let job = logger.poll_write().unwrap();
    logger.handle_store_failed(job.id);
    handle(&mut logger, ms(1), 1, offer(3, 10_000));
    assert_eq!(said(&mut logger), [(1, "refuse"), (0, "refuse"), (1, "refuse")]);
    logger.handle_disk_full(false);
    handle(&mut logger, ms(2), 1, offer(3, 10_000));
    assert_eq!(said(&mut logger), [(1, "grant")]);
    assert_eq!((logger.counters().refused, logger.counters().failed, logger.counters().stored), (2, 1, 0));
}

/// The refusal of a copy that could not be written crosses a new offer of the event, which its collector takes for refused.
#[test]
fn an_offer_that_a_refusal_crossed_stands() {
    let config = LoggerConfig { logger_memory: Bytes::new(1_000), ..LoggerConfig::default() };
    let mut logger = Logger::new(config).unwrap();
    handle(&mut logger, ms(0), 0, offer(1, 900));
    handle(&mut logger, ms(1), 0, full(1, 900));
    handle(&mut logger, ms(2), 0, offer(1, 900));
    let failed = logger.poll_write().unwrap().id;
    logger.handle_store_failed(failed);
    // The collector's answer to the refusal comes after the grant of its second offer.
    handle(&mut logger, ms(3), 0, offer(1, 900));
    assert_eq!(said(&mut logger), [(0, "grant"), (0, "refuse"), (0, "grant")]);
    handle(&mut logger, ms(4), 0, full(1, 900));
    let job = logger.poll_write().unwrap();
    logger.handle_stored(ms(5), job.id);
    assert_eq!(said(&mut logger), [(0, "stored")]);
    assert_eq!(logger.counters().held, 0);
}

#[test]
fn nonsense_is_refused() {
    let mut logger = Logger::new(LoggerConfig::default()).unwrap();
    assert!(logger.handle_message(ms(0), Peer::Readout(0), offer(2, 10)).is_err());
    // An event without a grant is refused.
    handle(&mut logger, ms(0), 0, full(7, 10));
    assert_eq!(said(&mut logger), [(0, "refuse")]);
    assert!(logger.poll_write().is_none());
    let write = WriteModel::Timed { rate: Rate::ZERO, latency: Duration::ZERO };
    let config = LoggerConfig { write, ..LoggerConfig::default() };
    assert_eq!(Logger::<Bytes>::new(config).err(), Some(LoggerError::NoRate));
}
