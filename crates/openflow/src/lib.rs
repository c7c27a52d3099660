//! The hybrid of the multi-host paper (§II-C, §IV-A): an OpenFlow switch forwards as ever, and only frames to collectors that many
//! answer at once make a detour through the deep queues of this switch.
//!
//! A frame to a collector is redirected to a host port, waits there in the collector's ring, comes back by the same port
//! and goes on to the port where the collector is attached. No frame can go round: what comes from a host port goes to a
//! collector's port or nowhere, nothing else is ever sent or flooded to a host port, and a frame that comes from the side where its
//! collector is attached is not redirected but dropped, as any switch does with a frame that has arrived already.
//!
//! ```
//! use fanin_openflow::{EXAMPLE, Hybrid, flows};
//!
//! let (hybrid, _) = Hybrid::parse("hybrid.toml", EXAMPLE, None)?;
//! let text = flows(&hybrid);
//! assert!(text.contains("in_port=25,dl_dst=02:00:00:00:01:01,actions=output:24"), "{text}");
//! # Ok::<(), fanin_scenario::Errors>(())
//! ```

#![warn(missing_docs)]

mod check;
mod output;
mod rules;
mod spec;

pub use check::{HOST_PORTS_MAX, Hybrid};
pub use output::{bypass, commands, flows, json, ovsdb, removal, switch_config};
pub use rules::{Action, IpVersion, Match, PortMask, RULES_MAX, Rule, Stage};
pub use spec::{
    CollectorSpec, FlowSpec, HostPortSpec, HostSpec, HybridSpec, OpenflowSpec, Others, PortSpec,
    RingDefaults, Version,
};

/// A description to start from: two readouts, three collectors behind one rack switch, two host ports.
pub const EXAMPLE: &str = include_str!("example.toml");
