//! M21TCP at the hosts (`bpf/m21.bpf.c`): the option that switches lower, its echo, and the bound of the window.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use thiserror::Error;

use super::LoadError;
use crate::{InsideError, Namespace};

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/m21.bpf.o"));
const NAME: &str = "fanin_m21";
const HOSTS: &str = "fanin_m21_hosts";
const FIGURES: &str = "fanin_m21_figures";

/// Parts of M21TCP's mechanism; each part can be left out to measure its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct M21Parts {
    /// SYN and SYN-ACK carry the option, so that switches count a flow and grant its sender a window before the first data.
    pub opening: bool,
    /// The window of the handshake limits the first burst, too.
    pub first_window: bool,
    /// Switches lower the echo on its way back, to the present window.
    pub fresh_echo: bool,
}

impl Default for M21Parts {
    fn default() -> Self {
        Self { opening: true, first_window: true, fresh_echo: true }
    }
}

/// The counters of the hosts' part, over all hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct M21Figures {
    /// Windows received by an echo.
    pub echoes: u64,
    /// Changes of a connection's bound.
    pub changes: u64,
    /// Windows below a segment; the sender then uses one segment.
    pub below_segment: u64,
    /// Bounds that the kernel refused.
    pub refused: u64,
}

/// M21TCP on the hosts of a run. Dropping the value, or the end of this process, removes the program from the kernel.
///
/// The program applies to later connections and listening sockets of this process and its children, inside a namespace that was
/// [added](Self::add).
#[derive(Debug)]
pub struct M21Hosts {
    // The link must be dropped before the object that it belongs to.
    _link: Link,
    object: Object,
}

/// Errors of enabling M21TCP.
#[derive(Debug, Error)]
pub enum M21Error {
    /// Socket-operation programs are attached to control groups of the second version.
    #[error(
        "no cgroup2 file system is mounted; BPF programs for sockets are attached to one: mount -t cgroup2 none DIRECTORY"
    )]
    NoCgroup,
    /// The control group cannot be opened.
    #[error("cannot open the control group {}: {source}", path.display())]
    Cgroup {
        /// Path of the control group.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel or libbpf refused.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A namespace cannot be entered.
    #[error(transparent)]
    Inside(#[from] InsideError),
    /// A namespace has no cookie.
    #[error("cannot get the cookie of the network namespace {namespace} (SO_NETNS_COOKIE): {source}")]
    Cookie {
        /// Name of the namespace.
        namespace: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl M21Hosts {
    /// Loads and attaches the program, for no namespace yet.
    ///
    /// # Errors
    /// [`M21Error`].
    pub fn load(parts: M21Parts) -> Result<Self, M21Error> {
        let refused = |doing| move |source| LoadError::Refused { name: NAME, doing, source };
        let mut builder = ObjectBuilder::default();
        let mut open = builder.open_memory(PROGRAM).map_err(refused("open"))?;
        choose(&mut open, parts).map_err(refused("choose its parts"))?;
        let object = open.load().map_err(refused("load"))?;
        let path = own_cgroup().ok_or(M21Error::NoCgroup)?;
        let cgroup = File::open(&path).map_err(|source| M21Error::Cgroup { path, source })?;
        let missing = || libbpf_rs::Error::from_raw_os_error(libc::ENOENT);
        let mut program = object.progs_mut().find(|program| program.name() == NAME).ok_or_else(missing);
        let link = match &mut program {
            Ok(program) => program.attach_cgroup(cgroup.as_raw_fd()),
            Err(_) => Err(missing()),
        };
        let link = link.map_err(refused("attach"))?;
        Ok(Self { _link: link, object })
    }

    /// Applies M21TCP to new connections of a namespace.
    ///
    /// # Errors
    /// [`M21Error`].
    pub fn add(&mut self, namespace: &Namespace) -> Result<(), M21Error> {
        let cookie = namespace
            .run(cookie)?
            .map_err(|source| M21Error::Cookie { namespace: namespace.name().into(), source })?;
        let refused = |source| LoadError::Refused { name: NAME, doing: "add a host", source };
        let missing = || libbpf_rs::Error::from_raw_os_error(libc::ENOENT);
        let map =
            self.object.maps_mut().find(|map| map.name() == HOSTS).ok_or_else(missing).map_err(refused)?;
        map.update(&cookie.to_ne_bytes(), &[1], MapFlags::ANY).map_err(refused)?;
        Ok(())
    }

    /// Returns the counters so far.
    ///
    /// # Errors
    /// [`M21Error::Load`].
    pub fn figures(&self) -> Result<M21Figures, M21Error> {
        let refused = |source| LoadError::Refused { name: NAME, doing: "read its figures", source };
        let missing = || libbpf_rs::Error::from_raw_os_error(libc::ENOENT);
        let map =
            self.object.maps().find(|map| map.name() == FIGURES).ok_or_else(missing).map_err(refused)?;
        let processors =
            map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(refused)?.unwrap_or_default();
        let mut all = M21Figures::default();
        for bytes in processors {
            let word = |place: usize| {
                let word = bytes.get(8 * place..8 * place + 8).and_then(|word| word.try_into().ok());
                word.map_or(0, u64::from_ne_bytes)
            };
            all.echoes += word(0);
            all.changes += word(1);
            all.below_segment += word(2);
            all.refused += word(3);
        }
        Ok(all)
    }
}

/// Sets the program's constant to the chosen parts.
fn choose(open: &mut OpenObject, parts: M21Parts) -> Result<(), libbpf_rs::Error> {
    let missing = || libbpf_rs::Error::from_raw_os_error(libc::ENOENT);
    let mut maps = open.maps_mut();
    let mut map = maps.find(|map| map.name().to_string_lossy().ends_with(".rodata")).ok_or_else(missing)?;
    let constants = map.initial_value_mut().ok_or_else(missing)?;
    let M21Parts { opening, first_window, fresh_echo } = parts;
    let chosen = u32::from(opening) | u32::from(first_window) << 1 | u32::from(fresh_echo) << 2;
    constants.get_mut(..4).ok_or_else(missing)?.copy_from_slice(&chosen.to_ne_bytes());
    Ok(())
}

/// Returns the control group of this process and its children; the visible root if that group is hidden. `None` without a
/// cgroup2 mount.
fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (place, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    })?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    Some(own.map(|own| root.join(own)).filter(|own| is_inside(own)).unwrap_or(root))
}

fn is_inside(path: &Path) -> bool {
    !path.components().any(|part| part.as_os_str() == "..") && path.is_dir()
}

/// Returns the kernel's number (cookie) for the calling thread's network namespace, unique while the kernel runs.
fn cookie() -> io::Result<u64> {
    /// Linux 5.14 (include/uapi/asm-generic/socket.h); younger than some headers.
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let mut cookie = 0_u64;
    let mut size = size_of_val(&cookie) as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel writes at most `size` bytes, which is the size of `cookie`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut size,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}
