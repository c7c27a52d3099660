//! DIATCP at a collector: requests wait here until the collector's window has room for their answers.

use fanin_dataflow::{Peer, ShareCounters};
use fanin_message::{MessageEndpoint, PeerId as Connection};
use fanin_scenario::Scenario;

use super::backlog::QueuedMessage;
use super::table::ConnectionTable;
use super::windows::Windows;

/// The window of a collector, shared out among its readouts, and the requests that it has no room for yet.
#[derive(Debug)]
pub(super) struct WindowSharing {
    windows: Windows,
    /// Requests in their order, each with its readout.
    held: Vec<(u16, QueuedMessage)>,
}

/// A request that found room.
#[derive(Debug)]
pub(super) struct AdmittedRequest {
    pub(super) readout: u16,
    pub(super) message: QueuedMessage,
    /// The readout must learn of a smaller window before it reads the request.
    pub(super) window_shrinks: bool,
}

impl WindowSharing {
    /// `None` if the scenario does not share windows out.
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

    /// A readout's connection is lost: nothing that waits for it will be asked.
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

    /// Holds a request until [`Self::admit`] finds room for its answer.
    pub(super) fn hold(&mut self, readout: u16, message: QueuedMessage) {
        self.windows.handle_wanted(readout);
        self.held.push((readout, message));
    }

    /// Takes out the requests that find room now. All windows are set before the first request goes. A window that is
    /// shared out again for each request is far too large for the first ones.
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
        self.windows.settle(|readout, bytes| {
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

/// Bytes that arrived on the connections of a peer.
fn received(endpoint: &MessageEndpoint, connection: Connection) -> u64 {
    endpoint.counters(connection).map_or(0, |counters| counters.bytes_in)
}
