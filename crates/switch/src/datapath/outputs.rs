//! All outputs of a switch with the memory of their plain queues: admission, queueing and departures.

use std::collections::HashMap;
use std::sync::Arc;

use fanin_queueing::{EcnCodepoint, Frame, NextDeparture, RingError, StoredFrame, Verdict};
use fanin_scenario::{Document, Errors};
use fanin_units::{Instant, Rate};

use crate::config::{Config, Ecn, EcnMode, RingSpec, SwitchSpec};
use crate::driver::{BURST, Received};
use crate::random::SplitMix64;
use crate::snapshot::QueueSnapshot;
use crate::workers::SharedCounts;

use super::buffers::Buffers;
use super::output::{DescriptorReserve, Output, PLAIN, QueuedFrame};
use super::pause::PauseControl;

/// A frame for an output of this worker, with its chosen queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagedFrame<H> {
    pub(super) frame: Received<H>,
    pub(super) input: u16,
    pub(super) output: u16,
    pub(super) ring: u32,
    pub(super) ecn: EcnCodepoint,
}

/// The result of offering a frame to an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// The frame passed an empty queue, and leaves in this round.
    CutThrough,
    /// As [`Self::CutThrough`], and the batch has reached the largest size for the driver.
    CutThroughFull,
    /// The frame is queued; with `marked`, its congestion bits are set later.
    Queued { marked: bool },
    /// A limit refused the frame, and counted it.
    Refused,
}

/// The outputs of a switch, by port.
#[derive(Debug)]
pub(super) struct Outputs<H> {
    outputs: Vec<Output<H>>,
    memory: Buffers,
    switch: SwitchSpec,
    reserve: DescriptorReserve,
    /// Random numbers for early marking and dropping.
    random: SplitMix64,
    /// Outputs with frames that passed empty queues in this round.
    with_cut_through: Vec<u16>,
    /// Number of the current check of the plain queues. It increases when earlier checks are no longer valid.
    check: u64,
    /// The input port of the current check. Other inputs may have less room.
    checked_input: usize,
}

impl<H: Copy + Default> Outputs<H> {
    /// Makes the outputs of a configuration, with its rings.
    ///
    /// # Errors
    /// If a rate, a buffer or a ring is out of range.
    pub(super) fn new(config: &Config, shared: &Arc<SharedCounts>) -> Result<Self, Errors> {
        let wrong = |key: &str, error: &dyn std::fmt::Display| -> Errors {
            match Document::parse("configuration", "") {
                Ok(document) => Errors::from(vec![document.problem(key, error.to_string())]),
                Err(errors) => errors,
            }
        };
        let switch = config.switch.clone();
        let mut memory = Buffers::new(config, shared).map_err(|error| wrong("switch.buffering", &error))?;
        let mut outputs = Vec::new();
        for (index, spec) in config.port.iter().enumerate() {
            let mut output = Output::new(spec).map_err(|error| wrong("port", &error))?;
            output.set_impairment(spec.impair, SplitMix64::new(config.switch.seed, 1 + index as u64));
            outputs.push(output);
            let aqm =
                spec.ecn.aqm(switch.full_packet(spec.rate)).map_err(|error| wrong("port.ecn", &error))?;
            memory.set_aqm(index, aqm);
        }
        let mut all = Self {
            outputs,
            memory,
            switch,
            reserve: DescriptorReserve::new(),
            random: SplitMix64::new(config.switch.seed, 0),
            with_cut_through: Vec::new(),
            check: 1,
            checked_input: 0,
        };
        for ring in &config.ring {
            if let Some(port) = config.port_index(&ring.port) {
                all.add_ring(port, ring).map_err(|error| wrong("ring", &error))?;
            }
        }
        Ok(all)
    }

    /// Returns the output of a port.
    #[inline]
    pub(super) fn output(&self, port: usize) -> &Output<H> {
        &self.outputs[port]
    }

    /// Returns the output of a port, for changes.
    #[inline]
    pub(super) fn output_mut(&mut self, port: usize) -> &mut Output<H> {
        &mut self.outputs[port]
    }

