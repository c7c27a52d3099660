//! The conformance script of the barrier workloads, in memory: rounds, slow senders, lost connections, a stop.

use std::collections::BinaryHeap;

use fanin_dataflow::{
    Aggregator, AggregatorConfig, AnswerSize, BarrierMessage, BarrierRecord, BarrierSender,
    BarrierSenderConfig, PacedCreditsConfig, Peer, Random,
};
use fanin_units::{Bytes, Duration, Instant, Rate};

const AGGREGATOR: Peer = Peer::Collector(0);

/// One step of a script.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Lets this many milliseconds pass.
    Run(u64),
    /// Cuts the connection to a sender; it is open again after this many milliseconds.
    Cut { sender: u16, away_ms: u64 },
}

use Step::{Cut, Run};

/// The scripts; each runs with every kind of workload and several seeds.
const SCRIPTS: [&[Step]; 4] = [
    &[Run(200)],
    &[Run(20), Cut { sender: 3, away_ms: 10 }, Run(200)],
    &[
        Run(5),
        Cut { sender: 0, away_ms: 1 },
        Cut { sender: 1, away_ms: 30 },
        Cut { sender: 1, away_ms: 60 },
        Run(150),
    ],
    &[Run(0), Cut { sender: 7, away_ms: 300 }, Run(100)],
];
const SENDERS: u32 = 8;
const SEGMENT_BYTES: u64 = 1_448;

/// An arrival at one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Message { sender: u16, at_sender: bool, message: BarrierMessage },
    Connected(u16),
}

/// The aggregator, the senders, and the messages between them.
struct World {
    now: Instant,
    aggregator: Aggregator,
    senders: Vec<BarrierSender>,
    /// Number of cuts of each connection: messages on an earlier connection are lost.
    cuts: Vec<u32>,
    /// Arrivals by time and order, with the number of cuts of their connection.
    travelling: BinaryHeap<std::cmp::Reverse<(Instant, u64)>>,
    arrivals: Vec<(Arrival, u32)>,
    random: Random,
    records: Vec<BarrierRecord>,
    requests: u64,
    answer_bytes: u64,
}

impl World {
    fn new(request_size: AnswerSize, seed: u64) -> Self {
        // Every other world paces its requests.
        let paced_credits = (seed % 2 == 1).then_some(PacedCreditsConfig {
            rate: Rate::new(1_000_000_000),
            segment: Bytes::new(1_448),
            frame: Bytes::new(1_538),
            fragment: Bytes::new(seed % 4 * 500),
            header: Bytes::ZERO,
        });
        let config =
            AggregatorConfig { senders: SENDERS, request_size, paced_credits, ..AggregatorConfig::default() };
        let sender = |place| {
            BarrierSender::new(BarrierSenderConfig {
                answer: request_size.answer(place, SENDERS),
                service_delay_max: Duration::from_micros(100),
                seed: seed + u64::from(place),
            })
        };
        let mut world = Self {
            now: Instant::START,
            aggregator: Aggregator::new(config).unwrap(),
            senders: (0..SENDERS).map(sender).collect(),
            cuts: vec![0; SENDERS as usize],
            travelling: BinaryHeap::new(),
            arrivals: Vec::new(),
            random: Random::new(seed),
            records: Vec::new(),
            requests: 0,
            answer_bytes: 0,
        };
        (0..SENDERS as u16).for_each(|sender| world.send(Duration::ZERO, sender, Arrival::Connected(sender)));
        world
    }

    fn send(&mut self, delay: Duration, sender: u16, arrival: Arrival) {
        self.travelling.push(std::cmp::Reverse((self.now + delay, self.arrivals.len() as u64)));
        self.arrivals.push((arrival, self.cuts[usize::from(sender)]));
    }

    fn cut(&mut self, sender: u16, away: Duration) {
        self.cuts[usize::from(sender)] += 1;
        self.aggregator.handle_closed(self.now, Peer::Readout(sender));
        self.senders[usize::from(sender)].handle_closed(self.now, AGGREGATOR);
        self.send(away, sender, Arrival::Connected(sender));
        self.drain();
    }

    /// Carries out everything that is due until `end`.
    fn run(&mut self, end: Instant) {
        loop {
            let deadlines = (self.senders.iter().filter_map(BarrierSender::poll_deadline))
                .chain(self.aggregator.poll_deadline());
            let arrival = self.travelling.peek().map(|reverse| reverse.0.0);
            let Some(next) = deadlines.chain(arrival).min().filter(|&next| next <= end) else { break };
            assert!(next >= self.now, "time runs forwards");
            self.now = next;
            while let Some(&std::cmp::Reverse((at, number))) = self.travelling.peek()
                && at <= self.now
            {
                self.travelling.pop();
                self.arrive(number as usize);
                self.drain();
            }
            self.aggregator.handle_deadline(self.now);
            self.senders.iter_mut().for_each(|sender| sender.handle_deadline(self.now));
            self.drain();
        }
        self.now = end;
    }

