//! Lists the journals of a run, and chooses between those of a supervisor and its standby.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use fanin_dataflow::{EventStep, L1Id};

use crate::journal::{self, HEADER, JournalError, LogFiles};
use crate::machine::{HostMachine, OpenMode};
use crate::names::STANDBY;
use crate::resume::Resume;
use crate::succession::{Leadership, TermLine, identity_path};

/// Returns the paths of the files with a wanted name in the folders of one run, sorted by name.
///
/// # Errors
/// If a folder cannot be read, or if two folders have a file of the same name.
pub(crate) fn list<'a>(
    machine: &HostMachine,
    folders: impl IntoIterator<Item = &'a Path>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, JournalError> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in folders {
        let io = |error| JournalError::Io { path: folder.to_owned(), error };
        for path in machine.list(folder).map_err(io)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if !is_wanted(&name) {
                continue;
            }
            if let Some(first) = found.insert(name, path.clone()) {
                return Err(JournalError::TwoRuns { first, second: path });
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Returns the paths of the journals in `folders`, sorted by name, without those of the replaced supervisor.
///
/// # Errors
/// If a folder or a supervisor's journal cannot be read, or if two folders have a journal of the same name.
pub(crate) fn journals(folders: &[&Path]) -> Result<Vec<PathBuf>, JournalError> {
    let machine = HostMachine::Real;
    let mut paths = list(&machine, folders.iter().copied(), |name| name.ends_with(".journal"))?;
    keep_leading(&machine, &mut paths)?;
    Ok(paths)
}

/// Removes the journals of the replaced supervisor from `paths`. The other log has all records that were acted upon.
/// Changes nothing if `paths` lacks the log of the supervisor or of the standby.
///
/// # Errors
/// If one of the two cannot be read.
pub(crate) fn keep_leading(machine: &HostMachine, paths: &mut Vec<PathBuf>) -> Result<(), JournalError> {
    if let Some((_, replaced)) = leading_and_replaced(machine, paths)? {
        paths.retain(|path| !replaced.iter().any(|(_, file)| file == path));
    }
    Ok(())
}

/// Returns the events whose assignment is recorded in the leader's log, but was never sent to a collector.
///
/// A paired leader sends an assignment once its partner has the record on disk. The partner's log is the start of the
/// leader's. Assignments behind the end of the partner's log were therefore not sent.
///
/// # Errors
/// If one of the two cannot be read.
pub(crate) fn never_assigned(
    machine: &HostMachine,
    paths: &[PathBuf],
) -> Result<BTreeSet<L1Id>, JournalError> {
    let Some((leading, replaced)) = leading_and_replaced(machine, paths)? else { return Ok(BTreeSet::new()) };
    let (Some((_, path)), Some((_, copied_path))) = (leading.last(), replaced.last()) else {
        return Ok(BTreeSet::new());
    };
    let io = |error| JournalError::Io { path: path.clone(), error };
    // Without its last file, the copy says nothing about the lines behind it.
    if !journal::is_present(machine, &replaced, &plain(copied_path)).map_err(io)? {
        return Ok(BTreeSet::new());
    }
    let last = last_term(machine, path).map_err(io)?.0;
    let identity = identity_path(&plain(copied_path));
    let is_partner = last.is_paired() && machine.exists(&identity).map_err(io)? && {
        let text = machine.read(&identity).map_err(io)?;
        String::from_utf8_lossy(&text).trim().parse() == Ok(last.partner)
    };
    if !is_partner {
        return Ok(BTreeSet::new());
    }
    // Older files of either log may be deleted.
    let from = leading[0].0.max(replaced[0].0);
    let mut log = open_at(machine, &leading, from).map_err(io)?;
    let mut copy = open_at(machine, &replaced, from).map_err(io)?;
    let (mut line, mut copied) = (Vec::new(), Vec::new());
    let (mut is_copied, mut has_common, mut newest, mut events) = (true, false, None, BTreeSet::new());
    while log.read_until(b'\n', &mut line).map_err(io)? > 0 && line.ends_with(b"\n") {
        if is_copied {
            copy.read_until(b'\n', &mut copied).map_err(io)?;
            is_copied = copied == line;
            // The copy has other lines, or ends before the first common offset.
            if !is_copied && (copied.ends_with(b"\n") || !has_common) {
                return Ok(BTreeSet::new());
            }
            has_common = true;
        }
        if is_copied && let Some(next) = next_event(&line) {
            // Events before were assigned in deleted files.
            newest = newest.max(next.0.checked_sub(1).map(L1Id));
        }
        if let Some(event) = assigned(&line) {
            if is_copied {
                newest = newest.max(Some(event));
            } else if Some(event) > newest {
                events.insert(event);
            }
        }
        line.clear();
        copied.clear();
    }
    Ok(events)
}

/// Returns the event that a line of a journal assigns; `None` for other lines.
fn assigned(line: &[u8]) -> Option<L1Id> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let record = journal::parse(line).ok()?.record;
    matches!(record.step, EventStep::Assigned { .. }).then_some(record.event)
}

