//! The commands `ip` and `tc` in batch mode: one process a namespace instead of one a setting.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::BuildError;

/// Runs `lines` of `ip` inside `namespace`, or outside of all namespaces if it is `None`. Stops at the first line that
/// fails.
pub(crate) fn batch(namespace: Option<&str>, lines: &[String]) -> Result<(), BuildError> {
    run("ip", namespace, lines)
}

/// Runs `lines` of `tc` inside `namespace`.
pub(crate) fn shape(namespace: &str, lines: &[String]) -> Result<(), BuildError> {
    run("tc", Some(namespace), lines)
}

fn run(program: &'static str, namespace: Option<&str>, lines: &[String]) -> Result<(), BuildError> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut command = Command::new(program);
    if let Some(namespace) = namespace {
        command.args(["-n", namespace]);
    }
    let missing = |source| BuildError::Command { name: program, package: "iproute2", source };
    let mut child = command
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    let text = lines.join("\n") + "\n";
    // No deadlock: `ip` prints only when a line fails, and then it ends, so that its output never fills the pipe.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(missing)?;
    if output.status.success() {
        return written.map_err(missing);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let line = line_of(&said).and_then(|number| lines.get(number - 1)).cloned().unwrap_or_default();
    Err(BuildError::Refused { program, namespace: namespace.map(str::to_owned), line, said })
}

/// Finds the line number in the last line of `ip`, such as `Command failed -:7`.
fn line_of(said: &str) -> Option<usize> {
    said.rsplit_once("Command failed -:")?.1.trim().parse().ok().filter(|&line| line > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_failed_is_named() {
        assert_eq!(line_of("Error: Unknown device type.\nCommand failed -:7"), Some(7));
        assert_eq!(line_of("Cannot open network namespace \"x\""), None);
        assert_eq!(line_of("Command failed -:0"), None);
    }
}
