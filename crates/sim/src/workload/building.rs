//! Event building: the roles of `fanin-dataflow` on simulated TCP.

mod push;
mod settings;
mod shifter;
mod steps;

use fanin_dataflow::{
    ClearConfig, Collector, CollectorConfig, FragmentSet, L1Id, Logger, LoggerConfig, Message, Outcome, Peer,
    Readout, ReadoutConfig, Record, Supervisor, SupervisorConfig, Unexpected, UnitModel, What, WriteModel,
};
use fanin_report::{EventRow, Outcome as RowOutcome, Span, Summary};
use fanin_scenario::{Scenario, ShapingMethod, WorkloadKind, machines};
use fanin_units::{Bytes, Duration, Instant, Ratio};

use crate::Error;
use crate::diatcp::Awaits;
use crate::index::EndIndex;
use crate::random::{Kind, Purpose, host, seed};
use crate::run::Measured;
use crate::workload::building::push::Push;
use crate::workload::building::settings::{memory_matters, small};
use crate::workload::building::shifter::Shifter;
use crate::workload::building::steps::Steps;
use crate::workload::sizes::{Data, Sizes};
use crate::world::{Outbox, Workload};
use fanin_network::{Answers, Connection, Ideal, Network, Numbering, Roles};

/// How many lines a diagnosis has at most.
const DIAGNOSIS_LINES_MAX: usize = 12;

/// What travels: messages of the roles, and words of those who schedule them.
pub(crate) enum Travel {
    /// From role to role.
    Role(Message<Bytes>),
    /// Beside the roles.
    Word(Word),
}

/// A word that no role knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// Supervisor to readout that pushes: an event goes to this collector.
    Destination {
        /// The event.
        event: L1Id,
        /// Its collector.
        collector: u16,
    },
    /// Barrier to readout: a phase begins.
    Go {
        /// Which.
        phase: u64,
    },
    /// Readout to collector: that was all of a phase.
    End {
        /// Which.
        phase: u64,
    },
    /// Readout to barrier: it has sent what it had.
    Sent {
        /// In which phase.
        phase: u64,
        /// Whether that was anything.
        anything: bool,
    },
    /// Collector to barrier: it has received all.
    Received {
        /// In which phase.
        phase: u64,
    },
}

/// All roles, and what they have recorded.
///
/// Hosts and connections have the numbers of [`Numbering`].
pub(crate) struct Building {
    supervisor: Supervisor<Bytes>,
    readouts: Vec<Readout<Bytes, Sizes>>,
    collectors: Vec<Collector<Bytes>>,
    loggers: Vec<Logger<Bytes>>,
    numbering: Numbering,
    /// Host and far side of each end.
    ends: Vec<(u32, Peer)>,
    racks: Vec<u32>,
    rows: Vec<EventRow>,
    ideal: Ideal,
    /// What each event was answered.
    answers: Vec<Answers>,
    /// For each readout the requests that it has not answered: the event, and when it arrived.
    asked: Vec<Vec<(u64, Instant)>>,
    /// Events whose messages a time-out holds up, while they are counted.
    held_up: Vec<u64>,
    /// Events whose traffic is to be seen.
    watched: Vec<u64>,
    assigned: u64,
    completed: u64,
    messages: u64,
    is_stopping: bool,
    credits: Option<u32>,
    /// Fragments of each readout.
    fragments: u16,
    /// Readout hosts that are also collectors: a collector asks all but its own.
    shares_hosts: bool,
    /// Whether readouts are given fragments as the trigger accepts events, and keep them until they are told otherwise.
    keeps_fragments: bool,
    push: Option<Push>,
    steps: Steps,
    shifter: Option<Box<Shifter>>,
    /// Hosts that have died.
    dead: Vec<bool>,
    how: String,
    ideal_time: Duration,
    ideal_bytes: u64,
}

/// Bytes of an answer with so much payload.
fn answer_bytes(payload: Bytes) -> u64 {
    let (event, missing) = (L1Id(0), FragmentSet::EMPTY);
    Message::Answer { tag: 0, event, missing, payload }.wire_bytes().get()
}

