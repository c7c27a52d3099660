//! Settings that have no effect in combination with the others: most likely mistakes, so that each gets a warning.

use super::topology::{has_software_switch, switches_used};
use crate::errors::Problem;
use crate::tree::TomlTable;
use crate::types::*;

/// Returns a warning for each changed setting without an effect.
pub(crate) fn without_effect(scenario: &Scenario, tree: &TomlTable) -> Vec<Problem> {
    let as_value = |scenario: &Scenario| toml::Value::try_from(scenario).expect("a scenario has a text");
    let (set, default) = (as_value(scenario), as_value(&Scenario::default()));
    // A file that sets everything, such as a resolved scenario, was not written setting by setting.
    if sets_all(&set, tree, "") {
        return Vec::new();
    }
    let at = |value: &toml::Value, path: &str| {
        path.split('.').try_fold(value.clone(), |v, key| v.get(key).cloned())
    };
    let mut problems = Vec::new();
    for SettingRow { path, is_read, why } in rows(scenario) {
        let Some(node) = tree.find(&path) else { continue };
        if !is_read
            && let Some(place) = node.key.as_ref().or(node.place())
            && place.source.is_outermost
            && at(&set, &path) != at(&default, &path)
        {
            let mut problem = Problem::at(place.clone(), format!("`{path}` has no effect here: {why}"));
            problem.label = "nothing reads this".to_owned();
            problem.help.push("remove it, or change the setting that it depends on".to_owned());
            problems.push(problem);
        }
    }
    problems
}

/// Returns true if the user set every key of a value.
fn sets_all(value: &toml::Value, tree: &TomlTable, path: &str) -> bool {
    match value {
        toml::Value::Table(table) => table.iter().all(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            sets_all(value, tree, &path)
        }),
        _ => tree
            .find(path)
            .and_then(|node| node.key.as_ref().or(node.place()))
            .is_some_and(|place| place.source.is_outermost),
    }
}

/// A setting, true if it has an effect, and otherwise the reason.
struct SettingRow {
    path: String,
    is_read: bool,
    why: String,
}

fn row(path: &str, is_read: bool, why: &str) -> SettingRow {
    SettingRow { path: path.to_owned(), is_read, why: why.to_owned() }
}

fn rows(s: &Scenario) -> Vec<SettingRow> {
    let mut rows = workload(s);
    rows.extend(background(s));
    rows.extend(transport(s));
    rows.extend(shaping(s));
    rows.extend(network(s));
    for (name, switch) in switches_used(s) {
        rows.extend(memory(s, name, switch));
        rows.extend(signals(s, name, switch));
    }
    rows
}

fn workload(s: &Scenario) -> Vec<SettingRow> {
    let barrier = s.is_barrier();
    let no_barrier = "workload.kind is neither \"fixed-fragment\" nor \"fixed-block\"";
    let only_barrier = "workload.kind is a barrier workload";
    let shares = s.transport.congestion_control == CongestionControl::Diatcp;
    vec![
        row("workload.senders", barrier, no_barrier),
        row("workload.request_size", barrier, no_barrier),
        row("workload.service_delay_max", barrier, no_barrier),
        row(
            "workload.fraction",
            !barrier && s.workload.steps.is_empty(),
            "workload.steps are given, or the workload is a barrier workload",
        ),
        row("workload.steps", !barrier, only_barrier),
        row(
            "workload.deadline",
            barrier || shares,
            "only barrier workloads count deadlines, and only transport.congestion_control = \"diatcp\" uses them",
        ),
        row("readout.hosts", !barrier, "a barrier workload has workload.senders"),
        row("readout.fragment_size", !barrier, "a barrier workload has workload.request_size"),
        row("readout.fragment_header", !barrier, only_barrier),
        row("supervisor.rate", !barrier, only_barrier),
        row("supervisor.policy", !barrier, only_barrier),
        row(
            "supervisor.tie_break",
            !barrier && s.supervisor.policy == Policy::NodeLoadBalancing,
            "supervisor.policy is not \"node-load-balancing\"",
        ),
        row("record.events", !barrier, only_barrier),
    ]
}

