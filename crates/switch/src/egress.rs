//! Into queues, and from queues to a port.

use fanin_queueing::{Ecn, Frame, Verdict};
use fanin_units::{Duration, Instant};

use crate::capture::Passing;
use crate::classify::{Action, Key};
use crate::driver::{Driver, Received};
use crate::frame::{Ethernet, Network, mark_congestion};
use crate::impair::Fate;
use crate::output::{Held, Next, PLAIN};
use crate::prefetch::{CACHE_LINE, prefetch};
use crate::snapshot::Cause;
use crate::switch::{BURST, ROOM_MIN, Switch};

/// While a neighbour is paused for what other workers hold, they are looked at so often.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// A frame that leaves through an output here, on its way to a queue there. A burst of them passes one stage after the other,
/// so that what the next stage reads of each is on its way to the cache meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<H> {
    pub(crate) frame: Received<H>,
    pub(crate) output: u16,
    pub(crate) input: u16,
    pub(crate) key: Key,
    /// Where its rule is looked for first.
    pub(crate) place: u32,
    /// Its queue, once it is chosen; [`GONE`] where it goes no further.
    pub(crate) ring: u32,
    ecn: Ecn,
    /// Whether nothing but its ring has to be asked.
    is_simple: bool,
}

const GONE: u32 = u32::MAX;
/// The states of so many rings, 128 bytes each, are in the second cache anyway, and asking for their descriptors costs more than
/// it gives.
pub(crate) const RINGS_NEAR: usize = 8192;

impl<H: Default> Default for Bound<H> {
    fn default() -> Self {
        let frame = Received { handle: H::default(), bytes: 0 };
        Self {
            frame,
            output: 0,
            input: 0,
            key: Key::default(),
            place: 0,
            ring: GONE,
            ecn: Ecn::NotCapable,
            is_simple: false,
        }
    }
}

impl<D: Driver> Switch<D> {
    /// Puts a frame behind those that are bound for their queues.
    pub(crate) fn bind(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        frame: Received<D::Handle>,
        ethernet: &Ethernet,
    ) {
        // A flood may be wider than a burst.
        if self.bound_len == self.bound.len() {
            self.put_bound(now);
        }
        let head = self.driver.head(frame.handle);
        let bound = &mut self.bound[self.bound_len];
        bound.key.read(input, vlan, head, ethernet, self.depth);
        (bound.frame, bound.output, bound.input) = (frame, output as u16, input as u16);
        bound.place = self.outputs[output].classifier.first_place(&bound.key);
        self.bound_len += 1;
    }

    /// Puts every frame that is bound for a queue into it, in their order.
    #[inline]
    pub(crate) fn put_bound(&mut self, now: Instant) {
        let len = std::mem::take(&mut self.bound_len);
        let mut bound = std::mem::take(&mut self.bound);
        for one in &mut bound[..len] {
            self.choose(now, one);
        }
        // Nothing is taken from packet memory between here and the last of them.
        let is_simple = self.driver.room() >= ROOM_MIN && !self.tap.is_active() && !self.sends_pauses;
        let may_pass = self.lets_pass();
        if self.has_many_rings {
            // Where a descriptor goes is known once its ring's state has come, which was asked for long ago.
            for one in bound[..len].iter().filter(|one| one.ring != GONE) {
                prefetch(self.outputs[usize::from(one.output)].queue.arrival_address(one.ring as usize));
            }
        }
        for one in &bound[..len] {
            let ring = one.ring as usize;
            if !is_simple || !one.is_simple || ring == PLAIN {
                if !may_pass || !one.is_simple || !self.pass_bound(now, one) {
                    self.put(now, one);
                }
                continue;
            }
            let held = Held { handle: one.frame.handle, input: one.input };
            let queue = &mut self.outputs[usize::from(one.output)].queue;
            match queue.arrive_unless_passing(now, ring, one.frame.bytes, held) {
                Some(Verdict::Accepted { .. }) => {}
                Some(Verdict::Dropped(_)) => self.driver.free(one.frame),
                None => {
                    if !self.pass_bound(now, one) {
                        self.put(now, one);
                    }
                }
            }
        }
        self.bound = bound;
    }

    /// Chooses a frame's queue at its output, which is then on its way to the cache.
    #[inline(always)]
    fn choose(&mut self, now: Instant, bound: &mut Bound<D::Handle>) {
        let output = usize::from(bound.output);
        if self.m21.is_some() {
            self.count_flow(now, bound.input.into(), output, bound.frame);
        }
        let out = &self.outputs[output];
        let mut ring = PLAIN;
        if let Some(found) = out.classifier.classify(&bound.key, bound.place) {
            self.rule_tallies[found.rule()].add(bound.frame.bytes);
            match found.action() {
                Action::Ring(number) => ring = number as usize,
                Action::Drop => {
                    (bound.ring, bound.is_simple) = (GONE, false);
                    return self.drop_bound(bound, Cause::Rule);
                }
            }
        }
        bound.ring = ring as u32;
        bound.is_simple = !out.marks;
        if out.marks {
            bound.ecn = self.ecn(bound.frame);
        }
        let state = out.queue.address(ring);
        prefetch(state);
        prefetch(state.wrapping_add(CACHE_LINE));
    }

    /// Drops a frame that was bound for a queue. What comes from another worker's port is on the books of ours.
    #[cold]
    #[inline(never)]
    fn drop_bound(&mut self, bound: &Bound<D::Handle>, cause: Cause) {
        let (input, output) = (usize::from(bound.input), usize::from(bound.output));
        let is_foreign = !self.mine.contains(&input);
        self.drop_in(if is_foreign { output } else { input }, bound.frame, cause);
    }

