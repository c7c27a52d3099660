//! A system that does not keep up with its scenario's events, and the cause.

use crate::{Overload, Summary};

/// The events of a scenario, and the units for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WantedEvents {
    /// Events a second.
    pub rate_hz: f64,
    /// True if they come at random times.
    pub is_random: bool,
    /// Processing units; each takes one event at a time.
    pub units: u64,
    /// Mean time for which a unit works on a collected event, in milliseconds.
    pub processing_ms: f64,
}

/// Share of the wanted events that may be missing without an overload.
const SHARE_MISSING: f64 = 0.05;
/// Standard deviations of a Poisson process by which the number of events may fall short without an overload.
const DEVIATIONS: f64 = 4.0;
/// Share of its rate from which on a link counts as full.
const LINK_FULL: f64 = 0.95;

impl Summary {
    /// Fills `overload` if clearly fewer events were assigned than `wanted`. Call this after all other figures are filled,
    /// because they may be the cause. A measurement that is marked invalid gets no `overload`.
    pub fn fill_overload(&mut self, wanted: &WantedEvents) {
        self.overload = None;
        let (Some(events), Some(seconds)) = (&self.events, self.duration_s) else { return };
        let expected = wanted.rate_hz * seconds;
        let chance = if wanted.is_random { DEVIATIONS * expected.sqrt() } else { 2.0 };
        if expected - events.assigned as f64 <= chance.max(SHARE_MISSING * expected)
            || self.invalid().is_some()
        {
            return;
        }
        let assigned_hz = events.assigned as f64 / seconds;
        let (cause, why) = self.overload_cause(wanted, assigned_hz).unzip();
        let is_held_up = cause == Some("losses") && self.collapsed_in_warmup();
        let hertz = crate::page::significant;
        self.overload = Some(Overload {
            wanted_hz: wanted.rate_hz,
            assigned_hz,
            cause: cause.map(str::to_owned),
            text: format!(
                "{}: supervisor.rate asks for {} events a second, {} were assigned{}.",
                if is_held_up {
                    "Losses of the warm-up hold the system up"
                } else {
                    "The system does not keep up"
                },
                hertz(wanted.rate_hz),
                hertz(assigned_hz),
                why.map_or_else(String::new, |why| format!("; {why}"))
            ),
        });
    }

    /// Returns true if losses of the warm-up are the cause of fewer events. Then no frame is dropped in the measured time, and
    /// timers expire in it or no event is assigned.
    pub(crate) fn collapsed_in_warmup(&self) -> bool {
        let drops = self.network.as_ref().and_then(|network| network.drops).unwrap_or(0);
        let timeouts = self.tcp.as_ref().and_then(|tcp| tcp.timeouts).unwrap_or(0);
        let is_idle = self.events.as_ref().is_some_and(|events| events.assigned == 0);
        self.warmup.is_some() && drops == 0 && (timeouts > 0 || is_idle)
    }

