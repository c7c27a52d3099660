//! The switch and `dpdk-testpmd` over DPDK's null devices, which produce frames as fast as they are received, and discard
//! sent ones.
//!
//! `cargo bench -p fanin-switch --features dpdk --bench dpdk`. Times are CPU time of the forwarding thread, the best of
//! several passes. Plain switching is compared with Open vSwitch with DPDK over the same two devices, if it is installed (Debian:
//! openvswitch-switch-dpdk). With FANIN_HUGEPAGES=1 all of them use huge pages (set /proc/sys/vm/nr_hugepages to 800 first), otherwise none.

use std::fs;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::Duration as WallTime;

use fanin_switch::config::{PortSpec, RingSpec, RuleSpec, StationSpec};
use fanin_switch::{BURST, Config, DpdkPorts, Driver, Mac, Switch};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate};

const PORTS: usize = 2;
const RINGS: usize = 144;
const FRAME: usize = 64;
const PASSES: usize = 7;
const FRAMES: u64 = 10_000_000;

/// CPU time of this thread, in ns.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

mod eal;
mod memif;
mod peers;

use eal::pages;

/// Arguments of every DPDK process, without its devices.
fn common_arguments() -> Vec<String> {
    eal::arguments(256)
}

fn arguments() -> Vec<String> {
    let mut arguments = common_arguments();
    arguments.extend((0..PORTS).map(|port| format!("--vdev=net_null{port},size={FRAME}")));
    arguments
}

