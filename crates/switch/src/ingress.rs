//! From a port to queues: where a frame goes.

use fanin_units::Instant;

use crate::capture::Passing;
use crate::driver::{Driver, Received};
use crate::frame::{ETHERTYPE_VLAN, Ethernet, TAG_BYTES};
use crate::lanes::Message;
use crate::snapshot::Cause;
use crate::stations::Learned;
use crate::switch::{BURST, Input, ROOM_MIN, Switch};

impl<D: Driver> Switch<D> {
    #[inline]
    pub(crate) fn receive(&mut self, now: Instant, port: usize) -> usize {
        let mut received = std::mem::take(&mut self.received);
        received.clear();
        self.driver.receive(port, BURST, &mut received);
        if self.tap.is_active() {
            for &frame in &received {
                self.tap.copy(now, Passing::Port(port), frame, &self.driver);
            }
        }
        // First every frame's queue is chosen, so that the rings are on their way to the cache when frames go in.
        for &frame in &received {
            self.forward(now, port, frame);
        }
        self.put_chosen(now);
        self.received = received;
        self.received.len()
    }

    #[inline]
    pub(crate) fn drop_in(&mut self, port: usize, frame: Received<D::Handle>, cause: Cause) {
        self.inputs[port].drops.add(cause, frame.bytes);
        self.driver.free(frame);
    }

    /// Decides where a frame goes.
    #[inline]
    pub(crate) fn forward(&mut self, now: Instant, input: usize, frame: Received<D::Handle>) {
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
                self.tell_all(Message::Learned { mac: ethernet.source, vlan, port: input as u16 });
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
        // What came before it goes before it.
        self.put_chosen(now);
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
        self.put_chosen(now);
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
        if let Some(chosen) = self.choose(now, input, output, vlan, frame, ethernet) {
            std::hint::black_box(self.outputs[output].queue.touch(chosen.ring()));
            self.chosen.push(chosen);
        }
    }

    pub(crate) fn tell_all(&mut self, message: Message<D::Handle>) {
        if let Some(lanes) = &mut self.lanes {
            lanes.tell_all(message);
        }
    }

    /// What other workers have sent since the last round, and what they get from us.
    pub(crate) fn receive_messages(&mut self, now: Instant) -> usize {
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
                        if let Some(chosen) = self.choose(now, input, output, vlan, frame, &ethernet) {
                            self.put(now, &chosen);
                        }
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
}