    /// Admits a frame to its chosen queue. With `may_cut_through` it may pass an empty queue.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        now: Instant,
        staged: &StagedFrame<H>,
        may_cut_through: bool,
    ) -> Admission {
        let (input, output, ring) =
            (usize::from(staged.input), usize::from(staged.output), staged.ring as usize);
        if may_cut_through {
            let passing = match ring {
                PLAIN => self.cut_through_plain(now, input, output, staged.frame),
                _ => self.cut_through_ring(now, output, ring, staged.frame),
            };
            match passing {
                0 => {}
                BURST => return Admission::CutThroughFull,
                _ => return Admission::CutThrough,
            }
        }
        // A queued frame blocks cut-through of its output, and takes memory of all.
        self.check += 1;
        let Self { outputs, memory, random, .. } = self;
        let frame = Frame { bytes: staged.frame.bytes, ecn: staged.ecn };
        let mut is_marked = false;
        if ring == PLAIN {
            match memory.arrive(now, input, output, frame, || random.next_u32()) {
                Verdict::Accepted { marked } => is_marked = marked,
                Verdict::Dropped(_) => return Admission::Refused,
            }
        }
        let queued = QueuedFrame { handle: staged.frame.handle, input: staged.input };
        match outputs[output].enqueue(now, ring, frame, queued, || random.next_u32()) {
            Verdict::Accepted { marked } => Admission::Queued { marked: marked || is_marked },
            Verdict::Dropped(limit) => {
                if ring == PLAIN {
                    memory.withdraw(input, output, frame.bytes, limit);
                }
                Admission::Refused
            }
        }
    }

    /// Changes the congestion signals of an output's plain queue.
    pub(super) fn set_plain_ecn(&mut self, port: usize, ecn: &Ecn, rate: Option<Rate>) {
        self.check += 1;
        let aqm = ecn.aqm(self.switch.full_packet(rate)).expect("a configuration that was checked");
        self.memory.set_aqm(port, aqm);
        self.outputs[port].set_plain_marker(ecn.mode != EcnMode::Off);
    }

    /// Starts a burst of frames: plain queues are checked again before frames may pass them.
    #[inline]
    pub(super) fn begin_burst(&mut self) {
        self.check += 1;
    }

    /// Passes a frame through the empty plain queue of an output. Returns the number of frames that pass the output in this
    /// round; 0 if this frame must be queued.
    #[inline(always)]
    pub(super) fn cut_through_plain(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Received<H>,
    ) -> usize {
        if input != self.checked_input {
            self.check += 1;
            self.checked_input = input;
        }
        let plain_max = match self.outputs[output].plain_max(self.check) {
            Some(plain_max) => plain_max,
            None => self.check_plain(now, input, output),
        };
        if frame.bytes > plain_max {
            return 0;
        }
        let passing = self.outputs[output].cut_through_plain(frame);
        if passing == 1 {
            self.with_cut_through.push(output as u16);
        }
        passing
    }

    #[inline(never)]
    fn check_plain(&mut self, now: Instant, input: usize, output: usize) -> u32 {
        let room = self.memory.room(input, output);
        self.outputs[output].check_plain(now, self.check, room)
    }

    /// Passes an empty ring as [`Self::cut_through_plain`] does; the frame takes the ring's tokens.
    #[inline]
    fn cut_through_ring(&mut self, now: Instant, output: usize, ring: usize, frame: Received<H>) -> usize {
        let out = &mut self.outputs[output];
        // The ring's state is in the cache, and decides for most non-empty rings.
        if !out.may_cut_through(now, ring)
            || !out.is_clear(now)
            || !out.cut_through_ring(now, ring, frame.bytes)
        {
            return 0;
        }
        let passing = out.push_cut_through(frame);
        if passing == 1 {
            self.with_cut_through.push(output as u16);
        }
        passing
    }

    /// Ends the cut-through of an output in this round; the driver took the first `taken` frames. Returns true if others wait
    /// for the driver.
    #[inline]
    pub(super) fn end_cut_through(&mut self, now: Instant, output: usize, taken: usize) -> bool {
        let (is_left, counted) = self.outputs[output].end_cut_through(taken);
        if counted.frames > 0 {
            self.memory.count_cut_through(now, output, counted);
        }
        is_left
    }

    /// Holds a port until a time, which may be earlier than the previous one.
    pub(super) fn pause_until(&mut self, port: usize, until: Instant) {
        self.check += 1;
        self.outputs[port].pause_until(until);
    }

    /// Returns the next output that may have a cut-through batch in this round.
    #[inline]
    pub(super) fn poll_cut_through(&mut self) -> Option<usize> {
        self.with_cut_through.pop().map(usize::from)
    }

    /// Dequeues frames of a port that may leave, appends them to `batch`, and releases their memory.
    #[inline]
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        port: usize,
        pauses: &mut PauseControl,
        batch: &mut Vec<Received<H>>,
    ) -> NextDeparture {
        let Self { outputs, memory, .. } = self;
        outputs[port].dequeue(now, BURST, |ring, bytes, queued| {
            if ring == PLAIN {
                memory.depart(now, queued.input.into(), port, bytes);
            }
            pauses.release(queued.input.into(), bytes);
            batch.push(Received { handle: queued.handle, bytes });
        })
    }

    /// Empties a port's queues.
    pub(super) fn drain(&mut self, now: Instant, port: usize, pauses: &mut PauseControl) -> Vec<Received<H>> {
        let Self { outputs, memory, .. } = self;
        outputs[port].drain(|ring, bytes, input| {
            if ring == PLAIN {
                memory.depart(now, input.into(), port, bytes);
            }
            pauses.release(input.into(), bytes);
        })
    }

    /// Asserts that the occupancies of memory and inputs agree with the queued frames.
    ///
    /// # Panics
    /// If one differs.
    pub(super) fn assert_conserved(&self, pauses: &PauseControl) {
        let queued = || {
            let outputs = self.outputs.iter().enumerate();
            outputs.flat_map(|(output, out)| {
                out.queued().map(move |(ring, bytes, input)| (ring, usize::from(input), output, bytes))
            })
        };
        let plain = queued().filter(|&(ring, ..)| ring == PLAIN);
        self.memory.assert_conserved(plain.map(|(_, input, output, bytes)| StoredFrame {
            input,
            output,
            bytes,
        }));
        pauses.assert_holds(queued().map(|(_, input, _, bytes)| (input, bytes)));
    }

    /// Adds a ring to a port.
    ///
    /// # Errors
    /// If the port has the largest number of rings, or the settings are wrong.
    pub(super) fn add_ring(&mut self, port: usize, spec: &RingSpec) -> Result<(), RingError> {
        self.outputs[port].add_ring(spec, &self.switch, &mut self.reserve)
    }

    /// Removes the ring of this name.
    pub(super) fn remove_ring(&mut self, name: &str) {
        for output in &mut self.outputs {
            if let Some(ring) = output.ring(name) {
                output.remove_ring(ring);
            }
        }
    }

    /// Returns the port and number of every ring by its name.
    pub(super) fn ring_places(&self) -> HashMap<&str, (usize, usize)> {
        let mut places = HashMap::new();
        for (port, output) in self.outputs.iter().enumerate() {
            places.extend(output.rings().map(|(name, ring)| (name, (port, ring))));
        }
        places
    }

    /// Samples the lengths of a port's queues, and frees removed rings that have drained.
    pub(super) fn sample(&mut self, port: usize) {
        let frames = self.memory.occupancy(port).frames;
        self.outputs[port].sample(frames);
        self.outputs[port].free_drained();
    }

    /// Ends a period of the high-water marks of these ports.
    pub(super) fn end_period(&mut self, ports: &[usize]) {
        for &port in ports {
            let held = self.memory.occupancy(port);
            self.outputs[port].end_period((held.frames_max, held.bytes_max));
        }
        self.memory.reset_high_water_marks();
    }

    /// Resets all high-water marks.
    pub(super) fn reset_high_water_marks(&mut self) {
        self.memory.reset_high_water_marks();
        self.outputs.iter_mut().for_each(Output::reset_high_water_marks);
    }

    /// Counters of a port's plain queue.
    pub(super) fn plain_snapshot(&self, port: usize) -> QueueSnapshot {
        let mut queue = QueueSnapshot::new(*self.memory.occupancy(port), self.memory.counters(port));
        self.outputs[port].fill_plain(&mut queue);
        queue
    }
}
