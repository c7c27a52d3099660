//! The switch against a naive reference: random frames, rules and reconfigurations.
//!
//! Checks after every step. No frame is lost while its queue is below capacity, reordered within a flow, misdelivered or
//! modified. The counters balance, and a frame cuts through exactly if it may.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};

use fanin_switch::config::{Buffering, PortSpec, RingSpec, RuleSpec};
use fanin_switch::{Command, Config, Mac, MemoryPorts, Pool, Switch};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const PORTS: usize = 4;

fn station(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// A frame of UDP over IPv4 with its number in the payload.
fn frame(from: u8, to: u8, port: u16, number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes);
    frame.extend(station(to));
    frame.extend(station(from));
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(((bytes - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend(9u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(number.to_be_bytes());
    frame.resize(bytes, from ^ to);
    frame
}

#[derive(Debug, Clone)]
enum Step {
    /// Frames from the station of one port to that of another.
    Send {
        from: u8,
        to: u8,
        port: u16,
        bytes: usize,
        count: usize,
    },
    /// The switch makes a round.
    Poll,
    /// Time passes.
    Wait(u64),
    /// Limits the frames that a port still sends; `None` is no limit.
    Room {
        port: usize,
        frames: Option<usize>,
    },
    AddRing {
        ring: u8,
        port: usize,
        frames: u64,
        rate: Option<u64>,
    },
    SetRing {
        ring: u8,
        frames: u64,
        rate: Option<u64>,
    },
    RemoveRing {
        ring: u8,
    },
    AddRule {
        rule: u8,
        ring: Option<u8>,
        to: Option<u8>,
        port: Option<u16>,
        priority: u16,
    },
    RemoveRule {
        rule: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let station = 0..PORTS as u8;
    let rate = || prop::option::of(prop::sample::select(vec![1_000_000u64, 100_000_000, 5_000_000_000]));
    prop_oneof![
        12 => (station.clone(), station.clone(), 0..3u16, 60..1515usize, prop_oneof![4 => Just(1), 1 => 2..90usize])
            .prop_map(|(from, to, port, bytes, count)| Step::Send { from, to, port, bytes, count }),
        6 => Just(Step::Poll),
        4 => prop_oneof![0..2_000_000u64, 0..20_000_000_000u64].prop_map(Step::Wait),
        2 => (0..PORTS, prop::option::of(prop_oneof![0..5usize, 0..100usize]))
            .prop_map(|(port, frames)| Step::Room { port, frames }),
        1 => (0..4u8, 0..PORTS, 1..40u64, rate())
            .prop_map(|(ring, port, frames, rate)| Step::AddRing { ring, port, frames, rate }),
        1 => (0..4u8, 1..40u64, rate()).prop_map(|(ring, frames, rate)| Step::SetRing { ring, frames, rate }),
        1 => (0..4u8).prop_map(|ring| Step::RemoveRing { ring }),
        1 => (0..4u8, prop::option::of(0..4u8), prop::option::of(station), prop::option::of(0..3u16), 0..3u16)
            .prop_map(|(rule, ring, to, port, priority)| Step::AddRule { rule, ring, to, port, priority }),
        1 => (0..4u8).prop_map(|rule| Step::RemoveRule { rule }),
    ]
}

/// A port and a ring; the plain queue has no name.
type Name = (usize, String);

/// A queue of the reference.
#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
}

/// A queue in the switch's snapshot.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    frames: u64,
    bytes: u64,
    refused: u64,
}

/// The reference switch: a map of stations, lists of rules, lists of frames.
#[derive(Debug, Default)]
struct Naive {
    stations: HashMap<u8, usize>,
    rules: Vec<RuleSpec>,
    rings: Vec<RingSpec>,
    queues: HashMap<Name, Queue>,
    /// Queues of removed rings, which still drain.
    drains: Vec<(usize, Queue)>,
    dropped_by_rule: u64,
    plain_max: u64,
    /// Frames that each port still sends; absent without a limit.
    room: HashMap<usize, usize>,
}

thread_local! {
    /// Numbers of frames that cut through, were queued, or cut through but found their port without room.
    static WAYS: Cell<[usize; 3]> = const { Cell::new([0; 3]) };
}

/// The queues of the switch, without dequeued frames that wait for their port.
fn seen(switch: &Switch<MemoryPorts>) -> HashMap<Name, Seen> {
    let snapshot = switch.snapshot(false);
    let plain = snapshot.ports.iter().enumerate().map(|(port, of)| ((port, String::new()), &of.queue));
    let rings =
        snapshot.rings.iter().map(|ring| ((ring.port[1..].parse().unwrap(), ring.name.clone()), &ring.queue));
    plain
        .chain(rings)
        .map(|(name, queue)| {
            let refused = queue.dropped.iter().map(|dropped| dropped.tally.frames).sum();
            (name, Seen { frames: queue.frames, bytes: queue.bytes, refused })
        })
        .collect()
}

impl Naive {
    fn ring_of(&self, output: usize, frame: &[u8]) -> Option<Option<String>> {
        let port = u16::from_be_bytes([frame[36], frame[37]]);
        let mut best: Option<&RuleSpec> = None;
        for rule in &self.rules {
            let is_here = rule.ring.as_ref().is_none_or(|name| {
                self.rings.iter().any(|ring| ring.name == *name && ring.port == format!("p{output}"))
            });
            let matches = rule.destination_mac.is_none_or(|mac| mac.address.0 == frame[..6])
                && rule.destination_port.is_none_or(|range| range.first <= port && port <= range.last);
            if is_here && matches && best.is_none_or(|other| rule.priority > other.priority) {
                best = Some(rule);
            }
        }
        match best {
            Some(rule) if rule.drop => None,
            Some(rule) => Some(rule.ring.clone()),
            None => Some(None),
        }
    }

    fn rate_of(&self, name: &Name) -> Option<Rate> {
        self.rings.iter().find(|ring| ring.name == name.1).and_then(|ring| ring.rate)
    }

    fn held_by(&self, name: &Name) -> u64 {
        self.queues.get(name).map_or(0, |queue| queue.frames.len() as u64)
    }

    fn held_at(&self, output: usize) -> usize {
        let drains = self.drains.iter().filter(|(port, _)| *port == output).map(|(_, queue)| queue);
        let queues = self.queues.iter().filter(|((port, _), _)| *port == output).map(|(_, queue)| queue);
        drains.chain(queues).map(|queue| queue.frames.len()).sum()
    }

    /// The queues that receive a frame.
    fn receive(&mut self, input: usize, frame: &[u8]) -> Vec<Name> {
        self.stations.insert(frame[11], input);
        let outputs: Vec<usize> = match self.stations.get(&frame[5]) {
            Some(&output) => vec![output],
            None => (0..PORTS).collect(),
        };
        let mut names = Vec::new();
        for output in outputs.into_iter().filter(|&output| output != input) {
            match self.ring_of(output, frame) {
                Some(ring) => names.push((output, ring.unwrap_or_default())),
                None => self.dropped_by_rule += 1,
            }
        }
        names
    }

    /// Returns true if a queue with this occupancy refuses a frame.
    fn is_full(&self, name: &Name, held: Seen, frame: &[u8]) -> bool {
        match self.rings.iter().find(|ring| ring.name == name.1) {
            Some(ring) => held.frames >= ring.frames.map_or(u64::MAX, |most| most.get()),
            None => held.bytes + frame.len() as u64 > self.plain_max,
        }
    }

    /// Checks the frames of one queue that arrived in one round, in order; the first `passed` left its port in the same
    /// round. The snapshots `before` and `after` give the numbers of held and refused frames. The other frames cut through
    /// and found their port without room. Returns the number of frames that cut through.
    fn take_in(
        &mut self,
        name: &Name,
        frames: VecDeque<Vec<u8>>,
        passed: usize,
        before: Seen,
        after: Seen,
    ) -> Result<usize, TestCaseError> {
        let (queued, refused) = (after.frames - before.frames, after.refused - before.refused);
        let left = frames.len() - passed - queued as usize - refused as usize;
        prop_assert!(left == 0 || self.room.get(&name.0) == Some(&0), "{:?}: {} went nowhere", name, left);
        prop_assert!(passed + left == 0 || before.frames == 0, "{:?}: a queued frame was overtaken", name);
        let mut held = before;
        for (number, frame) in frames.into_iter().enumerate().skip(passed) {
            let waits = number < passed + left;
            if !waits && self.is_full(name, held, &frame) {
                held.refused += 1;
                continue;
            }
            if !waits {
                (held.frames, held.bytes) = (held.frames + 1, held.bytes + frame.len() as u64);
            }
            self.queues.entry(name.clone()).or_default().frames.push_back(frame);
        }
        prop_assert_eq!(held.frames, after.frames, "{:?} is not as long as it should be", name);
        prop_assert_eq!(held.bytes, after.bytes);
        prop_assert_eq!(held.refused, after.refused, "{:?} refused what it had room for", name);
        WAYS.with(|ways| {
            let [a, b, c] = ways.get();
            ways.set([a + passed, b + queued as usize, c + left]);
        });
        Ok(passed + left)
    }

    /// Checks all frames that arrived in one round. `out` holds the frames that left in the same round, by port.
    fn take_in_all(
        &mut self,
        came: Vec<(usize, Vec<u8>)>,
        out: &[Vec<Vec<u8>>],
        before: &HashMap<Name, Seen>,
        after: &HashMap<Name, Seen>,
    ) -> Result<(), TestCaseError> {
        let mut bound: BTreeMap<Name, VecDeque<Vec<u8>>> = BTreeMap::new();
        for (input, frame) in came {
            for name in self.receive(input, &frame) {
                bound.entry(name).or_default().push_back(frame.clone());
            }
        }
        // A frame that may leave now, or waits for its port, blocks cut-through.
        let is_blocked = |naive: &Self, output: usize| {
            before.iter().any(|(name, seen)| {
                name.0 == output
                    && (naive.held_by(name) > seen.frames || seen.frames > 0 && naive.rate_of(name).is_none())
            })
        };
        let blocked: Vec<bool> = (0..PORTS).map(|output| is_blocked(self, output)).collect();
        let empty: Vec<bool> = (0..PORTS).map(|output| self.held_at(output) == 0).collect();
        let mut passed_at = [0; PORTS];
        for (name, frames) in bound {
            let output = name.0;
            let passed = frames.iter().take_while(|frame| out[output].contains(frame)).count();
            let mine = out[output].iter().filter(|frame| frames.contains(frame));
            prop_assert!(mine.eq(frames.iter().take(passed)), "{:?}: out of order", name);
            passed_at[output] += passed;
            let len = frames.len();
            let all = self.take_in(&name, frames, passed, before[&name], after[&name])?;
            prop_assert!(all == 0 || !blocked[output], "{:?}: a waiting frame was overtaken", name);
            // Without an obstacle every frame cuts through.
            let has_room = self.room.get(&output).is_none_or(|&room| room > 0);
            let must = empty[output] && has_room && self.rate_of(&name).is_none();
            prop_assert!(
                !must || all == len,
                "{:?}: {} of {} were queued without need",
                name,
                len - all,
                len
            );
        }
        for (output, frames) in out.iter().enumerate() {
            prop_assert_eq!(frames.len(), passed_at[output], "port {} sent what did not come in", output);
        }
        Ok(())
    }

    /// Checks that a sent frame is the first of one of its port's queues.
    fn sent(&mut self, output: usize, frame: &[u8]) -> bool {
        let drains = self.drains.iter_mut().filter(|(port, _)| *port == output).map(|(_, queue)| queue);
        let queues = self.queues.iter_mut().filter(|((port, _), _)| *port == output).map(|(_, queue)| queue);
        for queue in drains.chain(queues) {
            if queue.frames.front().is_some_and(|first| first == frame) {
                queue.frames.pop_front();
                return true;
            }
        }
        false
    }

    fn held(&self) -> usize {
        let drains = self.drains.iter().map(|(_, queue)| queue.frames.len());
        drains.chain(self.queues.values().map(|queue| queue.frames.len())).sum()
    }
}

fn ring_spec(ring: u8, port: usize, frames: u64, rate: Option<u64>) -> RingSpec {
    RingSpec {
        frames: Some(Packets::new(frames)),
        rate: rate.map(Rate::new),
        ..RingSpec::new(&format!("r{ring}"), &format!("p{port}"))
    }
}

fn config() -> Config {
    let mut config = Config {
        port: (0..PORTS).map(|port| PortSpec::new(&format!("p{port}"))).collect(),
        ..Config::default()
    };
    config.switch.memory = Bytes::new(4 << 20);
    config.switch.mac_hold = Duration::ZERO;
    config.switch.buffering = Buffering::Dedicated;
    config.switch.buffer = Bytes::new(20_000);
    config
}

fn switch(config: Config) -> Switch<MemoryPorts> {
    let pool = Pool::new(config.switch.memory, config.switch.mtu, fanin_switch::config::Hugepages::Off, 1)
        .unwrap()
        .remove(0);
    let ports = MemoryPorts::new(pool, config.port.len());
    Switch::new(config, ports).unwrap()
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut switch = switch(config());
    let memory = switch.driver().pool().free_len();
    let mut naive = Naive { plain_max: 20_000, ..Naive::default() };
    let mut now = Instant::START + Duration::from_micros(1);
    let mut number = 0;
    let mut waiting: Vec<VecDeque<Vec<u8>>> = vec![VecDeque::new(); PORTS];
    let take = |switch: &mut Switch<MemoryPorts>, naive: &mut Naive, port: usize| {
        let frame = switch.driver_mut().take(port)?;
        naive.room.entry(port).and_modify(|room| *room -= 1);
        Some(frame)
    };
    let collect = |switch: &mut Switch<MemoryPorts>, naive: &mut Naive| {
        for port in 0..PORTS {
            while let Some(frame) = take(switch, naive, port) {
                prop_assert!(
                    naive.sent(port, &frame),
                    "port {port} sent what is not next in any of its queues"
                );
            }
        }
        Ok(())
    };
    for step in steps {
        match step {
            &Step::Send { from, to, port, bytes, count } if from != to => {
                for _ in 0..count {
                    let frame = frame(from, to, port, number, bytes);
                    number += 1;
                    prop_assert!(switch.driver_mut().inject(from.into(), &frame));
                    waiting[usize::from(from)].push_back(frame);
                }
            }
            Step::Send { .. } => {}
            Step::Poll => {
                // In a round, departures precede arrivals: all frames that may leave do so first.
                while switch.poll(now, false).frames > 0 {}
                collect(&mut switch, &mut naive)?;
                let before = seen(&switch);
                switch.poll(now, true);
                // No queued frame may leave now: these have cut through.
                let out: Vec<Vec<Vec<u8>>> = (0..PORTS)
                    .map(|port| std::iter::from_fn(|| take(&mut switch, &mut naive, port)).collect())
                    .collect();
                let came = waiting.iter_mut().enumerate().flat_map(|(port, frames)| {
                    let count = frames.len().min(fanin_switch::BURST);
                    frames.drain(..count).map(move |frame| (port, frame))
                });
                naive.take_in_all(came.collect(), &out, &before, &seen(&switch))?;
            }
            Step::Wait(picos) => now = now + Duration::new(*picos),
            Step::Room { port, frames } => {
                switch.driver_mut().set_room(*port, frames.unwrap_or(usize::MAX));
                match frames {
                    Some(frames) => drop(naive.room.insert(*port, *frames)),
                    None => drop(naive.room.remove(port)),
                }
            }
            &Step::AddRing { ring, port, frames, rate } => {
                let spec = ring_spec(ring, port, frames, rate);
                let exists = naive.rings.iter().any(|other| other.name == spec.name);
                let done = switch.handle_command(Command::AddRing(spec.clone()));
                prop_assert_eq!(done.is_ok(), !exists, "{:?}", done);
                if !exists {
                    naive.rings.push(spec);
                }
            }
            &Step::SetRing { ring, frames, rate } => {
                let known = naive.rings.iter_mut().find(|other| other.name == format!("r{ring}"));
                let port = known.as_ref().map_or(0, |ring| ring.port[1..].parse().unwrap());
                let spec = ring_spec(ring, port, frames, rate);
                prop_assert_eq!(
                    switch.handle_command(Command::SetRing(spec.clone())).is_ok(),
                    known.is_some()
                );
                if let Some(known) = known {
                    *known = spec;
                }
            }
            Step::RemoveRing { ring } => {
                let name = format!("r{ring}");
                let found = naive.rings.iter().position(|other| other.name == name);
                let used = naive.rules.iter().any(|rule| rule.ring.as_deref() == Some(&name));
                let done = switch.handle_command(Command::RemoveRing { name: name.clone() });
                prop_assert_eq!(done.is_ok(), found.is_some() && !used);
                if let (Some(index), false) = (found, used) {
                    let port = naive.rings.remove(index).port[1..].parse().unwrap();
                    if let Some(queue) = naive.queues.remove(&(port, name)) {
                        naive.drains.push((port, queue));
                    }
                }
            }
            &Step::AddRule { rule, ring, to, port, priority } => {
                let name = format!("rule{rule}");
                let ring = ring.map(|ring| format!("r{ring}"));
                let spec = RuleSpec {
                    name: name.clone(),
                    drop: ring.is_none(),
                    ring: ring.clone(),
                    priority,
                    destination_mac: to.map(|to| Mac(station(to)).to_string().parse().unwrap()),
                    protocol: Some(fanin_switch::config::Protocol::UDP),
                    destination_port: port
                        .map(|port| fanin_switch::config::PortRange { first: port, last: port }),
                    ..RuleSpec::default()
                };
                let exists = naive.rules.iter().any(|rule| rule.name == name);
                let has_ring = ring.is_none_or(|ring| naive.rings.iter().any(|other| other.name == ring));
                let done = switch.handle_command(Command::AddRule(spec.clone()));
                prop_assert_eq!(done.is_ok(), !exists && has_ring, "{:?}", done);
                if done.is_ok() {
                    naive.rules.push(spec);
                }
            }
            Step::RemoveRule { rule } => {
                let name = format!("rule{rule}");
                let before = naive.rules.len();
                naive.rules.retain(|rule| rule.name != name);
                let done = switch.handle_command(Command::RemoveRule { name });
                prop_assert_eq!(done.is_ok(), naive.rules.len() < before);
            }
        }
        let snapshot = switch.snapshot(false);
        let by_rule: u64 = snapshot
            .ports
            .iter()
            .flat_map(|port| &port.dropped)
            .filter(|dropped| dropped.cause == "rule")
            .map(|dropped| dropped.tally.frames)
            .sum();
        prop_assert_eq!(by_rule, naive.dropped_by_rule);
        switch.assert_conserved();
        prop_assert_eq!(switch.frames_held() as usize, naive.held(), "frames are held that should not be");
    }
    // Every admitted frame leaves in time.
    for port in 0..PORTS {
        switch.driver_mut().set_room(port, usize::MAX);
    }
    naive.room.clear();
    for frames in &mut waiting {
        for _ in frames.drain(..) {}
    }
    let mut rounds = 0;
    while !switch.is_drained() {
        let activity = switch.poll(now, false);
        collect(&mut switch, &mut naive)?;
        now = activity.next.unwrap_or(now).max(now + Duration::from_nanos(1));
        rounds += 1;
        prop_assert!(rounds < 100_000, "does not drain");
    }
    prop_assert_eq!(naive.held(), 0, "admitted frames were lost");
    // Only injected frames that were not polled are still with the ports.
    let snapshot = switch.snapshot(false);
    let unpolled = u64::from(number) - snapshot.ports.iter().map(|port| port.received.frames).sum::<u64>();
    prop_assert_eq!(switch.driver().pool().free_len() as u64, memory as u64 - unpolled, "memory has leaked");
    Ok(())
}

#[test]
fn does_what_a_naive_switch_does() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 96,
        source_file: Some(file!()),
        ..ProptestConfig::default()
    });
    WAYS.set([0; 3]);
    let result = runner.run(&prop::collection::vec(step(), 1..250), |steps| run(&steps));
    result.unwrap_or_else(|error| panic!("{error}"));
    let [passed, queued, left] = WAYS.get();
    assert!(passed > 100 && queued > 100 && left > 100, "{passed} {queued} {left}: a way was hardly taken");
}
