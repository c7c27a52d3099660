//! The files of a logger: events are written in groups, and acknowledged after their group is on disk.
//!
//! A file is named `PROCESS-STREAM-NUMBER.data.writing` until it is finished, and `PROCESS-STREAM-NUMBER.data` from then
//! on. A group holds the events that arrived while the previous group was synchronised to disk (`fdatasync(2)`).
//! `PROCESS-STREAM-NUMBER.damaged` is a copy of an unfinished file from which a start took bytes away.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fanin_dataflow::{EventStream, StoreId, WriteJob};
use fanin_events::Fragment;
use fanin_events::atlas::{AtlasWriter, EventHeader};
use fanin_message::OsError;

use crate::data::{Data, check, fragments};
use crate::machine::{HostMachine, MachineFile, OpenMode, TurnTask};
use crate::wake::Wake;

mod file;
mod recover;
mod scan;
mod stand_in;
mod unfinished;

pub use file::{StoreConfig, WRITING, stream_name};
use file::{file_header, finish, into_io, place, room_file};
pub use recover::LastAcknowledged;
use recover::Recovered;
pub(crate) use scan::{DamagedPlace, scan, sound};
use stand_in::{InvalidEvents, with_stand_ins};

/// A group takes no further event once it has this many bytes.
const GROUP_BYTES_MAX: u64 = 64 << 20;
/// Interval at which an unwritable disk is tested again.
const RETRY: Duration = Duration::from_millis(250);
/// Minimum size of the test file that must fit before an unwritable disk counts as writable again.
const FREE_BYTES_MIN: u64 = 1 << 20;
/// Result of writing an event, or a change of the disk's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The event is on disk.
    Safe(StoreId),
    /// The event itself cannot be written, whatever the disk. An event with stand-ins for some of its fragments is on disk in
    /// the debug stream.
    StandIn {
        /// The id of the event.
        id: StoreId,
        /// Number of stand-ins.
        fragments: u32,
    },
    /// The event could not be written. Its bytes are cut off before the disk counts as writable again.
    Failed(StoreId),
    /// The state of the disk has changed.
    Disk(DiskState),
}

/// State of the disk with the stored events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskState {
    /// Writes of events succeed.
    #[default]
    Writable,
    /// No space is left, or the user's quota is exhausted (`ENOSPC`, `EDQUOT`).
    Full,
    /// Writes fail for another reason, such as an error of the disk or a limit on open files.
    Failing(OsError),
}

impl DiskState {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Failing(OsError::of(error)),
        }
    }
}

/// Handle of the thread that writes events.
#[derive(Debug)]
pub struct EventStore {
    jobs: Option<Sender<WriteJob<Data>>>,
    done: Receiver<Stored>,
    runner: Option<Runner>,
    file_bytes: Arc<AtomicU64>,
    machine: HostMachine,
    copies: Vec<PathBuf>,
}

/// Runs the [`StoreTask`].
#[derive(Debug)]
enum Runner {
    Thread(JoinHandle<()>),
    /// A simulated machine runs the task in turns.
    HostMachine(Arc<Mutex<StoreTask>>),
}

impl EventStore {
    /// Finishes the files that an earlier incarnation of this process left unfinished, and starts the thread. `wake` is called
    /// when [`Self::poll`] has a new result. `earlier` is what that incarnation acknowledged.
    ///
    /// # Errors
    /// If the folder or the files in it cannot be used.
    pub fn start(
        machine: &HostMachine,
        config: StoreConfig,
        earlier: &LastAcknowledged,
        wake: Wake,
    ) -> io::Result<Self> {
        machine.create_folder(&config.folder)?;
        let Recovered { next_number, copies } = recover::recover(machine, &config, earlier)?;
        let (jobs, todo) = channel();
        let (sender, done) = channel();
        let file_bytes = Arc::new(AtomicU64::new(config.file_bytes));
        let limit = Arc::clone(&file_bytes);
        let files = [None, None];
        let mut task = StoreTask {
            machine: machine.clone(),
            config,
            limit,
            next_number,
            files,
            todo,
            done: sender,
            wake,
            unwritable: None,
            invalid: InvalidEvents::default(),
        };
        let runner = match machine {
            HostMachine::Real => {
                let thread = std::thread::Builder::new().name("store".to_owned());
                Runner::Thread(thread.spawn(move || while task.turn(task.pause()) {})?)
            }
            HostMachine::Simulated(machine) => {
                let task = Arc::new(Mutex::new(task));
                machine.run_store(Arc::<Mutex<StoreTask>>::clone(&task));
                Runner::HostMachine(task)
            }
        };
        let machine = machine.clone();
        Ok(Self { jobs: Some(jobs), done, runner: Some(runner), file_bytes, machine, copies })
    }

