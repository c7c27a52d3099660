//! Compiles a description to OpenFlow rules.

use std::collections::HashSet;

use crate::check::CheckedHybrid;
use crate::spec::{CollectorSpec, FlowSpec, Others};
use fanin_switch::config::{PortRange, Protocol};
use fanin_switch::{IpPrefix, MacPrefix, Vlan};

/// The most rules of a description; hardware tables are smaller.
pub const RULES_MAX: usize = 65_536;

/// A rule of an OpenFlow table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The priority class of the rule.
    pub stage: RulePriority,
    /// The frames that the rule matches.
    pub matches: Match,
    /// The action on these frames.
    pub action: Action,
}

/// The priority classes of our rules, the lowest first. All but the lowest count up from
/// [`OpenflowSpec::priority`](super::OpenflowSpec).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RulePriority {
    /// All other frames.
    Others,
    /// Frames to stations with a configured port.
    Known,
    /// Frames to collectors that are not redirected.
    Direct,
    /// Redirection to a host port.
    Redirect,
    /// Drops frames that must not be redirected, or must not come from a host port.
    Refuse,
    /// Frames from a host port to the collector.
    Return,
}

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IP version 4.
    V4,
    /// IP version 6.
    V6,
}

/// A TCP or UDP port with a mask: only the bits of the mask are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortMask {
    /// Value of the masked bits.
    pub value: u16,
    /// Bits to compare; all bits for a single port.
    pub mask: u16,
}

/// The match of a rule. A field of `None` matches all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Match {
    /// Input port, by its OpenFlow number.
    pub input: Option<u32>,
    /// Source MAC address, or a prefix of it.
    pub source_mac: Option<MacPrefix>,
    /// Destination MAC address, or a prefix of it.
    pub destination_mac: Option<MacPrefix>,
    /// VLAN of the frame's tag.
    pub vlan: Option<Vlan>,
    /// The IP version; set if any field below is.
    pub ip: Option<IpVersion>,
    /// Source IP address or prefix.
    pub source_ip: Option<IpPrefix>,
    /// Destination IP address or prefix.
    pub destination_ip: Option<IpPrefix>,
    /// The IP protocol; set if a port is set.
    pub protocol: Option<Protocol>,
    /// Source port of TCP or UDP.
    pub source_port: Option<PortMask>,
    /// Destination port of TCP or UDP.
    pub destination_port: Option<PortMask>,
}

/// The action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Drops the frame.
    Drop,
    /// Sends the frame out of these ports, except its input port.
    Output(Vec<u32>),
    /// Sends the frame through a fast-failover group: out of the host port, or while that has no link, out of the
    /// collector's port.
    Failover(FailoverGroup),
    /// Forwards by the switch's own learning (reserved port NORMAL).
    Normal,
}

/// A fast-failover group of OpenFlow (1.3 §5.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailoverGroup {
    /// Number of the group.
    pub number: u32,
    /// Host port to the software switch.
    pub host_port: u32,
    /// Port to the collector.
    pub direct: u32,
}

/// The fast-failover groups, one for each redirected collector; none without `openflow.failover`.
pub(crate) fn groups(hybrid: &CheckedHybrid) -> Vec<FailoverGroup> {
    (0..hybrid.spec().collector.len()).filter_map(|collector| group(hybrid, collector)).collect()
}

fn group(hybrid: &CheckedHybrid, collector: usize) -> Option<FailoverGroup> {
    let spec = hybrid.spec();
    let host_port = hybrid.host_port_of(collector).filter(|_| spec.openflow.failover)?.number;
    let direct = hybrid.number(&spec.collector[collector].port);
    Some(FailoverGroup { number: spec.openflow.group + collector as u32, host_port, direct })
}

/// All rules, the highest priority first. Overlapping rules of one stage have the same action.
///
/// # Errors
/// The number of rules found so far, once it exceeds [`RULES_MAX`].
pub(crate) fn rules(hybrid: &CheckedHybrid) -> Result<Vec<Rule>, usize> {
    let spec = hybrid.spec();
    let mut rules = Vec::new();
    for port in hybrid.host_ports() {
        for collector in &spec.collector {
            let matches = Match { input: Some(port.number), ..destination(collector) };
            rules.push(rule(
                RulePriority::Return,
                matches,
                Action::Output(vec![hybrid.number(&collector.port)]),
            ));
        }
        let matches = Match { input: Some(port.number), ..Match::default() };
        rules.push(rule(RulePriority::Refuse, matches, Action::Drop));
    }
    for (index, collector) in spec.collector.iter().enumerate() {
        let Some(host_port) = hybrid.host_port_of(index) else { continue };
        let input = Some(hybrid.number(&collector.port));
        rules.push(rule(RulePriority::Refuse, Match { input, ..destination(collector) }, Action::Drop));
        let any = FlowSpec::default();
        let flows: Vec<&FlowSpec> =
            if spec.flow.is_empty() { vec![&any] } else { spec.flow.iter().collect() };
        let meant =
            |flow: &&FlowSpec| flow.collectors.is_empty() || flow.collectors.contains(&collector.name);
        let action = match group(hybrid, index) {
            Some(group) => Action::Failover(group),
            None => Action::Output(vec![host_port.number]),
        };
        let mut redirected = HashSet::new();
        for flow in flows.into_iter().filter(meant) {
            for matches in expand(collector, flow, spec.openflow.port_masks) {
                // The ports of two flows may overlap.
                if redirected.insert(matches) {
                    rules.push(rule(RulePriority::Redirect, matches, action.clone()));
                }
            }
        }
        if rules.len() > RULES_MAX {
            return Err(rules.len());
        }
    }
    for collector in &spec.collector {
        rules.push(rule(
            RulePriority::Direct,
            destination(collector),
            Action::Output(vec![hybrid.number(&collector.port)]),
        ));
    }
    for host in &spec.host {
        let destination_mac = Some(MacPrefix { address: host.mac, bits: 48 });
        let matches = Match { destination_mac, ..Match::default() };
        rules.push(rule(RulePriority::Known, matches, Action::Output(vec![hybrid.number(&host.port)])));
    }
    match spec.openflow.others {
        Others::Normal => rules.push(rule(RulePriority::Others, Match::default(), Action::Normal)),
        Others::Flood => {
            let all = spec.port.iter().map(|port| port.number).collect();
            rules.push(rule(RulePriority::Others, Match::default(), Action::Output(all)));
        }
        Others::Nothing => {}
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.stage));
    if rules.len() > RULES_MAX { Err(rules.len()) } else { Ok(rules) }
}

