//! Reads the terms of a run with a standby from the logs of its two supervisors.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use super::{LiveSystem, Placement};
use crate::journal;
use crate::machine::{HostMachine, OpenMode};
use crate::names::name;
use crate::succession::{Leadership, TermLine};

/// Terms of a run with a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StandbyTerms {
    /// Number of decided terms.
    pub terms: u64,
    /// Terms in which the two supervisors were paired.
    pub paired: u64,
    /// Number of takeovers: a term whose leader differs from the leader of the term before.
    pub takeovers: u64,
}

impl StandbyTerms {
    /// Reads the terms from the journals of both supervisors, as far as their files are kept.
    ///
    /// # Errors
    /// If a journal cannot be read. A journal that does not exist has no terms.
    pub fn read(journals: &[&Path]) -> io::Result<Self> {
        let mut terms: BTreeMap<u64, Leadership> = BTreeMap::new();
        let mut files = Vec::new();
        for path in journals {
            match journal::log_files(&HostMachine::Real, path) {
                Ok(found) => files.extend(found),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        for (_, path) in files {
            let mut input = match HostMachine::Real.open(&path, OpenMode::Read) {
                Ok(file) => BufReader::new(file),
                // Its supervisor has deleted or renamed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let mut line = Vec::new();
            while input.read_until(b'\n', &mut line)? > 0 {
                if let Some(TermLine::Leads(one)) = TermLine::parse(&line) {
                    terms.insert(one.term, one);
                }
                line.clear();
            }
        }
        let leaders: Vec<u8> = terms.values().map(|one| one.leader).collect();
        Ok(Self {
            terms: terms.len() as u64,
            paired: terms.values().filter(|one| one.is_paired()).count() as u64,
            takeovers: leaders.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64,
        })
    }
}

impl fmt::Display for StandbyTerms {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { terms, paired, takeovers } = self;
        let was_paired = if *paired > 0 { "paired" } else { "never paired" };
        let plural = if *takeovers == 1 { "" } else { "s" };
        write!(out, "{was_paired} ({paired} of {terms} terms), {takeovers} takeover{plural}")
    }
}

impl<P: Placement> LiveSystem<P> {
    /// Reads the terms so far; returns `None` for a run without a standby.
    ///
    /// # Errors
    /// If a journal of a supervisor cannot be read.
    pub fn standby(&self) -> Option<io::Result<StandbyTerms>> {
        self.system.standby.as_ref()?;
        let journals = self.system.supervisors().into_iter().map(|peer| self.system.journal(&name(peer)));
        let journals: Vec<_> = journals.collect();
        Some(StandbyTerms::read(&journals.iter().map(|path| &**path).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_counted_over_both_logs() {
        let folder = std::env::temp_dir().join(format!("fanin-standby-terms-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let term =
            |term, leader, partner| TermLine::Leads(Leadership { term, leader, log: 7, partner }).to_text();
        let (first, second) = (folder.join("supervisor.journal"), folder.join("standby.journal"));
        std::fs::write(&first, [term(1, 0, 0), term(2, 0, 8)].concat()).unwrap();
        let lost = StandbyTerms::read(&[&first, &second]).unwrap();
        assert_eq!(lost.to_string(), "paired (1 of 2 terms), 0 takeovers");
        std::fs::write(&second, [term(1, 0, 0), term(2, 0, 8), term(3, 1, 0)].concat()).unwrap();
        let both = StandbyTerms::read(&[&first, &second]).unwrap();
        assert_eq!(both, StandbyTerms { terms: 3, paired: 1, takeovers: 1 });
        std::fs::write(&first, term(1, 0, 0)).unwrap();
        assert_eq!(
            StandbyTerms::read(&[&first]).unwrap().to_string(),
            "never paired (0 of 1 terms), 0 takeovers"
        );
        // Between two renames, the last file has the name of a closed one.
        std::fs::rename(&second, folder.join("standby.00001.journal")).unwrap();
        assert_eq!(StandbyTerms::read(&[&first, &second]).unwrap(), both);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(StandbyTerms::read(&[&first, &second]).unwrap(), StandbyTerms::default());
    }
}
