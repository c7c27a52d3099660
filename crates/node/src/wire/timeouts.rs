//! Attributes TCP's retransmission timeouts to events with unacknowledged requests or answers on the connection.
//!
//! The kernel counts timeouts by connection (`tcpi_total_rto`). Each timeout is attributed to every event that had an
//! unacknowledged message on the connection at that time, as in the simulator. An acknowledgement restarts the timer.
//! Therefore, a message that was unacknowledged half an RTO before a timeout is still unacknowledged at the timeout. The
//! kernel is polled twice an RTO while a message is unacknowledged, and before each message that joins others. It is not
//! polled otherwise.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use fanin_dataflow::{L1Id, Peer};
use fanin_message::TcpInfo;

/// Minimum interval between polls of the kernel, for short RTOs.
const SAMPLE_EVERY_MIN: Duration = Duration::from_millis(4);
/// Maximum interval between polls while a message is unacknowledged.
const SAMPLE_EVERY_MAX: Duration = Duration::from_millis(250);

/// Unacknowledged messages by connection, and the events that timeouts delayed.
#[derive(Debug, Default)]
pub(crate) struct Unacknowledged {
    connections: HashMap<Peer, WatchedConnection>,
    /// Number of connections with unacknowledged messages.
    waiting: usize,
    /// Time before which no connection is due.
    next: Option<Instant>,
    /// Delayed events, each with its number of timeouts.
    found: VecDeque<(L1Id, u32)>,
}

#[derive(Debug, Default)]
struct WatchedConnection {
    /// Bytes of all messages that the connection has taken.
    given: u64,
    /// Unacknowledged messages: the event, and the value of `given` at the end of the message.
    messages: VecDeque<(L1Id, u64)>,
    /// The kernel's count of timeouts at the last poll.
    timeouts: u64,
    /// Latest time of the next poll.
    sample_at: Option<Instant>,
    every: Duration,
}

impl Unacknowledged {
    /// Adds an established connection. Timeouts in its handshake delay no event.
    pub(crate) fn handle_connected(&mut self, peer: Peer, now: Instant, info: Option<&TcpInfo>) {
        let mut connection = WatchedConnection { every: SAMPLE_EVERY_MAX, ..WatchedConnection::default() };
        if let Some(info) = info {
            connection.update(now, info);
        }
        if let Some(older) = self.connections.insert(peer, connection) {
            self.waiting -= usize::from(!older.messages.is_empty());
        }
    }

    /// Adds a sent message of `bytes` to a connection. `event` is the event that it requests or answers; `None` for others.
    pub(crate) fn handle_sent(&mut self, peer: Peer, now: Instant, event: Option<L1Id>, bytes: u64) {
        let Some(connection) = self.connections.get_mut(&peer) else { return };
        connection.given += bytes;
        let Some(event) = event else { return };
        if connection.messages.is_empty() {
            self.waiting += 1;
            let sample = now + connection.every;
            connection.sample_at = Some(sample);
            self.next = Some(self.next.map_or(sample, |next| next.min(sample)));
        }
        connection.messages.push_back((event, connection.given));
    }

    /// Returns true if messages of events are unacknowledged on a connection, as of the last poll.
    pub(crate) fn waits(&self, peer: Peer) -> bool {
        self.connections.get(&peer).is_some_and(|connection| !connection.messages.is_empty())
    }

    /// Handles the kernel's counters of a connection. `outbox` is the number of bytes that wait before the kernel.
    pub(crate) fn handle_tcp_info(&mut self, peer: Peer, now: Instant, info: &TcpInfo, outbox: u64) {
        let Some(connection) = self.connections.get_mut(&peer) else { return };
        let had_some = !connection.messages.is_empty();
        connection.attribute(info, &mut self.found);
        let left = outbox + info.unsent_bytes + info.in_flight_bytes;
        while connection.messages.front().is_some_and(|&(_, end)| connection.given - end >= left) {
            connection.messages.pop_front();
        }
        connection.update(now, info);
        self.waiting -= usize::from(had_some && connection.messages.is_empty());
    }

    /// Handles the end of a connection, with its last counters.
    pub(crate) fn handle_end(&mut self, peer: Peer, info: Option<&TcpInfo>) {
        let Some(connection) = self.connections.remove(&peer) else { return };
        self.waiting -= usize::from(!connection.messages.is_empty());
        if let Some(info) = info {
            connection.attribute(info, &mut self.found);
        }
    }

    /// Returns the earliest time at which [`Self::due`] may return a peer; `None` without unacknowledged messages.
    pub(crate) fn next_sample(&self) -> Option<Instant> {
        self.next.filter(|_| self.waiting > 0)
    }

