//! The data path: from a port to queues, from queues to a port. One worker's part of it, without threads and clocks.

use fanin_queueing::{Ecn, Frame, Memory, TokenBucket, Verdict};
use fanin_scenario::Errors;
use fanin_units::{Duration, Instant};

use crate::address::Mac;
use crate::capture::{Captures, Passing, Tap};
use crate::classify::{Action, Classifier, Key};
use crate::config::{Config, PortSpec, StormSpec};
use crate::driver::{Driver, Received};
use crate::frame::{ETHERTYPE_VLAN, Ethernet, Network, TAG_BYTES, mark_congestion};
use crate::impair::Fate;
use crate::lanes::{Lanes, Message};
use crate::m21::M21;
use crate::output::{Held, Next, Output, PLAIN, Reserve};
use crate::pause::Pauser;
use crate::random::Random;
use crate::snapshot::{Cause, Drops, Tally};
use crate::stations::{Learned, Stations};

/// Frames taken from a port, and given to one, in a round.
pub const BURST: usize = 64;
/// Free buffers that are kept for drivers: with fewer, frames are dropped rather than the drivers starved.
const ROOM_MIN: usize = 2 * BURST;
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
    untagged: u16,
    tagged: Vec<u16>,
    pub(crate) is_up: bool,
    pub(crate) floods: bool,
    /// Everything goes back by this port.
    reflects: bool,
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

    fn admit(&mut self, now: Instant, destination: Mac, bytes: u32) -> bool {
        let bucket = match destination {
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
            pauser: Pauser::new(spec, index),
            sent: Tally::default(),
        }
    }

    fn carries(&self, vlan: u16) -> bool {
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
    pub(crate) memory: Memory,
    /// What is queued of each port's frames, where PAUSE frames are sent.
    held_by_input: Vec<u64>,
    pub(crate) sends_pauses: bool,
    pub(crate) m21: Option<M21>,
    pub(crate) stations: Stations,
    pub(crate) has_vlans: bool,
    payload_max: u32,
    pub(crate) rule_tallies: Vec<Tally>,
    pub(crate) random: Random,
    pub(crate) reserve: Reserve,
    received: Vec<Received<D::Handle>>,
    batch: Vec<Received<D::Handle>>,
    scratch: Vec<u8>,
    tick_at: Instant,
    sample_at: Instant,
    link_at: Instant,
    period_at: Instant,
    pub(crate) rounds: u64,
    pub(crate) busy_rounds: u64,
    pub(crate) now: Instant,
    tap: Tap,
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
        Self::for_worker(config.checked()?, driver, 0)
    }

    pub(crate) fn for_worker(config: Config, driver: D, worker: usize) -> Result<Self, Errors> {
        assert_eq!(config.port.len(), driver.ports_len(), "a driver for the ports of another configuration");
        let wrong = |key: &str, error: &dyn std::fmt::Display| {
            let document = fanin_scenario::Document::parse("configuration", "")?;
            Err(Errors::from(vec![document.problem(key, error.to_string())]))
        };
        let memory = match Memory::new(&config.layout()) {
            Ok(memory) => memory,
            Err(error) => return wrong("buffering", &error),
        };
        let mut outputs = Vec::new();
        for (index, spec) in config.port.iter().enumerate() {
            let mut output = match Output::new(spec) {
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
            m21: M21::new(&config),
            stations: Stations::new(spec.mac_entries, spec.mac_age, spec.mac_hold),
            has_vlans,
            payload_max: spec.mtu.get() as u32,
            rule_tallies: vec![Tally::default(); config.rule.len()],
            random: Random::new(spec.seed, 0),
            reserve: Reserve::default(),
            received: Vec::with_capacity(BURST),
            batch: Vec::with_capacity(BURST),
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

    pub(crate) fn rebuild_rules(&mut self) {
        for output in &mut self.outputs {
            let rules = self.config.rule.iter().enumerate().filter_map(|(number, rule)| {
                let action = match &rule.ring {
                    None => Action::Drop,
                    Some(ring) => Action::Ring(output.ring(ring)? as u32),
                };
                let input = rule.input.as_ref().and_then(|input| self.config.port_index(input));
                Some((number as u32, rule, action, input))
            });
            output.classifier = Classifier::new(rules);
        }
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
        if self.sends_pauses {
            self.send_pauses(now);
        }
        for place in 0..self.mine.len() {
            self.driver.flush(self.mine[place]);
        }
        self.rounds += 1;
        self.busy_rounds += u64::from(frames > 0);
        let next = match next {
            Next::Now => Some(now),
            Next::At(at) => Some(at),
            // What has just been queued may leave at once.
            Next::Never if frames > 0 => Some(now),
            Next::Never => None,
        };
        Activity { frames, next }
    }

    #[inline]
    fn receive(&mut self, now: Instant, port: usize) -> usize {
        let mut received = std::mem::take(&mut self.received);
        received.clear();
        self.driver.receive(port, BURST, &mut received);
        if self.tap.is_active() {
            for &frame in &received {
                self.tap.copy(now, Passing::Port(port), frame, &self.driver);
            }
        }
        for &frame in &received {
            self.forward(now, port, frame);
        }
        self.received = received;
        self.received.len()
    }

    #[inline]
    fn drop_in(&mut self, port: usize, frame: Received<D::Handle>, cause: Cause) {
        self.inputs[port].drops.add(cause, frame.bytes);
        self.driver.free(frame);
    }

    /// Decides where a frame goes.
    #[inline]
    fn forward(&mut self, now: Instant, input: usize, frame: Received<D::Handle>) {
        let port = &mut self.inputs[input];
        port.received.add(frame.bytes);
        let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) else {
            return self.drop_in(input, frame, Cause::Malformed);
        };
        if ethernet.source.is_group() {
            return self.drop_in(input, frame, Cause::Malformed);
        }
        let vlan = if self.has_vlans {
            match ethernet.tag.map_or(0, |tag| tag & 0xfff) {
                0 if port.untagged != 0 => port.untagged,
                vlan if vlan != 0 && port.tagged.contains(&vlan) => vlan,
                _ => return self.drop_in(input, frame, Cause::Vlan),
            }
        } else {
            0
        };
        if ethernet.destination.is_link_local() {
            if let Some(quanta) = crate::frame::pause_quanta(self.driver.head(frame.handle), &ethernet) {
                self.handle_pause(now, input, quanta);
            }
            return self.drop_in(input, frame, Cause::Filtered);
        }
        // A second tag does not count.
        if frame.bytes - ethernet.payload as u32 > self.payload_max + TAG_BYTES as u32 {
            return self.drop_in(input, frame, Cause::TooLong);
        }
        if self.inputs[input].reflects {
            return self.hand_over(now, input, input, vlan, frame, &ethernet);
        }
        match self.stations.learn(now, ethernet.source, vlan, input) {
            Learned::Known | Learned::Full => {}
            Learned::New => {
                self.tell_all(Message::Learned { mac: ethernet.source, vlan, port: input as u16 })
            }
            Learned::Elsewhere => return self.drop_in(input, frame, Cause::Loop),
        }
        if ethernet.destination.is_group() {
            return self.flood(now, input, vlan, frame, &ethernet);
        }
        match self.stations.find(ethernet.destination, vlan) {
            Some(output) if output == input => self.drop_in(input, frame, Cause::Filtered),
            Some(output) => self.hand_over(now, input, output, vlan, frame, &ethernet),
            None => self.flood(now, input, vlan, frame, &ethernet),
        }
    }

    /// Sends a frame to every port that it may reach.
    #[cold]
    fn flood(
        &mut self,
        now: Instant,
        input: usize,
        vlan: u16,
        frame: Received<D::Handle>,
        ethernet: &Ethernet,
    ) {
        if !self.inputs[input].storm.admit(now, ethernet.destination, frame.bytes) {
            return self.drop_in(input, frame, Cause::Storm);
        }
        let is_unknown = !ethernet.destination.is_group();
        let reaches = |(port, other): (usize, &Input)| {
            let carries = !self.has_vlans || other.carries(vlan);
            (port != input && other.is_up && carries && !other.reflects && (other.floods || !is_unknown))
                .then_some(port)
        };
        let outputs: Vec<usize> = self.inputs.iter().enumerate().filter_map(reaches).collect();
        let Some((&last, others)) = outputs.split_last() else {
            return self.drop_in(input, frame, Cause::NoPort);
        };
        self.inputs[input].flooded.add(frame.bytes);
        let mut bytes = std::mem::take(&mut self.scratch);
        for &output in others {
            bytes.clear();
            self.driver.copy_out(frame, &mut bytes);
            let copy = if self.driver.room() > ROOM_MIN { self.driver.make(&bytes) } else { None };
            match copy {
                Some(handle) => {
                    self.hand_over(now, input, output, vlan, Received { handle, ..frame }, ethernet);
                }
                None => self.inputs[input].drops.add(Cause::Memory, frame.bytes),
            }
        }
        self.scratch = bytes;
        self.hand_over(now, input, last, vlan, frame, ethernet);
    }

    /// Gives a frame to the worker of its output.
    #[inline]
    fn hand_over(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        frame: Received<D::Handle>,
        ethernet: &Ethernet,
    ) {
        if self.has_vlans {
            let (frame, ethernet) = match self.retag(output, vlan, frame, *ethernet) {
                Ok(changed) => changed,
                Err(cause) => return self.drop_in(input, frame, cause),
            };
            return self.hand_to(now, input, output, vlan, frame, &ethernet);
        }
        self.hand_to(now, input, output, vlan, frame, ethernet);
    }

    #[inline]
    fn hand_to(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        frame: Received<D::Handle>,
        ethernet: &Ethernet,
    ) {
        if let Some(lanes) = &mut self.lanes {
            let owner = lanes.owner(output);
            if owner != self.worker {
                let message = Message::Frame { input: input as u16, output: output as u16, vlan, frame };
                if lanes.send_frame(owner, message).is_err() {
                    self.drop_in(input, frame, Cause::Handover);
                }
                return;
            }
        }
        self.enqueue(now, input, output, vlan, frame, ethernet);
    }

    fn tell_all(&mut self, message: Message<D::Handle>) {
        if let Some(lanes) = &mut self.lanes {
            lanes.tell_all(message);
        }
    }

    /// What other workers have sent since the last round, and what they get from us.
    fn receive_messages(&mut self, now: Instant) -> usize {
        let Some(mut lanes) = self.lanes.take() else { return 0 };
        let mut frames = 0;
        for other in 0..lanes.workers() {
            for _ in 0..4 * BURST {
                let Some(message) = lanes.take(other) else { break };
                match message {
                    Message::Frame { input, output, vlan, frame } => {
                        frames += 1;
                        let (input, output) = (input.into(), output.into());
                        let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) else {
                            self.drop_in(input, frame, Cause::Malformed);
                            continue;
                        };
                        // The station speaks there, whatever a loop brings back here.
                        self.stations.set(now, ethernet.source, vlan, input);
                        self.enqueue(now, input, output, vlan, frame, &ethernet);
                    }
                    Message::Learned { mac, vlan, port } => self.stations.set(now, mac, vlan, port.into()),
                    Message::Forgotten { mac, vlan } => {
                        self.stations.remove(mac, vlan);
                    }
                    Message::Down { port } => {
                        self.stations.flush(Some(port.into()));
                    }
                    Message::Back(handle) => self.driver.handle_stray(handle),
                }
            }
            while let Some(handle) = self.driver.poll_stray(other) {
                lanes.tell(other, Message::Back(handle));
            }
        }
        lanes.flush();
        self.lanes = Some(lanes);
        frames
    }

    /// Puts on or takes off a frame's tag as the output wants it.
    fn retag(
        &mut self,
        output: usize,
        vlan: u16,
        mut frame: Received<D::Handle>,
        mut ethernet: Ethernet,
    ) -> Result<(Received<D::Handle>, Ethernet), Cause> {
        const MACS: usize = 12;
        let port = &self.inputs[output];
        if !port.carries(vlan) {
            return Err(Cause::Vlan);
        }
        let tag = TAG_BYTES as u16;
        match (ethernet.tag, port.untagged == vlan) {
            (Some(_), true) => {
                let head = self.driver.head_mut(frame.handle);
                head.copy_within(..MACS, TAG_BYTES);
                self.driver.cut_front(&mut frame.handle, tag);
                frame.bytes -= u32::from(tag);
                (ethernet.tag, ethernet.payload) = (None, ethernet.payload - TAG_BYTES);
            }
            (None, false) => {
                if !self.driver.grow_front(&mut frame.handle, tag) {
                    return Err(Cause::Memory);
                }
                frame.bytes += u32::from(tag);
                let head = self.driver.head_mut(frame.handle);
                head.copy_within(TAG_BYTES..TAG_BYTES + MACS, 0);
                head[MACS..MACS + 2].copy_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
                head[MACS + 2..MACS + 4].copy_from_slice(&vlan.to_be_bytes());
                (ethernet.tag, ethernet.payload) = (Some(vlan), ethernet.payload + TAG_BYTES);
            }
            (Some(tci), false) if tci & 0xfff != vlan => {
                // A priority tag (VLAN 0) gets the number of the VLAN it belongs to here.
                let tci = tci & 0xf000 | vlan;
                self.driver.head_mut(frame.handle)[MACS + 2..MACS + 4].copy_from_slice(&tci.to_be_bytes());
                ethernet.tag = Some(tci);
            }
            _ => {}
        }
        Ok((frame, ethernet))
    }

    /// Puts a frame into a queue of its output.
    #[inline]
    fn enqueue(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        frame: Received<D::Handle>,
        ethernet: &Ethernet,
    ) {
        // What comes from another worker's port is on the books of ours.
        let blame = if self.lanes.is_some() && !self.mine.contains(&input) { output } else { input };
        if let Some(m21) = &mut self.m21 {
            let head = self.driver.head_mut(frame.handle);
            m21.handle_frame(now, input, output, head, frame.bytes, ethernet);
        }
        let out = &mut self.outputs[output];
        let mut network = None;
        let head = self.driver.head(frame.handle);
        let mut ring = PLAIN;
        if !out.classifier.is_empty() {
            let parsed = if out.classifier.needs_network() {
                *network.insert(Network::parse(head, ethernet))
            } else {
                Network::default()
            };
            if let Some(found) = out.classifier.classify(&Key::new(input, vlan, ethernet, &parsed)) {
                self.rule_tallies[found.rule as usize].add(frame.bytes);
                match found.action {
                    Action::Ring(number) => ring = number as usize,
                    Action::Drop => return self.drop_in(blame, frame, Cause::Rule),
                }
            }
        }
        let ecn = if out.marks {
            match network.unwrap_or_else(|| Network::parse(head, ethernet)).ecn {
                0 => Ecn::NotCapable,
                3 => Ecn::Congestion,
                _ => Ecn::Capable,
            }
        } else {
            Ecn::NotCapable
        };
        if self.driver.room() < ROOM_MIN {
            return self.drop_in(blame, frame, Cause::Memory);
        }
        // The queues may still have to make good for lost time: then this frame comes after what was due before it.
        let at = out.time().min(now);
        let descriptor = Frame { bytes: frame.bytes, ecn };
        let random = &mut self.random;
        if ring == PLAIN
            && let Verdict::Dropped(_) =
                self.memory.admit(at, input, output, descriptor, || random.next_u32())
        {
            return self.driver.free(frame);
        }
        let held = Held { handle: frame.handle, input: input as u16 };
        match out.queue.handle_arrival(at, ring, descriptor, held, || random.next_u32()) {
            Verdict::Accepted { marked } => {
                if marked {
                    mark_congestion(self.driver.head_mut(frame.handle), ethernet);
                }
                if self.tap.is_active() {
                    self.tap.copy(now, Passing::Ring(output, ring), frame, &self.driver);
                }
                if self.sends_pauses {
                    self.held_by_input[input] += u64::from(frame.bytes);
                }
            }
            Verdict::Dropped(limit) => {
                if ring == PLAIN {
                    self.memory.withdraw(input, output, frame.bytes, limit);
                }
                self.driver.free(frame);
            }
        }
    }

    /// Lets frames leave by one port. Returns how many the driver took, and when there is more.
    #[inline]
    fn send(&mut self, now: Instant, port: usize) -> (usize, Next) {
        let out = &mut self.outputs[port];
        if out.paused_until > now {
            out.clock = now;
            return (0, Next::At(out.paused_until));
        }
        if !out.stash.is_empty() {
            // What left the queues goes before anything else. A driver that is full is not waited for: it says nothing of
            // when it has room, and is asked again in the next round.
            self.batch.clear();
            self.batch.extend(out.stash.iter().rev());
            let taken = self.give(port);
            let out = &mut self.outputs[port];
            out.stash.truncate(out.stash.len() - taken);
            if !out.stash.is_empty() {
                return (taken, Next::Now);
            }
        }
        let out = &mut self.outputs[port];
        self.batch.clear();
        let (batch, memory, held_by_input) = (&mut self.batch, &mut self.memory, &mut self.held_by_input);
        let sends_pauses = self.sends_pauses;
        let mut release = |at: Instant, ring: usize, bytes: u32, input: u16| {
            if ring == PLAIN {
                memory.release(at, input.into(), port, bytes);
            }
            if sends_pauses {
                held_by_input[usize::from(input)] -= u64::from(bytes);
            }
        };
        let mut next;
        if let Some(mut way) = out.impairment.take() {
            let (driver, scratch, drops) =
                (&mut self.driver, &mut self.scratch, &mut self.inputs[port].drops);
            next = out.poll(now, BURST, |at, ring, bytes, held| {
                release(at, ring, bytes, held.input);
                let frame = Received { handle: held.handle, bytes };
                match way.draw(at) {
                    Fate::Lost => {
                        drops.add(Cause::Impairment, bytes);
                        driver.free(frame);
                    }
                    Fate::Comes { .. } if !way.has_room() => {
                        drops.add(Cause::ImpairmentLimit, bytes);
                        driver.free(frame);
                    }
                    Fate::Comes { at, twice } => {
                        way.put(at, frame);
                        if twice && way.has_room() && driver.room() > ROOM_MIN {
                            scratch.clear();
                            driver.copy_out(frame, scratch);
                            if let Some(handle) = driver.make(scratch) {
                                way.put(at, Received { handle, bytes });
                            }
                        }
                    }
                }
            });
            while batch.len() < BURST
                && let Some(frame) = way.take(now)
            {
                batch.push(frame);
            }
            next = next.or(way.next_at().map(|at| at.max(now)));
            out.impairment = Some(way);
        } else {
            next = out.poll(now, BURST, |at, ring, bytes, held| {
                release(at, ring, bytes, held.input);
                batch.push(Received { handle: held.handle, bytes });
            });
        }
        if self.batch.is_empty() {
            return (0, next);
        }
        let taken = self.give(port);
        if taken < self.batch.len() {
            // A driver takes what it has room for; the rest keeps its order, and its place before everything else.
            self.outputs[port].stash.extend(self.batch.drain(taken..).rev());
            next = Next::Now;
        }
        (taken, next)
    }

    /// Hands the batch to the driver.
    #[inline]
    fn give(&mut self, port: usize) -> usize {
        if self.tap.is_active() {
            self.tap.leaving(self.now, port, &self.batch, &self.driver);
        }
        let taken = self.driver.transmit(port, &self.batch);
        if self.tap.is_active() {
            self.tap.left(taken);
        }
        let sent = &mut self.inputs[port].sent;
        sent.frames += taken as u64;
        sent.bytes += self.batch[..taken].iter().map(|frame| u64::from(frame.bytes)).sum::<u64>();
        taken
    }

    #[cold]
    fn handle_pause(&mut self, now: Instant, port: usize, quanta: u16) {
        if let Some(until) = self.inputs[port].pauser.handle_frame(now, quanta) {
            self.outputs[port].paused_until = until;
        }
    }

    fn send_pauses(&mut self, now: Instant) {
        for place in 0..self.mine.len() {
            let port = self.mine[place];
            let Some(frame) = self.inputs[port].pauser.poll_frame(now, self.held_by_input[port]) else {
                continue;
            };
            let Some(handle) = self.driver.make(&frame) else { continue };
            let frame = Received { handle, bytes: frame.len() as u32 };
            if self.driver.transmit(port, &[frame]) == 1 {
                self.inputs[port].pauser.sent(now);
            } else {
                self.driver.free(frame);
            }
        }
    }

    #[cold]
    fn tick(&mut self, now: Instant) {
        self.tick_at = now + AGE_EVERY;
        let (mine, lanes) = (&self.mine, &mut self.lanes);
        self.stations.age(
            now,
            |port| mine.contains(&port),
            |mac, vlan| {
                if let Some(lanes) = lanes {
                    lanes.tell_all(Message::Forgotten { mac, vlan });
                }
            },
        );
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
                while let Some((frame, held)) = out.queue.take(out.clock, ring) {
                    if ring == PLAIN {
                        self.memory.release(out.clock, held.input.into(), port, frame.bytes);
                    }
                    rest.push(Received { handle: held.handle, bytes: frame.bytes });
                }
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
