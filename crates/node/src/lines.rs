//! Repairs and synchronises files of lines that outlive their process and a loss of power.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::machine::{HostMachine, OpenMode};

/// Returns the end of the file's last whole line, in bytes; 0 without one.
pub(crate) fn whole(file: &mut (impl Read + Seek)) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
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

/// Removes damaged lines, which a loss of power may have left in a file. Does nothing if the file does not exist.
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
    let bytes = machine.read(path)?;
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    let (mut kept, mut damaged) = (Vec::new(), 0);
    for line in bytes[..end].split_inclusive(|&byte| byte == b'\n') {
        if std::str::from_utf8(&line[..line.len() - 1]).is_ok_and(&mut is_whole) {
            kept.extend_from_slice(line);
        } else {
            damaged += 1;
            if cuts {
                break;
            }
        }
    }
    if damaged == 0 {
        return if cuts { write_again(machine, path, &kept) } else { Ok(()) };
    }
    let lost = end - kept.len();
    tracing::warn!(file = %path.display(), damaged, bytes = lost, "took damaged lines out of a file");
    let new = path.with_extension("repaired");
    machine.write(&new, &kept)?;
    machine.open(&new, OpenMode::Write)?.sync_data()?;
    machine.rename(&new, path)?;
    sync_folder(machine, path)
}

/// Writes `bytes`, which are the start of the file already, once more and synchronises them. After a failed `fsync(2)`,
/// the kernel marks pages as clean that are not on disk, and a further `fsync` does not write them.
fn write_again(machine: &HostMachine, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = machine.open(path, OpenMode::Write)?;
    file.write_all(bytes)?;
    file.sync_data()
}
