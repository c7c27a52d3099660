//! The support that each technique needs from switches and hosts, with its documentation.

/// The support that a technique needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TechniqueNeeds {
    /// Name of the technique, as in [`crate::TECHNIQUES`].
    pub name: &'static str,
    /// Support by switches.
    pub switches: &'static str,
    /// Support by hosts: kernel, settings, application.
    pub hosts: &'static str,
    /// Source that describes the support.
    pub source: &'static str,
}

/// The needs of every technique, in the order of [`crate::TECHNIQUES`].
#[rustfmt::skip]
pub const TECHNIQUE_NEEDS: &[TechniqueNeeds] = &[
    TechniqueNeeds { name: "none", switches: "nothing", hosts: "nothing", source: "RFC 9293" },
    TechniqueNeeds { name: "deep-buffers", switches: "memory for all answers at once", hosts: "nothing", source: "docs/techniques.md" },
    TechniqueNeeds { name: "credits", switches: "nothing", hosts: "an application that counts its requests", source: "thesis §4.3" },
    TechniqueNeeds { name: "paced-credits", switches: "nothing", hosts: "an application that spaces its requests", source: "docs/techniques.md" },
    TechniqueNeeds { name: "static", switches: "nothing", hosts: "senders with a fixed window: a kernel module or BPF (Linux 5.6)", source: "ICC'15 §IV.C" },
    TechniqueNeeds { name: "diatcp", switches: "nothing", hosts: "receivers that set windows: BPF or a changed kernel", source: "ICC'15 §IV.D" },
    TechniqueNeeds { name: "dctcp", switches: "ECN with a step threshold", hosts: "Linux 3.18: tcp_congestion_control=dctcp", source: "RFC 8257" },
    TechniqueNeeds { name: "ecn-red", switches: "ECN with RED", hosts: "net.ipv4.tcp_ecn=1", source: "RFC 3168" },
    TechniqueNeeds { name: "red-drop", switches: "RED", hosts: "nothing", source: "RFC 7567" },
    TechniqueNeeds { name: "m21tcp", switches: "a count of flows, written into a TCP option", hosts: "a changed TCP", source: "M21TCP §III" },
    TechniqueNeeds { name: "rto", switches: "nothing", hosts: "least RTO below 200 ms: a route's rto_min, net.ipv4.tcp_rto_min_us, or BPF", source: "thesis §6.3; ip-route(8)" },
    TechniqueNeeds { name: "ictcp", switches: "nothing", hosts: "receivers that set windows: a changed kernel", source: "Wu et al., IEEE/ACM ToN 2013" },
    TechniqueNeeds { name: "swift", switches: "nothing", hosts: "time stamps of network adapters, another congestion control", source: "Kumar et al., SIGCOMM 2020" },
    TechniqueNeeds { name: "sird", switches: "ECN marks in the core", hosts: "another transport in place of TCP", source: "Prasopoulos et al., NSDI 2025" },
    TechniqueNeeds { name: "pause", switches: "IEEE 802.3x with headroom", hosts: "adapters that obey PAUSE", source: "IEEE 802.3 annex 31B" },
    TechniqueNeeds { name: "pfc", switches: "IEEE 802.1Qbb with headroom", hosts: "adapters that obey PFC", source: "IEEE 802.1Q clause 36" },
    TechniqueNeeds { name: "daqring", switches: "a software switch with a ring for each collector", hosts: "nothing", source: "LCN'15" },
    TechniqueNeeds { name: "fastpass", switches: "nothing", hosts: "synchronised clocks, an arbiter, and a kernel module in each host", source: "Perry et al., SIGCOMM 2014" },
    TechniqueNeeds { name: "barrel-shifter", switches: "nothing", hosts: "an application whose hosts send in phases", source: "docs/networks.md" },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TECHNIQUES;

    #[test]
    fn every_technique_has_its_needs() {
        let names: Vec<&str> = TECHNIQUES.iter().map(|technique| technique.name).collect();
        let listed: Vec<&str> = TECHNIQUE_NEEDS.iter().map(|needs| needs.name).collect();
        assert_eq!(listed, names);
    }
}
