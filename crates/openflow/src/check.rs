//! Checks a description of a hybrid, and assigns each collector to a host port.

use std::path::Path;

use fanin_scenario::{Document, Errors, Problem, Warnings};
use fanin_units::Rate;

use crate::rules::{RULES_MAX, Rule, overlap, rules};
use crate::spec::{CollectorSpec, FlowSpec, HostPortSpec, HybridSpec, Others};
use fanin_switch::MacPrefix;
use fanin_switch::config::NAME_BYTES_MAX;

/// The multi-host controller of the paper has four host ports (PEPs).
pub const HOST_PORTS_MAX: usize = 4;
/// Largest supported port number, as Open vSwitch has 16 bits; OpenFlow 1.3 (§A.2.1) permits up to 0xffffff00.
const PORT_NUMBER_MAX: u32 = 0xfeff;
/// Tables 254 and 255 are reserved (OpenFlow 1.3 §A.3.4.1: OFPTT_MAX is 0xfe).
const TABLE_MAX: u8 = 253;
/// The largest group number of OpenFlow (`OFPG_MAX`).
const GROUP_MAX: u64 = 0xffff_ff00;
/// Number of priorities that the rules take above `openflow.priority`.
const STAGES_ABOVE: u16 = 5;

/// A checked description and its rules.
#[derive(Debug, Clone)]
pub struct CheckedHybrid {
    spec: HybridSpec,
    /// The host port of each collector; empty without host ports.
    assigned: Vec<Option<usize>>,
    host_ports: usize,
    rules: Vec<Rule>,
}

impl CheckedHybrid {
    /// Reads and checks a file. `host_ports` limits the host ports that are used, from the first on.
    ///
    /// # Errors
    /// Every problem, with line and column.
    pub fn load(path: &Path, host_ports: Option<usize>) -> Result<(Self, Warnings), Errors> {
        Self::new(&Document::load(path)?, host_ports)
    }

