//! Code with `unsafe`: socket options that no safe crate offers, and io_uring.

pub(crate) mod sockopt;
pub(crate) mod uring;
