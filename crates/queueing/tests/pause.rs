//! An [`Ingress`] with accounts split over workers gives the same signals as a naive list of frames.
//!
//! Frames and thresholds are a few bytes, so that occupancies often equal a threshold.

use fanin_queueing::{Ingress, PauseSignal, PauseThresholds};
use fanin_units::Bytes;
use proptest::prelude::*;

const WORKERS: usize = 3;

/// A change of the frames of one input.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// A frame arrives at the account of a worker.
    Arrive { worker: usize, bytes: u64 },
    /// One of the queued frames departs from the account of any worker.
    Depart { worker: usize, frame: usize },
    /// The input's own worker sends the due signal.
    Poll,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..WORKERS, 1u64..16).prop_map(|(worker, bytes)| Change::Arrive { worker, bytes }),
        3 => (0..WORKERS, any::<usize>()).prop_map(|(worker, frame)| Change::Depart { worker, frame }),
        2 => Just(Change::Poll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn signals_are_those_of_a_list_of_frames(
        xon in 0u64..80,
        gap in 1u64..80,
        changes in prop::collection::vec(change(), 1..400),
    ) {
        let xoff = xon + gap;
        let thresholds = PauseThresholds::new(Bytes::new(xoff), Bytes::new(xon)).unwrap();
        let mut accounts = [Ingress::new(Some(thresholds)); WORKERS];
        let mut frames: Vec<u64> = Vec::new();
        let mut signals = Vec::new();
        for change in changes {
            match change {
                Change::Arrive { worker, bytes } => {
                    accounts[worker].arrive(bytes);
                    frames.push(bytes);
                }
                Change::Depart { worker, frame } if !frames.is_empty() => {
                    let bytes = frames.swap_remove(frame % frames.len());
                    accounts[worker].depart(bytes);
                }
                Change::Depart { .. } => {}
                Change::Poll => {
                    let occupancy: u64 = frames.iter().sum();
                    let expected = match signals.last() {
                        None | Some(PauseSignal::Resume) if occupancy >= xoff => Some(PauseSignal::Pause),
                        Some(PauseSignal::Pause) if occupancy <= xon => Some(PauseSignal::Resume),
                        _ => None,
                    };
                    let elsewhere = accounts[1..].iter().map(Ingress::held).sum();
                    prop_assert_eq!(accounts[0].signal_due(elsewhere), expected);
                    prop_assert_eq!(accounts[0].poll_signal(elsewhere), expected);
                    prop_assert_eq!(accounts[0].signal_due(elsewhere), None, "a signal is sent once");
                    signals.extend(expected);
                }
            }
            let elsewhere = accounts[1..].iter().map(Ingress::held).sum();
            prop_assert_eq!(accounts[0].occupancy(elsewhere), frames.iter().sum::<u64>());
            prop_assert_eq!(accounts[0].is_paused(), signals.last() == Some(&PauseSignal::Pause));
        }
    }
}
