//! Hosts, switches and links of any topology, and the scenario's topology that fits them.

use std::collections::{BTreeMap, BTreeSet};

use fanin_units::{Duration, Rate, Ratio};

use super::draft::Draft;
use super::error::{ImportError, list};
use super::options::{ImportOptions, named};

/// A network as a file describes it.
#[derive(Debug, Default)]
pub(super) struct FileNetwork {
    pub(super) hosts: Vec<String>,
    pub(super) switches: Vec<String>,
    pub(super) links: Vec<FileLink>,
}

/// A link between two nodes.
#[derive(Debug, Clone)]
pub(super) struct FileLink {
    pub(super) ends: [String; 2],
    pub(super) rate: Option<Rate>,
    pub(super) delay: Option<Duration>,
    pub(super) loss: Option<Ratio>,
}

/// Nodes and, for each pair, the number of links.
struct FileShape<'a> {
    network: &'a FileNetwork,
    collectors: BTreeSet<&'a str>,
    /// Links of each switch to hosts: their names, with repetition.
    hosts_of: BTreeMap<&'a str, Vec<&'a str>>,
    /// Links between switches, both ways.
    between: BTreeMap<(&'a str, &'a str), usize>,
}

fn shape_error<T>(place: &str, why: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError::Shape(place.to_owned(), why.into()))
}

impl FileNetwork {
    /// Finds the scenario's topology, and takes its keys.
    pub(super) fn fit(&self, options: &ImportOptions, draft: &mut Draft) -> Result<(), ImportError> {
        let linked = |name: &String| self.links.iter().any(|link| link.ends.contains(name));
        for idle in self.hosts.iter().filter(|name| !linked(name)) {
            draft.refuse(idle, "a host without links");
        }
        let hosts: Vec<&str> = self.hosts.iter().filter(|name| linked(name)).map(String::as_str).collect();
        let shape = self.shape(&hosts, options)?;
        let used: Vec<&str> =
            self.switches.iter().map(String::as_str).filter(|name| shape.is_joined(name)).collect();
        for idle in self.switches.iter().filter(|name| !used.contains(&name.as_str())) {
            draft.refuse(idle, "a switch without links");
        }
        let readouts = hosts.len() - shape.collectors.len();
        let collecting: Vec<String> = shape.collectors.iter().map(|&name| name.to_owned()).collect();
        let others = match readouts {
            1 => "The other host is a readout".to_owned(),
            _ => format!("The other {readouts} hosts are readouts"),
        };
        draft.remark(format!("Collectors: {}. {others}.", list(&collecting)));
        draft.remark(
            "The scenario adds a supervisor and the loggers. Workload, TCP and buffers are its defaults: set them.",
        );
        match used.as_slice() {
            [] => return shape_error("the topology", "no switch has a link"),
            [switch] => shape.star(switch, draft)?,
            _ => shape.racks(&used, draft)?,
        }
        Ok(())
    }

    /// Counts the links of the hosts that have links.
    fn shape<'a>(&'a self, hosts: &[&'a str], options: &ImportOptions) -> Result<FileShape<'a>, ImportError> {
        if options.collectors.is_empty() {
            return Err(ImportError::NoCollectors(hosts.iter().map(|&host| host.to_owned()).collect()));
        }
        let collectors: BTreeSet<&str> = named(&options.collectors, hosts)?.into_iter().collect();
        if collectors.len() == hosts.len() {
            return shape_error("the hosts", "all of them are collectors, and no readout is left");
        }
        let mut shape =
            FileShape { network: self, collectors, hosts_of: BTreeMap::new(), between: BTreeMap::new() };
        for link in &self.links {
            let [one, other] = [link.ends[0].as_str(), link.ends[1].as_str()];
            match (hosts.contains(&one), hosts.contains(&other)) {
                (true, true) => return shape_error(&format!("{one}–{other}"), "a link joins two hosts"),
                (true, false) => shape.hosts_of.entry(other).or_default().push(one),
                (false, true) => shape.hosts_of.entry(one).or_default().push(other),
                (false, false) if one == other => {
                    return shape_error(one, "a link joins a switch with itself");
                }
                (false, false) => {
                    *shape.between.entry((one, other)).or_default() += 1;
                    *shape.between.entry((other, one)).or_default() += 1;
                }
            }
        }
        Ok(shape)
    }
}

impl<'a> FileShape<'a> {
    fn is_joined(&self, switch: &str) -> bool {
        self.hosts_of.contains_key(switch) || self.between.keys().any(|(one, _)| *one == switch)
    }

    fn neighbours(&self, switch: &str) -> BTreeSet<&'a str> {
        self.between.keys().filter(|(one, _)| *one == switch).map(|(_, other)| *other).collect()
    }

