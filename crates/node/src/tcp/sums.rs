//! TCP's counters over one or several connections to the same peer, and their line in a file.

use std::time::Duration;

use fanin_message::TcpInfo;

/// Counters over successive connections to one peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of connections.
    pub connections: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` if the kernel does not count them (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Retransmitted segments that the peer had already received.
    pub duplicates: u64,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
    /// Segments that arrived at the peer.
    pub delivered: u64,
    /// Segments among `delivered` that were marked with congestion experienced (CE).
    pub delivered_ce: u64,
    /// Last sampled congestion window, segments.
    pub cwnd: u64,
    /// Largest sampled congestion window, segments.
    pub cwnd_max: u64,
    /// Last sampled smoothed round-trip time, ns.
    pub rtt_ns: u64,
    /// Minimum round-trip time, ns; zero if none was measured.
    pub rtt_min_ns: u64,
}

impl Sums {
    /// Returns the sums with the counters of one more connection.
    pub(super) fn with(mut self, info: &TcpInfo) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.connections += 1;
        self.segments += info.segments;
        self.retransmits += info.retransmits;
        self.timeouts = if self.connections == 1 {
            info.timeouts
        } else {
            self.timeouts.zip(info.timeouts).map(|(sum, more)| sum + more)
        };
        self.duplicates += info.duplicates;
        self.acked_bytes += info.acked_bytes;
        self.delivered += info.delivered;
        self.delivered_ce += info.delivered_ce;
        self.cwnd = info.cwnd.into();
        self.cwnd_max = self.cwnd_max.max(self.cwnd);
        self.rtt_ns = ns(info.rtt);
        let least = info.rtt_min.map_or(0, ns);
        self.rtt_min_ns = if self.rtt_min_ns == 0 || least == 0 {
            self.rtt_min_ns.max(least)
        } else {
            self.rtt_min_ns.min(least)
        };
        self
    }

    pub(super) fn fields(&self) -> [u64; 11] {
        [
            self.connections,
            self.segments,
            self.retransmits,
            self.duplicates,
            self.acked_bytes,
            self.delivered,
            self.delivered_ce,
            self.cwnd,
            self.cwnd_max,
            self.rtt_ns,
            self.rtt_min_ns,
        ]
    }

    pub(super) fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let timeouts = words.next()?;
        let timeouts = if timeouts == "-" { None } else { Some(timeouts.parse().ok()?) };
        let mut next = || words.next()?.parse().ok();
        Some(Self {
            timeouts,
            connections: next()?,
            segments: next()?,
            retransmits: next()?,
            duplicates: next()?,
            acked_bytes: next()?,
            delivered: next()?,
            delivered_ce: next()?,
            cwnd: next()?,
            cwnd_max: next()?,
            rtt_ns: next()?,
            rtt_min_ns: next()?,
        })
    }
}

/// Adds the sums of two incarnations of a process, the older one first.
pub(super) fn add(one: Sums, other: Sums) -> Sums {
    Sums {
        connections: one.connections + other.connections,
        segments: one.segments + other.segments,
        retransmits: one.retransmits + other.retransmits,
        timeouts: one.timeouts.zip(other.timeouts).map(|(one, other)| one + other),
        duplicates: one.duplicates + other.duplicates,
        acked_bytes: one.acked_bytes + other.acked_bytes,
        delivered: one.delivered + other.delivered,
        delivered_ce: one.delivered_ce + other.delivered_ce,
        cwnd: other.cwnd,
        cwnd_max: one.cwnd_max.max(other.cwnd_max),
        rtt_ns: other.rtt_ns,
        rtt_min_ns: match (one.rtt_min_ns, other.rtt_min_ns) {
            (0, least) | (least, 0) => least,
            (one, other) => one.min(other),
        },
    }
}
