//! The switches: packet memory, congestion signals, flow control and rings.

use fanin_queueing::{PORTS_MAX, RING_FRAMES_MAX, TokenBucket};
use fanin_units::{Bytes, Duration};

use super::ScenarioCheck;
use super::topology::has_software_switch;
use crate::types::*;

/// The most memory that a switch adds to each frame, as `fanin-queueing` bounds it.
const OVERHEAD_MAX: Bytes = Bytes::new(1 << 20);
/// The largest slot of a ring; a frame takes 64 KiB at most.
const SLOT_MAX: Bytes = Bytes::new(1 << 20);

impl ScenarioCheck<'_> {
    pub(super) fn switch(&mut self, name: &str, switch: &SwitchSettings) {
        let path = |key: &str| format!("{name}.{key}");
        let stored = self.scenario.network.framing.frame_overhead().stored_bytes;
        let frame = self.scenario.transport.mtu.saturating_add(Bytes::new(stored.into()));
        let charged = frame.saturating_add(switch.frame_overhead);
        let memory = switch.buffering.has_limit();
        let limits = [
            ("buffer", Some(switch.buffer)),
            ("uplink_buffer", (switch.buffering == Buffering::Dedicated).then_some(switch.uplink_buffer)),
            ("port_limit", switch.port_limit.0),
            ("input_limit", switch.input_limit.0),
        ];
        for (key, limit) in limits {
            if let Some(limit) = limit
                && memory
                && limit < charged
            {
                self.fail(
                    &path(key),
                    format!("a buffer of {limit} is smaller than a frame, which takes {charged}"),
                    "smaller than a frame",
                    Some(("transport.mtu", "the MTU")),
                    format!("give at least \"{charged}\""),
                );
                // An uplink buffer equal to the buffer is wrong for the same reason; one report is enough.
                break;
            }
        }
        for key in ["port_limit", "input_limit"] {
            let limit = if key == "port_limit" { switch.port_limit.0 } else { switch.input_limit.0 };
            if let Some(limit) = limit
                && memory
                && limit > switch.buffer
            {
                self.fail(
                    &path(key),
                    format!("the limit of one port, {limit}, is above the memory of all, {}", switch.buffer),
                    "above the pool",
                    Some((&path("buffer"), "the pool")),
                    format!("give at most \"{}\", or \"unlimited\"", switch.buffer),
                );
            }
        }
        if switch.buffering == Buffering::DynamicThreshold && switch.alpha.is_zero() {
            let message = "with `alpha` at zero a switch drops every frame".to_owned();
            self.fail(&path("alpha"), message, "zero", None, "1 is usual; give more than 0".to_owned());
        }
        if switch.frame_overhead > OVERHEAD_MAX {
            self.fail(
                &path("frame_overhead"),
                format!("a switch cannot add {} to each frame", switch.frame_overhead),
                &format!("above {OVERHEAD_MAX}"),
                None,
                format!("give at most \"{OVERHEAD_MAX}\""),
            );
        }
        if switch.ports > PORTS_MAX as u32 {
            self.fail(
                &path("ports"),
                format!("a switch cannot have {} ports", switch.ports),
                &format!("more than {PORTS_MAX}"),
                None,
                format!("give at most {PORTS_MAX}"),
            );
        }
        if switch.module_ports == 0 {
            let message = "a module has at least one port".to_owned();
            self.fail(&path("module_ports"), message, "zero", None, "give at least 1".to_owned());
        }
        if switch.latency > Duration::from_secs(1) {
            let message = format!("a switch cannot have a latency of {}", switch.latency);
            self.fail(
                &path("latency"),
                message,
                "above 1 s",
                None,
                "give a time such as \"1 us\"".to_owned(),
            );
        }
        self.signals(name, switch);
        if self.has_rings(name, switch) {
            self.daqring(name, switch, frame);
        }
    }

    /// Returns true if the switches of this section, or the software switch with their settings, have rings.
    pub(super) fn has_rings(&self, name: &str, switch: &SwitchSettings) -> bool {
        switch.buffering.has_rings() || has_software_switch(self.scenario, name)
    }

    fn signals(&mut self, name: &str, switch: &SwitchSettings) {
        let path = |key: &str| format!("{name}.{key}");
        let ecn = &switch.ecn;
        if ecn.mode.is_red() && ecn.min >= ecn.max {
            self.fail(
                &path("ecn.min"),
                format!("RED marks from {} on, and every packet from {} on", ecn.min, ecn.max),
                "not below `max`",
                Some((&path("ecn.max"), "every packet from here on")),
                "give a min below max".to_owned(),
            );
        }
        for (key, share) in [("ecn.weight", ecn.weight), ("ecn.probability_max", ecn.probability_max)] {
            self.share(&path(key), share);
            if share.is_zero() && ecn.mode.is_red() {
                let message = format!("with `{key}` at zero RED never marks or drops");
                self.fail(&path(key), message, "zero", None, "give a share above 0".to_owned());
            }
        }
        let pause = &switch.pause;
        if pause.mode == PauseMode::Off {
            return;
        }
        if pause.xon >= pause.xoff {
            self.fail(
                &path("pause.xon"),
                format!("a neighbour would be paused at {} and resumed at {}", pause.xoff, pause.xon),
                "not below `xoff`",
                Some((&path("pause.xoff"), "paused here")),
                "give an xon below xoff".to_owned(),
            );
        }
        if pause.xoff >= switch.buffer && switch.buffering.has_limit() {
            self.fail(
                &path("pause.xoff"),
                format!(
                    "a neighbour is paused at {}, when the buffer of {} is full",
                    pause.xoff, switch.buffer
                ),
                "not below the buffer",
                Some((&path("buffer"), "the buffer")),
                "leave room for frames that are still on the link".to_owned(),
            );
        }
    }

    fn daqring(&mut self, name: &str, switch: &SwitchSettings, frame: Bytes) {
        let path = |key: &str| format!("{name}.daqring.{key}");
        let ring = &switch.daqring;
        if ring.service == RingService::StrictPriority {
            let message =
                "all rings of a scenario have the same priority: only a live switch's `ring` sets it";
            let remedy = "give \"round-robin\" or \"longest-first\"".to_owned();
            self.fail(&path("service"), message.to_owned(), "no ring has a priority", None, remedy);
        }
        self.flows(name, ring);
        self.signals_of_rings(name, switch);
        if ring.frames == 0 {
            let message = "a ring holds at least one frame".to_owned();
            self.fail(&path("frames"), message, "zero", None, "LCN'15 uses 4096".to_owned());
        }
        if ring.frames > RING_FRAMES_MAX {
            let message = format!("a ring cannot hold {} frames", ring.frames);
            let label = format!("above {RING_FRAMES_MAX}");
            self.fail(&path("frames"), message, &label, None, format!("give at most {RING_FRAMES_MAX}"));
        }
        let (slowest, fastest) = (TokenBucket::RATE_MIN, TokenBucket::RATE_MAX);
        if !ring.rate.is_zero() && !(slowest..=fastest).contains(&ring.rate) {
            let message = format!("a ring cannot be limited to {}", ring.rate);
            let label = format!("not from {slowest} to {fastest}");
            let help = format!("give \"{slowest}\" to \"{fastest}\", or \"0 b/s\" for no limit");
            self.fail(&path("rate"), message, &label, None, help);
        }
        if ring.slot > SLOT_MAX {
            self.fail(
                &path("slot"),
                format!("a slot cannot have {}", ring.slot),
                &format!("above {SLOT_MAX}"),
                None,
                format!("give at most \"{SLOT_MAX}\""),
            );
        }
        if ring.slot < frame {
            self.fail(
                &path("slot"),
                format!("a slot of {} is smaller than a frame of {frame}", ring.slot),
                "smaller than a frame",
                Some(("transport.mtu", "the MTU")),
                format!("give at least \"{frame}\""),
            );
        }
        if !ring.rate.is_zero() && ring.burst < frame {
            self.fail(
                &path("burst"),
                format!("a burst of {} is smaller than a frame of {frame}", ring.burst),
                "smaller than a frame",
                Some((&path("rate"), "the rate limit")),
                format!("give at least \"{frame}\""),
            );
        }
        let longest = Duration::from_secs(TokenBucket::BURST_SECONDS_MAX);
        let is_longer = |time| time > longest;
        if !ring.rate.is_zero() && ring.rate.checked_time_to_send(ring.burst).is_none_or(is_longer) {
            self.fail(
                &path("burst"),
                format!("a burst of {} at {} takes more than 24 h to accrue", ring.burst, ring.rate),
                "too large",
                Some((&path("rate"), "the rate limit")),
                "give at most what the rate carries in 24 h".to_owned(),
            );
        }
    }
}
