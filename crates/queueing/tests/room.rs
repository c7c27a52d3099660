//! A memory admits exactly the frames for which [`Memory::room`] has room.

use std::collections::VecDeque;

use fanin_queueing::{Frame, FrameCount, Layout, Memory};
use fanin_units::{Bytes, Instant, Ratio};
use proptest::prelude::*;

const PORTS: usize = 3;

fn layouts() -> impl Strategy<Value = Layout> {
    let size = || 1_000u64..40_000;
    let scheme = prop_oneof![
        prop::collection::vec(size(), PORTS)
            .prop_map(|sizes| Layout::dedicated(sizes.into_iter().map(Bytes::new).collect())),
        size().prop_map(|size| Layout::shared(PORTS, Bytes::new(size))),
        (size(), prop::sample::select(vec![500_000u64, 1_000_000, 2_000_000])).prop_map(|(size, alpha)| {
            Layout::dynamic_threshold(PORTS, Bytes::new(size), Ratio::new(alpha))
        }),
    ];
    let limit = prop::option::of(size());
    (scheme, limit, prop::sample::select(vec![0u64, 30]), prop::sample::select(vec![1u64, 200])).prop_map(
        |(layout, limit, overhead, cell)| {
            let layout = match limit {
                Some(limit) => layout.with_output_limit(Bytes::new(limit)),
                None => layout,
            };
            layout.with_cells(Bytes::new(overhead), Bytes::new(cell))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn room_is_what_is_let_in(
        layout in layouts(),
        steps in prop::collection::vec((0..4u8, 0..PORTS, 0..PORTS, 64u32..9018), 1..120),
    ) {
        let mut memory = Memory::new(&layout).unwrap();
        let mut held = VecDeque::new();
        let now = Instant::START;
        for (operation, input, output, bytes) in steps {
            if operation == 0 {
                if let Some((input, output, bytes)) = held.pop_front() {
                    memory.depart(now, input, output, bytes);
                }
            } else if memory.arrive(now, input, output, Frame::new(bytes), || 0).is_accepted() {
                held.push_back((input, output, bytes));
            }
            let room = memory.room(input, output);
            let lets_in = |bytes: u32| memory.clone().arrive(now, input, output, Frame::new(bytes), || 0).is_accepted();
            prop_assert!(room == 0 || lets_in(room), "{room} bytes are too many");
            prop_assert!(!lets_in(room + 1), "{room} bytes are too few");
            // A passing frame is counted, and takes no memory.
            let (occupancy, enqueued) = (*memory.occupancy(output), memory.counters(output).enqueued);
            memory.count_cut_through(now, output, FrameCount { frames: 2, bytes: 128 });
            prop_assert_eq!(*memory.occupancy(output), occupancy);
            let counters = memory.counters(output);
            prop_assert_eq!(counters.enqueued, FrameCount { frames: enqueued.frames + 2, bytes: enqueued.bytes + 128 });
            prop_assert_eq!(counters.enqueued.frames, counters.departed.frames + occupancy.frames);
        }
    }
}
