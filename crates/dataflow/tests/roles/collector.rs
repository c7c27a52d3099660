use fanin_dataflow::{
    ClearConfig, CollectionStep, Collector, CollectorConfig, CollectorError, CreditDiscipline, Decision,
    Delay, EventStep, EventStream, FragmentSet, L1Id, Message, Outcome, PacedCreditsConfig, Peer,
    RequestOrder, Selection, UnitCommand, UnitModel, UnitState, WaitsFor, Wanted,
};
use fanin_units::{Bytes, Duration, Instant, Rate, Ratio};

use crate::{drain, ms};

/// Two units and four readouts with 12, 4, 0 and 8 fragments.
pub(crate) fn config() -> CollectorConfig {
    CollectorConfig { units: 2, readouts: vec![12, 4, 0, 8], clear: None, ..CollectorConfig::default() }
}

pub(crate) fn step(collect: Selection, accept: Ratio) -> CollectionStep {
    CollectionStep { collect, processing_time: Delay::Constant(Duration::from_millis(10)), accept }
}

fn share(percent: u64) -> Ratio {
    Ratio::new(percent * 10_000)
}

/// A collector with all its connections.
pub(crate) fn connected(config: CollectorConfig) -> Collector<Bytes> {
    let (readouts, loggers) = (config.readouts.len() as u16, config.loggers);
    let mut collector = Collector::new(config).unwrap();
    (0..readouts).for_each(|readout| collector.handle_connected(ms(0), Peer::Readout(readout)));
    (0..loggers).for_each(|logger| collector.handle_connected(ms(0), Peer::Logger(logger)));
    collector.handle_connected(ms(0), Peer::Supervisor);
    welcome(&mut collector, &[]);
    drain!(collector.poll_transmit());
    collector
}

fn welcome(collector: &mut Collector<Bytes>, events: &[u64]) {
    let events: Vec<L1Id> = events.iter().map(|&event| L1Id(event)).collect();
    collector.handle_message(ms(0), Peer::Supervisor, Message::Welcome(events.into())).unwrap();
}

pub(crate) fn assign(collector: &mut Collector<Bytes>, now: Instant, event: u64, unit: u16) {
    assign_with(collector, now, event, unit, false, Selection::Rest);
}

fn assign_with(
    collector: &mut Collector<Bytes>,
    now: Instant,
    event: u64,
    unit: u16,
    direct: bool,
    region: Selection,
) {
    let message = Message::Assign { event: L1Id(event), unit, direct, region, result: Bytes::new(1_000) };
    collector.handle_message(now, Peer::Supervisor, message).unwrap();
}

/// A request: readout, tag, event, fragments.
pub(crate) type Request = (u16, u32, L1Id, FragmentSet);

pub(crate) fn requests(collector: &mut Collector<Bytes>) -> Vec<Request> {
    drain!(collector.poll_transmit())
        .into_iter()
        .filter_map(|(peer, message)| match (peer, message) {
            (Peer::Readout(readout), Message::Request { tag, event, fragments }) => {
                Some((readout, tag, event, fragments))
            }
            _ => None,
        })
        .collect()
}

/// The readout and number of fragments of each request.
fn asked(requests: &[Request]) -> Vec<(u16, u16)> {
    requests.iter().map(|request| (request.0, request.3.len())).collect()
}

pub(crate) fn answer(collector: &mut Collector<Bytes>, now: Instant, request: Request) {
    let payload = Bytes::new(1_000 * u64::from(request.3.len()));
    let message = Message::Answer { tag: request.1, event: request.2, missing: FragmentSet::EMPTY, payload };
    collector.handle_message(now, Peer::Readout(request.0), message).unwrap();
}

/// Answers all requests, until none is left.
pub(crate) fn answer_all(collector: &mut Collector<Bytes>, now: Instant) -> Vec<Request> {
    let mut all = Vec::new();
    loop {
        let round = requests(collector);
        if round.is_empty() {
            return all;
        }
        round.iter().for_each(|&request| answer(collector, now, request));
        all.extend(round);
    }
}

/// The peer and name of each message to roles other than readouts.
pub(crate) fn said(collector: &mut Collector<Bytes>) -> Vec<(Peer, &'static str)> {
    drain!(collector.poll_transmit()).into_iter().map(|(peer, message)| (peer, message.name())).collect()
}

