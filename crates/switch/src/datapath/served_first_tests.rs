//! Compares the plain queue that is served first with the reference of the simulator's queues.

use std::sync::Arc;

use fanin_queueing::{EcnCodepoint, Frame};
use fanin_units::{Instant, Packets};
use proptest::prelude::*;

use super::output::{DescriptorReserve, Output, PLAIN, QueuedFrame};
use super::outputs::{Admission, Outputs, StagedFrame};
use crate::config::{Buffering, Config, PortSpec, RingService, RingSpec, SwitchSpec};
use crate::driver::Received;
use crate::workers::SharedCounts;

#[path = "../../../queueing/tests/common/served_first.rs"]
mod served_first;

use served_first::RINGS;

/// A port whose plain queue is served first, with rings of as many frames.
fn outputs(service: RingService, frames_max: usize) -> Outputs<u32> {
    let frames = Some(Packets::new(frames_max as u64));
    let port = PortSpec { service, plain_first: true, plain_frames: frames, ..PortSpec::new("p0") };
    let ring = |ring| RingSpec { frames, ..RingSpec::new(&format!("r{ring}"), "p0") };
    let config = Config {
        switch: SwitchSpec { buffering: Buffering::Unlimited, ..SwitchSpec::default() },
        port: vec![port],
        ring: (1..RINGS).map(ring).collect(),
        ..Config::default()
    };
    let config = config.checked().unwrap_or_else(|errors| panic!("{errors}"));
    Outputs::new(&config, &Arc::new(SharedCounts::new(1, 1))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 128 }))]
    #[test]
    fn the_plain_queue_goes_first_as_in_the_simulator(
        steps in served_first::steps(),
        frames_max in 1..9usize,
        longest_first: bool,
    ) {
        let service =
            if longest_first { RingService::LongestFirst } else { RingService::RoundRobin };
        let mut outputs = outputs(service, frames_max);
        served_first::compare(longest_first, frames_max, &steps, |step, number| match step {
            Some(ring) => {
                let frame = Received { handle: number, bytes: 1000 };
                let ecn = EcnCodepoint::NotCapable;
                let staged = StagedFrame { frame, input: 0, output: 0, ring: ring as u32, ecn };
                matches!(outputs.admit(Instant::START, &staged, false), Admission::Queued { .. })
                    .then_some(number)
            }
            None => {
                let mut departed = None;
                outputs.output_mut(0).dequeue(Instant::START, 1, |_, _, frame| departed = Some(frame.handle));
                departed
            }
        });
    }
}

#[test]
fn the_plain_queue_takes_its_turn_unless_it_goes_first() {
    let mut order = Vec::new();
    for plain_first in [false, true] {
        let port = PortSpec { plain_first, ..PortSpec::new("p0") };
        let mut output = Output::<u32>::new(&port).unwrap();
        let mut reserve = DescriptorReserve::new();
        let ring = RingSpec { frames: Some(Packets::new(9)), ..RingSpec::new("r", "p0") };
        output.add_ring(&ring, &SwitchSpec::default(), &mut reserve).unwrap();
        for ring in [PLAIN + 1, PLAIN, PLAIN + 1, PLAIN] {
            let queued = QueuedFrame::default();
            let frame = Frame::new(1000);
            assert!(output.enqueue(Instant::START, ring, frame, queued, || 0).is_accepted());
        }
        output.dequeue(Instant::START, 4, |ring, _, _| order.push(ring));
    }
    assert_eq!(order, [1, 0, 1, 0, 0, 0, 1, 1]);
}
