//! The life of a process: inputs from its connections and threads, the time, signals; and out what its role says.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as StdInstant};

use fanin_dataflow::{Message, Peer, Record, Unexpected, What};
use fanin_units::Instant;

use crate::clock::{Clock, std_duration};
use crate::config::{Role, System};
use crate::data::Data;
use crate::journal::{Journal, JournalError, Rotation};
use crate::metrics::{self, Metrics};
use crate::roles::{CollectorNode, LoggerNode, ReadoutNode, SupervisorNode};
use crate::source::SourceError;
use crate::unit::client::ClientError;
use crate::wire::{Input, Wire, WireError, name};

/// Signals and deadlines of others are looked at this often, at least.
const TURN_MAX: Duration = Duration::from_millis(50);
/// Inputs that are handled before what they led to is sent.
const INPUTS_MAX: usize = 64;
/// How often metrics are brought up to date.
const METRICS_EVERY: Duration = Duration::from_millis(250);
/// How long connections may take to end.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// A role as a process drives it.
pub trait Node {
    /// A connection stands.
    fn handle_connected(&mut self, now: Instant, peer: Peer);
    /// A connection is lost.
    fn handle_closed(&mut self, now: Instant, peer: Peer);
    /// A message arrived.
    ///
    /// # Errors
    /// If it makes no sense here.
    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected>;
    /// A time that [`Self::poll_deadline`] named has come.
    fn handle_deadline(&mut self, now: Instant);
    /// Another thread has something to tell.
    fn handle_woken(&mut self, _now: Instant) {}
    /// Why it cannot go on, and trying again would not help.
    fn failure(&mut self) -> Option<ProcessError> {
        None
    }
    /// The process is to end when it has finished what it has.
    fn handle_stop(&mut self, _now: Instant) {}
    /// Settings may have changed; those that can change in flight are taken over.
    fn handle_reload(&mut self, _system: &System) {}
    /// Whether nothing is left to finish.
    fn is_idle(&mut self) -> bool;
    /// The next message to send.
    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)>;
    /// The next record, and bytes of fragments in it.
    fn poll_record(&mut self) -> Option<(Record, u64)>;
    /// When [`Self::handle_deadline`] has to be called.
    fn poll_deadline(&mut self) -> Option<Instant>;
    /// Whether nothing may be sent before it stands in the journal.
    fn needs_journal(&self) -> bool {
        false
    }
    /// Brings its metrics up to date.
    fn measure(&self, metrics: &Metrics);
}

/// Why a process ended that should not.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is no such process in the system.
    #[error("there is no {role} {index}; the system has {count}")]
    NoSuchProcess {
        /// The role.
        role: Role,
        /// The number asked for.
        index: u16,
        /// How many there are.
        count: usize,
    },
    /// A folder cannot be made.
    #[error("cannot make the folder {}: {error}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Its journal cannot be written, and nothing may be done that does not stand in it.
    #[error("cannot write the journal {}: {error}", path.display())]
    JournalWrite {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There are no fragments to serve.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It cannot talk to others.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A thread, socket or file of its own failed.
    #[error("{what}: {error}")]
    Own {
        /// What.
        what: &'static str,
        /// Why.
        error: std::io::Error,
    },
    /// A number of the scenario is larger than the live system takes.
    #[error("`{key}` is {got}; the live system takes up to {max}")]
    Number {
        /// The key.
        key: &'static str,
        /// What it is.
        got: u64,
        /// What it may be.
        max: u64,
    },
    /// The scenario asks for what a live system does not do.
    #[error("{0}")]
    Unsupported(String),
    /// Its settings cannot work together.
    #[error("{0}")]
    Settings(String),
    /// The collector's connection failed.
    #[error(transparent)]
    Collector(#[from] ClientError),
    /// The process that started this one is gone.
    #[error("the process that started this one is gone")]
    Orphan,
}

impl ProcessError {
    /// Whether trying again cannot help: the settings are wrong.
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Folder { .. } | Self::JournalWrite { .. } | Self::Wire(_) | Self::Own { .. } => false,
            Self::Collector(_) | Self::Orphan => false,
            Self::NoSuchProcess { .. }
            | Self::Journal(_)
            | Self::Source(_)
            | Self::Number { .. }
            | Self::Unsupported(_)
            | Self::Settings(_) => true,
        }
    }
}

/// What ends a process in good order, or makes it look at its settings again.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// End.
    pub stop: Arc<AtomicBool>,
    /// Read the settings again.
    pub reload: Arc<AtomicBool>,
}

impl Signals {
    /// The signals of the system: SIGTERM and SIGINT end the process, SIGHUP makes it look at its settings.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn install() -> std::io::Result<Self> {
        let signals = Self::default();
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&signals.stop))?;
        }
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&signals.reload))?;
        Ok(signals)
    }
}

/// Runs one process of a system until it is told to stop.
///
/// # Errors
/// If it cannot work.
pub fn run(system: &System, role: Role, index: u16, signals: &Signals) -> Result<(), ProcessError> {
    let count = system.count(role);
    if usize::from(index) >= count {
        return Err(ProcessError::NoSuchProcess { role, index, count });
    }
    std::fs::create_dir_all(&system.folder)
        .map_err(|error| ProcessError::Folder { path: system.folder.clone(), error })?;
    let clock = Clock::start();
    match role {
        Role::Supervisor => {
            drive(system, Peer::Supervisor, clock, signals, |_| SupervisorNode::new(system, clock.now()))
        }
        Role::Readout => {
            drive(system, Peer::Readout(index), clock, signals, |_| ReadoutNode::new(system, index))
        }
        Role::Collector => drive(system, Peer::Collector(index), clock, signals, |wake| {
            CollectorNode::new(system, index, &wake)
        }),
        Role::Logger => {
            drive(system, Peer::Logger(index), clock, signals, |wake| LoggerNode::new(system, index, wake))
        }
        Role::Processor => {
            Err(ProcessError::Unsupported("a processor has no connections of its own".to_owned()))
        }
    }
}

