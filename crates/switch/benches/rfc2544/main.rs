//! Measurements of a switch by RFC 2544 and RFC 2889, over ports in memory.
//!
//! `cargo bench -p fanin-switch --bench rfc2544`. Generator, switch and receiver share one core. Frames arrive by the wall clock. It
//! stands still while other programs have that core, as a receive ring holds only some tens of microseconds of the load.
//! With `-- --flooding` it measures addresses and broadcast frames only. With `--features dpdk` and `-- --dpdk` the ports are
//! null devices of DPDK.

#[cfg(feature = "dpdk")]
mod dpdk;
mod flooded;
mod offered;
mod search;

use std::time::Instant as WallClock;

use fanin_switch::config::{Hugepages, PortSpec, StationSpec};
use fanin_switch::{CirculatingPorts, Config, Driver, Mac, MemoryPorts, Pool, Switch, Vlan};
use fanin_units::{Bytes, Duration, Instant};

use offered::{Count, Load, OfferedPorts, RING_FRAMES};
use search::Goal;

const PORTS: usize = 12;
/// The Ethernet check sequence, which counts in a frame's size and is not stored.
const FCS: usize = 4;
/// RFC 2544 section 9.1.
const SIZES: [usize; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
/// Frames that circulate for each input port: more than a receive ring and the switch hold.
const CIRCULATING: usize = 4096;
/// Loss ratios as FD.io's CSIT has them: none, and one half of a per cent.
const NO_DROP: Goal = Goal { loss_max: 0.0, phases_s: &[0.02, 0.1, 0.5], trials: 3, width: 0.02 };
const PARTIAL_DROP: Goal = Goal { loss_max: 0.005, ..NO_DROP };

fn mac(kind: u8, number: usize) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [2, kind, 0, 0, high, low]
}

/// A frame of `bytes` bytes, check sequence included, in the VLAN `tag` if there is one.
fn frame(destination: [u8; 6], source: [u8; 6], bytes: usize, tag: Option<u16>) -> Vec<u8> {
    let mut frame = [destination, source].concat();
    if let Some(vlan) = tag {
        frame.extend([0x81, 0]);
        frame.extend(vlan.to_be_bytes());
    }
    // The first EtherType for local experiments.
    frame.extend([0x88, 0xb5]);
    frame.resize(bytes - FCS, 0);
    frame
}

/// The traffic between the ports.
#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    /// Two ports, in both directions (RFC 2544 section 14).
    Pair,
    /// From each port to all others in turn (RFC 2889 section 5.1).
    Mesh,
}

impl Pattern {
    const fn ports(self) -> usize {
        match self {
            Self::Pair => 2,
            Self::Mesh => PORTS,
        }
    }
}

/// The port to which frame `turn` of a port goes.
const fn destination(ports: usize, port: usize, turn: usize) -> usize {
    (port + 1 + turn % (ports - 1)) % ports
}

/// A switch whose outputs never drop: frames wait in the receive rings, whose loss is counted.
fn config(ports: usize, tag: Option<u16>) -> Config {
    let mut config = Config {
        port: (0..ports).map(|port| PortSpec::new(&format!("p{port}"))).collect(),
        station: (0..ports)
            .map(|port| StationSpec { mac: Mac(mac(2, port)), port: format!("p{port}"), vlan: None })
            .collect(),
        ..Config::default()
    };
    if let Some(vlan) = tag {
        let vlan = Vlan::new(vlan).expect("a VLAN");
        config.port.iter_mut().for_each(|port| (port.untagged, port.tagged) = (None, vec![vlan]));
        config.station.iter_mut().for_each(|station| station.vlan = Some(vlan));
    }
    config.switch.memory = Bytes::new(((ports * CIRCULATING + 4096) * 2048) as u64);
    config.switch.buffer = config.switch.memory;
    config
}

/// A switch under test.
struct Device<D: Driver> {
    switch: Switch<OfferedPorts<D>>,
    began: WallClock,
    ports: usize,
    /// Time of all trials, and that of other programs' pauses in them, ns.
    spent_ns: [u64; 2],
}