pub(crate) fn from_logger(
    collector: &mut Collector<Bytes>,
    now: Instant,
    logger: u16,
    message: Message<Bytes>,
) {
    collector.handle_message(now, Peer::Logger(logger), message).unwrap();
}

#[test]
fn an_event_is_collected_processed_and_rejected() {
    let model = UnitModel::Steps(vec![step(Selection::Rest, Ratio::ZERO)]);
    let mut collector = connected(CollectorConfig { model, trace_requests: true, ..config() });
    assign(&mut collector, ms(1), 7, 1);
    let round = requests(&mut collector);
    assert_eq!(asked(&round), [(0, 12), (1, 4), (3, 8)]);
    assert_eq!(collector.waits().collect::<Vec<_>>(), [(L1Id(7), WaitsFor::Fragments { requests: 3 })]);
    for (request, at) in round.into_iter().zip([5, 9, 20]) {
        answer(&mut collector, ms(at), request);
    }
    assert_eq!(collector.waits().collect::<Vec<_>>(), [(L1Id(7), WaitsFor::Decision { unit: 1 })]);
    assert_eq!(collector.event_of(1), Some((L1Id(7), &Bytes::new(1_000), &Bytes::new(24_000))));
    assert_eq!(collector.poll_deadline(), Some(ms(30)));
    collector.handle_deadline(ms(30));
    let done = Some(fanin_dataflow::FinishedEvent { event: L1Id(7), outcome: Outcome::Rejected });
    let ready = Message::Ready { unit: 1, done };
    assert_eq!(collector.poll_transmit(), Some((Peer::Supervisor, ready)));
    let records = drain!(collector.poll_record());
    let collected = EventStep::Collected {
        step: 0,
        building: false,
        began: ms(1),
        first_request: ms(1),
        requests: 3,
        bytes: Bytes::new(24_000),
        missing: 0,
    };
    assert!(records.iter().any(|record| record.at == ms(20) && record.step == collected));
    assert_eq!(records.iter().filter(|record| matches!(record.step, EventStep::Answered { .. })).count(), 3);
    assert_eq!(collector.waits().count(), 0);
}

#[test]
fn a_collector_that_stops_finishes_its_events_and_announces_no_unit() {
    let mut collector = connected(config());
    assign(&mut collector, ms(0), 7, 0);
    collector.handle_stop();
    assert_eq!(said(&mut collector).last(), Some(&(Peer::Supervisor, "flow")));
    assign(&mut collector, ms(0), 8, 1);
    assert!(!collector.has_left(), "the supervisor has not answered");
    welcome(&mut collector, &[]);
    assert!(collector.has_left());
    collector.handle_closed(ms(0), Peer::Supervisor);
    collector.handle_connected(ms(0), Peer::Supervisor);
    let hello = drain!(collector.poll_transmit()).into_iter().find(|(_, message)| message.name() == "hello");
    let Some((_, Message::Hello(hello))) = hello else { panic!("{hello:?}") };
    assert_eq!((hello.idle.len(), hello.busy.len()), (0, 2));
    welcome(&mut collector, &[]);
    assert!(!collector.has_left());
    welcome(&mut collector, &[]);
    assert!(collector.has_left() && collector.waits().count() == 2);
    collector.check_invariants();
}

#[test]
fn requests_keep_their_order() {
    let order = |request_order| {
        let mut collector = connected(CollectorConfig {
            request_order,
            first_readout: 25,
            readouts: vec![1; 40],
            ..config()
        });
        assign(&mut collector, ms(0), 0, 0);
        asked(&requests(&mut collector)).iter().map(|one| one.0).collect::<Vec<_>>()
    };
    let fixed: Vec<u16> = (0..40).collect();
    assert_eq!(order(RequestOrder::Fixed), fixed);
    let rotated: Vec<u16> = (25..40).chain(0..25).collect();
    assert_eq!(order(RequestOrder::Rotated), rotated);
    let mut random = order(RequestOrder::Random);
    assert_ne!(random, fixed);
    random.sort_unstable();
    assert_eq!(random, fixed);
}

