//! Buffers, PFC, ECN and port rates of a SONiC switch (`config_db.json`; fields as in SONiC's Configuration.md).

use std::collections::{BTreeMap, BTreeSet};

use fanin_units::{Bytes, Rate, Ratio};
use serde_json::{Map, Value};

use super::draft::Draft;
use super::error::{ImportError, SECTIONS, list};
use super::options::ImportOptions;
use super::sonic_keys::{assert_shape, name_unread};

/// Tables that are read; a file with one of them is a file of SONiC.
pub(super) const TABLES: [&str; 9] = [
    "PORT",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "BUFFER_QUEUE",
    "BUFFER_PG",
    "PORT_QOS_MAP",
    "WRED_PROFILE",
    "QUEUE",
    "DEVICE_METADATA",
];
/// Tables of the same subject without a counterpart in scenarios, each with the reason.
const REFUSED_TABLES: [(&str, &str); 8] = [
    ("SCHEDULER", "a port of a scenario serves one queue, without weights or shapers"),
    ("PFC_WD", "a scenario has no watchdog of PFC"),
    ("CABLE_LENGTH", "set link.delay: 5 ns a metre"),
    ("BUFFER_PORT_INGRESS_PROFILE_LIST", "limits of whole ports; only those of a queue are taken"),
    ("BUFFER_PORT_EGRESS_PROFILE_LIST", "limits of whole ports; only those of a queue are taken"),
    ("DSCP_TO_TC_MAP", "the traffic of a scenario has one class: choose its queue with --queue"),
    ("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "a setting of SONiC's own calculation of buffers"),
    ("LOSSLESS_TRAFFIC_PATTERN", "a setting of SONiC's own calculation of buffers"),
];
/// Thresholds of RED are whole frames of this size: an MTU of 1500 B, with its Ethernet header.
const FRAME_BYTES: u64 = 1518;
/// Largest magnitude of `dynamic_th` that is read: the binary logarithm of alpha. Chips have an alpha from 1/128 to 128.
const DYNAMIC_MAX: i64 = 10;
/// Values of `ecn`.
const ECN_MODES: [&str; 8] = [
    "ecn_none",
    "ecn_green",
    "ecn_yellow",
    "ecn_red",
    "ecn_green_yellow",
    "ecn_green_red",
    "ecn_yellow_red",
    "ecn_all",
];
/// `pause.xoff` of a scenario where none is given.
const XOFF_DEFAULT: u64 = 64_000;

/// The tables of a switch, and the section for its settings.
struct ConfigDb<'a> {
    tree: &'a Map<String, Value>,
    section: &'a str,
    queue: Option<u8>,
}

pub(super) fn read(tree: &Value, options: &ImportOptions, draft: &mut Draft) -> Result<(), ImportError> {
    let tree =
        tree.as_object().ok_or_else(|| ImportError::Key("the file".to_owned(), "an object of tables"))?;
    let section = options.section.as_deref().unwrap_or("tor");
    if !SECTIONS.contains(&section) {
        return Err(ImportError::UnknownSection(section.to_owned()));
    }
    assert_shape(tree)?;
    let db = ConfigDb { tree, section, queue: options.queue };
    db.assert_queue()?;
    let hostname = match db.entry("DEVICE_METADATA", "localhost") {
        Some(host) => text(host, "hostname", "DEVICE_METADATA|localhost")?,
        None => None,
    };
    draft.is_from("SONiC", hostname);
    let queue = options.queue.map_or_else(String::new, |queue| format!(", for the traffic of queue {queue}"));
    draft.remark(format!(
        "Settings of the switches `{section}`{queue}. Hosts, workload and TCP are defaults: set them."
    ));
    db.ports(draft)?;
    let buffer = db.buffers(draft)?;
    db.pause(buffer, draft)?;
    db.marks(draft)?;
    name_unread(tree, draft);
    db.others(draft);
    Ok(())
}

