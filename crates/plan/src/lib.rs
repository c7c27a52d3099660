//! What a fan-in network needs, by arithmetic alone: wire bytes and ideal times, bounds on windows and buffers,
//! cost and space. Nothing here simulates; everything answers in microseconds.
//!
//! ```
//! use fanin_plan::wire::{Framing, collection_time_ideal};
//! use fanin_units::{Bytes, Duration, Rate};
//!
//! let wire = Framing::ETHERNET.wire_bytes(Bytes::new(13_200), 160);
//! let ideal = collection_time_ideal(Duration::from_micros(400), wire.value, Rate::new(1_000_000_000));
//! assert_eq!(ideal.text(), "RTT + wire bytes / rate = 400 us + 2236.8 kB / 1 Gb/s = 18.294 ms");
//! ```

#![forbid(unsafe_code)]

pub mod bounds;
mod catalogue;
pub mod cost;
mod derived;
mod plan;
mod queues;
mod summary;
mod system;
mod table;
pub mod wire;

pub use catalogue::{Catalogue, CatalogueError, Chips, MultiHost, Price, Rack, Router, Server};
pub use derived::{Area, Count, Derivation, Derived, Factor, Money, Quantity, brief, ratio_of};
pub use plan::{Cost, Ideal, LinkLoad, Options, Plan, Section, plan};
pub use queues::{Outcome, Queue};
pub use summary::{SCHEMA, ScenarioName, Summary};
pub use system::PlanError;
pub use table::{Role, Style, WIDTH_MAX, plain};
