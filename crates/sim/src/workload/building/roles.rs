//! The roles of an event-building system: one state machine a host.

use fanin_dataflow::{
    Collector, CollectorConfig, EventRecord, Logger, LoggerConfig, Message, Peer, Purpose, Readout,
    ReadoutConfig, SeedOwner, Supervisor, SupervisorConfig, WriteModel, stream_seed,
};
use fanin_network::Roles;
use fanin_scenario::Scenario;
use fanin_scenario::role_configs;
use fanin_units::{Bytes, Duration, Instant};

use crate::Error;
use crate::workload::sizes::{RecordedSizes, Sizes};

/// Calls a method of a role's state machine.
macro_rules! with_role {
    ($states:expr, $role:expr, $($call:tt)+) => {
        match $role {
            Peer::Supervisor | Peer::Standby => $states.supervisor.$($call)+,
            Peer::Readout(place) => $states.readouts[usize::from(place)].$($call)+,
            Peer::Collector(place) => $states.collectors[usize::from(place)].$($call)+,
            Peer::Logger(place) => $states.loggers[usize::from(place)].$($call)+,
        }
    };
}

/// All state machines, by role and number.
pub(super) struct RoleStates {
    pub(super) supervisor: Supervisor<Bytes>,
    pub(super) readouts: Vec<Readout<Bytes, Sizes>>,
    pub(super) collectors: Vec<Collector<Bytes>>,
    pub(super) loggers: Vec<Logger<Bytes>>,
}

impl RoleStates {
    pub(super) fn new(
        scenario: &Scenario,
        roles: &Roles,
        data: &RecordedSizes,
        run: u64,
        excludes_failed_hosts: bool,
        fragments: u16,
        keeps_fragments: bool,
    ) -> Result<Self, Error> {
        let role_seed = |kind, place: u64| stream_seed(run, kind, place, Purpose::Role);
        let (readouts, collectors) = (roles.readouts.len() as u64, roles.collectors.len() as u64);
        let supervisor = Supervisor::new(SupervisorConfig {
            seed: role_seed(SeedOwner::Supervisor, 0),
            ..role_configs::supervisor(scenario)?
        })?;
        let readout = |place: u64| -> Result<_, Error> {
            let config = role_configs::readout(scenario);
            let config = ReadoutConfig {
                memory: config.memory.filter(|_| keeps_fragments),
                seed: role_seed(SeedOwner::Readout, place),
                ..config
            };
            let sizes = Sizes::new(&scenario.readout.fragment_size, data, fragments, run, place);
            Ok(Readout::new(config, sizes)?)
        };
        let collector = |place: u64| -> Result<_, Error> {
            // A collector requests nothing from a readout on its own host.
            let is_asked = |readout: &u64| roles.is_remote(place as usize, *readout as usize);
            let requested = (0..readouts).map(|r| if is_asked(&r) { fragments } else { 0 }).collect();
            let config = role_configs::collector(scenario, place, requested)?;
            Ok(Collector::new(CollectorConfig {
                // A technique that excludes failed hosts itself does so without this delay.
                readout_wait: if excludes_failed_hosts { Duration::ZERO } else { config.readout_wait },
                seed: role_seed(SeedOwner::Collector, place),
                ..config
            })?)
        };
        // The disk is as fast as the link: the simulation is about the network.
        let write = WriteModel::Timed { rate: scenario.logger.link.rate, latency: Duration::ZERO };
        let logger = |_| Logger::new(LoggerConfig { write, ..LoggerConfig::default() });
        Ok(Self {
            supervisor,
            readouts: (0..readouts).map(readout).collect::<Result<_, _>>()?,
            collectors: (0..collectors).map(collector).collect::<Result<_, _>>()?,
            loggers: (0..roles.loggers.len()).map(logger).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn handle_connected(&mut self, now: Instant, role: Peer, peer: Peer) {
        with_role!(self, role, handle_connected(now, peer));
    }

    #[inline]
    pub(super) fn handle_message(&mut self, now: Instant, role: Peer, peer: Peer, message: Message<Bytes>) {
        let handled = with_role!(self, role, handle_message(now, peer, message));
        // Simulated peers are never faulty: the mistake is in the simulator or in a role.
        handled.unwrap_or_else(|wrong| panic!("a role of the simulation did not expect a message: {wrong}"));
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, role: Peer) {
        with_role!(self, role, handle_deadline(now));
    }

    #[inline]
    pub(super) fn poll_deadline(&mut self, role: Peer) -> Option<Instant> {
        with_role!(self, role, poll_deadline())
    }

    #[inline]
    pub(super) fn poll_transmit(&mut self, role: Peer) -> Option<(Peer, Message<Bytes>)> {
        with_role!(self, role, poll_transmit())
    }

    /// Returns a line for each collector that waits, and for each of its events.
    pub(super) fn waiting_collectors(&self) -> Vec<String> {
        (0..).zip(&self.collectors).flat_map(|(place, collector)| collector.waiting_lines(place)).collect()
    }

    /// Asserts that the accounts of every role balance, such as credits of requests without an answer.
    pub(super) fn assert_conserved(&self) {
        self.supervisor.check_invariants();
        self.readouts.iter().for_each(Readout::check_invariants);
        self.collectors.iter().for_each(Collector::check_invariants);
        self.loggers.iter().for_each(Logger::check_invariants);
    }

    /// Returns figures of the readouts' memories: high-water mark, and number and duration of XOFFs to the trigger.
    pub(super) fn memory_figures(&self) -> serde_json::Value {
        let counters = || self.readouts.iter().map(Readout::counters);
        let held_max = counters().map(|one| one.held_max).max().unwrap_or(0);
        let xoffs: u64 = counters().map(|one| one.xoffs).sum();
        let xoff_ms: f64 = counters().map(|one| one.xoff_time.as_millis_f64()).sum();
        serde_json::json!({ "held_bytes_max": held_max, "xoffs": xoffs, "xoff_ms": xoff_ms })
    }

    #[inline]
    pub(super) fn poll_record(&mut self, role: Peer) -> Option<EventRecord> {
        with_role!(self, role, poll_record())
    }
}
