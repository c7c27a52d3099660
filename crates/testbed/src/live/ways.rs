//! Which way frames take where there are several: the shortest, and among equals the one that the simulator takes with
//! `network.flow_distribution = "per-destination"` (`fanin-sim`, `Paths` and `Detours`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::shape::{End, Shape};

/// The links from one host to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Places in [`Shape::wires`], in order; a link there and back stands twice.
    pub wires: Vec<usize>,
    /// Which of the links of the host that sends is the first.
    pub out: usize,
    /// Which of the links of the host that receives is the last.
    pub into: usize,
    /// Whether it goes through the switch beside the core of a hybrid.
    pub is_redirected: bool,
}

/// The ways of a whole network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ways {
    /// By the hosts that send and receive.
    pub paths: BTreeMap<(usize, usize), Path>,
    /// By switch and receiving host: the link that its frames leave by.
    pub next: BTreeMap<(usize, usize), usize>,
    /// Whether there was a choice anywhere: then a hash of flows would have spread them otherwise.
    pub has_choice: bool,
}

impl Ways {
    /// The ways between all hosts that talk; through the software switch of a hybrid where `redirects` names them.
    pub fn of(shape: &Shape, redirects: impl Fn(usize, usize) -> bool) -> Self {
        let mut ways = Self::default();
        for to in 0..shape.hosts.len() {
            let near = distances(shape, to);
            // Those who send most come first: readouts to collectors. Where a way is taken, later ones follow it.
            let mut from = shape.peers_of(to);
            from.sort_by_key(|&from| !shape.hosts[from].part.is_source());
            for from in from {
                let mut path = ways.walk(shape, &near, from, to);
                path.is_redirected = shape.software.is_some() && redirects(from, to);
                if path.is_redirected {
                    detour(shape, &mut path.wires, to);
                }
                ways.paths.insert((from, to), path);
            }
        }
        ways
    }

    fn walk(&mut self, shape: &Shape, near: &[Option<usize>], from: usize, to: usize) -> Path {
        let mut number = shape.number_of(to);
        let mut has_choice = false;
        // As the digits of a number: the next choice does not repeat this one.
        let mut choose = |choices: &[usize]| {
            let count = choices.len().max(1);
            has_choice |= count > 1;
            let digit = number % count;
            if count > 1 {
                number /= count;
            }
            choices[digit]
        };
        let host = &shape.hosts[from];
        let nearest = host.links.iter().filter_map(|&wire| near[shape.wires[wire].b]).min();
        let first: Vec<usize> =
            (0..host.links.len()).filter(|&link| near[shape.wires[host.links[link]].b] == nearest).collect();
        let out = choose(&first);
        let mut wires = vec![host.links[out]];
        let mut bridge = shape.wires[host.links[out]].b;
        loop {
            let left = near[bridge];
            let closer = |&(_, end): &(usize, End)| match end {
                End::Host(host) => host == to,
                End::Bridge(next) => left.is_some_and(|left| left > 0 && near[next] == Some(left - 1)),
            };
            let choices: Vec<usize> =
                shape.ports_of(bridge).into_iter().filter(closer).map(|(wire, _)| wire).collect();
            let chosen = choose(&choices);
            let wire = *self.next.entry((bridge, to)).or_insert(chosen);
            wires.push(wire);
            match shape.other_end(bridge, wire) {
                End::Bridge(next) => bridge = next,
                End::Host(_) => {
                    // What matters is how event data are spread.
                    self.has_choice |= has_choice && host.part.is_source();
                    let into = shape.hosts[to].links.iter().position(|&link| link == wire);
                    return Path { wires, out, into: into.unwrap_or_default(), is_redirected: false };
                }
            }
        }
    }

