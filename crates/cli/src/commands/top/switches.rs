//! Switches on the screen, and their rings.

use super::series::MetricSeries;
use super::table::{ScreenTable, Tone, bytes, percent, scaled};
use super::watched::Watched;

/// Letters of a bar of occupancy.
const BAR: usize = 10;

/// Returns true if the last answer is a switch's.
pub(super) fn is_switch(watched: &Watched) -> bool {
    watched.sample().is_some_and(|sample| !sample.all("fanin_switch_info").is_empty())
}

/// Returns the name of a switch in its configuration; without one, the target's name.
pub(super) fn switch_name(watched: &Watched) -> &str {
    let info = watched.sample().and_then(|sample| sample.all("fanin_switch_info").first());
    let own = info.map_or("", |info| info.label("name"));
    if own.is_empty() { &watched.target.name } else { own }
}

/// Returns the tables of all switches.
pub(super) fn tables(all: &[Watched]) -> Vec<ScreenTable> {
    let found: Vec<&Watched> = all.iter().filter(|one| is_switch(one)).collect();
    vec![switches(&found), queues(&found)]
}

fn switches(found: &[&Watched]) -> ScreenTable {
    let heading = format!("SWITCHES ({})", found.len());
    let columns = [
        "switch",
        "up s",
        "ports up",
        "stations",
        "in/s",
        "out/s",
        "frames in/s",
        "busy rounds",
        "memory used",
    ];
    let mut table = ScreenTable::new(heading, 1, &columns);
    for one in found {
        let rounds = one.rate("fanin_switch_worker_rounds_total").filter(|&rounds| rounds > 0.0);
        let busy = rounds.and_then(|all| Some(one.rate("fanin_switch_worker_busy_rounds_total")? / all));
        let chunks = one.gauge("fanin_switch_worker_chunks").filter(|&chunks| chunks > 0.0);
        let used = chunks.and_then(|all| Some(1.0 - one.gauge("fanin_switch_worker_free_chunks")? / all));
        let ports = one.sample().map_or(0, |sample| sample.all("fanin_switch_port_up").len());
        let up = one.gauge("fanin_switch_port_up").unwrap_or_default();
        let tone = if up < ports as f64 { Tone::Warning } else { Tone::Plain };
        table.add(
            tone,
            vec![
                switch_name(one).to_owned(),
                one.gauge("fanin_switch_uptime_seconds").map_or_else(|| "-".into(), |up| format!("{up:.0}")),
                format!("{up:.0}/{ports}"),
                scaled(one.gauge("fanin_switch_stations")),
                bytes(one.rate("fanin_switch_port_received_bytes_total")),
                bytes(one.rate("fanin_switch_port_sent_bytes_total")),
                scaled(one.rate("fanin_switch_port_received_frames_total")),
                percent(busy),
                percent(used),
            ],
        );
    }
    table
}

/// Returns the table of rings, and of port queues that held a frame lately.
fn queues(found: &[&Watched]) -> ScreenTable {
    let columns = [
        "switch",
        "ring",
        "port",
        "occupancy",
        "full",
        "frames",
        "bytes",
        "capacity",
        "most in 10 s",
        "rate",
        "in/s",
        "out/s",
        "drops/s",
        "alarm",
    ];
    let mut table = ScreenTable::new("RINGS", 4, &columns);
    for one in found {
        let Some(sample) = one.sample() else { continue };
        for frames in sample.all("fanin_switch_queue_frames") {
            let (port, ring) = (frames.label("port"), frames.label("ring"));
            let of = |metric: &str| {
                let all = sample.all(&format!("fanin_switch_{metric}"));
                let of_ring =
                    |series: &&MetricSeries| series.label("port") == port && series.label("ring") == ring;
                all.iter().filter(of_ring).map(|series| series.value).reduce(|a, b| a + b)
            };
            let rate = |metric: &str| {
                let name = format!("fanin_switch_{metric}");
                let all = sample.all(&name).iter();
                let of_ring =
                    all.filter(|series| series.label("port") == port && series.label("ring") == ring);
                of_ring.filter_map(|series| one.rate_of(&name, series)).reduce(|a, b| a + b)
            };
            let most = of("queue_period_high_water_bytes");
            if ring.is_empty() && most.is_none_or(|most| most == 0.0) && frames.value == 0.0 {
                continue;
            }
            let bytes_now = of("queue_bytes");
            let by_bytes = bytes_now.zip(of("ring_capacity_bytes")).map(|(now, all)| now / all);
            let by_frames = of("ring_capacity_frames").map(|all| frames.value / all);
            let full = by_bytes.into_iter().chain(by_frames).reduce(f64::max);
            let capacity = match (of("ring_capacity_bytes"), of("ring_capacity_frames")) {
                (Some(all), _) => bytes(Some(all)),
                (None, Some(all)) => format!("{} frames", scaled(Some(all))),
                (None, None) => "-".to_owned(),
            };
            let drops = rate("queue_dropped_frames_total");
            let alarm = of("ring_alarm").is_some_and(|alarm| alarm > 0.0);
            let tone = match (alarm, drops.is_some_and(|drops| drops > 0.0)) {
                (true, _) => Tone::Alarm,
                (_, true) => Tone::Warning,
                _ => Tone::Plain,
            };
            table.add(
                tone,
                vec![
                    switch_name(one).to_owned(),
                    if ring.is_empty() { "(port's own)" } else { ring }.to_owned(),
                    port.to_owned(),
                    full.map_or_else(String::new, bar),
                    percent(full),
                    scaled(Some(frames.value)),
                    bytes(bytes_now),
                    capacity,
                    bytes(most),
                    bytes(of("ring_rate_bytes_per_second")),
                    bytes(rate("queue_enqueued_bytes_total")),
                    bytes(rate("queue_departed_bytes_total")),
                    scaled(drops.or(Some(0.0))),
                    if alarm { "ALARM" } else { "" }.to_owned(),
                ],
            );
        }
    }
    table
}

fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
}
