//! The steps of a collection in parts (two-phase L2 and EB; ICC'15 §IV.C.4), each with its own times.

use fanin_report::{EventRow, Span, Summary, times};
use fanin_scenario::Scenario;
use serde_json::json;

/// The time of each step of each event, from its requests to its last fragment.
#[derive(Debug)]
pub struct StepTimes {
    names: Vec<String>,
    /// Event and picoseconds of each step.
    times: Vec<Vec<(u64, u64)>>,
}

impl StepTimes {
    /// Makes the steps of a scenario; no step if the scenario collects an event at once.
    pub fn new(scenario: &Scenario) -> Self {
        let names: Vec<String> = scenario.workload.steps.iter().map(|step| step.name.clone()).collect();
        Self { times: names.iter().map(|_| Vec::new()).collect(), names }
    }

    /// Returns the number of steps; zero for a collection in one part.
    pub const fn count(&self) -> usize {
        self.names.len()
    }

    /// Notes that all fragments of a step have arrived, in `time_ps` picoseconds.
    pub fn note(&mut self, step: u16, event: u64, time_ps: u64) {
        if let Some(times) = self.times.get_mut(usize::from(step)) {
            times.push((event, time_ps));
        }
    }

    /// Adds the figures of each step, over the events assigned within `span`.
    pub fn fill(&self, summary: &mut Summary, rows: &[EventRow], span: Span) {
        for (name, noted) in self.names.iter().zip(&self.times) {
            let measured = noted.iter().filter(|(event, _)| span.holds(rows[*event as usize].assigned_ps));
            let mut figures = json!({ "collected": measured.clone().count() });
            if let Some(times) = times(measured.map(|&(_, time)| time), []) {
                figures["time_ms_mean"] = times.mean.into();
                figures["time_ms_p50"] = times.p50.into();
                figures["time_ms_p99"] = times.p99.into();
                figures["time_ms_max"] = times.max.into();
            }
            summary.techniques.insert(format!("step_{name}"), figures);
        }
    }
}
