//! The configurations of the state machines, from a scenario.

use fanin_dataflow::{
    ClearConfig, CollectorConfig, LoggerConfig, ReadoutConfig, SupervisorConfig, UnitModel, WriteModel,
};
use fanin_scenario::{Processors, Scenario, ShapingMethod, WorkloadKind, machines};
use fanin_units::{Duration, Instant};

use crate::data::Data;
use crate::node::ProcessError;

fn small(key: &'static str, number: u64) -> Result<u16, ProcessError> {
    u16::try_from(number).map_err(|_| ProcessError::Number { key, got: number, max: u64::from(u16::MAX) })
}

/// True if a scenario is one that processes can run.
///
/// # Errors
/// The setting that processes do not support.
pub fn check(scenario: &Scenario) -> Result<(), ProcessError> {
    let unsupported = |text: &str| Err(ProcessError::Unsupported(text.to_owned()));
    match scenario.workload.kind {
        WorkloadKind::EventBuilding => {}
        WorkloadKind::FixedFragment | WorkloadKind::FixedBlock => {
            return unsupported(
                "a barrier workload has no supervisor, readouts and collectors: run it with `fanin run`, \
                 or as `fanin node aggregator` and `fanin node sender`",
            );
        }
        _ => {
            return unsupported(
                "the live system does `workload.kind` \"event-building\", \"fixed-fragment\" and \"fixed-block\", \
                 and no other",
            );
        }
    }
    match scenario.shaping.method {
        ShapingMethod::None | ShapingMethod::Credits => {}
        ShapingMethod::Fastpass | ShapingMethod::BarrelShifter => {
            return unsupported(
                "the live system does `shaping.method = \"none\"` and `\"credits\"`, and no other",
            );
        }
    }
    Ok(())
}

/// The configuration of the supervisor. `resumed` is the time at which it takes up the work of an earlier life.
///
/// # Errors
/// If a number is too large.
pub fn supervisor(
    scenario: &Scenario,
    resumed: Option<Instant>,
) -> Result<SupervisorConfig<Data>, ProcessError> {
    let units = small("collectors.units_per_host", u64::from(scenario.collectors.units_per_host))?;
    let collectors = small("collectors.hosts_per_rack", scenario.collectors_total())?;
    let supervisor = &scenario.supervisor;
    Ok(SupervisorConfig {
        units: vec![units; usize::from(collectors)],
        readouts: small("readout.hosts", u64::from(scenario.readout.hosts))?,
        arrivals: supervisor.arrivals,
        rate: supervisor.rate,
        start: resumed.unwrap_or(Instant::START),
        // Who takes up work goes on with whoever is there.
        units_awaited: if resumed.is_some() { 0 } else { u32::from(units) * u32::from(collectors) },
        policy: supervisor.policy,
        tie_break: supervisor.tie_break,
        start_order: supervisor.start_order,
        clear: Some(ClearConfig {
            clear_group: small("supervisor.clear_group", u64::from(supervisor.clear_group))?,
            ..ClearConfig::default()
        }),
        reassign_delay: scenario.live.reassign_delay,
        seed: scenario.run.seed,
        ..SupervisorConfig::default()
    })
}

/// The configuration of a readout.
pub fn readout(scenario: &Scenario, place: u16) -> ReadoutConfig {
    ReadoutConfig {
        response_delay: machines::delay(scenario.readout.response_delay, scenario.readout.response_delay_sd),
        memory: Some(scenario.readout.memory),
        seed: scenario.run.seed ^ u64::from(place) << 32,
        ..ReadoutConfig::default()
    }
}

/// The configuration of a collector; `fragments` is how many each readout serves.
///
/// # Errors
/// If a number is too large.
pub fn collector(
    scenario: &Scenario,
    place: u16,
    fragments: Vec<u16>,
) -> Result<CollectorConfig, ProcessError> {
    let live = &scenario.live;
    let (readouts, collectors) = (fragments.len() as u64, scenario.collectors_total());
    let steps = machines::steps(scenario);
    let some = |time: Duration| (!time.is_zero()).then_some(time);
    Ok(CollectorConfig {
        units: small("collectors.units_per_host", u64::from(scenario.collectors.units_per_host))?,
        readouts: fragments,
        loggers: small("logger.hosts", u64::from(scenario.logger.hosts))?,
        credits: scenario.shaping.credit_limit(),
        discipline: scenario.shaping.discipline,
        request_order: scenario.shaping.request_order,
        first_readout: machines::first_readout(u64::from(place), collectors, readouts),
        model: match live.processors {
            Processors::Processes => {
                UnitModel::External(steps.first().map(|step| step.collect.clone()).unwrap_or_default())
            }
            Processors::Timers => UnitModel::Steps(steps),
        },
        request_timeout: some(live.request_timeout),
        request_retries: live.request_retries,
        readout_wait: live.readout_wait,
        processor_timeout: match live.processors {
            Processors::Processes => some(live.processor_timeout),
            Processors::Timers => None,
        },
        logger_timeout: some(live.logger_timeout),
        shipping_max: small("live.shipping_max", u64::from(live.shipping_max))?,
        // The supervisor does it: then no event comes back to life with a collector that died.
        clear: None,
        seed: scenario.run.seed ^ u64::from(place) << 48,
        ..CollectorConfig::default()
    })
}

/// The configuration of a logger.
pub fn logger(scenario: &Scenario) -> LoggerConfig {
    LoggerConfig {
        write: WriteModel::External,
        logger_memory: scenario.live.logger_memory,
        ..LoggerConfig::default()
    }
}
