//! Bytes a second through reading, encoding, verifying and comparing, on the KM3NeT sample.
//!
//! `cargo bench -p fanin-events`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fanin_events::atlas::{EventHeader, FileHeader, encode_event};
use fanin_events::checksum::adler32;
use fanin_events::convert::{Pairing, compare, to_atlas};
use fanin_events::{Event, Events, sample, verify};

fn files(criterion: &mut Criterion) {
    let input = sample::km3net();
    let mut atlas = Vec::new();
    to_atlas(&input, &FileHeader::default(), &mut atlas).unwrap();
    let events: Vec<Event<'_>> = Events::open(&input).unwrap().map(Result::unwrap).collect();

    let mut group = criterion.benchmark_group("km3net");
    group.throughput(Throughput::Bytes(input.len() as u64));
    group.bench_function("adler32", |bencher| bencher.iter(|| adler32(black_box(&input))));
    group.bench_function("read frag", |bencher| {
        bencher.iter(|| Events::open(black_box(&input)).unwrap().filter(Result::is_ok).count());
    });
    group.bench_function("read atlas", |bencher| {
        bencher.iter(|| Events::open(black_box(&atlas)).unwrap().filter(Result::is_ok).count());
    });
    let mut out = Vec::new();
    group.bench_function("encode atlas", |bencher| {
        bencher.iter(|| {
            out.clear();
            for event in &events {
                encode_event(&EventHeader::default(), event.fragments.iter().copied(), &mut out).unwrap();
            }
            out.len()
        });
    });
    group.bench_function("verify atlas", |bencher| {
        bencher.iter(|| verify(black_box(&atlas)).unwrap().fault_count);
    });
    group.bench_function("compare", |bencher| {
        bencher.iter(|| compare(black_box(&atlas), &input, Pairing::SameL1Id).unwrap().same);
    });
    group.finish();
}

criterion_group!(benches, files);
criterion_main!(benches);
