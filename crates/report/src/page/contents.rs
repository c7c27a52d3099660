//! The figures of the summary table, with their order and words.

use super::format::FigureForm;

/// A row of the summary table.
pub(crate) struct Figure {
    /// JSON pointer of the figure in a summary.
    pub(crate) pointer: &'static str,
    /// Label of the row.
    pub(crate) label: &'static str,
    /// Form of the figure in text.
    pub(crate) form: FigureForm,
    /// The ideal of which the figure is a multiple or share.
    pub(crate) over: Option<&'static str>,
}

const fn row(pointer: &'static str, label: &'static str, form: FigureForm) -> Figure {
    Figure { pointer, label, form, over: None }
}

const fn over(pointer: &'static str, label: &'static str, form: FigureForm, over: &'static str) -> Figure {
    Figure { pointer, label, form, over: Some(over) }
}

use FigureForm::{Bits, Bytes, Factor, Hertz, Millis, Number, Seconds, Share};

const TIME: &str = "/collection_time_ms/ideal";
const REQUEST: &str = "/requests/time_ms/ideal";
const GOODPUT: &str = "/ideal/goodput_bps";

/// Sections of the summary table.
pub(crate) const SECTIONS: &[(&str, &[Figure])] = &[
    (
        "Ideal figures of the network",
        &[
            row("/ideal/collection_time_ms", "Time of a mean event", Millis),
            row("/ideal/goodput_bps", "Goodput of a collector", Bits),
        ],
    ),
    (
        "Data-collection time of an event",
        &[
            row("/collection_time_ms/ideal", "Ideal", Millis),
            over("/collection_time_ms/mean", "Mean", Millis, TIME),
            row("/collection_time_ms/std", "Standard deviation", Millis),
            over("/collection_time_ms/min", "Smallest", Millis, TIME),
            over("/collection_time_ms/p01", "p1", Millis, TIME),
            over("/collection_time_ms/p25", "p25", Millis, TIME),
            over("/collection_time_ms/p50", "Median", Millis, TIME),
            over("/collection_time_ms/p75", "p75", Millis, TIME),
            over("/collection_time_ms/p90", "p90", Millis, TIME),
            over("/collection_time_ms/p99", "p99", Millis, TIME),
            over("/collection_time_ms/p999", "p99.9", Millis, TIME),
            over("/collection_time_ms/max", "Largest", Millis, TIME),
        ],
    ),
    (
        "Time of a synchronised request",
        &[
            row("/requests/completed", "Requests completed", Number),
            row("/requests/time_ms/ideal", "Ideal", Millis),
            over("/requests/time_ms/mean", "Mean", Millis, REQUEST),
            row("/requests/time_ms/std", "Standard deviation", Millis),
            over("/requests/time_ms/min", "Smallest", Millis, REQUEST),
            over("/requests/time_ms/p50", "Median", Millis, REQUEST),
            over("/requests/time_ms/p90", "p90", Millis, REQUEST),
            over("/requests/time_ms/p99", "p99", Millis, REQUEST),
            over("/requests/time_ms/p999", "p99.9", Millis, REQUEST),
            over("/requests/time_ms/max", "Largest", Millis, REQUEST),
        ],
    ),
    (
        "Slowdown: each event over its own ideal",
        &[
            row("/slowdown/mean", "Mean", Factor),
            row("/slowdown/p50", "Median", Factor),
            row("/slowdown/p99", "p99", Factor),
            row("/slowdown/max", "Largest", Factor),
            row("/bound/slowdown/mean", "Least mean that any schedule could reach", Factor),
            row("/bound/clairvoyant/slowdown/mean", "Mean of a clairvoyant schedule", Factor),
            row("/slowdown_bound/mean", "Mean over the least", Factor),
            row("/slowdown_bound/p99", "p99 over the least", Factor),
            row("/slowdown_clairvoyant/mean", "Mean over the clairvoyant schedule's", Factor),
            row("/slowdown_clairvoyant/p99", "p99 over the clairvoyant schedule's", Factor),
        ],
    ),
    (
        "Events",
        &[
            row("/events/rate_hz", "Collected a second", Hertz),
            row("/events/assigned", "Assigned", Number),
            row("/events/collected", "Collected", Number),
            row("/events/accepted", "Accepted", Number),
            row("/events/rejected", "Rejected", Number),
            row("/events/stored", "Stored", Number),
            row("/events/debug", "Stored undecided", Number),
            row("/events/lost", "Lost", Number),
            row("/events/duplicated", "Collected twice", Number),
        ],
    ),
    (
        "Goodput and load",
        &[
            row("/goodput_bps/total", "Goodput, all collectors", Bits),
            over("/goodput_bps/per_collector_mean", "Goodput of a collector, mean", Bits, GOODPUT),
            row("/load/last_hop", "Load of the last hop", Share),
            row("/load/uplink", "Load of the uplinks", Share),
        ],
    ),
    (
        "Network",
        &[
            row("/network/drops", "Frames refused by a full buffer", Number),
            row("/network/link_losses", "Frames lost on links", Number),
            row("/network/losing_share", "Events or requests that lost frames", Share),
            row("/network/queue_bytes_max", "Deepest queue", Bytes),
            row("/network/packets", "Frames sent", Number),
            row("/network/bytes", "Bytes on the wire", Bytes),
            row("/network/ecn_marks", "Frames marked (ECN)", Number),
            row("/network/pauses", "PAUSE frames", Number),
        ],
    ),
    (
        "TCP",
        &[
            row("/tcp/timeouts", "Retransmission timeouts", Number),
            row("/tcp/tail_loss_probes", "Tail loss probes", Number),
            row("/events/timeouts_mean", "Timeouts that hold up an event, mean", Number),
            row("/requests/timeouts_mean", "Timeouts that hold up a round, mean", Number),
            row("/tcp/retransmits", "Retransmissions", Number),
            row("/tcp/fast_retransmits", "Fast retransmissions", Number),
            row("/tcp/spurious_retransmits", "Spurious retransmissions", Number),
            row("/tcp/segments", "Segments sent", Number),
        ],
    ),
    (
        "Background traffic",
        &[
            row("/background/connections", "Connections", Number),
            row("/background/goodput_bps", "Goodput, all together", Bits),
            row("/background/goodput_bps_min", "Goodput of the slowest connection", Bits),
            row("/background/goodput_bps_max", "Goodput of the fastest connection", Bits),
            row("/background/transfers", "Transfers completed", Number),
            row("/background/transfer_ms/mean", "Time of a transfer, mean", Millis),
            row("/background/transfer_ms/p99", "Time of a transfer, p99", Millis),
            row("/background/timeouts", "Retransmission timeouts", Number),
            row("/background/retransmits", "Retransmissions", Number),
            row("/background/segments", "Segments sent", Number),
        ],
    ),
    (
        "Shaping",
        &[
            row("/shaping/credits", "Credits of a collector, fragments", Number),
            row("/shaping/wait_ms_mean", "Wait for credits, mean", Millis),
        ],
    ),
];

