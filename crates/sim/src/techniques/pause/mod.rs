//! PAUSE and priority flow control: gives the figures.
//!
//! `crates/queueing/src/pause.rs` decides when an input stops its neighbour; `crates/sim/src/fabric/pause` sends the signal;
//! `crates/queueing/src/pausable.rs` is the queue that is paused.

use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;

struct PauseTechnique;

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions {
    build,
    holding_cause: |s| s.engine.fabric.uses_pause().then_some(("pause-wait", "ports that PAUSE held")),
    ..TechniqueFunctions::NONE
};

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    Ok(setup.engine.fabric.uses_pause().then(|| Installed::technique(PauseTechnique)))
}

impl TechniqueHooks for PauseTechnique {
    fn key(&self) -> &'static str {
        "pause"
    }

    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let figures = view.engine.fabric.pause_figures(view.engine.now())?;
        Some(json!({
            "pauses": figures.pauses,
            "resumes": figures.resumes,
            "hosts_stopped": figures.hosts_stopped,
            "switch_ports_stopped": figures.switch_ports_stopped,
            "stop_ms_max": figures.stop_ms_max,
            "stopped_share_max": figures.stopped_share_max,
            "storms": figures.storms,
            "input_bytes_max": figures.input_bytes_max,
        }))
    }

    /// Asserts that every RESUME follows a PAUSE. The fabric checks each queue and each input.
    fn assert_conserved(&self, engine: &Engine) {
        let figures = engine.fabric.pause_figures(engine.now()).expect("a switch uses PAUSE");
        assert!(figures.resumes <= figures.pauses, "more neighbours were resumed than paused");
    }
}
