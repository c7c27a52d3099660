//! Communication of the workers of one switch: links for frames and news, shared values, and wake-ups.
//!
//! Each worker owns its ports. A frame for another worker's port crosses a link. Apart from that, workers share only the
//! values of `shared.rs`.

mod peers;
mod shared;
mod sleep;
mod spsc;
#[cfg(test)]
mod spsc_tests;
mod wakeup;

pub(crate) use peers::{PeerMessage, Peers};
pub(crate) use shared::{CommonAccount, NO_WINDOW, SharedCounts};
pub(crate) use wakeup::Wakeup;
