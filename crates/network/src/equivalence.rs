//! Equivalent nodes of a network: nodes of one kind whose links are equal and lead to equivalent nodes.

use std::collections::BTreeSet;

use fanin_units::mix;

use crate::{Network, NodeIndex, NodeKind, SwitchKind};

/// Most rounds of refinement. More rounds would distinguish only nodes that are further apart than any path is long.
const ROUNDS_MAX: usize = 16;

/// A first colour for each node: nodes with different ones are never equivalent. Zero hides a node without event data.
pub(crate) fn first_colours(network: &Network, readouts: &[NodeIndex], asked: &[NodeIndex]) -> Vec<u64> {
    let mut first_colours: Vec<u64> =
        network.nodes.iter().map(|node| u64::from(node.kind != NodeKind::Host)).collect();
    let mut rules = network.switches_used().filter_map(SwitchKind::rings).flat_map(|rings| &rings.flows);
    let has_numbers = rules.any(|rule| rule.contains(|c: char| c.is_ascii_digit()));
    for (role, hosts) in [(1, readouts), (2, asked)] {
        for (index, &host) in (1_u64..).zip(hosts) {
            // Rules may name single hosts.
            let own = if has_numbers { index << 8 } else { 0 };
            first_colours[host as usize] = mix(first_colours[host as usize] ^ own ^ role);
        }
    }
    first_colours
}

/// Gives equivalent nodes the same colour (colour refinement, Weisfeiler and Leman 1968).
///
/// Nodes with different first colours have different colours. One whose first colour is zero counts as no neighbour. The cost
/// is a few passes over the links. Colours are hashes of 64 bits.
pub(crate) fn colours(network: &Network, first_colours: &[u64]) -> Vec<u64> {
    let kind = |node: NodeIndex| match network.nodes[node as usize].kind {
        NodeKind::Host => u64::MAX,
        NodeKind::Switch { settings } => settings as u64,
    };
    let mut colours: Vec<u64> =
        (0..).zip(first_colours).map(|(node, &colour)| mix(mix(colour) ^ kind(node))).collect();
    let links: Vec<u64> =
        network.links.iter().map(|link| mix(link.rate.get() ^ link.delay.get().rotate_left(32))).collect();
    let switches: Vec<usize> =
        (0..network.nodes.len()).filter(|&node| !network.is_host(node as NodeIndex)).collect();
    let mut count = 0;
    for _ in 0..ROUNDS_MAX {
        // Sums do not depend on the order of the neighbours.
        let mut sums = vec![0_u64; colours.len()];
        for (link, &hash) in network.links.iter().zip(&links) {
            let [a, b] = link.ends.map(|end| end as usize);
            if first_colours[a] == 0 || first_colours[b] == 0 {
                continue;
            }
            sums[a] = sums[a].wrapping_add(mix(colours[b] ^ hash));
            sums[b] = sums[b].wrapping_add(mix(colours[a] ^ hash));
        }
        for (colour, sum) in colours.iter_mut().zip(sums) {
            *colour = mix(*colour ^ mix(sum));
        }
        let distinct = switches.iter().map(|&node| colours[node]).collect::<BTreeSet<u64>>().len();
        if distinct == count {
            break;
        }
        count = distinct;
    }
    colours
}
