//! The steps of Fastpass, as they are scheduled.

use super::*;

#[test]
fn each_step_is_read_as_it_was_scheduled() {
    use PacerStep::*;
    for step in
        [SlotDecision, SlotStart, RequestInHorizon, ArbiterFailure, ArbiterFailover, PairSlot(0), PairSlot(7)]
    {
        assert_eq!(PacerStep::of(step.scheduled(3)), step);
    }
}
