//! Plays several partitions of one network in turns.
//!
//! A frame or PAUSE signal that leaves a partition arrives at least its link's delay later. Each partition may therefore run
//! ahead of the others by the least delay of the links between them, the lookahead.

use std::sync::atomic::AtomicBool;

use fanin_network::PortIndex;
use fanin_units::Instant;

use crate::boundary::BoundaryFrame;
use crate::partition::{Ending, Partition};
use crate::workload::HostWorkload;

/// Plays the partitions of one network up to `until`, in turns of one lookahead. A single partition runs without turns. Every
/// node belongs to one partition.
pub(crate) fn play<W: HostWorkload>(
    partitions: &mut [Partition<W>],
    until: Instant,
    stop: &AtomicBool,
    mut progress: impl FnMut(Instant),
) -> Ending {
    if let [whole] = partitions {
        return whole.run(until, stop, progress);
    }
    let lookahead = partitions.iter().map(|partition| partition.played().lookahead()).min();
    let lookahead = lookahead.expect("there is a partition");
    assert!(!lookahead.is_zero(), "a link between partitions has no delay");
    let mut now = partitions.iter().map(|partition| partition.engine.time()).max().expect("there is one");
    while now < until {
        now = until.min(now + lookahead);
        for partition in partitions.iter_mut() {
            // A partition without an occurrence of its own waits for a frame.
            let ending = partition.run(now, stop, &mut progress);
            if ending != Ending::Time && ending != Ending::Stuck {
                return ending;
            }
        }
        exchange(partitions);
    }
    Ending::Time
}

/// Hands frames and signals that left to the partitions at the far ends of their links.
fn exchange<W: HostWorkload>(partitions: &mut [Partition<W>]) {
    for from in 0..partitions.len() {
        for BoundaryFrame { frame, messages } in partitions[from].take_leaving() {
            if !messages.is_empty() {
                let receiver = partitions.iter_mut().find(|partition| partition.played().has_end(frame.end));
                receiver.expect("every host is played").accept_messages(frame.end, messages);
            }
            far_end(partitions, frame.port).engine.accept(&frame);
        }
        for signal in partitions[from].take_leaving_signals() {
            far_end(partitions, signal.port).accept_signal(signal);
        }
    }
}

/// Returns the partition that plays the far end of a port's link.
fn far_end<W: HostWorkload>(partitions: &mut [Partition<W>], port: PortIndex) -> &mut Partition<W> {
    let to = partitions.iter_mut().find(|partition| partition.played().leads_in(port));
    to.expect("every node is played")
}

#[cfg(test)]
#[path = "../tests/unit/turns.rs"]
mod tests;
