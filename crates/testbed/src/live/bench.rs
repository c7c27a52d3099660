//! A scenario's network on this machine: namespaces, links, running switches.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fanin_scenario::Scenario;
use fanin_units::Rate;
use thiserror::Error;

use super::switch_process::{SwitchError, SwitchProcess};
use super::transport::{self, Techniques};
use super::{LinkEnd, LiveNetwork, LiveRefusal, Part, SwitchWatch, configure, hosts};
use crate::{
    BuildError, InterfaceAddress, Lab, LabNode, LabPlan, LedgerError, Namespace, NamespaceRoute, Neighbour,
    NodeName, Setting, VethPair, VethPort,
};

/// All hosts are in one IP network, without a router between them.
const PREFIX: u8 = 16;
/// The first device of a host. This device has the address of a host with several links, and is the device that a capture
/// reads.
const DEVICE: &str = "eth0";

/// Rate from which a link is not shaped: hosts of this machine cannot exceed it.
const UNPACED_FROM: Rate = Rate::new(10_000_000_000);
/// Real-time priorities (sched(7)): switches run before hosts, and both before all other processes. The kernel still
/// leaves a twentieth of the time to other processes.
const SWITCH_PRIORITY: i32 = 2;
const HOST_PRIORITY: i32 = 1;

/// A running network. Dropping the value ends the switches and removes everything.
#[derive(Debug)]
pub struct Bench {
    network: LiveNetwork,
    switches: Vec<SwitchProcess>,
    // Dropped after the switches, which run inside.
    lab: Lab,
    techniques: Techniques,
    built_in: Duration,
}

