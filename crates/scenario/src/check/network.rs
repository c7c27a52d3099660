//! The network: links, ports, and what each topology needs.

use fanin_units::{Duration, Rate};

use super::ScenarioCheck;
use crate::types::*;

/// The most readouts and collectors of a network. The simulator and the live systems number far fewer.
pub(crate) const HOSTS_MAX: u64 = 1_000_000;
/// The most links of a network.
pub(crate) const LINKS_MAX: u64 = 2_000_000;

impl ScenarioCheck<'_> {
    pub(super) fn links(&mut self) {
        let s = self.scenario;
        let links = [
            ("link", &s.link),
            ("readout.link", &s.readout.link),
            ("uplink", &s.uplink),
            ("supervisor.link", &s.supervisor.link),
            ("logger.link", &s.logger.link),
            ("network.hybrid.link", &s.network.hybrid.link),
        ];
        for (name, link) in links {
            if link.rate < Rate::new(1_000) || link.rate > Rate::new(10_000_000_000_000) {
                self.fail(
                    &format!("{name}.rate"),
                    format!("a link cannot have a rate of {}", link.rate),
                    "not from 1 kb/s to 10 Tb/s",
                    None,
                    "give a rate such as \"10 Gb/s\"".to_owned(),
                );
            }
            if link.delay > Duration::from_secs(1) {
                self.fail(
                    &format!("{name}.delay"),
                    format!("a link cannot have a delay of {}", link.delay),
                    "above 1 s",
                    None,
                    "give the delay in one direction, such as \"1 us\"".to_owned(),
                );
            }
        }
    }

    /// A network is built as a graph by every command: it has at most [`HOSTS_MAX`] hosts and [`LINKS_MAX`] links.
    pub(super) fn size_of_network(&mut self) {
        let s = self.scenario;
        let (sources, source_key) = match s.is_barrier() {
            true => (u64::from(s.workload.senders), "workload.senders"),
            false => (u64::from(s.readout.hosts), "readout.hosts"),
        };
        let (collectors, n) = (s.collectors_total(), &s.network);
        let hosts = sources + collectors;
        if hosts > HOSTS_MAX {
            let (key, what) = if collectors > sources {
                let what = "collectors.racks × collectors.hosts_per_rack";
                ("collectors.hosts_per_rack", format!("{what} = {collectors} collectors"))
            } else {
                (source_key, format!("{source_key} = {sources}"))
            };
            self.fail(
                key,
                format!("a network of {hosts} hosts is too large: {what}"),
                &format!("more than {HOSTS_MAX} hosts"),
                Some(("collectors.racks", "racks")),
                format!("give at most {HOSTS_MAX} readouts and collectors together"),
            );
            return;
        }
        let racks = u64::from(s.collectors.racks);
        let (cores, planes) = (u64::from(n.cores), u64::from(n.leaf_spine.planes));
        let to_sources = sources * u64::from(s.readout.links_per_host);
        let (links, keys) = match n.topology {
            Topology::Star => (to_sources, "readout.links_per_host"),
            Topology::Racks | Topology::Hybrid => (
                to_sources + racks * cores * u64::from(n.uplinks_per_core) + sources,
                "network.uplinks_per_core",
            ),
            Topology::LeafSpine => {
                let spines = u64::from(n.leaf_spine.pods) * u64::from(n.leaf_spine.spines);
                (planes * (spines + racks + sources), "network.leaf_spine.planes")
            }
        };
        let links = links + collectors;
        if links > LINKS_MAX {
            self.fail(
                keys,
                format!("a network of {links} links is too large"),
                &format!("more than {LINKS_MAX} links"),
                Some(("collectors.racks", "racks")),
                format!("give fewer racks, readouts, or links of each: at most {LINKS_MAX} links together"),
            );
        }
    }

    pub(super) fn network(&mut self) {
        let s = self.scenario;
        let per_rack = u64::from(s.collectors.hosts_per_rack);
        match s.network.topology {
            Topology::Star => {
                let hosts = if s.is_barrier() {
                    u64::from(s.workload.senders) + 1
                } else if s.workload.kind == WorkloadKind::AllToAll {
                    u64::from(s.readout.hosts)
                } else {
                    u64::from(s.readout.hosts) + s.collectors_total()
                };
                self.ports("tor", hosts, "hosts");
                if s.collectors.racks != 1 && !s.is_barrier() {
                    self.fail(
                        "collectors.racks",
                        format!("a star has one switch, not {} racks", s.collectors.racks),
                        "racks",
                        Some(("network.topology", "a star")),
                        "set network.topology = \"racks\", or one rack".to_owned(),
                    );
                }
            }
            Topology::Racks | Topology::Hybrid => {
                let uplinks = u64::from(s.network.cores) * u64::from(s.network.uplinks_per_core);
                self.ports("tor", per_rack + uplinks, "collectors and uplinks");
                let group = s.network.readouts_per_group;
                let groups = if group == 0 { s.readout.hosts } else { s.readout.hosts.div_ceil(group) };
                let core = u64::from(groups)
                    + u64::from(s.collectors.racks) * u64::from(s.network.uplinks_per_core)
                    + u64::from(s.network.hybrid.host_ports);
                self.ports("core", core, "racks and readout groups");
                if s.network.topology == Topology::Hybrid && s.network.cores != 1 {
                    self.fail(
                        "network.cores",
                        format!("a hybrid network has one core switch, not {}", s.network.cores),
                        "cores",
                        Some(("network.topology", "a hybrid network")),
                        "set network.cores = 1".to_owned(),
                    );
                }
                if s.network.hybrid.host_ports > 4 {
                    let message =
                        format!("a hybrid network cannot have {} host ports", s.network.hybrid.host_ports);
                    let path = "network.hybrid.host_ports";
                    self.fail(path, message, "more than 4", None, "give 0 to 4".to_owned());
                }
                if s.network.topology == Topology::Racks
                    && s.network.readouts_per_group > 0
                    && s.network.cores > s.network.readouts_per_group
                {
                    self.fail(
                        "network.cores",
                        format!(
                            "a group of {group} readouts has {} cores; the maximum is one for each readout",
                            s.network.cores
                        ),
                        "more cores than readouts in a group",
                        Some(("network.readouts_per_group", "readouts in a group")),
                        "give fewer cores, or larger groups".to_owned(),
                    );
                }
            }
            Topology::LeafSpine => {
                let l = &s.network.leaf_spine;
                // Supervisor and loggers are joined to the leaf switches of the first pod.
                let services = 1 + u64::from(s.logger.hosts);
                let hosts = u64::from(s.readout.hosts.div_ceil(l.pods.max(1)))
                    + u64::from(s.collectors.racks.div_ceil(l.pods.max(1)))
                    + services;
                let leaf = hosts + u64::from(l.spines);
                if s.readout.links_per_host != 1 {
                    self.fail(
                        "readout.links_per_host",
                        "a host has one link into each plane".to_owned(),
                        "more than one",
                        Some(("network.leaf_spine.planes", "planes")),
                        "give as many planes as a host has links".to_owned(),
                    );
                }
                if leaf > u64::from(l.ports) {
                    self.fail(
                        "network.leaf_spine.pods",
                        format!(
                            "a pod of {hosts} readouts, racks, supervisor and loggers and {} spines needs {leaf} ports, but a \
                             switch has {}",
                            l.spines, l.ports
                        ),
                        "pods",
                        Some(("network.leaf_spine.ports", "ports of each switch")),
                        "give more pods, fewer spines, or switches with more ports".to_owned(),
                    );
                }
                if l.pods > l.ports {
                    self.fail(
                        "network.leaf_spine.pods",
                        format!("{} pods need as many ports on each spine, which has {}", l.pods, l.ports),
                        "one port of each spine for each pod",
                        Some(("network.leaf_spine.ports", "ports of each switch")),
                        format!("give at most {} pods, or more planes", l.ports),
                    );
                }
            }
        }
    }

    /// Checks that the switches `name` have enough ports; zero stands for enough.
    fn ports(&mut self, name: &str, needed: u64, what: &str) {
        let ports = match name {
            "tor" => self.scenario.tor.ports,
            _ => self.scenario.core.ports,
        };
        if ports != 0 && u64::from(ports) < needed {
            self.fail(
                &format!("{name}.ports"),
                format!("{needed} {what} need more than the {ports} ports of a switch"),
                "too few",
                None,
                format!("give at least {needed}"),
            );
        }
    }
}
