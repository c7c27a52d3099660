//! The logger's process: a separate thread writes the granted events to disk.

use std::collections::VecDeque;

use fanin_dataflow::{EventRecord, Logger, Message, Peer, Unexpected};
use fanin_units::{Duration, Instant};

use super::settings;
use crate::config::System;
use crate::data::Data;
use crate::lock::ProcessLock;
use crate::metrics::{self, Metrics};
use crate::node::{ProcessError, RoleNode};
use crate::proof::AssignmentProofs;
use crate::store::{DiskState, EventStore, LastAcknowledged, StoreConfig, Stored};
use crate::wake::Wake;

/// Time between two log lines about events that were never assigned.
const UNASSIGNED_LOG_EVERY: Duration = Duration::from_secs(30);

/// Counts the refused events that were never assigned. Collectors send such an event again and again: few have a log line.
#[derive(Debug, Default)]
struct UnassignedEvents {
    total: u64,
    /// Events since the last log line.
    unlogged: u64,
    logged_at: Option<Instant>,
}

impl UnassignedEvents {
    /// Counts an event. Returns the number of events since the last log line if the next one is due.
    fn handle_refused(&mut self, now: Instant) -> Option<u64> {
        self.total += 1;
        self.unlogged += 1;
        let is_due = self.logged_at.is_none_or(|at| now >= at + UNASSIGNED_LOG_EVERY);
        is_due.then(|| {
            self.logged_at = Some(now);
            std::mem::take(&mut self.unlogged)
        })
    }
}

/// Runs the logger's state machine over connections and files.
pub struct LoggerNode {
    logger: Logger<Data>,
    store: EventStore,
    proofs: AssignmentProofs,
    /// Refusals of events without a valid proof of their assignment.
    refusals: VecDeque<(Peer, Message<Data>)>,
    unassigned: UnassignedEvents,
    disk: DiskState,
    is_stopping: bool,
    /// Keeps a second logger of this number away from the files. Dropped last: the store still finishes files.
    _lock: ProcessLock,
}

impl LoggerNode {
    /// Creates a logger, and finishes the files of an earlier incarnation. `earlier` is what that incarnation acknowledged.
    ///
    /// # Errors
    /// If the scenario is not supported, the folder of stored events cannot be used, or another process writes this logger's
    /// files there.
    pub fn new(
        system: &System,
        place: u16,
        earlier: &LastAcknowledged,
        wake: Wake,
    ) -> Result<Self, ProcessError> {
        settings::check(system.scenario())?;
        let logger = Logger::new(settings::logger(system.scenario()))
            .map_err(|error| ProcessError::Settings(error.to_string()))?;
        let config = StoreConfig {
            folder: system.data.clone(),
            process: format!("logger-{place}"),
            file_bytes: system.scenario().live.file_size.get(),
            run: system.run,
        };
        let own = |error| ProcessError::Own { failure: "cannot store events", error };
        system.machine.create_folder(&config.folder).map_err(own)?;
        // Starting the store finishes and renames files that a live logger of this number would still write.
        let lock = ProcessLock::take_data(&system.machine, &config.folder, &config.process)?;
        let store = EventStore::start(&system.machine, config, earlier, wake).map_err(own)?;
        let proofs = AssignmentProofs::of(system);
        let refusals = VecDeque::new();
        Ok(Self {
            logger,
            store,
            proofs,
            refusals,
            unassigned: UnassignedEvents::default(),
            disk: DiskState::default(),
            is_stopping: false,
            _lock: lock,
        })
    }

    fn hand_over(&mut self) {
        while let Some(job) = self.logger.poll_write() {
            self.store.write(job);
        }
    }
}

impl RoleNode for LoggerNode {
    fn handle_connected(&mut self, now: Instant, peer: Peer) {
        self.logger.handle_connected(now, peer);
    }

    fn handle_closed(&mut self, now: Instant, peer: Peer) {
        self.logger.handle_closed(now, peer);
        self.hand_over();
    }

    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected> {
        let message = match message {
            Message::Event { event, stream, missing, payload } => match self.proofs.verify(event, &payload) {
                Some(payload) => Message::Event { event, stream, missing, payload },
                None => {
                    if let Some(events) = self.unassigned.handle_refused(now) {
                        let reason = "its proof is by none of this logger's keys";
                        tracing::error!(%peer, event = event.0, reason, events, "refused an event that was never assigned");
                    }
                    self.refusals.push_back((peer, Message::Refuse { event }));
                    Message::Withdraw { event }
                }
            },
            message => message,
        };
        let handled = self.logger.handle_message(now, peer, message);
        self.hand_over();
        handled
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.logger.handle_deadline(now);
    }