/// Errors of building a network; all parts of it are then removed.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The scenario has a setting that cannot be built.
    #[error(transparent)]
    Refused(#[from] LiveRefusal),
    /// The network cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The remains of an earlier run cannot be removed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A switch does not run.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A technique's program does not load.
    #[cfg(feature = "bpf")]
    #[error(transparent)]
    Load(#[from] crate::bpf::LoadError),
    /// The stream that measures this machine's capacity failed.
    #[error("the calibration: {source}")]
    Stream {
        /// The system's error.
        source: io::Error,
    },
    /// M21TCP's program does not load.
    #[cfg(feature = "bpf")]
    #[error(transparent)]
    M21Hosts(#[from] crate::bpf::M21Error),
    /// The capture cannot start.
    #[error(transparent)]
    DeviceTap(#[from] crate::TapError),
    /// The link to capture does not end at a host.
    #[error(
        "`record.capture` is {given:?}; a live run captures frames that arrive at a host, such as \"tor->{host}\""
    )]
    NoLink {
        /// The link given.
        given: String,
        /// A host of this network.
        host: String,
    },
    /// A namespace of the network cannot be opened or entered.
    #[error(transparent)]
    Inside(#[from] crate::InsideError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl BenchError {
    /// Returns true if a privilege or a feature is missing; false if the scenario cannot run.
    pub const fn is_unsupported(&self) -> bool {
        matches!(self, Self::Refused(LiveRefusal::NoBpf { .. }) | Self::Build(BuildError::NotRoot))
    }
}

impl Bench {
    /// Builds the network of `scenario` and starts its switches, as processes of `program` (`fanin`); their files go into
    /// `folder`. The remains of dead runs are removed first. `own` is the delay of a switch of this machine
    /// ([`super::Capacity::one_way`]), by which the delays of ports are reduced.
    ///
    /// # Errors
    /// [`BenchError`].
    pub fn build(
        scenario: &Scenario,
        folder: &Path,
        program: &Path,
        own: fanin_units::Duration,
    ) -> Result<Self, BenchError> {
        let began = Instant::now();
        let mut network = LiveNetwork::of(scenario)?;
        network.own = own;
        network.notes.extend(transport::notes(scenario));
        let plan = plan(scenario, &network)?;
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| BenchError::File { path, source }
        };
        fs::create_dir_all(folder).map_err(file(folder))?;
        let mut files = Vec::new();
        for number in 0..network.switches.len() {
            let stem = network.switches[number].name.replace(':', "-");
            let (path, socket) = (folder.join(format!("{stem}.toml")), folder.join(format!("{stem}.socket")));
            let config = configure(scenario, &network, number, &socket)?;
            let text = toml::to_string(&config).map_err(|error| BenchError::File {
                path: path.clone(),
                source: io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
            fs::write(&path, text).map_err(file(&path))?;
            files.push((path, socket));
        }
        crate::clean()?;
        // Routes name the congestion control, so the program is loaded before them.
        let techniques = Techniques::load(&scenario.transport)?;
        let lab = Lab::build(&plan)?;
        let mut bench = Self { network, switches: Vec::new(), lab, techniques, built_in: Duration::ZERO };
        let hosts = bench.network.hosts.len();
        for host in &bench.lab.namespaces()[..hosts] {
            bench.techniques.add(host)?;
        }
        for (number, (path, socket)) in files.into_iter().enumerate() {
            let name = bench.network.switches[number].name.clone();
            let command = bench.inside(hosts + number, Command::new(program), Some(SWITCH_PRIORITY));
            bench.switches.push(SwitchProcess::start(name, command, &path, socket)?);
        }
        for switch in &mut bench.switches {
            switch.wait_ready()?;
        }
        bench.built_in = began.elapsed();
        Ok(bench)
    }

    /// Returns the mapped network.
    pub const fn network(&self) -> &LiveNetwork {
        &self.network
    }

    /// Returns the name of the run on this machine.
    pub const fn run(&self) -> &crate::RunName {
        self.lab.run()
    }

    /// Returns the hosts' M21TCP counters by name; empty without M21TCP.
    #[must_use]
    pub fn m21_figures(&self) -> Vec<(&'static str, u64)> {
        self.techniques.m21_figures()
    }

    /// Captures the frames that arrive over `link` (a name as in the simulator, `tor->collector:0`) at its host.
    ///
    /// # Errors
    /// If the link has no host, or the capture fails.
    pub fn capture(&self, link: &str, file: &Path) -> Result<crate::DeviceTap, BenchError> {
        let wanted = link.rsplit("->").next().unwrap_or_default().trim();
        let Some(place) = self.network.hosts.iter().position(|host| host.name == wanted) else {
            let hosts = &self.network.hosts;
            let host = hosts.iter().find(|host| host.part.is_collector()).map(|host| host.name.clone());
            return Err(BenchError::NoLink { given: link.to_owned(), host: host.unwrap_or_default() });
        };
        let tap = self.lab.namespaces()[place].run(|| crate::DeviceTap::start(DEVICE, file))??;
        tap.choose_all();
        Ok(tap)
    }

    /// Returns the duration of the build.
    pub const fn built_in(&self) -> Duration {
        self.built_in
    }

    /// Watches the switches from now on.
    ///
    /// # Errors
    /// If a switch does not answer.
    pub fn watch(&self, scenario: &Scenario) -> Result<SwitchWatch, SwitchError> {
        let hosts = hosts::numbers(&self.lab.namespaces()[..self.network.hosts.len()]);
        SwitchWatch::start(&self.network, &self.switches, hosts, scenario)
    }

    /// Returns the namespace of a host.
    ///
    /// # Panics
    /// If the network has no host with this part.
    pub fn namespace(&self, part: Part) -> &Namespace {
        let place = self.network.hosts.iter().position(|host| host.part == part);
        &self.lab.namespaces()[place.expect("a host of this network")]
    }

    /// Makes a command run on the host of `part`.
    ///
    /// # Panics
    /// If the network has no host with this part.
    pub fn place(&self, part: Part, command: Command) -> Command {
        let place = self.network.hosts.iter().position(|host| host.part == part);
        // Senders and aggregators mostly wait for the network; the roles of event building also compute.
        let priority = matches!(part, Part::Barrier(_)).then_some(HOST_PRIORITY);
        self.inside(place.expect("a host of this network"), command, priority)
    }

    fn inside(&self, place: usize, mut command: Command, priority: Option<i32>) -> Command {
        let namespace: OwnedFd =
            self.lab.namespaces()[place].as_fd().try_clone_to_owned().expect("a descriptor is left");
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                rustix::thread::move_into_link_name_space(
                    namespace.as_fd(),
                    Some(rustix::thread::LinkNameSpaceType::Network),
                )?;
                // No process inside outlives the run, even a killed run.
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                if let Some(priority) = priority {
                    let parameters = libc::sched_param { sched_priority: priority };
                    // Without the privilege the process has an ordinary priority; its delay then shows in the
                    // measurement.
                    libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters);
                }
                Ok(())
            });
        }
        command
    }

    /// Ends the switches and removes the network.
    ///
    /// # Errors
    /// If a part cannot be removed.
    pub fn remove(mut self) -> Result<(), BenchError> {
        self.switches.clear();
        Ok(self.lab.remove()?)
    }
}

