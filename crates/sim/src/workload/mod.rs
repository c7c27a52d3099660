//! What the hosts do.

pub mod barrier;
