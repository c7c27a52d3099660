//! The disks of a world: files whose unsynchronised sectors and names may be lost with the power, full and failing disks.
//!
//! A file has a content that processes see and one that survives the loss of power. The survival of each sector written
//! since the last `fsync` is drawn, and so is the size. Names survive up to a random change since the last `fsync` of
//! their folder. A failed `fsync` may drop unsynchronised sectors, and later calls do not write these again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fanin_node::machine::{OpenMode, SimulatedFile};

use crate::machine::ProcessLife;
use crate::shared::{Core, Host, SharedCore};

/// Bytes that are written to disk wholly or not at all. Real sectors have 512 or more; smaller ones tear a small
/// system's small writes as often.
const SECTOR: usize = 64;

#[derive(Debug, Default)]
struct FileState {
    seen: Vec<u8>,
    safe: Vec<u8>,
    /// True for each sector of `seen` that the next `fsync` writes.
    dirty: Vec<bool>,
    is_size_dirty: bool,
}

impl FileState {
    fn note_dirty(&mut self, from: usize, to: usize) {
        let (first, end) = (from / SECTOR, to.div_ceil(SECTOR));
        self.dirty.resize(self.dirty.len().max(end), false);
        self.dirty[first..end].fill(true);
    }

    fn take_dirty(&mut self) -> impl Iterator<Item = usize> + use<> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().enumerate().filter_map(|(sector, is_dirty)| is_dirty.then_some(sector))
    }
}

/// A change of names that is not on disk yet.
#[derive(Debug, Clone)]
enum NameChange {
    Set(PathBuf, u64),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

/// The disk of one machine.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    seen: BTreeMap<PathBuf, u64>,
    safe: BTreeMap<PathBuf, u64>,
    changes: Vec<NameChange>,
    /// True while the disk has no free sector.
    pub(crate) is_full: bool,
    /// Number of failures in 1000 calls.
    pub(crate) errors_per_mille: u64,
    /// The longest time until a writer's group is on disk.
    pub(crate) delay_max_ns: u64,
    /// Number of changes until the machine loses its power; 0: no such loss is planned.
    pub(crate) changes_left: u64,
    /// True if the machine loses its power as a new journal gets the name of the present one, which is closed then.
    pub(crate) fails_between_renames: bool,
}

impl Disk {
    /// Returns the paths of the disk's files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &PathBuf> {
        self.seen.keys()
    }
}

/// All disks of a world.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    pub(crate) of: Vec<Disk>,
    files: BTreeMap<u64, FileState>,
    next: u64,
    /// Number of closed journals to which a supervisor has given the plain name again.
    #[cfg(test)]
    pub(crate) restored: u32,
}

fn change(names: &mut BTreeMap<PathBuf, u64>, name_change: NameChange) {
    match name_change {
        NameChange::Set(path, file) => {
            names.insert(path, file);
        }
        NameChange::Remove(path) => {
            names.remove(&path);
        }
        NameChange::Rename(from, to) => {
            if let Some(file) = names.remove(&from) {
                names.insert(to, file);
            }
        }
    }
}

impl Disks {
    pub(crate) fn new(hosts: usize) -> Self {
        let disk = || Disk { delay_max_ns: 3_000_000, ..Disk::default() };
        Self { of: (0..hosts).map(|_| disk()).collect(), ..Self::default() }
    }

    fn change_name(&mut self, host: Host, name_change: NameChange) {
        let disk = &mut self.of[host];
        change(&mut disk.seen, name_change.clone());
        disk.changes.push(name_change);
    }

    /// Returns the bytes of a file as processes see them, by its path on any machine.
    fn content(&self, path: &Path) -> Option<&[u8]> {
        let file = self.of.iter().find_map(|disk| disk.seen.get(path))?;
        self.files.get(file).map(|state| &state.seen[..])
    }
}

/// Returns true if a change of names gives a closed journal the name of the present one.
#[cfg(test)]
fn is_restored(from: &Path, to: &Path) -> bool {
    let is_closed = from.file_stem().is_some_and(|stem| Path::new(stem).extension().is_some());
    is_closed
        && [from, to].iter().all(|path| path.extension().is_some_and(|extension| extension == "journal"))
}

