//! The machine below a process: its clock, its files and its network. Tests may simulate one.
//!
//! A simulated machine runs the processes of a whole system in one thread and in simulated time (`fanin-world`). The code
//! above this file is the same in both.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fanin_message::SimulatedNetwork;

use crate::store::StoreTask;

/// A machine without a kernel, as one process sees it. Time stands still while the process works.
pub trait SimulatedMachine: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Instant;
    /// The time since 1970.
    fn since_1970(&self) -> Duration;
    /// The network, as a new endpoint sees it.
    fn network(&self) -> Box<dyn SimulatedNetwork>;
    /// Opens a file.
    ///
    /// # Errors
    /// Those of the system.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn SimulatedFile>>;
    /// Gives a file another name, and replaces the file of that name.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The files of a folder, in any order.
    ///
    /// # Errors
    /// Those of the system.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Brings the names of a folder's files to disk.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Runs the writer of a logger from now on, in turns.
    fn run_store(&self, task: Arc<Mutex<StoreTask>>);
}

/// An open file of a [`SimulatedMachine`].
pub trait SimulatedFile: fmt::Debug + Send {
    /// Its size, bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn size(&self) -> io::Result<u64>;
    /// Reads bytes from `offset` on; 0 at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
    /// Writes the first part of `bytes`, as far as the buffer has room.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts or extends it.
    ///
    /// # Errors
    /// Those of the system.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Brings its content to disk.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&self) -> io::Result<()>;
}

/// Modes of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// To read; it has to be there.
    Read,
    /// To write; it has to be there.
    Write,
    /// To read and write; it is made if it is not there.
    ReadWrite,
    /// To write; it is made, or emptied.
    Create,
    /// To write; it must not be there.
    CreateNew,
}

/// The machine of a process.
#[derive(Debug, Clone, Default)]
pub enum HostMachine {
    /// The one that this program runs on.
    #[default]
    Real,
    /// A simulated one.
    Simulated(Arc<dyn SimulatedMachine>),
}

impl HostMachine {
    /// True if nothing of the real machine may be asked.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        match self {
            Self::Real => Instant::now(),
            Self::Simulated(machine) => machine.now(),
        }
    }

    /// The time since 1970.
    pub fn since_1970(&self) -> Duration {
        match self {
            Self::Real => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            Self::Simulated(machine) => machine.since_1970(),
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Those of the system.
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

    /// All bytes of a file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let Self::Simulated(_) = self else { return std::fs::read(path) };
        let mut bytes = Vec::new();
        self.open(path, OpenMode::Read)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes a file of these bytes, or replaces its content by them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.open(path, OpenMode::Create)?.write_all(bytes)
    }

    /// Replaces a small file as a whole; it is on disk afterwards.
    ///
    /// # Errors
    /// Those of the system. The old content may stay.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let new = path.with_extension("new");
        self.write(&new, bytes)?;
        self.open(&new, OpenMode::Write)?.sync_data()?;
        self.rename(&new, path)?;
        crate::lines::sync_folder(self, path)
    }

    /// Makes a folder, and those above it. A simulated machine has all folders.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create_folder(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Real => std::fs::create_dir_all(path),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// True if the file or folder exists. A disk that does not answer is an error, and not an absent file.
    ///
    /// # Errors
    /// Those of the system.
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

    /// Gives a file another name, and replaces the file of that name.
    ///
    /// # Errors
    /// Those of the system.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Self::Real => std::fs::rename(from, to),
            Self::Simulated(machine) => machine.rename(from, to),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Real => std::fs::remove_file(path),
            Self::Simulated(machine) => machine.remove(path),
        }
    }

    /// The files of a folder, in any order.
    ///
    /// # Errors
    /// Those of the system.
    pub fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        match self {
            Self::Real => std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect(),
            Self::Simulated(machine) => machine.list(folder),
        }
    }

    /// Brings the names of a folder's files to disk.
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self {
            Self::Real => File::open(folder)?.sync_all(),
            Self::Simulated(machine) => machine.sync_folder(folder),
        }
    }
}

/// An open file.
#[derive(Debug)]
pub enum MachineFile {
    /// A file of this machine.
    Real(File),
    /// A file of a simulated machine.
    Simulated {
        /// The file as its machine knows it.
        file: Box<dyn SimulatedFile>,
        /// Offset of the next byte that is read or written.
        position: u64,
    },
}

impl MachineFile {
    /// Cuts or extends it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        match self {
            Self::Real(file) => file.set_len(size),
            Self::Simulated { file, .. } => file.set_size(size),
        }
    }

    /// Brings its content to disk (`fdatasync(2)`).
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync_data(),
            Self::Simulated { file, .. } => file.sync(),
        }
    }

    /// Brings its content and its attributes to disk (`fsync(2)`).
    ///
    /// # Errors
    /// Those of the system.
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
