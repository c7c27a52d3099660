//! ICTCP: receivers set the windows of their senders.

use fanin_scenario::CongestionControl;

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    is_signalled: |s| s.transport.congestion_control == CongestionControl::Ictcp,
    ..PlannedTechnique::NONE
};