impl Building {
    pub(crate) fn new(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        run: u64,
    ) -> Result<Self, Error> {
        let seed = |kind, place: u64| seed(run, host(kind, place), Purpose::Role);
        let (readouts, collectors) = (roles.readouts.len() as u64, roles.collectors.len() as u64);
        let units = small("collectors.units_per_host", u64::from(scenario.collectors.units_per_host))?;
        let fragments = small("readout.fragments_per_host", u64::from(scenario.readout.fragments_per_host))?;
        let loggers = small("logger.hosts", roles.loggers.len() as u64)?;
        // An arbiter sits below TCP, a shifter between the readouts and their connections.
        let shares_hosts = scenario.workload.kind == WorkloadKind::AllToAll;
        let data = Data::read(scenario)?;
        let mean = data.mean(scenario);
        let keeps_fragments = memory_matters(scenario, mean);
        let supervisor = Supervisor::new(SupervisorConfig {
            units: vec![units; collectors as usize],
            readouts: small("readout.hosts", readouts)?,
            arrivals: scenario.supervisor.arrivals,
            rate: scenario.supervisor.rate,
            units_awaited: u32::from(units) * collectors as u32,
            policy: scenario.supervisor.policy,
            tie_break: scenario.supervisor.tie_break,
            start_order: scenario.supervisor.start_order,
            clear: Some(ClearConfig {
                group: small("supervisor.clear_group", u64::from(scenario.supervisor.clear_group))?,
                ..ClearConfig::default()
            }),
            seed: seed(Kind::Supervisor, 0),
            ..SupervisorConfig::default()
        })?;
        let response_delay =
            machines::delay(scenario.readout.response_delay, scenario.readout.response_delay_sd);
        let readout = |place: u64| -> Result<_, Error> {
            let config = ReadoutConfig {
                response_delay,
                memory: keeps_fragments.then_some(scenario.readout.memory),
                seed: seed(Kind::Readout, place),
                ..ReadoutConfig::default()
            };
            let sizes = Sizes::new(&scenario.readout.fragment_size, &data, fragments, run, place);
            Ok(Readout::new(config, sizes)?)
        };
        let collector = |place: u64| -> Result<_, Error> {
            Ok(Collector::new(CollectorConfig {
                units,
                readouts: (0..readouts)
                    .map(|readout| if shares_hosts && readout == place % readouts { 0 } else { fragments })
                    .collect(),
                loggers,
                credits: scenario.shaping.credit_limit(),
                discipline: scenario.shaping.discipline,
                request_order: scenario.shaping.request_order,
                first_readout: machines::first_readout(place, collectors, readouts),
                model: UnitModel::Steps(machines::steps(scenario)),
                clear: None,
                // Whoever schedules the hosts knows at once who is gone.
                readout_wait: if scenario.shaping.method == ShapingMethod::BarrelShifter {
                    Duration::ZERO
                } else {
                    CollectorConfig::default().readout_wait
                },
                seed: seed(Kind::Collector, place),
                ..CollectorConfig::default()
            })?)
        };
        // The disk is as fast as the link, and no slower: the simulation is about the network.
        let write = WriteModel::Timed { rate: scenario.logger.link.rate, latency: Duration::ZERO };
        let logger = |_| Logger::new(LoggerConfig { write, ..LoggerConfig::default() });
        let request: Message<Bytes> =
            Message::Request { tag: 0, event: L1Id(0), fragments: FragmentSet::first(fragments) };
        let request_bytes = request.wire_bytes().get();
        let answer = answer_bytes(mean * u64::from(fragments));
        let response = scenario.readout.response_delay;
        let mut ideal = Ideal::new(scenario, network, roles, response, request_bytes, answer)?;
        let push = (scenario.workload.kind == WorkloadKind::Push).then(Push::default);
        if push.is_some() {
            ideal.without_request();
        }
        let numbering = Numbering::new(roles);
        let mut building = Self {
            supervisor,
            readouts: (0..readouts).map(readout).collect::<Result<_, _>>()?,
            collectors: (0..collectors).map(collector).collect::<Result<_, _>>()?,
            loggers: (0..loggers).map(logger).collect::<Result<_, _>>()?,
            numbering,
            ends: numbering.ends(),
            racks: roles.racks.clone(),
            rows: Vec::new(),
            ideal,
            answers: Vec::new(),
            asked: vec![Vec::new(); readouts as usize],
            held_up: Vec::new(),
            watched: scenario.record.events.clone(),
            assigned: 0,
            completed: 0,
            messages: 0,
            is_stopping: false,
            credits: scenario.shaping.credit_limit(),
            fragments,
            shares_hosts,
            keeps_fragments,
            push,
            steps: Steps::new(scenario),
            shifter: None,
            dead: vec![false; 1 + (readouts + collectors) as usize + usize::from(loggers)],
            how: String::new(),
            ideal_time: Duration::ZERO,
            ideal_bytes: 0,
        };
        building.state_ideal(scenario, mean);
        building.shifter =
            Shifter::new(scenario, &building.ideal, readouts as u32, collectors as u32, answer).map(Box::new);
        Ok(building)
    }

