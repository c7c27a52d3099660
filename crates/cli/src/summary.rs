//! A result's summary as text for a terminal.

use std::fmt::Write;

use fanin_report::{BackgroundFigures, FigureUnit, PortFigures, ResultKind, Summary, Times, seed_figures};
use serde_json::Value;

use crate::columns::aligned;

/// Column at which the figures begin.
const LABEL_WIDTH: usize = 18;

/// Returns the summary as text: the fate of the events, their times against the ideal, and the causes.
pub(crate) fn text(summary: &Summary) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: String| {
        if !text.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{label:<LABEL_WIDTH$}{text}");
        }
    };
    let name = &summary.scenario;
    let seed = summary.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
    let duration = summary.duration_s.map_or_else(String::new, |s| format!(", {s:.3} s measured"));
    line("scenario", format!("{} ({}){seed}{duration}", name.name, name.hash));
    if let Some(events) = &summary.events {
        let mut parts =
            vec![format!("{} assigned", events.assigned), format!("{} collected", events.collected)];
        let optional = [
            ("accepted", events.accepted),
            ("rejected", events.rejected),
            ("stored", events.stored),
            ("debug", events.debug),
        ];
        parts
            .extend(optional.iter().filter_map(|(word, count)| count.map(|count| format!("{count} {word}"))));
        parts.push(format!("{} lost", events.lost));
        if events.duplicated > 0 {
            parts.push(format!("{} duplicated", events.duplicated));
        }
        line("events", parts.join(", "));
    }
    if let Some(overload) = &summary.overload {
        line("overload", overload.text.trim_end_matches('.').to_owned());
    }
    let has_p99 = summary.has_p99();
    if let Some(times) = &summary.collection_time_ms {
        line("collection time", times_text(times, has_p99));
    }
    if let Some(requests) = &summary.requests {
        let met =
            requests.deadlines_met.map_or_else(String::new, |met| format!(", {met} within their deadline"));
        line("requests", format!("{} completed{met}", requests.completed));
        line(
            "request time",
            requests.time_ms.as_ref().map_or_else(String::new, |times| times_text(times, has_p99)),
        );
    }
    if let Some(slowdown) = &summary.slowdown {
        let s = slowdown;
        let p99 = p99_text(s.p99, "×", has_p99);
        line(
            "slowdown",
            format!("mean {:.3}×, median {:.3}×{p99}, max {:.2}× an event's own ideal", s.mean, s.p50, s.max),
        );
    }
    if let (Some(bound), Some(over)) = (&summary.bound, &summary.slowdown_bound) {
        let least = bound.least.slowdown;
        let p99 = p99_text(over.p99, "×", has_p99);
        let and = if has_p99 { format!(" and {:.2}×", least.p99) } else { String::new() };
        line(
            "over bound",
            format!(
                "mean {:.3}×{p99} (any schedule has at least {:.3}×{and} the ideal)",
                over.mean, least.mean
            ),
        );
        if let Some(over) = &summary.slowdown_clairvoyant {
            let p99 = p99_text(over.p99, "×", has_p99);
            line("over clairvoyant", format!("mean {:.3}×{p99} a schedule that knows all events", over.mean));
        }
    }
    if let Some(goodput) = &summary.goodput_bps {
        let each =
            goodput.per_collector_mean.map_or_else(String::new, |bps| format!(", {} a collector", rate(bps)));
        let ideal = summary.ideal.as_ref().and_then(|ideal| ideal.goodput_bps);
        let of = ideal.map_or_else(String::new, |bps| format!(" ({} at best)", rate(bps)));
        line("goodput", format!("{}{each}{of}", rate(goodput.total)));
    }
    if let Some(load) = &summary.load {
        let shares = [("last hop", load.last_hop), ("uplink", load.uplink)];
        let parts: Vec<_> = shares
            .iter()
            .filter_map(|(word, share)| share.map(|share| format!("{word} {:.1} %", share * 100.0)))
            .collect();
        line("load", parts.join(", "));
    }
    if let Some(network) = &summary.network {
        let counts = [
            ("frames", network.packets),
            ("dropped", network.drops),
            ("lost on links", network.link_losses),
            ("marked", network.ecn_marks),
            ("pauses", network.pauses),
        ];
        let mut parts: Vec<_> =
            counts.iter().filter_map(|(word, count)| count.map(|count| format!("{count} {word}"))).collect();
        parts.extend(
            network.queue_bytes_max.map(|bytes| format!("largest queue {}", fanin_units::Bytes::new(bytes))),
        );
        line("network", parts.join(", "));
        let share = network.losing_share.filter(|&share| share > 0.0);
        let word = if summary.requests.is_some() { "requests" } else { "events" };
        let share = share.map(|share| format!("{:.1} % of the {word}", 100.0 * share));
        line("lost frames", share.unwrap_or_default());
    }
    for (index, port) in summary.ports.iter().enumerate() {
        line(if index == 0 { "full ports" } else { "" }, port_text(port));
    }
    let named: u64 = summary.ports.iter().map(|port| port.drops).sum();
    let drops = summary.network.as_ref().and_then(|network| network.drops);
    if let Some(others) = drops.map(|drops| drops.saturating_sub(named)).filter(|&others| others > 0)
        && !summary.ports.is_empty()
    {
        line("", format!("other ports: {others} dropped"));
    }
    for (index, one) in summary.connections.iter().enumerate() {
        let timeouts = one.timeouts.map_or_else(String::new, |count| counted(count, "timeout") + ", ");
        let text = format!(
            "{}: {timeouts}{} sent again in the whole run",
            one.name,
            counted(one.retransmits, "segment")
        );
        line(if index == 0 { "waiting" } else { "" }, text);
    }
    if let Some(late) = &summary.late {
        line("slowest event", late.text.trim_end_matches('.').to_owned());
    }
    if let Some(tcp) = &summary.tcp {
        let counts = [
            ("segments", tcp.segments),
            ("retransmitted", tcp.retransmits),
            ("spuriously", tcp.spurious_retransmits),
            ("timeouts", tcp.timeouts),
            ("tail loss probes", tcp.tail_loss_probes.filter(|&probes| probes > 0)),
            ("fast retransmits", tcp.fast_retransmits),
        ];
        let mut parts: Vec<_> =
            counts.iter().filter_map(|(word, count)| count.map(|count| format!("{count} {word}"))).collect();
        let of_event = summary.events.as_ref().and_then(|events| events.timeouts_mean);
        let of_round = summary.requests.as_ref().and_then(|requests| requests.timeouts_mean);
        let means = [("an event", of_event), ("a round", of_round)];
        let held_up =
            means.iter().filter_map(|(of, mean)| mean.map(|mean| (of, mean))).find(|(_, mean)| *mean > 0.0);
        parts.extend(held_up.map(|(of, mean)| format!("{mean:.2} timeouts hold {of} up")));
        line("tcp", parts.join(", "));
    }
    if let Some(background) = &summary.background {
        line("background", background_text(background));
    }
    if let Some(shaping) = &summary.shaping {
        let credits = shaping.credits.map_or_else(String::new, |credits| format!("{credits} credits"));
        let wait = shaping
            .wait_ms_mean
            .map_or_else(String::new, |ms| format!(", a request waits {ms:.3} ms for them"));
        line("shaping", format!("{credits}{wait}"));
    }
    if summary.kind == ResultKind::Sim {
        for (technique, figures) in &summary.techniques {
            line(&words(technique), figures_text(figures));
        }
    }
    if let Some(speed) = &summary.speed
        && let (Some(cpu), Some(hops)) = (speed.cpu_s, speed.packet_hops)
    {
        let each =
            speed.packet_hops_per_cpu_s.map_or_else(String::new, |rate| format!(", {:.1} M/s", rate / 1e6));
        line("cost", format!("{cpu:.2} CPU s for {:.1} M packet-hops{each}", hops as f64 / 1e6));
    }
    out
}

