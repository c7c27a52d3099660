//! M21TCP on the kernel's own TCP, behind the software switch: needs root, and the feature `bpf`.
#![cfg(feature = "bpf")]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{PORT, address, privileged, star, switch};
use fanin_switch::config::M21Spec;
use fanin_switch::{Running, Snapshot};
use fanin_testbed::Lab;
use fanin_testbed::bpf::{M21, M21Figures, M21Parts};
use fanin_units::Bytes;
use rustix::net::sockopt::set_tcp_congestion;

#[derive(Debug)]
struct Outcome {
    goodput_mbps: f64,
    drops: u64,
    queue_bytes_max: u64,
}

fn connect(to: SocketAddr) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match TcpStream::connect_timeout(&to, Duration::from_secs(2)) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < until, "{to}: {error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Each sender answers `bytes` to each request of the collector, which asks all at once and waits for all. The first
/// burst of fresh connections counts.
fn incast(lab: &Lab, senders: usize, bytes: usize, rounds: usize, running: Running) -> Outcome {
    let collector = &lab.namespaces()[0];
    let listening = Barrier::new(senders + 1);
    let failed = AtomicBool::new(false);
    let goodput_mbps = thread::scope(|scope| {
        for host in 1..=senders {
            let (listening, failed) = (&listening, &failed);
            let namespace = &lab.namespaces()[host];
            scope.spawn(move || {
                let listener = namespace.run(|| {
                    let listener = TcpListener::bind((address(host), PORT)).unwrap();
                    set_tcp_congestion(&listener, "cubic").unwrap();
                    listener
                });
                listening.wait();
                let (mut stream, _) = listener.unwrap().accept().unwrap();
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let block: Vec<u8> = (0..bytes).map(|place| (place * 7 + host) as u8).collect();
                let mut request = [0];
                while stream.read(&mut request).is_ok_and(|read| read > 0) {
                    if stream.write_all(&block).is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
        listening.wait();
        let task = || {
            let mut streams: Vec<_> =
                (1..=senders).map(|host| connect(SocketAddr::from((address(host), PORT)))).collect();
            for stream in &streams {
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            }
            let mut block = vec![0; bytes];
            let began = Instant::now();
            for _ in 0..rounds {
                for stream in &mut streams {
                    stream.write_all(&[1]).unwrap();
                }
                for (place, stream) in streams.iter_mut().enumerate() {
                    stream.read_exact(&mut block).unwrap();
                    let right =
                        block.iter().enumerate().all(|(at, &byte)| byte == (at * 7 + place + 1) as u8);
                    assert!(right, "bytes of sender {} are wrong", place + 1);
                }
            }
            (rounds * senders * bytes) as f64 * 8e-6 / began.elapsed().as_secs_f64()
        };
        collector.run(task).unwrap()
    });
    assert!(!failed.load(Ordering::Relaxed), "a sender lost its connection");
    let snapshot: Snapshot = running.stop().snapshot;
    Outcome { goodput_mbps, drops: snapshot.drops(), queue_bytes_max: snapshot.ports[0].queue.bytes_max }
}

/// One row: a fresh network, so that nothing is remembered.
fn row(
    senders: usize,
    rounds: usize,
    quickack: bool,
    spec: Option<M21Spec>,
    parts: Option<M21Parts>,
) -> (Outcome, M21Figures) {
    let lab = star(senders, quickack);
    let mut program = parts.map(|parts| M21::load(parts).unwrap());
    if let Some(program) = &mut program {
        for namespace in &lab.namespaces()[..=senders] {
            program.add(namespace).unwrap();
        }
    }
    let running = switch(&lab, senders, spec);
    let outcome = incast(&lab, senders, 20_000, rounds, running);
    let figures = program.map(|program| program.figures().unwrap()).unwrap_or_default();
    (outcome, figures)
}

#[test]
fn nothing_is_dropped_where_cubic_collapses() {
    if !privileged() {
        return;
    }
    let (cubic, _) = row(24, 10, true, None, None);
    let (m21, figures) = row(24, 10, true, Some(M21Spec::default()), Some(M21Parts::default()));
    eprintln!("CUBIC {cubic:?}; M21TCP {m21:?} {figures:?}");
    assert!(cubic.drops > 0, "64 kB were enough for 24 senders: {cubic:?}");
    assert_eq!((m21.drops, figures.refused), (0, 0), "{m21:?} {figures:?}");
    // A bound changes only where a switch has lowered a window.
    assert!(figures.echoes > 0 && figures.changes >= 24, "{m21:?} {figures:?}");
    assert!(m21.queue_bytes_max <= 64_000, "{m21:?}");
}

#[test]
fn connections_of_others_are_left_alone() {
    if !privileged() {
        return;
    }
    let program = M21::load(M21Parts::default()).unwrap();
    // Nobody was added: neither the namespaces nor this machine's own loopback take part.
    let lab = star(2, true);
    incast(&lab, 2, 2_000, 2, switch(&lab, 2, Some(M21Spec::default())));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"own").unwrap();
    listener.accept().unwrap().0.read_exact(&mut [0; 3]).unwrap();
    assert_eq!(program.figures().unwrap(), M21Figures::default());
}

/// The table of docs/testbed.md; run by `cargo test -p fanin-testbed --features bpf --test m21 -- --ignored --nocapture`.
#[test]
#[ignore = "a table, not a check"]
#[expect(clippy::print_stdout, reason = "a table is what it is for")]
fn ablation() {
    if !privileged() {
        return;
    }
    let all = M21Parts::default();
    let spec = M21Spec::default();
    let rows: [(&str, bool, Option<M21Spec>, Option<M21Parts>); 7] = [
        ("CUBIC alone", true, None, None),
        ("M21TCP", true, Some(spec), Some(all)),
        ("without the option in SYN and SYN-ACK", true, Some(spec), Some(M21Parts { opening: false, ..all })),
        (
            "without a bound of the first burst",
            true,
            Some(spec),
            Some(M21Parts { first_window: false, ..all }),
        ),
        ("without a fresh echo", true, Some(spec), Some(M21Parts { fresh_echo: false, ..all })),
        ("headers not counted", true, Some(M21Spec { overhead: Bytes::ZERO, ..spec }), Some(all)),
        ("delayed acknowledgements", false, Some(spec), Some(all)),
    ];
    for senders in [8, 24, 40] {
        for (name, quickack, spec, parts) in rows {
            let (outcome, figures) = row(senders, 40, quickack, spec, parts);
            println!(
                "| {senders} | {name} | {:.0} | {} | {} | {} |",
                outcome.goodput_mbps, outcome.drops, outcome.queue_bytes_max, figures.changes
            );
        }
    }
}
