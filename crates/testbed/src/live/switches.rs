//! The configuration of each software switch, from the scenario's section that describes it.

use std::path::Path;

use fanin_network::PortIndex;
use fanin_scenario::{Buffering, CongestionControl, M21Charge, PauseMode, Scenario, SwitchSettings};
use fanin_switch::config::{
    Config, ControlSpec, Hugepages, ImpairSpec, M21Spec, PauseSpec, PortSpec, RingSpec, RuleSpec, SwitchSpec,
    WaySpec,
};
use fanin_switch::{Mac, MacPrefix};
use fanin_units::{Bytes, Duration, Packets, Ratio, mix, wire};

use super::LiveRefusal;
use super::{LinkEnd, LiveHost, LiveLink, LiveNetwork, LivePath, LiveSwitch};

/// The check sequence, which the scenario's buffers hold and frames between namespaces lack.
const CHECK_SEQUENCE: Bytes = Bytes::new(wire::ETHERNET_CHECK as u64);
/// Bytes of the 2048-byte chunks that a port's driver keeps ready.
const DRIVER_BYTES: u64 = 2 * 128 * 2048;
/// Packet memory of a switch without limits, or with rings in deep memory.
const DEEP_BYTES: u64 = 256 << 20;
const MEMORY_MIN: u64 = 32 << 20;
const MEMORY_MAX: u64 = 2 << 30;

/// Makes the configuration of one switch. The ports' interfaces are `p0`, `p1`, … in the order of [`LiveNetwork::ports_of`].
///
/// # Errors
/// The first setting that the software switch does not support.
pub fn configure(
    scenario: &Scenario,
    network: &LiveNetwork,
    number: usize,
    socket: &Path,
) -> Result<Config, LiveRefusal> {
    let switch = &network.switches[number];
    let ports = network.ports_of(number);
    let mut config = Config {
        switch: SwitchSpec {
            name: switch.name.clone(),
            mtu: scenario.transport.mtu,
            full_frame: Some(full_frame(network)),
            memory: memory(switch, &network.uplinks_of(number)),
            hugepages: Hugepages::Off,
            // Each switch draws losses of its own. Whole numbers of TOML have 63 bits.
            seed: mix(scenario.run.seed ^ ((number as u64) << 32)) >> 1,
            drain: Duration::from_millis(200),
            // The port of every host is known in advance.
            mac_hold: Duration::ZERO,
            ..plain_memory(switch)
        },
        control: ControlSpec {
            socket: Some(socket.to_string_lossy().into_owned()),
            ..ControlSpec::default()
        },
        ..Config::default()
    };
    let names = network.port_names(number);
    let (tables, table_of) = network.paths.tables(network, number);
    let name_of = |link: usize| {
        let place = ports.iter().position(|(other, _)| *other == link);
        names[place.expect("a way leads by a port of the switch")].clone()
    };
    let plain_queue = switch.settings.buffering.has_rings().then(|| switch.settings.daqring.plain_queue());
    for (place, (link, end)) in ports.iter().enumerate() {
        let name = names[place].as_str();
        let rate = network.links[*link].rate;
        // The software switch of a hybrid sends every frame back by its input port.
        let is_software = network.software == Some(number);
        let own_buffer = own_buffer(network, network.graph_port(number, *link));
        let mut port = PortSpec {
            interface: Some(format!("p{place}")),
            rate: Some(rate),
            reflect: is_software,
            table: if is_software { 0 } else { 1 + table_of[link] as u16 },
            buffer: own_buffer,
            service: switch.settings.daqring.service,
            plain_first: plain_queue.is_some(),
            plain_frames: plain_queue.as_ref().map(|queue| Packets::new(queue.frames_max.into())),
            ecn: switch.settings.ecn,
            flood: false,
            pause: pause(network, switch, *end)?,
            m21: m21(scenario, network, switch, own_buffer)?,
            ..PortSpec::new(name)
        };
        let first = first_link(network, *end);
        let of_first = first.map_or(Duration::ZERO, |first| first.delay);
        let delay = network.links[*link].delay + switch.settings.latency + of_first;
        port.impair.delay = delay.saturating_sub(network.own);
        port.impair.loss = network.links[*link].loss.either(first.map_or(Ratio::ZERO, |first| first.loss));
        // The number of frames in that time, with a margin.
        let flying = rate.bytes_in(port.impair.delay).get() / 60 + 1024;
        port.impair.frames = u32::try_from(flying).unwrap_or(u32::MAX);
        if port.impair.delay.is_zero() && port.impair.loss.is_zero() {
            port.impair = ImpairSpec::default();
        }
        config.port.push(port);
    }
    for (table, ways) in tables.iter().enumerate().filter(|_| network.software != Some(number)) {
        config.way.extend(ways.iter().flat_map(|(to, link)| {
            let (host, port) = (&network.hosts[*to], name_of(*link));
            let macs = (0..host.links.len()).map(|link| Mac(host.mac(link)));
            macs.map(move |mac| WaySpec { table: 1 + table as u16, mac, port: port.clone() })
        }));
    }
    if plain_queue.is_some() {
        rings(network, number, &mut config);
    }
    Ok(config)
}