#[test]
fn credits_hold_requests_back() {
    let mut collector = connected(CollectorConfig { credits: Some(16), ..config() });
    assign(&mut collector, ms(0), 1, 0);
    assign(&mut collector, ms(0), 2, 1);
    let round = requests(&mut collector);
    assert_eq!(asked(&round), [(0, 12), (1, 4)]);
    assert_eq!((collector.credits_used(), collector.requests_waiting()), (16, 4));
    // 4 credits are not enough for the 8 fragments of readout 3; the requests behind it wait, too.
    answer(&mut collector, ms(3), round[1]);
    assert_eq!(requests(&mut collector), []);
    answer(&mut collector, ms(5), round[0]);
    let round = requests(&mut collector);
    assert_eq!(asked(&round), [(3, 8)]);
    assert_eq!(collector.counters().wait_time, Duration::from_millis(5));
    round.iter().for_each(|&request| answer(&mut collector, ms(6), request));
    answer_all(&mut collector, ms(7));
    assert_eq!((collector.credits_used(), collector.requests_waiting()), (0, 0));
    // First-fit lets the small request pass: 12 + 4 are out, and then the other event's 4 instead of the 8.
    let mut collector =
        connected(CollectorConfig { credits: Some(16), discipline: CreditDiscipline::FirstFit, ..config() });
    assign(&mut collector, ms(0), 1, 0);
    assign(&mut collector, ms(0), 2, 1);
    let round = requests(&mut collector);
    answer(&mut collector, ms(3), round[1]);
    assert_eq!(asked(&requests(&mut collector)), [(1, 4)]);
}

#[test]
fn steps_never_ask_for_a_fragment_twice() {
    let steps = vec![
        step(Selection::Region, Ratio::ONE),
        step(Selection::Fragments(share(50)), Ratio::ONE),
        step(Selection::Readouts(share(34)), Ratio::ONE),
        step(Selection::Rest, Ratio::ZERO),
    ];
    let mut collector = connected(CollectorConfig { model: UnitModel::Steps(steps), ..config() });
    let region = [(3, FragmentSet::from_bits(0b110)), (9, FragmentSet::first(1)), (1, FragmentSet::first(2))]
        .map(|(readout, fragments)| Wanted { readout, fragments });
    assign_with(&mut collector, ms(0), 1, 0, false, Selection::List(region.into()));
    let mut seen = [FragmentSet::EMPTY; 4];
    let (mut sizes, mut now) = (Vec::new(), ms(1));
    for _ in 0..4 {
        let round = answer_all(&mut collector, now);
        for request in &round {
            let readout = usize::from(request.0);
            assert!(seen[readout].intersection(request.3).is_empty());
            seen[readout] = seen[readout].union(request.3);
        }
        sizes.push(asked(&round));
        now = now.max(collector.poll_deadline().unwrap());
        collector.handle_deadline(now);
    }
    // The region; half of each readout's; all that is left of two readouts, a third of three rounded up; the rest.
    assert_eq!(sizes[0], [(3, 2), (1, 2)]);
    assert_eq!(sizes[1], [(0, 6), (1, 2), (3, 4)]);
    assert_eq!(sizes[2], [(0, 6), (3, 2)]);
    assert_eq!(sizes[3], []);
    assert_eq!(seen.map(FragmentSet::len), [12, 4, 0, 8]);
    assert_eq!(collector.counters().bytes, 24_000);
}

