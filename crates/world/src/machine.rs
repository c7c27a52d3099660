//! A simulated machine as one life of its process sees it, and as the audit does.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanin_message::SimulatedNetwork;
use fanin_node::machine::{OpenMode, SimulatedFile, SimulatedMachine, TurnTask};

use crate::disk::{AuditedFile, ProcessFile};
use crate::net::ProcessNetwork;
use crate::shared::{Host, SharedCore, instant};

/// One life of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessLife {
    pub(crate) host: Host,
    pub(crate) number: u32,
}

/// The machine of one life of a process. After the end of this life, all calls on files and sockets fail.
#[derive(Debug)]
pub(crate) struct ProcessMachine {
    pub(crate) shared: SharedCore,
    pub(crate) life: ProcessLife,
}

impl SimulatedMachine for ProcessMachine {
    fn now(&self) -> Instant {
        instant(self.shared.lock().now)
    }

    fn since_1970(&self) -> Duration {
        self.shared.lock().since_1970()
    }

    fn boot(&self) -> String {
        self.shared.lock().hosts[self.life.host].boots.to_string()
    }

    fn network(&self) -> Box<dyn SimulatedNetwork> {
        Box::new(ProcessNetwork { shared: self.shared.clone(), life: self.life })
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn SimulatedFile>> {
        let file = self.shared.lock().open_file(self.life, path, mode)?;
        Ok(Box::new(ProcessFile { shared: self.shared.clone(), life: self.life, file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared.lock().rename_file(self.life, from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.shared.lock().remove_file(self.life, path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.shared.lock().list_files(self.life, folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.shared.lock().sync_names(self.life, folder)
    }

    fn run_store(&self, task: Arc<Mutex<dyn TurnTask>>) {
        self.shared.lock().hosts[self.life.host].store = Some(task);
    }
}

/// Read-only view of all disks of a world, for the audit.
#[derive(Debug)]
pub(crate) struct AuditMachine {
    pub(crate) shared: SharedCore,
}

impl SimulatedMachine for AuditMachine {
    fn now(&self) -> Instant {
        instant(self.shared.lock().now)
    }

    fn since_1970(&self) -> Duration {
        self.shared.lock().since_1970()
    }

    fn boot(&self) -> String {
        unreachable!("the audit writes no journal")
    }

    fn network(&self) -> Box<dyn SimulatedNetwork> {
        unreachable!("the audit has no connections")
    }

    fn open(&self, path: &Path, _mode: OpenMode) -> io::Result<Box<dyn SimulatedFile>> {
        Ok(Box::new(AuditedFile::open(&self.shared.lock(), path)?))
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let core = self.shared.lock();
        let names = core.disks.of.iter().flat_map(|disk| disk.names());
        Ok(names.filter(|path| path.parent() == Some(folder)).cloned().collect())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn run_store(&self, _task: Arc<Mutex<dyn TurnTask>>) {
        unreachable!("the audit stores nothing")
    }
}
