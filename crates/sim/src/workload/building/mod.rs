//! Event building: the roles of `fanin-dataflow` on simulated TCP.

mod message;
mod roles;

use fanin_dataflow::{
    DESTINATION_BYTES, EventRecord, EventStep, FragmentSet, L1Id, Message, Outcome, Peer, PushedAnswers,
    REMINDER_TAG,
};
use fanin_network::{Answers, Collection, CollectionWork, Connection, Network, Numbering, Roles};
use fanin_recording::{CollectedEvent, StepTimes};
use fanin_report::{EventOutcome, EventRow, Span, Summary, SystemLevels};
use fanin_scenario::{Scenario, WorkloadKind, role_configs};
use fanin_units::{Bytes, Instant};

use super::interface::{HostOutbox, HostWorkload, MeasuredWorkload, ideal_of};
use super::sizes::RecordedSizes;
use crate::Error;
use crate::index::EndIndex;
use crate::techniques::{
    AnswerAction, AnswerHooks, AnswerSetup, MessageKind, answer_technique, report_collectors,
};

pub(crate) use message::BuildingMessage;
use roles::RoleStates;

/// The most lines of a diagnosis.
const DIAGNOSIS_LINES_MAX: usize = 12;

/// All roles, and their records. Hosts and connections have the numbers of [`Numbering`].
pub(crate) struct Building {
    states: RoleStates,
    numbering: Numbering,
    /// Host of each end, and the role at the connection's other end.
    ends: Vec<(u32, Peer)>,
    roles: Roles,
    rows: Vec<EventRow>,
    /// The collection of an event of mean size.
    mean: Collection,
    /// The answers for each event.
    answers: Vec<Answers>,
    /// True if this partition has the supervisor, which assigns all events.
    has_supervisor: bool,
    /// Unanswered requests of each readout: event, tag, fragments, time of arrival.
    outstanding_requests: Vec<Vec<(u64, u32, FragmentSet, Instant)>>,
    /// Events delayed by a timeout, while it is being counted.
    delayed_events: Vec<u64>,
    /// Events whose traffic is recorded.
    recorded_events: Vec<u64>,
    assigned: u64,
    completed: u64,
    /// Events whose last step was collected, until [`HostWorkload::take_collected`] takes them.
    collected: Vec<CollectedEvent>,
    messages: u64,
    is_stopping: bool,
    /// All fragments of a readout, and bytes of the header in front of each.
    fragments: FragmentSet,
    fragment_header: Option<u64>,
    /// True if readouts store fragments from the trigger's acceptance until they are cleared.
    keeps_fragments: bool,
    push: Option<PushedAnswers<Bytes>>,
    steps: StepTimes,
    /// The technique that holds answers back, if any.
    technique: Option<Box<dyn AnswerHooks>>,
}

impl Building {
    pub(crate) fn new(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        sizes: &RecordedSizes,
        run: u64,
    ) -> Result<Self, Error> {
        let (readouts, collectors) = (roles.readouts.len(), roles.collectors.len());
        let fragments = role_configs::small(
            "readout.fragments_per_host",
            u64::from(scenario.readout.fragments_per_host),
        )?;
        sizes.check(scenario)?;
        let mean = sizes.mean(scenario);
        let push = (scenario.workload.kind == WorkloadKind::Push).then(PushedAnswers::default);
        let event = Collection::event(scenario, network, roles, mean * u64::from(fragments))?;
        let numbering = Numbering::new(roles);
        let technique = answer_technique(&AnswerSetup {
            scenario,
            ideal: &event.ideal,
            readouts: readouts as u32,
            collectors: collectors as u32,
            answer_bytes: event.answer_bytes,
        });
        let (excludes, keeps_fragments) = (technique.is_some(), role_configs::memory_matters(scenario, mean));
        Ok(Self {
            states: RoleStates::new(scenario, roles, sizes, run, excludes, fragments, keeps_fragments)?,
            numbering,
            ends: numbering.ends(),
            roles: roles.clone(),
            rows: Vec::new(),
            mean: event,
            answers: Vec::new(),
            has_supervisor: false,
            outstanding_requests: vec![Vec::new(); readouts],
            delayed_events: Vec::new(),
            recorded_events: scenario.record.events.clone(),
            assigned: 0,
            completed: 0,
            collected: Vec::new(),
            messages: 0,
            is_stopping: false,
            fragments: FragmentSet::first(fragments),
            fragment_header: Some(scenario.readout.fragment_header.get()).filter(|&header| header > 0),
            keeps_fragments,
            push,
            steps: StepTimes::new(scenario),
            technique,
        })
    }

