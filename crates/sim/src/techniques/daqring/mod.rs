//! Rings of destinations ("daqrings"): their figures. Output queues hold and shape the frames.

use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;

struct Daqring;

pub(super) fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    Ok(if setup.engine.fabric.ring_figures().is_some() { Installed::technique(Daqring) } else { None })
}

impl TechniqueHooks for Daqring {
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

    /// The fabric checks the accounts of each ring.
    fn assert_conserved(&self, _: &Engine) {}
}
