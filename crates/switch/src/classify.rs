//! From a frame to a ring: rules, searched by the set of bits that they look at.
//!
//! Rules that look at the same bits share a hash table ("tuple space search", Srinivasan, Suri and Varghese 1999), so that
//! a thousand rules for a thousand collectors cost one look-up.

use std::net::IpAddr;

use crate::address::Vlan;
use crate::config::{PortRange, RuleSpec};
use crate::frame::{ETHERTYPE_IPV4, Ethernet, Network, TCP, UDP};
use crate::prefetch::prefetch;

/// Words of a key: the destination address and VLAN, the source address and input, then what is below. What rules for
/// collectors look at stands together in one word, so that most of them cost one comparison.
const WORDS: usize = 7;
type Words = [u64; WORDS];

/// The low 32 bits of the IP destination; from bit 32 on the version, from bit 40 on the protocol.
const TO: usize = 2;
/// The low 32 bits of the IP source; then the source's port, then the destination's.
const FROM: usize = 3;
/// Bits 32 to 95 of the destination and of the source; the last 32 bits of both.
const TO_MIDDLE: usize = 4;
const FROM_MIDDLE: usize = 5;
const HIGH: usize = 6;
const VERSION_SHIFT: u32 = 32;
const PROTOCOL_SHIFT: u32 = 40;
const SOURCE_PORT_SHIFT: u32 = 32;
const DESTINATION_PORT_SHIFT: u32 = 48;

/// How far into a frame the rules of an output look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Depth {
    /// There is no rule.
    #[default]
    Nothing,
    Ethernet,
    Network,
    Ports,
}

/// Words that tables of their own width may look at. The others, the long part of IPv6 addresses, few rules look at.
const NEAR: usize = TO_MIDDLE;

/// What of a frame rules can look at. It stays in memory, because which word of it a table wants is known only there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Key(Words);

impl Key {
    /// Reads the key of a frame that came in by a port, in a VLAN. Words beyond the depth may be missing.
    #[inline(always)]
    pub(crate) fn read(&mut self, input: usize, vlan: u16, head: &[u8], ethernet: &Ethernet, depth: Depth) {
        if depth == Depth::Nothing {
            return;
        }
        let [mut to, mut from] = [0; 2];
        self.0[NEAR..].fill(0);
        if depth >= Depth::Network {
            if ethernet.ethertype == ETHERTYPE_IPV4
                && let Some(packet) = head.get(ethernet.payload..)
                && let Some(found) = addresses_v4(packet, depth)
            {
                [to, from] = found;
            } else {
                // A copy, so that the header of other frames stays in registers.
                [to, from] = addresses(&Network::parse(head, &{ *ethernet }), &mut self.0[NEAR..]);
            }
        }
        self.0[0] = ethernet.destination | u64::from(vlan) << 48;
        self.0[1] = ethernet.source | (input as u64) << 48;
        self.0[TO] = to;
        self.0[FROM] = from;
    }
}

/// [`TO`] and [`FROM`] of any IP header; the rest goes to `far`.
#[inline(never)]
fn addresses(network: &Network, far: &mut [u64]) -> [u64; 2] {
    let (to, from, ports) = (network.destination, network.source, network.ports);
    let high = (to >> 96) as u64 | ((from >> 96) as u64) << 32;
    far.copy_from_slice(&[(to >> 32) as u64, (from >> 32) as u64, high]);
    [
        u64::from(to as u32)
            | u64::from(network.version) << VERSION_SHIFT
            | u64::from(network.protocol) << PROTOCOL_SHIFT,
        u64::from(from as u32)
            | u64::from(ports.0) << SOURCE_PORT_SHIFT
            | u64::from(ports.1) << DESTINATION_PORT_SHIFT,
    ]
}

