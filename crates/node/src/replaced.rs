//! The choice between the journals of two supervisors.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::journal::JournalError;
use crate::machine::{HostMachine, OpenMode};
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
        last_term(machine, path).map_err(|error| JournalError::Io { path: path.clone(), error })
    };
    let replaced = if rank(first)? >= rank(second)? { second } else { first };
    paths.remove(replaced);
    Ok(())
}

/// The last term of a journal, and its bytes.
fn last_term(machine: &HostMachine, path: &Path) -> io::Result<(u64, usize)> {
    let mut input = BufReader::new(machine.open(path, OpenMode::Read)?);
    let (mut line, mut term, mut bytes) = (Vec::new(), 0, 0);
    while input.read_until(b'\n', &mut line)? > 0 {
        bytes += line.len();
        if let Some(TermLine::Leads(one)) = TermLine::parse(&line) {
            term = term.max(one.term);
        }
        line.clear();
    }
    Ok((term, bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The journals that are kept, if those of the two supervisors have these lines.
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
        // The replaced one may be longer: no process acted upon its last lines.
        assert_eq!(kept("standby", &first.repeat(3), later), ["collector-0", STANDBY]);
        assert_eq!(kept("supervisor", later, &first.repeat(3)), ["collector-0", "supervisor"]);
    }

    #[test]
    fn of_one_term_the_longer_journal_is_kept() {
        let (short, long) = ("# fanin leads 1 0 7 8\n", "# fanin leads 1 0 7 8\n0 1 assigned 0 0 0 0\n");
        assert_eq!(kept("short-standby", long, short), ["collector-0", "supervisor"]);
        assert_eq!(kept("long-standby", short, long), ["collector-0", STANDBY]);
        // A pairing that was not decided is no term.
        let asked = "# fanin leads 1 0 7 8\n# fanin pairs 5 1 8 7\n";
        assert_eq!(kept("asked", &format!("{long}{long}"), asked), ["collector-0", "supervisor"]);
    }
}
