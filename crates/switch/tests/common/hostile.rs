//! Arbitrary bytes as frames for a switch with all features: VLANs, rules on all fields, rings, marks, storm control, PAUSE,
//! M21TCP, impairment. Nothing panics, no memory leaks, and no frame appears from nowhere.

use fanin_switch::config::{Hugepages, load_text};
use fanin_switch::{MemoryPorts, Pool, Switch};
use fanin_units::{Duration, Instant};

const PORTS: usize = 4;
/// The longest injected frame, above the MTU.
const FRAME_MAX: usize = 1600;

const CONFIG: &str = r#"
[switch]
memory = "4 MB"
hugepages = "off"
mac_entries = 16
mac_hold = "0 s"
[[port]]
name = "p0"
interface = "a"
untagged = 5
storm = { broadcast = "10 Mb/s", unknown = "1 Gb/s", burst = "64 kB" }
[[port]]
name = "p1"
interface = "b"
tagged = [5, 6]
pause = { react = true, xoff = "20 kB", xon = "10 kB" }
[[port]]
name = "p2"
interface = "c"
untagged = 6
rate = "1 Gb/s"
ecn = { mode = "threshold", threshold = 2 }
m21 = { buffer = "64 kB" }
[[port]]
name = "p3"
interface = "d"
untagged = 5
tagged = [6]
impair = { delay = "10 us", jitter = "5 us", loss = "1 %", duplicate = "5 %", reorder = "5 %" }
[[ring]]
name = "deep"
port = "p2"
frames = 30
rate = "0.78 Gb/s"
ecn = { mode = "red-mark", min = 3, max = 9 }
[[ring]]
name = "wide"
port = "p3"
bytes = "30 kB"
[[rule]]
name = "by-address"
ring = "deep"
destination_ip = "10.0.0.0/24"
[[rule]]
name = "by-everything"
ring = "wide"
priority = 9
source_ip = "fd00::/9"
protocol = "udp"
destination_port = "5000-5063"
source_mac = "02:00:00:00:00:00/16"
[[rule]]
name = "away"
drop = true
input = "p0"
vlan = 5
protocol = "tcp"
source_port = 1
"#;

/// Runs the steps of an input. A byte below 200 starts a frame: its port, length (two bytes) and bytes follow. Otherwise time
/// passes.
pub fn check(mut input: &[u8]) {
    let config = load_text("hostile.toml", CONFIG).unwrap_or_else(|errors| panic!("{errors}")).config;
    let pool = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 1).unwrap().remove(0);
    let before = pool.free_len();
    let mut switch = Switch::new(config, MemoryPorts::new(pool, PORTS)).unwrap();
    let mut now = Instant::START + Duration::from_micros(1);
    let (mut put, mut received) = (0u64, 0u64);
    let mut take = |switch: &mut Switch<MemoryPorts>| {
        for port in 0..PORTS {
            while let Some(frame) = switch.driver_mut().take(port) {
                assert!(frame.len() <= FRAME_MAX + 4, "a frame of {} bytes", frame.len());
                received += 1;
            }
        }
    };
    while let Some((&byte, rest)) = input.split_first() {
        input = rest;
        if byte < 200 {
            let Some((&[low, high], rest)) = rest.split_first_chunk() else { break };
            let len = usize::from(u16::from_le_bytes([low, high])) % FRAME_MAX;
            let (frame, rest) = rest.split_at(len.min(rest.len()));
            input = rest;
            put += u64::from(switch.driver_mut().inject(usize::from(byte) % PORTS, frame));
        } else {
            now = now + Duration::from_micros(1 << (byte % 16));
        }
        switch.poll(now, true);
        take(&mut switch);
    }
    let mut rounds = 0;
    while !switch.is_drained() {
        let next = switch.poll(now, false).next;
        now = next.unwrap_or(now).max(now + Duration::from_micros(1));
        take(&mut switch);
        rounds += 1;
        assert!(rounds < 200_000, "does not drain");
    }
    take(&mut switch);
    let snapshot = switch.snapshot(true);
    assert_eq!(snapshot.ports.iter().map(|port| port.received.frames).sum::<u64>(), put);
    let pauses: u64 = snapshot.ports.iter().map(|port| port.pauses_sent).sum();
    // A frame is flooded to at most three ports, and each copy duplicated once.
    assert!(received <= put * 6 + pauses, "{received} frames out of {put}");
    assert_eq!(switch.driver().pool().free_len(), before, "memory has leaked");
}
