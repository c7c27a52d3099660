//! The lines about terms in the journals of two supervisors.
//!
//! The two journals are one log: equal bytes, up to the place where the leader was lost. `# fanin leads TERM LEADER LOG PARTNER` says that
//! a term was decided, `# fanin pairs …` that a pairing may be decided from there on.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Leadership;
use crate::machine::{HostMachine, OpenMode};

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

/// The file with the identity of the log in this journal. A journal without one was never shared.
pub(crate) fn identity_path(journal: &Path) -> PathBuf {
    journal.with_extension("log-identity")
}

/// Reads bytes of a file.
pub(crate) fn read_part(machine: &HostMachine, path: &Path, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut file = machine.open(path, OpenMode::Read)?;
    file.seek(SeekFrom::Start(from))?;
    let mut text = vec![0; (to - from) as usize];
    file.read_exact(&mut text)?;
    Ok(text)
}
