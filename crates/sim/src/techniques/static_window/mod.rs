//! Static windows (ICC'15): their figures. Endpoints keep the window that the scenario gives them.

use fanin_scenario::{CongestionControl, WorkloadKind};
use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;

struct StaticWindow {
    /// The constant window in segments.
    window: u64,
}

pub(super) fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let transport = &setup.scenario.transport;
    let is_used = transport.congestion_control == CongestionControl::Static;
    let window = transport.static_window.get();
    Ok(if is_used { Installed::technique(StaticWindow { window }) } else { None })
}

impl TechniqueHooks for StaticWindow {
    fn key(&self) -> &'static str {
        "static"
    }

    /// All windows towards a collector together, in packets and as frames in a switch (ICC'15 eqs (6) and (7)). No queue
    /// grows beyond that, and a smaller buffer may lose frames, the bytes on the path apart.
    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let scenario = view.scenario;
        let own = u32::from(scenario.workload.kind == WorkloadKind::AllToAll);
        let senders = u64::from(scenario.senders() - own);
        let window = scenario.transport.static_window.get();
        Some(json!({
            "window_packets": window,
            "senders": senders,
            "windows_bytes": senders * window * u64::from(view.network.frame_bytes),
        }))
    }

    /// No window exceeds the static one.
    fn assert_conserved(&self, engine: &Engine) {
        let most = self.window.saturating_mul(u64::from(engine.config.mss));
        assert!(engine.senders().all(|stats| stats.cwnd <= most), "a window exceeds the static window");
    }
}
