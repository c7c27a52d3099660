//! When a switch tells its neighbours to stop and to go on.
//!
//! A neighbour may go on once as much has left of what came in from there as it was above the lower threshold. Of what is
//! booked it is known when it leaves; what waits behind it will leave later; and what comes in from now on adds as much as it
//! will take away. So the instant is foreseen, and nobody looks before it comes. It is worked out anew where a port
//! begins again that was stopped.

use fanin_queueing::PauseSignal;

use super::{BULK, HeldPorts, INDEX_BITS, LEVELS, Moment, NEVER, PortIndex, URGENT};

impl HeldPorts {
    /// What came in by a port and waits has risen to where it matters. Returns whether the neighbour has been stopped: then
    /// [`Self::watch_levels`] has to follow, once the frame is booked.
    #[inline(never)]
    pub(super) fn handle_rise(&mut self, moment: &mut Moment<'_>, switch: usize, from: PortIndex) -> bool {
        self.settle_switch(moment.now, switch);
        let input = &mut self.inputs[from as usize];
        self.level_max = self.level_max.max(input.level);
        let signal = input.thresholds.as_mut().and_then(|thresholds| thresholds.handle_level(input.level));
        input.watch(self.level_max);
        let stops = signal == Some(PauseSignal::Pause);
        if stops {
            input.falls_at = 0;
            self.nodes[switch].stopping.push(from);
            self.signal(moment, from, PauseSignal::Pause);
        }
        stops
    }

    /// Looks whether neighbours may go on that a switch has stopped.
    #[inline(never)]
    pub(super) fn look_at_levels(&mut self, moment: &mut Moment<'_>, switch: usize) {
        self.settle_switch(moment.now, switch);
        self.looks[switch] = NEVER;
        let mut stopping = std::mem::take(&mut self.nodes[switch].stopping);
        stopping.retain(|&from| {
            let input = &mut self.inputs[from as usize];
            let signal =
                input.thresholds.as_mut().and_then(|thresholds| thresholds.handle_level(input.level));
            if signal.is_some() {
                input.watch(self.level_max);
                self.signal(moment, from, PauseSignal::Resume);
            }
            signal.is_none()
        });
        self.nodes[switch].stopping = stopping;
        self.watch_levels(moment, switch);
    }

    /// Sees to it that a switch looks at its levels when the first of those that it has stopped may go on.
    #[inline]
    pub(super) fn watch_levels(&mut self, moment: &mut Moment<'_>, switch: usize) {
        if !self.nodes[switch].stopping.is_empty() {
            self.foresee_levels(moment, switch);
        }
    }

    #[inline(never)]
    fn foresee_levels(&mut self, moment: &mut Moment<'_>, switch: usize) {
        let mut next = NEVER;
        for place in 0..self.nodes[switch].stopping.len() {
            let from = self.nodes[switch].stopping[place];
            let input = &self.inputs[from as usize];
            if input.falls_at <= moment.now {
                let xon = input.thresholds.map_or(0, |thresholds| thresholds.xon().get());
                // None of it at the very instant at which it may go on.
                let above = input.level.saturating_sub(xon);
                // As long as it took the last time, or as fast as it came in.
                let step = moment.ports[from as usize].time_to_send(above as u32).max(input.fall_time.into());
                let falls_at = self.foresee_fall(moment, switch, from, above, step);
                let input = &mut self.inputs[from as usize];
                input.falls_at = falls_at;
                input.fall_time =
                    u32::try_from(falls_at.saturating_sub(moment.now)).unwrap_or(input.fall_time);
            }
            next = next.min(self.inputs[from as usize].falls_at);
        }
        if !self.foresees_levels {
            next = self.fronts[self.nodes[switch].outputs.clone()]
                .iter()
                .copied()
                .fold(self.looks[switch], u64::min);
        }
        if next != self.looks[switch] {
            self.looks[switch] = next.max(moment.now);
            if next != NEVER {
                moment.schedule.insert(self.looks[switch], LEVELS << INDEX_BITS | switch as u32);
            }
        }
    }

    /// A port of a switch begins to send what waited, of which it was not known when it would leave: those of whom it is may go on
    /// from then on, as far as is known.
    pub(super) fn handle_begin(&mut self, moment: &mut Moment<'_>, switch: usize, index: PortIndex) {
        let node = &self.nodes[switch];
        if node.stopping.is_empty() {
            return;
        }
        let state = &self.ports[index as usize];
        for booked in (0..).map_while(|place| state.line.get(place)) {
            let input = &mut self.inputs[booked.from() as usize];
            input.falls_at = input.falls_at.min(booked.release);
        }
        // What waits behind those leaves later.
        let departure = moment.ports[index as usize].departure;
        for &from in &node.stopping {
            let input = &mut self.inputs[from as usize];
            input.falls_at = input.falls_at.min(departure);
        }
        self.foresee_levels(moment, switch);
    }

    /// When so many bytes of what came in by a port will have left the switch, or until when it is known that they will not; what
    /// leaves in the next `step` is looked at first, then more and more.
    fn foresee_fall(
        &mut self,
        moment: &Moment<'_>,
        switch: usize,
        from: PortIndex,
        above: u64,
        mut step: u64,
    ) -> u64 {
        let now = moment.now;
        let (node, input, falls) = (&self.nodes[switch], &self.inputs[from as usize], &mut self.falls);
        if above == 0 {
            return now;
        }
        let (fronts, outputs) = (&self.fronts[node.outputs.clone()], &self.outputs[node.outputs.clone()]);
        loop {
            falls.clear();
            let until = now + step;
            // When the first leaves that is not looked at; until when all is known that leaves.
            let (mut sum, mut next, mut known) = (0, NEVER, NEVER);
            for (&front, &port) in fronts.iter().zip(outputs) {
                if front > until {
                    next = next.min(front);
                    continue;
                }
                let state = &self.ports[port as usize];
                let mut place = 0;
                loop {
                    let Some(booked) = state.line.get(place) else {
                        if state.may_go(BULK) || state.may_go(URGENT) {
                            known = known.min(moment.ports[port as usize].departure);
                        }
                        break;
                    };
                    if booked.release > until {
                        next = next.min(booked.release);
                        break;
                    }
                    if booked.from() == from && input.counts(booked.class()) {
                        let charge = node.charge(booked.bytes);
                        falls.push((booked.release, charge));
                        sum += charge;
                    }
                    place += 1;
                }
            }
            if sum >= above {
                falls.sort_unstable_by_key(|&(release, _)| release);
                let mut sum = 0;
                let is_enough = |&&(_, charge): &&(u64, u64)| {
                    sum += charge;
                    sum >= above
                };
                return falls.iter().find(is_enough).map_or(NEVER, |&(release, _)| release).min(known);
            }
            if next >= known {
                return known;
            }
            step = (2 * step).max(next - now);
        }
    }
}
