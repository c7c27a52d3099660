//! Worlds that aim at the succession of supervisors: two proposers in one term, and a pair failing at once.

use fanin_dataflow::Random;

use crate::plan::{InjectedFault, PlannedFault};
use crate::shared::{Host, between};

const MS: u64 = 1_000_000;

/// The machines of a system with a standby. The first supervisor is machine 0, the readouts are the next ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuccessionPlaces {
    pub(crate) readouts: u64,
    pub(crate) standby: Host,
}

impl SuccessionPlaces {
    /// Draws faults that replace all others: one situation, which faults drawn one by one rarely meet.
    pub(crate) fn draw_faults(self, random: &mut Random) -> Vec<PlannedFault> {
        let from = between(random, 800 * MS, 1600 * MS);
        let until = from + between(random, 2500 * MS, 3900 * MS);
        // A contest needs three readouts: with fewer, a majority is all of them.
        let kind = between(random, if self.readouts == 3 { 1 } else { 5 }, 6);
        let mut faults = match kind {
            1 | 2 => self.lost_vote(random, from, until),
            3 | 4 => self.split_vote(random, from, until),
            5 => self.replaced_leader(random, from, until),
            _ => Self::lost_pair(random, from),
        };
        faults.sort_by_key(|fault| fault.at);
        faults
    }

    /// Cuts the supervisors from each other. Each reaches one readout alone, and both reach the last one returned.
    fn contest(self, random: &mut Random, from: u64, until: u64) -> (Vec<PlannedFault>, Host) {
        let first = between(random, 0, 2);
        let [leaders, shared, followers] = [0, 1, 2].map(|place| 1 + (first + place) as Host % 3);
        let cut = |a, b| PlannedFault { at: from, until, kind: InjectedFault::Cut(a, b) };
        (vec![cut(0, self.standby), cut(0, followers), cut(self.standby, leaders)], shared)
    }

    /// A readout votes for the leader's term alone. It loses its record and its connection to the leader, while the
    /// standby proposes another leader for the same term.
    fn lost_vote(self, random: &mut Random, from: u64, until: u64) -> Vec<PlannedFault> {
        let (mut faults, shared) = self.contest(random, from, until);
        let at = from + between(random, 750 * MS, 1450 * MS);
        faults.push(PlannedFault { at, until: at + MS, kind: InjectedFault::LoseVote(shared) });
        faults.push(PlannedFault { at, until, kind: InjectedFault::Cut(0, shared) });
        faults
    }

    /// A readout votes for the leader's term alone, and does not learn the decision. The leader is slow, so that there
    /// is time between both.
    fn split_vote(self, random: &mut Random, from: u64, until: u64) -> Vec<PlannedFault> {
        let (mut faults, shared) = self.contest(random, from, until);
        let at = from + between(random, 750 * MS, 1250 * MS);
        let slow = InjectedFault::Slow(0, between(random, 1000, 3000));
        faults.push(PlannedFault { at: from, until, kind: slow });
        faults.push(PlannedFault { at, until, kind: InjectedFault::CutOneWay(0, shared) });
        faults
    }

    /// The leader loses its partner and its majority while it has records that its partner lacks. It follows its
    /// successor afterwards.
    fn replaced_leader(self, random: &mut Random, from: u64, until: u64) -> Vec<PlannedFault> {
        let cut = |other| PlannedFault { at: from, until, kind: InjectedFault::Cut(0, other) };
        // With three readouts, the leader may keep one.
        let kept = if self.readouts == 3 { between(random, 0, 1) } else { 0 };
        (1 + kept as Host..=self.readouts as Host).chain([self.standby]).map(cut).collect()
    }

    /// The follower loses its power at a change of its disk, and the leader's machine is lost for good at that time.
    fn lost_pair(random: &mut Random, from: u64) -> Vec<PlannedFault> {
        let after = between(random, 0, 40) * MS;
        let until = from + between(random, 200 * MS, 1500 * MS);
        let kind = InjectedFault::LosePair { changes: between(random, 1, 12), after };
        vec![PlannedFault { at: from, until, kind }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WorldPlan;
    use crate::world::World;

    /// On the disk of a follower without power is every record that its leader acted upon. Both fail at once here.
    #[test]
    fn a_follower_takes_over_after_both_machines_failed() {
        let (mut lost, mut played) = (0, 0);
        for seed in 0..150 {
            let mut world = World::new(seed);
            let is_pair = |fault: &PlannedFault| matches!(fault.kind, InjectedFault::LosePair { .. });
            if world.plan.faults.iter().any(is_pair) {
                world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
                played += 1;
                lost += u32::from(world.children[0].is_lost);
            }
        }
        assert!(played >= 5 && 2 * lost > played, "{lost} leaders of {played} were lost");
    }

    /// Seeds draw each situation of the succession, and endpoints with small limits.
    #[test]
    fn seeds_draw_contests_and_small_limits() {
        let (mut votes, mut one_way, mut pairs, mut small, mut scarce) = (0, 0, 0, 0, 0);
        for seed in 0..3000 {
            let plan = WorldPlan::draw(&mut Random::new(seed));
            small += u32::from(plan.limits.outbox_bytes_max == 1024);
            scarce += u32::from(plan.limits.memory.is_some());
            let has = |is: fn(&InjectedFault) -> bool| plan.faults.iter().any(|fault| is(&fault.kind));
            if plan.has_standby() && has(|kind| matches!(kind, InjectedFault::Cut(0, _))) {
                votes += u32::from(has(|kind| matches!(kind, InjectedFault::LoseVote(_))));
                one_way += u32::from(has(|kind| matches!(kind, InjectedFault::CutOneWay(0, _))));
            }
            pairs += u32::from(has(|kind| matches!(kind, InjectedFault::LosePair { .. })));
        }
        assert!(votes > 10 && one_way > 10 && pairs > 50, "{votes}, {one_way}, {pairs}");
        assert!((800..1200).contains(&small), "{small}");
        // A third of the worlds without restarts in order.
        assert!((750..1000).contains(&scarce), "{scarce}");
    }
}
