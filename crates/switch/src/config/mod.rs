//! The configuration: a TOML file, parsed and checked once. Each problem names line and column.

mod limits;
mod machine;
mod mistakes;
mod port_spec;
mod ring_spec;
mod switch_spec;

use std::collections::{HashMap, HashSet};
use std::path::Path;

pub use fanin_queueing::{Buffering, Depth, NotCapable, PoolCharge, RingService};
use fanin_scenario::{Document, Errors, Problem, Warnings};
pub use fanin_scenario::{Ecn, EcnMode};
use fanin_units::{Bytes, wire};

pub use limits::*;
pub use mistakes::Mistake;
pub use port_spec::*;
pub use ring_spec::*;
pub use switch_spec::*;

/// An example configuration.
pub const EXAMPLE: &str = include_str!("example.toml");

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// The configuration that was read and checked.
    pub config: Config,
    /// Settings that are valid but probably unintended.
    pub warnings: Warnings,
}

/// Reads and checks a file.
///
/// # Errors
/// Every problem, with line, column and advice.
pub fn load(path: &Path) -> Result<LoadedConfig, Errors> {
    check(&Document::load(path)?)
}

/// Loads as [`load`] does, and checks that this machine has the file's cores and interfaces.
///
/// # Errors
/// As for [`load`].
pub fn load_for_this_machine(path: &Path) -> Result<LoadedConfig, Errors> {
    let document = Document::load(path)?;
    let loaded = check(&document)?;
    let problems = machine::problems(&loaded.config, &document);
    if problems.is_empty() { Ok(loaded) } else { Err(Errors::from(problems)) }
}

/// Loads as [`load`] does, from text. Messages name the file `name`.
///
/// # Errors
/// As for [`load`].
pub fn load_text(name: &str, text: &str) -> Result<LoadedConfig, Errors> {
    check(&Document::parse(name, text)?)
}

fn check(document: &Document) -> Result<LoadedConfig, Errors> {
    if document.has("buffering") {
        let problem = document.problem("buffering", "unknown section `buffering`").advise(
            "give `buffering = \"shared\"`, `buffer`, `port_limit`, `alpha`, `frame_overhead` and `cell` in [switch]",
        );
        return Err(Errors::from(vec![problem]));
    }
    let signals = ecn_problems(document);
    if !signals.is_empty() {
        return Err(Errors::from(signals));
    }
    let config: Config = document.read()?;
    let mut problems = config.problems(document);
    if config.port.is_empty() {
        problems.push(
            document
                .problem("port", "a switch needs ports, and this file has none")
                .advise("add a section [[port]] with name and interface for each"),
        );
    }
    if let Some(dpdk) = config.port.iter().position(|port| port.dpdk.is_some())
        && let Some(kernel) = config.port.iter().position(|port| port.interface.is_some())
    {
        problems.push(
            document
                .problem(&format!("port.{dpdk}.dpdk"), "frames cannot move between DPDK's memory and AF_XDP's")
                .secondary(document, &format!("port.{kernel}.interface"), "this port uses the kernel")
                .advise("use one kind for all ports; DPDK takes an interface of the kernel's as --vdev=net_af_xdp0,iface=eth0"),
        );
    }
    for (index, port) in config.port.iter().enumerate() {
        let path = format!("port.{index}");
        match (&port.interface, &port.dpdk) {
            (None, None) => problems.push(
                document
                    .problem(&path, format!("port `{}` has no device", port.name))
                    .advise("give it `interface = \"eth0\"`, or `dpdk = \"0000:03:00.0\"`"),
            ),
            (Some(_), Some(_)) => problems.push(
                document.problem(&format!("{path}.dpdk"), "a port is one device, not two").secondary(
                    document,
                    &format!("{path}.interface"),
                    "the other",
                ),
            ),
            _ => {}
        }
    }
    if !problems.is_empty() {
        return Err(Errors::from(problems));
    }
    let warnings = Warnings::from(config.warnings(document));
    Ok(LoadedConfig { config, warnings })
}

