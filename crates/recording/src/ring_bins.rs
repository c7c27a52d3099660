//! Rings over time: the largest occupancy of each ring, by bin of the timeline.

use std::collections::BTreeMap;

use fanin_network::PortIndex;

/// Most rings with bins; the deepest rings are kept.
const RINGS_MAX: usize = 64;

/// A ring: its output, and the number of its destination host.
pub(crate) type RingKey = (PortIndex, u32);

/// Visits a ring: the number of its destination host, its bytes, and its high-water mark.
pub type RingVisitor<'a> = dyn FnMut(u32, (u64, u64)) + 'a;

/// The bins of one ring.
struct RingRow {
    queue_bytes: Vec<u64>,
    deepest: u64,
}

/// The bins of all rings; see the [module](self).
#[derive(Default)]
pub(crate) struct RingBins {
    /// The largest recorded occupancy of each ring.
    known_max: BTreeMap<RingKey, u64>,
    rows: BTreeMap<RingKey, RingRow>,
}

impl RingBins {
    /// Records a ring in one of `bins` bins: its bytes, and its high-water mark.
    pub(crate) fn note(&mut self, ring: RingKey, [bin, bins]: [usize; 2], (bytes, largest): (u64, u64)) {
        if largest == 0 && bytes == 0 {
            return;
        }
        let known = self.known_max.entry(ring).or_default();
        let noted = if largest > *known { largest.max(bytes) } else { bytes };
        *known = largest.max(*known);
        if noted == 0 || (!self.rows.contains_key(&ring) && !self.make_room(noted)) {
            return;
        }
        let row = self.rows.entry(ring);
        let row = row.or_insert_with(|| RingRow { queue_bytes: vec![0; bins], deepest: 0 });
        row.queue_bytes[bin] = row.queue_bytes[bin].max(noted);
        row.deepest = row.deepest.max(noted);
    }

    /// Makes room for a ring of `bytes` bytes by removing a shallower one. Returns false if no ring is shallower.
    fn make_room(&mut self, bytes: u64) -> bool {
        if self.rows.len() < RINGS_MAX {
            return true;
        }
        match self.rows.iter().map(|(&ring, row)| (row.deepest, ring)).min() {
            Some((deepest, ring)) if deepest < bytes => self.rows.remove(&ring).is_some(),
            _ => false,
        }
    }

    /// Returns the kept rings of an output, deepest first: the host's number, and the bins.
    pub(crate) fn of(&self, port: PortIndex) -> Vec<(u32, &[u64])> {
        let mut rows: Vec<_> = self.rows.range((port, 0)..=(port, u32::MAX)).collect();
        rows.sort_by_key(|(ring, row)| (std::cmp::Reverse(row.deepest), ring.1));
        rows.into_iter().map(|(ring, row)| (ring.1, row.queue_bytes.as_slice())).collect()
    }

    /// Forgets the recorded occupancies, after high-water marks were reset.
    pub(crate) fn start_measuring(&mut self) {
        self.known_max.clear();
    }

    /// Applies `join` to the bins of every ring.
    pub(crate) fn for_each_row(&mut self, mut join: impl FnMut(&mut Vec<u64>)) {
        self.rows.values_mut().for_each(|row| join(&mut row.queue_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_between_two_looks_is_noted_once() {
        let mut rings = RingBins::default();
        rings.note((7, 3), [0, 4], (100, 900));
        rings.note((7, 3), [1, 4], (50, 900));
        rings.note((7, 4), [1, 4], (0, 0));
        assert_eq!(rings.of(7), [(3, &[900, 50, 0, 0][..])]);
        rings.start_measuring();
        rings.note((7, 3), [2, 4], (0, 60));
        assert_eq!(rings.of(7), [(3, &[900, 50, 60, 0][..])]);
    }

    #[test]
    fn deep_rings_displace_shallow_ones_and_come_first() {
        let mut rings = RingBins::default();
        for host in 0..RINGS_MAX as u32 {
            rings.note((1, host), [0, 1], (100 + u64::from(host), 0));
        }
        rings.note((2, 0), [0, 1], (50, 0));
        rings.note((2, 1), [0, 1], (1000, 0));
        assert_eq!(rings.of(2), [(1, &[1000][..])]);
        let hosts: Vec<u32> = rings.of(1).into_iter().map(|(host, _)| host).collect();
        assert_eq!(hosts, (1..RINGS_MAX as u32).rev().collect::<Vec<_>>());
    }
}
