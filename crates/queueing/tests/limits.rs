//! The limits of a layout equal the limits that its memory applies.

use fanin_queueing::{Frame, Layout, Memory, PortLimits};
use fanin_units::{Bytes, Instant, Ratio};
use proptest::prelude::*;

const PORTS: usize = 4;

fn layouts() -> impl Strategy<Value = Layout> {
    let size = || (2_000u64..40_000).prop_map(Bytes::new);
    let limits = (size(), size()).prop_map(|(input, output)| PortLimits { ports: PORTS, input, output });
    prop_oneof![
        prop::collection::vec(size(), PORTS).prop_map(Layout::dedicated),
        (size(), 0..PORTS, any::<bool>(), limits)
            .prop_map(|(pool, split, by_input, limits)| Layout::shared_split(pool, split, by_input, limits)),
        (size(), 100_000u64..4_000_000, prop::option::of(size())).prop_map(|(pool, alpha, limit)| {
            let limit = limit.unwrap_or(Bytes::MAX);
            Layout::dynamic_threshold(PORTS, pool, Ratio::new(alpha)).with_output_limit(limit)
        }),
        (size(), 1..PORTS, size())
            .prop_map(|(module, ports, queue)| Layout::voq(PORTS, ports, module, queue)),
    ]
}

/// Offers a frame, and returns true if the memory accepted it.
fn offer(memory: &mut Memory, input: usize, output: usize, bytes: u32) -> bool {
    memory.arrive(Instant::START, input, output, Frame::new(bytes), || 0).is_accepted()
}

#[test]
fn a_layout_says_what_its_outputs_share() {
    let size = Bytes::new(10_000);
    let split = |by_input| {
        let limits = PortLimits { ports: PORTS, input: Bytes::MAX, output: Bytes::MAX };
        Layout::shared_split(size, 3, by_input, limits)
    };
    let facts = |layout: &Layout| (layout.has_threshold(), layout.modules_of(5), layout.common_pools());
    assert_eq!(facts(&Layout::dedicated(vec![size; PORTS])), (false, 1, None));
    assert_eq!(facts(&Layout::unlimited(PORTS)), (false, 1, None));
    assert_eq!(facts(&Layout::shared(PORTS, size)), (false, 1, Some(size)));
    assert_eq!(facts(&split(false)), (false, 1, Some(size + size)), "its outputs are in both pools");
    assert_eq!(facts(&split(true)), (false, 1, Some(size)), "an input is in one pool");
    assert_eq!(facts(&Layout::dynamic_threshold(PORTS, size, Ratio::ONE)), (true, 1, None));
    assert_eq!(facts(&Layout::voq(PORTS, 2, size, Bytes::MAX)), (false, 3, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_frame_is_refused_while_all_that_waits_has_room(
        layout in layouts(),
        frames in prop::collection::vec((0..PORTS, 0..PORTS, 64u32..1519), 1..200),
    ) {
        let mut memory = Memory::new(&layout).unwrap();
        let mut waiting = Bytes::ZERO;
        for (input, output, bytes) in frames {
            waiting += Bytes::new(bytes.into());
            if (0..PORTS).any(|output| layout.room(output, waiting) < waiting) {
                break;
            }
            prop_assert!(offer(&mut memory, input, output, bytes), "{waiting} wait, and a frame is refused");
        }
    }

    #[test]
    fn one_full_output_holds_what_its_limit_says(layout in layouts(), output in 0..PORTS, bytes in 64u32..1519) {
        let mut memory = Memory::new(&layout).unwrap();
        let mut held = 0;
        // Inputs of all pools take turns until all are refused.
        while (0..PORTS).filter(|&input| offer(&mut memory, input, output, bytes)).count() > 0 {
            held = memory.occupancy(output).bytes;
        }
        let frame = Bytes::new(bytes.into());
        if let Some(most) = layout.occupancy_max(output, frame) {
            let pools = layout.pool_sizes().len().max(1) as u64;
            prop_assert!(held <= most.get() * pools, "{held} in {most}");
        }
        // One input alone stays within the limit of one pool or module, up to the frame that passes a threshold.
        let mut memory = Memory::new(&layout).unwrap();
        while offer(&mut memory, 0, output, bytes) {}
        let held = memory.occupancy(output).bytes;
        let limit = layout.output_limit(output, 1).expect("each of these layouts has a limit");
        prop_assert!(held <= limit.get().max(layout.output_limits()[output].get().min(limit.get() + u64::from(bytes))));
    }

    #[test]
    fn the_size_bounds_all_that_is_held(
        layout in layouts(),
        frames in prop::collection::vec((0..PORTS, 0..PORTS, 64u32..1519), 1..400),
    ) {
        let mut memory = Memory::new(&layout).unwrap();
        for (input, output, bytes) in frames {
            offer(&mut memory, input, output, bytes);
        }
        let held: u64 = (0..PORTS).map(|output| memory.occupancy(output).bytes).sum();
        prop_assert!(held <= layout.size().expect("each of these layouts has a size").get());
    }
}

#[test]
fn a_memory_without_a_limit_says_so() {
    let layout = Layout::unlimited(PORTS);
    assert_eq!(
        (layout.output_limit(0, 1), layout.occupancy_max(0, Bytes::new(1518)), layout.size()),
        (None, None, None)
    );
    assert_eq!(layout.room(0, Bytes::new(u64::MAX / 2)), Bytes::MAX);
}