    /// Returns the peers whose connections must be polled now, and schedules their next poll.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Peer> {
        let mut due = Vec::new();
        if self.next_sample().is_none_or(|next| next > now) {
            return due;
        }
        self.next = None;
        for (&peer, connection) in &mut self.connections {
            if connection.sample_at.is_some_and(|at| at <= now) {
                connection.sample_at = Some(now + connection.every);
                due.push(peer);
            }
            self.next = [self.next, connection.sample_at].into_iter().flatten().min();
        }
        due
    }

    /// Returns the next delayed event, and its number of timeouts.
    pub(crate) fn poll(&mut self) -> Option<(L1Id, u32)> {
        self.found.pop_front()
    }
}

impl WatchedConnection {
    /// Attributes the timeouts since the last poll to each event with an unacknowledged message, once.
    fn attribute(&self, info: &TcpInfo, found: &mut VecDeque<(L1Id, u32)>) {
        let more = info.timeouts.unwrap_or_default().saturating_sub(self.timeouts);
        let Some(times) = u32::try_from(more).ok().filter(|&times| times > 0) else { return };
        let first = found.len();
        for &(event, _) in &self.messages {
            if !found.range(first..).any(|&(other, _)| other == event) {
                found.push_back((event, times));
            }
        }
    }

    fn update(&mut self, now: Instant, info: &TcpInfo) {
        self.timeouts = info.timeouts.unwrap_or_default();
        self.every = (info.rto / 2).clamp(SAMPLE_EVERY_MIN, SAMPLE_EVERY_MAX);
        self.sample_at = (!self.messages.is_empty()).then(|| now + self.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READOUT: Peer = Peer::Readout(3);

    fn info(timeouts: u64, in_flight_bytes: u64) -> TcpInfo {
        let rto = Duration::from_millis(40);
        TcpInfo { timeouts: Some(timeouts), in_flight_bytes, rto, ..TcpInfo::default() }
    }

    fn found(all: &mut Unacknowledged) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| all.poll()).map(|(event, times)| (event.0, times)).collect()
    }

    #[test]
    fn waiting_peers_are_delayed_and_acknowledged_ones_are_not() {
        let (mut all, now) = (Unacknowledged::default(), Instant::now());
        // Two timeouts of the handshake belong to no event.
        all.handle_connected(READOUT, now, Some(&info(2, 0)));
        assert_eq!((all.waits(READOUT), all.next_sample()), (false, None));
        all.handle_sent(READOUT, now, None, 500);
        assert!(!all.waits(READOUT), "it is no event's");
        all.handle_sent(READOUT, now, Some(L1Id(1)), 1000);
        assert_eq!(all.next_sample(), Some(now + Duration::from_millis(20)));
        assert!(all.due(now).is_empty());
        // All bytes are in flight, those of the earlier message included.
        all.handle_tcp_info(READOUT, now, &info(2, 1500), 0);
        all.handle_sent(READOUT, now, Some(L1Id(2)), 1000);
        let later = now + Duration::from_millis(20);
        assert_eq!(all.due(later), [READOUT]);
        assert_eq!(
            (all.due(later), all.next_sample()),
            (Vec::new(), Some(later + Duration::from_millis(20)))
        );
        // One byte of event 1 is unacknowledged, and a timeout occurred: both events were delayed.
        all.handle_tcp_info(READOUT, later, &info(3, 1001), 0);
        assert_eq!(found(&mut all), [(1, 1), (2, 1)]);
        // Event 1 is acknowledged. Two more timeouts delay only event 2.
        all.handle_tcp_info(READOUT, later, &info(3, 0), 1000);
        all.handle_tcp_info(READOUT, later, &info(5, 600), 400);
        assert_eq!(found(&mut all), [(2, 2)]);
        all.handle_tcp_info(READOUT, later, &info(5, 0), 0);
        assert_eq!((all.waits(READOUT), all.next_sample()), (false, None));
        all.handle_tcp_info(READOUT, later, &info(6, 0), 0);
        assert_eq!(found(&mut all), [], "no message waited");
    }

    #[test]
    fn an_event_with_two_requests_suffers_once_and_an_end_is_a_sample() {
        let (mut all, now) = (Unacknowledged::default(), Instant::now());
        all.handle_connected(READOUT, now, Some(&info(0, 0)));
        for event in [7, 7, 8, 7] {
            all.handle_sent(READOUT, now, Some(L1Id(event)), 30);
        }
        all.handle_end(READOUT, Some(&info(1, 120)));
        assert_eq!(found(&mut all), [(7, 1), (8, 1)]);
        assert_eq!(all.next_sample(), None);
        // A younger connection replaces one whose end is not reported yet.
        all.handle_connected(READOUT, now, Some(&info(0, 0)));
        all.handle_sent(READOUT, now, Some(L1Id(9)), 30);
        all.handle_connected(READOUT, now, None);
        assert_eq!((all.waits(READOUT), all.next_sample(), all.due(now)), (false, None, Vec::new()));
        // A kernel without this counter reports no timeouts.
        all.handle_sent(READOUT, now, Some(L1Id(10)), 30);
        all.handle_tcp_info(READOUT, now, &TcpInfo { timeouts: None, ..info(0, 30) }, 0);
        assert_eq!((found(&mut all), all.waits(READOUT)), (Vec::new(), true));
    }
}