/// As [`addresses`] for the IPv4 header that nearly all frames have; `None` where [`Network::parse`] must look closer.
#[inline(always)]
fn addresses_v4(packet: &[u8], depth: Depth) -> Option<[u64; 2]> {
    let header = packet.first_chunk::<20>()?;
    // No options.
    if header[0] != 0x45 {
        return None;
    }
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let of_all = 4 << VERSION_SHIFT | u64::from(header[9]) << PROTOCOL_SHIFT;
    let to = u64::from(u32::from_be_bytes([d0, d1, d2, d3])) | of_all;
    let mut from = u64::from(u32::from_be_bytes([s0, s1, s2, s3]));
    if depth == Depth::Ports {
        let is_whole = (header[6] & 0x1f) | header[7] == 0;
        let (true, TCP | UDP, Some(&[p0, p1, q0, q1])) = (is_whole, header[9], packet[20..].first_chunk())
        else {
            return None;
        };
        from |= u64::from(u16::from_be_bytes([p0, p1])) << SOURCE_PORT_SHIFT
            | u64::from(u16::from_be_bytes([q0, q1])) << DESTINATION_PORT_SHIFT;
    }
    Some([to, from])
}

/// What a rule does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Into this ring.
    Ring(u32),
    /// Away with it.
    Drop,
}

/// A rule that matched, in one word of which the greatest wins: its priority, its number (of equal rules the one that was
/// written first), what it does. No rule is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match(u64);

/// Bits of the word for what a rule does: a ring's number, or all ones to drop.
const ACTION_BITS: u32 = 18;
/// Bits for its number, which is stored as ones' complement.
const RULE_BITS: u32 = 30;
const DROP: u64 = (1 << ACTION_BITS) - 1;
const RULES: u64 = (1 << RULE_BITS) - 1;

impl Match {
    fn new(priority: u16, rule: u32, action: Action) -> Self {
        assert!(u64::from(rule) < RULES, "rule {rule}");
        let action = match action {
            Action::Ring(ring) => u64::from(ring),
            Action::Drop => DROP,
        };
        assert!(action <= DROP, "ring {action}");
        let place = u64::from(priority) << RULE_BITS | (RULES - u64::from(rule));
        Self(place << ACTION_BITS | action)
    }

    /// The rule's number.
    #[inline]
    pub(crate) const fn rule(self) -> usize {
        (RULES - (self.0 >> ACTION_BITS & RULES)) as usize
    }

    #[inline]
    pub(crate) const fn action(self) -> Action {
        match self.0 & DROP {
            DROP => Action::Drop,
            ring => Action::Ring(ring as u32),
        }
    }
}

/// One entry of a rule: a rule with ranges of ports has several.
#[derive(Debug, Clone)]
struct Entry {
    value: Words,
    mask: Words,
    found: Match,
}

impl Entry {
    fn depth(&self) -> Depth {
        match self.mask[TO..] {
            [0, 0, 0, 0, 0] => Depth::Ethernet,
            [_, from, ..] if from >> SOURCE_PORT_SHIFT != 0 => Depth::Ports,
            _ => Depth::Network,
        }
    }
}

/// The rules of one output, ready to be asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classifier {
    /// Those with the best rules first.
    groups: Vec<Group>,
    depth: Depth,
    is_wide: bool,
}

/// Rules that look at the same bits.
#[derive(Debug, Clone)]
struct Group {
    /// The words that are looked at, and what of them; nothing of the others.
    used: [(u8, u64); WORDS],
    /// The best rule.
    best: u64,
    table: Table,
}

/// Open addressing, a power of two of places, at most half of them taken. A place holds a [`Match`], 0 where it is free,
/// and the words' values. Four rules that look at one word share a cache line, two with two or three.
#[derive(Debug, Clone)]
enum Table {
    One(Vec<[u64; 2]>),
    Two(Vec<[u64; 4]>),
    Three(Vec<[u64; 4]>),
    More(Vec<[u64; 8]>),
}

/// So many rules of one output are in the cache anyway, and asking for them costs more than it gives.
const RULES_NEAR: usize = 64;

