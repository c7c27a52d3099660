//! The switch over DPDK devices between namespaces, with the kernel's TCP at both ends.

#![cfg(feature = "dpdk")]

mod common;

use std::net::{SocketAddr, TcpListener};

use common::{Lab, PORT, address, connect, read_pattern, serve_pattern};

#[test]
fn hosts_talk_over_devices_of_dpdk() {
    const BYTES: u64 = 300_000;
    let Some(lab) = Lab::new("dpdk", 2, 1500) else { return };
    let mut config = lab.config();
    config.dpdk.arguments = ["--no-huge", "-m", "128", "--iova-mode=va", "--no-telemetry", "--no-shconf"]
        .map(str::to_owned)
        .to_vec();
    for (number, port) in config.port.iter_mut().enumerate() {
        let device = format!("net_af_packet{number}");
        config.dpdk.arguments.push(format!("--vdev={device},iface=p{number}"));
        (port.interface, port.dpdk) = (None, Some(device));
    }
    config.switch.memory = fanin_units::Bytes::new(16 << 20);
    let running = lab.start(&config).expect("the switch starts");
    let (ready, listens) = std::sync::mpsc::channel();
    let server = lab.on(0, move || {
        let listener =
            TcpListener::bind(SocketAddr::from((address(0), PORT))).expect("an address of our own");
        ready.send(()).expect("the test waits");
        serve_pattern(&listener, 3, BYTES);
    });
    listens.recv().expect("a server listens");
    let client = lab.on(1, || read_pattern(&mut connect(0), 3, BYTES));
    assert!(client.join().expect("the client finishes"), "wrong bytes");
    server.join().expect("the server finishes");
    let ended = running.stop();
    assert_eq!((ended.abandoned, ended.snapshot.drops()), (0, 0), "{:#?}", ended.snapshot);
    assert!(ended.snapshot.ports[0].received.bytes > BYTES);
}