/// Returns the event that is assigned next, if a line is a header with the unfinished work.
fn next_event(line: &[u8]) -> Option<L1Id> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    Resume::of_header(line.strip_prefix(HEADER)?)?.next
}

/// Returns the path of the present file of a log, from the path of any of its files.
fn plain(file: &Path) -> PathBuf {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    file.with_file_name(format!("{}.journal", name.split('.').next().unwrap_or_default()))
}

/// Opens the files of a log as one, from offset `from` on.
fn open_at(machine: &HostMachine, files: &LogFiles, from: u64) -> io::Result<impl BufRead> {
    let mut input: Box<dyn Read> = Box::new(io::empty());
    // Files that end before the offset are behind the last one that starts at it or before.
    let first = files.iter().rposition(|(start, _)| *start <= from).unwrap_or(0);
    for (start, path) in &files[first..] {
        let mut file = machine.open(path, OpenMode::Read)?;
        file.seek(SeekFrom::Start(from.saturating_sub(*start)))?;
        input = Box::new(input.chain(file));
    }
    Ok(BufReader::new(input))
}

/// Returns the files of the two supervisors' logs: first the log with the latest term. `None` if one of them is missing.
fn leading_and_replaced(
    machine: &HostMachine,
    paths: &[PathBuf],
) -> Result<Option<(LogFiles, LogFiles)>, JournalError> {
    let find = |process: &str| -> Result<LogFiles, JournalError> {
        let present = format!("{process}.journal");
        let is_file = |path: &&PathBuf| plain(path).file_name().is_some_and(|name| *name == *present);
        let files: Vec<PathBuf> = paths.iter().filter(is_file).cloned().collect();
        let of = files.last().cloned().unwrap_or_default();
        journal::in_order(machine, files).map_err(|error| JournalError::Io { path: of, error })
    };
    let (first, second) = (find("supervisor")?, find(STANDBY)?);
    // With equal terms, the longer log leads: the other one is its start.
    let rank = |files: &LogFiles| {
        let Some((start, path)) = files.last() else { return Ok(None) };
        let (last, bytes) =
            last_term(machine, path).map_err(|error| JournalError::Io { path: path.clone(), error })?;
        Ok(Some((last.term, start + bytes as u64)))
    };
    let (Some(one), Some(other)) = (rank(&first)?, rank(&second)?) else { return Ok(None) };
    Ok(Some(if one >= other { (first, second) } else { (second, first) }))
}

