//! The log that two supervisors share, as one of them has it.

use std::path::{Path, PathBuf};

use crate::machine::HostMachine;
use crate::node::ProcessError;
use crate::succession::{Leadership, TermLine, read_part};

/// The log of one supervisor: its identity, its size and the terms in it.
#[derive(Debug)]
pub(super) struct SharedLog {
    id: u64,
    /// Bytes on disk, and with those that wait.
    size: u64,
    end: u64,
    /// The terms in it, each with the end of its line.
    terms: Vec<(Leadership, u64)>,
    /// The pairing under way, and the end of its line when that is on disk.
    pairing: Option<(Leadership, u64)>,
    /// Bytes whose terms were noted.
    scanned: u64,
}

impl SharedLog {
    /// Reads the log of an earlier life; one without a line gets a new identity.
    pub(super) fn open(machine: &HostMachine, path: &Path) -> Result<Self, ProcessError> {
        let read = |error| ProcessError::JournalWrite { path: path.to_owned(), error };
        let bytes = machine.read(path).map_err(read)?;
        let identity = identity_path(path);
        let stored = if machine.exists(&identity).map_err(read)? {
            let text = machine.read(&identity).map_err(read)?;
            String::from_utf8_lossy(&text).trim().parse().ok()
        } else {
            None
        };
        let end = bytes.len() as u64;
        let (terms, pairing) = (Vec::new(), None);
        let mut log = Self { id: 0, size: end, end, terms, pairing, scanned: 0 };
        match stored.filter(|_| end > 0) {
            Some(id) => log.id = id,
            None => log.id = new_identity(machine, path, stored.unwrap_or(0))?,
        }
        log.scan(&bytes);
        Ok(log)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Bytes on disk.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes with those that are not on disk yet.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The last term in it; 0 without one.
    pub(super) fn term(&self) -> u64 {
        self.known().term
    }

    /// The last term in it.
    pub(super) fn known(&self) -> Leadership {
        self.terms.last().map(|(term, _)| *term).unwrap_or_default()
    }

    /// The pairing that follows `known`, and where its line ends.
    pub(super) fn pairing(&self, known: Leadership) -> Option<(Leadership, u64)> {
        self.pairing.filter(|(value, _)| value.term == known.term + 1)
    }

    pub(super) fn begin_pairing(&mut self, value: Leadership) {
        self.pairing = Some((value, u64::MAX));
    }

    pub(super) fn forget_pairing(&mut self) {
        self.pairing = None;
    }

    /// True if a log of this size, with this last term, is the beginning of this one: one supervisor alone writes in a term.
    pub(super) fn begins_with(&self, size: u64, term: u64) -> bool {
        let here = self.terms.iter().rev().find(|(_, end)| *end <= size);
        size <= self.size && here.map_or(0, |(here, _)| here.term) == term && (term > 0 || size == 0)
    }

    /// Takes note of lines of the leader.
    pub(super) fn append(&mut self, text: &[u8]) {
        self.end += text.len() as u64;
        self.scan(text);
    }

    fn scan(&mut self, text: &[u8]) {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            self.scanned += line.len() as u64;
            match TermLine::parse(line) {
                Some(TermLine::Leads(value)) => self.terms.push((value, self.scanned)),
                Some(TermLine::Pairs(value)) => self.pairing = Some((value, self.scanned)),
                None => {}
            }
        }
    }

    /// The log has this size on disk. `has_terms`: lines of this process about terms are among the new ones.
    pub(super) fn handle_committed(
        &mut self,
        machine: &HostMachine,
        path: &Path,
        size: u64,
        has_terms: bool,
    ) -> Result<(), ProcessError> {
        if has_terms && size > self.scanned {
            let read = |error| ProcessError::JournalWrite { path: path.to_owned(), error };
            let text = read_part(machine, path, self.scanned, size).map_err(read)?;
            self.scan(&text);
        }
        (self.size, self.end, self.scanned) = (size, size, size);
        Ok(())
    }

    /// The log is begun anew.
    pub(super) fn restart(&mut self, machine: &HostMachine, path: &Path) -> Result<(), ProcessError> {
        let id = new_identity(machine, path, self.id)?;
        *self = Self { id, size: 0, end: 0, terms: Vec::new(), pairing: None, scanned: 0 };
        Ok(())
    }
}

fn identity_path(path: &Path) -> PathBuf {
    path.with_extension("log-identity")
}

/// Gives the log an identity that no log had before.
fn new_identity(machine: &HostMachine, path: &Path, older: u64) -> Result<u64, ProcessError> {
    let id = (machine.since_1970().as_micros() as u64).max(older + 1);
    machine
        .replace(&identity_path(path), id.to_string().as_bytes())
        .map_err(|error| ProcessError::JournalWrite { path: path.to_owned(), error })?;
    Ok(id)
}
