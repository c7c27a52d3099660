//! The hybrid of the multi-host paper (§II-C, §IV-A). An OpenFlow switch forwards all frames, and sends only frames to
//! collectors through the deep queues of the software switch.
//!
//! A frame to a collector is redirected to a host port and waits there in the collector's ring. It comes back by the
//! same port and leaves by the collector's port. No frame can loop:
//!
//! - A frame from a host port leaves by a collector's port or is dropped.
//! - No other frame is sent or flooded to a host port.
//! - A frame to a collector that enters by this collector's own port is dropped, as every bridge filters such frames.
//!
//! ```
//! use fanin_openflow::{CheckedHybrid, EXAMPLE, flows};
//!
//! let (hybrid, _) = CheckedHybrid::parse("hybrid.toml", EXAMPLE, None)?;
//! let text = flows(&hybrid);
//! assert!(text.contains("in_port=25,dl_dst=02:00:00:00:01:01,actions=output:24"), "{text}");
//! # Ok::<(), fanin_scenario::Errors>(())
//! ```

#![warn(missing_docs)]

mod check;
mod output;
mod rules;
mod spec;

pub use check::{CheckedHybrid, HOST_PORTS_MAX};
pub use output::{bypass, commands, flows, json, ovsdb, removal, switch_config};
pub use rules::{Action, FailoverGroup, IpVersion, Match, PortMask, RULES_MAX, Rule, RulePriority};
pub use spec::{
    CollectorSpec, FlowSpec, HostPortSpec, HostSpec, HybridSpec, OpenflowPort, OpenflowSpec, OpenflowVersion,
    Others, RingDefaults,
};

/// An example description: two readouts, three collectors behind one rack switch, two host ports.
pub const EXAMPLE: &str = include_str!("example.toml");
