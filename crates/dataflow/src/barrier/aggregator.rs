//! The aggregator of a barrier workload: requests from all senders at once, waits for the last answer, requests again.
//!
//! Each round requests in a new random order. Requests leave one after the other: in a fixed order, the first sender
//! would always find the emptiest queue.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant};

use super::message::{AnswerSize, BarrierMessage, SENDERS_MAX};
use crate::timers::later;
use crate::{ByteCredit, PacedCredits, PacedCreditsConfig, Peer, Random, RelativeSize, Unexpected};

/// The settings of an aggregator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AggregatorConfig {
    /// The number of senders, 1 to [`SENDERS_MAX`] (`workload.senders`).
    pub senders: u32,
    /// The size of their answers (`workload.kind`, `workload.request_size`).
    pub request_size: AnswerSize,
    /// Rounds that begin within this time after the first one are not measured (`run.warmup`).
    pub warmup: Duration,
    /// A round without an arriving byte for this long is recorded as stalled (`run.stall_limit`); `None`: never.
    pub stall_limit: Option<Duration>,
    /// Settings of requests at the pace of the aggregator's link (`shaping.method = "paced-credits"`). `None`: all
    /// requests at once.
    pub paced_credits: Option<PacedCreditsConfig>,
    /// Seed of the order of requests in each round.
    pub seed: u64,
}

impl Default for AggregatorConfig {
    /// Returns settings for one sender of 1 kB: every round measured, no stall limit, no pace.
    fn default() -> Self {
        Self {
            senders: 1,
            request_size: AnswerSize::FixedFragment(Bytes::new(1_000)),
            warmup: Duration::ZERO,
            stall_limit: None,
            paced_credits: None,
            seed: 0,
        }
    }
}

/// A setting that an aggregator refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AggregatorError {
    /// The number of senders is zero or too large.
    #[error("a barrier workload has 1 to {SENDERS_MAX} senders, not {senders}")]
    Senders {
        /// The number given.
        senders: u32,
    },
    /// A sender has nothing to answer.
    #[error("{size} is less than one byte for each of {senders} senders")]
    EmptyAnswer {
        /// The sum of all senders' answers.
        size: Bytes,
        /// The number of senders.
        senders: u32,
    },
    /// Paced credits lack a link rate or a segment.
    #[error("paced credits need a link rate and a segment above zero and a frame no smaller")]
    NoPace,
}

/// An occurrence in a barrier workload, for the result files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierRecord {
    /// All answers of a round have arrived.
    Round {
        /// The round's number, from 0.
        round: u64,
        /// Time of its requests.
        start: Instant,
        /// Arrival of the last byte of the last answer.
        end: Instant,
    },
    /// The connection to a sender was lost. The answer is requested again when the sender is back.
    Lost {
        /// The sender's number.
        sender: u16,
        /// The round in progress, or the next one.
        round: u64,
    },
    /// No byte arrived for [`AggregatorConfig::stall_limit`].
    Stalled {
        /// The round in progress.
        round: u64,
        /// Senders that have answered it.
        answered: u32,
    },
}

/// The aggregator's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AggregatorState {
    /// Before the first round: not every sender has connected yet.
    Connecting,
    /// A round is in progress.
    Collecting,
    /// The last round is over.
    Stopped,
}

/// The state of a sender at the aggregator.
#[derive(Debug, Clone, Copy, Default)]
struct SenderState {
    is_connected: bool,
    /// True if the request of the present round has left.
    is_requested: bool,
    /// Missing bytes of the present round's answer.
    owed: u64,
    /// The credit of the outstanding request and the time at which it left, if requests are paced.
    credit: Option<(ByteCredit, Instant)>,
}

