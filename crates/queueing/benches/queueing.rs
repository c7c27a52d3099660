//! Nanoseconds a frame. The simulator's budget a hop and the switch's budget a frame follow from them.
//!
//! `cargo bench -p fanin-queueing`; one element is one frame in and out.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fanin_queueing::{
    BookedMemory, Departure, EcnCodepoint, Frame, InService, Layout, OutputLink, Passage, PortLimits,
    RingService, RingSettings, Rings, TokenBucket,
};
use fanin_units::{Bytes, Duration, Instant, MIX_STEP, Rate, Ratio, mix};

/// Frames in each measured pass.
const FRAMES: usize = 1 << 14;

/// Numbers below `bound` that repeat, from a fixed seed (SplitMix64).
fn numbers(bound: usize) -> Vec<u32> {
    let states = (0..FRAMES as u64).map(|step| step.wrapping_mul(MIX_STEP).wrapping_add(42));
    states.map(|state| (mix(state) % bound as u64) as u32).collect()
}

/// Random arrivals at 48 gigabit ports, admitted and lazily released.
fn fifo(criterion: &mut Criterion) {
    const PORTS: usize = 48;
    let links = [OutputLink::new(Rate::new(1_000_000_000), Bytes::new(20)); PORTS];
    let pool = Bytes::new(12_600_000);
    let [input, output] = [8_000_000; 2].map(Bytes::new);
    let limits = PortLimits { ports: PORTS, input, output };
    let schemes = [
        ("dedicated", Layout::dedicated(vec![Bytes::new(786_000); PORTS])),
        ("shared", Layout::shared(PORTS, pool)),
        ("shared-by-input", Layout::shared_split(pool, 32, true, limits)),
        ("dynamic-threshold", Layout::dynamic_threshold(PORTS, pool, Ratio::ONE)),
        ("modules", Layout::voq(PORTS, 8, Bytes::new(1_500_000_000), Bytes::new(200_000_000))),
    ];
    let mut group = criterion.benchmark_group("fifo");
    group.throughput(Throughput::Elements(FRAMES as u64));
    let outputs = numbers(PORTS);
    let inputs: Vec<u32> = outputs.iter().rev().copied().collect();
    for (name, layout) in &schemes {
        // At 90 % of all ports queues stay short; at 120 % every limit is met all the time.
        for load in [90, 120] {
            let mut switch =
                BookedMemory::new(layout, &links, InService::Counted).expect("a possible layout");
            let gap = Duration::new(12_304_000 * 100 / (PORTS as u64 * load));
            let mut now = Instant::START;
            group.bench_function(BenchmarkId::new(*name, load), |bencher| {
                bencher.iter(|| {
                    let mut last = Instant::START;
                    for (&input, &output) in inputs.iter().zip(&outputs) {
                        now = now + gap;
                        let (input, output) = (input as usize, output as usize);
                        let ecn = || EcnCodepoint::NotCapable;
                        if let Passage::Queued { end, .. } =
                            switch.arrive(now, input, output, 1_518, ecn, || 0)
                        {
                            last = end;
                        }
                    }
                    black_box(last)
                });
            });
        }
    }
    group.finish();
}

/// The rings in a random order, repeated: each gets as many frames as any other, evenly spaced.
fn turns(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for (last, random) in (1..count).rev().zip(numbers(1 << 30)) {
        order.swap(last, random as usize % (last + 1));
    }
    order.iter().copied().cycle().take(FRAMES / count * count).collect()
}

/// Frames of 64 bytes through rings with token buckets, in bursts of 32, at 30 million frames a second.
///
/// `open`: buckets at twice the offered rate are checked but hold nothing back; rings are empty between frames.
/// `backlogged`: 16 384 frames are queued in all. Every frame waits for its tokens, and a new one replaces each
/// departure.
fn rings(criterion: &mut Criterion) {
    const BURST: usize = 32;
    let gap = Duration::from_nanos(32 * 1_000 / 30);
    for (name, service) in [
        ("round-robin", RingService::RoundRobin),
        ("longest-first", RingService::LongestFirst),
        ("strict-priority", RingService::StrictPriority),
    ] {
        for (mode, percent) in [("open", 200), ("backlogged", 100)] {
            let mut group = criterion.benchmark_group(format!("rings/{name}/{mode}"));
            for count in [16usize, 144, 4096] {
                let rate = Rate::new(30_000_000 * 64 * 8 * percent / 100 / count as u64);
                let mut port = Rings::<u64>::new(service, None).expect("no shaping");
                for ring in 0..count {
                    let shaping = Some((rate, Bytes::new(256)));
                    let settings =
                        RingSettings { shaping, priority: (ring % 8) as u8, ..RingSettings::new(4_096) };
                    port.add_ring(&settings).expect("possible settings");
                }
                let targets = turns(count);
                let mut now = Instant::START;
                let frame = Frame::new(64);
                if mode == "backlogged" {
                    for &ring in (0..FRAMES / count).flat_map(|_| &targets[..count]) {
                        port.arrive(now, ring, frame, 1, || 0);
                    }
                }
                let mut sent = Vec::with_capacity(2 * BURST);
                group.throughput(Throughput::Elements(targets.len() as u64));
                group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
                    bencher.iter(|| {
                        for burst in targets.chunks_exact(BURST) {
                            now = now + gap;
                            if mode == "open" {
                                for &ring in burst {
                                    port.arrive(now, ring, frame, 1, || 0);
                                }
                            } else {
                                for (ring, frame, handle) in sent.drain(..) {
                                    port.arrive(now, ring, frame, handle, || 0);
                                }
                            }
                            sent.clear();
                            port.depart_many(now, 2 * BURST, |ring, frame, handle| {
                                sent.push((ring, frame, handle));
                            });
                        }
                        black_box(&sent);
                    });
                });
            }
            group.finish();
        }
    }
}

/// One frame in, one frame out, with an empty queue: the least cost of a ring.
fn bare(criterion: &mut Criterion) {
    let mut port = Rings::<u64>::new(RingService::RoundRobin, None).expect("no shaping");
    port.add_ring(&RingSettings::new(64)).expect("possible settings");
    criterion.bench_function("one-ring", |bencher| {
        bencher.iter(|| {
            port.arrive(Instant::START, 0, Frame::new(64), 1, || 0);
            match port.depart(Instant::START) {
                Departure::Frame { handle, .. } => black_box(handle),
                Departure::NotBefore(_) | Departure::Empty => unreachable!("a frame is queued"),
            }
        });
    });
    let mut bucket = TokenBucket::new(Rate::new(780_000_000), Bytes::new(3_000)).expect("a possible bucket");
    criterion.bench_function("token-bucket", |bencher| {
        bencher.iter(|| {
            let at = bucket.ready_at(black_box(1_500));
            bucket.take(at, 1_500);
            at
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1))
        .sample_size(20);
    targets = fifo, rings, bare
}
criterion_main!(benches);