#[test]
fn a_real_unit_asks_for_more_and_accepts() {
    let model = UnitModel::External(Selection::Readouts(share(30)));
    let mut collector = connected(CollectorConfig { model, loggers: 1, ..config() });
    assert_eq!(collector.unit(0).map(fanin_dataflow::ProcessingUnit::state), Some(UnitState::Down));
    collector.handle_unit_up(ms(0), 0);
    collector.handle_unit_up(ms(0), 0);
    assert_eq!(said(&mut collector), [(Peer::Supervisor, "ready")]);
    assign(&mut collector, ms(1), 5, 0);
    assert_eq!(asked(&answer_all(&mut collector, ms(2))), [(0, 12)]);
    let process = |step| Some(UnitCommand::Process { unit: 0, event: L1Id(5), step });
    assert_eq!(collector.poll_unit(), process(0));
    assert!(!collector.handle_decision(ms(3), 0, L1Id(6), Decision::Reject));
    assert!(!collector.handle_decision(ms(3), 1, L1Id(5), Decision::Reject));
    let more = Decision::Collect(Selection::Readouts(share(30)));
    assert!(collector.handle_decision(ms(3), 0, L1Id(5), more));
    assert!(!collector.handle_decision(ms(3), 0, L1Id(5), Decision::Reject));
    assert_eq!(asked(&answer_all(&mut collector, ms(4))), [(1, 4)]);
    assert_eq!(collector.poll_unit(), process(1));
    assert!(collector.handle_decision(ms(5), 0, L1Id(5), Decision::Accept));
    // The unit is free at once. The event is completed, offered and sent, and done when it is on disk.
    let mut messages = drain!(collector.poll_transmit());
    let request = messages.iter().position(|(peer, _)| *peer == Peer::Readout(3)).unwrap();
    let (_, Message::Request { tag, event, fragments }) = messages.remove(request) else { panic!() };
    assert!(matches!(messages[..], [(Peer::Supervisor, Message::Ready { unit: 0, done: None })]));
    answer(&mut collector, ms(6), (3, tag, event, fragments));
    let offer = Message::Offer { event, size: Bytes::new(24_000) };
    assert_eq!(drain!(collector.poll_transmit()), [(Peer::Logger(0), offer)]);
    from_logger(&mut collector, ms(7), 0, Message::Grant { event });
    let full =
        Message::Event { event, stream: EventStream::Physics, missing: 0, payload: Bytes::new(24_000) };
    assert_eq!(drain!(collector.poll_transmit()), [(Peer::Logger(0), full)]);
    from_logger(&mut collector, ms(8), 0, Message::Stored { event, stream: EventStream::Physics });
    let done = Message::Done(fanin_dataflow::FinishedEvent { event, outcome: Outcome::Stored });
    assert_eq!(drain!(collector.poll_transmit()), [(Peer::Supervisor, done)]);
}

#[test]
fn a_crashed_or_slow_unit_leaves_its_event_to_the_debug_stream() {
    let model = UnitModel::External(Selection::Readouts(share(30)));
    let processor_timeout = Some(Duration::from_millis(50));
    let mut collector = connected(CollectorConfig { model, loggers: 1, processor_timeout, ..config() });
    collector.handle_unit_up(ms(0), 0);
    collector.handle_unit_up(ms(0), 1);
    assign(&mut collector, ms(1), 5, 0);
    assign(&mut collector, ms(1), 6, 1);
    answer_all(&mut collector, ms(2));
    drain!(collector.poll_unit());
    collector.handle_unit_lost(ms(10), 0);
    assert_eq!(asked(&answer_all(&mut collector, ms(11))), [(1, 4), (3, 8)]);
    assert_eq!(collector.poll_deadline(), Some(ms(52)));
    collector.handle_deadline(ms(52));
    assert_eq!(drain!(collector.poll_unit()), [UnitCommand::Kill { unit: 1 }]);
    answer_all(&mut collector, ms(53));
    for event in [5, 6] {
        from_logger(&mut collector, ms(60), 0, Message::Grant { event: L1Id(event) });
    }
    let streams: Vec<_> = drain!(collector.poll_transmit())
        .into_iter()
        .filter_map(|(_, message)| match message {
            Message::Event { stream, .. } => Some(stream),
            _ => None,
        })
        .collect();
    assert_eq!(streams, [EventStream::Debug, EventStream::Debug]);
    // Nothing was announced: both units are down until the driver reports them up.
    collector.handle_unit_up(ms(70), 1);
    assert_eq!(said(&mut collector), [(Peer::Supervisor, "ready")]);
    assert_eq!(collector.counters().units_lost, 2);
}

#[test]
fn a_lost_readout_is_waited_for_and_then_given_up() {
    let readout_wait = Duration::from_millis(100);
    let mut collector = connected(CollectorConfig { readout_wait, credits: Some(40), ..config() });
    assign(&mut collector, ms(1), 1, 0);
    let round = requests(&mut collector);
    collector.handle_closed(ms(2), Peer::Readout(0));
    collector.handle_closed(ms(2), Peer::Readout(0));
    assert_eq!(collector.credits_used(), 12);
    // The readout is back in time: the request is repeated, and the answer to the first one is ignored.
    collector.handle_connected(ms(50), Peer::Readout(0));
    let again = requests(&mut collector);
    assert_eq!(asked(&again), [(0, 12)]);
    answer(&mut collector, ms(51), round[0]);
    assert_eq!(collector.counters().stale_answers, 1);
    // The readout is lost again, and does not return.
    collector.handle_closed(ms(60), Peer::Readout(0));
    answer(&mut collector, ms(61), round[1]);
    answer(&mut collector, ms(61), round[2]);
    assert_eq!(collector.poll_deadline(), Some(ms(160)));
    collector.handle_deadline(ms(160));
    let records = drain!(collector.poll_record());
    let missing = EventStep::Missing { readout: 0, fragments: 12 };
    assert!(records.iter().any(|record| record.at == ms(160) && record.step == missing));
    assert!(
        records.iter().any(|record| matches!(record.step, EventStep::Collected { missing: 12, .. })),
        "{records:?}"
    );
    // From now on no request waits for it.
    assign(&mut collector, ms(170), 2, 1);
    assert_eq!(asked(&requests(&mut collector)), [(1, 4), (3, 8)]);
}

