//! A data-acquisition system in memory: every role, a network with delays, and faults on demand.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use fanin_dataflow::{
    AuditError, Auditor, Collector, CollectorConfig, EventRecord, EventStep, L1Id, Logger, LoggerConfig,
    Message, Peer, Readout, ReadoutConfig, Supervisor, SupervisorConfig, Totals, UniformSource,
};
use fanin_units::{Bytes, Duration, Instant};

/// Returns the arrival time of a message that is sent now.
pub type Network = Box<dyn FnMut(Peer, Peer, Bytes, Instant) -> Instant>;

/// The settings of a system's roles.
pub struct Parts {
    pub supervisor: SupervisorConfig<Bytes>,
    pub collectors: Vec<CollectorConfig>,
    pub readouts: Vec<ReadoutConfig>,
    pub loggers: Vec<LoggerConfig>,
    pub fragment: Bytes,
}

enum Happening {
    Delivery { from: Peer, to: Peer, connection: u32, message: Message<Bytes> },
    Connect(Peer, Peer),
    Fault(Fault),
}

/// A fault.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// A connection is lost with all messages in flight, and comes back after a while.
    Cut(Peer, Peer, Duration),
    /// A process dies with its state, and is restarted after a while.
    Crash(Peer, Duration),
    /// A processing unit crashes and comes back at once.
    UnitLost(u16, u16),
}

#[derive(Default, Clone, Copy)]
struct Line {
    up: bool,
    /// Rises with each loss: messages of an earlier connection are dropped.
    connection: u32,
    /// Latest arrival so far, as TCP keeps the order.
    last: Instant,
}

pub struct World {
    parts: Parts,
    pub supervisor: Supervisor<Bytes>,
    pub collectors: Vec<Collector<Bytes>>,
    pub readouts: Vec<Readout<Bytes, UniformSource>>,
    pub loggers: Vec<Logger<Bytes>>,
    lines: HashMap<(Peer, Peer), Line>,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    happenings: HashMap<u64, Happening>,
    sequence: u64,
    pub now: Instant,
    network: Network,
    pub records: Vec<EventRecord>,
    journal: BTreeMap<L1Id, u16>,
    assigned: u64,
    last_assigned: Option<L1Id>,
    pub messages: u64,
    pub credits_peak: Vec<u32>,
    /// True: each closed connection is reported twice.
    pub close_twice: bool,
}

impl World {
    pub fn new(parts: Parts, network: Network) -> Self {
        let supervisor = Supervisor::new(parts.supervisor.clone()).unwrap();
        let collectors = parts.collectors.iter().map(|c| Collector::new(c.clone()).unwrap()).collect();
        let source = UniformSource { fragment: parts.fragment };
        let readouts = parts.readouts.iter().map(|c| Readout::new(c.clone(), source).unwrap()).collect();
        let loggers = parts.loggers.iter().map(|c| Logger::new(*c).unwrap()).collect();
        let mut world = Self {
            supervisor,
            collectors,
            readouts,
            loggers,
            lines: HashMap::new(),
            queue: BinaryHeap::new(),
            happenings: HashMap::new(),
            sequence: 0,
            now: Instant::START,
            network,
            records: Vec::new(),
            journal: BTreeMap::new(),
            assigned: 0,
            last_assigned: None,
            messages: 0,
            credits_peak: vec![0; parts.collectors.len()],
            close_twice: false,
            parts,
        };
        for line in world.all_lines() {
            world.at(Instant::START, Happening::Connect(line.0, line.1));
        }
        world
    }

    fn all_lines(&self) -> Vec<(Peer, Peer)> {
        let collectors = (0..self.collectors.len()).map(|n| Peer::Collector(n as u16));
        let readouts = (0..self.readouts.len()).map(|n| Peer::Readout(n as u16));
        let loggers = (0..self.loggers.len()).map(|n| Peer::Logger(n as u16));
        let mut lines: Vec<_> = readouts.clone().map(|readout| (Peer::Supervisor, readout)).collect();
        for collector in collectors {
            lines.extend(readouts.clone().chain(loggers.clone()).map(|other| (collector, other)));
            lines.push((Peer::Supervisor, collector));
        }
        lines
    }

    fn at(&mut self, at: Instant, happening: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.happenings.insert(self.sequence, happening);
    }

    pub fn fault_at(&mut self, at: Instant, fault: Fault) {
        self.at(at, Happening::Fault(fault));
    }

