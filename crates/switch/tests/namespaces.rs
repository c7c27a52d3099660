//! The switch over AF_XDP between namespaces, with the kernel's TCP at both ends.

mod common;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use common::hang_guard::HangGuard;
use common::{Lab, PORT, address, connect, incast, read_pattern, serve_pattern};
use fanin_switch::config::{Buffering, RingSpec, RuleSpec};
use fanin_switch::{Command, Config};
use fanin_units::{Bytes, Rate};

/// Every host sends to its neighbour at the same time; every byte is checked.
fn all_hosts_send(lab: &Lab, hosts: usize, bytes: u64) {
    let mut servers = Vec::new();
    for host in 0..hosts {
        let (ready, listens) = std::sync::mpsc::channel();
        servers.push(lab.on(host, move || {
            let listener =
                TcpListener::bind(SocketAddr::from((address(host), PORT))).expect("an address of our own");
            ready.send(()).expect("the test waits");
            serve_pattern(&listener, host as u64, bytes);
        }));
        listens.recv().expect("a server listens");
    }
    let clients: Vec<_> = (0..hosts)
        .map(|host| {
            lab.on(host, move || {
                let server = (host + 1) % hosts;
                read_pattern(&mut connect(server), server as u64, bytes)
            })
        })
        .collect();
    for (host, client) in clients.into_iter().enumerate() {
        assert!(client.join().expect("the client finishes"), "host {host} received wrong bytes");
    }
    for server in servers {
        server.join().expect("the server finishes");
    }
    for host in 0..hosts {
        assert_eq!(lab.checksum_errors(host), 0, "host {host} threw packets away");
    }
}

fn with_ring(mut config: Config, port: usize, rate: u64) -> Config {
    config.ring.push(RingSpec {
        bytes: Some(Bytes::new(16_000_000)),
        rate: Some(Rate::new(rate)),
        ..RingSpec::new("deep", &format!("p{port}"))
    });
    config.rule.push(RuleSpec {
        name: "to-the-collector".to_owned(),
        ring: Some("deep".to_owned()),
        destination_ip: Some(address(port).to_string().parse().unwrap()),
        ..RuleSpec::default()
    });
    config
}

#[test]
fn four_hosts_talk_and_every_byte_is_right() {
    let Some(lab) = Lab::new("four", 4, 1500) else { return };
    let running = lab.start(&lab.config()).expect("the switch starts");
    all_hosts_send(&lab, 4, 400_000);
    let snapshot = running.control().snapshot(true).unwrap();
    assert_eq!(snapshot.stations.iter().filter(|station| station.port < 4).count(), 4);
    let ended = running.stop();
    assert_eq!((ended.abandoned, ended.snapshot.drops()), (0, 0), "{:#?}", ended.snapshot);
    for port in &ended.snapshot.ports {
        assert!(port.sent.bytes > 400_000 && port.received.bytes > 400_000, "{port:#?}");
    }
    // The kernel removed the program with the switch, and the next switch starts at once.
    let again = lab.start(&lab.config()).expect("a second switch starts where the first was");
    all_hosts_send(&lab, 4, 20_000);
    assert_eq!(again.stop().snapshot.drops(), 0);
}

#[test]
fn two_workers_share_the_ports() {
    let Some(lab) = Lab::new("workers", 4, 1500) else { return };
    let mut config = lab.config();
    config.switch.cores = vec![0, 1];
    // A shared pool and PAUSE depend on the other worker's occupancy.
    config.switch.buffering = Buffering::Shared;
    config.switch.buffer = Bytes::new(8_000_000);
    config.port[1].pause.xoff = Some(Bytes::new(4_000_000));
    let running = lab.start(&config).expect("the switch starts");
    all_hosts_send(&lab, 4, 300_000);
    let ended = running.stop();
    assert_eq!((ended.abandoned, ended.snapshot.drops()), (0, 0), "{:#?}", ended.snapshot);
    assert_eq!(ended.snapshot.workers.len(), 2);
    assert!(ended.snapshot.ports.iter().all(|port| port.sent.bytes > 300_000));
}

#[test]
fn jumbo_frames_pass_in_parts() {
    let Some(lab) = Lab::new("jumbo", 2, 9000) else { return };
    let mut config = lab.config();
    config.switch.mtu = Bytes::new(9000);
    let running = lab.start(&config).expect("the switch starts");
    all_hosts_send(&lab, 2, 1_000_000);
    let ended = running.stop();
    assert_eq!(ended.snapshot.drops(), 0, "{:#?}", ended.snapshot);
    let port = &ended.snapshot.ports[0];
    assert!(port.received.bytes / port.received.frames > 2_000, "frames were small: {port:#?}");
}

