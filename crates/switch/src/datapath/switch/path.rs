//! The path of one frame through the switch, top to bottom.
//!
//! 1. [`Switch::receive`]: a burst of frames arrives at a port.
//! 2. [`Switch::forward`]: the Ethernet header is parsed, the source is learned, the destination looked up.
//! 3. [`Switch::flood`], [`Switch::hand_over`], [`Switch::retag`]: copies, the worker of the output, the VLAN tag.
//! 4. [`Switch::stage`]: rules choose the queue at the output.
//! 5. [`Switch::admit_staged`]: the frame passes an empty queue, is queued, or is dropped.
//! 6. [`Switch::transmit`], [`Switch::transmit_cut_through`]: frames that may leave go to the driver.
//!
//! Step 5 uses no list for a frame to an empty plain queue. The output collects such frames, and the driver gets them
//! as one batch. Other frames of a burst are staged, and admitted in order.

use fanin_queueing::{EcnCodepoint, NextDeparture};
use fanin_units::Instant;

use crate::capture::TapPlace;
use crate::driver::{BURST, Driver, ROOM_MIN, Received};
use crate::frame::{ETHERTYPE_VLAN, Ethernet, IpHeader, TAG_BYTES, mark_congestion, pause_quanta};
use crate::snapshot::Cause;
use crate::workers::PeerMessage;

use super::Switch;
use crate::datapath::forwarding::FrameRoute;
use crate::datapath::impair::FrameFate;
use crate::datapath::output::PLAIN;
use crate::datapath::outputs::{Admission, StagedFrame};
use crate::datapath::rules::Classified;

/// Messages taken from one worker in a round.
const MESSAGES_MAX: usize = 4 * BURST;

impl<D: Driver> Switch<D> {
    /// Receives a burst from a port, and queues its frames at their outputs. Returns the number of frames.
    pub(super) fn receive(&mut self, now: Instant, port: usize) -> usize {
        let mut burst = std::mem::take(&mut self.burst);
        burst.clear();
        self.driver.receive(port, BURST, &mut burst);
        if self.tap.is_active() {
            for &frame in &burst {
                self.tap.copy(now, TapPlace::Port(port), frame, &self.driver);
            }
        }
        self.ports[port].count_received(&burst);
        self.forwarding.begin_burst();
        self.outputs.begin_burst();
        self.may_cut_through = self.may_cut_through();
        for &frame in &burst {
            self.forward(now, port, frame);
        }
        self.admit_staged(now);
        self.burst = burst;
        self.burst.len()
    }

    /// Receives the messages of other workers. Returns the number of frames.
    pub(super) fn receive_from_peers(&mut self, now: Instant) -> usize {
        let mut frames = 0;
        self.outputs.begin_burst();
        self.may_cut_through = self.may_cut_through();
        for other in self.peers.others() {
            for _ in 0..MESSAGES_MAX {
                let Some(message) = self.peers.poll_message(other) else { break };
                match message {
                    PeerMessage::Frame { input, output, vlan, frame } => {
                        frames += 1;
                        self.receive_frame_from_peer(now, input.into(), output.into(), vlan, frame);
                    }
                    PeerMessage::Learned { station, port } => {
                        self.forwarding.learn_from_peer(now, station, port.into());
                    }
                    PeerMessage::Forgotten { station } => self.forwarding.forget_from_peer(station),
                    PeerMessage::Down { port } => self.forwarding.flush(Some(port.into())),
                    PeerMessage::Buffer(handle) => self.driver.handle_stray(handle),
                }
            }
            while let Some(handle) = self.driver.poll_stray(other) {
                self.peers.send(other, PeerMessage::Buffer(handle));
            }
        }
        self.admit_staged(now);
        self.peers.flush();
        frames
    }

