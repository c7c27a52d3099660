//! The schedule, the network and the TCP endpoints of a partition, for its event loop and its techniques.

use fanin_network::{Network, PortIndex};
use fanin_queueing::MemoryOccupancy;
use fanin_recording::{EndpointCounts, MessageStep, PortOccupancy, RingVisitor, RunTotals};
use fanin_tcp::{Config, Endpoint, Segment, Stats, Written};
use fanin_units::{Duration, Instant, wire};

use crate::Error;
use crate::boundary::PlayedNodes;
use crate::fabric::{ArrivalFate, Fabric, LeavingFrame, PathStep};
use crate::index::{EndIndex, NIL, peer};
use crate::occurrence::Occurrence;
use crate::parcel::Parcel;
use crate::schedule::Schedule;
use crate::ties::Ties;

/// Bytes on the wire of a full frame; its rate chooses the width of the schedule's buckets.
const FRAME_BYTES_FULL: u64 = (wire::ETHERNET_MTU + wire::ETHERNET_LINK) as u64;

/// One end of a connection.
pub(crate) struct ConnectionEnd {
    pub(crate) endpoint: Endpoint,
    /// The first step of the path of the end's frames.
    pub(crate) route: PathStep,
    /// The workload's number of the end's host.
    pub(crate) host: u32,
    /// True if changes of the end's window are recorded.
    pub(crate) is_traced: bool,
    /// Time of the end's earliest scheduled timer, in picoseconds; `u64::MAX` without one.
    pub(crate) timer_at: u64,
}

/// Payload bytes by their fate. Bytes `sent` here or `entered` from another partition have `arrived`, were `dropped`,
/// have `left` for another partition, or are in flight.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct PayloadBytes {
    sent: u64,
    arrived: u64,
    dropped: u64,
    entered: u64,
    left: u64,
}

/// Payload bytes and frames that a technique holds back on the hosts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct HeldBack {
    pub(crate) payload: u64,
    pub(crate) frames: usize,
}

/// Schedule, links and endpoints of a partition.
pub(crate) struct Engine {
    /// Simulated time in picoseconds.
    now: u64,
    pub(crate) schedule: Schedule,
    pub(crate) fabric: Fabric,
    config: Config,
    /// The settings of background connections, and the first of their ends.
    background: (Config, EndIndex),
    ends: Vec<ConnectionEnd>,
    payload: PayloadBytes,
    /// Payload bytes that have arrived over each port's link at their destination.
    port_payload: Vec<u64>,
    /// Frames that hosts have sent.
    frames_sent: u64,
    /// Bytes on the wire of these frames.
    wire_bytes_sent: u64,
    /// Ends that a technique wants to send now.
    awake: Vec<EndIndex>,
    /// The hosts' part of the round-trip time that connections know from earlier traffic; `None` without earlier traffic.
    warm_response: Option<Duration>,
}

/// Returns the settings of an end: `own`, or those of background connections from their first end on.
#[inline]
const fn chosen<'a>(own: &'a Config, background: &'a (Config, EndIndex), end: EndIndex) -> &'a Config {
    if end >= background.1 { &background.0 } else { own }
}

impl Engine {
    pub(crate) fn new(
        network: &Network,
        config: Config,
        warm_response: Option<Duration>,
        seed: u64,
    ) -> Result<Self, Error> {
        // About one frame in four buckets while an eighth of all links is busy with full frames.
        let frames_per_second: u64 =
            network.links.iter().map(|link| link.rate.get() / (FRAME_BYTES_FULL * 8) + 1).sum::<u64>().max(1);
        Ok(Self {
            now: 0,
            schedule: Schedule::new(
                2_000_000_000_000 / frames_per_second,
                2 * network.links.len() as u32,
                Ties::new(network, seed),
            ),
            fabric: Fabric::new(network, seed)?,
            background: (config.clone(), EndIndex::MAX),
            config,
            ends: Vec::new(),
            payload: PayloadBytes::default(),
            port_payload: vec![0; 2 * network.links.len()],
            frames_sent: 0,
            wire_bytes_sent: 0,
            awake: Vec::new(),
            warm_response,
        })
    }

    /// Returns the simulated time.
    pub(crate) const fn time(&self) -> Instant {
        Instant::new(self.now)
    }

