use fanin_dataflow::{
    Arrivals, ClearConfig, EventStep, FinishedEvent, Hello, L1Id, Message, Outcome, Peer, Policy, StartOrder,
    Supervisor, SupervisorConfig, SupervisorError,
};
use fanin_units::{Bytes, Duration, Frequency, Instant};

use crate::{drain, ms};

type Config = SupervisorConfig<Bytes>;

/// 1 kHz, two collectors with two units each.
fn config() -> Config {
    Config { units: vec![2, 2], ..Config::default() }
}

fn hello(supervisor: &mut Supervisor<Bytes>, now: Instant, collector: u16, idle: &[u16]) {
    let hello = Hello { idle: idle.to_vec(), ..Hello::default() };
    say_hello(supervisor, now, collector, hello);
}

fn say_hello(supervisor: &mut Supervisor<Bytes>, now: Instant, collector: u16, hello: Hello) {
    supervisor.handle_connected(now, Peer::Collector(collector));
    supervisor.handle_message(now, Peer::Collector(collector), Message::Hello(Box::new(hello))).unwrap();
}

fn ready(supervisor: &mut Supervisor<Bytes>, now: Instant, at: (u16, u16), rejected: Option<u64>) {
    let done = rejected.map(|event| FinishedEvent { event: L1Id(event), outcome: Outcome::Rejected });
    let message = Message::Ready { unit: at.1, done };
    supervisor.handle_message(now, Peer::Collector(at.0), message).unwrap();
}

/// Assignments since the last call: event, collector, unit, and true if direct.
fn assigned(supervisor: &mut Supervisor<Bytes>) -> Vec<(u64, u16, u16, bool)> {
    drain!(supervisor.poll_transmit())
        .into_iter()
        .filter_map(|(peer, message)| match (peer, message) {
            (Peer::Collector(collector), Message::Assign { event, unit, direct, .. }) => {
                Some((event.0, collector, unit, direct))
            }
            _ => None,
        })
        .collect()
}

/// Calls the supervisor's deadlines up to a time.
fn run(supervisor: &mut Supervisor<Bytes>, end: Instant) {
    while let Some(at) = supervisor.poll_deadline().filter(|&at| at <= end) {
        supervisor.handle_deadline(at);
    }
}

#[test]
fn a_collector_that_stops_is_given_nothing_more() {
    let mut supervisor = Supervisor::new(config()).unwrap();
    hello(&mut supervisor, ms(0), 0, &[0, 1]);
    hello(&mut supervisor, ms(0), 1, &[0]);
    assert_eq!(assigned(&mut supervisor), [(0, 0, 0, false)]);
    supervisor.handle_message(ms(0), Peer::Collector(0), Message::Flow { stop: true }).unwrap();
    assert_eq!(drain!(supervisor.poll_transmit()), [(Peer::Collector(0), Message::Welcome(Box::default()))]);
    run(&mut supervisor, ms(10));
    assert_eq!(assigned(&mut supervisor), [(1, 1, 0, false)]);
    supervisor.check_invariants();
    // It finishes what it has, and ends.
    let done = FinishedEvent { event: L1Id(0), outcome: Outcome::Rejected };
    supervisor.handle_message(ms(10), Peer::Collector(0), Message::Done(done)).unwrap();
    supervisor.handle_closed(ms(10), Peer::Collector(0));
    run(&mut supervisor, ms(10_000));
    assert_eq!(supervisor.counters().reassigned, 0);
    let resumed = supervisor.handle_message(ms(10), Peer::Collector(1), Message::Flow { stop: false });
    assert!(resumed.is_err(), "a collector takes nothing back");
}

#[test]
fn events_fall_due_at_the_rate_and_are_held_at_xoff() {
    let mut supervisor = Supervisor::new(config()).unwrap();
    hello(&mut supervisor, ms(0), 0, &[0, 1]);
    run(&mut supervisor, ms(10));
    assert_eq!(assigned(&mut supervisor), [(0, 0, 0, false), (1, 0, 1, false)]);
    // Event 2 fell due at 2 ms, when no unit was free.
    assert!(supervisor.is_stopped());
    let records = drain!(supervisor.poll_record());
    assert_eq!(records.last().map(|record| (record.at, record.step)), Some((ms(2), EventStep::Xoff)));
    assert_eq!(supervisor.poll_deadline(), None);
    // Held events are assigned as soon as units become free.
    ready(&mut supervisor, ms(20), (0, 1), Some(1));
    ready(&mut supervisor, ms(21), (0, 0), Some(0));
    assert_eq!(assigned(&mut supervisor), [(2, 0, 1, false), (3, 0, 0, false)]);
    let counters = supervisor.counters();
    assert_eq!((counters.held, counters.held_time), (2, Duration::from_millis(18 + 18)));
    // Event 4 is held already.
    assert_eq!((counters.assigned, counters.rejected, counters.xoffs), (4, 2, 3));
    assert_eq!(counters.xoff_time, Duration::from_millis(18 + 1));
}

