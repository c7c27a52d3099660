//! No event is lost or counted twice, with any faults.

mod common;

use common::{Fault, Parts, World};
use fanin_dataflow::{
    Arrivals, ClearConfig, CollectionStep, CollectorConfig, CreditDiscipline, Delay, EventStep, LoggerConfig,
    PacedCreditsConfig, Peer, Policy, Random, ReadoutConfig, RequestOrder, Selection, StartOrder,
    SupervisorConfig, TieBreak, UnitModel, WriteModel, answer_bytes,
};
use fanin_units::{Bytes, Duration, Frequency, Instant, Rate, Ratio};
use proptest::prelude::*;

const EVENTS: u64 = 200;

#[derive(Debug, Clone)]
struct Choice {
    seed: u64,
    policy: Policy,
    tie_break: TieBreak,
    discipline: CreditDiscipline,
    order: RequestOrder,
    credits: Option<u32>,
    is_paced: bool,
    arrivals: Arrivals,
    two_phase: bool,
    reassign_delay: Duration,
    readout_wait: Duration,
    timeouts: bool,
    clear_here: bool,
    clear_early: bool,
    faults: u8,
}

fn choices() -> impl Strategy<Value = Choice> {
    let policy = prop_oneof![
        Just(Policy::Fcfs),
        Just(Policy::Random),
        Just(Policy::NodeRoundRobin),
        Just(Policy::NodeLoadBalancing),
        Just(Policy::UnitRoundRobin),
    ];
    let tie_break = prop_oneof![Just(TieBreak::LeastRecent), Just(TieBreak::Random)];
    let discipline = prop_oneof![
        Just(CreditDiscipline::Fifo),
        Just(CreditDiscipline::RoundRobin),
        Just(CreditDiscipline::SmallestRemaining),
        Just(CreditDiscipline::FirstFit),
    ];
    let order =
        prop_oneof![Just(RequestOrder::Fixed), Just(RequestOrder::Rotated), Just(RequestOrder::Random)];
    let arrivals = prop_oneof![Just(Arrivals::Periodic), Just(Arrivals::Poisson), Just(Arrivals::OnDemand),];
    let wait = prop_oneof![Just(Duration::ZERO), Just(Duration::from_millis(8))];
    (
        (
            any::<u64>(),
            (policy, tie_break),
            discipline,
            order,
            (prop_oneof![Just(None), (12_u32..60).prop_map(Some)], any::<bool>()),
        ),
        (arrivals, any::<bool>()),
        (wait.clone(), wait, any::<bool>(), any::<bool>(), any::<bool>(), 0_u8..12),
    )
        .prop_map(|(first, second, third)| Choice {
            seed: first.0,
            policy: first.1.0,
            tie_break: first.1.1,
            discipline: first.2,
            order: first.3,
            credits: first.4.0.filter(|_| !first.4.1),
            is_paced: first.4.1,
            arrivals: second.0,
            two_phase: second.1,
            reassign_delay: third.0,
            readout_wait: third.1,
            timeouts: third.2,
            clear_here: third.3,
            clear_early: third.4,
            faults: third.5,
        })
}

