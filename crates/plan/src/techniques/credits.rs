//! Credits: a fixed number of fragments that a collector may have outstanding.

use fanin_scenario::{Scenario, role_configs};
use fanin_units::Packets;

use super::planned::{PlannedTechnique, WarningFigures};
use crate::bounds::{credit_burst, credit_collection_time, credit_utilisation};
use crate::derived::Derivation;
use crate::event_burst::{Burst, EventBurst};
use crate::system::SystemFigures;

pub(super) const TECHNIQUE: PlannedTechnique =
    PlannedTechnique { limit, outstanding_max, credit_rows, warnings, ..PlannedTechnique::NONE };

/// Returns the credits of a collector; `None` if the scenario uses none.
fn credits(s: &Scenario) -> Option<u64> {
    role_configs::credits(s).map(u64::from)
}

fn outstanding_max(s: &Scenario, system: &SystemFigures) -> Option<u64> {
    Some(system.requests().concurrent(credits(s)?))
}

fn limit(s: &Scenario, event: &EventBurst<'_>) -> Option<Burst> {
    let system = event.system;
    let packets = Packets::new(outstanding_max(s, system)? * system.answer.segments.get());
    let frames = credit_burst(credits(s)?, &system.requests());
    Some(Burst { varies_with_size: true, ..Burst::limited(frames, packets, "credits") })
}

fn credit_rows(s: &Scenario, system: &SystemFigures) -> Vec<Derivation> {
    let Some(credits) = credits(s) else { return Vec::new() };
    let (requests, rate, rtt) = (system.requests(), system.last_hop, system.rtt.value);
    let mut rows = vec![
        credit_burst(credits, &requests).erase(),
        credit_utilisation(credits, &requests, rate, rtt).erase(),
    ];
    rows.extend(credit_collection_time(credits, &requests, rate, rtt).map(|time| time.erase()));
    rows
}

fn warnings(s: &Scenario, figures: &WarningFigures<'_>) -> Vec<String> {
    let is_too_few = |share: &&Derivation| share.value.base_value() < 1_000_000;
    let share = (figures.find)("credit_utilisation").filter(is_too_few);
    let text = share.map(|share| {
        format!(
            "{} credits keep only {} of a collector's link busy; {} are needed",
            s.shaping.credits,
            share.value,
            figures.text("credits_for_window")
        )
    });
    text.into_iter().collect()
}
