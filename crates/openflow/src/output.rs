//! Writes rules in the formats of other tools: `ovs-ofctl`, OVSDB, Ryu, shell.

use std::fmt::{self, Write};

use fanin_units::Bytes;
use serde_json::{Map, Value, json};

use crate::check::CheckedHybrid;
use crate::rules::{Action, FailoverGroup, IpVersion, Match, PortMask, Rule, RulePriority, groups};
use fanin_switch::MacPrefix;

/// Packet memory of the software switch that its drivers hold.
const DRIVER_BYTES: u64 = 32 << 20;
/// Command that sets a port flag against floods, by OpenFlow 1.0; later versions have no such flag.
const MOD_PORT: &str = "ovs-ofctl --timeout=10 -O OpenFlow10 mod-port";

/// The rules as a file for `ovs-ofctl add-flows`. It first deletes the rules with our cookie, so that a changed
/// description replaces an older one; with `--bundle` both happen in one transaction. With groups, it is a file for
/// `ovs-ofctl bundle`.
pub fn flows(hybrid: &CheckedHybrid) -> String {
    let openflow = &hybrid.spec().openflow;
    let mut out = String::new();
    for FailoverGroup { number, host_port, direct } in groups(hybrid) {
        let _ = writeln!(
            out,
            "group add_or_mod group_id={number},type=fast_failover,bucket=watch_port:{host_port},actions=output:{host_port},\
             bucket=watch_port:{direct},actions=output:{direct}"
        );
    }
    let flow = if openflow.failover { "flow " } else { "" };
    let _ = writeln!(out, "{flow}delete cookie={:#x}/-1,table={}", openflow.cookie, openflow.table);
    for rule in hybrid.rules() {
        let _ = writeln!(
            out,
            "{flow}add cookie={:#x},table={},priority={}{},actions={}",
            openflow.cookie,
            openflow.table,
            priority(hybrid, rule),
            rule.matches,
            rule.action
        );
    }
    out
}

/// Returns a shell script that numbers the ports by OVSDB and checks the numbers. It disables flooding to the host
/// ports, and replaces the rules in one transaction.
pub fn commands(hybrid: &CheckedHybrid) -> String {
    let openflow = &hybrid.spec().openflow;
    let bridge = &openflow.bridge;
    let mut out = String::from(
        "#!/bin/sh\n# Written by fanin switch openflow; run it again after every change.\nset -eu\n",
    );
    if is_local(bridge) {
        out.push_str("\n# Numbers of the ports (OVSDB).\n");
        for (name, number) in ports(hybrid) {
            let _ = writeln!(
                out,
                "ovs-vsctl --timeout=10 --may-exist add-port '{bridge}' '{name}' -- set Interface '{name}' ofport_request={number}"
            );
        }
        for (name, number) in ports(hybrid) {
            let _ = writeln!(
                out,
                "number=$(ovs-vsctl --timeout=10 get Interface '{name}' ofport) && [ \"$number\" = {number} ] || \
                 {{ echo \"port {name} has the OpenFlow number ${{number:-unknown}}, not {number}\" >&2; exit 1; }}"
            );
        }
    }
    let ofctl = format!("ovs-ofctl --timeout=10 -O {}", openflow.version.name());
    if !hybrid.host_ports().is_empty() {
        out.push_str("\n# Do not flood to the software switch.\n");
        for port in hybrid.host_ports() {
            let _ = writeln!(
                out,
                "{MOD_PORT} '{bridge}' {0} no-flood || \
                 echo \"port {0} receives floods too; they are dropped when they come back\" >&2",
                port.number
            );
        }
    }
    let _ = write!(
        out,
        "\n# The rules.\n{ofctl} {} '{bridge}' - <<'FLOWS'\n{}FLOWS\n",
        if openflow.failover { "bundle" } else { "--bundle add-flows" },
        flows(hybrid)
    );
    out
}

/// A shell script that reverts [`commands`]; the ports keep their numbers.
pub fn removal(hybrid: &CheckedHybrid) -> String {
    let openflow = &hybrid.spec().openflow;
    let bridge = &openflow.bridge;
    let ofctl = format!("ovs-ofctl --timeout=10 -O {}", openflow.version.name());
    let mut out = String::from("#!/bin/sh\n# Written by fanin switch openflow --remove.\nset -eu\n");
    let _ = writeln!(
        out,
        "{ofctl} del-flows '{bridge}' cookie={:#x}/-1,table={}",
        openflow.cookie, openflow.table
    );
    for group in groups(hybrid) {
        let _ = writeln!(out, "{ofctl} del-groups '{bridge}' group_id={}", group.number);
    }
    for port in hybrid.host_ports() {
        let _ = writeln!(out, "{MOD_PORT} '{bridge}' {} flood || true", port.number);
    }
    out
}

