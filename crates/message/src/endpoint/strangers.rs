//! Accepted connections without a complete greeting, by the address of the caller.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::callers::caller_group;

/// Accepted connections without a complete greeting.
///
/// When they are too many, the one to close is the oldest of the address that has most of them. A flood from one address
/// thus displaces its own connections, and no peer at another address. Each operation takes a time that grows with the
/// logarithm of their number.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    /// Slots by address and number. Numbers grow in the order of acceptance.
    groups: BTreeMap<Option<IpAddr>, BTreeMap<u64, u32>>,
    /// The same addresses by their number of connections, then by the age of their oldest one.
    ranks: BTreeMap<(usize, Reverse<u64>), Option<IpAddr>>,
    len: usize,
    next: u64,
}

impl Strangers {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a connection; returns its number.
    pub(super) fn add(&mut self, caller: Option<SocketAddr>, index: u32) -> u64 {
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.update(group_of(caller), |group| {
            group.insert(number, index);
        });
        number
    }

    /// Removes the connection with this number.
    pub(super) fn remove(&mut self, caller: Option<SocketAddr>, number: u64) {
        self.update(group_of(caller), |group| {
            let removed = group.remove(&number);
            assert!(removed.is_some(), "connection {number} is not in its group");
        });
        self.len -= 1;
    }

    /// Returns the slot of the oldest connection of the address that has most of them.
    pub(super) fn oldest_of_most(&self) -> Option<u32> {
        let (_, group) = self.ranks.last_key_value()?;
        self.groups.get(group)?.values().next().copied()
    }

    /// Changes a group, and moves it to its new rank.
    fn update(&mut self, of: Option<IpAddr>, change: impl FnOnce(&mut BTreeMap<u64, u32>)) {
        let group = self.groups.entry(of).or_default();
        if let Some(rank) = rank(group) {
            self.ranks.remove(&rank);
        }
        change(group);
        match rank(group) {
            Some(rank) => {
                self.ranks.insert(rank, of);
            }
            None => {
                self.groups.remove(&of);
            }
        }
    }
}

fn rank(group: &BTreeMap<u64, u32>) -> Option<(usize, Reverse<u64>)> {
    let (oldest, _) = group.first_key_value()?;
    Some((group.len(), Reverse(*oldest)))
}

fn group_of(caller: Option<SocketAddr>) -> Option<IpAddr> {
    caller.map(|caller| caller_group(caller.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(address.parse().unwrap(), 7000))
    }

    #[test]
    fn the_oldest_of_the_address_with_most_connections_goes_first() {
        let mut strangers = Strangers::default();
        assert_eq!(strangers.oldest_of_most(), None);
        let peer = strangers.add(at("10.0.0.1"), 0);
        assert_eq!(strangers.oldest_of_most(), Some(0), "alone, it is the oldest");
        let flood: Vec<u64> = (1..=4).map(|index| strangers.add(at("10.0.0.2"), index)).collect();
        strangers.add(at("10.0.0.3"), 5);
        for (number, index) in flood.into_iter().zip(1..4) {
            assert_eq!(strangers.oldest_of_most(), Some(index));
            strangers.remove(at("10.0.0.2"), number);
        }
        // Each address has one connection: the oldest one of all.
        assert_eq!((strangers.oldest_of_most(), strangers.len()), (Some(0), 3));
        strangers.remove(at("10.0.0.1"), peer);
        assert_eq!((strangers.oldest_of_most(), strangers.len()), (Some(4), 2));
    }
}
