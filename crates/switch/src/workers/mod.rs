//! How the workers of one switch work together: links for frames and news, values that all of them read, and waking each other.
//!
//! Each worker owns its ports. A frame for another worker's port crosses a link; nothing else of a worker can be reached by another.

mod peers;
mod shared;
mod sleep;
mod spsc;
#[cfg(test)]
mod spsc_tests;
mod wakeup;

pub(crate) use peers::{PeerMessage, Peers};
pub(crate) use shared::{NO_WINDOW, SharedCounts};
pub(crate) use wakeup::Wakeup;
