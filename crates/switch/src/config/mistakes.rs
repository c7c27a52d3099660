//! Checks each part of a configuration, from a file or from a command.

use std::collections::HashSet;

use fanin_queueing::{Buffering, FLOWS_MAX, PauseThresholds, PoolCharge, RING_FRAMES_MAX, TokenBucket};
use fanin_scenario::{Document, Ecn, Problem};
use fanin_units::{Bytes, Duration, Packets, Rate, Ratio, wire};

use super::limits::{MEMORY_MAX, NAME_BYTES_MAX, WORKERS_MAX};
use super::port_spec::*;
use super::ring_spec::*;
use super::switch_spec::*;

/// The longest frame: the largest MTU with header and check sequence.
const FRAME_MAX: Bytes = Bytes::new(9000 + wire::ETHERNET_STORED as u64);
/// The longest delay of an impairment.
const DELAY_MAX: Duration = Duration::from_secs(10);
/// The largest number of a table of ways. A station's key holds it in the four bits above the VLAN's 12.
const TABLE_MAX: u16 = 15;
/// The smallest packet memory, enough for the drivers of a few ports.
const MEMORY_MIN: Bytes = Bytes::new(1 << 20);
/// The shortest frame of Ethernet.
const FRAME_MIN: Bytes = Bytes::new(wire::ETHERNET_FRAME_MIN as u64);
/// The longest name of an interface (IFNAMSIZ without its end).
const INTERFACE_BYTES_MAX: usize = 15;

/// One problem of a part of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", self.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default())]
pub struct Mistake {
    /// The key; empty for the part as a whole.
    pub key: &'static str,
    /// The problem, as one clause.
    pub message: String,
    /// Advice on a correct value.
    pub help: Option<String>,
}

impl Mistake {
    pub(crate) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Writes the message with its key.
    pub(crate) fn with_key(&self) -> String {
        if self.key.is_empty() { self.to_string() } else { format!("{}: {self}", self.key) }
    }

    pub(crate) fn at(self, document: &Document, path: &str) -> Problem {
        let path = if self.key.is_empty() { path.to_owned() } else { format!("{path}.{}", self.key) };
        let problem = document.problem(&path, self.message);
        match self.help {
            Some(help) => problem.advise(help),
            None => problem,
        }
    }
}

/// Makes the problem of an unknown name, with the nearest known name as advice.
fn unknown(key: &'static str, kind: &str, name: &str, names: &[&str]) -> Mistake {
    let folded = name.to_lowercase();
    let near = names.iter().find(|other| {
        let other = other.to_lowercase();
        other.contains(&folded) || folded.contains(&other)
    });
    let mistake = Mistake::new(key, format!("there is no {kind} `{name}`"));
    match (near, names) {
        (_, []) => mistake.help(format!("there are no {kind}s at all")),
        (Some(near), _) => mistake.help(format!("did you mean `{near}`?")),
        (None, [first, ..]) => {
            mistake.help(format!("there are {} {kind}s, the first is `{first}`", names.len()))
        }
    }
}

fn check_name(name: &str, kind: &str, mistakes: &mut Vec<Mistake>) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        mistakes.push(
            Mistake::new("name", format!("`{name}` is not a valid name of a {kind}"))
                .help(format!("use 1 to {NAME_BYTES_MAX} letters, digits and the characters - _ . :")),
        );
    }
}

fn check_rate(key: &'static str, rate: Option<Rate>, burst: Bytes, mistakes: &mut Vec<Mistake>) {
    if let Some(rate) = rate
        && let Err(error) = TokenBucket::new(rate, burst)
    {
        mistakes.push(Mistake::new(key, error.to_string()));
    }
}

fn check_share(key: &'static str, share: Ratio, mistakes: &mut Vec<Mistake>) {
    if share > Ratio::ONE {
        mistakes.push(Mistake::new(key, format!("a share is at most 1, not {share}")));
    }
}

fn check_buffer(key: &'static str, buffer: Option<Bytes>, mistakes: &mut Vec<Mistake>) {
    if let Some(buffer) = buffer
        && buffer < FRAME_MIN
    {
        let message = format!("a buffer holds at least a frame of {FRAME_MIN}, not {buffer}");
        mistakes.push(Mistake::new(key, message));
    }
}

