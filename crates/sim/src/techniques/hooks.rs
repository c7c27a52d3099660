//! The hooks by which techniques act on a run.

use fanin_dataflow::{Collector, ControlMessage, Message, Peer};
use fanin_network::{Ideal, Network, Roles};
use fanin_report::Summary;
use fanin_scenario::Scenario;
use fanin_tcp::Stats;
use fanin_units::{Bytes, Instant};
use serde_json::Value;

use crate::Error;
use crate::engine::{Engine, HeldBack};
use crate::fabric::Crossing;
use crate::index::EndIndex;
use crate::occurrence::TechniqueStep;

/// The kinds of messages that techniques on receivers distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    /// The message requests an answer over the same connection.
    Request,
    /// The message is such an answer.
    Answer,
    /// The message is neither of them.
    Other,
}

/// Place at which a technique acts during a run. The place selects the hooks that are called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ActsAt {
    /// Nowhere: the technique only has figures.
    Nowhere,
    /// On hosts: all hooks but [`on_forward`](TechniqueHooks::on_forward).
    Hosts,
    /// At switches: [`on_forward`](TechniqueHooks::on_forward).
    Switches,
}

/// Input of a technique's builder: the scenario and the connected, idle network.
pub(crate) struct Setup<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) network: &'a Network,
    pub(crate) roles: &'a Roles,
    pub(crate) engine: &'a Engine,
    /// Connections, from the first, that carry bulk data.
    pub(crate) bulk_connections: u32,
    /// The technique's number, for the steps that it schedules.
    pub(crate) technique: u8,
    /// Seed of the run.
    pub(crate) seed: u64,
    /// True if frames are captured.
    pub(crate) captures: bool,
}

/// A run's state at its end, for figures.
pub(crate) struct RunView<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) network: &'a Network,
    pub(crate) engine: &'a Engine,
}

/// Hooks of a technique in force. The default of each optional hook does nothing.
pub(crate) trait TechniqueHooks: Send {
    /// Returns the technique's key in the summary.
    fn key(&self) -> &'static str;

    /// Returns the technique's figures over the whole run; `None` without any.
    fn figures(&self, view: &RunView<'_>) -> Option<Value>;

    /// Returns the place at which the technique acts during the run. [`on_start`](Self::on_start) and
    /// [`figures`](Self::figures) are called at any place.
    fn acts_at(&self) -> ActsAt {
        ActsAt::Nowhere
    }

    /// Called when the run begins: connections are open, nothing has been sent.
    fn on_start(&mut self, _engine: &mut Engine) {}

    /// Called when an endpoint has written a segment into the free `place`. Returns true to keep the segment and send it later.
    fn on_send(&mut self, _engine: &mut Engine, _end: EndIndex, _place: u32) -> bool {
        false
    }

    /// Called when an endpoint has nothing more to send for now.
    fn on_sent(&mut self, _engine: &mut Engine, _end: EndIndex) {}

    /// Called when an endpoint has handled a segment of `payload` bytes in a frame of `wire_bytes`.
    fn on_segment(&mut self, _engine: &mut Engine, _end: EndIndex, _payload: u32, _wire_bytes: u32) {}

    /// Called when a frame for an end arrives at a switch, before its output's queue. The technique may read and change the
    /// segment in `place` of the fabric.
    fn on_forward(&mut self, _engine: &mut Engine, _crossing: Crossing, _end: EndIndex, _place: usize) {}

    /// Called before applications send messages of these kinds by these ends.
    fn on_messages(&mut self, _engine: &mut Engine, _messages: &[(EndIndex, MessageKind)]) {}

    /// Called when an end has received a whole message.
    fn on_received(&mut self, _engine: &mut Engine, _end: EndIndex, _kind: MessageKind) {}

    /// Carries out a step that the technique has scheduled.
    fn on_step(&mut self, _engine: &mut Engine, _step: TechniqueStep) {}

    /// Returns the payload and frames that the technique keeps and has not sent yet.
    fn held_back(&self) -> HeldBack {
        HeldBack::default()
    }

    /// Asserts that the technique's own accounts balance.
    fn assert_conserved(&self, engine: &Engine);
}

/// A transport that takes the place of TCP on all hosts.
pub(crate) trait TransportHooks: Send {
    /// Returns the technique's key in the summary.
    fn key(&self) -> &'static str;

    /// Returns the technique's figures over the whole run.
    fn figures(&self) -> Value;

    /// Called when the run begins.
    fn on_start(&mut self, _engine: &mut Engine) {}

    /// Takes a message of `bytes` bytes; returns the stream offset behind its last byte.
    fn write(&mut self, end: EndIndex, bytes: u64) -> u64;

    /// Handles the packet in a place of the fabric.
    fn handle_packet(&mut self, engine: &mut Engine, end: EndIndex, place: usize);

