//! Ctrl-C: commands that measure something stop cleanly and write what they have; the others just end.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::INTERRUPTED;

static STOP: AtomicBool = AtomicBool::new(false);
static ARMED: AtomicBool = AtomicBool::new(false);

/// Installs the handler; called once, at the start.
pub(crate) fn install() {
    let handler = || {
        let first = !STOP.swap(true, Ordering::Relaxed);
        // A second Ctrl-C does not wait for anything.
        if !(first && ARMED.load(Ordering::Relaxed)) {
            std::process::exit(INTERRUPTED);
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("warning: Ctrl-C will not be reported by exit code {INTERRUPTED}: {error}");
    }
}

/// A flag that Ctrl-C sets from now on, instead of ending the command.
pub(crate) fn flag() -> &'static AtomicBool {
    ARMED.store(true, Ordering::Relaxed);
    &STOP
}
