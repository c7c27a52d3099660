//! The station table: learned from the sources of frames, forgotten after a silence.

use fanin_units::{Duration, Instant, MIX_STEP};

use crate::address::Mac;
use crate::snapshot::Station;

/// The result of learning a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Learned {
    /// The station was known behind this port.
    Known,
    /// The station is new, or has moved here.
    New,
    /// The station was heard behind another port within the hold time, or is configured there: the frame came through a loop.
    Elsewhere,
    /// The table, or the port's share of it, is full.
    Refused,
}

/// Free slots hold this key; no station has the address zero.
const FREE: u64 = 0;
/// The flag of a configured station.
const STATIC: u16 = 1;
/// Slots checked for age at a time.
const SWEEP: usize = 64;

/// A slot of the table.
#[derive(Debug, Clone, Copy)]
struct StationSlot {
    /// The address, with the VLAN in the upper 16 bits.
    key: u64,
    port: u16,
    flags: u16,
    /// Time of the station's last frame, in units of 2^30 ps (about a millisecond).
    heard: u32,
}

const EMPTY: StationSlot = StationSlot { key: FREE, port: 0, flags: 0, heard: 0 };

/// Number of addresses that start in neighbouring slots: they differ only in their last two bits. Consecutive addresses, as
/// in most racks, then share cache lines.
const NEIGHBOURS: u64 = 4;

/// The stations behind one port.
#[derive(Debug, Clone, Copy)]
struct PortShare {
    /// Stations learned behind the port.
    learned: u32,
    learned_max: u32,
    /// Frames whose source was not learned, as the table or the share was full.
    refused: u64,
}

/// The table. Open addressing with linear probing; at most half of the slots are taken.
#[derive(Debug, Clone)]
pub(super) struct Stations {
    slots: Vec<StationSlot>,
    len: usize,
    len_max: usize,
    shares: Vec<PortShare>,
    age: u32,
    hold: u32,
    /// The next slot to check for age.
    sweep: usize,
}

/// Converts a time to the table's units of 2^30 ps, modulo 2^32 of them (53 days).
#[inline]
const fn ticks(time: Instant) -> u32 {
    (time.get() >> 30) as u32
}

const fn span(duration: Duration) -> u32 {
    let ticks = duration.get().div_ceil(1 << 30);
    if ticks > (u32::MAX / 2) as u64 { u32::MAX / 2 } else { ticks as u32 }
}

/// Makes a station's key: its address of 48 bits, with the VLAN above it.
#[inline]
pub(super) const fn station_key(mac: u64, vlan: u16) -> u64 {
    mac | (vlan as u64) << 48
}

/// Returns the number that stands for a table of ways in place of a VLAN. No VLAN has such a number.
#[inline]
pub(super) const fn way_vlan(table: u16) -> u16 {
    table << 12
}

/// Returns the address in a key.
const fn mac_of(key: u64) -> u64 {
    key & 0xffff_ffff_ffff
}

impl Stations {
    /// Makes an empty table for `entries_max` stations; at most `shares[port]` may be learned behind each port.
    pub(super) fn new(entries_max: u32, age: Duration, hold: Duration, shares: &[u32]) -> Self {
        let len_max = entries_max as usize;
        let slots = (len_max.max(8) * 2).next_power_of_two();
        let share = |&learned_max| PortShare { learned: 0, learned_max, refused: 0 };
        Self {
            slots: vec![EMPTY; slots],
            len: 0,
            len_max,
            shares: shares.iter().map(share).collect(),
            age: span(age),
            hold: span(hold),
            sweep: 0,
        }
    }

    /// Returns the slot at which the search for a key starts. The highest bits of the product spread runs of addresses evenly.
    #[inline]
    fn first_slot(&self, key: u64) -> usize {
        let run = (key / NEIGHBOURS).wrapping_mul(MIX_STEP) >> 32;
        let runs = self.slots.len() as u64 / NEIGHBOURS;
        (((run * runs) >> 32) * NEIGHBOURS + key % NEIGHBOURS) as usize
    }

