//! The main loop of a process: feeds its role with messages, time and signals, and carries out its outputs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as StdInstant};

use fanin_dataflow::{EventRecord, EventStep, Message, Peer};
use fanin_message::ReceiveMemory;
use fanin_units::Instant;

use crate::clock::{ProcessClock, std_duration};
use crate::config::{Role, System, waiting_for_restart};
use crate::data::Data;
use crate::free_space::FreeSpace;
use crate::journal::{EarlierLines, Journal, Rotation};
use crate::lock::ProcessLock;
use crate::machine::HostMachine;
use crate::metrics::{self, Metrics};
use crate::names::{name, process_name};
use crate::node::{ProcessError, RoleNode, SuccessionState};
use crate::resume::UnfinishedWork;
use crate::roles::{CollectorNode, LogLines, LoggerNode, PairedSupervisor, ReadoutNode, SupervisorNode};
use crate::store::LastAcknowledged;
use crate::wake::Wake;
use crate::wire::{PeerConnections, WireInput};

/// Maximum wait between two checks of signals and deadlines.
const TURN_MAX: Duration = Duration::from_millis(50);
/// Time after which a process stops in order: its clock ends after 213 days (`clock.rs`).
const LIFE_MAX: fanin_units::Duration = fanin_units::Duration::from_secs(200 * 24 * 3600);
/// Maximum number of inputs that are handled before their outputs are sent.
const INPUTS_MAX: usize = 64;
/// Interval of updates of the metrics.
const METRICS_EVERY: Duration = Duration::from_millis(250);
/// Maximum time for connections to end.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Flags that signals set: stop in order, or reload the settings.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// Set to stop the process in order.
    pub stop: Arc<AtomicBool>,
    /// Set to read the settings again.
    pub reload: Arc<AtomicBool>,
}

impl Signals {
    /// Installs signal handlers: SIGTERM and SIGINT set `stop`, SIGHUP sets `reload`.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub fn install() -> std::io::Result<Self> {
        let signals = Self::default();
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&signals.stop))?;
        }
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&signals.reload))?;
        Ok(signals)
    }
}

/// Sign of life of a process, for the program that started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeSign {
    /// The process listens, and its role is made.
    Ready,
    /// The main loop has taken a turn. A turn waits for 50 ms at most.
    Turn,
    /// The process was asked to stop.
    Stopping,
}

/// Runs one process of a system until SIGTERM or SIGINT.
///
/// # Errors
/// [`ProcessError`].
pub fn run(system: &System, role: Role, index: u16, signals: &Signals) -> Result<(), ProcessError> {
    run_watched(system, role, index, signals, |_| ())
}

/// Runs a process as [`run`] does, and passes its signs of life to `watch`.
///
/// # Errors
/// [`ProcessError`].
pub fn run_watched(
    system: &System,
    role: Role,
    index: u16,
    signals: &Signals,
    mut watch: impl FnMut(LifeSign),
) -> Result<(), ProcessError> {
    let mut process = start(system, role, index, signals)?;
    watch(LifeSign::Ready);
    let mut is_stopping = false;
    while process.turn()? {
        watch(LifeSign::Turn);
        if !is_stopping && signals.stop.load(Ordering::Relaxed) {
            is_stopping = true;
            watch(LifeSign::Stopping);
        }
    }
    Ok(())
}

fn warn_of_open_keys(system: &System, process: &str) {
    for key in system.open_secrets(process) {
        tracing::warn!(file = %key.display(), "every user of this host may read or write the key: chmod o= it");
    }
}

