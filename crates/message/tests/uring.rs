//! The whole suite over one of the kernel's interfaces.

mod common;
#[path = "suite/encryption.rs"]
mod encryption;
#[path = "suite/exchange.rs"]
mod exchange;
#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;
#[path = "suite/hostile.rs"]
mod hostile;
#[path = "suite/keys.rs"]
mod keys;
#[path = "../../../tests/skip.rs"]
mod skip;
#[path = "suite/soak.rs"]
mod soak;
#[path = "suite/versions.rs"]
mod versions;

/// The backend of this suite.
pub(crate) const BACKEND: fanin_message::Backend = fanin_message::Backend::Uring;
