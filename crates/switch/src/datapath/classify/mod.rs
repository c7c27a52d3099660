//! Finds the rule of a frame: tuple space search.
//!
//! Rules that match the same bits share a hash table ("tuple space search", Srinivasan, Suri and Varghese 1999). So a
//! thousand rules for a thousand collectors cost one look-up.

mod entry;
mod key;
mod table;

use crate::config::RuleSpec;
use crate::frame::Ethernet;

use entry::add_entries;
pub(super) use entry::{RuleAction, RuleMatch};
use key::{KeyDepth, KeyWords, RuleKey};
use table::RuleGroup;

/// The rules of one output.
#[derive(Debug, Clone, Default)]
pub(super) struct Classifier {
    /// Groups of rules, sorted by their best rule, the winner first.
    groups: Vec<RuleGroup>,
    depth: KeyDepth,
}

impl Classifier {
    /// Makes the tables from rules in their written order: number, rule, action, and number of the input port.
    pub(super) fn new<'a>(
        rules: impl IntoIterator<Item = (u32, &'a RuleSpec, RuleAction, Option<usize>)>,
    ) -> Self {
        let mut entries = Vec::new();
        for (number, rule, action, input) in rules {
            add_entries(&mut entries, rule, input, RuleMatch::new(rule.priority, number, action));
        }
        let mut masks: Vec<KeyWords> = Vec::new();
        for entry in &entries {
            if !masks.contains(&entry.mask) {
                masks.push(entry.mask);
            }
        }
        let mut groups: Vec<RuleGroup> = masks.iter().map(|mask| RuleGroup::new(mask, &entries)).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.best()));
        let depth = entries.iter().map(entry::RuleEntry::depth).max().unwrap_or_default();
        Self { groups, depth }
    }

    /// Returns true if there is no rule.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the winning rule for a frame from an input port, in a VLAN; `None` if no rule matches.
    #[inline]
    pub(super) fn classify(
        &self,
        input: usize,
        vlan: u16,
        head: &[u8],
        ethernet: &Ethernet,
    ) -> Option<RuleMatch> {
        let key = RuleKey::read(input, vlan, head, ethernet, self.depth);
        let mut best = 0;
        for group in &self.groups {
            if best > group.best() {
                break;
            }
            best = best.max(group.find(&key));
        }
        (best != 0).then_some(RuleMatch(best))
    }
}

#[cfg(test)]
mod tests {
    use super::entry::blocks_of;
    use super::*;
    use crate::address::{Mac, Vlan};
    use crate::config::PortRange;
    use crate::config::Protocol;
    use crate::frame::IpHeader;
    use proptest::prelude::*;
    use std::net::IpAddr;

    #[derive(Debug, Clone, Copy)]
    struct Packet {
        input: usize,
        vlan: u16,
        ethernet: Ethernet,
        network: IpHeader,
    }