    fn handle_woken(&mut self, now: Instant) {
        while let Some(stored) = self.store.poll() {
            match stored {
                Stored::Safe(id) => self.logger.handle_stored(now, id),
                Stored::StandIn { id, fragments } => self.logger.handle_stand_in(now, id, fragments),
                Stored::Failed(id) => self.logger.handle_store_failed(id),
                Stored::Disk(disk) => {
                    match disk {
                        DiskState::Writable => tracing::info!("events can be written again"),
                        DiskState::Full => tracing::warn!("the disk is full"),
                        DiskState::Failing(error) => tracing::warn!(%error, "events cannot be written"),
                    }
                    self.disk = disk;
                    self.logger.handle_disk_full(disk != DiskState::Writable || self.is_stopping);
                }
            }
        }
        self.hand_over();
    }

    fn handle_stop(&mut self, _now: Instant) {
        // A stopping logger acts as with a full disk: it refuses offers, and still stores granted events.
        self.is_stopping = true;
        self.logger.handle_disk_full(true);
    }

    fn handle_reload(&mut self, system: &System) {
        self.store.set_file_bytes(system.scenario().live.file_size.get());
        self.proofs.set_keys(system.key.as_ref(), system.key_previous.as_ref());
    }

    fn is_idle(&mut self) -> bool {
        self.logger.unwritten() == 0 && self.logger.counters().held == 0
    }

    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)> {
        self.refusals.pop_front().or_else(|| self.logger.poll_transmit())
    }

    fn poll_record(&mut self) -> Option<(EventRecord, u64)> {
        self.logger.poll_record().map(|record| (record, 0))
    }

    fn poll_deadline(&mut self) -> Option<Instant> {
        self.logger.poll_deadline()
    }

    fn check(&self) {
        self.logger.check_invariants();
    }

    fn tables(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("unwritten", self.logger.unwritten()),
            ("held bytes", self.logger.counters().held as usize),
            ("refusals", self.refusals.len()),
            ("offers", self.logger.offers_waiting()),
            ("grants", self.logger.events_granted()),
            ("invalid events", self.store.events_invalid()),
        ]
    }

    fn events_unassigned(&self) -> u64 {
        self.unassigned.total
    }

    fn measure(&self, _now: Instant, metrics: &Metrics) {
        let counters = self.logger.counters();
        metrics::set(&metrics.stored, counters.stored);
        metrics::set(&metrics.stored_debug, counters.debug);
        metrics::set(&metrics.stored_bytes, counters.bytes);
        metrics::set(&metrics.store_failed, counters.failed);
        metrics::set(&metrics.stand_ins, counters.stand_ins);
        metrics::set(&metrics.offers_refused, counters.refused);
        metrics::set(&metrics.unassigned, self.unassigned.total);
        metrics::level(&metrics.damaged_copies, self.store.damaged_copies() as u64);
        metrics::level(&metrics.held_bytes, counters.held);
        metrics::level(&metrics.disk_full, u64::from(self.disk == DiskState::Full));
        metrics::level(&metrics.disk_failing, u64::from(matches!(self.disk, DiskState::Failing(_))));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_flood_of_unassigned_events_has_few_lines() {
        let mut unassigned = UnassignedEvents::default();
        let at = |ms: u64| Instant::START + Duration::from_millis(ms);
        let lines: Vec<u64> = (0..61_000).filter_map(|ms| unassigned.handle_refused(at(ms))).collect();
        assert_eq!((lines, unassigned.total), (vec![1, 30_000, 30_000], 61_000));
    }

    #[test]
    fn a_second_logger_of_one_number_leaves_the_files_of_the_first_alone() {
        let folder = std::env::temp_dir().join(format!("fanin-second-logger-{}", std::process::id()));
        let system = |name: &str| {
            let text = format!(
                "scenario = \"replay\"\ninsecure = true\nfolder = \"{name}\"\ndata = \"data\"\n\
                 set = [\"readout.hosts=4\", \"collectors.hosts_per_rack=1\", \"logger.hosts=1\"]\n[hosts]\n\
                 supervisor = \"a:1\"\nreadouts = [\"r-[0-3]:1\"]\ncollectors = [\"c\"]\nloggers = [\"l:1\"]\n"
            );
            let path = folder.join(format!("{name}.toml"));
            std::fs::write(&path, text).unwrap();
            System::load(&path).unwrap_or_else(|error| panic!("{error}"))
        };
        std::fs::create_dir_all(&folder).unwrap();
        let start =
            |name: &str| LoggerNode::new(&system(name), 0, &LastAcknowledged::default(), Arc::new(|| ()));
        let first = start("first").unwrap_or_else(|error| panic!("{error}"));
        let written = folder.join("data/logger-0-physics-00000.data.writing");
        std::fs::write(&written, "events").unwrap();
        let refused = start("second").map(drop).unwrap_err();
        assert!(matches!(refused, ProcessError::Runs { .. }) && refused.is_permanent(), "{refused}");
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "events");
        drop(first);
        assert!(start("second").is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
