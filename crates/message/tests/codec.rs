//! The framing, fed with arbitrary bytes in arbitrary pieces, and compared with a naive reader.

#[path = "../../../fuzz/mutate.rs"]
mod mutate;
#[path = "common/plain.rs"]
#[allow(unreachable_pub, reason = "the fuzz target uses it too")]
mod plain;

use fanin_message::Header;
use plain::{check, compare};
use proptest::prelude::*;

fn message() -> impl Strategy<Value = Vec<u8>> {
    let size = prop_oneof![6 => 0usize..60, 3 => 60usize..9000, 1 => 60_000usize..200_000];
    (0u32..6, any::<u32>(), size, any::<u8>()).prop_map(|(kind, stream, size, seed)| {
        let size = if kind == 3 { size.min(50) } else { size };
        let header = Header { kind, stream, size: size as u32 };
        let payload = (0..size).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed));
        header.to_bytes().into_iter().chain(payload).collect()
    })
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1usize..30, 1usize..5000, 1usize..300_000], 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_frames_come_out_whole_however_they_are_cut(
        messages in prop::collection::vec(message(), 1..12),
        pieces in pieces(),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = messages.concat();
        compare(&bytes, &pieces);
        compare(&bytes[..cut.index(bytes.len())], &pieces);
    }

    #[test]
    fn arbitrary_bytes_are_read_as_the_plain_reader_reads_them(
        bytes in prop::collection::vec(prop_oneof![4 => Just(0u8), 3 => 0u8..8, 1 => any::<u8>()], 0..3000),
        pieces in pieces(),
    ) {
        compare(&bytes, &pieces);
    }
}

#[test]
fn every_split_of_a_few_frames_in_two_is_the_same() {
    let header = |kind, size| Header { kind, stream: 1, size }.to_bytes();
    let mut bytes = header(1, 3).to_vec();
    bytes.extend(b"abc");
    bytes.extend(header(2, 0));
    bytes.extend(header(3, 50));
    bytes.extend([7; 50]);
    bytes.extend(header(3, 51));
    for at in 1..bytes.len() {
        compare(&bytes, &[at, usize::MAX]);
    }
}

/// Checks the fuzz target without a fuzzer.
#[test]
fn the_corpus_and_its_mutations_are_read_as_the_plain_reader_reads_them() {
    mutate::mutate("frame", &[], 1, check);
}
