//! Where stations are: learned from the frames that they send, forgotten when they fall silent.

use fanin_units::{Duration, Instant};

use crate::address::{Mac, Vlan};
use crate::prefetch::prefetch;

/// What became of a look at a frame's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It was known there.
    Known,
    /// It is new, or it has moved.
    New,
    /// It was heard elsewhere a moment ago, or belongs elsewhere for good: in a tree it cannot be here.
    Elsewhere,
    /// There is no room for it.
    Full,
}

/// An entry as the outside sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Station {
    /// Its address.
    pub mac: Mac,
    /// Its VLAN; 0 where VLANs are not kept apart.
    pub vlan: u16,
    /// The number of its port.
    pub port: u16,
    /// Whether it was configured, not learned.
    pub is_static: bool,
    /// Whole seconds since it was last heard.
    pub silent_s: u32,
}

/// Free places hold this; no station has an address of zero.
const FREE: u64 = 0;
const STATIC: u16 = 1;
/// So many stations, four of them in a cache line or each in one of its own, are in the second cache, and asking for them costs
/// more than it gives.
const STATIONS_NEAR: usize = 8192;
/// Places looked at for what has aged, each time.
const SWEEP: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Place {
    /// The address, with the VLAN in the upper 16 bits.
    key: u64,
    port: u16,
    flags: u16,
    /// When it was last heard, in units of 2^30 ps (about a millisecond).
    heard: u32,
}

const EMPTY: Place = Place { key: FREE, port: 0, flags: 0, heard: 0 };

/// Addresses that differ in their last two bits alone begin side by side: those that were given out one after the other, as in
/// most racks, share cache lines.
const SIDE_BY_SIDE: u64 = 4;

/// The table. Open addressing with linear probing; at most half of the places are taken.
#[derive(Debug, Clone)]
pub(crate) struct Stations {
    places: Vec<Place>,
    len: usize,
    len_max: usize,
    age: u32,
    hold: u32,
    sweep: usize,
}

/// A time in the table's units: 2^30 ps; they pass the 32 bits after 53 days.
#[inline]
const fn ticks(time: Instant) -> u32 {
    (time.get() >> 30) as u32
}

const fn span(duration: Duration) -> u32 {
    let ticks = duration.get().div_ceil(1 << 30);
    if ticks > (u32::MAX / 2) as u64 { u32::MAX / 2 } else { ticks as u32 }
}

/// A station's key: its address of 48 bits, with the VLAN above it.
#[inline]
pub(crate) const fn station(mac: u64, vlan: u16) -> u64 {
    mac | (vlan as u64) << 48
}

/// What stands for a VLAN in the keys of a table of ways: a number that no VLAN has.
#[inline]
pub(crate) const fn way(table: u16) -> u16 {
    table << 12
}

/// The address in a key.
const fn mac_of(key: u64) -> u64 {
    key & 0xffff_ffff_ffff
}

impl Stations {
    pub(crate) fn new(entries_max: u32, age: Duration, hold: Duration) -> Self {
        let len_max = entries_max as usize;
        let places = (len_max.max(8) * 2).next_power_of_two();
        Self { places: vec![EMPTY; places], len: 0, len_max, age: span(age), hold: span(hold), sweep: 0 }
    }

    /// The highest bits of the product spread runs of addresses evenly, so that they hardly ever collide.
    #[inline]
    fn first_place(&self, key: u64) -> usize {
        let run = (key / SIDE_BY_SIDE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let runs = self.places.len() as u64 / SIDE_BY_SIDE;
        (((run * runs) >> 32) * SIDE_BY_SIDE + key % SIDE_BY_SIDE) as usize
    }

    /// The place of a key, or the free one where it would go.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let last = self.places.len() - 1;
        let mut place = self.first_place(key);
        loop {
            let here = self.places[place].key;
            if here == key || here == FREE {
                return place;
            }
            place = (place + 1) & last;
        }
    }

    /// Asks for the place where [`Self::find`] will look first. Where there are few stations they are in the cache anyway.
    #[inline]
    pub(crate) fn fetch(&self, station: u64) {
        prefetch(self.places.as_ptr().wrapping_add(self.first_place(station)).cast());
    }

    /// Whether there are so many stations that [`Self::fetch`] gives more than it costs.
    #[inline]
    pub(crate) const fn is_wide(&self) -> bool {
        self.len > STATIONS_NEAR
    }

    /// The port of a station.
    #[inline]
    pub(crate) fn find(&self, station: u64) -> Option<usize> {
        let place = &self.places[self.place(station)];
        (place.key != FREE).then_some(place.port.into())
    }

