//! Settings that a topology refuses: one function for each topology with such settings.

use super::ScenarioCheck;
use crate::types::*;

/// Returns the switches of a scenario's network, each with its section.
pub(super) fn switches_used(s: &Scenario) -> Vec<(&'static str, &SwitchSettings)> {
    s.topology_facts().switches.iter().map(|&section| (section, s.switch_settings(section))).collect()
}

impl ScenarioCheck<'_> {
    /// Checks the settings of the topology. A topology without a function here refuses no setting.
    pub(super) fn topology(&mut self) {
        let topology = self.scenario.network.topology;
        if topology == Topology::Star {
            check_star(self);
        } else if topology == Topology::Racks || topology == Topology::Hybrid {
            check_racks(self);
        } else if topology == Topology::LeafSpine {
            check_leaf_spine(self);
        }
    }

    /// Checks the switches that the network has.
    pub(super) fn switches(&mut self) {
        for (name, switch) in switches_used(self.scenario) {
            self.switch(name, switch);
        }
        self.pause_of_rings();
    }
}

/// Returns true if the switches of section `name` share their settings with the software switch of a hybrid.
pub(super) fn has_software_switch(s: &Scenario, name: &str) -> bool {
    name == "core" && s.network.topology == Topology::Hybrid && s.network.hybrid.host_ports > 0
}

fn check_star(check: &mut ScenarioCheck<'_>) {
    let s = check.scenario;
    if s.collectors.racks != 1 && !s.is_barrier() {
        check.fail(
            "collectors.racks",
            format!("a star has one switch, not {} racks", s.collectors.racks),
            "racks",
            Some(("network.topology", "a star")),
            "set network.topology = \"racks\", or one rack".to_owned(),
        );
    }
}

fn check_racks(check: &mut ScenarioCheck<'_>) {
    let s = check.scenario;
    let group = s.network.readouts_per_group;
    if s.network.topology == Topology::Hybrid && s.network.cores != 1 {
        check.fail(
            "network.cores",
            format!("a hybrid network has one core switch, not {}", s.network.cores),
            "cores",
            Some(("network.topology", "a hybrid network")),
            "set network.cores = 1".to_owned(),
        );
    }
    if s.network.hybrid.host_ports > 4 {
        let message = format!("a hybrid network cannot have {} host ports", s.network.hybrid.host_ports);
        let path = "network.hybrid.host_ports";
        check.fail(path, message, "more than 4", None, "give 0 to 4".to_owned());
    }
    if s.network.topology == Topology::Racks
        && s.network.readouts_per_group > 0
        && s.network.cores > s.network.readouts_per_group
    {
        check.fail(
            "network.cores",
            format!(
                "a group of {group} readouts has {} cores; the maximum is one for each readout",
                s.network.cores
            ),
            "more cores than readouts in a group",
            Some(("network.readouts_per_group", "readouts in a group")),
            "give fewer cores, or larger groups".to_owned(),
        );
    }
}

fn check_leaf_spine(check: &mut ScenarioCheck<'_>) {
    let s = check.scenario;
    if s.readout.links_per_host != 1 {
        check.fail(
            "readout.links_per_host",
            "a host has one link into each plane".to_owned(),
            "more than one",
            Some(("network.leaf_spine.planes", "planes")),
            "give as many planes as a host has links".to_owned(),
        );
    }
}