/// Checks the frame limit of a queue; messages name the queue's `holder`.
fn check_frames(key: &'static str, holder: &str, frames: Option<Packets>, mistakes: &mut Vec<Mistake>) {
    if let Some(frames) = frames
        && (frames.is_zero() || frames.get() > RING_FRAMES_MAX.into())
    {
        let message = format!("{holder} holds 1 to {RING_FRAMES_MAX} frames, not {frames}");
        mistakes.push(Mistake::new(key, message));
    }
}

/// Checks the congestion signals of a queue with this rate. Its full packet follows from the switch's settings, so that these
/// must be right first.
fn check_ecn(ecn: &Ecn, switch: &SwitchSpec, rate: Option<Rate>, mistakes: &mut Vec<Mistake>) {
    if !switch.mistakes().is_empty() {
        return;
    }
    let packet = switch.full_packet(rate.filter(|rate| !rate.is_zero()));
    if let Err(error) = ecn.aqm(packet) {
        mistakes.push(Mistake::new("ecn", error.to_string()));
    }
}

impl SwitchSpec {
    pub(crate) fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if !(68..=9000).contains(&self.mtu.get()) {
            let message = format!("an MTU lies between 68 B and 9000 B, not {}", self.mtu);
            mistakes.push(Mistake::new("mtu", message));
        }
        if let Some(frame) = self.full_frame.filter(|frame| !(FRAME_MIN..=FRAME_MAX).contains(frame)) {
            let message = format!("a full frame takes {FRAME_MIN} to {FRAME_MAX}, not {frame}");
            mistakes.push(Mistake::new("full_frame", message));
        }
        if self.memory < MEMORY_MIN || self.memory > MEMORY_MAX {
            let message =
                format!("packet memory lies between {MEMORY_MIN} and {MEMORY_MAX}, not {}", self.memory);
            mistakes.push(Mistake::new("memory", message));
        }
        let distinct: HashSet<_> = self.cores.iter().collect();
        if distinct.len() < self.cores.len() {
            mistakes.push(Mistake::new("cores", "a core is named twice").help("one worker runs on each"));
        }
        if self.cores.len() > WORKERS_MAX {
            mistakes
                .push(Mistake::new("cores", format!("{} cores; at most {WORKERS_MAX}", self.cores.len())));
        }
        if !(1..=1 << 24).contains(&self.mac_entries) {
            mistakes.push(Mistake::new("mac_entries", "a switch knows 1 to 16777216 stations"));
        }
        if self.mac_age < Duration::from_secs(1) {
            mistakes.push(Mistake::new(
                "mac_age",
                format!("stations are remembered for 1 s at least, not {}", self.mac_age),
            ));
        }
        if self.mac_hold > self.mac_age {
            let message =
                format!("a station is held for at most `mac_age` ({}), not {}", self.mac_age, self.mac_hold);
            mistakes.push(Mistake::new("mac_hold", message));
        }
        if self.drain > Duration::from_secs(600) {
            mistakes.push(Mistake::new("drain", "a stop waits for 10 minutes at most"));
        }
        if self.buffering.has_limit() {
            check_buffer("buffer", Some(self.buffer), &mut mistakes);
            check_buffer("port_limit", self.port_limit, &mut mistakes);
        }
        if self.buffering == Buffering::Shared {
            check_buffer("input_limit", self.input_limit, &mut mistakes);
        } else {
            for (key, is_given) in [
                ("input_limit", self.input_limit.is_some()),
                ("pool_split", self.pool_split > 0),
                ("pool_charge", self.pool_charge != PoolCharge::Output),
            ] {
                if is_given {
                    let message = format!("`{key}` divides a shared pool, and there is none");
                    mistakes.push(Mistake::new(key, message).help("give `buffering = \"shared\"` with it"));
                }
            }
        }
        if self.module_ports == 0 {
            mistakes.push(Mistake::new("module_ports", "a module has at least 1 port, not 0"));
        }
        if self.buffering == Buffering::DynamicThreshold && self.alpha.is_zero() {
            mistakes.push(
                Mistake::new("alpha", "with an alpha of 0 no queue may hold a frame").help(
                    "a queue may grow while it is shorter than alpha times the free memory: 1 is usual",
                ),
            );
        }
        mistakes
    }
}

