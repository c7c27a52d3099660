//! Events that no logger can write as they are. They must not be offered for ever.

use fanin_dataflow::{
    CollectionStep, CollectorConfig, Delay, EventStep, EventStream, FragmentSet, L1Id, Logger, LoggerConfig,
    Message, Outcome, Peer, Selection,
};
use fanin_units::{Bytes, Ratio};

use crate::collector::{assign, config, connected, requests};
use crate::{drain, ms};

#[test]
fn an_event_too_large_for_a_message_is_stored_without_its_fragments() {
    let accept =
        CollectionStep { collect: Selection::Rest, processing_time: Delay::ZERO, accept: Ratio::ONE };
    let model = fanin_dataflow::UnitModel::Steps(vec![accept]);
    let limit = |event_max| CollectorConfig { model: model.clone(), loggers: 1, event_max, ..config() };
    for (event_max, is_whole) in
        [(None, true), (Some(Bytes::new(3_000)), true), (Some(Bytes::new(2_999)), false)]
    {
        let mut collector = connected(limit(event_max));
        assign(&mut collector, ms(1), 7, 0);
        for (readout, tag, event, fragments) in requests(&mut collector) {
            assert!(!fragments.is_empty());
            let (missing, payload) = (FragmentSet::EMPTY, Bytes::new(1_000));
            let answer = Message::Answer { tag, event, missing, payload };
            collector.handle_message(ms(2), Peer::Readout(readout), answer).unwrap();
        }
        collector.handle_deadline(ms(2));
        collector.handle_message(ms(3), Peer::Logger(0), Message::Grant { event: L1Id(7) }).unwrap();
        let sent = drain!(collector.poll_transmit()).into_iter().find_map(|(_, message)| match message {
            Message::Event { stream, missing, payload, .. } => Some((stream, missing, payload)),
            _ => None,
        });
        let counters = *collector.counters();
        let records = drain!(collector.poll_record());
        let too_large = records.iter().position(|record| matches!(record.step, EventStep::TooLarge { .. }));
        let missing: u32 = records
            .iter()
            .map(|record| match record.step {
                EventStep::Missing { fragments, .. } => u32::from(fragments),
                _ => 0,
            })
            .sum();
        if is_whole {
            assert_eq!(sent, Some((EventStream::Physics, 0, Bytes::new(3_000))));
            assert_eq!((counters.too_large, counters.missing, missing, too_large), (0, 0, 0, None));
            continue;
        }
        assert_eq!(sent, Some((EventStream::Debug, 24, Bytes::ZERO)));
        assert_eq!((counters.too_large, counters.missing, missing), (1, 24, 24));
        // The reason stands in front of the fragments that it costs.
        let too_large = too_large.unwrap();
        let step = EventStep::TooLarge { bytes: Bytes::new(3_000), limit: Bytes::new(2_999) };
        assert_eq!(records[too_large].step, step);
        assert!(matches!(records[too_large + 1].step, EventStep::Missing { .. }), "{records:?}");
        let stored = Message::Stored { event: L1Id(7), stream: EventStream::Debug };
        collector.handle_message(ms(4), Peer::Logger(0), stored).unwrap();
        let done = drain!(collector.poll_transmit()).into_iter().find_map(|(_, message)| match message {
            Message::Done(done) => Some(done.outcome),
            _ => None,
        });
        assert_eq!(done, Some(Outcome::Debug));
        collector.check_invariants();
    }
}

#[test]
fn a_logger_reports_an_event_with_stand_ins_in_the_debug_stream() {
    let mut logger = Logger::new(LoggerConfig::default()).unwrap();
    let (event, from) = (L1Id(7), Peer::Collector(2));
    logger.handle_message(ms(0), from, Message::Offer { event, size: Bytes::new(900) }).unwrap();
    let (stream, payload) = (EventStream::Physics, Bytes::new(900));
    logger.handle_message(ms(1), from, Message::Event { event, stream, missing: 2, payload }).unwrap();
    let job = logger.poll_write().unwrap();
    drain!(logger.poll_transmit());
    logger.handle_stand_in(ms(2), job.id, 3);
    let stream = EventStream::Debug;
    assert_eq!(drain!(logger.poll_transmit()), [(from, Message::Stored { event, stream })]);
    let steps: Vec<EventStep> = drain!(logger.poll_record()).iter().map(|record| record.step).collect();
    let stored = EventStep::Stored { collector: 2, stream, missing: 5 };
    assert_eq!(steps, [EventStep::StandIns { fragments: 3 }, stored]);
    let counters = *logger.counters();
    assert_eq!((counters.stored, counters.debug, counters.stand_ins, counters.held), (1, 1, 1, 0));
    logger.check_invariants();
}
