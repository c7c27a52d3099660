//! Two endpoints over a channel that loses, reorders and duplicates. Every byte arrives once and in order, windows are
//! never exceeded, counters balance, and the same seed gives the same trace.

mod harness;

use fanin_tcp::{
    Config, CongestionConfig, DctcpParameters, DelayedAck, LossDetection, PROFILES, Segmentation, Stack,
    SwiftParameters,
};
use fanin_units::{Duration, Instant};
use harness::{Pair, Wire};
use proptest::prelude::*;

const DETECTIONS: [LossDetection; 4] =
    [LossDetection::DuplicateAcks, LossDetection::Rfc6675, LossDetection::Fack, LossDetection::Rack];
const STACKS: [Stack; 4] = [Stack::Linux6, Stack::Linux2_6, Stack::Ns3, Stack::Textbook];

fn run(config: &Config, wire: &Wire, seed: u64, requests: &[(u8, u32)]) -> Pair {
    let mut pair = Pair::new(config, wire, seed);
    let mut written = [0, 0];
    for &(side, bytes) in requests {
        let side = usize::from(side & 1);
        pair.write(side, u64::from(bytes));
        written[side] += u64::from(bytes);
        let pause = pair.now + Duration::from_micros(u64::from(bytes) % 700);
        pair.run(pause);
    }
    pair.run(Instant::START + Duration::from_secs(100_000));
    for (side, bytes) in written.into_iter().enumerate() {
        assert_eq!(pair.ends[1 - side].delivered(), bytes, "all bytes arrive\n{}", tail(&pair));
        assert_eq!(pair.ends[side].acked(), bytes, "and are acknowledged");
    }
    pair
}

fn tail(pair: &Pair) -> String {
    let text = pair.show();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn delivers_everything(
        profile in 0..PROFILES.len(),
        variant in 0..23_u8,
        loss in 0..200_u64,
        duplication in 0..50_u64,
        reordering in 0..100_u64,
        mark in 0..100_u64,
        queue in 3..200_usize,
        seed: u64,
        requests in prop::collection::vec((0..2_u8, 1..60_000_u32), 1..12),
    ) {
        let mut config = Config::profile(PROFILES[profile]).unwrap();
        match variant {
            1 => config.congestion_control = CongestionConfig::Static { static_window: 2 },
            2 => config.sack = !config.sack,
            3 => config.delayed_ack = DelayedAck::Off,
            4 => config.ecn = true,
            5 => config.nodelay = false,
            6 => config.segmentation = Some(Segmentation { offload_burst: 65_536, window_divisor: 3, autosize: false }),
            7 => { config.receive_offload = true; config.segmentation = Some(Segmentation { offload_burst: 65_536, window_divisor: 0, autosize: true }); }
            8 => {
                config.receive_window = 6_000;
                config.receive_window_initial = 6_000;
            }
            9 => config.rto.min = Duration::from_millis(1),
            10 => {
                config.congestion_control = CongestionConfig::NewReno;
                config.rto.spread = 512;
            }
            11 => {
                config.limited_transmit = false;
                config.congestion_control = CongestionConfig::Static { static_window: 1 };
            }
            12 | 13 => {
                config.ecn = true;
                config.ecn_exact = true;
                config.congestion_control = CongestionConfig::Dctcp(DctcpParameters {
                    gain: 62_500,
                    alpha_initial: 1_000_000,
                    window_min: u32::from(variant - 11),
                });
            }
            14 => {
                config.congestion_control = CongestionConfig::Swift(SwiftParameters {
                    target: Duration::from_micros(120),
                    scaling: Duration::from_micros(300),
                    beta: 800_000,
                    decrease_max: 500_000,
                });
            }
            15..=18 => config.loss_detection = DETECTIONS[usize::from(variant - 15)],
            19..=22 => config.stack = STACKS[usize::from(variant - 19)],
            _ => {}
        }
        let mut wire = Wire::new("1 Gb/s", "50 us");
        wire.loss = loss;
        wire.duplication = duplication;
        wire.reordering = reordering;
        wire.mark = mark;
        wire.queue_frames = queue;
        let first = run(&config, &wire, seed, &requests);
        let again = run(&config, &wire, seed, &requests);
        prop_assert!(first.trace == again.trace, "the same seed gives the same trace");
    }
}

#[test]
fn without_loss_the_rule_of_loss_detection_changes_nothing() {
    for name in PROFILES {
        let mut config = Config::profile(name).unwrap();
        config.ecn = true;
        let mut wire = Wire::new("1 Gb/s", "50 us");
        wire.mark = 20;
        let played = DETECTIONS.map(|loss_detection| {
            config.loss_detection = loss_detection;
            config.set_rto_min(Duration::from_millis(3));
            (run(&config, &wire, 1, &[(0, 500_000), (1, 3_000)]).show(), config.rto.min, config.delayed_ack)
        });
        let first = played[0].clone();
        assert!(played.iter().all(|other| *other == first), "{name}");
    }
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    for name in PROFILES {
        let config = Config::profile(name).unwrap();
        let pair = run(&config, &Wire::new("1 Gb/s", "50 us"), 1, &[(0, 5_000_000), (1, 5_000_000)]);
        for side in 0..2 {
            let stats = pair.ends[side].stats(&pair.configs[side]);
            assert_eq!((stats.retransmits, stats.timeouts), (0, 0), "{name}");
            // Short segments fill the end of the offered window (`Config::fills_window`), while it grows.
            let least = 5_000_000_u64.div_ceil(u64::from(config.mss));
            let most = least + if config.fills_window { least / 100 } else { 0 };
            assert!((least..=most).contains(&stats.segments), "{name}: {} segments", stats.segments);
        }
    }
}