/// Starts a process of a system. [`Turns::turn`] runs it.
///
/// # Errors
/// [`ProcessError`]; [`ProcessError::Unsupported`] for a processor, which has no connections to peers.
pub fn start(
    system: &System,
    role: Role,
    index: u16,
    signals: &Signals,
) -> Result<Box<dyn Turns>, ProcessError> {
    let count = system.count(role);
    if usize::from(index) >= count {
        return Err(ProcessError::NoSuchProcess { role, index, count });
    }
    warn_of_open_keys(system, &process_name(role, index));
    let machine = &system.machine;
    machine
        .create_folder(&system.folder)
        .map_err(|error| ProcessError::Folder { path: system.folder.clone(), error })?;
    let clock = ProcessClock::start_on(machine);
    Ok(match role {
        Role::Supervisor if system.standby.is_some() => {
            let me = if index == 0 { Peer::Supervisor } else { Peer::Standby };
            let path = system.journal(&name(me));
            let parts = || LogLines::of_parts(machine, &path);
            let make = |_, log| PairedSupervisor::new(system, me, log, clock.at(machine.now()));
            Box::new(Process::start(system, me, clock, signals, parts, make)?)
        }
        Role::Supervisor => {
            let path = system.journal(&name(Peer::Supervisor));
            let parts = || Ok(UnfinishedWork::of_parts(machine, &path)?);
            let make = |_, work| SupervisorNode::new(system, &work, clock.at(machine.now()));
            Box::new(Process::start(system, Peer::Supervisor, clock, signals, parts, make)?)
        }
        Role::Readout => {
            let make = |_, ()| ReadoutNode::new(system, index);
            Box::new(Process::start(system, Peer::Readout(index), clock, signals, || Ok(()), make)?)
        }
        Role::Collector => {
            let make = |wake, ()| CollectorNode::new(system, index, &wake);
            Box::new(Process::start(system, Peer::Collector(index), clock, signals, || Ok(()), make)?)
        }
        Role::Logger => {
            let earlier = || Ok(LastAcknowledged::default());
            let make = |wake, earlier| LoggerNode::new(system, index, &earlier, wake);
            Box::new(Process::start(system, Peer::Logger(index), clock, signals, earlier, make)?)
        }
        Role::Processor => {
            let text = "a processor has no connections of its own".to_owned();
            return Err(ProcessError::Unsupported(text));
        }
    })
}

/// A process that works in turns.
pub trait Turns {
    /// Takes one turn: writes the journal, sends messages, then handles inputs and deadlines. Waits for an input if there is
    /// nothing to do; a process of a simulated machine never waits. Returns false when the process has ended in order.
    ///
    /// # Errors
    /// If the process cannot continue.
    fn turn(&mut self) -> Result<bool, ProcessError>;
    /// Returns the time at which a turn is due even if no input arrives; `None` if there is none.
    fn next_turn(&mut self) -> Option<StdInstant>;
    /// Panics if the role's counts contradict each other.
    fn check(&self);
    /// Returns the sizes of the process's queues, buffers and tables.
    fn held(&self) -> HeldByProcess;
    /// Returns the state of a supervisor in a system with a standby; `None` for other processes.
    fn succession(&self) -> Option<SuccessionState>;
}

/// Sizes of the queues, buffers and tables of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldByProcess {
    /// Peers with a connection.
    pub connected: usize,
    /// Connections lost since the start of the process.
    pub connections_lost: u64,
    /// Invalid messages of peers since the start of the process.
    pub messages_invalid: u64,
    /// Messages that wait for a connection to take them.
    pub backlog: usize,
    /// Memory of received and of incomplete messages.
    pub receive_memory: ReceiveMemory,
    /// Bytes of the journal that are not committed.
    pub journal_bytes: usize,
    /// Lines of the journal that were dropped.
    pub journal_dropped: u64,
    /// Names and sizes of the role's tables that are empty when no event is in progress.
    pub tables: Vec<(&'static str, usize)>,
    /// Events whose fragments a readout keeps.
    pub events_kept: u64,
    /// Events that a logger refused because the supervisor never assigned them.
    pub events_unassigned: u64,
}

