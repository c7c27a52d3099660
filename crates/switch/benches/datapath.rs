//! Cost of a frame over ports in memory: classification, daqring, token bucket, output. Prints reference limits from the same
//! run.
//!
//! `cargo bench -p fanin-switch`. Times are CPU time of this thread, the best of several passes: other programs on the machine
//! disturb caches only.

use std::collections::VecDeque;
use std::hint::black_box;

use fanin_switch::config::{Hugepages, PortSpec, RingSpec, RuleSpec, StationSpec};
use fanin_switch::{CirculatingPorts, Config, Driver, Mac, MemoryPorts, Pool, Switch};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate};

const PORTS: usize = 12;
const PASSES: usize = 7;
const RING_RATE: Rate = Rate::new(780_000_000);

/// CPU time of this thread, in ns.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn mac(kind: u8, number: usize) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [2, kind, 0, 0, high, low]
}

/// TCP over IPv4 from a source behind `port` to a collector.
fn frame(port: usize, collector: usize, bytes: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes);
    frame.extend(mac(2, collector));
    frame.extend(mac(1, port));
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(((bytes - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, port as u8]);
    let [.., high, low] = collector.to_be_bytes();
    frame.extend([10, 2, high, low, 0x13, 0x88, 0x1f, 0x90]);
    frame.resize(bytes, 0);
    frame
}

/// A configuration with one ring for each collector, spread over all ports.
fn config(rings: usize, depth: usize) -> Config {
    let mut config = Config {
        port: (0..PORTS).map(|port| PortSpec::new(&format!("p{port}"))).collect(),
        ..Config::default()
    };
    config.switch.memory = Bytes::new(((rings * depth + 4096) * 2048) as u64);
    for ring in 0..rings {
        let name = format!("r{ring}");
        let port = format!("p{}", ring % PORTS);
        config.ring.push(RingSpec {
            frames: Some(Packets::new(4 * depth as u64)),
            rate: Some(RING_RATE),
            ..RingSpec::new(&name, &port)
        });
        let [.., high, low] = ring.to_be_bytes();
        config.rule.push(RuleSpec {
            name: name.clone(),
            ring: Some(name),
            destination_ip: Some(format!("10.2.{high}.{low}").parse().expect("an address")),
            ..RuleSpec::default()
        });
        config.station.push(StationSpec { mac: Mac(mac(2, ring)), port, vlan: None });
    }
    config
}

/// A switch with circulating frames, to all stations in turn and from all other ports in turn.
fn circulating(
    config: Config,
    stations: usize,
    frames: usize,
    bytes: usize,
    copies: bool,
) -> Switch<CirculatingPorts> {
    let pool =
        Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Try, 1).expect("memory").remove(0);
    let frames: Vec<(usize, Vec<u8>)> = (0..frames)
        .map(|number| {
            let station = number % stations;
            let port = (station % PORTS + 1 + number / stations % (PORTS - 1)) % PORTS;
            (port, frame(port, station, bytes))
        })
        .collect();
    let frames = frames.iter().map(|(port, frame)| (*port, frame.as_slice()));
    let ports = CirculatingPorts::new(pool, PORTS, frames, copies);
    Switch::new(config, ports).expect("a configuration")
}

/// A switch with rings and a constant number of frames in each.
struct Bench {
    switch: Switch<CirculatingPorts>,
    now: Instant,
    step: Duration,
}

impl Bench {
    fn new(rings: usize, depth: usize, bytes: usize, copies: bool) -> Self {
        let config = config(rings, depth);
        let switch = circulating(config, rings, rings * depth, bytes, copies);
        // The time of a step, in which a port sends about 32 frames.
        let ring_gap = RING_RATE.time_to_send(Bytes::new(bytes as u64 + 24));
        let step = ring_gap.checked_mul_ratio(32 * PORTS as u64, rings as u64).expect("a time");
        let mut bench = Self { switch, now: Instant::START + Duration::from_secs(1), step };
        // All frames enter the rings before time advances.
        while bench.switch.driver().waiting() > 0 {
            bench.switch.poll(bench.now, true);
        }
        bench.run((rings * depth) as u64);
        bench
    }

