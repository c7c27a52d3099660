//! The collector's side: a thread for each unit starts the unit's process, copies events into its shared memory, and waits
//! for its decisions. The collector's main thread never waits for a unit.

use std::collections::VecDeque;
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fanin_dataflow::{Decision, L1Id};
use fanin_message::NoCommonVersion;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

use super::client::collector_name;
use super::protocol::{
    self, ANY_UNIT, DECISION, EVENT, HELLO, LAYOUT, MEMORY, OTHER_VERSIONS, UnitFrame, VERSIONS,
};
use crate::data::Data;
use crate::shared::SharedMemory;
use crate::wake::Wake;

/// Maximum time from a connection to its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time from a process's start to its connection. Imports in Python may take seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum pause before the restart of a unit. The pause starts at `PAUSE_MIN` and doubles.
const PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Number of exits without any connection after which a unit is reported as hopeless.
const FAILURES_MAX: u32 = 8;
/// Lifetime of a unit that resets the pause before its restart.
const WELL_AFTER: Duration = Duration::from_secs(10);
/// Maximum time for a unit to end by itself when its collector ends.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the command that starts the process of a unit.
pub type Launcher = Arc<dyn Fn(u16) -> Command + Send + Sync>;

/// A change of a processing unit's state, or its decision.
#[derive(Debug)]
pub enum Happening {
    /// A unit is connected.
    Up {
        /// Index of the unit.
        unit: u16,
        /// PID of the unit's process.
        pid: u64,
        /// Version of the messages that both sides use.
        version: u16,
    },
    /// A unit is lost: its process ended, or its connection failed.
    Lost {
        /// Index of the unit.
        unit: u16,
        /// Description of the reason.
        why: String,
    },
    /// The process of a unit exited at least 8 times, and never connected.
    Hopeless {
        /// Index of the unit.
        unit: u16,
        /// The last exit status.
        status: ExitStatus,
    },
    /// A unit has decided on an event.
    Decided {
        /// Index of the unit.
        unit: u16,
        /// The decided event.
        event: L1Id,
        /// Decision of the unit.
        decision: Decision,
    },
}

struct UnitJob {
    event: L1Id,
    step: u16,
    data: Data,
}

/// State that the collector's main thread and a unit's thread share.
struct Desk {
    jobs: Mutex<VecDeque<UnitJob>>,
    /// Connection of the next process, and the version of its messages.
    connected: Mutex<Option<(UnixStream, u16)>>,
    process: Mutex<Option<OwnedFd>>,
    bell: OwnedFd,
}