    /// Returns the row and the answers of an event. Adds empty ones for earlier events of other partitions.
    fn entry(&mut self, event: L1Id) -> (&mut EventRow, &mut Answers) {
        let unknown = self.rows.len() as u64..=event.0;
        if !unknown.is_empty() {
            self.rows.extend(unknown.map(|id| EventRow { id, ..EventRow::default() }));
            self.answers.resize(self.rows.len(), Answers::NONE);
        }
        (&mut self.rows[event.0 as usize], &mut self.answers[event.0 as usize])
    }

    /// Hands a message to a role.
    #[inline]
    fn handle_role_message(&mut self, now: Instant, role: Peer, peer: Peer, mut message: Message<Bytes>) {
        match (role, peer, &message) {
            (Peer::Readout(place), _, &Message::Request { event, tag, fragments }) => {
                self.outstanding_requests[usize::from(place)].push((event.0, tag, fragments, now));
            }
            // After the final stop, no readout resumes the supervisor.
            (Peer::Supervisor, _, Message::Flow { .. }) if self.is_stopping => return,
            (Peer::Collector(_), Peer::Readout(readout), _) => {
                if let Some(push) = &mut self.push {
                    let Some(answer) = push.handle_message(readout, message) else { return };
                    message = answer;
                }
            }
            _ => {}
        }
        self.states.handle_message(now, role, peer, message);
    }

    /// Sends all messages of a role, and takes its records.
    #[inline]
    fn drain(&mut self, now: Instant, role: Peer, outbox: &mut HostOutbox<BuildingMessage>) {
        while let Some((peer, message)) = self.states.poll_transmit(role) {
            let mut bytes = message.wire_bytes().get();
            if let &Message::Request { event, .. } = &message {
                self.entry(event).1.ask(bytes);
            } else if let (&Message::Answer { event, tag, payload, .. }, Peer::Readout(place)) =
                (&message, role)
            {
                let outstanding = &mut self.outstanding_requests[usize::from(place)];
                let found = outstanding.iter().position(|&(one, number, ..)| (one, number) == (event.0, tag));
                let (.., asked, at) =
                    found.map_or((0, 0, FragmentSet::EMPTY, now), |i| outstanding.swap_remove(i));
                bytes += self.fragment_header.map_or(0, |header| header * u64::from(asked.len()));
                // The answer to a reminder is no part of the event.
                if tag != REMINDER_TAG {
                    let wire_bytes = self.mean.ideal.segments().wire_bytes(bytes);
                    self.entry(event).1.add(payload.get(), bytes, wire_bytes, now - at, asked.contains(0));
                }
            }
            if self.push.is_some() || self.technique.is_some() {
                self.send_scheduled(now, role, peer, bytes, message, outbox);
            } else {
                outbox.send(self.numbering.end(role, peer), bytes, self.wrap(now, message));
            }
        }
        while let Some(record) = self.states.poll_record(role) {
            self.note(&record, outbox);
        }
    }

