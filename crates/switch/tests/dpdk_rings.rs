//! The switch over DPDK rings as ports, in one process and without privileges: a port receives the frames that it sends.

#![cfg(feature = "dpdk")]

#[path = "common/dpdk.rs"]
mod dpdk;

use dpdk::COLLECTOR;
use fanin_switch::config::{PortSpec, RingSpec, RuleSpec, StationSpec};
use fanin_switch::{Config, DpdkPorts, Driver, Mac, Received, Switch};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate};

const FRAMES: u32 = 200;

fn frame(number: u32) -> Vec<u8> {
    dpdk::frame(number, 60 + number as usize * 7)
}

/// Flushes until the free memory is counted.
fn count(ports: &mut DpdkPorts) {
    (0..64).for_each(|_| ports.flush(0));
}

#[test]
fn frames_pass_a_ring_between_devices_and_all_memory_comes_home() {
    let mut config = Config::default();
    config.dpdk.arguments = dpdk::arguments();
    for port in ["net_ring0", "net_ring1"] {
        config.dpdk.arguments.push(format!("--vdev={port}"));
        config.port.push(PortSpec { dpdk: Some(port.to_owned()), ..PortSpec::new(port) });
    }
    config.switch.memory = Bytes::new(8 << 20);
    config.ring.push(RingSpec {
        frames: Some(Packets::new(1_000)),
        rate: Some(Rate::new(1_000_000_000)),
        ..RingSpec::new("deep", "net_ring1")
    });
    config.rule.push(RuleSpec {
        name: "to-the-collector".to_owned(),
        ring: Some("deep".to_owned()),
        destination_mac: Some(Mac(COLLECTOR).to_string().parse().expect("an address")),
        ..RuleSpec::default()
    });
    config.station.push(StationSpec { mac: Mac(COLLECTOR), port: "net_ring1".to_owned(), vlan: None });
    let mut ports = DpdkPorts::open(&config).expect("DPDK starts and has rings").remove(0);
    let mut nothing = Vec::new();
    // The first call registers this thread with DPDK.
    ports.receive(0, 1, &mut nothing);
    count(&mut ports);
    let free = ports.room();
    let mut bytes = 0;
    for number in 0..FRAMES {
        let frame = frame(number);
        bytes += frame.len() as u64;
        let handle = ports.make(&frame).expect("memory for a frame");
        assert_eq!(ports.transmit(0, &[Received { handle, bytes: frame.len() as u32 }]), 1);
    }
    let mut switch = Switch::new(config, ports).expect("a configuration");
    let mut now = Instant::START + Duration::from_micros(1);
    let mut rounds = 0;
    // A port receives its own sent frames. Their sources belong to the other port: the switch drops them as a loop.
    while switch.snapshot(false).ports[1].received.frames < FRAMES.into() {
        switch.poll(now, true);
        now = now + Duration::from_micros(2);
        rounds += 1;
        assert!(rounds < 100_000, "frames are missing: {:#?}", switch.snapshot(false));
    }
    let snapshot = switch.snapshot(false);
    assert_eq!((snapshot.ports[0].received.frames, snapshot.ports[0].received.bytes), (FRAMES.into(), bytes));
    assert_eq!((snapshot.ports[1].sent.frames, snapshot.ports[1].sent.bytes), (FRAMES.into(), bytes));
    assert_eq!(snapshot.rings[0].queue.departed.frames, u64::from(FRAMES));
    let looped: u64 = snapshot.ports[1].dropped.iter().map(|dropped| dropped.tally.frames).sum();
    assert_eq!(looped, u64::from(FRAMES), "{snapshot:#?}");
    // Not faster than the ring's rate on the wire.
    let least = Rate::new(1_000_000_000).time_to_send(Bytes::new(bytes + 24 * u64::from(FRAMES - 1) - 1500));
    assert!(now >= Instant::START + least, "{now:?} {least:?}");
    count(switch.driver_mut());
    assert_eq!(switch.driver().room(), free, "memory has leaked");
}
