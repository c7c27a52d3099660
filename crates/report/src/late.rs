//! The causes of an event's lateness as text.

use crate::{LateCause, LateEvent};

/// Writes an event's time, its ideal and the causes of its lateness as text.
pub fn late_text(event: &LateEvent) -> String {
    let ms = |ms: f64| format!("{} ms", crate::page::significant(ms));
    let time_ms = event.time_ps as f64 / PS_PER_MS;
    let over = event.ideal_ps.filter(|&ideal| ideal > 0).map_or_else(String::new, |ideal| {
        let times = crate::page::significant(event.time_ps as f64 / ideal as f64);
        format!(", {times} times its ideal of {}", ms(ideal as f64 / PS_PER_MS))
    });
    let mut causes: Vec<&LateCause> = event.chain.iter().collect();
    // The cause that took longest comes first. Causes of equal time stay in the order of time.
    causes.sort_by(|a, b| b.time_ms.unwrap_or(0.0).total_cmp(&a.time_ms.unwrap_or(0.0)));
    let mut parts: Vec<String> = causes.into_iter().filter_map(|cause| cause_text(cause, event)).collect();
    if let Some(share) = event.explained.filter(|_| !parts.is_empty()) {
        parts.push(match (100.0 * share).floor() {
            share if share >= 99.0 => "With its own data, this explains its whole time".to_owned(),
            share => format!("With its own data, this explains {share} % of its time"),
        });
    }
    let why = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(". ")) };
    let is_late = event.ideal_ps.is_none_or(|ideal| event.time_ps >= ideal + ideal / 2);
    let why = if is_late { why } else { "; no event was late".to_owned() };
    format!("Event {} took {}{over}{why}.", event.id, ms(time_ms))
}

/// Writes a cause as a clause that begins with the added time. `None` if a wait or a queue added nothing. Results of
/// earlier versions lack these times.
fn cause_text(cause: &LateCause, event: &LateEvent) -> Option<String> {
    let ms = |ms: f64| format!("{} ms", crate::page::significant(ms));
    let port = cause.port.as_deref().unwrap_or("a switch");
    let count = cause.count.unwrap_or(0);
    let source = cause.source.as_deref().unwrap_or("a source");
    let struck = match cause.sources.unwrap_or(0) {
        1 => "1 source".to_owned(),
        struck if struck == event.sources_total => format!("all {struck} sources"),
        struck => format!("{struck} of {} sources", event.sources_total),
    };
    let time = cause.time_ms;
    // A wait or a queue of less than a thousandth of the event's time is no cause.
    let added_nothing = time.is_some_and(|time| time < event.time_ps as f64 / PS_PER_MS / 1000.0);
    if added_nothing && !matches!(cause.kind.as_str(), "loss" | "link-loss" | "tail-loss-probe" | "rto") {
        return None;
    }
    let took = time.filter(|&time| time > 0.0).map_or_else(String::new, |time| ms(time) + " ");
    Some(match (cause.kind.as_str(), cause.event) {
        ("credit-wait", _) => {
            let waited = ms(time.unwrap_or(cause.until_ms - cause.from_ms));
            format!("{waited} waiting for credits, until its last request")
        }
        ("request-wait", _) => {
            let waited = ms(time.unwrap_or(cause.until_ms - cause.from_ms));
            format!("{waited} until its last request, which waited for earlier answers")
        }
        ("other-answer", Some(other)) => {
            let others = match count {
                0 | 1 => String::new(),
                2 => " and 1 more".to_owned(),
                count => format!(" and {} more", count - 1),
            };
            format!("{took}behind the answers of event {other}{others} on the connection of {source}")
        }
        ("queue", other) => {
            let bytes = crate::page::bytes_text(cause.queue_bytes?);
            let of = other.map_or_else(String::new, |other| format!(", most for event {other}"));
            format!("{took}in the queue of {port}, where up to {bytes} waited{of}")
        }
        ("ring", other) => {
            let bytes = cause.queue_bytes.map(crate::page::bytes_text);
            let waited = bytes.map_or_else(String::new, |bytes| format!(", where up to {bytes} waited"));
            let rate = cause.rate_bps.map(|rate| fanin_units::Rate::new(rate).to_string());
            let rate = rate.map_or_else(String::new, |rate| format!(", limited to {rate}"));
            let of = other.map_or_else(String::new, |other| format!(", most for event {other}"));
            format!("{took}in its collector's ring at {port}{rate}{waited}{of}")
        }
        ("response-delay", _) => format!("{took}in no queue, until {source} began to answer"),
        ("link", other) => {
            let of = other.map_or_else(String::new, |other| format!(", most of it with event {other}"));
            format!("{took}sharing the link of {port}{of}")
        }
        (kind @ ("loss" | "link-loss"), _) => {
            let [lost, at] = if kind == "loss" { ["dropped", "at"] } else { ["lost", "on the link"] };
            let repair = match took.is_empty() {
                true => String::new(),
                false => format!("until {lost} frames had been sent again: "),
            };
            let frames = if count == 1 { "frame" } else { "frames" };
            let were = if count == 1 { "was" } else { "were" };
            format!(
                "{took}{repair}{count} {frames} of {struck} {were} {lost} {at} {port} from {} on",
                ms(cause.from_ms)
            )
        }
        (kind @ ("tail-loss-probe" | "rto"), other) => {
            let (timer, timers, ended) = match kind {
                "rto" => ("a retransmission timer", "retransmission timers", "expired"),
                _ => ("a tail loss probe", "tail loss probes", "sent"),
            };
            match other {
                Some(other) => {
                    let lost = cause.port.as_ref();
                    let lost = lost.map_or_else(String::new, |port| format!(", after a loss at {port}"));
                    format!(
                        "{took}behind event {other}, which waited for {timer} on the connection of {source}{lost}"
                    )
                }
                None => format!(
                    "{took}waiting for {timers} ({count} {ended} at {struck}, the last after {})",
                    ms(cause.until_ms)
                ),
            }
        }
        (kind, _) => {
            let awaited = cause.awaited.as_deref().or_else(|| formerly_awaited(kind))?;
            format!("{took}in no queue, waiting for {awaited}")
        }
    })
}

