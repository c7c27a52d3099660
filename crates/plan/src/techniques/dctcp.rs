//! DCTCP: senders reduce their windows by the share of marked frames.

use fanin_scenario::{CongestionControl, Scenario};
use fanin_units::Bytes;

use super::planned::{PlannedTechnique, WarningFigures};
use crate::derived::brief;

pub(super) const TECHNIQUE: PlannedTechnique =
    PlannedTechnique { is_signalled: is_used, warnings, ..PlannedTechnique::NONE };

fn is_used(s: &Scenario) -> bool {
    s.transport.congestion_control == CongestionControl::Dctcp
}

fn warnings(s: &Scenario, figures: &WarningFigures<'_>) -> Vec<String> {
    let Some(capacity) = figures.capacity.filter(|_| is_used(s)) else { return Vec::new() };
    let (system, window_min) = (figures.system, s.transport.dctcp.window_min);
    let flows = system.answers_at_once();
    let frame = Bytes::new(system.segments.buffered(system.segments.mss()));
    let least = frame.checked_mul(flows.saturating_mul(window_min.get())).unwrap_or(Bytes::MAX);
    let room = capacity.saturating_add(Bytes::new(figures.base("bdp")));
    if least <= room {
        return Vec::new();
    }
    vec![format!(
        "DCTCP cannot help: {flows} flows at their least of {window_min} each are {}, more than {} of buffer and path",
        brief(least),
        brief(room)
    )]
}
