//! Warnings, in sentences.

use fanin_scenario::{CongestionControl, Policy, Scenario};
use fanin_units::{Bytes, Duration, Packets, Ratio};

use crate::derived::brief;
use crate::plan::Plan;
use crate::queues::BurstOutcome;
use crate::system::SystemFigures;

/// Returns sentences on settings of a scenario that cannot work, or that cost more than they seem to.
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
    let value = |name: &str| plan.find(name).map(|row| row.value.clone());
    let base = |name: &str| value(name).map_or(0, |value| value.base_value());
    warn(
        base("unit_occupancy") > 1_000_000 && !system.closed_loop,
        format!(
            "{} units are not enough: {} x ({} + {}) keeps {} of them busy",
            system.units,
            brief(system.rate.value),
            brief(system.ideal.value),
            brief(system.processing),
            value("unit_occupancy").map_or_else(String::new, |value| value.to_string())
        ),
    );
    if let Some(share) = value("credit_utilisation") {
        warn(
            share.base_value() < 1_000_000,
            format!(
                "{} credits keep only {share} of a collector's link busy; {} are needed",
                s.shaping.credits,
                value("credits_for_window").map_or_else(String::new, |value| value.to_string())
            ),
        );
    }
    let t = &s.transport;
    let flows = system.answers_at_once();
    if t.congestion_control == CongestionControl::Static {
        let window = base("in_flight_max");
        warn(
            window < base("bdp"),
            format!(
                "windows of {} leave the last hop idle: together they are below its BDP",
                t.static_window
            ),
        );
        warn(
            t.static_window == Packets::new(1) && t.delayed_ack,
            "a window of 1 packet waits for every delayed acknowledgement".to_owned(),
        );
    }
    if t.congestion_control == CongestionControl::M21tcp {
        let most = base("m21tcp_senders_max");
        warn(
            flows > most,
            format!("{flows} senders are more than the {most} for which the switch can grant a full segment"),
        );
    }
    if t.congestion_control == CongestionControl::Dctcp
        && let Some(capacity) = plan.queues[0].capacity
    {
        let frame = Bytes::new(system.segments.buffered(system.segments.mss()));
        let least = frame.checked_mul(flows.saturating_mul(t.dctcp.window_min.get())).unwrap_or(Bytes::MAX);
        let room = capacity.saturating_add(Bytes::new(base("bdp")));
        warn(
            least > room,
            format!(
                "DCTCP cannot help: {flows} flows at their least of {} each are {}, more than {} of buffer and path",
                t.dctcp.window_min,
                brief(least),
                brief(room)
            ),
        );
    }
    if let Some(share) = value("ring_rate_share") {
        warn(
            share.base_value() > 1_000_000,
            format!("the limits of the rings on one port add up to {share} of its rate"),
        );
    }
    if !system.closed_loop && base("ring_drain_time") > 0 {
        let each = u128::from(system.collectors) * 1_000_000_000_000_000
            / u128::from(system.rate.value.get().max(1));
        let drain = Duration::new(base("ring_drain_time"));
        warn(
            u128::from(drain.get()) > each,
            format!("a ring lets an event out in {}, but the next comes sooner", brief(drain)),
        );
    }
    warn(
        base("slow_start_rounds") > 1
            && t.congestion_control != CongestionControl::Static
            && (t.slow_start_after_idle || t.congestion_control == CongestionControl::Cubic),
        format!(
            "an answer needs {} round trips in slow start; the ideal time counts one",
            base("slow_start_rounds")
        ),
    );
    warn(
        s.supervisor.policy == Policy::UnitRoundRobin
            && s.collectors.units_per_host > 1
            && !s.is_barrier()
            && !system.closed_loop,
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
            value("timeout_slowdown").map_or_else(String::new, |value| value.to_string())
        ),
    );
    warnings
}