/// Returns the first link of the frames to a host; `None` for a port to a switch. The port to the host adds its delay and
/// loss. In a tree of switches the delay and the loss of each link then count once in each direction.
fn first_link(network: &LiveNetwork, end: LinkEnd) -> Option<&LiveLink> {
    let LinkEnd::Host(to) = end else { return None };
    // All hosts of a kind have one kind of link. Frames to a collector come from the readouts, and frames to another host from
    // the collectors.
    let sends = |host: &&LiveHost| match network.hosts[to].part.is_collector() {
        true => host.part.is_source(),
        false => host.part.is_collector(),
    };
    let link = *network.hosts.iter().find(sends)?.links.first()?;
    Some(&network.links[link])
}

/// Returns the settings of the plain queues' memory. Frames lack the check sequence, which the scenario's buffers hold.
fn plain_memory(switch: &LiveSwitch) -> SwitchSpec {
    let mut settings = switch.settings.memory_settings(Vec::new());
    settings.frame_overhead += CHECK_SEQUENCE;
    SwitchSpec::with_memory(&settings)
}

/// Returns the buffer of one output; `None` without a buffer of its own. If the scenario's switch counts the frame in service,
/// subtracts a full frame: the software switch has removed that frame from its queue.
fn own_buffer(network: &LiveNetwork, port: PortIndex) -> Option<Bytes> {
    let buffer = network.graph.output_buffer(port)?;
    let settings = &network.graph.switch(network.graph.source(port))?.settings;
    let frame = full_frame(network) + settings.frame_overhead;
    Some(if settings.count_in_service { buffer.saturating_sub(frame) } else { buffer })
}

/// Returns the bytes of a full frame with its check sequence.
fn full_frame(network: &LiveNetwork) -> Bytes {
    Bytes::new(network.graph.frame_bytes.into())
}

/// Returns the packet memory for a switch with these ports. The kernel keeps an entry of each chunk for each port, so that
/// a network of hundreds of ports starts faster with less memory.
fn memory(switch: &LiveSwitch, is_uplink: &[bool]) -> Bytes {
    let layout = switch.settings.layout(is_uplink);
    // Frames may be far smaller than their chunks.
    let held = layout.and_then(|layout| layout.size()).map_or(u64::MAX, |size| size.get().saturating_mul(4));
    // Connections cannot have as much in flight as the largest memories hold.
    let held = if held > MEMORY_MAX { DEEP_BYTES } else { held };
    let drivers = is_uplink.len() as u64 * DRIVER_BYTES;
    // Half of the drivers' chunks wait for frames that arrive. The other half is for frames that have left the queues, whose
    // memory is four times that of full frames.
    Bytes::new(drivers.max(drivers / 2 + held).clamp(MEMORY_MIN, MEMORY_MAX))
}

/// Returns the PAUSE settings of a port to a switch; hosts' ends of a veth pair ignore PAUSE.
fn pause(network: &LiveNetwork, switch: &LiveSwitch, end: LinkEnd) -> Result<PauseSpec, LiveRefusal> {
    let LinkEnd::Switch(other) = end else {
        if switch.settings.pause.mode != PauseMode::Off && network.switches.len() == 1 {
            return Err(LiveRefusal::switch(
                switch.section,
                "pause.mode",
                &switch.settings.pause.mode,
                "\"off\" where there is one switch: the kernel's virtual links obey no PAUSE frames",
            ));
        }
        return Ok(PauseSpec::default());
    };
    let own = &switch.settings.pause;
    if own.mode == PauseMode::Priority {
        return Err(LiveRefusal::switch(
            switch.section,
            "pause.mode",
            &own.mode,
            "\"pause\" or \"off\" for the software switch",
        ));
    }
    let sends = own.mode == PauseMode::Pause;
    Ok(PauseSpec {
        react: network.switches[other].settings.pause.mode == PauseMode::Pause,
        xoff: sends.then_some(own.xoff),
        xon: sends.then_some(own.xon),
    })
}