    /// Wraps a message between roles for the network.
    fn wrap(&self, now: Instant, message: Message<Bytes>) -> BuildingMessage {
        let Message::Assign { event, .. } = message else { return BuildingMessage::Role(message) };
        // An event of a failed collector keeps the time of its first assignment.
        let first = self.rows.get(event.0 as usize).map(|row| Instant::new(row.assigned_ps));
        BuildingMessage::Assign { event, at: first.unwrap_or(now), message: Box::new(message) }
    }

    /// Sends a message of a system with readouts that push or hold answers back.
    fn send_scheduled(
        &mut self,
        now: Instant,
        role: Peer,
        peer: Peer,
        bytes: u64,
        message: Message<Bytes>,
        outbox: &mut HostOutbox<BuildingMessage>,
    ) {
        match (role, peer, &message) {
            (Peer::Collector(_), Peer::Readout(readout), &Message::Request { tag, event, .. }) => {
                if let Some(push) = &mut self.push {
                    if let Some(answer) = push.expect(event, readout, tag) {
                        self.states.handle_message(now, role, peer, answer);
                        self.drain(now, role, outbox);
                    }
                    return;
                }
            }
            (Peer::Supervisor, Peer::Collector(collector), &Message::Assign { event, .. })
                if self.push.is_some() =>
            {
                self.send_destination(event, collector, outbox);
            }
            (Peer::Readout(readout), Peer::Collector(collector), Message::Answer { .. }) => {
                if let Some(technique) = &mut self.technique {
                    technique.on_answer(now, readout, collector, bytes, message);
                    return;
                }
            }
            _ => {}
        }
        outbox.send(self.numbering.end(role, peer), bytes, self.wrap(now, message));
    }

    /// Sends all readouts the collector of an event.
    fn send_destination(&self, event: L1Id, collector: u16, outbox: &mut HostOutbox<BuildingMessage>) {
        for readout in 0..self.states.readouts.len() as u16 {
            if self.roles.is_remote(collector.into(), readout.into()) {
                let end = self.numbering.end(Peer::Supervisor, Peer::Readout(readout));
                outbox.send(end, DESTINATION_BYTES, BuildingMessage::Destination { event, collector });
            }
        }
    }

    /// Carries out the actions of the technique that holds answers back.
    fn drain_technique(&mut self, now: Instant, outbox: &mut HostOutbox<BuildingMessage>) {
        while let Some(action) = self.technique.as_mut().and_then(|technique| technique.poll_action()) {
            match action {
                AnswerAction::Send { from, to, message: sent } => {
                    outbox.send(self.numbering.end(from, to), sent.bytes, BuildingMessage::Control(sent));
                }
                AnswerAction::Release { readout, collector, bytes, message } => {
                    let end = self.numbering.end(Peer::Readout(readout), Peer::Collector(collector));
                    outbox.send(end, bytes, BuildingMessage::Role(message));
                }
                AnswerAction::Exclude(host) => self.exclude(now, host, outbox),
            }
        }
    }

    /// Closes the connections of all hosts to a failed one.
    fn exclude(&mut self, now: Instant, host: Peer, outbox: &mut HostOutbox<BuildingMessage>) {
        if let Some(technique) = &mut self.technique {
            technique.on_excluded(host);
        }
        let states = &mut self.states;
        match host {
            Peer::Readout(_) => {
                states.supervisor.handle_closed(now, host);
                for collector in 0..self.states.collectors.len() as u16 {
                    self.states.collectors[usize::from(collector)].handle_closed(now, host);
                    self.drain(now, Peer::Collector(collector), outbox);
                }
            }
            Peer::Collector(_) => {
                states.readouts.iter_mut().for_each(|readout| readout.handle_closed(now, host));
                states.loggers.iter_mut().for_each(|logger| logger.handle_closed(now, host));
                states.supervisor.handle_closed(now, host);
            }
            _ => unreachable!("only readouts and collectors are excluded"),
        }
        self.drain(now, Peer::Supervisor, outbox);
    }