impl Desk {
    fn ring(&self) {
        // If the counter is full, the eventfd is readable already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The units of a collector.
pub struct UnitServer {
    path: PathBuf,
    desks: Arc<Vec<Desk>>,
    happenings: Receiver<Happening>,
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl UnitServer {
    /// Listens for units at the socket `path`, and starts their processes if given a `launcher`. Calls `wake` when
    /// [`Self::poll`] has a new happening.
    ///
    /// # Errors
    /// If the socket or a thread cannot be created.
    pub fn start(path: &Path, units: u16, launcher: Option<&Launcher>, wake: &Wake) -> io::Result<Self> {
        // An earlier incarnation left the socket. `ProcessLock` keeps a second collector of the same number out.
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        // A unit decides on events: other users may not connect, whatever the file mode creation mask permits.
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let desks = (0..units).map(|_| {
            Ok(Desk {
                jobs: Mutex::default(),
                connected: Mutex::default(),
                process: Mutex::default(),
                bell: eventfd(0, flags)?,
            })
        });
        let desks = Arc::new(desks.collect::<io::Result<Vec<Desk>>>()?);
        let stopping = Arc::new(AtomicBool::new(false));
        let (sender, happenings) = channel();
        let mut threads = Vec::new();
        for unit in 0..units {
            let thread = UnitThread {
                unit,
                desks: Arc::clone(&desks),
                stopping: Arc::clone(&stopping),
                happenings: sender.clone(),
                wake: Arc::clone(wake),
                launcher: launcher.cloned(),
            };
            threads
                .push(std::thread::Builder::new().name(format!("unit {unit}")).spawn(move || thread.run())?);
        }
        let (all, stop) = (Arc::clone(&desks), Arc::clone(&stopping));
        let name = collector_name(path).to_owned();
        let accept = move || accept(&listener, &name, &all, &stop);
        threads.push(std::thread::Builder::new().name("units".to_owned()).spawn(accept)?);
        Ok(Self { path: path.to_owned(), desks, happenings, stopping, threads })
    }

    /// Passes an event to a unit for the collection step `step`.
    pub fn process(&self, unit: u16, event: L1Id, step: u16, data: Data) {
        let desk = &self.desks[usize::from(unit)];
        lock(&desk.jobs).push_back(UnitJob { event, step, data });
        desk.ring();
    }

    /// Kills the process of a unit. Its thread starts a new one.
    pub fn kill(&self, unit: u16) {
        if let Some(process) = &*lock(&self.desks[usize::from(unit)].process) {
            // The process may have ended already.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Returns the next happening; `None` if there is none.
    pub fn poll(&self) -> Option<Happening> {
        self.happenings.try_recv().ok()
    }
}

impl Drop for UnitServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.desks.iter().for_each(Desk::ring);
        // This connection wakes the thread that accepts connections.
        drop(UnixStream::connect(&self.path));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Passes each connection to the unit that its hello names, or to a free unit.
fn accept(listener: &UnixListener, name: &str, desks: &[Desk], stopping: &AtomicBool) {
    let mut pause = PAUSE_MIN;
    loop {
        let accepted = listener.accept();
        if stopping.load(Ordering::Relaxed) {
            return;
        }
        let mut stream = match accepted {
            Ok((stream, _)) => {
                pause = PAUSE_MIN;
                stream
            }
            Err(error) => {
                // Such as too many open files: further units may connect later. A growing pause keeps the log short.
                tracing::warn!(%error, "cannot accept a unit");
                std::thread::sleep(pause);
                pause = (2 * pause).min(PAUSE_MAX);
                continue;
            }
        };
        if !is_of_this_user(&stream) {
            continue;
        }
        let _ = stream.set_read_timeout(Some(HELLO_TIMEOUT));
        let Ok(Some((frame, _))) = protocol::receive(&mut stream) else { continue };
        let Some(version) = common_version(&stream, &frame, name) else { continue };
        let free = |desk: &Desk| lock(&desk.process).is_none() && lock(&desk.connected).is_none();
        let place = match frame.first {
            ANY_UNIT => desks.iter().position(free),
            unit => usize::try_from(unit).ok(),
        };
        let Some((place, desk)) = place.and_then(|place| Some((place, desks.get(place)?))) else {
            tracing::warn!(
                unit = frame.first,
                pid = frame.second,
                "rejected a unit: no unit with this number is expected"
            );
            continue;
        };
        let greeting = UnitFrame::with_versions(HELLO, place as u64, 0);
        if protocol::send(&stream, greeting, None).is_err() {
            continue;
        }
        let _ = stream.set_read_timeout(None);
        *lock(&desk.connected) = Some((stream, version));
        desk.ring();
    }
}

/// Returns true if this user or root runs the process at the other end. The mode of the socket's file keeps other users out
/// as well, but not before it is set, and not if it is changed.
fn is_of_this_user(stream: &UnixStream) -> bool {
    let refused = match socket_peercred(stream) {
        Ok(peer) if peer.uid == geteuid() || peer.uid.is_root() => return true,
        Ok(peer) => {
            let (theirs, ours) = (peer.uid.as_raw(), geteuid().as_raw());
            format!("it belongs to user {theirs}, and only users {ours} and 0 may connect")
        }
        Err(error) => format!("cannot get its user from the kernel: {error}"),
    };
    tracing::warn!(reason = refused, "rejected a unit");
    false
}

/// Returns the highest version that a unit and this collector speak. Refuses a unit without one in one sentence, which both
/// sides log.
fn common_version(stream: &UnixStream, frame: &UnitFrame, name: &str) -> Option<u16> {
    if frame.kind != HELLO {
        tracing::warn!(kind = frame.kind, "rejected a unit: its first message is not a greeting");
        return None;
    }
    let versions = frame.versions();
    let common = versions.and_then(|versions| VERSIONS.common(versions));
    if common.is_some() {
        return common;
    }
    let pid = frame.second;
    if let Some(peer_versions) = versions {
        let (name, peer) = (name.into(), "processor".into());
        let reason = NoCommonVersion { name, versions: VERSIONS, peer, peer_versions };
        tracing::warn!(unit = frame.first, pid, "rejected a unit: {reason}");
    } else {
        tracing::warn!(pid, layout = frame.small, "rejected a unit: its greeting needs layout {LAYOUT}");
    }
    let refusal = UnitFrame::with_versions(OTHER_VERSIONS, 0, 0);
    // A unit that has ended needs no answer.
    let _ = protocol::send(stream, refusal, None);
    None
}

struct UnitThread {
    unit: u16,
    desks: Arc<Vec<Desk>>,
    stopping: Arc<AtomicBool>,
    happenings: Sender<Happening>,
    wake: Wake,
    launcher: Option<Launcher>,
}

impl UnitThread {
    fn desk(&self) -> &Desk {
        &self.desks[usize::from(self.unit)]
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn report(&self, happening: Happening) {
        // When the collector ends, the channel may have no receiver.
        let _ = self.happenings.send(happening);
        (self.wake)();
    }

    fn run(&self) {
        let mut pause = PAUSE_MIN;
        let (mut failures, mut has_served) = (0, false);
        while !self.is_stopping() {
            let began = Instant::now();
            let mut child = match self.launcher.as_ref().map(|launcher| launcher(self.unit).spawn()) {
                None => None,
                Some(Ok(child)) => Some(child),
                Some(Err(error)) => {
                    tracing::error!(unit = self.unit, %error, "cannot start the unit's process");
                    self.rest(&mut pause);
                    continue;
                }
            };
            if let Some((stream, version)) = self.connection(child.as_mut()) {
                has_served = true;
                let why = match self.serve(stream, version) {
                    Ok(()) if self.is_stopping() => None,
                    Ok(()) => Some("it closed the connection".to_owned()),
                    Err(error) => Some(error.to_string()),
                };
                let status = child.take().map(|child| self.end(child));
                *lock(&self.desk().process) = None;
                lock(&self.desk().jobs).clear();
                if let Some(why) = why {
                    let status = status.flatten().map_or_else(String::new, |status| format!(" ({status})"));
                    self.report(Happening::Lost { unit: self.unit, why: why + &status });
                }
            } else if let Some(child) = child {
                let status = self.end(child);
                if !self.is_stopping() {
                    tracing::error!(unit = self.unit, ?status, "the unit's process did not connect");
                    // A process that a signal killed does not count: the next one may connect.
                    failures += u32::from(status.is_some_and(|status| status.code().is_some()));
                }
                if let Some(status) = status
                    && failures >= FAILURES_MAX
                    && !has_served
                {
                    self.report(Happening::Hopeless { unit: self.unit, status });
                }
            }
            if began.elapsed() >= WELL_AFTER {
                pause = PAUSE_MIN;
            }
            if self.launcher.is_some() && !self.is_stopping() {
                self.rest(&mut pause);
            }
        }
    }

    /// Waits for `pause` before the next start, and doubles it up to [`PAUSE_MAX`].
    fn rest(&self, pause: &mut Duration) {
        let until = Instant::now() + *pause;
        while !self.is_stopping() && Instant::now() < until {
            self.wait(None, until.saturating_duration_since(Instant::now()));
        }
        *pause = (*pause * 2).min(PAUSE_MAX);
    }

    /// Waits for the eventfd or for data of the unit, at most for `timeout`. Returns true if the unit's connection is
    /// readable.
    fn wait(&self, stream: Option<&UnixStream>, timeout: Duration) -> bool {
        let mut fds = vec![PollFd::new(&self.desk().bell, PollFlags::IN)];
        fds.extend(stream.map(|stream| PollFd::new(stream, PollFlags::IN)));
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let ready = poll(&mut fds, Some(&timeout)).is_ok();
        let rung = ready && !fds[0].revents().is_empty();
        let readable = ready && fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        if rung {
            let _ = rustix::io::read(&self.desk().bell, &mut [0_u8; 8]);
        }
        readable
    }

    /// Waits until the unit connects. Returns `None` if its process ended, the time is over, or the collector ends.
    fn connection(&self, mut child: Option<&mut Child>) -> Option<(UnixStream, u16)> {
        let until = Instant::now() + CONNECT_TIMEOUT;
        loop {
            if let Some(connected) = lock(&self.desk().connected).take() {
                return Some(connected);
            }
            let gone = child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
            if self.is_stopping() || gone || (child.is_some() && Instant::now() >= until) {
                return None;
            }
            self.wait(None, Duration::from_millis(100));
        }
    }

    fn serve(&self, mut stream: UnixStream, version: u16) -> io::Result<()> {
        let process = socket_peercred(&stream)?.pid;
        let pid = process.as_raw_nonzero().get();
        *lock(&self.desk().process) = Some(pidfd_open(process, PidfdFlags::empty())?);
        let mut area: Option<SharedMemory> = None;
        self.report(Happening::Up { unit: self.unit, pid: u64::from(pid.unsigned_abs()), version });
        let mut busy = None;
        while !self.is_stopping() {
            let job = if busy.is_none() { lock(&self.desk().jobs).pop_front() } else { None };
            if let Some(job) = job {
                busy = Some(job.event);
                self.show(&stream, &mut area, &job)?;
                continue;
            }
            if !self.wait(Some(&stream), Duration::from_secs(1)) {
                continue;
            }
            let Some((frame, _)) = protocol::receive(&mut stream)? else { return Ok(()) };
            let wrong = |message| io::Error::new(io::ErrorKind::InvalidData, message);
            let event = L1Id(frame.event);
            if frame.kind != DECISION || busy.take() != Some(event) {
                return Err(wrong("it decided about an event that it does not have"));
            }
            let decision =
                protocol::decode_decision(&frame).ok_or_else(|| wrong("it decided something unknown"))?;
            self.report(Happening::Decided { unit: self.unit, event, decision });
        }
        Ok(())
    }

    /// Writes an event into the unit's memory, and sends it the event. Replaces memory that is too small.
    fn show(&self, stream: &UnixStream, area: &mut Option<SharedMemory>, job: &UnitJob) -> io::Result<()> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let (bytes, count) = protocol::room(&job.data).map_err(invalid)?;
        let memory = match area {
            Some(memory) if memory.capacity() >= bytes => memory,
            area => {
                // The new memory has spare room, so that it is seldom replaced.
                let memory = SharedMemory::new((bytes + bytes / 2).next_multiple_of(1 << 20))?;
                let (first, second) = (memory.capacity() as u64, u64::from(self.unit));
                let frame = UnitFrame { kind: MEMORY, first, second, ..UnitFrame::default() };
                protocol::send(stream, frame, Some(memory.fd()))?;
                area.insert(memory)
            }
        };
        protocol::lay_out(&job.data, count, memory.bytes());
        let small = u32::from(job.step);
        let frame = UnitFrame { kind: EVENT, small, event: job.event.0, first: count as u64, second: 0 };
        protocol::send(stream, frame, None)
    }

    /// Waits for the end of a process, and kills it after a timeout. Returns its exit status, if known.
    fn end(&self, mut child: Child) -> Option<ExitStatus> {
        let until = Instant::now() + if self.is_stopping() { END_TIMEOUT } else { Duration::from_millis(50) };
        loop {
            match child.try_wait() {
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => {
                    let _ = child.kill();
                    return child.wait().ok();
                }
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }
}

impl std::fmt::Debug for UnitServer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} units at {}", self.desks.len(), self.path.display())
    }
}
