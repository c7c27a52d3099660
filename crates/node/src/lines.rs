//! Repairs and synchronises files of lines that outlive their process and a loss of power.

use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::machine::{HostMachine, MachineFile, OpenMode};

/// Bytes that are read or written at a time.
const BLOCK: usize = 64 << 10;

/// Receives the lines of a journal's earlier incarnations as the journal is opened, so that the file is read once.
pub trait EarlierLines {
    /// Takes the next whole line, without its newline. Headers and lines about terms are among them.
    fn take_line(&mut self, line: &str);
}

/// Ignores the lines.
impl EarlierLines for () {
    fn take_line(&mut self, _line: &str) {}
}

/// Returns the end of the file's last whole line, in bytes; 0 without one.
pub(crate) fn whole(file: &mut (impl Read + Seek)) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK as u64);
        block.resize((end - start) as usize, 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(place) = block.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + place as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Synchronises the folder of a file, so that the file's name is on disk (`fsync(2)`).
pub(crate) fn sync_folder(machine: &HostMachine, path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => machine.sync_folder(Path::new(".")),
        Some(folder) => machine.sync_folder(folder),
        None => Ok(()),
    }
}

/// Removes damaged lines, which a loss of power may have left in a file. Does nothing if the file does not exist. Holds
/// one line in memory at a time.
///
/// `is_whole` receives the lines in their order, and returns false for a damaged one. With `cuts`, all lines behind the
/// first damaged one are removed as well, and the kept lines are on disk afterwards.
pub(crate) fn repair(
    machine: &HostMachine,
    path: &Path,
    cuts: bool,
    mut is_whole: impl FnMut(&str) -> bool,
) -> io::Result<()> {
    if !machine.exists(path)? {
        return Ok(());
    }
    let mut input = BufReader::with_capacity(BLOCK, machine.open(path, OpenMode::Read)?);
    // After a failed `fsync(2)`, the kernel marks pages as clean that are not on disk, and a further `fsync` does not write
    // them. With `cuts`, the kept lines are therefore written once more, over themselves.
    let mut output = if cuts { Some(writer(machine.open(path, OpenMode::Write)?)) } else { None };
    let repaired = path.with_extension("repaired");
    let (mut line, mut kept, mut damaged, mut lost) = (Vec::new(), 0, 0_u64, 0);
    loop {
        line.clear();
        input.read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\n") else { break };
        if std::str::from_utf8(text).is_ok_and(&mut is_whole) {
            kept += line.len() as u64;
            if let Some(output) = &mut output {
                output.write_all(&line)?;
            }
            continue;
        }
        damaged += 1;
        lost += line.len() as u64;
        if cuts {
            lost = input.seek(SeekFrom::End(0))? - kept;
            break;
        }
        if output.is_none() {
            // Without `cuts`, a new file takes the whole lines from the first damaged one on.
            let mut new = writer(machine.open(&repaired, OpenMode::Create)?);
            io::copy(&mut machine.open(path, OpenMode::Read)?.take(kept), &mut new)?;
            output = Some(new);
        }
    }
    if damaged > 0 {
        tracing::warn!(file = %path.display(), damaged, bytes = lost, "took damaged lines out of a file");
    }
    let Some(output) = output else { return Ok(()) };
    let file = output.into_inner().map_err(io::IntoInnerError::into_error)?;
    if cuts && damaged > 0 {
        file.set_len(kept)?;
    }
    file.sync_data()?;
    if cuts {
        return Ok(());
    }
    machine.rename(&repaired, path)?;
    sync_folder(machine, path)
}

fn writer(file: MachineFile) -> BufWriter<MachineFile> {
    BufWriter::with_capacity(BLOCK, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of several blocks, each with its number; damaged ones begin with `x`.
    fn text(lines: u64, damaged: &[u64]) -> String {
        let line = |number| {
            let mark = if damaged.contains(&number) { "x" } else { "" };
            format!("{mark}{number} {}\n", "-".repeat(number as usize % 90))
        };
        (0..lines).map(line).collect()
    }

    #[test]
    fn damaged_lines_are_removed_from_a_file_of_many_blocks() {
        let folder = std::env::temp_dir().join(format!("fanin-lines-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("process.journal");
        let lines = 20_000;
        for damaged in [vec![], vec![0], vec![1_311, 1_312, 15_000], vec![19_999], (0..lines).collect()] {
            for rest in ["", "123 no end of a li"] {
                for cuts in [false, true] {
                    std::fs::write(&path, text(lines, &damaged) + rest).unwrap();
                    let mut seen = 0;
                    repair(&HostMachine::Real, &path, cuts, |line| {
                        seen += 1;
                        !line.starts_with('x')
                    })
                    .unwrap();
                    let found = std::fs::read_to_string(&path).unwrap();
                    let first = damaged.first().copied().unwrap_or(lines);
                    let whole = text(lines, &damaged);
                    let kept: String =
                        whole.split_inclusive('\n').filter(|line| !line.starts_with('x')).collect();
                    let expected = match (cuts, damaged.is_empty()) {
                        (_, true) => whole + rest,
                        (true, false) => text(first, &[]),
                        (false, false) => kept,
                    };
                    assert!(found == expected, "{damaged:?}, {rest:?}, {cuts}: {} bytes", found.len());
                    assert_eq!(seen, if cuts { lines.min(first + 1) } else { lines });
                    assert!(!path.with_extension("repaired").exists());
                }
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
