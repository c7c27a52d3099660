//! The number of flows through each port of a switch, counted by SYN and FIN; idle flows are forgotten.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Duration, Instant, MIX_STEP};

/// The largest number of flows that one switch follows.
pub const FLOWS_MAX: u32 = 1 << 20;

/// The stage of a flow (one direction of a connection), as a frame shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowStage {
    /// The frame opens the flow (SYN).
    Opens,
    /// The frame carries data. A flow that was forgotten, or opened before the switch started, counts again.
    Carries,
    /// The frame only acknowledges: it keeps a known flow from becoming idle, and starts no unknown one.
    Acknowledges,
    /// The frame closes the flow (FIN or RST).
    Closes,
}

/// Index that stands for no entry.
const NIL: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct FlowEntry {
    flow: u64,
    seen: Instant,
    output: u32,
    pool: Option<u32>,
    /// The next entry in the same bucket; for an unused entry, the next unused one.
    chained: u32,
    /// Neighbours in the list ordered by age.
    older: u32,
    younger: u32,
}

/// The flows of one switch. The cost of a frame does not depend on the number of flows.
///
/// A new flow beyond the limit replaces the one idle longest; [`Self::evicted`] counts it.
#[derive(Debug, Clone)]
pub struct FlowCounter {
    entries: Vec<FlowEntry>,
    /// The first entry of each bucket; the number of buckets is a power of two.
    buckets: Vec<u32>,
    unused: u32,
    oldest: u32,
    youngest: u32,
    flows: u32,
    flows_max: u32,
    idle: Duration,
    by_output: Vec<u32>,
    by_pool: Vec<u32>,
    evicted: u64,
    aged: u64,
}

impl FlowCounter {
    /// Makes a counter of up to `flows_max` flows (at most [`FLOWS_MAX`]) to `outputs` ports and `pools` pools. A flow
    /// without a frame for longer than `idle` is forgotten; with [`Duration::MAX`] only a FIN ends a flow, as in
    /// M21TCP §III.C.
    pub fn new(outputs: usize, pools: usize, flows_max: u32, idle: Duration) -> Self {
        Self {
            entries: Vec::new(),
            buckets: vec![NIL; 64],
            unused: NIL,
            oldest: NIL,
            youngest: NIL,
            flows: 0,
            flows_max: flows_max.clamp(1, FLOWS_MAX),
            idle,
            by_output: vec![0; outputs],
            by_pool: vec![0; pools],
            evicted: 0,
            aged: 0,
        }
    }

    /// Opens, renews or closes the flow of a frame that is charged to `pool` and leaves by `output`. `flow` is the caller's
    /// number of the flow.
    ///
    /// # Panics
    /// If a new flow's output does not exist.
    #[inline]
    pub fn handle_frame(
        &mut self,
        now: Instant,
        flow: u64,
        stage: FlowStage,
        output: usize,
        pool: Option<u32>,
    ) {
        self.expire(now);
        let (before, found) = self.find(flow);
        match (stage, found) {
            (FlowStage::Closes, NIL) | (FlowStage::Acknowledges, NIL) => {}
            (FlowStage::Closes, found) => self.forget(before, found),
            (_, NIL) => self.open(now, flow, output, pool),
            (_, found) => self.touch(now, found, output, pool),
        }
    }

    /// Number of flows to an output.
    #[inline]
    pub fn to_output(&self, output: usize) -> u32 {
        self.by_output[output]
    }

    /// Number of flows in a pool.
    #[inline]
    pub fn in_pool(&self, pool: usize) -> u32 {
        self.by_pool[pool]
    }

    /// Number of all flows.
    pub const fn flows(&self) -> u32 {
        self.flows
    }

    /// Number of flows that were forgotten because they were idle.
    pub const fn aged(&self) -> u64 {
        self.aged
    }

    /// Number of flows that were forgotten because `flows_max` was reached.
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Forgets every flow that has been idle for longer than `idle`.
    #[inline]
    pub fn expire(&mut self, now: Instant) {
        while self.oldest != NIL {
            let FlowEntry { flow, seen, .. } = self.entries[self.oldest as usize];
            if now.saturating_since(seen) <= self.idle {
                return;
            }
            let (before, found) = self.find(flow);
            assert_eq!(found, self.oldest, "the oldest flow is not in its bucket");
            self.forget(before, found);
            self.aged += 1;
        }
    }

