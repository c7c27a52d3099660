//! When a switch tells its neighbours to stop and to go on.

use fanin_queueing::PauseSignal;

use super::{HeldPorts, INDEX_BITS, LEVELS, Moment, NEVER, PortIndex};

impl HeldPorts {
    /// What came in by a port and waits has risen to where it matters.
    #[inline(never)]
    pub(super) fn handle_rise(&mut self, moment: &mut Moment<'_>, switch: usize, from: PortIndex) {
        self.settle_switch(moment.now, switch);
        let input = &mut self.inputs[from as usize];
        self.level_max = self.level_max.max(input.level);
        let signal = input.thresholds.as_mut().and_then(|thresholds| thresholds.handle_level(input.level));
        input.watch(self.level_max);
        if signal == Some(PauseSignal::Pause) {
            self.nodes[switch].stopping.push(from);
            self.signal(moment, from, PauseSignal::Pause);
        }
        self.watch_levels(moment, switch);
    }

    /// Looks whether neighbours may go on that a switch has stopped.
    #[inline(never)]
    pub(super) fn look_at_levels(&mut self, moment: &mut Moment<'_>, switch: usize) {
        let next = self.settle_switch(moment.now, switch);
        self.looks[switch] = NEVER;
        let mut stopping = std::mem::take(&mut self.nodes[switch].stopping);
        let mut has_signalled = false;
        stopping.retain(|&from| {
            let input = &mut self.inputs[from as usize];
            let signal =
                input.thresholds.as_mut().and_then(|thresholds| thresholds.handle_level(input.level));
            if signal.is_some() {
                input.watch(self.level_max);
                self.signal(moment, from, PauseSignal::Resume);
                has_signalled = true;
            }
            signal.is_none()
        });
        self.nodes[switch].stopping = stopping;
        if has_signalled {
            // What waited before the signal may have got a time.
            self.watch_levels(moment, switch);
        } else {
            self.look_then(moment, switch, next);
        }
    }

    /// Sees to it that a switch that has stopped somebody looks at its levels when it next gives memory back. What comes in
    /// before then leaves no lower level than there is now, so that it need not be heeded.
    pub(super) fn watch_levels(&mut self, moment: &mut Moment<'_>, switch: usize) {
        let node = &self.nodes[switch];
        if !node.stopping.is_empty() {
            let next = self.fronts[node.outputs.clone()].iter().copied().fold(NEVER, u64::min);
            self.look_then(moment, switch, next);
        }
    }

    fn look_then(&mut self, moment: &mut Moment<'_>, switch: usize, next: u64) {
        if next < self.looks[switch] && !self.nodes[switch].stopping.is_empty() {
            self.looks[switch] = next.max(moment.now);
            moment.schedule.insert(self.looks[switch], LEVELS << INDEX_BITS | switch as u32);
        }
    }
}
