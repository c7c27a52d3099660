//! DIATCP: a receiver divides a global window among its senders (ICC'15 §IV.D; Hwang et al. 2014).
//!
//! The receiver knows from its application's requests which senders owe an answer. Their advertised windows add up to the
//! global window (equation (9)). Shares are equal in whole segments, or larger for nearer deadlines. With more senders
//! than segments the last receive none. Shares change with each request and each complete answer.
//!
//! `techniques/diatcp` of `sim` sets the windows of simulated connections, `techniques/diatcp` of `node` those of real ones.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Duration, Instant};

/// A sender that owes answers.
#[derive(Clone, Debug)]
struct Debtor {
    sender: u32,
    /// Deadline of each answer, in the order of the requests.
    due: VecDeque<Instant>,
    /// The sender's window in segments; `None` before the first share.
    share: Option<u32>,
}

/// Counters of a receiver's window shares.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ShareCounters {
    /// The most segments granted at once.
    pub granted_max: u32,
    /// The most senders that owed an answer at once.
    pub senders_max: u32,
    /// Answers that arrived after their deadline.
    pub late: u64,
}

/// The windows of one receiver's senders. The driver numbers the senders.
#[derive(Clone, Debug)]
pub struct WindowShares {
    global_window: u32,
    deadline: Duration,
    deadline_aware: bool,
    /// Senders that owe answers, in the order of their first outstanding request.
    debtors: Vec<Debtor>,
    has_changed: bool,
    /// Counts so far.
    pub counters: ShareCounters,
}

impl WindowShares {
    /// Makes shares of `global_window` segments. An answer is due `deadline` after its request (zero: never). With
    /// `deadline_aware`, answers with nearer deadlines have larger shares.
    #[must_use]
    pub fn new(global_window: u32, deadline: Duration, deadline_aware: bool) -> Self {
        Self {
            global_window,
            deadline,
            deadline_aware,
            debtors: Vec::new(),
            has_changed: false,
            counters: ShareCounters::default(),
        }
    }

    /// Records a request to `sender`. Returns true if the request is the sender's only outstanding one, which changes the
    /// shares.
    pub fn open(&mut self, now: Instant, sender: u32) -> bool {
        let due = if self.deadline.is_zero() { Instant::FAR_FUTURE } else { now + self.deadline };
        match self.debtors.iter_mut().find(|debtor| debtor.sender == sender) {
            Some(debtor) => {
                debtor.due.push_back(due);
                false
            }
            None => {
                self.debtors.push(Debtor { sender, due: [due].into(), share: None });
                self.counters.senders_max = self.counters.senders_max.max(self.debtors.len() as u32);
                self.has_changed = true;
                true
            }
        }
    }

    /// Records a complete answer of `sender`. Returns true if it was the sender's last outstanding one; the caller then closes
    /// the sender's window.
    pub fn close(&mut self, now: Instant, sender: u32) -> bool {
        let Some(place) = self.debtors.iter().position(|debtor| debtor.sender == sender) else {
            return false;
        };
        assert!(
            !self.debtors[place].due.is_empty(),
            "a sender without outstanding answers is noted as a debtor"
        );
        let due = self.debtors[place].due.pop_front();
        self.counters.late += u64::from(due.is_some_and(|due| due < now));
        if self.debtors[place].due.is_empty() {
            self.debtors.remove(place);
            self.has_changed = true;
            return true;
        }
        self.has_changed |= self.deadline_aware;
        false
    }

    /// Forgets a sender with all its outstanding answers.
    pub fn forget(&mut self, sender: u32) {
        if let Some(place) = self.debtors.iter().position(|debtor| debtor.sender == sender) {
            self.debtors.remove(place);
            self.has_changed = true;
        }
    }

    /// Returns true if `sender` owes an answer.
    #[must_use]
    pub fn is_debtor(&self, sender: u32) -> bool {
        self.debtors.iter().any(|debtor| debtor.sender == sender)
    }

    /// Returns the senders that owe answers, with their shares in segments; `None` before the first division.
    pub fn shares(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        self.debtors.iter().map(|debtor| (debtor.sender, debtor.share))
    }

    /// Returns true if [`Self::share_out`] has to divide the window again.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Divides the window again if senders or deadlines have changed. For each changed share, calls `on_change` with the
    /// sender, the new share in segments, and true if the share grew.
    pub fn share_out(&mut self, now: Instant, mut on_change: impl FnMut(u32, u32, bool)) {
        if !core::mem::take(&mut self.has_changed) {
            return;
        }
        let shares = if self.deadline_aware {
            by_deadline(now, self.global_window, self.debtors.iter().map(|debtor| debtor.due[0]))
        } else {
            equal(self.global_window, self.debtors.len())
        };
        let granted = shares.iter().sum();
        assert!(granted <= self.global_window, "the shares exceed the window");
        self.counters.granted_max = self.counters.granted_max.max(granted);
        for (debtor, share) in self.debtors.iter_mut().zip(shares) {
            let before = debtor.share.replace(share);
            if before != Some(share) {
                on_change(debtor.sender, share, before.is_none_or(|before| share > before));
            }
        }
    }
}

