//! Static windows: a fixed congestion window of each sender.

use fanin_scenario::{CongestionControl, Scenario};
use fanin_units::{Bytes, Packets};

use super::planned::{PlannedTechnique, WarningFigures};
use crate::bounds::{bandwidth_delay_product, buffer_needed, in_flight_max, throughput_bound};
use crate::derived::Derivation;
use crate::event_burst::{Burst, EventBurst};
use crate::system::SystemFigures;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    limit,
    fixes_windows: is_used,
    window_max: window,
    first_window: window,
    starts_slowly: |s| is_used(s).then_some(false),
    window_rows,
    warnings,
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.transport.congestion_control == CongestionControl::Static
}

fn window(s: &Scenario) -> Option<u64> {
    is_used(s).then_some(s.transport.static_window.get())
}

fn limit(s: &Scenario, event: &EventBurst<'_>) -> Option<Burst> {
    let (formula, source) = ("flows × window in frames", "ICC'15 §IV.C eq. (7)");
    window(s).map(|window| event.with_windows(window, formula, source, "static windows"))
}

fn window_rows(s: &Scenario, system: &SystemFigures, _: Option<Bytes>) -> Vec<Derivation> {
    if !is_used(s) {
        return Vec::new();
    }
    let (window, mtu) = (s.transport.static_window, Bytes::new(system.segments.mtu));
    let flows = system.answers_at_once();
    let bdp = bandwidth_delay_product(system.last_hop, system.rtt.value);
    let in_flight = in_flight_max(flows, 1, window, mtu);
    let mut rows = vec![in_flight.erase(), buffer_needed(in_flight.value, bdp.value).erase()];
    if system.collectors > 1 {
        let all = in_flight_max(flows, system.collectors, window, mtu).named("in_flight_max.all");
        rows.push(all.erase());
        rows.push(buffer_needed(all.value, bdp.value).named("buffer_needed.all").erase());
    }
    if !system.rtt.value.is_zero() {
        let bytes = window.checked_times(mtu).unwrap_or(Bytes::MAX);
        rows.push(throughput_bound(bytes, system.rtt.value).named("throughput_bound.flow").erase());
    }
    rows
}

fn warnings(s: &Scenario, figures: &WarningFigures<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if !is_used(s) {
        return warnings;
    }
    let window = s.transport.static_window;
    if figures.base("in_flight_max") < figures.base("bdp") {
        warnings
            .push(format!("windows of {window} leave the last hop idle: together they are below its BDP"));
    }
    if window == Packets::new(1) && s.transport.delayed_ack {
        warnings.push("a window of 1 packet waits for every delayed acknowledgement".to_owned());
    }
    warnings
}