/// Flows of one host arrive by several queues of its port; a queue without service would stall its flows.
#[test]
fn all_queues_of_a_port_are_served() {
    const FLOWS: u16 = 24;
    const BYTES: u64 = 50_000;
    let Some(lab) = Lab::with_queues("queues", 2, 1500, 4) else { return };
    let running = lab.start(&lab.config()).expect("the switch starts");
    let (ready, listens) = std::sync::mpsc::channel();
    let server = lab.on(0, move || {
        let listener =
            TcpListener::bind(SocketAddr::from((address(0), PORT))).expect("an address of our own");
        ready.send(()).expect("the test waits");
        for flow in 0..FLOWS {
            serve_pattern(&listener, flow.into(), BYTES);
        }
    });
    listens.recv().expect("a server listens");
    let client = lab.on(1, || (0..FLOWS).all(|flow| read_pattern(&mut connect(0), flow.into(), BYTES)));
    assert!(client.join().expect("the client finishes"), "wrong bytes arrived");
    server.join().expect("the server finishes");
    // A hash of addresses and ports chooses each flow's queue: not all flows share one.
    let used = lab.queues_used(0);
    assert!(used > 1, "everything went through one queue");
    let ended = running.stop();
    assert_eq!(ended.snapshot.drops(), 0, "{:#?}", ended.snapshot);
}