    /// The ideal of an event of mean size.
    fn state_ideal(&mut self, scenario: &Scenario, mean: Bytes) {
        let fraction =
            scenario.workload.steps.last().map_or(scenario.workload.fraction, |step| step.fraction);
        let remote = self.readouts.len() as u64 - u64::from(self.shares_hosts);
        let readouts = (remote * fraction.get()).div_ceil(Ratio::ONE.get());
        let payload = mean * u64::from(scenario.readout.fragments_per_host);
        let wire_bytes = self.ideal.wire_bytes(answer_bytes(payload)) * readouts;
        self.ideal_bytes = (payload * readouts).get();
        self.ideal_time = self.ideal.time(wire_bytes);
        self.how = self.ideal.how(payload * readouts, wire_bytes);
    }

    fn role(&self, host: u32) -> Peer {
        self.numbering.peer(host)
    }

    /// The host of a role that somebody talks to.
    fn host(&self, peer: Peer) -> u32 {
        self.numbering.host(peer)
    }

    /// The end at `from` of its connection to `to`.
    #[inline]
    fn end(&self, from: &Peer, to: Peer) -> EndIndex {
        self.numbering.end(*from, to)
    }

    /// Whether a readout is on another host than a collector.
    fn is_remote(&self, collector: u16, readout: u16) -> bool {
        !self.shares_hosts || usize::from(collector) % self.readouts.len() != usize::from(readout)
    }

    /// Sends what a role has to send, and takes its records.
    #[inline]
    fn drain(&mut self, now: Instant, role: &Peer, outbox: &mut Outbox<Travel>) {
        loop {
            let next = match *role {
                Peer::Supervisor => self.supervisor.poll_transmit(),
                Peer::Readout(place) => self.readouts[usize::from(place)].poll_transmit(),
                Peer::Collector(place) => self.collectors[usize::from(place)].poll_transmit(),
                Peer::Logger(place) => self.loggers[usize::from(place)].poll_transmit(),
            };
            let Some((peer, message)) = next else { break };
            let bytes = message.wire_bytes().get();
            if let Message::Request { event, .. } = &message {
                self.answers[event.0 as usize].ask(bytes);
            } else if let (&Message::Answer { event, .. }, &Peer::Readout(place)) = (&message, role) {
                let asked = &mut self.asked[usize::from(place)];
                let found = asked.iter().position(|&(one, _)| one == event.0);
                let at = found.map_or(now, |index| asked.swap_remove(index).1);
                let wire_bytes = self.ideal.wire_bytes(bytes);
                self.answers[event.0 as usize].add(wire_bytes, bytes, now - at);
            }
            if self.push.is_some() || self.shifter.is_some() {
                self.send_scheduled(now, role, peer, bytes, message, outbox);
            } else {
                outbox.send(self.end(role, peer), bytes, Travel::Role(message));
            }
        }
        loop {
            let next = match *role {
                Peer::Supervisor => self.supervisor.poll_record(),
                Peer::Readout(place) => self.readouts[usize::from(place)].poll_record(),
                Peer::Collector(place) => self.collectors[usize::from(place)].poll_record(),
                Peer::Logger(place) => self.loggers[usize::from(place)].poll_record(),
            };
            let Some(record) = next else { break };
            self.note(&record, outbox);
        }
    }

    /// Sends a message where somebody else has a say in when, or whether.
    fn send_scheduled(
        &mut self,
        now: Instant,
        role: &Peer,
        peer: Peer,
        bytes: u64,
        message: Message<Bytes>,
        outbox: &mut Outbox<Travel>,
    ) {
        match (role, peer, &message) {
            (&Peer::Collector(collector), Peer::Readout(readout), &Message::Request { tag, event, .. })
                if self.push.is_some() =>
            {
                self.expect(now, collector, readout, event, tag, outbox);
                return;
            }
            (Peer::Supervisor, Peer::Collector(collector), &Message::Assign { event, .. })
                if self.push.is_some() =>
            {
                self.tell_destination(event, collector, outbox);
            }
            (&Peer::Readout(readout), Peer::Collector(collector), Message::Answer { .. })
                if self.shifter.is_some() =>
            {
                self.hold(now, readout, collector, bytes, message);
                return;
            }
            _ => {}
        }
        outbox.send(self.end(role, peer), bytes, Travel::Role(message));
    }

