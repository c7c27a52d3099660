//! Several workers, driven in turn by the test's thread, so that a test chooses the order of their rounds.

use std::sync::Arc;

use fanin_units::{Bytes, Duration, Instant};

use fanin_queueing::{Frame, Verdict};
use fanin_scenario::PoolCharge;
use proptest::prelude::*;

use super::Switch;
use crate::address::Mac;
use crate::config::{Buffering, Config, Hugepages, M21Spec, PauseSpec, PortSpec, StationSpec, SwitchSpec};
use crate::datapath::buffers::Buffers;
use crate::datapath::m21::tests::{segment, tcp_sum};
use crate::datapath::m21::{M21_ECHO, M21_FORWARD};
use crate::memory::MemoryPorts;
use crate::pool::Pool;
use crate::workers::{CommonAccount, Peers, SharedCounts, Wakeup};

/// The size of each pool where workers share memory.
const POOL: u64 = 20_000;

/// Makes four ports, 0 and 2 of the first worker, 1 and 3 of the second.
fn config() -> Config {
    let mut config =
        Config { port: (0..4).map(|port| PortSpec::new(&format!("p{port}"))).collect(), ..Config::default() };
    config.switch.cores = vec![0, 1];
    config.switch.memory = Bytes::new(4 << 20);
    config
}

fn pair_with(config: &Config) -> Vec<Switch<MemoryPorts>> {
    pair_and_counts(config).0
}

fn pair_and_counts(config: &Config) -> (Vec<Switch<MemoryPorts>>, Arc<SharedCounts>) {
    let config = config.clone().checked().unwrap_or_else(|errors| panic!("{errors}"));
    let pools = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 2).unwrap();
    let wakeups: Vec<_> = (0..2).map(|_| Arc::new(Wakeup::new().unwrap())).collect();
    let peers = Peers::between(&wakeups, &[0, 1, 0, 1]);
    let shared = Arc::new(SharedCounts::new(2, 4));
    let workers = pools.into_iter().zip(peers).map(|(pool, peers)| {
        let ports = MemoryPorts::new(pool, 4);
        Switch::for_worker(config.clone(), ports, peers, Arc::clone(&shared)).unwrap()
    });
    (workers.collect(), Arc::clone(&shared))
}

fn pair() -> Vec<Switch<MemoryPorts>> {
    pair_with(&config())
}

/// The frames that a port has sent, by any worker.
fn take(workers: &mut [Switch<MemoryPorts>], port: usize) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| workers[port % 2].driver_mut().take(port)).collect()
}

fn station(number: u8, port: &str) -> StationSpec {
    StationSpec { mac: Mac([2, 0, 0, 0, 0, number]), port: port.to_owned(), vlan: None }
}

fn frame(from: u8, to: u8, number: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5, number];
    frame.resize(60, 0);
    frame
}

#[test]
fn frames_pass_between_workers_in_order_and_memory_comes_home() {
    let mut workers = pair();
    let mut now = Instant::START + Duration::from_millis(1);
    let mut rounds = |workers: &mut Vec<Switch<MemoryPorts>>, count: u32| {
        for _ in 0..count {
            now = now + Duration::from_micros(1);
            for worker in workers.iter_mut() {
                worker.poll(now, true);
            }
        }
    };
    // Station 1 is behind port 1, the other worker's; a frame of its own makes it known to both.
    workers[1].driver_mut().inject(1, &frame(1, 99, 0));
    rounds(&mut workers, 4);
    for (worker, port) in [(0, 0), (0, 2), (1, 3)] {
        assert_eq!(workers[worker].driver_mut().take(port), Some(frame(1, 99, 0)), "flooded to port {port}");
    }
    for number in 0..200u8 {
        workers[0].driver_mut().inject(0, &frame(10, 1, number));
        workers[0].driver_mut().inject(2, &frame(12, 1, number));
        if number % 7 == 0 {
            rounds(&mut workers, 1);
        }
    }
    rounds(&mut workers, 40);
    let mut next = [0u8; 2];
    while let Some(out) = workers[1].driver_mut().take(1) {
        let source = usize::from(out[11] == 12);
        assert_eq!(out[14], next[source], "a flow was reordered");
        next[source] += 1;
    }
    assert_eq!(next, [200, 200]);
    for (worker, port) in [(0, 0), (0, 2), (1, 3)] {
        assert_eq!(workers[worker].driver_mut().take(port), None, "a known station was flooded to {port}");
    }
    rounds(&mut workers, 40);
    for worker in &workers {
        let pool = worker.driver().pool();
        assert_eq!(pool.free_len(), pool.share_len(), "chunks are missing");
    }
    let mut all = workers[0].snapshot(false);
    all.merge(workers[1].snapshot(false));
    assert_eq!((all.drops(), all.ports.len()), (0, 4));
    assert_eq!(all.ports[1].sent.frames, 400);
}

