//! The conformance scripts in memory, with the state machines instead of real processes.

mod common;
#[path = "common/script.rs"]
mod script;

use common::{Fault, Parts, World};
use fanin_dataflow::{
    Arrivals, ClearConfig, CollectorConfig, Delay, EventStep, LoggerConfig, Peer, ReadoutConfig, Selection,
    SupervisorConfig, UnitModel, WriteModel,
};
use fanin_units::{Bytes, Duration, Frequency, Instant, Rate, Ratio};
use script::{COLLECTORS, Expect, LOGGERS, Process, RATE_HZ, READOUTS, SCRIPTS, Script, Step};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn peer(process: Process) -> Peer {
    match process {
        Process::Supervisor => Peer::Supervisor,
        Process::Readout(place) => Peer::Readout(place),
        Process::Collector(place) => Peer::Collector(place),
        Process::Logger(place) => Peer::Logger(place),
    }
}

fn world(events: u64) -> World {
    let step = fanin_dataflow::CollectionStep {
        collect: Selection::Rest,
        processing_time: Delay::Constant(MS(4)),
        accept: Ratio::new(500_000),
    };
    let fragments = vec![11; usize::from(READOUTS)];
    let collector = |place: u16| CollectorConfig {
        units: 2,
        readouts: fragments.clone(),
        loggers: LOGGERS,
        model: UnitModel::Steps(vec![step.clone()]),
        request_timeout: Some(MS(500)),
        request_retries: 1,
        readout_wait: MS(400),
        logger_timeout: Some(MS(1500)),
        clear: None,
        seed: u64::from(place),
        ..CollectorConfig::default()
    };
    let logger = LoggerConfig {
        write: WriteModel::Timed { rate: Rate::new(1_000_000_000), latency: MS(5) },
        ..LoggerConfig::default()
    };
    let parts = Parts {
        supervisor: SupervisorConfig {
            units: vec![2; usize::from(COLLECTORS)],
            readouts: READOUTS,
            arrivals: Arrivals::Periodic,
            rate: Frequency::new(RATE_HZ * 1000),
            units_awaited: u32::from(COLLECTORS) * 2,
            events_max: Some(events),
            reassign_delay: MS(400),
            clear: Some(ClearConfig { clear_group: 20, ..ClearConfig::default() }),
            ..SupervisorConfig::default()
        },
        collectors: (0..COLLECTORS).map(collector).collect(),
        readouts: vec![ReadoutConfig::default(); usize::from(READOUTS)],
        loggers: vec![logger; usize::from(LOGGERS)],
        fragment: Bytes::new(400),
    };
    World::new(parts, Box::new(|_, _, _, now| now + Duration::from_micros(50)))
}

fn play(script: &Script) {
    let total: u64 = script.steps.iter().map(|step| if let Step::Run(ms) = step { *ms } else { 0 }).sum();
    let events = RATE_HZ * total / 1000;
    let mut world = world(events);
    let mut at = Instant::START;
    for step in script.steps {
        let fault = match *step {
            Step::Run(ms) => {
                at = at + MS(ms);
                continue;
            }
            Step::Crash(process) => Fault::Crash(peer(process), MS(200)),
            Step::UnitLost(collector) => Fault::UnitLost(collector, 0),
            Step::Cut { collector, readout } => {
                Fault::Cut(Peer::Collector(collector), Peer::Readout(readout), MS(50))
            }
        };
        world.fault_at(at, fault);
    }
    world.run(Instant::START + Duration::from_secs(60));
    let name = script.name;
    let totals = world.audit().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(totals.assigned, events, "{name}");
    let missing = world.records.iter().any(|record| matches!(record.step, EventStep::Missing { .. }));
    match script.expect {
        Expect::Clean => assert_eq!((totals.debug, totals.duplicates, missing), (0, 0, false), "{name}"),
        Expect::Debug => assert!(totals.debug > 0, "{name}: {totals:?}"),
        Expect::Sound => {}
    }
}

#[test]
fn every_script_ends_well() {
    SCRIPTS.iter().for_each(play);
}

#[test]
fn a_supervisor_that_stops_finishes_its_events() {
    let mut world = world(1_000_000);
    world.run(Instant::START + MS(500));
    let assigned = world.supervisor.counters().assigned;
    assert!(assigned > 50);
    world.supervisor.handle_stop(world.now);
    world.run(Instant::START + Duration::from_secs(5));
    assert_eq!(world.supervisor.counters().assigned, assigned);
    assert_eq!(world.audit().unwrap().assigned, assigned);
    assert!(world.supervisor.poll_deadline().is_none());
}

#[test]
fn clears_come_again_to_a_readout_that_was_away() {
    let mut world = world(200);
    let away = Fault::Cut(Peer::Supervisor, Peer::Readout(1), MS(900));
    world.fault_at(Instant::START + MS(200), away);
    world.run(Instant::START + Duration::from_secs(20));
    assert_eq!(world.audit().unwrap().assigned, 200);
    let deleted = world.readouts.iter().map(|readout| readout.counters().deleted).collect::<Vec<_>>();
    // Readouts without a memory count every clear, including repetitions.
    assert!(deleted.iter().all(|&count| count >= 200), "{deleted:?}");
}
