//! The switch over AF_XDP and Open vSwitch's userspace datapath between the same namespaces: latency at low load,
//! delivery of a flood, and goodput of TCP.
//!
//! `cargo bench -p fanin-switch --bench veth`, as root. Everything runs on the same cores, sender and receiver too: compare
//! figures of one run only.

mod peers;

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use common::{Lab, PORT, address, connect};
use fanin_switch::config::Idle;

const PINGS: usize = 3_000;
/// Pause between two pings, in which an idle switch falls asleep.
const PAUSE: Duration = Duration::from_micros(500);
const FLOOD: Duration = Duration::from_secs(2);
const BLOCK: usize = 64 << 10;

/// A counter of the calling thread's namespace, from the line of `eth0`.
fn counter(column: usize) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("a namespace has interfaces");
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).expect("a host has eth0");
    line.split_whitespace().nth(column).and_then(|word| word.parse().ok()).expect("a counter")
}

fn received(lab: &Lab) -> u64 {
    lab.on(1, || counter(1)).join().expect("a thread that counts")
}

fn socket(host: usize) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddr::from((address(host), PORT))).expect("an address of our own");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a socket takes a timeout");
    socket
}

/// Round trips of 64 bytes, one at a time: the median and the 99th percentile, in µs; `None` if too few succeeded.
fn ping_pong(lab: &Lab) -> Option<(f64, f64)> {
    let echo = lab.on(1, || {
        let (socket, mut buffer) = (socket(1), [0; 64]);
        // Ends when the other end stays silent.
        let mut silences = 0;
        while silences < 4 {
            match socket.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    let _ = socket.send_to(&buffer[..len], from);
                }
                Err(_) => silences += 1,
            }
        }
    });
    let times = lab.on(0, || {
        let (socket, mut buffer, mut times) = (socket(0), [0; 64], Vec::new());
        for _ in 0..PINGS {
            std::thread::sleep(PAUSE);
            let began = Instant::now();
            let sent = socket.send_to(&buffer.clone(), (address(1), PORT));
            if sent.is_ok() && socket.recv(&mut buffer).is_ok() {
                times.push(began.elapsed());
            }
        }
        times
    });
    let mut times = times.join().expect("a thread that asks");
    echo.join().expect("a thread that answers");
    times.sort_unstable();
    let at = |share: usize| Some(times.get(times.len() * share / 100)?.as_nanos() as f64 / 1e3);
    if times.len() < PINGS / 2 { None } else { Some((at(50)?, at(99)?)) }
}

/// Frames of 64 bytes at the rate of one socket: millions a second that arrived, and the lost share.
fn flood(lab: &Lab) -> (f64, f64) {
    let before = received(lab);
    let (sent, time) = lab
        .on(0, || {
            let socket = socket(0);
            let (before, began) = (counter(9), Instant::now());
            while began.elapsed() < FLOOD {
                for _ in 0..64 {
                    // No socket listens: the host's errors are ignored.
                    let _ = socket.send_to(&[0; 22], (address(1), PORT + 1));
                }
            }
            (counter(9) - before, began.elapsed())
        })
        .join()
        .expect("a thread that sends");
    std::thread::sleep(Duration::from_millis(300));
    let arrived = received(lab) - before;
    (arrived as f64 / time.as_secs_f64() / 1e6, 1.0 - (arrived as f64 / sent as f64).min(1.0))
}

/// One connection, in Gb/s.
fn tcp(lab: &Lab) -> f64 {
    let (ready, listens) = std::sync::mpsc::channel();
    let server = lab.on(1, move || {
        let listener =
            TcpListener::bind(SocketAddr::from((address(1), PORT))).expect("an address of our own");
        ready.send(()).expect("the benchmark waits");
        let (mut stream, _) = listener.accept().expect("a client connects");
        let (mut block, mut bytes, began) = (vec![0; BLOCK], 0u64, Instant::now());
        while let Ok(count @ 1..) = stream.read(&mut block) {
            bytes += count as u64;
        }
        bytes as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e9
    });
    listens.recv().expect("a server listens");
    lab.on(0, || {
        let (mut stream, block, began) = (connect(1), vec![7; BLOCK], Instant::now());
        while began.elapsed() < FLOOD && stream.write_all(&block).is_ok() {}
    })
    .join()
    .expect("a thread that sends");
    server.join().expect("the server ends")
}

#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn measure(name: &str, lab: &Lab) {
    match ping_pong(lab) {
        Some((median, late)) => {
            print!("{name:<38} round trip {median:6.1} us, p99 {late:7.1};");
        }
        None => print!("{name:<38} round trip: most never came back;"),
    }
    let (rate, lost) = flood(lab);
    println!(" 64 B {rate:.3} M/s, {:.1} % lost; TCP {:.2} Gb/s", lost * 100.0, tcp(lab));
}

#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some(lab) = Lab::new("veth", 2, 1500) else { return };
    for (name, idle) in [("switch, sleeps when idle", Idle::Adaptive), ("switch, polls", Idle::Poll)] {
        let mut config = lab.config();
        config.switch.idle = idle;
        let running = lab.start(&config).unwrap_or_else(|error| panic!("{error}"));
        measure(name, &lab);
        let ended = running.stop().snapshot;
        let missed: u64 = ended.ports.iter().map(|port| port.missed).sum();
        println!("{:<38} dropped {} itself, {missed} before it saw them", "", ended.drops());
    }
    for kind in ["system", "afxdp"] {
        let name = format!("Open vSwitch, {kind} ports");
        let tried = peers::OpenVswitch::start("ovs-vswitchd", Some(&lab.switch()), &[]).and_then(|ovs| {
            for port in ["p0", "p1"] {
                ovs.add_port(port, &[&format!("type={kind}")])?;
            }
            std::thread::sleep(Duration::from_secs(1));
            Ok(ovs)
        });
        match tried {
            Ok(_running) => measure(&name, &lab),
            Err(error) => println!("{name}: skipped: {error}"),
        }
    }
}