    /// Parses a specification from `text` and checks it as [`Self::load`] does. Messages give `name` as the file's
    /// name.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn parse(name: &str, text: &str, host_ports: Option<usize>) -> Result<(Self, Warnings), Errors> {
        Self::new(&Document::parse(name, text)?, host_ports)
    }

    fn new(document: &Document, host_ports: Option<usize>) -> Result<(Self, Warnings), Errors> {
        let spec: HybridSpec = document.read()?;
        let check = Check { document, spec: &spec };
        let mut problems = Vec::new();
        check.ports(&mut problems);
        check.stations(&mut problems);
        check.collectors(&mut problems);
        check.flows(&mut problems);
        check.limits(&mut problems);
        let given = spec.host_port.len();
        if let Some(wanted) = host_ports.filter(|&wanted| wanted > given) {
            problems.push(document.problem(
                "host_port",
                format!("{wanted} host ports are requested, and {given} are configured"),
            ));
        }
        if !problems.is_empty() {
            return Err(problems.into());
        }
        let host_ports = host_ports.unwrap_or(given);
        let assigned = assign(&spec, host_ports);
        let mut hybrid = Self { spec, assigned, host_ports, rules: Vec::new() };
        hybrid.rules = rules(&hybrid).map_err(|count| {
            let message = format!("the description needs {count} rules or more; the limit is {RULES_MAX}");
            let help = "name fewer ports, or set `openflow.port_masks` to true if the switch supports masks";
            Errors::from(vec![document.problem("flow", message).advise(help)])
        })?;
        let warnings = hybrid.warnings(document);
        Ok((hybrid, warnings.into()))
    }

    /// The description as it was read.
    pub fn spec(&self) -> &HybridSpec {
        &self.spec
    }

    /// The rules, the highest priority first.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The host ports in use.
    pub fn host_ports(&self) -> &[HostPortSpec] {
        &self.spec.host_port[..self.host_ports]
    }

    /// The host port of a collector, by its index in the description; `None` if nothing is redirected.
    ///
    /// # Panics
    /// If the collector does not exist.
    pub fn host_port_of(&self, collector: usize) -> Option<&HostPortSpec> {
        self.assigned[collector].map(|port| &self.spec.host_port[port])
    }

    /// The rate of the token bucket of a collector's ring; `None` if only the host port limits it.
    pub fn rate_of(&self, collector: &CollectorSpec) -> Option<Rate> {
        collector.rate.or(self.spec.ring.rate)
    }

    /// The OpenFlow number of a port, by its name. The checks guarantee that the port exists.
    pub(crate) fn number(&self, name: &str) -> u32 {
        self.spec.port.iter().find(|port| port.name == name).expect("checked").number
    }

    fn warnings(&self, document: &Document) -> Vec<Problem> {
        let mut found = Vec::new();
        for (index, port) in self.host_ports().iter().enumerate() {
            let used = self.spec.collector.iter().zip(&self.assigned);
            let mine: Vec<&CollectorSpec> = used
                .filter(|(_, assigned)| **assigned == Some(index))
                .map(|(collector, _)| collector)
                .collect();
            let total: u64 = mine.iter().filter_map(|c| self.rate_of(c)).map(Rate::get).sum();
            if let Some(rate) = port.rate.filter(|rate| total > rate.get()) {
                let message =
                    format!("the rings of `{}` send up to {} through {rate}", port.name, Rate::new(total));
                let help = "lower the rings' rates, or name more host ports";
                found.push(document.problem(&format!("host_port.{index}.rate"), message).advise(help));
            }
            if mine.is_empty() {
                let message = format!("no collector goes through `{}`", port.name);
                found.push(document.problem(&format!("host_port.{index}"), message));
            }
        }
        let openflow = &self.spec.openflow;
        if self.host_ports > 0 && !openflow.failover && !openflow.bypass {
            let message = "collectors are cut off while the software switch does not run: neither failover nor a bypass is set";
            let help = "leave `openflow.bypass` at its default of true, or set `openflow.failover`";
            found.push(document.problem("openflow", message).advise(help));
        }
        if openflow.others == Others::Normal && self.host_ports > 0 && self.spec.host.is_empty() {
            let message = "no [[host]] is named: the switch does not learn from redirected frames";
            let help = "name the senders; otherwise the switch forgets them, and floods frames to them";
            found.push(document.problem("collector", message).advise(help));
        }
        found
    }
}

/// Assigns each collector to its configured host port, otherwise to the least loaded one. The fastest collectors come
/// first.
fn assign(spec: &HybridSpec, host_ports: usize) -> Vec<Option<usize>> {
    let mut assigned = vec![None; spec.collector.len()];
    if host_ports == 0 {
        return assigned;
    }
    // A collector without a rate counts as the fastest: its ring has its port's rate.
    let rate = |collector: &CollectorSpec| collector.rate.or(spec.ring.rate).map(Rate::get);
    let fastest = spec.collector.iter().filter_map(rate).max().unwrap_or(1).max(1);
    let weight = |collector: &CollectorSpec| rate(collector).unwrap_or(fastest);
    // Load in billionths of the port's own rate: a port of twice the rate takes twice the load.
    let speed = |port: usize| spec.host_port[port].rate.map_or(1, |rate| rate.get().max(1));
    let mut load = vec![0u64; host_ports];
    for (index, collector) in spec.collector.iter().enumerate() {
        let wished = collector.host_port.as_ref();
        // The configured host port may not be among those in use.
        let port = wished.and_then(|name| spec.host_port[..host_ports].iter().position(|p| p.name == *name));
        if let Some(port) = port {
            assigned[index] = Some(port);
            load[port] += weight(collector);
        }
    }
    let mut rest: Vec<usize> = (0..spec.collector.len()).filter(|&index| assigned[index].is_none()).collect();
    rest.sort_by_key(|&index| std::cmp::Reverse(weight(&spec.collector[index])));
    for index in rest {
        let more = weight(&spec.collector[index]);
        let after = |port: &usize| u128::from(load[*port] + more) * 1_000_000_000 / u128::from(speed(*port));
        let port = (0..host_ports).min_by_key(after).expect("at least one");
        assigned[index] = Some(port);
        load[port] += more;
    }
    assigned
}

