//! The call by which a thread of a process wakes its main loop.

use std::sync::Arc;

/// Wakes the main loop of a process; any thread may call it.
pub type Wake = Arc<dyn Fn() + Send + Sync>;
