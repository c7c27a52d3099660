//! M21TCP in the network: the switches that write the option (Adesanmi and Mhamdi, §III).

use fanin_queueing::{FlowStage, M21Accounting, M21Switch};
use fanin_scenario::{M21Charge, M21tcp};
use fanin_units::{Bytes, Instant};

use crate::index::NIL;
use fanin_tcp::{Flags, Segment};

/// The most flows that one switch follows.
const FLOWS_MAX: u32 = 1 << 20;

/// Counters of the M21TCP switches.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct M21Counters {
    /// Windows that were lowered in a passing option.
    pub(crate) written: u64,
    /// Echoes that were lowered on their way back.
    pub(crate) rewritten: u64,
    /// The least window that was granted; `u32::MAX` where none was.
    pub(crate) window_min: u32,
    /// Frames whose flow was granted less than a segment.
    pub(crate) below_segment: u64,
}

/// The M21TCP sides of all switches, by the switch's number in the fabric.
pub(crate) struct M21Switches {
    switches: Vec<Option<M21Switch>>,
    rewrites_echo: bool,
    segment: u32,
    pub(crate) counters: M21Counters,
}

/// How the switches charge a flow's frames; a full frame carries `mss` and takes `frame_bytes` in a buffer.
pub(crate) fn accounting(settings: &M21tcp, mss: u16, frame_bytes: u64) -> M21Accounting {
    match settings.charge {
        M21Charge::Flow => M21Accounting::HeaderPerFlow { header: settings.header },
        M21Charge::Packet => {
            let mss = Bytes::new(u64::from(mss));
            M21Accounting::FramePerPacket { mss, overhead: Bytes::new(frame_bytes).saturating_sub(mss) }
        }
    }
}

impl M21Switches {
    pub(crate) fn new(settings: &M21tcp, mss: u16) -> Self {
        let counters = M21Counters { window_min: u32::MAX, ..M21Counters::default() };
        let segment = u32::from(mss);
        Self { switches: Vec::new(), rewrites_echo: settings.rewrite_echo, segment, counters }
    }

    /// Adds the next switch of the fabric; `None` for one that does not know the option.
    pub(crate) fn add(
        &mut self,
        layout: Option<(&fanin_queueing::Layout, M21Accounting)>,
        settings: &M21tcp,
    ) {
        let idle = settings.idle;
        let idle = if idle.is_zero() { fanin_units::Duration::MAX } else { idle };
        self.switches.push(layout.map(|(layout, how)| M21Switch::new(layout, how, FLOWS_MAX, idle)));
    }

    /// All switches that know the option.
    pub(crate) fn switches(&self) -> impl Iterator<Item = &M21Switch> {
        self.switches.iter().flatten()
    }

    /// Counts a flow that was opened before the run, and lowers `window` to what it is granted now.
    pub(crate) fn open(&mut self, switch: u32, flow: u32, input: u16, output: u16) {
        if let Some(switch) = &mut self.switches[switch as usize] {
            let (input, output) = (usize::from(input), usize::from(output));
            switch.handle_frame(Instant::START, u64::from(flow), FlowStage::Opens, input, output);
        }
    }

    /// The window that a switch grants the flows from an input to an output; `u32::MAX` for no limit.
    pub(crate) fn granted(&self, switch: u32, input: u16, output: u16) -> u32 {
        let Some(switch) = &self.switches[switch as usize] else { return u32::MAX };
        switch
            .window(usize::from(input), usize::from(output))
            .map_or(u32::MAX, |window| u32::try_from(window.get()).unwrap_or(u32::MAX))
    }

    /// A frame of the flow towards `end` passes a switch.
    #[inline]
    pub(crate) fn handle_frame(
        &mut self,
        now: u64,
        switch: u32,
        [input, output]: [u16; 2],
        end: u32,
        segment: &mut Segment,
    ) {
        debug_assert_ne!(switch, NIL);
        let Some(known) = &mut self.switches[switch as usize] else { return };
        let stage = match (segment.flags.contains(Flags::SYN), segment.payload) {
            (true, _) => FlowStage::Opens,
            (false, 0) => FlowStage::Acknowledges,
            (false, _) => FlowStage::Carries,
        };
        known.handle_frame(Instant::new(now), u64::from(end), stage, usize::from(input), usize::from(output));
        if segment.flags.contains(Flags::M21) {
            let granted = self.granted(switch, input, output);
            self.counters.window_min = self.counters.window_min.min(granted);
            self.counters.below_segment += u64::from(granted < self.segment);
            // §III.B: only ever lower.
            if granted < segment.m21_window {
                segment.m21_window = granted;
                self.counters.written += 1;
            }
        }
        if self.rewrites_echo && segment.flags.contains(Flags::M21_ECHO) {
            // The data that it speaks of leave by the port that it came in by.
            let granted = self.granted(switch, output, input);
            if granted < segment.m21_echo {
                segment.m21_echo = granted;
                self.counters.rewritten += 1;
            }
        }
    }
}