#[test]
fn a_saturated_supervisor_never_lets_a_unit_wait() {
    let mut supervisor =
        Supervisor::new(Config { arrivals: Arrivals::OnDemand, events_max: Some(3), ..config() }).unwrap();
    hello(&mut supervisor, ms(4), 1, &[0, 1]);
    assert_eq!(assigned(&mut supervisor), [(0, 1, 0, false), (1, 1, 1, false)]);
    ready(&mut supervisor, ms(9), (1, 1), Some(1));
    assert_eq!(assigned(&mut supervisor), [(2, 1, 1, false)]);
    ready(&mut supervisor, ms(9), (1, 0), Some(0));
    ready(&mut supervisor, ms(9), (1, 1), Some(2));
    assert_eq!(assigned(&mut supervisor), []);
    assert!(supervisor.is_finished());
    assert_eq!(supervisor.counters().xoffs, 0);
}

#[test]
fn poisson_arrivals_have_the_rate() {
    let (arrivals, rate) = (Arrivals::Poisson, Frequency::new(1_000_000));
    let mut supervisor = Supervisor::new(Config { arrivals, rate, seed: 9, ..config() }).unwrap();
    hello(&mut supervisor, ms(0), 0, &[0, 1]);
    let mut times = Vec::new();
    while times.len() < 10_000 {
        let now = supervisor.poll_deadline().unwrap();
        supervisor.handle_deadline(now);
        for (event, collector, unit, _) in assigned(&mut supervisor) {
            times.push(now);
            ready(&mut supervisor, now, (collector, unit), Some(event));
        }
    }
    let mean = (times[9_999] - times[0]).as_millis_f64() / 9_999.0;
    assert!((0.97..1.03).contains(&mean), "{mean}");
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis_f64()).collect();
    let squares = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / 9_999.0;
    assert!((0.95..1.05).contains(&squares.sqrt()), "{squares}");
}