    /// The stage of M21TCP.
    #[cold]
    #[inline(never)]
    fn count_flow(&mut self, now: Instant, input: usize, output: usize, frame: Received<D::Handle>) {
        let head = self.driver.head_mut(frame.handle);
        if let (Some(m21), Some(ethernet)) = (&mut self.m21, Ethernet::parse(head)) {
            m21.handle_frame(now, input, output, head, frame.bytes, &ethernet);
        }
    }

    #[inline(never)]
    fn ecn(&self, frame: Received<D::Handle>) -> Ecn {
        let head = self.driver.head(frame.handle);
        match Ethernet::parse(head).map_or(0, |ethernet| Network::parse(head, &ethernet).ecn) {
            0 => Ecn::NotCapable,
            3 => Ecn::Congestion,
            _ => Ecn::Capable,
        }
    }

    /// Puts a frame into the queue that was chosen for it.
    #[inline(never)]
    fn put(&mut self, now: Instant, bound: &Bound<D::Handle>) {
        let &Bound { frame, ecn, ring, output, input, .. } = bound;
        if ring == GONE {
            return;
        }
        let (ring, output) = (ring as usize, usize::from(output));
        if self.driver.room() < ROOM_MIN {
            return self.drop_bound(bound, Cause::Memory);
        }
        let out = &mut self.outputs[output];
        // Where nothing marks nobody has looked for a frame's bits.
        let descriptor = Frame { bytes: frame.bytes, ecn: if out.marks { ecn } else { Ecn::NotCapable } };
        let random = &mut self.random;
        if ring == PLAIN
            && let Verdict::Dropped(_) =
                self.memory.arrive(now, input.into(), output, descriptor, || random.next_u32())
        {
            return self.driver.free(frame);
        }
        let held = Held { handle: frame.handle, input };
        match out.queue.arrive(now, ring, descriptor, held, || random.next_u32()) {
            Verdict::Accepted { marked } => {
                if marked && let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) {
                    mark_congestion(self.driver.head_mut(frame.handle), &ethernet);
                }
                if self.tap.is_active() {
                    self.tap.copy(now, Passing::Ring(output, ring), frame, &self.driver);
                }
                if self.sends_pauses {
                    self.hold(input.into(), frame.bytes);
                }
            }
            Verdict::Dropped(limit) => {
                if ring == PLAIN {
                    self.memory.withdraw(input.into(), output, frame.bytes, limit);
                }
                self.driver.free(frame);
            }
        }
    }

    /// Lets frames leave by one port. Returns how many the driver took, and when there is more.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, port: usize) -> (usize, Next) {
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
        let mut release = |ring: usize, bytes: u32, input: u16| {
            if ring == PLAIN {
                memory.depart(now, input.into(), port, bytes);
            }
            if sends_pauses {
                let held = &mut held_by_input[usize::from(input)];
                *held = held.wrapping_sub(bytes.into());
            }
        };
        let mut next;
        if let Some(mut way) = out.impairment.take() {
            let (driver, scratch, drops) =
                (&mut self.driver, &mut self.scratch, &mut self.inputs[port].drops);
            next = out.poll(now, BURST, |ring, bytes, held| {
                release(ring, bytes, held.input);
                let frame = Received { handle: held.handle, bytes };
                match way.draw(now) {
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
            next = out.poll(now, BURST, |ring, bytes, held| {
                batch.push(Received { handle: held.handle, bytes });
                if ring == PLAIN || sends_pauses {
                    release(ring, bytes, held.input);
                }
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
    pub(crate) fn give(&mut self, port: usize) -> usize {
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
    pub(crate) fn handle_pause(&mut self, now: Instant, port: usize, quanta: u16) {
        if let Some(until) = self.inputs[port].pauser.handle_frame(now, quanta) {
            let out = &mut self.outputs[port];
            out.paused_until = until;
            // Also where it ends earlier than an earlier frame said: what is queued goes on from then.
            out.queue.set_held_until(until);
        }
    }

    /// A port's frame is held from now on: queued here, or handed to another worker.
    #[inline]
    pub(crate) fn hold(&mut self, input: usize, bytes: u32) {
        let held = &mut self.held_by_input[input];
        *held = held.wrapping_add(bytes.into());
    }

    /// A port's frame is not held here any more. Where another worker holds it, the difference of both is what counts.
    #[inline]
    pub(crate) fn let_go(&mut self, input: usize, bytes: u32) {
        let held = &mut self.held_by_input[input];
        *held = held.wrapping_sub(bytes.into());
    }

    /// Sends the PAUSE frames that are due. Returns when the next one may be.
    pub(crate) fn send_pauses(&mut self, now: Instant) -> Option<Instant> {
        let has_others = self.lanes.is_some();
        if has_others {
            self.shared.publish(self.worker, &self.held_by_input);
        }
        let mut next: Option<Instant> = None;
        for place in 0..self.mine.len() {
            let port = self.mine[place];
            let own = self.held_by_input[port];
            let held = if has_others { self.shared.held(self.worker, own, port) } else { own };
            let pauser = &mut self.inputs[port].pauser;
            if let Some(frame) = pauser.poll_frame(now, held)
                && let Some(handle) = self.driver.make(&frame)
            {
                let frame = Received { handle, bytes: frame.len() as u32 };
                if self.driver.transmit(port, &[frame]) == 1 {
                    pauser.sent(now);
                } else {
                    self.driver.free(frame);
                }
            }
            // Others let go of what is held without a word to us, and a neighbour waits to go on.
            let look = (has_others && pauser.is_paused()).then(|| now + LOOK_EVERY);
            next = [next, pauser.next_at(now), look].into_iter().flatten().min();
        }
        next
    }
}