impl<'a> ConfigDb<'a> {
    fn table(&self, name: &str) -> impl Iterator<Item = (&'a str, &'a Map<String, Value>)> + use<'a> {
        let table = self.tree.get(name).and_then(Value::as_object);
        table.into_iter().flatten().filter_map(|(key, entry)| Some((key.as_str(), entry.as_object()?)))
    }

    fn entry(&self, table: &str, key: &str) -> Option<&'a Map<String, Value>> {
        self.table(table).find(|(name, _)| *name == key).map(|(_, entry)| entry)
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.section)
    }

    /// Refuses a queue that no entry names, if entries name queues.
    fn assert_queue(&self) -> Result<(), ImportError> {
        let entries = ["BUFFER_QUEUE", "QUEUE", "BUFFER_PG"].iter().flat_map(|table| self.table(table));
        let ranges: BTreeSet<&str> = entries.filter_map(|(key, _)| Some(key.rsplit_once('|')?.1)).collect();
        match self.queue {
            Some(queue) if !ranges.is_empty() && !ranges.iter().any(|range| holds(range, queue)) => {
                Err(ImportError::UnknownQueue(queue, ranges.into_iter().map(str::to_owned).collect()))
            }
            _ => Ok(()),
        }
    }

    /// Takes the rates of the ports that are not shut down.
    fn ports(&self, draft: &mut Draft) -> Result<(), ImportError> {
        let mut rates: BTreeMap<u64, usize> = BTreeMap::new();
        let mut others: BTreeSet<&str> = BTreeSet::new();
        for (port, entry) in self.table("PORT") {
            others.extend(
                entry.keys().map(String::as_str).filter(|key| !["speed", "admin_status"].contains(key)),
            );
            let place = format!("PORT|{port}");
            if choice(entry, "admin_status", &place, &["up", "down"], "`up` or `down`")? == Some("down") {
                continue;
            }
            if let Some(speed) = whole(entry, "speed", &place)? {
                *rates.entry(speed).or_default() += 1;
            }
        }
        if others.remove("mtu") {
            draft.refuse("PORT.*.mtu", "set transport.mtu, which is that of the hosts");
        }
        if !others.is_empty() {
            let others: Vec<&str> = others.into_iter().collect();
            draft.refuse(format!("PORT.*: {}", others.join(", ")), "not about rates");
        }
        let in_words = |(speed, count): (&u64, &usize)| format!("{count} × {}", megabits(*speed));
        match (rates.len(), rates.first_key_value()) {
            (0, _) => {}
            (1, Some((speed, count))) if self.section == "tor" => {
                let ports = if *count == 1 { "1 port".to_owned() } else { format!("{count} ports") };
                draft.take("link.rate", megabits(*speed), format!("PORT|*|speed of {ports}"));
            }
            _ => {
                let all: Vec<String> = rates.iter().map(in_words).collect();
                let why =
                    format!("{}: set link.rate and uplink.rate by the ports' neighbours", all.join(", "));
                draft.refuse("PORT.*.speed", why);
            }
        }
        Ok(())
    }

    /// Returns the names that a field of the entries `PORT|QUEUE` of a table refers to, each with its queues. With `queue`,
    /// only entries of that queue count.
    fn referred(
        &self,
        table: &str,
        field: &str,
        queue: Option<u8>,
    ) -> Result<BTreeMap<&'a str, BTreeSet<&'a str>>, ImportError> {
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, entry) in self.table(table) {
            let Some((_, range)) = key.rsplit_once('|') else { continue };
            if queue.is_none_or(|queue| holds(range, queue))
                && let Some(name) = text(entry, field, &format!("{table}|{key}"))?
            {
                found.entry(reference(name)).or_default().insert(range);
            }
        }
        Ok(found)
    }

    /// Returns the only name of [`Self::referred`]; notes a refusal and returns `None` if there are several, or none in a
    /// filled table.
    fn chosen(
        &self,
        table: &str,
        field: &str,
        queue: Option<u8>,
        draft: &mut Draft,
    ) -> Result<Option<&'a str>, ImportError> {
        let found = self.referred(table, field, queue)?;
        Ok(match found.len() {
            0 => {
                if self.table(table).next().is_some() {
                    let which = queue.map_or_else(String::new, |queue| format!(" of queue {queue}"));
                    draft.refuse(table, format!("no entry{which} has a `{field}`"));
                }
                None
            }
            1 => found.into_keys().next(),
            _ => {
                let of = |(name, ranges): (&&str, &BTreeSet<&str>)| {
                    format!("{name} for {}", ranges.iter().copied().collect::<Vec<_>>().join(", "))
                };
                let all = found.iter().map(of).collect::<Vec<_>>().join("; ");
                let remedy = if queue.is_some() { "ports differ" } else { "choose one with --queue" };
                draft.refuse(table, format!("{all}: {remedy}"));
                None
            }
        })
    }

    /// Takes the pool and the threshold of the queue's profile. Returns the pool's size in bytes if it is taken.
    fn buffers(&self, draft: &mut Draft) -> Result<Option<u64>, ImportError> {
        let Some(name) = self.chosen("BUFFER_QUEUE", "profile", self.queue, draft)? else {
            if self.table("BUFFER_QUEUE").next().is_none() && self.table("BUFFER_PROFILE").next().is_some() {
                draft.refuse(
                    "BUFFER_PROFILE",
                    "without BUFFER_QUEUE the file does not say which profile the queues have",
                );
            }
            return Ok(None);
        };
        let place = format!("BUFFER_PROFILE|{name}");
        let Some(profile) = self.entry("BUFFER_PROFILE", name) else {
            draft.refuse(place, "BUFFER_QUEUE refers to it, and the file does not have it");
            return Ok(None);
        };
        let size = self.pool(profile, &place, draft)?;
        if let Some(size) = size {
            draft.take(
                self.key("buffer"),
                Bytes::new(size).to_string(),
                format!("size of the pool of {place}"),
            );
        }
        if whole(profile, "size", &place)?.is_some_and(|reserved| reserved > 0) {
            draft.refuse(format!("{place}|size"), "a scenario reserves no memory for a queue");
        }
        match (signed(profile, "dynamic_th", &place)?, whole(profile, "static_th", &place)?) {
            (Some(power), _) => {
                draft.take(self.key("buffering"), "dynamic-threshold", format!("{place} has a dynamic_th"));
                let alpha = alpha(power).ok_or_else(|| {
                    ImportError::Key(format!("{place}|dynamic_th"), "a whole number from -10 to 10")
                })?;
                draft.take(self.key("alpha"), alpha.to_string(), format!("2^{power}: {place}|dynamic_th"));
            }
            (None, Some(limit)) => {
                draft.take(self.key("buffering"), "shared", format!("{place} has a static_th"));
                let is_limit = size.is_none_or(|size| limit < size);
                let text = if is_limit { Bytes::new(limit).to_string() } else { "unlimited".to_owned() };
                let from = if is_limit { "" } else { ", which is no less than the pool" };
                draft.take(self.key("port_limit"), text, format!("{place}|static_th{from}"));
            }
            (None, None) => draft.refuse(place, "it has neither dynamic_th nor static_th"),
        }
        Ok(size)
    }

    /// Returns the size in bytes of the pool that a profile refers to; `None` if the file lacks the pool or its size.
    fn pool(
        &self,
        profile: &Map<String, Value>,
        place: &str,
        draft: &mut Draft,
    ) -> Result<Option<u64>, ImportError> {
        let name = text(profile, "pool", place)?.map(reference);
        let Some((name, pool)) = name.and_then(|name| Some((name, self.entry("BUFFER_POOL", name)?))) else {
            draft.refuse(format!("{place}|pool"), "the file does not have that pool");
            return Ok(None);
        };
        let place = format!("BUFFER_POOL|{name}");
        if pool.contains_key("xoff") {
            draft.refuse(format!("{place}|xoff"), "a scenario has no shared headroom");
        }
        let size = whole(pool, "size", &place)?;
        if size.is_none() {
            draft.refuse(
                format!("{place}|size"),
                "missing: SONiC computes it on the switch (`show buffer information`)",
            );
        }
        Ok(size)
    }

    /// Takes PFC of the traffic's priority, and the thresholds of its priority group.
    fn pause(&self, buffer: Option<u64>, draft: &mut Draft) -> Result<(), ImportError> {
        let mut maps: BTreeSet<&str> = BTreeSet::new();
        for (port, entry) in self.table("PORT_QOS_MAP").filter(|(port, _)| *port != "global") {
            maps.insert(priorities(entry, &format!("PORT_QOS_MAP|{port}"))?);
        }
        let all: Vec<String> = maps.iter().map(|map| format!("`{map}`")).collect();
        let enabled = match (maps.first(), maps.len()) {
            (None, _) => return Ok(()),
            (Some(enabled), 1) => *enabled,
            _ => {
                draft.refuse("PORT_QOS_MAP.*.pfc_enable", format!("ports differ: {}", all.join(", ")));
                return Ok(());
            }
        };
        let queue = match self.queue {
            _ if enabled.is_empty() => {
                draft.take(self.key("pause.mode"), "off", "PORT_QOS_MAP has no pfc_enable");
                return Ok(());
            }
            None => {
                let why = format!("PFC is on for {enabled} alone: choose the traffic's queue with --queue");
                draft.refuse("PORT_QOS_MAP.*.pfc_enable", why);
                return Ok(());
            }
            Some(queue) => queue,
        };
        if !enabled.split(',').any(|one| one.trim().parse() == Ok(queue)) {
            draft.take(self.key("pause.mode"), "off", format!("pfc_enable = {enabled}"));
            return Ok(());
        }
        draft.take(self.key("pause.mode"), "priority", format!("pfc_enable = {enabled}"));
        draft.remark(format!("Priority, priority group and queue {queue} are taken to be the same traffic, as in SONiC's defaults."));
        let Some(name) = self.chosen("BUFFER_PG", "profile", Some(queue), draft)? else { return Ok(()) };
        let place = format!("BUFFER_PROFILE|{name}");
        let Some(profile) = self.entry("BUFFER_PROFILE", name) else {
            draft.refuse(
                place,
                "BUFFER_PG refers to it, and the file does not have it: SONiC computes it on the switch",
            );
            return Ok(());
        };
        let xoff = self.xoff(profile, &place, buffer, draft)?;
        if let Some(xon) = whole(profile, "xon", &place)? {
            if xon < xoff {
                draft.take(self.key("pause.xon"), Bytes::new(xon).to_string(), format!("{place}|xon"));
            } else {
                let why = format!("{} is not below pause.xoff, {}", Bytes::new(xon), Bytes::new(xoff));
                draft.refuse(format!("{place}|xon"), why);
            }
        }
        if whole(profile, "size", &place)?.is_some_and(|reserved| reserved > 0) {
            draft.refuse(format!("{place}|size"), "a scenario reserves no memory for a priority group");
        }
        for (key, why) in [
            ("xoff", "SONiC's xoff is headroom behind the threshold, and pause.xoff the threshold itself"),
            ("xon_offset", "a scenario resumes at pause.xon alone"),
        ] {
            if profile.contains_key(key) {
                draft.refuse(format!("{place}|{key}"), why);
            }
        }
        Ok(())
    }

    /// Takes the threshold of PAUSE, if it is fixed. Returns the XOFF threshold in force, in bytes.
    fn xoff(
        &self,
        profile: &Map<String, Value>,
        place: &str,
        buffer: Option<u64>,
        draft: &mut Draft,
    ) -> Result<u64, ImportError> {
        if let Some(limit) = whole(profile, "static_th", place)? {
            if buffer.is_none_or(|buffer| limit < buffer) {
                draft.take(
                    self.key("pause.xoff"),
                    Bytes::new(limit).to_string(),
                    format!("{place}|static_th"),
                );
                return Ok(limit);
            }
            draft.refuse(
                format!("{place}|static_th"),
                "it is not below the buffer, so nothing would be paused",
            );
        }
        if let Some(power) = signed(profile, "dynamic_th", place)? {
            let alone = alpha(power).zip(self.pool(profile, place, draft)?).map(|(alpha, size)| {
                let alpha = u128::from(alpha.get());
                let most = u128::from(size) * alpha / (alpha + u128::from(Ratio::ONE.get()));
                let most = Bytes::new(u64::try_from(most).unwrap_or(u64::MAX));
                format!("; one input alone is paused at alpha / (1 + alpha) of the pool, {most}")
            });
            let why = format!(
                "PAUSE is sent at 2^{power} times the free memory, and pause.xoff is fixed: set it{}",
                alone.unwrap_or_default()
            );
            draft.refuse(format!("{place}|dynamic_th"), why);
        }
        Ok(XOFF_DEFAULT)
    }

    /// Takes ECN or RED of the queue's WRED profile.
    fn marks(&self, draft: &mut Draft) -> Result<(), ImportError> {
        let all: Vec<String> = self.table("WRED_PROFILE").map(|(name, _)| name.to_owned()).collect();
        if all.is_empty() && self.referred("QUEUE", "wred_profile", self.queue)?.is_empty() {
            return Ok(());
        }
        let Some(name) = self.chosen("QUEUE", "wred_profile", self.queue, draft)? else {
            if !all.is_empty() {
                let why = format!("the queue has none of {}, or not one alone", list(&all));
                draft.refuse("WRED_PROFILE", why);
            }
            return Ok(());
        };
        let place = format!("WRED_PROFILE|{name}");
        let Some(profile) = self.entry("WRED_PROFILE", name) else {
            draft.refuse(place, "QUEUE refers to it, and the file does not have it");
            return Ok(());
        };
        let ecn = choice(
            profile,
            "ecn",
            &place,
            &ECN_MODES,
            "`ecn_none`, `ecn_all`, or colours as in `ecn_green_yellow`",
        )?;
        let ecn = ecn.unwrap_or("ecn_none");
        let is_marked = ecn == "ecn_all" || ecn.contains("green");
        let is_dropped =
            choice(profile, "wred_green_enable", &place, &["true", "false"], "`true` or `false`")?
                == Some("true");
        if profile
            .keys()
            .any(|key| key.contains("yellow") || key.contains("red_") && !key.starts_with("wred_green"))
        {
            draft.refuse(format!("{place}: yellow and red"), "frames of a scenario have one colour, green");
        }
        if !is_marked && !is_dropped {
            draft.take(self.key("ecn.mode"), "off", format!("{place} neither marks nor drops green frames"));
            return Ok(());
        }
        let (low, high) =
            (whole(profile, "green_min_threshold", &place)?, whole(profile, "green_max_threshold", &place)?);
        let (Some(low), Some(high)) = (low, high) else {
            draft.refuse(place, "it lacks green_min_threshold or green_max_threshold");
            return Ok(());
        };
        let (from, to) = (frames(low), frames(high));
        let source = |key: &str, bytes: u64| format!("{bytes} B in frames of {FRAME_BYTES} B: {place}|{key}");
        let packets = |count: u64| format!("{count} packets");
        draft.take(self.key("ecn.unit"), "bytes", place.clone());
        if from >= to && is_marked {
            draft.take(self.key("ecn.mode"), "threshold", format!("ecn = {ecn}, both thresholds alike"));
            draft.take(self.key("ecn.threshold"), packets(from), source("green_min_threshold", low));
            return Ok(());
        }
        draft.take(
            self.key("ecn.mode"),
            if is_marked { "red-mark" } else { "red-drop" },
            format!("ecn = {ecn}"),
        );
        draft.take(self.key("ecn.min"), packets(from), source("green_min_threshold", low));
        draft.take(self.key("ecn.max"), packets(to.max(from + 1)), source("green_max_threshold", high));
        let percent = whole(profile, "green_drop_probability", &place)?.unwrap_or(100);
        draft.take(
            self.key("ecn.probability_max"),
            format!("{percent} %"),
            format!("{place}|green_drop_probability"),
        );
        draft.take(self.key("ecn.weight"), "1", "SONiC sets SAI_WRED_ATTR_WEIGHT to 0: the queue as it is");
        draft.take(self.key("ecn.hard_drop"), false, "SAI marks above the upper threshold too");
        Ok(())
    }

    /// Notes the tables that are not read as refused.
    fn others(&self, draft: &mut Draft) {
        for (table, why) in REFUSED_TABLES {
            if self.table(table).next().is_some() {
                draft.refuse(table, why);
            }
        }
        let is_known = |name: &&String| {
            !TABLES.contains(&name.as_str()) && REFUSED_TABLES.iter().all(|(table, _)| table != *name)
        };
        let others: Vec<&str> = self.tree.keys().filter(is_known).map(String::as_str).collect();
        if !others.is_empty() {
            draft.refuse(others.join(", "), "not about buffers, PFC, ECN or rates of ports");
        }
    }
}

