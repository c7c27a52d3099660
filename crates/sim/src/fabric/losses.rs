//! The frames that links lose at random.

use fanin_dataflow::{Purpose, Random, SeedOwner, stream_seed};
use fanin_network::{Network, PortIndex};
use fanin_units::Ratio;

/// The links of a network that lose frames at random, each direction with a random stream of its own.
///
/// A stream depends on the run's seed and the names of the link's nodes. The draws of a link follow the order of its frames.
pub(crate) struct LinkLosses {
    /// The share of lost frames and the random stream of each port.
    ports: Vec<(Ratio, Random)>,
    lost: u64,
}

impl LinkLosses {
    /// Makes the streams of a network; `None` if no link loses frames. `run` is the seed of the run.
    pub(super) fn new(network: &Network, run: u64) -> Option<Self> {
        if network.links.iter().all(|link| link.loss.is_zero()) {
            return None;
        }
        let stream = |(port, hash): (PortIndex, u64)| {
            let random = stream_seed(run, SeedOwner::Link, hash >> 24, Purpose::Loss);
            (network.link(port).loss, Random::new(random))
        };
        Some(Self { ports: network.ports().zip(network.port_hashes()).map(stream).collect(), lost: 0 })
    }

    /// Draws the fate of the next frame on a port's link, and counts it if it is lost. Returns true for a lost frame.
    pub(super) fn loses(&mut self, port: PortIndex) -> bool {
        let (share, random) = &mut self.ports[port as usize];
        let is_lost = random.chance(*share);
        self.lost += u64::from(is_lost);
        is_lost
    }

    /// Returns the frames lost so far.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
#[path = "../../tests/unit/losses.rs"]
mod tests;
