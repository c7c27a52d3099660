//! The roles of a data-acquisition system as processes that really run.

pub mod clock;
pub mod codec;
pub mod config;
pub mod data;
pub mod journal;
pub mod log;
pub mod metrics;
pub mod process;
pub mod roles;
pub mod shared;
pub mod source;
pub mod store;
pub mod unit;
pub mod wire;
