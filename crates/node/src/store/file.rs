//! The names, the first records and the end of a logger's files.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fanin_dataflow::EventStream;
use fanin_events::atlas::{AtlasWriter, FileEnd, FileHeader, WriteError};

use crate::machine::{HostMachine, MachineFile};

/// Suffix of the name of a file of stored events.
pub(super) const DATA: &str = ".data";
/// Suffix of the name of a file that is being written.
pub const WRITING: &str = ".writing";

/// Settings of stored events.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The folder of the files. It is created if it does not exist.
    pub folder: PathBuf,
    /// Prefix of file names, such as `logger-0`.
    pub process: String,
    /// Size at which a file is finished and the next one begun, bytes.
    pub file_bytes: u64,
    /// Run number, which is written into every event.
    pub run: u32,
}

/// Returns the place of a stream's file among those of a logger.
pub(super) fn place(stream: EventStream) -> usize {
    match stream {
        EventStream::Physics => 0,
        EventStream::Debug => 1,
    }
}

/// Returns the name of a stream in files and their names.
pub const fn stream_name(stream: EventStream) -> &'static str {
    match stream {
        EventStream::Physics => "physics",
        EventStream::Debug => "debug",
    }
}

/// Returns the fields of the first records of a file. Its name is that of a finished file.
pub(super) fn file_header(config: &StoreConfig, stream: &str, number: u32) -> FileHeader {
    FileHeader {
        application: config.process.clone(),
        file_name: format!("{}-{stream}-{number:05}{DATA}", config.process),
        file_number: number,
        run: config.run,
        ..FileHeader::default()
    }
}

pub(super) fn into_io(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

/// Returns the path of the test file by which a logger tests for free space.
pub(super) fn room_file(config: &StoreConfig) -> PathBuf {
    config.folder.join(format!(".room-{}", config.process))
}

/// Ends a file with its last record, and gives it its final name.
pub(super) fn finish(
    machine: &HostMachine,
    path: &Path,
    file: &mut MachineFile,
    writer: AtlasWriter<Vec<u8>>,
    last_of_run: bool,
) -> io::Result<()> {
    let record = writer.finish(&FileEnd { last_of_run, ..FileEnd::default() }).map_err(into_io)?;
    file.write_all(&record)?;
    file.sync_all()?;
    let name = path.to_string_lossy();
    machine.rename(path, Path::new(name.strip_suffix(WRITING).unwrap_or(&name)))?;
    // The file is complete under either name: after a loss of power, the next start finishes it again.
    if let Err(error) = path.parent().map_or(Ok(()), |folder| machine.sync_folder(folder)) {
        tracing::warn!(%error, file = %path.display(), "a finished file may have its former name after a loss of power");
    }
    Ok(())
}