fn m21(
    scenario: &Scenario,
    network: &LiveNetwork,
    switch: &LiveSwitch,
    buffer: Option<Bytes>,
) -> Result<Option<M21Spec>, LiveRefusal> {
    let SwitchSettings { m21, buffering, frame_overhead, .. } = &switch.settings;
    let transport = &scenario.transport;
    if !m21 || transport.congestion_control != CongestionControl::M21tcp {
        return Ok(None);
    }
    if transport.m21tcp.charge == M21Charge::Flow {
        return Err(LiveRefusal::value(
            "transport.m21tcp.charge",
            "\"flow\"",
            "\"packet\" for the software switch",
        ));
    }
    if *buffering != Buffering::Dedicated {
        return Err(LiveRefusal::switch(switch.section, "buffering", buffering, "\"dedicated\" for M21TCP"));
    }
    let mss = transport.segment_payload();
    let frame = full_frame(network) + *frame_overhead;
    Ok(Some(M21Spec {
        buffer,
        mss,
        header: frame.saturating_sub(mss),
        idle: transport.m21tcp.idle_limit(),
        rewrite_echo: transport.m21tcp.rewrite_echo,
        ..M21Spec::default()
    }))
}

/// Adds a ring at the output towards each destination of incast-sensitive flows, and a rule for each pair of ends.
fn rings(network: &LiveNetwork, number: usize, config: &mut Config) {
    let settings = &network.switches[number].settings.daqring;
    let own = settings.ring();
    let names = network.port_names(number);
    for (place, (link, _)) in network.ports_of(number).into_iter().enumerate() {
        let port = names[place].clone();
        for (to, destination) in network.hosts.iter().enumerate() {
            let paths =
                network.peers_of(to).into_iter().map(|from| (from, &network.paths.paths[&(from, to)]));
            let named: Vec<(usize, &LivePath)> = paths
                .filter(|(_, path)| leaves(network, path, number, link))
                .filter(|&(from, _)| {
                    settings.names(named(&network.hosts[from].name), named(&destination.name))
                })
                .collect();
            if named.is_empty() {
                continue;
            }
            let ring = destination.name.clone();
            let (rate, burst) = own.shaping.unzip();
            config.ring.push(RingSpec {
                frames: Some(Packets::new(own.frames_max.into())),
                rate,
                burst,
                ..RingSpec::new(&ring, &port)
            });
            config.rule.extend(named.into_iter().map(|(from, path)| RuleSpec {
                name: format!("{}-{}", network.hosts[from].name, destination.name),
                ring: Some(ring.clone()),
                source_mac: Some(exactly(network.hosts[from].mac(path.out))),
                destination_mac: Some(exactly(destination.mac(path.into))),
                ..RuleSpec::default()
            }));
        }
    }
    let deep = settings.slot.get() * u64::from(settings.frames) * config.ring.len() as u64;
    let memory = config.switch.memory.get().max(MEMORY_MIN + deep + config.port.len() as u64 * DRIVER_BYTES);
    config.switch.memory = Bytes::new(memory.min(MEMORY_MAX));
}

/// Returns true if the path leaves a switch by this link.
fn leaves(network: &LiveNetwork, path: &LivePath, number: usize, link: usize) -> bool {
    let mut at = None;
    path.links.iter().enumerate().any(|(place, &next)| {
        // The first link leads from a host to its switch.
        let before = at;
        at = match (place, before) {
            (0, _) => Some(network.links[next].b),
            (_, Some(switch)) => match network.other_end(switch, next) {
                LinkEnd::Switch(switch) => Some(switch),
                LinkEnd::Host(_) => None,
            },
            (_, None) => None,
        };
        before == Some(number) && next == link
    })
}

fn named(name: &str) -> (&str, u32) {
    let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
    (kind, number.parse().expect("names of the graph end in a number"))
}

const fn exactly(mac: [u8; 6]) -> MacPrefix {
    MacPrefix { address: Mac(mac), bits: 48 }
}

#[cfg(test)]
mod tests {
    use fanin_queueing::{Ingress, PauseThresholds};
    use fanin_scenario::{EcnMode, NotCapable, PoolCharge, QueueUnit};

