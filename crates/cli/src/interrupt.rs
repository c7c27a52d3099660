//! Ctrl-C: measuring commands stop cleanly and write partial results; the other commands end at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::INTERRUPTED;

static STOP: AtomicBool = AtomicBool::new(false);
static ARMED: AtomicBool = AtomicBool::new(false);
static WRITING: AtomicBool = AtomicBool::new(false);

/// Number of rows from which a note says that the result is being written.
pub(crate) const NOTED_ROWS_MIN: usize = 100_000;

/// Installs the handler; called once, at the start.
pub(crate) fn install() {
    let handler = || {
        let first = !STOP.swap(true, Ordering::Relaxed);
        // A second Ctrl-C does not wait for anything.
        if !(first && ARMED.load(Ordering::Relaxed)) {
            std::process::exit(INTERRUPTED);
        }
        if WRITING.load(Ordering::Relaxed) {
            announce_stop();
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("warning: Ctrl-C will not be reported by exit code {INTERRUPTED}: {error}");
    }
}

/// Calls `write`, which writes a result of `rows` rows. The first Ctrl-C never interrupts `write`, whether it stopped the run
/// or comes during `write`. If there are many rows, a note on standard error says so.
pub(crate) fn writing<T>(rows: usize, write: impl FnOnce() -> T) -> T {
    if rows < NOTED_ROWS_MIN {
        return write();
    }
    WRITING.store(true, Ordering::Relaxed);
    if STOP.load(Ordering::Relaxed) {
        announce_stop();
    }
    let written = write();
    WRITING.store(false, Ordering::Relaxed);
    written
}

fn announce_stop() {
    eprintln!("stopped: writing the result; press Ctrl-C again to abort");
}

/// Returns a flag that Ctrl-C sets from now on, instead of ending the command.
pub(crate) fn flag() -> &'static AtomicBool {
    ARMED.store(true, Ordering::Relaxed);
    &STOP
}
