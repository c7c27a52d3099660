//! Invariants of every frame while rings, rules and ports change. Workers apply each change at different times, and their rounds run
//! in random order.

use std::collections::HashMap;

use std::sync::Arc;

use fanin_units::{Bytes, Duration, Instant, Packets, Rate};
use proptest::prelude::*;

use super::Switch;
use crate::address::Mac;
use crate::command::{Command, PortChange};
use crate::config::{Config, Hugepages, PortRange, PortSpec, Protocol, RingSpec, RuleSpec, StationSpec};
use crate::memory::MemoryPorts;
use crate::pool::Pool;
use crate::snapshot::{Dropped, Snapshot};
use crate::workers::{Peers, SharedCounts, Wakeup};

const WORKERS: usize = 3;
const PORTS: usize = 6;
/// Classes of flows by UDP port: without a rule, with rules that change, and with a lasting ring.
const CLASSES: u16 = 4;
const PLAIN: u16 = 0;
const STAYS: u16 = 3;

#[derive(Debug, Clone)]
enum ChurnStep {
    /// A frame of one class from the station of one port to that of another.
    Send { from: u8, to: u8, class: u16, bytes: usize },
    /// One worker applies its pending command and makes a round.
    Poll(usize),
    /// Time passes, in nanoseconds.
    Wait(u64),
    /// Limits the frames that a port still sends; `None` is no limit.
    Room { port: usize, frames: Option<usize> },
    /// Sends a change to all workers.
    Change(Change),
}

#[derive(Debug, Clone, Copy)]
enum Change {
    AddRing { ring: u8, port: usize, frames: u64, rate: Option<u64> },
    SetRing { ring: u8, frames: u64, rate: Option<u64> },
    SetSteady { port: usize, frames: u64, rate: Option<u64> },
    RemoveRing(u8),
    AddRule { rule: u8, ring: Option<u8>, to: Option<u8>, class: u16, priority: u16 },
    RemoveRule(u8),
    SetPort { port: usize, rate: u64 },
}

fn change() -> impl Strategy<Value = Change> {
    let rate = || prop::option::of(prop::sample::select(vec![1_000_000u64, 100_000_000, 5_000_000_000]));
    let frames = || 1..8u64;
    let class = PLAIN + 1..STAYS;
    prop_oneof![
        3 => (0..4u8, 0..PORTS, frames(), rate())
            .prop_map(|(ring, port, frames, rate)| Change::AddRing { ring, port, frames, rate }),
        2 => (0..4u8, frames(), rate()).prop_map(|(ring, frames, rate)| Change::SetRing { ring, frames, rate }),
        2 => (0..PORTS, frames(), rate())
            .prop_map(|(port, frames, rate)| Change::SetSteady { port, frames, rate }),
        2 => (0..4u8).prop_map(Change::RemoveRing),
        4 => (0..4u8, prop::option::weighted(0.8, 0..4u8), prop::option::of(0..PORTS as u8), class, 0..3u16)
            .prop_map(|(rule, ring, to, class, priority)| Change::AddRule { rule, ring, to, class, priority }),
        2 => (0..4u8).prop_map(Change::RemoveRule),
        1 => (0..PORTS, prop::sample::select(vec![0u64, 50_000_000, 10_000_000_000]))
            .prop_map(|(port, rate)| Change::SetPort { port, rate }),
    ]
}

fn step() -> impl Strategy<Value = ChurnStep> {
    let station = 0..PORTS as u8;
    prop_oneof![
        20 => (station.clone(), station, 0..CLASSES, 60..1515usize)
            .prop_map(|(from, to, class, bytes)| ChurnStep::Send { from, to, class, bytes }),
        12 => (0..WORKERS).prop_map(ChurnStep::Poll),
        3 => prop_oneof![0..2_000_000u64, 0..20_000_000_000u64].prop_map(ChurnStep::Wait),
        1 => (0..PORTS, prop::option::of(0..5usize)).prop_map(|(port, frames)| ChurnStep::Room { port, frames }),
        4 => change().prop_map(ChurnStep::Change),
    ]
}