/// A switch over ports in memory, which copy all payloads in and out.
fn in_memory(ports: usize, bytes: usize, tag: Option<u16>) -> Device<CirculatingPorts> {
    let config = config(ports, tag);
    let pool =
        Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Try, 1).expect("memory").remove(0);
    let frames: Vec<(usize, Vec<u8>)> = (0..ports * CIRCULATING)
        .map(|number| {
            let (port, turn) = (number % ports, number / ports);
            (port, frame(mac(2, destination(ports, port, turn)), mac(2, port), bytes, tag))
        })
        .collect();
    let frames = frames.iter().map(|(port, frame)| (*port, frame.as_slice()));
    Device::new(config, OfferedPorts::new(CirculatingPorts::new(pool, ports, frames, true), Vec::new()))
}

impl<D: Driver> Device<D> {
    fn new(config: Config, driver: OfferedPorts<D>) -> Self {
        let ports = driver.ports_len();
        let switch = Switch::new(config, driver).expect("a configuration");
        Self { switch, began: WallClock::now(), ports, spent_ns: [0; 2] }
    }

    /// The time of the simulated clock: the wall clock's.
    fn now(&self) -> Instant {
        Instant::START + Duration::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Offers `total` frames a second to all ports together, `frames` to each, and lets the switch send what it receives.
    fn offer(&mut self, total: f64, frames: u64) -> Count {
        let rate = total / self.ports as f64;
        self.switch.driver_mut().begin(Load { rate, frames });
        while !self.switch.driver().is_done() {
            let now = self.now();
            self.switch.poll(now, true);
        }
        let count = self.switch.driver().count();
        assert_eq!(count.sent + count.lost, count.offered, "frames are sent or lost");
        let spent = [count.elapsed_ns + count.paused_ns, count.paused_ns];
        self.spent_ns.iter_mut().zip(spent).for_each(|(sum, spent)| *sum += spent);
        assert_eq!(self.switch.snapshot(false).drops(), 0, "the switch itself drops nothing");
        count
    }

    fn trial(&mut self, total: f64, seconds: f64) -> Count {
        let frames = total / self.ports as f64 * seconds;
        self.offer(total, (frames as u64).max(1))
    }

    /// The load that the switch forwards where more is offered than it can, frames a second.
    fn saturated(&mut self, seconds: f64) -> f64 {
        let count = self.trial(1e9, seconds);
        count.sent as f64 * 1e9 / count.elapsed_ns as f64
    }

    /// The longest burst of each port without a loss, at its link's rate and in frames (RFC 2544 section 26.4); `most` if that
    /// loses nothing.
    fn back_to_back(&mut self, line_rate: f64, most: u64) -> u64 {
        let total = line_rate * self.ports as f64;
        let mut passes = |frames| (0..3).filter(|_| self.offer(total, frames).lost == 0).count() >= 2;
        if passes(most) {
            return most;
        }
        let (mut lower, mut upper) = (0, most);
        while upper - lower > 1 + upper / 100 {
            let middle = lower.midpoint(upper);
            if passes(middle) { lower = middle } else { upper = middle }
        }
        lower
    }
}

/// A switch with learned stations, in memory.
fn learning(entries: u32) -> Switch<MemoryPorts> {
    let port =
        |number: usize| PortSpec { mac_entries: Some(entries), ..PortSpec::new(&format!("p{number}")) };
    let mut config = Config { port: (0..PORTS).map(port).collect(), ..Config::default() };
    config.switch.mac_entries = entries;
    let pool =
        Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Try, 1).expect("memory").remove(0);
    Switch::new(config, MemoryPorts::new(pool, PORTS)).expect("a configuration")
}

