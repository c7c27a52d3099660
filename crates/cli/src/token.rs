//! The token of a switch's HTTP interface.

use std::path::PathBuf;

use fanin_node::config::is_open_to_others;

use crate::failure::Failure;
use crate::output;

/// Reads the token in a file, without white space around it. Notes a file that every user of this host may read.
pub(crate) fn read_token(path: &PathBuf) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::NoToken { path: path.clone(), error })?;
    if is_open_to_others(path) {
        output::note(&format!(
            "every user of this host may read or write the token: chmod o= {}",
            path.display()
        ));
    }
    Ok(text.trim().to_owned())
}
