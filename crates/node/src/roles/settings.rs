//! Configurations of the state machines, from a scenario and its settings for real processes (`live`).

use fanin_dataflow::{
    CollectorConfig, LoggerConfig, Purpose, ReadoutConfig, SeedOwner, SupervisorConfig, UnitModel,
    WriteModel, stream_seed,
};
use fanin_scenario::{Processors, Scenario, ShapingMethod, WorkloadKind, role_configs};
use fanin_units::{Bytes, Duration, Instant};

use crate::data::Data;
use crate::node::ProcessError;
use crate::wire::EVENT_BYTES_MAX;

/// Checks that processes can run a scenario.
///
/// # Errors
/// [`ProcessError::Unsupported`] with the first setting that processes do not support.
pub fn check(scenario: &Scenario) -> Result<(), ProcessError> {
    let unsupported = |text: &str| Err(ProcessError::Unsupported(text.to_owned()));
    let other = |key: &str, given: serde_json::Result<String>, supported: &str| {
        let given = given.unwrap_or_default();
        Err(ProcessError::Unsupported(format!(
            "`{key}` is {given}; the live system does {supported}, and no other"
        )))
    };
    match scenario.workload.kind {
        WorkloadKind::EventBuilding => {}
        WorkloadKind::FixedFragment | WorkloadKind::FixedBlock => {
            return unsupported(
                "a barrier workload has no supervisor, readouts and collectors: run it with `fanin run`, \
                 or as `fanin node aggregator` and `fanin node sender`",
            );
        }
        kind => {
            let supported = "\"event-building\", \"fixed-fragment\" and \"fixed-block\"";
            return other("workload.kind", serde_json::to_string(&kind), supported);
        }
    }
    match scenario.shaping.method {
        ShapingMethod::None | ShapingMethod::Credits | ShapingMethod::PacedCredits => {}
        method @ (ShapingMethod::Fastpass | ShapingMethod::BarrelShifter) => {
            let supported = "\"none\", \"credits\" and \"paced-credits\"";
            return other("shaping.method", serde_json::to_string(&method), supported);
        }
    }
    Ok(())
}

/// Returns the seed of a role on a host.
fn seed(scenario: &Scenario, kind: SeedOwner, place: u16) -> u64 {
    stream_seed(scenario.run.seed, kind, place.into(), Purpose::Role)
}

/// Returns the configuration of the supervisor. `resumed` is the time at which it continues the work of an earlier incarnation;
/// `None` for a new run.
///
/// # Errors
/// [`ProcessError::TooMany`].
pub fn supervisor(
    scenario: &Scenario,
    resumed: Option<Instant>,
) -> Result<SupervisorConfig<Data>, ProcessError> {
    let config = role_configs::supervisor(scenario)?;
    Ok(SupervisorConfig {
        start: resumed.unwrap_or(Instant::START),
        // A supervisor that continues does not wait for all units before it assigns events.
        units_awaited: if resumed.is_some() { 0 } else { config.units_awaited },
        reassign_delay: scenario.live.reassign_delay,
        // With a link cut one way, the readout finds the silence first, and the supervisor that of the readout.
        clear_on_way_max: scenario.live.silence_max.checked_mul(4).unwrap_or(Duration::MAX),
        seed: seed(scenario, SeedOwner::Supervisor, 0),
        ..config
    })
}

/// Returns the configuration of a readout.
pub fn readout(scenario: &Scenario, place: u16) -> ReadoutConfig {
    ReadoutConfig { seed: seed(scenario, SeedOwner::Readout, place), ..role_configs::readout(scenario) }
}

/// Returns the configuration of a collector. `fragments` has the number of fragments that each readout serves.
///
/// # Errors
/// [`ProcessError::TooMany`].
pub fn collector(
    scenario: &Scenario,
    place: u16,
    fragments: Vec<u16>,
) -> Result<CollectorConfig, ProcessError> {
    let live = &scenario.live;
    let config = role_configs::collector(scenario, u64::from(place), fragments)?;
    let some = |time: Duration| (!time.is_zero()).then_some(time);
    let (model, processor_timeout) = match (live.processors, config.model) {
        (Processors::Processes, UnitModel::Steps(steps)) => {
            let first = steps.into_iter().next().map(|step| step.collect).unwrap_or_default();
            (UnitModel::External(first), some(live.processor_timeout))
        }
        (_, model) => (model, None),
    };
    Ok(CollectorConfig {
        model,
        request_timeout: some(live.request_timeout),
        request_retries: live.request_retries,
        readout_wait: live.readout_wait,
        processor_timeout,
        logger_timeout: some(live.logger_timeout),
        event_max: Some(Bytes::new(EVENT_BYTES_MAX)),
        shipping_max: role_configs::small("live.shipping_max", u64::from(live.shipping_max))?,
        seed: seed(scenario, SeedOwner::Collector, place),
        ..config
    })
}

/// Returns the configuration of a logger that writes to a real disk.
pub fn logger(scenario: &Scenario) -> LoggerConfig {
    LoggerConfig {
        write: WriteModel::External,
        logger_memory: scenario.live.logger_memory,
        ..LoggerConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsupported_setting_is_named_with_its_value() {
        let refused = |preset: &str, set: &str| {
            let scenario = fanin_scenario::load(preset, &[set.to_owned()]).unwrap().scenario;
            check(&scenario).unwrap_err().to_string()
        };
        let kind = refused("lcn15-all-to-all", "run.seed=1");
        assert!(kind.contains("`workload.kind` is \"all-to-all\"; the live system does"), "{kind}");
        let method = refused("replay", "shaping.method=fastpass");
        assert!(method.contains("`shaping.method` is \"fastpass\"; the live system does"), "{method}");
    }
}
