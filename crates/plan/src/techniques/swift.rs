//! Swift: senders hold the delay at a target.

use fanin_scenario::{CongestionControl, Scenario};

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    is_signalled: is_used,
    first_window: |s| is_used(s).then_some(0),
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.transport.congestion_control == CongestionControl::Swift
}