/// Sends frames by a port one after the other, in bursts, and drops what the switch sends. Returns the frames it sent by `watched`.
fn play(switch: &mut Switch<MemoryPorts>, port: usize, frames: &[Vec<u8>], watched: usize) -> usize {
    let mut seen = 0;
    let mut now = Instant::START + Duration::from_secs(1);
    for burst in frames.chunks(fanin_switch::BURST) {
        for frame in burst {
            assert!(switch.driver_mut().inject(port, frame), "packet memory");
        }
        for _ in 0..2 {
            now = now + Duration::from_micros(1);
            switch.poll(now, true);
        }
        for output in 0..PORTS {
            while switch.driver_mut().take(output).is_some() {
                seen += usize::from(output == watched);
            }
        }
    }
    seen
}

/// Returns true if the switch learns `stations` addresses at port 1 and floods no frame to them (RFC 2889 section 5.7).
fn caches(entries: u32, stations: usize) -> bool {
    let mut switch = learning(entries);
    let learned: Vec<_> = (0..stations).map(|station| frame(mac(9, 0), mac(3, station), 64, None)).collect();
    play(&mut switch, 1, &learned, 3);
    let asked: Vec<_> = (0..stations).map(|station| frame(mac(3, station), mac(4, 0), 64, None)).collect();
    play(&mut switch, 2, &asked, 3) == 0
}

/// The most addresses that a table of this size caches.
fn caching(entries: u32) -> usize {
    let (mut lower, mut upper) = (0, 2 * entries as usize);
    while upper - lower > 1 {
        let middle = lower.midpoint(upper);
        if caches(entries, middle) { lower = middle } else { upper = middle }
    }
    lower
}

/// The learning rate by RFC 2889 section 5.8: the highest rate of frames from new addresses that loses none. Returns addresses a
/// second; all must be known afterwards.
fn learning_rate(entries: u32, goal: Goal, most: f64) -> f64 {
    let stations = entries as usize / 2;
    // A trial ends when the table is half full, whatever its duration.
    search::search(goal, most, |rate, _| {
        let mut switch = learning(entries);
        // The destination is known, so that no frame is flooded.
        play(&mut switch, 3, &[frame(mac(9, 0), mac(2, 0), 64, None)], 0);
        let mut frames: Vec<_> =
            (0..stations).map(|station| frame(mac(2, 0), mac(3, station), 64, None)).collect();
        let count = flooded::offer(&mut switch, &mut frames, &[3], rate, stations as u64);
        let asked: Vec<_> =
            (0..stations).map(|station| frame(mac(3, station), mac(4, 0), 64, None)).collect();
        let is_known = play(&mut switch, 2, &asked, 4) == 0;
        assert!(is_known || count.lost > 0, "an address of a forwarded frame is learned");
        count.loss()
    })
}

/// Broadcast frames at one port, to all others (RFC 2889 section 5.6).
fn broadcast(bytes: usize, rate: f64, seconds: f64) -> Count {
    let mut switch = learning(64);
    let outputs: Vec<usize> = (0..PORTS).filter(|&port| port != 1).collect();
    let mut frames = [frame([0xff; 6], mac(3, 0), bytes, None)];
    flooded::offer(&mut switch, &mut frames, &outputs, rate, ((rate * seconds) as u64).max(1))
}

/// Addresses and broadcast frames: RFC 2889 sections 5.6 to 5.8.
#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn flooding(quick: bool) {
    let entries = if quick { 256 } else { 16_384 };
    println!("\nAddress caching: {} of a table of {entries}", caching(entries));
    let goal = if quick { Goal { phases_s: &[0.001], trials: 1, ..NO_DROP } } else { NO_DROP };
    println!("Learning without loss: {:.2} million addresses/s", learning_rate(entries, goal, 50e6) / 1e6);
    println!(
        "\n| broadcast, frame, B | NDR in, Mframes/s | out | latency at 50 / 90 / 100 % of NDR, us: p50, p99 |"
    );
    println!("|---|---|---|---|");
    for bytes in SIZES.into_iter().step_by(3) {
        let ndr = search::search(goal, 10e6, |rate, seconds| broadcast(bytes, rate, seconds).loss()).max(1e3);
        let latencies: Vec<_> = [0.5, 0.9, 1.0]
            .iter()
            .map(|share| {
                let count = broadcast(bytes, share * ndr, if quick { 0.001 } else { 0.5 });
                format!("{:.1}, {:.1}", count.latency_us(0.5), count.latency_us(0.99))
            })
            .collect();
        let [ins, outs] = [1.0, (PORTS - 1) as f64].map(|ports| ports * ndr / 1e6);
        println!("| {bytes} | {ins:.2} | {outs:.1} | {} |", latencies.join(" / "));
    }
}

