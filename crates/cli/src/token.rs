//! The token of a switch's HTTP interface.

use std::path::PathBuf;

use crate::failure::Failure;

/// Reads the token in a file, without white space around it.
pub(crate) fn read_token(path: &PathBuf) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::NoToken { path: path.clone(), error })?;
    Ok(text.trim().to_owned())
}