impl ControlSpec {
    pub(crate) fn mistakes(&self) -> Vec<Mistake> {
        let Some(http) = self.http else { return Vec::new() };
        match (self.authentication, &self.token_file) {
            (HttpAuthentication::Token, Some(_)) => Vec::new(),
            (HttpAuthentication::Token, None) => {
                let message = format!("any client that reaches {http} could change the switch");
                let help = "give a `token_file`, or `authentication = \"none\"` on a loopback address";
                vec![Mistake::new("http", message).help(help)]
            }
            (HttpAuthentication::None, Some(_)) => {
                let message = "a `token_file` has no effect with `authentication = \"none\"`";
                vec![Mistake::new("authentication", message).help("leave one of them out")]
            }
            (HttpAuthentication::None, None) if http.ip().is_loopback() => Vec::new(),
            (HttpAuthentication::None, None) => {
                let message = format!("other machines that reach {http} could change the switch");
                vec![Mistake::new("http", message).help("give a `token_file`, or listen on 127.0.0.1")]
            }
        }
    }
}

impl PortSpec {
    /// Makes a port in memory with default settings.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            interface: None,
            dpdk: None,
            queues: None,
            attach: Attach::Auto,
            copy: Copying::Auto,
            worker: None,
            rate: None,
            buffer: None,
            service: fanin_queueing::RingService::RoundRobin,
            plain_first: false,
            plain_frames: None,
            ecn: Ecn::default(),
            untagged: None,
            tagged: Vec::new(),
            flood: true,
            reflect: false,
            bypass: false,
            table: 0,
            mac_entries: None,
            storm: StormSpec::default(),
            pause: PauseSpec::default(),
            m21: None,
            impair: ImpairSpec::default(),
        }
    }

    /// Returns the most stations that are learned behind this port.
    pub(crate) fn stations_max(&self, switch: &SwitchSpec) -> u32 {
        self.mac_entries.unwrap_or(switch.mac_entries / 2).clamp(1, switch.mac_entries.max(1))
    }

    pub(crate) fn mistakes(&self, workers: usize, switch: &SwitchSpec) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check_name(&self.name, "port", &mut mistakes);
        if let Some(interface) = &self.interface
            && (interface.is_empty() || interface.len() > INTERFACE_BYTES_MAX)
        {
            mistakes.push(Mistake::new(
                "interface",
                format!("`{interface}` is not a valid name of an interface"),
            ));
        }
        if self.bypass && !(self.reflect && self.interface.is_some()) {
            let message = "the kernel can send frames back only where the switch does so, by an interface of the kernel";
            mistakes.push(
                Mistake::new("bypass", message).help("set `reflect = true` on a port with an `interface`"),
            );
        }
        if self.queues == Some(0) {
            mistakes.push(Mistake::new("queues", "a port serves at least one queue"));
        }
        if let Some(worker) = self.worker
            && usize::from(worker) >= workers
        {
            mistakes.push(
                Mistake::new("worker", format!("there is no worker {worker}"))
                    .help(format!("{workers} are configured, counted from 0: see switch.cores")),
            );
        }
        check_table(self.table, 0, &mut mistakes);
        if self.mac_entries == Some(0) {
            mistakes.push(
                Mistake::new("mac_entries", "a port learns at least one station")
                    .help("leave `mac_entries` out for half of the switch's"),
            );
        }
        check_rate("rate", self.rate, Bytes::ZERO, &mut mistakes);
        check_buffer("buffer", self.buffer, &mut mistakes);
        check_frames("plain_frames", "the plain queue", self.plain_frames, &mut mistakes);
        check_ecn(&self.ecn, switch, self.rate, &mut mistakes);
        if self.untagged.is_some_and(|vlan| self.tagged.contains(&vlan)) {
            mistakes.push(Mistake::new("tagged", "a VLAN is tagged or untagged on a port, not both"));
        }
        let burst = self.storm.burst.unwrap_or_default();
        for rate in [self.storm.broadcast, self.storm.multicast, self.storm.unknown] {
            check_rate("storm", rate, burst, &mut mistakes);
        }
        if let Err(error) = self.pause.thresholds() {
            mistakes.push(Mistake::new("pause", error.to_string()));
        }
        if self.pause.xon.is_some() && self.pause.xoff.is_none() {
            mistakes.push(Mistake::new("pause", "`xon` without `xoff` does nothing"));
        }
        if let Some(m21) = &self.m21 {
            m21.check(self.buffer.unwrap_or(switch.buffer), switch.buffering, &mut mistakes);
        }
        self.impair.check(&mut mistakes);
        mistakes
    }
}