impl Core {
    /// Applies a loss of power to the disk of a machine: unsynchronised data may be lost.
    pub(crate) fn lose_power(&mut self, host: Host) {
        self.hosts[host].boots += 1;
        let kept = self.between(0, self.disks.of[host].changes.len() as u64) as usize;
        let disk = &mut self.disks.of[host];
        let mut names = std::mem::take(&mut disk.safe);
        disk.changes.drain(..).take(kept).for_each(|name_change| change(&mut names, name_change));
        (disk.safe, disk.seen) = (names.clone(), names);
        let files: Vec<u64> = disk.seen.values().copied().collect();
        for file in files {
            self.tear(file);
        }
    }

    /// Draws the survival of each unsynchronised sector, and the size of the file.
    fn tear(&mut self, file: u64) {
        let Some(mut state) = self.disks.files.remove(&file) else { return };
        let new_size = state.is_size_dirty && self.one_in(2);
        let size = if new_size { state.seen.len() } else { state.safe.len() };
        let mut after = state.safe.clone();
        after.resize(size, 0);
        for sector in state.take_dirty() {
            let (start, end) = (sector * SECTOR, ((sector + 1) * SECTOR).min(state.seen.len()).min(size));
            if start < end && self.one_in(2) {
                after[start..end].copy_from_slice(&state.seen[start..end]);
            }
        }
        let state = FileState { seen: after.clone(), safe: after, ..FileState::default() };
        self.disks.files.insert(file, state);
    }

