//! Losses of roles and switches, by cause.

use super::roles::name;
use super::series::MetricSeries;
use super::switches::switch_name;
use super::table::{ScreenTable, Tone, scaled};
use super::watched::Watched;

/// Counters of the roles that count something lost, with the cause.
const LOSSES: [(&str, &str); 6] = [
    ("fanin_fragments_missing_total", "fragment missing"),
    ("fanin_answers_corrupted_total", "answer corrupted"),
    ("fanin_messages_undeliverable_total", "message without a connection"),
    ("fanin_messages_invalid_total", "message invalid"),
    ("fanin_events_store_failed_total", "event not written"),
    ("fanin_journal_lines_dropped_total", "journal line not written"),
];
/// Counters of drops, each with its cause in words.
const DROPS: [(&str, &str); 3] = [
    ("fanin_switch_port_dropped_frames_total", "port"),
    ("fanin_switch_queue_dropped_frames_total", "queue"),
    ("fanin_switch_port_missed_frames_total", "driver"),
];

/// Returns the table of all drops and losses since the processes started, by cause.
pub(super) fn table(all: &[Watched]) -> ScreenTable {
    let mut table = ScreenTable::new("DROPS", 3, &["at", "where", "cause", "total", "now/s"]);
    let mut add =
        |one: &Watched, at: &str, metric: &str, series: &MetricSeries, place: String, cause: String| {
            if series.value > 0.0 {
                let rate = one.rate_of(metric, series);
                let tone = if rate.is_some_and(|rate| rate > 0.0) { Tone::Warning } else { Tone::Plain };
                table.add(tone, vec![at.to_owned(), place, cause, scaled(Some(series.value)), scaled(rate)]);
            }
        };
    for one in all {
        let Some(sample) = one.sample() else { continue };
        for (metric, cause) in DROPS {
            for series in sample.all(metric) {
                let (port, ring) = (series.label("port"), series.label("ring"));
                let place = if ring.is_empty() { format!("{cause} {port}") } else { format!("ring {ring}") };
                let cause = match series.label("cause") {
                    "" => "lost before the switch saw it",
                    cause => cause,
                };
                add(one, switch_name(one), metric, series, place, cause.to_owned());
            }
        }
        for (metric, cause) in LOSSES {
            for series in sample.all(metric) {
                add(one, name(one), metric, series, "process".to_owned(), cause.to_owned());
            }
        }
    }
    table
}