#[test]
fn a_loop_through_two_workers_starts_no_storm() {
    let mut workers = pair();
    let mut now = Instant::START + Duration::from_millis(1);
    let mut broadcast = frame(10, 0, 0);
    broadcast[..6].copy_from_slice(&[0xff; 6]);
    workers[0].driver_mut().inject(0, &broadcast);
    let mut looped = 0;
    for _ in 0..50 {
        now = now + Duration::from_micros(10);
        for worker in &mut workers {
            worker.poll(now, true);
        }
        // Ports 1 and 2, of different workers, are the ends of one cable.
        for (from, to) in [(1, 2), (2, 1)] {
            while let Some(frame) = workers[from % 2].driver_mut().take(from) {
                looped += 1;
                workers[to % 2].driver_mut().inject(to, &frame);
            }
        }
    }
    assert_eq!(looped, 2, "the broadcast goes round");
}

/// The window in a frame's M21TCP option, which follows two bytes of padding.
fn window(frame: &[u8]) -> u32 {
    assert_eq!(tcp_sum(frame), 0xffff, "the checksum is wrong");
    u32::from_be_bytes(frame[60..64].try_into().unwrap())
}

#[test]
fn flows_to_one_worker_bound_echoes_through_another() {
    let mut config = config();
    config.port[1].m21 = Some(M21Spec { buffer: Some(Bytes::new(40 * 1522)), ..M21Spec::default() });
    // A sender behind a port of each worker, and the collector behind port 1, of the second.
    config.station = vec![station(1, "p0"), station(2, "p3"), station(7, "p1")];
    let mut workers = pair_with(&config);
    let mut now = Instant::START + Duration::from_millis(1);
    let mut rounds = |workers: &mut [Switch<MemoryPorts>], time: Duration| {
        for _ in 0..4 {
            now = now + time / 4;
            workers.iter_mut().for_each(|worker| {
                worker.poll(now, true);
            });
        }
    };
    let data = |source| segment(source, 0x18, M21_FORWARD, u32::MAX, 2, 100);
    let echo = |to: u8| {
        let mut echo = segment(7, 0x10, M21_ECHO, u32::MAX, 2, 0);
        echo[5] = to;
        echo
    };
    let micro = Duration::from_micros(4);
    workers[0].driver_mut().inject(0, &data(1));
    workers[1].driver_mut().inject(3, &data(2));
    rounds(&mut workers, micro);
    let mut windows: Vec<u32> = take(&mut workers, 1).iter().map(|frame| window(frame)).collect();
    windows.sort_unstable();
    assert_eq!(windows, [20 * 1448, 40 * 1448], "the second flow finds two");
    // Both echoes come in by the second worker's port; one leaves by a port of the first.
    for (to, port) in [(1, 0), (2, 3)] {
        workers[1].driver_mut().inject(1, &echo(to));
        rounds(&mut workers, micro);
        let taken = take(&mut workers, port);
        assert_eq!(taken.iter().map(|frame| window(frame)).collect::<Vec<_>>(), [20 * 1448], "to {to}");
    }
    let counted: Vec<_> = workers.iter().flat_map(|worker| worker.snapshot(false).ports).collect();
    let flows = |port: u16| counted.iter().find(|of| of.number == port).unwrap().m21_flows;
    assert_eq!((flows(0), flows(1)), (None, Some(2)));
    // Idle flows expire, and the reverse path sees their number.
    rounds(&mut workers, Duration::from_secs(8));
    workers[1].driver_mut().inject(1, &echo(1));
    rounds(&mut workers, micro);
    assert_eq!(window(&take(&mut workers, 0)[0]), 40 * 1448);
}

fn pausing() -> Config {
    let mut config = config();
    config.port[0].pause = PauseSpec { xoff: Some(Bytes::new(50_000)), ..PauseSpec::default() };
    config.port[1].rate = Some(fanin_units::Rate::new(1_000_000_000));
    config.port[1].buffer = Some(Bytes::new(100_000));
    config.station = vec![station(10, "p0"), station(11, "p1")];
    config
}