/// A process that drives the role `N`.
struct Process<N> {
    system: System,
    me: Peer,
    clock: ProcessClock,
    signals: Signals,
    node: N,
    /// Messages that were polled from the role before a connection ended, for other peers than the lost one.
    unsent: VecDeque<(Peer, Message<Data>)>,
    wire: PeerConnections,
    journal: Journal,
    journal_fails: bool,
    /// Free space of the journal's disk; `None` in a simulated machine.
    free: Option<FreeSpace>,
    metrics: Metrics,
    measured: StdInstant,
    /// Time at which the process ends even if work is left.
    stopping: Option<StdInstant>,
    /// Time at which the process ends even if connections are open.
    closing: Option<StdInstant>,
    /// True if the next turn is due at once.
    is_busy: bool,
    /// Keeps a second process of this name away from the journal, the socket and the files. Dropped last: the role still writes
    /// files as it is dropped.
    _lock: ProcessLock,
}

fn watch_free_space(system: &System) -> Option<FreeSpace> {
    let (machine, folder) = (system.machine.clone(), system.folder.clone());
    matches!(machine, HostMachine::Real).then(|| FreeSpace::watch(move || machine.free_bytes(&folder)))
}

impl<N: RoleNode> Process<N> {
    /// Opens what a process needs, and makes its role with the lines of its journal. `earlier` is called when no other
    /// process can write the journal.
    fn start<E: EarlierLines>(
        system: &System,
        me: Peer,
        clock: ProcessClock,
        signals: &Signals,
        earlier: impl FnOnce() -> Result<E, ProcessError>,
        make: impl FnOnce(Wake, E) -> Result<N, ProcessError>,
    ) -> Result<Self, ProcessError> {
        let process = name(me);
        let lock = ProcessLock::take(&system.machine, &system.folder, &process)?;
        let (_, sources) = crate::source::supply(system.scenario(), &system.scenario_folder)?;
        let wire = PeerConnections::open(system, me, sources)?;
        let path = system.journal(&process);
        let live = &system.scenario().live;
        // A supervisor sends a message only after its records are in the journal.
        let sync = me == Peer::Supervisor && live.journal_sync;
        let mut rotation = Rotation { size: live.journal_size.get(), keep: live.journal_parts };
        let is_shared = system.standby.is_some() && me.is_supervisor();
        let mut earlier = earlier()?;
        let (machine, epoch_us) = (&system.machine, clock.epoch_us());
        // Opening the journal repairs it, and passes its whole lines to `earlier`.
        let journal = if is_shared {
            // The leader decides where the files of a shared log begin.
            rotation.size = 0;
            Journal::open_shared(machine, &path, &process, epoch_us, true, &mut earlier)
        } else {
            Journal::open_reading(machine, &path, &process, epoch_us, sync, &mut earlier)
        };
        let journal = journal.map_err(|error| ProcessError::JournalWrite { path, error })?;
        let waker = wire.waker();
        let node = make(Arc::new(move || waker.wake()), earlier)?;
        let metrics = Metrics::new(&process);
        if me.is_supervisor() {
            metrics.add_predicted(&system.predicted);
            metrics::level(&metrics.readouts, system.readouts.len() as u64);
        }
        if let Some(address) = system.metrics_option.or(system.metrics) {
            metrics::serve(&metrics, address)
                .map_err(|error| ProcessError::Own { failure: "cannot serve metrics", error })?;
        }
        tracing::info!(process, pid = std::process::id(), "started");
        Ok(Self {
            _lock: lock,
            me,
            clock,
            signals: signals.clone(),
            node,
            unsent: VecDeque::new(),
            wire,
            journal: journal.rotating(rotation),
            journal_fails: false,
            free: watch_free_space(system),
            metrics,
            measured: system.machine.now(),
            stopping: None,
            closing: None,
            is_busy: true,
            system: system.clone(),
        })
    }

    fn now(&self) -> Instant {
        self.clock.at(self.system.machine.now())
    }

