//! A network on one machine: each host a network namespace, each link a veth pair.
//!
//! [`Lab::build`] makes the namespaces, links, addresses and kernel settings of a [`LabPlan`]; dropping the lab removes
//! them. Every namespace is named after the run and written into a [`Ledger`] before it is created. So [`leftovers`]
//! finds the remains of a killed run, and [`clean`] removes them; nothing else is ever touched. [`check`] reports the
//! features of this machine's kernel, and which parts of Fanin need each missing one.
//!
//! Linux only; all but [`check`], [`missing_for_namespaces`] and [`leftovers`] need root (CAP_NET_ADMIN and CAP_SYS_ADMIN).

mod check;
mod inside;
mod ip;
mod lab;
mod ledger;
pub mod live;
mod name;
mod offload;
mod plan;
#[cfg(test)]
#[path = "../../../tests/skip.rs"]
mod skip;
mod tap;

#[cfg(feature = "bpf")]
pub mod bpf;

pub use check::{Availability, Feature, check, missing_for_namespaces};
pub use inside::{InsideError, Namespace};
pub use lab::{BuildError, Lab, LabPlanError};
pub use ledger::{Cleaned, Ledger, LedgerError, clean, leftovers};
pub use name::{BadName, NodeName, RunName};
pub use plan::{InterfaceAddress, LabNode, LabPlan, NamespaceRoute, Neighbour, Setting, VethPair, VethPort};
pub use tap::{DeviceTap, SNAP_BYTES, TapError, TapTotals};
