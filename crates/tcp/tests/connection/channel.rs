//! Lost segments: each one of an exchange, all of them, and a random share.

use fanin_tcp::ConnectionState as S;
use fanin_tcp::{CloseReason, Config, ConnectionLimits, PROFILES, TcpConnection};
use fanin_units::{Duration, Instant};
use proptest::prelude::*;

use crate::pair::{Pair, Random};

#[test]
fn a_silent_peer_is_given_up() {
    let limits = ConnectionLimits { syn_retries_max: 3, retries_max: 4, ..ConnectionLimits::default() };
    let mut end = TcpConnection::with_limits(Config::linux_6(), limits);
    end.connect().unwrap();
    let mut now = Instant::START;
    let mut syns = 0;
    loop {
        syns += std::iter::from_fn(|| end.poll_transmit(now)).count();
        let Some(next) = end.poll_deadline() else { break };
        now = next;
        end.handle_deadline(now);
    }
    assert_eq!((syns, end.close_reason()), (4, Some(CloseReason::TimedOut)));
    // 1 + 2 + 4 + 8 seconds, and ticks of the timer wheel.
    assert!(now > Instant::START + Duration::from_secs(15), "{now}");

    let mut pair = Pair::established();
    pair.loss = 1000;
    pair.send(0, 1_000);
    pair.finish();
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::TimedOut));
    assert_eq!(pair.ends[1].state(), S::Established, "it has nothing to send");
}

/// Opens, transfers both ways, closes both sides; `lost` has the numbers of the segments to drop.
fn exchange(lost: &[usize]) -> Pair {
    let mut pair = Pair::linux();
    pair.lost = lost.to_vec();
    pair.open();
    pair.send(0, 2_000);
    let mut has_closed = [false; 2];
    while pair.step(Instant::FAR_FUTURE) {
        for (side, has_closed) in has_closed.iter_mut().enumerate() {
            if pair.ends[side].state() == S::Established && !*has_closed && pair.ends[1].received() == 2_000 {
                *has_closed = true;
                pair.ends[side].send(3_000).unwrap();
                pair.close(side);
            }
        }
    }
    pair
}

#[test]
fn the_loss_of_any_segment_is_repaired() {
    let count = exchange(&[]).segments.len();
    assert!(count > 8, "{count}");
    for first in 0..count {
        for second in first..count + 2 {
            let pair = exchange(&[first, second]);
            assert_eq!(pair.states(), [S::Closed; 2], "lost {first} and {second}");
            assert_eq!(pair.ends[1].received(), 5_000, "lost {first} and {second}");
            for end in &pair.ends {
                assert_eq!(end.close_reason(), Some(CloseReason::Finished), "lost {first} and {second}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn everything_arrives_and_both_ends_close(
        profiles in [0..PROFILES.len(), 0..PROFILES.len()],
        loss in 0..250_u64,
        duplication in 0..200_u64,
        reordering in 0..300_u64,
        seed: u64,
        bytes in [0..200_000_u64, 0..200_000_u64],
        is_simultaneous: bool,
        // For each end, true if it closes at once, false if it first receives everything.
        closes_early in [any::<bool>(), any::<bool>()],
        small_window: bool,
        nodelay: bool,
    ) {
        let configs = profiles.map(|profile| {
            let mut config = Config::profile(PROFILES[profile]).unwrap();
            config.nodelay = nodelay;
            if small_window {
                config.receive_window = 5_000;
                config.receive_window_initial = 5_000;
            }
            config
        });
        let mut pair = Pair::new(configs);
        let limits = ConnectionLimits { syn_retries_max: 30, retries_max: 30, ..ConnectionLimits::default() };
        pair.ends = [0, 1].map(|side| TcpConnection::with_limits(pair.ends[side].config().clone(), limits));
        (pair.loss, pair.duplication, pair.reordering, pair.random) = (loss, duplication, reordering, Random(seed));
        if is_simultaneous {
            pair.ends[1].connect().unwrap();
        } else {
            pair.ends[1].listen().unwrap();
        }
        pair.ends[0].connect().unwrap();
        pair.drain();
        let mut has_sent = [false; 2];
        let mut has_closed = [false; 2];
        let mut received = [0; 2];
        while pair.step(Instant::FAR_FUTURE) {
            for side in 0..2 {
                received[side] = pair.ends[side].received().max(received[side]);
                let state = pair.ends[side].state();
                if !matches!(state, S::Established | S::CloseWait) {
                    continue;
                }
                if !has_sent[side] {
                    has_sent[side] = true;
                    pair.send(side, bytes[side]);
                }
                let has_all = received[side] == bytes[1 - side];
                if !has_closed[side] && (closes_early[side] || has_all || state == S::CloseWait) {
                    has_closed[side] = true;
                    pair.close(side);
                }
            }
        }
        prop_assert_eq!(pair.states(), [S::Closed; 2]);
        for (end, reasons) in pair.ends.iter().zip([CloseReason::Finished; 2]) {
            prop_assert_eq!(end.close_reason(), Some(reasons));
        }
        prop_assert_eq!(received, [bytes[1], bytes[0]]);
    }
}
