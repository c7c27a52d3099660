//! The supervisor's process: after a restart, it continues the unfinished work that its journal names.

use fanin_dataflow::{EventRecord, Message, Peer, Supervisor, Unexpected};
use fanin_units::Instant;

use super::settings;
use crate::config::System;
use crate::data::Data;
use crate::metrics::{self, Metrics};
use crate::node::{ProcessError, RoleNode};
use crate::proof::AssignmentProofs;
use crate::resume::{Resume, UnfinishedWork};
use crate::succession::identity_path;

/// Runs the supervisor's state machine over connections.
pub struct SupervisorNode {
    supervisor: Supervisor<Data>,
    proofs: AssignmentProofs,
    /// The most events taken from a collector that it may still finish.
    taken_max: usize,
}

impl SupervisorNode {
    /// Creates a supervisor that continues the unfinished work of its journal.
    ///
    /// # Errors
    /// If the scenario is not supported, or the journal was shared with a standby.
    pub fn new(system: &System, work: &UnfinishedWork, now: Instant) -> Result<Self, ProcessError> {
        let path = system.journal("supervisor");
        let identity = identity_path(&path);
        if system.machine.exists(&identity).is_ok_and(|exists| exists) {
            return Err(ProcessError::Settings(format!(
                "{}: this journal was shared with a standby, which may have assigned events since. Keep `standby` in the system's \
                 file, or begin a new run with a new folder",
                path.display()
            )));
        }
        Self::continuing(system, work.to_resume(), now)
    }

    /// Creates a supervisor with the unfinished work `left`.
    ///
    /// # Errors
    /// If the scenario is not supported, or an event is on a collector that does not exist.
    pub(super) fn continuing(system: &System, left: Resume, now: Instant) -> Result<Self, ProcessError> {
        settings::check(system.scenario())?;
        let config = settings::supervisor(system.scenario(), left.next.map(|_| now))?;
        let mut supervisor =
            Supervisor::new(config).map_err(|error| ProcessError::Settings(error.to_string()))?;
        if let Some(next) = left.next {
            let (events, clears) = (left.outstanding.len(), left.uncleared.len());
            tracing::info!(
                next = next.0,
                events,
                clears,
                "continuing from the journal of an earlier process"
            );
            supervisor.restore(now, next, left.outstanding).map_err(|event| {
                ProcessError::Settings(format!(
                    "the journal has event {event} on a collector that does not exist"
                ))
            })?;
            supervisor.restore_clears(now, left.uncleared, &left.cleared);
        }
        // A collector may keep three sets of events: those named in its hello, others of that time, and those assigned after. It
        // announces its units while fewer than `shipping_max` events are in storage, and each may bring one more.
        let scenario = system.scenario();
        let events =
            2 * u64::from(scenario.collectors.units_per_host) + u64::from(scenario.live.shipping_max);
        let taken_max = usize::try_from(3 * events).unwrap_or(usize::MAX);
        Ok(Self { supervisor, proofs: AssignmentProofs::of(system), taken_max })
    }
}

impl RoleNode for SupervisorNode {
    fn handle_connected(&mut self, now: Instant, peer: Peer) {
        self.supervisor.handle_connected(now, peer);
    }

    fn handle_closed(&mut self, now: Instant, peer: Peer) {
        self.supervisor.handle_closed(now, peer);
    }

    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected> {
        self.supervisor.handle_message(now, peer, message)
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.supervisor.handle_deadline(now);
    }

    fn handle_stop(&mut self, now: Instant) {
        self.supervisor.handle_stop(now);
    }

    fn handle_reload(&mut self, system: &System) {
        self.proofs.set_keys(system.key.as_ref(), system.key_previous.as_ref());
    }

    fn is_idle(&mut self) -> bool {
        self.supervisor.outstanding().next().is_none() && self.supervisor.poll_deadline().is_none()
    }

    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)> {
        let (peer, mut message) = self.supervisor.poll_transmit()?;
        if let Message::Assign { event, result, .. } = &mut message {
            *result = self.proofs.prove(*event);
        }
        Some((peer, message))
    }

    fn poll_record(&mut self) -> Option<(EventRecord, u64)> {
        self.supervisor.poll_record().map(|record| (record, 0))
    }

    fn poll_deadline(&mut self) -> Option<Instant> {
        self.supervisor.poll_deadline()
    }

    fn needs_journal(&self) -> bool {
        true
    }

    fn checkpoint(&self) -> String {
        let supervisor = &self.supervisor;
        // An event that waits for its next assignment is resumed at a collector not naming it, and waits again.
        let outstanding = supervisor.outstanding().map(|(event, collector)| (event, collector.unwrap_or(0)));
        let work = Resume {
            next: Some(supervisor.next_event()),
            outstanding: outstanding.collect(),
            uncleared: supervisor.uncleared().to_vec(),
            cleared: Vec::new(),
        };
        work.to_words()
    }

    fn check(&self) {
        self.supervisor.check_invariants();
    }

    fn tables(&self) -> Vec<(&'static str, usize)> {
        let taken = self.supervisor.events_taken().map(|events| events.saturating_sub(self.taken_max));
        vec![
            ("outstanding", self.supervisor.outstanding().count()),
            ("uncleared", self.supervisor.uncleared().len()),
            ("events taken away", taken.sum()),
        ]
    }

    fn measure(&self, now: Instant, metrics: &Metrics) {
        let counters = self.supervisor.counters();
        metrics::level(&metrics.leads, 1);
        metrics::set(&metrics.assigned, counters.assigned);
        metrics::set(&metrics.reassigned, counters.reassigned);
        metrics::level(&metrics.outstanding, self.supervisor.outstanding().count() as u64);
        metrics::level(&metrics.units_free, u64::from(self.supervisor.units_free()));
        metrics::set(&metrics.xoff, counters.xoffs);
        metrics::set_time(&metrics.xoff_seconds, self.supervisor.xoff_time(now));
    }
}
