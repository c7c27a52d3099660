//! The log of a replayed world, with simulated times and the names of its processes.

use std::cell::Cell;
use std::fmt;

use fanin_node::config::Role;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::plan::ProcessPlace;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    static PLACE: Cell<Option<(Role, u16)>> = const { Cell::new(None) };
}

pub(crate) fn set_time(ns: u64) {
    NOW.set(ns);
    PLACE.set(None);
}

pub(crate) fn set_process(place: ProcessPlace) {
    PLACE.set(Some((place.role, place.index)));
}

/// Logs a fault of the world with the time of its end, in nanoseconds.
pub(crate) fn world(fault: &dyn fmt::Debug, until_ns: u64) {
    tracing::warn!(target: "world", until_ms = until_ns / 1_000_000, "fault: {fault:?}");
}

/// Writes the time and the process of a log line.
struct SimulatedTime;

impl FormatTime for SimulatedTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        let ns = NOW.get();
        write!(out, "{:>4}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)?;
        match PLACE.get() {
            Some((role, index)) => write!(out, " {role}-{index}"),
            None => out.write_str(" world"),
        }
    }
}

/// Prints processes' log lines from now on, with the times of the world.
pub fn print() {
    let lines = tracing_subscriber::fmt()
        .with_timer(SimulatedTime)
        .with_target(false)
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG);
    // A second call changes nothing.
    let _ = lines.try_init();
}
