//! No message of a peer, in any order, makes a role panic or miscount its events, credits and bytes.

use std::sync::Arc;

use fanin_dataflow::{
    Aggregator, AggregatorConfig, Arrivals, BarrierMessage, BarrierSender, BarrierSenderConfig, ClearConfig,
    CollectionStep, Collector, CollectorConfig, Decision, Delay, EventStream, FinishedEvent, FragmentSet,
    Hello, L1Id, Logger, LoggerConfig, Message, Outcome, Peer, Random, Readout, ReadoutConfig, Selection,
    Supervisor, SupervisorConfig, UniformSource, UnitModel, Wanted,
};
use fanin_units::{Bytes, Duration, Instant, Ratio};
use proptest::prelude::*;

const STEPS: usize = 400;

/// Random messages and peers, most of them plausible.
struct Hostile(Random);

impl Hostile {
    fn below(&mut self, end: u32) -> u32 {
        self.0.below(end)
    }

    fn event(&mut self) -> L1Id {
        L1Id(if self.below(10) == 0 {
            [u64::MAX, u64::MAX - 1, 0][self.below(3) as usize]
        } else {
            self.below(12).into()
        })
    }

    fn small(&mut self) -> u16 {
        if self.below(10) == 0 { u16::MAX } else { self.below(4) as u16 }
    }

    fn events(&mut self) -> Vec<L1Id> {
        (0..self.below(4)).map(|_| self.event()).collect()
    }

    fn fragments(&mut self) -> FragmentSet {
        FragmentSet::first(self.below(u32::from(FragmentSet::FRAGMENTS_MAX) + 1) as u16)
    }

    fn size(&mut self) -> Bytes {
        Bytes::new([0, 1, 1_000, 1 << 40, u64::MAX][self.below(5) as usize])
    }

    fn stream(&mut self) -> EventStream {
        if self.below(2) == 0 { EventStream::Physics } else { EventStream::Debug }
    }

    fn payload(&mut self) -> Bytes {
        Bytes::new(u64::from(self.below(100_000)))
    }

    fn share(&mut self) -> Ratio {
        Ratio::new([0, 1, 500_000, 1_000_000, u64::MAX][self.below(5) as usize])
    }

    fn selection(&mut self) -> Selection {
        match self.below(5) {
            0 => Selection::Rest,
            1 => Selection::Region,
            2 => Selection::Readouts(self.share()),
            3 => Selection::Fragments(self.share()),
            _ => {
                let wanted = |_| Wanted { readout: self.small(), fragments: self.fragments() };
                Selection::List((0..3).map(wanted).collect())
            }
        }
    }

    fn done(&mut self) -> FinishedEvent {
        let outcomes = [Outcome::Rejected, Outcome::Accepted, Outcome::Stored, Outcome::Debug];
        FinishedEvent { event: self.event(), outcome: outcomes[self.below(4) as usize] }
    }

    fn peer(&mut self) -> Peer {
        match self.below(4) {
            0 => Peer::Supervisor,
            1 => Peer::Readout(self.small()),
            2 => Peer::Collector(self.small()),
            _ => Peer::Logger(self.small()),
        }
    }

    fn message(&mut self) -> Message<Bytes> {
        let event = self.event();
        match self.below(15) {
            0 => Message::Hello(Box::new(Hello {
                idle: (0..self.below(4)).map(|_| self.small()).collect(),
                busy: self.events(),
                done: (0..self.below(3)).map(|_| self.done()).collect(),
            })),
            1 => Message::Welcome(self.events().into()),
            2 => Message::Ready { unit: self.small(), done: (self.below(2) == 0).then(|| self.done()) },
            3 => Message::Done(self.done()),
            4 => Message::Assign {
                event,
                unit: self.small(),
                direct: self.below(2) == 0,
                region: self.selection(),
                result: self.payload(),
            },
            5 => Message::Request { tag: self.below(8), event, fragments: self.fragments() },
            6 => Message::Answer {
                tag: if self.below(2) == 0 { 1 << 20 | self.below(8) } else { self.0.bits() as u32 },
                event,
                missing: self.fragments(),
                payload: self.payload(),
            },
            7 => Message::Clear(Arc::from(self.events())),
            8 => Message::Flow { stop: self.below(2) == 0 },
            9 => Message::Offer { event, size: self.size() },
            10 => Message::Grant { event },
            11 => Message::Refuse { event },
            12 => Message::Withdraw { event },
            13 => Message::Event {
                event,
                stream: self.stream(),
                missing: self.below(9),
                payload: self.payload(),
            },
            _ => Message::Stored { event, stream: self.stream() },
        }
    }
}

/// Calls a role with random inputs, drains it, and checks it after each.
macro_rules! torment {
    ($role:expr, $seed:expr, $($more:expr)?) => {{
        let (mut role, mut hostile) = ($role, Hostile(Random::new($seed)));
        let mut now = Instant::START;
        for _ in 0..STEPS {
            now = now + Duration::from_micros(u64::from(hostile.below(3_000)));
            let peer = hostile.peer();
            match hostile.below(12) {
                0 => role.handle_connected(now, peer),
                1 => role.handle_closed(now, peer),
                2 => role.handle_deadline(now),
                _ => {
                    let message = hostile.message();
                    let _ = role.handle_message(now, peer, message);
                }
            }
            $($more(&mut role, &mut hostile, now);)?
            while role.poll_transmit().is_some() {}
            while role.poll_record().is_some() {}
            let _ = role.poll_deadline();
            role.check_invariants();
        }
    }};
}

