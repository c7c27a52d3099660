//! The figures of the techniques in force, each under its own key of the summary.

use fanin_network::Network;
use fanin_queueing::{Limit, M21Switch};
use fanin_report::Summary;
use fanin_scenario::{CongestionControl, Scenario, WorkloadKind};
use serde_json::{Value, json};

use crate::diatcp::{Diatcp, DiatcpCounters};
use crate::fabric::{PauseFigures, RingFigures};
use crate::ictcp::IctcpCounters;
use crate::m21::{M21Counters, M21Switches};
use crate::sird::{Sird, SirdCounters};
use crate::world::{Workload, World};

/// Fills in what the techniques that a scenario uses have to say, over the whole run.
pub(crate) fn fill<W: Workload>(
    summary: &mut Summary,
    scenario: &Scenario,
    network: &Network,
    world: &World<W>,
) {
    let mut add = |key: &str, figures: Value| {
        summary.techniques.insert(key.to_owned(), figures);
    };
    if let Some(figures) = early_signals(world) {
        add("ecn", figures);
    }
    if let Some(figures) = world.fabric.pause_figures(world.now) {
        add("pause", pause(figures, world.now));
    }
    if let Some(m21) = &world.fabric.m21 {
        add("m21tcp", m21tcp(m21));
    }
    if let Some(ictcp) = &world.ictcp {
        let IctcpCounters { increases, decreases, window_max } = ictcp.counters;
        let figures =
            json!({ "increases": increases, "decreases": decreases, "window_segments_max": window_max });
        add("ictcp", figures);
    }
    if scenario.transport.congestion_control == CongestionControl::Swift {
        add("swift", swift(world));
    }
    if let Some(figures) = world.fabric.ring_figures() {
        add("daqring", rings(figures));
    }
    if let Some(pacer) = &world.pacer {
        add("fastpass", pacer.figures());
    }
    if let Some(sird) = &world.sird {
        add("sird", messages(sird));
    }
    if let Some(diatcp) = world.diatcp() {
        add("diatcp", receivers(diatcp));
    }
    if scenario.transport.congestion_control == CongestionControl::Dctcp {
        add("dctcp", dctcp(world));
    }
    if scenario.transport.congestion_control == CongestionControl::Static {
        add("static", windows(scenario, network));
    }
}

/// What markers did to the frames that they looked at.
fn early_signals<W: Workload>(world: &World<W>) -> Option<Value> {
    let (mut offered, mut marked, mut dropped) = (0, 0, 0);
    let mut any = false;
    for buffer in world.fabric.buffers().filter(|buffer| buffer.marks()) {
        any = true;
        let counters = buffer.counters();
        offered += counters.enqueued.frames + counters.dropped_total().frames;
        marked += counters.marked.frames;
        dropped += counters.dropped_by(Limit::Early).frames;
    }
    let share = if offered == 0 { 0.0 } else { marked as f64 / offered as f64 };
    any.then(
        || json!({ "frames": offered, "marked": marked, "marked_share": share, "dropped_early": dropped }),
    )
}

/// What the rings of destinations held and refused.
fn rings(figures: RingFigures) -> Value {
    json!({
        "rings": figures.rings,
        "frames": figures.frames,
        "drops": figures.drops,
        "frames_max": figures.frames_max,
        "bytes_max": figures.bytes_max,
        "memory_bytes": figures.memory_bytes,
    })
}

/// How often and how long neighbours were stopped.
fn pause(figures: PauseFigures, now: u64) -> Value {
    let ms = |ps: u64| ps as f64 / 1e9;
    json!({
        "pauses": figures.pauses,
        "resumes": figures.resumes,
        "hosts_stopped": figures.hosts_stopped,
        "switch_ports_stopped": figures.switch_ports_stopped,
        "stop_ms_max": ms(figures.longest),
        "stopped_share_max": figures.stopped_most as f64 / now.max(1) as f64,
        "storms": figures.storms,
        "input_bytes_max": figures.input_bytes_max,
    })
}

/// What all windows towards a collector hold together, in packets and as frames in a switch (ICC'15 eqs (6) and (7)): a queue that is
/// larger than that cannot be, and a buffer that is less than that beyond the path's own bytes may lose.
fn windows(scenario: &Scenario, network: &Network) -> Value {
    let own = u32::from(scenario.workload.kind == WorkloadKind::AllToAll);
    let senders = u64::from(scenario.senders() - own);
    let window = scenario.transport.static_window.get();
    json!({
        "window_packets": window,
        "senders": senders,
        "windows_bytes": senders * window * u64::from(network.frame_bytes),
    })
}

/// What the switches granted, and how many flows they counted.
fn m21tcp(m21: &M21Switches) -> Value {
    let M21Counters { written, rewritten, window_min, below_segment } = m21.counters;
    let mut figures = json!({
        "flows_max": m21.switches().map(M21Switch::flows_most).max().unwrap_or(0),
        "flows_aged": m21.switches().map(|switch| switch.flows().aged()).sum::<u64>(),
        "windows_written": written,
        "echoes_rewritten": rewritten,
        "frames_below_segment": below_segment,
    });
    if window_min != u32::MAX {
        figures["window_bytes_min"] = window_min.into();
    }
    figures
}

/// The round-trip times of the senders of data at the end, and their windows.
fn swift<W: Workload>(world: &World<W>) -> Value {
    let stats: Vec<_> = (0..world.ends_len() as u32)
        .map(|end| world.end_stats(end).0)
        .filter(|stats| stats.segments > 1)
        .collect();
    let mean = |sum: f64| if stats.is_empty() { 0.0 } else { sum / stats.len() as f64 };
    json!({
        "delay_us_mean": mean(stats.iter().map(|stats| stats.srtt.get() as f64 / 1e6).sum()),
        "window_bytes_mean": mean(stats.iter().map(|stats| stats.cwnd as f64).sum()),
    })
}

/// What the receivers granted and what telling it cost.
fn receivers(diatcp: &Diatcp) -> Value {
    let DiatcpCounters { updates, used_up } = diatcp.counters;
    let hosts = || diatcp.hosts().map(|shares| shares.counters);
    json!({
        "window_updates": updates,
        "acks_at_once": used_up,
        "granted_segments_max": hosts().map(|counters| counters.granted_max).max().unwrap_or_default(),
        "senders_max": hosts().map(|counters| counters.senders_max).max().unwrap_or_default(),
        "answers_late": hosts().map(|counters| counters.late).sum::<u64>(),
    })
}

/// What the receivers gave credit for, and what that took.
fn messages(sird: &Sird) -> Value {
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
    } = sird.counters;
    let share = if packets == 0 { 0.0 } else { congested as f64 / packets as f64 };
    json!({
        "bucket_bytes_max": sird.bucket_max(),
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

/// The marked share as the senders of data see it at the end, and how often they reduced their windows.
fn dctcp<W: Workload>(world: &World<W>) -> Value {
    let stats =
        (0..world.ends_len() as u32).map(|end| world.end_stats(end).0).filter(|stats| stats.segments > 1);
    let (mut senders, mut sum, mut max, mut reductions) = (0_u64, 0_u64, 0, 0);
    for stats in stats {
        senders += 1;
        sum += u64::from(stats.alpha_ppm);
        max = max.max(stats.alpha_ppm);
        reductions += stats.ecn_reductions;
    }
    let mean = if senders == 0 { 0.0 } else { sum as f64 / senders as f64 / 1e6 };
    json!({ "alpha_mean": mean, "alpha_max": f64::from(max) / 1e6, "reductions": reductions })
}
