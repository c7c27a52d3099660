//! What needs `unsafe`: socket options that no safe crate offers.

pub(crate) mod sockopt;
