//! Requirements of the techniques against incast: support by a switch, a second setting, values with which they work.

use fanin_units::Duration;

use super::ScenarioCheck;
use super::times::LONGEST;
use super::topology::switches_used;
use crate::types::*;

/// The shortest timeout of SIRD: no round trip is shorter, and each expiry sends a message.
const SIRD_TIMEOUT_MIN: Duration = Duration::from_micros(1);

impl ScenarioCheck<'_> {
    /// Checks congestion controls and the switches that they depend on.
    pub(super) fn techniques(&mut self) {
        let t = &self.scenario.transport;
        if t.delayed_ack && t.delayed_ack_timeout.is_zero() {
            self.fail(
                "transport.delayed_ack_timeout",
                "the longest delay of acknowledgements is zero; the minimum is 1 ps".to_owned(),
                "zero",
                Some(("transport.delayed_ack", "acknowledgements are delayed")),
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
            let message = "with a gain of zero DCTCP never reacts to marks".to_owned();
            self.fail("transport.dctcp.gain", message, "zero", None, "RFC 8257 has 0.0625".to_owned());
        }
        let marks = |switch: &SwitchSettings| switch.ecn.mode.marks();
        if !switches_used(self.scenario).iter().any(|(_, switch)| marks(switch)) {
            self.fail(
                "transport.congestion_control",
                "DCTCP needs a switch that marks, and no switch does".to_owned(),
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
                "M21TCP needs a switch that writes its option, and no switch does".to_owned(),
                "gets its window from a switch",
                None,
                "set tor.m21 = true".to_owned(),
            );
            return;
        }
        // A switch with rings is refused elsewhere.
        if let Some((name, _)) = writing.clone().next()
            && writing.all(|(_, switch)| switch.buffering == Buffering::Unlimited)
        {
            self.fail(
                &format!("{name}.m21"),
                "M21TCP divides a switch's buffer among the flows, and this buffer is unlimited".to_owned(),
                "has no limit to divide",
                Some((&format!("{name}.buffering"), "unlimited memory")),
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
                "shares by deadline need a deadline".to_owned(),
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
                "every round-trip time is above a target of zero: windows only ever fall".to_owned(),
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

    /// Checks SIRD's keys against one another.
    pub(super) fn sird(&mut self) {
        let (s, t) = (self.scenario, &self.scenario.transport.sird);
        self.share("transport.sird.gain", t.gain);
        for (path, value) in
            [("transport.sird.bucket", t.bucket), ("transport.sird.sender_bucket", t.sender_bucket)]
        {
            if value.is_zero() {
                let message = "without credit no message is sent".to_owned();
                self.fail(path, message, "zero", None, "give a number of BDPs such as 1.5".to_owned());
            }
        }
        if t.timeout.is_zero() {
            let message = "with a timeout of zero everything is requested twice".to_owned();
            self.fail(
                "transport.sird.timeout",
                message,
                "zero",
                None,
                "give a time such as \"5 ms\"".to_owned(),
            );
        }
        if s.transport.congestion_control != CongestionControl::Sird {
            return;
        }
        let timeout = t.timeout;
        if timeout < SIRD_TIMEOUT_MIN && !timeout.is_zero() {
            self.fail(
                "transport.sird.timeout",
                format!("a timeout of {timeout} grants the same bytes again and again"),
                &format!("below {SIRD_TIMEOUT_MIN}"),
                None,
                format!("give at least \"{SIRD_TIMEOUT_MIN}\""),
            );
        }
        if s.shaping.method == ShapingMethod::Fastpass {
            self.fail(
                "shaping.method",
                "the arbiter and the receivers cannot both schedule the senders".to_owned(),
                "a central arbiter",
                Some(("transport.congestion_control", "receivers grant credit")),
                "set shaping.method = \"none\", or another congestion control".to_owned(),
            );
        }
    }

    /// Refuses a barrel shifter with slots shorter than a packet, which would simulate only the starts of slots.
    pub(super) fn slot(&mut self) {
        let s = self.scenario;
        let slot = s.shaping.barrel_shifter.slot;
        let Some(shortest) = s.readout.link.rate.checked_time_to_send(s.full_frame_wire()) else { return };
        let by_clock = s.shaping.barrel_shifter.barrier == Barrier::Clock;
        if s.shaping.method == ShapingMethod::BarrelShifter && by_clock && !slot.is_zero() && slot < shortest
        {
            self.fail(
                "shaping.barrel_shifter.slot",
                format!("a slot of {slot} ends before a full packet is sent, which takes {shortest}"),
                "shorter than a packet",
                Some(("readout.link.rate", "the rate of a readout's link")),
                format!("give at least \"{shortest}\""),
            );
        }
        let slots = s.collectors_total().max(s.readout.hosts.into());
        let turn = slot.get().saturating_mul(slots);
        if s.shaping.method == ShapingMethod::BarrelShifter && by_clock && turn > LONGEST.get() {
            self.fail(
                "shaping.barrel_shifter.slot",
                format!(
                    "a turn of {slots} slots of {slot} lasts {}; the maximum is 24 h",
                    Duration::new(turn)
                ),
                "too long a turn",
                None,
                format!("give at most \"{}\"", Duration::new(LONGEST.get() / slots)),
            );
        }
    }

    /// Refuses signals that a switch with rings does not have.
    pub(super) fn signals_of_rings(&mut self, name: &str, switch: &SwitchSettings) {
        let rings = format!("{name}.buffering");
        // In a hybrid network the software switch has the rings; the hardware switch may mark.
        let has_rings = switch.buffering.has_rings();
        if switch.ecn.mode != EcnMode::Off && has_rings {
            self.fail(
                &format!("{name}.ecn.mode"),
                "a switch with rings neither marks nor drops early: at a mark after few packets the rings stay empty"
                    .to_owned(),
                "marks or drops early",
                Some((&rings, "rings")),
                format!("set {name}.ecn.mode = \"off\", or another {rings}"),
            );
        }
        if switch.m21 {
            self.fail(
                &format!("{name}.m21"),
                "a switch with rings does not write the M21TCP option".to_owned(),
                "writes the option",
                Some((&rings, "rings")),
                format!("set {name}.m21 = false, or another {rings}"),
            );
        }
    }

    /// Refuses PAUSE in a network with rings. Each switch that uses it is reported once, with the first one that has rings.
    pub(super) fn pause_of_rings(&mut self) {
        let used = switches_used(self.scenario);
        let Some(rings) = used.iter().find(|(name, switch)| self.has_rings(name, switch)) else { return };
        let rings = format!("{}.buffering", rings.0);
        for (pausing, _) in used.iter().filter(|(_, switch)| switch.pause.mode != PauseMode::Off) {
            self.fail(
                &format!("{pausing}.pause.mode"),
                "PAUSE is not simulated in a network with rings: it would stop all rings that share an input port"
                    .to_owned(),
                "pauses its neighbours",
                Some((&rings, "rings")),
                format!("set {pausing}.pause.mode = \"off\", or another {rings}"),
            );
        }
    }

    /// Checks that credits are used for event building only.
    pub(super) fn credits(&mut self) {
        let s = self.scenario;
        if s.shaping.method == ShapingMethod::Credits && s.is_barrier() {
            self.fail(
                "shaping.method",
                "credits limit the requests of event building, and this workload has no events".to_owned(),
                "credits",
                Some(("workload.kind", "this workload")),
                "set shaping.method = \"none\", or workload.kind = \"event-building\"".to_owned(),
            );
        }
    }
}
