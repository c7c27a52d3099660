//! Writing to the terminal, to a pipe and to files.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes a whole text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