    fn note(&mut self, record: &Record, outbox: &mut Outbox<Travel>) {
        let Record { at, event, what } = *record;
        if let What::Assigned { collector, unit, .. } = what {
            if let Some(row) = self.rows.get_mut(event.0 as usize) {
                // Of a collector that died.
                (row.collector, row.unit) = (u32::from(collector), u32::from(unit));
                self.answers[event.0 as usize] = Answers::NONE;
                return;
            }
            assert_eq!(event.0, self.rows.len() as u64, "events are assigned once and in order");
            self.assigned += 1;
            self.answers.push(Answers::NONE);
            self.rows.push(EventRow {
                id: event.0,
                assigned_ps: at.get(),
                collector: u32::from(collector),
                rack: self.racks[usize::from(collector)],
                unit: u32::from(unit),
                ..EventRow::default()
            });
            if self.keeps_fragments {
                self.keep_fragments(at, event, outbox);
            }
            return;
        }
        let Some(row) = self.rows.get_mut(event.0 as usize) else { return };
        match what {
            What::FirstRequest { step } => {
                row.first_request_ps.get_or_insert(at.get());
                if step == 0 {
                    self.tap(event.0, true, outbox);
                }
            }
            What::Collected { step, building, began, bytes, missing, .. } => {
                if !building {
                    self.steps.note(step, event.0, (at - began).get());
                }
                // A time that was collected in steps is their sum. What is pushed is on its way from the assignment on.
                let time = match self.push {
                    Some(_) => row.collection_time_ps.unwrap_or(at.get() - row.assigned_ps),
                    None => row.collection_time_ps.unwrap_or(0) + (at - began).get(),
                };
                if let Some(shifter) = &mut self.shifter {
                    shifter.incomplete += u64::from(missing > 0);
                }
                row.collection_time_ps = Some(time);
                row.last_byte_ps = Some(at.get());
                row.size_bytes = bytes.get();
                row.outcome = RowOutcome::Collected;
            }
            What::Completed { outcome, .. } => {
                self.completed += 1;
                row.outcome = match outcome {
                    Outcome::Rejected => RowOutcome::Rejected,
                    Outcome::Accepted => RowOutcome::Accepted,
                    Outcome::Stored => RowOutcome::Stored,
                    Outcome::Debug => RowOutcome::Lost,
                };
                self.tap(event.0, false, outbox);
            }
            _ => {}
        }
    }

    /// The trigger accepted an event: its fragments arrive at all readouts.
    fn keep_fragments(&mut self, now: Instant, event: L1Id, outbox: &mut Outbox<Travel>) {
        for place in 0..self.readouts.len() {
            let readout = &mut self.readouts[place];
            let bytes = readout.source().event_bytes(event);
            assert!(readout.handle_fragments(now, event, bytes), "a readout refuses an event in order");
            // Where that filled its memory, it says so.
            self.drain(now, &Peer::Readout(place as u16), outbox);
        }
    }

    /// Begins or ends to watch the link of an event's collector, if the event is one to be watched.
    fn tap(&self, event: u64, on: bool, outbox: &mut Outbox<Travel>) {
        if self.watched.contains(&event) {
            let collector = self.rows[event as usize].collector as u16;
            outbox.tap(self.end(&Peer::Collector(collector), Peer::Readout(0)), on);
        }
    }
}

/// In a simulation no peer is faulty: an unexpected message is a mistake in the simulator or the roles.
fn expected(result: Result<(), Unexpected>) {
    if let Err(unexpected) = result {
        panic!("a role of the simulation was given what it did not expect: {unexpected}");
    }
}

impl Workload for Building {
    type Message = Travel;

    fn start(&mut self, now: Instant, outbox: &mut Outbox<Travel>) {
        for end in 0..self.ends.len() {
            let (host, peer) = self.ends[end];
            match self.role(host) {
                Peer::Supervisor => self.supervisor.handle_connected(now, peer),
                Peer::Readout(place) => self.readouts[usize::from(place)].handle_connected(now, peer),
                Peer::Collector(place) => self.collectors[usize::from(place)].handle_connected(now, peer),
                Peer::Logger(place) => self.loggers[usize::from(place)].handle_connected(now, peer),
            }
        }
        for host in 0..self.hosts() as u32 {
            let role = self.role(host);
            self.drain(now, &role, outbox);
        }
        self.shift_on(outbox);
    }