    /// A frame came from this station by this port.
    #[inline]
    pub(crate) fn learn(&mut self, now: Instant, station: u64, port: usize) -> Learned {
        let now = ticks(now);
        let index = self.place(station);
        let place = &mut self.places[index];
        if place.key != FREE && usize::from(place.port) == port {
            place.heard = now;
            return Learned::Known;
        }
        self.learn_slowly(now, station, port, index)
    }

    #[cold]
    fn learn_slowly(&mut self, now: u32, station: u64, port: usize, index: usize) -> Learned {
        if self.places[index].key == FREE {
            if mac_of(station) == 0 {
                return Learned::Elsewhere;
            }
            if self.len >= self.len_max {
                return Learned::Full;
            }
            self.places[index] = Place { key: station, port: port as u16, flags: 0, heard: now };
            self.len += 1;
            return Learned::New;
        }
        let place = &mut self.places[index];
        // In a tree one station is heard through one port only; a loop brings its frames back through another.
        if place.flags & STATIC != 0 || now.wrapping_sub(place.heard) < self.hold {
            return Learned::Elsewhere;
        }
        (place.port, place.heard) = (port as u16, now);
        Learned::New
    }

    /// Another worker learned a station.
    pub(crate) fn set(&mut self, now: Instant, station: u64, port: usize) {
        let index = self.place(station);
        let place = &self.places[index];
        if place.key == FREE {
            if self.len >= self.len_max {
                return;
            }
            self.len += 1;
        } else if place.flags & STATIC != 0 {
            return;
        }
        self.places[index] = Place { key: station, port: port as u16, flags: 0, heard: ticks(now) };
    }

    /// Adds a station that is neither learned nor forgotten; where the table is full, in the place of one that was learned.
    /// `false` where there is no such one either.
    pub(crate) fn add_static(&mut self, now: Instant, station: u64, port: usize) -> bool {
        if self.places[self.place(station)].key == FREE {
            if self.len >= self.len_max && !self.forget_one() {
                return false;
            }
            self.len += 1;
        }
        let index = self.place(station);
        self.places[index] = Place { key: station, port: port as u16, flags: STATIC, heard: ticks(now) };
        true
    }

    /// Forgets any station that was learned; `false` where there is none.
    fn forget_one(&mut self) -> bool {
        let is_learned =
            |&index: &usize| self.places[index].key != FREE && self.places[index].flags & STATIC == 0;
        let found = (0..self.places.len()).find(is_learned);
        if let Some(index) = found {
            self.free(index);
        }
        found.is_some()
    }

    /// Forgets a station; `false` where it was not known.
    pub(crate) fn remove(&mut self, station: u64) -> bool {
        let index = self.place(station);
        let known = self.places[index].key != FREE;
        if known {
            self.free(index);
        }
        known
    }

    /// Forgets every learned station, or those of one port.
    pub(crate) fn flush(&mut self, port: Option<usize>) -> usize {
        let before = self.len;
        let goes = |place: &Place| {
            place.key != FREE
                && place.flags & STATIC == 0
                && port.is_none_or(|port| port == usize::from(place.port))
        };
        let mut index = 0;
        while index < self.places.len() {
            // Freeing moves others up, so that the same place is looked at again.
            if goes(&self.places[index]) {
                self.free(index);
            } else {
                index += 1;
            }
        }
        // Entries that wrapped around the end may have moved behind the look.
        if (0..self.places.len()).any(|index| goes(&self.places[index])) {
            self.flush(port);
        }
        before - self.len
    }

    /// Looks at some places, and forgets who has been silent for too long.
    /// Only stations behind ports that `is_mine` names age here; of each that is forgotten `forgotten` is told.
    pub(crate) fn age(
        &mut self,
        now: Instant,
        is_mine: impl Fn(usize) -> bool,
        mut forgotten: impl FnMut(u64),
    ) {
        let now = ticks(now);
        for _ in 0..SWEEP.min(self.places.len()) {
            let index = self.sweep & (self.places.len() - 1);
            let Place { key, port, flags, heard } = self.places[index];
            let is_old = now.wrapping_sub(heard) > self.age && is_mine(port.into());
            if key != FREE && flags & STATIC == 0 && is_old {
                forgotten(key);
                self.free(index);
            } else {
                self.sweep = self.sweep.wrapping_add(1);
            }
        }
    }