#[test]
fn requests_are_repeated_and_then_given_up() {
    let config =
        CollectorConfig { request_timeout: Some(Duration::from_millis(10)), request_retries: 1, ..config() };
    let mut collector = connected(config);
    assign(&mut collector, ms(0), 1, 0);
    let round = requests(&mut collector);
    answer(&mut collector, ms(1), round[0]);
    answer(&mut collector, ms(1), round[1]);
    assert_eq!(collector.poll_deadline(), Some(ms(10)));
    collector.handle_deadline(ms(10));
    assert_eq!(asked(&requests(&mut collector)), [(3, 8)]);
    // The first answer arrives after its request was given up; the second never arrives.
    answer(&mut collector, ms(11), round[2]);
    collector.handle_deadline(ms(20));
    let counters = collector.counters();
    assert_eq!((counters.retries, counters.stale_answers, counters.missing), (1, 1, 8));
    assert_eq!(collector.requests_pending(), 0);
}

#[test]
fn corrupted_answers_are_asked_for_again() {
    let mut collector = connected(CollectorConfig { request_retries: 1, readouts: vec![12], ..config() });
    assign(&mut collector, ms(0), 1, 0);
    let first = requests(&mut collector)[0];
    collector.handle_corrupted(ms(1), 3, first.1);
    collector.handle_corrupted(ms(1), 0, first.1);
    collector.handle_corrupted(ms(1), 0, first.1);
    let second = requests(&mut collector);
    assert_eq!(asked(&second), [(0, 12)]);
    collector.handle_corrupted(ms(2), 0, second[0].1);
    let counters = collector.counters();
    assert_eq!((counters.corrupted, counters.retries, counters.missing), (2, 1, 12));
}

#[test]
fn fragments_that_a_readout_does_not_have_are_counted() {
    let mut collector = connected(CollectorConfig { readouts: vec![12], ..config() });
    assign(&mut collector, ms(0), 1, 0);
    let (readout, tag, event, _) = requests(&mut collector)[0];
    let missing = FragmentSet::first(3);
    let message = Message::Answer { tag, event, missing, payload: Bytes::new(9_000) };
    collector.handle_message(ms(1), Peer::Readout(readout), message).unwrap();
    assert_eq!((collector.counters().missing, collector.counters().bytes), (3, 9_000));
}

#[test]
fn a_slow_logger_is_passed_over() {
    let model = UnitModel::Steps(vec![step(Selection::Rest, Ratio::ONE)]);
    let logger_timeout = Some(Duration::from_millis(20));
    let mut collector = connected(CollectorConfig { model, loggers: 2, logger_timeout, ..config() });
    assign(&mut collector, ms(0), 1, 0);
    answer_all(&mut collector, ms(0));
    collector.handle_deadline(ms(10));
    drain!(collector.poll_transmit());
    collector.handle_deadline(ms(30));
    assert_eq!(said(&mut collector), [(Peer::Logger(0), "withdraw"), (Peer::Logger(1), "offer")]);
    let event = L1Id(1);
    from_logger(&mut collector, ms(31), 1, Message::Grant { event });
    collector.handle_deadline(ms(50));
    assert_eq!(said(&mut collector), [(Peer::Logger(1), "event"), (Peer::Logger(0), "offer")]);
    // The report counts even if it is late: the event is on disk.
    from_logger(&mut collector, ms(51), 1, Message::Stored { event, stream: EventStream::Physics });
    assert_eq!(said(&mut collector), [(Peer::Logger(0), "withdraw"), (Peer::Supervisor, "done")]);
    assert_eq!(collector.waits().count(), 0);
}

