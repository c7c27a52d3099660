//! The classical incast: a client asks all servers at once, and asks again when the last answer is complete.

use fanin_dataflow::Delay;
use fanin_report::{EventRow, Outcome, Span, Summary};
use fanin_scenario::{Scenario, WorkloadKind};
use fanin_units::{Bytes, Duration, Instant};

use crate::Error;
use crate::diatcp::Awaits;
use crate::ideal::Ideal;
use crate::index::EndIndex;
use crate::network::Network;
use crate::random::{Kind, Purpose, Random, host, seed};
use crate::run::{Measured, Wanted};
use crate::topology::Roles;
use crate::world::{Outbox, Workload};

/// Size of a request, as the studies have it: it fits a segment, and its size does not matter.
const REQUEST_BYTES: u64 = 64;

/// What each server answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// Every server answers so much: the block grows with the servers.
    Fragment(Bytes),
    /// All servers together answer so much; the first ones a byte more where it does not divide.
    Block(Bytes),
}

/// One request of a client to all servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Request {
    start: Instant,
    end: Instant,
    timeouts: u64,
}

/// What travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    Request,
    Answer,
}

/// The client is host 0, server `s` host `s + 1`; the connection to server `s` has the ends `2 s` (client's) and
/// `2 s + 1`.
pub(crate) struct Barrier {
    servers: u32,
    answer: Answer,
    service_delay_max: Duration,
    /// A request that takes longer is late; zero: none is.
    deadline: Duration,
    /// When each server will answer.
    answer_at: Vec<Instant>,
    delays: Vec<Random>,
    unanswered: u32,
    start: Instant,
    timeouts: u64,
    is_last: bool,
    completed: Vec<Request>,
    ideal: Duration,
    how: String,
}

impl Barrier {
    pub(crate) fn new(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        run: u64,
    ) -> Result<Self, Error> {
        let workload = &scenario.workload;
        let servers = workload.senders;
        let answer = match workload.kind {
            WorkloadKind::FixedBlock => Answer::Block(workload.request_size),
            _ => Answer::Fragment(workload.request_size),
        };
        let mut barrier = Self {
            servers,
            answer,
            service_delay_max: workload.service_delay_max,
            deadline: workload.deadline,
            answer_at: vec![Instant::FAR_FUTURE; servers as usize],
            delays: (0..u64::from(servers))
                .map(|server| Random::new(seed(run, host(Kind::Readout, server), Purpose::Role)))
                .collect(),
            unanswered: 0,
            start: Instant::START,
            timeouts: 0,
            is_last: false,
            completed: Vec::new(),
            ideal: Duration::ZERO,
            how: String::new(),
        };
        let shortest = (0..servers).map(|server| barrier.answer_bytes(server)).min().unwrap_or(0);
        if shortest == 0 {
            return Err(Error::unsupported("workload.request_size", "an empty answer"));
        }
        // The first of many servers answers nearly at once.
        let ideal = Ideal::new(scenario, network, roles, Duration::ZERO, REQUEST_BYTES, shortest)?;
        let bytes: u64 = (0..servers).map(|server| ideal.wire_bytes(barrier.answer_bytes(server))).sum();
        barrier.ideal = ideal.time(bytes);
        barrier.how = ideal.how(barrier.block(), bytes);
        Ok(barrier)
    }

    fn answer_bytes(&self, server: u32) -> u64 {
        match self.answer {
            Answer::Fragment(size) => size.get(),
            Answer::Block(size) => {
                let servers = u64::from(self.servers);
                size.get() / servers + u64::from(u64::from(server) < size.get() % servers)
            }
        }
    }

    /// Payload of all answers to one request.
    pub(crate) fn block(&self) -> Bytes {
        match self.answer {
            Answer::Fragment(size) => size * u64::from(self.servers),
            Answer::Block(size) => size,
        }
    }

    fn ask(&mut self, now: Instant, outbox: &mut Outbox<Message>) {
        self.start = now;
        self.timeouts = 0;
        self.unanswered = self.servers;
        for server in 0..self.servers {
            outbox.send(2 * server, REQUEST_BYTES, Message::Request);
        }
    }
}

