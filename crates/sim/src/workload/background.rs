//! A workload with background traffic: connections of other applications between its hosts. Their receivers discard the data.
//!
//! These connections have the highest numbers. No technique acts on their ends ([`crate::engine::Engine::is_background`]).

use fanin_dataflow::{BackgroundHost, BackgroundSource, Transfer, background_seed};
use fanin_network::{CollectionWork, Connection, Roles, background_connections, background_pairs};
use fanin_recording::{CollectedEvent, CompletedTransfer};
use fanin_report::{EventRow, Span, Summary, SystemLevels};
use fanin_scenario::{Scenario, role_configs};
use fanin_units::Instant;

use super::interface::{HostOutbox, HostWorkload, MeasuredWorkload};
use crate::index::EndIndex;
use crate::techniques::MessageKind;

/// A message of the workload, or a background transfer.
pub(crate) enum MixedMessage<M> {
    Own(M),
    Transfer(Transfer),
}

impl<M> MixedMessage<M> {
    fn own(&self) -> Option<&M> {
        if let Self::Own(message) = self { Some(message) } else { None }
    }
}

/// A workload with the background traffic of its hosts.
pub(crate) struct WithBackground<W: HostWorkload> {
    pub(crate) own: W,
    own_outbox: HostOutbox<W::Message>,
    connections: Vec<Connection>,
    /// The first end of the first background connection.
    first_end: EndIndex,
    /// The sources on each host.
    sources: Vec<BackgroundHost>,
    completed: Vec<CompletedTransfer>,
}

/// Passes calls on to the workload.
macro_rules! pass_on {
    ($($name:ident() -> $result:ty;)+) => {
        $(fn $name(&self) -> $result {
            self.own.$name()
        })+
    };
}

impl<W: MeasuredWorkload> WithBackground<W> {
    /// Adds the background traffic of a scenario to its workload. Returns the workload itself if the scenario has none.
    pub(crate) fn new(own: W, scenario: &Scenario, roles: &Roles, seed: u64) -> Result<Self, W> {
        let Some(traffic) = role_configs::background(scenario) else { return Err(own) };
        let connections = background_connections(scenario, roles);
        let mut sources: Vec<BackgroundHost> = (0..own.hosts()).map(|_| BackgroundHost::default()).collect();
        for (connection, pair) in (0..).zip(background_pairs(scenario, roles)) {
            let seed = background_seed(seed, pair.readout, pair.collector, pair.number);
            let sender = connections[connection as usize].hosts[1];
            sources[sender as usize].add(connection, BackgroundSource::new(traffic, seed));
        }
        let first_end = 2 * own.connections(roles).len() as EndIndex;
        let own_outbox = HostOutbox::default();
        Ok(Self { own, own_outbox, connections, first_end, sources, completed: Vec::new() })
    }
}

impl<W: HostWorkload> WithBackground<W> {
    /// Calls the workload, and takes over its messages.
    fn with_own(
        &mut self,
        outbox: &mut HostOutbox<MixedMessage<W::Message>>,
        call: impl FnOnce(&mut W, &mut HostOutbox<W::Message>),
    ) {
        call(&mut self.own, &mut self.own_outbox);
        let messages = self.own_outbox.messages.drain(..);
        outbox
            .messages
            .extend(messages.map(|(end, bytes, message)| (end, bytes, MixedMessage::Own(message))));
        outbox.hosts.append(&mut self.own_outbox.hosts);
        outbox.taps.append(&mut self.own_outbox.taps);
    }

    /// Sends the transfers of a host that have begun.
    fn send(&mut self, host: usize, outbox: &mut HostOutbox<MixedMessage<W::Message>>) {
        while let Some((connection, transfer)) = self.sources[host].poll_transmit() {
            let end = self.first_end + 2 * connection + 1;
            outbox.send(end, transfer.bytes.get(), MixedMessage::Transfer(transfer));
        }
    }
}

impl<W: HostWorkload> HostWorkload for WithBackground<W> {
    const HAS_BACKGROUND: bool = true;

    type Message = MixedMessage<W::Message>;

    fn start(&mut self, now: Instant, plays: &dyn Fn(u32) -> bool, outbox: &mut HostOutbox<Self::Message>) {
        self.with_own(outbox, |own, own_outbox| own.start(now, plays, own_outbox));
        for host in (0..self.sources.len()).filter(|&host| plays(host as u32)) {
            self.sources[host].handle_connected(now);
            self.send(host, outbox);
        }
    }

    fn handle_message(
        &mut self,
        now: Instant,
        end: EndIndex,
        message: Self::Message,
        outbox: &mut HostOutbox<Self::Message>,
    ) {
        match message {
            MixedMessage::Own(message) => {
                self.with_own(outbox, |own, own_outbox| own.handle_message(now, end, message, own_outbox));
            }
            MixedMessage::Transfer(Transfer { began, .. }) => {
                self.completed.push(CompletedTransfer { began, at: now });
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant, host: u32, outbox: &mut HostOutbox<Self::Message>) {
        if self.own.poll_deadline(host) <= now {
            self.with_own(outbox, |own, own_outbox| own.handle_deadline(now, host, own_outbox));
        }
        self.sources[host as usize].handle_deadline(now);
        self.send(host as usize, outbox);
    }

    fn poll_deadline(&mut self, host: u32) -> Instant {
        let next = self.sources[host as usize].poll_deadline();
        self.own.poll_deadline(host).min(next.unwrap_or(Instant::FAR_FUTURE))
    }

    fn handle_timeout(
        &mut self,
        now: Instant,
        end: EndIndex,
        messages: &mut dyn Iterator<Item = &Self::Message>,
    ) {
        self.own.handle_timeout(now, end, &mut messages.filter_map(MixedMessage::own));
    }

    fn awaited(&mut self, host: u32, _scheduled: u64) -> u64 {
        self.own.poll_deadline(host).get()
    }

    fn event(&self, message: &Self::Message) -> Option<u64> {
        self.own.event(message.own()?)
    }

    fn take_collected(&mut self) -> Option<CollectedEvent> {
        self.own.take_collected()
    }

    fn kind(&self, message: &Self::Message) -> MessageKind {
        message.own().map_or(MessageKind::Other, |own| self.own.kind(own))
    }

    pass_on! { is_done() -> bool; assert_conserved() -> (); progress() -> u64; diagnose() -> String; }
    pass_on! { levels() -> Option<SystemLevels>; }
}

impl<W: MeasuredWorkload> MeasuredWorkload for WithBackground<W> {
    fn connections(&self, roles: &Roles) -> Vec<Connection> {
        [self.own.connections(roles), self.connections.clone()].concat()
    }

    fn work(&self, row: &EventRow) -> Option<CollectionWork> {
        self.own.work(row)
    }

    fn stop_assigning(&mut self, now: Instant) {
        self.own.stop_assigning(now);
    }

    fn summarise(&self, summary: &mut Summary, rows: &[EventRow], span: Span) {
        self.own.summarise(summary, rows, span);
    }

    fn transfers(&self) -> &[CompletedTransfer] {
        &self.completed
    }

    pass_on! { bulk_connections() -> u32; hosts() -> usize; rows() -> Vec<EventRow>; }
}
