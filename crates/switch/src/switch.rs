//! The data path: from a port to queues, from queues to a port. One worker's part of it, without threads and clocks.

use std::collections::HashMap;
use std::sync::Arc;

use fanin_queueing::TokenBucket;
use fanin_scenario::Errors;
use fanin_units::{Duration, Instant};

use crate::address::Mac;
use crate::buffers::Buffers;
use crate::capture::{Captures, Passing, Tap};
use crate::classify::{Action, Classifier, Depth};
use crate::config::{Config, PortSpec, StormSpec};
use crate::driver::{Driver, Received};
use crate::egress::{Bound, RINGS_NEAR};
use crate::lanes::{Lanes, Message};
use crate::m21::M21;
use crate::output::{Next, Output, PLAIN, Reserve};
use crate::pause::Pauser;
use crate::random::Random;
use crate::shared::Shared;
use crate::snapshot::{Cause, Drops, Tally};
use crate::stations::Stations;

/// Frames taken from a port, and given to one, in a round.
pub const BURST: usize = 64;
/// Free buffers that are kept for drivers: with fewer, frames are dropped rather than the drivers starved.
pub(crate) const ROOM_MIN: usize = 2 * BURST;
const AGE_EVERY: Duration = Duration::from_millis(1);
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
const LINK_EVERY: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_secs(10);

/// What a round has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Frames that came in or went out.
    pub frames: usize,
    /// When there is something to do again, if nothing comes in: at once where it lies in the past.
    pub next: Option<Instant>,
}

/// A port's receiving side.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) received: Tally,
    pub(crate) flooded: Tally,
    pub(crate) drops: Drops,
    pub(crate) storm: Storm,
    /// The VLAN of untagged frames, 0 for none.
    pub(crate) untagged: u16,
    pub(crate) tagged: Vec<u16>,
    pub(crate) is_up: bool,
    pub(crate) floods: bool,
    /// Everything goes back by this port.
    pub(crate) reflects: bool,
    /// Of ways; 0 where stations are learned.
    pub(crate) table: u16,
    pub(crate) pauser: Pauser,
    pub(crate) sent: Tally,
}

/// Storm control of one port.
#[derive(Debug, Default)]
pub(crate) struct Storm {
    broadcast: Option<TokenBucket>,
    multicast: Option<TokenBucket>,
    unknown: Option<TokenBucket>,
}

impl Storm {
    pub(crate) fn new(spec: &StormSpec) -> Self {
        // Without a burst of its own a frame always passes after a silence: a bucket lets one through and takes the debt.
        let burst = spec.burst.unwrap_or_default();
        let bucket =
            |rate: Option<fanin_units::Rate>| rate.and_then(|rate| TokenBucket::new(rate, burst).ok());
        Self {
            broadcast: bucket(spec.broadcast),
            multicast: bucket(spec.multicast),
            unknown: bucket(spec.unknown),
        }
    }

    pub(crate) fn admit(&mut self, now: Instant, destination: u64, bytes: u32) -> bool {
        let bucket = match Mac::from_u64(destination) {
            Mac::BROADCAST => &mut self.broadcast,
            group if group.is_group() => &mut self.multicast,
            _ => &mut self.unknown,
        };
        let Some(bucket) = bucket else { return true };
        let passes = bucket.ready_at(bytes) <= now;
        if passes {
            bucket.take(now, bytes);
        }
        passes
    }
}

impl Input {
    fn new(spec: &PortSpec, has_vlans: bool, index: usize) -> Self {
        let untagged = match (has_vlans, spec.untagged) {
            (true, Some(vlan)) => vlan.get(),
            // A port that only names tagged VLANs carries no untagged frames; one that names none is in the first.
            (true, None) if spec.tagged.is_empty() => crate::address::Vlan::DEFAULT.get(),
            _ => 0,
        };
        Self {
            received: Tally::default(),
            flooded: Tally::default(),
            drops: Drops::default(),
            storm: Storm::new(&spec.storm),
            untagged,
            tagged: spec.tagged.iter().map(|vlan| vlan.get()).collect(),
            is_up: true,
            floods: spec.flood,
            reflects: spec.reflect,
            table: spec.table,
            pauser: Pauser::new(spec, index),
            sent: Tally::default(),
        }
    }

    pub(crate) fn carries(&self, vlan: u16) -> bool {
        self.untagged == vlan || self.tagged.contains(&vlan)
    }
}