    /// Plain switching by stations' addresses: no rule, no ring, no rate.
    fn plain(stations: usize, frames: usize) -> Self {
        let mut config = config(stations, frames / stations);
        config.ring.clear();
        config.rule.clear();
        let switch = circulating(config, stations, frames, 64, false);
        Self { switch, now: Instant::START + Duration::from_secs(1), step: Duration::from_micros(1) }
    }

    /// Runs until `frames` frames have passed. Returns ns a frame.
    fn run(&mut self, frames: u64) -> f64 {
        let before = self.switch.driver().sent;
        let began = cpu_ns();
        while self.switch.driver().sent - before < frames {
            self.now = self.now + self.step;
            self.switch.poll(self.now, true);
        }
        let passed = self.switch.driver().sent - before;
        (cpu_ns() - began) as f64 / passed as f64
    }

    fn best(&mut self, frames: u64) -> f64 {
        let best = (0..PASSES).map(|_| self.run(frames)).fold(f64::MAX, f64::min);
        let snapshot = self.switch.snapshot(false);
        assert_eq!(snapshot.drops(), 0, "the benchmark lost frames");
        assert!(snapshot.rings.iter().all(|ring| ring.queue.departed.frames > 0), "a ring was idle");
        best
    }
}

/// Latency of a frame through empty queues, from reception until transmission. Returns the median
/// and the 99th percentile in ns of wall time, less the cost of reading the clock.
fn latency(rings: usize, frames: usize) -> (u64, u64) {
    let config = config(rings, 16);
    let pool =
        Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Try, 1).expect("memory").remove(0);
    let mut switch = Switch::new(config, MemoryPorts::new(pool, PORTS)).expect("a configuration");
    let (mut now, mut times, mut nothing) = (Instant::START + Duration::from_secs(1), Vec::new(), Vec::new());
    for number in 0..frames {
        let ring = number * 7 % rings;
        let output = ring % PORTS;
        let input = (output + 1) % PORTS;
        assert!(switch.driver_mut().inject(input, &frame(input, ring, 64)), "packet memory");
        now = now + Duration::from_micros(10);
        let began = std::time::Instant::now();
        nothing.push(began.elapsed().as_nanos() as u64);
        let began = std::time::Instant::now();
        // The frame leaves in the round in which it arrives.
        switch.poll(now, true);
        times.push(began.elapsed().as_nanos() as u64);
        assert!(switch.driver_mut().take(output).is_some(), "a frame waits in empty queues");
    }
    times.sort_unstable();
    nothing.sort_unstable();
    let clock = nothing[frames / 2];
    let at = |share: usize| times[frames * share / 100].saturating_sub(clock);
    (at(50), at(99))
}

/// Work on frames without a switch.
#[derive(Clone, Copy, PartialEq)]
enum Forward {
    /// None.
    Untouched,
    /// Source and destination are swapped, as testpmd's `macswap` does.
    Swapped,
    /// The same, behind a queue of this length: the cost of memory with deep queues.
    SwappedAndQueued(usize),
}

/// The ports alone: frames move from one to the next.
fn ports_alone(bytes: usize, count: usize, copies: bool, forward: Forward) -> f64 {
    let memory = Bytes::new(((count + 4096) * 2048) as u64);
    let pool = Pool::new(memory, Bytes::new(1500), Hugepages::Try, 1).expect("memory").remove(0);
    let frames: Vec<_> = (0..count).map(|number| (number % PORTS, frame(number % PORTS, 0, bytes))).collect();
    let mut ports = CirculatingPorts::new(
        pool,
        PORTS,
        frames.iter().map(|(port, frame)| (*port, frame.as_slice())),
        copies,
    );
    let (mut batch, mut queue) = (Vec::new(), VecDeque::new());
    let mut best = f64::MAX;
    for _ in 0..PASSES {
        let (before, began) = (ports.sent, cpu_ns());
        while ports.sent - before < 2_000_000 {
            for port in 0..PORTS {
                batch.clear();
                ports.receive(port, fanin_switch::BURST, &mut batch);
                if forward != Forward::Untouched {
                    for frame in &batch {
                        let (destination, source) = ports.head_mut(frame.handle).split_at_mut(6);
                        destination.swap_with_slice(&mut source[..6]);
                    }
                }
                black_box(&batch);
                if let Forward::SwappedAndQueued(depth) = forward {
                    queue.extend(batch.drain(..));
                    batch.extend(queue.drain(..queue.len().saturating_sub(depth).min(fanin_switch::BURST)));
                }
                ports.transmit((port + 1) % PORTS, &batch);
            }
        }
        best = best.min((cpu_ns() - began) as f64 / (ports.sent - before) as f64);
    }
    best
}

