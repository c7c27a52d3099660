//! Worlds that aim at the succession of supervisors: two proposers in one term, and a pair that fails at once.

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
    /// Draws faults that replace all others: one situation that faults drawn one by one rarely meet.
    pub(crate) fn draw_faults(self, random: &mut Random) -> Vec<PlannedFault> {
        let from = between(random, 800 * MS, 1600 * MS);
        let until = from + between(random, 2500 * MS, 3900 * MS);
        // A contest needs three readouts: with fewer, a majority is all of them.
        let kind = between(random, if self.readouts == 3 { 1 } else { 3 }, 4);
        let mut faults = match kind {
            1 => self.lost_vote(random, from, until),
            2 => self.split_vote(random, from, until),
            3 => self.replaced_leader(random, from, until),
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
        let slow = InjectedFault::Slow(0, between(random, 500, 2000));
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
