//! The network of the picture: groups of nodes, and the links between the groups.

use std::collections::{BTreeMap, BTreeSet};

use fanin_network::NodeIndex;
use fanin_report::{LinkGroup, NetworkGroups, NodeGroup};

use crate::picture::Finished;

/// Most switches that are drawn one by one; more switches are grouped by kind.
const SWITCHES_MAX: usize = 8;

impl Finished<'_> {
    /// Groups the nodes; the host behind the worst output is a group of its own.
    pub(crate) fn topology(&self) -> NetworkGroups {
        let network = self.network;
        let switches = (0..network.nodes.len() as NodeIndex).filter(|&node| !network.is_host(node)).count();
        let apart =
            self.worst().first().map(|&port| network.destination(port)).filter(|&node| network.is_host(node));
        let mut neighbours: Vec<BTreeSet<NodeIndex>> = vec![BTreeSet::new(); network.nodes.len()];
        for port in network.ports() {
            neighbours[network.source(port) as usize].insert(network.destination(port));
        }
        // Common properties of a group's nodes: the kind, and their switches if those are few.
        let key = |node: NodeIndex| {
            let alone = (switches <= SWITCHES_MAX && !network.is_host(node)) || apart == Some(node);
            let joined = match switches <= SWITCHES_MAX && network.is_host(node) {
                true => neighbours[node as usize].clone(),
                false => BTreeSet::new(),
            };
            (network.kind_name(node), joined, alone.then_some(node))
        };
        let mut members: BTreeMap<_, Vec<NodeIndex>> = BTreeMap::new();
        for node in 0..network.nodes.len() as NodeIndex {
            members.entry(key(node)).or_default().push(node);
        }
        let mut group_of = vec![0; network.nodes.len()];
        for (group, nodes) in members.values().enumerate() {
            nodes.iter().for_each(|&node| group_of[node as usize] = group);
        }
        let columns = self.columns(&group_of, members.len());
        let groups = members.values().zip(columns).map(|(nodes, column)| NodeGroup {
            name: if nodes.len() == 1 { self.name(nodes[0]) } else { network.kind_name(nodes[0]).to_owned() },
            count: nodes.len() as u64,
            is_switch: !network.is_host(nodes[0]),
            column,
        });
        let shares = self.utilisation();
        let mut links: BTreeMap<(usize, usize), LinkGroup> = BTreeMap::new();
        for port in network.ports() {
            let [from, to] =
                [network.source(port), network.destination(port)].map(|node| group_of[node as usize]);
            let link =
                links.entry((from, to)).or_insert_with(|| LinkGroup { from, to, ..LinkGroup::default() });
            let utilisation = shares.get(port as usize).copied().unwrap_or(0.0);
            link.count += 1;
            link.drops += self.drops(port);
            link.rate_bps = network.link(port).rate.get() as f64;
            if utilisation > link.utilisation || link.hottest.is_empty() {
                (link.utilisation, link.hottest) = (utilisation, network.port_name(port));
            }
        }
        NetworkGroups { groups: groups.collect(), links: links.into_values().collect() }
    }

    /// Returns the column of each group: the group's distance from the sources. Groups that only receive are in the last
    /// column.
    fn columns(&self, group_of: &[usize], groups: usize) -> Vec<u64> {
        let group = |node: NodeIndex| group_of[node as usize];
        let mut column = vec![None; groups];
        let sources: BTreeSet<usize> = self.roles.readouts.iter().map(|&node| group(node)).collect();
        let mut present: Vec<usize> = sources.iter().copied().collect();
        present.iter().for_each(|&group| column[group] = Some(0));
        let mut distance = 0;
        while !present.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for port in
                self.network.ports().filter(|&port| present.contains(&group(self.network.source(port))))
            {
                let node = self.network.destination(port);
                if column[group(node)].is_none() {
                    column[group(node)] = Some(distance);
                    if !self.network.is_host(node) {
                        next.push(group(node));
                    }
                }
            }
            present = next;
        }
        let last = column.iter().flatten().copied().max().unwrap_or(0);
        for &node in &self.roles.collectors {
            if !sources.contains(&group(node)) {
                column[group(node)] = Some(last);
            }
        }
        if let Some(node) = self.roles.supervisor {
            column[group(node)] = Some(0);
        }
        column.into_iter().map(|column| column.unwrap_or(last)).collect()
    }
}