/// UDP over IPv4 to a collector.
fn frame(collector: usize) -> Vec<u8> {
    let [.., high, low] = collector.to_be_bytes();
    let mut frame = vec![2, 2, 0, 0, high, low, 2, 1, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(((FRAME - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, high, low]);
    frame.resize(FRAME, 0);
    frame
}

fn config() -> Config {
    let mut config = Config::default();
    config.dpdk.arguments = arguments();
    config.switch.memory = Bytes::new(16_384 * 2048);
    for port in 0..PORTS {
        let name = format!("net_null{port}");
        // All ports receive frames of one station; ports that reflect do not learn it.
        config.port.push(PortSpec { dpdk: Some(name.clone()), reflect: true, ..PortSpec::new(&name) });
        for ring in 0..RINGS / PORTS {
            let (name, port) = (format!("r{port}-{ring}"), name.clone());
            let [.., high, low] = ring.to_be_bytes();
            config.rule.push(RuleSpec {
                name: name.clone(),
                ring: Some(name.clone()),
                destination_ip: Some(format!("10.2.{high}.{low}").parse().expect("an address")),
                ..RuleSpec::default()
            });
            config.ring.push(RingSpec {
                frames: Some(Packets::new(2_000)),
                rate: Some(Rate::new(780_000_000)),
                ..RingSpec::new(&name, &port)
            });
        }
    }
    config
}

/// Plain switching from one device to the other by the stations' addresses.
fn plain_config() -> Config {
    let mut config = Config::default();
    config.dpdk.arguments = arguments();
    // The output produces no frames.
    let last = config.dpdk.arguments.last_mut().expect("a device");
    last.push_str(",no-rx=1");
    config.switch.memory = Bytes::new(16_384 * 2048);
    for port in 0..PORTS {
        let name = format!("net_null{port}");
        config.port.push(PortSpec { dpdk: Some(name.clone()), ..PortSpec::new(&name) });
    }
    for station in 0..RINGS / PORTS {
        let mac = frame(station)[..6].try_into().expect("six bytes");
        let port = config.port[PORTS - 1].name.clone();
        config.station.push(StationSpec { mac: Mac(mac), port, vlan: None });
    }
    config
}

/// Plain switching of frames to this number of stations, in ns a frame. DPDK starts once in a process, so each figure has its own.
fn plain(stations: usize) -> f64 {
    let config = plain_config();
    let mut ports = DpdkPorts::open(&config).unwrap_or_else(|error| panic!("{error}")).remove(0);
    fill(&mut ports, stations);
    let mut switch = Switch::new(config, ports).expect("a configuration");
    let (mut now, mut best) = (Instant::START + Duration::from_secs(1), f64::MAX);
    for _ in 0..PASSES {
        let (before, began) = (sent(&switch), cpu_ns());
        while sent(&switch) - before < FRAMES {
            for _ in 0..1000 {
                now = now + Duration::from_micros(2);
                switch.poll(now, true);
            }
        }
        best = best.min((cpu_ns() - began) as f64 / (sent(&switch) - before) as f64);
    }
    assert_eq!(switch.snapshot(false).drops(), 0, "the benchmark lost frames");
    best
}

/// Open vSwitch with DPDK and a core to forward on.
fn start_open_vswitch() -> Result<peers::OpenVswitch, String> {
    let daemon = std::env::var("FANIN_OVS_DPDK").unwrap_or_else(|_| peers::WITH_DPDK.to_owned());
    if !std::path::Path::new(&daemon).exists() {
        return Err(format!("{daemon} is missing (Debian: openvswitch-switch-dpdk)"));
    }
    // Without huge pages DPDK needs its legacy memory mode, which Open vSwitch does not set.
    let legacy = if pages() == "--no-huge" { " --legacy-mem" } else { "" };
    let settings = [
        "dpdk-init=true".to_owned(),
        "pmd-cpu-mask=0x1".to_owned(),
        format!("dpdk-extra=\"{}{legacy}\"", common_arguments().join(" ")),
    ];
    peers::OpenVswitch::start(&daemon, None, &settings)
}

/// Open vSwitch with DPDK over the same two devices, with an OpenFlow rule: ns of CPU a frame, the best of several.
fn open_vswitch() -> Result<f64, String> {
    let ovs = start_open_vswitch()?;
    for (port, rest) in [(0, ""), (1, ",no-rx=1")] {
        let device = format!("options:dpdk-devargs=\"net_null{port},size={FRAME}{rest}\"");
        ovs.add_port(&format!("p{port}"), &["type=dpdk", &device, &format!("ofport_request={}", port + 1)])?;
    }
    ovs.set_rules(&["in_port=1,dl_dst=00:00:00:00:00:00,actions=output:2"])?;
    std::thread::sleep(WallTime::from_secs(2));
    let count = || -> Result<(u64, u64), String> {
        Ok((ovs.sent(2)?, ovs.forwarding_ns().ok_or("its thread is missing")?))
    };
    let mut best = f64::MAX;
    for _ in 0..PASSES / 2 {
        let before = count()?;
        std::thread::sleep(WallTime::from_secs(2));
        let after = count()?;
        best = best.min((after.1 - before.1) as f64 / (after.0 - before.0).max(1) as f64);
    }
    Ok(best)
}

/// A pass of the ports alone, in ns a frame.
fn ports_alone(ports: &mut DpdkPorts, swaps: bool) -> f64 {
    let mut batch = Vec::with_capacity(BURST);
    let mut best = f64::MAX;
    for _ in 0..PASSES {
        let (began, mut sent) = (cpu_ns(), 0);
        while sent < FRAMES {
            for port in 0..PORTS {
                batch.clear();
                ports.receive(port, BURST, &mut batch);
                if swaps {
                    for frame in &batch {
                        let (destination, source) = ports.head_mut(frame.handle).split_at_mut(6);
                        destination.swap_with_slice(&mut source[..6]);
                    }
                }
                black_box(&batch);
                sent += ports.transmit((port + 1) % PORTS, &batch) as u64;
            }
        }
        best = best.min((cpu_ns() - began) as f64 / sent as f64);
    }
    best
}

/// Fills the packet memory with frames to this number of collectors; a null device returns them unchanged.
fn fill(ports: &mut DpdkPorts, stations: usize) {
    let mut frames = Vec::new();
    while let Some(handle) = ports.make(&frame(frames.len() % stations)) {
        frames.push(fanin_switch::Received { handle, bytes: FRAME as u32 });
    }
    frames.into_iter().for_each(|frame| ports.free(frame));
}

/// The switch, in ns a frame.
fn switch(ports: DpdkPorts) -> f64 {
    let mut switch = Switch::new(config(), ports).expect("a configuration");
    let mut now = Instant::START + Duration::from_secs(1);
    // Rings are slightly faster than the arrivals: two bursts a round for all of them.
    let gap = Rate::new(780_000_000).time_to_send(Bytes::new(FRAME as u64 + 24));
    let step = gap.checked_mul_ratio((PORTS * BURST) as u64 * 21, RINGS as u64 * 20).expect("a time");
    let mut best = f64::MAX;
    for _ in 0..PASSES {
        let (before, began) = (sent(&switch), cpu_ns());
        while sent(&switch) - before < FRAMES {
            for _ in 0..1000 {
                now = now + step;
                switch.poll(now, true);
            }
        }
        let passed = sent(&switch) - before;
        best = best.min((cpu_ns() - began) as f64 / passed as f64);
    }
    let snapshot = switch.snapshot(false);
    assert_eq!(snapshot.drops(), 0, "the benchmark lost frames: {:#?}", snapshot.ports);
    assert!(snapshot.rings.iter().all(|ring| ring.queue.departed.frames > 0), "a ring was idle");
    best
}

fn sent(switch: &Switch<DpdkPorts>) -> u64 {
    switch.snapshot(false).ports.iter().map(|port| port.sent.frames).sum()
}

/// The CPU time of a process's thread with this in its name, in seconds.
fn thread_cpu_s(process: u32, name: &str) -> Option<f64> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    tasks.flatten().find_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (head, rest) = stat.split_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        head.contains(name).then_some(ticks / 100.0)
    })
}

