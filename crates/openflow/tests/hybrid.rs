//! Compares rules of the hybrid with a model: frames pass a switch that has only these rules.

use std::fmt::Write;
use std::net::IpAddr;

use fanin_openflow::{
    Action, CheckedHybrid, CollectorSpec, EXAMPLE, FlowSpec, IpVersion, Match, PortMask, bypass, commands,
    flows, json, ovsdb, removal, switch_config,
};
use fanin_switch::config::{Hugepages, PortRange, PortSpec};
use fanin_switch::{IpPrefix, Mac, MacPrefix, MemoryPorts, Pool, Switch};
use fanin_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

type Ip = (IpAddr, IpAddr, u8, Option<(u16, u16)>);

#[derive(Debug, Clone, Copy)]
struct Frame {
    source: Mac,
    destination: Mac,
    /// Source, destination, protocol, and the ports if it has some.
    ip: Option<Ip>,
}

fn in_mac(prefix: Option<MacPrefix>, mac: Mac) -> bool {
    prefix.is_none_or(|p| (p.address.to_u64() ^ mac.to_u64()) >> (48 - p.bits) == 0)
}

fn in_ip(prefix: Option<IpPrefix>, ip: Option<IpAddr>) -> bool {
    let Some(prefix) = prefix else { return true };
    match (prefix.address, ip) {
        (IpAddr::V4(a), Some(IpAddr::V4(b))) => {
            (u32::from(a) ^ u32::from(b)).checked_shr(32 - u32::from(prefix.bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), Some(IpAddr::V6(b))) => {
            (u128::from(a) ^ u128::from(b)).checked_shr(128 - u32::from(prefix.bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Evaluates a match (OpenFlow 1.3 §5.3).
fn hits(rule: &Match, input: u32, frame: &Frame) -> bool {
    let port = |wanted: Option<PortMask>, actual: Option<u16>| {
        wanted.is_none_or(|wanted| actual.is_some_and(|actual| actual & wanted.mask == wanted.value))
    };
    let ports = frame.ip.and_then(|ip| ip.3);
    rule.input.is_none_or(|wanted| wanted == input)
        && rule.vlan.is_none()
        && in_mac(rule.source_mac, frame.source)
        && in_mac(rule.destination_mac, frame.destination)
        && rule.ip.is_none_or(|version| {
            frame.ip.is_some_and(|(source, ..)| source.is_ipv4() == (version == IpVersion::V4))
        })
        && in_ip(rule.source_ip, frame.ip.map(|ip| ip.0))
        && in_ip(rule.destination_ip, frame.ip.map(|ip| ip.1))
        && rule.protocol.is_none_or(|protocol| frame.ip.is_some_and(|ip| ip.2 == protocol.0))
        && port(rule.source_port, ports.map(|p| p.0))
        && port(rule.destination_port, ports.map(|p| p.1))
}

/// The ports by which a frame leaves, and the host ports that it passes.
fn walk(hybrid: &CheckedHybrid, input: u32, frame: &Frame) -> (Vec<u32>, Vec<u32>) {
    let is_host_port = |port: u32| hybrid.spec().host_port.iter().any(|p| p.number == port);
    let (mut out, mut passed) = (Vec::new(), Vec::new());
    let mut here = vec![input];
    while let Some(input) = here.pop() {
        assert!(passed.len() <= 8, "a frame loops: {frame:?} through {passed:?}");
        let first = hybrid.rules().iter().find(|rule| hits(&rule.matches, input, frame));
        // Overlapping rules of one priority must agree: OpenFlow leaves their order undefined.
        if let Some(first) = first {
            let same = |r: &&fanin_openflow::Rule| r.stage == first.stage && hits(&r.matches, input, frame);
            for rule in hybrid.rules().iter().filter(same) {
                assert_eq!(rule.action, first.action, "{frame:?}");
            }
        }
        let ports = match first.map(|rule| &rule.action) {
            None | Some(Action::Drop) => Vec::new(),
            Some(Action::Output(ports)) => ports.clone(),
            Some(Action::Failover(group)) => vec![group.host_port],
            // A switch without learned stations floods, and host ports have `no-flood`.
            Some(Action::Normal) => hybrid.spec().port.iter().map(|port| port.number).collect(),
        };
        for port in ports.into_iter().filter(|&port| port != input) {
            if is_host_port(port) {
                passed.push(port);
                here.push(port);
            } else {
                out.push(port);
            }
        }
    }
    (out, passed)
}

/// Evaluates a flow of the description directly, without OpenFlow.
fn wants(flow: &FlowSpec, collector: &CollectorSpec, frame: &Frame) -> bool {
    let in_range = |wanted: Option<PortRange>, pick: fn((u16, u16)) -> u16| {
        wanted.is_none_or(|range| {
            let Some((_, _, 6 | 17, Some(ports))) = frame.ip else { return false };
            (range.first..=range.last).contains(&pick(ports))
        })
    };
    (flow.collectors.is_empty() || flow.collectors.contains(&collector.name))
        && in_mac(flow.source_mac, frame.source)
        && in_ip(flow.source_ip, frame.ip.map(|ip| ip.0))
        && in_ip(flow.destination_ip, frame.ip.map(|ip| ip.1))
        && flow.protocol.is_none_or(|protocol| frame.ip.is_some_and(|ip| ip.2 == protocol.0))
        && in_range(flow.source_port, |p| p.0)
        && in_range(flow.destination_port, |p| p.1)
}

const PORTS: u32 = 4;

fn station(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

/// Four ports, up to four host ports, stations 1 to 8 at ports 1 to 4 in turn; the last of them are collectors.
fn description(hosts: usize, collectors: usize, flows: &[String], masks: bool, others: &str) -> String {
    let mut text = format!("[openflow]\nport_masks = {masks}\nothers = \"{others}\"\n");
    for port in 1..=PORTS {
        let _ = write!(text, "[[port]]\nname = \"p{port}\"\nnumber = {port}\n");
    }
    for port in 0..hosts {
        let _ = write!(text, "[[host_port]]\nname = \"h{port}\"\nnumber = {}\n", 10 + port);
    }
    for number in 1..=8u32 {
        let port = 1 + (number - 1) % PORTS;
        let kind = if number as usize > 8 - collectors { "collector" } else { "host" };
        let _ = write!(
            text,
            "[[{kind}]]\nname = \"s{number}\"\nport = \"p{port}\"\nmac = \"{}\"\n",
            station(number as u8)
        );
    }
    text + &flows.concat()
}

fn flow() -> impl Strategy<Value = String> {
    let ports = prop_oneof![
        Just(String::new()),
        (0..30u16, 0..30u16).prop_map(|(a, b)| format!("source_port = \"{}-{}\"\n", a.min(b), a.max(b))),
        (0..30u16).prop_map(|a| format!("destination_port = {a}\n")),
    ];
    let address = prop_oneof![
        Just(String::new()),
        Just("source_ip = \"10.0.0.0/30\"\n".to_owned()),
        Just("destination_ip = \"fd00::4/126\"\n".to_owned()),
        (0..9u8).prop_map(|n| format!("source_mac = \"{}\"\n", station(n))),
    ];
    let protocol = prop_oneof![Just(""), Just("protocol = \"tcp\"\n"), Just("protocol = 17\n")];
    let collectors = prop_oneof![Just(""), Just("collectors = [\"s8\"]\n")];
    (ports, address, protocol, collectors).prop_map(|(a, b, c, d)| format!("[[flow]]\n{a}{b}{c}{d}"))
}

fn frame() -> impl Strategy<Value = Frame> {
    let ip = (any::<bool>(), 0..9u8, 0..9u8, prop_oneof![Just(6u8), Just(17), Just(1)], 0..32u16, 0..32u16);
    let ip = ip.prop_map(|(four, a, b, protocol, source, destination)| {
        let address = |n: u8| -> IpAddr {
            if four { [10, 0, 0, n].into() } else { format!("fd00::{n}").parse().unwrap() }
        };
        (address(a), address(b), protocol, (protocol != 1).then_some((source, destination)))
    });
    (1..9u8, 1..10u8, proptest::option::of(ip)).prop_map(|(source, destination, ip)| Frame {
        source: station(source),
        destination: if destination == 9 { Mac::BROADCAST } else { station(destination) },
        ip,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_frame_arrives_once_and_makes_the_detour_that_it_should(
        hosts in 0..5usize,
        collectors in 1..5usize,
        flows in proptest::collection::vec(flow(), 0..3),
        masks in any::<bool>(),
        normal in any::<bool>(),
        frames in proptest::collection::vec(frame(), 48),
    ) {
        let others = if normal { "normal" } else { "flood" };
        let text = description(hosts, collectors, &flows, masks, others);
        // A random flow may match no collector, which the checks refuse.
        let Ok((hybrid, _)) = CheckedHybrid::parse("x", &text, None) else { return Ok(()) };
        let spec = hybrid.spec();
        for frame in frames {
            let home = |mac: Mac| 1 + (u32::from(mac.0[5]) - 1) % PORTS;
            let input = home(frame.source);
            let (out, passed) = walk(&hybrid, input, &frame);
            if frame.destination.is_group() {
                let all: Vec<u32> = (1..=PORTS).filter(|&port| port != input).collect();
                prop_assert_eq!((out, passed), (all, vec![]), "{:?}", frame);
                continue;
            }
            let to = home(frame.destination);
            let expected = if to == input { vec![] } else { vec![to] };
            prop_assert_eq!(out, expected, "{:?}", frame);
            let index = spec.collector.iter().position(|c| in_mac(c.mac, frame.destination));
            let detour = index.and_then(|index| {
                let collector = &spec.collector[index];
                let meant = spec.flow.is_empty() || spec.flow.iter().any(|flow| wants(flow, collector, &frame));
                hybrid.host_port_of(index).filter(|_| meant && to != input).map(|port| port.number)
            });
            prop_assert_eq!(passed, detour.into_iter().collect::<Vec<_>>(), "{:?}", frame);

            // Any frame from the software switch reaches a collector's port or is dropped.
            for port in &spec.host_port {
                let (out, passed) = walk(&hybrid, port.number, &frame);
                prop_assert!(passed.is_empty());
                prop_assert_eq!(out, index.map(|i| hybrid.rules().iter().find_map(|rule| {
                    let is_mine = rule.matches.destination_mac == spec.collector[i].mac && rule.matches.input == Some(port.number);
                    match &rule.action { Action::Output(ports) if is_mine => Some(ports.clone()), _ => None }
                }).unwrap_or_default()).unwrap_or_default());
            }
        }
    }
}

#[test]
fn collectors_are_spread_by_what_they_ask_for() {
    let names = |hybrid: &CheckedHybrid| {
        let ports =
            (0..hybrid.spec().collector.len()).map(|i| hybrid.host_port_of(i).map(|p| p.name.clone()));
        ports.collect::<Vec<_>>()
    };
    let text = |collectors: &str| {
        let mut text = "[[port]]\nname = \"p\"\nnumber = 1\n".to_owned();
        for (name, number) in [("a", 2), ("b", 3)] {
            let _ = write!(text, "[[host_port]]\nname = \"{name}\"\nnumber = {number}\n");
        }
        text + collectors
    };
    let collector = |number: u8, more: &str| {
        format!("[[collector]]\nname = \"c{number}\"\nport = \"p\"\nmac = \"{}\"\n{more}", station(number))
    };
    let some = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
    let equal: String = (1..=4).map(|n| collector(n, "")).collect();
    let (hybrid, _) = CheckedHybrid::parse("x", &text(&equal), None).unwrap();
    assert_eq!(names(&hybrid), some(&["a", "b", "a", "b"]));
    // A collector with the rate of the three others together has a host port of its own.
    let uneven = collector(1, "rate = \"1 Gb/s\"\n")
        + &(2..=4).map(|n| collector(n, "rate = \"3 Gb/s\"\nhost_port = \"b\"\n")).collect::<String>();
    let (hybrid, _) = CheckedHybrid::parse("x", &text(&uneven), None).unwrap();
    assert_eq!(names(&hybrid), some(&["a", "b", "b", "b"]));
    let (hybrid, _) = CheckedHybrid::parse("x", &text(&equal), Some(1)).unwrap();
    assert_eq!(names(&hybrid), some(&["a", "a", "a", "a"]));
    let (hybrid, _) = CheckedHybrid::parse("x", &text(&equal), Some(0)).unwrap();
    assert_eq!(names(&hybrid), [None, None, None, None]);
    assert!(!flows(&hybrid).contains("drop"), "{}", flows(&hybrid));
}

#[test]
fn mistakes_are_named_and_placed() {
    let base = "[[port]]\nname = \"p1\"\nnumber = 1\n[[host_port]]\nname = \"h\"\nnumber = 2\n";
    let collector = "[[collector]]\nname = \"c\"\nport = \"p1\"\nmac = \"02:00:00:00:00:01\"\n";
    for (text, line, message) in [
        ("[[port]]\nname = \"x\"\nnumber = 1\n", 9, "`p1` and `x` have the same number"),
        ("[[port]]\nname = \"p1\"\nnumber = 3\n", 8, "`p1` names two ports"),
        ("[[port]]\nname = \"x\"\nnumber = 0\n", 9, "between 1 and 65279, not 0"),
        ("[[port]]\nname = \"x'; reboot\"\nnumber = 3\n", 8, "is not a valid name of a port or bridge"),
        (
            "[[host]]\nname = \"x\"\nport = \"p2\"\nmac = \"02:00:00:00:00:02\"\n",
            9,
            "no [[port]] is called `p2`",
        ),
        ("[[host]]\nname = \"x\"\nport = \"h\"\nmac = \"02:00:00:00:00:02\"\n", 9, "`h` is a host port"),
        (
            "[[host]]\nname = \"x\"\nport = \"p1\"\nmac = \"ff:ff:ff:ff:ff:ff\"\n",
            10,
            "the address of a group",
        ),
        ("[[collector]]\nname = \"x\"\nport = \"p1\"\n", 7, "neither `mac` nor `ip`"),
        (
            "[[collector]]\nname = \"x\"\nport = \"p1\"\nip = \"10.0.0.1\"\nhost_port = \"H\"\n",
            11,
            "no [[host_port]] is called `H`",
        ),
        (
            "[[collector]]\nname = \"a b\"\nport = \"p1\"\nip = \"10.0.0.1\"\n",
            8,
            "is not a valid name of a ring",
        ),
        ("[[flow]]\nprotocol = \"icmp\"\nsource_port = 5\n", 8, "protocol 1 has no ports"),
        (
            "[[flow]]\nsource_ip = \"10.0.0.0/8\"\ndestination_ip = \"::1\"\n",
            9,
            "one address is IPv4, the other IPv6",
        ),
        ("[[flow]]\ncollectors = [\"d\"]\n", 8, "no [[collector]] is called `d`"),
        ("[openflow]\npriority = 0\n", 8, "between 1 and 65530, not 0"),
        ("[openflow]\ncookie = 0\n", 8, "the cookie must not be 0"),
        ("[openflow]\nbridge = \"$(reboot)\"\n", 8, "is not a valid name of a port or bridge"),
        ("[openflow]\nversion = \"1.0\"\n", 8, "unknown value \"1.0\""),
        ("[opnflow]\n", 7, "unknown key `opnflow`"),
    ] {
        let errors = CheckedHybrid::parse("x", &format!("{base}{text}"), None).unwrap_err();
        let problem = &errors.problems()[0];
        assert!(problem.message().contains(message), "{text}: {errors}");
        assert_eq!(problem.location().map(|(_, line, _)| line), Some(line), "{errors}");
    }
    // Two collectors with overlapping frames, by `mac` or by `ip`.
    for more in ["mac = \"02:00:00:00:00:00/40\"", "ip = \"10.0.0.1\""] {
        let text = format!("{base}{collector}[[collector]]\nname = \"d\"\nport = \"p1\"\n{more}\n");
        let errors = CheckedHybrid::parse("x", &text, None).unwrap_err();
        assert!(errors.problems()[0].message().contains("match both `c` and `d`"), "{errors}");
    }
    let flow = "[[flow]]\nsource_port = \"0-65535\"\n";
    let text = format!("[openflow]\nport_masks = false\n{base}{collector}{flow}");
    let errors = CheckedHybrid::parse("x", &text, None).unwrap_err();
    assert!(errors.problems()[0].message().contains("the limit is 65536"), "{errors}");
    let errors = CheckedHybrid::parse("x", base, Some(2)).unwrap_err();
    assert!(
        errors.problems()[0].message().contains("2 host ports are requested, and 1 are configured"),
        "{errors}"
    );
}

#[test]
fn likely_mistakes_are_reported() {
    let warned = |text: &str, host_ports| {
        let (_, warnings) = CheckedHybrid::parse("x", text, host_ports).unwrap();
        warnings.problems().iter().map(|problem| problem.message().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(warned(EXAMPLE, None), Vec::<String>::new());
    // Without a bypass there is nothing for the time when the software switch does not run.
    let without = EXAMPLE.replace("bypass = true", "bypass = false");
    let cut_off = warned(&without, None);
    assert!(cut_off.len() == 1 && cut_off[0].contains("neither failover nor a bypass"), "{cut_off:?}");
    assert_eq!(warned(&without.replace("failover = false", "failover = true"), None), Vec::<String>::new());
    assert_eq!(warned(&without, Some(0)), Vec::<String>::new(), "nothing is redirected");
    let text = EXAMPLE.replace("rate = \"344 Mb/s\"", "rate = \"9 Gb/s\"").replace("[[host]]", "[[host]]#");
    let (_, warnings) = CheckedHybrid::parse("x", &text, Some(1)).unwrap();
    assert!(
        warnings.problems()[0].message().contains("send up to 19 Gb/s through 10 Gb/s"),
        "{}",
        warnings.render(false)
    );
}

#[test]
fn the_example_is_printed_in_every_form() {
    let (hybrid, _) = CheckedHybrid::parse("hybrid.toml", EXAMPLE, None).unwrap();
    let rules = flows(&hybrid);
    for line in [
        "delete cookie=0xfa41/-1,table=0",
        "add cookie=0xfa41,table=0,priority=1005,in_port=25,dl_dst=02:00:00:00:01:01,actions=output:24",
        "add cookie=0xfa41,table=0,priority=1004,in_port=26,actions=drop",
        "add cookie=0xfa41,table=0,priority=1004,in_port=24,dl_dst=02:00:00:00:01:02,actions=drop",
        "add cookie=0xfa41,table=0,priority=1003,tcp6,dl_dst=02:00:00:00:01:03,tp_src=0x1388/0xfff8,actions=output:25",
        "add cookie=0xfa41,table=0,priority=1001,dl_dst=02:00:00:00:00:01,actions=output:1",
        "add cookie=0xfa41,table=0,priority=1,actions=NORMAL",
    ] {
        assert!(rules.lines().any(|l| l == line), "{line}\n{rules}");
    }
    let script = commands(&hybrid);
    assert!(script.contains(&rules) && script.contains("mod-port 'br0' 25 no-flood"), "{script}");
    assert!(bypass(&hybrid).contains("dev 'pep1' ingress protocol all pref 1"), "{}", bypass(&hybrid));
    assert_eq!(switch_config(&hybrid).matches("reflect = true\nbypass = true\n").count(), 2);
    assert!(removal(&hybrid).contains("del-flows 'br0' cookie=0xfa41/-1,table=0"));
    let listed: serde_json::Value = serde_json::from_str(&json(&hybrid)).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), hybrid.rules().len());
    assert_eq!(listed[0]["match"], serde_json::json!({"in_port": 25, "eth_dst": "02:00:00:00:01:01"}));
    let request: serde_json::Value = serde_json::from_str(&ovsdb(&hybrid)).unwrap();
    assert_eq!(request[2]["row"]["ofport_request"], 1);
    assert!(
        switch_config(&hybrid).contains("[[ring]]\nname = \"collector-3\"\nport = \"pep0\"\n"),
        "{}",
        switch_config(&hybrid)
    );
}

#[test]
fn the_configuration_for_our_side_is_sound_and_sends_everything_back() {
    let (hybrid, _) = CheckedHybrid::parse("hybrid.toml", EXAMPLE, None).unwrap();
    let loaded = fanin_switch::config::load_text("switch.toml", &switch_config(&hybrid)).unwrap();
    assert!(loaded.warnings.problems().is_empty(), "{}", loaded.warnings.render(false));
    let mut config = loaded.config;
    config.switch.memory = Bytes::new(8 << 20);
    config.ring.iter_mut().for_each(|ring| ring.bytes = Some(Bytes::new(1 << 20)));
    config.port.push(PortSpec::new("other"));
    let mut pools = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 1).unwrap();
    let ports = MemoryPorts::new(pools.remove(0), 3);
    let mut switch = Switch::new(config, ports).unwrap();
    let collector = Mac([2, 0, 0, 0, 1, 1]);
    let frame = |to: Mac, from: Mac| [&to.0[..], &from.0[..], &[0x88, 0xb5], &[7; 50]].concat();
    // Every frame returns by its own port: to a known or unknown station, to one or to all, from a station of another
    // port.
    let sent = [
        (1, frame(collector, station(1))),
        (0, frame(collector, station(1))),
        (0, frame(Mac::BROADCAST, station(1))),
        (0, frame(station(9), collector)),
    ];
    for (port, frame) in &sent {
        assert!(switch.driver_mut().inject(*port, frame));
    }
    // A flood of another port does not reach this one.
    assert!(switch.driver_mut().inject(2, &frame(Mac::BROADCAST, station(5))));
    for millis in 0..10 {
        switch.poll(Instant::START + Duration::from_millis(millis), true);
    }
    for port in [0, 1] {
        let mine = sent.iter().filter(|(to, _)| *to == port);
        let mut expected: Vec<_> = mine.map(|(_, frame)| frame.clone()).collect();
        let mut received: Vec<_> = std::iter::from_fn(|| switch.driver_mut().take(port)).collect();
        expected.sort();
        received.sort();
        assert_eq!(received, expected, "port {port}");
    }
    assert_eq!(switch.driver_mut().take(2), None);
    let snapshot = switch.snapshot(false);
    let ring = snapshot.rings.iter().find(|ring| ring.name == "collector-1").unwrap();
    assert_eq!((ring.port.as_str(), ring.queue.departed.frames), ("pep1", 1));
}