    #[inline]
    fn bucket(&self, flow: u64) -> usize {
        let mixed = (flow ^ (flow >> 32)).wrapping_mul(MIX_STEP);
        (mixed >> 40) as usize & (self.buckets.len() - 1)
    }

    /// The entry before the flow's entry in its bucket, and the flow's entry.
    #[inline]
    fn find(&self, flow: u64) -> (u32, u32) {
        let (mut before, mut found) = (NIL, self.buckets[self.bucket(flow)]);
        while found != NIL && self.entries[found as usize].flow != flow {
            (before, found) = (found, self.entries[found as usize].chained);
        }
        (before, found)
    }

    #[cold]
    fn open(&mut self, now: Instant, flow: u64, output: usize, pool: Option<u32>) {
        assert!(output < self.by_output.len(), "no output port {output}");
        debug_assert_eq!(self.find(flow).1, NIL, "a flow is opened twice");
        if self.flows == self.flows_max {
            let (before, found) = self.find(self.entries[self.oldest as usize].flow);
            self.forget(before, found);
            self.evicted += 1;
        }
        if self.flows as usize == self.buckets.len() {
            self.grow();
        }
        let bucket = self.bucket(flow);
        let entry = FlowEntry {
            flow,
            seen: now,
            output: output as u32,
            pool,
            chained: self.buckets[bucket],
            older: NIL,
            younger: NIL,
        };
        let place = if self.unused == NIL {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            let place = self.unused;
            self.unused = self.entries[place as usize].chained;
            self.entries[place as usize] = entry;
            place
        };
        self.buckets[bucket] = place;
        self.append(place);
        self.count(place, true);
        self.flows += 1;
        assert!(self.flows <= self.flows_max, "more flows than the limit");
    }

    #[cold]
    fn grow(&mut self) {
        self.buckets = vec![NIL; self.buckets.len() * 2];
        let mut place = self.oldest;
        while place != NIL {
            let bucket = self.bucket(self.entries[place as usize].flow);
            self.entries[place as usize].chained = self.buckets[bucket];
            self.buckets[bucket] = place;
            place = self.entries[place as usize].younger;
        }
    }

    #[inline]
    fn touch(&mut self, now: Instant, place: u32, output: usize, pool: Option<u32>) {
        let entry = &mut self.entries[place as usize];
        assert!(now >= entry.seen, "time runs backwards");
        entry.seen = now;
        if entry.output as usize != output || entry.pool != pool {
            self.count(place, false);
            let entry = &mut self.entries[place as usize];
            (entry.output, entry.pool) = (output as u32, pool);
            self.count(place, true);
        }
        if self.youngest != place {
            self.unlink(place);
            self.append(place);
        }
    }

    #[cold]
    fn forget(&mut self, before: u32, place: u32) {
        let FlowEntry { flow, chained, .. } = self.entries[place as usize];
        let bucket = self.bucket(flow);
        match self.entries.get_mut(before as usize) {
            Some(before) => {
                assert_eq!(before.chained, place, "a flow does not follow the entry before it in its bucket");
                before.chained = chained;
            }
            None => {
                assert_eq!(
                    self.buckets[bucket], place,
                    "a flow without an entry before it is not the first of its bucket"
                );
                self.buckets[bucket] = chained;
            }
        }
        self.unlink(place);
        self.count(place, false);
        self.entries[place as usize].chained = self.unused;
        self.unused = place;
        self.flows -= 1;
    }

    #[inline]
    fn count(&mut self, place: u32, more: bool) {
        let FlowEntry { output, pool, .. } = self.entries[place as usize];
        let step = |count: &mut u32| *count = if more { *count + 1 } else { *count - 1 };
        step(&mut self.by_output[output as usize]);
        if let Some(pool) = pool {
            step(&mut self.by_pool[pool as usize]);
        }
    }

    #[inline]
    fn append(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        (entry.older, entry.younger) = (self.youngest, NIL);
        match self.entries.get_mut(self.youngest as usize) {
            Some(youngest) => youngest.younger = place,
            None => self.oldest = place,
        }
        self.youngest = place;
    }