/// Columns of the table of many results.
pub(crate) const POINT: &[Figure] = &[
    row("/collection_time_ms/mean", "Mean", Millis),
    row("/collection_time_ms/p99", "p99", Millis),
    row("/requests/time_ms/mean", "Mean", Millis),
    row("/requests/time_ms/p99", "p99", Millis),
    row("/goodput_bps/total", "Goodput", Bits),
    row("/network/queue_bytes_max", "Deepest queue", Bytes),
    row("/network/drops", "Drops", Number),
    row("/tcp/timeouts", "Timeouts", Number),
];

/// Cost of the result. It is shown last, because it says nothing about the network.
pub(crate) const COST: &[Figure] = &[
    row("/speed/wall_s", "Time by the clock", Seconds),
    row("/speed/cpu_s", "Processor time", Seconds),
    row("/speed/packet_hops", "Packet-hops", Number),
    row("/speed/packet_hops_per_cpu_s", "Packet-hops a processor second", Number),
    row("/speed/simulated_bytes_per_cpu_s", "Wire bytes a processor second", Bytes),
    row("/speed/peak_rss_bytes", "Memory, most", Bytes),
];

/// Settings named in the page's head where the scenario has them; the whole scenario follows them.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("workload.kind", "Workload"),
    ("workload.senders", "Senders"),
    ("workload.request_size", "Request size"),
    ("readout.hosts", "Readout hosts"),
    ("readout.fragments_per_host", "Fragments a host"),
    ("readout.fragment_size", "Fragment size"),
    ("collectors.racks", "Racks"),
    ("collectors.hosts_per_rack", "Collectors a rack"),
    ("supervisor.rate", "Event rate"),
    ("supervisor.policy", "Assignment"),
    ("shaping.method", "Shaping"),
    ("shaping.credits", "Credits"),
    ("background.connections", "Background connections"),
    ("background.kind", "Background traffic"),
    ("background.load", "Background load"),
    ("link.rate", "Link rate"),
    ("link.delay", "Link delay"),
    ("tor.buffering", "Rack switch buffering"),
    ("tor.buffer", "Rack switch buffer"),
    ("core.buffer", "Core switch buffer"),
    ("transport.profile", "TCP stack"),
    ("transport.congestion_control", "Congestion control"),
    ("transport.static_window", "Static window"),
    ("transport.rto_min", "Minimum RTO"),
    ("transport.mss", "MSS"),
];

/// Labels of settings that the head leaves out. They are shown if a sweep varies them.
pub(super) const OTHER_LABELS: &[(&str, &str)] =
    &[("run.duration", "Measured time"), ("run.warmup", "Warm-up"), ("run.seed", "Seed")];

/// Returns true if a setting has an effect in this system, judged by the scenario's other settings.
pub(super) fn matters(name: &str, tree: &toml::Value) -> bool {
    let is = |name: &str, values: &[&str]| {
        let value = name.split('.').try_fold(tree, |tree, key| tree.get(key));
        value.and_then(toml::Value::as_str).is_some_and(|value| values.contains(&value))
    };
    let is_barrier = is("workload.kind", &["fixed-fragment", "fixed-block"]);
    let is_star = is("network.topology", &["star"]);
    match name {
        "workload.senders" | "workload.request_size" => is_barrier,
        "shaping.credits" => is("shaping.method", &["credits"]),
        "transport.static_window" => is("transport.congestion_control", &["static"]),
        "background.load" => is("background.kind", &["transfers"]),
        "tor.buffer" => !is("tor.buffering", &["unlimited"]),
        "core.buffer" => !is_star && !is("core.buffering", &["unlimited"]),
        "collectors.racks" => !is_star && !is_barrier,
        _ if name.starts_with("readout.") || name.starts_with("collectors.") => !is_barrier,
        _ if name.starts_with("supervisor.") || name.starts_with("shaping.") => !is_barrier,
        _ => true,
    }
}
