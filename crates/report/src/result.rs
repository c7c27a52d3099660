//! One result: its summary, its tables, its scenario.

use std::collections::BTreeMap;

use crate::picture::RunPicture;
use crate::rows::Records;
use crate::summary::{ResultKind, Summary};

/// The least measured time in minimum RTOs. Shorter runs get a caution.
const RTOS_MIN: f64 = 5.0;
/// The fewest events without a caution.
const EVENTS_MIN: u64 = 10;
/// The fewest events for a 99th percentile. With fewer, it would equal the maximum.
pub const SAMPLES_OF_P99: u64 = 100;

/// One plan, simulation or run, with its files.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The result's name among several, such as a directory's name.
    pub label: String,
    /// Path of its own page, relative to the page of several results.
    pub page: Option<String>,
    /// Summary of the result.
    pub summary: Summary,
    /// The resolved scenario, every default written out.
    pub scenario_toml: Option<String>,
    /// Tables of the result.
    pub records: Records,
    /// Queues over time, a late event and the links, where they were recorded.
    pub picture: Option<RunPicture>,
}

impl Summary {
    /// Returns true if the hundred samples that a p99 needs were collected, or the number of samples is unknown.
    pub fn has_p99(&self) -> bool {
        self.samples().is_none_or(|count| count >= SAMPLES_OF_P99)
    }

    /// Returns the number of events or requests behind the quantiles, if they were counted.
    pub fn samples(&self) -> Option<u64> {
        let events = self.events.as_ref().map(|events| events.collected);
        let requests = self.requests.as_ref().map(|requests| requests.completed);
        events.or(requests)
    }
}

impl RunResult {
    /// Returns sentences on why the result's figures say little: less than five minimum RTOs, fewer than ten events, or none.
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions = Vec::new();
        if self.summary.kind == ResultKind::Plan {
            return cautions;
        }
        let tree = self.scenario_toml.as_ref().and_then(|text| text.parse::<toml::Table>().ok());
        let rto = tree.as_ref().and_then(|tree| {
            tree.get("transport")?.get("rto_min")?.as_str()?.parse::<fanin_units::Duration>().ok()
        });
        if let (Some(seconds), Some(rto)) = (self.summary.duration_s, rto)
            && self.summary.tcp.is_some()
            && seconds < RTOS_MIN * rto.as_secs_f64()
        {
            cautions.push(format!(
                "The run measures {:.0} ms, less than five minimum RTOs of {rto}: timeouts hardly show",
                1e3 * seconds
            ));
        }
        let events = self.summary.events.as_ref().map(|events| ("events", events.collected));
        let requests = self.summary.requests.as_ref().map(|requests| ("requests", requests.completed));
        if let Some((noun, count)) = events.or(requests).filter(|(_, count)| *count < EVENTS_MIN) {
            cautions.push(match (count, &self.summary.events) {
                (1.., _) => {
                    format!("Fewer than {EVENTS_MIN} {noun} were measured: means and quantiles say little")
                }
                (0, Some(events)) if events.assigned == 0 && self.summary.collapsed_in_warmup() => {
                    "No event was measured: losses of the warm-up hold all events up. Lengthen run.duration"
                        .to_owned()
                }
                (0, Some(events)) if events.assigned == 0 => {
                    "No event was measured: none was assigned in the measured time. Look at supervisor.rate, \
                     run.duration and shaping"
                        .to_owned()
                }
                (0, _) => format!("None of the {noun} was completed: nothing was measured"),
            });
        }
        cautions.extend(self.without_goodput());
        cautions.extend(tree.as_ref().and_then(|tree| self.unrecorded(tree)));
        cautions
    }

    /// Returns a sentence on a goodput of zero while payload arrived. Goodput counts what was completed in the measured time; the
    /// times are those of all that began in it.
    fn without_goodput(&self) -> Option<String> {
        let load = self.summary.load.as_ref()?.last_hop?;
        let noun = if self.summary.requests.is_some() { "request" } else { "event" };
        let has_ended = self.summary.samples().is_some_and(|count| count > 0);
        (has_ended && load > 0.0 && self.summary.goodput_bps.as_ref()?.total <= 0.0).then(|| {
            format!(
                "Goodput is zero although payload arrived: no {noun} was completed in the measured time. Lengthen \
                 run.duration"
            )
        })
    }

    /// Returns a sentence on the events of `record.events` that have no recorded traffic, if the tables were read.
    fn unrecorded(&self, tree: &toml::Table) -> Option<String> {
        // A barrier workload has no such records, as the scenario's own warning says.
        self.summary.events.as_ref()?;
        let asked = tree.get("record")?.get("events")?.as_array()?;
        let last = self.records.events.iter().map(|row| row.id).max()?;
        let missing: Vec<String> = asked
            .iter()
            .filter_map(|event| u64::try_from(event.as_integer()?).ok())
            .filter(|event| self.records.io.iter().all(|row| row.event != *event))
            .map(|event| event.to_string())
            .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "No traffic was recorded of {} in record.events: the run has events 0 to {last}, and records those \
                 that were collected",
                missing.join(", ")
            )
        })
    }

    /// Returns true if fewer events were assigned than the scenario asks for.
    pub fn is_overloaded(&self) -> bool {
        self.summary.overload.is_some()
    }

    /// Makes a result without tables. Its label consists of the scenario's name and the kind.
    pub fn new(summary: Summary) -> Self {
        let label = format!("{} ({})", summary.scenario.name, summary.kind.name());
        Self { label, page: None, summary, scenario_toml: None, records: Records::default(), picture: None }
    }
}

