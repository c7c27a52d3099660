//! The network: its size, links and ports.

use fanin_units::{Duration, Rate, Ratio};

use super::ScenarioCheck;

/// The most readouts and collectors of a network. The simulator and the live systems number far fewer.
pub(crate) const HOSTS_MAX: u64 = 1_000_000;

impl ScenarioCheck<'_> {
    pub(super) fn links(&mut self) {
        let s = self.scenario;
        let links = [
            ("link", &s.link),
            ("readout.link", &s.readout.link),
            ("uplink", &s.uplink),
            ("supervisor.link", &s.supervisor.link),
            ("logger.link", &s.logger.link),
            ("network.hybrid.link", &s.network.hybrid.link),
        ];
        for (name, link) in links {
            // Links that follow `link` share its mistakes, which are reported once.
            let is_own = |is_same: bool| name == "link" || !is_same;
            if is_own(link.rate == s.link.rate)
                && (link.rate < Rate::new(1_000) || link.rate > Rate::new(10_000_000_000_000))
            {
                self.fail(
                    &format!("{name}.rate"),
                    format!("a link cannot have a rate of {}", link.rate),
                    "not from 1 kb/s to 10 Tb/s",
                    None,
                    "give a rate such as \"10 Gb/s\"".to_owned(),
                );
            }
            if is_own(link.delay == s.link.delay) && link.delay > Duration::from_secs(1) {
                self.fail(
                    &format!("{name}.delay"),
                    format!("a link cannot have a delay of {}", link.delay),
                    "above 1 s",
                    None,
                    "give the delay in one direction, such as \"1 us\"".to_owned(),
                );
            }
            if is_own(link.loss == s.link.loss) && link.loss >= Ratio::ONE {
                self.fail(
                    &format!("{name}.loss"),
                    format!("a link cannot lose {} of its frames", link.loss),
                    "not below 1",
                    None,
                    "give the share of lost frames, such as 0.0001".to_owned(),
                );
            }
        }
    }

    /// Checks that the network has at most [`HOSTS_MAX`] hosts: commands build it as a graph. The graph counts its links.
    pub(super) fn hosts(&mut self) {
        let s = self.scenario;
        let (sources, source_key) = match s.is_barrier() {
            true => (u64::from(s.workload.senders), "workload.senders"),
            false => (u64::from(s.readout.hosts), "readout.hosts"),
        };
        let collectors = s.collectors_total();
        let hosts = sources + collectors;
        if hosts > HOSTS_MAX {
            let (key, reason) = if collectors > sources {
                let product = "collectors.racks × collectors.hosts_per_rack";
                ("collectors.hosts_per_rack", format!("{product} = {collectors} collectors"))
            } else {
                (source_key, format!("{source_key} = {sources}"))
            };
            self.fail(
                key,
                format!("a network of {hosts} hosts is too large: {reason}"),
                &format!("more than {HOSTS_MAX} hosts"),
                Some(("collectors.racks", "racks")),
                format!("give at most {HOSTS_MAX} readouts and collectors together"),
            );
        }
    }
}
