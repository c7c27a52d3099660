//! When a switch tells its neighbours to stop and to go on.
//!
//! A neighbour may go on once as much has left of what came in from there as it was above the lower threshold. Of what is
//! booked it is known when it leaves; what waits behind it will leave later; and what comes in from now on adds as much as it
//! will take away. So the instant is foreseen, and nobody looks before it comes. It is worked out anew where a port
//! begins again that was stopped.

use fanin_queueing::PauseSignal;

use super::accounts::slots;
use super::{HeldPorts, Links, Moment, NEVER, PortIndex};
use crate::occurrence::Occurrence;

impl HeldPorts {
    /// What came in by a port and waits has risen to where it matters. Returns whether the neighbour has been stopped: then
    /// [`Self::watch_levels`] has to follow, once the frame is booked.
    #[inline(never)]
    pub(super) fn handle_rise(&mut self, moment: &mut Moment<'_>, switch: usize, place: usize) -> bool {
        self.settle_switch(&mut moment.links, switch);
        let (input, level) = (&mut self.inputs[place], &mut self.levels[place]);
        self.level_max = self.level_max.max(level.bytes);
        let signal = input.thresholds.as_mut().and_then(|thresholds| thresholds.handle_level(level.bytes));
        level.matters_at = input.matters_at(self.level_max);
        let stops = signal == Some(PauseSignal::Pause);
        if stops {
            input.falls_at = 0;
            let from = input.port;
            self.nodes[switch].stopping.push(place as u32);
            self.signal(moment, from, PauseSignal::Pause);
        }
        stops
    }

    /// Looks whether neighbours may go on that a switch has stopped.
    #[inline(never)]
    pub(super) fn look_at_levels(&mut self, moment: &mut Moment<'_>, switch: usize) {
        self.settle_switch(&mut moment.links, switch);
        moment.links.switches[switch].look_at = NEVER;
        let mut stopping = std::mem::take(&mut self.nodes[switch].stopping);
        stopping.retain(|&place| {
            let (input, level) = (&mut self.inputs[place as usize], &mut self.levels[place as usize]);
            let signal =
                input.thresholds.as_mut().and_then(|thresholds| thresholds.handle_level(level.bytes));
            if signal.is_some() {
                level.matters_at = input.matters_at(self.level_max);
                let from = input.port;
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
        for number in 0..self.nodes[switch].stopping.len() {
            let place = self.nodes[switch].stopping[number] as usize;
            let input = &self.inputs[place];
            if input.falls_at <= moment.links.now {
                let xon = input.thresholds.map_or(0, |thresholds| thresholds.xon().get());
                // None of it at the very instant at which it may go on.
                let above = self.levels[place].bytes.saturating_sub(xon);
                let falls_at = self.foresee_fall(&moment.links, switch, place, above);
                let input = &mut self.inputs[place];
                if input.falls_at == 0 {
                    let time = falls_at.saturating_sub(moment.links.now);
                    let pace = time.checked_div(above).and_then(|pace| u32::try_from(pace).ok());
                    input.pace = pace.unwrap_or(input.pace);
                }
                input.falls_at = falls_at;
            }
            next = next.min(self.inputs[place].falls_at);
        }
        if !self.foresees_levels {
            next = self.fronts[self.nodes[switch].outputs.clone()]
                .iter()
                .copied()
                .fold(moment.links.switches[switch].look_at, u64::min);
        }
        if next != moment.links.switches[switch].look_at {
            moment.links.switches[switch].look_at = next.max(moment.links.now);
            if next != NEVER {
                moment
                    .schedule
                    .insert(moment.links.switches[switch].look_at, Occurrence::SwitchLevels(switch as u32));
            }
        }
    }

    /// A port of a switch begins to send what waited, of which it was not known when it would leave: those of whom it is may go on
    /// from then on, as far as is known.
    pub(super) fn handle_begin(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        let port = &moment.links.ports[index as usize];
        let switch = port.switch as usize;
        if self.nodes.get(switch).is_none_or(|node| node.stopping.is_empty()) {
            return;
        }
        for frame in (0..).map_while(|place| port.get_queued(place)) {
            let input = &mut self.inputs[moment.links.switches[switch].input(frame.parcel)];
            input.falls_at = input.falls_at.min(port.leaves_at(frame));
        }
        // What waits behind those leaves later.
        let departure = port.departure;
        for &place in &self.nodes[switch].stopping {
            let input = &mut self.inputs[place as usize];
            input.falls_at = input.falls_at.min(departure);
        }
        self.foresee_levels(moment, switch);
    }

    /// When so many bytes of what came in by a port will have left the switch, or until when it is known that they will not.
    fn foresee_fall(&mut self, links: &Links<'_>, switch: usize, input: usize, above: u64) -> u64 {
        let (now, unstored, classes) = (links.now, links.unstored, self.classes);
        let mut falls = std::mem::take(&mut self.falls);
        let (accounts, first) = (&self.inputs[input], self.nodes[switch].outputs.start);
        let number = (input - first) as u16;
        if above == 0 {
            return now;
        }
        // What leaves in that time is looked at first, then more and more: a little more than it takes at the pace of the last
        // stop, or as fast as it came in.
        let pace = links.ports[accounts.port as usize].time_to_send(1).max(accounts.pace.into());
        let mut step = above.saturating_mul(pace + pace / 8);
        loop {
            falls.clear();
            let until = now.saturating_add(step);
            // When the first leaves that is not looked at; until when all is known that leaves.
            let (mut sum, mut next, mut known) = (0, NEVER, NEVER);
            let busy = self.words(switch).flat_map(|word| slots(word, self.busy[word]));
            for slot in busy {
                if self.fronts[slot] > until {
                    next = next.min(self.fronts[slot]);
                    continue;
                }
                let output = self.outputs[slot] as usize;
                let (state, port) = (&self.ports[output], &links.ports[output]);
                let beyond = port.each_queued(|leaves_at, parcel| {
                    if leaves_at <= until && parcel.input() == number {
                        let charge = port.charge(parcel.wire_bytes(), unstored);
                        let charge = classes.count(&links.switches[switch], parcel, charge);
                        falls.push((leaves_at, charge));
                        sum += charge;
                    }
                    leaves_at <= until
                });
                match beyond {
                    Some(leaves_at) => next = next.min(leaves_at),
                    None if state.next_class(port).is_some() => known = known.min(port.departure),
                    None => {}
                }
            }
            if sum >= above {
                falls.sort_unstable_by_key(|&(release, _)| release);
                let mut sum = 0;
                let is_enough = |&&(_, charge): &&(u64, u64)| {
                    sum += charge;
                    sum >= above
                };
                known = falls.iter().find(is_enough).map_or(NEVER, |&(release, _)| release).min(known);
                next = NEVER;
            }
            if next >= known {
                self.falls = falls;
                return known;
            }
            step = step.saturating_mul(2).max(next - now);
        }
    }
}