    fn has_failed(&self, host: Peer) -> bool {
        self.technique.as_ref().is_some_and(|technique| technique.has_failed(host))
    }

    fn note(&mut self, record: &EventRecord, outbox: &mut HostOutbox<BuildingMessage>) {
        let EventRecord { at, event, step } = *record;
        if let EventStep::Assigned { collector, unit, .. } = step {
            if let Some(row) = self.rows.get_mut(event.0 as usize) {
                // The event belonged to a failed collector.
                (row.collector, row.unit) = (u32::from(collector), u32::from(unit));
                self.answers[event.0 as usize] = Answers::NONE;
                self.outstanding_requests.iter_mut().for_each(|list| list.retain(|one| one.0 != event.0));
                return;
            }
            assert_eq!(event.0, self.assigned, "an event is assigned twice, or out of order");
            self.assigned += 1;
            self.answers.push(Answers::NONE);
            self.rows.push(EventRow {
                id: event.0,
                assigned_ps: at.get(),
                collector: u32::from(collector),
                rack: self.roles.racks[usize::from(collector)],
                unit: u32::from(unit),
                ..EventRow::default()
            });
            if self.keeps_fragments {
                self.keep_fragments(at, event, outbox);
            }
            return;
        }
        let Some(row) = self.rows.get_mut(event.0 as usize) else { return };
        match step {
            EventStep::FirstRequest { step } => {
                row.first_request_ps.get_or_insert(at.get());
                if step == 0 {
                    self.tap(event.0, true, outbox);
                }
            }
            EventStep::Collected { step, building, began, bytes, missing, .. } => {
                if !building {
                    self.steps.note(step, event.0, (at - began).get());
                }
                // The time of a collection in steps is their sum. Pushed answers are under way from the assignment on.
                let time = match self.push {
                    Some(_) => row.collection_time_ps.unwrap_or(at.get() - row.assigned_ps),
                    None => row.collection_time_ps.unwrap_or(0) + (at - began).get(),
                };
                if let Some(technique) = &mut self.technique {
                    technique.on_collected(missing);
                }
                row.collection_time_ps = Some(time);
                row.last_byte_ps = Some(at.get());
                row.size_bytes = bytes.get();
                row.outcome = EventOutcome::Collected;
                if building || usize::from(step) + 1 >= self.steps.count() {
                    self.note_collected(event.0 as usize);
                }
            }
            EventStep::Decided { outcome: Outcome::Rejected, .. } => self.note_collected(event.0 as usize),
            EventStep::Completed { outcome, .. } => {
                self.completed += 1;
                row.outcome = outcome.into();
                self.tap(event.0, false, outbox);
            }
            _ => {}
        }
    }

    /// Notes an event whose last step is collected. A repeated note of an event has the same values.
    fn note_collected(&mut self, event: usize) {
        let (row, ideal) = (&self.rows[event], self.ideal(event));
        let Some((at, time)) = row.last_byte_ps.zip(row.collection_time_ps) else { return };
        self.collected.push(CollectedEvent { event: row.id, assigned: row.assigned_ps, at, time, ideal });
    }

    /// Returns the least time that an event can take; `None` while its answers are unknown, or if an answer is missing.
    fn ideal(&self, event: usize) -> Option<u64> {
        let answers = self.answers.get(event).filter(|answers| answers.wire_bytes > 0)?;
        (answers.payload <= self.rows[event].size_bytes).then(|| self.mean.ideal.bound(*answers).get())
    }

    /// Hands an accepted event's fragments to all readouts, which store them.
    fn keep_fragments(&mut self, now: Instant, event: L1Id, outbox: &mut HostOutbox<BuildingMessage>) {
        for place in 0..self.states.readouts.len() {
            let readout = &mut self.states.readouts[place];
            let bytes = readout.source_mut().event_bytes(event);
            assert!(readout.handle_fragments(now, event, bytes), "a readout refuses an event in order");
            // If that filled its memory, it sends XOFF.
            self.drain(now, Peer::Readout(place as u16), outbox);
        }
    }

