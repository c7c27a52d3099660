//! Seeds: one independent stream of random numbers for each host and purpose.

pub(crate) use fanin_dataflow::Random;

use fanin_units::mix;

/// The purpose of a stream of random numbers. Every host has one stream for each, so that no other host and no other purpose
/// shifts its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// Draws of a role: delays, decisions, the order of requests.
    Role = 1,
    /// Size of an event, by its L1 ID.
    Event = 2,
    /// Sizes of fragments.
    Fragment = 3,
    /// Decisions of a switch that marks or drops by chance.
    Marking = 4,
}

/// The seed of one stream. [`host`] numbers the hosts by kind, so that more hosts of one kind never renumber another kind.
#[inline]
pub(crate) const fn seed(run: u64, host: u64, purpose: Purpose) -> u64 {
    mix(mix(mix(run) ^ host) ^ purpose as u64)
}

/// The number of a host in seeds, from its kind and its index within the kind.
#[inline]
pub(crate) const fn host(kind: HostKind, place: u64) -> u64 {
    (kind as u64) << 40 | place
}

/// Kinds of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum HostKind {
    Supervisor = 1,
    Readout = 2,
    Collector = 3,
    Switch = 4,
    /// No host: an event, the same for all.
    Event = 5,
    /// The central arbiter.
    Arbiter = 6,
}

#[cfg(test)]
#[path = "../tests/unit/random.rs"]
mod tests;
