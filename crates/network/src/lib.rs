//! The network of a scenario as a graph: hosts, switches, links, paths, connections and ideal times. No I/O.
//!
//! [`topology::build`] turns a [`fanin_scenario::Scenario`] into a [`Network`] and its [`Roles`]. The simulator runs
//! this network, the testbed maps it onto namespaces, the planner reads paths and loads from it.

#![forbid(unsafe_code)]

mod collection;
mod connections;
mod contention;
mod data;
mod equivalence;
mod graph;
mod ideal;
mod paths;
mod routes;
mod segments;
mod switches;
pub mod topology;

pub use collection::Collection;
pub use connections::{
    BackgroundPair, Connection, Numbering, background_connections, background_pairs, barrier_connections,
    connections,
};
pub use contention::{
    CollectionWork, ContentionBound, MeanAndTail, MeasuredCollection, ScheduleFigures, SharedLinks,
};
pub use data::{DataPaths, DataQueue, InputLinks, LinkClass};
pub use fanin_units::wire::FrameOverhead;
pub use graph::{LINKS_MAX, Link, Network, NetworkError, Node, NodeIndex, NodeKind, PortIndex, reverse};
pub use ideal::{Answers, Ideal, ideal_time};
pub use paths::{Paths, Spread};
pub use routes::{ConnectionRoute, find_route, find_routes};
pub use segments::{SegmentFraming, WireMessage};
pub use switches::{SwitchKind, SwitchRole};
pub use topology::Roles;
