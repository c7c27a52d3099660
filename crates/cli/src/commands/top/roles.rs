//! The processes of a live system on the screen.

use std::collections::BTreeMap;

use super::table::{ScreenTable, Tone, bytes, millis, percent, scaled};
use super::watched::Watched;

/// Process, state and the figures of its connections, which every role has.
const COMMON: [&str; 8] =
    ["process", "state", "peers", "lost", "strangers", "rexmit/s", "timeouts/s", "RTT ms"];

/// Returns the role that a process states in its metrics; `None` for a switch.
pub(super) fn role(watched: &Watched) -> Option<&str> {
    watched.sample()?.all("fanin_up").first().map(|up| up.label("role"))
}

/// Returns the name that a process states in its metrics, otherwise the target's name.
pub(super) fn name(watched: &Watched) -> &str {
    let up = watched.sample().and_then(|sample| sample.all("fanin_up").first());
    up.map_or(watched.target.name.as_str(), |up| up.label("process"))
}

/// Returns the processes of a role, in the order of their numbers.
fn of_role<'a>(all: &'a [Watched], wanted: &str) -> Vec<&'a Watched> {
    let mut found: Vec<&Watched> = all.iter().filter(|one| role(one) == Some(wanted)).collect();
    let number = |one: &Watched| name(one).rsplit('-').next().and_then(|end| end.parse::<u64>().ok());
    found.sort_by(|one, other| (number(one), name(one)).cmp(&(number(other), name(other))));
    found
}

fn common(one: &Watched) -> (Vec<String>, Tone) {
    let is = |metric: &str| one.gauge(metric).is_none_or(|value| value > 0.0);
    let (state, tone) = match (is("fanin_up"), is("fanin_ready")) {
        (false, _) => ("stopping", Tone::Warning),
        (true, false) => ("not ready", Tone::Alarm),
        (true, true) => ("ready", Tone::Plain),
    };
    let cells = vec![
        name(one).to_owned(),
        state.to_owned(),
        scaled(one.gauge("fanin_connections")),
        scaled(one.gauge("fanin_connections_lost_total")),
        scaled(one.gauge("fanin_connections_refused_total")),
        scaled(one.rate("fanin_tcp_retransmits_total")),
        scaled(one.rate("fanin_tcp_timeouts_total")),
        millis(one.gauge("fanin_tcp_rtt_seconds")),
    ];
    (cells, tone)
}

fn table(
    all: &[Watched],
    wanted: &str,
    more: &[&'static str],
    cells: impl Fn(&Watched) -> Vec<String>,
) -> ScreenTable {
    let found = of_role(all, wanted);
    let heading = format!("{}S ({})", wanted.to_uppercase(), found.len());
    let mut table = ScreenTable::new(heading, 2, &[&COMMON, more].concat());
    for one in found {
        let (mut row, tone) = common(one);
        row.extend(cells(one));
        table.add(tone, row);
    }
    table
}

/// Returns the mean time of a collection and the mean ideal time over the window, in seconds.
pub(super) fn collection(one: &Watched) -> (Option<f64>, Option<f64>) {
    let per_event = |name| {
        let count = one.rate("fanin_collection_time_seconds_count").filter(|&rate| rate > 0.0)?;
        Some(one.rate(name)? / count)
    };
    (per_event("fanin_collection_time_seconds_sum"), per_event("fanin_collection_ideal_seconds_total"))
}

/// Returns, for each readout, the collections a second that its answer completed at these collectors.
pub(super) fn last_answers<'a>(collectors: impl Iterator<Item = &'a Watched>) -> BTreeMap<u64, f64> {
    const NAME: &str = "fanin_last_answers_total";
    let mut rates = BTreeMap::new();
    for one in collectors {
        for series in one.sample().map_or(&[][..], |sample| sample.all(NAME)) {
            let Ok(readout) = series.label("readout").parse() else { continue };
            *rates.entry(readout).or_default() += one.rate_of(NAME, series).unwrap_or_default();
        }
    }
    rates
}

/// Returns the readout that answers last most often, and its share of the collections; `None` without collections.
pub(super) fn slowest(rates: &BTreeMap<u64, f64>) -> Option<(u64, f64)> {
    let all: f64 = rates.values().sum();
    let (readout, rate) = rates.iter().max_by(|one, other| one.1.total_cmp(other.1))?;
    (all > 0.0).then(|| (*readout, rate / all))
}