    /// Returns the simulated time in picoseconds.
    #[inline]
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// Sets the clock; time does not run backwards, as [`Schedule::pop`] asserts.
    #[inline]
    pub(crate) fn advance(&mut self, time: u64) {
        debug_assert!(time >= self.now, "time runs backwards");
        self.now = time;
    }

    /// Returns the settings of the workload's endpoints.
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the TCP of background connections. `first` is the first of their ends; they are opened last.
    pub(crate) fn set_background(&mut self, config: Config, first: EndIndex) {
        self.background = (config, first);
    }

    /// Returns the settings of an end.
    #[inline]
    fn config_of(&self, index: EndIndex) -> &Config {
        chosen(&self.config, &self.background, index)
    }

    /// Returns true if an end belongs to a background connection. Techniques do not act on such ends.
    #[inline]
    pub(crate) const fn is_background(&self, index: EndIndex) -> bool {
        index >= self.background.1
    }

    /// Adds an open connection; `routes` lead from its first end to its second and back.
    pub(crate) fn connect(&mut self, routes: [PathStep; 2], hosts: [u32; 2], parallel: u32) {
        assert!((self.ends.len() as u64) < u64::from(NIL) - 1, "more than 2^31 connections");
        let salts = self.schedule.ties.connect(routes.map(|route| route.port), hosts, parallel);
        let header = self.fabric.header_wire_bytes();
        let handshake = routes.iter().map(|&route| self.fabric.crossing_time(route, header)).sum();
        let is_background = self.is_background(self.ends.len() as EndIndex);
        let config = self.config_of(self.ends.len() as EndIndex);
        let endpoint = match self.warm_response.filter(|_| !is_background) {
            Some(response) => {
                Endpoint::warm(config, config.receive_window / u32::from(config.mss), handshake + response)
            }
            None => Endpoint::established(config, handshake),
        };
        let mut add = |end: usize, mut endpoint: Endpoint| {
            endpoint.set_salt(salts[end]);
            let (route, host) = (routes[end], hosts[end]);
            self.ends.push(ConnectionEnd { endpoint, route, host, is_traced: false, timer_at: u64::MAX });
        };
        add(0, endpoint.clone());
        add(1, endpoint);
    }

    /// Reserves memory for `ends` ends of connections.
    pub(crate) fn reserve_ends(&mut self, ends: usize) {
        self.ends.reserve_exact(ends);
    }

    /// Returns the ends of all connections.
    pub(crate) fn ends(&self) -> &[ConnectionEnd] {
        &self.ends
    }

    /// Returns the end with this number.
    #[inline]
    pub(crate) fn end(&mut self, index: EndIndex) -> &mut ConnectionEnd {
        &mut self.ends[index as usize]
    }

    /// Lets an end send when the technique has returned.
    pub(crate) fn wake(&mut self, index: EndIndex) {
        self.awake.push(index);
    }

    /// Takes the ends that techniques have woken.
    pub(crate) fn take_awake(&mut self) -> Vec<EndIndex> {
        std::mem::take(&mut self.awake)
    }

    /// Bounds the congestion window of an end by a window of its path.
    pub(crate) fn limit_window(&mut self, index: EndIndex, window: u32) {
        let config = chosen(&self.config, &self.background, index);
        self.ends[index as usize].endpoint.limit_window(config, window);
    }

    /// Returns the frames that have arrived over any link, and the payload bytes arrived at their destinations.
    pub(crate) fn arrived(&self) -> [u64; 2] {
        [self.fabric.arrived(), self.payload.arrived]
    }

    /// Returns the state of a switch's port for the timeline, and passes each of the port's rings to `rings`.
    #[inline]
    pub(crate) fn level(&mut self, at: u64, port: PortIndex, rings: &mut RingVisitor<'_>) -> PortOccupancy {
        let MemoryOccupancy { bytes, bytes_max } = self.fabric.port_level(at, port, rings);
        PortOccupancy { bytes, bytes_max, delivered: self.port_payload[port as usize] }
    }

    /// Handles the arrival of the first frame on a port's link.
    #[inline]
    pub(crate) fn arrive(&mut self, port: PortIndex) -> ArrivalFate {
        self.fabric.arrive(&mut self.schedule, self.now, port)
    }

