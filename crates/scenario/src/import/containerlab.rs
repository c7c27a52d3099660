//! Topologies of containerlab (<https://containerlab.dev/manual/topo-def-file/>).

use std::collections::BTreeSet;

use serde_json::Value;

use super::draft::Draft;
use super::error::ImportError;
use super::graph::{FileLink, FileNetwork};
use super::options::{ImportOptions, named};

/// Kinds of nodes that are hosts; all others forward frames.
const HOST_KINDS: [&str; 3] = ["linux", "host", "ext-container"];

pub(super) fn read(tree: &Value, options: &ImportOptions, draft: &mut Draft) -> Result<(), ImportError> {
    draft.is_from("containerlab", tree.get("name").and_then(Value::as_str));
    let topology = &tree["topology"];
    let nodes = topology["nodes"].as_object();
    let nodes = nodes.ok_or_else(|| ImportError::Key("topology.nodes".to_owned(), "nodes by their names"))?;
    let names: Vec<&str> = nodes.keys().map(String::as_str).collect();
    let declared = named(&options.switches, &names)?;
    let mut network = FileNetwork::default();
    let mut other_keys: BTreeSet<&str> = BTreeSet::new();
    for (name, node) in nodes {
        let kind = kind(topology, node).ok_or_else(|| {
            ImportError::Key(
                format!("topology.nodes.{name}.kind"),
                "a kind here, in its group, or in `defaults`",
            )
        })?;
        let is_host = HOST_KINDS.contains(&kind) && !declared.contains(&name.as_str());
        if is_host { &mut network.hosts } else { &mut network.switches }.push(name.clone());
        let keys = node.as_object().into_iter().flat_map(|node| node.keys());
        other_keys.extend(keys.map(String::as_str).filter(|key| !["kind", "group"].contains(key)));
    }
    draft.remark("Nodes of kind linux, host and ext-container are hosts, unless --switch names them; all others are switches.");
    if !other_keys.is_empty() {
        let keys: Vec<&str> = other_keys.into_iter().collect();
        draft.refuse(
            format!("topology.nodes.*: {}", keys.join(", ")),
            "settings of containers, not of the network",
        );
    }
    let links = topology.get("links").and_then(Value::as_array);
    for (number, link) in links.into_iter().flatten().enumerate() {
        if let Some(ends) = ends(link, number, &names, draft)? {
            network.links.push(FileLink { ends, rate: None, delay: None, loss: None });
        }
    }
    for (key, why) in [
        ("mgmt", "the management network carries no traffic of the system"),
        ("prefix", "names of containers"),
    ] {
        if tree.get(key).is_some() {
            draft.refuse(key, why);
        }
    }
    network.fit(options, draft)
}

/// Returns the kind of a node: its own, its group's, or the default; `None` without any.
fn kind<'a>(topology: &'a Value, node: &'a Value) -> Option<&'a str> {
    let of = |value: &'a Value| value.get("kind").and_then(Value::as_str);
    let group = || of(topology.get("groups")?.get(node.get("group")?.as_str()?)?);
    of(node).or_else(group).or_else(|| of(topology.get("defaults")?))
}

/// Returns the two nodes of a link; `None` for a link that leaves the topology.
fn ends(
    link: &Value,
    number: usize,
    nodes: &[&str],
    draft: &mut Draft,
) -> Result<Option<[String; 2]>, ImportError> {
    let place = format!("topology.links[{number}]");
    for key in link.as_object().into_iter().flat_map(|link| link.keys()) {
        match key.as_str() {
            "endpoints" | "endpoint" | "type" => {}
            "mtu" => draft.refuse("topology.links.*.mtu", "set transport.mtu, which is that of all hosts"),
            other => {
                draft.refuse(format!("topology.links.*.{other}"), "nothing of a link that a scenario has");
            }
        }
    }
    let link_type = link.get("type").and_then(Value::as_str).unwrap_or("veth");
    if link_type != "veth" {
        draft.refuse(place, format!("a link of type {link_type} leaves the topology"));
        return Ok(None);
    }
    let needed =
        || ImportError::Key(format!("{place}.endpoints"), "two ends, such as [\"h1:eth1\", \"leaf1:e1-1\"]");
    let ends =
        link.get("endpoints").and_then(Value::as_array).filter(|ends| ends.len() == 2).ok_or_else(needed)?;
    let mut names = Vec::new();
    for end in ends {
        // The short form is `node:interface`, the long one a table.
        let name = match end.as_str() {
            Some(text) => text.split_once(':').map(|(node, _)| node),
            None => end.get("node").and_then(Value::as_str),
        };
        names.push(name.ok_or_else(needed)?);
    }
    if let Some(outside) = names.iter().find(|name| !nodes.contains(*name)) {
        if ["host", "mgmt-net", "macvlan", "dummy"].contains(outside) {
            draft.refuse(place, format!("a link to `{outside}` leaves the topology"));
            return Ok(None);
        }
        let nodes = nodes.iter().map(|&node| node.to_owned()).collect();
        return Err(ImportError::UnknownNode((*outside).to_owned(), nodes));
    }
    Ok(Some([names[0].to_owned(), names[1].to_owned()]))
}
