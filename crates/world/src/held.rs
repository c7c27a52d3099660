//! Worlds in which one collector keeps its events: they outlive the journals with their assignments, or are taken from it.

use std::ops::Range;

use fanin_dataflow::Random;

use crate::plan::{InjectedFault, PlannedFault};
use crate::shared::{Host, between};
use crate::verdict;
use crate::world::World;

const MS: u64 = 1_000_000;
/// Ends of a collector, each of which may cost it all its events.
const KILLS: u64 = 7;

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
    let kill = |at, host| PlannedFault { at, until: at + MS, kind: InjectedFault::Kill(host) };
    let first = readouts + collectors + 1;
    let mut faults: Vec<PlannedFault> = cut_off(collector, first..first + loggers, [from, until]).collect();
    faults.push(kill(killed, 0));
    if between(random, 1, 2) == 1 {
        faults.push(kill(between(random, killed, until), collector));
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Draws faults that replace all others. One collector of several is cut from all loggers, so that its accepted events fill its
/// units and its storage. It is killed again and again. Each time it forgets its events, and they are taken from it.
pub(crate) fn draw_killed_collector(
    random: &mut Random,
    readouts: u64,
    collectors: u64,
    loggers: u64,
) -> Vec<PlannedFault> {
    let collector = (readouts + between(random, 1, collectors)) as Host;
    let from = between(random, 100 * MS, 400 * MS);
    let (mut faults, mut at, mut pause) = (Vec::new(), from, 100 * MS);
    for _ in 0..KILLS {
        at += between(random, 500 * MS, 900 * MS);
        faults.push(PlannedFault { at, until: at + MS, kind: InjectedFault::Kill(collector) });
        // The launcher waits longer before each start.
        at += pause;
        pause = (2 * pause).min(2000 * MS);
    }
    let first = readouts + collectors + 1;
    faults.extend(cut_off(collector, first..first + loggers, [from, at]));
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Cuts a collector from each of these loggers in the time from `from` until `until`.
fn cut_off(
    collector: Host,
    loggers: Range<u64>,
    [from, until]: [u64; 2],
) -> impl Iterator<Item = PlannedFault> {
    let kind = move |logger| InjectedFault::Cut(collector, logger as Host);
    loggers.map(move |logger| PlannedFault { at: from, until, kind: kind(logger) })
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

    /// More events are taken from one collector than its supervisor may remember, so that forgotten ones must not stay.
    #[test]
    fn a_killed_collector_loses_more_events_than_its_supervisor_may_keep() {
        let (mut played, mut exceeding) = (0, Vec::new());
        for seed in 0..600 {
            let mut world = World::new(seed);
            let is_kill = |fault: &&PlannedFault| matches!(fault.kind, InjectedFault::Kill(_));
            if !world.plan.is_held || world.plan.faults.iter().filter(is_kill).count() < KILLS as usize {
                continue;
            }
            world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
            let loaded = fanin_scenario::load_text("world.toml", &world.plan.scenario, &[]).unwrap();
            let scenario = &loaded.scenario;
            let events = 2 * scenario.collectors.units_per_host + scenario.live.shipping_max;
            played += 1;
            if world.seen.taken_most() > 3 * events as usize {
                exceeding.push(seed);
            }
        }
        eprintln!("{exceeding:?} of {played} worlds");
        assert!(played >= 5 && !exceeding.is_empty(), "{exceeding:?} of {played}");
    }
}
