//! What waits behind each input and in each memory. Both are settled when somebody looks, or when a frame arrives that nobody has
//! seen leave.

use std::ops::Range;

use fanin_queueing::{PauseThresholds, Verdict};
use fanin_units::Instant;

use super::{BULK, Descriptor, HeldPorts, Links, Moment, NEVER, URGENT};
use crate::fabric::{Frame, Parcel, Port, PortIndex, SwitchTotals};
use crate::index::NIL;

/// How much of what came in by a port waits: two words, so that those of all inputs stay in the near cache.
#[derive(Clone, Copy, Default)]
pub(super) struct Level {
    /// At least as many bytes as there are; exact where it could matter.
    pub(super) bytes: u64,
    /// From here on it matters.
    pub(super) matters_at: u64,
}

/// One direction of a link, seen by who receives from it.
#[derive(Clone, Copy)]
pub(super) struct Input {
    pub(super) thresholds: Option<PauseThresholds>,
    /// While its neighbour is stopped: not before this it may go on.
    pub(super) falls_at: u64,
    /// How many picoseconds a byte took to leave after the last stop.
    pub(super) pace: u32,
    /// The port that it is.
    pub(super) port: PortIndex,
}

/// None.
pub(super) const NO_INPUT: Input = Input { thresholds: None, falls_at: 0, pace: 0, port: NIL };

impl Input {
    /// From how many bytes on its level matters, where so many are the most that any ever held whose neighbour can be stopped.
    pub(super) fn matters_at(&self, level_max: u64) -> u64 {
        match self.thresholds {
            Some(thresholds) if !thresholds.is_paused() => thresholds.xoff().get().min(level_max + 1),
            Some(_) => level_max + 1,
            None => u64::MAX,
        }
    }
}

impl SwitchTotals {
    /// Where the accounts are of what a frame in the switch came in by.
    #[inline(always)]
    pub(super) fn input(&self, parcel: Parcel) -> usize {
        self.base as usize + usize::from(parcel.input())
    }

    /// A port's place among the outputs of all switches; none of them at a host.
    #[inline(always)]
    pub(super) fn slot(&self, port: &Port) -> usize {
        self.base as usize + usize::from(port.place.output)
    }
}

/// Which frames are of which class.
#[derive(Clone, Copy)]
pub(super) struct Classes {
    pub(super) has_priorities: bool,
    /// Ends below this are those of connections whose second ends answer with bulk data.
    pub(super) bulk_ends: u32,
}

impl Classes {
    #[inline(always)]
    pub(super) fn of(self, parcel: Parcel) -> usize {
        let is_bulk = || parcel.end() < self.bulk_ends && parcel.end().is_multiple_of(2);
        if self.has_priorities && !is_bulk() { URGENT } else { BULK }
    }

    /// What a frame that takes so much memory counts for behind its input.
    #[inline(always)]
    pub(super) fn count(self, switch: &SwitchTotals, parcel: Parcel, charge: u64) -> u64 {
        if !switch.counts_bulk_only || self.of(parcel) == BULK { charge } else { 0 }
    }
}

impl HeldPorts {
    /// Gives back the memory of what has left a port by `now`.
    #[inline(always)]
    pub(super) fn settle(&mut self, links: &mut Links<'_>, index: PortIndex) {
        let port = &mut links.ports[index as usize];
        match self.fronts.get(links.switches[port.switch as usize].slot(port)) {
            Some(&front) if front > links.now => {}
            Some(_) => self.settle_due(links, index),
            // A host's memory has no end.
            None => port.release(links.now, links.unstored, |_, _, _| {}),
        }
    }

    fn settle_due(&mut self, links: &mut Links<'_>, index: PortIndex) {
        let port = &mut links.ports[index as usize];
        let switch = &mut links.switches[port.switch as usize];
        switch.held -= self.release(port, *switch, links.now, links.unstored);
    }