    /// Writes log changes and records to the journal, and commits them.
    fn record(&mut self) -> Result<(), ProcessError> {
        while let Some(change) = self.node.poll_log() {
            change.apply(&mut self.journal).map_err(|error| self.journal_write(error))?;
        }
        while let Some((record, data)) = self.node.poll_record() {
            self.metrics.count(&record);
            self.journal.add(&record, data);
        }
        self.note_timeouts();
        match self.journal.commit_with(|| self.node.checkpoint()) {
            Ok(()) => {
                self.journal_fails = false;
                self.node.handle_committed(self.clock.at(self.system.machine.now()), self.journal.span());
            }
            Err(error) if self.node.needs_journal() => return Err(self.journal_write(error)),
            Err(error) => {
                if !std::mem::replace(&mut self.journal_fails, true) {
                    let path = self.journal.path().display();
                    tracing::error!(%error, journal = %path, "cannot write the journal; trying again");
                }
            }
        }
        Ok(())
    }

    fn journal_write(&self, error: std::io::Error) -> ProcessError {
        ProcessError::JournalWrite { path: self.journal.path().to_owned(), error }
    }

    /// Adds records of events that TCP's retransmission timeouts delayed, if the role owns the journal.
    fn note_timeouts(&mut self) {
        while let Some((event, times)) = self.wire.poll_timed_out() {
            if !self.node.owns_journal() {
                continue;
            }
            let record = EventRecord { at: self.now(), event, step: EventStep::TimedOut { times } };
            self.journal.add(&record, 0);
        }
    }

    fn measure(&mut self, now: StdInstant) {
        self.measured = now;
        self.wire.account(now, false);
        if self.stopping.is_none() {
            self.wire.log_unreachable(now);
        }
        let is_up = self.stopping.is_none();
        self.metrics.measure(&self.wire, self.node.lacks(), self.journal.dropped(), is_up);
        metrics::level(&self.metrics.journal_failing, u64::from(self.journal_fails));
        metrics::level(&self.metrics.journal_bytes, self.journal.size());
        self.metrics.set_journal_free(self.free.as_ref().and_then(FreeSpace::bytes));
        self.node.measure(self.now(), &self.metrics);
    }

    fn handle(&mut self, input: WireInput) {
        let now = self.now();
        match input {
            WireInput::Connected(peer) => self.node.handle_connected(now, peer),
            WireInput::Closed(peer) => {
                // Messages for the lost connection must not be sent on the next one, which may be open already.
                self.unsent.extend(std::iter::from_fn(|| self.node.poll_transmit()));
                self.unsent.retain(|(to, _)| *to != peer);
                self.node.handle_closed(now, peer);
            }
            WireInput::Message(peer, message) => {
                if let Err(unexpected) = self.node.handle_message(now, peer, message) {
                    tracing::error!(%unexpected, "closed a connection: unexpected message from the peer");
                    self.wire.reject(peer);
                }
            }
            WireInput::Invalid(peer, error) => {
                tracing::error!(%peer, %error, "closed a connection: invalid message from the peer");
            }
            WireInput::Woken => self.node.handle_woken(now),
        }
    }

    fn reload(&mut self) {
        match System::load(&self.system.path) {
            Ok(mut new) => {
                crate::log::set_level(new.log_level);
                warn_of_open_keys(&new, &name(self.me));
                let waiting = waiting_for_restart(&self.system, &new);
                // A first key, or the end of authentication, takes a restart.
                if self.system.key.is_some() != new.key.is_some() {
                    (new.key, new.key_previous) = (self.system.key.clone(), self.system.key_previous.clone());
                }
                self.wire.set_keys(&new);
                self.node.handle_reload(&new);
                (self.system.key, self.system.key_previous) = (new.key, new.key_previous);
                tracing::info!("configuration read again: log level, file size and keys apply now");
                if !waiting.is_empty() {
                    let keys = waiting.join(", ");
                    tracing::warn!(%keys, "changed settings wait for a restart of this process");
                }
            }
            Err(error) => tracing::error!(%error, "invalid configuration; the settings stay"),
        }
    }

    /// Returns true if the process must close its connections: its work is finished, or `live.drain` has passed.
    fn is_finished(&mut self, now: StdInstant) -> bool {
        let Some(until) = self.stopping else { return false };
        if self.node.is_idle() {
            return true;
        }
        if now >= until {
            tracing::warn!(process = name(self.me), "stopped before all work was finished (live.drain)");
        }
        now >= until
    }

