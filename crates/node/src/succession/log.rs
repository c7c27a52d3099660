//! The lines about terms in the journals of two supervisors, and which of the two counts.
//!
//! The two journals are one log: equal bytes, up to the place where the leader was lost. `# fanin leads TERM LEADER LOG PARTNER` says that
//! a term was decided, `# fanin pairs …` that a pairing may be decided from there on.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Leadership;
use crate::journal::JournalError;
use crate::machine::{HostMachine, OpenMode};
use crate::names::STANDBY;

const LEADS: &str = "# fanin leads ";
const PAIRS: &str = "# fanin pairs ";

/// A line about a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermLine {
    /// A term that was decided.
    Leads(Leadership),
    /// A pairing that may be decided from here on.
    Pairs(Leadership),
}

impl TermLine {
    /// Reads a line, with or without its end; `None` if it is about something else.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.first() != Some(&b'#') {
            return None;
        }
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let leads = line.strip_prefix(LEADS).and_then(Leadership::parse).map(Self::Leads);
        leads.or_else(|| line.strip_prefix(PAIRS).and_then(Leadership::parse).map(Self::Pairs))
    }

    /// The line, with its end.
    pub fn to_text(self) -> String {
        match self {
            Self::Leads(one) => format!("{LEADS}{one}\n"),
            Self::Pairs(one) => format!("{PAIRS}{one}\n"),
        }
    }
}

/// Reads bytes of a file.
pub(crate) fn read_part(machine: &HostMachine, path: &Path, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut file = machine.open(path, OpenMode::Read)?;
    file.seek(SeekFrom::Start(from))?;
    let mut text = vec![0; (to - from) as usize];
    file.read_exact(&mut text)?;
    Ok(text)
}

/// Takes out the journal of a supervisor that was replaced: the other one has all that was acted upon.
///
/// # Errors
/// If one of the two cannot be read.
pub fn keep_leading(machine: &HostMachine, paths: &mut Vec<PathBuf>) -> Result<(), JournalError> {
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
