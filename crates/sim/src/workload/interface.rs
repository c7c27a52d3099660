//! The interface between hosts' applications and the partition that plays them.

use fanin_network::{Collection, CollectionWork, Connection, Roles};
use fanin_recording::{CollectedEvent, CompletedTransfer};
use fanin_report::{EventRow, IdealFigures, Span, Summary, SystemLevels};
use fanin_units::Instant;

use crate::index::EndIndex;
use crate::techniques::MessageKind;

/// The applications on the hosts of a partition.
///
/// Applications choose the numbers of their hosts; the numbers only distinguish the hosts' deadlines.
pub(crate) trait HostWorkload {
    /// True if background connections may exist. A constant, so that hops of other runs do not ask for them.
    const HAS_BACKGROUND: bool = false;
    /// The content of a message.
    type Message;

    /// Sends the first messages of the hosts that `plays` names.
    fn start(&mut self, now: Instant, plays: &dyn Fn(u32) -> bool, outbox: &mut HostOutbox<Self::Message>);

    /// Handles a whole message, received at one end of a connection.
    fn handle_message(
        &mut self,
        now: Instant,
        end: EndIndex,
        message: Self::Message,
        outbox: &mut HostOutbox<Self::Message>,
    );

    /// Handles a host's deadline.
    fn handle_deadline(&mut self, now: Instant, host: u32, outbox: &mut HostOutbox<Self::Message>);

    /// Returns a host's next deadline.
    fn poll_deadline(&mut self, host: u32) -> Instant;

    /// Returns the time that the work of a host awaits; `scheduled` is that of its timer.
    fn awaited(&mut self, _host: u32, scheduled: u64) -> u64 {
        scheduled
    }

    /// Handles an expired retransmission timer of a sending end. `messages` are the messages of its stream that are not yet
    /// received as a whole.
    fn handle_timeout(
        &mut self,
        now: Instant,
        end: EndIndex,
        messages: &mut dyn Iterator<Item = &Self::Message>,
    );

    /// Returns the event, or round, that a request or an answer belongs to; `None` for other messages.
    fn event(&self, message: &Self::Message) -> Option<u64>;

    /// Takes the event that was completed last; returns it once.
    fn take_collected(&mut self) -> Option<CollectedEvent>;

    /// Returns the kind of a message, for techniques that act on requests and answers.
    fn kind(&self, message: &Self::Message) -> MessageKind;

    /// Returns the levels of the roles now; `None` without the roles of event building.
    fn levels(&self) -> Option<SystemLevels> {
        None
    }

    /// Returns true if all work is finished.
    fn is_done(&self) -> bool;

    /// Asserts that no unit of work was lost or counted twice.
    fn assert_conserved(&self);

    /// Returns a number that changes with progress. A run ends if the number stays constant for long.
    fn progress(&self) -> u64;

    /// Returns the waiting hosts of a run without progress, each with the object of its wait.
    fn diagnose(&self) -> String;
}

/// Requests of a workload to its partition.
pub(crate) struct HostOutbox<M> {
    /// Messages to send, in order: the end, the length in bytes, the content.
    pub(crate) messages: Vec<(EndIndex, u64, M)>,
    /// Further hosts whose deadlines may have changed.
    pub(crate) hosts: Vec<u32>,
    /// Ends with true if recording of the host's link is to begin, false if it is to end.
    pub(crate) taps: Vec<(EndIndex, bool)>,
}

impl<M> Default for HostOutbox<M> {
    fn default() -> Self {
        Self { messages: Vec::new(), hosts: Vec::new(), taps: Vec::new() }
    }
}

impl<M> HostOutbox<M> {
    /// Sends `message`, `bytes` long, from one end of a connection to the other.
    #[inline]
    pub(crate) fn send(&mut self, end: EndIndex, bytes: u64, message: M) {
        assert!(bytes > 0, "a message without a length");
        self.messages.push((end, bytes, message));
    }

    /// Starts or ends recording of all frames on the links of this end's host.
    pub(crate) fn tap(&mut self, end: EndIndex, on: bool) {
        self.taps.push((end, on));
    }
}

/// The connections that a workload needs, and its results.
pub(crate) trait MeasuredWorkload: HostWorkload {
    /// Returns the connections, in order: connection `k` has the ends `2 k` and `2 k + 1`.
    fn connections(&self, roles: &Roles) -> Vec<Connection>;
    /// Returns the number of connections, from the first, that carry bulk data: answers from their second ends to their first.
    fn bulk_connections(&self) -> u32;
    /// Returns the number of hosts that have deadlines.
    fn hosts(&self) -> usize;
    /// Returns the rows of the events or requests.
    fn rows(&self) -> Vec<EventRow>;
    /// Returns the bytes and the least time of a row; `None` if the row's time is not the time of a single collection.
    fn work(&self, row: &EventRow) -> Option<CollectionWork>;
    /// Stops the begin of new work; work in progress is finished.
    fn stop_assigning(&mut self, now: Instant);
    /// Fills in the workload's figures.
    fn summarise(&self, summary: &mut Summary, rows: &[EventRow], span: Span);
    /// Returns the background transfers that are complete.
    fn transfers(&self) -> &[CompletedTransfer] {
        &[]
    }
}

/// Returns the ideal of a collection, as results state it.
pub(super) fn ideal_of(collection: &Collection) -> IdealFigures {
    IdealFigures {
        collection_time_ms: Some(collection.time().as_millis_f64()),
        goodput_bps: Some(collection.goodput_bps()),
        how: Some(collection.how()),
    }
}
