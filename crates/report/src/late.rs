//! The causes of an event's lateness as a sentence.

use crate::LateEvent;

/// The causes of an event's lateness, as a sentence.
pub fn late_text(event: &LateEvent) -> String {
    let ms = |ms: f64| format!("{} ms", crate::page::significant(ms));
    let time_ms = event.time_ps as f64 / PS_PER_MS;
    let over = event.ideal_ps.filter(|&ideal| ideal > 0).map_or_else(String::new, |ideal| {
        format!(", {} times its ideal", crate::page::significant(event.time_ps as f64 / ideal as f64))
    });
    let mut parts = Vec::new();
    for cause in &event.chain {
        let port = cause.port.as_deref().unwrap_or("a switch");
        let count = cause.count.unwrap_or(0);
        let sources = |struck: u64| match struck {
            1 => "1 source".to_owned(),
            struck if struck == event.sources_total => format!("all {struck} sources"),
            struck => format!("{struck} of {} sources", event.sources_total),
        };
        let struck = sources(cause.sources.unwrap_or(0));
        match cause.kind.as_str() {
            "credit-wait" => {
                parts.push(format!(
                    "its last request waited {} for credits",
                    ms(cause.until_ms - cause.from_ms)
                ));
            }
            "request-wait" => {
                parts.push(format!(
                    "its last request was sent {} after its first",
                    ms(cause.until_ms - cause.from_ms)
                ));
            }
            "queue" => parts.extend(
                cause
                    .queue_bytes
                    .map(|bytes| format!("up to {} waited at {port}", crate::page::bytes_text(bytes))),
            ),
            "loss" => parts.push(format!(
                "{count} frames of {struck} were dropped at {port} from {} on",
                ms(cause.from_ms)
            )),
            "tail-loss-probe" => parts.push(format!(
                "{struck} waited for a tail loss probe ({count} sent, the last after {})",
                ms(cause.until_ms)
            )),
            "rto" => parts.push(format!(
                "{struck} waited for a retransmission timer ({count} expired, the last after {})",
                ms(cause.until_ms)
            )),
            _ => {}
        }
    }
    let why = if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) };
    let is_late = event.ideal_ps.is_none_or(|ideal| event.time_ps >= ideal + ideal / 2);
    let why = if is_late { why } else { "; no event was late".to_owned() };
    format!("Event {} took {}{over}{why}.", event.id, ms(time_ms))
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
            "Event 3 took 1.4 ms, 1.4 times its ideal; no event was late."
        );
        assert_eq!(late_text(&taking(1_600_000_000)), "Event 3 took 1.6 ms, 1.6 times its ideal.");
    }
}
