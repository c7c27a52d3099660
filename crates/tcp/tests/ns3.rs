//! The profile `ns3-newreno` repairs the same holes as ns-3, none of them by a timeout. The segments that ns-3.44 retransmits
//! were recorded with `tests/ns3/incast.cc --senders=1 --delay=0 --jitter=0 --lost=…`; `tests/ns3/losses.py` compares many more.

mod harness;

use fanin_tcp::{Config, Endpoint, Flags};
use fanin_units::{Duration, Instant};
use harness::{Pair, Wire};

const BLOCK_BYTES: u64 = 256_000;

/// The transmissions lost, counted from 0, and the segments that ns-3 retransmits, by their number in the stream. A retransmission
/// counts as a transmission, so that later segments have higher numbers as transmissions.
const RECORDED: [(&[u64], &[u64]); 5] = [
    (&[56, 57, 166], &[56, 57, 165]),
    (&[40, 60, 61, 62, 100], &[40, 60, 61, 62, 99]),
    (&[100, 174, 175], &[100, 174, 175]),
    (&[26, 27, 28, 29, 30, 32, 79, 80], &[26, 27, 28, 29, 30, 32, 78, 79]),
    (
        &[48, 49, 52, 53, 54, 55, 56, 119, 120, 121, 123, 124],
        &[48, 49, 52, 53, 54, 55, 56, 118, 119, 120, 122, 123],
    ),
];

fn transfer(config: &Config, lost: &[u64]) -> Pair {
    let mut wire = Wire::new("1 Gb/s", "62 us");
    let back = wire.clone();
    // The wire counts from 1.
    wire.drop_data = lost.iter().map(|number| number + 1).collect();
    let ends = [Endpoint::new(config), Endpoint::new(config)];
    let mut pair = Pair::with([config.clone(), config.clone()], ends, [wire, back], 1);
    pair.write(0, BLOCK_BYTES);
    let end = Instant::START + Duration::from_secs(60);
    pair.run_until_delivered(1, BLOCK_BYTES, end).expect("the transfer ends");
    pair
}

fn retransmitted(pair: &Pair) -> Vec<u64> {
    let mss = u64::from(pair.configs[0].mss);
    let again = pair.trace.iter().filter(|line| line.2.flags.contains(Flags::RETRANSMISSION));
    again.map(|line| line.2.offset / mss).collect()
}

#[test]
fn repairs_the_holes_that_ns3_repairs() {
    let config = Config::ns3_newreno();
    for (lost, expected) in RECORDED {
        let pair = transfer(&config, lost);
        let stats = pair.ends[0].stats(&config);
        assert_eq!(retransmitted(&pair), expected, "{lost:?} are lost");
        assert_eq!(stats.timeouts, 0, "{lost:?} are lost");
    }
}

// With SACK or ECN the profile reduces the window, too.
#[test]
fn sacks_and_marks_reduce_the_window_too() {
    let with_sack = Config { sack: true, ..Config::ns3_newreno() };
    let pair = transfer(&with_sack, &[56, 57, 60, 166]);
    let stats = pair.ends[0].stats(&with_sack);
    assert_eq!((stats.timeouts, stats.retransmits), (0, 4), "{}", pair.show());
    assert!(stats.ssthresh < BLOCK_BYTES, "{}", stats.ssthresh);

    let with_ecn = Config { ecn: true, ..Config::ns3_newreno() };
    let mut wire = Wire::new("1 Gb/s", "62 us");
    let back = wire.clone();
    wire.mark = 20;
    let ends = [Endpoint::new(&with_ecn), Endpoint::new(&with_ecn)];
    let mut pair = Pair::with([with_ecn.clone(), with_ecn.clone()], ends, [wire, back], 1);
    pair.write(0, BLOCK_BYTES);
    pair.run_until_delivered(1, BLOCK_BYTES, Instant::START + Duration::from_secs(60))
        .expect("the transfer ends");
    let stats = pair.ends[0].stats(&with_ecn);
    assert_eq!((stats.timeouts, stats.retransmits), (0, 0));
    assert!(stats.ssthresh < BLOCK_BYTES, "{}", stats.ssthresh);
}

// A block ends in a short segment, which is lost, with the next block behind it. Duplicates mark the segments above that short head,
// and the boundaries of later segments stay.
#[test]
fn a_short_head_is_one_segment() {
    let config = Config::ns3_newreno();
    let mut wire = Wire::new("1 Gb/s", "62 us");
    let back = wire.clone();
    // The last segment of the first block, 500 bytes.
    wire.drop_data = [11].into();
    let ends = [Endpoint::new(&config), Endpoint::new(&config)];
    let mut pair = Pair::with([config.clone(), config.clone()], ends, [wire, back], 1);
    let block = 10 * 1460 + 500;
    pair.write(0, block);
    let run =
        |pair: &mut Pair| pair.run_until_delivered(1, 9 * 1460, Instant::START + Duration::from_secs(1));
    run(&mut pair).expect("most of the block arrives");
    pair.write(0, block);
    let end = Instant::START + Duration::from_secs(10);
    pair.run_until_delivered(1, 2 * block, end).expect("the transfer ends");
    let stats = pair.ends[0].stats(&config);
    let again = pair.trace.iter().filter(|line| line.2.flags.contains(Flags::RETRANSMISSION));
    assert_eq!(again.map(|line| (line.2.offset, line.2.payload)).collect::<Vec<_>>(), [(10 * 1460, 500)]);
    assert_eq!((stats.timeouts, stats.fast_retransmits), (0, 1));
}

// An answer ends in a short segment, with two more answers behind it. All that follows is lost and sent again after the timeout, as
// ns-3.48 sends it (`incast.cc --block=13222 --requests=3 --gap=10037 --lost=9,…,27`): the short one takes bytes of the next.
#[test]
fn a_short_segment_that_is_sent_again_takes_bytes_of_the_next() {
    let config = Config::ns3_newreno();
    let mut wire = Wire::new("1 Gb/s", "62 us");
    let back = wire.clone();
    wire.drop_data = (10..=28).collect();
    let ends = [Endpoint::new(&config), Endpoint::new(&config)];
    let mut pair = Pair::with([config.clone(), config.clone()], ends, [wire, back], 1);
    let answer = 13_222;
    (0..3).for_each(|_| pair.write(0, answer));
    let end = Instant::START + Duration::from_secs(60);
    pair.run_until_delivered(1, 3 * answer, end).expect("the transfer ends");
    let again = pair.trace.iter().filter(|line| line.2.flags.contains(Flags::RETRANSMISSION));
    let sent: Vec<_> = again.map(|line| (line.2.offset, line.2.payload)).collect();
    let expected: Vec<_> =
        (0..18).map(|number| (13_140 + 1460 * number, 1460)).chain([(39_420, 246)]).collect();
    assert_eq!(sent, expected, "{}", pair.show());
}
