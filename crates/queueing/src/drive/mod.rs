//! Two ways to drive a queue: book each departure at the frame's arrival, or poll for the next one when the link is
//! free.
//!
//! Both give the same departures, drops, marks and occupancies; `tests/drive.rs` compares them.

mod booked;
mod naive;

pub use booked::{BookedDedicated, BookedMemory, FIFO_FRAMES_MAX};
pub use naive::{Departed, NaiveMemory, NaiveOutput};
