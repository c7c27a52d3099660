//! Combinations that cannot be: each is refused with the setting to blame and what would be right.

mod setups;
mod techniques;
mod unread;

use std::collections::BTreeSet;

use fanin_units::{Bytes, Duration, Rate, Ratio};

use crate::errors::Problem;
use crate::tree::{Place, Table};
use crate::types::*;

pub(crate) use unread::without_effect;

/// Bytes of a frame beside the IP packet: header and check sequence.
const ETHERNET_BYTES: Bytes = Bytes::new(18);
/// The largest packet that Ethernet hardware in use takes.
const MTU_MAX: Bytes = Bytes::new(9_216);
/// The smallest packet every IPv4 host takes (RFC 791).
const MTU_MIN: Bytes = Bytes::new(68);

struct Check<'a> {
    scenario: &'a Scenario,
    tree: &'a Table,
    problems: Vec<Problem>,
}

/// Everything that is wrong with the combination of settings.
pub(crate) fn check(scenario: &Scenario, tree: &Table) -> Vec<Problem> {
    let mut check = Check { scenario, tree, problems: Vec::new() };
    check.counts();
    if !check.problems.is_empty() {
        // What follows divides by these numbers; a count of zero would only be reported again in other words.
        return check.problems;
    }
    check.links();
    check.run();
    check.transport();
    check.workload();
    check.shaping();
    check.patterns();
    check.traced();
    check.schedules();
    check.readout_memory();
    check.network();
    for (name, switch) in switches_used(scenario) {
        check.switch(name, switch);
    }
    check.problems
}