#[test]
fn first_announcements_are_put_into_order() {
    let orders = [
        (StartOrder::Arrival, [(1, 0), (1, 1), (0, 0), (0, 1)]),
        (StartOrder::ByHost, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (StartOrder::Interleaved, [(0, 0), (1, 0), (0, 1), (1, 1)]),
    ];
    for (start_order, expected) in orders {
        let config = Config { start_order, units_awaited: 4, policy: Policy::Fcfs, ..config() };
        let mut supervisor = Supervisor::new(config).unwrap();
        hello(&mut supervisor, ms(3), 1, &[0, 1]);
        assert_eq!(supervisor.poll_deadline(), None);
        hello(&mut supervisor, ms(7), 0, &[0, 1]);
        run(&mut supervisor, ms(10));
        let places: Vec<_> = assigned(&mut supervisor).iter().map(|one| (one.1, one.2)).collect();
        assert_eq!(places, expected, "{start_order:?}");
    }
}

#[test]
fn a_lost_collectors_events_are_stored_by_another() {
    let mut supervisor = Supervisor::new(config()).unwrap();
    hello(&mut supervisor, ms(0), 0, &[0, 1]);
    run(&mut supervisor, ms(1));
    supervisor.handle_closed(ms(1), Peer::Collector(0));
    supervisor.handle_closed(ms(1), Peer::Collector(0));
    assert_eq!(assigned(&mut supervisor).len(), 2);
    assert_eq!(supervisor.outstanding().collect::<Vec<_>>(), [(L1Id(0), None), (L1Id(1), None)]);
    hello(&mut supervisor, ms(2), 1, &[0, 1]);
    assert_eq!(assigned(&mut supervisor), [(0, 1, 0, true), (1, 1, 1, true)]);
    let debug = FinishedEvent { event: L1Id(0), outcome: Outcome::Debug };
    supervisor.handle_message(ms(3), Peer::Collector(1), Message::Done(debug)).unwrap();
    drain!(supervisor.poll_record());
    // The first collector was not dead: it rejected one event, and still works on the other.
    let rejected = FinishedEvent { event: L1Id(0), outcome: Outcome::Rejected };
    let hello = Hello { idle: vec![0], busy: vec![L1Id(1)], done: vec![rejected] };
    say_hello(&mut supervisor, ms(4), 0, hello);
    let welcome = drain!(supervisor.poll_transmit()).into_iter().find_map(|(_, message)| match message {
        Message::Welcome(events) => Some(events),
        _ => None,
    });
    assert_eq!(welcome.as_deref(), Some(&[L1Id(0), L1Id(1)][..]));
    let records = drain!(supervisor.poll_record());
    let duplicated = EventStep::Duplicated { collector: 0, outcome: Outcome::Rejected };
    assert!(records.iter().any(|record| record.event == L1Id(0) && record.step == duplicated));
    let counters = supervisor.counters();
    assert_eq!((counters.reassigned, counters.duplicated, counters.completed), (2, 1, 1));
}

#[test]
fn a_collector_that_is_back_in_time_keeps_its_events() {
    let delay = Duration::from_millis(50);
    let mut supervisor =
        Supervisor::new(Config { reassign_delay: delay, events_max: Some(2), ..config() }).unwrap();
    hello(&mut supervisor, ms(0), 0, &[0, 1]);
    run(&mut supervisor, ms(1));
    drain!(supervisor.poll_transmit());
    supervisor.handle_closed(ms(10), Peer::Collector(0));
    let done = FinishedEvent { event: L1Id(0), outcome: Outcome::Rejected };
    let hello = Hello { idle: vec![0], busy: vec![L1Id(1)], done: vec![done] };
    say_hello(&mut supervisor, ms(30), 0, hello);
    assert_eq!(supervisor.poll_deadline(), None);
    assert_eq!(supervisor.outstanding().collect::<Vec<_>>(), [(L1Id(1), Some(0))]);
    // A collector that has forgotten an event, as a new process does, does not keep it.
    supervisor.handle_closed(ms(40), Peer::Collector(0));
    run(&mut supervisor, ms(89));
    assert_eq!(supervisor.counters().reassigned, 0);
    say_hello(&mut supervisor, ms(89), 0, Hello { idle: vec![0, 1], ..Hello::default() });
    assert_eq!(assigned(&mut supervisor), [(1, 0, 0, true)]);
}

#[test]
fn a_new_supervisor_goes_on_where_the_journal_ends() {
    let delay = Duration::from_millis(50);
    let mut supervisor = Supervisor::new(Config { reassign_delay: delay, ..config() }).unwrap();
    supervisor.restore(ms(0), L1Id(12), [(L1Id(10), 0), (L1Id(11), 1)]).unwrap();
    assert_eq!(supervisor.restore(ms(0), L1Id(12), [(L1Id(9), 7)]), Err(L1Id(9)));
    say_hello(&mut supervisor, ms(5), 0, Hello { busy: vec![L1Id(10)], idle: vec![1], ..Hello::default() });
    assert_eq!(assigned(&mut supervisor), [(12, 0, 1, false)]);
    ready(&mut supervisor, ms(20), (0, 0), Some(10));
    // Collector 1 does not return: after its time its event is assigned first.
    assert_eq!(assigned(&mut supervisor), [(13, 0, 0, false)]);
    run(&mut supervisor, ms(50));
    ready(&mut supervisor, ms(60), (0, 1), Some(12));
    assert_eq!(assigned(&mut supervisor), [(11, 0, 1, true)]);
}

#[test]
fn a_full_readout_stops_the_trigger() {
    let mut supervisor = Supervisor::new(Config { readouts: 2, ..config() }).unwrap();
    hello(&mut supervisor, ms(0), 0, &[0, 1]);
    assert_eq!(assigned(&mut supervisor).len(), 1);
    for readout in [0, 1] {
        supervisor.handle_connected(ms(0), Peer::Readout(readout));
        supervisor.handle_message(ms(0), Peer::Readout(readout), Message::Flow { stop: true }).unwrap();
    }
    run(&mut supervisor, ms(5));
    assert!(supervisor.is_stopped() && assigned(&mut supervisor).is_empty());
    supervisor.handle_message(ms(6), Peer::Readout(0), Message::Flow { stop: false }).unwrap();
    assert!(supervisor.is_stopped());
    // A lost readout does not count as full.
    supervisor.handle_closed(ms(7), Peer::Readout(1));
    assert_eq!(assigned(&mut supervisor), [(1, 0, 1, false)]);
    assert_eq!(supervisor.counters().xoff_time, Duration::from_millis(6));
}

/// Clears since the last call: readout and events.
fn clears(supervisor: &mut Supervisor<Bytes>) -> Vec<(Peer, Vec<L1Id>)> {
    drain!(supervisor.poll_transmit())
        .into_iter()
        .filter_map(|(peer, message)| match message {
            Message::Clear(events) => Some((peer, events.to_vec())),
            _ => None,
        })
        .collect()
}

#[test]
fn clears_go_out_in_groups() {
    let clear = ClearConfig { clear_group: 2, delay_max: Duration::from_millis(10) };
    let config = Config { readouts: 2, clear: Some(clear), ..config() };
    let mut supervisor = Supervisor::new(config).unwrap();
    supervisor.handle_connected(ms(0), Peer::Readout(0));
    supervisor.handle_connected(ms(0), Peer::Readout(1));
    hello(&mut supervisor, ms(0), 0, &[0, 1]);
    for event in 0..3 {
        run(&mut supervisor, ms(event));
        ready(&mut supervisor, ms(event), (0, (event % 2) as u16), Some(event));
    }
    let pair = vec![L1Id(0), L1Id(1)];
    assert_eq!(clears(&mut supervisor), [(Peer::Readout(0), pair.clone()), (Peer::Readout(1), pair)]);
    run(&mut supervisor, ms(12));
    assert_eq!(clears(&mut supervisor).len(), 2);
}

/// A readout that lost its supervisor alone goes on for its collectors, and misses any number of clears.
#[test]
fn a_readout_that_returns_has_the_clears_of_all_finished_events() {
    let clear = ClearConfig { clear_group: 1, delay_max: Duration::from_millis(10) };
    let config = Config { readouts: 1, clear: Some(clear), units: vec![3], ..config() };
    let mut supervisor = Supervisor::new(config).unwrap();
    let readout = Peer::Readout(0);
    hello(&mut supervisor, ms(0), 0, &[0, 1, 2]);
    supervisor.handle_connected(ms(0), readout);
    run(&mut supervisor, ms(2));
    // Event 0 stays open. The message of another clear may be lost with the connection.
    ready(&mut supervisor, ms(2), (0, 1), Some(1));
    assert_eq!(clears(&mut supervisor), [(readout, vec![L1Id(1)])]);
    supervisor.handle_closed(ms(2), readout);
    for event in 2..40_000 {
        run(&mut supervisor, ms(event));
        let unit = assigned(&mut supervisor).into_iter().find(|one| one.0 == event).map_or(2, |one| one.2);
        ready(&mut supervisor, ms(event), (0, unit), Some(event));
    }
    let again = |supervisor: &mut Supervisor<Bytes>| -> Vec<u64> {
        supervisor.handle_connected(ms(40_000), readout);
        let clears = clears(supervisor);
        assert!(clears.iter().all(|(peer, events)| *peer == readout && events.len() <= 1000));
        clears.into_iter().flat_map(|(_, events)| events).map(|event| event.0).collect()
    };
    let missed: Vec<u64> = (1..40_000).collect();
    assert_eq!(again(&mut supervisor), missed);
    // The connection is lost before they have arrived.
    supervisor.handle_closed(ms(40_000), readout);
    supervisor.handle_closed(ms(40_000), readout);
    assert_eq!(again(&mut supervisor), missed);
    supervisor.check_invariants();
}

/// A readout may have lost an earlier supervisor any number of events before, which no journal says.
#[test]
fn a_restarted_supervisor_clears_all_events_before_the_oldest_open_one() {
    let clear = ClearConfig { clear_group: 1, delay_max: Duration::from_millis(10) };
    let config = || Config { readouts: 1, clear: Some(clear), units: vec![1], ..config() };
    let readout = Peer::Readout(0);
    for (open, uncleared, last) in [(Some(800_000), vec![], 799_999), (None, vec![L1Id(700_000)], 699_999)] {
        let mut supervisor = Supervisor::new(config()).unwrap();
        let outstanding = open.map(|event| (L1Id(event), 0));
        supervisor.restore(ms(0), L1Id(900_000), outstanding).unwrap();
        supervisor.restore_clears(ms(0), uncleared, &[]);
        supervisor.handle_connected(ms(1), readout);
        let sent = drain!(supervisor.poll_transmit());
        assert_eq!(sent.last(), Some(&(readout, Message::clear_up_to(L1Id(last)))));
        let named = |event| {
            let mut groups = sent.iter().map(|(_, message)| match message {
                Message::Clear(events) => events.to_vec(),
                _ => Vec::new(),
            });
            groups.any(|group| group.contains(&L1Id(event)))
        };
        assert!(named(899_999) && named(last) && !named(last + 1));
    }
    // A new supervisor knows nothing.
    let mut supervisor = Supervisor::new(config()).unwrap();
    supervisor.handle_connected(ms(1), readout);
    assert!(clears(&mut supervisor).is_empty());
}

/// A dead connection is found late, and all clears since its death are lost with it.
#[test]
fn clears_on_their_way_to_a_dead_connection_are_sent_again() {
    let clear = ClearConfig { clear_group: 1, delay_max: Duration::from_millis(10) };
    let clear_on_way_max = Duration::from_secs(32);
    let config = Config { readouts: 1, clear: Some(clear), clear_on_way_max, units: vec![1], ..config() };
    let mut supervisor = Supervisor::new(config).unwrap();
    let readout = Peer::Readout(0);
    hello(&mut supervisor, ms(0), 0, &[0]);
    supervisor.handle_connected(ms(0), readout);
    for event in 0..40_000 {
        run(&mut supervisor, ms(event));
        ready(&mut supervisor, ms(event), (0, 0), Some(event));
    }
    assert_eq!(clears(&mut supervisor).len(), 40_000);
    supervisor.handle_closed(ms(40_000), readout);
    supervisor.handle_connected(ms(40_000), readout);
    let again: Vec<L1Id> = clears(&mut supervisor).into_iter().flat_map(|(_, events)| events).collect();
    assert_eq!(again.last(), Some(&L1Id(39_999)));
    assert!((7_998..=8_000).contains(&again[0].0), "those of the last 32 s: {:?}", again[0]);
    supervisor.check_invariants();
}

#[test]
fn nonsense_is_refused() {
    let mut supervisor = Supervisor::new(config()).unwrap();
    let ready = |unit| Message::Ready { unit, done: None };
    let mut why = |peer, message| supervisor.handle_message(ms(0), peer, message).map_err(|error| error.why);
    assert_eq!(why(Peer::Collector(0), ready(0)), Err("it comes before hello"));
    let hello = Message::Hello(Box::new(Hello { idle: vec![2], ..Hello::default() }));
    assert_eq!(why(Peer::Collector(0), hello), Err("it names a unit too many"));
    let hello = Message::Hello(Box::new(Hello { idle: vec![1], ..Hello::default() }));
    assert_eq!(why(Peer::Collector(0), hello), Ok(()));
    assert_eq!(why(Peer::Collector(0), ready(2)), Err("there is no such unit"));
    assert_eq!(why(Peer::Collector(0), ready(0)), Ok(()));
    assert_eq!(why(Peer::Collector(0), ready(0)), Err("the unit is ready already"));
    assert!(why(Peer::Collector(2), ready(0)).is_err());
    assert!(why(Peer::Readout(0), Message::Flow { stop: true }).is_err());
}

#[test]
fn impossible_settings_are_refused() {
    let error = |config: Config| Supervisor::new(config).err();
    assert_eq!(error(Config::default()), Some(SupervisorError::NoUnits));
    let awaited = SupervisorError::TooManyAwaited { awaited: 5, units: 4 };
    assert_eq!(error(Config { units_awaited: 5, ..config() }), Some(awaited));
    let rate = Frequency::ZERO;
    assert_eq!(error(Config { rate, ..config() }), Some(SupervisorError::NoRate));
    let clear = Some(ClearConfig { clear_group: 0, delay_max: Duration::ZERO });
    assert_eq!(error(Config { clear, ..config() }), Some(SupervisorError::EmptyClear));
}
