//! The frames that links lose at random.

use fanin_dataflow::{HostKind, Purpose, Random, stream_seed};
use fanin_units::Ratio;

use crate::{Network, PortIndex};

/// The links of a network that lose frames at random, each direction with a random stream of its own.
///
/// A stream depends on the run's seed and the names of the link's nodes. The draws of a link follow the order of its frames.
#[derive(Debug)]
pub struct LinkLosses {
    /// The share of lost frames in millionths and the random stream of each port.
    ports: Vec<(u32, Random)>,
    lost: u64,
}

impl LinkLosses {
    /// Makes the streams of a network; `None` if no link loses frames. `run` is the seed of the run.
    pub fn new(network: &Network, run: u64) -> Option<Self> {
        if network.links.iter().all(|link| link.loss.is_zero()) {
            return None;
        }
        let stream = |(port, hash): (PortIndex, u64)| {
            let random = stream_seed(run, HostKind::Link, hash >> 24, Purpose::Loss);
            (network.link(port).loss.get() as u32, Random::new(random))
        };
        Some(Self { ports: network.ports().zip(network.port_hashes()).map(stream).collect(), lost: 0 })
    }

    /// Draws the fate of the next frame on a port's link, and counts it if it is lost. Returns true for a lost frame.
    pub fn loses(&mut self, port: PortIndex) -> bool {
        let (share, random) = &mut self.ports[port as usize];
        // A share of zero draws nothing.
        let is_lost = *share > 0 && random.below(Ratio::ONE.get() as u32) < *share;
        self.lost += u64::from(is_lost);
        is_lost
    }

    /// Returns the frames lost so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use fanin_units::{Duration, Rate};

    use super::*;

    /// The lost frames of 20 000 on the link from `a` to `b`, in a network that also has these hosts.
    fn lost(others: &[&str], share: Ratio, run: u64) -> Vec<u32> {
        let mut network = Network::default();
        let mut join = |names: [&str; 2]| {
            let [from, to] = names.map(|name| network.add_host(name.into()));
            network.join(from, to, Rate::new(1_000_000_000), Duration::ZERO)
        };
        others.iter().for_each(|other| _ = join([other, "c"]));
        let link = join(["a", "b"]);
        network.links[link].loss = share;
        let Some(mut losses) = LinkLosses::new(&network, run) else { return Vec::new() };
        let port = 2 * link as PortIndex;
        let lost: Vec<u32> = (0..20_000).filter(|_| losses.loses(port)).collect();
        assert_eq!(losses.lost(), lost.len() as u64);
        assert!(others.is_empty() || !losses.loses(0), "another link loses nothing");
        lost
    }

    #[test]
    fn a_link_loses_its_share_whatever_else_the_network_has() {
        let share = Ratio::new(10_000);
        let alone = lost(&[], share, 1);
        assert!((140..260).contains(&alone.len()), "{} of 20000", alone.len());
        assert_eq!(alone, lost(&["d", "e"], share, 1));
        assert_ne!(alone, lost(&[], share, 2));
        assert!(lost(&["d"], Ratio::ZERO, 1).is_empty());
    }
}
