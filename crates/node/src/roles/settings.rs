//! From a scenario to what the state machines are told.

use fanin_dataflow::{
    Arrivals, ClearConfig, CollectorConfig, Delay, Discipline, LoggerConfig, Policy, ReadoutConfig,
    RequestOrder, Selection, StartOrder, Step, SupervisorConfig, TieBreak, UnitModel, WriteModel,
};
use fanin_scenario as scenario;
use fanin_scenario::{Processors, Scenario, ShapingMethod, WorkloadKind};
use fanin_units::{Duration, Instant, Ratio};

use crate::data::Data;
use crate::process::ProcessError;

fn distributed(mean: Duration, sd: Duration) -> Delay {
    if sd.is_zero() { Delay::Constant(mean) } else { Delay::Normal { mean, sd } }
}

fn small(key: &'static str, number: u64) -> Result<u16, ProcessError> {
    u16::try_from(number).map_err(|_| ProcessError::Number { key, got: number, max: u64::from(u16::MAX) })
}

/// Whether a scenario is one that processes can run.
///
/// # Errors
/// What they do not do.
pub fn check(scenario: &Scenario) -> Result<(), ProcessError> {
    let unsupported = |text: &str| Err(ProcessError::Unsupported(text.to_owned()));
    match scenario.workload.kind {
        WorkloadKind::EventBuilding => {}
        _ => return unsupported("the live system does `workload.kind = \"event-building\"` and no other"),
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

/// What the units do: the scenario's steps, or one over its fraction.
pub fn steps(scenario: &Scenario) -> Vec<Step> {
    let collect = |fraction: Ratio| {
        if fraction == Ratio::ONE { Selection::Rest } else { Selection::Readouts(fraction) }
    };
    if scenario.workload.steps.is_empty() {
        let collectors = &scenario.collectors;
        return vec![Step {
            collect: collect(scenario.workload.fraction),
            processing: distributed(collectors.processing_time, collectors.processing_time_sd),
            accept: scenario.logger.accept,
        }];
    }
    let step = |step: &scenario::Step| Step {
        collect: collect(step.fraction),
        processing: Delay::Constant(step.processing_time),
        accept: step.accept,
    };
    scenario.workload.steps.iter().map(step).collect()
}

/// What the supervisor is told. `resumed` is the time at which it takes up the work of an earlier life.
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
        arrivals: match supervisor.arrivals {
            scenario::Arrivals::Periodic => Arrivals::Periodic(supervisor.rate),
            scenario::Arrivals::Poisson => Arrivals::Poisson(supervisor.rate),
            scenario::Arrivals::OnDemand => Arrivals::Saturated,
        },
        start: resumed.unwrap_or(Instant::START),
        // Who takes up work goes on with whoever is there.
        units_awaited: if resumed.is_some() { 0 } else { u32::from(units) * u32::from(collectors) },
        policy: match supervisor.policy {
            scenario::Policy::Fcfs => Policy::Fcfs,
            scenario::Policy::Random => Policy::Random,
            scenario::Policy::NodeRoundRobin => Policy::NodeRoundRobin,
            scenario::Policy::NodeLoadBalancing => Policy::NodeLoadBalancing(match supervisor.tie_break {
                scenario::TieBreak::LeastRecent => TieBreak::Rotating,
                scenario::TieBreak::Lowest => TieBreak::Lowest,
                scenario::TieBreak::Random => TieBreak::Random,
            }),
            scenario::Policy::UnitRoundRobin => Policy::UnitRoundRobin,
        },
        start_order: match supervisor.start_order {
            scenario::StartOrder::ByHost => StartOrder::NodeMajor,
            scenario::StartOrder::Interleaved => StartOrder::UnitMajor,
            scenario::StartOrder::Random => StartOrder::Shuffled,
        },
        clear: Some(ClearConfig {
            group: small("supervisor.clear_group", u64::from(supervisor.clear_group))?,
            ..ClearConfig::default()
        }),
        reassign_delay: scenario.live.reassign_delay,
        seed: scenario.run.seed,
        ..SupervisorConfig::default()
    })
}

/// What a readout is told.
pub fn readout(scenario: &Scenario, place: u16) -> ReadoutConfig {
    ReadoutConfig {
        response: distributed(scenario.readout.response_delay, scenario.readout.response_delay_sd),
        memory: Some(scenario.readout.memory),
        seed: scenario.run.seed ^ u64::from(place) << 32,
        ..ReadoutConfig::default()
    }
}

/// What a collector is told; `fragments` is how many each readout serves.
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
    let steps = steps(scenario);
    let some = |time: Duration| (!time.is_zero()).then_some(time);
    Ok(CollectorConfig {
        units: small("collectors.units_per_host", u64::from(scenario.collectors.units_per_host))?,
        readouts: fragments,
        loggers: small("logger.hosts", u64::from(scenario.logger.hosts))?,
        credits: (scenario.shaping.method == ShapingMethod::Credits).then_some(scenario.shaping.credits),
        discipline: match scenario.shaping.discipline {
            scenario::CreditDiscipline::Fifo => Discipline::Fifo,
            scenario::CreditDiscipline::RoundRobin => Discipline::RoundRobin,
            scenario::CreditDiscipline::SmallestRemaining => Discipline::SmallestRemaining,
            scenario::CreditDiscipline::FirstFit => Discipline::SkipOver,
        },
        order: match scenario.shaping.request_order {
            scenario::RequestOrder::Fixed => RequestOrder::Fixed,
            scenario::RequestOrder::Rotated => {
                RequestOrder::Rotated((u64::from(place) * readouts / collectors) as u16)
            }
            scenario::RequestOrder::Random => RequestOrder::Random,
        },
        model: match live.processors {
            Processors::Processes => {
                UnitModel::External(steps.first().map(|step| step.collect.clone()).unwrap_or_default())
            }
            Processors::Timers => UnitModel::Steps(steps),
        },
        request_timeout: some(live.request_timeout),
        request_retries: live.request_retries,
        readout_wait: live.readout_wait,
        unit_timeout: match live.processors {
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

/// What a logger is told.
pub fn logger(scenario: &Scenario) -> LoggerConfig {
    LoggerConfig {
        write: WriteModel::External,
        memory: scenario.live.logger_memory,
        ..LoggerConfig::default()
    }
}