    impl Packet {
        /// Bytes that read back as this packet.
        fn to_frame(self) -> Vec<u8> {
            let mut frame = vec![0; self.ethernet.payload];
            let network = self.network;
            match network.version {
                4 => {
                    frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, network.protocol, 0, 0]);
                    frame.extend((network.source as u32).to_be_bytes());
                    frame.extend((network.destination as u32).to_be_bytes());
                }
                6 => {
                    frame.extend([0x60, 0, 0, 0, 0, 8, network.protocol, 64]);
                    frame.extend(network.source.to_be_bytes());
                    frame.extend(network.destination.to_be_bytes());
                }
                _ => return frame,
            }
            frame.extend(network.ports.0.to_be_bytes());
            frame.extend(network.ports.1.to_be_bytes());
            frame.extend([0; 4]);
            frame
        }
    }

    /// Matches one rule, field by field.
    fn naive(rule: &RuleSpec, input: Option<usize>, packet: &Packet) -> bool {
        let mac = |prefix: Option<crate::address::MacPrefix>, mac: Mac| {
            prefix.is_none_or(|prefix| (mac.to_u64() ^ prefix.address.to_u64()) >> (48 - prefix.bits) == 0)
        };
        let ip = |prefix: Option<crate::address::IpPrefix>, address: u128| {
            prefix.is_none_or(|prefix| {
                let (value, width) = match prefix.address {
                    IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
                    IpAddr::V6(v6) => (u128::from(v6), 128),
                };
                let version = if width == 32 { 4 } else { 6 };
                let shift = u32::from(width - prefix.bits);
                packet.network.version == version
                    && value.checked_shr(shift).unwrap_or(0) == address.checked_shr(shift).unwrap_or(0)
            })
        };
        let port =
            |range: Option<PortRange>, port: u16| range.is_none_or(|r| r.first <= port && port <= r.last);
        mac(rule.source_mac, Mac::from_u64(packet.ethernet.source))
            && mac(rule.destination_mac, Mac::from_u64(packet.ethernet.destination))
            && ip(rule.source_ip, packet.network.source)
            && ip(rule.destination_ip, packet.network.destination)
            && rule.vlan.is_none_or(|vlan| vlan.get() == packet.vlan)
            && input.is_none_or(|input| input == packet.input)
            && rule.protocol.is_none_or(|protocol| protocol.0 == packet.network.protocol)
            && port(rule.source_port, packet.network.ports.0)
            && port(rule.destination_port, packet.network.ports.1)
    }

    fn rule() -> impl Strategy<Value = (RuleSpec, Option<usize>)> {
        let mac = || {
            prop::option::of((0..4u64, prop::sample::select(vec![0u8, 46, 47, 48]))).prop_map(|found| {
                found.map(|(low, bits)| {
                    let mut prefix = crate::address::MacPrefix { address: Mac::default(), bits };
                    prefix.address = Mac::from_u64(low & prefix.mask());
                    prefix
                })
            })
        };
        let ip = || {
            prop::option::of((0..4u32, prop::sample::select(vec![0u8, 30, 31, 32]), any::<bool>())).prop_map(
                |found| {
                    found.map(|(low, bits, v6)| {
                        let (address, bits) = if v6 {
                            (IpAddr::V6(u128::from(low).into()), bits + if bits == 0 { 0 } else { 96 })
                        } else {
                            (IpAddr::V4(low.into()), bits)
                        };
                        let mut prefix = crate::address::IpPrefix { address, bits };
                        let (value, mask) = prefix.value_and_mask();
                        prefix.address = if v6 {
                            IpAddr::V6((value & mask).into())
                        } else {
                            IpAddr::V4(((value & mask) as u32).into())
                        };
                        prefix
                    })
                },
            )
        };
        let ports = || {
            prop::option::of((0..6u16, 0..6u16))
                .prop_map(|found| found.map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) }))
        };
        (
            (mac(), mac(), ip(), ip(), ports(), ports()),
            (
                prop::option::of(1..3u16),
                prop::option::of(0..2usize),
                prop::option::of(prop::sample::select(vec![6u8, 17])),
                0..3u16,
            ),
        )
            .prop_map(
                |(
                    (source_mac, destination_mac, source_ip, destination_ip, source_port, destination_port),
                    (vlan, input, protocol, priority),
                )| {
                    // All IP prefixes of a rule have the same version.
                    let is_v4 = |prefix: crate::address::IpPrefix| prefix.address.is_ipv4();
                    let source_ip = source_ip
                        .filter(|&source| destination_ip.is_none_or(|other| is_v4(source) == is_v4(other)));
                    (
                        RuleSpec {
                            source_mac,
                            destination_mac,
                            source_ip,
                            destination_ip,
                            source_port,
                            destination_port,
                            vlan: vlan.and_then(Vlan::new),
                            protocol: protocol.map(Protocol),
                            priority,
                            ..RuleSpec::default()
                        },
                        input,
                    )
                },
            )
    }

    fn packet() -> impl Strategy<Value = Packet> {
        (
            (0..2usize, 1..3u16, 0..4u64, 0..4u64),
            (
                prop::sample::select(vec![0u8, 4, 6]),
                prop::sample::select(vec![6u8, 17]),
                0..4u128,
                0..4u128,
                0..6u16,
                0..6u16,
            ),
        )
            .prop_map(
                |((input, vlan, source, destination), (version, protocol, from, to, sport, dport))| Packet {
                    input,
                    vlan,
                    ethernet: Ethernet {
                        destination,
                        source,
                        tag: None,
                        ethertype: [0, 0x0800, 0x86dd][usize::from(version / 2).saturating_sub(1)],
                        payload: 14,
                    },
                    network: if version == 0 {
                        IpHeader::default()
                    } else {
                        IpHeader {
                            version,
                            protocol,
                            ecn: 0,
                            source: from,
                            destination: to,
                            ports: (sport, dport),
                            transport: 0,
                        }
                    },
                },
            )
    }

    proptest! {
        /// The tables agree with a linear search.
        #[test]
        fn the_right_rule_wins(rules in prop::collection::vec(rule(), 0..12), packets in prop::collection::vec(packet(), 1..40)) {
            let classifier = Classifier::new(
                rules.iter().enumerate().map(|(n, (rule, input))| (n as u32, rule, RuleAction::Ring(n as u32), *input)),
            );
            for packet in &packets {
                let mut best: Option<(u16, usize)> = None;
                for (number, (rule, input)) in rules.iter().enumerate() {
                    if naive(rule, *input, packet) && best.is_none_or(|(priority, _)| rule.priority > priority) {
                        best = Some((rule.priority, number));
                    }
                }
                let head = packet.to_frame();
                let found = classifier.classify(packet.input, packet.vlan, &head, &packet.ethernet);
                prop_assert_eq!(found.map(RuleMatch::rule), best.map(|(_, number)| number));
            }
        }

        #[test]
        fn blocks_cover_a_range_exactly(first: u16, length in 0..5000u16) {
            let range = PortRange { first, last: first.saturating_add(length) };
            let blocks = blocks_of(range);
            prop_assert!(blocks.len() <= 30);
            for port in (range.first.saturating_sub(3)..=range.last.saturating_add(3)).step_by(1) {
                let hits = blocks.iter().filter(|(value, mask)| port & mask == *value).count();
                prop_assert_eq!(hits, usize::from(range.first <= port && port <= range.last));
            }
        }
    }
}
