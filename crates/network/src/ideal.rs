//! The ideal time of a collection: the last link is never idle, and no queue delays a frame.

use std::collections::BTreeSet;

use fanin_scenario::Scenario;
use fanin_units::{Bytes, Duration, Rate};

use crate::equivalence::{colours, first_colours};
use crate::topology::Roles;
use crate::{CollectionWork, Network, NetworkError, NodeIndex, Paths, PortIndex, SegmentFraming, Spread};

/// The ideal time of collections: `RTT + bytes on the wire / rate of the last link` (thesis §4.2.2). It counts the exact
/// bytes of all segments, and takes the round-trip time of the nearest readout's answer.
///
/// [`Self::time`] takes the mean response delay, as the thesis does. [`Self::bound`] takes the shortest delay that a
/// readout drew in one collection, so that it is a lower bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ideal {
    segments: SegmentFraming,
    rate: Rate,
    /// The mean time from a request's arrival to its answer.
    response: Duration,
    /// Bytes of a request for all fragments of a readout, and bytes of its answer.
    request_bytes: u64,
    answer_bytes: u64,
    /// Propagation delays and switch latencies of the request and the answer.
    fixed: Duration,
    /// Delays and latencies of the answer alone.
    fixed_back: Duration,
    /// The rates of the links that a request passes.
    there: Vec<Rate>,
    /// The rates of the links that an answer passes before the last one.
    before: Vec<Rate>,
}

/// The figures of a collection's answers that decide its ideal time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answers {
    /// Payload of all answers.
    pub payload: u64,
    /// Bytes of the answers on connections, headers included.
    pub bytes: u64,
    /// Bytes of the answers on the wire.
    pub wire_bytes: u64,
    /// The shortest time from a request's arrival to its answer.
    pub response_min: Duration,
    /// Bytes of the shortest request.
    pub request_bytes_min: u64,
    /// Bytes of the shortest answer.
    pub bytes_min: u64,
    /// The longest time from a readout's first request to its answer.
    pub response_last: Duration,
}

impl Answers {
    /// The state before the first answer.
    pub const NONE: Self = Self {
        payload: 0,
        bytes: 0,
        wire_bytes: 0,
        response_min: Duration::new(u64::MAX),
        request_bytes_min: u64::MAX,
        bytes_min: u64::MAX,
        response_last: Duration::ZERO,
    };

    /// Counts another request, of `bytes` bytes.
    #[inline]
    pub fn ask(&mut self, bytes: u64) {
        self.request_bytes_min = self.request_bytes_min.min(bytes);
    }

    /// Counts another answer. `is_first`: of a readout's first request, which every schedule needs. Requests in parts
    /// draw more delays, and their longest one would depend on the number of parts.
    #[inline]
    pub fn add(&mut self, payload: u64, bytes: u64, wire_bytes: u64, response: Duration, is_first: bool) {
        if is_first {
            self.response_last = self.response_last.max(response);
        }
        self.payload += payload;
        self.bytes += bytes;
        self.wire_bytes += wire_bytes;
        self.bytes_min = self.bytes_min.min(bytes);
        self.response_min = self.response_min.min(response);
    }
}

