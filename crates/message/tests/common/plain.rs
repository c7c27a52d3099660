//! A naive reader of frames, compared with the assembler.

use fanin_message::{ArrivedMessage, Assembler, Header, Limits, Oversize, Partial};

/// Small limits, so that small inputs reach them.
pub fn limits() -> Limits {
    Limits {
        message_bytes_max: 300_000,
        by_kind: vec![(3, 50)],
        receive_block_bytes: 4096,
        ..Limits::default()
    }
}

/// Feeds `bytes` in pieces of the given sizes, repeatedly. Returns the frames, and the end: the bytes of an unfinished
/// frame, or a frame that is too large.
pub fn feed(
    assembler: &mut Assembler,
    limits: &Limits,
    bytes: &[u8],
    pieces: &[usize],
) -> (Vec<ArrivedMessage>, Result<u64, Oversize>) {
    let (mut partial, mut frames, mut left) = (Partial::default(), Vec::new(), bytes);
    let mut sizes = pieces.iter().copied().cycle();
    while !left.is_empty() {
        let space = assembler.space(&mut partial).expect("there is memory");
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
    let (received, needed) = (partial.received(), partial.needed());
    assert!(received <= needed, "{received} of {needed}");
    assembler.forget(&mut partial);
    (frames, Ok(received))
}

/// A naive reader of the same frames.
fn plain(limits: &Limits, mut bytes: &[u8]) -> (Vec<ArrivedMessage>, Result<u64, Oversize>) {
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
        frames.push(ArrivedMessage { kind, stream, payload: payload.to_vec().into() });
        bytes = rest;
    }
    (frames, Ok(bytes.len() as u64))
}

/// Compares the two readers on bytes cut into pieces; panics if they differ.
pub fn compare(bytes: &[u8], pieces: &[usize]) {
    let limits = limits();
    let mut assembler = Assembler::standalone(&limits).expect("a system with descriptors");
    let expected = plain(&limits, bytes);
    let first = feed(&mut assembler, &limits, bytes, pieces);
    assert_eq!(first, expected);
    // Keeping earlier frames does not change later ones.
    assert_eq!(feed(&mut assembler, &limits, bytes, &[usize::MAX]), expected);
    drop(first);
    assert_eq!(feed(&mut assembler, &limits, bytes, pieces), expected);
}

/// Checks one input of a fuzzer: its first four bytes are the sizes of the pieces into which the rest is cut.
pub fn check(input: &[u8]) {
    let (sizes, bytes) = input.split_at(input.len().min(4));
    let pieces: Vec<usize> = sizes.iter().map(|size| usize::from(*size) * usize::from(*size)).collect();
    compare(bytes, &pieces);
}
