//! SIRD: receivers give credit in bytes for messages (Prasopoulos et al., NSDI 2025), in the tradition of Homa
//! (Montazeri et al., SIGCOMM 2018). It takes TCP's place.
//!
//! A sender sends a message up to a threshold at once. For a larger one it requests credit, and sends as much as it has
//! credit for. A receiver's outstanding credit never exceeds its bucket B (§4.1), nor for one sender that sender's
//! bucket, which follows the marks of the network and of the sender (§4.2, §4.3). Credit returns with the data. It goes
//! to the message with the least bytes left, or to the senders in turn.
//!
//! The messages between two hosts form a stream and are delivered in order. A receiver asks again for data that are
//! overdue; a sender that hears nothing asks about its oldest message.

mod bucket;
mod incoming;
mod packet;
mod transport;

use fanin_scenario::CongestionControl;
use fanin_tcp::{Flags, Segment, Stats};
use fanin_units::{Duration, Rate};
use serde_json::{Value, json};

use super::hooks::{Installed, Setup, TransportHooks};
use crate::Error;
use crate::engine::{Engine, FRAME_BYTES_MIN};
use crate::index::{EndIndex, NIL, peer};

use transport::{AccessLink, Sird, SirdCounters};

pub(super) fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let transport = &setup.scenario.transport;
    if transport.congestion_control != CongestionControl::Sird {
        return Ok(None);
    }
    if setup.captures {
        return Err(Error::unsupported("record.capture", "a capture of SIRD's packets, which are no TCP,"));
    }
    let config = &setup.engine.config;
    let (mss, links) = (u32::from(config.mss), access_links(setup));
    let sird = Sird::new(&transport.sird, mss, config.timestamps, &links);
    Ok(Some(Installed::Transport(Box::new(sird))))
}

/// The host and link of each end.
fn access_links(setup: &Setup<'_>) -> Vec<AccessLink> {
    let Setup { network, engine, .. } = setup;
    let Engine { fabric, ends, config, .. } = engine;
    let full = fabric.wire_bytes(&Segment {
        payload: config.mss,
        flags: if config.timestamps { Flags::TIMESTAMP } else { Flags::NONE },
        ..Segment::default()
    });
    let link = |(index, end): (usize, &crate::engine::ConnectionEnd)| {
        let there = ends[peer(index as EndIndex) as usize].route;
        if end.route.port == NIL {
            // A connection of a host with itself carries nothing.
            return AccessLink { node: u32::MAX, rtt: Duration::ZERO, rate: Rate::new(1_000_000_000) };
        }
        AccessLink {
            node: network.source(end.route.port),
            rtt: fabric.crossing_time(there, full) + fabric.crossing_time(end.route, FRAME_BYTES_MIN),
            rate: network.links[end.route.port as usize / 2].rate,
        }
    };
    ends.iter().enumerate().map(link).collect()
}

impl TransportHooks for Sird {
    fn key(&self) -> &'static str {
        "sird"
    }

    fn write(&mut self, end: EndIndex, bytes: u64) -> u64 {
        self.write_message(end, bytes)
    }

    fn handle_packet(&mut self, engine: &mut Engine, end: EndIndex, place: usize) {
        self.handle_segment(end, engine.now, &engine.fabric.segments[place]);
    }

    /// Also sends the control packets that its receiver has for other ends.
    fn pump(&mut self, engine: &mut Engine, end: EndIndex) {
        let mut next = Some(end);
        while let Some(index) = next {
            let port = engine.end(index).route.port;
            loop {
                let backlog = engine.fabric.backlog(port, engine.now);
                let place = engine.fabric.free_place();
                let now = engine.now;
                if !self.write_transmit(index, now, backlog, engine.segment(place)) {
                    break;
                }
                engine.payload.sent += u64::from(engine.segment(place).payload);
                engine.transmit(index, place);
            }
            engine.arm_timer(index, self.poll_deadline(index));
            next = self.touched.pop();
        }
    }

    /// It is the other end's data that did not arrive.
    fn handle_timer(&mut self, now: u64, end: EndIndex) -> Option<EndIndex> {
        let is_late = self.poll_deadline(end) <= now && self.handle_deadline(end, now);
        is_late.then(|| peer(end))
    }

    fn delivered(&self, end: EndIndex) -> u64 {
        self.delivered_bytes(end)
    }

    fn stats(&self, end: EndIndex) -> (Stats, u64) {
        (self.end_stats(end), self.written_and_arrived(end)[1])
    }

    fn assert_conserved(&self) {
        self.assert_credit_conserved();
    }

    fn figures(&self) -> Value {
        let SirdCounters {
            requests,
            credits,
            resends,
            acknowledgements,
            credit_bytes,
            unscheduled_bytes,
            packets,
            congested,
            timeouts,
            retransmits,
            outstanding_max,
            ..
        } = self.counters;
        let share = if packets == 0 { 0.0 } else { congested as f64 / packets as f64 };
        json!({
            "bucket_bytes_max": self.bucket_max(),
            "credit_outstanding_bytes_max": outstanding_max,
            "credit_bytes": credit_bytes,
            "unscheduled_bytes": unscheduled_bytes,
            "data_packets": packets,
            "congested_senders_share": share,
            "requests": requests,
            "credits": credits,
            "acknowledgements": acknowledgements,
            "resends": resends,
            "timeouts": timeouts,
            "retransmits": retransmits,
        })
    }
}
