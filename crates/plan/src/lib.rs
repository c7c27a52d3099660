//! Plans a fan-in network by arithmetic alone: wire bytes and ideal times, bounds on windows and buffers, cost and space.
//! Nothing is simulated; every answer takes microseconds.
//!
//! [`plan`] does all of it for a scenario. Its verdict on a queue comes from a fluid model:
//!
//! * At most one event is in flight to a collector (in a closed loop, one for each unit). Credits, windows or a
//!   scheduler may allow less. Bytes are counted in frames, from addresses to check sequence.
//! * The bytes arrive at the rate of the links before the queue, and leave at the rate of the link behind the queue.
//! * Windows that grow let the first windows in at once. After that, two bytes enter for each byte that leaves, so
//!   that half of the rest waits too. Where the switch marks, growth ends after one doubling.
//! * For collectors that share memory, occupancies add. With hosts in turn these are the rests of earlier events, else
//!   queues with Poisson arrivals. First come, first served lies between the two. If only the second overflows, the
//!   verdict is [`BurstOutcome::MayLose`].
//!
//! The model is no proof. [`Losses::Never`] is the answer only if every queue fits all bytes that can be outstanding at
//! once. Where a queue overflows, the answer is the share of events that overflow it by their size. In all other cases
//! it is [`Losses::Depends`].
//!
//! The model predicts neither the effects of timeouts nor jitter of the answers; the simulator does.
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
mod bracket;
mod bursts;
mod catalogue;
mod certain;
pub mod cost;
mod derived;
mod event_burst;
mod places;
mod plan;
mod proof;
mod queues;
mod sections;
mod summary;
mod system;
mod table;
mod techniques;
mod warnings;
pub mod wire;

pub use bracket::LossBracket;
pub use catalogue::{Catalogue, CatalogueError, Chips, MultiHost, Price, Rack, Router, Server};
pub use derived::{Area, Count, Derivation, Derived, Factor, Money, Quantity, brief, ratio_of};
pub use plan::{Cost, IdealCase, LinkLoad, Plan, PlanOptions, Section, plan};
pub use queues::{BurstOutcome, Losses, Queue};
pub use summary::{PlannedScenario, PlannedSummary, SCHEMA};
pub use system::PlanError;
pub use table::{Style, TextRole, WIDTH_MAX, plain};
