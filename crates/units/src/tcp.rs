//! Constants of Linux's TCP.

use crate::{Duration, Packets};

/// The minimum RTO (`TCP_RTO_MIN`).
pub const RTO_MIN_LINUX: Duration = Duration::from_millis(200);
/// The least delay of an acknowledgement (`TCP_DELACK_MIN`, `TCP_ATO_MIN`).
pub const DELAYED_ACK_MIN_LINUX: Duration = Duration::from_millis(40);
/// The initial window in segments (`TCP_INIT_CWND`).
pub const INITIAL_WINDOW_LINUX: Packets = Packets::new(10);