fn station(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

/// A frame of UDP over IPv4 with its number in the payload.
fn frame(from: u8, to: u8, class: u16, number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = [station(to).0, station(from).0].concat();
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(((bytes - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to, 0, 9]);
    frame.extend(class.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(number.to_be_bytes());
    frame.resize(bytes, from ^ to);
    frame
}

fn ring_spec(name: &str, port: usize, frames: u64, rate: Option<u64>) -> RingSpec {
    RingSpec {
        frames: Some(Packets::new(frames)),
        rate: rate.map(Rate::new),
        ..RingSpec::new(name, &format!("p{port}"))
    }
}

fn rule_spec(name: String, ring: Option<String>, to: Option<u8>, class: u16, priority: u16) -> RuleSpec {
    RuleSpec {
        name,
        drop: ring.is_none(),
        ring,
        priority,
        destination_mac: to.map(|to| station(to).to_string().parse().unwrap()),
        protocol: Some(Protocol::UDP),
        destination_port: Some(PortRange { first: class, last: class }),
        ..RuleSpec::default()
    }
}

/// A frame under way.
struct Sent {
    frame: Vec<u8>,
    /// Number of rule changes at its output's worker before it was injected.
    rules: u64,
    delivered: bool,
}

/// The switch and the frames under way.
struct ChurnRun {
    workers: Vec<Switch<MemoryPorts>>,
    /// Commands that workers have not applied yet.
    pending: Vec<Option<Command>>,
    /// Number of rule changes, by worker.
    rules: [u64; WORKERS],
    now: Instant,
    sent: Vec<Sent>,
    /// The last frame of each flow that was delivered.
    last: HashMap<(u8, u8, u16), u32>,
    /// The smallest capacity of each ring so far.
    least: HashMap<String, u64>,
    /// Frames refused by rings that were removed.
    refused_before: u64,
    is_roomy: bool,
}

fn refused(dropped: &[Dropped]) -> u64 {
    dropped.iter().map(|dropped| dropped.tally.frames).sum()
}

impl ChurnRun {
    fn new(is_roomy: bool) -> Self {
        let mut config = Config {
            port: (0..PORTS).map(|port| PortSpec::new(&format!("p{port}"))).collect(),
            ..Config::default()
        };
        config.switch.cores = vec![0, 1, 2];
        config.switch.memory = Bytes::new(8 << 20);
        config.switch.buffer = Bytes::new(if is_roomy { 4 << 20 } else { 5_000 });
        let mut least = HashMap::new();
        for port in 0..PORTS {
            let (to, name) = (port as u8, format!("stays{port}"));
            config.station.push(StationSpec { mac: station(to), port: format!("p{port}"), vlan: None });
            if port == PORTS - 1 {
                // Often no rule exists, so that frames skip classification.
                continue;
            }
            let frames = if is_roomy { 10_000 } else { 5 };
            least.insert(name.clone(), frames);
            config.ring.push(ring_spec(&name, port, frames, Some(100_000_000)));
            config.rule.push(rule_spec(name.clone(), Some(name), Some(to), STAYS, 9));
        }
        let config = config.checked().unwrap_or_else(|errors| panic!("{errors}"));
        let pools = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, WORKERS).unwrap();
        let wakeups: Vec<_> = (0..WORKERS).map(|_| Arc::new(Wakeup::new().unwrap())).collect();
        let owners: Vec<u16> = (0..PORTS).map(|port| config.worker_of(port) as u16).collect();
        assert!((0..PORTS).all(|port| usize::from(owners[port]) == port % WORKERS));
        let peers = Peers::between(&wakeups, &owners);
        let shared = Arc::new(SharedCounts::new(WORKERS, PORTS));
        let workers = pools.into_iter().zip(peers).map(|(pool, peers)| {
            let ports = MemoryPorts::new(pool, PORTS);
            Switch::for_worker(config.clone(), ports, peers, Arc::clone(&shared)).unwrap()
        });
        Self {
            workers: workers.collect(),
            pending: vec![None; WORKERS],
            rules: [0; WORKERS],
            now: Instant::START + Duration::from_micros(1),
            sent: Vec::new(),
            last: HashMap::new(),
            least,
            refused_before: 0,
            is_roomy,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let mut all = self.workers[0].snapshot(false);
        self.workers[1..].iter().for_each(|worker| all.merge(worker.snapshot(false)));
        all
    }

    fn send(&mut self, from: u8, to: u8, class: u16, bytes: usize) -> Result<(), TestCaseError> {
        let frame = frame(from, to, class, self.sent.len() as u32, bytes);
        let (input, output) = (usize::from(from), usize::from(to));
        prop_assert!(self.workers[input % WORKERS].driver_mut().inject(input, &frame));
        self.sent.push(Sent { frame, rules: self.rules[output % WORKERS], delivered: false });
        Ok(())
    }

    /// Checks that each delivered frame was sent, once, to this port, and in its flow's order while its rules stay.
    fn collect(&mut self) -> Result<(), TestCaseError> {
        for port in 0..PORTS {
            while let Some(frame) = self.workers[port % WORKERS].driver_mut().take(port) {
                let number = u32::from_be_bytes(frame[42..46].try_into().unwrap());
                let sent = &mut self.sent[number as usize];
                prop_assert!(sent.frame == frame, "frame {} was changed", number);
                prop_assert!(!sent.delivered, "frame {} came twice", number);
                prop_assert_eq!(usize::from(frame[5]), port, "frame {} left by a wrong port", number);
                sent.delivered = true;
                let class = u16::from_be_bytes([frame[36], frame[37]]);
                let has_changed = self.rules[port % WORKERS] > sent.rules && ![PLAIN, STAYS].contains(&class);
                let last = self.last.entry((frame[11], frame[5], class)).or_default();
                prop_assert!(
                    number >= *last || has_changed,
                    "frame {} of class {} came after {}",
                    number,
                    class,
                    *last
                );
                *last = number.max(*last);
            }
        }
        Ok(())
    }

    /// Applies a worker's pending command.
    fn apply(&mut self, worker: usize) -> Result<(), TestCaseError> {
        let Some(command) = self.pending[worker].take() else { return Ok(()) };
        match &command {
            Command::AddRule(_) | Command::RemoveRule { .. } => self.rules[worker] += 1,
            Command::RemoveRing { name } => {
                let snapshot = self.workers[worker].snapshot(false);
                let ring = snapshot.rings.iter().find(|ring| ring.name == *name);
                self.refused_before += ring.map_or(0, |ring| refused(&ring.queue.dropped));
            }
            _ => {}
        }
        prop_assert!(self.workers[worker].carry_out(command).is_ok(), "the command was checked");
        Ok(())
    }

    fn poll(&mut self, worker: usize) -> Result<crate::Activity, TestCaseError> {
        self.apply(worker)?;
        let activity = self.workers[worker].poll(self.now, true);
        self.collect()?;
        Ok(activity)
    }

    /// Sends a change to all workers if all accept it, after they have applied the previous one. Each worker applies it
    /// before its next round.
    fn change(&mut self, change: Change) -> Result<(), TestCaseError> {
        for worker in 0..WORKERS {
            self.apply(worker)?;
        }
        let most = |frames| if self.is_roomy { 10_000 } else { frames };
        let name = |ring: u8| format!("r{ring}");
        let command = match change {
            Change::AddRing { ring, port, frames, rate } => {
                Command::AddRing(ring_spec(&name(ring), port, most(frames), rate))
            }
            Change::SetRing { ring, frames, rate } => {
                let rings = &self.workers[0].config().ring;
                let Some(old) = rings.iter().find(|old| old.name == name(ring)) else { return Ok(()) };
                let port = old.port[1..].parse().unwrap();
                Command::SetRing(ring_spec(&name(ring), port, most(frames), rate))
            }
            Change::SetSteady { port, frames, rate } => {
                Command::SetRing(ring_spec(&format!("stays{port}"), port, most(frames), rate))
            }
            Change::RemoveRing(ring) => Command::RemoveRing { name: name(ring) },
            Change::AddRule { rule, ring, to, class, priority } => {
                let rule = format!("rule{rule}");
                Command::AddRule(rule_spec(rule, ring.map(name), to, class, priority))
            }
            Change::RemoveRule(rule) => Command::RemoveRule { name: format!("rule{rule}") },
            Change::SetPort { port, rate } => Command::SetPort(PortChange {
                name: format!("p{port}"),
                rate: Some(Rate::new(rate)),
                ..PortChange::default()
            }),
        };
        let answers: Vec<_> = self.workers.iter().map(|worker| worker.check_command(&command)).collect();
        prop_assert!(answers.iter().all(|answer| *answer == answers[0]), "{:?}", answers);
        if answers[0].is_err() {
            return Ok(());
        }
        match &command {
            Command::AddRing(spec) | Command::SetRing(spec) => {
                let frames = spec.frames.map_or(u64::MAX, Packets::get);
                let least = self.least.entry(spec.name.clone()).or_insert(frames);
                *least = frames.min(*least);
            }
            Command::RemoveRing { name } => drop(self.least.remove(name)),
            _ => {}
        }
        self.pending = vec![Some(command); WORKERS];
        Ok(())
    }

    /// Drains the switch and checks the sums.
    fn finish(mut self) -> Result<(), TestCaseError> {
        for port in 0..PORTS {
            self.workers[port % WORKERS].driver_mut().set_room(port, usize::MAX);
        }
        let (mut rounds, mut quiet) = (0, 0);
        while quiet < 3 {
            let (mut frames, mut next) = (0, None);
            for worker in 0..WORKERS {
                let activity = self.poll(worker)?;
                frames += activity.frames;
                next = [next, activity.next].into_iter().flatten().min();
            }
            let is_idle = |worker: &Switch<_>| worker.is_drained() && !worker.has_messages();
            quiet = if frames == 0 && self.workers.iter().all(is_idle) { quiet + 1 } else { 0 };
            self.now = next.unwrap_or(self.now).max(self.now + Duration::from_nanos(1));
            rounds += 1;
            prop_assert!(rounds < 100_000, "does not drain");
        }
        let snapshot = self.snapshot();
        let by_cause = |port: &Dropped| port.cause == "rule";
        prop_assert!(
            snapshot.ports.iter().flat_map(|port| &port.dropped).all(by_cause),
            "{:?}",
            snapshot.ports
        );
        let delivered = self.sent.iter().filter(|sent| sent.delivered).count() as u64;
        let dropped = snapshot.drops() + self.refused_before;
        prop_assert_eq!(delivered + dropped, self.sent.len() as u64, "frames are missing");
        // A ring refuses a frame only if it is full.
        for ring in &snapshot.rings {
            let (dropped, least) = (refused(&ring.queue.dropped), self.least[&ring.name]);
            prop_assert!(dropped == 0 || ring.queue.frames_max >= least, "{:?}", ring);
            prop_assert!(dropped == 0 || !self.is_roomy, "{:?}", ring);
        }
        for port in &snapshot.ports {
            let is_full = !self.is_roomy && port.queue.bytes_max + 1_514 > 5_000;
            prop_assert!(port.queue.dropped.is_empty() || is_full, "{:?}", port);
        }
        prop_assert!(self.refused_before == 0 || !self.is_roomy);
        for worker in &self.workers {
            let pool = worker.driver().pool();
            prop_assert_eq!(pool.free_len(), pool.share_len(), "chunks are missing");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 96 }))]
    /// Frames are not lost below capacity, duplicated, changed or misdelivered. Flows with constant rules keep their
    /// order. Each worker applies changes of rings and rules at its own time.
    #[test]
    fn workers_that_are_reconfigured_lose_reorder_and_misdeliver_nothing(
        steps in prop::collection::vec(step(), 1..400),
        is_roomy: bool,
    ) {
        let mut run = ChurnRun::new(is_roomy);
        for step in steps {
            match step {
                ChurnStep::Send { from, to, class, bytes } if from != to => run.send(from, to, class, bytes)?,
                ChurnStep::Send { .. } => {}
                ChurnStep::Poll(worker) => drop(run.poll(worker)?),
                ChurnStep::Wait(picos) => run.now = run.now + Duration::new(picos),
                ChurnStep::Room { port, frames } => {
                    run.workers[port % WORKERS].driver_mut().set_room(port, frames.unwrap_or(usize::MAX));
                }
                ChurnStep::Change(change) => run.change(change)?,
            }
        }
        run.finish()?;
    }
}
