//! From a frame to a ring: rules, searched by the set of bits that they look at.
//!
//! Rules that look at the same bits share a hash table ("tuple space search", Srinivasan, Suri and Varghese 1999), so that
//! a thousand rules for a thousand collectors cost one look-up.

use std::net::IpAddr;

use crate::address::Vlan;
use crate::config::{PortRange, RuleSpec};
use crate::frame::{Ethernet, Network};

/// Words of a key.
const WORDS: usize = 7;
type Words = [u64; WORDS];

/// What of a frame rules can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(Words);

impl Key {
    #[inline]
    pub(crate) fn new(input: usize, vlan: u16, ethernet: &Ethernet, network: &Network) -> Self {
        Self([
            ethernet.destination.to_u64() | u64::from(vlan) << 48,
            ethernet.source.to_u64() | (input as u64) << 48,
            pack(network.version, network.protocol, network.ports.0, network.ports.1),
            network.destination as u64,
            (network.destination >> 64) as u64,
            network.source as u64,
            (network.source >> 64) as u64,
        ])
    }
}

#[inline]
const fn pack(version: u8, protocol: u8, source: u16, destination: u16) -> u64 {
    version as u64 | (protocol as u64) << 8 | (source as u64) << 16 | (destination as u64) << 32
}

/// What a rule does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Into this ring.
    Ring(u32),
    /// Away with it.
    Drop,
}

/// A rule that matched: its number and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) rule: u32,
    pub(crate) action: Action,
}

/// One entry of a rule: a rule with ranges of ports has several.
#[derive(Debug, Clone)]
struct Entry {
    value: Words,
    mask: Words,
    /// Higher goes first; among equals the rule that was written first.
    rank: (u16, u32),
    found: Match,
}

/// The rules of one output, ready to be asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classifier {
    groups: Vec<Group>,
    /// By place in the groups' tables: higher goes first.
    ranks: Vec<(u16, u32)>,
    found: Vec<Match>,
    needs_network: bool,
}

/// Rules that look at the same bits.
#[derive(Debug, Clone)]
struct Group {
    /// The words that are looked at, and what of them.
    used: Vec<(u8, u64)>,
    /// The highest priority in the group.
    best: u16,
    /// Open addressing, a power of two of places, at most half of them taken. Each place has a word that says which entry it
    /// is, 0 for none, and then the words' values; with one or two of those it takes half a cache line.
    table: Vec<u64>,
    stride: usize,
}

impl Classifier {
    /// Rules with their numbers and what they do, in the order in which they were written.
    pub(crate) fn new<'a>(
        rules: impl IntoIterator<Item = (u32, &'a RuleSpec, Action, Option<usize>)>,
    ) -> Self {
        let mut entries = Vec::new();
        for (number, rule, action, input) in rules {
            let found = Match { rule: number, action };
            add_entries(&mut entries, rule, input, (rule.priority, u32::MAX - number), found);
        }
        let mut masks: Vec<Words> = Vec::new();
        for entry in &entries {
            if !masks.contains(&entry.mask) {
                masks.push(entry.mask);
            }
        }
        let mut groups: Vec<Group> = masks.iter().map(|mask| Group::new(mask, &entries)).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.best));
        let needs_network = groups.iter().any(|group| group.used.iter().any(|&(word, _)| word >= 2));
        Self {
            groups,
            ranks: entries.iter().map(|entry| entry.rank).collect(),
            found: entries.iter().map(|entry| entry.found).collect(),
            needs_network,
        }
    }

    /// Whether [`Self::classify`] looks beyond the Ethernet header.
    #[inline]
    pub(crate) const fn needs_network(&self) -> bool {
        self.needs_network
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The rule that wins.
    #[inline]
    pub(crate) fn classify(&self, key: &Key) -> Option<Match> {
        if let [group] = &self.groups[..] {
            return group.find(key).map(|entry| self.found[entry]);
        }
        let mut best: Option<usize> = None;
        for group in &self.groups {
            if best.is_some_and(|entry| self.ranks[entry].0 > group.best) {
                break;
            }
            if let Some(entry) = group.find(key)
                && best.is_none_or(|other| self.ranks[entry] > self.ranks[other])
            {
                best = Some(entry);
            }
        }
        best.map(|entry| self.found[entry])
    }
}

impl Group {
    fn new(mask: &Words, entries: &[Entry]) -> Self {
        let used: Vec<(u8, u64)> = (0..WORDS as u8).zip(*mask).filter(|&(_, of_word)| of_word != 0).collect();
        let mine = || entries.iter().enumerate().filter(|(_, entry)| entry.mask == *mask);
        let places = (mine().count() * 2).next_power_of_two();
        let stride = (used.len() + 1).next_power_of_two();
        let best = mine().map(|(_, entry)| entry.rank.0).max().unwrap_or(0);
        let mut group = Self { used, best, table: vec![0; places * stride], stride };
        for (number, entry) in mine() {
            let place = group.place(&entry.value);
            let other = group.table[place];
            // The same frames: only the winner counts.
            if other == 0 || entry.rank > entries[other as usize - 1].rank {
                group.table[place] = number as u64 + 1;
                for (at, &(word, _)) in group.used.iter().enumerate() {
                    group.table[place + 1 + at] = entry.value[usize::from(word)];
                }
            }
        }
        group
    }

