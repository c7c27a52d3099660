//! What a technique against incast needs to have any effect: a switch that plays its part, another setting, a value that is not
//! the end of it.

use super::{Check, switches_used};
use crate::types::*;

const NO_PAUSE: &str = "PAUSE is not simulated in a network with rings";

impl Check<'_> {
    /// Senders, receivers, and the switches that tell them.
    pub(super) fn techniques(&mut self) {
        let t = &self.scenario.transport;
        if t.delayed_ack && t.delayed_ack_timeout.is_zero() {
            self.fail(
                "transport.delayed_ack_timeout",
                "acknowledgements that wait for no time are not delayed".to_owned(),
                "zero",
                Some(("transport.delayed_ack", "they may wait")),
                "give at least \"1 us\", or set transport.delayed_ack = false".to_owned(),
            );
        }
        match t.congestion_control {
            CongestionControl::Dctcp => self.dctcp(),
            CongestionControl::M21tcp => self.m21tcp(),
            CongestionControl::Diatcp => self.diatcp(),
            CongestionControl::Swift => self.swift(),
            _ => {}
        }
        self.share("transport.swift.beta", t.swift.beta);
        self.share("transport.swift.decrease_max", t.swift.decrease_max);
        self.share("transport.dctcp.gain", t.dctcp.gain);
        self.share("transport.dctcp.alpha_initial", t.dctcp.alpha_initial);
    }

    fn dctcp(&mut self) {
        let gain = self.scenario.transport.dctcp.gain;
        if gain.is_zero() {
            let message = "with a gain of zero DCTCP never learns the share of marks".to_owned();
            self.fail("transport.dctcp.gain", message, "zero", None, "RFC 8257 has 0.0625".to_owned());
        }
        let marks = |switch: &Switch| matches!(switch.ecn.mode, EcnMode::Threshold | EcnMode::RedMark);
        if !switches_used(self.scenario).iter().any(|(_, switch)| marks(switch)) {
            self.fail(
                "transport.congestion_control",
                "DCTCP needs a switch that marks, and none does".to_owned(),
                "reacts to marks",
                None,
                "set tor.ecn.mode = \"threshold\"".to_owned(),
            );
        }
    }

    fn m21tcp(&mut self) {
        let used = switches_used(self.scenario);
        let mut writing = used.iter().filter(|(_, switch)| switch.m21).peekable();
        if writing.peek().is_none() {
            self.fail(
                "transport.congestion_control",
                "M21TCP needs a switch that writes its option, and none does".to_owned(),
                "is told its window by a switch",
                None,
                "set tor.m21 = true".to_owned(),
            );
            return;
        }
        // One with rings is refused for that.
        if let Some((name, _)) = writing.clone().next()
            && writing.all(|(_, switch)| switch.buffering == Buffering::Unlimited)
        {
            self.fail(
                &format!("{name}.m21"),
                "M21TCP's switches share their buffers out among the flows, and these have no limit"
                    .to_owned(),
                "has nothing to share out",
                Some((&format!("{name}.buffering"), "memory without end")),
                format!(
                    "set {name}.buffering = \"dedicated\" and {name}.buffer, or another congestion control"
                ),
            );
        }
    }

    fn diatcp(&mut self) {
        if self.scenario.transport.diatcp.deadline_aware && self.scenario.workload.deadline.is_zero() {
            self.fail(
                "transport.diatcp.deadline_aware",
                "there is no deadline that shares could heed".to_owned(),
                "by deadlines",
                None,
                "set workload.deadline, such as \"10 ms\", or deadline_aware = false".to_owned(),
            );
        }
    }

    fn swift(&mut self) {
        let swift = &self.scenario.transport.swift;
        if swift.target.is_zero() && swift.scaling.is_zero() {
            self.fail(
                "transport.swift.target",
                "no round trip takes no time: with a target of zero windows only ever fall".to_owned(),
                "zero",
                None,
                "give a time such as \"300 us\", more than the network takes when it is idle".to_owned(),
            );
        }
        for (path, share) in
            [("transport.swift.beta", swift.beta), ("transport.swift.decrease_max", swift.decrease_max)]
        {
            if share.is_zero() {
                let message = format!("with `{path}` at zero windows never fall, whatever the delay");
                self.fail(path, message, "zero", None, "give a share above 0, such as 0.5".to_owned());
            }
        }
    }

    /// Signals that a switch with rings does not give, nor anybody beside it.
    pub(super) fn signals_of_rings(&mut self, name: &str, switch: &Switch) {
        let rings = format!("{name}.buffering");
        // The software switch of a hybrid has rings; the hardware beside it may mark.
        let has_rings = switch.buffering == Buffering::Daqring;
        if switch.ecn.mode != EcnMode::Off && has_rings {
            self.fail(
                &format!("{name}.ecn.mode"),
                "a switch with rings gives no early signals: a mark at a few packets gives the rings' depth away"
                    .to_owned(),
                "marks or drops early",
                Some((&rings, "rings")),
                format!("set {name}.ecn.mode = \"off\", or another {rings}"),
            );
        }
        if switch.m21 {
            self.fail(
                &format!("{name}.m21"),
                "a switch with rings does not write the M21TCP option, which divides a buffer of whole events"
                    .to_owned(),
                "writes the option",
                Some((&rings, "rings")),
                format!("set {name}.m21 = false, or another {rings}"),
            );
        }
        let stopping: Vec<&str> = (switches_used(self.scenario).iter())
            .filter(|(_, switch)| switch.pause.mode != PauseMode::Off)
            // Each once, however many switches have rings.
            .filter(|_| !self.problems.iter().any(|problem| problem.message().starts_with(NO_PAUSE)))
            .map(|(stopping, _)| *stopping)
            .collect();
        for stopping in stopping {
            self.fail(
                &format!("{stopping}.pause.mode"),
                format!("{NO_PAUSE}: it cannot spare one without stopping all that comes by the same port"),
                "stops its neighbours",
                Some((&rings, "rings")),
                format!("set {stopping}.pause.mode = \"off\", or another {rings}"),
            );
        }
    }

    /// Credits pay for requests of an event builder.
    pub(super) fn credits(&mut self) {
        let s = self.scenario;
        if s.shaping.method == ShapingMethod::Credits && s.is_barrier() {
            self.fail(
                "shaping.method",
                "credits pay for fragments of events, and this workload has one request to all senders at once".to_owned(),
                "credits",
                Some(("workload.kind", "this workload")),
                "set shaping.method = \"none\", or workload.kind = \"event-building\"".to_owned(),
            );
        }
    }
}
