//! The promises that hold in every world: while it runs, when its faults are over, and at its end.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use fanin_dataflow::{EventStep, L1Id};
use fanin_node::audit::{AuditScope, audit_on};
use fanin_node::config::Role;
use fanin_node::journal::{self, JournalError};
use fanin_node::machine::HostMachine;
use fanin_node::process::{HeldByProcess, Turns};

use crate::plan::{EndpointLimits, MESSAGE_BYTES_MAX, ProcessPlace, ScarceMemory};
use crate::shared::EPOCH_US;
use crate::world::{RECOVERY_MAX, RESUME_MAX, STOP_MAX, World};

const MS: u64 = 1_000_000;
/// Turns of a process between two checks of its counts.
const CHECK_EVERY: u64 = 16;
/// The most messages that may wait for slow peers in a system of this size.
const BACKLOG_MAX: usize = 5_000;
/// The most received bytes in use in a system of this size.
const RECEIVE_BYTES_MAX: u64 = 64 << 20;
/// The most bytes of a journal that may wait for a disk in a system of this size.
const JOURNAL_BYTES_MAX: usize = 4 << 20;
/// Sockets of a machine beyond its connections: those that a peer left silently, and attempts under way.
const SOCKETS_MORE_MAX: usize = 24;

/// A broken promise of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldFailure {
    /// The audit of journals and files failed.
    Audit(String),
    /// A journal cannot be read.
    Journal(String),
    /// A process holds more than it may.
    Grows {
        /// Name of the process.
        process: String,
        /// Name of the resource that exceeds its limit.
        resource: &'static str,
        /// The number that the process holds.
        held: u64,
        /// Largest permitted number.
        limit: u64,
    },
    /// A process ended in order, and something was left in its tables.
    Left {
        /// Name of the process.
        process: String,
        /// The tables that are not empty.
        tables: String,
    },
    /// The faults were over, and the system did not become complete, or finished no event.
    NotRecovered(String),
    /// A supervisor was lost for good, and no event was assigned for too long.
    NotResumed(String),
    /// Orderly restarts, one after the other, cost decisions or fragments.
    Restart {
        /// Events that were stored undecided.
        debug: u64,
        /// Fragments that are missing in stored events.
        missing: u64,
    },
    /// A process waits although bytes of a peer have arrived that no later event reports.
    ForgottenInput {
        /// Name of the process.
        process: String,
    },
    /// A process waits and does not read from a peer, although there is memory for its messages.
    Stopped {
        /// Name of the process.
        process: String,
    },
    /// All processes have ended, and these events were assigned and never finished. The audit cannot find that if their
    /// journals were deleted.
    Unfinished(Vec<u64>),
    /// A system without faults lost a connection.
    LostConnection(String),
    /// The system did not stop in order.
    NotStopped(String),
    /// The world has taken too many steps, or has no further step.
    Livelock {
        /// Number of steps.
        count: u64,
    },
    /// Code of the system panicked.
    Panic(String),
}

impl fmt::Display for WorldFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Audit(text) => write!(out, "the audit failed: {text}"),
            Self::Journal(text) => write!(out, "a journal cannot be read: {text}"),
            Self::Grows { process, resource, held, limit } => {
                write!(out, "{process} holds {held} {resource}; the limit is {limit}")
            }
            Self::Left { process, tables } => write!(out, "{process} ended, and holds {tables}"),
            Self::NotRecovered(text) => {
                write!(out, "the system did not recover within {} s: {text}", RECOVERY_MAX / MS / 1000)
            }
            Self::NotResumed(text) => write!(
                out,
                "no event was assigned within {} s after the loss of a supervisor: {text}",
                RESUME_MAX / MS / 1000
            ),
            Self::Restart { debug, missing } => {
                write!(out, "restarts in order cost {debug} decisions and {missing} fragments")
            }
            Self::ForgottenInput { process } => {
                write!(out, "{process} waits, and has not read all bytes that were reported to it")
            }
            Self::Stopped { process } => {
                write!(out, "{process} waits, and does not read from a peer although there is memory")
            }
            Self::Unfinished(events) => write!(out, "events were assigned and never finished: {events:?}"),
            Self::LostConnection(text) => write!(out, "a connection was lost without a fault: {text}"),
            Self::NotStopped(text) => {
                write!(out, "the system did not stop within {} s: {text}", STOP_MAX / MS / 1000)
            }
            Self::Livelock { count } => write!(out, "the world did not end after {count} happenings"),
            Self::Panic(text) => write!(out, "panic: {text}"),
        }
    }
}

