//! The classical incast: a client asks all servers at once, and asks again when the last answer is complete.

use fanin_units::{Bytes, Duration, Instant};

use crate::random::{Purpose, Stream};
use crate::world::{EndIndex, Outbox, Workload};

/// How much each server answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Every server answers so much (fixed-fragment workload): the block grows with the servers.
    Fragment(Bytes),
    /// All servers together answer so much (fixed-block workload): the first ones a byte more where it does not
    /// divide.
    Block(Bytes),
}

/// Settings of a barrier-synchronised workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How many servers answer the one client.
    pub servers: u32,
    /// Size of a request.
    pub request: Bytes,
    /// Size of the answers.
    pub answer: Answer,
    /// A server waits a random time up to this before it answers, every time equally likely. Without it, runs
    /// lock in phase.
    pub service_delay_max: Duration,
    /// Ends the run after so many requests; `None` for no limit.
    pub requests: Option<u64>,
}

/// One request of a client to all servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When it was sent.
    pub start: Instant,
    /// When the last byte of the last answer had arrived.
    pub end: Instant,
    /// Payload of all answers.
    pub bytes: Bytes,
    /// Retransmission time-outs in its time.
    pub timeouts: u32,
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
    settings: Settings,
    /// When each server will answer.
    answer_at: Vec<Instant>,
    delays: Vec<Stream>,
    unanswered: u32,
    start: Instant,
    timeouts: u32,
    pub(crate) completed: Vec<Request>,
}

impl Barrier {
    pub(crate) fn new(settings: Settings, seed: u64) -> Self {
        let servers = u64::from(settings.servers);
        Self {
            settings,
            answer_at: vec![Instant::FAR_FUTURE; settings.servers as usize],
            delays: (0..servers).map(|server| Stream::new(seed, server, Purpose::Response)).collect(),
            unanswered: 0,
            start: Instant::START,
            timeouts: 0,
            completed: Vec::new(),
        }
    }

    fn answer_bytes(&self, server: u32) -> u64 {
        match self.settings.answer {
            Answer::Fragment(size) => size.get(),
            Answer::Block(size) => {
                let servers = u64::from(self.settings.servers);
                size.get() / servers + u64::from(u64::from(server) < size.get() % servers)
            }
        }
    }

    /// Payload of all answers to one request.
    pub(crate) fn block(&self) -> Bytes {
        match self.settings.answer {
            Answer::Fragment(size) => size * u64::from(self.settings.servers),
            Answer::Block(size) => size,
        }
    }

    fn ask(&mut self, now: Instant, outbox: &mut Outbox<Message>) {
        self.start = now;
        self.timeouts = 0;
        self.unanswered = self.settings.servers;
        for server in 0..self.settings.servers {
            outbox.send(2 * server, self.settings.request.get(), Message::Request);
        }
    }
}

impl Workload for Barrier {
    type Message = Message;

    fn handle_message(&mut self, now: Instant, end: EndIndex, message: Message, outbox: &mut Outbox<Message>) {
        let server = end / 2;
        match message {
            Message::Request => {
                let delay = self.delays[server as usize].below(self.settings.service_delay_max.get() + 1);
                self.answer_at[server as usize] = now + Duration::new(delay);
            }
            Message::Answer => {
                self.unanswered -= 1;
                if self.unanswered == 0 {
                    let (start, timeouts) = (self.start, self.timeouts);
                    self.completed.push(Request { start, end: now, bytes: self.block(), timeouts });
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

    fn poll_deadline(&self, host: u32) -> Instant {
        if host == 0 { Instant::FAR_FUTURE } else { self.answer_at[host as usize - 1] }
    }

    fn handle_timeout(&mut self, _now: Instant, _end: EndIndex, _message: Option<&Message>) {
        self.timeouts += 1;
    }

    fn is_done(&self) -> bool {
        self.settings.requests.is_some_and(|requests| self.completed.len() as u64 >= requests)
    }

    fn progress(&self) -> u64 {
        self.completed.len() as u64 * u64::from(self.settings.servers + 1) + u64::from(self.settings.servers)
            - u64::from(self.unanswered)
    }

    fn diagnose(&self) -> String {
        format!(
            "the client has waited since {} for {} of {} servers; {} requests were completed before",
            self.start,
            self.unanswered,
            self.settings.servers,
            self.completed.len()
        )
    }
}