/// Returns the highest term in a journal, and the size of the journal in bytes.
fn last_term(machine: &HostMachine, path: &Path) -> io::Result<(Leadership, usize)> {
    let mut input = BufReader::new(machine.open(path, OpenMode::Read)?);
    let (mut line, mut last, mut bytes) = (Vec::new(), Leadership::default(), 0);
    while input.read_until(b'\n', &mut line)? > 0 {
        bytes += line.len();
        if let Some(TermLine::Leads(one)) = TermLine::parse(&line)
            && one.term > last.term
        {
            last = one;
        }
        line.clear();
    }
    Ok((last, bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the events that were never assigned, for these lines in the journals. The standby's log has the identity 8.
    fn unassigned(test: &str, supervisor: &str, standby: &str) -> Vec<u64> {
        let folder = std::env::temp_dir().join(format!("fanin-unassigned-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let paths = [("supervisor", supervisor, "7"), (STANDBY, standby, "8")].map(|(name, text, log)| {
            let path = folder.join(format!("{name}.journal"));
            fs::write(&path, format!("# fanin journal 1 supervisor epoch-us 1000\n{text}")).unwrap();
            fs::write(identity_path(&path), log).unwrap();
            path
        });
        let events = never_assigned(&HostMachine::Real, &paths).unwrap();
        fs::remove_dir_all(folder).unwrap();
        events.into_iter().map(|event| event.0).collect()
    }

    #[test]
    fn events_that_the_partner_never_had_were_never_assigned() {
        let held = "# fanin leads 1 0 7 0\n0 4 assigned 0 0 0 0\n# fanin pairs 2 0 7 8\n# fanin leads 2 0 7 8\n0 5 assigned 0 0 0 0\n";
        let more =
            "1 5 reassigned 0\n1 5 assigned 1 0 1 1\n2 6 assigned 0 0 0 0\n3 7 assigned 0 0 0 0\n4 8 assi";
        let log = format!("{held}{more}");
        assert_eq!(unassigned("tail", &log, held), [6, 7]);
        assert_eq!(unassigned("torn", &log, &log[..held.len() + 30]), [6, 7]);
        assert_eq!(unassigned("one-more", &log, &log[..log.find("3 7").unwrap()]), [7]);
        assert!(unassigned("all", &log, &log).is_empty());
        // A leader without a partner does not wait. A leader that is paired with another log does not wait for this one.
        let alone = format!("{log}gned 0 0 0 0\n# fanin leads 3 0 7 0\n5 9 assigned 0 0 0 0\n");
        assert!(unassigned("alone", &alone, held).is_empty());
        let elsewhere = |text: &str| text.replace("7 8\n", "7 9\n");
        assert!(unassigned("elsewhere", &elsewhere(&log), &elsewhere(held)).is_empty());
        // The other log is not the start of this one.
        assert!(unassigned("other", &log, &held.replace("0 5", "0 3")).is_empty());
        // The supervisor that took over has recorded its term.
        let taken = format!("{held}# fanin leads 3 1 8 0\n");
        assert!(unassigned("taken", &log, &taken).is_empty());
    }

    /// A copy in several files: `lose` takes files of it away.
    #[test]
    fn a_part_of_the_copy_excuses_no_event() {
        let unassigned = |test: &str, lose: &dyn Fn(&Path)| {
            let folder = std::env::temp_dir().join(format!("fanin-partial-{test}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            let header = "# fanin journal 1 supervisor";
            let first = format!("{header} epoch-us 1000\n# fanin leads 2 0 7 8\n0 5 assigned 0 0 0 0\n");
            let next = format!(
                "{header} at {} open 6 5:0 - epoch-us 1000\n# fanin leads 2 0 7 8\n1 6 assigned 0 0 0 0\n",
                first.len()
            );
            for (process, log, more) in [("supervisor", "7", "2 7 assigned 0 0 0 0\n"), (STANDBY, "8", "")] {
                let path = folder.join(format!("{process}.journal"));
                fs::write(path.with_extension("00001.journal"), &first).unwrap();
                fs::write(&path, format!("{next}{more}")).unwrap();
                fs::write(identity_path(&path), log).unwrap();
            }
            lose(&folder);
            let paths = list(&HostMachine::Real, [&*folder], |name| name.ends_with(".journal")).unwrap();
            let events = never_assigned(&HostMachine::Real, &paths).unwrap();
            fs::remove_dir_all(folder).unwrap();
            events.into_iter().map(|event| event.0).collect::<Vec<_>>()
        };
        let name = |folder: &Path, name: &str| folder.join(name);
        let remove = |folder: &Path, file: &str| fs::remove_file(name(folder, file)).unwrap();
        assert_eq!(unassigned("whole", &|_| ()), [7]);
        assert_eq!(unassigned("older", &|folder| remove(folder, "supervisor.00001.journal")), [7]);
        // The present file of the copy is lost: it had event 6.
        assert!(unassigned("closed", &|folder| remove(folder, "standby.journal")).is_empty());
        // The process ended between two renames: the lines of the next file were not acknowledged.
        let rename = |folder: &Path| {
            fs::rename(name(folder, "standby.journal"), name(folder, "standby.journal-new")).unwrap();
        };
        assert_eq!(unassigned("between", &rename), [6, 7]);
        // The file of a failed change is not the next one.
        let other = |folder: &Path| {
            remove(folder, "standby.journal");
            fs::write(name(folder, "standby.journal-new"), "# fanin journal 1 supervisor at 9 epoch-us 1\n")
                .unwrap();
        };
        assert!(unassigned("other", &other).is_empty());
        // The copy ends before the oldest file of the leader.
        let short = |folder: &Path| {
            remove(folder, "supervisor.00001.journal");
            fs::rename(name(folder, "standby.00001.journal"), name(folder, "standby.journal")).unwrap();
        };
        assert!(unassigned("short", &short).is_empty());
    }

    #[test]
    fn the_files_of_a_log_come_in_the_order_of_their_numbers() {
        let folder = std::env::temp_dir().join(format!("fanin-log-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let numbers = [7, 99_999, 100_000];
        let mut names: Vec<String> =
            numbers.iter().map(|number| format!("standby.{number:05}.journal")).collect();
        names.push("standby.journal".to_owned());
        names.iter().for_each(|name| fs::write(folder.join(name), "").unwrap());
        let paths = list(&HostMachine::Real, [&*folder], |_| true).unwrap();
        let found = [
            journal::in_order(&HostMachine::Real, paths).unwrap(),
            journal::log_files(&HostMachine::Real, &folder.join("standby.journal")).unwrap(),
        ];
        fs::remove_dir_all(&folder).unwrap();
        for files in found {
            let files: Vec<_> =
                files.iter().map(|(_, path)| path.file_name().unwrap().to_str().unwrap()).collect();
            assert_eq!(files, names);
        }
    }

    #[test]
    fn two_folders_with_a_file_of_one_name_are_of_two_runs() {
        let base = std::env::temp_dir().join(format!("fanin-two-runs-{}", std::process::id()));
        let folders = [base.join("a"), base.join("b")];
        for (folder, names) in folders.iter().zip([["b.journal", "x.data"], ["a.journal", "x.data"]]) {
            fs::create_dir_all(folder).unwrap();
            names.iter().for_each(|name| fs::write(folder.join(name), "").unwrap());
        }
        let [first, second] = folders.each_ref().map(PathBuf::as_path);
        let found = journals(&[first, second]).unwrap();
        let both = list(&HostMachine::Real, [first, second], |_| true);
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(found, [second.join("a.journal"), first.join("b.journal")]);
        assert!(matches!(both, Err(JournalError::TwoRuns { .. })), "{both:?}");
        assert!(matches!(journals(&[first]), Err(JournalError::Io { .. })), "the folder is gone");
    }

    /// Returns the names of the kept journals, for these lines in the two supervisors' journals.
    fn kept(test: &str, supervisor: &str, standby: &str) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("fanin-replaced-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(format!("{name}.journal"));
            fs::write(&path, format!("# fanin journal 1 {name} epoch-us 1000\n{text}")).unwrap();
            path
        };
        let mut paths = vec![file("collector-0", ""), file("supervisor", supervisor), file(STANDBY, standby)];
        keep_leading(&HostMachine::Real, &mut paths).unwrap();
        fs::remove_dir_all(folder).unwrap();
        paths.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_journal_of_the_latest_term_is_kept() {
        let first = "# fanin leads 1 0 7 8\n0 1 assigned 0 0 0 0\n";
        let later = "# fanin leads 1 0 7 8\n# fanin leads 2 1 8 0\n";
        // The replaced journal may be longer: no process acted upon its last lines.
        assert_eq!(kept("standby", &first.repeat(3), later), ["collector-0", STANDBY]);
        assert_eq!(kept("supervisor", later, &first.repeat(3)), ["collector-0", "supervisor"]);
    }

    #[test]
    fn of_one_term_the_longer_journal_is_kept() {
        let (short, long) = ("# fanin leads 1 0 7 8\n", "# fanin leads 1 0 7 8\n0 1 assigned 0 0 0 0\n");
        assert_eq!(kept("short-standby", long, short), ["collector-0", "supervisor"]);
        assert_eq!(kept("long-standby", short, long), ["collector-0", STANDBY]);
        // A pairing that was not decided does not count as a term.
        let asked = "# fanin leads 1 0 7 8\n# fanin pairs 5 1 8 7\n";
        assert_eq!(kept("asked", &format!("{long}{long}"), asked), ["collector-0", "supervisor"]);
    }
}