struct Check<'a> {
    document: &'a Document,
    spec: &'a HybridSpec,
}

impl Check<'_> {
    fn ports(&self, problems: &mut Vec<Problem>) {
        let ports = self.spec.port.iter().enumerate().map(|(i, p)| (format!("port.{i}"), &p.name, p.number));
        let hosts = self.spec.host_port.iter().enumerate();
        let hosts = hosts.map(|(i, p)| (format!("host_port.{i}"), &p.name, p.number));
        let all: Vec<_> = ports.chain(hosts).collect();
        for (index, (path, name, number)) in all.iter().enumerate() {
            for (other, other_name, other_number) in &all[..index] {
                if other_name == name {
                    let problem =
                        self.document.problem(&format!("{path}.name"), format!("`{name}` names two ports"));
                    problems.push(problem.secondary(self.document, &format!("{other}.name"), "first here"));
                }
                if other_number == number {
                    let message = format!("`{other_name}` and `{name}` have the same number");
                    let problem = self.document.problem(&format!("{path}.number"), message);
                    problems.push(problem.secondary(self.document, &format!("{other}.number"), "first here"));
                }
            }
            if *number == 0 || *number > PORT_NUMBER_MAX {
                let message = format!("a port's number lies between 1 and {PORT_NUMBER_MAX}, not {number}");
                problems.push(self.document.problem(&format!("{path}.number"), message));
            }
            self.is_word(&format!("{path}.name"), name, problems);
        }
        if self.spec.host_port.len() > HOST_PORTS_MAX {
            let message =
                format!("{} host ports; at most {HOST_PORTS_MAX} are supported", self.spec.host_port.len());
            problems.push(self.document.problem(&format!("host_port.{HOST_PORTS_MAX}"), message));
        }
        for (index, port) in self.spec.host_port.iter().enumerate() {
            if let Some(interface) = &port.interface {
                self.is_word(&format!("host_port.{index}.interface"), interface, problems);
            }
        }
    }

    /// Reports a name that is unsafe in a line for a shell or `ovs-ofctl`.
    fn is_word(&self, path: &str, text: &str, problems: &mut Vec<Problem>) {
        let good = |c: char| c.is_ascii_alphanumeric() || "._-@:[]/".contains(c);
        if text.is_empty() || text.starts_with('-') || !text.chars().all(good) {
            let message = format!("\"{}\" is not a valid name of a port or bridge", text.escape_debug());
            problems.push(
                self.document.problem(path, message).advise("letters, digits and any of . _ - @ : / [ ]"),
            );
        }
    }

    fn port_exists(&self, path: &str, name: &str, problems: &mut Vec<Problem>) {
        if self.spec.port.iter().any(|port| port.name == name) {
            return;
        }
        let problem = if self.spec.host_port.iter().any(|port| port.name == name) {
            self.document
                .problem(path, format!("`{name}` is a host port; stations are attached to other ports"))
        } else {
            let names = self.spec.port.iter().map(|port| port.name.as_str());
            self.document.problem(path, format!("no [[port]] is called `{name}`")).near(name, names)
        };
        problems.push(problem);
    }

    fn stations(&self, problems: &mut Vec<Problem>) {
        for (index, host) in self.spec.host.iter().enumerate() {
            let path = |key: &str| format!("host.{index}.{key}");
            self.port_exists(&path("port"), &host.port, problems);
            if host.mac.is_group() {
                let message = format!("{} is the address of a group, not of a station", host.mac);
                problems.push(self.document.problem(&path("mac"), message));
            }
            for (other, before) in self.spec.host[..index].iter().enumerate() {
                if before.mac == host.mac {
                    let message = format!("`{}` and `{}` have the same address", before.name, host.name);
                    let problem = self.document.problem(&path("mac"), message);
                    problems.push(problem.secondary(
                        self.document,
                        &format!("host.{other}.mac"),
                        "first here",
                    ));
                }
            }
            for (other, collector) in self.spec.collector.iter().enumerate() {
                let covers =
                    |prefix: MacPrefix| (prefix.address.to_u64() ^ host.mac.to_u64()) & prefix.mask() == 0;
                if collector.ip.is_none() && collector.mac.is_some_and(covers) && collector.port != host.port
                {
                    let message = format!(
                        "`{}` is also the collector `{}`, on another port",
                        host.name, collector.name
                    );
                    let problem = self.document.problem(&path("port"), message);
                    problems.push(problem.secondary(
                        self.document,
                        &format!("collector.{other}.port"),
                        "here",
                    ));
                }
            }
        }
    }

    fn collectors(&self, problems: &mut Vec<Problem>) {
        for (index, collector) in self.spec.collector.iter().enumerate() {
            let path = |key: &str| format!("collector.{index}.{key}");
            self.port_exists(&path("port"), &collector.port, problems);
            // The software switch uses the collector's name as the name of a ring and of a rule.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
            let name = &collector.name;
            if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
                let message = format!("\"{}\" is not a valid name of a ring", name.escape_debug());
                let help = format!("use 1 to {NAME_BYTES_MAX} letters, digits and the characters - _ . :");
                problems.push(self.document.problem(&path("name"), message).advise(help));
            }
            if collector.mac.is_none() && collector.ip.is_none() {
                let message = format!("`{}` has neither `mac` nor `ip`", collector.name);
                let help = "give one or both: they identify the collector's frames";
                problems.push(self.document.problem(&format!("collector.{index}"), message).advise(help));
            }
            if let Some(mac) = collector.mac.filter(|mac| mac.bits == 0 || mac.address.is_group()) {
                let message = format!("{mac} is a group address");
                problems.push(self.document.problem(&path("mac"), message));
            }
            if let Some(name) = &collector.host_port
                && !self.spec.host_port.iter().any(|port| port.name == *name)
            {
                let names = self.spec.host_port.iter().map(|port| port.name.as_str());
                let problem =
                    self.document.problem(&path("host_port"), format!("no [[host_port]] is called `{name}`"));
                problems.push(problem.near(name, names));
            }
            for (other, before) in self.spec.collector[..index].iter().enumerate() {
                if before.name == collector.name {
                    let message = format!("`{}` names two collectors", collector.name);
                    let problem = self.document.problem(&path("name"), message);
                    problems.push(problem.secondary(
                        self.document,
                        &format!("collector.{other}.name"),
                        "first here",
                    ));
                }
                if same_frames(before, collector) {
                    let message =
                        format!("a frame could match both `{}` and `{}`", before.name, collector.name);
                    let problem = self.document.problem(&format!("collector.{index}"), message);
                    problems.push(problem.secondary(
                        self.document,
                        &format!("collector.{other}"),
                        "the other",
                    ));
                }
            }
        }
    }

    fn flows(&self, problems: &mut Vec<Problem>) {
        for (index, flow) in self.spec.flow.iter().enumerate() {
            let path = |key: &str| format!("flow.{index}.{key}");
            for (item, name) in flow.collectors.iter().enumerate() {
                if !self.spec.collector.iter().any(|collector| collector.name == *name) {
                    let names = self.spec.collector.iter().map(|collector| collector.name.as_str());
                    let message = format!("no [[collector]] is called `{name}`");
                    problems.push(
                        self.document
                            .problem(&path(&format!("collectors.{item}")), message)
                            .near(name, names),
                    );
                }
            }
            if let (Some(a), Some(b)) = (flow.source_ip, flow.destination_ip)
                && a.address.is_ipv4() != b.address.is_ipv4()
            {
                let problem =
                    self.document.problem(&path("destination_ip"), "one address is IPv4, the other IPv6");
                problems.push(problem.secondary(self.document, &path("source_ip"), "the other"));
            }
            self.flow_fits_collectors(index, flow, problems);
            let has_ports = flow.source_port.is_some() || flow.destination_port.is_some();
            if let Some(protocol) = flow.protocol
                && has_ports
                && ![6, 17].contains(&protocol.0)
            {
                let message = format!("protocol {} has no ports; only tcp and udp have", protocol.0);
                problems.push(self.document.problem(&path("protocol"), message));
            }
            let four = flow.source_ip.or(flow.destination_ip).map(|ip| ip.address.is_ipv4());
            let wrong =
                matches!((flow.protocol.map(|p| p.0), four), (Some(1), Some(false)) | (Some(58), Some(true)));
            if wrong {
                let message = "icmp goes with IPv4, icmpv6 with IPv6";
                problems.push(self.document.problem(&path("protocol"), message));
            }
        }
    }

    /// Reports a flow that matches no collector's addresses.
    fn flow_fits_collectors(&self, index: usize, flow: &FlowSpec, problems: &mut Vec<Problem>) {
        let Some(wanted) = flow.destination_ip.or(flow.source_ip) else { return };
        let meant = |collector: &&CollectorSpec| {
            flow.collectors.is_empty() || flow.collectors.contains(&collector.name)
        };
        let fits = |collector: &CollectorSpec| match (collector.ip, flow.destination_ip) {
            (Some(ip), Some(destination)) => overlap(ip, destination),
            (Some(ip), None) => ip.address.is_ipv4() == wanted.address.is_ipv4(),
            (None, _) => true,
        };
        let mut collectors = self.spec.collector.iter().filter(meant).peekable();
        if collectors.peek().is_some() && !collectors.any(fits) {
            let key = if flow.destination_ip.is_some() { "destination_ip" } else { "source_ip" };
            let message = format!("no collector of this flow can receive frames with {wanted}");
            problems.push(self.document.problem(&format!("flow.{index}.{key}"), message));
        }
    }

    fn limits(&self, problems: &mut Vec<Problem>) {
        let openflow = &self.spec.openflow;
        self.is_word("openflow.bridge", &openflow.bridge, problems);
        if openflow.table > TABLE_MAX {
            let message = format!("a table has a number from 0 to {TABLE_MAX}, not {}", openflow.table);
            problems.push(self.document.problem("openflow.table", message));
        }
        let largest = u16::MAX - STAGES_ABOVE;
        if !(1..=largest).contains(&openflow.priority) {
            let message = format!("the priority lies between 1 and {largest}, not {}", openflow.priority);
            problems.push(self.document.problem("openflow.priority", message));
        }
        let last = u64::from(openflow.group) + (self.spec.collector.len() as u64).saturating_sub(1);
        if openflow.failover && last > GROUP_MAX {
            let message = format!("groups have numbers up to {GROUP_MAX}, not {last} for the last one");
            problems.push(self.document.problem("openflow.group", message));
        }
        if openflow.cookie == 0 {
            let help = "0 is the default of other controllers, and our rules are replaced and removed by their cookie";
            problems.push(self.document.problem("openflow.cookie", "the cookie must not be 0").advise(help));
        }
    }
}

fn same_frames(a: &CollectorSpec, b: &CollectorSpec) -> bool {
    let macs = match (a.mac, b.mac) {
        (Some(a), Some(b)) => (a.address.to_u64() ^ b.address.to_u64()) & a.mask() & b.mask() == 0,
        _ => true,
    };
    let ips = match (a.ip, b.ip) {
        (Some(a), Some(b)) => overlap(a, b),
        _ => true,
    };
    macs && ips
}