/// Returns a table of several runs: their settings and main figures.
pub(crate) fn table<'a>(rows: impl Iterator<Item = (String, &'a Summary)>) -> String {
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or_default().max(7);
    let mut out = format!(
        "{:<width$}  {:>9}  {:>9}  {:>9}  {:>7}  {:>11}  {:>8}  {:>9}\n",
        "setting", "mean ms", "p99 ms", "max ms", "ideal", "goodput", "drops", "timeouts"
    );
    for (label, summary) in rows {
        let times = summary.collection_time_ms.as_ref();
        let times = times.or(summary.requests.as_ref().and_then(|requests| requests.time_ms.as_ref()));
        let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let count = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let _ = writeln!(
            out,
            "{label:<width$}  {:>9}  {:>9}  {:>9}  {:>7}  {:>11}  {:>8}  {:>9}",
            figure(times.map(|times| times.mean)),
            figure(times.filter(|_| summary.has_p99()).map(|times| times.p99)),
            figure(times.map(|times| times.max)),
            figure(times.and_then(|times| times.ideal)),
            summary.goodput_bps.as_ref().map_or_else(|| "-".to_owned(), |goodput| rate(goodput.total)),
            count(summary.network.as_ref().and_then(|network| network.drops)),
            count(summary.tcp.as_ref().and_then(|tcp| tcp.timeouts)),
        );
    }
    out
}

