//! A naive port with ring 0 served before the others. The queues of the simulator and of the live switch are compared
//! with it.

use std::cmp::Reverse;
use std::collections::VecDeque;

use proptest::prelude::*;

/// Rings of the port, ring 0 included.
pub(super) const RINGS: usize = 4;

/// A frame arrives for this ring; with `None` the next frame departs.
pub(super) type Step = Option<usize>;

/// A ring of the reference.
#[derive(Debug, Default)]
struct ReferenceRing {
    frames: VecDeque<u32>,
    /// Time at which the ring last joined the rings of its rank.
    joined: u64,
}

/// Steps that fill rings of a few frames.
pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop::option::weighted(0.6, 0..RINGS), 1..400)
}

/// Compares a port with the reference; each ring holds `frames_max` frames. `port` makes a step with the frame of the
/// given number. It returns the number of the admitted or departed frame.
pub(super) fn compare(
    longest_first: bool,
    frames_max: usize,
    steps: &[Step],
    mut port: impl FnMut(Step, u32) -> Option<u32>,
) {
    let mut rings: [ReferenceRing; RINGS] = Default::default();
    for (number, &step) in (0u32..).zip(steps) {
        let expected = match step {
            Some(ring) => {
                let ring = &mut rings[ring];
                let is_admitted = ring.frames.len() < frames_max;
                if is_admitted {
                    if longest_first || ring.frames.is_empty() {
                        ring.joined = number.into();
                    }
                    ring.frames.push_back(number);
                }
                is_admitted.then_some(number)
            }
            None => {
                let rank = |(index, ring): &(usize, &mut ReferenceRing)| {
                    let length = if longest_first { ring.frames.len() } else { 0 };
                    (*index == 0, length, Reverse(ring.joined))
                };
                let waiting = rings.iter_mut().enumerate().filter(|(_, ring)| !ring.frames.is_empty());
                waiting.max_by_key(rank).and_then(|(_, ring)| {
                    ring.joined = number.into();
                    ring.frames.pop_front()
                })
            }
        };
        assert_eq!(port(step, number), expected, "step {number}: {step:?}");
    }
}