/// Congestion signals without a `mode` would be off, whatever their other keys say.
pub(crate) const ECN_WITHOUT_MODE: &str = "`ecn` has no `mode`, and nothing would be marked";
/// Advice on a correct `ecn`.
pub(crate) const ECN_EXAMPLE: &str =
    "write ecn = { mode = \"threshold\", threshold = \"20 packets\" }, or a threshold such as \"30 kB\"";

/// Returns the problems of congestion signals that only the text shows: a missing `mode`, and the earlier key `mark`.
fn ecn_problems(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    for list in ["port", "ring"] {
        for element in (0..).map(|index| format!("{list}.{index}")).take_while(|path| document.has(path)) {
            let path = |key: &str| format!("{element}.{key}");
            if document.has(&path("mark")) {
                let problem = document.problem(&path("mark"), "unknown key `mark`: the key is `ecn`");
                problems.push(problem.advise(ECN_EXAMPLE));
            }
            if document.has(&path("ecn")) && !document.has(&path("ecn.mode")) {
                problems.push(document.problem(&path("ecn"), ECN_WITHOUT_MODE).advise(ECN_EXAMPLE));
            }
        }
    }
    problems
}

/// The place of the first use of each name.
type StationNames<'a> = HashMap<&'a str, String>;

impl Config {
    /// Checks a configuration from a program.
    ///
    /// # Errors
    /// Every problem.
    pub fn checked(self) -> Result<Self, Errors> {
        let nowhere = Document::parse("configuration", "")?;
        let problems = self.problems(&nowhere);
        if problems.is_empty() { Ok(self) } else { Err(Errors::from(problems)) }
    }

    /// Returns the number of workers, at least one.
    pub fn workers(&self) -> usize {
        self.switch.cores.len().max(1)
    }

    /// Returns the worker that serves a port: the configured one, or the port's number modulo the number of workers.
    ///
    /// # Panics
    /// If no port has this number.
    pub fn worker_of(&self, port: usize) -> usize {
        self.port[port].worker.map_or(port % self.workers(), usize::from)
    }

    /// Returns the worker of each port.
    pub(crate) fn owners(&self) -> Vec<u16> {
        (0..self.port.len()).map(|port| self.worker_of(port) as u16).collect()
    }

    /// Returns the number of the port with this name; `None` if no port has the name.
    pub fn port_index(&self, name: &str) -> Option<usize> {
        self.port.iter().position(|port| port.name == name)
    }

    /// Returns true if the switch separates VLANs.
    pub fn has_vlans(&self) -> bool {
        self.port.iter().any(|port| port.untagged.is_some() || !port.tagged.is_empty())
    }