/// Returns a field as text; `None` if the entry lacks the field.
fn text<'a>(entry: &'a Map<String, Value>, field: &str, place: &str) -> Result<Option<&'a str>, ImportError> {
    let Some(value) = entry.get(field) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| ImportError::Key(format!("{place}|{field}"), "a text"))
}

/// Returns a field that must be one of `words`; `None` if the entry lacks the field.
fn choice<'a>(
    entry: &'a Map<String, Value>,
    field: &str,
    place: &str,
    words: &[&str],
    needed: &'static str,
) -> Result<Option<&'a str>, ImportError> {
    match text(entry, field, place)? {
        Some(word) if !words.contains(&word) => Err(ImportError::Key(format!("{place}|{field}"), needed)),
        word => Ok(word),
    }
}

/// Returns the priorities with PFC, as in the file; empty if PFC is off.
fn priorities<'a>(entry: &'a Map<String, Value>, place: &str) -> Result<&'a str, ImportError> {
    let enabled = text(entry, "pfc_enable", place)?.unwrap_or("");
    let is_priority = |one: &str| matches!(one.trim().parse::<u8>(), Ok(0..8));
    if enabled.is_empty() || enabled.split(',').all(is_priority) {
        return Ok(enabled);
    }
    Err(ImportError::Key(format!("{place}|pfc_enable"), "priorities from 0 to 7 with commas, such as `3,4`"))
}

