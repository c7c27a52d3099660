//! A scenario on one machine: its hosts as namespaces, its links as veth pairs into software switches, its processes
//! inside.
//!
//! [`LiveNetwork`] maps the network of a scenario onto this machine, [`Bench`] builds it. Processes are started in the network
//! through [`Bench::place`]; `fanin_node::launch` does so through [`Placed`].

mod bench;
mod calibrate;
mod effort;
mod hosts;
mod network;
mod paths;
mod place;
mod switch_process;
mod switches;
mod transport;
mod watch;

use std::fmt;

use serde::Serialize;
use thiserror::Error;

pub use bench::{Bench, BenchError};
pub use calibrate::{Capacity, Chosen, TooFast, demand, least_collection_s, measure};
pub use effort::Effort;
pub use hosts::HostWait;
pub use network::{LinkEnd, LiveHost, LiveLink, LiveNetwork, LiveSwitch, Part};
pub use paths::{LivePath, LivePaths};
pub use place::Placed;
pub use switch_process::SwitchError;
pub use switches::configure;
pub use transport::Techniques;
pub use watch::{NetworkTotals, Observed, SwitchHealth, SwitchWatch};

/// A setting that a live system on one machine does not support.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LiveRefusal {
    /// A key has a value that a live run does not support.
    #[error("`{key}` is {given}; `fanin run` on one machine needs {needed}")]
    Value {
        /// The scenario's key.
        key: String,
        /// The value in the scenario.
        given: String,
        /// The supported values.
        needed: String,
    },
    /// The network of the scenario is impossible.
    #[error(transparent)]
    Network(#[from] fanin_network::NetworkError),
    /// The setting needs a BPF program, and this program was built without it.
    #[error(
        "{feature} needs this program's BPF programs; it was built without them (cargo feature `bpf`, which needs clang)"
    )]
    NoBpf {
        /// The setting that needs the programs.
        feature: String,
    },
}

impl LiveRefusal {
    pub(crate) fn value(key: &str, given: impl fmt::Display, needed: &str) -> Self {
        Self::Value { key: key.to_owned(), given: given.to_string(), needed: needed.to_owned() }
    }

    /// Makes the refusal of a value that is written as in the scenario's file.
    pub(crate) fn named(key: &str, given: &impl Serialize, needed: &str) -> Self {
        // A name or a number is JSON.
        Self::value(key, serde_json::to_string(given).unwrap_or_default(), needed)
    }

    fn switch(section: &str, key: &str, given: &impl Serialize, needed: &str) -> Self {
        Self::named(&format!("{section}.{key}"), given, needed)
    }
}