fn background(s: &Scenario) -> Vec<SettingRow> {
    let b = &s.background;
    let (is_any, has_transfers) = (b.connections > 0, b.kind == BackgroundKind::Transfers);
    let none = "background.connections is zero";
    let mut rows: Vec<SettingRow> =
        ["kind", "congestion_control"].map(|key| row(&format!("background.{key}"), is_any, none)).into();
    rows.extend(["load", "transfer_size", "transfer_sigma"].map(|key| {
        let why = if is_any { "background.kind is not \"transfers\"" } else { none };
        row(&format!("background.{key}"), is_any && has_transfers, why)
    }));
    rows
}

fn transport(s: &Scenario) -> Vec<SettingRow> {
    let t = &s.transport;
    let cc = t.congestion_control;
    let is_tcp = cc.facts().is_tcp;
    let no_tcp = "transport.congestion_control = \"sird\" is not TCP";
    let marks = |switch: &SwitchSettings| switch.ecn.mode.marks();
    let is_marked = switches_used(s).iter().any(|(_, switch)| marks(switch));
    let own = CongestionControl::ALL.into_iter().filter_map(|control| {
        let name = toml::Value::try_from(control).ok()?;
        let why = format!("transport.congestion_control is not {name}");
        Some(row(&format!("transport.{}", control.facts().key?), cc == control, &why))
    });
    let mut rows: Vec<SettingRow> = own.collect();
    rows.extend([
        row(
            "transport.m21tcp.header",
            cc != CongestionControl::M21tcp || t.m21tcp.charge == M21Charge::Flow,
            "transport.m21tcp.charge is not \"flow\"",
        ),
        row(
            "transport.ecn",
            !is_tcp || is_marked,
            "no switch marks: all have ecn.mode \"off\" or \"red-drop\"",
        ),
        row("transport.delayed_ack_timeout", !is_tcp || t.delayed_ack, "transport.delayed_ack is false"),
    ]);
    let of_tcp = [
        "ecn",
        "rto_min",
        "rto_max",
        "rto_spread",
        "timer_granularity",
        "delayed_ack",
        "delayed_ack_timeout",
        "nodelay",
        "sack",
        "initial_window",
        "window_state",
        "slow_start_after_idle",
        "receive_window",
        "offload_burst",
        "receive_offload",
    ];
    rows.extend(of_tcp.map(|key| row(&format!("transport.{key}"), is_tcp, no_tcp)));
    rows
}

fn shaping(s: &Scenario) -> Vec<SettingRow> {
    let (method, fastpass, shifter) = (s.shaping.method, &s.shaping.fastpass, &s.shaping.barrel_shifter);
    let has_credits = method == ShapingMethod::Credits;
    let is_paced = method == ShapingMethod::Fastpass;
    let is_shifted = method == ShapingMethod::BarrelShifter;
    let by_clock = is_shifted && shifter.barrier == Barrier::Clock;
    let no_credits = "shaping.method is not \"credits\"";
    let lives = "shaping.fastpass.fail_at is zero: the arbiter never fails";
    let no_host_fails = shifter.failed_readouts.is_empty() && shifter.failed_collectors.is_empty();
    vec![
        row("shaping.credits", has_credits, no_credits),
        row(
            "shaping.discipline",
            method.limits_requests(),
            "shaping.method is neither \"credits\" nor \"paced-credits\"",
        ),
        row(
            "shaping.request_order",
            !s.is_barrier() && s.workload.kind != WorkloadKind::Push,
            "this workload does not request from one readout after the other",
        ),
        row(
            "shaping.utilisation",
            is_paced || (by_clock && shifter.slot.is_zero()),
            "neither shaping.method = \"fastpass\" nor a barrel shifter with barrier = \"clock\" and slot = 0",
        ),
        row("shaping.fastpass", is_paced, "shaping.method is not \"fastpass\""),
        row("shaping.fastpass.failover", !is_paced || !fastpass.fail_at.is_zero(), lives),
        row("shaping.fastpass.standby", !is_paced || !fastpass.fail_at.is_zero(), lives),
        row("shaping.barrel_shifter", is_shifted, "shaping.method is not \"barrel-shifter\""),
        row(
            "shaping.barrel_shifter.slot",
            !is_shifted || by_clock,
            "shaping.barrel_shifter.barrier is not \"clock\"",
        ),
        row(
            "shaping.barrel_shifter.fail_at",
            !is_shifted || !no_host_fails,
            "neither failed_readouts nor failed_collectors names a host",
        ),
    ]
}

