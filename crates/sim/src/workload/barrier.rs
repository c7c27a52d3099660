//! The barrier workloads: drives the aggregator and the senders of `fanin_dataflow` over simulated TCP.

use fanin_dataflow::{
    Aggregator, AggregatorConfig, BarrierMessage, BarrierRecord, BarrierSender, BarrierSenderConfig, Peer,
    Purpose, SeedOwner, stream_seed,
};
use fanin_recording::CollectedEvent;
use fanin_report::{EventOutcome, EventRow, Span, Summary};
use fanin_scenario::{Scenario, role_configs};
use fanin_units::{Duration, Instant};

use super::interface::{HostOutbox, HostWorkload, MeasuredWorkload, ideal_of};
use crate::Error;
use crate::index::EndIndex;
use crate::techniques::MessageKind;
use fanin_network::{Collection, CollectionWork, Connection, Network, Roles, barrier_connections};

/// The aggregator's peer number for the senders.
const AGGREGATOR: Peer = Peer::Collector(0);

/// A completed round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Round {
    start: Instant,
    end: Instant,
    /// Retransmission timeouts in the round, over all connections.
    timeouts: u64,
}

/// A barrier workload. The aggregator is host 0, sender `s` host `s + 1`; their connection has the ends `2 s` and `2 s + 1`.
pub(crate) struct BarrierWorkload {
    aggregator: Aggregator,
    senders: Vec<BarrierSender>,
    /// Longest duration of a round that is not late; zero means no limit.
    deadline: Duration,
    /// Retransmission timeouts in the round in progress.
    timeouts: u64,
    completed: Vec<Round>,
    /// The round that was completed last, until [`HostWorkload::take_collected`] takes it.
    collected: Option<CollectedEvent>,
    /// One round with its ideal time.
    round: Collection,
}

impl BarrierWorkload {
    pub(crate) fn new(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        run: u64,
    ) -> Result<Self, Error> {
        let workload = &scenario.workload;
        let senders = workload.senders;
        // The run itself ends a workload that stalls, because the run sees packets, too.
        let config = AggregatorConfig {
            seed: stream_seed(run, SeedOwner::Collector, 0, Purpose::Role),
            ..role_configs::aggregator(scenario)
        };
        let aggregator = Aggregator::new(config)
            .map_err(|_| Error::unsupported("workload.request_size", "an empty answer"))?;
        let sender = |sender: u32| {
            BarrierSender::new(BarrierSenderConfig {
                seed: stream_seed(run, SeedOwner::Readout, sender.into(), Purpose::Role),
                ..role_configs::barrier_sender(scenario, sender)
            })
        };
        let round = Collection::round(scenario, network, roles)?;
        Ok(Self {
            aggregator,
            senders: (0..senders).map(sender).collect(),
            deadline: workload.deadline,
            timeouts: 0,
            completed: Vec::new(),
            collected: None,
            round,
        })
    }

    /// Drains the aggregator: takes its completed rounds, and sends the requests of the next one.
    fn drain(&mut self, outbox: &mut HostOutbox<BarrierMessage>) {
        while let Some(record) = self.aggregator.poll_record() {
            let BarrierRecord::Round { start, end, .. } = record else {
                unreachable!("simulated connections are never lost, and the run watches for stalls")
            };
            let timeouts = std::mem::take(&mut self.timeouts);
            self.collected = Some(CollectedEvent {
                event: self.completed.len() as u64,
                assigned: start.get(),
                at: end.get(),
                time: (end - start).get(),
                ideal: Some(self.round.time().get()),
            });
            self.completed.push(Round { start, end, timeouts });
        }
        while let Some((to, message)) = self.aggregator.poll_transmit() {
            let Peer::Readout(sender) = to else { unreachable!("an aggregator sends to senders") };
            outbox.send(2 * u32::from(sender), message.wire_bytes().get(), message);
        }
    }
}

impl HostWorkload for BarrierWorkload {
    type Message = BarrierMessage;

    fn handle_message(
        &mut self,
        now: Instant,
        end: EndIndex,
        message: BarrierMessage,
        outbox: &mut HostOutbox<BarrierMessage>,
    ) {
        let sender = end / 2;
        let handled = match message {
            BarrierMessage::Request { .. } => {
                self.senders[sender as usize].handle_message(now, AGGREGATOR, message)
            }
            BarrierMessage::Answer { .. } => {
                self.aggregator.handle_message(now, Peer::Readout(sender as u16), message)
            }
        };
        handled.unwrap_or_else(|unexpected| panic!("{unexpected}"));
        self.drain(outbox);
    }

