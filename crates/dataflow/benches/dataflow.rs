//! CPU time a message through supervisor, collectors and readouts, in the thesis' rack (§4.2.1).
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fanin_dataflow::{
    Arrivals, ClearConfig, CollectionStep, Collector, CollectorConfig, CreditDiscipline, Delay, Message,
    Peer, Policy, Readout, ReadoutConfig, Selection, Supervisor, SupervisorConfig, UniformSource, UnitModel,
};
use fanin_units::{Bytes, Duration, Frequency, Instant, Ratio};

const COLLECTORS: usize = 39;
const READOUTS: usize = 160;

/// The whole rack, with messages that arrive without delay.
struct Rack {
    supervisor: Supervisor<Bytes>,
    collectors: Vec<Collector<Bytes>>,
    readouts: Vec<Readout<Bytes, UniformSource>>,
    wire: VecDeque<(Peer, Peer, Message<Bytes>)>,
    now: Instant,
    messages: u64,
}

impl Rack {
    fn new(policy: Policy, discipline: CreditDiscipline) -> Self {
        let step = CollectionStep {
            collect: Selection::Rest,
            processing_time: Delay::Constant(Duration::from_millis(100)),
            accept: Ratio::ZERO,
        };
        let supervisor = SupervisorConfig {
            units: vec![24; COLLECTORS],
            readouts: READOUTS as u16,
            arrivals: Arrivals::Periodic,
            rate: Frequency::new(1_000_000),
            policy,
            result: Bytes::new(1_000),
            ..SupervisorConfig::default()
        };
        let collector = CollectorConfig {
            units: 24,
            readouts: vec![12; READOUTS],
            credits: Some(480),
            discipline,
            model: UnitModel::Steps(vec![step]),
            clear: Some(ClearConfig::default()),
            ..CollectorConfig::default()
        };
        let readout = ReadoutConfig {
            response_delay: Delay::Constant(Duration::from_micros(200)),
            ..ReadoutConfig::default()
        };
        let source = UniformSource { fragment: Bytes::new(1_100) };
        let mut rack = Self {
            supervisor: Supervisor::new(supervisor).unwrap(),
            collectors: (0..COLLECTORS).map(|_| Collector::new(collector.clone()).unwrap()).collect(),
            readouts: (0..READOUTS).map(|_| Readout::new(readout.clone(), source).unwrap()).collect(),
            wire: VecDeque::new(),
            now: Instant::START,
            messages: 0,
        };
        for collector in 0..COLLECTORS {
            let peer = Peer::Collector(collector as u16);
            for readout in 0..READOUTS {
                rack.collectors[collector].handle_connected(rack.now, Peer::Readout(readout as u16));
            }
            rack.collectors[collector].handle_connected(rack.now, Peer::Supervisor);
            rack.supervisor.handle_connected(rack.now, peer);
            rack.drain(peer);
        }
        rack.deliver();
        rack
    }

    fn drain(&mut self, peer: Peer) {
        macro_rules! drain {
            ($role:expr) => {{
                let role = $role;
                while let Some((to, message)) = role.poll_transmit() {
                    self.wire.push_back((peer, to, message));
                }
                while let Some(record) = role.poll_record() {
                    black_box(record);
                }
            }};
        }
        match peer {
            Peer::Supervisor | Peer::Standby => drain!(&mut self.supervisor),
            Peer::Collector(n) => drain!(&mut self.collectors[usize::from(n)]),
            Peer::Readout(n) => drain!(&mut self.readouts[usize::from(n)]),
            Peer::Logger(_) => unreachable!("there are no loggers"),
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.wire.pop_front() {
            self.messages += 1;
            match to {
                Peer::Supervisor | Peer::Standby => self.supervisor.handle_message(self.now, from, message),
                Peer::Collector(n) => self.collectors[usize::from(n)].handle_message(self.now, from, message),
                Peer::Readout(n) => self.readouts[usize::from(n)].handle_message(self.now, from, message),
                Peer::Logger(_) => unreachable!("there are no loggers"),
            }
            .unwrap();
            self.drain(to);
        }
    }

    /// Makes one event fall due. The clock advances in steps of 200 µs, the readouts' response time.
    fn event(&mut self) {
        for _ in 0..5 {
            self.now = self.now + Duration::from_micros(200);
            if self.supervisor.poll_deadline().is_some_and(|at| at <= self.now) {
                self.supervisor.handle_deadline(self.now);
                self.drain(Peer::Supervisor);
            }
            for n in 0..READOUTS {
                if self.readouts[n].poll_deadline().is_some_and(|at| at <= self.now) {
                    self.readouts[n].handle_deadline(self.now);
                    self.drain(Peer::Readout(n as u16));
                }
            }
            for n in 0..COLLECTORS {
                if self.collectors[n].poll_deadline().is_some_and(|at| at <= self.now) {
                    self.collectors[n].handle_deadline(self.now);
                    self.drain(Peer::Collector(n as u16));
                }
            }
            self.deliver();
        }
    }
}

fn rack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rack");
    // 160 requests, 160 answers, one assignment and one report an event; clears are not counted.
    group.throughput(Throughput::Elements(322));
    let balance = Policy::NodeLoadBalancing;
    for (name, policy, discipline) in [
        ("node-round-robin/fifo", Policy::NodeRoundRobin, CreditDiscipline::Fifo),
        ("node-load-balancing/fifo", balance, CreditDiscipline::Fifo),
        ("random/round-robin", Policy::Random, CreditDiscipline::RoundRobin),
        ("random/smallest-remaining", Policy::Random, CreditDiscipline::SmallestRemaining),
        ("random/first-fit", Policy::Random, CreditDiscipline::FirstFit),
    ] {
        let mut rack = Rack::new(policy, discipline);
        (0..1_000).for_each(|_| rack.event());
        let before = rack.messages;
        rack.event();
        assert!(rack.messages - before >= 322, "the rack does not run steadily");
        group.bench_function(name, |bench| bench.iter(|| rack.event()));
    }
    group.finish();
}

criterion_group!(benches, rack);
criterion_main!(benches);