fn slowest_text(rates: &BTreeMap<u64, f64>) -> String {
    slowest(rates).map_or_else(
        || "-".to_owned(),
        |(readout, share)| format!("readout-{readout} {:.0} %", 100.0 * share),
    )
}

/// Returns the tables of all roles.
pub(super) fn tables(all: &[Watched]) -> Vec<ScreenTable> {
    let rate = |one: &Watched, name| scaled(one.rate(name));
    let size = |one: &Watched, name| bytes(one.rate(name));
    let level = |one: &Watched, name| scaled(one.gauge(name));
    let rates = last_answers(of_role(all, "collector").into_iter());
    let answers: f64 = rates.values().sum();
    let supervisors = table(
        all,
        "supervisor",
        &["assigned/s", "finished/s", "outstanding", "free units", "reassigned", "stopped"],
        |one| {
            vec![
                rate(one, "fanin_events_assigned_total"),
                rate(one, "fanin_events_completed_total"),
                level(one, "fanin_events_outstanding"),
                level(one, "fanin_units_free"),
                level(one, "fanin_events_reassigned_total"),
                percent(one.rate("fanin_xoff_time_seconds_total")),
            ]
        },
    );
    let collectors = table(
        all,
        "collector",
        &[
            "events/s",
            "data/s",
            "building",
            "credits",
            "waiting",
            "collect ms",
            "over ideal",
            "slowest source",
        ],
        |one| {
            let (time, ideal) = collection(one);
            let over = time.zip(ideal).filter(|(_, ideal)| *ideal > 0.0);
            let credits = match one.gauge("fanin_credits").filter(|&credits| credits > 0.0) {
                Some(all) => format!("{}/{}", level(one, "fanin_credits_used"), scaled(Some(all))),
                None => level(one, "fanin_credits_used"),
            };
            vec![
                rate(one, "fanin_collection_time_seconds_count"),
                size(one, "fanin_fragments_bytes_total"),
                level(one, "fanin_events_building"),
                credits,
                level(one, "fanin_requests_waiting"),
                millis(time),
                over.map_or_else(|| "-".to_owned(), |(time, ideal)| format!("{:.2}", time / ideal)),
                slowest_text(&last_answers(std::iter::once(one))),
            ]
        },
    );
    let readouts = table(
        all,
        "readout",
        &["requests/s", "data/s", "events held", "held", "full", "answers last"],
        |one| {
            let number = name(one).rsplit('-').next().and_then(|end| end.parse::<u64>().ok());
            let last = number.filter(|_| answers > 0.0);
            let last = last.map(|number| rates.get(&number).copied().unwrap_or_default() / answers);
            vec![
                rate(one, "fanin_requests_total"),
                size(one, "fanin_fragments_bytes_total"),
                level(one, "fanin_events_held"),
                bytes(one.gauge("fanin_held_bytes")),
                percent(one.rate("fanin_xoff_time_seconds_total")),
                percent(last),
            ]
        },
    );
    let loggers =
        table(all, "logger", &["stored/s", "data/s", "held", "debug", "refused", "failed", "disk"], |one| {
            let is = |name| one.gauge(name).is_some_and(|value| value > 0.0);
            let disk = match (is("fanin_disk_full"), is("fanin_disk_failing")) {
                (true, _) => "FULL",
                (false, true) => "FAILING",
                (false, false) => "ok",
            };
            let copies = one.gauge("fanin_damaged_copies").filter(|&copies| copies > 0.0);
            let copies = copies.map_or_else(String::new, |copies| format!(", {copies:.0} damaged"));
            vec![
                rate(one, "fanin_events_stored_total"),
                size(one, "fanin_stored_bytes_total"),
                bytes(one.gauge("fanin_held_bytes")),
                level(one, "fanin_events_stored_debug_total"),
                level(one, "fanin_offers_refused_total"),
                level(one, "fanin_events_store_failed_total"),
                format!("{disk}{copies}"),
            ]
        });
    vec![supervisors, collectors, readouts, loggers]
}