    /// Starts or ends recording of the link of an event's collector, if the event's traffic is recorded.
    fn tap(&self, event: u64, on: bool, outbox: &mut HostOutbox<BuildingMessage>) {
        if self.recorded_events.contains(&event) {
            let collector = self.rows[event as usize].collector as u16;
            outbox.tap(self.numbering.end(Peer::Collector(collector), Peer::Readout(0)), on);
        }
    }
}

impl HostWorkload for Building {
    type Message = BuildingMessage;

    fn start(&mut self, now: Instant, plays: &dyn Fn(u32) -> bool, outbox: &mut HostOutbox<BuildingMessage>) {
        self.has_supervisor = plays(self.numbering.host(Peer::Supervisor));
        let may_cut = !self.keeps_fragments && self.technique.is_none() && self.recorded_events.is_empty();
        assert!(may_cut || (0..self.hosts() as u32).all(plays), "a system is cut that cannot be");
        for end in 0..self.ends.len() {
            let (host, peer) = self.ends[end];
            self.states.handle_connected(now, self.numbering.peer(host), peer);
        }
        for host in (0..self.hosts() as u32).filter(|&host| plays(host)) {
            self.drain(now, self.numbering.peer(host), outbox);
        }
        if let Some(technique) = &mut self.technique {
            technique.on_start();
        }
        self.drain_technique(now, outbox);
    }

    #[inline]
    fn handle_message(
        &mut self,
        now: Instant,
        end: EndIndex,
        message: BuildingMessage,
        outbox: &mut HostOutbox<BuildingMessage>,
    ) {
        let (host, peer) = self.ends[end as usize];
        let role = self.numbering.peer(host);
        if self.has_failed(role) || self.has_failed(peer) {
            return;
        }
        match message {
            BuildingMessage::Role(message) => {
                self.messages += 1;
                self.handle_role_message(now, role, peer, message);
            }
            BuildingMessage::Assign { event, at, message } => {
                self.messages += 1;
                if !self.has_supervisor {
                    self.entry(event).0.assigned_ps = at.get();
                }
                self.handle_role_message(now, role, peer, *message);
            }
            BuildingMessage::Destination { event, collector } => {
                // The readout answers as if it had received a request.
                let request = Message::Request { tag: 0, event, fragments: self.fragments };
                self.handle_role_message(now, role, Peer::Collector(collector), request);
            }
            BuildingMessage::Control(message) => {
                if let Some(technique) = &mut self.technique {
                    technique.on_message(now, peer, role, message);
                }
                self.drain_technique(now, outbox);
            }
        }
        self.drain(now, role, outbox);
    }

    fn handle_deadline(&mut self, now: Instant, host: u32, outbox: &mut HostOutbox<BuildingMessage>) {
        let role = self.numbering.peer(host);
        if self.has_failed(role) {
            return;
        }
        self.states.handle_deadline(now, role);
        if role == Peer::Supervisor
            && let Some(technique) = &mut self.technique
        {
            technique.on_deadline(now);
            self.drain_technique(now, outbox);
        }
        self.drain(now, role, outbox);
    }

    #[inline]
    fn poll_deadline(&mut self, host: u32) -> Instant {
        let role = self.numbering.peer(host);
        if self.has_failed(role) {
            return Instant::FAR_FUTURE;
        }
        let mut deadline = self.states.poll_deadline(role);
        if role == Peer::Supervisor
            && let Some(technique) = &self.technique
        {
            deadline = [deadline, technique.poll_deadline()].into_iter().flatten().min();
        }
        deadline.unwrap_or(Instant::FAR_FUTURE)
    }