    #[inline]
    fn handle_message(&mut self, now: Instant, end: EndIndex, message: Travel, outbox: &mut Outbox<Travel>) {
        let (host, peer) = self.ends[end as usize];
        let role = self.role(host);
        if self.shifter.is_some() && (self.dead[host as usize] || self.dead[self.host(peer) as usize]) {
            return;
        }
        let message = match message {
            Travel::Role(message) => message,
            Travel::Word(word) => {
                match (role, word) {
                    (Peer::Readout(readout), Word::Destination { event, collector }) => {
                        self.handle_destination(now, readout, event, collector);
                    }
                    (Peer::Supervisor, word) => self.handle_report(now, peer, word, outbox),
                    (role, word) => self.handle_word(now, &role, word, outbox),
                }
                self.drain(now, &role, outbox);
                return;
            }
        };
        self.messages += 1;
        if let (&Message::Request { event, .. }, &Peer::Readout(place)) = (&message, &role) {
            self.asked[usize::from(place)].push((event.0, now));
        }
        expected(match role {
            // Once it was stopped for good, no readout makes it go on.
            Peer::Supervisor if self.is_stopping && matches!(message, Message::Flow { .. }) => Ok(()),
            Peer::Supervisor => self.supervisor.handle_message(now, peer, message),
            Peer::Readout(place) => self.readouts[usize::from(place)].handle_message(now, peer, message),
            Peer::Collector(place) => {
                let message = match peer {
                    Peer::Readout(readout) => self.arrived(readout, message),
                    _ => Some(message),
                };
                let Some(message) = message else { return };
                self.collectors[usize::from(place)].handle_message(now, peer, message)
            }
            Peer::Logger(place) => self.loggers[usize::from(place)].handle_message(now, peer, message),
        });
        self.drain(now, &role, outbox);
    }

    fn handle_deadline(&mut self, now: Instant, host: u32, outbox: &mut Outbox<Travel>) {
        if self.dead[host as usize] {
            return;
        }
        let role = self.role(host);
        match role {
            Peer::Supervisor => {
                self.supervisor.handle_deadline(now);
                if self.shifter.is_some() {
                    self.handle_shift_deadline(now, outbox);
                }
            }
            Peer::Readout(place) => self.readouts[usize::from(place)].handle_deadline(now),
            Peer::Collector(place) => self.collectors[usize::from(place)].handle_deadline(now),
            Peer::Logger(place) => self.loggers[usize::from(place)].handle_deadline(now),
        }
        self.drain(now, &role, outbox);
    }

    #[inline]
    fn poll_deadline(&mut self, host: u32) -> Instant {
        if self.dead[host as usize] {
            return Instant::FAR_FUTURE;
        }
        match self.role(host) {
            Peer::Supervisor => {
                let shift = self.shifter.as_ref().and_then(|shifter| shifter.poll_deadline());
                [self.supervisor.poll_deadline(), shift].into_iter().flatten().min()
            }
            Peer::Readout(place) => self.readouts[usize::from(place)].poll_deadline(),
            Peer::Collector(place) => self.collectors[usize::from(place)].poll_deadline(),
            Peer::Logger(place) => self.loggers[usize::from(place)].poll_deadline(),
        }
        .unwrap_or(Instant::FAR_FUTURE)
    }

    fn handle_timeout(&mut self, _now: Instant, _end: EndIndex, messages: &mut dyn Iterator<Item = &Travel>) {
        // An event that waits for two messages of this stream suffers once.
        self.held_up.clear();
        for message in messages {
            if let Travel::Role(Message::Answer { event, .. } | Message::Request { event, .. }) = message
                && !self.held_up.contains(&event.0)
            {
                self.held_up.push(event.0);
                self.rows[event.0 as usize].timeouts += 1;
            }
        }
    }

    fn awaits(&self, message: &Travel) -> Awaits {
        match message {
            Travel::Role(Message::Request { .. }) => Awaits::Opens,
            Travel::Role(Message::Answer { .. }) => Awaits::Closes,
            _ => Awaits::Nothing,
        }
    }

    fn is_done(&self) -> bool {
        self.is_stopping && self.completed == self.assigned
    }

