//! The cost of a segment: two endpoints back to back, without a network between them.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fanin_tcp::{Config, CongestionConfig, Endpoint, Segment};
use fanin_units::{Duration, Instant};

const ANSWER_BYTES: u64 = 13_200;
const REQUEST_BYTES: u64 = 200;

/// Exchanges segments until both ends have nothing to send; returns the number of segments handled.
fn exchange(config: &Config, now: &mut Instant, ends: &mut [Endpoint; 2], queue: &mut Vec<Segment>) -> u64 {
    let mut handled = 0;
    let mut side = 0;
    let mut silent = 0;
    while silent < 2 {
        queue.clear();
        while let Some(segment) = ends[side].poll_transmit(config, *now) {
            queue.push(segment);
        }
        silent = if queue.is_empty() { silent + 1 } else { 0 };
        *now = *now + Duration::from_micros(5);
        for segment in queue.iter() {
            *now = *now + Duration::from_nanos(1_230);
            ends[1 - side].handle_segment(config, *now, segment);
        }
        handled += queue.len() as u64;
        side = 1 - side;
    }
    handled
}

/// A bulk transfer that is clocked by ACKs: each arriving segment is answered at once.
fn bulk(config: &Config, ends: &mut [Endpoint; 2], now: &mut Instant, bytes: u64) -> u64 {
    ends[0].write(bytes);
    let mut forward: std::collections::VecDeque<Segment> = std::collections::VecDeque::new();
    let mut handled = 0;
    let target = ends[0].written();
    while ends[0].acked() < target {
        while let Some(segment) = ends[0].poll_transmit(config, *now) {
            forward.push_back(segment);
        }
        *now = *now + Duration::from_nanos(1_230);
        match forward.pop_front() {
            Some(segment) => {
                ends[1].handle_segment(config, *now, &segment);
                handled += 1;
            }
            None => {
                *now = ends[1].poll_deadline().max(*now);
                ends[1].handle_deadline(config, *now);
            }
        }
        while let Some(ack) = ends[1].poll_transmit(config, *now) {
            ends[0].handle_segment(config, *now, &ack);
            handled += 1;
        }
    }
    handled
}

fn benches(criterion: &mut Criterion) {
    for name in ["linux-2.6.32", "linux-6", "ns3-newreno", "textbook"] {
        let mut config = Config::profile(name).unwrap();
        config.congestion_control = CongestionConfig::Static { static_window: 32 };
        bench(criterion, &format!("{name}/static"), &config);
    }
    for name in ["linux-2.6.32", "linux-6"] {
        bench(criterion, name, &Config::profile(name).unwrap());
    }
}

fn bench(criterion: &mut Criterion, name: &str, config: &Config) {
    let fresh = || {
        let end = Endpoint::warm(config, 32, Duration::from_micros(200));
        (Instant::new(1), [end.clone(), end])
    };
    let (mut now, mut ends) = fresh();
    let segments = bulk(config, &mut ends, &mut now, 100_000_000);
    let mut group = criterion.benchmark_group(format!("bulk/{name}"));
    group.throughput(Throughput::Elements(segments));
    group.sample_size(10);
    group.bench_function("100 MB", |bencher| {
        bencher.iter_batched(
            fresh,
            |(mut now, mut ends)| bulk(config, &mut ends, &mut now, 100_000_000),
            BatchSize::LargeInput,
        );
    });
    group.finish();

    let requests = |(mut now, mut ends): (Instant, [Endpoint; 2])| {
        let mut queue = Vec::new();
        let mut handled = 0;
        for _ in 0..10_000 {
            ends[0].write(REQUEST_BYTES);
            handled += exchange(config, &mut now, &mut ends, &mut queue);
            ends[1].write(ANSWER_BYTES);
            handled += exchange(config, &mut now, &mut ends, &mut queue);
        }
        handled
    };
    let segments = requests(fresh());
    let mut group = criterion.benchmark_group(format!("answers/{name}"));
    group.throughput(Throughput::Elements(segments));
    group.sample_size(10);
    group.bench_function("10 000 × 13.2 kB", |bencher| {
        bencher.iter_batched(fresh, requests, BatchSize::LargeInput);
    });
    group.finish();
}

criterion_group!(tcp, benches);
criterion_main!(tcp);
