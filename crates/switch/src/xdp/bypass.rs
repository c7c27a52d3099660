//! Filters of the kernel that send frames back by their input port while the switch does not run.
//!
//! A port's redirect program takes each frame before these filters. The kernel detaches the program when the process ends, in
//! whatever way. The filters stay.

use std::io;
use std::process::{Command, Stdio};

/// Preference of the filter: it is the first one.
const PREFERENCE: &str = "1";

/// Installs the filter of an interface, unless an earlier start has done so.
///
/// # Errors
/// If another filter has the same preference, or the command `tc` is missing or refuses, as without the capability
/// CAP_NET_ADMIN.
pub(super) fn install(interface: &str) -> io::Result<()> {
    let place = ["dev", interface, "ingress", "protocol", "all", "pref", PREFERENCE];
    // The queueing discipline exists where another program or an earlier start has added it.
    let _ = tc(&["qdisc", "add", "dev", interface, "clsact"]);
    let found = tc(&[&["filter", "show"], &place[..]].concat())?;
    if found.contains(&format!("Redirect to device {interface})")) {
        return Ok(());
    }
    if !found.trim().is_empty() {
        return Err(io::Error::other(format!("it has another filter of preference {PREFERENCE}")));
    }
    let action =
        ["u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", interface];
    tc(&[&["filter", "add"], &place[..], &action].concat()).map(drop)
}

/// Runs `tc`, and returns what it printed.
fn tc(arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("tc").args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("tc: {}", said.lines().next().unwrap_or("it failed"))))
}
