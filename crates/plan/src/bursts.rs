//! The burst towards one collector: the bytes that each technique allows in flight at once.

use fanin_scenario::{CongestionControl, EcnMode, M21Charge, Scenario, ShapingMethod, WindowState};
use fanin_units::{Bytes, Packets};

use crate::bounds::{credit_burst, m21tcp_packets, m21tcp_window};
use crate::derived::{Derived, brief};
use crate::system::SystemFigures;

/// A limit of the bytes that can be in flight to one collector at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Burst {
    /// Bytes of the burst in frames.
    pub(crate) frames: Derived<Bytes>,
    /// Number of packets of the burst.
    pub(crate) packets: Packets,
    /// Bytes of the burst that enter at line rate. Acknowledgements release the rest, two bytes for each departing one.
    pub(crate) at_once: Bytes,
    /// The limiting quantity, in words.
    pub(crate) limit: &'static str,
    /// True if only the size of events limits the burst.
    pub(crate) is_unshaped: bool,
    /// True if the burst varies with the event's size. Events and credits for their fragments do, windows do not.
    pub(crate) varies: bool,
}

/// Computes the burst towards one collector: the least of all limits of the technique in force.
pub(crate) fn burst(s: &Scenario, system: &SystemFigures) -> Burst {
    let (answer, answers) = (system.answer, system.answers_at_once());
    let frame = Bytes::new(system.segments.buffered(system.segments.mss()));
    let events = system.overlap;
    let all = answer.buffered * answers * events;
    let all_packets = Packets::new(answer.segments.get() * answers * events);
    let whole = Derived::new(
        "burst",
        all,
        "events at once × answers × frames of an answer",
        format!("{events} × {answers} × {}", brief(answer.buffered)),
        "thesis §4.2.2",
    );
    let t = &s.transport;
    // Windows that grow start with this size. Windows of other congestion controls are limits of their own below.
    let grows = matches!(
        t.congestion_control,
        CongestionControl::NewReno
            | CongestionControl::Cubic
            | CongestionControl::Dctcp
            | CongestionControl::Ictcp
            | CongestionControl::Swift
            | CongestionControl::Bbr
    );
    let first = match t.window_state {
        WindowState::Cold => t.initial_window.get(),
        WindowState::Warm => t.receive_window.get() / system.segments.mss(),
    };
    let first = frame.checked_mul(first).unwrap_or(Bytes::MAX).min(answer.buffered * events);
    let first = if grows { first * answers } else { all };
    let mut limits = vec![Burst {
        frames: whole,
        packets: all_packets,
        at_once: first,
        limit: if events > 1 { "all units at once" } else { "one event" },
        is_unshaped: true,
        varies: true,
    }];
    let mut limit = |frames: Derived<Bytes>, packets, at_once, limit, varies| {
        let frames = frames.named("burst");
        limits.push(Burst { frames, packets, at_once, limit, is_unshaped: false, varies });
    };
    if s.shaping.method == ShapingMethod::Credits {
        let credits = u64::from(s.shaping.credits);
        let frames = credit_burst(credits, &system.requests());
        let packets = Packets::new(credits / system.fragments * answer.segments.get());
        limit(frames.clone(), packets, frames.value, "credits", true);
    }
    let window = |packets: u64, formula, source, windows: &'static str| {
        // Each flow sends its window or its answers, whichever is smaller.
        let per_flow = frame.checked_mul(packets).unwrap_or(Bytes::MAX).min(answer.buffered * events);
        let segments = packets.min(answer.segments.get() * events);
        let frames = Derived::new(
            "burst",
            per_flow * answers,
            formula,
            format!("{answers} × {}", brief(per_flow)),
            source,
        );
        (frames, Packets::new(segments * answers), per_flow * answers, windows)
    };
    match t.congestion_control {
        CongestionControl::Static => {
            let (frames, packets, at_once, windows) = window(
                t.static_window.get(),
                "flows × window in frames",
                "ICC'15 §IV.C eq. (7)",
                "static windows",
            );
            limit(frames, packets, at_once, windows, false);
        }
        CongestionControl::M21tcp => {
            let buffer = s.tor.buffer;
            let mss = Bytes::new(system.segments.mss());
            let (packets, source) = match t.m21tcp.charge {
                M21Charge::Packet => (
                    m21tcp_packets(buffer, answers, mss, frame.saturating_sub(mss)).value.get(),
                    "M21TCP §III.C, each packet charged",
                ),
                M21Charge::Flow => {
                    let granted = m21tcp_window(buffer, answers, t.m21tcp.header).value;
                    (granted.saturating_sub(t.option_bytes()).get() / mss.get(), "M21TCP §III.C eq. (1)")
                }
            };
            // Senders wait for room for a whole segment, but may always have one under way.
            let (frames, packets, at_once, windows) =
                window(packets.max(1), "flows × granted window in frames", source, "the switch's windows");
            limit(frames, packets, at_once, windows, false);
        }
        CongestionControl::Diatcp => {
            // Connections that exceed the global window wait.
            let packets = t.diatcp.global_window.get().min(all_packets.get());
            let frames = Derived::new(
                "burst",
                frame * packets,
                "global window in frames",
                format!("{packets} × {}", brief(frame)),
                "ICC'15 §IV.D eq. (9)",
            );
            limit(frames, Packets::new(packets), frame * packets, "the global window", false);
        }
        CongestionControl::Sird => {
            // SIRD's BDP counts the network alone, so that this is the upper bound.
            let bdp = system.last_hop.bytes_in(system.rtt.value);
            let mss = Bytes::new(system.segments.mss());
            let packets = t.sird.bucket.of_bytes(bdp).max(mss).div_ceil(mss).min(all_packets.get());
            let frames = Derived::new(
                "burst",
                frame * packets,
                "bucket × BDP in frames",
                format!("{} × {} = {packets} × {}", t.sird.bucket, brief(bdp), brief(frame)),
                "SIRD §4.1",
            );
            limit(frames, Packets::new(packets), frame * packets, "the receiver's credit", false);
        }
        _ => assert!(grows, "every other control has a limit here"),
    }
    let marks = t.ecn && s.tor.ecn.mode != EcnMode::Off && s.tor.ecn.mode != EcnMode::RedDrop;
    let signalled = matches!(
        t.congestion_control,
        CongestionControl::Dctcp | CongestionControl::Ictcp | CongestionControl::Swift
    );
    if signalled || (grows && marks) {
        // A signal takes effect after a round trip. Until then slow start doubles the first windows once.
        let frames = Derived::new(
            "burst",
            all.min(first.saturating_add(first)),
            "flows × first window × 2, at most the answers",
            format!("2 × {}", brief(first)),
            "RFC 5681 §3.1, RFC 8257 §3",
        );
        let packets = Packets::new(frames.value.div_ceil(frame));
        let at_once = frames.value;
        limit(frames, packets, at_once, "segments sent before the first signal", false);
    }
    let receive = t.receive_window.get().div_ceil(system.segments.mss());
    let (frames, packets, at_once, windows) =
        window(receive, "flows × receive window in frames", "RFC 9293 §3.8", "receive windows");
    limit(frames, packets, at_once.min(first), windows, false);
    limits.into_iter().min_by_key(|limit| limit.frames.value).expect("an event is always a limit")
}