    fn handle_timeout(&mut self, _: Instant, _: EndIndex, waiting: &mut dyn Iterator<Item = &Self::Message>) {
        // An event with two waiting messages in this stream counts once.
        self.delayed_events.clear();
        for message in waiting {
            if let Some(event) = message.event().filter(|event| !self.delayed_events.contains(event)) {
                self.delayed_events.push(event);
                self.entry(L1Id(event)).0.add_timeouts(1);
            }
        }
    }

    fn event(&self, message: &BuildingMessage) -> Option<u64> {
        message.event()
    }

    fn take_collected(&mut self) -> Option<CollectedEvent> {
        self.collected.pop()
    }

    fn kind(&self, message: &BuildingMessage) -> MessageKind {
        message.kind()
    }

    fn levels(&self) -> Option<SystemLevels> {
        Some(SystemLevels::of(&self.states.supervisor, &self.states.collectors))
    }

    fn is_done(&self) -> bool {
        self.is_stopping && self.completed == self.assigned
    }

    fn progress(&self) -> u64 {
        self.messages
    }

    fn assert_conserved(&self) {
        let has_rows = self.assigned == self.rows.len() as u64;
        assert!(has_rows || !self.has_supervisor, "an event has no row, or two");
        assert!(self.completed <= self.assigned, "events were completed twice");
        self.states.assert_conserved();
        let is_matched = self.push.as_ref().is_none_or(PushedAnswers::is_empty);
        assert!(is_matched || !self.is_done(), "a share without its request");
        if let Some(technique) = &self.technique {
            technique.assert_conserved();
        }
    }

    fn diagnose(&self) -> String {
        let mut lines = vec![format!(
            "{} of {} events are not finished; {} of {} units are free",
            self.assigned - self.completed,
            self.assigned,
            self.states.supervisor.units_free(),
            self.states.collectors.len() as u64
                * u64::from(self.rows.iter().map(|row| row.unit + 1).max().unwrap_or(0)),
        )];
        lines.extend(self.states.waiting_collectors());
        let more = lines.len().saturating_sub(DIAGNOSIS_LINES_MAX);
        lines.truncate(DIAGNOSIS_LINES_MAX);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.join("\n")
    }
}

impl MeasuredWorkload for Building {
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
        for (event, row) in rows.iter_mut().enumerate() {
            row.ideal_ps = row.last_byte_ps.and_then(|_| self.ideal(event));
        }
        rows
    }

    fn work(&self, row: &EventRow) -> Option<CollectionWork> {
        // The time of a collection in steps is the sum over its steps, without the time between them.
        self.mean.ideal.work(*self.answers.get(row.id as usize).filter(|_| self.steps.count() == 0)?)
    }

    fn stop_assigning(&mut self, now: Instant) {
        self.is_stopping = true;
        self.states.supervisor.handle_stop(now);
    }

    fn summarise(&self, summary: &mut Summary, rows: &[EventRow], span: Span) {
        summary.fill_events(rows, span, self.states.collectors.len() as u32, true);
        if let Some(times) = &mut summary.collection_time_ms {
            let measured = |row: &&EventRow| span.holds(row.assigned_ps) && row.collection_time_ps.is_some();
            let ideals = rows
                .iter()
                .filter(measured)
                .map(|row| self.mean.ideal.time(self.answers[row.id as usize].wire_bytes).as_millis_f64());
            let (count, sum) = ideals.fold((0_u64, 0.0), |(count, sum), one| (count + 1, sum + one));
            times.ideal = (count > 0).then(|| sum / count as f64);
        }
        report_collectors(&self.states.collectors, summary);
        self.steps.fill(summary, rows, span);
        if let Some(technique) = &self.technique {
            summary.techniques.insert(technique.key().to_owned(), technique.figures());
        }
        if self.keeps_fragments {
            summary.techniques.insert("readout".to_owned(), self.states.memory_figures());
        }
        if !self.mean.payload.is_zero() {
            summary.ideal = Some(ideal_of(&self.mean));
        }
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/building.rs"]
mod tests;