fn supervisor(seed: u64) {
    let config = SupervisorConfig::<Bytes> {
        units: vec![2, 0, 3],
        readouts: 3,
        arrivals: if seed.is_multiple_of(2) { Arrivals::OnDemand } else { Arrivals::Periodic },
        units_awaited: 2,
        clear: Some(ClearConfig { clear_group: 3, ..ClearConfig::default() }),
        reassign_delay: Duration::from_millis(seed % 3),
        seed,
        ..SupervisorConfig::default()
    };
    torment!(Supervisor::new(config).unwrap(), seed,);
}

fn collector(seed: u64) {
    let step = CollectionStep {
        collect: Selection::Fragments(Ratio::new(400_000)),
        processing_time: Delay::Exponential { mean: Duration::from_millis(1) },
        accept: Ratio::new(700_000),
    };
    let last = CollectionStep { collect: Selection::Rest, ..step.clone() };
    let is_real = seed.is_multiple_of(2);
    let model =
        if is_real { UnitModel::External(Selection::Region) } else { UnitModel::Steps(vec![step, last]) };
    let config = CollectorConfig {
        units: 3,
        readouts: vec![12, 0, 40, 7],
        loggers: (seed % 3) as u16,
        credits: Some(60),
        model,
        request_timeout: Some(Duration::from_millis(4)),
        request_retries: 1,
        readout_wait: Duration::from_millis(6),
        processor_timeout: Some(Duration::from_millis(9)),
        logger_timeout: Some(Duration::from_millis(9)),
        shipping_max: 2,
        seed,
        ..CollectorConfig::default()
    };
    torment!(
        Collector::<Bytes>::new(config).unwrap(),
        seed,
        |role: &mut Collector<Bytes>, hostile: &mut Hostile, now| {
            let (unit, event) = (hostile.small(), hostile.event());
            match hostile.below(6) {
                0 => role.handle_unit_up(now, unit),
                1 if hostile.below(4) == 0 => role.handle_unit_lost(now, unit),
                2 => role.handle_corrupted(now, unit, 1 << 20 | hostile.below(8)),
                3 if is_real => {
                    let decision = match hostile.below(3) {
                        0 => Decision::Accept,
                        1 => Decision::Reject,
                        _ => Decision::Collect(hostile.selection()),
                    };
                    role.handle_decision(now, unit, event, decision);
                }
                _ => {}
            }
            while role.poll_unit().is_some() {}
        }
    );
}

fn readout(seed: u64) {
    let config = ReadoutConfig {
        response_delay: Delay::Exponential { mean: Duration::from_millis(1) },
        memory: (!seed.is_multiple_of(3)).then_some(Bytes::new(5_000)),
        events_max: 10,
        answers_max: 20,
        seed,
        ..ReadoutConfig::default()
    };
    let source = UniformSource { fragment: Bytes::new(100) };
    torment!(
        Readout::<Bytes, _>::new(config, source).unwrap(),
        seed,
        |role: &mut Readout<Bytes, UniformSource>, hostile: &mut Hostile, now| {
            let event = hostile.event();
            role.handle_fragments(now, event, Bytes::new(700));
        }
    );
}

fn logger(seed: u64) {
    let config = LoggerConfig { logger_memory: Bytes::new(50_000), offers_max: 5, ..LoggerConfig::default() };
    torment!(
        Logger::<Bytes>::new(config).unwrap(),
        seed,
        |role: &mut Logger<Bytes>, hostile: &mut Hostile, now| {
            while let Some(job) = role.poll_write() {
                if hostile.below(4) == 0 {
                    role.handle_store_failed(job.id);
                } else {
                    role.handle_stored(now, job.id);
                }
            }
            if hostile.below(9) == 0 {
                role.handle_disk_full(hostile.below(2) == 0);
            }
        }
    );
}

fn barrier(seed: u64) {
    let mut hostile = Hostile(Random::new(seed));
    let config = AggregatorConfig {
        senders: 3,
        stall_limit: Some(Duration::from_millis(seed % 5)),
        ..AggregatorConfig::default()
    };
    let mut aggregator = Aggregator::new(config).unwrap();
    let mut sender =
        BarrierSender::new(BarrierSenderConfig { answer: Bytes::new(1_000), ..Default::default() });
    let mut now = Instant::START;
    for _ in 0..STEPS {
        now = now + Duration::from_micros(u64::from(hostile.below(3_000)));
        let peer =
            if hostile.below(2) == 0 { Peer::Readout(hostile.below(4) as u16) } else { hostile.peer() };
        let message = match hostile.below(3) {
            0 => BarrierMessage::Request { round: hostile.0.bits(), is_measured: hostile.below(2) == 0 },
            1 => BarrierMessage::Answer { bytes: hostile.size() },
            _ => BarrierMessage::Answer { bytes: aggregator.owed(0) },
        };
        match hostile.below(10) {
            0 | 1 => {
                aggregator.handle_connected(now, peer);
                sender.handle_connected(now, peer);
            }
            2 => {
                aggregator.handle_closed(now, peer);
                sender.handle_closed(now, peer);
            }
            3 => {
                aggregator.handle_deadline(now);
                sender.handle_deadline(now);
            }
            4 if hostile.below(50) == 0 => aggregator.handle_stop(now),
            _ => {
                let _ = aggregator.handle_message(now, peer, message);
                let _ = sender.handle_message(now, peer, message);
            }
        }
        // A slow driver drains them only sometimes.
        if hostile.below(2) == 0 {
            while aggregator.poll_transmit().is_some() {}
            while sender.poll_transmit().is_some() {}
        }
        while aggregator.poll_record().is_some() {}
        aggregator.check_invariants();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_peer_makes_a_role_panic(seed in any::<u64>()) {
        supervisor(seed);
        collector(seed);
        readout(seed);
        logger(seed);
        barrier(seed);
    }
}
