//! Swift: its settings and figures. Senders act on the delay in `crates/tcp/src/congestion/swift.rs`.

use fanin_scenario::{CongestionControl, Transport};
use fanin_tcp::{Config, Reduction, SwiftParameters};
use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;

struct SwiftTechnique;

pub(super) const TECHNIQUE: TechniqueFunctions =
    TechniqueFunctions { build, configure, ..TechniqueFunctions::NONE };

fn configure(transport: &Transport, config: &mut Config) {
    if transport.congestion_control == CongestionControl::Swift {
        let settings = &transport.swift;
        config.congestion_control = fanin_tcp::CongestionConfig::Swift(SwiftParameters {
            target: settings.target,
            scaling: settings.scaling,
            beta: settings.beta.get() as u32,
            decrease_max: settings.decrease_max.get() as u32,
        });
    }
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let is_used = setup.scenario.transport.congestion_control == CongestionControl::Swift;
    Ok(is_used.then(|| Installed::technique(SwiftTechnique)))
}

impl TechniqueHooks for SwiftTechnique {
    fn key(&self) -> &'static str {
        "swift"
    }

    /// Returns the mean round-trip time and window of the data senders at the end.
    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let stats: Vec<_> = view.engine.senders().collect();
        let mean = |sum: f64| if stats.is_empty() { 0.0 } else { sum / stats.len() as f64 };
        Some(json!({
            "delay_us_mean": mean(stats.iter().map(|stats| stats.srtt.get() as f64 / 1e6).sum()),
            "window_bytes_mean": mean(stats.iter().map(|stats| stats.cwnd as f64).sum()),
        }))
    }

    /// Asserts that no window is below a segment. In ns-3's recovery it is one byte where ns-3 closes it.
    fn assert_conserved(&self, engine: &Engine) {
        let config = engine.config();
        let least = if config.reduction == Reduction::Ns3 { 1 } else { u64::from(config.mss) };
        assert!(engine.senders().all(|stats| stats.cwnd >= least), "a window is below a segment");
    }
}
