//! Reads a supervisor's log by offsets.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::journal;
use crate::machine::{HostMachine, MachineFile, OpenMode};

/// Reads a log by offsets. It keeps the file of the last call open, also when that is put aside.
#[derive(Debug, Default)]
pub(super) struct LogReader {
    file: Option<(u64, MachineFile)>,
}

impl LogReader {
    /// Reads whole lines from offset `from` on, up to offset `to` and at most `limit` bytes.
    ///
    /// # Errors
    /// If a file cannot be read, or the one with these lines is deleted.
    pub(super) fn read(
        &mut self,
        machine: &HostMachine,
        path: &Path,
        (from, to): (u64, u64),
        limit: u64,
    ) -> io::Result<Vec<u8>> {
        let wanted = (to - from).min(limit);
        // The file of the last call may end here: the lines are in the next one then.
        for file in [self.file.take(), None] {
            let (start, mut file) = match file {
                Some(file) => file,
                None => {
                    let files = journal::log_files(machine, path)?;
                    let Some((start, file)) = files.into_iter().rfind(|(start, _)| *start <= from) else {
                        return Err(io::ErrorKind::NotFound.into());
                    };
                    (start, machine.open(&file, OpenMode::Read)?)
                }
            };
            if start > from {
                continue;
            }
            file.seek(SeekFrom::Start(from - start))?;
            let mut text = Vec::new();
            (&mut file).take(wanted).read_to_end(&mut text)?;
            text.truncate(text.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1));
            self.file = Some((start, file));
            if !text.is_empty() {
                return Ok(text);
            }
        }
        Ok(Vec::new())
    }
}
