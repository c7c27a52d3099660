//! Exact integer quantities: times in picoseconds, bytes, bit rates, frequencies, packets and ratios.
//!
//! No float is stored or used inside. Text such as `"1.1 kB"` or `"12.5 ns"` is parsed as a decimal number, and refused
//! if the base unit cannot hold it exactly. Printing gives the shortest text that parses to the same value.
//!
//! ```
//! use fanin_units::{Bytes, Duration, Rate};
//!
//! let event: Bytes = "2112 kB".parse()?;
//! let link: Rate = "1 Gb/s".parse()?;
//! assert_eq!(link.time_to_send(event), "16.896 ms".parse::<Duration>()?);
//! assert_eq!(Bytes::new(65_536).to_string(), "64 KiB");
//! # Ok::<(), fanin_units::ParseError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "schemars"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod bytes;
mod frequency;
mod mix;
mod parse;
mod quantity;
mod rate;
mod ratio;
pub mod tcp;
mod time;
pub mod wire;

pub use bytes::{Bytes, Packets};
pub use frequency::Frequency;
pub use mix::{MIX_STEP, mix};
pub use parse::{ParseError, Unit};
pub use rate::{PS_BITS, Rate};
pub use ratio::Ratio;
pub use time::{Duration, Instant};

#[cfg(feature = "serde")]
mod serialise;