/// Returns a table of means over the seeds of each setting, with intervals of 95 %. Empty if no setting has several seeds.
pub(crate) fn over_seeds<'a>(rows: impl Iterator<Item = (String, &'a Summary)>) -> String {
    let mut groups: Vec<(String, Vec<&Summary>)> = Vec::new();
    for (name, summary) in rows {
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, summaries)) => summaries.push(summary),
            None => groups.push((name, vec![summary])),
        }
    }
    if groups.iter().all(|(_, summaries)| summaries.len() < 2) {
        return String::new();
    }
    const SHOWN: [(&str, &str); 6] = [
        ("mean", "mean ms"),
        ("p99", "p99 ms"),
        ("max", "max ms"),
        ("goodput", "goodput"),
        ("drops", "drops"),
        ("timeouts", "timeouts"),
    ];
    let heads = SHOWN.iter().map(|(_, head)| (*head).to_owned());
    let heads = ["over seeds".to_owned(), "seeds".to_owned()].into_iter().chain(heads);
    let mut table: Vec<Vec<String>> = vec![heads.collect()];
    for (name, summaries) in &groups {
        let figures = seed_figures(summaries);
        let cell = |name: &str| {
            let (figure, over) = figures.iter().find(|(figure, _)| figure.name == name)?;
            Some(over.text(|value| match figure.unit {
                FigureUnit::BitsPerSecond => rate(value),
                FigureUnit::Count => format!("{value:.1}"),
                _ => format!("{value:.2}"),
            }))
        };
        let cells = SHOWN.iter().map(|(name, _)| cell(name).unwrap_or_else(|| "-".to_owned()));
        let name = if name.is_empty() { "all" } else { name };
        table.push([name.to_owned(), summaries.len().to_string()].into_iter().chain(cells).collect());
    }
    let lines = aligned(&table, |column| column > 0);
    format!("\nmean ± half of its interval of 95 %\n{}\n", lines.join("\n"))
}

/// Returns the numeric figures of a technique with their keys; other figures are only in the files.
fn figures_text(figures: &Value) -> String {
    let figure = |(key, value): (&String, &Value)| {
        let number = value.as_number()?;
        let text = match number.as_f64() {
            Some(float) if number.is_f64() => format!("{float:.3}"),
            _ => number.to_string(),
        };
        Some(format!("{} {text}", words(key)))
    };
    let parts: Vec<String> = figures.as_object().into_iter().flatten().filter_map(figure).collect();
    parts.join(", ")
}

