//! M21TCP (Adesanmi and Mhamdi): the windows that handshakes before the run were granted, and the figures. Switches write
//! the option into passing frames, endpoints obey it.

use fanin_queueing::M21Switch;
use serde_json::{Value, json};

use super::hooks::{Installed, RunView, Setup, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;
use crate::index::{EndIndex, peer};
use crate::m21::M21Counters;

struct M21tcp;

pub(super) fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    Ok(if setup.engine.fabric.m21.is_some() { Installed::technique(M21tcp) } else { None })
}

impl TechniqueHooks for M21tcp {
    fn key(&self) -> &'static str {
        "m21tcp"
    }

    /// The handshakes before the run have passed: switches count all flows, and senders know their windows.
    fn on_start(&mut self, engine: &mut Engine) {
        let Engine { ends, fabric, config, .. } = engine;
        for (index, end) in ends.iter().enumerate() {
            fabric.open_flow(end.route, peer(index as EndIndex));
        }
        for end in ends {
            if let Some(granted) = fabric.granted(end.route) {
                end.endpoint.limit_window(config, granted);
            }
        }
    }

    fn figures(&self, view: &RunView<'_>) -> Option<Value> {
        let m21 = view.engine.fabric.m21.as_ref()?;
        let M21Counters { written, rewritten, window_min, below_segment } = m21.counters;
        let mut figures = json!({
            "flows_max": m21.switches().map(M21Switch::flows_most).max().unwrap_or(0),
            "flows_aged": m21.switches().map(|switch| switch.flows().aged()).sum::<u64>(),
            "windows_written": written,
            "echoes_rewritten": rewritten,
            "frames_below_segment": below_segment,
        });
        if window_min != u32::MAX {
            figures["window_bytes_min"] = window_min.into();
        }
        Some(figures)
    }
}