    fn receive_frame_from_peer(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        frame: Received<D::Handle>,
    ) {
        // The input's worker counts this frame since the handover. This worker subtracts the frame, and adds it again if a
        // queue accepts it.
        self.pauses.release(input, frame.bytes);
        let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) else {
            return self.drop_frame(input, output, frame, Cause::Malformed);
        };
        // The input's worker has checked the source for loops.
        self.forwarding.learn_source_from_peer(now, &ethernet, vlan, input);
        self.stage(now, input, output, vlan, frame, &ethernet);
    }

    /// Decides the route of a frame, and sends it on.
    #[inline]
    fn forward(&mut self, now: Instant, input: usize, frame: Received<D::Handle>) {
        let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) else {
            return self.drop_frame(input, input, frame, Cause::Malformed);
        };
        let Self { forwarding, ports, peers, .. } = self;
        match forwarding.route(now, input, &ports[input], frame.bytes, &ethernet, peers) {
            FrameRoute::To(output, vlan) => self.hand_over(now, input, output, vlan, frame, ethernet),
            FrameRoute::Flood(vlan) => self.flood(now, input, vlan, frame, ethernet),
            FrameRoute::Drop(cause) => self.drop_frame(input, input, frame, cause),
            FrameRoute::Control => self.handle_control(now, input, frame, &ethernet),
        }
    }

    /// Handles a frame for bridges: PAUSE holds the port's transmitter, everything else is filtered.
    #[cold]
    fn handle_control(&mut self, now: Instant, port: usize, frame: Received<D::Handle>, ethernet: &Ethernet) {
        if let Some(quanta) = pause_quanta(self.driver.head(frame.handle), ethernet)
            && let Some(until) = self.pauses.handle_frame(now, port, quanta)
        {
            self.outputs.pause_until(port, until);
        }
        self.drop_frame(port, port, frame, Cause::Filtered);
    }

    /// Sends a frame to every port that it may reach.
    #[cold]
    fn flood(
        &mut self,
        now: Instant,
        input: usize,
        vlan: u16,
        frame: Received<D::Handle>,
        ethernet: Ethernet,
    ) {
        if !self.ports[input].admits_flood(now, ethernet.destination, frame.bytes) {
            return self.drop_frame(input, input, frame, Cause::Storm);
        }
        // Copies take packet memory; earlier frames may free some.
        self.admit_staged(now);
        let is_unknown = !ethernet.is_for_group();
        let has_vlans = self.forwarding.has_vlans();
        let ports = self.ports.iter().enumerate();
        let reached = ports.filter(|&(port, other)| {
            port != input && other.takes_floods(is_unknown) && (!has_vlans || other.carries(vlan))
        });
        let outputs: Vec<usize> = reached.map(|(port, _)| port).collect();
        let Some((&last, others)) = outputs.split_last() else {
            return self.drop_frame(input, input, frame, Cause::NoPort);
        };
        self.ports[input].count_flooded(frame.bytes);
        for &output in others {
            match self.copy_of(frame) {
                Some(handle) => {
                    self.hand_over(now, input, output, vlan, Received { handle, ..frame }, ethernet);
                }
                None => self.ports[input].count_drop(Cause::Memory, frame.bytes),
            }
        }
        self.hand_over(now, input, last, vlan, frame, ethernet);
        self.admit_staged(now);
    }

    /// Copies a frame; returns `None` if packet memory is short.
    fn copy_of(&mut self, frame: Received<D::Handle>) -> Option<D::Handle> {
        if self.driver.room() <= ROOM_MIN {
            return None;
        }
        self.scratch.clear();
        self.driver.copy_out(frame, &mut self.scratch);
        self.driver.make(&self.scratch)
    }

    /// Hands a frame to the worker of its output, tagged for that output.
    #[inline(always)]
    fn hand_over(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        mut frame: Received<D::Handle>,
        mut ethernet: Ethernet,
    ) {
        if self.forwarding.has_vlans() {
            (frame, ethernet) = match self.retag(output, vlan, frame, ethernet) {
                Ok(changed) => changed,
                Err(cause) => return self.drop_frame(input, output, frame, cause),
            };
        }
        if self.peers.is_own(output) {
            self.stage(now, input, output, vlan, frame, &ethernet);
        } else if self.peers.send_frame(input, output, vlan, frame) {
            self.pauses.hold(input, frame.bytes);
        } else {
            self.drop_frame(input, output, frame, Cause::Handover);
        }
    }

    /// Adds or removes a frame's tag, as its output requires.
    fn retag(
        &mut self,
        output: usize,
        vlan: u16,
        mut frame: Received<D::Handle>,
        mut ethernet: Ethernet,
    ) -> Result<(Received<D::Handle>, Ethernet), Cause> {
        /// Bytes of both addresses; the tag follows them.
        const MACS: usize = 12;
        let port = &self.ports[output];
        if !port.carries(vlan) {
            return Err(Cause::Vlan);
        }
        let tag = TAG_BYTES as u16;
        match (ethernet.tag, port.is_untagged(vlan)) {
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
                // A priority tag (VLAN 0) gets the number of the frame's VLAN.
                let tci = tci & 0xf000 | vlan;
                self.driver.head_mut(frame.handle)[MACS + 2..MACS + 4].copy_from_slice(&tci.to_be_bytes());
                ethernet.tag = Some(tci);
            }
            _ => {}
        }
        Ok((frame, ethernet))
    }

    /// Chooses the queue of a frame at an output of this worker, and stages it there.
    #[inline(always)]
    fn stage(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        frame: Received<D::Handle>,
        ethernet: &Ethernet,
    ) {
        if let Some(m21) = &mut self.m21 {
            m21.handle_frame(now, input, output, self.driver.head_mut(frame.handle), frame.bytes, ethernet);
        }
        let mut ring = PLAIN;
        if self.rules.apply_to(output) {
            let head = self.driver.head(frame.handle);
            match self.rules.classify(input, output, vlan, head, frame.bytes, ethernet) {
                Classified::Unmatched => {}
                Classified::Ring(chosen) => ring = chosen,
                Classified::Drop => return self.drop_frame(input, output, frame, Cause::Rule),
            }
        }
        // Staged frames go first.
        if ring == PLAIN && self.may_cut_through && self.staged.is_empty() {
            let passing = self.outputs.cut_through_plain(now, input, output, frame);
            if passing == BURST {
                self.transmit_cut_through(now, output);
            }
            if passing > 0 {
                return;
            }
        }
        let out = self.outputs.output(output);
        let ecn = if out.reads_ecn() {
            ecn_of(self.driver.head(frame.handle), ethernet)
        } else {
            EcnCodepoint::NotCapable
        };
        // A flood may be wider than a burst.
        if self.staged.len() == BURST {
            self.admit_staged(now);
        }
        let (input, output, ring) = (input as u16, output as u16, ring as u32);
        self.staged.push(StagedFrame { frame, input, output, ring, ecn });
    }

    /// Returns true if frames may pass empty queues. While a capture runs they may not: it copies frames at queues and at
    /// departures.
    #[inline]
    fn may_cut_through(&self) -> bool {
        self.driver.room() >= ROOM_MIN && !self.tap.is_active()
    }

    /// Admits the staged frames to their queues, in order.
    pub(super) fn admit_staged(&mut self, now: Instant) {
        let mut staged = std::mem::take(&mut self.staged);
        // Frames are dropped before drivers run out of buffers; admission itself takes none.
        let is_short = self.driver.room() < ROOM_MIN;
        if is_short || self.tap.is_active() || self.pauses.is_sending() {
            for one in &staged {
                self.admit_watched(now, one);
            }
        } else {
            for one in &staged {
                self.admit(now, one, true);
            }
        }
        staged.clear();
        self.staged = staged;
    }

    /// Admits one frame while packet memory is short, frames are captured, or PAUSE frames are sent.
    #[cold]
    fn admit_watched(&mut self, now: Instant, staged: &StagedFrame<D::Handle>) {
        let (input, output) = (usize::from(staged.input), usize::from(staged.output));
        if self.driver.room() < ROOM_MIN {
            return self.drop_frame(input, output, staged.frame, Cause::Memory);
        }
        let is_captured = self.tap.is_active();
        if self.admit(now, staged, !is_captured) {
            self.pauses.hold(input, staged.frame.bytes);
            if is_captured {
                let ring = TapPlace::Ring(output, staged.ring as usize);
                self.tap.copy(now, ring, staged.frame, &self.driver);
            }
        }
    }

    /// Admits one frame to its queue. Returns true if the queue holds it now.
    #[inline(always)]
    fn admit(&mut self, now: Instant, staged: &StagedFrame<D::Handle>, may_cut_through: bool) -> bool {
        match self.outputs.admit(now, staged, may_cut_through) {
            Admission::CutThrough => false,
            Admission::CutThroughFull => {
                self.transmit_cut_through(now, staged.output.into());
                false
            }
            Admission::Queued { marked } => {
                if marked {
                    self.mark(staged.frame);
                }
                true
            }
            Admission::Refused => {
                self.driver.free(staged.frame);
                false
            }
        }
    }

    /// Sets the congestion bits of a frame.
    #[cold]
    fn mark(&mut self, frame: Received<D::Handle>) {
        if let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) {
            mark_congestion(self.driver.head_mut(frame.handle), &ethernet);
        }
    }

    /// Transmits the frames that may leave by a port. Returns the number that the driver accepted, and the next departure.
    #[inline]
    pub(super) fn transmit(&mut self, now: Instant, port: usize) -> (usize, NextDeparture) {
        let output = self.outputs.output_mut(port);
        if let Some(until) = output.paused_at(now) {
            return (0, NextDeparture::At(until));
        }
        self.batch.clear();
        if !output.unsent_mut().is_empty() {
            // These were dequeued earlier. A driver does not signal room: each round tries again.
            self.batch.extend(output.unsent_mut().drain(..).rev());
            let taken = self.give_batch(port);
            if !self.outputs.output_mut(port).unsent_mut().is_empty() {
                return (taken, NextDeparture::Now);
            }
            self.batch.clear();
        }
        let mut next = self.outputs.dequeue(now, port, &mut self.pauses, &mut self.batch);
        if self.outputs.output_mut(port).impairment_mut().is_some() {
            next = next.or_at(self.impair(now, port));
        }
        if self.batch.is_empty() {
            return (0, next);
        }
        let taken = self.give_batch(port);
        if taken < self.batch.len() {
            next = NextDeparture::Now;
        }
        (taken, next)
    }

    /// Applies a port's impairment to the batch. Afterwards the batch holds the frames that leave now. Returns the departure
    /// time of the next delayed frame.
    #[cold]
    fn impair(&mut self, now: Instant, port: usize) -> Option<Instant> {
        let mut impairment = self.outputs.output_mut(port).impairment_mut().take()?;
        let mut departed = std::mem::take(&mut self.batch);
        for frame in departed.drain(..) {
            let sending = self.outputs.output_mut(port).sending_time(frame.bytes);
            match impairment.draw(now, sending) {
                FrameFate::Lose => self.drop_frame(port, port, frame, Cause::Impairment),
                FrameFate::Delay { .. } if !impairment.has_room() => {
                    self.drop_frame(port, port, frame, Cause::ImpairmentLimit);
                }
                FrameFate::Delay { until, twice } => {
                    impairment.put(until, frame);
                    if twice
                        && impairment.has_room()
                        && let Some(handle) = self.copy_of(frame)
                    {
                        impairment.put(until, Received { handle, bytes: frame.bytes });
                    }
                }
            }
        }
        while departed.len() < BURST
            && let Some(frame) = impairment.poll_frame(now)
        {
            departed.push(frame);
        }
        self.batch = departed;
        let next = impairment.next_at().map(|at| at.max(now));
        // Without an impairment, frames may pass empty queues again.
        *self.outputs.output_mut(port).impairment_mut() = (!impairment.is_over()).then_some(impairment);
        next
    }

    /// Passes the batch to the driver. Frames that the driver does not accept wait, before all others of the port. Returns the
    /// number of accepted frames.
    #[inline]
    fn give_batch(&mut self, port: usize) -> usize {
        if self.tap.is_active() {
            self.tap.leaving(self.now, port, &self.batch, &self.driver);
        }
        let taken = self.driver.transmit(port, &self.batch);
        if self.tap.is_active() {
            self.tap.left(taken);
        }
        self.ports[port].count_sent(&self.batch[..taken]);
        if taken < self.batch.len() {
            self.outputs.output_mut(port).unsent_mut().extend(self.batch[taken..].iter().rev());
        }
        taken
    }

    /// Transmits all frames that passed empty queues in this round. Returns true if a driver had no room for some.
    #[inline]
    pub(super) fn transmit_all_cut_through(&mut self, now: Instant) -> bool {
        let mut is_left = false;
        while let Some(output) = self.outputs.poll_cut_through() {
            is_left |= self.transmit_cut_through(now, output);
        }
        is_left
    }

    /// Transmits the frames of an output that passed empty queues. Returns true if the driver had no room for some.
    fn transmit_cut_through(&mut self, now: Instant, port: usize) -> bool {
        let frames = self.outputs.output(port).cut_through();
        if frames.is_empty() {
            return false;
        }
        let taken = self.driver.transmit(port, frames);
        self.ports[port].count_sent(&frames[..taken]);
        self.outputs.end_cut_through(now, port, taken)
    }

    /// Drops a frame, and counts it at its input; if another worker counts for the input, at its output.
    #[cold]
    pub(super) fn drop_frame(
        &mut self,
        input: usize,
        output: usize,
        frame: Received<D::Handle>,
        cause: Cause,
    ) {
        let port = if self.peers.is_own(input) { input } else { output };
        self.ports[port].count_drop(cause, frame.bytes);
        self.driver.free(frame);
    }
}

/// Reads the congestion bits of a frame.
fn ecn_of(head: &[u8], ethernet: &Ethernet) -> EcnCodepoint {
    match IpHeader::parse(head, ethernet).ecn {
        0 => EcnCodepoint::NotCapable,
        3 => EcnCodepoint::Congestion,
        _ => EcnCodepoint::Capable,
    }
}
