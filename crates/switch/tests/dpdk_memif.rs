//! The switch over DPDK's shared memory (memif) as ports, in one process and without privileges.

#![cfg(feature = "dpdk")]

#[path = "common/dpdk.rs"]
mod dpdk;
#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;

use dpdk::COLLECTOR;
use fanin_switch::config::{PortSpec, StationSpec};
use fanin_switch::{Config, DpdkPorts, Driver, Mac, Received, Switch};
use fanin_units::{Bytes, Duration, Instant};
use hang_guard::HangGuard;

const FRAMES: u32 = 3_000;
const BURST: u32 = 50;

fn frame(number: u32) -> Vec<u8> {
    dpdk::frame(number, 60 + number as usize % 1_400)
}

#[test]
fn frames_pass_from_one_shared_memory_to_another() {
    let mut config = Config::default();
    config.dpdk.arguments = dpdk::arguments();
    let socket = std::env::temp_dir().join(format!("fanin-memif-test-{}.sock", std::process::id()));
    // The switch uses the first worker's ports; this test uses the second worker's, at the other ends.
    config.switch.cores = vec![0, 1];
    for (port, (id, role)) in
        [(0, "server"), (1, "server"), (0, "client"), (1, "client")].into_iter().enumerate()
    {
        let name = format!("net_memif{port}");
        let socket = socket.display();
        let device = format!("--vdev={name},role={role},id={id},socket={socket},socket-abstract=no");
        config.dpdk.arguments.push(device);
        let worker = Some(u16::from(role == "client"));
        config.port.push(PortSpec { dpdk: Some(name.clone()), worker, ..PortSpec::new(&name) });
    }
    config.switch.memory = Bytes::new(8 << 20);
    config.station.push(StationSpec { mac: Mac(COLLECTOR), port: "net_memif1".to_owned(), vlan: None });
    let mut ports = DpdkPorts::open(&config).expect("DPDK starts and has shared memory");
    let (mut ends, ports) = (ports.remove(1), ports.remove(0));
    let mut switch = Switch::new(config, ports).expect("a configuration");
    let (guard, mut now) = (HangGuard::new(), Instant::START + Duration::from_micros(1));
    let (mut sent, mut arrived, mut received) = (0, 0, Vec::new());
    while arrived < FRAMES {
        guard.check(format_args!("{arrived} of {sent} frames: {:#?}", switch.snapshot(false)));
        // A thread of DPDK connects the ends.
        if (2..4).all(|port| ends.is_up(port)) && sent < FRAMES && sent - arrived < BURST {
            let bytes = frame(sent);
            let handle = ends.make(&bytes).expect("memory for a frame");
            let frame = Received { handle, bytes: bytes.len() as u32 };
            if ends.transmit(2, &[frame]) == 1 {
                sent += 1;
            } else {
                ends.free(frame);
            }
        }
        switch.poll(now, true);
        now = now + Duration::from_micros(2);
        received.clear();
        ends.receive(3, 64, &mut received);
        for &handle in &received {
            let mut bytes = Vec::new();
            ends.copy_out(handle, &mut bytes);
            assert!(bytes == frame(arrived), "frame {arrived} has changed, or is another");
            arrived += 1;
            ends.free(handle);
        }
    }
    let snapshot = switch.snapshot(false);
    assert_eq!((snapshot.drops(), snapshot.ports[1].sent.frames), (0, FRAMES.into()), "{snapshot:#?}");
    let _ = std::fs::remove_file(socket);
}
