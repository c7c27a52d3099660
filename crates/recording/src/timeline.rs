//! The timeline of a run: queues, losses, timeouts and delivered bytes in a fixed number of bins that double their width.
//!
//! The timeline needs no occurrences: a bin is closed before the first occurrence after its end. The fullest outputs are
//! sampled in every bin. All outputs are sampled at intervals that grow with their number and shrink with the rate of arriving
//! frames.

use fanin_network::PortIndex;

use crate::ring_bins::{RingBins, RingVisitor};

/// Number of bins of a timeline.
const BINS: usize = 512;
/// Arrivals for each output between two samples of all outputs. A sample costs less than a hundredth of these arrivals.
const ARRIVALS_PER_PORT: u64 = 16;
/// Number of outputs sampled in every bin.
const HOT_PORTS: usize = 8;
/// Most outputs with bins; those with losses come first.
const ROWS_MAX: usize = 128;

/// The state of an output in the timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortOccupancy {
    /// Bytes that wait now.
    pub bytes: u64,
    /// High-water mark since the warm-up, in bytes.
    pub bytes_max: u64,
    /// Payload bytes that have arrived over the output's link at their destination.
    pub delivered: u64,
}

/// The bins of one output.
pub(crate) struct PortBins {
    pub(crate) queue_bytes: Vec<u64>,
    /// Dropped frames by bin; empty before the first drop.
    drops: Vec<u64>,
    /// Payload bytes that arrived over the output's link, by bin, up to the last sample.
    delivered_bytes: Vec<u64>,
    /// The sum of `delivered_bytes`.
    delivered_seen: u64,
    /// The first bin after the last sample.
    unseen: usize,
    deepest: u64,
    is_losing: bool,
}

impl PortBins {
    fn new() -> Self {
        Self {
            queue_bytes: vec![0; BINS],
            drops: Vec::new(),
            delivered_bytes: vec![0; BINS],
            delivered_seen: 0,
            unseen: 0,
            deepest: 0,
            is_losing: false,
        }
    }

    /// Records the payload that has arrived by the end of `bin`. Spreads the bytes since the last sample evenly over the
    /// bins since then.
    fn deliver(&mut self, bin: usize, delivered: u64) {
        let news = delivered - self.delivered_seen;
        if news > 0 {
            spread(&mut self.delivered_bytes[self.unseen..=bin], news);
        }
        self.delivered_seen = delivered;
        self.unseen = bin + 1;
    }

    /// Returns the dropped frames in each of the first `bins` bins.
    pub(crate) fn drops_until(&self, bins: usize) -> Vec<u64> {
        let mut drops = self.drops.clone();
        drops.resize(bins, 0);
        drops
    }

    /// Returns the payload bytes of each of the first `bins` bins. `delivered` bytes have arrived by the end of the last one.
    pub(crate) fn delivered_until(&self, bins: usize, delivered: u64) -> Vec<u64> {
        let mut bytes = self.delivered_bytes[..bins].to_vec();
        let from = self.unseen.min(bins - 1);
        spread(&mut bytes[from..], delivered - self.delivered_seen);
        bytes
    }
}

/// Adds `sum` to the bins in equal parts; the first bins take the remainder of the division.
fn spread(bins: &mut [u64], sum: u64) {
    let count = bins.len() as u64;
    let (part, rest) = (sum / count, sum % count);
    for (place, bin) in (0_u64..).zip(bins) {
        *bin += part + u64::from(place < rest);
    }
}

/// The timeline while it is recorded; see the [module](self).
pub(crate) struct TimelineRecorder {
    /// Width of a bin in picoseconds.
    pub(crate) width: u64,
    /// The end of the present bin, in picoseconds.
    pub(crate) due: u64,
    bin: usize,
    /// All outputs of switches.
    outputs: Vec<PortIndex>,
    /// The fullest outputs at the last sample of all outputs.
    hot: Vec<PortIndex>,
    /// Largest recorded queue of each port, in bytes.
    known_max: Vec<u64>,
    rows: Vec<Option<Box<PortBins>>>,
    pub(crate) rings: RingBins,
    /// The ports with rows.
    kept: Vec<PortIndex>,
    /// The least rank of a row at the last search. Ranks only rise, so that a lesser row has no place.
    rank_min: Option<(bool, u64)>,
    pub(crate) delivered_bytes: Vec<u64>,
    pub(crate) timeouts: Vec<u64>,
    pub(crate) probes: Vec<u64>,
    delivered_before: u64,
    looked_at: u64,
}

impl TimelineRecorder {
    /// Makes a timeline of a run of about `run_ps` picoseconds, over these outputs of a network with `ports` ports.
    pub(crate) fn new(run_ps: u64, outputs: Vec<PortIndex>, ports: usize) -> Self {
        // The last bins are for work that is finished after the measured time.
        let width = run_ps.div_ceil(BINS as u64 * 15 / 16).max(1);
        Self {
            width,
            due: width,
            bin: 0,
            outputs,
            hot: Vec::new(),
            known_max: vec![0; ports],
            rows: (0..ports).map(|_| None).collect(),
            rings: RingBins::default(),
            kept: Vec::new(),
            rank_min: None,
            delivered_bytes: vec![0; BINS],
            timeouts: vec![0; BINS],
            probes: vec![0; BINS],
            delivered_before: 0,
            looked_at: 0,
        }
    }

