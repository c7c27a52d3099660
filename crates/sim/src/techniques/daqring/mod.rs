//! Rings of destinations ("daqrings"): their figures. `crates/queueing/src/rings.rs` holds and shapes the frames.
//!
//! `crates/sim/src/fabric/rings.rs` chooses a frame's ring.

use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;

struct DaqringTechnique;

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions { build, ..TechniqueFunctions::NONE };

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    Ok(setup.engine.fabric.ring_figures().map(|_| Installed::technique(DaqringTechnique)))
}

impl TechniqueHooks for DaqringTechnique {
    fn key(&self) -> &'static str {
        "daqring"
    }

    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let figures = view.engine.fabric.ring_figures()?;
        Some(json!({
            "rings": figures.rings,
            "frames": figures.frames,
            "drops": figures.drops,
            "frames_max": figures.frames_max,
            "bytes_max": figures.bytes_max,
            "memory_bytes": figures.memory_bytes,
        }))
    }

    /// Checks nothing: the fabric checks the accounts of each ring.
    fn assert_conserved(&self, _: &Engine) {}
}