impl Ideal {
    /// Prepares the calculation for the nearest readout of the first collector of each kind. `response` is the mean
    /// time from a request's arrival to its answer. `answer_bytes` is the mean or the least size of an answer.
    ///
    /// # Errors
    /// Those of [`Network::check`], and [`NetworkError::NoPath`].
    pub fn new(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        response: Duration,
        request_bytes: u64,
        answer_bytes: u64,
    ) -> Result<Self, NetworkError> {
        let mut paths = Paths::new(network)?;
        let link = |port: PortIndex| network.link(port);
        let mut ideal = Self {
            segments: SegmentFraming::of(&scenario.transport, network.framing),
            rate: Rate::MAX,
            response,
            request_bytes,
            answer_bytes,
            fixed: Duration::ZERO,
            fixed_back: Duration::ZERO,
            there: Vec::new(),
            before: Vec::new(),
        };
        let mut shortest = Duration::new(u64::MAX);
        // Collectors at equivalent places have the same ideal time.
        let colours = colours(network, &first_colours(network, &roles.readouts, &roles.collectors));
        let mut known = BTreeSet::new();
        let is_first = |collector: &&NodeIndex| known.insert(colours[**collector as usize]);
        for &collector in roles.collectors.iter().filter(is_first) {
            // If every host has both roles, a collector asks all but its own.
            let others = roles.readouts.iter().copied().filter(|&readout| readout != collector);
            for readout in nearest_of_each_kind(&mut paths, &colours, others, collector)? {
                let there: Vec<PortIndex> = paths.find(collector, readout, Spread::Ecmp(0))?.collect();
                let back: Vec<PortIndex> = paths.find(readout, collector, Spread::Ecmp(0))?.collect();
                let (&last, before) = back.split_last().expect("a path has a link");
                let pass = |&port: &PortIndex| link(port).delay + network.latency(port);
                let rates = |ports: &[PortIndex]| ports.iter().map(|&port| link(port).rate).collect();
                let near = Self {
                    rate: link(last).rate,
                    fixed: there.iter().chain(before).map(pass).sum::<Duration>() + link(last).delay,
                    fixed_back: before.iter().map(pass).sum::<Duration>() + link(last).delay,
                    there: rates(&there),
                    before: rates(before),
                    ..ideal.clone()
                };
                let whole = near.round_trip(response, request_bytes, answer_bytes);
                if whole < shortest {
                    shortest = whole;
                    ideal = near;
                }
            }
        }
        Ok(ideal)
    }

    /// Leaves out the request, for readouts that push.
    pub fn without_request(&mut self) {
        self.there.clear();
        self.fixed = self.fixed_back;
    }

    /// The segmentation of the messages, and the bytes around each segment.
    #[inline]
    pub const fn segments(&self) -> &SegmentFraming {
        &self.segments
    }

    /// The rate of the last link.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The round trip at the mean response delay.
    pub fn round_trip_mean(&self) -> Duration {
        self.round_trip(self.response, self.request_bytes, self.answer_bytes)
    }

    /// The time from the request until the first frame of an answer could begin to leave the last switch, plus the last
    /// link's delay. The frames carry `request_bytes` and `answer_bytes`, each at most one segment.
    fn round_trip(&self, response: Duration, request_bytes: u64, answer_bytes: u64) -> Duration {
        let frame = |bytes: u64| Bytes::new(self.segments.wire(bytes.min(self.segments.mss())));
        let sent = |rates: &[Rate], frame: Bytes| {
            rates.iter().map(|rate| rate.time_to_send(frame)).sum::<Duration>()
        };
        self.fixed
            + sent(&self.there, frame(request_bytes))
            + response
            + sent(&self.before, frame(answer_bytes))
    }

    /// The ideal time of a collection with answers of `wire_bytes` in total, at the mean response delay.
    pub fn time(&self, wire_bytes: u64) -> Duration {
        ideal_time(self.round_trip_mean(), Bytes::new(wire_bytes), self.rate)
    }

    /// The least time that a collection with these answers can take.
    pub fn bound(&self, answers: Answers) -> Duration {
        let round_trip = self.round_trip(answers.response_min, answers.request_bytes_min, answers.bytes_min);
        ideal_time(round_trip, Bytes::new(answers.wire_bytes), self.rate)
    }

    /// A lower bound of the collection's time that also counts the readout with the longest delay: its answer passes the
    /// last link after that delay. At least [`Self::bound`].
    pub fn least(&self, answers: Answers) -> Duration {
        let round_trip = self.round_trip(answers.response_last, answers.request_bytes_min, answers.bytes_min);
        let last = Bytes::new(self.segments.wire_bytes(answers.bytes_min));
        self.bound(answers).max(ideal_time(round_trip, last, self.rate))
    }

    /// The bytes and the least time of a collection; `None` without answers.
    pub fn work(&self, answers: Answers) -> Option<CollectionWork> {
        let Answers { bytes, wire_bytes, .. } = answers;
        let mss = self.segments.mss();
        let joined_bytes = wire_bytes.min(bytes * self.segments.wire(mss) / mss);
        (wire_bytes > 0).then(|| CollectionWork { wire_bytes, joined_bytes, least: self.least(answers) })
    }