    /// Frees a place and closes the gap behind it (backward shift).
    fn free(&mut self, mut index: usize) {
        let last = self.places.len() - 1;
        self.len -= 1;
        let mut next = index;
        loop {
            next = (next + 1) & last;
            let key = self.places[next].key;
            if key == FREE {
                break;
            }
            let home = self.first_place(key);
            // Whether `home` lies cyclically in (index, next]: then the entry must stay.
            if (next.wrapping_sub(home) & last) < (next.wrapping_sub(index) & last) {
                continue;
            }
            self.places[index] = self.places[next];
            index = next;
        }
        self.places[index] = EMPTY;
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Every entry.
    pub(crate) fn iter(&self, now: Instant) -> impl Iterator<Item = Station> + '_ {
        let now = ticks(now);
        // Ways are the configuration's, and no stations.
        let is_station = |place: &&Place| place.key != FREE && place.key >> 60 == 0;
        self.places.iter().filter(is_station).map(move |place| Station {
            mac: Mac::from_u64(place.key),
            vlan: (place.key >> 48) as u16,
            port: place.port,
            is_static: place.flags & STATIC != 0,
            silent_s: (u64::from(now.wrapping_sub(place.heard)) * (1 << 30) / 1_000_000_000_000) as u32,
        })
    }

    /// The VLAN under which stations are kept.
    #[inline]
    pub(crate) fn vlan(vlan: Option<Vlan>) -> u16 {
        vlan.map_or(0, Vlan::get)
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
        let mut stations = Stations::new(8, SECOND * 300, Duration::from_millis(100));
        let mac = 0x0200_0000_0001;
        assert_eq!(stations.learn(at(0), mac, 3), Learned::New);
        assert_eq!(stations.learn(at(90), mac, 3), Learned::Known);
        assert_eq!(stations.learn(at(150), mac, 4), Learned::Elsewhere);
        assert_eq!(stations.find(mac), Some(3));
        assert_eq!(stations.learn(at(200), mac, 4), Learned::New);
        assert_eq!(stations.find(mac), Some(4));
        assert_eq!(stations.find(station(mac, 1)), None);
        assert!(stations.add_static(at(200), mac, 5));
        assert_eq!(stations.learn(at(9_000), mac, 4), Learned::Elsewhere);
    }

    #[test]
    fn a_full_table_says_so() {
        let mut stations = Stations::new(2, SECOND, Duration::ZERO);
        for n in 1..=2 {
            assert_eq!(stations.learn(at(0), n, 0), Learned::New);
        }
        assert_eq!(stations.learn(at(0), 3, 0), Learned::Full);
        for _ in 0..8 {
            stations.age(at(3_000), |_| true, |_| ());
        }
        assert_eq!(stations.learn(at(3_000), 3, 0), Learned::New);
    }

    #[test]
    fn who_is_configured_comes_before_who_was_learned() {
        let mut stations = Stations::new(2, SECOND, Duration::ZERO);
        for n in 1..=2 {
            assert_eq!(stations.learn(at(0), n, 0), Learned::New);
        }
        assert!(stations.add_static(at(0), 3, 1) && stations.add_static(at(0), 4, 2));
        assert_eq!((1..=4).map(|n| stations.find(n)).collect::<Vec<_>>(), [None, None, Some(1), Some(2)]);
        assert!(!stations.add_static(at(0), 5, 1), "all places are taken by those that stay");
        assert!(stations.add_static(at(0), 4, 3), "one of them may change");
        assert_eq!(stations.find(4), Some(3));
    }

    proptest! {
        /// The table agrees with a plain map whatever is learned, removed and aged.
        #[test]
        fn agrees_with_a_plain_map(steps in prop::collection::vec((0..5u8, 1..40u64, 0..3u16, 0..4usize), 1..300)) {
            let mut stations = Stations::new(24, SECOND * 2, Duration::ZERO);
            let mut naive: HashMap<(u64, u16), (usize, u64)> = HashMap::new();
            for (n, (what, mac, vlan, port)) in steps.into_iter().enumerate() {
                let (millis, key) = (n as u64 * 20, station(mac, vlan));
                match what {
                    0..=2 => {
                        let full = naive.len() >= 24 && !naive.contains_key(&(mac, vlan));
                        let learned = stations.learn(at(millis), key, port);
                        prop_assert_eq!(learned == Learned::Full, full);
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
                            stations.age(at(millis), |_| true, |_| ());
                        }
                        naive.retain(|_, (_, heard)| ticks(at(millis)).wrapping_sub(ticks(at(*heard))) <= span(SECOND * 2));
                    }
                }
                prop_assert_eq!(stations.len(), naive.len());
                for (&(mac, vlan), &(port, _)) in &naive {
                    prop_assert_eq!(stations.find(station(mac, vlan)), Some(port));
                }
                prop_assert_eq!(stations.iter(at(millis)).count(), naive.len());
            }
        }
    }
}
