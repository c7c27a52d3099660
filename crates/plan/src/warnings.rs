//! Warnings, in sentences.

use fanin_scenario::{BackgroundKind, Policy, Scenario};
use fanin_units::{Duration, Ratio};

use crate::derived::brief;
use crate::plan::Plan;
use crate::queues::BurstOutcome;
use crate::system::SystemFigures;
use crate::techniques::{TECHNIQUES, WarningFigures};

/// Returns sentences on settings of a scenario that cannot work, or cost more than they seem to.
pub(crate) fn warnings(s: &Scenario, system: &SystemFigures, plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |is_wrong: bool, text: String| {
        if is_wrong {
            warnings.push(text);
        }
    };
    for link in &plan.links {
        let (load, count) = (brief(link.load.value), link.count);
        warn(
            link.load.value > Ratio::ONE,
            format!(
                "{} is offered {load} of what its {count} links carry; events pile up without end",
                link.name
            ),
        );
    }
    let background = &s.background;
    warn(
        background.connections > 0 && background.kind == BackgroundKind::Bulk,
        format!(
            "{} background connections to each collector always have data: loads count events alone, and these \
             connections take what events leave of each link, or more",
            background.connections
        ),
    );
    warn(
        background.connections > 0,
        "the figures of queues count events alone: background traffic fills buffers, too".to_owned(),
    );
    let capacity = plan.queues[0].capacity;
    let figures = WarningFigures { system, capacity, find: &|name| plan.find(name) };
    let (base, text) = (|name| figures.base(name), |name| figures.text(name));
    warn(
        base("unit_occupancy") > 1_000_000 && !system.is_closed_loop,
        format!(
            "{} units are not enough: {} x ({} + {}) keeps {} of them busy",
            system.units,
            brief(system.rate.value),
            brief(system.ideal.value),
            brief(system.processing),
            text("unit_occupancy")
        ),
    );
    TECHNIQUES
        .iter()
        .flat_map(|technique| (technique.warnings)(s, &figures))
        .for_each(|text| warn(true, text));
    warn(
        base("ring_rate_share") > 1_000_000,
        format!("the limits of the rings on one port add up to {} of its rate", text("ring_rate_share")),
    );
    if !system.is_closed_loop && base("ring_drain_time") > 0 {
        let each = u128::from(system.collectors) * 1_000_000_000_000_000
            / u128::from(system.rate.value.get().max(1));
        let drain = Duration::new(base("ring_drain_time"));
        warn(
            u128::from(drain.get()) > each,
            format!("a ring lets an event out in {}, but the next comes sooner", brief(drain)),
        );
    }
    let t = &s.transport;
    let starts_slowly = TECHNIQUES.iter().find_map(|technique| (technique.starts_slowly)(s));
    warn(
        base("slow_start_rounds") > 1 && starts_slowly.unwrap_or(t.slow_start_after_idle),
        format!(
            "an answer needs {} round trips in slow start; the ideal time counts one",
            base("slow_start_rounds")
        ),
    );
    warn(
        s.supervisor.policy == Policy::UnitRoundRobin
            && s.collectors.units_per_host > 1
            && !s.is_barrier()
            && !system.is_closed_loop,
        format!(
            "unit-round-robin gives {} events in a row to the same collector, whose link they share",
            s.collectors.units_per_host
        ),
    );
    let (outcome, _) = plan.verdict();
    warn(
        matches!(outcome, BurstOutcome::Loses | BurstOutcome::MayLose) && base("timeout_slowdown") > 0,
        format!(
            "a lost tail costs a timeout of {}: {} times the time of an undisturbed event",
            t.rto_min,
            text("timeout_slowdown")
        ),
    );
    warnings
}
