//! A collector and its senders around a switch whose port to the collector is slow and shallow.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test uses its part")]

#[path = "../../../../tests/hang_guard.rs"]
mod hang_guard;
#[path = "../../../../tests/privileged.rs"]
mod privileged;
#[path = "../../../../tests/skip.rs"]
mod skip;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fanin_switch::config::{M21Spec, PortSpec};
use fanin_switch::{Config, Running, Snapshot};
use fanin_testbed::bpf::{M21Figures, M21Hosts, M21Parts};
use fanin_testbed::{
    InterfaceAddress, Lab, LabNode, LabPlan, NamespaceRoute, NodeName, Setting, VethPair, VethPort,
};
use fanin_units::{Bytes, Rate};
use hang_guard::HangGuard;
use rustix::net::sockopt::set_tcp_congestion;

pub(crate) use privileged::privileged;

/// Port at which senders listen.
pub const PORT: u16 = 4100;

pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 83, 0, host as u8 + 1)
}

/// A collector and its senders around a switch, which is the last node.
pub fn star(senders: usize, quickack: bool) -> Lab {
    let mut plan = LabPlan::default();
    for host in 0..=senders {
        let mut node = LabNode::new(NodeName::new(&format!("sock-{host}")).unwrap());
        let off = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
        node.settings.extend(off.map(|key| Setting { key: key.into(), value: "1".into() }));
        node.settings.push(Setting { key: "net.ipv4.tcp_shrink_window".into(), value: "1".into() });
        if quickack {
            let options = ["quickack", "1"].map(str::to_owned).to_vec();
            node.routes.push(NamespaceRoute { to: "10.83.0.0/24".into(), device: "eth0".into(), options });
        }
        plan.nodes.push(node);
        let end = Some(InterfaceAddress { address: address(host), prefix: 24 });
        plan.links.push(VethPair {
            a: VethPort { address: end, ..VethPort::new(host, "eth0") },
            b: VethPort::new(senders + 1, &format!("p{host}")),
            mtu: 1500,
        });
    }
    plan.nodes.push(LabNode::new(NodeName::new("sock-switch").unwrap()));
    Lab::build(&plan).unwrap()
}

/// A switch whose port to the collector is slow and shallow.
pub fn switch(lab: &Lab, senders: usize, m21: Option<M21Spec>) -> Running {
    let mut config = Config {
        port: (0..=senders)
            .map(|host| PortSpec {
                interface: Some(format!("p{host}")),
                ..PortSpec::new(&format!("p{host}"))
            })
            .collect(),
        ..Config::default()
    };
    config.port[0].rate = Some(Rate::new(100_000_000));
    config.port[0].buffer = Some(Bytes::new(64_000));
    config.port[0].m21 = m21;
    lab.namespaces()[senders + 1].run(|| Running::start(&config)).unwrap().expect("the switch starts")
}

/// The figures of one row.
#[derive(Debug)]
pub struct Outcome {
    pub goodput_mbps: f64,
    pub drops: u64,
    pub queue_bytes_max: u64,
}

pub fn connect(to: SocketAddr) -> TcpStream {
    let guard = HangGuard::new();
    loop {
        match TcpStream::connect_timeout(&to, Duration::from_secs(2)) {
            Ok(stream) => return stream,
            Err(error) => guard.check(format_args!("{to}: {error}")),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Runs rounds of an incast: the collector requests `bytes` from all senders at once, and waits for all. The first burst
/// of fresh connections counts.
pub fn incast(lab: &Lab, senders: usize, bytes: usize, rounds: usize, running: Running) -> Outcome {
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

/// Measures one row of the table, on a network of its own.
pub fn row(
    senders: usize,
    rounds: usize,
    quickack: bool,
    spec: Option<M21Spec>,
    parts: Option<M21Parts>,
) -> (Outcome, M21Figures) {
    let lab = star(senders, quickack);
    let mut program = parts.map(|parts| M21Hosts::load(parts).unwrap());
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