    fn progress(&self) -> u64 {
        self.messages
    }

    fn diagnose(&self) -> String {
        let mut lines = vec![format!(
            "{} of {} events are not finished; {} of {} units are free",
            self.assigned - self.completed,
            self.assigned,
            self.supervisor.units_free(),
            self.collectors.len() as u64
                * u64::from(self.rows.iter().map(|row| row.unit + 1).max().unwrap_or(0)),
        )];
        for (place, collector) in self.collectors.iter().enumerate() {
            let (waiting, pending) = (collector.requests_waiting(), collector.requests_pending());
            if waiting + pending > 0 {
                let credits = match self.credits {
                    Some(credits) => format!("{} of {credits} credits used", collector.credits_used()),
                    None => "no credits".to_owned(),
                };
                lines.push(format!(
                    "collector {place} waits for {pending} answers and holds {waiting} requests back ({credits})"
                ));
            }
            lines.extend(
                collector.waits().map(|(event, waits)| {
                    format!("event {} on collector {place} waits for {waits:?}", event.0)
                }),
            );
        }
        let more = lines.len().saturating_sub(DIAGNOSIS_LINES_MAX);
        lines.truncate(DIAGNOSIS_LINES_MAX);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.join("\n")
    }
}

impl Measured for Building {
    fn connections(&self, roles: &Roles) -> Vec<Connection> {
        self.numbering.connections(roles)
    }

    fn bulk_connections(&self) -> u32 {
        self.numbering.bulk_connections()
    }

    fn hosts(&self) -> usize {
        self.numbering.hosts() as usize
    }

    fn rows(&self) -> Vec<EventRow> {
        let mut rows = self.rows.clone();
        for (row, &answers) in rows.iter_mut().zip(&self.answers) {
            let is_known = row.last_byte_ps.is_some() && answers.wire_bytes > 0;
            row.ideal_ps = is_known.then(|| self.ideal.bound(answers).get());
        }
        rows
    }

    fn stop_assigning(&mut self, now: Instant) {
        self.is_stopping = true;
        // As a readout whose memory is full: the trigger stops.
        expected(self.supervisor.handle_message(now, Peer::Readout(0), Message::Flow { stop: true }));
    }

    fn summarise(&self, summary: &mut Summary, rows: &[EventRow], span: Span) {
        summary.fill_events(rows, span, self.collectors.len() as u32, true);
        if let Some(times) = &mut summary.collection_time_ms {
            let measured = |row: &&EventRow| span.holds(row.assigned_ps) && row.collection_time_ps.is_some();
            let ideals = rows
                .iter()
                .filter(measured)
                .map(|row| self.ideal.time(self.answers[row.id as usize].wire_bytes).as_millis_f64());
            let (count, sum) = ideals.fold((0_u64, 0.0), |(count, sum), one| (count + 1, sum + one));
            times.ideal = (count > 0).then(|| sum / count as f64);
        }
        if let Some(credits) = self.credits {
            let (waited, requests) =
                self.collectors.iter().map(Collector::counters).fold((0.0, 0), |(time, requests), one| {
                    (time + one.wait_time.as_millis_f64(), requests + one.requests)
                });
            summary.shaping = Some(fanin_report::Shaping {
                credits: Some(u64::from(credits)),
                wait_ms_mean: (requests > 0).then(|| waited / requests as f64),
            });
        }
        self.steps.fill(summary, rows, span);
        if let Some(shifter) = &self.shifter {
            summary.techniques.insert("barrel_shifter".to_owned(), shifter.figures());
        }
        if self.keeps_fragments {
            let (mut held_max, mut xoffs, mut xoff_ms) = (0, 0, 0.0);
            for readout in &self.readouts {
                let counters = readout.counters();
                held_max = held_max.max(counters.held_max);
                xoffs += counters.xoffs;
                xoff_ms += counters.xoff_time.as_millis_f64();
            }
            let figures =
                serde_json::json!({ "held_bytes_max": held_max, "xoffs": xoffs, "xoff_ms": xoff_ms });
            summary.techniques.insert("readout".to_owned(), figures);
        }
        if self.ideal_bytes > 0 {
            summary.ideal = Some(fanin_report::Ideal {
                collection_time_ms: Some(self.ideal_time.as_millis_f64()),
                goodput_bps: Some(self.ideal_bytes as f64 * 8.0 / self.ideal_time.as_secs_f64()),
                how: Some(self.how.clone()),
            });
        }
    }
}