    fn start(&mut self, now: Instant, plays: &dyn Fn(u32) -> bool, outbox: &mut HostOutbox<BarrierMessage>) {
        for (place, sender) in self.senders.iter_mut().enumerate() {
            sender.handle_connected(now, AGGREGATOR);
            if plays(0) {
                self.aggregator.handle_connected(now, Peer::Readout(place as u16));
            }
        }
        self.drain(outbox);
    }

    fn handle_deadline(&mut self, now: Instant, host: u32, outbox: &mut HostOutbox<BarrierMessage>) {
        let Some(place) = host.checked_sub(1) else {
            self.aggregator.handle_deadline(now);
            self.drain(outbox);
            return;
        };
        let sender = &mut self.senders[place as usize];
        sender.handle_deadline(now);
        while let Some((_, message)) = sender.poll_transmit() {
            outbox.send(2 * place + 1, message.wire_bytes().get(), message);
        }
    }

    fn poll_deadline(&mut self, host: u32) -> Instant {
        let deadline = match host.checked_sub(1) {
            None => self.aggregator.poll_deadline(),
            Some(sender) => self.senders[sender as usize].poll_deadline(),
        };
        deadline.unwrap_or(Instant::FAR_FUTURE)
    }

    fn handle_timeout(
        &mut self,
        _now: Instant,
        _end: EndIndex,
        _messages: &mut dyn Iterator<Item = &BarrierMessage>,
    ) {
        self.timeouts += 1;
    }

    fn event(&self, _message: &BarrierMessage) -> Option<u64> {
        // A message always belongs to the present round.
        Some(self.completed.len() as u64)
    }

    fn take_collected(&mut self) -> Option<CollectedEvent> {
        self.collected.take()
    }

    fn kind(&self, message: &BarrierMessage) -> MessageKind {
        match message {
            BarrierMessage::Request { .. } => MessageKind::Request,
            BarrierMessage::Answer { .. } => MessageKind::Answer,
        }
    }

    fn is_done(&self) -> bool {
        self.aggregator.is_done()
    }

    fn assert_conserved(&self) {
        assert!(self.completed.is_sorted_by_key(|round| round.start), "rounds overlap");
        self.aggregator.check_invariants();
    }

    fn progress(&self) -> u64 {
        let senders = self.senders.len() as u64;
        self.aggregator.rounds() * (senders + 1) + senders - u64::from(self.aggregator.unanswered())
    }

    fn diagnose(&self) -> String {
        format!(
            "the aggregator has waited since {} for {} of {} senders; {} rounds were completed before",
            self.aggregator.round_start(),
            self.aggregator.unanswered(),
            self.senders.len(),
            self.aggregator.rounds()
        )
    }
}

impl MeasuredWorkload for BarrierWorkload {
    fn connections(&self, roles: &Roles) -> Vec<Connection> {
        barrier_connections(roles)
    }

    fn bulk_connections(&self) -> u32 {
        self.senders.len() as u32
    }

    fn hosts(&self) -> usize {
        self.senders.len() + 1
    }

    fn rows(&self) -> Vec<EventRow> {
        let row = |(number, round): (usize, &Round)| EventRow {
            id: number as u64,
            size_bytes: self.round.payload.get(),
            assigned_ps: round.start.get(),
            first_request_ps: Some(round.start.get()),
            last_byte_ps: Some(round.end.get()),
            collection_time_ps: Some((round.end - round.start).get()),
            ideal_ps: Some(self.round.time().get()),
            timeouts: Some(round.timeouts),
            outcome: EventOutcome::Collected,
            ..EventRow::default()
        };
        self.completed.iter().enumerate().map(row).collect()
    }

    fn work(&self, _row: &EventRow) -> Option<CollectionWork> {
        let wire_bytes = self.round.wire_bytes;
        Some(CollectionWork { wire_bytes, joined_bytes: wire_bytes, least: self.round.time() })
    }

    fn stop_assigning(&mut self, now: Instant) {
        self.aggregator.handle_stop(now);
    }

    fn summarise(&self, summary: &mut Summary, rows: &[EventRow], span: Span) {
        summary.fill_requests(rows, span, 1);
        if !self.deadline.is_zero() {
            summary.fill_deadlines(rows, span, self.deadline.get());
        }
        summary.ideal = Some(ideal_of(&self.round));
    }
}
