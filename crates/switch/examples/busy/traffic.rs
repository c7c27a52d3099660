//! Ports in memory that generate traffic from many sources to few collectors, and check each delivered frame.

#![allow(dead_code, reason = "tests and examples each use a part of this")]

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fanin_switch::config::{Hugepages, PortSpec, RingSpec, RuleSpec, StationSpec};
use fanin_switch::{Buffer, Config, Driver, Mac, MacPrefix, MemoryPorts, Pool, Received};
use fanin_units::{Bytes, Packets, Rate, Ratio};

/// Sources, at ports 0 to 7.
pub(crate) const SOURCES: usize = 8;
/// Collectors, at ports 8 to 11.
pub(crate) const COLLECTORS: usize = 4;
/// Sources send nothing while fewer buffers are free.
const ROOM_MIN: usize = 2048;
/// Most frames that a late source catches up; it skips the others.
const BEHIND_MAX: u64 = 128;
/// Interval at which sources check for due frames.
const LOOK_EVERY: Duration = Duration::from_micros(200);
const HEADER_BYTES: usize = 14;
const FRAME_BYTES_MIN: usize = 64;
const FRAME_BYTES_MAX: usize = 1500;
/// An EtherType for experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// Counts of the traffic's frames.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Frames sent by sources.
    pub(crate) sent: AtomicU64,
    /// Frames that arrived.
    pub(crate) arrived: AtomicU64,
    /// Frames that arrived after a later one of their flow.
    pub(crate) reordered: AtomicU64,
    /// Frames that arrived at a wrong port or changed.
    pub(crate) wrong: AtomicU64,
    /// Set to cut the link of the first port.
    pub(crate) is_cut: AtomicBool,
}

/// The ports.
#[derive(Debug)]
pub(crate) struct Traffic {
    ports: MemoryPorts,
    counts: Arc<Counts>,
    frames_per_s: u64,
    start: Instant,
    /// Frames that each source has sent.
    sent: [u64; SOURCES],
    /// The number of the next frame of each flow, by source and collector.
    next: HashMap<(u8, u8), u32>,
    /// The expected number of each flow's next frame.
    expected: HashMap<(u8, u8), u32>,
    scratch: Vec<u8>,
}

/// The address of a station, by its port.
pub(crate) fn station(port: usize) -> Mac {
    Mac([2, 0, 0, 0, 0, port as u8])
}

/// A configuration with a ring and a rule for every collector.
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.switch.name = "busy".to_owned();
    config.switch.memory = Bytes::new(128 << 20);
    config.switch.hugepages = Hugepages::Off;
    for port in 0..SOURCES + COLLECTORS {
        let kind = if port < SOURCES { "source" } else { "collector" };
        config.port.push(PortSpec::new(&format!("{kind}-{port}")));
        let name = config.port[port].name.clone();
        config.station.push(StationSpec { mac: station(port), port: name, vlan: None });
    }
    for port in SOURCES..SOURCES + COLLECTORS {
        let mut ring = RingSpec::new(&format!("ring-{port}"), &format!("collector-{port}"));
        ring.frames = Some(Packets::new(8192));
        ring.rate = Some(Rate::new(10_000_000_000));
        ring.alarm = Some("0.5".parse::<Ratio>().expect("a ratio"));
        let rule = RuleSpec {
            name: format!("rule-{port}"),
            ring: Some(ring.name.clone()),
            destination_mac: Some(MacPrefix { address: station(port), bits: 48 }),
            ..RuleSpec::default()
        };
        config.ring.push(ring);
        config.rule.push(rule);
    }
    config
}

