//! Plain switching between two ports of shared memory (`net_memif`), for this switch and Open vSwitch. `dpdk-testpmd` at the
//! other end of both ports sends each frame back by the other port, so that a constant number of frames circulates.
//! Both switches poll, and idle for a part of their time: only rounds with frames are measured.

use std::process::{Child, Command, Stdio};
use std::time::Duration as WallTime;

use fanin_switch::config::{PortSpec, StationSpec};
use fanin_switch::{Config, DpdkPorts, Mac, Switch};
use fanin_units::{Bytes, Duration, Instant};

use crate::{PASSES, pages};

const PORTS: usize = 2;
/// Time of a measurement, and its number of parts; the best part counts.
const WINDOW: WallTime = WallTime::from_millis(700);
const WINDOWS: usize = 4;
/// Frames of our switch in each part.
const FRAMES_A_PASS: u64 = 2_000_000;
/// Circulating frames in either direction.
const FRAMES: usize = 256;
/// The addresses of testpmd's stations behind the two ports.
const STATIONS: [[u8; 6]; PORTS] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// The socket that joins the ends of a port.
fn socket(port: usize) -> String {
    let name = format!("fanin-memif-{}-{port}.sock", std::process::id());
    std::env::temp_dir().join(name).display().to_string()
}

fn device(port: usize, role: &str, socket: &str) -> String {
    format!(
        "net_memif{port},role={role},id={port},socket={socket},socket-abstract=no,rsize=11,mac={}",
        mac(port)
    )
}

fn mac(port: usize) -> Mac {
    Mac(STATIONS[port])
}

/// The other end of both ports. It ends when this is dropped.
struct OtherEnd(Child);

impl OtherEnd {
    fn start(sockets: &[String], queues: usize) -> Result<Self, String> {
        let mut command = Command::new("dpdk-testpmd");
        command.args([
            "-l",
            "0,1",
            "-m",
            "256",
            "--iova-mode=va",
            "--no-telemetry",
            "--no-shconf",
            "--no-pci",
        ]);
        command.arg(pages()).arg(format!("--file-prefix=fanin-memif-{}", std::process::id()));
        for (port, socket) in sockets.iter().enumerate() {
            command.arg(format!("--vdev={}", device(port, "client", socket)));
        }
        command.args([
            "--",
            "--stats-period=60",
            "--total-num-mbufs=16384",
            "--forward-mode=io",
            "--tx-first",
        ]);
        command.args([format!("--burst={FRAMES}"), format!("--rxq={queues}"), format!("--txq={queues}")]);
        // A frame that leaves by a port is addressed to the station behind the other.
        for port in 0..PORTS {
            command.arg(format!("--eth-peer={port},{}", mac(1 - port)));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Self).map_err(|error| format!("dpdk-testpmd: {error}"))
    }
}

impl Drop for OtherEnd {
    fn drop(&mut self) {
        // SAFETY: a signal to the process that was started here.
        unsafe { libc::kill(self.0.id() as libc::pid_t, libc::SIGINT) };
        let _ = self.0.wait();
    }
}

fn sent(switch: &Switch<DpdkPorts>) -> u64 {
    switch.snapshot(false).ports.iter().map(|port| port.sent.frames).sum()
}

/// Our switch, in ns a frame; `arguments` are common to every DPDK process here.
///
/// # Errors
/// If a program is missing or fails.
pub(crate) fn switch(arguments: Vec<String>) -> Result<f64, String> {
    let mut config = Config::default();
    config.dpdk.arguments = arguments;
    config.switch.memory = Bytes::new(16_384 * 2048);
    let sockets: Vec<String> = (0..PORTS).map(socket).collect();
    for (port, socket) in sockets.iter().enumerate() {
        let name = format!("net_memif{port}");
        config.dpdk.arguments.push(format!("--vdev={}", device(port, "server", socket)));
        config.port.push(PortSpec { dpdk: Some(name.clone()), ..PortSpec::new(&name) });
        config.station.push(StationSpec { mac: mac(port), port: name, vlan: None });
    }
    let ports = DpdkPorts::open(&config).map_err(|error| error.to_string())?.remove(0);
    let mut switch = Switch::new(config, ports).map_err(|error| error.to_string())?;
    let began = std::time::Instant::now();
    let mut at = began.elapsed();
    // Frames sent so far, and the time of rounds with frames among the next `count`.
    let mut rounds = |switch: &mut Switch<DpdkPorts>, count: usize| {
        let (before, mut busy) = (sent(switch), WallTime::ZERO);
        for _ in 0..count {
            let now = Instant::START + Duration::from_nanos(1 + at.as_nanos() as u64);
            let activity = switch.poll(now, true);
            let ended = began.elapsed();
            if activity.frames > 0 {
                busy += ended - at;
            }
            at = ended;
        }
        (sent(switch) - before, busy)
    };
    let other = OtherEnd::start(&sockets, 1)?;
    while rounds(&mut switch, 1_000).0 == 0 {
        if began.elapsed() > WallTime::from_secs(20) {
            return Err(format!("no frames come: {:#?}", switch.snapshot(false).ports));
        }
    }
    let mut best = f64::MAX;
    let end = began.elapsed() + WINDOW * PASSES as u32;
    while began.elapsed() < end {
        let (mut frames, mut busy) = (0, WallTime::ZERO);
        while frames < FRAMES_A_PASS {
            let (more, of_them) = rounds(&mut switch, 1_000);
            (frames, busy) = (frames + more, busy + of_them);
        }
        best = best.min(busy.as_nanos() as f64 / frames as f64);
    }
    assert_eq!(switch.snapshot(false).drops(), 0, "the benchmark lost frames");
    drop(other);
    Ok(best)
}

/// Open vSwitch over the same ports, in ns a frame.
///
/// # Errors
/// If a program is missing or fails.
pub(crate) fn open_vswitch() -> Result<f64, String> {
    let ovs = crate::start_open_vswitch()?;
    let sockets: Vec<String> = (0..PORTS).map(socket).collect();
    for (port, socket) in sockets.iter().enumerate() {
        let device = format!("options:dpdk-devargs=\"{}\"", device(port, "server", socket));
        // Each of its threads has its own transmit queue, and the forwarding one is the second.
        ovs.add_port(
            &format!("p{port}"),
            &["type=dpdk", &device, "options:n_rxq=2", &format!("ofport_request={}", port + 1)],
        )?;
    }
    ovs.set_rules(&["in_port=1,actions=output:2", "in_port=2,actions=output:1"])?;
    let other = OtherEnd::start(&sockets, 2)?;
    std::thread::sleep(WallTime::from_secs(4));
    let mut best = f64::MAX;
    for _ in 0..PASSES * WINDOWS {
        let (began, before) = (std::time::Instant::now(), ovs.work()?);
        std::thread::sleep(WINDOW / WINDOWS as u32);
        let (ns, after) = (began.elapsed().as_nanos() as f64, ovs.work()?);
        let [frames, idle, busy] = [0, 1, 2].map(|number| (after[number] - before[number]) as f64);
        // Its idle and busy cycles add up to the measured time.
        best = best.min(busy / (idle + busy) * ns / frames.max(1.0));
    }
    drop(other);
    Ok(best)
}