#[test]
fn a_copy_of_an_earlier_life_ends_an_event_with_its_own_stream() {
    let mut collector = connected(CollectorConfig { loggers: 1, ..config() });
    let (event, region) = (L1Id(1), Selection::Rest);
    let again = Message::Assign { event, unit: 0, direct: true, region, result: Bytes::ZERO };
    collector.handle_message(ms(0), Peer::Supervisor, again).unwrap();
    answer_all(&mut collector, ms(0));
    from_logger(&mut collector, ms(1), 0, Message::Grant { event });
    let sent = drain!(collector.poll_transmit());
    assert!(
        sent.iter().any(|(_, message)| matches!(message, Message::Event { stream: EventStream::Debug, .. }))
    );
    // The logger has had the event since before the collector's restart. It is in the physics stream.
    from_logger(&mut collector, ms(2), 0, Message::Stored { event, stream: EventStream::Physics });
    let done = Message::Done(fanin_dataflow::FinishedEvent { event, outcome: Outcome::Stored });
    assert!(drain!(collector.poll_transmit()).contains(&(Peer::Supervisor, done)));
}

#[test]
fn storage_that_is_behind_holds_units_back() {
    let model = UnitModel::Steps(vec![step(Selection::Rest, Ratio::ONE)]);
    let mut collector = connected(CollectorConfig { model, loggers: 1, shipping_max: 1, ..config() });
    assign(&mut collector, ms(0), 1, 0);
    answer_all(&mut collector, ms(0));
    collector.handle_deadline(ms(10));
    assert_eq!(said(&mut collector), [(Peer::Logger(0), "offer")]);
    let event = L1Id(1);
    from_logger(&mut collector, ms(11), 0, Message::Grant { event });
    from_logger(&mut collector, ms(12), 0, Message::Stored { event, stream: EventStream::Physics });
    let end = said(&mut collector);
    assert_eq!(end[1..], [(Peer::Supervisor, "done"), (Peer::Supervisor, "ready")]);
}

#[test]
fn readouts_hear_of_what_was_cleared_while_they_were_away() {
    let clear = Some(ClearConfig { clear_group: 10, delay_max: Duration::from_millis(5) });
    let mut collector = connected(CollectorConfig { clear, readout_wait: Duration::ZERO, ..config() });
    collector.handle_closed(ms(0), Peer::Readout(3));
    assign(&mut collector, ms(0), 1, 0);
    answer_all(&mut collector, ms(1));
    collector.handle_deadline(ms(1));
    drain!(collector.poll_transmit());
    // Without the supervisor, the event may belong to another collector by now.
    collector.handle_closed(ms(2), Peer::Supervisor);
    assert_eq!(collector.poll_deadline(), None);
    collector.handle_connected(ms(20), Peer::Supervisor);
    collector.handle_deadline(ms(20));
    assert_eq!(said(&mut collector), [(Peer::Supervisor, "hello")]);
    welcome(&mut collector, &[]);
    collector.handle_deadline(ms(20));
    let clears: Vec<_> = said(&mut collector).into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(clears, [Peer::Readout(0), Peer::Readout(1), Peer::Readout(2)]);
    collector.handle_connected(ms(30), Peer::Readout(3));
    assert_eq!(said(&mut collector), [(Peer::Readout(3), "clear")]);
}

#[test]
fn reassigned_events_are_forgotten() {
    let mut collector = connected(CollectorConfig { credits: Some(12), ..config() });
    assign(&mut collector, ms(0), 1, 0);
    assign(&mut collector, ms(0), 2, 1);
    let round = requests(&mut collector);
    collector.handle_closed(ms(1), Peer::Supervisor);
    collector.handle_connected(ms(2), Peer::Supervisor);
    let hello = drain!(collector.poll_transmit()).into_iter().find_map(|(_, message)| match message {
        Message::Hello(hello) => Some(hello),
        _ => None,
    });
    let hello = hello.unwrap();
    assert_eq!((hello.idle.len(), &hello.busy[..]), (0, &[L1Id(1), L1Id(2)][..]));
    welcome(&mut collector, &[1]);
    assert_eq!(said(&mut collector), [(Peer::Supervisor, "ready")]);
    assert_eq!(collector.credits_withdrawn(), 12);
    answer(&mut collector, ms(3), round[0]);
    assert_eq!(asked(&requests(&mut collector)), [(0, 12)], "its answer returned the credits");
    let counters = collector.counters();
    assert_eq!((counters.abandoned, counters.stale_answers, collector.waits().count()), (1, 1, 1));
}

