use fanin_dataflow::{
    ClearConfig, Collector, CollectorConfig, EventStream, L1Id, Message, Peer, Selection, UnitModel, WaitsFor,
};
use fanin_units::{Bytes, Duration, Ratio};

use crate::collector::{answer_all, assign, config, connected, from_logger, said, step};
use crate::{drain, ms};

#[test]
fn loggers_take_turns_and_stand_in_for_each_other() {
    let model = UnitModel::Steps(vec![step(Selection::Rest, Ratio::ONE)]);
    let clear = Some(ClearConfig { clear_group: 1, delay_max: Duration::ZERO });
    let mut collector = connected(CollectorConfig { model, loggers: 2, clear, ..config() });
    let accept = |collector: &mut Collector<Bytes>, now: u64, event| {
        assign(collector, ms(now), event, 0);
        answer_all(collector, ms(now));
        collector.handle_deadline(ms(now + 10));
    };
    let event = L1Id(1);
    accept(&mut collector, 0, 1);
    assert!(said(&mut collector).contains(&(Peer::Logger(0), "offer")));
    from_logger(&mut collector, ms(11), 0, Message::Grant { event });
    assert_eq!(said(&mut collector), [(Peer::Logger(0), "event")]);
    // The logger is lost with the event: the other one gets an offer, and nothing is cleared before the event is on its
    // disk.
    collector.handle_closed(ms(12), Peer::Logger(0));
    collector.handle_closed(ms(12), Peer::Logger(0));
    assert_eq!(said(&mut collector), [(Peer::Logger(1), "offer")]);
    from_logger(&mut collector, ms(13), 1, Message::Refuse { event });
    assert_eq!(said(&mut collector), []);
    assert_eq!(collector.waits().collect::<Vec<_>>(), [(event, WaitsFor::Logger(None))]);
    // All loggers refused: it offers again after a pause.
    assert_eq!(collector.poll_deadline(), Some(ms(113)));
    collector.handle_deadline(ms(113));
    assert_eq!(said(&mut collector), [(Peer::Logger(1), "offer")]);
    from_logger(&mut collector, ms(114), 1, Message::Grant { event });
    drain!(collector.poll_transmit());
    from_logger(&mut collector, ms(115), 1, Message::Stored { event, stream: EventStream::Physics });
    let end = said(&mut collector);
    assert_eq!(end.iter().filter(|(_, name)| *name == "clear").count(), 4);
    assert!(end.contains(&(Peer::Supervisor, "done")));
    assert_eq!(collector.counters().reshipped, 1);
    // A grant for an event that is no longer here is answered with a withdrawal.
    from_logger(&mut collector, ms(116), 1, Message::Grant { event });
    assert_eq!(said(&mut collector), [(Peer::Logger(1), "withdraw")]);
    // Without any logger, events wait for one.
    collector.handle_closed(ms(120), Peer::Logger(1));
    accept(&mut collector, 120, 2);
    assert!(!said(&mut collector).iter().any(|(peer, _)| matches!(peer, Peer::Logger(_))));
    collector.handle_connected(ms(150), Peer::Logger(0));
    assert_eq!(said(&mut collector), [(Peer::Logger(0), "offer")]);
}

#[test]
fn an_event_that_loggers_refuse_again_and_again_goes_round_less_often() {
    let model = UnitModel::Steps(vec![step(Selection::Rest, Ratio::ONE)]);
    let mut collector = connected(CollectorConfig { model, loggers: 2, clear: None, ..config() });
    assign(&mut collector, ms(0), 1, 0);
    answer_all(&mut collector, ms(0));
    collector.handle_deadline(ms(10));
    let (event, mut now, mut pauses) = (L1Id(1), 10, Vec::new());
    for _ in 0..7 {
        // Each logger receives the event, and refuses it: its proof is by a key that the logger does not have.
        for _ in 0..2 {
            let offered = said(&mut collector);
            let Some(&(Peer::Logger(logger), "offer")) = offered.last() else { panic!("{offered:?}") };
            from_logger(&mut collector, ms(now), logger, Message::Grant { event });
            assert_eq!(said(&mut collector), [(Peer::Logger(logger), "event")]);
            from_logger(&mut collector, ms(now), logger, Message::Refuse { event });
        }
        let next = collector.poll_deadline().unwrap();
        pauses.push((next - ms(now)).get() / 1_000_000_000);
        now += pauses[pauses.len() - 1];
        collector.handle_deadline(next);
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1600, 1600, 1600]);
    // Refused offers, as with full disks, do not lengthen the pause of another event.
    drain!(collector.poll_transmit());
    assign(&mut collector, ms(now), 2, 1);
    answer_all(&mut collector, ms(now));
    collector.handle_deadline(ms(now + 10));
    for round in 0..3 {
        let at = now + 10 + round * 100;
        for logger in [0, 1, 0, 1] {
            from_logger(&mut collector, ms(at), logger, Message::Refuse { event: L1Id(2) });
        }
        assert_eq!(collector.poll_deadline(), Some(ms(at + 100)));
        collector.handle_deadline(ms(at + 100));
    }
}