    /// Takes the next step; returns false if nothing is scheduled any more.
    pub fn step(&mut self) -> bool {
        let deadline = self.deadline();
        let queued = self.queue.peek().map(|Reverse((at, _))| *at);
        match (queued, deadline) {
            (None, None) => return false,
            (Some(at), deadline) if deadline.is_none_or(|(deadline, _)| at <= deadline) => {
                let Reverse((at, sequence)) = self.queue.pop().unwrap();
                self.now = at;
                let happening = self.happenings.remove(&sequence).unwrap();
                self.happen(happening);
            }
            (_, Some((at, peer))) => {
                if at == Instant::FAR_FUTURE {
                    return false;
                }
                assert!(at >= self.now, "{peer} wants to be called in the past");
                self.now = at;
                match peer {
                    Peer::Supervisor | Peer::Standby => self.supervisor.handle_deadline(at),
                    Peer::Collector(n) => self.collectors[usize::from(n)].handle_deadline(at),
                    Peer::Readout(n) => self.readouts[usize::from(n)].handle_deadline(at),
                    Peer::Logger(n) => self.loggers[usize::from(n)].handle_deadline(at),
                }
                self.drain(peer);
            }
            (Some(_), None) => unreachable!(),
        }
        true
    }

    fn deadline(&mut self) -> Option<(Instant, Peer)> {
        let mut all: Vec<(Instant, Peer)> = Vec::new();
        all.extend(self.supervisor.poll_deadline().map(|at| (at, Peer::Supervisor)));
        for (n, collector) in self.collectors.iter_mut().enumerate() {
            all.extend(collector.poll_deadline().map(|at| (at, Peer::Collector(n as u16))));
        }
        for (n, readout) in self.readouts.iter().enumerate() {
            all.extend(readout.poll_deadline().map(|at| (at, Peer::Readout(n as u16))));
        }
        for (n, logger) in self.loggers.iter().enumerate() {
            all.extend(logger.poll_deadline().map(|at| (at, Peer::Logger(n as u16))));
        }
        let (at, peer) = all.into_iter().min()?;
        Some((at.max(self.now), peer))
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Delivery { from, to, connection, message } => {
                let line = self.lines[&(from, to)];
                if line.up && line.connection == connection {
                    self.deliver(from, to, message);
                    self.drain(to);
                }
            }
            Happening::Connect(a, b) => {
                if self.lines.get(&(a, b)).is_some_and(|line| line.up) {
                    return;
                }
                for (one, other) in [(a, b), (b, a)] {
                    self.lines.entry((one, other)).or_default().up = true;
                }
                for (one, other) in [(a, b), (b, a)] {
                    match one {
                        Peer::Supervisor | Peer::Standby => self.supervisor.handle_connected(self.now, other),
                        Peer::Collector(n) => {
                            self.collectors[usize::from(n)].handle_connected(self.now, other);
                        }
                        Peer::Readout(n) => self.readouts[usize::from(n)].handle_connected(self.now, other),
                        Peer::Logger(n) => self.loggers[usize::from(n)].handle_connected(self.now, other),
                    }
                    self.drain(one);
                }
            }
            Happening::Fault(Fault::Cut(a, b, away)) => {
                self.close(a, b);
                self.at(self.now + away, Happening::Connect(a, b));
            }
            Happening::Fault(Fault::Crash(peer, away)) => {
                self.replace(peer);
                let touches = |line: &(Peer, Peer)| line.0 == peer || line.1 == peer;
                for line in self.all_lines().into_iter().filter(touches) {
                    let other = if line.0 == peer { line.1 } else { line.0 };
                    if self.lines.get(&line).is_some_and(|state| state.up) {
                        self.close_one(other, peer);
                    }
                    self.at(self.now + away, Happening::Connect(line.0, line.1));
                }
            }
            Happening::Fault(Fault::UnitLost(collector, unit)) => {
                let collector_state = &mut self.collectors[usize::from(collector)];
                collector_state.handle_unit_lost(self.now, unit);
                collector_state.handle_unit_up(self.now, unit);
                self.drain(Peer::Collector(collector));
            }
        }
    }

    /// Closes a connection at both ends.
    fn close(&mut self, a: Peer, b: Peer) {
        if self.lines.get(&(a, b)).is_some_and(|line| line.up) {
            self.close_one(a, b);
            self.close_one(b, a);
        }
    }

    /// Closes a connection at one end.
    fn close_one(&mut self, end: Peer, other: Peer) {
        for line in [(end, other), (other, end)] {
            let line = self.lines.get_mut(&line).unwrap();
            line.up = false;
            line.connection += 1;
        }
        for _ in 0..if self.close_twice { 2 } else { 1 } {
            match end {
                Peer::Supervisor | Peer::Standby => self.supervisor.handle_closed(self.now, other),
                Peer::Collector(n) => self.collectors[usize::from(n)].handle_closed(self.now, other),
                Peer::Readout(n) => self.readouts[usize::from(n)].handle_closed(self.now, other),
                Peer::Logger(n) => self.loggers[usize::from(n)].handle_closed(self.now, other),
            }
        }
        self.drain(end);
    }

    /// Replaces a dead process by a new one.
    fn replace(&mut self, peer: Peer) {
        match peer {
            Peer::Supervisor | Peer::Standby => {
                let mut config = self.parts.supervisor.clone();
                config.events_max = config.events_max.map(|max| max - self.assigned);
                config.start = self.now;
                let next = self.last_assigned.map_or(config.first_event, |event| L1Id(event.0 + 1));
                self.supervisor = Supervisor::new(config).unwrap();
                let journal = self.journal.iter().map(|(event, collector)| (*event, *collector));
                self.supervisor.restore(self.now, next, journal).unwrap();
            }
            Peer::Collector(n) => {
                let n = usize::from(n);
                self.collectors[n] = Collector::new(self.parts.collectors[n].clone()).unwrap();
            }
            Peer::Readout(n) => {
                let n = usize::from(n);
                let source = UniformSource { fragment: self.parts.fragment };
                self.readouts[n] = Readout::new(self.parts.readouts[n].clone(), source).unwrap();
            }
            Peer::Logger(n) => {
                let n = usize::from(n);
                self.loggers[n] = Logger::new(self.parts.loggers[n]).unwrap();
            }
        }
    }

    fn deliver(&mut self, from: Peer, to: Peer, message: Message<Bytes>) {
        self.messages += 1;
        let handled = match to {
            Peer::Supervisor | Peer::Standby => self.supervisor.handle_message(self.now, from, message),
            Peer::Collector(n) => self.collectors[usize::from(n)].handle_message(self.now, from, message),
            Peer::Readout(n) => self.readouts[usize::from(n)].handle_message(self.now, from, message),
            Peer::Logger(n) => self.loggers[usize::from(n)].handle_message(self.now, from, message),
        };
        handled.unwrap_or_else(|unexpected| panic!("{to} at {}: {unexpected}", self.now));
    }

    fn drain(&mut self, peer: Peer) {
        match peer {
            Peer::Supervisor | Peer::Standby => self.supervisor.check_invariants(),
            Peer::Collector(n) => self.collectors[usize::from(n)].check_invariants(),
            Peer::Readout(n) => self.readouts[usize::from(n)].check_invariants(),
            Peer::Logger(n) => self.loggers[usize::from(n)].check_invariants(),
        }
        loop {
            let sent = match peer {
                Peer::Supervisor | Peer::Standby => self.supervisor.poll_transmit(),
                Peer::Collector(n) => self.collectors[usize::from(n)].poll_transmit(),
                Peer::Readout(n) => self.readouts[usize::from(n)].poll_transmit(),
                Peer::Logger(n) => self.loggers[usize::from(n)].poll_transmit(),
            };
            let Some((to, message)) = sent else { break };
            let line = self.lines.entry((peer, to)).or_default();
            if line.up {
                let arrival = (self.network)(peer, to, message.wire_bytes(), self.now).max(line.last);
                line.last = arrival;
                let connection = line.connection;
                self.at(arrival, Happening::Delivery { from: peer, to, connection, message });
            }
        }
        loop {
            let record = match peer {
                Peer::Supervisor | Peer::Standby => self.supervisor.poll_record(),
                Peer::Collector(n) => self.collectors[usize::from(n)].poll_record(),
                Peer::Readout(n) => self.readouts[usize::from(n)].poll_record(),
                Peer::Logger(n) => self.loggers[usize::from(n)].poll_record(),
            };
            let Some(record) = record else { break };
            match record.step {
                EventStep::Assigned { collector, direct, .. } => {
                    self.journal.insert(record.event, collector);
                    if !direct {
                        self.assigned += 1;
                        self.last_assigned = self.last_assigned.max(Some(record.event));
                    }
                }
                EventStep::Completed { .. } => {
                    self.journal.remove(&record.event);
                }
                _ => {}
            }
            self.records.push(record);
        }
        if let Peer::Collector(n) = peer {
            let n = usize::from(n);
            self.credits_peak[n] = self.credits_peak[n].max(self.collectors[n].credits_used());
        }
    }

    /// Runs until nothing is left to do, at most until `end`.
    pub fn run(&mut self, end: Instant) {
        while self.now < end && self.step() {
            if self.queue.is_empty() && self.supervisor.is_finished() && self.deadline().is_none() {
                break;
            }
        }
    }

    pub fn audit(&self) -> Result<Totals, AuditError> {
        let mut auditor = Auditor::new();
        self.records.iter().for_each(|record| auditor.record(record));
        auditor.finish(!self.loggers.is_empty())
    }
}