impl PauseSpec {
    /// Returns the thresholds if the port sends PAUSE frames.
    pub(crate) fn thresholds(&self) -> Result<Option<PauseThresholds>, fanin_queueing::PauseError> {
        let Some(xoff) = self.xoff else { return Ok(None) };
        PauseThresholds::new(xoff, self.xon.unwrap_or(Bytes::new(xoff.get() / 2))).map(Some)
    }
}

impl M21Spec {
    fn check(&self, of_port: Bytes, buffering: Buffering, mistakes: &mut Vec<Mistake>) {
        let (buffer, frame) = (self.buffer.unwrap_or(of_port), self.mss.saturating_add(self.header));
        if buffer < frame {
            let message = format!("a buffer of {buffer} does not hold one segment, which takes {frame}");
            mistakes.push(
                Mistake::new("m21", message).help("a frame takes `mss` and `header`; give a larger `buffer`"),
            );
        }
        if self.mss.is_zero() || self.mss > Bytes::new(9000) {
            mistakes
                .push(Mistake::new("m21", format!("a segment's payload is 1 B to 9000 B, not {}", self.mss)));
        }
        if self.flows == 0 || self.flows > FLOWS_MAX {
            mistakes.push(Mistake::new("m21", format!("the stage counts 1 to {FLOWS_MAX} flows")));
        }
        if self.idle < Duration::from_millis(1) {
            mistakes.push(Mistake::new(
                "m21",
                format!("a flow is remembered for 1 ms at least, not {}", self.idle),
            ));
        }
        if self.buffer.is_none() && buffering != Buffering::Dedicated {
            mistakes.push(
                Mistake::new("m21", "the stage must know the buffer that flows share")
                    .help("give m21.buffer, or `buffering = \"dedicated\"`"),
            );
        }
    }
}

impl ImpairSpec {
    fn check(&self, mistakes: &mut Vec<Mistake>) {
        for share in [self.loss, self.duplicate, self.reorder] {
            check_share("impair", share, mistakes);
        }
        if self.delay > DELAY_MAX || self.jitter > DELAY_MAX {
            mistakes.push(Mistake::new("impair", format!("delay and jitter are {DELAY_MAX} at most")));
        }
        if !self.reorder.is_zero() && self.delay.is_zero() {
            mistakes.push(
                Mistake::new("impair", "`reorder` needs a delay: without it there is nothing to overtake")
                    .help("`reorder` lets frames skip the `delay`: give one"),
            );
        }
        if self.frames == 0 || self.frames > 1 << 22 {
            mistakes.push(Mistake::new("impair", "an impairment delays 1 to 4194304 frames"));
        }
    }
}

impl RingSpec {
    /// Returns the most frames that the ring holds. A limit in bytes counts as full-sized frames.
    pub(crate) fn frames_held(&self, mtu: Bytes) -> u64 {
        let by_bytes = self.bytes.map_or(u64::MAX, |bytes| bytes.get().div_ceil(mtu.get() + 14));
        self.frames.map_or(u64::MAX, |frames| frames.get()).min(by_bytes)
    }