    /// Passes an event to the thread.
    pub fn write(&self, job: WriteJob<Data>) {
        if let Some(jobs) = &self.jobs {
            // The thread ends only after this sender is dropped.
            let _ = jobs.send(job);
        }
    }

    /// Finishes files at this size from now on.
    pub fn set_file_bytes(&self, bytes: u64) {
        self.file_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the number of copies of damaged files, without those that were deleted meanwhile.
    pub fn damaged_copies(&self) -> usize {
        self.copies.iter().filter(|copy| self.machine.exists(copy).unwrap_or(true)).count()
    }

    /// Returns the number of events that were refused because they are invalid, and may come again. Always 0 outside of a
    /// simulated machine, where the thread alone has them.
    pub fn events_invalid(&self) -> usize {
        match &self.runner {
            Some(Runner::HostMachine(task)) => {
                task.lock().unwrap_or_else(PoisonError::into_inner).invalid.len()
            }
            _ => 0,
        }
    }

    /// Returns the next result; `None` if there is none.
    pub fn poll(&self) -> Option<Stored> {
        self.done.try_recv().ok()
    }
}

impl Drop for EventStore {
    /// Waits until all events are written and the files are finished.
    fn drop(&mut self) {
        self.jobs = None;
        match self.runner.take() {
            Some(Runner::Thread(thread)) => {
                let _ = thread.join();
            }
            Some(Runner::HostMachine(task)) => {
                let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
                while task.turn(Duration::ZERO) {}
            }
            None => {}
        }
    }
}

/// A file that is being written. Events wait in the writer's memory until their group is written.
struct Open {
    path: PathBuf,
    file: MachineFile,
    writer: AtlasWriter<Vec<u8>>,
    /// Numbers of events and bytes that are on disk.
    safe: (u32, u64),
    number: u32,
    /// True if bytes of a failed group may follow the safe ones, because they could not be cut off yet.
    has_failed_group: bool,
}

/// Writes the events of a logger.
pub struct StoreTask {
    machine: HostMachine,
    config: StoreConfig,
    limit: Arc<AtomicU64>,
    next_number: u32,
    /// Open file of each stream: physics, debug.
    files: [Option<Open>; 2],
    todo: Receiver<WriteJob<Data>>,
    done: Sender<Stored>,
    wake: Wake,
    /// State of an unwritable disk, and the bytes that must fit before it counts as writable; `None` while writes succeed.
    unwritable: Option<(DiskState, u64)>,
    invalid: InvalidEvents,
}

impl std::fmt::Debug for StoreTask {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StoreTask").field("config", &self.config).finish_non_exhaustive()
    }
}

impl TurnTask for StoreTask {
    fn turn(&mut self, pause: Duration) -> bool {
        Self::turn(self, pause)
    }
}

impl StoreTask {
    /// Returns the maximum wait for the first event of a turn.
    fn pause(&self) -> Duration {
        if self.unwritable.is_some() { RETRY } else { Duration::MAX / 4 }
    }