/// The request that numbers the ports, for `ovsdb-client transact` (RFC 7047 §4.1.3). The transaction fails if a port
/// does not exist.
pub fn ovsdb(hybrid: &CheckedHybrid) -> String {
    let mut request = vec![json!("Open_vSwitch")];
    for (name, number) in ports(hybrid) {
        let named = json!([["name", "==", name]]);
        request.push(json!({
            "op": "wait", "table": "Interface", "timeout": 0, "where": named, "columns": ["name"], "until": "==",
            "rows": [{"name": name}],
        }));
        request.push(
            json!({"op": "update", "table": "Interface", "where": named, "row": {"ofport_request": number}}),
        );
    }
    let mut text = Value::Array(request).to_string();
    text.push('\n');
    text
}

/// The rules as a list of JSON objects with the names of OpenFlow's extensible match (1.3 §A.2.3.7). `ofctl_rest` of
/// Ryu and os-ken accepts them one by one.
pub fn json(hybrid: &CheckedHybrid) -> String {
    let openflow = &hybrid.spec().openflow;
    let rules: Vec<Value> = hybrid
        .rules()
        .iter()
        .map(|rule| {
            let actions: Vec<Value> = match &rule.action {
                Action::Drop => Vec::new(),
                Action::Failover(group) => vec![json!({"type": "OUTPUT", "port": group.host_port})],
                Action::Output(ports) => {
                    ports.iter().map(|port| json!({"type": "OUTPUT", "port": port})).collect()
                }
                Action::Normal => vec![json!({"type": "OUTPUT", "port": "NORMAL"})],
            };
            json!({
                "dpid": openflow.datapath,
                "cookie": openflow.cookie,
                "table_id": openflow.table,
                "priority": priority(hybrid, rule),
                "match": oxm(&rule.matches),
                "actions": actions,
            })
        })
        .collect();
    format!("{:#}\n", Value::Array(rules))
}

/// The configuration of the software switch behind the host ports: a ring for each collector, and every frame leaves
/// by the port that received it.
pub fn switch_config(hybrid: &CheckedHybrid) -> String {
    let spec = hybrid.spec();
    let redirected =
        spec.collector.iter().enumerate().filter(|(index, _)| hybrid.host_port_of(*index).is_some());
    let rings: u64 = redirected.map(|(_, c)| c.bytes.unwrap_or(spec.ring.bytes).get()).sum();
    // A full frame takes a chunk of 2 KiB.
    let memory = (rings / 1514 * 2048 + DRIVER_BYTES).next_multiple_of(1 << 20);
    let mut out = format!(
        "# Printed by fanin switch openflow --as switch: the other end of the host ports.\n\n\
         [switch]\nname = \"hybrid\"\nmemory = \"{}\"\n",
        Bytes::new(memory)
    );
    for port in hybrid.host_ports() {
        let interface = port.interface.as_ref().unwrap_or(&port.name);
        let _ = write!(
            out,
            "\n[[port]]\nname = {}\ninterface = {}\nreflect = true\n",
            quoted(&port.name),
            quoted(interface)
        );
        if spec.openflow.bypass {
            out.push_str("bypass = true\n");
        }
        if let Some(rate) = port.rate {
            let _ = writeln!(out, "rate = \"{rate}\"");
        }
    }
    for (index, collector) in spec.collector.iter().enumerate() {
        let Some(port) = hybrid.host_port_of(index) else { continue };
        let name = quoted(&collector.name);
        let bytes = collector.bytes.unwrap_or(spec.ring.bytes);
        let _ =
            write!(out, "\n[[ring]]\nname = {name}\nport = {}\nbytes = \"{bytes}\"\n", quoted(&port.name));
        if let Some(rate) = hybrid.rate_of(collector) {
            let _ = writeln!(out, "rate = \"{rate}\"");
        }
        if let Some(burst) = collector.burst.or(spec.ring.burst) {
            let _ = writeln!(out, "burst = \"{burst}\"");
        }
        let _ = write!(out, "\n[[rule]]\nname = {name}\nring = {name}\n");
        if let Some(mac) = collector.mac {
            let _ = writeln!(out, "destination_mac = \"{mac}\"");
        }
        if let Some(ip) = collector.ip {
            let _ = writeln!(out, "destination_ip = \"{ip}\"");
        }
    }
    out
}

/// A shell script for the host of the software switch: collectors stay reachable while the switch is down.
///
/// While the software switch runs, its XDP program takes each frame before these filters. The program ends with the
/// process. Until the process runs again, the filters send each frame back by its input port, without a deep queue.
pub fn bypass(hybrid: &CheckedHybrid) -> String {
    let mut out = String::from(
        "#!/bin/sh\n# Printed by fanin switch openflow --as bypass: for the machine of the software switch; can be run again.\n\
         # While the switch does not run, the kernel sends frames back by the port that they came from.\n\
         # To undo it: tc qdisc delete dev INTERFACE clsact\nset -eu\n",
    );
    for port in hybrid.host_ports() {
        let interface = port.interface.as_ref().unwrap_or(&port.name);
        let _ = write!(
            out,
            "\ntc qdisc delete dev '{interface}' clsact 2>/dev/null || true\n\
             tc qdisc add dev '{interface}' clsact\n\
             tc filter add dev '{interface}' ingress protocol all pref 1 u32 match u32 0 0 \
             action mirred egress redirect dev '{interface}'\n"
        );
    }
    out
}

