//! Seeds: one independent stream of random numbers for each host and purpose, in the simulator and in the live system.

use fanin_units::mix;

use crate::{L1Id, Random};

/// The purpose of a stream of random numbers. Every host has one stream for each, so that no other host and no other purpose
/// shifts its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Draws of a role: delays, decisions, the order of requests.
    Role = 1,
    /// Size of an event, by its L1 ID.
    Event = 2,
    /// Sizes of fragments.
    Fragment = 3,
    /// Decisions of a switch that marks or drops by chance.
    Marking = 4,
    /// Frames that a link loses.
    Loss = 5,
    /// Times and sizes of background transfers.
    Background = 6,
    /// Bytes of fragments, which only the live system has.
    Content = 7,
}

/// The kind of host, link or event that a stream belongs to. More owners of one kind never change the seeds of another kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum SeedOwner {
    /// A supervisor, or its standby.
    Supervisor = 1,
    /// A readout, or a sender of a barrier workload.
    Readout = 2,
    /// A collector, or the aggregator of a barrier workload.
    Collector = 3,
    /// A switch of the network.
    Switch = 4,
    /// An event, which is the same for all hosts.
    Event = 5,
    /// The central arbiter.
    Arbiter = 6,
    /// One direction of a link, by a hash of its nodes' names.
    Link = 7,
}

/// Computes the seed of one stream. `run` is the seed of the run, `place` the number of the owner within its kind, below 2^40.
#[inline]
pub const fn stream_seed(run: u64, owner: SeedOwner, place: u64, purpose: Purpose) -> u64 {
    mix(mix(mix(run) ^ ((owner as u64) << 40 | place)) ^ purpose as u64)
}

/// Returns the random stream of an event, the same for all readouts: it draws the event's own part of its fragments' sizes.
#[inline]
pub fn event_stream(run: u64, event: L1Id) -> Random {
    Random::new(stream_seed(run, SeedOwner::Event, event.0, Purpose::Event))
}

/// Returns the random stream of a readout's fragments of one event: their sizes, in the order of the fragments, or their bytes.
#[inline]
pub fn fragment_stream(run: u64, readout: u64, event: L1Id, purpose: Purpose) -> Random {
    Random::new(stream_seed(run ^ event.0.rotate_left(32), SeedOwner::Readout, readout, purpose))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_everything_that_names_them() {
        let first = |run, kind, place, purpose| Random::new(stream_seed(run, kind, place, purpose)).bits();
        let one = first(1, SeedOwner::Readout, 2, Purpose::Role);
        assert_eq!(one, first(1, SeedOwner::Readout, 2, Purpose::Role));
        assert_ne!(one, first(1, SeedOwner::Readout, 2, Purpose::Fragment));
        assert_ne!(one, first(1, SeedOwner::Readout, 3, Purpose::Role));
        assert_ne!(one, first(1, SeedOwner::Collector, 2, Purpose::Role));
        assert_ne!(one, first(2, SeedOwner::Readout, 2, Purpose::Role));
    }
}
