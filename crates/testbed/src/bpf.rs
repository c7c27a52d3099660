//! Techniques that this kernel lacks, loaded into it as BPF programs (`bpf/`): congestion controls, and M21TCP.
//!
//! A congestion control is available to every namespace while its [`LoadedControl`] lives. Connections keep the control
//! until they end, even after the value is dropped. Connections choose a control by `TCP_CONGESTION`, by a route's `congctl`,
//! or by `net.ipv4.tcp_congestion_control` of their namespace. Loading needs CAP_BPF and CAP_PERFMON.

mod m21;

use std::ffi::OsStr;

use libbpf_rs::{Link, MapCore, MapFlags, MapMut, Object, ObjectBuilder};
use thiserror::Error;

pub use m21::{M21Error, M21Figures, M21Hosts, M21Parts};

const STATIC_WINDOW: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/static_window.bpf.o"));
const DCTCP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/dctcp.bpf.o"));

/// A loaded congestion control; dropping the value removes the control from the kernel.
#[derive(Debug)]
pub struct LoadedControl {
    name: &'static str,
    // The link must be dropped before the object that it belongs to.
    link: Link,
    object: Object,
}

/// Errors of loading or changing a program.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The kernel or libbpf refused.
    #[error("the kernel refuses {name} ({doing}): {source}")]
    Refused {
        /// The congestion control.
        name: &'static str,
        /// The failed step.
        doing: &'static str,
        /// The error of libbpf.
        source: libbpf_rs::Error,
    },
    /// Another process has loaded a congestion control of this name: names are unique on the machine.
    #[error("another run on this machine has {name} loaded: wait for it, or end it")]
    Taken {
        /// The congestion control.
        name: &'static str,
    },
    /// A window of no segments, or more than a connection can have in flight.
    #[error("a static window has 1 to {WINDOW_MAX} segments, not {given}")]
    Window {
        /// The window requested.
        given: u32,
    },
}

/// The largest static window, in segments: 1 GiB of 1448 bytes, the largest receive window (RFC 7323).
pub const WINDOW_MAX: u32 = (1 << 30) / 1448;

impl LoadedControl {
    /// Loads a fixed window of `segments` (ICC 2015, §IV.C), as `fanin_static`.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn static_window(segments: u32) -> Result<Self, LoadError> {
        let mut control = Self::load("fanin_static", STATIC_WINDOW)?;
        control.set_window(segments)?;
        Ok(control)
    }

    /// Loads DCTCP (RFC 8257), as `fanin_dctcp`; connections with it always negotiate ECN.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn dctcp() -> Result<Self, LoadError> {
        Self::load("fanin_dctcp", DCTCP)
    }

    /// Returns the name for sockets and routes.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Changes a static window to `segments`; every connection follows with its next acknowledgement.
    ///
    /// # Errors
    /// [`LoadError`], also if this is not a static window.
    pub fn set_window(&mut self, segments: u32) -> Result<(), LoadError> {
        if !(1..=WINDOW_MAX).contains(&segments) {
            return Err(LoadError::Window { given: segments });
        }
        let refused = |source| LoadError::Refused { name: self.name, doing: "set its window", source };
        let missing = || libbpf_rs::Error::from_raw_os_error(libc::ENOENT);
        let map = self.object.maps_mut().find(|map| is_data(map)).ok_or_else(missing).map_err(refused)?;
        map.update(&0_u32.to_ne_bytes(), &segments.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    fn load(name: &'static str, program: &[u8]) -> Result<Self, LoadError> {
        let refused = |doing| move |source| LoadError::Refused { name, doing, source };
        let mut builder = ObjectBuilder::default();
        let mut object =
            builder.open_memory(program).and_then(libbpf_rs::OpenObject::load).map_err(refused("load"))?;
        let map = object.maps_mut().find(|map| map.name() == OsStr::new(name));
        let missing = || libbpf_rs::Error::from_raw_os_error(libc::ENOENT);
        let attached = map.ok_or_else(missing).and_then(|mut map| map.attach_struct_ops());
        let link = attached.map_err(|source| match source.kind() {
            libbpf_rs::ErrorKind::AlreadyExists => LoadError::Taken { name },
            _ => LoadError::Refused { name, doing: "attach", source },
        })?;
        Ok(Self { name, link, object })
    }
}

impl Drop for LoadedControl {
    fn drop(&mut self) {
        // Closing the descriptor removes nothing while a copy exists. A process that another thread is about to start holds one
        // until it executes its program. Kernels before 6.10 refuse to detach; the end of the last copy then removes the
        // congestion control.
        let _ = self.link.detach();
    }
}

/// Returns the map that holds a program's writable variables.
fn is_data(map: &MapMut<'_>) -> bool {
    map.name().to_string_lossy().ends_with(".data")
}
