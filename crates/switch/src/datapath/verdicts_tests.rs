//! The live switch and the simulator's queues give the same verdicts: one sequence of arrivals, every scheme, every marker.

use std::sync::Arc;

use fanin_queueing::{
    AdmissionLimit, BookedMemory, EcnCodepoint, InService, NextDeparture, OutputLink, Passage,
};
use fanin_scenario::PoolCharge;
use fanin_units::{Bytes, Duration, Instant, Packets, Rate, Ratio, wire};
use proptest::prelude::*;

use super::output::PLAIN;
use super::outputs::{Admission, Outputs, StagedFrame};
use super::pause::PauseControl;
use crate::config::{Buffering, Config, Depth, Ecn, EcnMode, NotCapable, PortSpec, SwitchSpec};
use crate::driver::Received;
use crate::random::SplitMix64;
use crate::workers::SharedCounts;

const PORTS: usize = 4;
/// A byte lasts 8 ns, so that no time is rounded.
const RATE: Rate = Rate::new(1_000_000_000);
const SEED: u64 = 7;

/// A frame that arrives `after` nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    after: u64,
    input: u16,
    output: u16,
    bytes: u32,
    ecn: EcnCodepoint,
}

fn step() -> impl Strategy<Value = Arrival> {
    let ecn =
        prop::sample::select(vec![EcnCodepoint::NotCapable, EcnCodepoint::Capable, EcnCodepoint::Congestion]);
    // Half of the frames are for output 0, which fills.
    let output = prop_oneof![Just(0u16), 0..PORTS as u16];
    (0..9_000u64, 0..PORTS as u16, output, 60..1515u32, ecn)
        .prop_map(|(after, input, output, bytes, ecn)| Arrival { after, input, output, bytes, ecn })
}

/// Every scheme of the switch, with limits that a few frames reach.
fn schemes() -> Vec<SwitchSpec> {
    let of = |buffering| SwitchSpec {
        buffering,
        buffer: Bytes::new(9_000),
        frame_overhead: Bytes::new(24),
        cell: Bytes::new(64),
        seed: SEED,
        ..SwitchSpec::default()
    };
    let shared = of(Buffering::Shared);
    let limited = SwitchSpec {
        port_limit: Some(Bytes::new(6_000)),
        input_limit: Some(Bytes::new(5_000)),
        pool_split: 2,
        ..shared.clone()
    };
    vec![
        of(Buffering::Dedicated),
        of(Buffering::Unlimited),
        SwitchSpec { pool_charge: PoolCharge::Input, ..limited.clone() },
        shared,
        limited,
        of(Buffering::DynamicThreshold),
        SwitchSpec { module_ports: 2, port_limit: Some(Bytes::new(4_000)), ..of(Buffering::Voq) },
    ]
}

fn signals() -> Vec<Ecn> {
    let (min, max, weight) = (Packets::new(1), Packets::new(4), Ratio::new(300_000));
    let red = |mode| Ecn { mode, min, max, weight, ..Ecn::default() };
    let bytes = Depth::Bytes(Bytes::new(3_000));
    vec![
        Ecn::default(),
        Ecn::marking_above(Depth::Packets(Packets::new(3)), NotCapable::Pass),
        Ecn::marking_above(bytes, NotCapable::Pass),
        Ecn::marking_above(bytes, NotCapable::Drop),
        red(EcnMode::RedMark),
        red(EcnMode::RedDrop),
    ]
}

/// The live queues of one worker, with the marks of the frames admitted.
struct LiveQueues {
    outputs: Outputs<()>,
    pauses: PauseControl,
    batch: Vec<Received<()>>,
    next: [NextDeparture; PORTS],
}

impl LiveQueues {
    fn new(config: &Config) -> Self {
        let shared = Arc::new(SharedCounts::new(1, PORTS));
        Self {
            outputs: Outputs::new(config, &shared).unwrap(),
            pauses: PauseControl::new(config, 0, false, shared),
            batch: Vec::new(),
            next: [NextDeparture::Never; PORTS],
        }
    }

    fn serve(&mut self, now: Instant, port: usize) {
        self.next[port] = self.outputs.dequeue(now, port, &mut self.pauses, &mut self.batch);
    }

