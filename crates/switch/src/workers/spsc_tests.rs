//! The ring between two real threads; `tests/interleavings.rs` tries every interleaving.

use super::spsc::spsc;

#[test]
fn a_full_ring_gives_the_value_back() {
    let (mut sender, mut receiver) = spsc(4);
    for round in 0..10 {
        for value in 0..4 {
            assert_eq!(sender.put(round * 4 + value), Ok(()));
        }
        assert_eq!(sender.put(99), Err(99));
        for value in 0..4 {
            assert_eq!(receiver.take(), Some(round * 4 + value));
        }
        assert_eq!(receiver.take(), None);
    }
}

#[test]
fn all_values_arrive_in_order() {
    // Under Miri a step takes a thousand times as long.
    const VALUES: u32 = if cfg!(miri) { 300 } else { 100_000 };
    let (mut sender, mut receiver) = spsc(64);
    let producer = std::thread::spawn(move || {
        for value in 0..VALUES {
            while sender.put(value).is_err() {
                std::thread::yield_now();
            }
        }
    });
    for wanted in 0..VALUES {
        let value = loop {
            match receiver.take() {
                Some(value) => break value,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(value, wanted);
    }
    producer.join().unwrap();
}
