//! The fuzz targets, without a fuzzer: each format's corpus, and random mutations of it for as long as
//! `FANIN_FUZZ_SECONDS` says (1 unless set).

#[path = "common/check.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it too")]
mod check;

use std::path::Path;
use std::time::{Duration, Instant};

use fanin_events::Format;

fn fuzz(folder: &str, format: Format) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(folder);
    let mut seeds: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "the corpus is not there");
    seeds.iter().for_each(|seed| check::check(seed, format));
    let seconds = std::env::var("FANIN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below.max(1)
    };
    while Instant::now() < end {
        let mut input = seeds[random(seeds.len())].clone();
        for _ in 0..=random(6) {
            if input.is_empty() {
                break;
            }
            let at = random(input.len());
            match random(7) {
                0 => input[at] ^= 1 << random(8),
                1 => input[at] = [0, 1, 4, 127, 128, 255][random(6)],
                2 => input.truncate(at),
                3 => drop(input.drain(at..(at + random(40)).min(input.len()))),
                4 => input.splice(at..at, vec![random(256) as u8; random(40)]).for_each(drop),
                // A word that lies: sizes, counts and offsets are 32-bit words.
                5 => {
                    let word = [0, 1, u32::MAX, 1 << 31, input.len() as u32][random(5)].to_le_bytes();
                    input[at & !3..].iter_mut().zip(word).for_each(|(to, from)| *to = from);
                }
                _ => input.extend_from_within(at..),
            }
        }
        let copy = input.clone();
        let result = std::panic::catch_unwind(|| check::check(&input, format));
        assert!(result.is_ok(), "this input shows it, as a file for `fuzz/corpus/{folder}`: {copy:02x?}");
    }
}

#[test]
fn atlas() {
    fuzz("atlas", Format::Atlas);
}

#[test]
fn frag() {
    fuzz("frag", Format::Frag);
}

#[test]
fn mdf() {
    fuzz("mdf", Format::Mdf);
}

#[test]
fn rdh() {
    fuzz("rdh", Format::Rdh);
}
