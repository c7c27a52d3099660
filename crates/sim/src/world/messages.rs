//! The event loop's side of a transport of messages that takes TCP's place ([`crate::sird`]).

use super::{Workload, World};
use crate::index::{EndIndex, NIL, peer};
use crate::occurrence::Occurrence;
use crate::sird::{Sird, Wire};
use fanin_network::Network;
use fanin_tcp::{Config, Segment};

/// Bytes on the wire of a packet without payload.
const CONTROL_BYTES: u32 = super::FRAME_BYTES_MIN;

impl<W: Workload> World<W> {
    /// From now on messages travel by SIRD; TCP's endpoints stay idle.
    pub(crate) fn use_sird(&mut self, settings: &fanin_scenario::Sird, config: &Config, network: &Network) {
        let full = self.fabric.wire_bytes(&Segment {
            payload: config.mss,
            flags: if config.timestamps { fanin_tcp::Flags::TIMESTAMP } else { fanin_tcp::Flags::NONE },
            ..Segment::default()
        });
        let wires: Vec<Wire> = (0..self.ends.len())
            .map(|index| {
                let end = &self.ends[index];
                let there = self.ends[peer(index as EndIndex) as usize].route;
                if end.route.port == NIL {
                    // A connection of a host with itself carries nothing.
                    let rate = fanin_units::Rate::new(1_000_000_000);
                    return Wire { node: u32::MAX, rtt: fanin_units::Duration::ZERO, rate };
                }
                Wire {
                    node: network.source(end.route.port),
                    rtt: self.fabric.crossing_time(there, full)
                        + self.fabric.crossing_time(end.route, CONTROL_BYTES),
                    rate: network.links[end.route.port as usize / 2].rate,
                }
            })
            .collect();
        self.sird = Some(Box::new(Sird::new(settings, u32::from(config.mss), config.timestamps, &wires)));
    }

    /// A packet is at its destination.
    #[cold]
    pub(super) fn deliver_packet(&mut self, index: EndIndex, place: usize) {
        let Some(sird) = &mut self.sird else { return };
        let segment = &self.fabric.segments[place];
        self.payload.arrived += u64::from(segment.payload);
        sird.handle_segment(index, self.now, segment);
        let delivered = sird.delivered(index);
        self.fabric.remove(place);
        self.hand_over(index, delivered);
    }

    /// Sends what an end has to send, and what its receiver has to say to others; arms their timers.
    #[cold]
    pub(super) fn pump_packets(&mut self, index: EndIndex) {
        let Some(mut sird) = self.sird.take() else { return };
        let mut next = Some(index);
        while let Some(index) = next {
            let end = &mut self.ends[index as usize];
            loop {
                let backlog = self.fabric.backlog(end.route.port, self.now);
                let place = self.fabric.free_place();
                let segment = &mut self.fabric.segments[place as usize];
                if !sird.write_transmit(index, self.now, backlog, segment) {
                    break;
                }
                self.payload.sent += u64::from(segment.payload);
                let bytes =
                    self.fabric.send_from(place, &mut self.schedule, self.now, end.route, peer(index));
                self.frames_sent += 1;
                self.wire_bytes_sent += u64::from(bytes);
            }
            let deadline = sird.poll_deadline(index);
            if deadline < end.timer_at {
                end.timer_at = deadline;
                self.schedule.insert(deadline.max(self.now), Occurrence::EndpointTimer(index));
            }
            next = sird.touched.pop();
        }
        self.sird = Some(sird);
    }

    /// An end has waited for long.
    #[cold]
    pub(super) fn handle_packet_timer(&mut self, index: EndIndex) {
        let Some(sird) = &mut self.sird else { return };
        if sird.poll_deadline(index) <= self.now && sird.handle_deadline(index, self.now) {
            // It is the other end's data that did not come.
            self.tell_of_timeout(peer(index));
        }
        self.pump_packets(index);
    }

    pub(super) fn assert_messages_conserved(&self, sird: &Sird) {
        sird.assert_conserved();
        for index in 0..self.ends.len() as EndIndex {
            let [written, arrived] = sird.written_and_arrived(index);
            let delivered = sird.delivered(peer(index));
            assert!(delivered <= written, "more was delivered than written");
            assert!(arrived <= delivered, "more was acknowledged than delivered");
        }
    }
}