    fn problems(&self, document: &Document) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |path: &str, mistakes: Vec<Mistake>| {
            problems.extend(mistakes.into_iter().map(|mistake| mistake.at(document, path)));
        };
        add("switch", self.switch.mistakes());
        add("control", self.control.mistakes());
        let workers = self.workers();
        for (index, port) in self.port.iter().enumerate() {
            add(&format!("port.{index}"), port.mistakes(workers, &self.switch));
        }
        for (index, ring) in self.ring.iter().enumerate() {
            let port = self.port_index(&ring.port).map(|port| &self.port[port]);
            add(&format!("ring.{index}"), ring.mistakes(&self.switch, port.is_some(), || self.port_names()));
        }
        let rings: HashSet<&str> = self.ring.iter().map(|ring| ring.name.as_str()).collect();
        for (index, rule) in self.rule.iter().enumerate() {
            let mistakes =
                rule.mistakes(|ring| rings.contains(ring), || self.port_names(), || self.ring_names());
            add(&format!("rule.{index}"), mistakes);
        }
        for (index, station) in self.station.iter().enumerate() {
            add(&format!("station.{index}"), station.mistakes(|| self.port_names()));
        }
        for (index, way) in self.way.iter().enumerate() {
            add(&format!("way.{index}"), way.mistakes(|| self.port_names()));
        }
        if self.port.len() > PORTS_MAX {
            let message = format!("{} ports; at most {PORTS_MAX} are supported", self.port.len());
            problems.push(document.problem("port", message));
        } else if !self.port.is_empty()
            && let Err(error) = self.layout().check()
        {
            problems.push(document.problem("switch.buffering", error.to_string()));
        }
        let mut stages = self.port.iter().enumerate().filter_map(|(index, port)| Some((index, port.m21?)));
        if let Some((first, stage)) = stages.next() {
            let same = |other: &M21Spec| M21Spec { buffer: stage.buffer, ..*other } == stage;
            if let Some((index, _)) = stages.find(|(_, other)| !same(other)) {
                problems.push(
                    document
                        .problem(
                            &format!("port.{index}.m21"),
                            "M21TCP stages of one switch differ in more than `buffer`",
                        )
                        .secondary(document, &format!("port.{first}.m21"), "the first"),
                );
            }
        }
        self.add_duplicates(document, &mut problems);
        problems
    }

    fn add_duplicates(&self, document: &Document, problems: &mut Vec<Problem>) {
        let mut check = |list: &str,
                         key: &str,
                         kinds: &str,
                         names: &mut dyn Iterator<Item = (usize, &str)>| {
            let mut seen: HashMap<String, String> = HashMap::new();
            for (index, name) in names {
                let path = format!("{list}.{index}.{key}");
                if let Some(first) = seen.get(name) {
                    let message = format!("two {kinds} `{name}`");
                    problems.push(document.problem(&path, message).secondary(document, first, "the first"));
                } else {
                    seen.insert(name.to_owned(), path);
                }
            }
        };
        let ports = &self.port;
        check("port", "name", "ports are named", &mut named(ports.iter().map(|port| port.name.as_str())));
        check("ring", "name", "rings are named", &mut named(self.ring.iter().map(|ring| ring.name.as_str())));
        check("rule", "name", "rules are named", &mut named(self.rule.iter().map(|rule| rule.name.as_str())));
        let interfaces =
            ports.iter().enumerate().filter_map(|(n, port)| Some((n, port.interface.as_deref()?)));
        check("port", "interface", "ports on the interface", &mut { interfaces });
        let devices = ports.iter().enumerate().filter_map(|(n, port)| Some((n, port.dpdk.as_deref()?)));
        check("port", "dpdk", "ports on the device", &mut { devices });
        let mut stations = StationNames::new();
        let texts: Vec<String> = self
            .station
            .iter()
            .map(|station| format!("{} in VLAN {}", station.mac, station.vlan.map_or(1, |vlan| vlan.get())))
            .collect();
        for (index, text) in texts.iter().enumerate() {
            if let Some(first) = stations.get(text.as_str()) {
                let message = format!("the station {text} has two ports");
                let path = format!("station.{index}.mac");
                problems.push(document.problem(&path, message).secondary(document, first, "the first"));
            }
            stations.insert(text, format!("station.{index}.mac"));
        }
        let mut ways = HashMap::new();
        for (index, way) in self.way.iter().enumerate() {
            let path = format!("way.{index}.mac");
            if let Some(first) = ways.insert((way.table, way.mac), path.clone()) {
                let message = format!("table {} has two ways to {}", way.table, way.mac);
                problems.push(document.problem(&path, message).secondary(document, &first, "the first"));
            }
        }
        let ports: HashMap<&str, &str> =
            self.ring.iter().map(|ring| (ring.name.as_str(), ring.port.as_str())).collect();
        let mut firsts: HashMap<RuleSpec, usize> = HashMap::new();
        for (index, rule) in self.rule.iter().enumerate() {
            let matched = rule.matched(|ring| ports.get(ring).map(|&port| port.to_owned()));
            let first = *firsts.entry(matched).or_insert(index);
            if first != index && self.rule[first].priority >= rule.priority {
                problems.push(
                    document
                        .problem(&format!("rule.{index}"), format!("rule `{}` never gets a frame", rule.name))
                        .secondary(
                            document,
                            &format!("rule.{first}"),
                            "this one matches the same, and goes first",
                        ),
                );
            }
        }
    }

    fn warnings(&self, document: &Document) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let frame =
            u64::from(crate::chunk::chunk_bytes(self.switch.mtu)) * crate::chunk::chunks_of(self.switch.mtu);
        let deep: u64 =
            self.ring.iter().map(|ring| ring.frames_held(self.switch.mtu).saturating_mul(frame)).sum();
        if deep > self.switch.memory.get() {
            warnings.push(
                document
                    .problem("switch.memory", "the rings can hold more than there is packet memory")
                    .label(format!("full rings take {}", Bytes::new(deep)))
                    .advise("frames beyond that are dropped and counted as `memory`: give more, or make rings smaller"),
            );
        }
        // A limit below a full frame is probably unintended.
        let full = Bytes::new(self.switch.mtu.get() + u64::from(wire::ETHERNET_HEADER));
        let mut small = |path: &str, buffer: Option<Bytes>| {
            if let Some(buffer) = buffer.filter(|&buffer| buffer < full) {
                warnings.push(
                    document
                        .problem(path, format!("full frames of {full} never fit into {buffer}"))
                        .advise("each is dropped and counted; give more, or a smaller `switch.mtu`"),
                );
            }
        };
        let SwitchSpec { buffering, buffer, port_limit, .. } = self.switch;
        let has_limit = buffering.has_limit();
        small("switch.buffer", has_limit.then_some(buffer));
        small("switch.port_limit", port_limit.filter(|_| has_limit));
        for (index, port) in self.port.iter().enumerate() {
            small(&format!("port.{index}.buffer"), port.buffer);
        }
        for (index, ring) in self.ring.iter().enumerate() {
            small(&format!("ring.{index}.bytes"), ring.bytes);
        }
        let used: HashSet<&str> = self.rule.iter().filter_map(|rule| rule.ring.as_deref()).collect();
        for (index, ring) in self.ring.iter().enumerate() {
            if !used.contains(ring.name.as_str()) {
                warnings.push(document.problem(
                    &format!("ring.{index}"),
                    format!("no rule sends frames to ring `{}`", ring.name),
                ));
            }
        }
        let ports = self.port.iter().enumerate().map(|(index, port)| (format!("port.{index}"), &port.ecn));
        let rings = self.ring.iter().enumerate().map(|(index, ring)| (format!("ring.{index}"), &ring.ecn));
        for (element, ecn) in ports.chain(rings) {
            warnings.extend(ecn.unread().map(|(key, why)| {
                let path = format!("{element}.ecn.{key}");
                document.problem(&path, format!("nothing reads `{path}`: {why}")).advise("leave it out")
            }));
        }
        if buffering != Buffering::Dedicated {
            for (index, _) in self.port.iter().enumerate().filter(|(_, port)| port.buffer.is_some()) {
                warnings.push(
                    document
                        .problem(&format!("port.{index}.buffer"), "nothing reads this `buffer`")
                        .advise("only `buffering = \"dedicated\"` gives each port memory of its own"),
                );
            }
        }
        warnings
    }

    fn port_names(&self) -> Vec<&str> {
        self.port.iter().map(|port| port.name.as_str()).collect()
    }

    fn ring_names(&self) -> Vec<&str> {
        self.ring.iter().map(|ring| ring.name.as_str()).collect()
    }
}

fn named<'a>(names: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (usize, &'a str)> {
    names.enumerate().filter(|(_, name)| !name.is_empty())
}