fn world(choice: &Choice) -> World {
    let ms = Duration::from_millis;
    let fragments: Vec<u16> = vec![12, 1, 0, 7, 12, 3];
    let units = [3, 1, 4];
    let last = CollectionStep {
        collect: Selection::Rest,
        processing_time: Delay::Normal { mean: ms(2), sd: ms(1) },
        accept: Ratio::new(300_000),
    };
    let first = CollectionStep {
        collect: if choice.seed.is_multiple_of(2) {
            Selection::Region
        } else {
            Selection::Fragments(Ratio::new(300_000))
        },
        processing_time: Delay::Exponential { mean: ms(1) },
        accept: Ratio::new(600_000),
    };
    let clear = ClearConfig { clear_group: 7, delay_max: ms(5) };
    let collector = |index: usize| CollectorConfig {
        units: units[index],
        readouts: fragments.clone(),
        loggers: 2,
        credits: choice.credits,
        paced_credits: choice.is_paced.then_some(PacedCreditsConfig {
            rate: Rate::new(1_000_000_000),
            segment: Bytes::new(1_448),
            frame: Bytes::new(1_538),
            fragment: Bytes::new(1_000),
            header: answer_bytes(0, Bytes::ZERO),
        }),
        discipline: choice.discipline,
        request_order: choice.order,
        first_readout: 2,
        model: UnitModel::Steps(if choice.two_phase {
            vec![first.clone(), last.clone()]
        } else {
            vec![last.clone()]
        }),
        request_timeout: choice.timeouts.then_some(ms(3)),
        request_retries: (choice.seed % 3) as u8,
        readout_wait: choice.readout_wait,
        processor_timeout: choice.timeouts.then_some(ms(5)),
        logger_timeout: choice.timeouts.then_some(ms(4)),
        shipping_max: 3,
        clear: (!choice.clear_here).then_some(clear),
        clear_before_stored: choice.clear_early,
        trace_requests: true,
        seed: choice.seed + index as u64,
        ..CollectorConfig::default()
    };
    let readout = |index: usize| ReadoutConfig {
        response_delay: Delay::Normal { mean: Duration::from_micros(300), sd: Duration::from_micros(100) },
        seed: choice.seed + 100 + index as u64,
        ..ReadoutConfig::default()
    };
    let logger = LoggerConfig {
        write: WriteModel::Timed { rate: Rate::new(800_000_000), latency: ms(1) },
        logger_memory: Bytes::new(100_000),
        ..LoggerConfig::default()
    };
    let parts = Parts {
        supervisor: SupervisorConfig {
            units: units.to_vec(),
            readouts: fragments.len() as u16,
            arrivals: choice.arrivals,
            rate: Frequency::new(1_000_000),
            units_awaited: 8,
            events_max: Some(EVENTS),
            policy: choice.policy,
            tie_break: choice.tie_break,
            start_order: StartOrder::Random,
            result: Bytes::new(1_000),
            region: Selection::Readouts(Ratio::new(400_000)),
            reassign_delay: choice.reassign_delay,
            clear: choice.clear_here.then_some(clear),
            seed: choice.seed,
            ..SupervisorConfig::default()
        },
        collectors: (0..units.len()).map(collector).collect(),
        readouts: (0..fragments.len()).map(readout).collect(),
        loggers: vec![logger; 2],
        fragment: Bytes::new(1_100),
    };
    let mut random = Random::new(choice.seed);
    World::new(
        parts,
        Box::new(move |_, _, _, now| {
            now + Delay::Uniform { min: Duration::from_micros(20), max: Duration::from_micros(400) }
                .draw(&mut random)
        }),
    )
}

/// Faults at random times within the first 200 ms; each ends.
fn inject(world: &mut World, choice: &Choice) {
    let mut random = Random::new(choice.seed ^ 0xfa17);
    for _ in 0..choice.faults {
        let at = Instant::START + Duration::from_micros(u64::from(random.below(200_000)));
        // Most faults are short; some last longer than every timeout.
        let away = if random.below(8) == 0 { 2_000_000 } else { random.below(20_000) + 1 };
        let away = Duration::from_micros(u64::from(away));
        let collector = random.below(3) as u16;
        let peers = [
            Peer::Supervisor,
            Peer::Collector(collector),
            Peer::Readout(random.below(6) as u16),
            Peer::Logger(random.below(2) as u16),
        ];
        let fault = match random.below(5) {
            0 | 1 => Fault::Crash(peers[random.below(4) as usize], away),
            2 => Fault::Cut(Peer::Supervisor, Peer::Collector(collector), away),
            3 => Fault::Cut(Peer::Collector(collector), peers[2 + random.below(2) as usize], away),
            _ => Fault::UnitLost(collector, random.below([3, 1, 4][usize::from(collector)]) as u16),
        };
        world.fault_at(at, fault);
    }
}

fn check(choice: &Choice) -> Result<(), TestCaseError> {
    let mut world = world(choice);
    world.close_twice = choice.seed.is_multiple_of(5);
    inject(&mut world, choice);
    world.run(Instant::START + Duration::from_secs(20));
    let totals = world.audit().map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(totals.assigned, EVENTS);
    let ends = totals.rejected + totals.stored + totals.debug;
    prop_assert_eq!(ends, EVENTS);
    for (collector, peak) in world.collectors.iter().zip(&world.credits_peak) {
        prop_assert_eq!(collector.credits_used(), 0, "credits leaked");
        prop_assert_eq!(collector.requests_waiting(), 0);
        prop_assert_eq!(collector.requests_pending(), 0);
        prop_assert_eq!(collector.waits().count(), 0);
        if let Some(limit) = choice.credits {
            prop_assert!(*peak <= limit, "{peak} credits of {limit} were out");
        }
    }
    prop_assert_eq!(world.supervisor.units_free(), 8);
    prop_assert_eq!(world.supervisor.outstanding().count(), 0);
    for logger in &world.loggers {
        prop_assert_eq!((logger.unwritten(), logger.counters().held), (0, 0));
    }
    if choice.faults == 0 && !choice.timeouts {
        prop_assert_eq!((totals.debug, totals.duplicates), (0, 0));
        let missing = world.records.iter().any(|record| matches!(record.step, EventStep::Missing { .. }));
        prop_assert!(!missing);
        let cleared = world.records.iter().filter(|record| record.step == EventStep::Cleared).count() as u64;
        prop_assert_eq!(cleared, EVENTS);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_event_ends_exactly_once(choice in choices()) {
        check(&choice)?;
    }
}