impl Classifier {
    /// Rules with their numbers and what they do, in the order in which they were written.
    pub(crate) fn new<'a>(
        rules: impl IntoIterator<Item = (u32, &'a RuleSpec, Action, Option<usize>)>,
    ) -> Self {
        let mut entries = Vec::new();
        for (number, rule, action, input) in rules {
            add_entries(&mut entries, rule, input, Match::new(rule.priority, number, action));
        }
        let mut masks: Vec<Words> = Vec::new();
        for entry in &entries {
            if !masks.contains(&entry.mask) {
                masks.push(entry.mask);
            }
        }
        let mut groups: Vec<Group> = masks.iter().map(|mask| Group::new(mask, &entries)).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.best));
        let depth = entries.iter().map(Entry::depth).max().unwrap_or_default();
        let is_wide = entries.len() > RULES_NEAR;
        Self { groups, depth, is_wide }
    }

    /// Whether there is no rule.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How much of a frame [`Self::classify`] asks for.
    #[inline]
    pub(crate) const fn depth(&self) -> Depth {
        self.depth
    }

    /// The place where [`Self::classify`] will look first, for which it asks.
    #[inline(always)]
    pub(crate) fn first_place(&self, key: &Key) -> u32 {
        let Some(Group { used: [(word, of_word), ..], table: Table::One(table), .. }) = self.groups.first()
        else {
            return 0;
        };
        let first = first_of([key.0[usize::from(*word) % NEAR] & of_word], table.len());
        if self.is_wide {
            prefetch(table.as_ptr().wrapping_add(first).cast());
        }
        first as u32
    }

    /// The rule that wins. `first` is what [`Self::first_place`] says.
    #[inline(always)]
    pub(crate) fn classify(&self, key: &Key, first: u32) -> Option<Match> {
        match self.groups.as_slice() {
            [] => None,
            // What rules for collectors come to: all of them look at the same bits of one word.
            [Group { table: Table::One(table), used: [one, ..], .. }] => {
                let values = [key.0[usize::from(one.0) % NEAR] & one.1];
                let best = table[place_from(table, values, first as usize)][0];
                (best != 0).then_some(Match(best))
            }
            _ => self.search(key),
        }
    }

    #[inline(never)]
    fn search(&self, key: &Key) -> Option<Match> {
        let mut best = 0;
        for group in &self.groups {
            if best > group.best {
                break;
            }
            best = best.max(group.find(key));
        }
        (best != 0).then_some(Match(best))
    }
}