/// One worker's part of a switch: its ports and their queues, driven by [`Self::poll`].
#[derive(Debug)]
pub struct Switch<D: Driver> {
    pub(crate) driver: D,
    pub(crate) config: Config,
    pub(crate) worker: usize,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output<D::Handle>>,
    /// The ports of this worker.
    pub(crate) mine: Vec<usize>,
    pub(crate) memory: Buffers,
    /// What all workers know.
    pub(crate) shared: Arc<Shared>,
    /// Where PAUSE frames are sent: of each port's frames, what this worker has let in or handed over, less what it let go.
    pub(crate) held_by_input: Vec<u64>,
    pub(crate) sends_pauses: bool,
    pub(crate) m21: Option<M21>,
    pub(crate) stations: Stations,
    pub(crate) has_vlans: bool,
    pub(crate) payload_max: u32,
    pub(crate) rule_tallies: Vec<Tally>,
    /// How far into frames the rules of any output look.
    pub(crate) depth: Depth,
    /// Whether any output has no rules.
    pub(crate) has_free_outputs: bool,
    /// Whether there are so many rings that they are not in the cache anyway.
    pub(crate) has_many_rings: bool,
    pub(crate) random: Random,
    pub(crate) reserve: Reserve,
    pub(crate) received: Vec<Received<D::Handle>>,
    /// As many places as a burst has frames, and how many of them are taken.
    pub(crate) bound: Vec<Bound<D::Handle>>,
    pub(crate) bound_len: usize,
    pub(crate) batch: Vec<Received<D::Handle>>,
    /// Outputs with frames that pass their queues in this round, some of them more than once.
    pub(crate) passing: Vec<u16>,
    /// Counts bursts, so that what was found out in one is not used in another.
    pub(crate) burst: u64,
    pub(crate) scratch: Vec<u8>,
    tick_at: Instant,
    sample_at: Instant,
    link_at: Instant,
    period_at: Instant,
    pub(crate) rounds: u64,
    pub(crate) busy_rounds: u64,
    pub(crate) now: Instant,
    pub(crate) tap: Tap,
    /// To the other workers, where there are any.
    pub(crate) lanes: Option<Lanes<D::Handle>>,
}

impl<D: Driver> Switch<D> {
    /// A switch over ports that are open. The driver has as many as the configuration.
    ///
    /// # Errors
    /// Where the configuration is wrong.
    ///
    /// # Panics
    /// If the numbers of ports differ.
    pub fn new(config: Config, driver: D) -> Result<Self, Errors> {
        let config = config.checked()?;
        let shared = Arc::new(Shared::new(config.workers(), config.port.len()));
        Self::for_worker(config, driver, 0, shared)
    }

    pub(crate) fn for_worker(
        config: Config,
        driver: D,
        worker: usize,
        shared: Arc<Shared>,
    ) -> Result<Self, Errors> {
        assert_eq!(config.port.len(), driver.ports_len(), "a driver for the ports of another configuration");
        let wrong = |key: &str, error: &dyn std::fmt::Display| {
            let document = fanin_scenario::Document::parse("configuration", "")?;
            Err(Errors::from(vec![document.problem(key, error.to_string())]))
        };
        let memory = match Buffers::new(&config, &shared) {
            Ok(memory) => memory,
            Err(error) => return wrong("buffering", &error),
        };
        let mut outputs = Vec::new();
        for (index, spec) in config.port.iter().enumerate() {
            let mut output = match Output::new(spec, config.switch.mtu) {
                Ok(output) => output,
                Err(error) => return wrong("port", &error),
            };
            output.set_impairment(spec.impair, Random::new(config.switch.seed, 1 + index as u64));
            outputs.push(output);
        }
        let has_vlans = config.has_vlans();
        let ports = config.port.len();
        let inputs = config.port.iter().enumerate().map(|(n, spec)| Input::new(spec, has_vlans, n)).collect();
        let spec = &config.switch;
        let mut switch = Self {
            driver,
            worker,
            inputs,
            outputs,
            mine: (0..ports).filter(|&port| config.worker_of(port) == worker).collect(),
            memory,
            held_by_input: vec![0; ports],
            sends_pauses: config.port.iter().any(|port| port.pause.xoff.is_some()),
            m21: M21::new(&config, &shared),
            shared,
            stations: Stations::new(spec.mac_entries, spec.mac_age, spec.mac_hold),
            has_vlans,
            payload_max: spec.mtu.get() as u32,
            rule_tallies: vec![Tally::default(); config.rule.len()],
            depth: Depth::default(),
            has_free_outputs: false,
            has_many_rings: false,
            random: Random::new(spec.seed, 0),
            reserve: Reserve::default(),
            received: Vec::with_capacity(BURST),
            bound: vec![Bound::default(); BURST],
            bound_len: 0,
            batch: Vec::with_capacity(BURST),
            passing: Vec::with_capacity(ports),
            burst: 0,
            scratch: Vec::new(),
            tick_at: Instant::START,
            sample_at: Instant::START,
            // Links that have just come up are not seen yet: every port has one until the first look.
            link_at: Instant::START + LINK_EVERY,
            period_at: Instant::START + PERIOD,
            rounds: 0,
            busy_rounds: 0,
            now: Instant::START,
            tap: Captures::new(worker + 1, 0).tap(worker),
            lanes: None,
            config,
        };
        for ring in switch.config.ring.clone() {
            if let Err(error) = switch.put_ring(&ring) {
                return wrong("ring", &error);
            }
        }
        for station in switch.config.station.clone() {
            switch.put_station(&station);
        }
        for way in switch.config.way.clone() {
            switch.put_way(&way);
        }
        switch.rebuild_rules();
        Ok(switch)
    }

