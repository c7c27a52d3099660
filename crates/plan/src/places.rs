//! The queues on the way to a collector, taken from the graph of the network.

use fanin_network::{InputLinks, LinkClass, SwitchKind};
use fanin_scenario::SwitchSettings;
use fanin_units::Rate;

/// A queue on the way to a collector, before its verdict.
#[derive(Clone, Copy)]
pub(crate) struct QueuePlace<'a> {
    pub(crate) name: &'a str,
    pub(crate) switch: &'a SwitchSettings,
    /// Highest inflow at this queue from the data of all collectors together.
    pub(crate) inflow: Rate,
    pub(crate) outflow: Rate,
    /// Numerator of the share of a collector's burst that passes this queue: `part / whole`.
    pub(crate) part: u64,
    pub(crate) whole: u64,
    /// Collectors whose bursts pass this queue.
    pub(crate) sharers: u64,
    /// Collectors that have queues in the same memory.
    pub(crate) neighbours: u64,
    /// Share of the system's events that pass this queue or memory: one in this many.
    pub(crate) events_one_in: u64,
    pub(crate) is_uplink: bool,
    /// True if each collector has its own ring here.
    pub(crate) has_rings: bool,
    /// The input ports whose frames reach this queue, by kind of link.
    pub(crate) inputs: &'a [InputLinks],
}

impl QueuePlace<'_> {
    /// Returns the number of similar queues over which a collector's burst is split.
    pub(crate) fn split(&self) -> u64 {
        (self.whole / self.part.max(1)).max(1)
    }
}

/// Returns the queues that event data pass on the way to a collector, the last one first.
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
        // A port towards collectors, or a ring, holds the data of one collector, and its memory has many of them.
        let neighbours = if is_last || queue.has_rings { queue.neighbours } else { 1 };
        let together = queue.inflow.checked_mul(sharers).unwrap_or(Rate::MAX).min(queue.inflow_max);
        let inflow = if is_closed_loop && neighbours == 1 {
            // All collectors request at once, and share the links that lead here.
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