fn rule(stage: RulePriority, matches: Match, action: Action) -> Rule {
    Rule { stage, matches, action }
}

/// The match of all frames to a collector.
fn destination(collector: &CollectorSpec) -> Match {
    let ip = collector.ip.map(version);
    Match { destination_mac: collector.mac, ip, destination_ip: collector.ip, ..Match::default() }
}

fn version(prefix: IpPrefix) -> IpVersion {
    if prefix.address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
}

/// Expands one flow to one collector to OpenFlow matches. Addresses require the version of IP, and ports the protocol.
fn expand(collector: &CollectorSpec, flow: &FlowSpec, masks: bool) -> Vec<Match> {
    // The narrower of two prefixes; disjoint prefixes match no frame.
    let destination_ip = match (collector.ip, flow.destination_ip) {
        (Some(a), Some(b)) if !overlap(a, b) => return Vec::new(),
        (Some(a), Some(b)) => Some(if a.bits >= b.bits { a } else { b }),
        (a, b) => a.or(b),
    };
    let ports = flow.source_port.is_some() || flow.destination_port.is_some();
    let protocols = match flow.protocol {
        Some(protocol) => vec![Some(protocol)],
        None if ports => vec![Some(Protocol::TCP), Some(Protocol::UDP)],
        None => vec![None],
    };
    let said = [flow.source_ip, destination_ip].into_iter().flatten().map(version).next();
    let mut found = Vec::new();
    for protocol in protocols {
        let versions = match (said, protocol) {
            (Some(version), _) => vec![Some(version)],
            (None, Some(Protocol(1))) => vec![Some(IpVersion::V4)],
            (None, Some(Protocol(58))) => vec![Some(IpVersion::V6)],
            (None, Some(_)) => vec![Some(IpVersion::V4), Some(IpVersion::V6)],
            (None, None) => vec![None],
        };
        for ip in versions {
            for source_port in port_matches(flow.source_port, masks) {
                for destination_port in port_matches(flow.destination_port, masks) {
                    found.push(Match {
                        input: None,
                        source_mac: flow.source_mac,
                        destination_mac: collector.mac,
                        vlan: flow.vlan,
                        ip,
                        source_ip: flow.source_ip,
                        destination_ip,
                        protocol,
                        source_port,
                        destination_port,
                    });
                    if found.len() > RULES_MAX {
                        return found;
                    }
                }
            }
        }
    }
    found
}

/// Returns true if the prefixes overlap.
pub(crate) fn overlap(a: IpPrefix, b: IpPrefix) -> bool {
    let ((value_a, mask_a), (value_b, mask_b)) = (a.value_and_mask(), b.value_and_mask());
    version(a) == version(b) && (value_a ^ value_b) & mask_a & mask_b == 0
}

fn port_matches(range: Option<PortRange>, masks: bool) -> Vec<Option<PortMask>> {
    match range {
        None => vec![None],
        Some(range) if masks => port_masks(range).into_iter().map(Some).collect(),
        Some(range) => {
            (range.first..=range.last).map(|value| Some(PortMask { value, mask: u16::MAX })).collect()
        }
    }
}

/// The fewest pairs of value and mask for a range: at most 30.
fn port_masks(range: PortRange) -> Vec<PortMask> {
    let (mut first, last) = (u32::from(range.first), u32::from(range.last));
    let mut found = Vec::new();
    while first <= last {
        // The largest aligned block that starts here and fits.
        let mut size = if first == 0 { 1 << 16 } else { first & first.wrapping_neg() };
        while first + size - 1 > last {
            size /= 2;
        }
        found.push(PortMask { value: first as u16, mask: (0x1_0000 - size) as u16 });
        first += size;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_a_range_and_nothing_else() {
        for (first, last) in
            [(0, 65535), (5000, 5063), (1, 65534), (7, 7), (0, 0), (65535, 65535), (1023, 4097)]
        {
            let masks = port_masks(PortRange { first, last });
            assert!(masks.len() <= 30, "{first}-{last}: {}", masks.len());
            for port in 0..=u16::MAX {
                let hits = masks.iter().filter(|m| port & m.mask == m.value).count();
                assert_eq!(hits, usize::from((first..=last).contains(&port)), "{port} of {first}-{last}");
            }
        }
    }
}