/// The aggregator of a barrier workload.
#[derive(Debug, Clone)]
pub struct Aggregator {
    config: AggregatorConfig,
    state: AggregatorState,
    /// True if no further round will begin.
    is_stopping: bool,
    senders: Vec<SenderState>,
    /// The senders in the order of this round's requests.
    order: Vec<u16>,
    random: Random,
    connected: u32,
    /// Senders with an incomplete answer; 0 outside a round.
    unanswered: u32,
    round: u64,
    /// Start of the first round.
    first_start: Instant,
    start: Instant,
    /// Arrival of the last byte, or the round's start.
    last_arrival: Instant,
    paced: Option<PacedCredits>,
    /// Senders with requests that wait for credit.
    waiting: VecDeque<u16>,
    /// At most one request for each sender.
    out: VecDeque<(Peer, BarrierMessage)>,
    records: VecDeque<BarrierRecord>,
}

impl Aggregator {
    /// Makes an aggregator that waits for its senders to connect.
    ///
    /// # Errors
    /// If the number of senders is zero or too large, if a sender would answer nothing, or if the paced credits are
    /// invalid.
    pub fn new(config: AggregatorConfig) -> Result<Self, AggregatorError> {
        let AggregatorConfig { senders, request_size, .. } = config;
        if senders == 0 || senders > SENDERS_MAX {
            return Err(AggregatorError::Senders { senders });
        }
        // The last sender's share is the smallest; it must not be zero.
        if request_size.answer(senders - 1, senders).is_zero() {
            return Err(AggregatorError::EmptyAnswer { size: request_size.block(senders), senders });
        }
        if config.paced_credits.is_some_and(|paced| !paced.is_valid()) {
            return Err(AggregatorError::NoPace);
        }
        let paced = config.paced_credits.map(|settings| {
            let mut paced = PacedCredits::new(settings, senders as usize);
            (0..senders).for_each(|sender| paced.expect(sender as u16, request_size.answer(sender, senders)));
            paced
        });
        Ok(Self {
            state: AggregatorState::Connecting,
            is_stopping: false,
            senders: vec![SenderState::default(); senders as usize],
            // Numbers of up to `SENDERS_MAX` senders fit 16 bits.
            order: (0..senders).map(|sender| sender as u16).collect(),
            random: Random::new(config.seed),
            connected: 0,
            unanswered: 0,
            round: 0,
            first_start: Instant::START,
            start: Instant::START,
            last_arrival: Instant::START,
            paced,
            waiting: VecDeque::new(),
            out: VecDeque::new(),
            records: VecDeque::new(),
            config,
        })
    }

    /// Handles a new connection of a sender. The first round begins when all are connected. A sender that was lost in a
    /// round receives the request again.
    pub fn handle_connected(&mut self, now: Instant, peer: Peer) {
        // A new connection of a connected sender means that the old connection has ended.
        self.handle_closed(now, peer);
        let Some(sender) = self.sender_of(peer) else { return };
        self.senders[sender].is_connected = true;
        self.connected += 1;
        assert!(self.connected <= self.config.senders, "a sender connects twice");
        match self.state {
            AggregatorState::Connecting if self.connected == self.config.senders => {
                self.first_start = now;
                self.begin_round(now);
            }
            AggregatorState::Collecting if self.senders[sender].owed > 0 => {
                self.request(sender);
                self.send_requests(now);
            }
            AggregatorState::Connecting | AggregatorState::Collecting | AggregatorState::Stopped => {}
        }
    }

    /// Handles the loss of a connection to a sender. The received part of its answer is dropped. A second call has no
    /// effect.
    pub fn handle_closed(&mut self, now: Instant, peer: Peer) {
        let Some(sender) = self.sender_of(peer) else { return };
        if !self.senders[sender].is_connected {
            return;
        }
        self.senders[sender].is_connected = false;
        self.senders[sender].is_requested = false;
        self.connected -= 1;
        self.out.retain(|(to, _)| *to != peer);
        self.waiting.retain(|&other| usize::from(other) != sender);
        if let (Some(paced), Some((credit, _))) = (&mut self.paced, self.senders[sender].credit.take()) {
            paced.on_withdrawn(credit);
        }
        if self.senders[sender].owed > 0 {
            self.senders[sender].owed = self.answer_bytes(sender);
        }
        self.records.push_back(BarrierRecord::Lost { sender: sender as u16, round: self.round });
        self.send_requests(now);
    }