/// Returns equal shares in segments. If the window does not divide evenly, the first senders get one segment more.
fn equal(global_window: u32, debtors: usize) -> Vec<u32> {
    let number = debtors.max(1) as u32;
    let (each, rest) = (global_window / number, global_window % number);
    (0..debtors as u32).map(|place| each + u32::from(place < rest)).collect()
}

/// Returns shares by deadline, in segments. Each sender gets one segment, the nearest deadline first, while segments
/// are left. The rest is divided in proportion to the inverse of the time left.
fn by_deadline(now: Instant, global_window: u32, due: impl Iterator<Item = Instant>) -> Vec<u32> {
    let mut order: Vec<(Instant, usize)> = due.enumerate().map(|(place, due)| (due, place)).collect();
    order.sort_unstable();
    let firsts = order.len().min(global_window as usize);
    let rest = u64::from(global_window) - firsts as u64;
    // In microseconds, so that an answer that is overdue, or nearly so, does not take the whole window.
    let urgency = |due: Instant| {
        let left = due.saturating_since(now).get() / 1_000_000;
        ((1_u64 << 40) / left.clamp(1, 1 << 40)).max(1)
    };
    let sum: u64 = order[..firsts].iter().map(|&(due, _)| urgency(due)).sum();
    let mut shares = vec![0; order.len()];
    let mut left = rest;
    for &(due, place) in &order[..firsts] {
        let more = (u128::from(rest) * u128::from(urgency(due)) / u128::from(sum.max(1))) as u64;
        shares[place] = 1 + more as u32;
        left -= more;
    }
    // The segments that rounding left over go to the most urgent.
    for &(_, place) in order[..firsts].iter().cycle().take(left as usize) {
        shares[place] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::START + Duration::from_millis(ms)
    }

    #[test]
    fn shares_add_up_to_the_global_window() {
        assert_eq!(equal(160, 160), [1; 160]);
        assert_eq!(equal(10, 4), [3, 3, 2, 2]);
        assert_eq!(equal(3, 5), [1, 1, 1, 0, 0]);
        assert_eq!(equal(3, 0), [0; 0]);
        for debtors in 1..200_u64 {
            let due = (0..debtors).map(|place| at(1 + place * 7 % 50));
            assert_eq!(by_deadline(at(0), 160, due).iter().sum::<u32>(), 160);
            assert_eq!(equal(160, debtors as usize).iter().sum::<u32>(), 160);
        }
    }

    #[test]
    fn nearer_deadlines_get_more() {
        assert_eq!(by_deadline(at(0), 13, [at(40), at(10)].into_iter()), [3, 10]);
        // Every sender gets a segment while there are any; then the latest deadlines wait.
        assert_eq!(by_deadline(at(0), 3, [at(1_000), at(1), at(1)].into_iter()), [1; 3]);
        assert_eq!(by_deadline(at(0), 2, [at(1_000), at(1), at(1)].into_iter()), [0, 1, 1]);
        // Without deadlines, equal shares.
        assert_eq!(by_deadline(at(0), 8, [Instant::FAR_FUTURE; 4].into_iter()), [2; 4]);
    }

    #[test]
    fn reports_changed_shares() {
        let mut shares = WindowShares::new(12, Duration::from_millis(5), false);
        let changed = |shares: &mut WindowShares| {
            let mut changed = Vec::new();
            shares.share_out(at(0), |sender, segments, grew| changed.push((sender, segments, grew)));
            changed
        };
        (0..3).for_each(|sender| assert!(shares.open(at(0), sender)));
        assert_eq!(changed(&mut shares), [(0, 4, true), (1, 4, true), (2, 4, true)]);
        assert!(!shares.open(at(0), 1));
        assert_eq!(changed(&mut shares), [], "a second answer of the same sender changes nothing");
        assert!(!shares.close(at(1), 1) && shares.close(at(1), 0));
        assert_eq!(changed(&mut shares), [(1, 6, true), (2, 6, true)]);
        shares.open(at(2), 3);
        assert_eq!(changed(&mut shares), [(1, 4, false), (2, 4, false), (3, 4, true)]);
        shares.close(at(6), 1);
        assert!(shares.is_debtor(2) && !shares.is_debtor(1));
        assert_eq!((shares.counters.late, shares.counters.granted_max), (1, 12));
        shares.forget(2);
        assert_eq!(changed(&mut shares), [(3, 12, true)]);
    }
}
