//! Worlds in which an event outlives the journal that has its assignment.

use fanin_dataflow::Random;

use crate::plan::{InjectedFault, PlannedFault};
use crate::shared::{Host, between};
use crate::verdict;
use crate::world::World;

const MS: u64 = 1_000_000;

/// Draws faults that replace all others. One collector of several is cut from all loggers, so that its accepted events stay
/// unfinished. The others go on, and fill the supervisor's journals until those with the assignments are deleted. Then
/// the supervisor ends, and in half of the worlds the collector, too.
pub(crate) fn draw_cut_collector(
    random: &mut Random,
    readouts: u64,
    collectors: u64,
    loggers: u64,
) -> Vec<PlannedFault> {
    // The supervisor is machine 0, and the roles follow in this order.
    let collector = (readouts + between(random, 1, collectors)) as Host;
    let from = between(random, 400 * MS, 1200 * MS);
    let killed = from + between(random, 1500 * MS, 3800 * MS);
    let until = killed + between(random, 50 * MS, 600 * MS);
    let first = readouts + collectors + 1;
    let cut = |logger| PlannedFault { at: from, until, kind: InjectedFault::Cut(collector, logger as Host) };
    let kill = |at, host| PlannedFault { at, until: at + MS, kind: InjectedFault::Kill(host) };
    let mut faults: Vec<PlannedFault> = (first..first + loggers).map(cut).collect();
    faults.push(kill(killed, 0));
    if between(random, 1, 2) == 1 {
        faults.push(kill(between(random, killed, until), collector));
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

impl World {
    /// Notes which events were assigned and finished, where journals with them are deleted.
    pub(crate) fn note_progress(&mut self) {
        if self.plan.is_held {
            let seen = std::mem::take(&mut self.seen);
            self.seen = verdict::progress_since(self, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The supervisor's oldest journal of the end begins behind events that the world saw as assigned.
    #[test]
    fn journals_of_held_events_are_deleted() {
        let (mut played, mut deleted) = (0, 0);
        for seed in 0..300 {
            let mut world = World::new(seed);
            if world.plan.is_held {
                world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
                let left = verdict::progress(&world);
                played += 1;
                deleted += u32::from(left.finished() < world.seen.finished());
            }
        }
        assert!(played >= 5 && 2 * deleted > played, "{deleted} of {played}");
    }
}
