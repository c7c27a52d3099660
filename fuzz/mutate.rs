//! A fuzz target without a fuzzer: its corpus, and random mutations of it. Tests include this file by its path.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest input.
const BYTES_MAX: usize = 1 << 16;
/// The most changes of one seed.
const CHANGES_MAX: usize = 8;
/// Bytes that mean something in many formats.
const BYTES: [u8; 11] = [0, 1, 3, 4, 0x45, b'"', b'[', 127, 128, 254, 255];

/// Feeds `check` the corpus in `fuzz/corpus/FOLDER`, and then mutations of it, from the seed `FANIN_FUZZ_SEED` (1 unless set).
/// It stops after `FANIN_FUZZ_INPUTS` inputs; without them after `FANIN_FUZZ_SECONDS` (1 unless set), divided by `targets` that
/// share this time. It prints the number of inputs. `words` are what the format is made of, if it is made of words.
///
/// # Panics
/// If `check` panics, with the input that made it.
#[allow(clippy::print_stdout, reason = "the number of inputs is what a long run is for")]
pub(crate) fn mutate(folder: &str, words: &[&str], targets: u32, check: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(corpus)
        .expect("a folder with the corpus")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> =
        paths.iter().map(|path| std::fs::read(path).expect("a file of the corpus")).collect();
    assert!(!seeds.is_empty(), "the corpus is not there");
    let check = |input: &[u8]| {
        let result = catch_unwind(AssertUnwindSafe(|| check(input)));
        assert!(
            result.is_ok(),
            "this input shows it, as a file for `fuzz/corpus/{folder}`: {input:02x?}, {:?}",
            String::from_utf8_lossy(input)
        );
    };
    seeds.iter().for_each(|seed| check(seed));
    let setting = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = setting("FANIN_FUZZ_INPUTS");
    let end = Instant::now() + Duration::from_secs(setting("FANIN_FUZZ_SECONDS").unwrap_or(1)) / targets;
    let mut inputs = seeds.len() as u64;
    let mut state = setting("FANIN_FUZZ_SEED").unwrap_or(1);
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below.max(1)
    };
    while wanted.map_or_else(|| Instant::now() < end, |wanted| inputs < wanted) {
        let mut input = seeds[random(seeds.len())].clone();
        for _ in 0..=random(CHANGES_MAX) {
            if input.is_empty() {
                break;
            }
            let at = random(input.len());
            match random(9) {
                0 => input[at] ^= 1 << random(8),
                1 => input[at] = BYTES[random(BYTES.len())],
                2 => input.truncate(at),
                3 => drop(input.drain(at..(at + random(40)).min(input.len()))),
                4 => input.splice(at..at, vec![random(256) as u8; random(40)]).for_each(drop),
                // A word that lies: sizes, counts and offsets are 32-bit words.
                5 => {
                    let word = [0, 1, u32::MAX, 1 << 31, input.len() as u32][random(5)].to_le_bytes();
                    input[at & !3..].iter_mut().zip(word).for_each(|(to, from)| *to = from);
                }
                // A part of another seed.
                6 => {
                    let other = &seeds[random(seeds.len())];
                    let from = random(other.len());
                    let part = &other[from..(from + random(200)).min(other.len())];
                    input.splice(at..at, part.iter().copied()).for_each(drop);
                }
                7 if !words.is_empty() => {
                    let word = words[random(words.len())].bytes();
                    let until = (at + random(12)).min(input.len());
                    input.splice(at..until, word).for_each(drop);
                }
                _ => input.extend_from_within(at..),
            }
            input.truncate(BYTES_MAX);
        }
        check(&input);
        inputs += 1;
    }
    println!("fuzz target {folder}: {inputs} inputs");
}