    /// Gives back the memory of what has left a switch's port by `now`; returns what of it the port itself has counted.
    pub(super) fn release(&mut self, port: &mut Port, switch: SwitchTotals, now: u64, unstored: u32) -> u64 {
        let (classes, levels) = (self.classes, &mut self.levels);
        let node = &mut self.nodes[port.switch as usize];
        let mut released = 0;
        let mut give_back = |parcel: Parcel, charge: u64| {
            levels[switch.input(parcel)].bytes -= classes.count(&switch, parcel, charge);
            released += charge;
        };
        let output = usize::from(port.place.output);
        match &mut node.memory {
            None => port.release(now, unstored, |_, parcel, charge| give_back(parcel, charge)),
            Some(memory) => port.release(now, unstored, |left_at, parcel, charge| {
                give_back(parcel, charge);
                let bytes = parcel.wire_bytes() - unstored;
                memory.release(Instant::new(left_at), usize::from(parcel.input()), output, bytes);
            }),
        }
        self.set_front(switch.slot(port), front(port));
        if !port.is_plain {
            return 0;
        }
        port.held -= released;
        released
    }

    /// A frame has come over the link of a port that nobody has seen leave the queue, where it took so much of what the port
    /// itself counts: the rest of its memory is given back.
    #[inline(always)]
    pub(in crate::fabric) fn leave_unseen(
        &mut self,
        now: u64,
        port: &Port,
        switch: &SwitchTotals,
        parcel: Parcel,
        charge: u64,
        unstored: u32,
    ) {
        if port.is_plain {
            self.levels[switch.input(parcel)].bytes -= self.classes.count(switch, parcel, charge);
        } else if (port.switch as usize) < self.nodes.len() {
            self.leave_memory_unseen(now, port, switch, parcel, unstored);
        }
    }

    #[inline(never)]
    fn leave_memory_unseen(
        &mut self,
        now: u64,
        port: &Port,
        switch: &SwitchTotals,
        parcel: Parcel,
        unstored: u32,
    ) {
        let charge = port.charge(parcel.wire_bytes(), unstored);
        self.levels[switch.input(parcel)].bytes -= self.classes.count(switch, parcel, charge);
        if let Some(memory) = &mut self.nodes[port.switch as usize].memory {
            let left_at = Instant::new(port.leaves_at(&Frame { arrival: now, parcel }));
            let (input, output) = (usize::from(parcel.input()), usize::from(port.place.output));
            memory.release(left_at, input, output, parcel.wire_bytes() - unstored);
        }
    }

    /// Gives back the memory of all that has left a switch by `now`.
    pub(super) fn settle_switch(&mut self, links: &mut Links<'_>, switch: usize) {
        for word in self.words(switch) {
            for slot in slots(word, self.busy[word]) {
                if self.fronts[slot] <= links.now {
                    self.settle_due(links, self.outputs[slot]);
                }
            }
        }
    }

    /// The words of [`Self::busy`] that are of a switch.
    pub(super) fn words(&self, switch: usize) -> Range<usize> {
        let outputs = &self.nodes[switch].outputs;
        outputs.start / 64..outputs.end.div_ceil(64)
    }

    /// From now on nothing leaves an output before `front` that has not been seen to.
    #[inline(always)]
    pub(super) fn set_front(&mut self, slot: usize, front: u64) {
        let Some(last) = self.fronts.get_mut(slot) else { return };
        *last = front;
        let (word, bit) = (&mut self.busy[slot / 64], 1 << (slot % 64));
        *word = if front == NEVER { *word & !bit } else { *word | bit };
    }

    /// Whether the memory of a switch takes a frame that goes out by a port.
    pub(super) fn admit(
        &mut self,
        moment: &mut Moment<'_>,
        switch: usize,
        index: PortIndex,
        parcel: Parcel,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let port = &moment.links.ports[index as usize];
        let (input, output) = (usize::from(parcel.input()), usize::from(port.place.output));
        let frame = Descriptor { bytes: parcel.wire_bytes() - moment.links.unstored, ecn: parcel.ecn() };
        let charge = port.charge(parcel.wire_bytes(), moment.links.unstored);
        if self.nodes[switch]
            .memory
            .as_ref()
            .is_some_and(|memory| memory.depends_on_others(input, output, charge))
        {
            self.settle_switch(&mut moment.links, switch);
        }
        match &mut self.nodes[switch].memory {
            Some(memory) => memory.admit(Instant::new(moment.links.now), input, output, frame, draw),
            None => Verdict::Accepted { marked: false },
        }
    }
}

/// The outputs that the bits of a word stand for.
pub(super) fn slots(word: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (bit < 64).then(|| word * 64 + bit as usize)
    })
}

/// When the first frame leaves a queue.
pub(super) fn front(port: &Port) -> u64 {
    port.get_queued(0).map_or(NEVER, |frame| port.leaves_at(frame))
}