    /// Finds the cause of an overload: its name, and a clause for the text.
    fn overload_cause(&self, wanted: &WantedEvents, assigned_hz: f64) -> Option<(&'static str, String)> {
        let ms = |ms: f64| format!("{} ms", crate::page::significant(ms));
        let load = self.load.as_ref();
        let links = [
            ("between switches", load.and_then(|load| load.uplink)),
            ("into a collector", load.and_then(|load| load.last_hop)),
        ];
        for (link, share) in links {
            if let Some(share) = share.filter(|share| *share >= LINK_FULL) {
                return Some(("link", format!("the busiest link {link} is {:.1} % full", 100.0 * share)));
            }
        }
        let drops = self.network.as_ref().and_then(|network| network.drops).unwrap_or(0);
        let timeouts = self.tcp.as_ref().and_then(|tcp| tcp.timeouts).unwrap_or(0);
        if drops > 0 && timeouts > 0 {
            let times = if timeouts == 1 { "once".to_owned() } else { format!("{timeouts} times") };
            let text = format!("{drops} frames were dropped, and connections timed out {times}");
            return Some(("losses", text));
        }
        if let Some(warmup) = self.warmup.filter(|_| self.collapsed_in_warmup()) {
            let after = self.tcp.as_ref().and_then(|tcp| tcp.timeouts).unwrap_or(0);
            let timers = match warmup.timeouts + after {
                0 => String::new(),
                1 => ", and 1 retransmission timer expired since".to_owned(),
                count => format!(", and {count} retransmission timers expired since"),
            };
            let text = format!(
                "{} frames were dropped within the warm-up{timers}; the events of the measured time wait for them",
                warmup.drops
            );
            return Some(("losses", text));
        }
        let collection_ms = self.collection_time_ms.as_ref()?.mean;
        let wait_ms = self.shaping.as_ref().and_then(|shaping| shaping.wait_ms_mean).unwrap_or(0.0);
        if wait_ms >= collection_ms / 2.0 {
            let text = format!("a request waits {} for credits, of {}", ms(wait_ms), ms(collection_ms));
            return Some(("credits", text + " for the whole collection"));
        }
        // Little's law: the units are all busy if they hold as many events.
        let held_ms = collection_ms + wanted.processing_ms;
        let busy = assigned_hz * held_ms / 1e3;
        (busy >= 0.8 * wanted.units as f64).then(|| {
            let units = wanted.units;
            let text = format!(
                "all {units} processing units are busy, {} with each event ({} to collect it)",
                ms(held_ms),
                ms(collection_ms)
            );
            ("units", text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EventCounts, Load, NetworkFigures, ResultKind, ScenarioName, ShapingFigures, TcpFigures, Times,
        WarmupLosses,
    };

    const WANTED: WantedEvents =
        WantedEvents { rate_hz: 1000.0, is_random: false, units: 100, processing_ms: 100.0 };

    /// A run of two seconds.
    fn summary(assigned: u64, collection_ms: f64) -> Summary {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        summary.duration_s = Some(2.0);
        summary.events = Some(EventCounts { assigned, ..EventCounts::default() });
        summary.collection_time_ms = Some(Times { mean: collection_ms, ..Times::default() });
        summary
    }

    fn overload(mut summary: Summary, wanted: WantedEvents) -> Option<Overload> {
        summary.fill_overload(&wanted);
        summary.overload
    }

    #[test]
    fn a_rate_that_is_reached_is_no_overload() {
        assert_eq!(overload(summary(1901, 10.0), WANTED), None);
        let found = overload(summary(1899, 10.0), WANTED).unwrap();
        assert_eq!((found.wanted_hz, found.assigned_hz), (1000.0, 949.5));
        // Of 100 random events 60 to 140 may come by chance.
        let random = WantedEvents { rate_hz: 50.0, is_random: true, ..WANTED };
        assert_eq!(overload(summary(61, 10.0), random), None);
        assert!(overload(summary(59, 10.0), random).is_some());
        // A run that is shorter than two periods says nothing.
        assert_eq!(overload(summary(0, 10.0), WantedEvents { rate_hz: 1.0, ..WANTED }), None);
    }

    #[test]
    fn the_cause_is_named() {
        let cause = |summary: Summary| {
            let found = overload(summary, WANTED).unwrap();
            (found.cause, found.text)
        };
        let busy = summary(1000, 100.0);
        let (name, text) = cause(busy.clone());
        assert_eq!(name.as_deref(), Some("units"));
        assert!(text.contains("all 100 processing units are busy, 200 ms with each event"), "{text}");
        // Nothing was collected: timers of the warm-up are still waited for.
        let mut collapsed = summary(10, 10.0);
        collapsed.collection_time_ms = None;
        collapsed.network = Some(NetworkFigures { drops: Some(0), ..NetworkFigures::default() });
        collapsed.tcp = Some(TcpFigures { timeouts: Some(40), ..TcpFigures::default() });
        collapsed.warmup = Some(WarmupLosses { drops: 900, timeouts: 60 });
        let (name, text) = cause(collapsed);
        assert_eq!(name.as_deref(), Some("losses"));
        assert!(text.starts_with("Losses of the warm-up hold the system up:"), "{text}");
        assert!(
            text.contains("900 frames were dropped within the warm-up, and 100 retransmission"),
            "{text}"
        );
        let (name, text) = cause(summary(1000, 10.0));
        assert_eq!(name, None, "half of the units are idle");
        assert!(text.ends_with("500 were assigned."), "{text}");
        let mut waiting = busy.clone();
        waiting.shaping = Some(ShapingFigures { wait_ms_mean: Some(60.0), ..ShapingFigures::default() });
        let (name, text) = cause(waiting.clone());
        assert_eq!(name.as_deref(), Some("credits"));
        assert!(text.contains("waits 60 ms for credits, of 100 ms"), "{text}");
        let mut losing = waiting.clone();
        losing.network = Some(NetworkFigures { drops: Some(7), ..NetworkFigures::default() });
        losing.tcp = Some(TcpFigures { timeouts: Some(3), ..TcpFigures::default() });
        assert_eq!(cause(losing.clone()).0.as_deref(), Some("losses"));
        losing.load = Some(Load { uplink: Some(0.2), last_hop: Some(0.97) });
        let (name, text) = cause(losing);
        assert_eq!(name.as_deref(), Some("link"));
        assert!(text.contains("into a collector is 97.0 % full"), "{text}");
    }

    #[test]
    fn an_invalid_measurement_speaks_of_its_machine_alone() {
        let mut summary = summary(1000, 100.0);
        summary.machine =
            Some(crate::MachineFigures { valid: Some(false), ..crate::MachineFigures::default() });
        assert_eq!(overload(summary, WANTED), None);
    }
}