    /// The formula with its numbers filled in.
    pub fn how(&self, payload: Bytes, wire_bytes: u64) -> String {
        format!(
            "round trip {} + {} on the wire ({payload} of data) at {} = {:.4} ms",
            self.round_trip_mean(),
            Bytes::new(wire_bytes),
            self.rate,
            self.time(wire_bytes).as_millis_f64()
        )
    }
}

/// The time of a round trip and then of all answers back to back on the last link (thesis §4.2.2). At most [`Duration::MAX`].
pub fn ideal_time(round_trip: Duration, wire: Bytes, rate: Rate) -> Duration {
    round_trip.saturating_add(rate.checked_time_to_send(wire).unwrap_or(Duration::MAX))
}

/// The first readout of each kind at each distance from a collector. Every other readout has a path equivalent to one
/// of theirs.
fn nearest_of_each_kind(
    paths: &mut Paths<'_>,
    colours: &[u64],
    readouts: impl Iterator<Item = NodeIndex>,
    collector: NodeIndex,
) -> Result<Vec<NodeIndex>, NetworkError> {
    let (mut known, mut nearest) = (BTreeSet::new(), Vec::new());
    for readout in readouts {
        if known.insert((colours[readout as usize], paths.distance(readout, collector)?)) {
            nearest.push(readout);
        }
    }
    Ok(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    fn ideal(preset: &str, sets: &[&str], answer: u64) -> Ideal {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = fanin_scenario::load(preset, &sets).unwrap().scenario;
        let (network, roles) = topology::build(&scenario).unwrap();
        Ideal::new(&scenario, &network, &roles, Duration::ZERO, 64, answer).unwrap()
    }

    #[test]
    fn the_ideal_of_an_incast_is_that_of_its_frames() {
        let sets = ["transport.profile=linux-6", "workload.request_size=10 kB"];
        let whole = ideal("incast", &sets, 10_000);
        // Six full segments of 1448 B in frames of 1538 B, and 1312 B in one of 1402 B.
        assert_eq!(whole.segments().wire_bytes(10_000), 6 * 1538 + 1402);
        // Four times 25 us; a request of 154 B over two links, and a full frame over the first.
        let round_trip = Duration::from_micros(100) + Duration::from_nanos(2 * 154 * 8 + 1538 * 8);
        assert_eq!(whole.time(0), round_trip);
        assert_eq!(whole.time(125_000), round_trip + Duration::from_millis(1));
        // An answer of 1000 B takes a frame of 1090 B on the first link.
        assert_eq!(
            ideal("incast", &sets, 1000).time(0),
            round_trip - Duration::from_nanos((1538 - 1090) * 8)
        );
    }

    #[test]
    fn the_last_delay_counts_if_it_is_longer_than_the_answers() {
        let whole = ideal("incast", &["transport.profile=linux-6"], 1000);
        let answers = |last_us: u64| {
            let mut answers = Answers::NONE;
            answers.ask(64);
            answers.add(978, 1000, 1090, Duration::ZERO, true);
            answers.add(978, 1000, 1090, Duration::from_micros(last_us), true);
            // A part of a readout's answer is not its first request.
            answers.add(978, 1000, 1090, Duration::from_millis(1), false);
            answers
        };
        let first = whole.bound(answers(0));
        assert_eq!(whole.least(answers(0)), first);
        // Two more answers take 2 x 8.72 us on the link.
        let others = Duration::from_nanos(2 * 1090 * 8);
        assert_eq!(whole.least(answers(17)), first);
        assert_eq!(whole.least(answers(100)), first - others + Duration::from_micros(100));
    }

    #[test]
    fn a_path_through_three_switches_has_four_links() {
        let ideal = ideal("thesis-a-1000hz", &["network.cores=1"], 10_000);
        let gigabits =
            |rates: &[Rate]| rates.iter().map(|rate| rate.get() / 1_000_000_000).collect::<Vec<_>>();
        assert_eq!((gigabits(&ideal.there), gigabits(&ideal.before)), (vec![1, 10, 10, 1], vec![1, 10, 10]));
    }
}