    /// Sends all that an end may send, and arms its timers.
    fn pump(&mut self, engine: &mut Engine, end: EndIndex);

    /// Handles an end's timer, if due. Returns the sending end of overdue data, if any.
    fn handle_timer(&mut self, now: u64, end: EndIndex) -> Option<EndIndex>;

    /// Returns the bytes that an end has received without a gap.
    fn delivered(&self, end: EndIndex) -> u64;

    /// Returns the counters of an end, in TCP's terms, and the number of its bytes known to have arrived.
    fn stats(&self, end: EndIndex) -> (Stats, u64);

    /// Asserts that the technique's own accounts balance.
    fn assert_conserved(&self);
}

/// An action of a technique that schedules answers. The workload carries out the action.
pub(crate) enum AnswerAction {
    /// Sends a message of the technique.
    Send { from: Peer, to: Peer, message: ControlMessage },
    /// Sends an answer that was held back.
    Release { readout: u16, collector: u16, bytes: u64, message: Message<Bytes> },
    /// All hosts close their connections to a failed host.
    Exclude(Peer),
}

/// Input of a builder of [`AnswerHooks`].
pub(crate) struct AnswerSetup<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) ideal: &'a Ideal,
    pub(crate) readouts: u32,
    pub(crate) collectors: u32,
    /// Bytes of a mean answer.
    pub(crate) answer_bytes: u64,
}

/// Hooks of a technique above the transport. The technique releases the answers that readouts hold back, and excludes
/// failed hosts.
pub(crate) trait AnswerHooks: Send {
    /// Returns the technique's key in the summary.
    fn key(&self) -> &'static str;

    /// Returns the technique's figures over the whole run.
    fn figures(&self) -> Value;

    /// Called when the run begins.
    fn on_start(&mut self);

    /// Takes a readout's answer for a collector.
    fn on_answer(&mut self, now: Instant, readout: u16, collector: u16, bytes: u64, message: Message<Bytes>);

    /// Called when an event was collected without `missing` of its fragments.
    fn on_collected(&mut self, missing: u32);

    /// Takes a message of the technique that has arrived at host `to`.
    fn on_message(&mut self, now: Instant, from: Peer, to: Peer, message: ControlMessage);

    /// Handles the deadline of [`poll_deadline`](Self::poll_deadline) on the supervisor's host.
    fn on_deadline(&mut self, now: Instant);

    /// Returns the next deadline on the supervisor's host; `None` without one.
    fn poll_deadline(&self) -> Option<Instant>;

    /// Returns the next action; `None` if no action is left.
    fn poll_action(&mut self) -> Option<AnswerAction>;

    /// Called when a failed host is excluded.
    fn on_excluded(&mut self, host: Peer);

    /// Returns true if a host has failed.
    fn has_failed(&self, host: Peer) -> bool;

    /// Asserts that the technique's own accounts balance.
    fn assert_conserved(&self);
}

/// A technique's part in a run.
pub(crate) enum Installed {
    Technique(Box<dyn TechniqueHooks>),
    Transport(Box<dyn TransportHooks>),
}

/// Converts a number of packets to the type of TCP's counters.
pub(crate) fn packets(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).max(1)
}

/// The functions of a technique. Each function does nothing if the scenario does not use the technique.
#[derive(Clone, Copy)]
pub(crate) struct TechniqueFunctions {
    /// Builds the parts that act below the applications.
    pub(crate) build: fn(&Setup<'_>) -> Result<Option<Installed>, Error>,
    /// Changes TCP's settings.
    pub(crate) configure: fn(&fanin_scenario::Transport, &mut fanin_tcp::Config),
    /// Builds the scheduler of the readouts' answers.
    pub(crate) schedule_answers: fn(&AnswerSetup<'_>) -> Option<Box<dyn AnswerHooks>>,
    /// Adds the figures of the parts in the collectors to the summary.
    pub(crate) report_collectors: fn(&[Collector<Bytes>], &mut Summary),
    /// Returns the cause of time in which the technique holds data back at hosts: its kind, and the awaited thing in words.
    pub(crate) holding_cause: fn(&Setup<'_>) -> Option<(&'static str, &'static str)>,
    /// Returns true if collectors send requests only within their credit.
    pub(crate) holds_requests: fn(&Setup<'_>) -> bool,
}

impl TechniqueFunctions {
    /// A technique without a function.
    pub(crate) const NONE: Self = Self {
        build: |_| Ok(None),
        configure: |_, _| {},
        schedule_answers: |_| None,
        report_collectors: |_, _| {},
        holding_cause: |_| None,
        holds_requests: |_| false,
    };
}

impl Installed {
    pub(crate) fn technique(technique: impl TechniqueHooks + 'static) -> Self {
        Self::Technique(Box::new(technique))
    }
}