/// Returns the name of a host's device.
fn device(link: usize) -> String {
    format!("eth{link}")
}

/// Plans the namespaces and links of a network: hosts first, then switches.
fn plan(scenario: &Scenario, network: &LiveNetwork) -> Result<LabPlan, BenchError> {
    let transport = &scenario.transport;
    let settings = transport::settings(transport);
    let options = transport::route_options(transport)?;
    let mut plan = LabPlan::default();
    let node =
        |name: &str| LabNode::new(NodeName::new(&name.replace(':', "-")).expect("letters, digits, a hyphen"));
    for (place, host) in network.hosts.iter().enumerate() {
        let peers = network.peers_of(place);
        let out = |peer: usize| network.paths.paths[&(place, peer)].out;
        let neighbours = peers.iter().map(|&peer| Neighbour {
            address: network.hosts[peer].address,
            // Frames to this host arrive by this device.
            mac: network.hosts[peer].mac(network.paths.paths[&(place, peer)].into),
            device: device(out(peer)),
        });
        let route = |to: String, link: usize| NamespaceRoute {
            to,
            device: device(link),
            options: [vec!["src".to_owned(), host.address.to_string()], options.clone()].concat(),
        };
        let mut settings = settings.clone();
        let routes = if host.links.len() == 1 {
            vec![route(format!("10.91.0.0/{PREFIX}"), 0)]
        } else {
            // Frames that arrive by one device may leave by another (rp_filter, RFC 3704).
            settings.extend(["all", "default"].map(|which| Setting {
                key: format!("net.ipv4.conf.{which}.rp_filter"),
                value: "0".to_owned(),
            }));
            peers
                .iter()
                .map(|&peer| route(format!("{}/32", network.hosts[peer].address), out(peer)))
                .collect()
        };
        plan.nodes.push(LabNode { settings, routes, neighbours: neighbours.collect(), ..node(&host.name) });
    }
    let quiet = ["all", "default"]
        .map(|which| Setting { key: format!("net.ipv6.conf.{which}.disable_ipv6"), value: "1".to_owned() });
    for switch in &network.switches {
        plan.nodes.push(LabNode { settings: quiet.to_vec(), ..node(&switch.name) });
    }
    let hosts = network.hosts.len();
    let mtu = u32::try_from(transport.mtu.get()).unwrap_or(u32::MAX);
    let port_of = |switch: usize, link: usize| {
        let place = network.ports_of(switch).iter().position(|(other, _)| *other == link);
        VethPort::new(hosts + switch, &format!("p{}", place.expect("a port of this switch")))
    };
    for (place, link) in network.links.iter().enumerate() {
        let a = match link.a {
            LinkEnd::Host(host) => {
                let host_node = &network.hosts[host];
                let number =
                    host_node.links.iter().position(|&own| own == place).expect("a link of the host");
                // With several devices no device has the whole network; the address belongs to the host (RFC 1122, weak
                // model).
                let prefix = if host_node.links.len() == 1 { PREFIX } else { 32 };
                VethPort {
                    address: (number == 0).then_some(InterfaceAddress { address: host_node.address, prefix }),
                    mac: Some(host_node.mac(number)),
                    rate: (link.rate < UNPACED_FROM).then_some(link.rate.get()),
                    ..VethPort::new(host, &device(number))
                }
            }
            LinkEnd::Switch(switch) => port_of(switch, place),
        };
        plan.links.push(VethPair { a, b: port_of(link.b, place), mtu });
    }
    Ok(plan)
}