    /// Fails if the process has ended, or at random with the disk's rate of errors.
    fn disk_call(&mut self, life: ProcessLife) -> io::Result<()> {
        if !self.is_alive(life.host, life.number) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let errors = self.disks.of[life.host].errors_per_mille;
        if errors > 0 && self.between(1, 1000) <= errors {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(())
    }

    /// Does the checks of a call that changes a file or a name. The power may fail before the change.
    fn disk_change(&mut self, life: ProcessLife) -> io::Result<()> {
        self.disk_call(life)?;
        let left = &mut self.disks.of[life.host].changes_left;
        if *left > 0 {
            *left -= 1;
            if *left == 0 {
                // The rest of the turn reaches neither files nor connections.
                let state = &mut self.hosts[life.host];
                (state.is_running, state.life) = (false, state.life + 1);
                self.power_failed = Some(life.host);
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
        }
        Ok(())
    }

    pub(crate) fn open_file(&mut self, life: ProcessLife, path: &Path, mode: OpenMode) -> io::Result<u64> {
        self.disk_call(life)?;
        let found = self.disks.of[life.host].seen.get(path).copied();
        match (mode, found) {
            (OpenMode::Read | OpenMode::Write, None) => Err(io::ErrorKind::NotFound.into()),
            (OpenMode::CreateNew, Some(_)) => Err(io::ErrorKind::AlreadyExists.into()),
            (OpenMode::Create, Some(file)) => {
                self.disk_change(life)?;
                self.set_size(file, 0);
                Ok(file)
            }
            (_, Some(file)) => Ok(file),
            (_, None) => {
                self.disk_change(life)?;
                self.disks.next += 1;
                let file = self.disks.next;
                self.disks.files.insert(file, FileState::default());
                self.disks.change_name(life.host, NameChange::Set(path.to_owned(), file));
                Ok(file)
            }
        }
    }

    fn set_size(&mut self, file: u64, size: usize) {
        let Some(state) = self.disks.files.get_mut(&file) else { return };
        let before = state.seen.len();
        state.seen.resize(size, 0);
        state.is_size_dirty |= before != size;
        state.dirty.truncate(size.div_ceil(SECTOR));
        if size > before {
            state.note_dirty(before, size);
        }
    }

    fn write_file(&mut self, life: ProcessLife, file: u64, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.disk_change(life)?;
        let is_full = self.disks.of[life.host].is_full;
        let Some(state) = self.disks.files.get_mut(&file) else {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        };
        let offset = offset as usize;
        let mut count = bytes.len();
        if is_full {
            // The rest of the last sector is free.
            let room = state.seen.len().next_multiple_of(SECTOR);
            count = count.min(room.saturating_sub(offset));
            if count == 0 && !bytes.is_empty() {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
        }
        let end = offset + count;
        if end > state.seen.len() {
            state.seen.resize(end, 0);
            state.is_size_dirty = true;
        }
        state.seen[offset..end].copy_from_slice(&bytes[..count]);
        state.note_dirty(offset, end);
        Ok(count)
    }

    fn sync_file(&mut self, life: ProcessLife, file: u64) -> io::Result<()> {
        if let Err(error) = self.disk_change(life) {
            // The kernel reports the loss once, and considers the sectors clean afterwards.
            if self.one_in(2)
                && let Some(state) = self.disks.files.get_mut(&file)
            {
                state.dirty.clear();
            }
            return Err(error);
        }
        let Some(state) = self.disks.files.get_mut(&file) else { return Ok(()) };
        state.safe.resize(state.seen.len(), 0);
        for sector in state.take_dirty() {
            let (start, end) = (sector * SECTOR, ((sector + 1) * SECTOR).min(state.seen.len()));
            if start < end {
                state.safe[start..end].copy_from_slice(&state.seen[start..end]);
            }
        }
        state.is_size_dirty = false;
        Ok(())
    }

    pub(crate) fn rename_file(&mut self, life: ProcessLife, from: &Path, to: &Path) -> io::Result<()> {
        let disk = &mut self.disks.of[life.host];
        if disk.fails_between_renames && from.extension().is_some_and(|extension| extension == "journal-new")
        {
            (disk.fails_between_renames, disk.changes_left) = (false, 1);
        }
        self.disk_change(life)?;
        if !self.disks.of[life.host].seen.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        #[cfg(test)]
        {
            self.disks.restored += u32::from(is_restored(from, to));
        }
        self.disks.change_name(life.host, NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    pub(crate) fn remove_file(&mut self, life: ProcessLife, path: &Path) -> io::Result<()> {
        self.disk_change(life)?;
        if !self.disks.of[life.host].seen.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.disks.change_name(life.host, NameChange::Remove(path.to_owned()));
        Ok(())
    }

    /// Removes a file from a machine's disk, even if the machine has no power.
    pub(crate) fn lose_file(&mut self, host: Host, path: &Path) {
        self.disks.change_name(host, NameChange::Remove(path.to_owned()));
    }

    pub(crate) fn list_files(&mut self, life: ProcessLife, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk_call(life)?;
        let names = self.disks.of[life.host].seen.keys();
        Ok(names.filter(|path| path.parent() == Some(folder)).cloned().collect())
    }

    pub(crate) fn sync_names(&mut self, life: ProcessLife, folder: &Path) -> io::Result<()> {
        self.disk_change(life)?;
        let disk = &mut self.disks.of[life.host];
        let is_here = |name_change: &NameChange| match name_change {
            NameChange::Set(path, _) | NameChange::Remove(path) | NameChange::Rename(path, _) => {
                path.parent() == Some(folder)
            }
        };
        let (here, elsewhere): (Vec<_>, Vec<_>) = disk.changes.drain(..).partition(is_here);
        here.into_iter().for_each(|name_change| change(&mut disk.safe, name_change));
        disk.changes = elsewhere;
        Ok(())
    }
}

/// An open file of one life of a process.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    pub(crate) shared: SharedCore,
    pub(crate) life: ProcessLife,
    pub(crate) file: u64,
}

impl SimulatedFile for ProcessFile {
    fn size(&self) -> io::Result<u64> {
        let mut core = self.shared.lock();
        core.disk_call(self.life)?;
        Ok(core.disks.files.get(&self.file).map_or(0, |state| state.seen.len() as u64))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let mut core = self.shared.lock();
        core.disk_call(self.life)?;
        Ok(core.disks.files.get(&self.file).map_or(0, |state| read_at(&state.seen, offset, bytes)))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.shared.lock().write_file(self.life, self.file, offset, bytes)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let mut core = self.shared.lock();
        core.disk_change(self.life)?;
        core.set_size(self.file, size as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.lock().sync_file(self.life, self.file)
    }
}

fn read_at(content: &[u8], offset: u64, bytes: &mut [u8]) -> usize {
    let from = content.get(offset as usize..).unwrap_or_default();
    let count = bytes.len().min(from.len());
    bytes[..count].copy_from_slice(&from[..count]);
    count
}

/// A file of any machine, as the audit reads it.
#[derive(Debug)]
pub(crate) struct AuditedFile(Vec<u8>);

impl AuditedFile {
    pub(crate) fn open(core: &Core, path: &Path) -> io::Result<Self> {
        core.disks.content(path).map(|bytes| Self(bytes.to_vec())).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl SimulatedFile for AuditedFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        Ok(read_at(&self.0, offset, bytes))
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_size(&self, _size: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
