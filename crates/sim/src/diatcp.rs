//! DIATCP: a receiver that shares a global window out among its connections (ICC'15 §IV.D; Hwang et al. 2014).
//!
//! The receiver knows which connections owe it an answer, because its application asked. Their advertised windows add up to
//! the global window (equation (9)): equal shares in whole segments, or larger ones where the deadline is nearer. Where
//! there are more connections than segments the last wait with a window of zero. Shares change when an answer is complete or
//! further ones are asked for; whoever owes nothing has a window of zero, which the next request opens, and whoever gets more is told by a window update, an acknowledgement like any other on the way back.

use std::collections::{BTreeMap, VecDeque};

use fanin_units::{Duration, Instant};

use crate::world::EndIndex;

/// What a message means for the connection that it goes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaits {
    /// Nothing.
    Nothing,
    /// It asks for an answer.
    Opens,
    /// It is one.
    Closes,
}

/// A connection that owes answers.
#[derive(Clone, Debug)]
struct Debtor {
    end: EndIndex,
    /// When each answer is due, in the order of the requests.
    due: VecDeque<Instant>,
    /// Its window in segments, once it has one.
    share: Option<u32>,
}

/// What sharing out has come to.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct DiatcpCounters {
    /// Window updates sent.
    pub(crate) updates: u64,
    /// Acknowledgements sent because a window was used up.
    pub(crate) used_up: u64,
    /// The most windows that were advertised at once by one host, in segments.
    pub(crate) granted_max: u32,
    /// The most connections that owed an answer to one host.
    pub(crate) debtors_max: u32,
    /// Answers that came after their deadline.
    pub(crate) late: u64,
}

/// The receiving hosts.
#[derive(Debug)]
pub(crate) struct Diatcp {
    /// In segments.
    global_window: u32,
    pub(crate) mss: u32,
    deadline: Duration,
    deadline_aware: bool,
    /// By host, in the order in which connections began to owe.
    hosts: BTreeMap<u32, Vec<Debtor>>,
    changed: Vec<u32>,
    pub(crate) counters: DiatcpCounters,
}

impl Diatcp {
    pub(crate) fn new(global_window: u32, mss: u16, deadline: Duration, deadline_aware: bool) -> Self {
        Self {
            global_window,
            mss: u32::from(mss),
            deadline,
            deadline_aware,
            hosts: BTreeMap::new(),
            changed: Vec::new(),
            counters: DiatcpCounters::default(),
        }
    }

    /// An answer was asked for over the connection of `end`, which stands at `host`.
    pub(crate) fn open(&mut self, now: Instant, host: u32, end: EndIndex) {
        let due = if self.deadline.is_zero() { Instant::FAR_FUTURE } else { now + self.deadline };
        let debtors = self.hosts.entry(host).or_default();
        match debtors.iter_mut().find(|debtor| debtor.end == end) {
            Some(debtor) => debtor.due.push_back(due),
            None => {
                debtors.push(Debtor { end, due: [due].into(), share: None });
                self.counters.debtors_max = self.counters.debtors_max.max(debtors.len() as u32);
                self.change(host);
            }
        }
    }

    /// An answer is complete. Returns whether it was the last that the connection owed: its window is then to be closed.
    pub(crate) fn close(&mut self, now: Instant, host: u32, end: EndIndex) -> bool {
        let Some(debtors) = self.hosts.get_mut(&host) else { return false };
        let Some(place) = debtors.iter().position(|debtor| debtor.end == end) else { return false };
        let due = debtors[place].due.pop_front();
        self.counters.late += u64::from(due.is_some_and(|due| due < now));
        if debtors[place].due.is_empty() {
            debtors.remove(place);
            self.change(host);
            return true;
        }
        if self.deadline_aware {
            self.change(host);
        }
        false
    }

    fn change(&mut self, host: u32) {
        if !self.changed.contains(&host) {
            self.changed.push(host);
        }
    }

