//! The number of threads of a command.

/// Returns the number of threads that was asked for, or one for each core.
pub(crate) fn threads_or_cores(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}