/// Returns the cautions about several results: each sentence with the number of results that it is true of.
pub fn cautions_of(results: &[RunResult]) -> Vec<(String, usize)> {
    let mut cautions: BTreeMap<String, usize> = BTreeMap::new();
    for caution in results.iter().flat_map(RunResult::cautions) {
        *cautions.entry(caution).or_default() += 1;
    }
    let overloaded = results.iter().filter(|result| result.is_overloaded()).count();
    let overload = (overloaded > 0)
        .then(|| ("The system does not keep up with the events of supervisor.rate".to_owned(), overloaded));
    overload.into_iter().chain(cautions).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventCounts, EventRow, IoRow, RequestCounts, ScenarioName, TcpFigures};

    #[test]
    fn a_goodput_of_zero_with_load_names_the_duration() {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        summary.requests = Some(RequestCounts { completed: 20, ..RequestCounts::default() });
        summary.load = Some(crate::Load { last_hop: Some(1.0), uplink: None });
        summary.goodput_bps = Some(crate::Goodput { total: 0.0, per_collector_mean: None });
        let mut result = RunResult::new(summary);
        assert!(result.cautions()[0].contains("run.duration"), "{:?}", result.cautions());
        result.summary.goodput_bps = Some(crate::Goodput { total: 1.0, per_collector_mean: None });
        assert!(result.cautions().is_empty());
    }

    #[test]
    fn short_runs_and_few_events_are_said() {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        summary.duration_s = Some(0.9);
        summary.tcp = Some(TcpFigures::default());
        summary.requests = Some(RequestCounts { completed: 9, ..RequestCounts::default() });
        let mut result = RunResult::new(summary);
        result.scenario_toml = Some("[transport]\nrto_min = \"200 ms\"\n".into());
        let cautions = result.cautions();
        assert_eq!(cautions.len(), 2, "{cautions:?}");
        assert!(cautions[0].contains("900 ms") && cautions[0].contains("200 ms"), "{cautions:?}");
        assert!(cautions[1].contains("Fewer than 10 requests"), "{cautions:?}");
        result.summary.duration_s = Some(1.0);
        result.summary.requests = Some(RequestCounts { completed: 10, ..RequestCounts::default() });
        assert!(result.cautions().is_empty());
        result.summary.requests = Some(RequestCounts::default());
        assert!(result.cautions()[0].contains("None of the requests"), "{:?}", result.cautions());
        assert_eq!(cautions_of(&[result.clone(), result.clone()]).len(), 1);
        assert_eq!(cautions_of(&[result.clone(), result.clone()])[0].1, 2);
        result.summary.overload = Some(crate::Overload::default());
        let of_both = cautions_of(&[result.clone(), result.clone()]);
        assert!(of_both[0].0.contains("does not keep up") && of_both[0].1 == 2, "{of_both:?}");
        result.summary.requests = None;
        result.summary.events = Some(EventCounts::default());
        assert!(result.cautions()[0].contains("none was assigned"), "{:?}", result.cautions());
    }

    #[test]
    fn events_without_recorded_traffic_are_named() {
        let mut result = RunResult::new(Summary::new(ResultKind::Sim, "1", ScenarioName::default()));
        result.summary.events = Some(EventCounts { collected: 10, ..EventCounts::default() });
        result.scenario_toml = Some("[record]\nevents = [2, 40, 5]\n".into());
        assert!(result.cautions().is_empty(), "a summary alone has no tables: {:?}", result.cautions());
        result.records.events = (0..9).map(|id| EventRow { id, ..EventRow::default() }).collect();
        result.records.io.push(IoRow { event: 2, ..IoRow::default() });
        let cautions = result.cautions();
        assert!(cautions[0].contains("of 40, 5 in record.events: the run has events 0 to 8"), "{cautions:?}");
        result.records.io.extend([5, 40].map(|event| IoRow { event, ..IoRow::default() }));
        assert!(result.cautions().is_empty(), "{:?}", result.cautions());
    }
}
