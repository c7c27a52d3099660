//! The main loop of a process: feeds its role with messages, time and signals, and carries out its outputs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as StdInstant};

use fanin_dataflow::{EventRecord, EventStep, Peer};

use crate::clock::{ProcessClock, std_duration};
use crate::config::{Role, System};
use crate::journal::{Journal, Rotation};
use crate::metrics::{self, Metrics};
use crate::names::name;
use crate::node::{ProcessError, RoleNode};
use crate::roles::{CollectorNode, LoggerNode, ReadoutNode, SupervisorNode};
use crate::wake::Wake;
use crate::wire::{PeerConnections, WireInput};

/// The longest wait between two checks of signals and deadlines.
const TURN_MAX: Duration = Duration::from_millis(50);
/// Inputs that are handled before their outputs are sent.
const INPUTS_MAX: usize = 64;
/// Time between two updates of the metrics.
const METRICS_EVERY: Duration = Duration::from_millis(250);
/// The longest time for connections to end.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Flags that signals set: stop in order, or reload the settings.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// Set to stop the process.
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

/// Runs one process of a system until SIGTERM or SIGINT.
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
    let clock = ProcessClock::start();
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

fn drive<N: RoleNode>(
    system: &System,
    me: Peer,
    clock: ProcessClock,
    signals: &Signals,
    make: impl FnOnce(Wake) -> Result<N, ProcessError>,
) -> Result<(), ProcessError> {
    let process = name(me);
    let (_, sources) = crate::source::supply(system.scenario(), &system.scenario_folder)?;
    let mut wire = PeerConnections::open(system, me, sources)?;
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
    if me == Peer::Supervisor {
        metrics.add_predicted(&system.predicted);
    }
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
                    tracing::error!(%error, journal = %path.display(), "cannot write the journal; trying again");
                }
            }
        }
        while let Some((to, message)) = node.poll_transmit() {
            wire.send(to, message);
        }
        let now = StdInstant::now();
        wire.sample(now);
        if measured.elapsed() >= METRICS_EVERY {
            measured = now;
            wire.account(now, false);
            if stopping.is_none() {
                wire.log_unreachable(now);
            }
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
                tracing::warn!(process, "stopped before all work was finished (live.drain)");
                break;
            }
        }
        let due = node.poll_deadline().and_then(|at| clock.system(at));
        let turn = Some(now + TURN_MAX);
        let mut deadline = [due, wire.next_sample(), turn].into_iter().flatten().min().unwrap_or(now);
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

/// Writes the events that TCP's timeouts held up to the journal.
fn note_timeouts(wire: &mut PeerConnections, clock: &ProcessClock, journal: &mut Journal) {
    while let Some((event, times)) = wire.poll_timed_out() {
        journal.add(&EventRecord { at: clock.now(), event, what: EventStep::TimedOut { times } }, 0);
    }
}

fn handle<N: RoleNode>(node: &mut N, wire: &mut PeerConnections, clock: &ProcessClock, input: WireInput) {
    let now = clock.now();
    match input {
        WireInput::Connected(peer) => node.handle_connected(now, peer),
        WireInput::Closed(peer) => node.handle_closed(now, peer),
        WireInput::Message(peer, message) => {
            if let Err(unexpected) = node.handle_message(now, peer, message) {
                tracing::error!(%unexpected, "closed a connection: unexpected message from the peer");
                wire.reject(peer);
            }
        }
        WireInput::Invalid(peer, error) => {
            tracing::error!(%peer, %error, "closed a connection: invalid message from the peer");
        }
        WireInput::Woken => node.handle_woken(now),
    }
}

fn reload<N: RoleNode>(system: &System, node: &mut N) {
    match System::load(&system.path) {
        Ok(new) => {
            crate::log::set_level(new.log_level);
            node.handle_reload(&new);
            tracing::info!(
                "configuration read again: log level and file size apply now, other settings after a restart"
            );
        }
        Err(error) => tracing::error!(%error, "invalid configuration; the settings stay"),
    }
}