/// A row of the table of throughput and latency; of a quick run, only whether frames are forwarded.
#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn row<D: Driver>(name: &str, bytes: usize, device: &mut Device<D>, quick: bool) {
    let seconds = if quick { 0.001 } else { 0.1 };
    let most = (0..3).map(|_| device.saturated(seconds)).fold(0.0, f64::max);
    if quick {
        assert!(most > 0.0, "{name}: nothing is forwarded");
        return;
    }
    let [ndr, pdr] = [NO_DROP, PARTIAL_DROP]
        .map(|goal| search::search(goal, 1.2 * most, |load, seconds| device.trial(load, seconds).loss()));
    // A load without loss meets the other goal too, also where its own search was disturbed.
    let pdr = pdr.max(ndr);
    let latencies: Vec<_> = [0.5, 0.9, 1.0]
        .iter()
        .map(|share| {
            let count = device.trial((share * ndr).max(1e3), 1.0);
            format!("{:.1}, {:.1}", count.latency_us(0.5), count.latency_us(0.99))
        })
        .collect();
    println!(
        "| {name} | {bytes} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {:.0} % |",
        most / 1e6,
        ndr / 1e6,
        pdr / 1e6,
        pdr * (bytes + 20) as f64 * 8e-9,
        latencies.join(" / "),
        100.0 * device.spent_ns[1] as f64 / device.spent_ns[0] as f64
    );
}

/// The rate of a 100 Gb/s link of each of two ports, frames a second, and the longest burst that is tried.
fn bursts(bytes: usize, quick: bool) -> (f64, u64) {
    (100e9 / ((bytes + 20) * 8) as f64, if quick { 100 } else { 2_000_000 })
}

#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn show_burst(bytes: usize, frames: u64, most: u64) {
    println!("{bytes} B: {frames} frames{}", if frames == most { " and more" } else { "" });
}

const TRAFFIC: [(&str, Pattern, Option<u16>); 3] = [
    ("pair, both ways", Pattern::Pair, None),
    ("the same, tagged", Pattern::Pair, Some(10)),
    ("mesh of 12 ports", Pattern::Mesh, None),
];

/// The sizes of frames that are measured with a kind of traffic.
fn sizes((_, pattern, tag): (&str, Pattern, Option<u16>)) -> impl Iterator<Item = usize> {
    SIZES.into_iter().step_by(if pattern == Pattern::Pair && tag.is_none() { 1 } else { 3 })
}

#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
fn main() {
    // `cargo test --benches` only asks whether it runs.
    let quick = !std::env::args().any(|argument| argument == "--bench");
    search::check(NO_DROP);
    search::check(PARTIAL_DROP);
    if std::env::args().any(|argument| argument == "--flooding") {
        return flooding(quick);
    }
    #[cfg(feature = "dpdk")]
    if dpdk::is_asked() {
        return dpdk::measure(quick);
    }
    println!(
        "| traffic | frame, B | saturated, Mframes/s | NDR | PDR | Gb/s at PDR | latency at 50 / 90 / 100 % of NDR, us: p50, p99 | core taken away |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for traffic in TRAFFIC {
        let (name, pattern, tag) = traffic;
        for bytes in sizes(traffic).take(if quick { 1 } else { SIZES.len() }) {
            row(name, bytes, &mut in_memory(pattern.ports(), bytes, tag), quick);
        }
    }
    println!(
        "\nBack-to-back bursts of both ports of a pair at 100 Gb/s, receive rings of {RING_FRAMES} frames:"
    );
    for bytes in SIZES {
        let (rate, most) = bursts(bytes, quick);
        show_burst(bytes, in_memory(2, bytes, None).back_to_back(rate, most), most);
    }
    flooding(quick);
}
