//! A run's network: building it, and its figures.

use fanin_report::{MachineFigures, Records, Span, Summary};
use fanin_scenario::Scenario;
use fanin_testbed::live::{Bench, Capacity, Chosen, LiveNetwork, Observed, least_collection_s};
use fanin_units::{Instant, Ratio};

use super::carried::Carried;
use super::job::{Job, SpoiltAttempt};
use crate::failure::Failure;
use crate::output;

/// A switch that works for more than this share of a core has no time left for a burst. Polling without work does not count.
const SWITCH_WORKING_MAX: f64 = 0.60;
/// A switch that waits for a core for more than this share of the time does not behave like the scenario's switch.
const SWITCH_WAIT_MAX: f64 = 0.20;

/// Share of stolen time above which a machine's clocks differ from the scenario's.
const STEAL_MAX: f64 = 0.05;
/// If hosts or switches wait for a core longer than this share of the ideal time, they determine the collection time, not the
/// network.
const LATE_SHARE: f64 = 0.10;
/// Longest wait in seconds that an otherwise idle kernel shows, too.
const LATE_MIN_S: f64 = 0.5e-3;

/// Builds the network, if the run has one.
pub(super) fn build(job: &Job<'_>) -> Result<Option<Bench>, Failure> {
    let Some(carried) = &job.carried else { return Ok(None) };
    let bar = output::bar(job.arguments.quiet, "{spinner} building the network");
    let own = carried.capacity.one_way;
    let bench = Bench::build(&job.slow.scenario, &job.folder.network(), &std::env::current_exe()?, own);
    bar.finish_and_clear();
    Ok(Some(bench?))
}

/// Adds the figures of network and machine to the summary.
pub(super) fn fill(job: &Job<'_>, summary: &mut Summary, observed: &Observed) {
    summary.network = Some(observed.network.clone());
    let (last_hop, uplink) = observed.load;
    summary.load = Some(fanin_report::Load { last_hop, uplink });
    let Some(Carried { capacity, chosen }) = &job.carried else { return };
    let reason = bottleneck(late_max(&job.slow.scenario), observed);
    let effort = observed.effort;
    summary.machine = Some(MachineFigures {
        scale: Some(chosen.scale.as_f64()),
        valid: Some(reason.is_none()),
        reason,
        run_s: Some(job.slow.scenario.run.duration.as_secs_f64()),
        capacity_bps: Some(capacity.bits_per_s),
        own_delay_us: Some(capacity.one_way.as_secs_f64() * 1e6),
        demand_bps: Some(chosen.demand_bits_per_s),
        switch_busy: Some(effort.switch_busy),
        switch_cpu: Some(effort.switch_cpu),
        switch_working: Some(effort.switch_working),
        switch_wait: Some(effort.switch_wait),
        switch_late_ms: Some(1e3 * effort.switch_late_s),
        switch_late_mean_ms: Some(1e3 * effort.switch_late_mean_s),
        host_late_ms: effort.hosts.map(|hosts| 1e3 * hosts.mean_s),
        host_late_worst_ms: effort.hosts.map(|hosts| 1e3 * hosts.worst_s),
        cpu: Some(effort.machine_cpu),
        steal: Some(effort.steal),
        frames_missed: Some(observed.missed),
        spoilt: (!job.spoilt.is_empty()).then(|| job.spoilt.iter().map(SpoiltAttempt::text).collect()),
    });
}

/// Fills in the ports that lost frames or filled up by the samples of their queues, and the waiting connections.
pub(super) fn fill_ports(summary: &mut Summary, records: &Records) {
    summary.connections = fanin_report::worst_connections(&records.flows);
    if let Some(measured) = summary.measured_ps {
        let span = Span { from: Instant::new(measured.from), until: Instant::new(measured.until) };
        summary.ports = fanin_report::ports_of_queues(&records.queues, span);
    }
}

/// Adds the figures of techniques that act in the kernel.
pub(super) fn fill_techniques(summary: &mut Summary, bench: &Bench) {
    let figures: serde_json::Map<String, serde_json::Value> =
        bench.m21_figures().into_iter().map(|(name, figure)| (name.to_owned(), figure.into())).collect();
    if !figures.is_empty() {
        summary.techniques.insert("m21tcp".into(), figures.into());
    }
}

/// Returns the reason for which the machine, not the network, made the result; `None` if the machine had headroom. Hosts and
/// switches may wait for a core for `allowed_s` seconds on average.
pub(super) fn bottleneck(allowed_s: f64, observed: &Observed) -> Option<String> {
    let effort = observed.effort;
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    if observed.missed > 0 {
        return Some(format!("{} frames were lost before the switch saw them", observed.missed));
    }
    if effort.switch_working > SWITCH_WORKING_MAX {
        return Some(format!("the switch worked for {} of the time", percent(effort.switch_working)));
    }
    if effort.switch_late_mean_s > allowed_s {
        return Some(format!(
            "the switch waited for a core for {:.2} ms on average; {}",
            1e3 * effort.switch_late_mean_s,
            allowed(allowed_s)
        ));
    }
    if effort.switch_wait > SWITCH_WAIT_MAX {
        return Some(format!("the switch waited for a core for {} of the time", percent(effort.switch_wait)));
    }
    if effort.steal > STEAL_MAX {
        return Some(format!("a hypervisor gave {} of this machine to others", percent(effort.steal)));
    }
    if let Some(hosts) = effort.hosts.filter(|hosts| hosts.mean_s > allowed_s) {
        return Some(format!(
            "hosts waited for a core for {:.2} ms on average; {}",
            1e3 * hosts.mean_s,
            allowed(allowed_s)
        ));
    }
    None
}

