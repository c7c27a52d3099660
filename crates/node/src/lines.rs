//! Files of lines that outlive their process, and a loss of power.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::machine::{HostMachine, OpenMode};

/// Up to where the file consists of whole lines.
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

/// Brings the name of a file to disk.
pub(crate) fn sync_folder(machine: &HostMachine, path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => machine.sync_folder(Path::new(".")),
        Some(folder) => machine.sync_folder(folder),
        None => Ok(()),
    }
}

/// Takes damaged lines out of a file that a loss of power left behind; `is_whole` sees the lines in their order. `cuts`: and everything
/// behind the first; the rest is on disk afterwards.
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

/// Brings bytes to disk that a file has already, without changing it. After a failed `fsync` the kernel takes pages for clean that are
/// not on disk, and a further `fsync` does not write them.
fn write_again(machine: &HostMachine, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = machine.open(path, OpenMode::Write)?;
    file.write_all(bytes)?;
    file.sync_data()
}