#[test]
fn nonsense_is_refused() {
    let mut collector = connected(config());
    let assign = |unit| Message::Assign {
        event: L1Id(0),
        unit,
        direct: false,
        region: Selection::Rest,
        result: Bytes::ZERO,
    };
    let mut why =
        |peer, message| collector.handle_message(ms(0), peer, message).map_err(|unexpected| unexpected.why);
    assert_eq!(why(Peer::Supervisor, assign(2)), Err("there is no such unit"));
    assert_eq!(why(Peer::Supervisor, assign(0)), Ok(()));
    assert_eq!(why(Peer::Supervisor, assign(0)), Err("the unit was not announced"));
    assert_eq!(why(Peer::Logger(0), Message::Grant { event: L1Id(0) }), Err("there is no such logger"));
    assert!(why(Peer::Supervisor, Message::Welcome([].into())).is_err());
    let (_, tag, event, _) = requests(&mut collector)[0];
    let mut answer = |readout, event| {
        let message = Message::Answer { tag, event, missing: FragmentSet::EMPTY, payload: Bytes::ZERO };
        collector.handle_message(ms(0), Peer::Readout(readout), message).map_err(|unexpected| unexpected.why)
    };
    assert_eq!(answer(1, event), Err("another readout was asked"));
    assert_eq!(answer(0, L1Id(9)), Err("another event was asked for"));
    assert_eq!(answer(0, event), Ok(()));
}

#[test]
fn impossible_settings_are_refused() {
    let error = |config: CollectorConfig| Collector::<Bytes>::new(config).err();
    let credits = CollectorError::CreditsBelowRequest { credits: 11, readout: 0, fragments: 12 };
    assert_eq!(error(CollectorConfig { credits: Some(11), ..config() }), Some(credits));
    assert_eq!(error(CollectorConfig { credits: Some(12), ..config() }), None);
    let (rate, segment, frame) = (Rate::new(1_000), Bytes::new(1_448), Bytes::new(1_538));
    let paced_credits =
        Some(PacedCreditsConfig { rate, segment, frame, fragment: Bytes::ZERO, header: Bytes::new(22) });
    assert_eq!(
        error(CollectorConfig { credits: Some(60), paced_credits, ..config() }),
        Some(CollectorError::TwoCredits { credits: 60 })
    );
    for (rate, segment, frame) in [(0, 1_448, 1_538), (1_000, 0, 1_538), (1_000, 1_448, 1_447)] {
        let (rate, segment, frame) = (Rate::new(rate), Bytes::new(segment), Bytes::new(frame));
        let paced_credits =
            Some(PacedCreditsConfig { rate, segment, frame, fragment: Bytes::ZERO, header: Bytes::new(22) });
        assert_eq!(
            error(CollectorConfig { paced_credits, ..config() }),
            Some(CollectorError::NoPace { rate, segment, frame })
        );
    }
    let fragments = CollectorError::TooManyFragments { readout: 1, fragments: 129, max: 128 };
    assert_eq!(error(CollectorConfig { readouts: vec![1, 129], ..config() }), Some(fragments));
    assert_eq!(error(CollectorConfig { units: 0, ..config() }), Some(CollectorError::NoUnits));
    let model = UnitModel::Steps(vec![]);
    assert_eq!(error(CollectorConfig { model, ..config() }), Some(CollectorError::NoSteps));
    let model = UnitModel::Steps(vec![step(Selection::Readouts(share(101)), Ratio::ZERO)]);
    assert_eq!(error(CollectorConfig { model, ..config() }), Some(CollectorError::ShareAboveOne));
    let first = CollectorError::NoSuchReadout { first: 4, readouts: 4 };
    assert_eq!(
        error(CollectorConfig { request_order: RequestOrder::Rotated, first_readout: 4, ..config() }),
        Some(first)
    );
    assert_eq!(error(CollectorConfig { shipping_max: 0, ..config() }), Some(CollectorError::NoShipping));
    let clear = Some(ClearConfig { clear_group: 0, delay_max: Duration::ZERO });
    assert_eq!(error(CollectorConfig { clear, ..config() }), Some(CollectorError::EmptyClear));
}
