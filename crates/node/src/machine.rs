//! The machine below a process: its clock, its files and its network. Tests may simulate a machine.
//!
//! A simulated machine runs the processes of a whole system in one thread and in simulated time (`fanin-world`). The code
//! that uses this module is the same on both.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fanin_message::SimulatedNetwork;

/// Work of a process in a thread of its own. A simulated machine runs it in turns.
pub trait TurnTask: fmt::Debug + Send {
    /// Waits at most `pause` for work, and does it. Returns false when the task has ended.
    fn turn(&mut self, pause: Duration) -> bool;
}

/// A simulated machine for one process. Its time does not advance while the process works.
pub trait SimulatedMachine: fmt::Debug + Send + Sync {
    /// Returns the present time.
    fn now(&self) -> Instant;
    /// Returns the time since 1970.
    fn since_1970(&self) -> Duration;
    /// Returns a name of the time since the machine was last switched on; equal for all processes since then.
    fn boot(&self) -> String;
    /// Returns the network for a new endpoint.
    fn network(&self) -> Box<dyn SimulatedNetwork>;
    /// Opens a file.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn SimulatedFile>>;
    /// Renames a file, and replaces an existing file of the new name.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Returns the paths of a folder's files, in any order.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Synchronises a folder: the names of its files are on disk afterwards.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Runs the writer of a logger in turns from now on.
    fn run_store(&self, task: Arc<Mutex<dyn TurnTask>>);
}

/// An open file of a [`SimulatedMachine`].
pub trait SimulatedFile: fmt::Debug + Send {
    /// Returns the size of the file in bytes.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn size(&self) -> io::Result<u64>;
    /// Reads bytes from `offset` on, and returns their number; 0 at the end of the file.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
    /// Writes the first bytes of `bytes` at `offset`, and returns their number.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;
    /// Truncates or extends the file to `size` bytes.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Synchronises the content of the file to disk.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn sync(&self) -> io::Result<()>;
}

/// Modes of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reads an existing file.
    Read,
    /// Writes an existing file, without truncating it.
    Write,
    /// Reads and writes a file; creates it if it does not exist.
    ReadWrite,
    /// Writes a file; creates or truncates it.
    Create,
    /// Writes a new file; fails if it exists.
    CreateNew,
}

/// The machine on which a process runs, real or simulated.
#[derive(Debug, Clone, Default)]
pub enum HostMachine {
    /// The machine on which this program runs.
    #[default]
    Real,
    /// A simulated machine.
    Simulated(Arc<dyn SimulatedMachine>),
}

impl HostMachine {
    /// Returns true for a simulated machine. Its processes use nothing of the real one.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Returns the present time.
    pub fn now(&self) -> Instant {
        match self {
            Self::Real => Instant::now(),
            Self::Simulated(machine) => machine.now(),
        }
    }

    /// Returns the time since 1970.
    pub fn since_1970(&self) -> Duration {
        match self {
            Self::Real => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            Self::Simulated(machine) => machine.since_1970(),
        }
    }

    /// Returns the free bytes of the file system that holds `folder`, without those reserved for root. Returns `None` if they
    /// are unknown.
    pub fn free_bytes(&self, folder: &Path) -> Option<u64> {
        match self {
            Self::Real => {
                let system = rustix::fs::statvfs(folder).ok()?;
                Some(system.f_bavail.saturating_mul(system.f_frsize))
            }
            Self::Simulated(_) => None,
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn open(&self, path: &Path, mode: OpenMode) -> io::Result<MachineFile> {
        match self {
            Self::Real => {
                let mut options = OpenOptions::new();
                match mode {
                    OpenMode::Read => options.read(true),
                    OpenMode::Write => options.write(true),
                    OpenMode::ReadWrite => options.create(true).read(true).write(true).truncate(false),
                    OpenMode::Create => options.create(true).write(true).truncate(true),
                    OpenMode::CreateNew => options.create_new(true).write(true),
                };
                options.open(path).map(MachineFile::Real)
            }
            Self::Simulated(machine) => {
                let file = machine.open(path, mode)?;
                Ok(MachineFile::Simulated { file, position: 0 })
            }
        }
    }

    /// Reads all bytes of a file.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let Self::Simulated(_) = self else { return std::fs::read(path) };
        let mut bytes = Vec::new();
        self.open(path, OpenMode::Read)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Creates a file with these bytes, or replaces its content.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.open(path, OpenMode::Create)?.write_all(bytes)
    }

    /// Replaces the content of a file atomically. The new content is on disk afterwards.
    ///
    /// # Errors
    /// Errors of the operating system. The file has the old content or the new one.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let new = path.with_extension("new");
        self.write(&new, bytes)?;
        self.open(&new, OpenMode::Write)?.sync_data()?;
        self.rename(&new, path)?;
        crate::lines::sync_folder(self, path)
    }

