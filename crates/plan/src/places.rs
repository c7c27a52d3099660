//! The queues on the way to a collector, as the graph of the network has them.

use fanin_network::{InputLinks, LinkClass, SwitchKind};
use fanin_scenario::Switch;
use fanin_units::Rate;

/// A queue on the way to a collector, before it is judged.
#[derive(Clone, Copy)]
pub(crate) struct QueuePlace<'a> {
    pub(crate) name: &'a str,
    pub(crate) switch: &'a Switch,
    /// Highest inflow of all collectors at this queue.
    pub(crate) inflow: Rate,
    pub(crate) outflow: Rate,
    /// The part of a collector's burst that passes one queue: `part / whole`.
    pub(crate) part: u64,
    pub(crate) whole: u64,
    /// Collectors with bursts through this very queue.
    pub(crate) sharers: u64,
    /// Collectors with a queue of their own in the same memory.
    pub(crate) neighbours: u64,
    /// Share of the system's events that pass this queue or memory: one in this many.
    pub(crate) events_one_in: u64,
    pub(crate) is_uplink: bool,
    /// True if each collector has its own ring here.
    pub(crate) has_rings: bool,
    /// The ports that lead here, by kind of link.
    pub(crate) inputs: &'a [InputLinks],
}

impl QueuePlace<'_> {
    /// The queues like this one over which a collector's burst is split.
    pub(crate) fn ways(&self) -> u64 {
        (self.whole / self.part.max(1)).max(1)
    }
}

/// The queues that event data pass on the way to a collector, the last one first.
pub(crate) fn places<'a>(
    classes: &'a [LinkClass],
    switches: &'a [SwitchKind],
    collectors: u64,
    is_closed_loop: bool,
) -> Vec<QueuePlace<'a>> {
    let place = |class: &'a LinkClass| {
        let queue = class.queue.as_ref()?;
        let is_last = class.name.ends_with("->collector");
        let sharers = if queue.has_rings { 1 } else { queue.sharers };
        // Ports towards collectors, and rings, hold the data of one collector each; a memory has many of them.
        let neighbours = if is_last || queue.has_rings { queue.neighbours } else { 1 };
        let together = queue.inflow.checked_mul(sharers).unwrap_or(Rate::MAX).min(queue.inflow_max);
        let inflow = if is_closed_loop && neighbours == 1 {
            // All collectors ask at once, and share the links that lead here.
            let part = u128::from(together.get()) * u128::from(sharers.min(collectors));
            let part = u64::try_from(part.div_ceil(u128::from(collectors))).unwrap_or(u64::MAX);
            Rate::new(part.max(1))
        } else {
            together
        };
        Some(QueuePlace {
            name: &class.name,
            switch: &switches[queue.switch].settings,
            inflow,
            outflow: class.rate,
            part: queue.part,
            whole: queue.whole,
            sharers,
            neighbours,
            events_one_in: (collectors / sharers.max(neighbours)).max(1),
            is_uplink: queue.is_uplink,
            has_rings: queue.has_rings,
            inputs: &queue.inputs,
        })
    };
    classes.iter().rev().filter_map(place).collect()
}