/// Quotes a text for TOML, which accepts JSON's escapes.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns true if the bridge is local: the address of a remote switch has colons.
fn is_local(bridge: &str) -> bool {
    !bridge.contains([':', '/'])
}

fn ports(hybrid: &CheckedHybrid) -> impl Iterator<Item = (&str, u32)> {
    let ports = hybrid.spec().port.iter().map(|port| (port.name.as_str(), port.number));
    ports.chain(hybrid.host_ports().iter().map(|port| (port.name.as_str(), port.number)))
}

fn priority(hybrid: &CheckedHybrid, rule: &Rule) -> u16 {
    match rule.stage {
        // The rule that matches every frame is above the switch's own last rule, and below all others.
        RulePriority::Others => 1,
        stage => hybrid.spec().openflow.priority + stage as u16,
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => out.write_str("drop"),
            Self::Normal => out.write_str("NORMAL"),
            Self::Failover(group) => write!(out, "group:{}", group.number),
            Self::Output(ports) if ports.is_empty() => out.write_str("drop"),
            Self::Output(ports) => {
                for (index, port) in ports.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(out, "{comma}output:{port}")?;
                }
                Ok(())
            }
        }
    }
}

/// Writes fields in the syntax of `ovs-ofctl`, a comma before each (ovs-fields(7)).
impl fmt::Display for Match {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(port) = self.input {
            write!(out, ",in_port={port}")?;
        }
        let six = self.ip == Some(IpVersion::V6);
        match (self.ip, self.protocol.map(|protocol| protocol.0)) {
            (None, _) => {}
            (Some(_), Some(6)) => out.write_str(if six { ",tcp6" } else { ",tcp" })?,
            (Some(_), Some(17)) => out.write_str(if six { ",udp6" } else { ",udp" })?,
            (Some(_), protocol) => {
                out.write_str(if six { ",ipv6" } else { ",ip" })?;
                if let Some(number) = protocol {
                    write!(out, ",nw_proto={number}")?;
                }
            }
        }
        if let Some(vlan) = self.vlan {
            write!(out, ",dl_vlan={}", vlan.get())?;
        }
        for (name, mac) in [("dl_src", self.source_mac), ("dl_dst", self.destination_mac)] {
            if let Some(mac) = mac {
                write!(out, ",{name}={}", masked_mac(mac))?;
            }
        }
        let names = if six { ["ipv6_src", "ipv6_dst"] } else { ["nw_src", "nw_dst"] };
        for (name, ip) in names.into_iter().zip([self.source_ip, self.destination_ip]) {
            if let Some(ip) = ip {
                write!(out, ",{name}={ip}")?;
            }
        }
        for (name, port) in [("tp_src", self.source_port), ("tp_dst", self.destination_port)] {
            match port {
                None => {}
                Some(PortMask { value, mask: u16::MAX }) => write!(out, ",{name}={value}")?,
                Some(PortMask { value, mask }) => write!(out, ",{name}={value:#x}/{mask:#x}")?,
            }
        }
        Ok(())
    }
}

fn masked_mac(prefix: MacPrefix) -> String {
    match prefix.bits {
        48 => prefix.address.to_string(),
        _ => format!("{}/{}", prefix.address, fanin_switch::Mac::from_u64(prefix.mask())),
    }
}

fn oxm(matches: &Match) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    if let Some(port) = matches.input {
        put("in_port", port.into());
    }
    for (name, mac) in [("eth_src", matches.source_mac), ("eth_dst", matches.destination_mac)] {
        if let Some(mac) = mac {
            put(name, masked_mac(mac).into());
        }
    }
    if let Some(vlan) = matches.vlan {
        put("vlan_vid", vlan.get().into());
    }
    match matches.ip {
        None => {}
        Some(IpVersion::V4) => put("eth_type", 0x0800.into()),
        Some(IpVersion::V6) => put("eth_type", 0x86dd.into()),
    }
    if let Some(protocol) = matches.protocol {
        put("ip_proto", protocol.0.into());
    }
    let six = matches.ip == Some(IpVersion::V6);
    let names = if six { ["ipv6_src", "ipv6_dst"] } else { ["ipv4_src", "ipv4_dst"] };
    for (name, ip) in names.into_iter().zip([matches.source_ip, matches.destination_ip]) {
        if let Some(ip) = ip {
            put(name, ip.to_string().into());
        }
    }
    let is_udp = matches.protocol.is_some_and(|protocol| protocol.0 == 17);
    let names = if is_udp { ["udp_src", "udp_dst"] } else { ["tcp_src", "tcp_dst"] };
    for (name, port) in names.into_iter().zip([matches.source_port, matches.destination_port]) {
        match port {
            None => {}
            Some(PortMask { value, mask: u16::MAX }) => put(name, value.into()),
            Some(PortMask { value, mask }) => put(name, format!("{value:#x}/{mask:#x}").into()),
        }
    }
    Value::Object(fields)
}
