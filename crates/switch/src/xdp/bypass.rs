//! Filters of the kernel that send frames back by their input port while the switch does not run.
//!
//! A port's redirect program takes each frame before these filters. The kernel detaches the program when the process ends, in
//! whatever way. The filters stay.

use std::io;
use std::process::{Command, Stdio};

/// Preference of the filter: it is the first one.
const PREFERENCE: &str = "1";

/// Installs the filter of an interface, in place of an earlier one of the same preference.
///
/// # Errors
/// If the command `tc` is missing or refuses, as without the capability CAP_NET_ADMIN.
pub(super) fn install(interface: &str) -> io::Result<()> {
    let place = ["dev", interface, "ingress", "protocol", "all", "pref", PREFERENCE];
    // The queueing discipline exists where another program or an earlier start has added it, and so may the filter.
    let _ = tc(&["qdisc", "add", "dev", interface, "clsact"]);
    let _ = tc(&[&["filter", "delete"], &place[..]].concat());
    let action =
        ["u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", interface];
    tc(&[&["filter", "add"], &place[..], &action].concat())
}

fn tc(arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("tc").args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("tc: {}", said.lines().next().unwrap_or("it failed"))))
}
