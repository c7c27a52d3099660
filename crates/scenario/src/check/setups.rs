//! Rules of rings, push and all-to-all workloads, the central arbiter, the barrel shifter, and records.

use super::ScenarioCheck;
use crate::types::*;

/// The roles that a rule for flows can name.
const ROLES: [&str; 4] = ["readout", "collector", "supervisor", "logger"];

impl ScenarioCheck<'_> {
    /// Checks the rules that name the flows with rings.
    pub(super) fn flows(&mut self, name: &str, rings: &Daqrings) {
        let path = format!("{name}.daqring.flows");
        for rule in &rings.flows {
            let is_host = |host: &str| {
                let (kind, number) = host.trim().split_once(':').unwrap_or((host.trim(), "*"));
                ROLES.contains(&kind) && (number == "*" || number.parse::<u32>().is_ok())
            };
            if !rule.split_once("->").is_some_and(|(from, to)| is_host(from) && is_host(to)) {
                self.fail(
                    &path,
                    format!("{rule:?} is not a rule for flows"),
                    "not two roles joined by \"->\"",
                    None,
                    format!(
                        "give rules such as \"readout->collector\" or \"readout:3->collector:*\"; roles are {}",
                        ROLES.join(", ")
                    ),
                );
                continue;
            }
            let missing = rule.split("->").filter_map(|host| self.missing(host)).next();
            if let Some((role, number, there)) = missing {
                self.fail(
                    &path,
                    format!("{rule:?} names {role} {number}, but there are {there}, counted from 0"),
                    "no such host",
                    None,
                    match there {
                        0 => format!("leave the rule out: there is no {role}"),
                        there => format!("give a number from 0 to {}, or \"*\"", there - 1),
                    },
                );
            }
        }
    }

    /// Returns the host that one side of a rule names and the number of such hosts, if the host does not exist; otherwise
    /// `None`.
    fn missing(&self, host: &str) -> Option<(&'static str, u32, u64)> {
        let (kind, number) = host.trim().split_once(':')?;
        let number: u32 = number.parse().ok()?;
        let s = self.scenario;
        let role = ROLES.into_iter().find(|&role| role == kind)?;
        let there = match role {
            "readout" => u64::from(s.senders()),
            "collector" => s.collectors_total(),
            "supervisor" => 1,
            _ => u64::from(s.logger.hosts),
        };
        (u64::from(number) >= there).then_some((role, number, there))
    }

    /// Checks push and all-to-all workloads.
    pub(super) fn patterns(&mut self) {
        let s = self.scenario;
        if s.workload.kind == WorkloadKind::Push {
            let whole = s.workload.steps.is_empty() && s.workload.fraction == fanin_units::Ratio::ONE;
            if !whole {
                let path = if s.workload.steps.is_empty() { "workload.fraction" } else { "workload.steps" };
                self.fail(
                    path,
                    "in a push workload readouts send whole events".to_owned(),
                    "parts of an event",
                    Some(("workload.kind", "without requests")),
                    "collect whole events, or set workload.kind = \"event-building\"".to_owned(),
                );
            }
            if s.shaping.method.limits_requests() {
                self.fail(
                    "shaping.method",
                    "credits limit requests, and a push workload has none".to_owned(),
                    "credits",
                    Some(("workload.kind", "without requests")),
                    "set shaping.method = \"none\", or workload.kind = \"event-building\"".to_owned(),
                );
            }
        }
        if s.workload.kind == WorkloadKind::AllToAll {
            if s.network.topology != Topology::Star {
                self.fail(
                    "network.topology",
                    "the hosts of an all-to-all workload are on one switch".to_owned(),
                    "not a star",
                    Some(("workload.kind", "this workload")),
                    "set network.topology = \"star\"".to_owned(),
                );
            }
            if s.readout.hosts < 2 {
                self.fail(
                    "readout.hosts",
                    format!("an all-to-all workload needs at least 2 hosts, not {}", s.readout.hosts),
                    "fewer than two",
                    Some(("workload.kind", "from every host to every other")),
                    "give at least 2".to_owned(),
                );
            }
        }
    }

    /// Checks the methods that schedule the senders.
    pub(super) fn schedules(&mut self) {
        let s = self.scenario;
        if s.is_barrier() && s.shaping.method == ShapingMethod::BarrelShifter {
            self.fail(
                "shaping.method",
                "a barrel shifter needs several collectors, and a barrier workload has one".to_owned(),
                "needs several collectors",
                Some(("workload.kind", "one collector")),
                "set workload.kind = \"event-building\"".to_owned(),
            );
        }
        let window = s.transport.diatcp.global_window.get();
        if s.shaping.method == ShapingMethod::BarrelShifter
            && s.transport.congestion_control == CongestionControl::Diatcp
            && window < u64::from(s.readout.hosts)
        {
            self.fail(
                "transport.diatcp.global_window",
                format!(
                    "{} readouts owe a collector answers that the barrel shifter holds back, and {window} of them have a window",
                    s.readout.hosts
                ),
                "fewer packets than readouts",
                Some(("shaping.method", "holds answers back")),
                format!("give at least {}, or use another transport.congestion_control", s.readout.hosts),
            );
        }
        let b = &s.shaping.barrel_shifter;
        if b.events == 0 || b.events > 1_024 {
            let message = format!("`shaping.barrel_shifter.events` is {}", b.events);
            let help = "give a number from 1 to 1024".to_owned();
            self.fail("shaping.barrel_shifter.events", message, "not from 1 to 1024", None, help);
        }
        if b.timeout.is_zero() {
            self.fail(
                "shaping.barrel_shifter.timeout",
                "with a timeout of zero a barrier counts all hosts as dead".to_owned(),
                "zero",
                None,
                "give a time such as \"100 ms\"".to_owned(),
            );
        }
        let collectors = u32::try_from(s.collectors_total()).unwrap_or(u32::MAX);
        let failed = [
            ("failed_readouts", &b.failed_readouts, s.readout.hosts, "readouts"),
            ("failed_collectors", &b.failed_collectors, collectors, "collectors"),
        ];
        for (key, list, hosts, role) in failed {
            let path = format!("shaping.barrel_shifter.{key}");
            if let Some(wrong) = list.iter().find(|&&host| host >= hosts) {
                let message = format!("{wrong} is not one of the {hosts} {role}, which are numbered from 0");
                let help = format!("give numbers from 0 to {}", hosts - 1);
                self.fail(&path, message, "no such host", None, help);
            } else if list.iter().collect::<std::collections::BTreeSet<_>>().len() >= hosts as usize {
                let message = format!("all {hosts} {role} fail");
                self.fail(&path, message, "none is left", None, "leave out at least one".to_owned());
            }
        }
        let f = &s.shaping.fastpass;
        if !f.fail_at.is_zero() && f.failover.is_zero() {
            self.fail(
                "shaping.fastpass.failover",
                "hosts cannot notice the arbiter's failure in no time".to_owned(),
                "zero",
                Some(("shaping.fastpass.fail_at", "it fails here")),
                "give a time such as \"10 ms\"".to_owned(),
            );
        }
    }

    /// Checks that the connections to trace exist.
    pub(super) fn traced(&mut self) {
        let total = self.scenario.connections_total();
        for (index, &number) in self.scenario.record.windows.iter().enumerate() {
            if u64::from(number) >= total {
                self.fail(
                    &format!("record.windows.{index}"),
                    format!("there is no connection {number}: the system has {total}"),
                    "no such connection",
                    None,
                    format!("give numbers from 0 to {}", total.saturating_sub(1)),
                );
            }
        }
    }

    /// Checks that the memory of a readout holds an event.
    pub(super) fn readout_memory(&mut self) {
        let readout = &self.scenario.readout;
        // The sizes of a file are known when it is read.
        let mean = readout.fragment_size.mean();
        if mean.is_none() && readout.memory.is_zero() && !self.scenario.is_barrier() {
            self.fail(
                "readout.memory",
                "a memory of 0 B holds no event".to_owned(),
                "zero",
                None,
                "give the bytes of several hundred events on one host, such as \"2 GB\"".to_owned(),
            );
        }
        let Some(mean) = mean else { return };
        let event =
            mean.checked_mul(u64::from(readout.fragments_per_host)).unwrap_or(fanin_units::Bytes::MAX);
        if readout.memory < event {
            self.fail(
                "readout.memory",
                format!(
                    "a memory of {} is smaller than an event, which takes {event} on each host",
                    readout.memory
                ),
                "smaller than an event",
                Some(("readout.fragments_per_host", "fragments on each host")),
                format!(
                    "give at least \"{event}\", better several hundred times that, or a smaller readout.fragment_size"
                ),
            );
        }
    }
}
