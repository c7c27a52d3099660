//! Settings that contradict each other: each is refused with its place and a correct value.

mod background;
mod memory;
mod network;
mod setups;
mod switch;
mod techniques;
mod times;
mod topology;
mod transport;
mod unread;
mod workload;

use fanin_units::{Duration, Ratio};

use crate::errors::Problem;
use crate::tree::{SourcePlace, TomlTable};
use crate::types::*;

pub(crate) use memory::scarce_memory;
pub(crate) use unread::without_effect;

struct ScenarioCheck<'a> {
    scenario: &'a Scenario,
    tree: &'a TomlTable,
    problems: Vec<Problem>,
}

/// Returns all contradictions between the settings.
pub(crate) fn check(scenario: &Scenario, tree: &TomlTable) -> Vec<Problem> {
    let mut check = ScenarioCheck { scenario, tree, problems: Vec::new() };
    check.counts();
    if !check.problems.is_empty() {
        // The checks below divide by these numbers, and would report a count of zero a second time.
        return check.problems;
    }
    check.hosts();
    check.links();
    check.run();
    check.times();
    check.slot();
    check.transport();
    check.workload();
    check.background();
    check.shaping();
    check.patterns();
    check.traced();
    check.sird();
    check.schedules();
    check.readout_memory();
    check.event_size();
    check.topology();
    check.switches();
    check.problems
}

impl ScenarioCheck<'_> {
    /// Returns the place of a setting, or of the nearest section around the setting in the file; `None` if the file has
    /// neither.
    fn place(&self, path: &str) -> Option<SourcePlace> {
        let mut path = path;
        loop {
            if let Some(place) = self.tree.find(path).and_then(|node| node.place()) {
                return Some(place.clone());
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    /// Reports a problem at `path`; `other` is a second setting that is part of the problem, with its label.
    fn fail(&mut self, path: &str, message: String, label: &str, other: Option<(&str, &str)>, help: String) {
        let exact = self.tree.find(path).and_then(|node| node.place()).cloned();
        let other = other.and_then(|(path, label)| Some((path, self.place(path)?, label)));
        // If the setting itself is a default, the user wrote the other one.
        let (place, label, other) = match (exact, other) {
            (Some(place), other) => {
                (Some(place), label.to_owned(), other.map(|(_, place, label)| (place, label.to_owned())))
            }
            (None, Some((_, place, label))) => (Some(place), label.to_owned(), None),
            (None, None) => (self.place(path), label.to_owned(), None),
        };
        self.problems.push(Problem { message, label, place, other, help: vec![help] });
    }

    fn counts(&mut self) {
        let s = self.scenario;
        let counts = [
            ("readout.hosts", u64::from(s.readout.hosts), 65_535),
            ("readout.fragments_per_host", u64::from(s.readout.fragments_per_host), 65_536),
            ("readout.links_per_host", u64::from(s.readout.links_per_host), 16),
            ("collectors.racks", u64::from(s.collectors.racks), 4_096),
            ("collectors.hosts_per_rack", u64::from(s.collectors.hosts_per_rack), 4_096),
            ("collectors.units_per_host", u64::from(s.collectors.units_per_host), 4_096),
            ("supervisor.clear_group", u64::from(s.supervisor.clear_group), 65_536),
            ("workload.senders", u64::from(s.workload.senders), 65_535),
            ("network.cores", u64::from(s.network.cores), 64),
            ("network.uplinks_per_core", u64::from(s.network.uplinks_per_core), 64),
            ("network.leaf_spine.planes", u64::from(s.network.leaf_spine.planes), 64),
            ("network.leaf_spine.pods", u64::from(s.network.leaf_spine.pods), 1_024),
            ("network.leaf_spine.spines", u64::from(s.network.leaf_spine.spines), 1_024),
            ("live.shipping_max", u64::from(s.live.shipping_max), 65_535),
            ("shaping.fastpass.slot_mtus", u64::from(s.shaping.fastpass.slot_mtus), 64),
        ];
        for (path, count, max) in counts {
            if count == 0 || count > max {
                let message = format!("`{path}` is {count}");
                self.fail(
                    path,
                    message,
                    &format!("not from 1 to {max}"),
                    None,
                    format!("give a number from 1 to {max}"),
                );
            }
        }
        if s.logger.hosts == 0 && !s.logger.accept.is_zero() {
            self.fail(
                "logger.hosts",
                "events are accepted, but no logger stores them".to_owned(),
                "no logger",
                Some(("logger.accept", "this share is accepted")),
                "give at least one logger, or accept nothing".to_owned(),
            );
        }
        if s.logger.hosts > 4_096 {
            let message = format!("`logger.hosts` is {}", s.logger.hosts);
            self.fail("logger.hosts", message, "more than 4096", None, "give at most 4096".to_owned());
        }
        self.share("logger.accept", s.logger.accept);
        self.share("run.scale", s.run.scale);
        self.share("shaping.utilisation", s.shaping.utilisation);
        if s.supervisor.arrivals != Arrivals::OnDemand && s.supervisor.rate.is_zero() && !s.is_barrier() {
            self.fail(
                "supervisor.rate",
                "no event ever arrives: the rate is zero".to_owned(),
                "zero",
                None,
                "give a rate such as \"1 kHz\", or supervisor.arrivals = \"on-demand\"".to_owned(),
            );
        }
        self.sizes();
    }

    fn share(&mut self, path: &str, share: Ratio) {
        if share > Ratio::ONE {
            let message = format!("`{path}` is {share}, more than the whole");
            self.fail(path, message, "above 1", None, "give a share from 0 to 1".to_owned());
        }
    }

    fn run(&mut self) {
        let run = &self.scenario.run;
        let day = Duration::from_secs(86_400);
        if run.duration.is_zero() || run.duration > day {
            let message = format!("the run lasts {}; its range is above 0 and up to 24 h", run.duration);
            self.fail(
                "run.duration",
                message,
                "not above 0 and up to 24 h",
                None,
                "give a time such as \"10 s\"".to_owned(),
            );
        }
        if run.warmup > day {
            let message = format!("the warm-up is {}; the maximum is 24 h", run.warmup);
            self.fail("run.warmup", message, "above 24 h", None, "give a time such as \"1 s\"".to_owned());
        }
        if self.scenario.record.queue_interval.is_zero() {
            let message = "the interval between queue samples is zero; the minimum is 1 ps".to_owned();
            self.fail(
                "record.queue_interval",
                message,
                "zero",
                None,
                "give a time such as \"1 ms\"".to_owned(),
            );
        }
    }
}
