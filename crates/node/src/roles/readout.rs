//! The readout's process: a memory that the detector fills and the data flow empties.

use fanin_dataflow::{EventRecord, FragmentSource, Message, Peer, Readout, Unexpected};
use fanin_units::Instant;

use super::settings;
use crate::config::System;
use crate::data::Data;
use crate::metrics::{self, Metrics};
use crate::node::{ProcessError, RoleNode};
use crate::source::{FragmentMemory, supply};

/// Runs the readout's state machine over connections.
pub struct ReadoutNode {
    readout: Readout<Data, FragmentMemory>,
}

impl ReadoutNode {
    /// Makes a readout with an empty memory.
    ///
    /// # Errors
    /// If the scenario does not allow it, or the file to replay is empty.
    pub fn new(system: &System, place: u16) -> Result<Self, ProcessError> {
        settings::check(system.scenario())?;
        let (supply, sources) = supply(system.scenario(), &system.scenario_folder)?;
        let has_noise = !system.machine.is_simulated();
        let memory = FragmentMemory::new(supply, &sources, place, has_noise);
        let readout = Readout::new(settings::readout(system.scenario(), place), memory)
            .map_err(|error| ProcessError::Settings(error.to_string()))?;
        Ok(Self { readout })
    }
}

impl RoleNode for ReadoutNode {
    fn handle_connected(&mut self, now: Instant, peer: Peer) {
        self.readout.handle_connected(now, peer);
    }

    fn handle_closed(&mut self, now: Instant, peer: Peer) {
        self.readout.handle_closed(now, peer);
    }

    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected> {
        // The detector delivers an event at the latest when it is requested. A file cannot be late, and a
        // deleted event does not come again.
        if let (Peer::Collector(_), Message::Request { event, .. }) = (peer, &message)
            && self.readout.source().awaits(*event)
        {
            let bytes = self.readout.source().deliver(*event);
            if !self.readout.handle_fragments(now, *event, bytes) {
                tracing::error!(
                    event = event.0,
                    "dropped an event of the detector: too far from the oldest event"
                );
                self.readout.source().delete(*event);
            }
        }
        self.readout.handle_message(now, peer, message)
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.readout.handle_deadline(now);
    }

    fn is_idle(&mut self) -> bool {
        self.readout.poll_deadline().is_none()
    }

    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)> {
        self.readout.poll_transmit()
    }

    fn poll_record(&mut self) -> Option<(EventRecord, u64)> {
        self.readout.poll_record().map(|record| (record, 0))
    }

    fn poll_deadline(&mut self) -> Option<Instant> {
        self.readout.poll_deadline()
    }

    fn check(&self) {
        self.readout.check_invariants();
    }

    fn measure(&self, metrics: &Metrics) {
        let counters = self.readout.counters();
        metrics::set(&metrics.requests, counters.requests);
        metrics::set(&metrics.fragment_bytes, counters.bytes);
        metrics::set(&metrics.fragments_missing, counters.missing);
        metrics::level(&metrics.events_held, counters.events);
        metrics::level(&metrics.held_bytes, counters.held);
        metrics::set(&metrics.xoff, counters.xoffs);
        metrics::set_time(&metrics.xoff_seconds, counters.xoff_time);
    }
}