/// Describes the drops of a port: number, queue, times and senders.
fn port_text(port: &PortFigures) -> String {
    let mut parts = vec![format!("{} dropped", port.drops)];
    if let Some(bytes) = port.dropped_bytes.filter(|&bytes| bytes > 0) {
        parts[0] += &format!(" ({})", short(bytes));
    }
    let limit = port.limit_bytes.map_or_else(String::new, |limit| format!(" of {}", short(limit)));
    parts.push(format!("queue up to {}{limit}", short(port.queue_bytes_max)));
    parts.extend(
        port.first_drop_limit_bytes
            .map(|bytes| format!("limit falls as the pool fills, {} at the first drop", short(bytes))),
    );
    if let (Some(first), Some(last)) = (port.first_drop_ms, port.last_drop_ms) {
        parts.push(format!("from {first:.1} to {last:.1} ms"));
    }
    parts.extend(port.utilisation.map(|share| format!("link {:.1} % used", share * 100.0)));
    if let (Some(total), Some(worst)) = (port.sources_total, port.sources.first()) {
        parts.push(match total {
            1 => format!("all from {}", worst.name),
            total => format!("{total} sources, most from {}", worst.name),
        });
    }
    format!("{}: {}", port.name, parts.join(", "))
}

/// Formats bytes; from 1 kB on with a prefix of the unit and one decimal.
fn short(bytes: u64) -> String {
    // 999 950 B round to 1.0 MB, not to 1000.0 kB.
    let (value, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..999_950 => (bytes as f64 / 1e3, "kB"),
        999_950..999_950_000 => (bytes as f64 / 1e6, "MB"),
        _ => (bytes as f64 / 1e9, "GB"),
    };
    format!("{value:.1} {unit}")
}

/// Returns a count with its noun.
fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn words(key: &str) -> String {
    key.replace('_', " ")
}

fn times_text(times: &Times, has_p99: bool) -> String {
    let ideal = times.ideal.map_or_else(String::new, |ideal| format!(", ideal {ideal:.2}"));
    let p99 = p99_text(times.p99, "", has_p99);
    format!("mean {:.2} ms, median {:.2}{p99}, max {:.2}{ideal}", times.mean, times.p50, times.max)
}

/// Describes background traffic: its goodput, transfers and losses.
fn background_text(figures: &BackgroundFigures) -> String {
    let connections = figures.connections.map(|count| counted(count, "connection"));
    let spread = figures.goodput_bps_min.zip(figures.goodput_bps_max).filter(|(least, most)| least < most);
    let spread = spread.map(|(least, most)| format!(" ({} to {} each)", rate(least), rate(most)));
    let goodput = figures.goodput_bps.map(|bps| format!("{}{}", rate(bps), spread.unwrap_or_default()));
    let transfers = figures.transfers.map(|count| {
        let times = figures.transfer_ms.as_ref();
        let mean = times.map_or_else(String::new, |times| format!(" in {:.2} ms on average", times.mean));
        format!("{}{mean}", counted(count, "transfer"))
    });
    let retransmits = figures.retransmits.map(|count| format!("{count} retransmitted"));
    let timeouts = figures.timeouts.map(|count| counted(count, "timeout"));
    let parts = [connections, goodput, transfers, retransmits, timeouts];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Formats a 99th percentile; empty if too few events were measured.
fn p99_text(value: f64, unit: &str, has_p99: bool) -> String {
    if has_p99 { format!(", p99 {value:.2}{unit}") } else { String::new() }
}

pub(crate) fn rate(bps: f64) -> String {
    let (value, unit) = match bps {
        bps if bps >= 1e12 => (bps / 1e12, "Tb/s"),
        bps if bps >= 1e9 => (bps / 1e9, "Gb/s"),
        bps => (bps / 1e6, "Mb/s"),
    };
    format!("{value:.2} {unit}")
}