impl Check<'_> {
    /// The place of a setting, or of the nearest section around it that was written down.
    fn place(&self, path: &str) -> Option<Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.tree.find(path).and_then(|node| node.place()) {
                return Some(place.clone());
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    /// Reports a problem at `path`; `other` is a second setting that plays a part.
    fn fail(&mut self, path: &str, message: String, label: &str, other: Option<(&str, &str)>, help: String) {
        let exact = self.tree.find(path).and_then(|node| node.place()).cloned();
        let other = other.and_then(|(path, label)| Some((path, self.place(path)?, label)));
        // Where the setting itself is a default, the one that it clashes with is what the user wrote.
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
            ("readout.hosts", u64::from(s.readout.hosts), 65_536),
            ("readout.fragments_per_host", u64::from(s.readout.fragments_per_host), 65_536),
            ("readout.links_per_host", u64::from(s.readout.links_per_host), 16),
            ("collectors.racks", u64::from(s.collectors.racks), 4_096),
            ("collectors.hosts_per_rack", u64::from(s.collectors.hosts_per_rack), 4_096),
            ("collectors.units_per_host", u64::from(s.collectors.units_per_host), 4_096),
            ("supervisor.clear_group", u64::from(s.supervisor.clear_group), 65_536),
            ("workload.senders", u64::from(s.workload.senders), 65_536),
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
                "events are accepted, but there is no logger to store them".to_owned(),
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
                "no events come: the rate is zero".to_owned(),
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

    fn sizes(&mut self) {
        let path = "readout.fragment_size";
        let too_large = Bytes::new(1 << 30);
        if let Some(mean) = self.scenario.readout.fragment_size.mean()
            && (mean.is_zero() || mean > too_large)
        {
            self.fail(
                path,
                format!("fragments are {mean} on average"),
                "not from 1 B to 1 GiB",
                None,
                "give a size such as \"1.1 kB\"".to_owned(),
            );
        }
        if let SizeModel::LogNormal { sigma, .. } | SizeModel::Polynomial { sigma, .. } =
            self.scenario.readout.fragment_size
            && sigma > Ratio::new(2_000_000)
        {
            let message = format!("the scale parameter σ of the event sizes is {sigma}");
            self.fail(
                path,
                message,
                "above 2",
                None,
                "the thesis uses 0.25 (§6.2); give at most 2".to_owned(),
            );
        }
    }

    fn links(&mut self) {
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
            if link.rate < Rate::new(1_000) || link.rate > Rate::new(10_000_000_000_000) {
                self.fail(
                    &format!("{name}.rate"),
                    format!("a link of {} cannot be", link.rate),
                    "not from 1 kb/s to 10 Tb/s",
                    None,
                    "give a rate such as \"10 Gb/s\"".to_owned(),
                );
            }
            if link.delay > Duration::from_secs(1) {
                self.fail(
                    &format!("{name}.delay"),
                    format!("a link with {} of delay cannot be", link.delay),
                    "above 1 s",
                    None,
                    "give the delay one way, such as \"1 us\"".to_owned(),
                );
            }
        }
    }

    fn run(&mut self) {
        let run = &self.scenario.run;
        let day = Duration::from_secs(86_400);
        if run.duration.is_zero() || run.duration > day {
            let message = format!("a run of {} measures nothing useful", run.duration);
            self.fail(
                "run.duration",
                message,
                "not above 0 and up to 24 h",
                None,
                "give a time such as \"10 s\"".to_owned(),
            );
        }
        if run.warmup > day {
            let message = format!("a warm-up of {}", run.warmup);
            self.fail("run.warmup", message, "above 24 h", None, "give a time such as \"1 s\"".to_owned());
        }
        if self.scenario.record.queue_interval.is_zero() {
            let message = "queues cannot be sampled without a time between samples".to_owned();
            self.fail(
                "record.queue_interval",
                message,
                "zero",
                None,
                "give a time such as \"1 ms\"".to_owned(),
            );
        }
    }

    fn transport(&mut self) {
        let t = &self.scenario.transport;
        if t.mtu > MTU_MAX || t.mtu < MTU_MIN {
            let message = format!("an MTU of {} cannot be", t.mtu);
            self.fail(
                "transport.mtu",
                message,
                "not from 68 B to 9216 B",
                None,
                "1500 B is Ethernet's own".to_owned(),
            );
        } else if t.mss.saturating_add(Bytes::new(40)) > t.mtu {
            self.fail(
                "transport.mss",
                format!("segments of {} do not fit packets of {}", t.mss, t.mtu),
                "with 40 B of headers this is more than the MTU",
                Some(("transport.mtu", "the MTU")),
                format!("give at most \"{}\"", t.mtu.saturating_sub(Bytes::new(40))),
            );
        } else if t.segment_payload() < Bytes::new(8) {
            let message = format!("segments of {} hold next to nothing", t.mss);
            self.fail("transport.mss", message, "too small", None, "give at least \"20 B\"".to_owned());
        }
        if t.rto_min > t.rto_max {
            self.fail(
                "transport.rto_min",
                format!("the smallest timeout, {}, is above the largest, {}", t.rto_min, t.rto_max),
                "the smallest",
                Some(("transport.rto_max", "the largest")),
                "let rto_min be below rto_max".to_owned(),
            );
        }
        if t.rto_min.is_zero() || t.timer_granularity.is_zero() {
            let path = if t.rto_min.is_zero() { "transport.rto_min" } else { "transport.timer_granularity" };
            let message = format!("`{path}` is zero");
            self.fail(path, message, "zero", None, "give at least \"1 us\"".to_owned());
        }
        if t.receive_window < t.mss {
            self.fail(
                "transport.receive_window",
                format!("a receive window of {} holds no segment of {}", t.receive_window, t.mss),
                "below one segment",
                Some(("transport.mss", "a segment")),
                format!("give at least \"{}\"", t.mss),
            );
        }
        let windows = [
            ("transport.static_window", t.static_window),
            ("transport.initial_window", t.initial_window),
            ("transport.diatcp.global_window", t.diatcp.global_window),
            ("transport.dctcp.window_min", t.dctcp.window_min),
        ];
        for (path, window) in windows {
            if window.is_zero() || window.get() > 1 << 20 {
                let message = format!("a window of {window} cannot be");
                self.fail(
                    path,
                    message,
                    "not from 1 to 1048576 packets",
                    None,
                    "give a number of packets".to_owned(),
                );
            }
        }
        self.techniques();
        self.share("transport.rto_spread", t.rto_spread);
    }

    fn workload(&mut self) {
        let s = self.scenario;
        let w = &s.workload;
        let available = s.fragments_total();
        let mut wanted = vec![("workload.fraction".to_owned(), w.fraction)];
        wanted.extend(
            w.steps
                .iter()
                .enumerate()
                .map(|(index, step)| (format!("workload.steps.{index}.fraction"), step.fraction)),
        );
        for (path, fraction) in wanted {
            if fraction > Ratio::ONE {
                let asked = fraction.checked_of(available).unwrap_or(u64::MAX);
                self.fail(
                    &path,
                    format!("{asked} fragments are asked for, but an event has {available}"),
                    "more than all of them",
                    Some(("readout.fragments_per_host", "fragments on each host")),
                    "give a share from 0 to 1".to_owned(),
                );
            } else if fraction.checked_of(u64::from(s.readout.hosts)) == Some(0) {
                let hosts = s.readout.hosts;
                self.fail(
                    &path,
                    format!("a share of {fraction} of {hosts} readouts is none"),
                    "less than one host",
                    None,
                    format!("give at least {}", 1.0 / f64::from(hosts.max(1))),
                );
            }
        }
        for (index, pair) in w.steps.windows(2).enumerate() {
            if pair[1].fraction <= pair[0].fraction {
                self.fail(
                    &format!("workload.steps.{}.fraction", index + 1),
                    format!(
                        "step `{}` ends with no more fragments than `{}` before it",
                        pair[1].name, pair[0].name
                    ),
                    "shares are counted from the start of the event",
                    None,
                    format!("give more than {}", pair[0].fraction),
                );
            }
        }
        let mut names = BTreeSet::new();
        for (index, step) in w.steps.iter().enumerate() {
            self.share(&format!("workload.steps.{index}.accept"), step.accept);
            if !names.insert(step.name.as_str()) {
                let message = format!("two steps are called `{}`", step.name);
                let path = format!("workload.steps.{index}.name");
                self.fail(&path, message, "taken", None, "give each step a name of its own".to_owned());
            }
        }
        if s.is_barrier() {
            let share = match w.kind {
                WorkloadKind::FixedBlock => w.request_size / u64::from(w.senders.max(1)),
                _ => w.request_size,
            };
            if share.is_zero() || w.request_size > Bytes::new(1 << 40) {
                self.fail(
                    "workload.request_size",
                    format!("{} from {} senders leaves nothing to send", w.request_size, w.senders),
                    "less than a byte a sender, or beyond 1 TiB",
                    None,
                    "give a size such as \"256 kB\"".to_owned(),
                );
            }
            if s.network.topology != Topology::Star {
                self.fail(
                    "network.topology",
                    "barrier-synchronised workloads have one client behind one switch".to_owned(),
                    "not a star",
                    Some(("workload.kind", "this workload")),
                    "set network.topology = \"star\"".to_owned(),
                );
            }
        }
    }

    fn shaping(&mut self) {
        self.credits();
        let s = self.scenario;
        // A request names every fragment wanted from one readout, and is never split.
        let largest = s.readout.fragments_per_host;
        if s.shaping.method == ShapingMethod::Credits && s.shaping.credits < largest {
            self.fail(
                "shaping.credits",
                format!(
                    "{} credits never pay for a request: the largest names {largest} fragments and is not split",
                    s.shaping.credits
                ),
                "below the largest request",
                Some(("readout.fragments_per_host", "fragments in a request")),
                format!("give at least {largest}"),
            );
        }
        if s.shaping.utilisation.is_zero() {
            let message = "paced methods cannot fill nothing of the last hop".to_owned();
            self.fail("shaping.utilisation", message, "zero", None, "give a share such as 0.98".to_owned());
        }
    }

    fn network(&mut self) {
        let s = self.scenario;
        let per_rack = u64::from(s.collectors.hosts_per_rack);
        match s.network.topology {
            Topology::Star => {
                let hosts = if s.is_barrier() {
                    u64::from(s.workload.senders) + 1
                } else if s.workload.kind == WorkloadKind::AllToAll {
                    u64::from(s.readout.hosts)
                } else {
                    u64::from(s.readout.hosts) + s.collectors_total()
                };
                self.ports("tor", hosts, "hosts");
                if s.collectors.racks != 1 && !s.is_barrier() {
                    self.fail(
                        "collectors.racks",
                        format!("a star has one switch, and cannot hold {} racks", s.collectors.racks),
                        "racks",
                        Some(("network.topology", "a star")),
                        "set network.topology = \"racks\", or one rack".to_owned(),
                    );
                }
            }
            Topology::Racks | Topology::Hybrid => {
                let uplinks = u64::from(s.network.cores) * u64::from(s.network.uplinks_per_core);
                self.ports("tor", per_rack + uplinks, "collectors and uplinks");
                let group = s.network.readouts_per_group;
                let groups = if group == 0 { s.readout.hosts } else { s.readout.hosts.div_ceil(group) };
                let core = u64::from(groups)
                    + u64::from(s.collectors.racks) * u64::from(s.network.uplinks_per_core)
                    + u64::from(s.network.hybrid.host_ports);
                self.ports("core", core, "racks and readout groups");
                if s.network.topology == Topology::Hybrid && s.network.cores != 1 {
                    self.fail(
                        "network.cores",
                        format!("the hybrid has one switch in its core, not {}", s.network.cores),
                        "cores",
                        Some(("network.topology", "the hybrid")),
                        "set network.cores = 1".to_owned(),
                    );
                }
                if s.network.hybrid.host_ports > 4 {
                    let message = format!("a controller with {} host ports", s.network.hybrid.host_ports);
                    let path = "network.hybrid.host_ports";
                    self.fail(path, message, "more than 4", None, "give 0 to 4".to_owned());
                }
                if s.network.topology == Topology::Racks
                    && s.network.readouts_per_group > 0
                    && s.network.cores > s.network.readouts_per_group
                {
                    self.fail(
                        "network.cores",
                        format!(
                            "a group of {group} readouts cannot be split among {} cores",
                            s.network.cores
                        ),
                        "more cores than readouts in a group",
                        Some(("network.readouts_per_group", "readouts in a group")),
                        "give fewer cores, or larger groups".to_owned(),
                    );
                }
            }
            Topology::LeafSpine => {
                let l = &s.network.leaf_spine;
                // The supervisor and the loggers hang on the leaves of the first pod.
                let services = 1 + u64::from(s.logger.hosts);
                let hosts = u64::from(s.readout.hosts.div_ceil(l.pods.max(1)))
                    + u64::from(s.collectors.racks.div_ceil(l.pods.max(1)))
                    + services;
                let leaf = hosts + u64::from(l.spines);
                if s.readout.links_per_host != 1 {
                    self.fail(
                        "readout.links_per_host",
                        "a host has one link into each plane".to_owned(),
                        "more than one",
                        Some(("network.leaf_spine.planes", "planes")),
                        "give as many planes as a host has links".to_owned(),
                    );
                }
                if leaf > u64::from(l.ports) {
                    self.fail(
                        "network.leaf_spine.pods",
                        format!(
                            "a pod of {hosts} readouts, racks, supervisor and loggers and {} spines needs {leaf} ports, but a \
                             switch has {}",
                            l.spines, l.ports
                        ),
                        "pods",
                        Some(("network.leaf_spine.ports", "ports of each switch")),
                        "give more pods, fewer spines, or switches with more ports".to_owned(),
                    );
                }
                if l.pods > l.ports {
                    self.fail(
                        "network.leaf_spine.pods",
                        format!("{} pods need as many ports on each spine, which has {}", l.pods, l.ports),
                        "one port of each spine for each pod",
                        Some(("network.leaf_spine.ports", "ports of each switch")),
                        format!("give at most {} pods, or more planes", l.ports),
                    );
                }
            }
        }
    }

    /// Whether the switches called `name` have the ports that the network needs; zero means that they do.
    fn ports(&mut self, name: &str, needed: u64, what: &str) {
        let ports = match name {
            "tor" => self.scenario.tor.ports,
            _ => self.scenario.core.ports,
        };
        if ports != 0 && u64::from(ports) < needed {
            self.fail(
                &format!("{name}.ports"),
                format!("{needed} {what} do not fit a switch of {ports} ports"),
                "too few",
                None,
                format!("give at least {needed}"),
            );
        }
    }

    fn switch(&mut self, name: &str, switch: &Switch) {
        let path = |key: &str| format!("{name}.{key}");
        let frame = self.scenario.transport.mtu.saturating_add(ETHERNET_BYTES);
        let charged = frame.saturating_add(switch.frame_overhead);
        let memory = !matches!(switch.buffering, Buffering::Unlimited | Buffering::Daqring);
        let limits = [
            ("buffer", Some(switch.buffer)),
            ("uplink_buffer", (switch.buffering == Buffering::Dedicated).then_some(switch.uplink_buffer)),
            ("port_limit", switch.port_limit.0),
            ("input_limit", switch.input_limit.0),
        ];
        for (key, limit) in limits {
            if let Some(limit) = limit
                && memory
                && limit < charged
            {
                self.fail(
                    &path(key),
                    format!("a buffer of {limit} holds no frame: one takes {charged}"),
                    "smaller than a frame",
                    Some(("transport.mtu", "the MTU")),
                    format!("give at least \"{charged}\""),
                );
                // An uplink buffer that follows the buffer is wrong for the same reason; once is enough.
                break;
            }
        }
        for key in ["port_limit", "input_limit"] {
            let limit = if key == "port_limit" { switch.port_limit.0 } else { switch.input_limit.0 };
            if let Some(limit) = limit
                && memory
                && limit > switch.buffer
            {
                self.fail(
                    &path(key),
                    format!("one port may hold {limit}, but all together have {}", switch.buffer),
                    "above the pool",
                    Some((&path("buffer"), "the pool")),
                    format!("give at most \"{}\", or \"unlimited\"", switch.buffer),
                );
            }
        }
        if switch.buffering == Buffering::DynamicThreshold && switch.alpha.is_zero() {
            let message = "a threshold of zero times the free memory lets nothing in".to_owned();
            self.fail(&path("alpha"), message, "zero", None, "1 is usual; give more than 0".to_owned());
        }
        if switch.module_ports == 0 {
            let message = "a module without ports".to_owned();
            self.fail(&path("module_ports"), message, "zero", None, "give at least 1".to_owned());
        }
        if switch.latency > Duration::from_secs(1) {
            let message = format!("a switch that takes {} to forward a frame", switch.latency);
            self.fail(
                &path("latency"),
                message,
                "above 1 s",
                None,
                "give a time such as \"1 us\"".to_owned(),
            );
        }
        self.signals(name, switch);
        let beside = name == "core"
            && self.scenario.network.topology == Topology::Hybrid
            && self.scenario.network.hybrid.host_ports > 0;
        if switch.buffering == Buffering::Daqring || beside {
            self.daqring(name, switch, frame);
        }
    }

    fn signals(&mut self, name: &str, switch: &Switch) {
        let path = |key: &str| format!("{name}.{key}");
        let ecn = &switch.ecn;
        if matches!(ecn.mode, EcnMode::RedMark | EcnMode::RedDrop) && ecn.min >= ecn.max {
            self.fail(
                &path("ecn.min"),
                format!("RED begins to mark at {} and marks everything from {}", ecn.min, ecn.max),
                "not below `max`",
                Some((&path("ecn.max"), "everything from here")),
                "let min be below max".to_owned(),
            );
        }
        for (key, share) in [("ecn.weight", ecn.weight), ("ecn.probability_max", ecn.probability_max)] {
            self.share(&path(key), share);
            if share.is_zero() && matches!(ecn.mode, EcnMode::RedMark | EcnMode::RedDrop) {
                let message = format!("with `{key}` at zero RED never acts");
                self.fail(&path(key), message, "zero", None, "give a share above 0".to_owned());
            }
        }
        let pause = &switch.pause;
        if pause.mode == PauseMode::Off {
            return;
        }
        if pause.xon >= pause.xoff {
            self.fail(
                &path("pause.xon"),
                format!("a neighbour stopped at {} would go on at {}", pause.xoff, pause.xon),
                "not below `xoff`",
                Some((&path("pause.xoff"), "stopped here")),
                "let xon be below xoff".to_owned(),
            );
        }
        let is_limited = !matches!(switch.buffering, Buffering::Unlimited | Buffering::Daqring);
        if pause.xoff >= switch.buffer && is_limited {
            self.fail(
                &path("pause.xoff"),
                format!(
                    "a neighbour is stopped at {}, when the buffer of {} is full",
                    pause.xoff, switch.buffer
                ),
                "not below the buffer",
                Some((&path("buffer"), "the buffer")),
                "leave room for what is still under way".to_owned(),
            );
        }
    }

    fn daqring(&mut self, name: &str, switch: &Switch, frame: Bytes) {
        let path = |key: &str| format!("{name}.daqring.{key}");
        let ring = &switch.daqring;
        self.flows(name, ring);
        self.signals_of_rings(name, switch);
        if ring.frames == 0 {
            let message = "a ring that holds no frame".to_owned();
            self.fail(&path("frames"), message, "zero", None, "LCN'15 uses 4096".to_owned());
        }
        if ring.slot < frame {
            self.fail(
                &path("slot"),
                format!("a slot of {} holds no frame of {frame}", ring.slot),
                "smaller than a frame",
                Some(("transport.mtu", "the MTU")),
                format!("give at least \"{frame}\""),
            );
        }
        if !ring.rate.is_zero() && ring.burst < frame {
            self.fail(
                &path("burst"),
                format!("a bucket of {} never pays for a frame of {frame}", ring.burst),
                "smaller than a frame",
                Some((&path("rate"), "the rate limit")),
                format!("give at least \"{frame}\""),
            );
        }
    }
}

/// The switches that a scenario's network has, by section.
fn switches_used(s: &Scenario) -> Vec<(&'static str, &Switch)> {
    match s.network.topology {
        Topology::Star => vec![("tor", &s.tor)],
        Topology::Racks | Topology::Hybrid if s.network.readouts_per_group == 0 => {
            vec![("tor", &s.tor), ("core", &s.core)]
        }
        Topology::Racks | Topology::Hybrid => {
            vec![("tor", &s.tor), ("core", &s.core), ("aggregation", &s.aggregation)]
        }
        Topology::LeafSpine => vec![("tor", &s.tor), ("leaf", &s.leaf), ("spine", &s.spine)],
    }
}
