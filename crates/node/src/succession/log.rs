//! Lines about terms in the journals of a supervisor and its standby.
//!
//! The two journals are copies of one log: equal bytes up to the offset at which the leader was lost. The line `# fanin
//! leads TERM LEADER LOG PARTNER` records a decided term. `# fanin pairs …` records a pairing that may be decided later.
//! Each file of the log repeats the latest term, as older files may be deleted.

use std::path::{Path, PathBuf};

use super::Leadership;

const LEADS: &str = "# fanin leads ";
const PAIRS: &str = "# fanin pairs ";

/// A line about a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermLine {
    /// A decided term.
    Leads(Leadership),
    /// A pairing that may be decided after this line.
    Pairs(Leadership),
}

impl TermLine {
    /// Parses a line, with or without its newline; returns `None` for any other line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.first() != Some(&b'#') {
            return None;
        }
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let leads = line.strip_prefix(LEADS).and_then(Leadership::parse).map(Self::Leads);
        leads.or_else(|| line.strip_prefix(PAIRS).and_then(Leadership::parse).map(Self::Pairs))
    }

    /// Returns the line with its newline.
    pub fn to_text(self) -> String {
        match self {
            Self::Leads(one) => format!("{LEADS}{one}\n"),
            Self::Pairs(one) => format!("{PAIRS}{one}\n"),
        }
    }
}

/// Returns the path of the file with the identity of a journal's log. A journal without this file was never shared.
pub(crate) fn identity_path(journal: &Path) -> PathBuf {
    journal.with_extension("log-identity")
}