    /// Whether a connection owes an answer.
    pub(crate) fn is_debtor(&self, host: u32, end: EndIndex) -> bool {
        self.hosts.get(&host).is_some_and(|debtors| debtors.iter().any(|debtor| debtor.end == end))
    }

    /// Shares the windows of hosts out anew where something changed; `tell` is handed each end whose share did, its window in
    /// bytes, and whether it grew.
    pub(crate) fn share_out(&mut self, now: Instant, mut tell: impl FnMut(EndIndex, u32, bool)) {
        while let Some(host) = self.changed.pop() {
            let Some(debtors) = self.hosts.get_mut(&host) else { continue };
            let shares = if self.deadline_aware {
                by_deadline(now, self.global_window, debtors.iter().map(|debtor| debtor.due[0]))
            } else {
                equal(self.global_window, debtors.len())
            };
            self.counters.granted_max = self.counters.granted_max.max(shares.iter().sum());
            for (debtor, share) in debtors.iter_mut().zip(shares) {
                let before = debtor.share.replace(share);
                if before != Some(share) {
                    tell(debtor.end, share * self.mss, before.is_none_or(|before| share > before));
                }
            }
        }
    }
}

/// Equal shares; the first ones one more where it does not divide.
fn equal(global_window: u32, debtors: usize) -> Vec<u32> {
    let number = debtors.max(1) as u32;
    let (each, rest) = (global_window / number, global_window % number);
    (0..debtors as u32).map(|place| each + u32::from(place < rest)).collect()
}

/// A segment for each as far as they go, by deadline; the rest in proportion to the inverse of the time left.
fn by_deadline(now: Instant, global_window: u32, due: impl Iterator<Item = Instant>) -> Vec<u32> {
    let mut order: Vec<(Instant, usize)> = due.enumerate().map(|(place, due)| (due, place)).collect();
    order.sort_unstable();
    let firsts = order.len().min(global_window as usize);
    let rest = u64::from(global_window) - firsts as u64;
    // Microseconds, so that what is overdue or nearly so does not take everything.
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
    // What rounding left over, to the most urgent.
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
        // Nobody is left out while there are segments; where there are not, the latest wait.
        assert_eq!(by_deadline(at(0), 3, [at(1_000), at(1), at(1)].into_iter()), [1; 3]);
        assert_eq!(by_deadline(at(0), 2, [at(1_000), at(1), at(1)].into_iter()), [0, 1, 1]);
        // Without deadlines, equal shares.
        assert_eq!(by_deadline(at(0), 8, [Instant::FAR_FUTURE; 4].into_iter()), [2; 4]);
    }

    #[test]
    fn tells_whose_share_changed() {
        let mut diatcp = Diatcp::new(12, 1000, Duration::from_millis(5), false);
        let told = |diatcp: &mut Diatcp| {
            let mut told = Vec::new();
            diatcp.share_out(at(0), |end, bytes, grew| told.push((end, bytes, grew)));
            told
        };
        (0..3).for_each(|end| diatcp.open(at(0), 7, end));
        assert_eq!(told(&mut diatcp), [(0, 4000, true), (1, 4000, true), (2, 4000, true)]);
        diatcp.open(at(0), 7, 1);
        assert_eq!(told(&mut diatcp), [], "a second answer over the same connection changes nothing");
        assert!(!diatcp.close(at(1), 7, 1) && diatcp.close(at(1), 7, 0));
        assert_eq!(told(&mut diatcp), [(1, 6000, true), (2, 6000, true)]);
        diatcp.open(at(2), 7, 3);
        assert_eq!(told(&mut diatcp), [(1, 4000, false), (2, 4000, false), (3, 4000, true)]);
        diatcp.close(at(6), 7, 1);
        assert!(diatcp.is_debtor(7, 2) && !diatcp.is_debtor(7, 1) && !diatcp.is_debtor(8, 2));
        assert_eq!((diatcp.counters.late, diatcp.counters.granted_max), (1, 12));
    }
}
