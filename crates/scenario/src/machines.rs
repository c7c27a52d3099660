//! The scenario's settings in the words of the state machines (`fanin-dataflow`), for all who drive them: one
//! translation, so that a simulated system and a live one are told the same.

use fanin_dataflow as dataflow;
use fanin_dataflow::{AnswerSize, Delay, Selection, Step};
use fanin_units::{Duration, Ratio};

use crate::types::{Arrivals, CreditDiscipline, Policy, RequestOrder, StartOrder, Supervisor, TieBreak};
use crate::{Scenario, ShapingMethod, WorkloadKind};

/// A delay with so much deviation; zero stands for none.
pub fn delay(mean: Duration, sd: Duration) -> Delay {
    if sd.is_zero() { Delay::Constant(mean) } else { Delay::Normal { mean, sd } }
}

/// When events come.
pub fn arrivals(supervisor: &Supervisor) -> dataflow::Arrivals {
    match supervisor.arrivals {
        Arrivals::Periodic => dataflow::Arrivals::Periodic(supervisor.rate),
        Arrivals::Poisson => dataflow::Arrivals::Poisson(supervisor.rate),
        Arrivals::OnDemand => dataflow::Arrivals::Saturated,
    }
}

/// Who gets the next event.
pub fn policy(supervisor: &Supervisor) -> dataflow::Policy {
    match supervisor.policy {
        Policy::Fcfs => dataflow::Policy::Fcfs,
        Policy::Random => dataflow::Policy::Random,
        Policy::NodeRoundRobin => dataflow::Policy::NodeRoundRobin,
        Policy::NodeLoadBalancing => dataflow::Policy::NodeLoadBalancing(match supervisor.tie_break {
            TieBreak::LeastRecent => dataflow::TieBreak::Rotating,
            TieBreak::Lowest => dataflow::TieBreak::Lowest,
            TieBreak::Random => dataflow::TieBreak::Random,
        }),
        Policy::UnitRoundRobin => dataflow::Policy::UnitRoundRobin,
    }
}

/// In which order units announce themselves.
pub fn start_order(supervisor: &Supervisor) -> dataflow::StartOrder {
    match supervisor.start_order {
        StartOrder::ByHost => dataflow::StartOrder::NodeMajor,
        StartOrder::Interleaved => dataflow::StartOrder::UnitMajor,
        StartOrder::Random => dataflow::StartOrder::Shuffled,
    }
}

/// Fragments that may be on order at a collector; `None` where credits do not shape the traffic.
pub fn credits(scenario: &Scenario) -> Option<u32> {
    match scenario.shaping.method {
        ShapingMethod::Credits => Some(scenario.shaping.credits),
        ShapingMethod::None | ShapingMethod::Fastpass | ShapingMethod::BarrelShifter => None,
    }
}

/// Which blocked request is sent first.
pub fn discipline(scenario: &Scenario) -> dataflow::Discipline {
    match scenario.shaping.discipline {
        CreditDiscipline::Fifo => dataflow::Discipline::Fifo,
        CreditDiscipline::RoundRobin => dataflow::Discipline::RoundRobin,
        CreditDiscipline::SmallestRemaining => dataflow::Discipline::SmallestRemaining,
        CreditDiscipline::FirstFit => dataflow::Discipline::SkipOver,
    }
}

/// In which order collector `place` of `collectors` asks `readouts` readouts.
///
/// # Panics
/// Where there are no collectors.
pub fn request_order(
    scenario: &Scenario,
    place: u64,
    collectors: u64,
    readouts: u64,
) -> dataflow::RequestOrder {
    match scenario.shaping.request_order {
        RequestOrder::Fixed => dataflow::RequestOrder::Fixed,
        RequestOrder::Rotated => dataflow::RequestOrder::Rotated((place * readouts / collectors) as u16),
        RequestOrder::Random => dataflow::RequestOrder::Random,
    }
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

/// What the units do: the scenario's steps, or one over its fraction.
pub fn steps(scenario: &Scenario) -> Vec<Step> {
    let collect = |fraction: Ratio| {
        if fraction == Ratio::ONE { Selection::Rest } else { Selection::Readouts(fraction) }
    };
    if scenario.workload.steps.is_empty() {
        let collectors = &scenario.collectors;
        return vec![Step {
            collect: collect(scenario.workload.fraction),
            processing: delay(collectors.processing_time, collectors.processing_time_sd),
            accept: scenario.logger.accept,
        }];
    }
    let step = |step: &crate::types::Step| Step {
        collect: collect(step.fraction),
        processing: Delay::Constant(step.processing_time),
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
        assert_eq!(step.processing, Delay::Constant(Duration::from_millis(3)));
        let half = scenario(&["workload.fraction=0.5"]);
        assert!(
            matches!(steps(&half)[0].collect, Selection::Readouts(share) if share == half.workload.fraction)
        );
    }

    #[test]
    fn collectors_begin_at_readouts_of_their_own() {
        let rotated = scenario(&["shaping.request_order=rotated"]);
        let firsts: Vec<_> = (0..4).map(|place| request_order(&rotated, place, 4, 10)).collect();
        assert_eq!(firsts, [0, 2, 5, 7].map(dataflow::RequestOrder::Rotated));
        assert_eq!(request_order(&scenario(&[]), 3, 4, 10), dataflow::RequestOrder::Fixed);
    }

    #[test]
    fn credits_count_only_where_they_are_the_method() {
        assert_eq!(credits(&scenario(&["shaping.credits=96"])), Some(96));
        assert_eq!(credits(&scenario(&["shaping.method=fastpass"])), None);
    }
}