    /// Closes all bins that end before `time`; `frames` frames and `payload` bytes have arrived so far.
    pub(crate) fn close_until(
        &mut self,
        time: u64,
        [frames, payload]: [u64; 2],
        mut level: impl FnMut(u64, PortIndex, &mut RingVisitor<'_>) -> PortOccupancy,
    ) {
        while self.due < time {
            let (due, place) = (self.due, [self.bin, BINS]);
            let mut rings = std::mem::take(&mut self.rings);
            self.look(frames, |port| {
                level(due, port, &mut |ring, held| rings.note((port, ring), place, held))
            });
            self.rings = rings;
            self.delivered_bytes[self.bin] += payload - self.delivered_before;
            self.delivered_before = payload;
            self.bin += 1;
            if self.bin == BINS {
                self.halve();
            }
            self.due += self.width;
        }
    }

    /// Returns the number of bins that have begun, at most [`BINS`].
    pub(crate) fn bins(&self) -> usize {
        (self.bin + 1).min(BINS)
    }

    /// Samples the present queues: those of all outputs if enough frames have arrived, otherwise the fullest.
    fn look(&mut self, arrived: u64, mut level: impl FnMut(PortIndex) -> PortOccupancy) {
        if arrived - self.looked_at < ARRIVALS_PER_PORT * self.outputs.len() as u64 {
            for place in 0..self.hot.len() {
                let port = self.hot[place];
                self.look_at(port, level(port));
            }
            return;
        }
        self.looked_at = arrived;
        let outputs = std::mem::take(&mut self.outputs);
        let mut found: Vec<(u64, PortIndex)> = Vec::with_capacity(outputs.len());
        for &port in &outputs {
            let bytes = self.look_at(port, level(port));
            if bytes > 0 {
                found.push((bytes, port));
            }
        }
        self.outputs = outputs;
        found.sort_unstable_by_key(|&(bytes, port)| (std::cmp::Reverse(bytes), port));
        // Outputs that were full before are kept while there is room, so that their deliveries are drawn in the same
        // bins.
        let before = std::mem::take(&mut self.hot);
        let fresh: Vec<PortIndex> = found.into_iter().map(|(_, port)| port).take(HOT_PORTS).collect();
        let stay = before.into_iter().filter(|port| !fresh.contains(port)).take(HOT_PORTS - fresh.len());
        self.hot = stay.chain(fresh.iter().copied()).collect();
    }

    /// Samples one output; returns the bytes that wait there.
    fn look_at(&mut self, port: PortIndex, level: PortOccupancy) -> u64 {
        let PortOccupancy { bytes, bytes_max, delivered } = level;
        let known = &mut self.known_max[port as usize];
        let noted = if bytes_max > *known { bytes_max.max(bytes) } else { bytes };
        *known = bytes_max.max(*known);
        if noted > 0 {
            self.note(port, noted, 0);
        }
        if let Some(row) = &mut self.rows[port as usize] {
            row.deliver(self.bin, delivered);
        }
        bytes
    }

    fn note(&mut self, port: PortIndex, bytes: u64, drops: u64) {
        let bin = self.bin;
        if self.rows[port as usize].is_none() {
            if !self.make_room(bytes, drops > 0) {
                return;
            }
            self.kept.push(port);
        }
        let row = self.rows[port as usize].get_or_insert_with(|| Box::new(PortBins::new()));
        row.queue_bytes[bin] = row.queue_bytes[bin].max(bytes);
        row.deepest = row.deepest.max(bytes);
        if drops > 0 {
            row.is_losing = true;
            row.drops.resize(BINS, 0);
            row.drops[bin] += drops;
        }
    }

    /// Returns the bins of an output; `None` if they are not kept.
    pub(crate) fn row(&self, port: PortIndex) -> Option<&PortBins> {
        self.rows.get(port as usize)?.as_deref()
    }

    /// Makes room for a row of a queue with `bytes` bytes, if needed by removing a less important row. Returns false if no row
    /// is less important.
    fn make_room(&mut self, bytes: u64, is_losing: bool) -> bool {
        if self.kept.len() < ROWS_MAX {
            return true;
        }
        let own = Some((is_losing, bytes));
        if self.rank_min >= own {
            return false;
        }
        let rank = |port: PortIndex| self.row(port).map(|row| (row.is_losing, row.deepest));
        let least = (0..self.kept.len()).min_by_key(|&place| (rank(self.kept[place]), self.kept[place]));
        self.rank_min = least.and_then(|place| rank(self.kept[place]));
        match least {
            Some(place) if self.rank_min < own => {
                let port = self.kept.swap_remove(place);
                self.rows[port as usize] = None;
                true
            }
            _ => false,
        }
    }

    /// Records a frame that an output with `bytes` bytes queued dropped.
    pub(crate) fn note_loss(&mut self, port: PortIndex, bytes: u64) {
        self.note(port, bytes, 1);
    }

    /// Records an expired retransmission timer.
    pub(crate) fn note_timeout(&mut self) {
        self.timeouts[self.bin] += 1;
    }

    /// Records an expired probe timeout.
    pub(crate) fn note_probe(&mut self) {
        self.probes[self.bin] += 1;
    }

    /// Forgets the recorded queues at the end of the warm-up, when high-water marks are reset.
    pub(crate) fn start_measuring(&mut self) {
        self.known_max.fill(0);
        self.rings.start_measuring();
    }

    /// Doubles the width of every bin.
    fn halve(&mut self) {
        let sum = |one: u64, other: u64| one + other;
        for row in self.rows.iter_mut().flatten() {
            merge(&mut row.queue_bytes, u64::max);
            merge(&mut row.drops, sum);
            merge(&mut row.delivered_bytes, sum);
            row.unseen = row.unseen.div_ceil(2);
        }
        self.rings.for_each_row(|bins| merge(bins, u64::max));
        merge(&mut self.delivered_bytes, sum);
        merge(&mut self.timeouts, sum);
        merge(&mut self.probes, sum);
        self.width *= 2;
        self.bin = BINS / 2;
    }
}

/// Merges neighbours into the first half of the bins; the second half is then empty.
fn merge(bins: &mut [u64], join: impl Fn(u64, u64) -> u64) {
    let half = bins.len() / 2;
    for bin in 0..half {
        bins[bin] = join(bins[2 * bin], bins[2 * bin + 1]);
    }
    bins[half..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_that_are_full_are_joined() {
        let mut timeline = TimelineRecorder::new(480, vec![0], 1);
        for bin in 0..BINS {
            timeline.bin = bin;
            timeline.note(0, bin as u64, 1);
            timeline.note_timeout();
            timeline.note_probe();
        }
        timeline.halve();
        assert_eq!((timeline.width, timeline.bin), (2, 256));
        let row = timeline.row(0).unwrap();
        assert_eq!((row.queue_bytes[0], row.queue_bytes[255], row.queue_bytes[256]), (1, 511, 0));
        assert_eq!((row.drops[0], row.drops.iter().sum::<u64>()), (2, 512));
        assert_eq!(timeline.timeouts.iter().sum::<u64>(), 512);
        assert_eq!((timeline.probes[0], timeline.probes[255]), (2, 2));
    }

    #[test]
    fn a_full_table_keeps_losing_and_deep_queues() {
        let mut timeline = TimelineRecorder::new(512, Vec::new(), 300);
        for port in 0..ROWS_MAX as PortIndex {
            timeline.note(port, 100 + u64::from(port), 0);
        }
        timeline.note(200, 50, 0);
        assert!(timeline.row(200).is_none(), "shallower than all others");
        timeline.note(201, 50, 1);
        timeline.note(202, 1000, 0);
        assert!(timeline.row(201).is_some() && timeline.row(202).is_some());
        assert!(timeline.row(0).is_none() && timeline.row(1).is_none());
        assert_eq!(timeline.kept.len(), ROWS_MAX);
    }

    #[test]
    fn payload_is_noted_in_the_bins_of_its_port() {
        let level = |delivered: u64, bytes: u64| PortOccupancy { bytes, bytes_max: bytes, delivered };
        let mut timeline = TimelineRecorder::new(480, vec![0, 1], 2);
        // The second port never holds anything, and has no bins.
        timeline.close_until(3, [32, 90], |at, port, _| level(30 * at, u64::from(port == 0)));
        // Too few frames arrive for a sample of all ports; the port that was full is sampled in every bin.
        timeline.close_until(5, [33, 120], |at, port, _| {
            level(if at == 3 { 95 } else { 120 }, u64::from(port == 0))
        });
        let row = timeline.row(0).unwrap();
        assert_eq!(row.delivered_until(6, 127), [30, 30, 35, 25, 4, 3]);
        assert!(timeline.row(1).is_none());
    }

    #[test]
    fn unsampled_bytes_are_spread_evenly() {
        let mut row = PortBins::new();
        row.deliver(0, 10);
        row.deliver(4, 21);
        assert_eq!(row.delivered_bytes[..6], [10, 3, 3, 3, 2, 0]);
        assert_eq!(row.delivered_until(8, 30), [10, 3, 3, 3, 2, 3, 3, 3]);
        let mut timeline = TimelineRecorder::new(480, vec![0], 1);
        timeline.rows[0] = Some(Box::new(row));
        timeline.halve();
        let row = timeline.row(0).unwrap();
        assert_eq!(row.delivered_until(4, 30), [13, 6, 2, 9]);
    }
}
