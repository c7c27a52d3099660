//! Past empty queues: a frame that finds nothing in its way goes to its output's port in the round in which it has come in.
//!
//! Frames are collected by output and handed over together, in their order. What a port has no room for goes where everything goes
//! that has left a queue and waits for its port: before what is queued, and as long as it waits nothing passes.

use fanin_queueing::Count;
use fanin_units::Instant;

use crate::address::Mac;
use crate::driver::{Driver, Received};
use crate::egress::Bound;
use crate::frame::{ETHERNET_BYTES, Ethernet, TAG_BYTES};
use crate::ingress::way_of;
use crate::output::{Output, PLAIN};
use crate::switch::{BURST, ROOM_MIN, Switch};

/// An output's frames that pass its queues in this round.
#[derive(Debug)]
pub(crate) struct Passing<H> {
    frames: Vec<Received<H>>,
    /// Those of them that nothing has counted yet: all of the plain queue.
    uncounted: Count,
    /// The longest frame that may pass the plain queue, found in this burst.
    longest: u32,
    burst: u64,
}

impl<H> Default for Passing<H> {
    fn default() -> Self {
        Self { frames: Vec::with_capacity(BURST), uncounted: Count::default(), longest: 0, burst: 0 }
    }
}

impl<H: Copy + Default> Output<H> {
    /// Whether what comes for a queue that holds nothing finds nobody before it here, and nothing is done to it.
    #[inline]
    fn is_clear(&self, now: Instant) -> bool {
        self.queue.is_clear(now)
            && self.stash.is_empty()
            && self.impairment.is_none()
            && self.paused_until <= now
            && !self.marks
    }
}

impl<D: Driver> Switch<D> {
    /// Whether frames may pass at all in this burst.
    #[inline]
    pub(crate) fn lets_pass(&self) -> bool {
        self.driver.room() >= ROOM_MIN && !self.tap.is_active()
    }

    /// Lets frames pass as nearly all are where there are no rules: untagged, from one station to another that is known, whose output
    /// has no rules and an empty plain queue. Returns how many there are before one that is not. A frame between the same two
    /// stations as the one before it goes where that went.
    #[inline(never)]
    pub(crate) fn pass_plain(
        &mut self,
        now: Instant,
        port: usize,
        frames: &[Received<D::Handle>],
        heard: &mut u64,
    ) -> usize {
        if !self.has_free_outputs
            || self.has_vlans
            || self.m21.is_some()
            || self.inputs[port].table != 0
            || !self.lets_pass()
        {
            return 0;
        }
        self.burst += 1;
        let reflects = self.inputs[port].reflects;
        let bytes_max = self.payload_max + (ETHERNET_BYTES + TAG_BYTES) as u32;
        let (mut passed, mut previous, mut output, mut longest) = (0, [0; 2], 0, 0);
        for &frame in frames {
            let Some(ethernet) = Ethernet::parse_untagged(self.driver.head(frame.handle)) else { break };
            let way = [ethernet.destination, ethernet.source];
            if way != previous {
                // Addresses that only bridges may hear are among the groups.
                if (ethernet.destination | ethernet.source) & Mac::GROUP != 0 {
                    break;
                }
                let Self { stations, lanes, .. } = &mut *self;
                let Some(found) = way_of(stations, lanes, now, port, reflects, &ethernet, heard) else {
                    break;
                };
                if found != output || longest == 0 {
                    longest = self.longest_plain(now, port, found).min(bytes_max);
                    output = found;
                }
                previous = way;
            }
            if frame.bytes > longest {
                break;
            }
            let passing = &mut self.outputs[output].passing;
            passing.uncounted.add(frame.bytes);
            if passing.frames.is_empty() {
                self.passing.push(output as u16);
            }
            passing.frames.push(frame);
            passed += 1;
            if passing.frames.len() == BURST {
                self.send_passing(now, output);
                (previous, longest) = ([0; 2], 0);
            }
        }
        passed
    }

    /// The longest frame that may pass the plain queue of an output without rules; 0 where none may.
    #[inline]
    fn longest_plain(&mut self, now: Instant, input: usize, output: usize) -> u32 {
        let passing = &self.outputs[output].passing;
        if passing.burst == self.burst {
            passing.longest
        } else {
            self.find_longest_plain(now, input, output)
        }
    }

    #[inline(never)]
    fn find_longest_plain(&mut self, now: Instant, input: usize, output: usize) -> u32 {
        let is_mine = self.lanes.as_ref().is_none_or(|lanes| lanes.owner(output) == self.worker);
        let out = &self.outputs[output];
        let longest = if is_mine && out.classifier.is_empty() && out.is_clear(now) {
            out.queue.passable(PLAIN).min(self.memory.room(input, output))
        } else {
            0
        };
        let passing = &mut self.outputs[output].passing;
        (passing.longest, passing.burst) = (longest, self.burst);
        longest
    }

    /// Lets a frame pass whose queue is chosen and holds nothing, where nothing else is in its way.
    #[inline(never)]
    pub(crate) fn pass_bound(&mut self, now: Instant, bound: &Bound<D::Handle>) -> bool {
        let (output, ring, bytes) = (usize::from(bound.output), bound.ring as usize, bound.frame.bytes);
        let out = &mut self.outputs[output];
        if !out.is_clear(now) {
            return false;
        }
        if ring == PLAIN && bytes > self.memory.room(bound.input.into(), output) {
            return false;
        }
        if !out.queue.pass(now, ring, bytes) {
            return false;
        }
        if ring == PLAIN {
            self.memory.pass(now, output, Count { frames: 1, bytes: bytes.into() });
        }
        if out.passing.frames.is_empty() {
            self.passing.push(output as u16);
        }
        out.passing.frames.push(bound.frame);
        if out.passing.frames.len() == BURST {
            self.send_passing(now, output);
        }
        true
    }

    /// Hands over all that passes. Returns whether a port had no room for some of it.
    #[inline]
    pub(crate) fn send_all_passing(&mut self, now: Instant) -> bool {
        let mut is_left = false;
        while let Some(output) = self.passing.pop() {
            self.send_passing(now, output.into());
            is_left |= !self.outputs[usize::from(output)].stash.is_empty();
        }
        is_left
    }

    /// Hands over what passes an output.
    fn send_passing(&mut self, now: Instant, output: usize) {
        let out = &mut self.outputs[output];
        let uncounted = std::mem::take(&mut out.passing.uncounted);
        if uncounted.frames > 0 {
            out.queue.passed(PLAIN, uncounted);
            self.memory.pass(now, output, uncounted);
        }
        let frames = &mut out.passing.frames;
        let taken = if frames.is_empty() { 0 } else { self.driver.transmit(output, frames) };
        let sent = &mut self.inputs[output].sent;
        sent.frames += taken as u64;
        sent.bytes += frames[..taken].iter().map(|frame| u64::from(frame.bytes)).sum::<u64>();
        if taken < frames.len() {
            // Nothing was there when the first of them came, and nothing has passed since.
            out.stash.extend(frames[taken..].iter().rev());
        }
        frames.clear();
        // What may pass is to be found out again.
        out.passing.burst = 0;
    }
}