    /// Handles an answer, or a part of one.
    ///
    /// # Errors
    /// If no answer of a connected sender is outstanding, or if the part is longer than the rest of that answer. The
    /// state is then unchanged.
    pub fn handle_message(
        &mut self,
        now: Instant,
        peer: Peer,
        message: BarrierMessage,
    ) -> Result<(), Unexpected> {
        let unexpected = |why| Err(Unexpected { peer, message: message.name(), why });
        let BarrierMessage::Answer { bytes } = message else {
            return unexpected("an aggregator receives answers only");
        };
        let Some(sender) = self.sender_of(peer).filter(|&sender| self.senders[sender].is_connected) else {
            return unexpected("no sender is connected as this peer");
        };
        let state = &mut self.senders[sender];
        if !state.is_requested {
            return unexpected("nothing was requested");
        }
        if bytes.get() > state.owed {
            return unexpected("it is longer than the answer that was requested");
        }
        self.last_arrival = now;
        if bytes.is_zero() {
            return Ok(());
        }
        state.owed -= bytes.get();
        let is_complete = state.owed == 0;
        if let (true, Some(paced), Some((credit, sent))) = (is_complete, &mut self.paced, state.credit) {
            state.credit = None;
            let whole = self.config.request_size.answer(sender as u32, self.config.senders);
            paced.on_answer(now, sender as u16, 1, credit, sent, (whole, RelativeSize::default()));
        }
        if is_complete {
            assert!(self.unanswered > 0, "a sender that owed bytes was not counted");
            self.unanswered -= 1;
            if self.unanswered == 0 {
                self.end_round(now);
            }
        }
        self.send_requests(now);
        Ok(())
    }

    /// Handles the deadline of [`Self::poll_deadline`]: sends requests that received credit, and records a stall if no
    /// byte arrived for the limit.
    pub fn handle_deadline(&mut self, now: Instant) {
        self.send_requests(now);
        if self.stall_deadline().is_some_and(|deadline| deadline <= now) {
            let answered = self.config.senders - self.unanswered;
            self.records.push_back(BarrierRecord::Stalled { round: self.round, answered });
            self.last_arrival = now;
        }
    }

    /// Begins no further round, and completes the one in progress.
    pub fn handle_stop(&mut self, _now: Instant) {
        self.is_stopping = true;
        if self.state == AggregatorState::Connecting {
            self.state = AggregatorState::Stopped;
        }
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<(Peer, BarrierMessage)> {
        let (to, message) = self.out.pop_front()?;
        if let Some(sender) = self.sender_of(to) {
            assert!(self.senders[sender].is_connected, "a request to a lost sender is kept");
            self.senders[sender].is_requested = true;
        }
        Some((to, message))
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called, if no byte arrives before.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        let paced = self.paced.as_ref().filter(|_| !self.waiting.is_empty());
        let request = paced.and_then(PacedCredits::poll_deadline);
        [request, self.stall_deadline()].into_iter().flatten().min()
    }

    fn stall_deadline(&self) -> Option<Instant> {
        let limit = self.config.stall_limit.filter(|_| self.state == AggregatorState::Collecting)?;
        Some(later(self.last_arrival, limit))
    }

    /// Returns the next record.
    pub fn poll_record(&mut self) -> Option<BarrierRecord> {
        self.records.pop_front()
    }

    /// Returns true if the aggregator was stopped and the last round is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_stopping && self.unanswered == 0
    }

