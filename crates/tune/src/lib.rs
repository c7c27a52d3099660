//! Finds the best value of settings: objectives, constraints, ranges, and a search over noisy simulations.
//!
//! The crate simulates nothing. [`search`] passes batches of trials (values and a seed) to a function, which returns a
//! [`Score`] for each. Batches depend on scores alone, so a search gives the same result with any number of threads.
//!
//! ```
//! use fanin_tune::{SearchAxis, SearchLimits, Score, search};
//!
//! let credits = SearchAxis { low: 60, high: 1200, start: 480 };
//! let limits = SearchLimits { seeds: 1, simulations: 12, precision: 0.05 };
//! let found = search(&[credits], None, limits, &mut |trials| {
//!     let cost = |value: u64| (value as f64 / 300.0).ln().abs();
//!     trials.iter().map(|trial| Score { violation: 0.0, objective: cost(trial.values[0]) }).collect()
//! });
//! let best = found.best().unwrap().values[0];
//! assert!((270..=330).contains(&best), "{best}");
//! ```

#![forbid(unsafe_code)]

mod axis;
mod found;
mod gear;
mod goal;
mod key;
mod number;
mod search;

pub use axis::SearchAxis;
pub use found::{SearchOutcome, TriedPoint};
pub use gear::{Gear, GearError, GearMemory, GearPrice};
pub use goal::{Constraint, Goal, GoalError, Objective, Sense, Target};
pub use key::{KeyRange, TunedKey, TunedKeyError};
pub use number::NumberKind;
pub use search::{End, Score, SearchLimits, Trial, is_clearly_worse, search};