/// The quanta of the PAUSE frames in a list of frames.
fn quanta(frames: &[Vec<u8>]) -> Vec<u16> {
    let pauses = frames.iter().filter(|frame| frame[12..14] == [0x88, 8]);
    pauses.map(|frame| u16::from_be_bytes([frame[16], frame[17]])).collect()
}

#[test]
fn a_neighbour_is_paused_for_what_another_worker_holds_and_goes_on_when_it_has_sent() {
    let mut workers = pair_with(&pausing());
    let mut now = Instant::START + Duration::from_millis(1);
    let mut frame = frame(10, 11, 0);
    frame.resize(1000, 0);
    (0..60).for_each(|_| assert!(workers[0].driver_mut().inject(0, &frame)));
    // The frames are on their way to the other worker, which has made no round yet.
    now = now + Duration::from_micros(1);
    let next = workers[0].poll(now, true).next;
    assert_eq!(quanta(&take(&mut workers, 0)), [u16::MAX]);
    assert!(
        next.is_some_and(|next| next <= now + Duration::from_micros(20)),
        "the worker sleeps with work pending"
    );
    let mut sent = 0;
    let mut sent_pauses = Vec::new();
    for _ in 0..600 {
        now = now + Duration::from_micros(1);
        workers.iter_mut().for_each(|worker| {
            worker.poll(now, true);
        });
        sent += take(&mut workers, 1).len();
        sent_pauses.extend(quanta(&take(&mut workers, 0)).into_iter().map(|quanta| (quanta, sent)));
    }
    assert_eq!(sent, 60);
    // RESUME at half of XOFF, which is 25 frames.
    assert!(matches!(sent_pauses[..], [(0, 34..=37)]), "{sent_pauses:?}");
    assert_eq!(workers[0].snapshot(false).ports[0].pauses_sent, 2);
}

/// A frame counts for PAUSE with the memory that it takes: bookkeeping and whole cells.
#[test]
fn pause_counts_the_memory_of_frames() {
    let mut config = pausing();
    (config.switch.frame_overhead, config.switch.cell) = (Bytes::new(4), Bytes::new(64));
    let mut workers = pair_with(&config);
    let mut frame = frame(10, 11, 0);
    // 1280 bytes of memory.
    frame.resize(1276 - 4, 0);
    (0..10).for_each(|_| assert!(workers[0].driver_mut().inject(0, &frame)));
    workers[0].poll(Instant::START + Duration::from_millis(1), true);
    assert_eq!(workers[0].pauses.occupancy(0), 10 * 1280);
}

#[test]
fn pause_is_repeated_before_it_ends_without_traffic() {
    let mut config = pausing();
    config.port[1].rate = Some(fanin_units::Rate::new(100_000));
    let mut workers = pair_with(&config);
    let mut frame = frame(10, 11, 0);
    frame.resize(1000, 0);
    (0..60).for_each(|_| assert!(workers[0].driver_mut().inject(0, &frame)));
    let mut now = Instant::START + Duration::from_millis(1);
    let end = now + Duration::from_millis(20);
    let mut sent_pauses = Vec::new();
    while now < end {
        // Each worker sleeps until its next deadline.
        let next = workers.iter_mut().filter_map(|worker| worker.poll(now, true).next).min();
        sent_pauses.extend(quanta(&take(&mut workers, 0)).into_iter().map(|quanta| (quanta, now)));
        now = next.unwrap_or(end).max(now + Duration::from_nanos(100));
    }
    // 65 535 quanta of 512 bits last 3.36 ms at the 10 Gb/s that are assumed.
    assert!(sent_pauses.len() >= 10, "{sent_pauses:?}");
    assert!(
        sent_pauses.windows(2).all(|pair| pair[1].1.saturating_since(pair[0].1) < Duration::from_millis(3))
    );
    assert!(sent_pauses.iter().all(|&(quanta, _)| quanta == u16::MAX));
}

#[derive(Debug, Clone, Copy)]
enum WorkersStep {
    /// A frame from a station of one port to a station of another, and its bytes.
    Send(u8, u8, usize),
    /// One worker makes a round.
    Poll(usize),
    /// Time passes, in nanoseconds.
    Wait(u64),
}

fn step() -> impl Strategy<Value = WorkersStep> {
    prop_oneof![
        4 => (0..4u8, 0..4u8, 60..1515usize).prop_map(|(from, to, bytes)| WorkersStep::Send(from, to, bytes)),
        4 => (0..2usize).prop_map(WorkersStep::Poll),
        1 => (0..30_000u64).prop_map(WorkersStep::Wait),
    ]
}

