//! The time that a collection would take if nothing but the wire of the last link held it up.

use fanin_scenario::Scenario;
use fanin_units::{Bytes, Duration, Rate};

use crate::Error;
use crate::network::{Network, Paths, PortIndex, Spread};
use crate::stack::stack;
use crate::tcp::{Flags, Framing, Segment};
use crate::topology::Roles;

/// `RTT + bytes on the wire / rate of the last link` (thesis §4.2.2), exactly: with the real number of segments, and
/// the round-trip time as the path of the first answer has it.
///
/// The mean response delay counts, not the least: with random delays a lucky event can take a little less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ideal {
    mss: u64,
    overhead: u64,
    framing: Framing,
    options: u32,
    rate: Rate,
    /// From the request to the first bit of its answer on the last link, and the last link's delay.
    round_trip: Duration,
}

impl Ideal {
    /// Prepares the calculation for the first collector; `response` is the mean time from a request's arrival to its
    /// answer.
    pub(crate) fn new(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        response: Duration,
        request_bytes: u64,
    ) -> Result<Self, Error> {
        let config = stack(&scenario.transport)?;
        let mut flags = Flags::ACK;
        if config.timestamps {
            flags.insert(Flags::TIMESTAMP);
        }
        let framing = network.framing;
        let bare = Segment { flags, ..Segment::default() };
        let full = Segment { payload: config.mss, ..bare };
        let collector = roles.collectors[0];
        // Where every host is both, a collector asks all but its own.
        let remote = roles.readouts.iter().find(|&&readout| readout != collector);
        let readout = *remote.unwrap_or(&roles.readouts[0]);
        let mut paths = Paths::new(network)?;
        let there: Vec<PortIndex> = paths.find(collector, readout, Spread::Flow(0))?.collect();
        let back: Vec<PortIndex> = paths.find(readout, collector, Spread::Flow(0))?.collect();
        let hop = |&port: &PortIndex, wire_bytes: u32| {
            let link = &network.links[port as usize / 2];
            link.rate.time_to_send(Bytes::new(u64::from(wire_bytes))) + link.delay + network.latency(port)
        };
        let request = framing.wire_bytes(bare.ip_bytes() + request_bytes.min(u64::from(config.mss)) as u32);
        let request_time: Duration = there.iter().map(|port| hop(port, request)).sum();
        let (last, before) = back.split_last().expect("a path has a link");
        let answer_time: Duration = before.iter().map(|port| hop(port, full.wire_bytes(framing))).sum();
        let last = &network.links[*last as usize / 2];
        Ok(Self {
            mss: u64::from(config.mss),
            overhead: u64::from(full.wire_bytes(framing) - u32::from(config.mss)),
            framing,
            options: bare.ip_bytes(),
            rate: last.rate,
            round_trip: request_time + response + answer_time + last.delay,
        })
    }

    /// Where nothing is requested, nothing but the answer's own delay comes before its bytes.
    pub(crate) fn without_request(&mut self, response: Duration) {
        self.round_trip = response;
    }

    /// Bytes on the wire of one answer of so many bytes.
    #[inline]
    pub(crate) fn wire_bytes(&self, bytes: u64) -> u64 {
        let (full, rest) = (bytes / self.mss, bytes % self.mss);
        let short = if rest > 0 { u64::from(self.framing.wire_bytes(self.options + rest as u32)) } else { 0 };
        full * (self.mss + self.overhead) + short
    }

    /// The ideal time of a collection whose answers take so many bytes on the wire together.
    pub(crate) fn time(&self, wire_bytes: u64) -> Duration {
        self.round_trip + self.rate.time_to_send(Bytes::new(wire_bytes))
    }

    /// The formula with its numbers filled in.
    pub(crate) fn how(&self, payload: Bytes, wire_bytes: u64) -> String {
        format!(
            "round trip {} + {} on the wire ({payload} of data) at {} = {:.4} ms",
            self.round_trip,
            Bytes::new(wire_bytes),
            self.rate,
            self.time(wire_bytes).as_millis_f64()
        )
    }
}
