//! The features of this machine's kernel that a live run can use.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{CapabilitySet, capabilities};

/// A feature that a live run may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Name of the feature.
    pub name: &'static str,
    /// The parts of Fanin that need the feature.
    pub needed_for: &'static str,
    /// The source that the check reads, such as a file or the process's capabilities.
    pub how: &'static str,
}

/// The result of the check for a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Present; the text has details, such as a version.
    There(String),
    /// Absent; the text has a remedy.
    Missing(String),
}

/// A feature, and the function that checks for it.
type FeatureRow = (Feature, fn() -> Availability);

const fn row(
    name: &'static str,
    needed_for: &'static str,
    how: &'static str,
    look: fn() -> Availability,
) -> FeatureRow {
    (Feature { name, needed_for, how }, look)
}

const ROWS: [FeatureRow; 16] = [
    row("CAP_NET_ADMIN", "every live network", "this process's capabilities", || {
        capability(CapabilitySet::NET_ADMIN)
    }),
    row("CAP_SYS_ADMIN", "network namespaces", "this process's capabilities", || {
        capability(CapabilitySet::SYS_ADMIN)
    }),
    row("CAP_BPF", "the software switch; BPF techniques", "this process's capabilities", || {
        capability(CapabilitySet::BPF)
    }),
    row("CAP_PERFMON", "congestion control by BPF", "this process's capabilities", || {
        capability(CapabilitySet::PERFMON)
    }),
    row("ip", "every live network", "ip -V", || command("ip", &["-V"], "iproute2")),
    row("network namespaces", "a host each", "/proc/self/ns/net", || {
        path("/proc/self/ns/net", "a kernel with CONFIG_NET_NS")
    }),
    row("writable /proc/sys", "kernel settings of each host", "a file is opened for writing", || {
        writable("/proc/sys/net/ipv4/ip_forward")
    }),
    row("AF_XDP", "the software switch's ports", "a socket is made", xdp_socket),
    row("BTF", "BPF techniques", "/sys/kernel/btf/vmlinux", || {
        path("/sys/kernel/btf/vmlinux", "a kernel with CONFIG_DEBUG_INFO_BTF")
    }),
    row("cgroup v2", "M21TCP (socket-operation programs)", "/proc/filesystems", || {
        listed("/proc/filesystems", "cgroup2")
    }),
    row("cubic", "transport.congestion_control = \"cubic\"", "tcp_available_congestion_control", || {
        congestion("cubic")
    }),
    row("reno", "transport.congestion_control = \"newreno\"", "tcp_available_congestion_control", || {
        congestion("reno")
    }),
    row("bbr", "transport.congestion_control = \"bbr\"", "tcp_available_congestion_control", || {
        congestion("bbr")
    }),
    row("minimum RTO", "transport.rto_min", "tcp_rto_min_us", || {
        setting("net/ipv4/tcp_rto_min_us", "Linux 6.11")
    }),
    row("window shrinking", "DIATCP within a round-trip time", "tcp_shrink_window", || {
        setting("net/ipv4/tcp_shrink_window", "Linux 6.5")
    }),
    row("huge pages", "rings of gigabytes without page faults", "nr_hugepages", || {
        setting("vm/nr_hugepages", "CONFIG_HUGETLBFS")
    }),
];

/// Checks for each feature; changes nothing and needs no root.
#[must_use]
pub fn check() -> Vec<(Feature, Availability)> {
    ROWS.iter().map(|(feature, look)| (*feature, look())).collect()
}

/// Returns the privileges and kernel features that this process lacks for namespaces and the switch, each feature with its remedy.
/// Returns `None` if it has all.
#[must_use]
pub fn missing_for_namespaces() -> Option<String> {
    const NEEDED: [&str; 7] = [
        "CAP_NET_ADMIN",
        "CAP_SYS_ADMIN",
        "CAP_BPF",
        "ip",
        "network namespaces",
        "writable /proc/sys",
        "AF_XDP",
    ];
    let (mut capabilities, mut features) = (Vec::new(), Vec::new());
    for (Feature { name, .. }, availability) in check() {
        match availability {
            Availability::Missing(_) if !NEEDED.contains(&name) => {}
            // Without a capability, other checks fail as well.
            Availability::Missing(_) if name.starts_with("CAP_") => capabilities.push(name),
            Availability::Missing(remedy) => features.push(format!("{name} ({remedy})")),
            Availability::There(_) => {}
        }
    }
    if !capabilities.is_empty() {
        return Some(format!("root ({})", capabilities.join(", ")));
    }
    (!features.is_empty()).then(|| features.join(", "))
}

fn capability(wanted: CapabilitySet) -> Availability {
    match capabilities(None) {
        Ok(sets) if sets.effective.contains(wanted) => Availability::There("held".into()),
        Ok(_) => Availability::Missing("run as root, or give it to the command".into()),
        Err(error) => Availability::Missing(format!("cannot be read: {error}")),
    }
}

fn command(name: &str, arguments: &[&str], package: &str) -> Availability {
    match Command::new(name).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            Availability::There(String::from_utf8_lossy(&output.stdout).trim().into())
        }
        Ok(output) => Availability::Missing(format!("{name} ends with {}", output.status)),
        Err(error) => Availability::Missing(format!("Debian package {package} ({error})")),
    }
}

fn path(path: &str, brought_by: &str) -> Availability {
    if Path::new(path).exists() {
        Availability::There("there".into())
    } else {
        Availability::Missing(brought_by.into())
    }
}

fn setting(key: &str, brought_by: &str) -> Availability {
    match fs::read_to_string(Path::new("/proc/sys").join(key)) {
        Ok(value) => Availability::There(format!("now {}", value.trim())),
        Err(_) => Availability::Missing(brought_by.into()),
    }
}

/// Opens the file for writing, which changes nothing.
fn writable(file: &str) -> Availability {
    match OpenOptions::new().write(true).open(file) {
        Ok(_) => Availability::There("there".into()),
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => Availability::Missing(
            "it is mounted read-only: `mount -o remount,rw /proc/sys`, or a privileged container".into(),
        ),
        Err(error) => Availability::Missing(format!("run as root: {file}: {error}")),
    }
}

fn listed(file: &str, word: &str) -> Availability {
    match fs::read_to_string(file) {
        Ok(text) if text.split_whitespace().any(|each| each == word) => Availability::There("there".into()),
        Ok(_) => Availability::Missing(format!("not in {file}")),
        Err(error) => Availability::Missing(format!("{file}: {error}")),
    }
}

fn congestion(name: &str) -> Availability {
    listed("/proc/sys/net/ipv4/tcp_available_congestion_control", name)
}

fn xdp_socket() -> Availability {
    const AF_XDP: u16 = 44;
    let family = AddressFamily::from_raw(AF_XDP);
    match socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None) {
        Ok(_) => Availability::There("a socket was made".into()),
        Err(rustix::io::Errno::PERM) => Availability::Missing("CAP_NET_RAW: run as root".into()),
        Err(error) => Availability::Missing(format!("a kernel with CONFIG_XDP_SOCKETS ({error})")),
    }
}
