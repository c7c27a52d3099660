//! A test that cannot run here says so, and is counted as skipped by `scripts/test.py`.

use std::fmt::Display;
use std::io::Write;

/// Reports that the running test is skipped, and the reason.
///
/// # Panics
/// With FANIN_REQUIRE_PRIVILEGES=1, as in continuous integration: there a test that cannot run fails.
#[track_caller]
#[allow(dead_code, reason = "one test file may need the other function only")]
pub(crate) fn skip(reason: impl Display) {
    let required = std::env::var_os("FANIN_REQUIRE_PRIVILEGES").is_some_and(|value| value == "1");
    assert!(!required, "FANIN_REQUIRE_PRIVILEGES=1, and this test cannot run: {reason}");
    let thread = std::thread::current();
    // Written directly: the test harness swallows what `eprintln!` prints in a test that passes.
    let _ = writeln!(std::io::stderr(), "\nSKIPPED {}: {reason}", thread.name().unwrap_or("a test"));
}

/// Reports that the machine was too busy to measure: the test counts as skipped, in continuous integration too.
#[allow(dead_code, reason = "few tests measure")]
pub(crate) fn not_measured(reason: impl Display) {
    let thread = std::thread::current();
    let _ = writeln!(
        std::io::stderr(),
        "\nSKIPPED {}: not measured: {reason}",
        thread.name().unwrap_or("a test")
    );
}