    /// Returns the collecting hosts of a switch, or with `collecting` false the others.
    fn attached(&self, switch: &str, collecting: bool) -> Vec<&'a str> {
        let hosts = self.hosts_of.get(switch).into_iter().flatten();
        hosts.copied().filter(|host| self.collectors.contains(host) == collecting).collect()
    }

    /// Returns the number of links of each of these hosts; an error if the numbers differ.
    fn links_per_host(&self, role: &str, hosts: &[&str]) -> Result<usize, ImportError> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for &host in hosts {
            *counts.entry(host).or_default() += 1;
        }
        let least = counts.values().copied().min().unwrap_or(0);
        match counts.iter().find(|(_, count)| **count != least) {
            Some((host, count)) => {
                shape_error(host, format!("has {count} links, and other {role} have {least}"))
            }
            None => Ok(least),
        }
    }

    fn star(&self, switch: &str, draft: &mut Draft) -> Result<(), ImportError> {
        let (collectors, readouts) = (self.attached(switch, true), self.attached(switch, false));
        if self.links_per_host("collectors", &collectors)? > 1 {
            return shape_error(collectors[0], "a collector has one link");
        }
        let links = self.links_per_host("readouts", &readouts)?;
        let from = format!("hosts on {switch}");
        draft.take("network.topology", "star", format!("one switch, {switch}"));
        draft.take("collectors.racks", 1, from.clone());
        draft.take("collectors.hosts_per_rack", count(collectors.len()), from.clone());
        draft.take("readout.hosts", count(readouts.len() / links), from);
        self.readout_links(links, draft);
        self.rates(draft);
        Ok(())
    }

    fn readout_links(&self, links: usize, draft: &mut Draft) {
        if links > 1 {
            draft.take("readout.links_per_host", count(links), "links of each readout");
        }
    }

    fn racks(&self, used: &[&'a str], draft: &mut Draft) -> Result<(), ImportError> {
        let tors: Vec<&str> =
            used.iter().copied().filter(|switch| !self.attached(switch, true).is_empty()).collect();
        let cores: BTreeSet<&str> = tors.iter().flat_map(|tor| self.neighbours(tor)).collect();
        if let Some(both) = tors.iter().find(|tor| cores.contains(*tor)) {
            return shape_error(both, "a switch with collectors is joined to another one with collectors");
        }
        let per_rack = self.attached(tors[0], true).len();
        let uplinks = cores.first().map_or(0, |core| self.links(tors[0], core));
        for &tor in &tors {
            let collectors = self.attached(tor, true);
            if let Some(readout) = self.attached(tor, false).first() {
                return shape_error(readout, format!("a readout is on {tor}, which has collectors"));
            }
            if collectors.len() != per_rack {
                let others = format!("{} has {per_rack}", tors[0]);
                return shape_error(tor, format!("has {} collectors, and {others}", collectors.len()));
            }
            if self.links_per_host("collectors", &collectors)? > 1 {
                return shape_error(collectors[0], "a collector has one link");
            }
            if let Some(core) = cores.iter().find(|core| self.links(tor, core) != uplinks) {
                let why = format!("has {} links to {core}, and other racks {uplinks}", self.links(tor, core));
                return shape_error(tor, why);
            }
        }
        let collectors: Vec<&str> = tors.iter().flat_map(|tor| self.attached(tor, true)).collect();
        if self.links_per_host("collectors", &collectors)? > 1 {
            return shape_error(collectors[0], "a collector is on two switches");
        }
        let rest: Vec<&str> =
            used.iter().copied().filter(|name| !tors.contains(name) && !cores.contains(name)).collect();
        draft.take("network.topology", "racks", format!("racks {}", tors.join(", ")));
        let names: Vec<&str> = cores.iter().copied().collect();
        draft.take("network.cores", count(cores.len()), format!("switches between: {}", names.join(", ")));
        draft.take("network.uplinks_per_core", count(uplinks), "links of each rack to each of them");
        draft.take("collectors.racks", count(tors.len()), "switches with collectors");
        draft.take("collectors.hosts_per_rack", count(per_rack), "collectors on each of them");
        if rest.is_empty() {
            self.direct(&cores, draft)?;
        } else {
            self.groups(&rest, &cores, draft)?;
        }
        self.rates(draft);
        Ok(())
    }

    fn links(&self, one: &str, other: &str) -> usize {
        self.between.iter().find(|((a, b), _)| *a == one && *b == other).map_or(0, |(_, count)| *count)
    }

    /// Takes readouts that are joined directly to the cores.
    fn direct(&self, cores: &BTreeSet<&'a str>, draft: &mut Draft) -> Result<(), ImportError> {
        let mut ends: Vec<&str> = Vec::new();
        let mut loads = Vec::new();
        for core in cores {
            let mine = self.attached(core, false);
            let distinct: BTreeSet<&str> = mine.iter().copied().collect();
            if distinct.len() < mine.len() && cores.len() > 1 {
                return shape_error(core, "a readout has two links to the same switch");
            }
            loads.push(mine.len());
            ends.extend(mine);
        }
        let links = self.links_per_host("readouts", &ends)?;
        let hosts = ends.len() / links;
        let mut dealt = vec![0; cores.len()];
        for host in 0..hosts {
            for link in 0..links {
                dealt[(host + link) % cores.len()] += 1;
            }
        }
        loads.sort_unstable();
        dealt.sort_unstable();
        if loads != dealt {
            let why =
                format!("readouts have {loads:?} links to them; a scenario deals them out as {dealt:?}");
            return shape_error("the switches between", why);
        }
        draft.take("network.readouts_per_group", 0, "readouts are joined to the switches between");
        draft.take("readout.hosts", count(hosts), "hosts that do not collect");
        self.readout_links(links, draft);
        Ok(())
    }

    /// Takes readouts behind switches of their own, the aggregation switches.
    fn groups(
        &self,
        rest: &[&'a str],
        cores: &BTreeSet<&'a str>,
        draft: &mut Draft,
    ) -> Result<(), ImportError> {
        if let Some(core) = cores.iter().find(|core| !self.attached(core, false).is_empty()) {
            return shape_error(core, "some readouts are on it, and others behind switches of their own");
        }
        let mut ends: Vec<&str> = Vec::new();
        let mut sizes = Vec::new();
        for &switch in rest {
            let readouts = self.attached(switch, false);
            if readouts.is_empty() {
                return shape_error(switch, "a switch without hosts that no rack is joined to");
            }
            if self.neighbours(switch) != *cores || cores.iter().any(|core| self.links(switch, core) != 1) {
                return shape_error(switch, "a switch of readouts has one link to each core");
            }
            sizes.push(readouts.len());
            ends.extend(readouts);
        }
        if self.links_per_host("readouts", &ends)? > 1 {
            return shape_error(ends[0], "a readout behind a switch of readouts has one link");
        }
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        // Only the last group of a scenario may be smaller.
        if sizes[..sizes.len() - 1].iter().any(|size| *size != sizes[0]) {
            return shape_error(
                "the switches of readouts",
                format!("they have {sizes:?} hosts, not equally many"),
            );
        }
        draft.take(
            "network.readouts_per_group",
            count(sizes[0]),
            format!("hosts on each of {}", rest.join(", ")),
        );
        draft.take("readout.hosts", count(ends.len()), "hosts that do not collect");
        if cores.len() > 1 {
            draft.remark(
                "A scenario splits each group of readouts evenly among the cores: each part has an aggregation switch of its \
                 own, joined to one core.",
            );
        }
        Ok(())
    }

    /// Takes rates, delays and losses of the links, class by class.
    fn rates(&self, draft: &mut Draft) {
        let mut classes: BTreeMap<&str, Vec<&FileLink>> = BTreeMap::new();
        for link in &self.network.links {
            let hosts = link.ends.iter().filter(|end| self.network.hosts.contains(end));
            let class = match hosts.map(|host| self.collectors.contains(host.as_str())).next() {
                Some(true) => "link",
                Some(false) => "readout.link",
                None => "uplink",
            };
            classes.entry(class).or_default().push(link);
        }
        for class in ["link", "readout.link", "uplink"] {
            let Some(links) = classes.get(class) else { continue };
            let rates = links.iter().map(|link| link.rate.map(|rate| rate.to_string()));
            take_equal(draft, &format!("{class}.rate"), rates.collect());
            let delays = links.iter().map(|link| link.delay.map(|delay| delay.to_string()));
            take_equal(draft, &format!("{class}.delay"), delays.collect());
            // A file that names no loss means none, as a scenario does.
            if links.iter().any(|link| link.loss.is_some()) {
                let losses = links.iter().map(|link| Some(link.loss.unwrap_or_default().to_string()));
                take_equal(draft, &format!("{class}.loss"), losses.collect());
            }
        }
    }
}

/// Takes a value if all links of a class have the same.
fn take_equal(draft: &mut Draft, key: &str, values: Vec<Option<String>>) {
    let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let described = |(value, count): (&Option<String>, &usize)| {
        format!("{count} × {}", value.as_deref().unwrap_or("not given"))
    };
    match counts.iter().next() {
        Some((Some(value), count)) if counts.len() == 1 => {
            let links = if *count == 1 { "link" } else { "links" };
            draft.take(key, value.clone(), format!("of {count} {links}"));
        }
        Some((None, _)) if counts.len() == 1 => {
            draft.refuse(key, "the file has none; the default of a scenario is in force");
        }
        _ => {
            let all: Vec<String> = counts.iter().map(described).collect();
            draft.refuse(key, format!("the links differ ({}), and a scenario has one value", all.join(", ")));
        }
    }
}

fn count(number: usize) -> toml::Value {
    toml::Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
