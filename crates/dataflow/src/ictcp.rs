//! ICTCP: a receiver that adjusts each connection's window from its throughput (Wu et al., IEEE/ACM ToN 2013, §IV to §V).
//!
//! Time at a receiving host runs in slots of two round trips; the second half of each is for increases. A window may grow
//! if its connection's throughput is near the window's limit and the link has room below nine tenths of its rate. If the
//! throughput is far below for three round trips, the window loses a segment. No window is below two segments.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use fanin_units::Rate;

/// The share of the link that windows may use (α, §IV.B).
const USABLE: f64 = 0.9;
/// Weight of the old throughput in the average (β, §V.B).
const WEIGHT: f64 = 0.75;
/// The window may grow if the measured throughput is nearer than this to the expected one (γ1), as a share of it (§V.B).
const NEAR: f64 = 0.1;
/// The window shrinks if the measured throughput is further than this from the expected one (γ2), as a share of it (§V.B).
const FAR: f64 = 0.5;
/// Consecutive round trips with low throughput before a window shrinks (§V.B).
const LAGS: u8 = 3;
/// The least window in segments (§V.C).
const WINDOW_MIN: u32 = 2;
/// Free share of the link below which a doubled window above the mean loses one segment (§V.C).
const SCARCE: f64 = 0.2;

/// One incoming connection.
#[derive(Clone, Debug)]
struct Incoming {
    window: u32,
    bytes: u64,
    since: u64,
    throughput: f64,
    lags: u8,
    /// True in slow start, where the window doubles. Ends when growth is refused, or the throughput stays low.
    is_in_slow_start: bool,
}

/// The connections into one host.
#[derive(Clone, Debug)]
struct Interface {
    rate: f64,
    /// Start of the present slot, and the bytes received in it.
    slot_from: u64,
    bytes: u64,
    /// Bytes a second by which windows may still grow in this slot.
    quota: f64,
    free: f64,
    /// Number of connections, and the sum of their windows.
    connections: u32,
    windows: u32,
}

/// Counters of window changes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct IctcpCounters {
    /// Windows that grew.
    pub increases: u64,
    /// Windows that shrank.
    pub decreases: u64,
    /// The largest window, in segments.
    pub window_max: u32,
}

/// The windows of the connections into all receiving hosts. The driver numbers hosts and ends.
#[derive(Debug)]
pub struct Ictcp {
    mss: u32,
    hosts: BTreeMap<u32, Interface>,
    /// The connections, by their receiving end.
    incoming: Vec<Option<Incoming>>,
    counters: IctcpCounters,
}

impl Ictcp {
    /// Makes the state without connections. Windows are multiples of `mss` bytes.
    #[must_use]
    pub fn new(mss: u16) -> Self {
        Self {
            mss: u32::from(mss),
            hosts: BTreeMap::new(),
            incoming: Vec::new(),
            counters: IctcpCounters::default(),
        }
    }

    /// Returns the counters of all hosts.
    #[must_use]
    pub const fn counters(&self) -> IctcpCounters {
        self.counters
    }

    /// Adds a connection without data so far, into a host with a link of `rate`; returns its first window in bytes.
    pub fn add(&mut self, host: u32, end: u32, rate: Rate) -> u32 {
        let interface = self.hosts.entry(host).or_insert_with(|| Interface {
            rate: rate.get() as f64 / 8.0,
            slot_from: 0,
            bytes: 0,
            quota: 0.0,
            free: rate.get() as f64 / 8.0,
            connections: 0,
            windows: 0,
        });
        let new = Incoming {
            window: WINDOW_MIN,
            bytes: 0,
            since: 0,
            throughput: 0.0,
            lags: 0,
            is_in_slow_start: true,
        };
        interface.connections += 1;
        interface.windows += WINDOW_MIN;
        let place = end as usize;
        if self.incoming.len() <= place {
            self.incoming.resize(place + 1, None);
        }
        self.incoming[place] = Some(new);
        WINDOW_MIN * self.mss
    }

    /// Asserts that connections have their granted windows, and each host's windows add up. `held` has the end, the host
    /// and the window in bytes of every connection.
    ///
    /// # Panics
    /// If a window is lost or granted twice.
    pub fn assert_conserved(&self, held: impl Iterator<Item = (u32, u32, u32)>) {
        let mut sums: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for (end, host, bytes) in held {
            let window = self.incoming[end as usize].as_ref().expect("it was added").window;
            assert!(window >= WINDOW_MIN, "the window of end {end} is below the least");
            assert_eq!(bytes, window * self.mss, "end {end} has another window than it was granted");
            let (connections, windows) = sums.entry(host).or_default();
            (*connections, *windows) = (*connections + 1, *windows + window);
        }
        for (host, interface) in &self.hosts {
            let sum = sums.get(host).copied().unwrap_or_default();
            let account = (interface.connections, interface.windows);
            assert_eq!(sum, account, "windows of host {host} are unaccounted for");
        }
    }

