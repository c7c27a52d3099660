//! Links that lose frames at random.

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
