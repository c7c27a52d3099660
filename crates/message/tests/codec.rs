//! The framing, fed with arbitrary bytes in arbitrary pieces.

use fanin_message::{Assembler, Frame, Header, Limits, Oversize, Partial};
use proptest::prelude::*;

/// Feed `bytes` in pieces of the given sizes, over and over; the frames, and how it ended.
fn feed(
    assembler: &mut Assembler,
    limits: &Limits,
    bytes: &[u8],
    pieces: &[usize],
) -> (Vec<Frame>, Result<(u64, u64), Oversize>) {
    let (mut partial, mut frames, mut left) = (Partial::default(), Vec::new(), bytes);
    let mut sizes = pieces.iter().copied().cycle();
    while !left.is_empty() {
        let space = assembler.space(&mut partial).expect("memory");
        assert!(space.iter().any(|space| !space.is_empty()), "nowhere to read to");
        let mut piece = sizes.next().unwrap_or(1).clamp(1, left.len());
        let mut filled = 0;
        for space in space {
            let here = piece.min(space.len());
            space[..here].copy_from_slice(&left[..here]);
            left = &left[here..];
            piece -= here;
            filled += here;
        }
        assembler.filled(&mut partial, filled);
        loop {
            match assembler.next_frame(&mut partial, limits) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(oversize) => {
                    assembler.discard(&mut partial);
                    return (frames, Err(oversize));
                }
            }
        }
    }
    let end = (partial.got(), partial.needed());
    assembler.forget(&mut partial);
    (frames, Ok(end))
}

/// The same, written as plainly as it can be.
fn naive(limits: &Limits, mut bytes: &[u8]) -> (Vec<(u32, u32, Vec<u8>)>, Result<u64, Oversize>) {
    let mut frames = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let Header { kind, stream, size } = Header::from_bytes(header);
        if size > limits.size_max(kind) {
            return (frames, Err(Oversize { kind, size, limit: limits.size_max(kind) }));
        }
        if rest.len() < size as usize {
            break;
        }
        let (payload, rest) = rest.split_at(size as usize);
        frames.push((kind, stream, payload.to_vec()));
        bytes = rest;
    }
    (frames, Ok(bytes.len() as u64))
}

fn limits() -> Limits {
    Limits {
        message_bytes_max: 300_000,
        by_kind: vec![(3, 50)],
        receive_block_bytes: 4096,
        ..Limits::default()
    }
}

fn compare(bytes: &[u8], pieces: &[usize], keep: bool) -> Result<(), TestCaseError> {
    let limits = limits();
    let mut assembler = Assembler::standalone(&limits).unwrap();
    let (frames, end) = feed(&mut assembler, &limits, bytes, pieces);
    let (expected, expected_end) = naive(&limits, bytes);
    prop_assert_eq!(frames.len(), expected.len());
    for (frame, (kind, stream, payload)) in frames.iter().zip(&expected) {
        prop_assert_eq!((frame.kind, frame.stream), (*kind, *stream));
        prop_assert!(frame.payload[..] == payload[..]);
    }
    prop_assert_eq!(end.map(|(got, _)| got), expected_end);
    // Whether earlier frames are still held or not makes no difference to later ones.
    if keep {
        let again = feed(&mut assembler, &limits, bytes, &[usize::MAX]).0;
        prop_assert_eq!(frames, again);
    }
    Ok(())
}

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
        keep in any::<bool>(),
    ) {
        let bytes = messages.concat();
        compare(&bytes, &pieces, keep)?;
        compare(&bytes[..cut.index(bytes.len())], &pieces, keep)?;
    }

    #[test]
    fn arbitrary_bytes_are_read_as_the_plain_reader_reads_them(
        bytes in prop::collection::vec(prop_oneof![4 => Just(0u8), 3 => 0u8..8, 1 => any::<u8>()], 0..3000),
        pieces in pieces(),
    ) {
        compare(&bytes, &pieces, true)?;
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
        compare(&bytes, &[at, usize::MAX], true).unwrap();
    }
}
