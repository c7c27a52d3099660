//! A collector and its processing units: a Unix connection for each unit, and shared memory that a unit can only read.
//!
//! Every message is 32 bytes, little-endian: kind (32 bits), a small number (32 bits), an L1 ID, and two numbers
//! (64 bits each). `python/fanin/processor.py` implements the same protocol.
//!
//! | kind | from | small number | L1 ID | first number | second number |
//! |---|---|---|---|---|---|
//! | 1 hello | unit | layout of the greeting, 2 | versions | unit, or 65535 for any | process id |
//! | 1 hello | collector | layout of the greeting, 2 | versions | unit | – |
//! | 2 memory | collector | – | – | bytes of the memory, whose descriptor comes along | unit |
//! | 3 event | collector | step | event | fragments in the table | – |
//! | 4 decision | unit | 0 reject, 1 accept, 2 the rest, 3 a share of readouts, 4 a share of fragments | event | the share in millionths | – |
//! | 5 other versions | collector | layout of the greeting, 2 | versions | – | – |
//!
//! Versions are the lowest and the highest of the messages after the greeting that the sender speaks, 16 bits each. Both
//! sides use the highest common one. Without one, the collector sends *other versions* and ends the connection. Layout 1,
//! which no release sent, had no versions.
//!
//! The memory begins with the table of an event, 32 bytes a fragment. They are source, status, checksum (CRC-32)
//! and zero, 32 bits each, then offset in the memory and size, 64 bits each. Fragments begin at multiples of 8.

pub mod client;
mod protocol;
pub mod server;

pub use protocol::{ANY_UNIT, VERSIONS};
