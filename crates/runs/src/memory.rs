//! The memory of a run, estimated before the run starts.

use fanin_scenario::{Arrivals, Scenario};
use fanin_units::Bytes;

use crate::error::Error;

/// Bytes of the command, its tables and an empty run.
const BASE: u64 = 8_000_000;
/// Bytes of a connection, less than measured (1.2 kB): two endpoints, their timers and their row in the table of flows.
const CONNECTION: u64 = 1_000;
/// Bytes of a host, the least that was measured (1 to 4 kB): its node, its links and its ports.
const HOST: u64 = 1_000;
/// Bytes of an event, less than measured (450 B): its row in the table and its times.
const EVENT: u64 = 300;
/// Bytes of a queue's sample in the table and its file.
const SAMPLE: u64 = 50;

/// A lower estimate of a run's memory, by its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryEstimate {
    /// Connections with their endpoints.
    pub connections: Bytes,
    /// Hosts with their links and ports.
    pub hosts: Bytes,
    /// Rows of events.
    pub events: Bytes,
    /// Samples of queues.
    pub samples: Bytes,
}

impl MemoryEstimate {
    /// Estimates the memory of a scenario, without building its network.
    pub fn new(scenario: &Scenario) -> Self {
        let hosts = u64::from(scenario.senders()) + scenario.collectors_total();
        let each = |count: u64, bytes: u64| Bytes::new(count.saturating_mul(bytes));
        Self {
            connections: each(scenario.connections_total(), CONNECTION),
            hosts: each(hosts, HOST),
            events: each(events_max(scenario), EVENT),
            samples: each(samples(scenario), SAMPLE),
        }
    }

    /// Returns the sum of the parts and of the memory of an empty run.
    pub fn total(&self) -> Bytes {
        [self.connections, self.hosts, self.events, self.samples]
            .into_iter()
            .fold(Bytes::new(BASE), |sum, part| sum.saturating_add(part))
    }

    /// Returns the name of the largest part, with the keys that reduce it.
    fn largest(&self, scenario: &Scenario) -> &'static str {
        let (connections, hosts) = if scenario.is_barrier() {
            ("connections: lower workload.senders", "hosts: lower workload.senders")
        } else {
            (
                "connections: lower readout.hosts, collectors.racks or collectors.hosts_per_rack",
                "hosts: lower readout.hosts, collectors.racks or collectors.hosts_per_rack",
            )
        };
        let parts = [
            (self.connections, connections),
            (self.hosts, hosts),
            (self.events, "events: lower run.duration, run.warmup or supervisor.rate"),
            (self.samples, "samples of queues: raise record.queue_interval"),
        ];
        parts.into_iter().max_by_key(|(bytes, _)| *bytes).map_or("", |(_, text)| text)
    }
}

/// Checks that a scenario does not need more memory than this process may use.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Error> {
    let estimate = MemoryEstimate::new(scenario);
    match available() {
        Some(available) if estimate.total() > available => {
            Err(Error::Memory { needed: estimate.total(), available, largest: estimate.largest(scenario) })
        }
        _ => Ok(()),
    }
}

/// Checks that the results of `runs` runs fit the available memory, with `each` bytes for a run.
///
/// # Errors
/// If they need more memory.
pub fn check_results(runs: u64, each: Bytes) -> Result<(), Error> {
    let needed = Bytes::new(each.get().saturating_mul(runs).saturating_add(BASE));
    match available() {
        Some(available) if needed > available => Err(Error::Results { runs, needed, available }),
        _ => Ok(()),
    }
}

/// Computes the most events of a run that the links and the units of the collectors can handle. Zero if the number is not known
/// in advance.
fn events_max(scenario: &Scenario) -> u64 {
    let mean = scenario.readout.fragment_size.mean();
    let (Some(mean), Arrivals::Periodic | Arrivals::Poisson) = (mean, scenario.supervisor.arrivals) else {
        return 0;
    };
    if scenario.is_barrier() {
        return 0;
    }
    let seconds = scenario.run.duration.saturating_add(scenario.run.warmup).as_secs_f64();
    let offered = scenario.supervisor.rate.as_hertz_f64() * seconds;
    let bits = 8.0 * mean.get() as f64 * scenario.fragments_total() as f64;
    let carried = scenario.link.rate.get() as f64 * scenario.collectors_total() as f64 * seconds / bits;
    let processing = scenario.collectors.processing_time.as_secs_f64();
    let processed = scenario.units_total() as f64 * seconds / processing;
    offered.min(carried).min(processed) as u64
}

/// Estimates the queue samples of a run, with at least one queue for each name in `record.queues`.
fn samples(scenario: &Scenario) -> u64 {
    let interval = scenario.record.queue_interval.get().max(1);
    (scenario.run.duration.get() / interval).saturating_mul(scenario.record.queues.len() as u64)
}

