//! Samples the kernel's TCP counters of a process's connections, for totals, delayed events and traced windows.

use std::time::{Duration, Instant};

use fanin_dataflow::{L1Id, Peer, ShareCounters};
use fanin_message::{MessageEndpoint, PeerId as Connection, TcpInfo};

use super::error::WireError;
use super::table::ConnectionTable;
use super::timeouts::Unacknowledged;
use crate::config::System;
use crate::flows::Numbers;
use crate::names::name;
use crate::tcp::{Accounts, Sums};
use crate::trace::{self, Trace};

/// Connections of this process that `record.windows` names.
#[derive(Debug)]
struct TracedFlows {
    trace: Trace,
    /// Peer and number of each connection.
    flows: Vec<(Peer, u64)>,
    every: Duration,
    next: Instant,
}

impl TracedFlows {
    /// Returns the traced connections of a process; `None` if it has none.
    fn of(system: &System, me: Peer) -> std::io::Result<Option<Self>> {
        let record = &system.scenario().record;
        let numbers = Numbers::of(system.scenario());
        let readouts = (0..system.readouts.len() as u16).map(Peer::Readout);
        let collectors = (0..system.collectors.len() as u16).map(Peer::Collector);
        let loggers = (0..system.loggers.len() as u16).map(Peer::Logger);
        let all = [Peer::Supervisor].into_iter().chain(readouts).chain(collectors).chain(loggers);
        let is_wanted =
            |&(_, flow): &(Peer, u64)| record.windows.iter().any(|&wanted| u64::from(wanted) == flow);
        let flows: Vec<(Peer, u64)> =
            all.filter_map(|other| Some((other, numbers.traced(me, other)?))).filter(is_wanted).collect();
        if flows.is_empty() {
            return Ok(None);
        }
        let trace = Trace::open(&system.folder, &name(me))?;
        Ok(Some(Self { trace, flows, every: trace::interval(record), next: Instant::now() }))
    }
}

/// Samples the kernel's TCP counters of connections, and passes them on to the counts, delayed events and traces.
#[derive(Debug)]
pub(super) struct TcpObserver {
    accounts: Accounts,
    unacknowledged: Unacknowledged,
    traced: Option<TracedFlows>,
}

impl TcpObserver {
    /// Opens the files of counters and windows.
    ///
    /// # Errors
    /// If the file of windows cannot be opened.
    pub(super) fn open(system: &System, me: Peer) -> Result<Self, WireError> {
        Ok(Self {
            accounts: Accounts::open(&system.machine, &system.folder, &name(me)),
            unacknowledged: Unacknowledged::default(),
            traced: TracedFlows::of(system, me).map_err(WireError::Trace)?,
        })
    }

    pub(super) fn handle_connected(&mut self, peer: Peer, now: Instant, info: Option<&TcpInfo>) {
        self.unacknowledged.handle_connected(peer, now, info);
    }

    /// Handles the end of a connection, with its last counters. `was_current` is false if a younger connection replaced it.
    pub(super) fn handle_end(&mut self, peer: Peer, was_current: bool, info: Option<&TcpInfo>) {
        self.accounts.handle_end(&name(peer), info);
        if was_current {
            self.unacknowledged.handle_end(peer, info);
        }
    }

    /// Samples a connection with unacknowledged messages before a further message is sent. Timeouts so far belong to the
    /// earlier messages.
    pub(super) fn handle_sending(
        &mut self,
        endpoint: &MessageEndpoint,
        peer: Peer,
        connection: Connection,
        now: Instant,
    ) {
        if self.unacknowledged.waits(peer) {
            self.look_at(endpoint, peer, connection, now);
        }
    }

    pub(super) fn handle_sent(&mut self, peer: Peer, now: Instant, event: Option<L1Id>, bytes: u64) {
        self.unacknowledged.handle_sent(peer, now, event, bytes);
    }

    /// Samples the connections that are due.
    pub(super) fn sample(&mut self, endpoint: &MessageEndpoint, table: &ConnectionTable, now: Instant) {
        for peer in self.unacknowledged.due(now) {
            if let Some(connection) = table.of(peer) {
                self.look_at(endpoint, peer, connection, now);
            }
        }
        let Some(traced) = self.traced.as_mut().filter(|traced| traced.next <= now) else { return };
        traced.next = now + traced.every;
        for (peer, flow) in &traced.flows {
            if let Some(info) = table.of(*peer).and_then(|connection| endpoint.tcp_info(connection)) {
                traced.trace.handle_sample(*flow, &info);
                // These samples also count for the largest window in the counters.
                self.accounts.handle_sample(&name(*peer), info);
            }
        }
    }

    fn look_at(&mut self, endpoint: &MessageEndpoint, peer: Peer, connection: Connection, now: Instant) {
        if let Some(info) = endpoint.tcp_info(connection) {
            self.unacknowledged.handle_tcp_info(peer, now, &info, endpoint.outbox_bytes(connection));
        }
    }

    /// Returns the time at which [`Self::sample`] is due; `None` if it is not needed.
    pub(super) fn next_sample(&self) -> Option<Instant> {
        let traced = self.traced.as_ref().map(|traced| traced.next);
        [self.unacknowledged.next_sample(), traced].into_iter().flatten().min()
    }

    /// Returns the next event that timeouts delayed, and the number of timeouts.
    pub(super) fn poll_timed_out(&mut self) -> Option<(L1Id, u32)> {
        self.unacknowledged.poll()
    }

    /// Writes the counters of all connections to their file, once a second and at the end.
    pub(super) fn account(
        &mut self,
        endpoint: &MessageEndpoint,
        table: &ConnectionTable,
        shared: Option<ShareCounters>,
        now: Instant,
        is_end: bool,
    ) {
        if !is_end && !self.accounts.is_due(now) {
            return;
        }
        for (peer, connection) in table.iter() {
            if let Some(info) = endpoint.tcp_info(connection) {
                self.accounts.handle_sample(&name(peer), info);
            }
        }
        self.accounts.set_shared(shared);
        self.accounts.commit(now, is_end);
        if let Some(traced) = &mut self.traced {
            traced.trace.flush();
        }
    }

    /// Returns the number of times that the file of counters could not be written.
    pub(super) fn failures(&self) -> u64 {
        self.accounts.failures()
    }

    /// Returns the counters over all connections.
    pub(super) fn totals(&self) -> Sums {
        self.accounts.totals()
    }
}