fn network(s: &Scenario) -> Vec<SettingRow> {
    let facts = s.topology_facts();
    let no_planes = "network.topology is not \"leaf-spine\"";
    let no_cores = "the network has no core routers";
    let has_uplinks = facts.reads("uplink");
    let mut rows = vec![
        row(
            "network.hybrid.link",
            !facts.reads("network.hybrid") || s.network.hybrid.host_ports > 0,
            "network.hybrid.host_ports is zero",
        ),
        row("network.flow_distribution", has_uplinks || s.readout.links_per_host > 1, "a star has one path"),
    ];
    for (key, why) in [
        ("network.leaf_spine", no_planes),
        ("network.hybrid", "network.topology is not \"hybrid\""),
        ("network.cores", no_cores),
        ("network.uplinks_per_core", no_cores),
        ("network.readouts_per_group", no_cores),
        ("uplink", "network.topology is \"star\", which has no uplinks"),
        ("core", no_cores),
        (
            "aggregation",
            "the network has no groups of readouts: it has another topology, or network.readouts_per_group is zero",
        ),
        ("leaf", no_planes),
        ("spine", no_planes),
    ] {
        rows.push(row(key, facts.reads(key), why));
    }
    rows
}

/// Returns the settings of a switch's packet memory.
fn memory(s: &Scenario, name: &str, switch: &SwitchSettings) -> Vec<SettingRow> {
    let of = |key: &str, kinds: &[Buffering], named: &str| {
        let why = format!("{name}.buffering is not {named}");
        row(&format!("{name}.{key}"), kinds.contains(&switch.buffering), &why)
    };
    use Buffering::{Daqring, Dedicated, DynamicThreshold, Shared, Voq};
    let limited = [Dedicated, Shared, DynamicThreshold, Voq];
    let has_software_switch = has_software_switch(s, name);
    let mut rows = vec![
        of("buffer", &limited, "a scheme with a limit in bytes"),
        of("uplink_buffer", &[Dedicated], "\"dedicated\""),
        of("port_limit", &[Shared, DynamicThreshold, Voq], "\"shared\", \"dynamic-threshold\" or \"voq\""),
        of("input_limit", &[Shared], "\"shared\""),
        of("pool_split", &[Shared], "\"shared\""),
        of("pool_charge", &[Shared], "\"shared\""),
        of("alpha", &[DynamicThreshold], "\"dynamic-threshold\""),
        of("module_ports", &[Voq], "\"voq\""),
    ];
    for key in ["frames", "slot", "rate", "burst", "service", "flows"] {
        rows.push(row(
            &format!("{name}.daqring.{key}"),
            switch.buffering == Daqring || has_software_switch,
            &format!("{name}.buffering is not \"daqring\", and no software switch is joined to it"),
        ));
    }
    rows
}

/// Returns the settings of a switch's congestion signals and flow control.
fn signals(s: &Scenario, name: &str, switch: &SwitchSettings) -> Vec<SettingRow> {
    let (ecn, pause) = (switch.ecn.mode, switch.pause.mode);
    let mut rows = Vec::new();
    let mut add = |key: &str, is_read: bool, why: &str| {
        rows.push(row(&format!("{name}.{key}"), is_read, &format!("{name}.{why}")));
    };
    add(
        "ecn.mode",
        s.transport.uses_ecn()
            || s.background.connections > 0 && s.background_transport().uses_ecn()
            || ecn != EcnMode::Threshold
            || switch.ecn.not_capable == NotCapable::Drop,
        "no sender supports ECN (transport.ecn is false), and ecn.not_capable lets their packets pass",
    );
    for (key, why) in switch.ecn.unread() {
        add(&format!("ecn.{key}"), false, why);
    }
    for key in ["pause.xoff", "pause.xon", "pause.reaction"] {
        add(key, pause != PauseMode::Off, "pause.mode is \"off\"");
    }
    rows.push(row(
        &format!("{name}.m21"),
        s.transport.congestion_control == CongestionControl::M21tcp,
        "transport.congestion_control is not \"m21tcp\"",
    ));
    rows
}