    fn arrive(&mut self, number: usize) {
        let (arrival, cuts) = self.arrivals[number];
        let (Arrival::Message { sender, .. } | Arrival::Connected(sender)) = arrival;
        if cuts != self.cuts[usize::from(sender)] {
            return;
        }
        let state = &mut self.senders[usize::from(sender)];
        match arrival {
            Arrival::Connected(_) => {
                state.handle_connected(self.now, AGGREGATOR);
                self.aggregator.handle_connected(self.now, Peer::Readout(sender));
            }
            Arrival::Message { at_sender: true, message, .. } => {
                state.handle_message(self.now, AGGREGATOR, message).unwrap();
            }
            Arrival::Message { at_sender: false, message, .. } => {
                self.aggregator.handle_message(self.now, Peer::Readout(sender), message).unwrap();
            }
        }
    }

    fn drain(&mut self) {
        while let Some((to, message)) = self.aggregator.poll_transmit() {
            let Peer::Readout(sender) = to else { panic!("{to} is no sender") };
            self.requests += 1;
            let delay = Duration::from_micros(50 + u64::from(self.random.below(50)));
            self.send(delay, sender, Arrival::Message { sender, at_sender: true, message });
        }
        for sender in 0..self.senders.len() {
            while let Some((to, message)) = self.senders[sender].poll_transmit() {
                let BarrierMessage::Answer { bytes } = message else { panic!("a sender sends answers") };
                assert_eq!(to, AGGREGATOR);
                // The answer arrives in segments, as a live driver hands them on.
                let (mut left, mut delay) = (bytes.get(), Duration::from_micros(50));
                while left > 0 {
                    let bytes = Bytes::new(left.min(SEGMENT_BYTES));
                    left -= bytes.get();
                    delay += Duration::from_micros(u64::from(self.random.below(20)));
                    let message = BarrierMessage::Answer { bytes };
                    self.send(
                        delay,
                        sender as u16,
                        Arrival::Message { sender: sender as u16, at_sender: false, message },
                    );
                }
                self.answer_bytes += bytes.get();
            }
        }
        self.records.extend(std::iter::from_fn(|| self.aggregator.poll_record()));
        self.aggregator.check_invariants();
    }
}

fn play(script: &[Step], request_size: AnswerSize, seed: u64) {
    let mut world = World::new(request_size, seed);
    for step in script {
        match *step {
            Run(ms) => world.run(world.now + Duration::from_millis(ms)),
            Cut { sender, away_ms } => world.cut(sender, Duration::from_millis(away_ms)),
        }
    }
    world.aggregator.handle_stop(world.now);
    world.run(world.now + Duration::from_secs(1));
    let cuts = script.iter().filter(|step| matches!(step, Cut { .. })).count() as u64;
    let rounds: Vec<_> = (world.records.iter())
        .filter_map(|record| match *record {
            BarrierRecord::Round { round, start, end } => Some((round, start, end)),
            BarrierRecord::Lost { .. } | BarrierRecord::Stalled { .. } => None,
        })
        .collect();
    assert!(!rounds.is_empty() && world.aggregator.is_done(), "{script:?} {request_size:?} {seed}");
    assert_eq!(rounds.len() as u64, world.aggregator.rounds());
    // Rounds are numbered from 0, and each begins when the one before it ends.
    for (number, &(round, start, end)) in rounds.iter().enumerate() {
        assert!(round == number as u64 && start < end, "{rounds:?}");
        assert!(number == 0 || start == rounds[number - 1].2, "{rounds:?}");
    }
    // Every answer of every round arrived once; only a lost connection repeats one.
    let block = request_size.block(SENDERS).get() * rounds.len() as u64;
    let again = world.answer_bytes - block;
    let most = cuts * request_size.answer(0, SENDERS).get();
    assert!(again <= most, "{again} B more than {block} B arrived, {cuts} cuts");
    let requests = rounds.len() as u64 * u64::from(SENDERS);
    assert!((requests..=requests + cuts).contains(&world.requests), "{requests} {}", world.requests);
}

#[test]
fn every_script_ends_well() {
    for seed in 0..20 {
        for size in [AnswerSize::FixedFragment(Bytes::new(8_000)), AnswerSize::FixedBlock(Bytes::new(40_003))]
        {
            SCRIPTS.iter().for_each(|script| play(script, size, seed));
        }
    }
}
