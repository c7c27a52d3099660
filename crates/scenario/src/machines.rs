//! Settings of the state machines (`fanin-dataflow`) that are computed from several keys of a scenario. Both the simulated
//! and the live system use them. Every other setting is the value of the key of the same name.

use fanin_dataflow::{AnswerSize, CollectionStep, Delay, Selection};
use fanin_units::{Duration, Ratio};

use crate::{Scenario, WorkloadKind};

/// A delay with this mean and standard deviation: normal, or constant if the deviation is zero.
pub fn delay(mean: Duration, sd: Duration) -> Delay {
    if sd.is_zero() { Delay::Constant(mean) } else { Delay::Normal { mean, sd } }
}

/// The first readout of collector `place` out of `collectors` under `shaping.request_order = "rotated"`.
///
/// # Panics
/// If there are no collectors.
pub fn first_readout(place: u64, collectors: u64, readouts: u64) -> u16 {
    (place * readouts / collectors) as u16
}

/// The size of the answers of a barrier workload.
pub fn request_size(scenario: &Scenario) -> AnswerSize {
    let size = scenario.workload.request_size;
    match scenario.workload.kind {
        WorkloadKind::FixedBlock => AnswerSize::FixedBlock(size),
        WorkloadKind::FixedFragment
        | WorkloadKind::EventBuilding
        | WorkloadKind::Push
        | WorkloadKind::AllToAll => AnswerSize::FixedFragment(size),
    }
}

/// The steps of a collection: `workload.steps`, or one step over `workload.fraction`.
pub fn steps(scenario: &Scenario) -> Vec<CollectionStep> {
    let collect = |fraction: Ratio| {
        if fraction == Ratio::ONE { Selection::Rest } else { Selection::Readouts(fraction) }
    };
    if scenario.workload.steps.is_empty() {
        let collectors = &scenario.collectors;
        return vec![CollectionStep {
            collect: collect(scenario.workload.fraction),
            processing_time: delay(collectors.processing_time, collectors.processing_time_sd),
            accept: scenario.logger.accept,
        }];
    }
    let step = |step: &crate::types::Step| CollectionStep {
        collect: collect(step.fraction),
        processing_time: Delay::Constant(step.processing_time),
        accept: step.accept,
    };
    scenario.workload.steps.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(sets: &[&str]) -> Scenario {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        crate::load("thesis-a-1000hz", &sets).unwrap_or_else(|errors| panic!("{errors}")).scenario
    }

    #[test]
    fn what_is_not_split_into_steps_is_one_step() {
        let whole = scenario(&["collectors.processing_time=3 ms", "collectors.processing_time_sd=0 s"]);
        let [step] = &steps(&whole)[..] else { panic!("{:?}", steps(&whole)) };
        assert!(matches!(step.collect, Selection::Rest));
        assert_eq!(step.processing_time, Delay::Constant(Duration::from_millis(3)));
        let half = scenario(&["workload.fraction=0.5"]);
        assert!(
            matches!(steps(&half)[0].collect, Selection::Readouts(share) if share == half.workload.fraction)
        );
    }

    #[test]
    fn collectors_begin_at_readouts_of_their_own() {
        let firsts: Vec<_> = (0..4).map(|place| first_readout(place, 4, 10)).collect();
        assert_eq!(firsts, [0, 2, 5, 7]);
    }

    #[test]
    fn credits_count_only_where_they_are_the_method() {
        assert_eq!(scenario(&["shaping.credits=96"]).shaping.credit_limit(), Some(96));
        assert_eq!(scenario(&["shaping.method=fastpass"]).shaping.credit_limit(), None);
    }
}