impl Workload for Barrier {
    type Message = Message;

    fn handle_message(
        &mut self,
        now: Instant,
        end: EndIndex,
        message: Message,
        outbox: &mut Outbox<Message>,
    ) {
        let server = end / 2;
        match message {
            Message::Request => {
                let delay = Delay::Uniform { min: Duration::ZERO, max: self.service_delay_max };
                self.answer_at[server as usize] = now + delay.draw(&mut self.delays[server as usize]);
            }
            Message::Answer => {
                self.unanswered -= 1;
                if self.unanswered == 0 {
                    let (start, timeouts) = (self.start, self.timeouts);
                    self.completed.push(Request { start, end: now, timeouts });
                    if !self.is_done() {
                        self.ask(now, outbox);
                    }
                }
            }
        }
    }

    fn start(&mut self, now: Instant, outbox: &mut Outbox<Message>) {
        self.ask(now, outbox);
    }

    fn handle_deadline(&mut self, _now: Instant, host: u32, outbox: &mut Outbox<Message>) {
        let server = host - 1;
        self.answer_at[server as usize] = Instant::FAR_FUTURE;
        outbox.send(2 * server + 1, self.answer_bytes(server), Message::Answer);
    }

    fn poll_deadline(&mut self, host: u32) -> Instant {
        if host == 0 { Instant::FAR_FUTURE } else { self.answer_at[host as usize - 1] }
    }

    fn handle_timeout(
        &mut self,
        _now: Instant,
        _end: EndIndex,
        _messages: &mut dyn Iterator<Item = &Message>,
    ) {
        self.timeouts += 1;
    }

    fn awaits(&self, message: &Message) -> Awaits {
        match message {
            Message::Request => Awaits::Opens,
            Message::Answer => Awaits::Closes,
        }
    }

    fn is_done(&self) -> bool {
        self.is_last && self.unanswered == 0
    }

    fn progress(&self) -> u64 {
        self.completed.len() as u64 * u64::from(self.servers + 1) + u64::from(self.servers)
            - u64::from(self.unanswered)
    }

    fn diagnose(&self) -> String {
        format!(
            "the client has waited since {} for {} of {} servers; {} requests were completed before",
            self.start,
            self.unanswered,
            self.servers,
            self.completed.len()
        )
    }
}

impl Measured for Barrier {
    fn connections(&self, roles: &Roles) -> Vec<Wanted> {
        let client = roles.collectors[0];
        let connect = |(server, &node): (usize, &u32)| Wanted {
            nodes: [client, node],
            hosts: [0, server as u32 + 1],
            roles: [("collector", 0), ("readout", server as u32)],
        };
        roles.readouts.iter().enumerate().map(connect).collect()
    }

    fn bulk_connections(&self) -> u32 {
        self.servers
    }

    fn hosts(&self) -> usize {
        self.servers as usize + 1
    }

    fn rows(&self) -> Vec<EventRow> {
        let row = |(number, request): (usize, &Request)| EventRow {
            id: number as u64,
            size_bytes: self.block().get(),
            assigned_ps: request.start.get(),
            first_request_ps: Some(request.start.get()),
            last_byte_ps: Some(request.end.get()),
            collection_time_ps: Some((request.end - request.start).get()),
            ideal_ps: Some(self.ideal.get()),
            timeouts: request.timeouts,
            outcome: Outcome::Collected,
            ..EventRow::default()
        };
        self.completed.iter().enumerate().map(row).collect()
    }

    fn stop_assigning(&mut self, _now: Instant) {
        self.is_last = true;
    }

    fn summarise(&self, summary: &mut Summary, rows: &[EventRow], span: Span) {
        summary.fill_requests(rows, span, 1);
        if !self.deadline.is_zero() {
            summary.fill_deadlines(rows, span, self.deadline.get());
        }
        let goodput = self.block().get() as f64 * 8.0 / self.ideal.as_secs_f64();
        summary.ideal = Some(fanin_report::Ideal {
            collection_time_ms: Some(self.ideal.as_millis_f64()),
            goodput_bps: Some(goodput),
            how: Some(self.how.clone()),
        });
    }
}