/// Schemes with memory shared among workers, and one without.
fn schemes() -> Vec<SwitchSpec> {
    let of = |buffering| SwitchSpec { buffering, buffer: Bytes::new(POOL), ..config().switch };
    let limited = SwitchSpec {
        pool_charge: PoolCharge::Input,
        pool_split: 1,
        input_limit: Some(Bytes::new(POOL / 2)),
        ..of(Buffering::Shared)
    };
    vec![
        of(Buffering::Dedicated),
        of(Buffering::Shared),
        of(Buffering::DynamicThreshold),
        limited,
        SwitchSpec { module_ports: 2, port_limit: Some(Bytes::new(POOL / 2)), ..of(Buffering::Voq) },
    ]
}

/// All ports pause their neighbours, none sends faster than 1 Gb/s, and all share a pool or have memory of their own.
fn run(steps: &[WorkersStep], switch: &SwitchSpec) -> Result<(), TestCaseError> {
    let mut config = config();
    config.switch = switch.clone();
    let layout = config.layout();
    let pools = layout.pool_sizes().len();
    let counts_inputs = switch.input_limit.is_some();
    for (number, port) in config.port.iter_mut().enumerate() {
        port.rate = Some(fanin_units::Rate::new(1_000_000_000));
        port.pause = PauseSpec { xoff: Some(Bytes::new(5_000)), ..PauseSpec::default() };
        config.station.push(station(number as u8, &format!("p{number}")));
    }
    let (mut workers, shared) = pair_and_counts(&config);
    let mut now = Instant::START + Duration::from_micros(1);
    let mut sent = 0u64;
    let mut came = [0u64; 2];
    let mut collect = |workers: &mut [Switch<MemoryPorts>]| {
        for port in 0..4 {
            for frame in take(workers, port) {
                came[usize::from(frame[12..14] == [0x88, 8])] += 1;
            }
        }
        came
    };
    let plain = |workers: &[Switch<MemoryPorts>]| -> u64 {
        (0..4).map(|port| workers[port % 2].outputs.plain_snapshot(port).bytes).sum()
    };
    for &step in steps {
        match step {
            WorkersStep::Send(from, to, bytes) if from != to => {
                let mut frame = frame(from, to, 0);
                frame.resize(bytes, 0);
                prop_assert!(workers[usize::from(from % 2)].driver_mut().inject(from.into(), &frame));
                sent += 1;
            }
            WorkersStep::Send(..) => {}
            WorkersStep::Poll(worker) => {
                workers[worker].poll(now, true);
            }
            WorkersStep::Wait(nanos) => now = now + Duration::from_nanos(nanos),
        }
        collect(&mut workers);
        workers.iter().for_each(Switch::assert_conserved);
        let held = plain(&workers);
        let taken = |pool| shared.taken(CommonAccount::Pool(pool));
        if pools == 0 {
            prop_assert_eq!(taken(0), 0);
        } else {
            let overdrawn = (0..pools).find(|&pool| taken(pool) > POOL);
            prop_assert_eq!(overdrawn, None, "a pool is overdrawn");
            let all: u64 = (0..pools).map(taken).sum();
            prop_assert_eq!(all, held, "the pools' counts differ from the bytes held");
        }
        if counts_inputs {
            let of = |input| shared.taken(CommonAccount::Input(input));
            prop_assert!((0..4).all(|input| of(input) <= POOL / 2), "an input has more than its limit");
            prop_assert_eq!(
                (0..4).map(of).sum::<u64>(),
                held,
                "the inputs' counts differ from the bytes held"
            );
        }
        // The occupancy that a port's worker computes is never too small.
        let believed = |port: usize| workers[port % 2].pauses.occupancy(port);
        let sum = (0..4).map(believed).fold(0u64, u64::wrapping_add);
        prop_assert!(sum >= held && sum < 1 << 40, "{} bytes are held, and {} believed", held, sum);
    }
    let mut rounds = 0;
    let mut quiet = 0;
    while quiet < 4 {
        let frames: usize = workers.iter_mut().map(|worker| worker.poll(now, true).frames).sum();
        collect(&mut workers);
        let idle = frames == 0 && workers.iter().all(|worker| worker.is_drained() && !worker.has_messages());
        quiet = if idle { quiet + 1 } else { 0 };
        now = now + Duration::from_micros(1);
        rounds += 1;
        prop_assert!(rounds < 100_000, "does not drain");
    }
    prop_assert_eq!(shared.taken(CommonAccount::Pool(0)), 0);
    for port in 0..4 {
        prop_assert_eq!(workers[port % 2].pauses.occupancy(port), 0, "port {}", port);
    }
    let mut all = workers[0].snapshot(false);
    all.merge(workers[1].snapshot(false));
    let pauses: u64 = all.ports.iter().map(|port| port.pauses_sent).sum();
    let [frames, pauses_out] = collect(&mut workers);
    prop_assert_eq!((frames + all.drops(), pauses_out), (sent, pauses), "frames are missing or duplicated");
    for worker in &workers {
        let pool = worker.driver().pool();
        prop_assert_eq!(pool.free_len(), pool.share_len(), "chunks are missing");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 48 }))]
    /// In any order of the workers' rounds, the common pool is not overdrawn and all of it is returned. No neighbour resumes
    /// too early, and every frame is accounted for.
    #[test]
    fn workers_share_what_they_hold(
        steps in prop::collection::vec(step(), 1..400),
        switch in prop::sample::select(schemes()),
    ) {
        run(&steps, &switch)?;
    }
}

