//! DIATCP at a collector: holds requests until the collector's window has room for their answers (ICC'15 §IV.D).

use fanin_dataflow::{Peer, ShareCounters};
use fanin_message::{MessageEndpoint, PeerId as Connection};
use fanin_scenario::Scenario;

use super::backlog::QueuedMessage;
use super::table::ConnectionTable;
use crate::techniques::diatcp::collector::Windows;

/// The window of a collector, divided among its readouts, and the requests for which it has no room yet.
#[derive(Debug)]
pub(super) struct WindowSharing {
    windows: Windows,
    /// Held requests in their order, each with its readout.
    held: Vec<(u16, QueuedMessage)>,
}

/// A request for whose answer the window has room.
#[derive(Debug)]
pub(super) struct AdmittedRequest {
    pub(super) readout: u16,
    pub(super) message: QueuedMessage,
    /// True if the request announces a smaller window, so that a byte must be sent before it.
    pub(super) window_shrinks: bool,
}

impl WindowSharing {
    /// Creates the state for a scenario with DIATCP; returns `None` for other scenarios.
    pub(super) fn of(scenario: &Scenario) -> Option<Self> {
        Windows::of(scenario).map(|windows| Self { windows, held: Vec::new() })
    }

    pub(super) fn holds_requests(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn counters(&self) -> ShareCounters {
        self.windows.shares.counters
    }

    pub(super) fn handle_connected(
        &mut self,
        endpoint: &mut MessageEndpoint,
        readout: u16,
        connection: Connection,
    ) {
        self.windows.handle_connected(readout);
        self.windows.handle_received(readout, received(endpoint, connection));
        clamp(endpoint, connection, self.windows.segment);
    }

    /// Handles the loss of a readout's connection: drops its held requests.
    pub(super) fn handle_lost(&mut self, readout: u16) {
        self.windows.handle_lost(readout);
        self.held.retain(|(to, _)| *to != readout);
    }

    pub(super) fn handle_answer(
        &mut self,
        endpoint: &mut MessageEndpoint,
        table: &ConnectionTable,
        readout: u16,
    ) {
        if let Some(bytes) = self.windows.handle_answer(readout)
            && let Some(connection) = table.of(Peer::Readout(readout))
        {
            clamp(endpoint, connection, bytes);
        }
    }

    /// Holds a request until [`Self::admit`] returns it.
    pub(super) fn hold(&mut self, readout: u16, message: QueuedMessage) {
        self.windows.handle_wanted(readout);
        self.held.push((readout, message));
    }

    /// Removes and returns the requests for whose answers the window has room. All windows are set before the first request
    /// is sent. Dividing the window again for each request would give the first readouts far too large shares.
    pub(super) fn admit(
        &mut self,
        endpoint: &mut MessageEndpoint,
        table: &ConnectionTable,
    ) -> Vec<AdmittedRequest> {
        for (peer, connection) in table.iter() {
            if let Peer::Readout(readout) = peer {
                self.windows.handle_received(readout, received(endpoint, connection));
            }
        }
        let mut going = Vec::new();
        for (readout, message) in std::mem::take(&mut self.held) {
            if self.windows.admit(readout) {
                going.push((readout, message));
            } else {
                self.held.push((readout, message));
            }
        }
        self.windows.apply_shares(|readout, bytes| {
            if let Some(connection) = table.of(Peer::Readout(readout)) {
                clamp(endpoint, connection, bytes);
            }
        });
        let windows = &mut self.windows;
        let admitted = |(readout, message)| {
            let window_shrinks = windows.shrinks(readout);
            AdmittedRequest { readout, message, window_shrinks }
        };
        going.into_iter().map(admitted).collect()
    }
}

fn clamp(endpoint: &mut MessageEndpoint, connection: Connection, bytes: u64) {
    if let Err(error) = endpoint.set_window_clamp(connection, u32::try_from(bytes).unwrap_or(u32::MAX)) {
        tracing::error!(%error, "cannot set the window of a connection");
    }
}

/// Returns the bytes received on a connection.
fn received(endpoint: &MessageEndpoint, connection: Connection) -> u64 {
    endpoint.counters(connection).map_or(0, |counters| counters.bytes_in)
}