impl std::error::Error for WorldFailure {}

fn journal_failure(error: &JournalError) -> WorldFailure {
    WorldFailure::Journal(error.to_string())
}

/// Checks a process after a turn.
pub(crate) fn check_turn(place: ProcessPlace, process: &dyn Turns, turns: u64) -> Result<(), WorldFailure> {
    if !turns.is_multiple_of(CHECK_EVERY) {
        return Ok(());
    }
    process.check();
    let held = process.held();
    let all = [
        ("messages that wait", held.backlog as u64, BACKLOG_MAX as u64),
        ("received bytes", held.receive_memory.lent_bytes, RECEIVE_BYTES_MAX),
        ("bytes of its journal", held.journal_bytes as u64, JOURNAL_BYTES_MAX as u64),
        ("lines given up", held.journal_dropped, 0),
        ("refused messages", held.messages_invalid, 0),
        ("events that were never assigned", held.events_unassigned, 0),
    ];
    check_limits(place, &all)
}

/// Checks the scarce memory of a process after a turn. A process that waits for input reads from each peer for which
/// there is memory. Returns true if a peer waits for its own memory.
pub(crate) fn check_memory(
    place: ProcessPlace,
    process: &dyn Turns,
    limits: EndpointLimits,
    waits: bool,
) -> Result<bool, WorldFailure> {
    let Some(ScarceMemory { bytes_max, peer_bytes_max }) = limits.memory else { return Ok(false) };
    let HeldByProcess { receive_memory: held, connected, .. } = process.held();
    let block = limits.receive_block_bytes as u64;
    // The bytes of a block were read before it was known that they begin a larger message. An urgent peer is read into a
    // block beyond the limit.
    let all_max = bytes_max + (connected as u64 + 2) * block;
    // The limit of a peer binds while more than half of all memory is in use. A message is counted when it is complete,
    // and the block that was read with its last bytes, too. If the block ends within a message that has room, a second
    // block is read before the limit is looked at.
    let peer_max = peer_bytes_max.max(bytes_max / 2) + u64::from(MESSAGE_BYTES_MAX) + 2 * block;
    check_limits(
        place,
        &[
            ("received bytes", held.lent_bytes, all_max),
            ("received bytes of one peer", held.peer_bytes, peer_max),
        ],
    )?;
    if waits && held.is_stopped_with_room {
        return Err(WorldFailure::Stopped { process: name(place) });
    }
    Ok(held.is_peer_stopped)
}

