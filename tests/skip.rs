//! A test that cannot run here says so, and is counted as skipped by `scripts/test.py`.

use std::fmt::Display;
use std::io::Write;

/// Reports that the running test is skipped, and the reason.
///
/// # Panics
/// With FANIN_REQUIRE_PRIVILEGES=1, as in continuous integration: there a test that cannot run fails.
#[track_caller]
pub(crate) fn skip(reason: impl Display) {
    let required = std::env::var_os("FANIN_REQUIRE_PRIVILEGES").is_some_and(|value| value == "1");
    assert!(!required, "FANIN_REQUIRE_PRIVILEGES=1, and this test cannot run: {reason}");
    let thread = std::thread::current();
    // Written directly: the test harness swallows what `eprintln!` prints in a test that passes.
    let _ = writeln!(std::io::stderr(), "\nSKIPPED {}: {reason}", thread.name().unwrap_or("a test"));
}
