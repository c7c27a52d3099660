//! M21TCP (Adesanmi and Mhamdi): switches write each flow's permitted window into the path-window option of passing frames.
//! Receivers echo the window, which bounds the senders' windows.

mod switches;

use fanin_queueing::{M21Switch, M21WindowRule};
use fanin_scenario::{CongestionControl, M21Charge, M21tcpSettings, Transport};
use fanin_tcp::Config;
use fanin_units::Bytes;
use serde_json::{Value, json};

use super::hooks::{ActsAt, Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;
use crate::fabric::{Crossing, switch_layouts};
use crate::index::{EndIndex, peer};

use switches::{M21Counters, M21Switches};

struct M21tcpTechnique {
    switches: M21Switches,
}

pub(super) const TECHNIQUE: TechniqueFunctions =
    TechniqueFunctions { build, configure, ..TechniqueFunctions::NONE };

/// Lets the path's window bound the window of the profile's congestion control (M21TCP §III.C).
fn configure(transport: &Transport, config: &mut Config) {
    if transport.congestion_control == CongestionControl::M21tcp {
        config.path_window = true;
        config.path_window_deduction = match transport.m21tcp.charge {
            M21Charge::Flow => transport.option_bytes().get() as u32,
            M21Charge::Packet => 0,
        };
    }
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let Setup { scenario, network, engine, .. } = setup;
    let layouts = switch_layouts(network)?;
    assert!(
        layouts.iter().all(|(kind, layout)| !kind.settings.m21 || layout.is_some()),
        "M21TCP's option in rings passed the check `signals_of_rings`"
    );
    if scenario.transport.congestion_control != CongestionControl::M21tcp {
        return Ok(None);
    }
    let (settings, mss) = (&scenario.transport.m21tcp, engine.config().mss);
    let mut switches = M21Switches::new(settings, mss);
    for (kind, layout) in &layouts {
        let frame = u64::from(network.frame_bytes) + kind.settings.frame_overhead.get();
        let known = layout.as_ref().filter(|_| kind.settings.m21);
        switches.add(known.map(|layout| (layout, window_rule(settings, mss, frame))), settings);
    }
    Ok(Some(Installed::technique(M21tcpTechnique { switches })))
}

/// Returns the rule by which switches divide a buffer. A full frame carries `mss` and takes `frame_bytes` in a buffer.
fn window_rule(settings: &M21tcpSettings, mss: u16, frame_bytes: u64) -> M21WindowRule {
    let (charge, mss) = (settings.charge, Bytes::new(u64::from(mss)));
    let header = match charge {
        M21Charge::Flow => settings.header,
        M21Charge::Packet => Bytes::new(frame_bytes).saturating_sub(mss),
    };
    M21WindowRule { charge, mss, header }
}

impl TechniqueHooks for M21tcpTechnique {
    fn key(&self) -> &'static str {
        "m21tcp"
    }

    fn acts_at(&self) -> ActsAt {
        ActsAt::Switches
    }

    /// Applies the handshakes, which came before the run: switches count all flows, and senders know their windows.
    fn on_start(&mut self, engine: &mut Engine) {
        for (index, end) in engine.ends().iter().enumerate() {
            for crossing in engine.fabric.crossings(end.route) {
                self.switches.open(crossing, peer(index as EndIndex));
            }
        }
        for index in 0..engine.ends().len() as EndIndex {
            let crossings = engine.fabric.crossings(engine.ends()[index as usize].route);
            let granted = crossings.map(|crossing| self.switches.granted(crossing)).min();
            if let Some(granted) = granted {
                engine.limit_window(index, granted);
            }
        }
    }

    fn on_forward(&mut self, engine: &mut Engine, crossing: Crossing, end: EndIndex, place: usize) {
        self.switches.handle_frame(engine.now(), crossing, end, engine.fabric.segment_mut(place));
    }

    fn assert_conserved(&self, _: &Engine) {
        self.switches.assert_conserved();
    }

    fn figures(&self, _: &RunView<'_>) -> Option<Value> {
        let M21Counters { written, rewritten, window_min, below_segment } = self.switches.counters;
        let known = || self.switches.known();
        let mut figures = json!({
            "flows_max": known().map(M21Switch::flows_most).max().unwrap_or(0),
            "flows_aged": known().map(|switch| switch.flows().aged()).sum::<u64>(),
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
