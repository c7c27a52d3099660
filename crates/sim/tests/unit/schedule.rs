//! The schedule keeps the order of a sorted list.

use super::*;
use crate::occurrence::Occurrence::{Arrival, HostTimer};

#[test]
fn keeps_the_order_of_a_sorted_list() {
    for bucket_ps in [1 << 8, 1 << 16, 1 << 30] {
        // Without names all ranks are equal.
        let mut schedule = Schedule::new(bucket_ps, 50, Ties::default());
        let mut is_pending = [false; 50];
        let mut frames = [0; 50];
        let mut expected: Vec<(u64, Occurrence)> = Vec::new();
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let mut now = 0;
        for number in 0..30_000_u32 {
            // Equal, near, far and very far times.
            let ahead = match random() % 7 {
                0 => 0,
                // Within the ring of blocks, for one bucket width or another.
                6 => random() % (1 << (20 + random() % 28)),
                1 => random() % 1_000,
                2 => random() % 20_000_000,
                3 => random() % 2_000_000_000,
                4 => (random() % 8) * 100_000_000_000,
                _ => (random() % 4) * 3_000_000_000_000,
            };
            // Every other one is an arrival; each port has one at a time.
            let port = number % 50;
            let occurrence = if number % 2 == 0 && !is_pending[port as usize] {
                is_pending[port as usize] = true;
                schedule.insert_arrival(now + ahead, port, Parcel::new(NIL, port, number, 0));
                frames[port as usize] = number;
                Arrival(port)
            } else {
                schedule.insert(now + ahead, HostTimer(number));
                HostTimer(number)
            };
            let position = expected.partition_point(|&(time, _)| time <= now + ahead);
            expected.insert(position, (now + ahead, occurrence));
            if random() % 3 != 0 {
                let (time, occurrence) = expected.remove(0);
                if time > now {
                    let waits = schedule.pop(time - 1);
                    assert!(
                        matches!(waits, Some((at, None)) if (now..=time).contains(&at)),
                        "{waits:?} at {time}"
                    );
                }
                assert_eq!(schedule.pop(time), Some((time, Some(occurrence))));
                now = time;
                if let Arrival(port) = occurrence {
                    is_pending[port as usize] = false;
                    assert_eq!(schedule.frame(port).wire_bytes(), frames[port as usize]);
                }
            }
        }
        assert!(schedule.holds_more_than(expected.len() - 1) && !schedule.holds_more_than(expected.len()));
        for (time, occurrence) in expected {
            assert_eq!(schedule.pop(NEVER), Some((time, Some(occurrence))));
        }
        assert_eq!(schedule.pop(NEVER), None);
    }
}