/// Returns the awaited thing of a cause in a result of an earlier version, which names the kind alone.
fn formerly_awaited(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "timeslot-wait" => "timeslots of the arbiter",
        "phase-wait" => "its phases of the barrel shifter",
        "grant-wait" => "credit of the receiver",
        "pause-wait" => "ports that PAUSE held",
        _ => return None,
    })
}

/// Picoseconds in a millisecond.
const PS_PER_MS: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_near_its_ideal_is_not_late() {
        let taking =
            |time_ps| LateEvent { id: 3, time_ps, ideal_ps: Some(1_000_000_000), ..LateEvent::default() };
        assert_eq!(
            late_text(&taking(1_400_000_000)),
            "Event 3 took 1.4 ms, 1.4 times its ideal of 1 ms; no event was late."
        );
        assert_eq!(late_text(&taking(1_600_000_000)), "Event 3 took 1.6 ms, 1.6 times its ideal of 1 ms.");
    }
    #[test]
    fn the_cause_that_took_longest_comes_first() {
        let cause = |kind: &str, time_ms, event| LateCause {
            kind: kind.into(),
            until_ms: 210.0,
            time_ms: Some(time_ms),
            event,
            count: Some(1),
            port: Some("tor:0->collector:0".into()),
            queue_bytes: Some(999_000),
            source: Some("readout:3".into()),
            ..LateCause::default()
        };
        let event = LateEvent {
            id: 3,
            time_ps: 220_000_000_000,
            ideal_ps: Some(2_000_000_000),
            chain: vec![cause("queue", 8.0, None), cause("rto", 200.0, Some(1))],
            explained: Some(0.955),
            ..LateEvent::default()
        };
        assert_eq!(
            late_text(&event),
            "Event 3 took 220 ms, 110 times its ideal of 2 ms: 200 ms behind event 1, which waited for a retransmission \
             timer on the connection of readout:3, after a loss at tor:0->collector:0. 8 ms in the queue of \
             tor:0->collector:0, where up to 999\u{a0}kB waited. With its own data, this explains 95 % of its time."
        );
        let shared = LateEvent { chain: vec![cause("link", 8.0, Some(7))], ..event.clone() };
        let text = late_text(&shared);
        assert!(
            text.contains("8 ms sharing the link of tor:0->collector:0, most of it with event 7."),
            "{text}"
        );
        let other = LateEvent { chain: vec![cause("other-answer", 8.0, Some(7))], ..event.clone() };
        assert!(!late_text(&other).contains("earlier"), "event 7 is a later one");
        let ring = LateCause { rate_bps: Some(344_000_000), ..cause("ring", 8.0, Some(7)) };
        let text = late_text(&LateEvent { chain: vec![ring], ..event.clone() });
        assert!(
            text.contains(
                "8 ms in its collector's ring at tor:0->collector:0, limited to 344 Mb/s, where up to 999\u{a0}kB waited, \
                 most for event 7."
            ),
            "{text}"
        );
        for (kind, words) in [
            ("timeslot-wait", "8 ms in no queue, waiting for timeslots of the arbiter."),
            ("response-delay", "8 ms in no queue, until readout:3 began to answer."),
            ("phase-wait", "8 ms in no queue, waiting for its phases of the barrel shifter."),
            ("grant-wait", "8 ms in no queue, waiting for credit of the receiver."),
            ("pause-wait", "8 ms in no queue, waiting for ports that PAUSE held."),
            ("loss", "8 ms until dropped frames had been sent again: 1 frame of"),
            ("link-loss", "8 ms until lost frames had been sent again: 1 frame of"),
        ] {
            let text = late_text(&LateEvent { chain: vec![cause(kind, 8.0, None)], ..event.clone() });
            assert!(text.contains(words), "{text}");
            let none = late_text(&LateEvent { chain: vec![cause(kind, 0.0, None)], ..event.clone() });
            assert!(kind.ends_with("loss") || !none.contains("in no queue"), "{none}");
        }
        let named = LateCause { awaited: Some("a new technique".into()), ..cause("new-wait", 8.0, None) };
        let text = late_text(&LateEvent { chain: vec![named], ..event.clone() });
        assert!(text.contains("8 ms in no queue, waiting for a new technique."), "{text}");
        let unknown =
            LateEvent { chain: vec![cause("new-wait", 8.0, None)], explained: None, ..event.clone() };
        assert_eq!(late_text(&unknown), "Event 3 took 220 ms, 110 times its ideal of 2 ms.");
        let idle = LateEvent { chain: vec![cause("queue", 0.01, None)], explained: None, ..event };
        assert!(!late_text(&idle).contains("queue"), "a queue that added nothing is no cause");
    }
}