/// Returns the memory that this process may use: that of the machine, or the limit of its address space or its control group.
fn available() -> Option<Bytes> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let number = |text: &str| text.split_ascii_whitespace().find_map(|word| word.parse::<u64>().ok());
    let after = |path: &str, start: &str| {
        read(path)?.lines().find_map(|line| line.strip_prefix(start)).and_then(number)
    };
    let machine = after("/proc/meminfo", "MemTotal:").map(|kib| kib * 1024);
    let process = after("/proc/self/limits", "Max address space");
    let group = read("/sys/fs/cgroup/memory.max").as_deref().and_then(number);
    [machine, process, group].into_iter().flatten().min().map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_scenario::load;
    use fanin_sim::LayoutError;

    fn estimate(preset: &str, sets: &[&str]) -> MemoryEstimate {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        MemoryEstimate::new(&load(preset, &sets).unwrap().scenario)
    }

    #[test]
    fn each_part_grows_with_its_keys() {
        let small = estimate("thesis-a-1000hz", &[]);
        let large = estimate("thesis-a-1000hz", &["readout.hosts=1600"]);
        assert!(large.connections.get() > 9 * small.connections.get(), "{large:?}");
        assert!(small.total() < Bytes::new(100_000_000), "{small:?}");
        let longer = estimate("thesis-a-1000hz", &["run.duration=24 h"]);
        assert!(longer.events.get() > 1_000 * small.events.get(), "{longer:?}");
        // Barrier requests follow one another, so that their number is not known in advance.
        assert_eq!(estimate("incast", &["run.duration=24 h"]).events, Bytes::ZERO);
    }

    #[test]
    fn a_run_above_all_memory_is_refused() {
        let sets = ["readout.hosts=60000", "collectors.racks=1500", "collectors.hosts_per_rack=39"];
        let scenario = load("thesis-a-1000hz", &sets.map(str::to_owned)).unwrap().scenario;
        let error = check(&scenario).unwrap_err().to_string();
        assert!(error.contains("needs at least") && error.contains("readout.hosts"), "{error}");
        assert!(check(&load("thesis-a-1000hz", &[]).unwrap().scenario).is_ok());
    }

    #[test]
    fn results_above_all_memory_are_refused() {
        let each = Bytes::new(20_000);
        assert!(check_results(100, each).is_ok());
        let error = check_results(1 << 40, each).unwrap_err().to_string();
        assert!(error.contains("1099511627776 runs") && error.contains("fewer values"), "{error}");
        assert!(check_results(u64::MAX, each).is_err());
    }

    #[test]
    fn the_advice_has_the_keys_of_the_workload() {
        let sets = ["collectors.racks=1000".to_owned()];
        let scenario = load("thesis-a-500hz", &sets).unwrap().scenario;
        let text = MemoryEstimate::new(&scenario).largest(&scenario);
        assert!(text.contains("collectors.racks") && !text.contains("workload.senders"), "{text}");
        let scenario = load("incast", &["workload.senders=60000".to_owned()]).unwrap().scenario;
        let text = MemoryEstimate::new(&scenario).largest(&scenario);
        assert_eq!(text, "hosts: lower workload.senders");
    }

    #[test]
    fn totals_and_queues_are_refused_with_their_keys() {
        let collectors = load("phase2", &["collectors.hosts_per_rack=4096".to_owned()]).unwrap().scenario;
        let error = crate::check(&collectors, false).unwrap_err().to_string();
        assert!(error.contains("collectors.racks × collectors.hosts_per_rack"), "{error}");
        let scenario = load("icc15-39dcm", &[]).unwrap().scenario;
        let error = LayoutError::Voqs { actual: 5_376_740, max: 4_194_304 };
        let refused = Error::Sim(fanin_sim::Error::Memory(error)).setting(&scenario).unwrap();
        assert!(refused.key.ends_with(".module_ports"), "{refused:?}");
        assert!(refused.help.unwrap().contains("readout.hosts"));
    }

    /// A machine with more memory would refuse it, too.
    #[test]
    fn a_network_of_too_many_links_is_refused_without_memory_for_its_run() {
        let sets = ["readout.hosts=60000", "collectors.racks=1500", "network.uplinks_per_core=64"];
        let mut scenario = load("thesis-a-1000hz", &sets.map(str::to_owned)).unwrap().scenario;
        assert!(matches!(crate::check(&scenario, false), Err(Error::Memory { .. })));
        scenario.network.cores = 64;
        let error = crate::check(&scenario, false).unwrap_err();
        assert_eq!(error.setting(&scenario).unwrap().key, "network.uplinks_per_core", "{error}");
    }
}
