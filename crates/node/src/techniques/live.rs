//! The settings of one congestion control on a kernel.

use fanin_scenario::Scenario;

/// A sysctl of a host's network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sysctl {
    /// Name below `net.ipv4`.
    pub name: &'static str,
    /// Value that the technique needs.
    pub value: &'static str,
    /// The effect that is missing with another value, and what happens instead.
    pub effect: [&'static str; 2],
}

/// A congestion control on the kernel's TCP.
#[derive(Debug, Clone, Copy)]
pub struct LiveTechnique {
    /// The kernel's name of the senders' congestion control.
    pub kernel_name: &'static str,
    /// True if that congestion control is a BPF program of `fanin-testbed`, which exists while it is loaded.
    pub is_program: bool,
    /// True if BPF programs act on the hosts' segments.
    pub edits_segments: bool,
    /// Sysctls in addition to those of every host.
    pub sysctls: &'static [Sysctl],
    /// Returns the receive window of a new connection in bytes, if the technique sets it.
    pub receive_window: fn(&Scenario) -> Option<u64>,
    /// A need that a single loopback interface does not meet.
    pub beyond_loopback: Option<&'static str>,
}

impl LiveTechnique {
    /// Makes a congestion control that the kernel has, without other settings.
    pub(super) const fn kernel(kernel_name: &'static str) -> Self {
        Self {
            kernel_name,
            is_program: false,
            edits_segments: false,
            sysctls: &[],
            receive_window: |_| None,
            beyond_loopback: None,
        }
    }
}
