//! Congestion controls on the kernel's TCP: their settings of sockets and network namespaces. Each one against incast has a file.

mod dctcp;
pub(crate) mod diatcp;
mod live;
mod m21tcp;
mod static_window;

use fanin_scenario::CongestionControl;

pub use live::{LiveTechnique, Sysctl};

/// The kernel's default, and the substitute for a congestion control that this kernel lacks.
pub const CUBIC: LiveTechnique = LiveTechnique::kernel("cubic");

/// Returns the settings of a congestion control; `None` if no kernel has it.
#[must_use]
pub const fn technique(control: CongestionControl) -> Option<LiveTechnique> {
    Some(match control {
        CongestionControl::NewReno => LiveTechnique::kernel("reno"),
        CongestionControl::Cubic => CUBIC,
        CongestionControl::Bbr => LiveTechnique::kernel("bbr"),
        CongestionControl::Static => static_window::TECHNIQUE,
        CongestionControl::Dctcp => dctcp::TECHNIQUE,
        CongestionControl::M21tcp => m21tcp::TECHNIQUE,
        CongestionControl::Diatcp => diatcp::TECHNIQUE,
        CongestionControl::Ictcp | CongestionControl::Swift | CongestionControl::Sird => return None,
    })
}
