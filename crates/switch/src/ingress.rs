//! From a port to queues: where a frame goes.

use fanin_units::Instant;

use crate::address::Mac;
use crate::capture::Passing;
use crate::driver::{Driver, Received};
use crate::frame::{ETHERNET_BYTES, ETHERTYPE_VLAN, Ethernet, TAG_BYTES};
use crate::lanes::{Lanes, Message};
use crate::snapshot::Cause;
use crate::stations::{Learned, Stations, station, way};
use crate::switch::{BURST, Input, ROOM_MIN, Switch};

/// Ethernet's and IPv4's headers without options.
const HEADERS_MIN: usize = ETHERNET_BYTES + 20;
/// No station: addresses have 48 bits, VLANs 12.
const UNHEARD: u64 = u64::MAX;

/// Where an untagged frame from one station to another goes; `None` where that is not simple. `heard` is the station that was
/// learned last in the same burst.
#[inline(always)]
pub(crate) fn way_of<H: Copy + Send>(
    stations: &mut Stations,
    lanes: &mut Option<Lanes<H>>,
    now: Instant,
    port: usize,
    reflects: bool,
    ethernet: &Ethernet,
    heard: &mut u64,
) -> Option<usize> {
    if reflects {
        return Some(port);
    }
    if ethernet.source != *heard {
        match stations.learn(now, ethernet.source, port) {
            Learned::Known | Learned::Full => {}
            Learned::New => {
                if let Some(lanes) = lanes {
                    lanes.tell_all(Message::Learned { station: ethernet.source, port: port as u16 });
                }
            }
            Learned::Elsewhere => return None,
        }
        *heard = ethernet.source;
    }
    stations.find(ethernet.destination).filter(|&found| found != port)
}

/// Where a frame goes, in which VLAN.
enum Route {
    To(usize, u16),
    Flood(u16),
    Nowhere(Cause),
}

