//! The time that a collection would take if nothing but the wire of the last link held it up (thesis §4.2.2), as the
//! simulator reckons it.

use fanin_scenario::Scenario;
use fanin_units::{Bytes, Duration, Rate};

use super::{End, Shape, Wire};

/// Preamble, header, check sequence and gap of an Ethernet frame.
const LINK_BYTES: u64 = 38;
/// The shortest frame, with preamble and gap.
const FRAME_MIN: u64 = 84;
/// Headers of IP and TCP.
const HEADERS: u64 = 40;

/// What the wire alone allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ideal {
    payload: u64,
    options: u64,
    /// The last link.
    rate: Rate,
    /// The links of an answer, the last one left out.
    before: Vec<Rate>,
    /// The links of a request.
    there: Vec<Rate>,
    /// Propagation and switching, there and back.
    fixed: Duration,
    response: Duration,
    request_bytes: u64,
    answer_bytes: u64,
}

impl Ideal {
    /// Between the first collector and the first readout; answers of `answer_bytes` come `response` after a request of
    /// `request_bytes`.
    pub fn of(
        scenario: &Scenario,
        shape: &Shape,
        response: Duration,
        request_bytes: u64,
        answer_bytes: u64,
    ) -> Self {
        let (path, bridges) = path(shape);
        let latency: Duration = bridges.iter().map(|&bridge| shape.bridges[bridge].settings.latency).sum();
        let one_way: Duration = path.iter().map(|wire| wire.delay).sum::<Duration>() + latency;
        let rates: Vec<Rate> = path.iter().map(|wire| wire.rate).collect();
        Self {
            payload: scenario.transport.segment_payload().get().max(1),
            options: scenario.transport.option_bytes().get(),
            rate: rates.first().copied().unwrap_or(Rate::MAX),
            before: rates.iter().skip(1).copied().collect(),
            there: rates,
            fixed: one_way + one_way,
            response,
            request_bytes,
            answer_bytes,
        }
    }

    fn frame(&self, bytes: u64) -> u64 {
        (bytes + self.options + HEADERS + LINK_BYTES).max(FRAME_MIN)
    }

    /// Bytes on the wire of one answer of so many bytes.
    pub fn wire_bytes(&self, bytes: u64) -> u64 {
        let (full, rest) = (bytes / self.payload, bytes % self.payload);
        full * self.frame(self.payload) + if rest > 0 { self.frame(rest) } else { 0 }
    }

    fn round_trip(&self) -> Duration {
        let sent = |rates: &[Rate], bytes: u64| {
            let bytes = Bytes::new(self.frame(bytes.min(self.payload)));
            rates.iter().map(|rate| rate.time_to_send(bytes)).sum::<Duration>()
        };
        self.fixed
            + sent(&self.there, self.request_bytes)
            + self.response
            + sent(&self.before, self.answer_bytes)
    }

    /// The least time of a collection whose answers take so many bytes on the wire together.
    pub fn time(&self, wire_bytes: u64) -> Duration {
        self.round_trip() + self.rate.time_to_send(Bytes::new(wire_bytes))
    }

    /// The formula with its numbers filled in.
    pub fn how(&self, payload: Bytes, wire_bytes: u64) -> String {
        format!(
            "round trip {} + {} on the wire ({payload} of data) at {} = {:.4} ms",
            self.round_trip(),
            Bytes::new(wire_bytes),
            self.rate,
            self.time(wire_bytes).as_millis_f64()
        )
    }
}

/// The links from the first collector to the first readout, in order, as answers pass them the other way round, and the
/// switches between them.
fn path(shape: &Shape) -> (Vec<&Wire>, Vec<usize>) {
    let Some(path) = shape.ways.paths.get(&shape.first_pair()) else { return (Vec::new(), Vec::new()) };
    let mut bridges = Vec::new();
    for (place, &wire) in path.wires.iter().enumerate() {
        match (place, bridges.last()) {
            (0, _) => bridges.push(shape.wires[wire].b),
            (_, Some(&bridge)) => {
                if let End::Bridge(next) = shape.other_end(bridge, wire) {
                    bridges.push(next);
                }
            }
            (_, None) => {}
        }
    }
    (path.wires.iter().rev().map(|&wire| &shape.wires[wire]).collect(), bridges)
}

#[cfg(test)]
mod tests {
    use super::*;

    // As `fanin sim incast` states it for 16 senders: the same formula, 102 us of round trip and 4.372 MB.
    #[test]
    fn the_ideal_is_the_simulators() {
        let sets = ["transport.profile=linux-6".to_owned(), "workload.request_size=10 kB".to_owned()];
        let scenario = fanin_scenario::load("incast", &sets).unwrap().scenario;
        let shape = Shape::of(&scenario).unwrap();
        let ideal = Ideal::of(&scenario, &shape, Duration::ZERO, 64, 10_000);
        // Six full segments of 1448 B in frames of 1538 B, and 1312 B in one of 1402 B.
        assert_eq!(ideal.wire_bytes(10_000), 6 * 1538 + 1402);
        // Four times 25 us; a request of 154 B over two links, and a full frame over the first.
        let round_trip = Duration::from_micros(100) + Duration::from_nanos(2 * 154 * 8 + 1538 * 8);
        assert_eq!(ideal.time(0), round_trip);
        assert_eq!(ideal.time(125_000), round_trip + Duration::from_millis(1));
        // An answer of 1000 B takes a frame of 1090 B on the first link.
        let short = Ideal::of(&scenario, &shape, Duration::ZERO, 64, 1000);
        assert_eq!(short.time(0), round_trip - Duration::from_nanos((1538 - 1090) * 8));
    }

    #[test]
    fn a_way_through_three_switches_has_four_links() {
        let sets: Vec<String> = ["network.cores=1".to_owned()].into();
        let scenario = fanin_scenario::load("thesis-a-1000hz", &sets).unwrap().scenario;
        let shape = Shape::of(&scenario).unwrap();
        let (path, _) = path(&shape);
        assert_eq!(
            path.iter().map(|wire| wire.rate.get() / 1_000_000_000).collect::<Vec<_>>(),
            [1, 10, 10, 1]
        );
    }
}