/// One copy of a frame's bytes between two addresses outside of the cache.
fn memcpy(bytes: usize) -> f64 {
    const SPAN: usize = 256 << 20;
    let (from, mut to) = (vec![1u8; SPAN], vec![0u8; SPAN]);
    let mut best = f64::MAX;
    for _ in 0..3 {
        let (began, count) = (cpu_ns(), SPAN / 2048);
        for place in 0..count {
            let at = place * 2048;
            to[at..at + bytes].copy_from_slice(&from[at..at + bytes]);
        }
        black_box(&to);
        best = best.min((cpu_ns() - began) as f64 / count as f64);
    }
    best
}

#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn main() {
    // `cargo test --benches` only checks that the benchmark runs.
    let quick = !std::env::args().any(|argument| argument == "--bench");
    let frames = if quick { 20_000 } else { 4_000_000 };
    if std::env::args().any(|argument| argument == "deep") {
        return deep_rings(frames / 4);
    }
    if std::env::args().any(|argument| argument == "plain") {
        println!("64 B, plain switching           {:7.1} ns/frame", Bench::plain(144, 4_096).best(frames));
        return;
    }
    // A number of rings on the command line, for a profiler: `cargo bench -p fanin-switch -- 144`.
    if let Some(rings) = std::env::args().find_map(|argument| argument.parse().ok()) {
        let cost = Bench::new(rings, 4_096 / rings, 64, false).best(frames);
        println!("64 B, {rings:>4} rings               {cost:7.1} ns/frame");
        return;
    }
    let alone = ports_alone(64, 4_096, false, Forward::Untouched);
    println!("64 B, ports alone (limit)      {alone:7.1} ns/frame {:8.1} Mframes/s", 1e3 / alone);
    let alone = ports_alone(64, 4_096, false, Forward::Swapped);
    println!("64 B, addresses swapped        {alone:7.1} ns/frame {:8.1} Mframes/s", 1e3 / alone);
    let plain = Bench::plain(144, 4_096).best(frames);
    println!(
        "64 B, plain switching          {plain:7.1} ns/frame {:8.1} Mframes/s, {:.2} x the swap",
        1e3 / plain,
        plain / alone
    );
    let mut first = None;
    for rings in [16, 144, 1024, 4096] {
        // The same number of frames for any number of rings.
        let depth = 4_096 / rings;
        let cost = Bench::new(rings, depth, 64, false).best(frames);
        let base = *first.get_or_insert(cost);
        println!(
            "64 B, {rings:>4} rings               {cost:7.1} ns/frame {:8.1} Mframes/s, {:.2} x the swap, {:+.0} % over 16 rings",
            1e3 / cost,
            cost / alone,
            (cost / base - 1.0) * 100.0
        );
        if quick {
            return;
        }
    }
    let (median, late) = latency(144, frames as usize / 20);
    println!("64 B, 144 rings, a frame alone  {median:7} ns from in to out, 99 of 100 within {late} ns");
    deep_rings(frames / 4);
}

/// Rings larger than the caches.
#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn deep_rings(frames: u64) {
    let copy = memcpy(1514);
    println!("1514 B, one copy in DRAM        {copy:7.1} ns/frame {:8.1} Gb/s", 1514.0 * 8.0 / copy);
    let alone = ports_alone(1514, 144 * 1024, true, Forward::Swapped);
    println!("1514 B, swapped, in and out     {alone:7.1} ns/frame {:8.1} Gb/s", 1514.0 * 8.0 / alone);
    let queued = ports_alone(1514, 144 * 1024, true, Forward::SwappedAndQueued(72 * 1024));
    println!("1514 B, the same, one deep queue{queued:7.1} ns/frame {:8.1} Gb/s", 1514.0 * 8.0 / queued);
    let cost = Bench::new(144, 1024, 1514, true).best(frames);
    println!(
        "1514 B, 144 rings of 1.5 MB     {cost:7.1} ns/frame {:8.1} Gb/s, {:.2} x the swap, {:.2} x one deep queue",
        1514.0 * 8.0 / cost,
        cost / alone,
        cost / queued
    );
}