    /// Serves each output at each due departure, up to `now`.
    fn serve_until(&mut self, now: Instant) {
        for port in 0..PORTS {
            while let NextDeparture::At(at) = self.next[port]
                && at <= now
            {
                self.serve(at, port);
            }
        }
    }

    fn arrive(&mut self, now: Instant, step: Arrival) -> Option<bool> {
        let Arrival { input, output, bytes, ecn, .. } = step;
        let frame = Received { handle: (), bytes };
        let staged = StagedFrame { frame, input, output, ring: PLAIN as u32, ecn };
        let admission = self.outputs.admit(now, &staged, false);
        self.serve(now, output.into());
        self.outputs.assert_conserved(&self.pauses);
        match admission {
            Admission::Queued { marked } => Some(marked),
            Admission::Refused => None,
            Admission::CutThrough | Admission::CutThroughFull => panic!("nothing may cut through"),
        }
    }
}

/// Plays a sequence on both sides. Returns the numbers of marked and of dropped frames.
fn play(switch: SwitchSpec, ecn: Ecn, steps: &[Arrival]) -> (u64, u64) {
    let port = |number| PortSpec { rate: Some(RATE), ecn, ..PortSpec::new(&format!("p{number}")) };
    let config = Config { port: (0..PORTS).map(port).collect(), switch, ..Config::default() };
    let config = config.checked().unwrap_or_else(|errors| panic!("{errors}"));
    let mut live = LiveQueues::new(&config);
    let link = OutputLink::new(RATE, Bytes::new(wire::ETHERNET_UNCOUNTED.into()));
    let mut booked = BookedMemory::new(&config.layout(), &[link; PORTS], InService::Free).unwrap();
    for output in 0..PORTS {
        booked.set_aqm(output, ecn.aqm(config.switch.full_packet(Some(RATE))).unwrap());
    }
    let mut random = SplitMix64::new(SEED, 0);
    let mut now = Instant::START + Duration::from_millis(1);
    for &step in steps {
        now = now + Duration::from_nanos(step.after);
        let (input, output) = (step.input.into(), usize::from(step.output));
        let passage = booked.arrive(now, input, output, step.bytes, || step.ecn, || random.next_u32());
        let simulated = match passage {
            Passage::Queued { marked, .. } => Some(marked),
            Passage::Dropped(_) => None,
        };
        live.serve_until(now);
        assert_eq!(live.arrive(now, step), simulated, "{:?} {ecn:?}: {step:?}", config.switch.buffering);
    }
    booked.settle(now);
    let (mut marked, mut dropped) = (0, 0);
    for output in 0..PORTS {
        let (simulated, queue) = (booked.memory().counters(output), live.outputs.plain_snapshot(output));
        let of = |limit: AdmissionLimit| {
            let named = queue.dropped.iter().find(|dropped| dropped.cause == limit.name());
            named.map_or(0, |dropped| dropped.tally.frames)
        };
        for limit in AdmissionLimit::ALL {
            assert_eq!(of(limit), simulated.dropped_by(limit).frames, "output {output}: {limit:?}");
            dropped += of(limit);
        }
        assert_eq!(queue.marked.frames, simulated.marked.frames, "output {output}");
        marked += queue.marked.frames;
    }
    (marked, dropped)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]
    #[test]
    fn the_live_switch_decides_as_the_simulator_does(
        steps in prop::collection::vec(step(), 1..200),
        switch in prop::sample::select(schemes()),
        ecn in prop::sample::select(signals()),
    ) {
        play(switch, ecn, &steps);
    }
}

#[test]
fn every_scheme_and_marker_acts_in_a_burst() {
    let burst: Vec<Arrival> = (0..120u16)
        .map(|n| Arrival { after: 700, input: n % 3, output: 0, bytes: 1000, ecn: EcnCodepoint::Capable })
        .collect();
    for switch in schemes() {
        for ecn in signals() {
            let name = format!("{:?} with {ecn:?}", switch.buffering);
            let has_limit = switch.buffering != Buffering::Unlimited;
            let drops = has_limit || ecn.mode.is_red();
            let marks = ecn.mode.marks();
            let (marked, dropped) = play(switch.clone(), ecn, &burst);
            assert_eq!(
                (marked > 0, dropped > 0),
                (marks, drops),
                "{name}: {marked} marked, {dropped} dropped"
            );
        }
    }
}