    /// Waits at most `pause` for the first event, and writes the waiting events as a group. Returns false when the
    /// [`EventStore`] was dropped; the files are finished then.
    pub fn turn(&mut self, pause: Duration) -> bool {
        let first = match self.todo.recv_timeout(pause) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.end();
                return false;
            }
        };
        self.try_again();
        let mut group = Vec::new();
        let mut bytes = 0;
        let mut next = first;
        while let Some(job) = next {
            bytes += job.payload.parts().iter().map(|part| part.len() as u64).sum::<u64>();
            group.push(job);
            if bytes >= GROUP_BYTES_MAX {
                break;
            }
            next = self.todo.try_recv().ok();
        }
        if !group.is_empty() {
            self.write(&group);
            (self.wake)();
        }
        true
    }

    fn end(&mut self) {
        for stream in 0..2 {
            if let Err(error) = self.finish(stream, true) {
                tracing::error!(%error, "cannot finish a file; the next start finishes it");
            }
        }
    }

    fn send_stored(&self, stored: Stored) {
        // While the logger ends, the channel may have no receiver.
        let _ = self.done.send(stored);
    }

    fn write(&mut self, group: &[WriteJob<Data>]) {
        let mut pending: Vec<(StoreId, usize, Stored)> = Vec::with_capacity(group.len());
        for job in group {
            if self.unwritable.is_some() {
                self.send_stored(Stored::Failed(job.id));
                continue;
            }
            match self.add(job) {
                Ok((stream, stored)) => pending.push((job.id, place(stream), stored)),
                Err(error) => {
                    tracing::error!(event = job.event.0, %error, "cannot store an event");
                    self.note_unwritable(&error, job);
                    self.send_stored(Stored::Failed(job.id));
                }
            }
        }
        for stream in 0..2 {
            let written = self.flush(stream);
            if let Err(error) = &written {
                tracing::error!(%error, events = pending.len(), "cannot write a group of events to disk");
                if let Some(job) = group.iter().max_by_key(|job| size(job)) {
                    self.note_unwritable(error, job);
                }
            }
            for &(id, _, stored) in pending.iter().filter(|(_, of, _)| *of == stream) {
                self.send_stored(if written.is_ok() { stored } else { Stored::Failed(id) });
            }
            let is_large = |open: &Open| open.safe.1 >= self.limit.load(Ordering::Relaxed);
            if self.files[stream].as_ref().is_some_and(is_large)
                && let Err(error) = self.finish(stream, false)
            {
                tracing::error!(%error, "cannot finish a file yet");
            }
        }
    }

    /// Checks an event and adds it to the group of its file, or adds one with stand-ins if it was invalid too often. Returns
    /// its stream, and the result when its group is on disk.
    fn add(&mut self, job: &WriteJob<Data>) -> io::Result<(EventStream, Stored)> {
        // The checksums of the readouts are checked a last time.
        let checked = job.payload.parts().iter().try_for_each(|part| check(part).map(drop));
        let added =
            checked.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)).and_then(|()| {
                let parts = job.payload.parts().iter().flat_map(|part| fragments(part)).flatten();
                let parts =
                    parts.map(|f| Fragment { source: f.source, status: f.status, offset: 0, bytes: f.bytes });
                self.append(job, job.stream, parts)
            });
        match added {
            Ok(()) => {
                self.invalid.forget(job.event);
                Ok((job.stream, Stored::Safe(job.id)))
            }
            // Not an error of the disk: the collector's next copy is right, or no logger can write the event.
            Err(error)
                if error.kind() == io::ErrorKind::InvalidData && self.invalid.is_hopeless(job.event) =>
            {
                let (parts, count) = with_stand_ins(job);
                self.append(job, EventStream::Debug, parts)?;
                tracing::error!(
                    event = job.event.0, %error, fragments = count,
                    "cannot store an event as it is: the debug stream has it with stand-ins for these fragments"
                );
                self.invalid.forget(job.event);
                Ok((EventStream::Debug, Stored::StandIn { id: job.id, fragments: count }))
            }
            Err(error) => Err(error),
        }
    }

    /// Adds an event to the group of a stream's file. Begins the file if needed.
    fn append<'b>(
        &mut self,
        job: &WriteJob<Data>,
        stream: EventStream,
        parts: impl IntoIterator<Item = Fragment<'b>>,
    ) -> io::Result<()> {
        let file = place(stream);
        self.cut_off(file)?;
        if self.files[file].is_none() {
            self.files[file] = Some(self.begin(stream)?);
        }
        let Some(open) = &mut self.files[file] else { return Ok(()) };
        let (low, high) = (job.event.0 as u32, (job.event.0 >> 32) as u32);
        let now = self.machine.since_1970();
        let long = [low, high];
        let header = EventHeader {
            l1_id: low,
            global_id: low,
            run: self.config.run,
            time_seconds: now.as_secs() as u32,
            time_nanoseconds: now.subsec_nanos(),
            status: if job.missing > 0 { fanin_events::atlas::status::MISSING } else { 0 },
            // An L1 ID above 32 bits is stored whole in the words of the trigger.
            l1_info: if high > 0 { &long } else { &[] },
            stream_tag: stream_name(stream),
            ..EventHeader::default()
        };
        open.writer.write_event(&header, parts).map_err(into_io)
    }

    fn begin(&mut self, stream: EventStream) -> io::Result<Open> {
        let number = self.next_number;
        let names = file_header(&self.config, stream_name(stream), number);
        let path = self.config.folder.join(format!("{}{WRITING}", names.file_name));
        // The number is used up even if the file cannot be begun: a leftover file must not block the next attempt.
        self.next_number += 1;
        let file = self.machine.open(&path, OpenMode::CreateNew)?;
        // The name of the file must be on disk as well as its content.
        if let Err(error) = self.machine.sync_folder(&self.config.folder) {
            // If the file cannot be removed, the next start removes it, because it is empty.
            let _ = self.machine.remove(&path);
            return Err(error);
        }
        let writer = AtlasWriter::new(Vec::new(), &names).map_err(into_io)?;
        Ok(Open { path, file, writer, safe: (0, 0), number, has_failed_group: false })
    }

    /// Writes the group of a file to disk. On an error, cuts the group off.
    fn flush(&mut self, stream: usize) -> io::Result<()> {
        let Some(open) = &mut self.files[stream] else { return Ok(()) };
        if open.writer.output().is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(open.writer.output());
        match open.file.write_all(&waiting).and_then(|()| open.file.sync_data()) {
            Ok(()) => {
                open.safe = (open.writer.written_events(), open.writer.written_bytes());
                let mut again = waiting;
                again.clear();
                *open.writer.output() = again;
                Ok(())
            }
            Err(error) => {
                // No event of the group may stay in the file, because its collector ships it to another logger.
                open.has_failed_group = true;
                if let Err(error) = self.cut_off(stream) {
                    tracing::error!(%error, "cannot cut off the events that could not be written; tries again");
                }
                Err(error)
            }
        }
    }

    /// Cuts off a failed group that may be in a file, or removes the file if it has no safe content.
    fn cut_off(&mut self, stream: usize) -> io::Result<()> {
        let Some(open) = self.files[stream].as_mut().filter(|open| open.has_failed_group) else {
            return Ok(());
        };
        let (events, bytes) = open.safe;
        if bytes == 0 {
            match self.machine.remove(&open.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => self.machine.sync_folder(&self.config.folder)?,
            }
            self.files[stream] = None;
            return Ok(());
        }
        open.file.set_len(bytes)?;
        open.file.seek(SeekFrom::Start(bytes))?;
        // A loss of power must not bring the group back.
        open.file.sync_data()?;
        open.writer = AtlasWriter::resume(Vec::new(), events, bytes);
        open.has_failed_group = false;
        Ok(())
    }

    /// Finishes a file: writes its last record, and renames it.
    fn finish(&mut self, stream: usize, last_of_run: bool) -> io::Result<()> {
        self.flush(stream)?;
        self.cut_off(stream)?;
        let Some(open) = self.files[stream].take() else { return Ok(()) };
        let Open { path, mut file, writer, safe, number, .. } = open;
        let finished = finish(
            &self.machine,
            &path,
            &mut file,
            AtlasWriter::resume(Vec::new(), safe.0, safe.1),
            last_of_run,
        );
        if finished.is_err() {
            // A partial last record must be removed before the next event.
            match file.set_len(safe.1).and_then(|()| file.seek(SeekFrom::Start(safe.1))) {
                Ok(_) => {
                    self.files[stream] =
                        Some(Open { path, file, writer, safe, number, has_failed_group: false });
                }
                Err(error) => {
                    tracing::error!(%error, file = %path.display(), "left a file unfinished; the next start finishes it");
                }
            }
        }
        finished
    }

    /// Notes that the disk is unwritable. Ignores invalid events, which are no error of the disk.
    fn note_unwritable(&mut self, error: &io::Error, job: &WriteJob<Data>) {
        if error.kind() == io::ErrorKind::InvalidData {
            return;
        }
        let needed = self.unwritable.map_or(0, |(_, needed)| needed).max(size(job) * 2).max(FREE_BYTES_MIN);
        self.set_unwritable(DiskState::of(error), needed);
    }

    fn set_unwritable(&mut self, state: DiskState, needed: u64) {
        if self.unwritable.is_none_or(|(before, _)| before != state) {
            self.send_stored(Stored::Disk(state));
        }
        self.unwritable = Some((state, needed));
    }

    /// Tests if an unwritable disk is writable again, and reports a change of its state.
    fn try_again(&mut self) {
        let Some((before, needed)) = self.unwritable else { return };
        let writes = (self.cut_off(0).and_then(|()| self.cut_off(1)))
            .and_then(|()| write_test(&self.machine, &room_file(&self.config), needed));
        match writes {
            Ok(()) => {
                self.unwritable = None;
                self.send_stored(Stored::Disk(DiskState::Writable));
            }
            Err(error) => self.set_unwritable(DiskState::of(&error), needed),
        }
        if self.unwritable.is_none_or(|(state, _)| state != before) {
            (self.wake)();
        }
    }
}

fn size(job: &WriteJob<Data>) -> u64 {
    job.payload.parts().iter().map(|part| part.len() as u64).sum()
}

/// Writes a file of `bytes` bytes and removes it. Unlike a query of free space, this also tests quotas and limits.
fn write_test(machine: &HostMachine, path: &Path, bytes: u64) -> io::Result<()> {
    let tried = machine.open(path, OpenMode::Create).and_then(|mut file| {
        let block = vec![0; 1 << 16];
        let mut left = bytes;
        while left > 0 {
            let now = left.min(block.len() as u64);
            file.write_all(&block[..now as usize])?;
            left -= now;
        }
        file.sync_data()
    });
    let _ = machine.remove(path);
    tried
}

#[cfg(test)]
mod tests;