    /// Handles data that arrived on a connection; returns the connection's new window in bytes if the window changes.
    /// `now` and `rtt_ps` are in picoseconds. `bytes` count for the connection's throughput, `wire_bytes` for the
    /// link's.
    pub fn handle_data(
        &mut self,
        now: u64,
        [host, end]: [u32; 2],
        bytes: u32,
        wire_bytes: u32,
        rtt_ps: u64,
    ) -> Option<u32> {
        let mss = self.mss;
        let interface = self.hosts.get_mut(&host)?;
        let rtt_ps = rtt_ps.max(1);
        interface.bytes += u64::from(wire_bytes);
        let slot = now - interface.slot_from;
        if slot >= 2 * rtt_ps {
            // BW_A = max(0, α C - BW_T), equation (1).
            let total = interface.bytes as f64 / (slot as f64 / 1e12);
            interface.free = (USABLE * interface.rate - total).max(0.0);
            interface.quota = interface.free;
            (interface.slot_from, interface.bytes) = (now, 0);
        }
        let may_grow = now - interface.slot_from >= rtt_ps;
        let scarce = interface.free < SCARCE * interface.rate;
        let mean = f64::from(interface.windows) / f64::from(interface.connections.max(1));
        let one = self.incoming.get_mut(end as usize)?.as_mut()?;
        one.bytes += u64::from(bytes);
        let span = now.saturating_sub(one.since);
        if span < rtt_ps {
            return None;
        }
        // §V.B: the sample, the measured throughput (its average), the expected throughput, and their difference.
        let sample = one.bytes as f64 / (span as f64 / 1e12);
        // A sample after a pause does not count for the window.
        let idle = span > 4 * rtt_ps;
        (one.bytes, one.since) = (0, now);
        if idle {
            return None;
        }
        one.throughput = sample.max(WEIGHT * one.throughput + (1.0 - WEIGHT) * sample);
        let window = f64::from(one.window * mss);
        let expected = one.throughput.max(window / (rtt_ps as f64 / 1e12));
        let off = (expected - one.throughput) / expected;
        let before = one.window;
        if off <= NEAR || off <= f64::from(mss) / window {
            one.lags = 0;
            let more = if one.is_in_slow_start { one.window } else { 1 };
            let costs = f64::from(more * mss) / (rtt_ps as f64 / 1e12);
            if may_grow && costs <= interface.quota {
                interface.quota -= costs;
                one.window += more;
            } else if may_grow {
                one.is_in_slow_start = false;
            }
        } else if off >= FAR {
            one.lags += 1;
            if one.lags >= LAGS {
                one.lags = 0;
                one.is_in_slow_start = false;
                one.window -= 1;
            }
        } else {
            one.lags = 0;
        }
        // §V.C: fairness if little of the link is free.
        if scarce && f64::from(one.window) > mean.max(f64::from(before)) + 1.0 {
            one.window -= 1;
        }
        one.window = one.window.max(WINDOW_MIN);
        interface.windows = interface.windows - before + one.window;
        self.counters.window_max = self.counters.window_max.max(one.window);
        self.counters.increases += u64::from(one.window > before);
        self.counters.decreases += u64::from(one.window < before);
        (one.window != before).then_some(one.window * mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 100_000_000;

    /// Sends a window of every connection in each round trip, and returns the windows after `rounds`.
    fn play(connections: u32, rounds: u64, share: f64) -> Vec<u32> {
        let mut ictcp = Ictcp::new(1_000);
        let mut windows: Vec<u32> =
            (0..connections).map(|end| ictcp.add(0, end, Rate::new(1_000_000_000))).collect();
        for round in 1..=rounds {
            for end in 0..connections {
                let bytes = (f64::from(windows[end as usize]) * share) as u32;
                let now = round * RTT + u64::from(end);
                if let Some(window) = ictcp.handle_data(now, [0, end], bytes, bytes, RTT) {
                    windows[end as usize] = window;
                }
            }
        }
        windows
    }

    #[test]
    fn grows_to_the_usable_part_of_the_link_and_no_further() {
        for connections in [1, 3] {
            let windows = play(connections, 200, 1.0);
            // 0.9 Gb/s for 100 us are 11 250 bytes.
            let total: u32 = windows.iter().sum();
            assert!((7_000..=11_250 + 2_000 * connections).contains(&total), "{windows:?}");
        }
        // The sum of the least windows of many connections exceeds the link.
        assert_eq!(play(20, 50, 1.0), [2_000; 20]);
    }

    #[test]
    #[should_panic(expected = "windows of host 0 are unaccounted for")]
    fn a_window_that_the_host_does_not_count_is_found() {
        let mut ictcp = Ictcp::new(1_000);
        let window = ictcp.add(0, 0, Rate::new(1_000_000_000));
        ictcp.assert_conserved([(0, 0, window)].into_iter());
        ictcp.hosts.get_mut(&0).unwrap().windows += 1;
        ictcp.assert_conserved([(0, 0, window)].into_iter());
    }

    #[test]
    fn a_connection_that_lags_behind_loses_its_window() {
        let mut ictcp = Ictcp::new(1_000);
        let mut window = ictcp.add(0, 0, Rate::new(1_000_000_000));
        let mut most = 0;
        for round in 1..200_u64 {
            // At first the whole window is used, then hardly any of it.
            let bytes = if round < 20 { window } else { 100 };
            if let Some(new) = ictcp.handle_data(round * RTT, [0, 0], bytes, bytes, RTT) {
                window = new;
            }
            most = most.max(window);
        }
        assert!(most >= 6_000, "{most}");
        assert_eq!(window, 2_000);
    }
}
