//! The BPF congestion controls in the running kernel: these need root, and the feature `bpf`.
#![cfg(feature = "bpf")]

#[path = "../../../tests/privileged.rs"]
mod privileged;
#[path = "../../../tests/skip.rs"]
mod skip;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use fanin_testbed::bpf::{LoadError, LoadedControl};
use fanin_testbed::{
    InterfaceAddress, Lab, LabNode, LabPlan, Namespace, NodeName, Setting, VethPair, VethPort,
};
use privileged::privileged;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, socket};

/// A source and a sink, joined by a router whose port to the sink carries 100 Mb/s and holds 64 kB.
fn bottleneck() -> Lab {
    let node = |name: &str| LabNode::new(NodeName::new(name).unwrap());
    let port = |node, device: &str, address| {
        let address = Some(InterfaceAddress { address: Ipv4Addr::from(address), prefix: 24 });
        VethPort { address, ..VethPort::new(node, device) }
    };
    let mut nodes = vec![node("source"), node("router"), node("sink")];
    nodes[1].settings.push(Setting { key: "net.ipv4.ip_forward".into(), value: "1".into() });
    let route = |via: &str| fanin_testbed::NamespaceRoute {
        to: "default".into(),
        device: "eth0".into(),
        options: vec!["via".into(), via.into()],
    };
    nodes[0].routes.push(route("10.79.1.2"));
    nodes[2].routes.push(route("10.79.2.2"));
    let links = vec![
        VethPair { a: port(0, "eth0", [10, 79, 1, 1]), b: port(1, "left", [10, 79, 1, 2]), mtu: 1500 },
        VethPair { a: port(1, "right", [10, 79, 2, 2]), b: port(2, "eth0", [10, 79, 2, 1]), mtu: 1500 },
    ];
    let lab = Lab::build(&LabPlan { nodes, links }).unwrap();
    let router = lab.namespaces()[1].name();
    let shaped = Command::new("tc")
        .args(["-n", router, "qdisc", "add", "dev", "right", "root"])
        .args(["tbf", "rate", "100mbit", "burst", "5kb", "limit", "64kb"])
        .status();
    assert!(shaped.is_ok_and(|status| status.success()), "tc (Debian package iproute2) cannot shape a port");
    lab
}

/// Sends `bytes` from the source to the sink under `control`, and returns the output of `ss` about the sender meanwhile.
fn transfer(lab: &Lab, control: &str, bytes: usize) -> String {
    let [source, _, sink] = lab.namespaces() else { panic!("three namespaces") };
    let at = SocketAddr::from(([10, 79, 2, 1], 4000));
    let listener = sink.run(|| TcpListener::bind(at)).unwrap().unwrap();
    set_tcp_congestion(&listener, control).unwrap();
    // Called before the connection opens: its first segments negotiate ECN.
    let connect = || {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        set_tcp_congestion(&socket, control)?;
        rustix::net::connect(&socket, &at)?;
        Ok::<_, rustix::io::Errno>(TcpStream::from(socket))
    };
    let mut stream = source.run(connect).unwrap().unwrap();
    thread::scope(|scope| {
        let received = scope.spawn(|| {
            let mut connection = listener.accept().unwrap().0;
            let mut total = 0;
            let mut block = vec![0; 65_536];
            loop {
                match connection.read(&mut block).unwrap() {
                    0 => break total,
                    more => total += more,
                }
            }
        });
        let block = vec![7; bytes / 4];
        for _ in 0..3 {
            stream.write_all(&block).unwrap();
        }
        let said = inspect(source);
        stream.write_all(&block).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(received.join().unwrap(), bytes / 4 * 4);
        said
    })
}

fn inspect(namespace: &Namespace) -> String {
    let ss = || Command::new("ss").args(["-tinoH"]).output().unwrap();
    String::from_utf8(namespace.run(ss).unwrap().stdout).unwrap()
}

/// The number after `key` in the output of `ss`.
fn figure(said: &str, key: &str) -> Option<f64> {
    said.split_whitespace().find_map(|word| word.strip_prefix(key)).map(|word| word.parse().unwrap())
}

#[test]
fn a_static_window_is_exactly_what_was_asked_for_and_follows_changes() {
    if !privileged() {
        return;
    }
    let lab = bottleneck();
    let mut control = LoadedControl::static_window(7).unwrap();
    let said = transfer(&lab, control.name(), 2_000_000);
    assert!(said.contains("fanin_static") && figure(&said, "cwnd:") == Some(7.0), "{said}");
    control.set_window(11).unwrap();
    let said = transfer(&lab, control.name(), 2_000_000);
    assert_eq!(figure(&said, "cwnd:"), Some(11.0), "{said}");
    assert_eq!(figure(&said, "retrans:0/"), None, "11 segments fit the port: {said}");

    assert!(matches!(control.set_window(0), Err(LoadError::Window { given: 0 })));
    assert!(matches!(LoadedControl::static_window(3), Err(LoadError::Taken { name: "fanin_static" })));
    drop(control);
    let left = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(!left.contains("fanin_static"), "{left}");
}

#[test]
fn dctcp_asks_for_ecn_and_carries_data_past_a_port_that_marks_nothing() {
    if !privileged() {
        return;
    }
    let lab = bottleneck();
    let control = LoadedControl::dctcp().unwrap();
    let said = transfer(&lab, control.name(), 4_000_000);
    // Without marks DCTCP is like Reno: it fills the port and loses frames. The test checks that ECN is on and data
    // arrive.
    assert!(said.contains("fanin_dctcp") && said.split_whitespace().any(|word| word == "ecn"), "{said}");
}