    /// Returns the slot of a key, or else the free slot for it.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = self.first_slot(key);
        loop {
            let here = self.slots[slot].key;
            if here == key || here == FREE {
                return slot;
            }
            slot = (slot + 1) & last;
        }
    }

    /// Returns the port of a station; `None` if it is unknown.
    #[inline(always)]
    pub(super) fn find(&self, station: u64) -> Option<usize> {
        let slot = &self.slots[self.slot(station)];
        (slot.key != FREE).then_some(slot.port.into())
    }

    /// Learns the port of a station from a frame.
    #[inline]
    pub(super) fn learn(&mut self, now: Instant, station: u64, port: usize) -> Learned {
        let now = ticks(now);
        let index = self.slot(station);
        let slot = &mut self.slots[index];
        if slot.key != FREE && usize::from(slot.port) == port {
            slot.heard = now;
            return Learned::Known;
        }
        self.learn_new_or_moved(now, station, port, index)
    }

    #[cold]
    fn learn_new_or_moved(&mut self, now: u32, station: u64, port: usize, index: usize) -> Learned {
        let slot = self.slots[index];
        let is_new = slot.key == FREE;
        if is_new && mac_of(station) == 0 {
            return Learned::Elsewhere;
        }
        // In a tree a station's frames come by one port only; a loop brings them back by another.
        if !is_new && (slot.flags & STATIC != 0 || now.wrapping_sub(slot.heard) < self.hold) {
            return Learned::Elsewhere;
        }
        let share = &mut self.shares[port];
        if share.learned >= share.learned_max || (is_new && self.len >= self.len_max) {
            share.refused += 1;
            return Learned::Refused;
        }
        if is_new {
            self.len += 1;
        } else {
            self.shares[usize::from(slot.port)].learned -= 1;
        }
        self.shares[port].learned += 1;
        self.slots[index] = StationSlot { key: station, port: port as u16, flags: 0, heard: now };
        Learned::New
    }

    /// Adds a station that another worker has learned; the other worker has checked the port's share.
    pub(super) fn set(&mut self, now: Instant, station: u64, port: usize) {
        let index = self.slot(station);
        let slot = self.slots[index];
        if slot.key == FREE {
            if self.len >= self.len_max {
                return;
            }
            self.len += 1;
        } else if slot.flags & STATIC != 0 {
            return;
        } else {
            self.shares[usize::from(slot.port)].learned -= 1;
        }
        self.shares[port].learned += 1;
        self.slots[index] = StationSlot { key: station, port: port as u16, flags: 0, heard: ticks(now) };
    }

    /// Adds a station that is neither learned nor forgotten; if the table is full, in place of a learned one. Returns `false`
    /// if none is learned.
    pub(super) fn add_static(&mut self, now: Instant, station: u64, port: usize) -> bool {
        if self.slots[self.slot(station)].key == FREE && self.len >= self.len_max && !self.forget_one() {
            return false;
        }
        self.remove(station);
        let index = self.slot(station);
        self.len += 1;
        self.slots[index] = StationSlot { key: station, port: port as u16, flags: STATIC, heard: ticks(now) };
        true
    }

    /// Forgets any learned station; returns `false` if none is learned.
    fn forget_one(&mut self) -> bool {
        let is_learned =
            |&index: &usize| self.slots[index].key != FREE && self.slots[index].flags & STATIC == 0;
        let found = (0..self.slots.len()).find(is_learned);
        if let Some(index) = found {
            self.free(index);
        }
        found.is_some()
    }

    /// Forgets a station; returns `false` if it was unknown.
    pub(super) fn remove(&mut self, station: u64) -> bool {
        let index = self.slot(station);
        let is_known = self.slots[index].key != FREE;
        if is_known {
            self.free(index);
        }
        is_known
    }

    /// Forgets all learned stations, or those of one port. Returns their number.
    pub(super) fn flush(&mut self, port: Option<usize>) -> usize {
        let before = self.len;
        let goes = |slot: &StationSlot| {
            slot.key != FREE
                && slot.flags & STATIC == 0
                && port.is_none_or(|port| port == usize::from(slot.port))
        };
        let mut index = 0;
        while index < self.slots.len() {
            // Freeing a slot moves others up, so the same slot is checked again.
            if goes(&self.slots[index]) {
                self.free(index);
            } else {
                index += 1;
            }
        }
        // Entries that wrapped around the end may have moved behind the search.
        if self.slots.iter().any(goes) {
            self.flush(port);
        }
        before - self.len
    }

    /// Checks some slots and forgets stations that were silent too long, at ports accepted by `is_own`. Returns their
    /// keys.
    pub(super) fn age(&mut self, now: Instant, is_own: impl Fn(usize) -> bool) -> Vec<u64> {
        let now = ticks(now);
        let mut forgotten = Vec::new();
        for _ in 0..SWEEP.min(self.slots.len()) {
            let index = self.sweep & (self.slots.len() - 1);
            let StationSlot { key, port, flags, heard } = self.slots[index];
            let is_old = now.wrapping_sub(heard) > self.age && is_own(port.into());
            if key != FREE && flags & STATIC == 0 && is_old {
                forgotten.push(key);
                self.free(index);
            } else {
                self.sweep = self.sweep.wrapping_add(1);
            }
        }
        forgotten
    }

    /// Frees a slot and closes the gap after it (backward shift).
    fn free(&mut self, mut index: usize) {
        let slot = self.slots[index];
        assert!(slot.key != FREE, "slot {index} is freed twice");
        if slot.flags & STATIC == 0 {
            self.shares[usize::from(slot.port)].learned -= 1;
        }
        let last = self.slots.len() - 1;
        self.len -= 1;
        let mut next = index;
        loop {
            next = (next + 1) & last;
            let key = self.slots[next].key;
            if key == FREE {
                break;
            }
            let home = self.first_slot(key);
            // If `home` lies cyclically in (index, next], the entry must stay.
            if (next.wrapping_sub(home) & last) < (next.wrapping_sub(index) & last) {
                continue;
            }
            self.slots[index] = self.slots[next];
            index = next;
        }
        self.slots[index] = EMPTY;
    }

    /// Returns the number of stations, learned and configured.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of stations learned behind a port, and of frames whose source was refused.
    pub(super) fn of_port(&self, port: usize) -> (u32, u64) {
        (self.shares[port].learned, self.shares[port].refused)
    }

    /// Returns every station, with its age at `now`.
    pub(super) fn iter(&self, now: Instant) -> impl Iterator<Item = Station> + '_ {
        let now = ticks(now);
        // Ways are entries of the configuration, not stations.
        let is_station = |slot: &&StationSlot| slot.key != FREE && slot.key >> 60 == 0;
        self.slots.iter().filter(is_station).map(move |slot| Station {
            mac: Mac::from_u64(slot.key),
            vlan: (slot.key >> 48) as u16,
            port: slot.port,
            is_static: slot.flags & STATIC != 0,
            silent_s: (u64::from(now.wrapping_sub(slot.heard)) * (1 << 30) / 1_000_000_000_000) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn a_station_moves_only_after_a_silence() {
        let mut stations = Stations::new(8, SECOND * 300, Duration::from_millis(100), &[8; 8]);
        let mac = 0x0200_0000_0001;
        assert_eq!(stations.learn(at(0), mac, 3), Learned::New);
        assert_eq!(stations.learn(at(90), mac, 3), Learned::Known);
        assert_eq!(stations.learn(at(150), mac, 4), Learned::Elsewhere);
        assert_eq!(stations.find(mac), Some(3));
        assert_eq!(stations.learn(at(200), mac, 4), Learned::New);
        assert_eq!(stations.find(mac), Some(4));
        assert_eq!(stations.find(station_key(mac, 1)), None);
        assert!(stations.add_static(at(200), mac, 5));
        assert_eq!(stations.learn(at(9_000), mac, 4), Learned::Elsewhere);
    }

    #[test]
    fn a_full_table_says_so() {
        let mut stations = Stations::new(2, SECOND, Duration::ZERO, &[2; 8]);
        for n in 1..=2 {
            assert_eq!(stations.learn(at(0), n, 0), Learned::New);
        }
        assert_eq!(stations.learn(at(0), 3, 0), Learned::Refused);
        for _ in 0..8 {
            stations.age(at(3_000), |_| true);
        }
        assert_eq!(stations.learn(at(3_000), 3, 0), Learned::New);
    }

    #[test]
    fn configured_stations_come_before_learned_ones() {
        let mut stations = Stations::new(2, SECOND, Duration::ZERO, &[2; 8]);
        for n in 1..=2 {
            assert_eq!(stations.learn(at(0), n, 0), Learned::New);
        }
        assert!(stations.add_static(at(0), 3, 1) && stations.add_static(at(0), 4, 2));
        assert_eq!((1..=4).map(|n| stations.find(n)).collect::<Vec<_>>(), [None, None, Some(1), Some(2)]);
        assert!(!stations.add_static(at(0), 5, 1), "all places are taken by those that stay");
        assert!(stations.add_static(at(0), 4, 3), "one of them may change");
        assert_eq!(stations.find(4), Some(3));
    }

    #[test]
    fn a_port_learns_no_more_than_its_share() {
        let mut stations = Stations::new(8, SECOND, Duration::ZERO, &[2, 8]);
        for n in 1..=2 {
            assert_eq!(stations.learn(at(0), n, 0), Learned::New);
        }
        assert_eq!(stations.learn(at(0), 3, 0), Learned::Refused);
        assert_eq!(stations.learn(at(0), 3, 1), Learned::New, "the other port has room");
        assert_eq!(stations.learn(at(1_000), 3, 0), Learned::Refused, "it cannot move to the full port");
        assert_eq!((stations.of_port(0), stations.of_port(1)), ((2, 2), (1, 0)));
        stations.flush(Some(0));
        assert_eq!(stations.learn(at(2_000), 3, 0), Learned::New);
        assert_eq!((stations.of_port(0), stations.of_port(1)), ((1, 2), (0, 0)));
    }

    proptest! {
        /// The table agrees with a plain map at random learning, removal and ageing.
        #[test]
        fn agrees_with_a_plain_map(steps in prop::collection::vec((0..5u8, 1..40u64, 0..3u16, 0..4usize), 1..300)) {
            let mut stations = Stations::new(24, SECOND * 2, Duration::ZERO, &[24; 8]);
            let mut naive: HashMap<(u64, u16), (usize, u64)> = HashMap::new();
            for (n, (operation, mac, vlan, port)) in steps.into_iter().enumerate() {
                let (millis, key) = (n as u64 * 20, station_key(mac, vlan));
                match operation {
                    0..=2 => {
                        let full = naive.len() >= 24 && !naive.contains_key(&(mac, vlan));
                        let learned = stations.learn(at(millis), key, port);
                        prop_assert_eq!(learned == Learned::Refused, full);
                        if !full {
                            naive.insert((mac, vlan), (port, millis));
                        }
                    }
                    3 => prop_assert_eq!(stations.remove(key), naive.remove(&(mac, vlan)).is_some()),
                    _ if port == 0 => {
                        let before = naive.len();
                        naive.retain(|_, (at, _)| *at != port);
                        prop_assert_eq!(stations.flush(Some(port)), before - naive.len());
                    }
                    _ => {
                        for _ in 0..8 {
                            stations.age(at(millis), |_| true);
                        }
                        naive.retain(|_, (_, heard)| ticks(at(millis)).wrapping_sub(ticks(at(*heard))) <= span(SECOND * 2));
                    }
                }
                prop_assert_eq!(stations.len(), naive.len());
                for (&(mac, vlan), &(port, _)) in &naive {
                    prop_assert_eq!(stations.find(station_key(mac, vlan)), Some(port));
                }
                prop_assert_eq!(stations.iter(at(millis)).count(), naive.len());
            }
        }
    }
}
