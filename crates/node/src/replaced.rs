//! The choice between the journals of two supervisors.

use std::path::PathBuf;

use crate::journal::JournalError;
use crate::machine::HostMachine;
use crate::names::STANDBY;
use crate::succession::TermLine;

/// Takes out the journal of a supervisor that was replaced: the other one has all that was acted upon.
///
/// # Errors
/// If one of the two cannot be read.
pub(crate) fn keep_leading(machine: &HostMachine, paths: &mut Vec<PathBuf>) -> Result<(), JournalError> {
    let find = |name: &str| {
        let name = format!("{name}.journal");
        paths.iter().position(|path| path.file_name().is_some_and(|file| *file == *name))
    };
    let (Some(first), Some(second)) = (find("supervisor"), find(STANDBY)) else { return Ok(()) };
    // Of one term, the longer one: the other is its beginning.
    let rank = |place: usize| {
        let path = &paths[place];
        let bytes = machine.read(path).map_err(|error| JournalError::Io { path: path.clone(), error })?;
        let terms = bytes.split(|&byte| byte == b'\n').filter_map(TermLine::parse);
        let last =
            terms.filter_map(|line| if let TermLine::Leads(one) = line { Some(one.term) } else { None });
        Ok::<_, JournalError>((last.max().unwrap_or(0), bytes.len()))
    };
    let replaced = if rank(first)? >= rank(second)? { second } else { first };
    paths.remove(replaced);
    Ok(())
}
