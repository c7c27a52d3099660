//! SIRD in TCP's place (Prasopoulos et al., NSDI 2025): [`fanin_dataflow::Sird`] decides, and its packets travel as segments.

mod packet;

use fanin_dataflow::{AccessLink, Sird, SirdConfig, SirdCounters, SirdEndCounters};
use fanin_scenario::{CongestionControl, Scenario};
use fanin_tcp::{Flags, Segment, Stats};
use fanin_units::{Duration, Rate};
use serde_json::{Value, json};

use super::hooks::{Installed, Setup, TechniqueFunctions, TransportHooks};
use crate::Error;
use crate::engine::Engine;
use crate::index::{EndIndex, NIL, peer};

use packet::{from_segment, to_segment};

/// The transport of all hosts.
struct SirdHosts {
    sird: Sird,
    /// Options in the headers of all packets.
    flags: Flags,
}

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions {
    build,
    holding_cause: |s| is_used(s.scenario).then_some(("grant-wait", "credit of the receiver")),
    ..TechniqueFunctions::NONE
};

fn is_used(scenario: &Scenario) -> bool {
    scenario.transport.congestion_control == CongestionControl::Sird
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    if !is_used(setup.scenario) {
        return Ok(None);
    }
    if setup.captures {
        return Err(Error::unsupported("record.capture", "a capture of SIRD's packets, which are not TCP,"));
    }
    let settings = &setup.scenario.transport.sird;
    let config = SirdConfig {
        bucket: settings.bucket,
        sender_bucket: settings.sender_bucket,
        unscheduled: settings.unscheduled,
        sender_threshold: settings.sender_threshold,
        gain: settings.gain,
        policy: settings.policy,
        timeout: settings.timeout,
        mss: setup.engine.config().mss,
    };
    let flags = if setup.engine.config().timestamps { Flags::TIMESTAMP } else { Flags::NONE };
    let sird = Sird::new(&config, &access_links(setup, flags));
    Ok(Some(Installed::Transport(Box::new(SirdHosts { sird, flags }))))
}

/// Returns the host and link of each end.
fn access_links(setup: &Setup<'_>, flags: Flags) -> Vec<AccessLink> {
    let Setup { network, engine, .. } = setup;
    let (fabric, ends, config) = (&engine.fabric, engine.ends(), engine.config());
    let full = fabric.wire_bytes(&Segment { payload: config.mss, flags, ..Segment::default() });
    let link = |(index, end): (usize, &crate::engine::ConnectionEnd)| {
        let there = ends[peer(index as EndIndex) as usize].route;
        if end.route.port == NIL {
            // A connection of a host with itself carries nothing.
            return AccessLink { node: u32::MAX, rtt: Duration::ZERO, rate: Rate::new(1_000_000_000) };
        }
        AccessLink {
            node: network.source(end.route.port),
            rtt: fabric.crossing_time(there, full)
                + fabric.crossing_time(end.route, fabric.header_wire_bytes()),
            rate: network.link(end.route.port).rate,
        }
    };
    ends.iter().enumerate().map(link).collect()
}

impl TransportHooks for SirdHosts {
    fn key(&self) -> &'static str {
        "sird"
    }

    fn write(&mut self, end: EndIndex, bytes: u64) -> u64 {
        self.sird.write_message(end, bytes)
    }

    fn handle_packet(&mut self, engine: &mut Engine, end: EndIndex, place: usize) {
        let segment = engine.fabric.segment(place);
        let is_marked = segment.flags.contains(Flags::CE);
        self.sird.handle_packet(end, engine.now(), from_segment(segment), is_marked);
    }

    /// Sends for an end, and also sends the control packets that its receiver has for other ends.
    fn pump(&mut self, engine: &mut Engine, end: EndIndex) {
        let mut next = Some(end);
        while let Some(index) = next {
            let port = engine.end(index).route.port;
            loop {
                let backlog = engine.fabric.backlog(port, engine.now());
                let Some(packet) = self.sird.poll_transmit(index, engine.now(), backlog) else { break };
                let place = engine.write_packet(to_segment(packet, self.flags));
                engine.transmit(index, place);
            }
            engine.arm_timer(index, self.sird.poll_deadline(index));
            next = self.sird.poll_touched();
        }
    }

    /// Handles the end's timer, if due. Returns the peer if the peer's data are overdue.
    fn handle_timer(&mut self, now: u64, end: EndIndex) -> Option<EndIndex> {
        let is_late = self.sird.poll_deadline(end) <= now && self.sird.handle_deadline(end, now);
        is_late.then(|| peer(end))
    }

    fn delivered(&self, end: EndIndex) -> u64 {
        self.sird.delivered_bytes(end)
    }

    /// Returns the counters in TCP's terms; timeouts are the receiver's.
    fn stats(&self, end: EndIndex) -> (Stats, u64) {
        let SirdEndCounters { packets: segments, retransmits, timeouts, arrived_bytes } =
            self.sird.end_counters(end);
        (Stats { segments, retransmits, timeouts, ..Stats::default() }, arrived_bytes)
    }

    fn assert_conserved(&self) {
        self.sird.assert_conserved();
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
        } = self.sird.counters;
        let share = if packets == 0 { 0.0 } else { congested as f64 / packets as f64 };
        json!({
            "bucket_bytes_max": self.sird.bucket_max(),
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
