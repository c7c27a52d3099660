//! The causes for which ports and queues can drop frames, as their settings decide. Metrics have a series for each from the start:
//! a counter that begins above zero hides its first drops from `increase()`.

use std::collections::{HashMap, HashSet};

use fanin_queueing::AdmissionLimit;

use crate::config::{Config, EcnMode, ImpairSpec, PortSpec};
use crate::snapshot::{Cause, Dropped, Tally};

/// The causes for which ports and queues of a configuration can drop frames.
pub(super) struct DropCauses<'a> {
    /// Each port by its name, with the limits of its plain queue.
    ports: HashMap<&'a str, (&'a PortSpec, Vec<AdmissionLimit>)>,
    /// Port and name of each ring that drops early.
    early: HashSet<(&'a str, &'a str)>,
}

impl<'a> DropCauses<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        let (layout, ports) = (config.layout(), config.port.iter().enumerate());
        let early = config.ring.iter().filter(|ring| ring.ecn.mode != EcnMode::Off);
        Self {
            ports: ports.map(|(place, port)| (port.name.as_str(), (port, layout.limits_of(place)))).collect(),
            early: early.map(|ring| (ring.port.as_str(), ring.name.as_str())).collect(),
        }
    }

    /// Returns the drops of a port by cause, causes without a frame included.
    pub(super) fn of_port(&self, port: &str, dropped: &[Dropped]) -> Vec<Dropped> {
        let is_impaired = self.ports.get(port).is_some_and(|(spec, _)| spec.impair != ImpairSpec::default());
        let possible = Cause::ALL
            .into_iter()
            .filter(|cause| is_impaired || !matches!(cause, Cause::Impairment | Cause::ImpairmentLimit));
        with_zeros(dropped, possible.map(Cause::name))
    }

    /// Returns the drops of a queue by limit, limits without a frame included. A port's plain queue has an empty name of a ring.
    pub(super) fn of_queue(&self, port: &str, ring: &str, dropped: &[Dropped]) -> Vec<Dropped> {
        let (limits, is_early) = match self.ports.get(port) {
            _ if !ring.is_empty() => (&[AdmissionLimit::Ring][..], self.early.contains(&(port, ring))),
            Some((spec, limits)) => (&limits[..], spec.ecn.mode != EcnMode::Off),
            None => (&[][..], false),
        };
        let early = is_early.then_some(AdmissionLimit::Early);
        with_zeros(dropped, limits.iter().copied().chain(early).map(AdmissionLimit::name))
    }
}

fn with_zeros(dropped: &[Dropped], possible: impl Iterator<Item = &'static str>) -> Vec<Dropped> {
    let absent = possible.filter(|cause| dropped.iter().all(|one| one.cause != *cause));
    let zeros = absent.map(|cause| Dropped { cause, tally: Tally::default() });
    dropped.iter().copied().chain(zeros).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_settings_has_a_cause_before_its_first_drop() {
        let text = |buffering: &str| {
            format!(
                "[switch]\nbuffering = \"{buffering}\"\n[[port]]\nname = \"a\"\n[[ring]]\nname = \"r\"\nport = \"a\"\n"
            )
        };
        let names = |buffering: &str, ring: &str, dropped: &[Dropped]| {
            let config: Config = toml::from_str(&text(buffering)).unwrap();
            let all = DropCauses::new(&config).of_queue("a", ring, dropped);
            all.iter().map(|one| (one.cause, one.tally.frames)).collect::<Vec<_>>()
        };
        assert_eq!(names("dedicated", "", &[]), [("output", 0)]);
        assert_eq!(names("dedicated", "r", &[]), [("ring", 0)]);
        assert_eq!(names("unlimited", "", &[]), []);
        let seen = Dropped { cause: "module", tally: Tally { frames: 3, bytes: 180 } };
        assert_eq!(names("voq", "", &[seen]), [("module", 3), ("voq", 0)]);
        let config: Config = toml::from_str(&text("dedicated")).unwrap();
        let port: Vec<_> = DropCauses::new(&config).of_port("a", &[]).iter().map(|one| one.cause).collect();
        assert!(port.contains(&"memory") && !port.contains(&"impairment"), "{port:?}");
    }
}
