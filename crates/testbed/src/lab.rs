//! Builds a plan as a network, and removes it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanin_units::wire;
use rustix::thread::{CapabilitySet, capabilities};
use thiserror::Error;

use crate::inside::InsideError;
use crate::ip;
use crate::offload::transmit_checksum_off;
use crate::{LabNode, LabPlan, Ledger, LedgerError, Namespace, Neighbour, RunName, Setting, VethPort};

/// Number of namespaces that are set up concurrently. Most of the time goes into starting `ip` and `tc`.
const WORKERS: usize = 4;

/// A network of namespaces; dropping the value removes the whole network.
#[derive(Debug)]
pub struct Lab {
    ledger: Ledger,
    namespaces: Vec<Namespace>,
    removed: bool,
}

/// Errors of building a network; the built part is removed again.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The process lacks CAP_SYS_ADMIN or CAP_NET_ADMIN.
    #[error("network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN)")]
    NotRoot,
    /// The plan itself is wrong.
    #[error(transparent)]
    Plan(#[from] LabPlanError),
    /// A command is missing or does not run.
    #[error("cannot run the command {name} (Debian package {package}): {source}")]
    Command {
        /// Name of the command.
        name: &'static str,
        /// The Debian package of the command.
        package: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// `ip` or `tc` refused a line.
    #[error("{program} refused `{line}`{}: {said}", namespace.as_ref().map(|name| format!(" in {name}")).unwrap_or_default())]
    Refused {
        /// `ip` or `tc`.
        program: &'static str,
        /// The namespace; `None` outside of all namespaces.
        namespace: Option<String>,
        /// The line of the batch.
        line: String,
        /// The message of the program.
        said: String,
    },
    /// The kernel refused a setting.
    #[error("{namespace}: cannot set {key} = {value}: {source}")]
    Setting {
        /// Name of the namespace.
        namespace: String,
        /// The key, as `sysctl` writes it.
        key: String,
        /// The value that was refused.
        value: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A device's offload cannot be switched off.
    #[error("{namespace}: cannot switch off the checksum offload of {device}: {source}")]
    Offload {
        /// Name of the namespace.
        namespace: String,
        /// Name of the device.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A new namespace cannot be opened or entered.
    #[error(transparent)]
    Inside(#[from] InsideError),
    /// The ledger of the run failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Faults of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LabPlanError {
    /// Two nodes have the same name.
    #[error("two nodes are named {name}")]
    SameName {
        /// The name that two nodes have.
        name: String,
    },
    /// A link's end names a missing node.
    #[error("a link ends at node {given}, but the plan has {nodes} nodes")]
    NoNode {
        /// The index given.
        given: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// A device name is invalid for the kernel, or occurs twice in a node.
    #[error(
        "{node}: no device can be called {given:?} there: 1 to 15 of a-z, 0-9, - and ., once a node, not lo"
    )]
    BadDevice {
        /// Name of the node.
        node: String,
        /// The name of the device.
        given: String,
    },
    /// The MTU is outside of 68 to 9000 bytes.
    #[error("a link cannot have an MTU of {given}: 68 to 9000 bytes")]
    BadMtu {
        /// The MTU given.
        given: u32,
    },
    /// A word of a route has a character that would split it for `ip`.
    #[error("{node}: {given:?} is not one word of a route")]
    BadWord {
        /// Name of the node.
        node: String,
        /// The word that was refused.
        given: String,
    },
    /// A setting is outside of `net.`: it belongs to the whole machine, not to the namespace.
    #[error("{key} is not a setting of a network namespace: it would apply to the whole machine")]
    NotOurs {
        /// The key that was refused.
        key: String,
    },
}

impl Lab {
    /// Builds all of `plan`: namespaces, links, addresses, kernel settings, routes. Every device is up, loopback too, with
    /// its transmit checksum offload off.
    ///
    /// # Errors
    /// [`BuildError`]; the network is then removed.
    pub fn build(plan: &LabPlan) -> Result<Self, BuildError> {
        check_plan(plan)?;
        let needed = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        if !capabilities(None).is_ok_and(|held| held.effective.contains(needed)) {
            return Err(BuildError::NotRoot);
        }
        let run = RunName::new();
        let names: Vec<_> = plan.nodes.iter().map(|node| run.namespace(&node.name)).collect();
        let ledger = Ledger::new(run, names)?;
        ledger.write()?;
        // A failure from here on drops the lab, which removes the parts built so far.
        let mut lab = Self { ledger, namespaces: Vec::new(), removed: false };
        lab.create(plan)?;
        lab.furnish(plan)?;
        Ok(lab)
    }

    /// Returns the name of the run.
    #[must_use]
    pub const fn run(&self) -> &RunName {
        &self.ledger.run
    }

    /// Returns the namespaces, in the order of [`LabPlan::nodes`].
    #[must_use]
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// Kills every process inside, and removes the network.
    ///
    /// # Errors
    /// [`LedgerError`]: [`crate::leftovers`] finds the remaining parts after the end of this process.
    pub fn remove(mut self) -> Result<(), LedgerError> {
        self.removed = true;
        self.namespaces.clear();
        self.ledger.work_off().map(|_| ())
    }

    fn create(&mut self, plan: &LabPlan) -> Result<(), BuildError> {
        let names = &self.ledger.namespaces;
        let mut lines: Vec<_> = names.iter().map(|name| format!("netns add {name}")).collect();
        // Both ends are created inside: no device is ever in the machine's own namespace.
        lines.extend(plan.links.iter().map(|link| {
            let end = |port: &VethPort| format!("name {} netns {}", port.device, names[port.node]);
            let (a, b, mtu) = (end(&link.a), end(&link.b), link.mtu);
            format!("link add {a} mtu {mtu} type veth peer {b} mtu {mtu}")
        }));
        ip::batch(None, &lines)?;
        for name in names {
            self.namespaces.push(Namespace::open(name)?);
        }
        Ok(())
    }

    fn furnish(&self, plan: &LabPlan) -> Result<(), BuildError> {
        let mut ports = vec![Vec::new(); plan.nodes.len()];
        for (port, mtu) in plan.links.iter().flat_map(|link| [(&link.a, link.mtu), (&link.b, link.mtu)]) {
            ports[port.node].push((port, mtu));
        }
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(node) = plan.nodes.get(place) else { return Ok(()) };
                let done = furnish_one(node, &ports[place], &self.namespaces[place]);
                if done.is_err() {
                    // The other threads finish their current namespace.
                    next.store(plan.nodes.len(), Ordering::Relaxed);
                    return done;
                }
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS.min(plan.nodes.len())).map(|_| scope.spawn(work)).collect();
            let done = workers.into_iter().map(|worker| worker.join().expect("no worker panics"));
            done.fold(Ok(()), Result::and)
        })
    }
}