/// Where to look for these values first. The highest bits of the product spread numbers that were given out one after the other
/// evenly (Knuth, The Art of Computer Programming, volume 3, section 6.4), so that collectors' addresses hardly ever collide.
#[inline(always)]
fn first_of<const N: usize>(values: [u64; N], places: usize) -> usize {
    let hash = values
        .iter()
        .fold(0u64, |hash, value| (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (((hash >> 32) * places as u64) >> 32) as usize
}

/// The place of these values: theirs, or the free one where they would go.
#[inline(always)]
fn place<const N: usize, const WIDTH: usize>(table: &[[u64; WIDTH]], values: [u64; N]) -> usize {
    place_from(table, values, first_of(values, table.len()))
}

/// As [`place`], from where to look first.
#[inline(always)]
fn place_from<const N: usize, const WIDTH: usize>(
    table: &[[u64; WIDTH]],
    values: [u64; N],
    first: usize,
) -> usize {
    let last = table.len() - 1;
    let mut place = first & last;
    while table[place][0] != 0 && table[place][1..=N] != values {
        place = (place + 1) & last;
    }
    place
}

impl Group {
    fn new(mask: &Words, entries: &[Entry]) -> Self {
        let mut used = [(0, 0); WORDS];
        let mut len = 0;
        for (word, &of_word) in (0u8..).zip(mask).filter(|&(_, &of_word)| of_word != 0) {
            used[len] = (word, of_word);
            len += 1;
        }
        let mine = || entries.iter().filter(|entry| entry.mask == *mask);
        let places = (mine().count() * 2).next_power_of_two();
        let is_near = used[..len].iter().all(|&(word, _)| usize::from(word) < NEAR);
        let table = match len {
            0 | 1 if is_near => Table::One(vec![[0; 2]; places]),
            2 if is_near => Table::Two(vec![[0; 4]; places]),
            3 if is_near => Table::Three(vec![[0; 4]; places]),
            _ => Table::More(vec![[0; 8]; places]),
        };
        let best = mine().map(|entry| entry.found.0).max().unwrap_or(0);
        let mut group = Self { used, best, table };
        for entry in mine() {
            group.put(entry);
        }
        group
    }

    fn put(&mut self, entry: &Entry) {
        fn put<const N: usize, const WIDTH: usize>(
            table: &mut [[u64; WIDTH]],
            values: [u64; N],
            found: Match,
        ) {
            let slot = &mut table[place(table, values)];
            // The same frames: only the winner counts.
            slot[0] = slot[0].max(found.0);
            slot[1..=N].copy_from_slice(&values);
        }
        let mut all = [0; WORDS];
        for (value, (word, of_word)) in all.iter_mut().zip(self.used) {
            *value = entry.value[usize::from(word)] & of_word;
        }
        let [one, two, three, ..] = all;
        match &mut self.table {
            Table::One(table) => put(table, [one], entry.found),
            Table::Two(table) => put(table, [one, two], entry.found),
            Table::Three(table) => put(table, [one, two, three], entry.found),
            Table::More(table) => put::<WORDS, 8>(table, all, entry.found),
        }
    }

    /// The first `N` of the words that are looked at, all of them near; words beyond those are zero.
    #[inline(always)]
    fn near<const N: usize>(&self, key: &Key) -> [u64; N] {
        std::array::from_fn(|at| {
            let (word, of_word) = self.used[at];
            key.0[usize::from(word) % NEAR] & of_word
        })
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> u64 {
        // Loops of a fixed length each: most rules look at one or two words.
        match &self.table {
            Table::One(table) => table[place::<1, 2>(table, self.near(key))][0],
            Table::Two(table) => table[place::<2, 4>(table, self.near(key))][0],
            Table::Three(table) => table[place::<3, 4>(table, self.near(key))][0],
            Table::More(table) => self.find_slowly(table, key),
        }
    }

    #[inline(never)]
    fn find_slowly(&self, table: &[[u64; 8]], key: &Key) -> u64 {
        let words = std::array::from_fn(|at| {
            let (word, of_word) = self.used[at];
            key.0[usize::from(word)] & of_word
        });
        table[place::<WORDS, 8>(table, words)][0]
    }
}

fn add_entries(entries: &mut Vec<Entry>, rule: &RuleSpec, input: Option<usize>, found: Match) {
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
        put(TO, PROTOCOL_SHIFT, protocol.0.into(), 0xff);
    }
    for (prefix, low, middle, high) in
        [(rule.destination_ip, TO, TO_MIDDLE, 0), (rule.source_ip, FROM, FROM_MIDDLE, 32)]
    {
        let Some(prefix) = prefix else { continue };
        let (bits, of) = prefix.value_and_mask();
        put(low, 0, u64::from(bits as u32), u64::from(of as u32));
        put(middle, 0, (bits >> 32) as u64, (of >> 32) as u64);
        put(HIGH, high, (bits >> 96) as u64, (of >> 96) as u64);
        put(TO, VERSION_SHIFT, if matches!(prefix.address, IpAddr::V4(_)) { 4 } else { 6 }, 0xff);
    }
    let ports = |source: u16, destination: u16| {
        u64::from(source) << SOURCE_PORT_SHIFT | u64::from(destination) << DESTINATION_PORT_SHIFT
    };
    let all = [(0, 0)];
    let blocks = |range: Option<PortRange>| range.map_or(all.to_vec(), blocks_of);
    for (source, source_mask) in blocks(rule.source_port) {
        for (destination, destination_mask) in blocks(rule.destination_port) {
            let mut entry = Entry { value, mask, found };
            entry.value[FROM] |= ports(source, destination);
            entry.mask[FROM] |= ports(source_mask, destination_mask);
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
                        destination,
                        source,
                        tag: None,
                        ethertype: [0, 0x0800, 0x86dd][usize::from(version / 2).saturating_sub(1)],
                        payload: 14,
                    },
                    network: if version == 0 {
                        Network::default()
                    } else {
                        Network {
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
                let head = packet.to_frame();
                let mut key = Key::default();
                key.read(packet.input, packet.vlan, &head, &packet.ethernet, classifier.depth());
                let found = classifier.classify(&key, classifier.first_place(&key));
                prop_assert_eq!(found.map(Match::rule), best.map(|(_, number)| number));
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