#[test]
fn one_worker_may_take_all_of_the_pool_and_leaves_nothing_to_the_other() {
    let mut config = config();
    config.switch.buffering = Buffering::Shared;
    config.switch.buffer = Bytes::new(10_000);
    let shared = Arc::new(SharedCounts::new(2, 4));
    let mut first = Buffers::new(&config, &shared).unwrap();
    let mut second = Buffers::new(&config, &shared).unwrap();
    let admit = |buffers: &mut Buffers, output, bytes| {
        let frame = Frame { bytes, ecn: fanin_queueing::EcnCodepoint::NotCapable };
        matches!(buffers.arrive(Instant::START, 0, output, frame, || 0), Verdict::Accepted { .. })
    };
    assert!((0..10).all(|_| admit(&mut first, 0, 900)));
    assert!(!admit(&mut second, 1, 1001), "9000 bytes of 10 000 are taken");
    assert!(admit(&mut second, 1, 1000));
    assert!(!admit(&mut first, 0, 1) && !admit(&mut second, 1, 1));
    first.depart(Instant::START, 0, 0, 900);
    assert!(admit(&mut second, 3, 900));
    assert_eq!(shared.taken(CommonAccount::Pool(0)), 10_000);
}

/// Threads take and give concurrently; the sum of their bytes never exceeds the pool.
#[test]
fn threads_never_overdraw_the_pool() {
    use std::sync::atomic::{AtomicU64, Ordering};

    const THREADS: usize = 4;
    const SIZE: u64 = 4_000;
    const ROUNDS: u32 = if cfg!(miri) { 200 } else { 50_000 };
    let mut config = config();
    config.switch.buffering = Buffering::Shared;
    config.switch.buffer = Bytes::new(SIZE);
    let shared = Arc::new(SharedCounts::new(THREADS, 4));
    // Incremented after a frame is admitted, decremented before it is released: never more than is taken.
    let held = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let mut buffers = Buffers::new(&config, &shared).unwrap();
            let held = &held;
            scope.spawn(move || {
                let mut mine: Vec<u32> = Vec::new();
                let mut random = crate::random::SplitMix64::new(1, thread as u64);
                for _ in 0..ROUNDS {
                    let bytes = 60 + random.next_u32() % 1455;
                    let frame = Frame { bytes, ecn: fanin_queueing::EcnCodepoint::NotCapable };
                    let verdict = buffers.arrive(Instant::START, 0, thread, frame, || 0);
                    if let Verdict::Accepted { .. } = verdict {
                        let now = held.fetch_add(bytes.into(), Ordering::SeqCst) + u64::from(bytes);
                        assert!(now <= SIZE, "{now} bytes are held");
                        mine.push(bytes);
                    }
                    while mine.len() > 1
                        || (verdict != Verdict::Accepted { marked: false } && !mine.is_empty())
                    {
                        let bytes = mine.swap_remove(0);
                        held.fetch_sub(bytes.into(), Ordering::SeqCst);
                        buffers.depart(Instant::START, 0, thread, bytes);
                    }
                }
                for bytes in mine {
                    held.fetch_sub(bytes.into(), Ordering::SeqCst);
                    buffers.depart(Instant::START, 0, thread, bytes);
                }
            });
        }
    });
    assert_eq!(shared.taken(CommonAccount::Pool(0)), 0);
}
