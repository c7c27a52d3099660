//! The switches that write M21TCP's option (Adesanmi and Mhamdi, §III).

use fanin_queueing::{FLOWS_MAX, FlowStage, Layout, M21Switch, M21WindowRule};
use fanin_scenario::M21tcpSettings;
use fanin_tcp::{Flags, Segment};
use fanin_units::Instant;

use crate::fabric::Crossing;

/// Counters of the M21TCP switches.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct M21Counters {
    /// Windows that were lowered in a passing option.
    pub(super) written: u64,
    /// Echoes that were lowered on their way back.
    pub(super) rewritten: u64,
    /// The least window that was granted, in bytes; `u32::MAX` if no window was granted.
    pub(super) window_min: u32,
    /// Frames of flows with a granted window of less than a segment.
    pub(super) below_segment: u64,
}

/// A switch that supports the option, with the number of its outputs.
struct KnownSwitch {
    m21: M21Switch,
    outputs: usize,
}

/// The M21TCP sides of all switches, by the switch's number in the fabric.
pub(super) struct M21Switches {
    switches: Vec<Option<KnownSwitch>>,
    rewrites_echo: bool,
    segment: u32,
    pub(super) counters: M21Counters,
}

impl M21Switches {
    pub(super) fn new(settings: &M21tcpSettings, mss: u16) -> Self {
        let counters = M21Counters { window_min: u32::MAX, ..M21Counters::default() };
        let segment = u32::from(mss);
        Self { switches: Vec::new(), rewrites_echo: settings.rewrite_echo, segment, counters }
    }

    /// Adds the next switch of the fabric; `None` for one without support for the option.
    pub(super) fn add(&mut self, layout: Option<(&Layout, M21WindowRule)>, settings: &M21tcpSettings) {
        self.switches.push(layout.map(|(layout, rule)| KnownSwitch {
            m21: M21Switch::new(layout, rule, FLOWS_MAX, settings.idle_limit()),
            outputs: layout.ports(),
        }));
    }

    /// Returns all switches that support the option.
    pub(super) fn known(&self) -> impl Iterator<Item = &M21Switch> {
        self.switches.iter().flatten().map(|switch| &switch.m21)
    }

    /// Counts a flow that was opened before the run.
    pub(super) fn open(&mut self, crossing: Crossing, flow: u32) {
        let Crossing { switch, input, output } = crossing;
        if let Some(known) = &mut self.switches[switch as usize] {
            let (input, output) = (usize::from(input), usize::from(output));
            known.m21.handle_frame(Instant::START, u64::from(flow), FlowStage::Opens, input, output);
        }
    }

    /// Returns the window that a switch grants each flow from an input to an output, in bytes; `u32::MAX` without a limit.
    pub(super) fn granted(&self, crossing: Crossing) -> u32 {
        let Crossing { switch, input, output } = crossing;
        let Some(known) = &self.switches[switch as usize] else { return u32::MAX };
        let window = known.m21.window(usize::from(input), usize::from(output));
        window.map_or(u32::MAX, |window| u32::try_from(window.get()).unwrap_or(u32::MAX))
    }

    /// Handles a frame of the flow towards `end` at a switch, which counts the flow and lowers the window in the option.
    pub(super) fn handle_frame(&mut self, now: u64, crossing: Crossing, end: u32, segment: &mut Segment) {
        let Crossing { switch, input, output } = crossing;
        let Some(known) = &mut self.switches[switch as usize] else { return };
        let stage = match (segment.flags.contains(Flags::SYN), segment.payload) {
            (true, _) => FlowStage::Opens,
            (false, 0) => FlowStage::Acknowledges,
            (false, _) => FlowStage::Carries,
        };
        let (from, to) = (usize::from(input), usize::from(output));
        known.m21.handle_frame(Instant::new(now), u64::from(end), stage, from, to);
        if segment.flags.contains(Flags::PATH_WINDOW) {
            let granted = self.granted(crossing);
            self.counters.window_min = self.counters.window_min.min(granted);
            self.counters.below_segment += u64::from(granted < self.segment);
            // §III.B: the window is only ever lowered.
            if granted < segment.path_window {
                segment.path_window = granted;
                self.counters.written += 1;
            }
        }
        if self.rewrites_echo && segment.flags.contains(Flags::PATH_WINDOW_ECHO) {
            // The echoed window is for data in the other direction: from this frame's output to its input.
            let granted = self.granted(Crossing { switch, input: output, output: input });
            if granted < segment.path_window_echo {
                segment.path_window_echo = granted;
                self.counters.rewritten += 1;
            }
        }
    }

    /// Asserts that every counted flow leaves by one of the switch's outputs. No output may ever have had more flows than its
    /// switch may follow.
    ///
    /// # Panics
    /// If a flow was lost or counted twice.
    pub(super) fn assert_conserved(&self) {
        for (number, known) in self.switches.iter().enumerate() {
            let Some(KnownSwitch { m21, outputs }) = known else { continue };
            let by_output: u32 = (0..*outputs).map(|output| m21.flows().to_output(output)).sum();
            assert_eq!(by_output, m21.flows().flows(), "switch {number} lost count of its flows");
            assert!(m21.flows_most() <= FLOWS_MAX, "switch {number} counts more flows than it follows");
        }
        let M21Counters { window_min, below_segment, .. } = self.counters;
        assert!(below_segment == 0 || window_min < self.segment, "a window below a segment is not the least");
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/m21tcp_switches.rs"]
mod tests;