impl<D: Driver> Switch<D> {
    /// Takes what has come in by a port, and puts it into queues.
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
        let tally = &mut self.inputs[port].received;
        tally.frames += received.len() as u64;
        tally.bytes += received.iter().map(|frame| u64::from(frame.bytes)).sum::<u64>();
        if self.stations.is_wide() {
            for frame in &received {
                if let Some(&[d0, d1, d2, d3, d4, d5]) = self.driver.head(frame.handle).first_chunk() {
                    self.stations.fetch(u64::from_be_bytes([0, 0, d0, d1, d2, d3, d4, d5]));
                }
            }
        }
        let mut heard = UNHEARD;
        let mut rest = received.as_slice();
        while !rest.is_empty() {
            // What is bound for a queue goes before what comes behind it.
            if self.bound_len == 0 {
                rest = &rest[self.pass_plain(now, port, rest, &mut heard)..];
            }
            rest = &rest[self.receive_plain(now, port, rest, &mut heard)..];
            if let Some((&frame, others)) = rest.split_first() {
                self.receive_any(now, port, frame, &mut heard);
                rest = others;
            }
        }
        self.put_bound(now);
        self.received = received;
        self.received.len()
    }

    /// Takes in frames as nearly all are, without a tag, from one station to another that is known. Returns how many there
    /// are before one that is not. Does nothing that [`Self::receive_any`] does not, with fewer questions: a loop in which all
    /// that it needs stays at hand.
    #[inline(never)]
    fn receive_plain(
        &mut self,
        now: Instant,
        port: usize,
        frames: &[Received<D::Handle>],
        heard: &mut u64,
    ) -> usize {
        let Self { driver, stations, outputs, lanes, .. } = self;
        let (depth, reflects) = (self.depth, self.inputs[port].reflects);
        let bytes_max = self.payload_max + (ETHERNET_BYTES + TAG_BYTES) as u32;
        // Ways are looked up, and nothing is learned, where any frame is taken in.
        if self.has_vlans || self.inputs[port].table != 0 {
            return 0;
        }
        let mut passed = 0;
        for (&frame, bound) in frames.iter().zip(&mut self.bound[self.bound_len..]) {
            let head = driver.head(frame.handle);
            // One question for all lengths that are read below.
            if head.len() < HEADERS_MIN || frame.bytes > bytes_max {
                break;
            }
            let Some(ethernet) = Ethernet::parse_untagged(head) else { break };
            // Addresses that only bridges may hear are among the groups.
            if (ethernet.destination | ethernet.source) & Mac::GROUP != 0 {
                break;
            }
            let Some(output) = way_of(stations, lanes, now, port, reflects, &ethernet, heard) else { break };
            if lanes.as_ref().is_some_and(|lanes| lanes.owner(output) != self.worker) {
                break;
            }
            bound.key.read(port, 0, head, &ethernet, depth);
            (bound.frame, bound.output, bound.input) = (frame, output as u16, port as u16);
            bound.place = outputs[output].classifier.first_place(&bound.key);
            passed += 1;
        }
        self.bound_len += passed;
        passed
    }

    /// Takes in any frame.
    #[inline(never)]
    fn receive_any(&mut self, now: Instant, port: usize, frame: Received<D::Handle>, heard: &mut u64) {
        let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) else {
            return self.drop_in(port, frame, Cause::Malformed);
        };
        match self.route(now, port, frame, &ethernet, heard) {
            Route::To(output, vlan) => self.hand_over(now, port, output, vlan, frame, ethernet),
            Route::Flood(vlan) => self.flood(now, port, vlan, frame, ethernet),
            Route::Nowhere(cause) => self.drop_in(port, frame, cause),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn drop_in(&mut self, port: usize, frame: Received<D::Handle>, cause: Cause) {
        self.inputs[port].drops.add(cause, frame.bytes);
        self.driver.free(frame);
    }

    /// Decides where a frame goes. `heard` is the station that the frame before it came from, in the same burst: most
    /// frames come in trains, and whom the switch has heard just now it need not look up again.
    fn route(
        &mut self,
        now: Instant,
        input: usize,
        frame: Received<D::Handle>,
        ethernet: &Ethernet,
        heard: &mut u64,
    ) -> Route {
        if ethernet.is_from_group() {
            return Route::Nowhere(Cause::Malformed);
        }
        let port = &self.inputs[input];
        let vlan = if self.has_vlans {
            match ethernet.tag.map_or(0, |tag| tag & 0xfff) {
                0 if port.untagged != 0 => port.untagged,
                vlan if vlan != 0 && port.tagged.contains(&vlan) => vlan,
                _ => return Route::Nowhere(Cause::Vlan),
            }
        } else {
            0
        };
        if ethernet.is_link_local() {
            self.handle_control(now, input, frame);
            return Route::Nowhere(Cause::Filtered);
        }
        // A second tag does not count.
        if frame.bytes - ethernet.payload as u32 > self.payload_max + TAG_BYTES as u32 {
            return Route::Nowhere(Cause::TooLong);
        }
        if port.reflects {
            return Route::To(input, vlan);
        }
        if port.table != 0 {
            return self.route_by_table(input, vlan, ethernet);
        }
        let source = station(ethernet.source, vlan);
        if source != *heard {
            match self.stations.learn(now, source, input) {
                Learned::Known | Learned::Full => {}
                Learned::New => self.tell_all(Message::Learned { station: source, port: input as u16 }),
                Learned::Elsewhere => return Route::Nowhere(Cause::Loop),
            }
            *heard = source;
        }
        if ethernet.is_for_group() {
            return Route::Flood(vlan);
        }
        match self.stations.find(station(ethernet.destination, vlan)) {
            Some(output) if output == input => Route::Nowhere(Cause::Filtered),
            Some(output) => Route::To(output, vlan),
            None => Route::Flood(vlan),
        }
    }

    /// Where the way of the port's table leads.
    #[inline(never)]
    fn route_by_table(&self, input: usize, vlan: u16, ethernet: &Ethernet) -> Route {
        if ethernet.is_for_group() {
            return Route::Flood(vlan);
        }
        match self.stations.find(station(ethernet.destination, way(self.inputs[input].table))) {
            Some(output) if output == input => Route::Nowhere(Cause::Filtered),
            Some(output) => Route::To(output, vlan),
            None => Route::Nowhere(Cause::NoPort),
        }
    }

    /// A frame for bridges: of those only PAUSE means anything here.
    #[cold]
    #[inline(never)]
    fn handle_control(&mut self, now: Instant, input: usize, frame: Received<D::Handle>) {
        let head = self.driver.head(frame.handle);
        if let Some(ethernet) = Ethernet::parse(head)
            && let Some(quanta) = crate::frame::pause_quanta(head, &ethernet)
        {
            self.handle_pause(now, input, quanta);
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
        ethernet: Ethernet,
    ) {
        if !self.inputs[input].storm.admit(now, ethernet.destination, frame.bytes) {
            return self.drop_in(input, frame, Cause::Storm);
        }
        // What came before it goes before it.
        self.put_bound(now);
        let is_unknown = !ethernet.is_for_group();
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
        self.put_bound(now);
    }

    /// Gives a frame to the worker of its output, tagged as the output wants it.
    fn hand_over(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        vlan: u16,
        mut frame: Received<D::Handle>,
        mut ethernet: Ethernet,
    ) {
        if self.has_vlans {
            (frame, ethernet) = match self.retag(output, vlan, frame, ethernet) {
                Ok(changed) => changed,
                Err(cause) => return self.drop_in(input, frame, cause),
            };
        }
        if let Some(lanes) = &mut self.lanes {
            let owner = lanes.owner(output);
            if owner != self.worker {
                let message = Message::Frame { input: input as u16, output: output as u16, vlan, frame };
                if lanes.send_frame(owner, message).is_err() {
                    self.drop_in(input, frame, Cause::Handover);
                } else if self.sends_pauses {
                    self.hold(input, frame.bytes);
                }
                return;
            }
        }
        self.bind(now, input, output, vlan, frame, &ethernet);
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
                        if self.sends_pauses {
                            // Its port's worker holds it already; a queue that lets it in does so again.
                            self.let_go(input, frame.bytes);
                        }
                        let Some(ethernet) = Ethernet::parse(self.driver.head(frame.handle)) else {
                            self.drop_in(input, frame, Cause::Malformed);
                            continue;
                        };
                        // The station speaks there, whatever a loop brings back here.
                        self.stations.set(now, station(ethernet.source, vlan), input);
                        self.bind(now, input, output, vlan, frame, &ethernet);
                    }
                    Message::Learned { station, port } => self.stations.set(now, station, port.into()),
                    Message::Forgotten { station } => {
                        self.stations.remove(station);
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
        self.put_bound(now);
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
