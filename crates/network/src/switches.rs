//! The switches of a scenario by role, with the settings and the scenario's section of each role.

use fanin_scenario::{Buffering, Daqrings, Ecn, Scenario, SwitchSettings};

/// The role of a switch in its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchRole {
    /// Top of a rack of collectors; the one switch of a star.
    Tor,
    /// Joins the racks to the readouts.
    Core,
    /// Joins a group of readouts to a core.
    Aggregation,
    /// Joins the racks and readouts of a pod, in one plane.
    Leaf,
    /// Joins the leaf switches of a plane.
    Spine,
    /// The software switch of a hybrid, on host ports of its core.
    Software,
}

impl SwitchRole {
    /// All roles. A role's index here is the index of its settings in [`Network::switches`](crate::Network::switches).
    pub const ALL: [Self; 6] =
        [Self::Tor, Self::Core, Self::Aggregation, Self::Leaf, Self::Spine, Self::Software];

    /// Roles of switches that all data of a network pass. The first present role counts.
    pub const MIDDLE: [Self; 3] = [Self::Leaf, Self::Core, Self::Tor];

    /// Returns true for switches that join hosts to the middle of a network.
    pub const fn is_outer(self) -> bool {
        matches!(self, Self::Tor | Self::Aggregation)
    }

    /// The index of the role in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name of the role in the names of nodes, such as `tor` in `tor:0`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tor => "tor",
            Self::Core => "core",
            Self::Aggregation => "aggregation",
            Self::Leaf => "leaf",
            Self::Spine => "spine",
            Self::Software => "software",
        }
    }

    /// Resolves the settings of the role from a scenario.
    pub fn resolve(self, scenario: &Scenario) -> SwitchKind {
        let settings = match self {
            Self::Software => software(scenario),
            role => scenario.switch_settings(role.name()).clone(),
        };
        SwitchKind { settings, has_uplinks: self.is_outer() || self == Self::Leaf, role: self }
    }
}

/// The software switch of a hybrid has the settings of its core, but queues in daqrings. It never marks: `core.ecn`
/// describes the hardware, and daqrings mark nothing early.
fn software(scenario: &Scenario) -> SwitchSettings {
    SwitchSettings { buffering: Buffering::Daqring, ecn: Ecn::default(), ..scenario.core.clone() }
}

/// The settings that all switches of a role share.
#[derive(Clone, PartialEq, Debug)]
pub struct SwitchKind {
    /// The settings of these switches.
    pub settings: SwitchSettings,
    /// True if links to other switches are uplinks, which may have a buffer size of their own.
    pub has_uplinks: bool,
    /// The role that they share.
    pub role: SwitchRole,
}

impl SwitchKind {
    /// The rings of these switches: their settings and the rules for flows. `None` without rings.
    pub fn rings(&self) -> Option<&Daqrings> {
        self.settings.buffering.has_rings().then_some(&self.settings.daqring)
    }

    /// The section of the scenario that describes them.
    pub const fn section(&self) -> &'static str {
        match self.role {
            SwitchRole::Software => SwitchRole::Core.name(),
            role => role.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_scenario::EcnMode;

    #[test]
    fn the_software_switch_of_a_hybrid_never_marks() {
        let sets = ["core.ecn.mode=threshold".to_owned(), "core.latency=2 us".to_owned()];
        let scenario = fanin_scenario::load("multihost", &sets).unwrap().scenario;
        let [core, software] = [SwitchRole::Core, SwitchRole::Software].map(|role| role.resolve(&scenario));
        assert_eq!((core.settings.ecn.mode, software.settings.ecn.mode), (EcnMode::Threshold, EcnMode::Off));
        assert_eq!(software.settings.buffering, Buffering::Daqring);
        assert_eq!((software.settings.latency, software.section()), (core.settings.latency, "core"));
    }

    #[test]
    fn a_role_stands_at_its_index() {
        assert!(SwitchRole::ALL.iter().enumerate().all(|(index, role)| role.index() == index));
    }
}
