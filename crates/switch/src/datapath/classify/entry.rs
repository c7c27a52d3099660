//! Entries: the match of one rule, as values and masks of the key's words.

use std::net::IpAddr;

use crate::address::Vlan;
use crate::config::{PortRange, RuleSpec};

use super::key::{
    DESTINATION_PORT_SHIFT, FROM, FROM_MIDDLE, HIGH, KeyDepth, KeyWords, PROTOCOL_SHIFT, SOURCE_PORT_SHIFT,
    TO, TO_MIDDLE, VERSION_SHIFT, WORDS,
};

/// The action of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleAction {
    /// Puts the frame into this ring.
    Ring(u32),
    /// Drops the frame.
    Drop,
}

/// A matching rule as one word; the greatest word wins. Its highest bits are the priority, then the rule's number and its
/// action. Among equal priorities the first-written rule wins. The word is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleMatch(pub(super) u64);

/// Bits of the word for the action: a ring's number, or all ones to drop.
const ACTION_BITS: u32 = 18;
/// Bits for the rule's number, which is stored as ones' complement.
const RULE_BITS: u32 = 30;
const DROP: u64 = (1 << ACTION_BITS) - 1;
const RULES: u64 = (1 << RULE_BITS) - 1;

impl RuleMatch {
    pub(super) fn new(priority: u16, rule: u32, action: RuleAction) -> Self {
        assert!(u64::from(rule) < RULES, "rule {rule}");
        let action = match action {
            RuleAction::Ring(ring) => u64::from(ring),
            RuleAction::Drop => DROP,
        };
        assert!(action <= DROP, "ring {action}");
        let place = u64::from(priority) << RULE_BITS | (RULES - u64::from(rule));
        Self(place << ACTION_BITS | action)
    }

    /// Returns the rule's number.
    #[inline]
    pub(crate) const fn rule(self) -> usize {
        (RULES - (self.0 >> ACTION_BITS & RULES)) as usize
    }

    /// Returns the rule's action.
    #[inline]
    pub(crate) const fn action(self) -> RuleAction {
        match self.0 & DROP {
            DROP => RuleAction::Drop,
            ring => RuleAction::Ring(ring as u32),
        }
    }
}

/// Values and masks of a rule; a rule with ranges of ports has several entries.
#[derive(Debug, Clone)]
pub(super) struct RuleEntry {
    pub(super) value: KeyWords,
    pub(super) mask: KeyWords,
    pub(super) found: RuleMatch,
}

impl RuleEntry {
    /// Returns the headers that the entry compares.
    pub(super) fn depth(&self) -> KeyDepth {
        match self.mask[TO..] {
            [0, 0, 0, 0, 0] => KeyDepth::Ethernet,
            [_, from, ..] if from >> SOURCE_PORT_SHIFT != 0 => KeyDepth::Ports,
            _ => KeyDepth::Network,
        }
    }
}

/// Appends the entries of one rule; `input` is the number of its input port.
pub(super) fn add_entries(
    entries: &mut Vec<RuleEntry>,
    rule: &RuleSpec,
    input: Option<usize>,
    found: RuleMatch,
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
            let mut entry = RuleEntry { value, mask, found };
            entry.value[FROM] |= ports(source, destination);
            entry.mask[FROM] |= ports(source_mask, destination_mask);
            entries.push(entry);
        }
    }
}

/// Splits a range of ports into at most 30 pairs of value and mask.
pub(super) fn blocks_of(range: PortRange) -> Vec<(u16, u16)> {
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
