//! Static windows (ICC'15): their settings and figures. Senders keep theirs in `crates/tcp/src/congestion/static_window.rs`.

use fanin_network::Collection;
use fanin_scenario::{CongestionControl, Transport};
use fanin_tcp::Config;
use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks, packets};
use crate::Error;
use crate::engine::Engine;

struct StaticWindowTechnique;

pub(super) const TECHNIQUE: TechniqueFunctions =
    TechniqueFunctions { build, configure, ..TechniqueFunctions::NONE };

fn configure(transport: &Transport, config: &mut Config) {
    if transport.congestion_control == CongestionControl::Static {
        let static_window = packets(transport.static_window.get());
        config.congestion_control = fanin_tcp::CongestionConfig::Static { static_window };
    }
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let is_used = setup.scenario.transport.congestion_control == CongestionControl::Static;
    Ok(is_used.then(|| Installed::technique(StaticWindowTechnique)))
}

impl TechniqueHooks for StaticWindowTechnique {
    fn key(&self) -> &'static str {
        "static"
    }

    /// Returns the sum of all windows towards a collector, in packets and as frames in a switch (ICC'15 eqs (6) and (7)). No
    /// queue grows beyond this sum. Frames may be lost if the buffer and the path together hold less.
    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let scenario = view.scenario;
        let senders = Collection::asked(scenario.workload.kind, scenario.senders().into());
        let window = scenario.transport.static_window.get();
        Some(json!({
            "window_packets": window,
            "senders": senders,
            "windows_bytes": senders * window * u64::from(view.network.frame_bytes),
        }))
    }

    /// Checks nothing: `tcp`'s congestion control is the window, and a recovery may inflate the window for a time (RFC 6582).
    fn assert_conserved(&self, _: &Engine) {}
}
