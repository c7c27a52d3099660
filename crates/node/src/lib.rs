//! The roles of a data-acquisition system as processes that really run.

pub mod audit;
pub mod clock;
pub mod codec;
pub mod config;
pub mod data;
pub mod ideal;
pub mod journal;
pub mod launch;
pub mod log;
pub mod metrics;
pub mod process;
pub mod result;
pub mod roles;
pub mod shared;
pub mod source;
pub mod store;
pub mod unit;
pub mod wire;
