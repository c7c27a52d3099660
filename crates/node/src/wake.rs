//! A function that wakes the main loop of a process from another thread.

use std::sync::Arc;

/// Wakes the main loop of a process; any thread may call it.
pub type Wake = Arc<dyn Fn() + Send + Sync>;
