//! M21TCP: windows that a switch grants to each flow.

use fanin_scenario::{CongestionControl, M21Charge, Scenario};
use fanin_units::Bytes;

use super::planned::{PlannedTechnique, WarningFigures};
use crate::bounds::{m21tcp_packets, m21tcp_senders_max, m21tcp_window};
use crate::derived::Derivation;
use crate::event_burst::{Burst, EventBurst};
use crate::system::SystemFigures;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    limit,
    fixes_windows: is_used,
    first_window: |s| is_used(s).then_some(0),
    window_rows,
    warnings,
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.transport.congestion_control == CongestionControl::M21tcp
}

fn limit(s: &Scenario, event: &EventBurst<'_>) -> Option<Burst> {
    if !is_used(s) {
        return None;
    }
    let (t, buffer) = (&s.transport, s.tor.buffer);
    let mss = Bytes::new(event.system.segments.mss());
    let (packets, source) = match t.m21tcp.charge {
        M21Charge::Packet => (
            m21tcp_packets(buffer, event.answers, mss, event.frame.saturating_sub(mss)).value.get(),
            "M21TCP §III.C, each packet charged",
        ),
        M21Charge::Flow => {
            let granted = m21tcp_window(buffer, event.answers, t.m21tcp.header).value;
            (granted.saturating_sub(t.option_bytes()).get() / mss.get(), "M21TCP §III.C eq. (1)")
        }
    };
    // Senders wait for room for a whole segment, but may always have one under way.
    let formula = "flows × granted window in frames";
    Some(event.with_windows(packets.max(1), formula, source, "the switch's windows"))
}

fn window_rows(_: &Scenario, system: &SystemFigures, buffer: Option<Bytes>) -> Vec<Derivation> {
    let Some(buffer) = buffer else { return Vec::new() };
    let (flows, framing) = (system.answers_at_once(), &system.segments);
    let (mss, header) = (Bytes::new(framing.mss()), Bytes::new(framing.headers()));
    let frame = Bytes::new(framing.buffered(mss.get())).saturating_sub(mss);
    vec![
        m21tcp_window(buffer, flows, header).erase(),
        m21tcp_senders_max(buffer, mss, header).erase(),
        m21tcp_packets(buffer, flows, mss, frame).erase(),
    ]
}

fn warnings(s: &Scenario, figures: &WarningFigures<'_>) -> Vec<String> {
    let (flows, most) = (figures.system.answers_at_once(), figures.base("m21tcp_senders_max"));
    if !is_used(s) || flows <= most {
        return Vec::new();
    }
    vec![format!("{flows} senders are more than the {most} for which the switch can grant a full segment")]
}
