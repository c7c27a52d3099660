//! DCTCP: its settings and figures. Senders act in `crates/tcp/src/congestion/dctcp.rs`.
//!
//! Switches mark in `crates/queueing/src/aqm/threshold.rs`; receivers echo marks in `crates/tcp/src/receiver/marks.rs`.

use fanin_scenario::{CongestionControl, Transport};
use fanin_tcp::{Config, DctcpParameters};
use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks, packets};
use crate::Error;
use crate::engine::Engine;

struct DctcpTechnique;

pub(super) const TECHNIQUE: TechniqueFunctions =
    TechniqueFunctions { build, configure, ..TechniqueFunctions::NONE };

/// Sets DCTCP's parameters. Turns on ECN with an exact echo of marks (RFC 8257 §3.2).
fn configure(transport: &Transport, config: &mut Config) {
    if transport.congestion_control == CongestionControl::Dctcp {
        let settings = &transport.dctcp;
        config.congestion_control = fanin_tcp::CongestionConfig::Dctcp(DctcpParameters {
            gain: settings.gain.get() as u32,
            alpha_initial: settings.alpha_initial.get() as u32,
            window_min: packets(settings.window_min.get()),
        });
        (config.ecn, config.ecn_exact) = (true, true);
    }
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let is_used = setup.scenario.transport.congestion_control == CongestionControl::Dctcp;
    Ok(is_used.then(|| Installed::technique(DctcpTechnique)))
}

impl TechniqueHooks for DctcpTechnique {
    fn key(&self) -> &'static str {
        "dctcp"
    }

    /// Returns the data senders' marked share α at the end, and the number of their window reductions.
    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let (mut senders, mut sum, mut max, mut reductions) = (0_u64, 0_u64, 0, 0);
        for stats in view.engine.senders() {
            senders += 1;
            sum += u64::from(stats.alpha_ppm);
            max = max.max(stats.alpha_ppm);
            reductions += stats.ecn_reductions;
        }
        let mean = if senders == 0 { 0.0 } else { sum as f64 / senders as f64 / 1e6 };
        Some(json!({ "alpha_mean": mean, "alpha_max": f64::from(max) / 1e6, "reductions": reductions }))
    }

    /// Asserts that no marked share exceeds one.
    fn assert_conserved(&self, engine: &Engine) {
        assert!(engine.senders().all(|stats| stats.alpha_ppm <= 1_000_000), "a marked share exceeds one");
    }
}