    /// What each port of a switch is told about where frames leave: by table, the link to each host; and the table of each
    /// port. Ports that redirect have tables of their own.
    pub fn tables(
        &self,
        shape: &Shape,
        bridge: usize,
    ) -> (Vec<BTreeMap<usize, usize>>, BTreeMap<usize, usize>) {
        let plain: BTreeMap<usize, usize> = self
            .next
            .iter()
            .filter(|((at, _), _)| *at == bridge)
            .map(|((_, to), wire)| (*to, *wire))
            .collect();
        let mut tables = vec![plain.clone()];
        let mut table_of: BTreeMap<usize, usize> =
            shape.ports_of(bridge).into_iter().map(|(wire, _)| (wire, 0)).collect();
        if shape.hardware() != Some(bridge) {
            return (tables, table_of);
        }
        let mut redirected: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for ((_, to), path) in self.paths.iter().filter(|(_, path)| path.is_redirected) {
            let input = path.wires.windows(2).find(|pair| shape.is_host_port(pair[1]));
            redirected.entry(input.map_or(0, |pair| pair[0])).or_default().insert(*to);
        }
        for (input, to) in redirected {
            let mut table = plain.clone();
            for to in to {
                table.insert(to, shape.host_port_of(to));
            }
            let place = tables.iter().position(|other| *other == table).unwrap_or_else(|| {
                tables.push(table);
                tables.len() - 1
            });
            table_of.insert(input, place);
        }
        (tables, table_of)
    }

    /// Pairs of hosts whose frames would be redirected or not by the port that they share.
    pub fn torn(&self, shape: &Shape) -> Option<(usize, usize)> {
        let hardware = shape.hardware()?;
        let (_, table_of) = self.tables(shape, hardware);
        let passes = |path: &Path| {
            let at = |&wire: &usize| table_of.get(&wire).copied().unwrap_or_default() > 0;
            path.wires.iter().any(at)
        };
        let redirected: BTreeSet<usize> =
            self.paths.iter().filter(|(_, path)| path.is_redirected).map(|((_, to), _)| *to).collect();
        let other = self
            .paths
            .iter()
            .find(|((_, to), path)| !path.is_redirected && redirected.contains(to) && passes(path));
        other.map(|(&pair, _)| pair)
    }
}

/// To the software switch and back, before the last switch of the core is left.
fn detour(shape: &Shape, wires: &mut Vec<usize>, to: usize) {
    let Some(hardware) = shape.hardware() else { return };
    let touches =
        |wire: usize| shape.wires[wire].b == hardware || shape.wires[wire].a == End::Bridge(hardware);
    if let Some(place) = wires.iter().position(|&wire| touches(wire)) {
        let host_port = shape.host_port_of(to);
        wires.splice(place + 1..place + 1, [host_port, host_port]);
    }
}

