//! Callers of a listener by address, and a limit to the rate of their connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Number of connections of one caller that are accepted at once after a pause, as time at the permitted rate.
const BURST: Duration = Duration::from_secs(1);
/// Maximum number of callers with a bucket of their own. Further ones share a bucket.
const CALLERS_MAX: usize = 4096;
/// Key of the shared bucket, which is no caller's address.
const FURTHER: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Token buckets for the new connections of a listener, one for each caller ([`caller_group`]).
///
/// A bucket holds the connections of one second at the permitted rate and is refilled at that rate. It is stored as the
/// time at which it is full, so that a caller at rest needs no entry (GCRA, ITU-T I.371).
#[derive(Debug)]
pub struct CallerRates {
    /// Time in which one token is refilled.
    interval: Duration,
    full_at: HashMap<IpAddr, Instant>,
    /// Time of the last removal of full buckets.
    swept: Option<Instant>,
}

impl CallerRates {
    /// Creates full buckets that permit this number of new connections a second, at least one.
    pub fn new(per_second: u32) -> Self {
        Self { interval: BURST / per_second.max(1), full_at: HashMap::new(), swept: None }
    }

    /// Takes a token for a connection from this address. Returns false if the bucket is empty: the connection is to be
    /// closed.
    pub fn admit(&mut self, caller: IpAddr, now: Instant) -> bool {
        let group = caller_group(caller);
        let key = if self.full_at.contains_key(&group) || self.has_room(now) { group } else { FURTHER };
        let full_at = self.full_at.entry(key).or_insert(now);
        let after = (*full_at).max(now) + self.interval;
        let admitted = after <= now + BURST;
        if admitted {
            *full_at = after;
        }
        assert!(self.full_at.len() <= CALLERS_MAX + 1);
        admitted
    }

    /// Returns true if a further caller can have a bucket of its own. Removes full buckets at most once in [`BURST`], after
    /// which all that were there are full.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.full_at.len() >= CALLERS_MAX && self.swept.is_none_or(|swept| now >= swept + BURST) {
            self.full_at.retain(|_, full_at| *full_at > now);
            self.swept = Some(now);
        }
        self.full_at.len() < CALLERS_MAX
    }
}

/// Returns the address that counts as one caller. A host with IPv6 usually has a whole /64 network.
pub fn caller_group(address: IpAddr) -> IpAddr {
    const INTERFACE_BITS: u32 = 64;
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> INTERFACE_BITS << INTERFACE_BITS))
        }
        address => address,
    }
}

/// Returns the position of the first of those callers that occur most often; `None` without callers.
///
/// A full listener ends this connection, if its connections are in the order of their age.
pub fn first_of_most(callers: impl Iterator<Item = IpAddr> + Clone) -> Option<usize> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    callers.clone().for_each(|caller| *counts.entry(caller).or_default() += 1);
    let most = counts.values().max();
    callers.into_iter().position(|caller| counts.get(&caller) == most)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn at(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        assert_eq!(caller_group(at("fd00:1:2:3::4")), caller_group(at("fd00:1:2:3:4::5")));
        assert_ne!(caller_group(at("fd00:1:2:3::4")), caller_group(at("fd00:1:2:4::4")));
        assert_eq!(caller_group(at("::ffff:10.0.0.1")), caller_group(at("10.0.0.1")));
        assert_ne!(caller_group(at("10.0.0.1")), caller_group(at("10.0.0.2")));
    }

    #[test]
    fn the_first_of_the_most_frequent_callers_is_found() {
        let of = |callers: &[&str]| first_of_most(callers.iter().map(|caller| at(caller)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.2"]), Some(1));
        assert_eq!(of(&["10.0.0.3", "10.0.0.1"]), Some(0));
    }

    #[test]
    fn a_caller_has_a_burst_and_then_its_rate() {
        let mut rates = CallerRates::new(50);
        let start = Instant::now();
        let admitted = |rates: &mut CallerRates, caller: &str, now| {
            (0..1000).filter(|_| rates.admit(at(caller), now)).count()
        };
        assert_eq!(admitted(&mut rates, "fd00:1:2:3::4", start), 50);
        assert_eq!(admitted(&mut rates, "fd00:1:2:3::5", start), 0, "the same network");
        assert_eq!(admitted(&mut rates, "10.0.0.1", start), 50, "another address");
        let flood = 0..2500;
        let over_time = flood.filter(|&ms| rates.admit(at("10.0.0.1"), start + Duration::from_millis(ms)));
        assert_eq!(over_time.count(), 124, "50 a second, the first one after 20 ms");
        // Closed connections take no token, and a rest refills the bucket no further than its size.
        assert_eq!(admitted(&mut rates, "10.0.0.1", start + Duration::from_secs(100)), 50);
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let mut rates = CallerRates::new(10);
        let start = Instant::now();
        let caller = |number: usize| IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number as u32));
        let mut admitted = |from: usize, now| {
            let count = (from..from + 10_000).filter(|&number| rates.admit(caller(number), now)).count();
            (count, rates.full_at.len())
        };
        // Each of the first has a bucket; the others share one with ten tokens.
        assert_eq!(admitted(0, start), (CALLERS_MAX + 10, CALLERS_MAX + 1));
        // Full buckets make room.
        assert_eq!(admitted(20_000, start + BURST), (CALLERS_MAX + 10, CALLERS_MAX + 1));
    }
}