/// Sets up one namespace: its devices, addresses, settings, routes.
fn furnish_one(node: &LabNode, ports: &[(&VethPort, u32)], namespace: &Namespace) -> Result<(), BuildError> {
    let name = namespace.name();
    // Settings come first, because new devices and sockets inherit them. Ports without an address need no neighbour
    // discovery of their own.
    namespace.run(|| write_settings(name, &node.settings))??;
    let mut lines = vec!["link set lo up".to_owned()];
    for (port, _) in ports {
        if let Some(at) = port.address {
            lines.push(format!("address add {}/{} dev {}", at.address, at.prefix, port.device));
        }
        if let Some(mac) = port.mac {
            lines.push(format!("link set {} address {}", port.device, text_of(mac)));
        }
        lines.push(format!("link set {} up", port.device));
    }
    let neighbours = node.neighbours.iter();
    lines.extend(neighbours.map(|Neighbour { address, mac, device }| {
        format!("neighbour replace {address} lladdr {} dev {device} nud permanent", text_of(*mac))
    }));
    for route in &node.routes {
        lines.push(format!("route replace {} dev {} {}", route.to, route.device, route.options.join(" ")));
    }
    namespace.run(|| {
        for (port, _) in ports {
            transmit_checksum_off(&port.device).map_err(|source| BuildError::Offload {
                namespace: name.into(),
                device: port.device.clone(),
                source,
            })?;
        }
        Ok::<(), BuildError>(())
    })??;
    ip::batch(Some(name), &lines)?;
    let limited = ports.iter().filter_map(|(port, mtu)| Some(bucket(&port.device, port.rate?, *mtu)));
    ip::shape(name, &limited.collect::<Vec<_>>())
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.removed {
            self.namespaces.clear();
            // A drop cannot report an error; the ledger keeps the remaining entries.
            let _ = self.ledger.work_off();
        }
    }
}

/// Returns the `tc` line of a token bucket on `device`, with `rate` in bit/s. A burst of two full frames spaces frames as on a
/// wire.
fn bucket(device: &str, rate: u64, mtu: u32) -> String {
    let burst = 2 * (mtu + wire::ETHERNET_LINK);
    format!(
        "qdisc replace dev {device} root tbf rate {rate}bit burst {burst} limit 100000000 mpu {} overhead {}",
        wire::ETHERNET_WIRE_MIN,
        wire::ETHERNET_UNCOUNTED
    )
}

fn text_of(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn check_plan(plan: &LabPlan) -> Result<(), LabPlanError> {
    let mut names = HashSet::new();
    if let Some(node) = plan.nodes.iter().find(|node| !names.insert(&node.name)) {
        return Err(LabPlanError::SameName { name: node.name.to_string() });
    }
    let mut devices = HashSet::new();
    for link in &plan.links {
        if !(68..=9000).contains(&link.mtu) {
            return Err(LabPlanError::BadMtu { given: link.mtu });
        }
        for port in [&link.a, &link.b] {
            let nodes = plan.nodes.len();
            let node = plan.nodes.get(port.node).ok_or(LabPlanError::NoNode { given: port.node, nodes })?;
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
            let device = port.device.as_str();
            let good = (1..=15).contains(&device.len())
                && device.bytes().all(plain)
                && !["lo", ".", ".."].contains(&device);
            if !good || device.starts_with('-') || !devices.insert((port.node, device)) {
                return Err(LabPlanError::BadDevice { node: node.name.to_string(), given: device.into() });
            }
        }
    }
    for node in &plan.nodes {
        let words =
            node.routes.iter().flat_map(|route| [&route.to, &route.device].into_iter().chain(&route.options));
        let split = |word: &&String| {
            word.is_empty() || word.contains(|c: char| c.is_whitespace() || "#\"\\".contains(c))
        };
        if let Some(word) = words.into_iter().find(split) {
            return Err(LabPlanError::BadWord { node: node.name.to_string(), given: word.clone() });
        }
    }
    let mut keys = plan.nodes.iter().flat_map(|node| &node.settings).map(|setting| &setting.key);
    match keys.find(|key| !key.starts_with("net.") || key.contains('/') || key.contains("..")) {
        Some(key) => Err(LabPlanError::NotOurs { key: key.clone() }),
        None => Ok(()),
    }
}

/// Writes kernel settings. Runs on a thread that is inside: `/proc/sys/net` shows the namespace of the opening thread.
fn write_settings(namespace: &str, settings: &[Setting]) -> Result<(), BuildError> {
    for Setting { key, value } in settings {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        fs::write(path, value).map_err(|source| BuildError::Setting {
            namespace: namespace.into(),
            key: key.clone(),
            value: value.clone(),
            source,
        })?;
    }
    Ok(())
}
