//! Plans a fan-in network by arithmetic alone: wire bytes and ideal times, bounds on windows and buffers,
//! cost and space. Nothing here simulates; everything answers in microseconds.
//!
//! [`plan`] does all of it for a scenario. Its verdict on a queue is that of a fluid model:
//!
//! * What can be on its way to a collector at once is an event (in a closed loop one for each unit), or what credits,
//!   windows or a scheduler allow, whichever is least. It is counted in frames, from addresses to check sequence.
//! * It comes in at the rate of the links before the queue and leaves at the rate of the link behind it meanwhile.
//! * Windows that grow let the first windows in at once and then two bytes for each byte that leaves, so that half of
//!   the rest waits too. Where the switch marks, growth ends after one doubling.
//! * Collectors that share memory are summed up: with hosts in turn by the rests of the events before, else as queues
//!   with Poisson arrivals. First come, first served lies between the two; where only the second overflows, the
//!   verdict is [`BurstOutcome::MayLose`].
//!
//! The model is no proof. [`Losses::Never`] is said only where all bytes that can be on their way at once fit every queue; where a
//! queue overflows, the share of the events that do so by their size is said; all else is [`Losses::Depends`].
//!
//! It says nothing about what a timeout does next, nor about jitter of the answers: that is for the simulator.
//!
//! ```
//! use fanin_plan::wire::{SegmentFraming, collection_time_ideal, wire_bytes};
//! use fanin_units::{Bytes, Duration, Rate};
//!
//! let wire = wire_bytes(&SegmentFraming::ETHERNET, Bytes::new(13_200), 160);
//! let ideal = collection_time_ideal(Duration::from_micros(400), wire.value, Rate::new(1_000_000_000));
//! assert_eq!(ideal.text(), "RTT + wire bytes / rate = 400 us + 2236.8 kB / 1 Gb/s = 18.294 ms");
//! ```

#![forbid(unsafe_code)]

pub mod bounds;
mod bursts;
mod catalogue;
pub mod cost;
mod derived;
mod places;
mod plan;
mod proof;
mod queues;
mod sections;
mod summary;
mod system;
mod table;
mod warnings;
pub mod wire;

pub use catalogue::{Catalogue, CatalogueError, Chips, MultiHost, Price, Rack, Router, Server};
pub use derived::{Area, Count, Derivation, Derived, Factor, Money, Quantity, brief, ratio_of};
pub use plan::{Cost, IdealCase, LinkLoad, Options, Plan, Section, plan};
pub use queues::{BurstOutcome, Losses, Queue};
pub use summary::{PlannedScenario, SCHEMA, Summary};
pub use system::PlanError;
pub use table::{Style, TextRole, WIDTH_MAX, plain};