    /// Counts the payload of a frame that has arrived at its destination over a port's link. Returns the payload in bytes.
    #[inline]
    pub(crate) fn note_arrival(&mut self, port: PortIndex, place: usize) -> u32 {
        let payload = u32::from(self.fabric.segment(place).payload);
        self.payload.arrived += u64::from(payload);
        self.port_payload[port as usize] += u64::from(payload);
        payload
    }

    /// Takes back the segment of a frame that a switch has dropped or a link has lost.
    pub(crate) fn take_dropped(&mut self, place: usize) -> Segment {
        let lost = *self.fabric.segment(place);
        self.payload.dropped += u64::from(lost.payload);
        self.fabric.remove(place);
        lost
    }

    /// Takes the next frame that has left by the link of a port for another partition.
    pub(crate) fn take_leaving(&mut self, port: PortIndex) -> Option<LeavingFrame> {
        let frame = self.fabric.take_leaving(port)?;
        self.payload.left += u64::from(frame.segment.payload);
        Some(frame)
    }

    /// Takes a frame from another partition.
    pub(crate) fn accept(&mut self, frame: &LeavingFrame) {
        assert!(frame.arrival >= self.now, "a frame arrives in a turn that is over");
        self.payload.entered += u64::from(frame.segment.payload);
        self.fabric.accept(&mut self.schedule, frame);
    }

    /// Hands the segment of a frame to its endpoint. Returns the bytes that the endpoint has received in order. The caller says
    /// whether the end belongs to a background connection, so that runs without any do not ask.
    pub(crate) fn handle_segment(&mut self, index: EndIndex, place: usize, is_background: bool) -> u64 {
        let config = if is_background { &self.background.0 } else { &self.config };
        let segment = self.fabric.segment(place);
        let end = &mut self.ends[index as usize];
        end.endpoint.handle_segment(config, Instant::new(self.now), segment);
        end.endpoint.delivered()
    }

    /// Writes the endpoint's next segment into the free place of the fabric; returns the place and the kind of segment written. The
    /// caller says whether the end belongs to a background connection.
    #[inline(always)]
    pub(crate) fn write_segment(&mut self, index: EndIndex, is_background: bool) -> (u32, Written) {
        let config = if is_background { &self.background.0 } else { &self.config };
        let place = self.fabric.free_place();
        let segment = self.fabric.segment_mut(place as usize);
        let end = &mut self.ends[index as usize];
        let written = end.endpoint.write_transmit(config, Instant::new(self.now), segment);
        if written != Written::Nothing {
            self.payload.sent += u64::from(segment.payload);
        }
        (place, written)
    }

    /// Writes the packet of a transport in TCP's place into the free place of the fabric; returns the place.
    pub(crate) fn write_packet(&mut self, packet: Segment) -> u32 {
        let place = self.fabric.free_place();
        *self.fabric.segment_mut(place as usize) = packet;
        self.payload.sent += u64::from(packet.payload);
        place
    }