/// Checks numbers of resources that a process holds against their limits.
fn check_limits(place: ProcessPlace, all: &[(&'static str, u64, u64)]) -> Result<(), WorldFailure> {
    match all.iter().find(|(_, held, limit)| held > limit) {
        Some(&(resource, held, limit)) => {
            Err(WorldFailure::Grows { process: name(place), resource, held, limit })
        }
        None => Ok(()),
    }
}

/// Checks a process that is about to end in order: its tables must be empty. If the system was complete and free of faults
/// before, no readout has an event that nothing will ever clear.
pub(crate) fn check_end(
    place: ProcessPlace,
    process: &dyn Turns,
    has_recovered: bool,
) -> Result<(), WorldFailure> {
    process.check();
    let HeldByProcess { mut tables, events_kept, .. } = process.held();
    tables.push(("events in its memory", if has_recovered { events_kept as usize } else { 0 }));
    let left: Vec<_> = tables.into_iter().filter(|(_, entries)| *entries > 0).collect();
    if left.is_empty() {
        return Ok(());
    }
    let tables: Vec<String> = left.iter().map(|(name, entries)| format!("{entries} {name}")).collect();
    Err(WorldFailure::Left { process: name(place), tables: tables.join(", ") })
}

/// Checks the number of sockets of each machine.
pub(crate) fn check_sockets(world: &World) -> Result<(), WorldFailure> {
    let core = world.shared.lock();
    for (host, &place) in world.plan.places.iter().enumerate() {
        let limit = world.connections(place) + SOCKETS_MORE_MAX;
        let held = core.net.open(host);
        if held > limit {
            let (held, limit) = (held as u64, limit as u64);
            return Err(WorldFailure::Grows { process: name(place), resource: "sockets", held, limit });
        }
    }
    Ok(())
}

fn name(place: ProcessPlace) -> String {
    match place.role {
        Role::Supervisor => fanin_node::names::process_name(place.role, place.index),
        _ => format!("{}-{}", place.role, place.index),
    }
}

/// The progress of the events, from the supervisors' journals.
#[derive(Debug, Default)]
pub(crate) struct EventProgress {
    /// The event that is assigned next.
    pub(crate) assigned: u64,
    completed: BTreeSet<u64>,
    /// Events that were taken from a collector: the collector, the time in picoseconds since 1970, and the event.
    taken: BTreeSet<(u16, u128, u64)>,
}

impl EventProgress {
    /// Returns the number of finished events.
    #[cfg(test)]
    pub(crate) fn finished(&self) -> usize {
        self.completed.len()
    }

    /// Returns the most events that were taken from one collector.
    #[cfg(test)]
    pub(crate) fn taken_most(&self) -> usize {
        let of = |collector| self.taken.iter().filter(|(from, ..)| *from == collector).count();
        self.taken.iter().map(|(from, ..)| of(*from)).max().unwrap_or(0)
    }

    /// Returns the assigned events that were not finished.
    fn open(&self) -> impl Iterator<Item = u64> {
        (0..self.assigned).filter(|event| !self.completed.contains(event))
    }

    /// Returns true if an event was finished that was assigned after the first `assigned` ones.
    pub(crate) fn completed_after(&self, assigned: u64) -> bool {
        self.completed.last().is_some_and(|&event| event >= assigned)
    }
}

fn journals(machine: &HostMachine, folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths = machine.list(folder).unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "journal"));
    paths.sort();
    paths
}

/// Reads the progress of the events from the supervisors' journals.
pub(crate) fn progress(world: &World) -> EventProgress {
    progress_since(world, EventProgress::default())
}

/// As [`progress`], and adds what journals said that are deleted meanwhile.
pub(crate) fn progress_since(world: &World, mut progress: EventProgress) -> EventProgress {
    let machine = world.audit_machine();
    let supervisors = world.folders().into_iter().filter(|(place, ..)| place.role == Role::Supervisor);
    for path in supervisors.flat_map(|(_, folder, _)| journals(&machine, &folder)) {
        // A journal that cannot be read is a finding of the audit.
        let _ = journal::read_on(&machine, &path, |epoch_us, line| match line.record.step {
            EventStep::Reassigned { from } => {
                let at = u128::from(epoch_us) * 1_000_000 + u128::from(line.record.at.get());
                progress.taken.insert((from, at, line.record.event.0));
            }
            EventStep::Assigned { .. } => progress.assigned = progress.assigned.max(line.record.event.0 + 1),
            EventStep::Completed { .. } => {
                progress.completed.insert(line.record.event.0);
            }
            _ => {}
        });
    }
    progress
}

/// Returns the failure of a system that did not recover, with its state.
pub(crate) fn not_recovered(world: &World) -> WorldFailure {
    let progress = progress(world);
    let assigned = progress.assigned;
    let open: Vec<u64> = progress.open().take(5).collect();
    WorldFailure::NotRecovered(format!(
        "{assigned} events assigned, not finished {open:?}; {}",
        running(world)
    ))
}

/// Checks that no event is open when all processes have ended.
pub(crate) fn check_finished(seen: &EventProgress) -> Result<(), WorldFailure> {
    let open: Vec<u64> = seen.open().collect();
    if open.is_empty() { Ok(()) } else { Err(WorldFailure::Unfinished(open)) }
}