/// A run of `dpdk-testpmd`.
struct Testpmd {
    name: &'static str,
    mode: &'static str,
    /// True to write frames on receipt and read them on transmission, in memory larger than the caches, as with deep
    /// queues. Otherwise only headers are accessed, in few places.
    is_deep: bool,
}

const TESTPMDS: [Testpmd; 3] = [
    Testpmd { name: "testpmd, io", mode: "io", is_deep: false },
    Testpmd { name: "testpmd, macswap", mode: "macswap", is_deep: false },
    Testpmd { name: "testpmd, macswap, 1514 B by DRAM", mode: "macswap", is_deep: true },
];

/// `dpdk-testpmd` over the same devices, in ns of CPU a frame; `None` if it is missing.
fn testpmd(setup: &Testpmd) -> Option<f64> {
    let mut arguments = arguments();
    if setup.is_deep {
        for word in &mut arguments {
            *word = word.replace("256", "800").replace(&format!("size={FRAME}"), "size=1514,copy=1");
        }
    }
    let pool: &[&str] = if setup.is_deep {
        &["--total-num-mbufs=262144", "--mbcache=0"]
    } else {
        &["--total-num-mbufs=16384"]
    };
    let mut child = Command::new("dpdk-testpmd")
        .args(["-l", "0,1"])
        .args(arguments)
        .args(["--", "--burst=64", "--stats-period=60"])
        .args(pool)
        .arg(format!("--forward-mode={}", setup.mode))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    std::thread::sleep(WallTime::from_secs(8));
    let cpu_s = thread_cpu_s(child.id(), "worker");
    // SAFETY: a signal to the process that was just started.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take()?, &mut text).ok()?;
    child.wait().ok()?;
    let total = text.split("Accumulated forward statistics").nth(1)?;
    let mut words = total.split_whitespace().skip_while(|word| *word != "RX-packets:");
    let frames: f64 = words.nth(1)?.parse().ok()?;
    Some(cpu_s? * 1e9 / frames)
}

/// A figure of this program from a separate process, because DPDK starts once in a process.
fn plain_of(case: &str) -> Result<f64, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let output =
        Command::new(own).arg(case).stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    // DPDK's own output precedes it.
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    line.parse().map_err(|_| text.clone().into_owned())
}

#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn show(name: &str, cost: f64) {
    println!("{name:<34}{cost:7.1} ns/frame {:8.1} Mframes/s", 1e3 / cost);
}

/// Plain switching, ours and Open vSwitch's.
#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn compare(
    case: &str,
    ours: &mut dyn FnMut() -> Result<f64, String>,
    theirs: &mut dyn FnMut() -> Result<f64, String>,
) {
    let ours = ours();
    match &ours {
        Ok(cost) => show(&format!("switch, {case}"), *cost),
        Err(error) => println!("switch, {case}: skipped: {error}"),
    }
    match theirs() {
        Ok(cost) => {
            show(&format!("Open vSwitch with DPDK, {case}"), cost);
            if let Ok(ours) = ours {
                println!("Open vSwitch takes {:.2} x as long", cost / ours);
            }
        }
        Err(error) => println!("Open vSwitch with DPDK, {case}: skipped: {error}"),
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn main() {
    let is_asked = |name: &str| std::env::args().any(|argument| argument == name);
    if is_asked("plain") {
        println!("{}", plain(RINGS / PORTS));
        return;
    }
    if is_asked("flow") {
        println!("{}", plain(1));
        return;
    }
    if is_asked("memif") {
        match memif::switch(common_arguments()) {
            Ok(cost) => println!("{cost}"),
            Err(error) => println!("{error}"),
        }
        return;
    }
    if let Ok(cost) = plain_of("flow") {
        show("switch, plain, one flow as there", cost);
    }
    compare("plain", &mut || plain_of("plain"), &mut open_vswitch);
    compare("memif", &mut || plain_of("memif"), &mut memif::open_vswitch);
    for setup in &TESTPMDS {
        match testpmd(setup) {
            Some(cost) => show(setup.name, cost),
            None => println!("{}: gave no figure (Debian: dpdk-dev)", setup.name),
        }
    }
    let mut ports = DpdkPorts::open(&config()).unwrap_or_else(|error| panic!("{error}")).remove(0);
    show("ports alone, frames not looked at", ports_alone(&mut ports, false));
    let swapped = ports_alone(&mut ports, true);
    show("ports alone, addresses swapped", swapped);
    fill(&mut ports, RINGS / PORTS);
    let cost = switch(ports);
    show("switch, 144 rings", cost);
    println!("{:.2} x the swap", cost / swapped);
}
