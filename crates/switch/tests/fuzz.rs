//! The fuzz target of the data path, without a fuzzer: its corpus, and random mutations of it for as long as
//! `FANIN_FUZZ_SECONDS` says (1 unless set).

#[path = "common/hostile.rs"]
#[allow(unreachable_pub, reason = "the fuzz target uses it too")]
mod hostile;

use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn any_bytes_are_frames_for_a_switch() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/switch");
    let mut paths: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "the corpus is not there");
    seeds.iter().for_each(|seed| hostile::check(seed));
    let seconds = std::env::var("FANIN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below.max(1)
    };
    while Instant::now() < end {
        let mut input = seeds[random(seeds.len())].clone();
        for _ in 0..=random(8) {
            if input.is_empty() {
                break;
            }
            let at = random(input.len());
            match random(6) {
                0 => input[at] ^= 1 << random(8),
                1 => input[at] = [0, 1, 4, 0x45, 127, 128, 255][random(7)],
                2 => input.truncate(at),
                3 => drop(input.drain(at..(at + random(40)).min(input.len()))),
                4 => input.splice(at..at, vec![random(256) as u8; random(40)]).for_each(drop),
                // The same frames again, from another place on.
                _ => input.extend_from_within(at..),
            }
            input.truncate(1 << 16);
        }
        let copy = input.clone();
        let result = std::panic::catch_unwind(|| hostile::check(&input));
        assert!(result.is_ok(), "this input shows it, as a file for `fuzz/corpus/switch`: {copy:02x?}");
    }
}
