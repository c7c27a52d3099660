//! Early marking in switches (RED, DCTCP's threshold): its figures. Queues mark in `crates/queueing/src/aqm`.
//!
//! Senders with ECN reduce their windows in `crates/tcp/src/reduction.rs`.

use fanin_queueing::AdmissionLimit;
use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;

struct EcnTechnique;

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions { build, ..TechniqueFunctions::NONE };

fn build(_: &Setup<'_>) -> Result<Option<Installed>, Error> {
    Ok(Some(Installed::technique(EcnTechnique)))
}

impl TechniqueHooks for EcnTechnique {
    fn key(&self) -> &'static str {
        "ecn"
    }

    /// Returns the frames offered to, marked by and dropped by markers; `None` where no port marks.
    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let fabric = &view.engine.fabric;
        let (mut offered, mut marked, mut dropped) = (0, 0, 0);
        let mut any = false;
        for buffer in fabric.buffers().filter(|buffer| buffer.has_aqm()) {
            any = true;
            let counters = buffer.counters();
            offered += counters.enqueued.frames + counters.dropped_total().frames;
            marked += counters.marked.frames;
            dropped += counters.dropped_by(AdmissionLimit::Early).frames;
        }
        let share = if offered == 0 { 0.0 } else { marked as f64 / offered as f64 };
        any.then(
            || json!({ "frames": offered, "marked": marked, "marked_share": share, "dropped_early": dropped }),
        )
    }

    /// Asserts that no sender reduced its window for a mark if no switch marked a frame.
    fn assert_conserved(&self, engine: &Engine) {
        let (_, marks) = engine.fabric.drops_and_marks();
        let reductions: u64 = engine.split_ends().0.iter().map(|end| end.endpoint.ecn_reductions()).sum();
        assert!(marks > 0 || reductions == 0, "senders obeyed marks that no switch set");
    }
}