    /// Returns the number of complete rounds.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.round
    }

    /// Returns the number of senders with an incomplete answer in the present round.
    #[must_use]
    pub fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Returns the start of the present round.
    #[must_use]
    pub fn round_start(&self) -> Instant {
        self.start
    }

    /// Returns the missing bytes of a sender's answer in the present round; zero for an unknown sender.
    #[must_use]
    pub fn owed(&self, sender: u16) -> Bytes {
        self.senders.get(usize::from(sender)).map_or(Bytes::ZERO, |state| Bytes::new(state.owed))
    }

    /// Checks that the counts agree with the senders' states: in tests, and at the end of a simulation.
    ///
    /// # Panics
    /// If they do not.
    pub fn check_invariants(&self) {
        let count =
            |is: fn(&SenderState) -> bool| self.senders.iter().filter(|sender| is(sender)).count() as u32;
        assert_eq!(self.connected, count(|sender| sender.is_connected));
        assert_eq!(self.unanswered, count(|sender| sender.owed > 0));
        assert_eq!(self.unanswered > 0, self.state == AggregatorState::Collecting);
        assert!(self.senders.iter().all(|sender| sender.is_connected || !sender.is_requested));
        assert!(self.out.len() <= self.senders.len());
        if let Some(paced) = &self.paced {
            paced.check_invariants();
            let credits = self.senders.iter().filter_map(|sender| sender.credit);
            let held: u64 = credits.map(|(credit, _)| credit.bytes().get()).sum();
            assert!(
                (paced.outstanding() + paced.overdue()).get() <= held,
                "credit is held without an outstanding request"
            );
            let away = |&sender: &u16| !self.senders[usize::from(sender)].is_connected;
            assert!(!self.waiting.iter().any(away), "a request to a lost sender is kept");
        }
    }

    fn sender_of(&self, peer: Peer) -> Option<usize> {
        match peer {
            Peer::Readout(sender) if usize::from(sender) < self.senders.len() => Some(usize::from(sender)),
            Peer::Readout(_) | Peer::Supervisor | Peer::Standby | Peer::Collector(_) | Peer::Logger(_) => {
                None
            }
        }
    }

    fn answer_bytes(&self, sender: usize) -> u64 {
        self.config.request_size.answer(sender as u32, self.config.senders).get()
    }

    fn begin_round(&mut self, now: Instant) {
        assert!(
            self.unanswered == 0 && self.out.is_empty(),
            "a round begins before the last one is complete"
        );
        self.state = AggregatorState::Collecting;
        (self.start, self.last_arrival) = (now, now);
        self.unanswered = self.config.senders;
        self.random.shuffle(&mut self.order);
        for place in 0..self.order.len() {
            let sender = usize::from(self.order[place]);
            self.senders[sender].owed = self.answer_bytes(sender);
            self.senders[sender].is_requested = false;
            // A disconnected sender receives the request when it is back.
            if self.senders[sender].is_connected {
                self.request(sender);
            }
        }
        self.send_requests(now);
    }

    /// Sends a request, or queues it until there is credit.
    fn request(&mut self, sender: usize) {
        if self.paced.is_some() {
            self.waiting.push_back(sender as u16);
        } else {
            self.send_request(sender);
        }
    }

    /// Sends requests while credit is left.
    fn send_requests(&mut self, now: Instant) {
        while let Some(paced) = &mut self.paced
            && paced.may_send(now)
            && let Some(sender) = self.waiting.pop_front()
        {
            let credit = paced.on_sent(now, sender, 1, RelativeSize::default());
            self.senders[usize::from(sender)].credit = Some((credit, now));
            self.send_request(usize::from(sender));
        }
    }

    fn send_request(&mut self, sender: usize) {
        assert!(self.senders[sender].owed == self.answer_bytes(sender), "a part of an answer is requested");
        let is_measured = self.start.saturating_since(self.first_start) >= self.config.warmup;
        let request = BarrierMessage::Request { round: self.round, is_measured };
        self.out.push_back((Peer::Readout(sender as u16), request));
        assert!(self.out.len() <= self.senders.len(), "two requests are outstanding for a sender");
    }

    fn end_round(&mut self, now: Instant) {
        assert!(
            self.senders.iter().all(|sender| sender.owed == 0),
            "a round ends before every answer is complete"
        );
        self.records.push_back(BarrierRecord::Round { round: self.round, start: self.start, end: now });
        self.round += 1;
        if self.is_stopping {
            self.state = AggregatorState::Stopped;
        } else {
            self.begin_round(now);
        }
    }
}

#[cfg(test)]
mod tests;
