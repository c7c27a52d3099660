//! ICTCP (Wu et al., IEEE/ACM ToN 2013): receivers set each connection's window by the rules of [`fanin_dataflow::Ictcp`].

use fanin_dataflow::{Ictcp, IctcpCounters};
use fanin_scenario::{CongestionControl, Transport};
use fanin_tcp::Config;
use fanin_units::Rate;
use serde_json::{Value, json};

use super::hooks::{ActsAt, Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;
use crate::index::{EndIndex, NIL};

/// ICTCP at the receivers of bulk data.
struct IctcpTechnique {
    ictcp: Ictcp,
    /// The receiving ends, their hosts and the rates of their links.
    ends: Vec<(EndIndex, u32, Rate)>,
}

pub(super) const TECHNIQUE: TechniqueFunctions =
    TechniqueFunctions { build, configure, ..TechniqueFunctions::NONE };

/// Keeps the profile's sender (ICTCP §IV). Allows receivers to shrink a window.
fn configure(transport: &Transport, config: &mut Config) {
    config.shrink_window |= transport.congestion_control == CongestionControl::Ictcp;
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let Setup { scenario, network, engine, bulk_connections, .. } = setup;
    if scenario.transport.congestion_control != CongestionControl::Ictcp {
        return Ok(None);
    }
    // The first end of a connection receives its answers. A connection of a host with itself carries nothing.
    let receiver = |index: EndIndex| {
        let end = &engine.ends()[index as usize];
        let has_path = end.route.port != NIL;
        has_path.then(|| (index, end.host, network.link(end.route.port).rate))
    };
    let ends = (0..2 * bulk_connections).step_by(2).filter_map(receiver).collect();
    Ok(Some(Installed::technique(IctcpTechnique { ictcp: Ictcp::new(engine.config().mss), ends })))
}

impl TechniqueHooks for IctcpTechnique {
    fn key(&self) -> &'static str {
        "ictcp"
    }

    fn acts_at(&self) -> ActsAt {
        ActsAt::Hosts
    }

    fn on_start(&mut self, engine: &mut Engine) {
        for &(index, host, rate) in &self.ends {
            let window = self.ictcp.add(host, index, rate);
            engine.end(index).endpoint.set_window_clamp(window);
        }
    }

    /// Sets a window that has changed; the next acknowledgement carries it.
    fn on_segment(&mut self, engine: &mut Engine, index: EndIndex, payload: u32, wire_bytes: u32) {
        if payload == 0 {
            return;
        }
        let (now, rtt) = (engine.now(), engine.stats(index).srtt.get());
        let end = engine.end(index);
        if let Some(window) = self.ictcp.handle_data(now, [end.host, index], payload, wire_bytes, rtt) {
            end.endpoint.set_window_clamp(window);
        }
    }

    fn assert_conserved(&self, engine: &Engine) {
        let held = |&(index, host, _): &(EndIndex, u32, Rate)| {
            (index, host, engine.ends()[index as usize].endpoint.window_clamp())
        };
        self.ictcp.assert_conserved(self.ends.iter().map(held));
    }

    fn figures(&self, _: &RunView<'_>) -> Option<Value> {
        let IctcpCounters { increases, decreases, window_max } = self.ictcp.counters();
        Some(json!({ "increases": increases, "decreases": decreases, "window_segments_max": window_max }))
    }
}