    /// Returns the kernel's name of the present boot; `None` if it has none.
    pub(crate) fn boot(&self) -> Option<String> {
        match self {
            Self::Real => {
                let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
                Some(text.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains(' '))
            }
            Self::Simulated(machine) => Some(machine.boot()),
        }
    }

    /// Creates a folder and its parents. The names of new folders are on disk afterwards. Does nothing on a simulated machine,
    /// which has all folders.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn create_folder(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Real => {
                let changed = changed_by_creating(path)?;
                std::fs::create_dir_all(path)?;
                changed.iter().try_for_each(|folder| self.sync_folder(folder))
            }
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Returns true if the file or folder exists. A failing disk is an error, not an absent file.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn exists(&self, path: &Path) -> io::Result<bool> {
        match self {
            Self::Real => path.try_exists(),
            Self::Simulated(machine) => match machine.open(path, OpenMode::Read) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(!machine.list(path)?.is_empty()),
                Err(error) => Err(error),
            },
        }
    }

    /// Renames a file, and replaces an existing file of the new name.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Self::Real => std::fs::rename(from, to),
            Self::Simulated(machine) => machine.rename(from, to),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Real => std::fs::remove_file(path),
            Self::Simulated(machine) => machine.remove(path),
        }
    }

    /// Returns the paths of a folder's files, in any order.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        match self {
            Self::Real => std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect(),
            Self::Simulated(machine) => machine.list(folder),
        }
    }

    /// Synchronises a folder: the names of its files are on disk afterwards.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self {
            Self::Real => File::open(folder)?.sync_all(),
            Self::Simulated(machine) => machine.sync_folder(folder),
        }
    }
}

/// Returns the folders that get a new entry if `path` and its parents are created.
fn changed_by_creating(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    let mut missing = path;
    while !missing.try_exists()? {
        let Some(parent) = missing.parent() else { break };
        // The parent of a relative path's first part is the working folder.
        missing = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        changed.push(missing.to_owned());
    }
    Ok(changed)
}

/// An open file.
#[derive(Debug)]
pub enum MachineFile {
    /// A file of this machine.
    Real(File),
    /// A file of a simulated machine.
    Simulated {
        /// The file on its machine.
        file: Box<dyn SimulatedFile>,
        /// Offset of the next byte that is read or written.
        position: u64,
    },
}

impl MachineFile {
    /// Truncates or extends the file to `size` bytes.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.set_len(size),
            Self::Simulated { file, .. } => file.set_size(size),
        }
    }

    /// Synchronises the content of the file to disk (`fdatasync(2)`).
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_data(),
            Self::Simulated { file, .. } => file.sync(),
        }
    }

    /// Synchronises the content and attributes of the file to disk (`fsync(2)`).
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn sync_all(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_all(),
            Self::Simulated { file, .. } => file.sync(),
        }
    }
}

impl Read for MachineFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Real(file) => file.read(bytes),
            Self::Simulated { file, position } => {
                let read = file.read_at(*position, bytes)?;
                *position += read as u64;
                Ok(read)
            }
        }
    }
}

impl Write for MachineFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Real(file) => file.write(bytes),
            Self::Simulated { file, position } => {
                let written = file.write_at(*position, bytes)?;
                *position += written as u64;
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for MachineFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Real(file) => file.seek(to),
            Self::Simulated { file, position } => {
                let place = match to {
                    SeekFrom::Start(place) => Some(place),
                    SeekFrom::End(by) => file.size()?.checked_add_signed(by),
                    SeekFrom::Current(by) => position.checked_add_signed(by),
                };
                *position = place.ok_or(io::ErrorKind::InvalidInput)?;
                Ok(*position)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parents_of_new_folders_are_brought_to_disk() {
        let base = std::env::temp_dir().join(format!("fanin-create-folder-{}", std::process::id()));
        std::fs::create_dir(&base).unwrap();
        let path = base.join("a/b");
        assert_eq!(changed_by_creating(&path).unwrap(), [base.join("a"), base.clone()]);
        HostMachine::Real.create_folder(&path).unwrap();
        assert!(path.is_dir() && changed_by_creating(&path).unwrap().is_empty());
        assert_eq!(
            changed_by_creating(Path::new("no-such-folder/x")).unwrap(),
            [Path::new("no-such-folder"), Path::new(".")]
        );
        std::fs::remove_dir_all(&base).unwrap();
    }
}