/// Returns the name in a reference, which older versions write as `[TABLE|name]`.
fn reference(text: &str) -> &str {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    inner.rsplit(['|', ':']).next().unwrap_or(inner)
}

/// Returns the ends of a range of queues such as `3-4` or `0`; `None` for other texts.
pub(super) fn ends(range: &str) -> Option<(u8, u8)> {
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    Some((low.parse().ok()?, high.parse().ok()?))
}

/// Returns true if a range of queues contains `queue`.
fn holds(range: &str, queue: u8) -> bool {
    ends(range).is_some_and(|(low, high)| (low..=high).contains(&queue))
}

/// Returns a number, which SONiC writes as text; `None` if the entry lacks the field.
fn signed(entry: &Map<String, Value>, field: &str, place: &str) -> Result<Option<i64>, ImportError> {
    let Some(value) = entry.get(field) else { return Ok(None) };
    let number = value.as_str().map_or_else(|| value.as_i64(), |text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| ImportError::Key(format!("{place}|{field}"), "a whole number as text"))
}

fn whole(entry: &Map<String, Value>, field: &str, place: &str) -> Result<Option<u64>, ImportError> {
    let number = signed(entry, field, place)?;
    let whole = number.map(u64::try_from).transpose();
    whole.map_err(|_| ImportError::Key(format!("{place}|{field}"), "a number that is not negative"))
}

fn megabits(speed: u64) -> String {
    Rate::new(speed.saturating_mul(1_000_000)).to_string()
}

/// Converts bytes to the nearest number of full frames, at least one.
fn frames(bytes: u64) -> u64 {
    ((bytes + FRAME_BYTES / 2) / FRAME_BYTES).max(1)
}

/// Returns two to a power from -10 to 10; `None` for other powers.
fn alpha(power: i64) -> Option<Ratio> {
    let steps = u32::try_from(power.unsigned_abs()).ok().filter(|_| power.abs() <= DYNAMIC_MAX)?;
    let one = Ratio::ONE.get();
    let half = (1_u64 << steps) / 2;
    Some(Ratio::new(if power < 0 { (one + half) >> steps } else { one << steps }))
}