/// What a process' other threads ring.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

fn drive<N: Node>(
    system: &System,
    me: Peer,
    clock: Clock,
    signals: &Signals,
    make: impl FnOnce(Wake) -> Result<N, ProcessError>,
) -> Result<(), ProcessError> {
    let process = name(me);
    let (_, sources) = crate::source::supply(system.scenario(), &system.scenario_folder)?;
    let mut wire = Wire::open(system, me, sources)?;
    let waker = wire.waker();
    let mut node = make(Arc::new(move || waker.wake()))?;
    let path = system.journal(&process);
    let sync = node.needs_journal() && system.scenario().live.journal_sync;
    let write = |error| ProcessError::JournalWrite { path: path.clone(), error };
    let live = &system.scenario().live;
    let rotation = Rotation { size: live.journal_size.get(), keep: live.journal_parts };
    let journal = Journal::open(&path, &process, clock.epoch_us(), sync).map_err(write)?;
    let mut journal = journal.rotating(rotation);
    let metrics = Metrics::new(&process);
    if let Some(address) = system.metrics {
        metrics::serve(&metrics, address)
            .map_err(|error| ProcessError::Own { what: "cannot serve metrics", error })?;
    }
    tracing::info!(process, pid = std::process::id(), "started");
    let mut measured = StdInstant::now();
    let mut stopping: Option<StdInstant> = None;
    let mut journal_fails = false;
    loop {
        while let Some((record, data)) = node.poll_record() {
            metrics.count(&record);
            journal.add(&record, data);
        }
        note_timeouts(&mut wire, &clock, &mut journal);
        match journal.commit() {
            Ok(()) => journal_fails = false,
            Err(error) if node.needs_journal() => return Err(write(error)),
            Err(error) => {
                if !std::mem::replace(&mut journal_fails, true) {
                    tracing::error!(%error, journal = %path.display(), "the journal cannot be written; it is tried again");
                }
            }
        }
        while let Some((to, message)) = node.poll_transmit() {
            wire.send(to, message);
        }
        let now = StdInstant::now();
        wire.look(now);
        if measured.elapsed() >= METRICS_EVERY {
            measured = now;
            wire.account(now, false);
            metrics.measure(&wire, journal.dropped(), stopping.is_none());
            node.measure(&metrics);
        }
        if signals.reload.swap(false, Ordering::Relaxed) {
            reload(system, &mut node);
        }
        if signals.stop.load(Ordering::Relaxed) && stopping.is_none() {
            tracing::info!(process, "stopping");
            stopping = Some(now + std_duration(system.scenario().live.drain));
            node.handle_stop(clock.now());
            continue;
        }
        if let Some(until) = stopping {
            if node.is_idle() {
                break;
            }
            if now >= until {
                tracing::warn!(process, "not everything was finished in time");
                break;
            }
        }
        let due = node.poll_deadline().and_then(|at| clock.system(at));
        let turn = Some(now + TURN_MAX);
        let mut deadline = [due, wire.next_look(), turn].into_iter().flatten().min().unwrap_or(now);
        for _ in 0..INPUTS_MAX {
            let Some(input) = wire.poll(deadline)? else { break };
            deadline = now;
            handle(&mut node, &mut wire, &clock, input);
        }
        if let Some(failure) = node.failure() {
            return Err(failure);
        }
        let now = clock.now();
        if node.poll_deadline().is_some_and(|at| at <= now) {
            node.handle_deadline(now);
        }
    }
    metrics.measure(&wire, journal.dropped(), false);
    wire.close(CLOSE_MAX);
    wire.account(StdInstant::now(), true);
    note_timeouts(&mut wire, &clock, &mut journal);
    drop(node);
    journal.commit().map_err(write)?;
    tracing::info!(process, "stopped");
    Ok(())
}

/// Brings to the journal whom TCP's time-outs have held up.
fn note_timeouts(wire: &mut Wire, clock: &Clock, journal: &mut Journal) {
    while let Some((event, times)) = wire.poll_timed_out() {
        journal.add(&Record { at: clock.now(), event, what: What::TimedOut { times } }, 0);
    }
}

fn handle<N: Node>(node: &mut N, wire: &mut Wire, clock: &Clock, input: Input) {
    let now = clock.now();
    match input {
        Input::Connected(peer) => node.handle_connected(now, peer),
        Input::Closed(peer) => node.handle_closed(now, peer),
        Input::Message(peer, message) => {
            if let Err(unexpected) = node.handle_message(now, peer, message) {
                wire.counters.messages_invalid += 1;
                tracing::error!(%unexpected, "the peer is shut out");
                wire.shut_out(peer);
            }
        }
        Input::Nonsense(peer, error) => tracing::error!(%peer, %error, "the peer is shut out"),
        Input::Woken => node.handle_woken(now),
    }
}

fn reload<N: Node>(system: &System, node: &mut N) {
    match System::load(&system.path) {
        Ok(new) => {
            crate::log::set_level(new.log_level);
            node.handle_reload(&new);
            tracing::info!(
                "settings read again: the log level and the size of files are taken over, others at a restart"
            );
        }
        Err(error) => tracing::error!(%error, "the settings are wrong; nothing changes"),
    }
}
