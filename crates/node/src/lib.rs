//! The roles of a data-acquisition system as processes that really run.

pub mod codec;
pub mod data;
pub mod journal;
pub mod shared;
pub mod source;
pub mod store;
pub mod unit;