/// Switches between each switch and a host, by switch; `None` where no way leads there.
fn distances(shape: &Shape, to: usize) -> Vec<Option<usize>> {
    let mut near = vec![None; shape.bridges.len()];
    let mut open = VecDeque::new();
    for &wire in &shape.hosts[to].links {
        let bridge = shape.wires[wire].b;
        if near[bridge].is_none() {
            near[bridge] = Some(0);
            open.push_back(bridge);
        }
    }
    while let Some(bridge) = open.pop_front() {
        for (_, end) in shape.ports_of(bridge) {
            if let End::Bridge(next) = end
                && near[next].is_none()
            {
                near[next] = near[bridge].map(|left| left + 1);
                open.push_back(next);
            }
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Part;
    use fanin_node::config::Role;

    fn shape(preset: &str, sets: &[&str]) -> Shape {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        Shape::of(&fanin_scenario::load(preset, &sets).unwrap().scenario).unwrap()
    }

    /// The switches that frames pass from a readout to a collector.
    fn through(shape: &Shape, readout: u16, collector: u16) -> Vec<String> {
        let place =
            |role, index| shape.hosts.iter().position(|host| host.part == Part::Role(role, index)).unwrap();
        let pair = (place(Role::Readout, readout), place(Role::Collector, collector));
        let mut bridge = shape.wires[shape.ways.paths[&pair].wires[0]].b;
        let mut names = vec![shape.bridges[bridge].name.clone()];
        for &wire in &shape.ways.paths[&pair].wires[1..] {
            if let End::Bridge(next) = shape.other_end(bridge, wire) {
                bridge = next;
                names.push(shape.bridges[bridge].name.clone());
            }
        }
        names
    }

    /// Follows every pair's frames as the switches' tables send them; nothing else is known to a switch.
    fn arrives(shape: &Shape) {
        for (&(from, to), path) in &shape.ways.paths {
            let mut wire = path.wires[0];
            let mut bridge = shape.wires[wire].b;
            for step in 0.. {
                assert!(step < 12, "{} to {} goes round", shape.hosts[from].name, shape.hosts[to].name);
                if shape.software == Some(bridge) {
                    bridge = shape.hardware().unwrap();
                } else {
                    let (tables, table_of) = shape.ways.tables(shape, bridge);
                    wire = tables[table_of[&wire]][&to];
                    match shape.other_end(bridge, wire) {
                        End::Bridge(next) => bridge = next,
                        End::Host(host) => {
                            assert_eq!((host, wire), (to, *path.wires.last().unwrap()));
                            break;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_thesis_network_has_two_cores_and_one_way() {
        let shape = shape("thesis-a-1000hz", &["readout.hosts=32", "collectors.hosts_per_rack=5"]);
        // Groups of 16, half of each behind each core; the supervisor has a link to both.
        assert_eq!(through(&shape, 0, 2), ["core:0", "tor:0"]);
        assert_eq!(through(&shape, 8, 2), ["core:1", "tor:0"]);
        assert_eq!(through(&shape, 16, 4), ["core:0", "tor:0"]);
        let supervisor = shape.host_of(Part::Role(Role::Supervisor, 0)).unwrap();
        assert_eq!(supervisor.links.len(), 2);
        arrives(&shape);
    }

    #[test]
    fn uplinks_and_planes_are_dealt_out_as_the_simulator_does_it() {
        let two = shape(
            "thesis-a-1000hz",
            &[
                "readout.hosts=4",
                "collectors.hosts_per_rack=6",
                "network.cores=1",
                "network.uplinks_per_core=2",
            ],
        );
        arrives(&two);
        assert!(two.ways.has_choice);
        let core = two.bridges.iter().position(|bridge| bridge.name == "core:0").unwrap();
        let used: BTreeMap<usize, usize> = (0..6).fold(BTreeMap::new(), |mut used, collector| {
            *used.entry(two.ways.next[&(core, collector)]).or_default() += 1;
            used
        });
        assert_eq!(used.into_values().collect::<Vec<_>>(), [3, 3]);

        let planes = shape("leaf-spine", &[]);
        arrives(&planes);
        assert_eq!((planes.bridges.len(), planes.hosts[planes.hosts.len() - 3].links.len()), (8 + 4, 2));
        // The collector's number in the simulator is 1 + 12 + 31 = 44: plane 0, spine 0; its neighbour's is 43.
        assert_eq!(through(&planes, 0, 31), ["leaf:0", "spine:0", "leaf:1", "tor:3"]);
        assert_eq!(through(&planes, 0, 30), ["leaf:2", "spine:3", "leaf:3", "tor:3"]);
        assert_eq!(through(&planes, 6, 30), ["leaf:3", "tor:3"]);
    }

    #[test]
    fn a_hybrid_redirects_answers_alone() {
        let shape = shape("multihost", &["collectors.hosts_per_rack=6", "readout.hosts=3"]);
        assert_eq!(through(&shape, 0, 2), ["core:0", "software:0", "core:0", "tor:0"]);
        arrives(&shape);
        let direct = shape.ways.paths.values().filter(|path| !path.is_redirected).count();
        assert!(direct > 0 && shape.ways.torn(&shape).is_none());
    }

    #[test]
    fn hosts_with_many_links_use_them_all() {
        let shape = shape("replay", &["readout.links_per_host=3", "collectors.hosts_per_rack=6"]);
        arrives(&shape);
        let readout = shape.hosts.iter().position(|host| host.name == "readout:5").unwrap();
        let used: BTreeSet<usize> =
            (0..6).map(|collector| shape.ways.paths[&(readout, collector)].out).collect();
        assert_eq!(used.len(), 3);
    }
}