fn allowed(seconds: f64) -> String {
    format!("the limit is {:.2} ms, a tenth of the least collection time", 1e3 * seconds)
}

/// Returns the longest mean wait of hosts and switches for a core that is allowed, in seconds.
///
/// # Panics
/// If the network cannot be mapped, which is refused before a run.
pub(super) fn late_max(scenario: &Scenario) -> f64 {
    let network = LiveNetwork::of(scenario).expect("the network of a run is mapped");
    (LATE_SHARE * least_collection_s(scenario, &network)).max(LATE_MIN_S)
}

/// Returns size, cost and headroom as lines of text.
pub(super) fn notes(job: &Job<'_>, bench: &Bench, observed: &Observed) -> String {
    let (network, effort) = (bench.network(), observed.effort);
    let mut text = format!(
        "{:<18}{} hosts, {} switches, in {:.2} s ({})\n",
        "network",
        network.hosts.len(),
        network.switches.len(),
        bench.built_in().as_secs_f64(),
        bench.run()
    );
    for note in &network.notes {
        text += &format!("{:<18}{note}\n", "note");
    }
    if let Some(Carried { capacity, chosen }) = &job.carried {
        text += &scale_text(job, *capacity, *chosen);
    }
    for attempt in &job.spoilt {
        text += &format!("{:<18}{}\n", "spoilt before", attempt.text());
    }
    text += &format!(
        "{:<18}switch: worked for {:.1} % of the time, {:.0} % of a core with polling. It waited for a core for {:.1} %, \
         and was late by {:.2} ms. Hosts were late by {:.2} ms ({:.2} at worst). All cores were {:.0} % busy.\n",
        "headroom",
        100.0 * effort.switch_working,
        100.0 * effort.switch_cpu,
        100.0 * effort.switch_wait,
        1e3 * effort.switch_late_s,
        1e3 * effort.hosts.unwrap_or_default().mean_s,
        1e3 * effort.hosts.unwrap_or_default().worst_s,
        100.0 * effort.machine_cpu
    );
    if let Some(reason) = bottleneck(late_max(&job.slow.scenario), observed) {
        text += &format!("{:<18}this measurement is INVALID: {reason}\n", "bottleneck");
    }
    text
}

fn scale_text(job: &Job<'_>, capacity: Capacity, chosen: Chosen) -> String {
    let (asked, slow) = (&job.loaded.scenario, &job.slow.scenario);
    let carries = format!(
        "the system moves {:.0} Mb/s; this machine carried {:.0} Mb/s through a switch just before",
        chosen.demand_bits_per_s / 1e6,
        capacity.bits_per_s / 1e6
    );
    let scale = chosen.scale;
    if scale == Ratio::ONE {
        return format!("{:<18}1: {carries}\n", "scale");
    }
    let how = if chosen.is_given { "as given" } else { "the largest that leaves headroom" };
    format!(
        "{:<18}{scale}, {how}: {carries}\n{:<18}collectors' links ran at {} in place of {}, and {:.1} s by the clock stand for {}. \
         All figures above are the scenario's.\n{:<18}Not scaled: acknowledgements delayed by 40 ms, the kernel's timer, \
         a new connection's first timeout.\n",
        "scale",
        "",
        slow.link.rate,
        asked.link.rate,
        slow.run.duration.as_secs_f64(),
        asked.run.duration,
        ""
    )
}

#[cfg(test)]
mod tests {
    use fanin_testbed::live::{Effort, HostWait};

    use super::*;

    #[test]
    fn late_work_of_the_machine_is_named() {
        let sets =
            ["link.rate=100 Mb/s", "workload.senders=10", "workload.request_size=10 kB"].map(str::to_owned);
        // 8 ms of data: hosts may wait for 0.8 ms.
        let scenario = fanin_scenario::load("incast", &sets).unwrap().scenario;
        let said = |effort: Effort, missed| {
            bottleneck(late_max(&scenario), &Observed { effort, missed, ..Observed::default() })
                .unwrap_or_default()
        };
        let late = |mean_s| Effort { hosts: Some(HostWait { mean_s, worst_s: 1.0 }), ..Effort::default() };
        assert_eq!(said(late(0.7e-3), 0), "");
        assert!(said(late(0.9e-3), 0).starts_with("hosts waited for a core for 0.90 ms"));
        assert!(said(Effort { steal: 0.06, ..Effort::default() }, 0).contains("6 % of this machine"));
        assert!(
            said(Effort { switch_working: 0.61, ..Effort::default() }, 0).contains("for 61 % of the time")
        );
        // 200 hosts: a frame in most rounds, but little work, and in time.
        let many =
            Effort { switch_busy: 0.95, switch_cpu: 0.16, switch_late_mean_s: 3e-5, ..Effort::default() };
        assert_eq!(said(many, 0), "");
        let late = Effort { switch_late_mean_s: 0.9e-3, ..Effort::default() };
        assert!(said(late, 0).starts_with("the switch waited for a core for 0.90 ms"));
        assert!(said(Effort { switch_wait: 0.21, ..Effort::default() }, 0).contains("for 21 % of the time"));
        assert!(said(Effort::default(), 3).starts_with("3 frames were lost"));
    }
}