/// Returns the failure of a system that lost a supervisor and assigns nothing, with its state.
pub(crate) fn not_resumed(world: &World, assigned: u64) -> WorldFailure {
    WorldFailure::NotResumed(format!("{assigned} events assigned; {}", running(world)))
}

/// Returns the failure of a system that lost a connection without a fault, with its state.
pub(crate) fn lost_connection(world: &World) -> WorldFailure {
    WorldFailure::LostConnection(running(world))
}

/// Returns the failure of a process that waits with unread bytes.
pub(crate) fn forgotten_input(place: ProcessPlace) -> WorldFailure {
    WorldFailure::ForgottenInput { process: name(place) }
}

/// Returns the failure of a system that has not stopped, with its state.
pub(crate) fn not_stopped(world: &World) -> WorldFailure {
    WorldFailure::NotStopped(running(world))
}

fn running(world: &World) -> String {
    let one = |(place, process): (ProcessPlace, &dyn Turns)| {
        let held = process.held();
        let left = held.tables.iter().filter(|(_, entries)| *entries > 0);
        let left: Vec<String> = left.map(|(name, entries)| format!(", {entries} {name}")).collect();
        let (connected, needed) = (held.connected, world.connections(place));
        let alone = process.succession().filter(|state| !state.is_paired);
        let alone = alone.map_or_else(String::new, |state| format!(", not paired in term {}", state.term));
        format!("{} has {connected} of {needed} connections{alone}{}", name(place), left.concat())
    };
    world.running().map(one).collect::<Vec<_>>().join("; ")
}

/// Returns the lines of all journals about one event, in the order of time.
pub(crate) fn story(world: &World, event: u64) -> Vec<String> {
    let machine = world.audit_machine();
    let mut lines = Vec::new();
    for (place, folder, _) in world.folders() {
        for path in journals(&machine, &folder) {
            let read = journal::read_on(&machine, &path, |epoch_us, line| {
                if line.record.event.0 == event {
                    let at_us = epoch_us - EPOCH_US + line.record.at.get() / 1_000_000;
                    lines.push((at_us, format!("{} {:?}", name(place), line.record.step)));
                }
            });
            if let Err(error) = read {
                lines.push((u64::MAX, error.to_string()));
            }
        }
    }
    lines.sort();
    lines
        .into_iter()
        .map(|(at_us, text)| format!("{:>4}.{:06} {text}", at_us / 1_000_000, at_us % 1_000_000))
        .collect()
}

/// Reads all journals and files when all processes have ended. Returns the number of assigned events.
pub(crate) fn audit(world: &World) -> Result<u64, WorldFailure> {
    let machine = world.audit_machine();
    let all = world.folders();
    let mut received: BTreeSet<L1Id> = BTreeSet::new();
    for (_, folder, _) in all.iter().filter(|(place, ..)| place.role == Role::Collector) {
        for path in journals(&machine, folder) {
            journal::read_on(&machine, &path, |_, line| {
                if matches!(line.record.step, EventStep::Received { .. }) {
                    received.insert(line.record.event);
                }
            })
            .map_err(|error| journal_failure(&error))?;
        }
    }
    let folders: Vec<&Path> = all.iter().map(|(_, folder, _)| &**folder).collect();
    let data: Vec<&Path> = all.iter().map(|(.., data)| &**data).collect();
    // An event received by a collector was assigned, even if the supervisor's disk lost the record.
    let assigned_min = received.last().map_or(0, |event| event.0 + 1);
    let deletes_journals = world.plan.deletes_journals;
    let scope = AuditScope { folders: &folders, data: &data, loggers: true, assigned_min, deletes_journals };
    match audit_on(&machine, &scope) {
        Ok(audit) if world.plan.is_rolling && (audit.totals.debug > 0 || audit.missing > 0) => {
            Err(WorldFailure::Restart { debug: audit.totals.debug, missing: audit.missing })
        }
        Ok(audit) => Ok(audit.totals.assigned),
        Err(failure) => Err(WorldFailure::Audit(failure.to_string())),
    }
}