    /// Sends the segment in the free place on an end's path.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, index: EndIndex, place: u32) {
        let route = self.ends[index as usize].route;
        let parcel = self.fabric.wrap(place, route, peer(index));
        self.transmit_parcel(route.port, parcel);
    }

    /// Sends a frame by its host's port.
    #[inline(always)]
    pub(crate) fn transmit_parcel(&mut self, port: PortIndex, parcel: Parcel) {
        self.fabric.send_parcel(&mut self.schedule, self.now, port, parcel);
        self.frames_sent += 1;
        self.wire_bytes_sent += u64::from(parcel.wire_bytes());
    }

    /// Schedules an end's timer, unless an earlier one is pending. If the deadline moves away, a pending timer stays,
    /// and is rescheduled when it expires.
    pub(crate) fn arm_timer(&mut self, index: EndIndex, deadline: u64) {
        let end = &mut self.ends[index as usize];
        if deadline < end.timer_at {
            end.timer_at = deadline;
            self.schedule.insert(deadline.max(self.now), Occurrence::EndpointTimer(index));
        }
    }

    /// Clears an end's expired timer. Returns false if the timer was replaced by another: such an occurrence does nothing.
    #[inline]
    pub(crate) fn take_timer(&mut self, index: EndIndex) -> bool {
        let end = &mut self.ends[index as usize];
        if end.timer_at > self.now {
            return false;
        }
        end.timer_at = u64::MAX;
        true
    }

    /// Lets an endpoint handle its deadline, if that has come. Returns the kind of timeout, or `None` without one.
    pub(crate) fn handle_deadline(&mut self, index: EndIndex) -> Option<MessageStep> {
        let end = &mut self.ends[index as usize];
        if end.endpoint.poll_deadline().get() > self.now {
            return None;
        }
        let timeouts = end.endpoint.timeouts();
        let config = chosen(&self.config, &self.background, index);
        end.endpoint.handle_deadline(config, Instant::new(self.now));
        let is_late = end.endpoint.timeouts() > timeouts;
        let probes = end.endpoint.owes_probe().then_some(MessageStep::Probe);
        if is_late { Some(MessageStep::Timeout) } else { probes }
    }

    /// Starts or ends recording of the frames on all links of an end's host, in both directions. A path within it has no port.
    pub(crate) fn tap(&mut self, index: EndIndex, on: bool) {
        let host = self.end(index).host;
        let own = self.ends.iter().filter(|end| end.host == host && end.route.port != NIL);
        let ports: std::collections::BTreeSet<PortIndex> = own.map(|end| end.route.port).collect();
        ports.into_iter().for_each(|port| self.fabric.tap_link(port, on));
    }

    /// Returns the counters of an endpoint.
    pub(crate) fn stats(&self, index: EndIndex) -> Stats {
        self.ends[index as usize].endpoint.stats(self.config_of(index))
    }

    /// Returns the ends of the workload's connections, and those of background connections.
    pub(crate) fn split_ends(&self) -> (&[ConnectionEnd], &[ConnectionEnd]) {
        self.ends.split_at(self.ends.len().min(self.background.1 as usize))
    }

    /// Returns the counters of the workload's endpoints that sent more than one segment.
    pub(crate) fn senders(&self) -> impl Iterator<Item = Stats> {
        let own = self.split_ends().0.iter();
        own.map(|end| end.endpoint.stats(&self.config)).filter(|stats| stats.segments > 1)
    }

    /// Returns the sums over the whole network at the present time.
    pub(crate) fn totals(&self) -> RunTotals {
        let (drops, marks) = self.fabric.drops_and_marks();
        let sum = |ends: &[ConnectionEnd]| {
            ends.iter().fold([0; 6], |sum: EndpointCounts, end| {
                let counts = end.endpoint.counts();
                std::array::from_fn(|place| sum[place] + counts[place])
            })
        };
        let (own, background) = self.split_ends();
        RunTotals {
            at: self.time(),
            frames: self.frames_sent,
            bytes: self.wire_bytes_sent,
            drops,
            link_losses: self.fabric.losses.as_ref().map(|losses| losses.lost()),
            marks,
            own: sum(own),
            background: sum(background),
            background_delivered: background.iter().step_by(2).map(|end| end.endpoint.delivered()).collect(),
            port_bytes: self.fabric.arrived_bytes(&self.schedule),
            port_payload: self.port_payload.clone(),
        }
    }

    /// Asserts that every frame and payload byte is accounted for, and no stream runs ahead of its sender.
    pub(crate) fn assert_conserved(&mut self, held_back: HeldBack, played: &PlayedNodes) {
        self.fabric.assert_conserved(&self.schedule, self.now, held_back.frames);
        let in_flight = self.fabric.payload_in_flight(&self.schedule) + held_back.payload;
        let PayloadBytes { sent, arrived, dropped, entered, left } = self.payload;
        assert_eq!(sent + entered, arrived + dropped + left + in_flight, "payload is unaccounted for");
        assert_eq!(self.port_payload.iter().sum::<u64>(), arrived, "payload by port is unaccounted for");
        for (first, ends) in (0..).step_by(2).zip(self.ends.chunks_exact(2)) {
            let [one, other] = [&ends[0].endpoint, &ends[1].endpoint];
            let is_played = played.has_end(first) && played.has_end(peer(first));
            for (sender, receiver) in [(one, other), (other, one)].into_iter().filter(|_| is_played) {
                sender.assert_conserved(self.config_of(first));
                assert!(receiver.delivered() <= sender.written(), "more was delivered than written");
                assert!(sender.acked() <= receiver.delivered(), "more was acknowledged than delivered");
            }
        }
    }
}