    /// Checks the ring in a switch with these settings.
    pub(crate) fn mistakes<'a>(
        &self,
        switch: &SwitchSpec,
        has_port: bool,
        ports: impl FnOnce() -> Vec<&'a str>,
    ) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check_name(&self.name, "ring", &mut mistakes);
        if !has_port {
            mistakes.push(unknown("port", "port", &self.port, &ports()));
        }
        check_frames("frames", "a ring", self.frames, &mut mistakes);
        match (self.frames, self.bytes) {
            (None, None) => mistakes.push(
                Mistake::new("", format!("ring `{}` has no capacity", self.name))
                    .help("give `frames = 14000`, or `bytes = \"27.3 MB\"`, or both"),
            ),
            (_, Some(bytes)) if bytes < FRAME_MIN || bytes > switch.memory => {
                let message = format!(
                    "a ring holds {FRAME_MIN} to {}, all of the packet memory, not {bytes}",
                    switch.memory
                );
                mistakes.push(
                    Mistake::new("bytes", message).help("lower `bytes`, or raise `memory` of [switch]"),
                );
            }
            _ => {}
        }
        if self.burst.is_some() && self.rate.is_none() {
            mistakes.push(Mistake::new("burst", "a burst without a rate does nothing").help("give a `rate`"));
        }
        check_rate("rate", self.rate, self.burst.unwrap_or_default(), &mut mistakes);
        check_ecn(&self.ecn, switch, self.rate, &mut mistakes);
        if let Some(alarm) = self.alarm {
            check_share("alarm", alarm, &mut mistakes);
        }
        mistakes
    }
}

impl RuleSpec {
    /// Returns the rule without its name and priority, and with its ring's port as the ring. Rules that are equal in this form
    /// match the same frames, for the same output.
    pub(crate) fn matched(&self, port_of_ring: impl Fn(&str) -> Option<String>) -> Self {
        let port = self.ring.as_deref().and_then(port_of_ring);
        Self { name: String::new(), priority: 0, ring: port, ..self.clone() }
    }

    pub(crate) fn mistakes<'a>(
        &self,
        has_ring: impl FnOnce(&str) -> bool,
        ports: impl FnOnce() -> Vec<&'a str>,
        rings: impl FnOnce() -> Vec<&'a str>,
    ) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check_name(&self.name, "rule", &mut mistakes);
        match (&self.ring, self.drop) {
            (None, false) => mistakes.push(
                Mistake::new("", format!("rule `{}` does nothing", self.name))
                    .help("give `ring = \"NAME\"`, or `drop = true`"),
            ),
            (Some(_), true) => {
                mistakes.push(Mistake::new("drop", "a rule sends frames to a ring or drops them, not both"));
            }
            (Some(ring), false) => {
                if !has_ring(ring) {
                    mistakes.push(unknown("ring", "ring", ring, &rings()));
                }
            }
            (None, true) => {}
        }
        if let Some(input) = &self.input {
            let names = ports();
            if !names.contains(&input.as_str()) {
                mistakes.push(unknown("input", "port", input, &names));
            }
        }
        if let (Some(source), Some(destination)) = (self.source_ip, self.destination_ip)
            && source.address.is_ipv4() != destination.address.is_ipv4()
        {
            let message = "source and destination are not both IPv4 or both IPv6";
            mistakes.push(Mistake::new("destination_ip", message));
        }
        let has_ports = matches!(self.protocol, Some(Protocol::TCP | Protocol::UDP));
        for (key, range) in [("source_port", self.source_port), ("destination_port", self.destination_port)] {
            if range.is_some() && !has_ports {
                mistakes.push(
                    Mistake::new(key, "only TCP and UDP have ports")
                        .help("add `protocol = \"tcp\"` or \"udp\""),
                );
            }
        }
        mistakes
    }
}

impl StationSpec {
    pub(crate) fn mistakes<'a>(&self, ports: impl FnOnce() -> Vec<&'a str>) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if self.mac.is_group() || self.mac.to_u64() == 0 {
            mistakes
                .push(Mistake::new("mac", format!("{} is not the address of a single station", self.mac)));
        }
        let names = ports();
        if !names.contains(&self.port.as_str()) {
            mistakes.push(unknown("port", "port", &self.port, &names));
        }
        mistakes
    }
}
impl WaySpec {
    pub(crate) fn mistakes<'a>(&self, ports: impl FnOnce() -> Vec<&'a str>) -> Vec<Mistake> {
        let mut mistakes = StationSpec { mac: self.mac, port: self.port.clone(), vlan: None }.mistakes(ports);
        check_table(self.table, 1, &mut mistakes);
        mistakes
    }
}

fn check_table(table: u16, min: u16, mistakes: &mut Vec<Mistake>) {
    if !(min..=TABLE_MAX).contains(&table) {
        mistakes.push(Mistake::new("table", format!("there are tables {min} to {TABLE_MAX}, not {table}")));
    }
}