    #[inline]
    fn unlink(&mut self, place: u32) {
        let FlowEntry { older, younger, .. } = self.entries[place as usize];
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.younger = younger,
            None => self.oldest = younger,
        }
        match self.entries.get_mut(younger as usize) {
            Some(entry) => entry.older = older,
            None => self.youngest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::START + Duration::from_millis(ms)
    }

    #[test]
    fn opens_and_closes_and_opens_again_with_data() {
        let mut flows = FlowCounter::new(2, 0, 100, Duration::MAX);
        let mut frame = |flow, stage, output| {
            flows.handle_frame(at(0), flow, stage, output, None);
            (flows.to_output(0), flows.to_output(1))
        };
        assert_eq!(frame(1, FlowStage::Opens, 0), (1, 0));
        assert_eq!(frame(1, FlowStage::Opens, 0), (1, 0), "a SYN sent again is no second flow");
        assert_eq!(frame(2, FlowStage::Opens, 1), (1, 1));
        assert_eq!(frame(3, FlowStage::Acknowledges, 1), (1, 1), "the last ACK after a FIN opens nothing");
        assert_eq!(frame(3, FlowStage::Carries, 1), (1, 2), "data of a flow that was not seen to open");
        assert_eq!(frame(1, FlowStage::Closes, 0), (0, 2));
        assert_eq!(frame(1, FlowStage::Closes, 0), (0, 2), "a FIN sent again");
        assert_eq!(frame(2, FlowStage::Carries, 0), (1, 1), "a flow that takes another port");
    }

    #[test]
    fn idle_flows_are_counted_out() {
        let mut flows = FlowCounter::new(1, 1, 100, Duration::from_millis(10));
        for flow in 0..5 {
            flows.handle_frame(at(flow), flow, FlowStage::Opens, 0, Some(0));
        }
        flows.handle_frame(at(12), 2, FlowStage::Acknowledges, 0, Some(0));
        assert_eq!((flows.to_output(0), flows.in_pool(0), flows.aged()), (3, 3, 2));
        flows.expire(at(21));
        assert_eq!((flows.to_output(0), flows.in_pool(0), flows.aged()), (1, 1, 4));
    }

    #[test]
    fn agrees_with_a_map() {
        let (flows_max, idle) = (90, Duration::from_millis(400));
        let mut flows = FlowCounter::new(4, 2, flows_max, idle);
        let mut naive: BTreeMap<u64, (Instant, usize, usize)> = BTreeMap::new();
        let mut state = 1_u64;
        let mut evicted = 0;
        for step in 0..60_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = state >> 33;
            // At times all flows fit, at times they do not.
            let flow = (random % if step / 10_000 % 2 == 0 { 30 } else { 300 }) << (random % 3 * 20);
            let (output, pool) = ((flow % 4) as usize, (random >> 8) as usize % 2);
            let stage = match (random >> 12) % 8 {
                0 => FlowStage::Opens,
                1 => FlowStage::Closes,
                2 => FlowStage::Acknowledges,
                _ => FlowStage::Carries,
            };
            let now = at(step);
            flows.handle_frame(now, flow, stage, output, Some(pool as u32));
            naive.retain(|_, &mut (seen, ..)| now.saturating_since(seen) <= idle);
            match stage {
                FlowStage::Closes => {
                    naive.remove(&flow);
                }
                FlowStage::Acknowledges if !naive.contains_key(&flow) => {}
                _ => {
                    if !naive.contains_key(&flow) && naive.len() == flows_max as usize {
                        let oldest = *naive.iter().min_by_key(|(_, (seen, ..))| seen).unwrap().0;
                        naive.remove(&oldest);
                        evicted += 1;
                    }
                    naive.insert(flow, (now, output, pool));
                }
            }
            assert_eq!(flows.flows() as usize, naive.len());
            assert_eq!(flows.evicted(), evicted);
            for port in 0..4 {
                let expected = naive.values().filter(|&&(_, output, _)| output == port).count();
                assert_eq!(flows.to_output(port) as usize, expected, "step {step}");
            }
            for side in 0..2 {
                let expected = naive.values().filter(|&&(_, _, pool)| pool == side).count();
                assert_eq!(flows.in_pool(side) as usize, expected, "step {step}");
            }
        }
        assert!(evicted > 0 && flows.aged() > 0, "{evicted} evicted, {} aged", flows.aged());
    }
}