    /// Lets these captures look at this worker's frames.
    pub fn attach(&mut self, captures: &Captures) {
        self.tap = captures.tap(self.worker);
    }

    /// Looks again where captures find their port or ring.
    pub(crate) fn find_captured(&mut self) {
        let (config, outputs, mine) = (&self.config, &self.outputs, &self.mine);
        self.tap.find(|point| Passing::of(point, config, mine, |port, ring| outputs[port].ring(ring)));
    }

    /// The driver.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, to put frames in and take them out.
    pub const fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// The configuration as it is now.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Frames that are queued, stashed or on a bad way.
    pub fn frames_held(&self) -> u64 {
        let of = |output: &Output<D::Handle>| {
            output.queue.frames()
                + output.stash.len() as u64
                + output.impairment.as_ref().map_or(0, |way| way.len() as u64)
        };
        self.mine.iter().map(|&port| of(&self.outputs[port])).sum()
    }

    /// Whether nothing is left that could still be sent.
    pub fn is_drained(&self) -> bool {
        self.mine.iter().all(|&port| self.outputs[port].is_drained())
    }

    /// Whether all that drivers have taken is on its way.
    pub(crate) fn is_sent(&self) -> bool {
        !self.mine.iter().any(|&port| self.driver.has_unsent(port))
    }

    /// Whether another worker has sent something.
    pub(crate) fn has_messages(&self) -> bool {
        self.lanes.as_ref().is_some_and(Lanes::has_messages)
    }

    /// The rules of every output, ready to be asked. Costs as much as there are rings and rules, and no more.
    pub(crate) fn rebuild_rules(&mut self) {
        let rings = self.ring_places();
        let mut of_outputs: Vec<Vec<_>> = vec![Vec::new(); self.outputs.len()];
        for (number, rule) in self.config.rule.iter().enumerate() {
            let input = rule.input.as_ref().and_then(|input| self.config.port_index(input));
            match &rule.ring {
                None => {
                    of_outputs
                        .iter_mut()
                        .for_each(|rules| rules.push((number as u32, rule, Action::Drop, input)));
                }
                Some(ring) => {
                    if let Some(&(port, ring)) = rings.get(ring.as_str()) {
                        of_outputs[port].push((number as u32, rule, Action::Ring(ring as u32), input));
                    }
                }
            }
        }
        let classifiers: Vec<Classifier> = of_outputs.into_iter().map(Classifier::new).collect();
        self.depth = classifiers.iter().map(Classifier::depth).max().unwrap_or_default();
        self.has_free_outputs = classifiers.iter().any(Classifier::is_empty);
        for (output, classifier) in self.outputs.iter_mut().zip(classifiers) {
            output.classifier = classifier;
        }
        self.has_many_rings =
            self.outputs.iter().map(|output| output.rings.len()).sum::<usize>() > RINGS_NEAR;
    }

