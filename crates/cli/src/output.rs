//! Writing to the terminal, to a pipe and to files.

use std::io::{self, IsTerminal, Write};

use fanin_scenario::Warnings;

use crate::failure::Failure;

/// Writes a whole text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Says on standard error what is not wrong, but most likely not meant.
pub(crate) fn warn(warnings: &Warnings) {
    if !warnings.problems().is_empty() {
        eprintln!("{}\n", warnings.render(is_coloured(&io::stderr())));
    }
}

/// Whether colours belong on this stream: on a terminal, unless `NO_COLOR` (<https://no-color.org>) says otherwise.
pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}