impl Traffic {
    /// Makes ports for [`config`], with this number of frames a second from all sources together.
    ///
    /// # Panics
    /// If there is no packet memory.
    pub(crate) fn new(config: &Config, frames_per_s: u64, counts: Arc<Counts>) -> Self {
        let switch = &config.switch;
        let mut pools = Pool::new(switch.memory, switch.mtu, switch.hugepages, 1).expect("packet memory");
        Self {
            ports: MemoryPorts::new(pools.remove(0), config.port.len()),
            counts,
            frames_per_s,
            start: Instant::now(),
            sent: [0; SOURCES],
            next: HashMap::new(),
            expected: HashMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Takes this number of frames at once, and frees them. The kernel provides packet memory when it is first used, in
    /// huge pages of 2 MB. Without this, a late burst looks like a leak.
    pub(crate) fn use_memory(&mut self, frames: usize) {
        let frame = [0; FRAME_BYTES_MAX];
        let made: Vec<Buffer> = (0..frames).map_while(|_| self.ports.make(&frame)).collect();
        // The first frames are the next to be used again.
        for handle in made.into_iter().rev() {
            self.ports.free(Received { handle, bytes: frame.len() as u32 });
        }
    }

    /// Writes the frame of this number in its flow; the bytes depend on the flow and the number only.
    fn fill(&mut self, source: u8, collector: u8, number: u32) {
        let length = FRAME_BYTES_MIN
            + (number as usize * 7919 + usize::from(source)) % (FRAME_BYTES_MAX - FRAME_BYTES_MIN);
        let frame = &mut self.scratch;
        frame.clear();
        frame.extend(station(collector.into()).0);
        frame.extend(station(source.into()).0);
        frame.extend(ETHERTYPE);
        frame.extend([source, collector, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame.resize(length, number as u8);
    }

    fn check(&mut self, port: usize, frame: Received<Buffer>) {
        let mut received = Vec::new();
        self.ports.copy_out(frame, &mut received);
        let body = &received[HEADER_BYTES..];
        let (source, collector) = (body[0], body[1]);
        let number = u32::from_be_bytes([body[4], body[5], body[6], body[7]]);
        self.fill(source, collector, number);
        if received != self.scratch || usize::from(collector) != port {
            self.counts.wrong.fetch_add(1, Ordering::Relaxed);
        }
        let expected = self.expected.entry((source, collector)).or_default();
        if number < *expected {
            self.counts.reordered.fetch_add(1, Ordering::Relaxed);
        } else {
            *expected = number + 1;
        }
        self.counts.arrived.fetch_add(1, Ordering::Relaxed);
    }
}

impl Driver for Traffic {
    type Handle = Buffer;

    fn ports_len(&self) -> usize {
        self.ports.ports_len()
    }

    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<Buffer>>) {
        if port >= SOURCES {
            return;
        }
        let due =
            self.start.elapsed().as_nanos() * u128::from(self.frames_per_s) / 1_000_000_000 / SOURCES as u128;
        // Limits the burst after a worker was preempted.
        self.sent[port] = self.sent[port].max((due as u64).saturating_sub(BEHIND_MAX));
        for _ in 0..frames_max {
            if u128::from(self.sent[port]) >= due {
                break;
            }
            if self.ports.room() < ROOM_MIN {
                // Frames that cannot be sent now are skipped.
                self.sent[port] = due as u64;
                break;
            }
            let collector = (SOURCES + self.sent[port] as usize % COLLECTORS) as u8;
            let flow = (port as u8, collector);
            let number = *self.next.entry(flow).and_modify(|number| *number += 1).or_default();
            self.fill(flow.0, flow.1, number);
            let Some(handle) = self.ports.make(&self.scratch) else { break };
            into.push(Received { handle, bytes: self.scratch.len() as u32 });
            self.sent[port] += 1;
            self.counts.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn transmit(&mut self, port: usize, frames: &[Received<Buffer>]) -> usize {
        for &frame in frames {
            self.check(port, frame);
            self.ports.free(frame);
        }
        frames.len()
    }

    fn flush(&mut self, _: usize) {}

    fn head(&self, handle: Buffer) -> &[u8] {
        self.ports.head(handle)
    }

    fn head_mut(&mut self, handle: Buffer) -> &mut [u8] {
        self.ports.head_mut(handle)
    }

    fn grow_front(&mut self, handle: &mut Buffer, bytes: u16) -> bool {
        self.ports.grow_front(handle, bytes)
    }

    fn cut_front(&mut self, handle: &mut Buffer, bytes: u16) {
        self.ports.cut_front(handle, bytes);
    }

    fn make(&mut self, frame: &[u8]) -> Option<Buffer> {
        self.ports.make(frame)
    }

    fn copy_out(&self, frame: Received<Buffer>, into: &mut Vec<u8>) {
        self.ports.copy_out(frame, into);
    }

    fn free(&mut self, frame: Received<Buffer>) {
        self.ports.free(frame);
    }

    fn room(&self) -> usize {
        self.ports.room()
    }

    fn capacity(&self) -> usize {
        self.ports.capacity()
    }

    fn poll_stray(&mut self, worker: usize) -> Option<Buffer> {
        self.ports.poll_stray(worker)
    }

    fn handle_stray(&mut self, handle: Buffer) {
        self.ports.handle_stray(handle);
    }

    fn is_up(&mut self, port: usize) -> bool {
        port > 0 || !self.counts.is_cut.load(Ordering::Relaxed)
    }

    fn wait(&mut self, timeout: Duration, wake: RawFd) {
        self.ports.wait(timeout.min(LOOK_EVERY), wake);
    }
}
