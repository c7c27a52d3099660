//! One screen: a line on the whole system, and the tables.

use std::time::{SystemTime, UNIX_EPOCH};

use super::roles::{self, collection, last_answers, role, slowest};
use super::switches::{self, is_switch};
use super::table::{ScreenLine, ScreenTable, Tone, bytes, millis, scaled};
use super::watched::Watched;
use super::{drops, predicted};

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Returns all lines of the screen.
pub(super) fn lines(all: &[Watched]) -> Vec<ScreenLine> {
    let mut lines = vec![ScreenLine { text: title(all), tone: Tone::Heading }];
    lines.extend(system(all).into_iter().map(|text| ScreenLine { text, tone: Tone::Plain }));
    lines.extend(predicted::table(all).lines());
    lines.extend(silent(all).lines());
    for table in roles::tables(all).into_iter().chain(switches::tables(all)) {
        lines.extend(table.lines());
    }
    lines.extend(drops::table(all).lines());
    lines
}

fn title(all: &[Watched]) -> String {
    let answering = all.iter().filter(|one| one.silence.is_none()).count();
    format!("fanin top  {}  {answering} of {} answer", clock(SystemTime::now()), all.len())
}

fn clock(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() % DAY_S;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Returns the lines on the system as a whole.
fn system(all: &[Watched]) -> Vec<String> {
    let of_role = |wanted: &'static str| all.iter().filter(move |one| role(one) == Some(wanted));
    let sum = |rates: &mut dyn Iterator<Item = Option<f64>>| rates.flatten().reduce(|a, b| a + b);
    let rate = |wanted, name: &str| sum(&mut of_role(wanted).map(|one| one.rate(name)));
    let mut lines = Vec::new();
    if of_role("supervisor").next().is_some() || of_role("collector").next().is_some() {
        lines.push(format!(
            "events  {}/s assigned, {}/s finished, {}/s stored; {}/s collected",
            scaled(rate("supervisor", "fanin_events_assigned_total")),
            scaled(rate("supervisor", "fanin_events_completed_total")),
            scaled(rate("logger", "fanin_events_stored_total")),
            bytes(rate("collector", "fanin_fragments_bytes_total")),
        ));
    }
    let weights = of_role("collector").filter_map(|one| {
        let (time, ideal) = collection(one);
        Some((one.rate("fanin_collection_time_seconds_count")?, time?, ideal?))
    });
    let (mut events, mut time, mut ideal) = (0.0, 0.0, 0.0);
    for (rate, time_one, ideal_one) in weights {
        events += rate;
        time += rate * time_one;
        ideal += rate * ideal_one;
    }
    if events > 0.0 && ideal > 0.0 {
        let mut text = format!(
            "collection  {} ms = {:.2} x the ideal {} ms",
            millis(Some(time / events)),
            time / ideal,
            millis(Some(ideal / events))
        );
        if let Some((readout, share)) = slowest(&last_answers(of_role("collector"))) {
            text += &format!("; slowest source readout-{readout}, last in {:.0} % of them", 100.0 * share);
        }
        lines.push(text);
    }
    let switches: Vec<&Watched> = all.iter().filter(|one| is_switch(one)).collect();
    if !switches.is_empty() {
        let rate = |name: &str| sum(&mut switches.iter().map(|one| one.rate(name)));
        let dropped =
            ["port_dropped", "queue_dropped"].map(|kind| format!("fanin_switch_{kind}_frames_total"));
        lines.push(format!(
            "switches  {} frames/s in, {}/s; {} drops/s",
            scaled(rate("fanin_switch_port_received_frames_total")),
            bytes(rate("fanin_switch_port_received_bytes_total")),
            scaled(dropped.iter().map(|name| rate(name)).fold(None, |a, b| match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
            })),
        ));
    }
    lines
}

/// Returns the table of targets that do not answer, with time and reason.
fn silent(all: &[Watched]) -> ScreenTable {
    let mut table = ScreenTable::new("NO ANSWER", 4, &["at", "since", "for", "why"]);
    for one in all {
        let Some(silence) = &one.silence else { continue };
        let since = if silence.has_answered { "" } else { ", never answered" };
        table.add(
            Tone::Alarm,
            vec![
                one.target.name.clone(),
                format!("{}{since}", clock(silence.since)),
                format!("{} s", silence.begun.elapsed().as_secs()),
                silence.why.clone(),
            ],
        );
    }
    table
}
