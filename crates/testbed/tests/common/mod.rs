//! A collector and its senders around a switch whose port to the collector is slow and shallow.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::net::Ipv4Addr;

use fanin_switch::config::{M21Spec, PortSpec};
use fanin_switch::{Config, Running};
use fanin_testbed::{Address, Lab, Link, Node, NodeName, Plan, Port, Route, Setting};
use fanin_units::{Bytes, Rate};

/// Where senders listen.
pub const PORT: u16 = 4100;

/// Whether this test can run; it says why not, and fails where privileges are required.
pub fn privileged() -> bool {
    let root = rustix::process::geteuid().is_root();
    let required = std::env::var_os("FANIN_REQUIRE_PRIVILEGES").is_some_and(|value| value == "1");
    assert!(root || !required, "FANIN_REQUIRE_PRIVILEGES=1, and this is not root");
    if !root {
        eprintln!("skipped: namespaces and BPF programs need root");
    }
    root
}

pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 83, 0, host as u8 + 1)
}

/// A collector and its senders around a switch, which is the last node.
pub fn star(senders: usize, quickack: bool) -> Lab {
    let mut plan = Plan::default();
    for host in 0..=senders {
        let mut node = Node::new(NodeName::new(&format!("sock-{host}")).unwrap());
        let off = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
        node.settings.extend(off.map(|key| Setting { key: key.into(), value: "1".into() }));
        node.settings.push(Setting { key: "net.ipv4.tcp_shrink_window".into(), value: "1".into() });
        if quickack {
            let options = ["quickack", "1"].map(str::to_owned).to_vec();
            node.routes.push(Route { to: "10.83.0.0/24".into(), device: "eth0".into(), options });
        }
        plan.nodes.push(node);
        let end = Some(Address { address: address(host), prefix: 24 });
        plan.links.push(Link {
            a: Port { address: end, ..Port::new(host, "eth0") },
            b: Port::new(senders + 1, &format!("p{host}")),
            mtu: 1500,
        });
    }
    plan.nodes.push(Node::new(NodeName::new("sock-switch").unwrap()));
    Lab::build(&plan).unwrap()
}

/// A switch whose port to the collector is slow and shallow.
pub fn switch(lab: &Lab, senders: usize, m21: Option<M21Spec>) -> Running {
    let mut config = Config {
        port: (0..=senders)
            .map(|host| PortSpec {
                interface: Some(format!("p{host}")),
                ..PortSpec::new(&format!("p{host}"))
            })
            .collect(),
        ..Config::default()
    };
    config.port[0].rate = Some(Rate::new(100_000_000));
    config.port[0].buffer = Some(Bytes::new(64_000));
    config.port[0].m21 = m21;
    lab.namespaces()[senders + 1].run(|| Running::start(&config)).unwrap().expect("the switch starts")
}