#[test]
fn a_cable_that_is_pulled_out_and_put_in_again_is_noticed() {
    let Some(lab) = Lab::new("cable", 3, 1500) else { return };
    let running = lab.start(&lab.config()).expect("the switch starts");
    all_hosts_send(&lab, 3, 20_000);
    let control = running.control().clone();
    let wait_until = |is_up: bool| {
        let guard = HangGuard::new();
        loop {
            let snapshot = control.snapshot(true).expect("the switch runs");
            if snapshot.ports[1].is_up == is_up {
                return snapshot;
            }
            guard.check(format_args!("the link's state: {is_up}"));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    assert!(wait_until(true).stations.iter().any(|station| station.port == 1));
    lab.set_link(1, "down");
    assert!(
        wait_until(false).stations.iter().all(|station| station.port != 1),
        "its stations are still known"
    );
    lab.set_link(1, "up");
    wait_until(true);
    all_hosts_send(&lab, 3, 20_000);
    assert_eq!(running.stop().abandoned, 0);
}

/// iperf3 in both directions over several connections, with full frames and with jumbo frames.
#[test]
fn iperf3_finds_no_fault() {
    if !iperf3(&["--version"]).is_ok_and(|output| output.status.success()) {
        return common::skip::skip("iperf3 is missing: apt-get install iperf3");
    }
    for mtu in [1500, 9000] {
        let Some(lab) = Lab::new("iperf", 2, mtu) else { return };
        let mut config = lab.config();
        config.switch.mtu = Bytes::new(mtu.into());
        config.switch.memory = Bytes::new(128 << 20);
        // More than the sum of all windows.
        config.switch.buffer = Bytes::new(32_000_000);
        let running = lab.start(&config).expect("the switch starts");
        let server = lab.on(0, || iperf3(&["-s", "-1", "-B", &address(0).to_string()]));
        let report = lab
            .on(1, move || {
                let to = address(0).to_string();
                let words = ["-c", &to, "-t", "2", "-P", "4", "--bidir", "-w", "512K", "-J"];
                let guard = HangGuard::new();
                loop {
                    // Its exit code is 0 even if it cannot connect, for example before the server listens.
                    let output = iperf3(&words).expect("iperf3 runs");
                    let text = String::from_utf8_lossy(&output.stdout).into_owned();
                    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                    if report["end"]["sum_received"].is_object() {
                        return report;
                    }
                    guard.check(format_args!("iperf3 says: {text}"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            })
            .join()
            .expect("the client ends");
        server.join().expect("the server ends").expect("iperf3 runs");
        for way in ["sum_received", "sum_received_bidir_reverse"] {
            let bytes = report["end"][way]["bytes"].as_u64().unwrap_or_default();
            eprintln!(
                "MTU {mtu}, {way}: {} Mb/s",
                report["end"][way]["bits_per_second"].as_f64().unwrap_or_default() / 1e6
            );
            assert!(bytes > 1_000_000, "{way}: {bytes} bytes: {}", report["end"]);
        }
        for host in 0..2 {
            assert_eq!(lab.checksum_errors(host), 0, "host {host} threw packets away");
        }
        let ended = running.stop();
        assert_eq!(ended.snapshot.drops(), 0, "{:#?}", ended.snapshot);
    }
}

fn iperf3(words: &[&str]) -> std::io::Result<std::process::Output> {
    std::process::Command::new("timeout").args(["40", "iperf3"]).args(words).output()
}

#[test]
fn rings_change_under_traffic_without_losing_a_frame() {
    let Some(lab) = Lab::new("live", 3, 1500) else { return };
    let running = lab.start(&with_ring(lab.config(), 1, 50_000_000)).expect("the switch starts");
    let control = running.control().clone();
    let changes = std::thread::spawn(move || {
        for round in 0..40u64 {
            let rate = Rate::new(40_000_000 + 10_000_000 * (round % 5));
            let ring = RingSpec {
                bytes: Some(Bytes::new(16_000_000)),
                rate: Some(rate),
                ..RingSpec::new("deep", "p1")
            };
            control.send(&Command::SetRing(ring)).expect("a ring changes");
            let name = format!("more-{}", round % 3);
            let extra = RingSpec { bytes: Some(Bytes::new(1_000_000)), ..RingSpec::new(&name, "p2") };
            control.send(&Command::AddRing(extra)).expect("a ring is added");
            control.send(&Command::RemoveRing { name }).expect("a ring is removed");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    all_hosts_send(&lab, 3, 1_500_000);
    changes.join().expect("the changes are made");
    let ended = running.stop();
    assert_eq!(ended.snapshot.drops(), 0, "{:#?}", ended.snapshot);
    assert!(ended.snapshot.rings[0].queue.departed.bytes > 1_500_000);
}

/// Thirty-two senders answer one collector behind 100 Mb/s at once. 64 kB drop frames and connections time out. A ring drops
/// nothing and no connection times out. Goodput is only printed: it depends on the machine's other load.
#[test]
fn incast_times_out_in_a_shallow_buffer_and_not_in_a_ring() {
    const SENDERS: usize = 32;
    let Some(lab) = Lab::new("incast", SENDERS + 1, 1500) else { return };
    let mut shallow = lab.config();
    shallow.port[0].rate = Some(Rate::new(100_000_000));
    shallow.port[0].buffer = Some(Bytes::new(64_000));
    let running = lab.start(&shallow).expect("the switch starts");
    // Tail loss probes repair most losses: three seconds have five timeouts on average, and one run of a hundred has none.
    let mut rounds = (0..4).map(|_| incast(&lab, SENDERS, 10_000, Duration::from_secs(3)));
    let collapsed = rounds.find(|round| round.timeouts > 0).expect("64 kB were enough");
    let dropped = running.stop().snapshot.drops();
    eprintln!("64 kB: {collapsed:?}, {dropped} drops");
    assert!(dropped > 0 && collapsed.retransmits > 0, "64 kB were enough: {collapsed:?}");
    let mut config = with_ring(lab.config(), 0, 100_000_000);
    // Rates are averages: the burst lets the ring send after a round as much as it could have sent before.
    config.ring[0].burst = Some(Bytes::new(256_000));
    let running = lab.start(&config).expect("the switch starts");
    let lossless = incast(&lab, SENDERS, 10_000, Duration::from_secs(3));
    let ended = running.stop();
    eprintln!("ring: {lossless:?}");
    let missed: u64 = ended.snapshot.ports.iter().map(|port| port.missed).sum();
    assert_eq!((ended.snapshot.drops(), missed), (0, 0), "{lossless:?} {:#?}", ended.snapshot);
    assert_eq!(lossless.timeouts, 0, "{lossless:?}");
    assert!(lossless.goodput > 0, "{lossless:?}");
}

/// An interface is deleted and created again under the switch, several times. The port takes each new one, and gets the
/// packet memory of the old one back.
#[test]
fn a_port_whose_interface_is_made_again_is_attached_again() {
    let Some(lab) = Lab::new("again", 3, 1500) else { return };
    let running = lab.start(&lab.config()).expect("the switch starts");
    let picture = || running.control().snapshot(false).unwrap();
    let until = |awaited: &str, holds: &dyn Fn() -> bool| {
        let guard = HangGuard::new();
        while !holds() {
            guard.check(awaited);
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until("the links' state", &|| picture().ports.iter().all(|port| port.is_up));
    all_hosts_send(&lab, 3, 100_000);
    let free = || picture().workers[0].chunks_free;
    let before = free();
    for round in 0..3 {
        lab.delete_link(1);
        until("the loss of a port", &|| !picture().ports[1].is_up);
        // Nothing is attached while there is no interface, and the other ports work.
        std::thread::sleep(Duration::from_millis(300));
        // The kernel reports a link up to a second late.
        until("the other port", &|| picture().ports[0].is_up);
        assert!(!picture().ports[1].is_up, "round {round}");
        lab.make_link(1, 1500);
        until("the new interface", &|| picture().ports[1].is_up);
        all_hosts_send(&lab, 3, 100_000);
    }
    // One interface replaces another within one check.
    lab.delete_link(2);
    lab.make_link(2, 1500);
    std::thread::sleep(Duration::from_millis(500));
    until("the interface that came at once", &|| picture().ports[2].is_up);
    all_hosts_send(&lab, 3, 100_000);
    // The kernel's own chunks are lost: a few an interface at most.
    until("the chunks of the old interfaces", &|| free() + 16 >= before);
    let ended = running.stop();
    assert_eq!(ended.abandoned, 0, "{:#?}", ended.snapshot);
}