    use super::*;

    /// The configuration of the switch of `replay`, with these settings of its section.
    fn configured(sets: &[&str]) -> Config {
        let sets: Vec<String> = sets.iter().map(|set| format!("tor.{set}")).collect();
        let scenario = fanin_scenario::load("replay", &sets).unwrap().scenario;
        let network = LiveNetwork::of(&scenario).unwrap();
        let config = configure(&scenario, &network, 0, Path::new("/nowhere")).unwrap();
        config.checked().unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn every_scheme_of_the_scenario_has_its_layout() {
        let sets = ["buffering=voq", "buffer=1 MB", "port_limit=200 kB", "module_ports=4"];
        let voq = configured(&sets);
        assert_eq!(voq.layout().pool_sizes(), [Bytes::new(1_000_000); 8], "31 ports");
        assert_eq!(voq.switch.port_limit, Some(Bytes::new(200_000)));
        let sets = ["buffering=shared", "pool_charge=input", "pool_split=12", "input_limit=300 kB"];
        let shared = configured(&sets);
        assert_eq!((shared.layout().pool_sizes().len(), shared.switch.pool_charge), (2, PoolCharge::Input));
        assert_eq!(shared.switch.input_limit, Some(Bytes::new(300_000)));
        assert!(!configured(&["buffering=unlimited"]).layout().couples_outputs());
    }

    #[test]
    fn frames_that_no_rule_names_go_before_the_rings_and_have_their_limit() {
        let sets = ["buffering=daqring", "daqring.service=longest-first", "daqring.frames=77"];
        let config = configured(&sets);
        assert!(config.port.iter().all(|port| port.plain_first));
        let limits = |frames: Option<Packets>| frames == Some(Packets::new(77));
        assert!(config.port.iter().all(|port| limits(port.plain_frames)));
        assert!(!config.ring.is_empty() && config.ring.iter().all(|ring| limits(ring.frames)));
        let without = configured(&["buffering=unlimited"]);
        assert!(without.port.iter().all(|port| !port.plain_first && port.plain_frames.is_none()));
    }

    #[test]
    fn the_live_switch_divides_its_memory_as_the_simulated_one() {
        let limits = ["buffer=1 MB", "port_limit=200 kB", "input_limit=300 kB", "frame_overhead=8 B"];
        for scheme in [
            &["buffering=dedicated", "uplink_buffer=2 MB", "count_in_service=false"][..],
            &["buffering=shared"],
            &["buffering=shared", "pool_split=12", "pool_charge=input"],
            &["buffering=dynamic-threshold", "alpha=2"],
            &["buffering=voq", "module_ports=4"],
            &["buffering=unlimited"],
        ] {
            let sets = [scheme, &limits[..]].concat();
            let live = configured(&sets).layout();
            let sets: Vec<String> = sets.iter().map(|set| format!("tor.{set}")).collect();
            let network = LiveNetwork::of(&fanin_scenario::load("replay", &sets).unwrap().scenario).unwrap();
            let settings = &network.switches[0].settings;
            let simulated = settings.layout(&network.uplinks_of(0)).unwrap();
            // Frames of the live switch lack the check sequence.
            let overhead = simulated.frame_overhead() + CHECK_SEQUENCE;
            let simulated = simulated.with_cells(overhead, Bytes::new(1));
            assert_eq!(live, simulated, "{scheme:?}");
        }
    }

    #[test]
    fn pause_counts_the_same_bytes_live_and_simulated() {
        for overhead in ["frame_overhead=0 B", "frame_overhead=26 B"] {
            let sets = ["buffering=shared", "pause.mode=off", overhead];
            let live = configured(&sets).layout();
            let sets = sets.map(|set| format!("tor.{set}"));
            let network = LiveNetwork::of(&fanin_scenario::load("replay", &sets).unwrap().scenario).unwrap();
            let simulated = network.switches[0].settings.layout(&network.uplinks_of(0)).unwrap();
            let thresholds = PauseThresholds::new(Bytes::new(9_000), Bytes::new(3_000)).unwrap();
            let mut inputs = [Ingress::new(Some(thresholds)); 2];
            // Frames with their check sequence; negative ones depart.
            for frame in
                [1518_i32, 64, 590, 1518, 1518, 1518, 1518, 1518, -64, -1518, -1518, -1518, -1518, 64]
            {
                let simulated = simulated.frame_charge().of(frame.unsigned_abs());
                let live = live.frame_charge().of(frame.unsigned_abs() - wire::ETHERNET_CHECK);
                for (input, charge) in inputs.iter_mut().zip([simulated, live]) {
                    if frame > 0 { input.arrive(charge) } else { input.depart(charge) }
                }
                assert_eq!(inputs[0].occupancy(0), inputs[1].occupancy(0), "{overhead}, frame {frame}");
                assert_eq!(inputs[0].poll_signal(0), inputs[1].poll_signal(0), "{overhead}, frame {frame}");
            }
            assert!(inputs[0].occupancy(0) > 0);
        }
    }

    #[test]
    fn drivers_of_many_ports_share_the_memory_of_the_queues() {
        let sets = ["tor.buffering=dedicated", "tor.buffer=64 kB"].map(str::to_owned);
        let network = LiveNetwork::of(&fanin_scenario::load("replay", &sets).unwrap().scenario).unwrap();
        let of_ports = |ports: usize| memory(&network.switches[0], &vec![false; ports]).get();
        assert_eq!(of_ports(8), MEMORY_MIN);
        // More than drivers alone need, and less than drivers and queues of full frames.
        let (many, drivers, queues) = (of_ports(300), 300 * DRIVER_BYTES, 300 * 64_000);
        assert!(many >= drivers.max(drivers / 2 + 4 * queues) && many < drivers + queues, "{many}");
    }

    #[test]
    fn a_full_frame_is_that_of_the_network() {
        for framing in ["ethernet", "point-to-point"] {
            let sets = [
                "tor.ecn.mode=red-mark",
                "tor.ecn.unit=bytes",
                "tor.buffering=dedicated",
                "tor.buffer=100 kB",
                "tor.frame_overhead=6 B",
                "tor.count_in_service=true",
                "transport.mss=536 B",
                &format!("network.framing={framing}"),
            ];
            let scenario = fanin_scenario::load("replay", &sets.map(str::to_owned)).unwrap().scenario;
            let network = LiveNetwork::of(&scenario).unwrap();
            let config = configure(&scenario, &network, 0, Path::new("/nowhere")).unwrap();
            let port = &config.port[0];
            assert_eq!(config.switch.full_frame, Some(Bytes::new(594)), "{framing}");
            assert_eq!(port.buffer, Some(Bytes::new(99_400)), "{framing}");
        }
    }

    #[test]
    fn the_m21tcp_stage_has_the_settings_of_the_scenario() {
        let base = ["tor.m21=true", "tor.buffering=dedicated", "transport.congestion_control=m21tcp"];
        let stage = |sets: &[&str]| {
            let sets: Vec<String> = [&base[..], sets].concat().iter().map(|&set| set.to_owned()).collect();
            let scenario = fanin_scenario::load("replay", &sets).unwrap().scenario;
            let network = LiveNetwork::of(&scenario).unwrap();
            let config = configure(&scenario, &network, 0, Path::new("/nowhere")).unwrap();
            // The switch reads its settings from a file.
            let text = toml::to_string(&config).unwrap();
            let read = fanin_switch::config::load_text("switch", &text).unwrap().config;
            let stage = read.port[0].m21.unwrap();
            assert_eq!(Some(stage), config.port[0].m21);
            (stage.rewrite_echo, stage.idle)
        };
        assert_eq!(stage(&[]), (false, Duration::from_secs(1)));
        let sets = ["transport.m21tcp.rewrite_echo=true", "transport.m21tcp.idle=0 s"];
        assert_eq!(stage(&sets), (true, Duration::MAX));
    }

    #[test]
    fn congestion_signals_are_those_of_the_scenario() {
        for threshold in ["10 packets", "15 kB"] {
            let set = format!("ecn.threshold={threshold}");
            let sets = ["ecn.mode=threshold", "ecn.unit=bytes", "ecn.not_capable=pass", &set];
            let config = configured(&sets);
            // The switch reads its settings from a file.
            let read =
                fanin_switch::config::load_text("switch", &toml::to_string(&config).unwrap()).unwrap().config;
            for ecn in config.port.iter().chain(&read.port).map(|port| port.ecn) {
                assert_eq!((ecn.threshold.to_string().as_str(), ecn.unit), (threshold, QueueUnit::Bytes));
                assert_eq!((ecn.mode, ecn.not_capable), (EcnMode::Threshold, NotCapable::Pass));
            }
        }
    }
}