    /// The port and number of every ring by its name.
    pub(crate) fn ring_places(&self) -> HashMap<&str, (usize, usize)> {
        let mut places = HashMap::new();
        for (port, output) in self.outputs.iter().enumerate() {
            for (ring, state) in output.rings.iter().enumerate() {
                if let Some(spec) = &state.spec {
                    places.insert(spec.name.as_str(), (port, ring));
                }
            }
        }
        places
    }

    /// One round over all ports of this worker: what may leave leaves, what has come in is queued.
    /// `receives` is false while the switch drains.
    pub fn poll(&mut self, now: Instant, receives: bool) -> Activity {
        self.now = now;
        if now >= self.tick_at {
            self.tick(now);
        }
        if self.tap.poll() {
            self.find_captured();
        }
        let mut frames = 0;
        let mut next: Next = Next::Never;
        for place in 0..self.mine.len() {
            let port = self.mine[place];
            let (sent, port_next) = self.send(now, port);
            frames += sent;
            next = match (next, port_next) {
                (Next::Now, _) | (_, Next::Now) => Next::Now,
                (next, Next::At(at)) => next.or(Some(at)),
                (next, Next::Never) => next,
            };
        }
        if receives {
            for place in 0..self.mine.len() {
                frames += self.receive(now, self.mine[place]);
            }
        }
        if self.lanes.is_some() {
            frames += self.receive_messages(now);
        }
        if self.send_all_passing(now) {
            next = Next::Now;
        }
        let pause_at = if self.sends_pauses { self.send_pauses(now) } else { None };
        for place in 0..self.mine.len() {
            self.driver.flush(self.mine[place]);
        }
        self.rounds += 1;
        self.busy_rounds += u64::from(frames > 0);
        let next = match next.or(pause_at) {
            Next::Now => Some(now),
            Next::At(at) => Some(at),
            // What has just been queued may leave at once.
            Next::Never if frames > 0 => Some(now),
            Next::Never => None,
        };
        Activity { frames, next }
    }

    #[cold]
    fn tick(&mut self, now: Instant) {
        self.tick_at = now + AGE_EVERY;
        let (mine, lanes) = (&self.mine, &mut self.lanes);
        self.stations.age(
            now,
            |port| mine.contains(&port),
            |station| {
                if let Some(lanes) = lanes {
                    lanes.tell_all(Message::Forgotten { station });
                }
            },
        );
        if let Some(m21) = &mut self.m21 {
            m21.expire(now, &self.mine);
        }
        if now >= self.sample_at {
            self.sample_at = now + SAMPLE_EVERY;
            for &port in &self.mine {
                let held = self.memory.output(port).frames;
                self.outputs[port].sample(held);
                self.outputs[port].free_drained();
            }
        }
        if now >= self.link_at {
            self.link_at = now + LINK_EVERY;
            for place in 0..self.mine.len() {
                let port = self.mine[place];
                let is_up = self.driver.is_up(port);
                if self.inputs[port].is_up && !is_up {
                    self.stations.flush(Some(port));
                    self.tell_all(Message::Down { port: port as u16 });
                }
                self.inputs[port].is_up = is_up;
            }
        }
        if now >= self.period_at {
            self.period_at = now + PERIOD;
            for &port in &self.mine {
                let held = self.memory.output(port);
                self.outputs[port].end_period((held.frames_max, held.bytes_max));
            }
            self.memory.reset_marks();
        }
    }

    /// Throws away what is still queued, and counts it: the time to drain is over.
    pub fn abandon(&mut self) -> u64 {
        let mut abandoned = 0;
        for place in 0..self.mine.len() {
            let port = self.mine[place];
            let out = &mut self.outputs[port];
            let mut rest: Vec<Received<D::Handle>> = std::mem::take(&mut out.stash);
            for ring in 0..out.queue.rings_len() {
                // A ring that has no turn is emptied without giving it one again after each frame.
                out.queue.pause(ring);
                while let Some((frame, held)) = out.queue.take(out.clock, ring) {
                    if ring == PLAIN {
                        self.memory.depart(out.clock, held.input.into(), port, frame.bytes);
                    }
                    rest.push(Received { handle: held.handle, bytes: frame.bytes });
                }
                out.queue.resume(out.clock, ring);
            }
            if let Some(way) = &mut out.impairment {
                while let Some(frame) = way.take(Instant::FAR_FUTURE) {
                    rest.push(frame);
                }
            }
            abandoned += rest.len() as u64;
            for frame in rest {
                self.drop_in(port, frame, Cause::Stopped);
            }
        }
        abandoned
    }
}