    /// Where these words are in the table, or would be.
    #[inline]
    fn place(&self, words: &Words) -> usize {
        match &self.used[..] {
            // Most rules look at one or two words: no loop for them.
            &[(one, of_one)] => self.place_of([words[usize::from(one)] & of_one]),
            &[(one, of_one), (two, of_two)] => {
                self.place_of([words[usize::from(one)] & of_one, words[usize::from(two)] & of_two])
            }
            used => {
                let mut all = [0; WORDS];
                for (to, &(word, mask)) in all.iter_mut().zip(used) {
                    *to = words[usize::from(word)] & mask;
                }
                self.place_of(all)
            }
        }
    }

    #[inline]
    fn place_of<const N: usize>(&self, values: [u64; N]) -> usize {
        let mut hash = 0u64;
        for value in values {
            hash = (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let last = self.table.len() - 1;
        // Words beyond those that are looked at are zero here and not in the table.
        let len = N.min(self.used.len());
        let mut place = ((hash >> 32) as usize * self.stride) & last;
        loop {
            let slot = &self.table[place..place + self.stride];
            if slot[0] == 0 || slot[1..=len] == values[..len] {
                return place;
            }
            place = (place + self.stride) & last;
        }
    }

    #[inline]
    fn find(&self, key: &Key) -> Option<usize> {
        let entry = self.table[self.place(&key.0)];
        (entry != 0).then(|| entry as usize - 1)
    }
}

fn add_entries(
    entries: &mut Vec<Entry>,
    rule: &RuleSpec,
    input: Option<usize>,
    rank: (u16, u32),
    found: Match,
) {
    let (mut value, mut mask) = ([0; WORDS], [0; WORDS]);
    let mut put = |word: usize, shift: u32, bits: u64, of: u64| {
        value[word] |= (bits & of) << shift;
        mask[word] |= of << shift;
    };
    if let Some(prefix) = rule.destination_mac {
        put(0, 0, prefix.address.to_u64(), prefix.mask());
    }
    if let Some(prefix) = rule.source_mac {
        put(1, 0, prefix.address.to_u64(), prefix.mask());
    }
    if let Some(vlan) = rule.vlan {
        put(0, 48, vlan.get().into(), u64::from(Vlan::MAX.next_power_of_two() - 1));
    }
    if let Some(input) = input {
        put(1, 48, input as u64, 0xffff);
    }
    if let Some(protocol) = rule.protocol {
        put(2, 8, protocol.0.into(), 0xff);
    }
    for (prefix, word) in [(rule.destination_ip, 3), (rule.source_ip, 5)] {
        let Some(prefix) = prefix else { continue };
        let (bits, of) = prefix.value_and_mask();
        put(word, 0, bits as u64, of as u64);
        put(word + 1, 0, (bits >> 64) as u64, (of >> 64) as u64);
        put(2, 0, if matches!(prefix.address, IpAddr::V4(_)) { 4 } else { 6 }, 0xff);
    }
    let all = [(0, 0)];
    let blocks = |range: Option<PortRange>| range.map_or(all.to_vec(), blocks_of);
    for (source, source_mask) in blocks(rule.source_port) {
        for (destination, destination_mask) in blocks(rule.destination_port) {
            let mut entry = Entry { value, mask, rank, found };
            entry.value[2] |= pack(0, 0, source, destination);
            entry.mask[2] |= pack(0, 0, source_mask, destination_mask);
            entries.push(entry);
        }
    }
}

/// A range of ports as values with masks: at most 30 of them.
fn blocks_of(range: PortRange) -> Vec<(u16, u16)> {
    let (mut first, last) = (u32::from(range.first), u32::from(range.last));
    let mut blocks = Vec::new();
    while first <= last {
        let mut size = if first == 0 { 1 << 16 } else { 1 << first.trailing_zeros() };
        while first + size - 1 > last {
            size /= 2;
        }
        blocks.push((first as u16, !(size - 1) as u16));
        first += size;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Mac;
    use crate::config::Protocol;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy)]
    struct Packet {
        input: usize,
        vlan: u16,
        ethernet: Ethernet,
        network: Network,
    }

    /// What a rule says, spelled out.
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
        mac(rule.source_mac, packet.ethernet.source)
            && mac(rule.destination_mac, packet.ethernet.destination)
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
                    // No frame goes from one family to the other, and no rule may ask for it.
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
                        destination: Mac::from_u64(destination),
                        source: Mac::from_u64(source),
                        tag: None,
                        ethertype: 0,
                        payload: 14,
                    },
                    network: Network {
                        version,
                        protocol,
                        ecn: 0,
                        source: from,
                        destination: to,
                        ports: (sport, dport),
                        transport: 0,
                    },
                },
            )
    }

    proptest! {
        /// The tables give what trying one rule after the other gives.
        #[test]
        fn the_right_rule_wins(rules in prop::collection::vec(rule(), 0..12), packets in prop::collection::vec(packet(), 1..40)) {
            let classifier = Classifier::new(
                rules.iter().enumerate().map(|(n, (rule, input))| (n as u32, rule, Action::Ring(n as u32), *input)),
            );
            for packet in &packets {
                let mut best: Option<(u16, usize)> = None;
                for (number, (rule, input)) in rules.iter().enumerate() {
                    if naive(rule, *input, packet) && best.is_none_or(|(priority, _)| rule.priority > priority) {
                        best = Some((rule.priority, number));
                    }
                }
                let network = if classifier.needs_network() { packet.network } else { Network::default() };
                let found = classifier.classify(&Key::new(packet.input, packet.vlan, &packet.ethernet, &network));
                prop_assert_eq!(found.map(|found| found.rule as usize), best.map(|(_, number)| number));
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
