//! Times that Linux's TCP defines.

use crate::Duration;

/// The minimum RTO (`TCP_RTO_MIN`).
pub const RTO_MIN_LINUX: Duration = Duration::from_millis(200);
/// The least delay of an acknowledgement (`TCP_DELACK_MIN`, `TCP_ATO_MIN`).
pub const DELAYED_ACK_MIN_LINUX: Duration = Duration::from_millis(40);