    /// Closes connections. Returns false when they are closed and the journal is committed.
    fn close_turn(&mut self, until: StdInstant) -> Result<bool, ProcessError> {
        if self.wire.close_turn(until) {
            return Ok(true);
        }
        self.wire.account(self.system.machine.now(), true);
        self.note_timeouts();
        self.journal.commit().map_err(|error| self.journal_write(error))?;
        tracing::info!(process = name(self.me), "stopped");
        Ok(false)
    }
}

impl<N: RoleNode> Turns for Process<N> {
    fn turn(&mut self) -> Result<bool, ProcessError> {
        if let Some(until) = self.closing {
            return self.close_turn(until);
        }
        self.is_busy = false;
        self.record()?;
        while let Some((to, message)) = self.unsent.pop_front().or_else(|| self.node.poll_transmit()) {
            self.wire.send(to, message);
        }
        let now = self.system.machine.now();
        self.wire.sample(now);
        if now.saturating_duration_since(self.measured) >= METRICS_EVERY {
            self.measure(now);
        }
        if self.signals.reload.swap(false, Ordering::Relaxed) {
            self.reload();
        }
        let is_old = self.clock.at(now) >= Instant::START + LIFE_MAX;
        if (is_old || self.signals.stop.load(Ordering::Relaxed)) && self.stopping.is_none() {
            if is_old {
                tracing::warn!(
                    "its clock ends 213 days after its start: stops in order after 200, to be started again"
                );
            }
            tracing::info!(process = name(self.me), "stopping");
            self.stopping = Some(now + std_duration(self.system.scenario().live.drain));
            self.node.handle_stop(self.now());
            self.is_busy = true;
            return Ok(true);
        }
        if self.is_finished(now) {
            self.metrics.measure(&self.wire, None, self.journal.dropped(), false);
            self.wire.begin_close();
            self.closing = Some(now + CLOSE_MAX);
            return Ok(true);
        }
        let due = self.node.poll_deadline().and_then(|at| self.clock.system(at));
        let turn = Some(now + TURN_MAX);
        let mut deadline = [due, self.wire.next_sample(), turn].into_iter().flatten().min().unwrap_or(now);
        for _ in 0..INPUTS_MAX {
            let Some(input) = self.wire.poll(deadline)? else { break };
            deadline = now;
            self.is_busy = true;
            self.handle(input);
        }
        if let Some(failure) = self.node.failure() {
            return Err(failure);
        }
        let now = self.now();
        if self.node.poll_deadline().is_some_and(|at| at <= now) {
            self.is_busy = true;
            self.node.handle_deadline(now);
        }
        Ok(true)
    }

    fn next_turn(&mut self) -> Option<StdInstant> {
        let now = self.system.machine.now();
        if self.is_busy {
            return Some(now);
        }
        if let Some(until) = self.closing {
            return Some(self.wire.poll_deadline().map_or(until, |at| at.min(until)));
        }
        let due = self.node.poll_deadline().and_then(|at| self.clock.system(at));
        // A failing journal and a stopping process are checked as often as in a process that waits.
        let turn = (self.journal_fails || self.stopping.is_some()).then_some(now + TURN_MAX);
        [due, self.wire.poll_deadline(), turn].into_iter().flatten().min()
    }

    fn check(&self) {
        self.node.check();
        self.wire.check();
    }

    fn succession(&self) -> Option<SuccessionState> {
        self.node.succession()
    }

    fn held(&self) -> HeldByProcess {
        let (backlog, receive_memory) = self.wire.held();
        HeldByProcess {
            connected: self.wire.connected(),
            connections_lost: self.wire.counters().connections_lost,
            messages_invalid: self.wire.counters().messages_invalid,
            backlog,
            receive_memory,
            journal_bytes: self.journal.waiting_bytes(),
            journal_dropped: self.journal.dropped(),
            tables: self.node.tables(),
            events_kept: self.node.events_kept(),
            events_unassigned: self.node.events_unassigned(),
        }
    }
}
