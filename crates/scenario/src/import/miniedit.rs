//! Topologies that MiniEdit, the editor of Mininet, saves (`.mn`, JSON; `examples/miniedit.py` of Mininet writes them).
//!
//! `python -m fanin.mininet` writes topologies of Mininet's scripts in the same form, with their name as `topo`.

use std::collections::BTreeSet;

use fanin_units::{Duration, Rate, Ratio};
use serde_json::Value;

use super::draft::Draft;
use super::error::ImportError;
use super::graph::{FileLink, FileNetwork};
use super::options::ImportOptions;

/// Options of a link without a counterpart, each with the reason.
const LINK_OPTIONS: [(&str, &str); 3] = [
    ("jitter", "links of a scenario have one delay"),
    (
        "max_queue_size",
        "a queue of netem in packets, at both ends: set `buffer` to the size that the switch has",
    ),
    ("speedup", "a setting of Mininet's own"),
];

pub(super) fn read(tree: &Value, options: &ImportOptions, draft: &mut Draft) -> Result<(), ImportError> {
    match tree.get("topo").and_then(Value::as_str) {
        Some(topo) => draft.is_from("Mininet", Some(topo)),
        None => draft.is_from("MiniEdit", None),
    }
    let mut network = FileNetwork {
        hosts: nodes(tree, "hosts", "h")?,
        switches: nodes(tree, "switches", "s")?,
        links: Vec::new(),
    };
    let known: Vec<String> = network.hosts.iter().chain(&network.switches).cloned().collect();
    for (number, link) in array(tree, "links")?.iter().enumerate() {
        let end = |key: &'static str| -> Result<String, ImportError> {
            let name = link.get(key).and_then(Value::as_str);
            let name =
                name.ok_or_else(|| ImportError::Key(format!("links[{number}].{key}"), "the name of a node"))?;
            if known.iter().any(|node| node == name) {
                Ok(name.to_owned())
            } else {
                Err(ImportError::UnknownNode(name.to_owned(), known.clone()))
            }
        };
        let ends = [end("src")?, end("dest")?];
        let opts = link.get("opts");
        network.links.push(FileLink {
            ends,
            rate: rate(opts, number)?,
            delay: delay(opts, number, draft)?,
            loss: loss(opts, number)?,
        });
        for (key, value) in opts.and_then(Value::as_object).into_iter().flatten() {
            let why = LINK_OPTIONS.iter().find(|(name, _)| name == key);
            let why = why.map_or("an option that a scenario has no counterpart of", |(_, why)| why);
            if !["bw", "delay", "loss"].contains(&key.as_str()) && !is_empty(value) {
                draft.refuse(format!("links.*.opts.{key}"), why);
            }
        }
    }
    for (list, why) in
        [("hosts", "addresses and processors of Mininet's hosts"), ("switches", "settings of Open vSwitch")]
    {
        let opts = array(tree, list)?.iter().filter_map(|node| node.get("opts")?.as_object());
        let keys: BTreeSet<&str> =
            opts.flatten().filter(|(_, value)| !is_empty(value)).map(|(key, _)| key.as_str()).collect();
        let keys: Vec<&str> =
            keys.into_iter().filter(|key| !["hostname", "nodeNum", "sched"].contains(key)).collect();
        if !keys.is_empty() {
            draft.refuse(format!("{list}.*.opts: {}", keys.join(", ")), why);
        }
    }
    for (key, why) in [
        ("controllers", "switches of a scenario forward by themselves"),
        ("application", "settings of MiniEdit"),
    ] {
        if tree.get(key).is_some_and(|value| !is_empty(value)) {
            draft.refuse(key, why);
        }
    }
    network.fit(options, draft)
}

fn array<'a>(tree: &'a Value, key: &str) -> Result<&'a Vec<Value>, ImportError> {
    tree.get(key).and_then(Value::as_array).ok_or_else(|| ImportError::Key(key.to_owned(), "a list"))
}

/// Reads the names of hosts or switches: `opts.hostname`, or the prefix and the number, as MiniEdit does.
fn nodes(tree: &Value, key: &str, prefix: &str) -> Result<Vec<String>, ImportError> {
    let name = |(at, node): (usize, &Value)| {
        let given = node.pointer("/opts/hostname").and_then(Value::as_str).map(str::to_owned);
        let number = || Some(format!("{prefix}{}", node.get("number")?.as_str()?));
        given
            .or_else(number)
            .ok_or_else(|| ImportError::Key(format!("{key}[{at}].number"), "a number as text"))
    };
    array(tree, key)?.iter().enumerate().map(name).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || text == "0",
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(_) => false,
    }
}

/// Reads `bw`, a number or text in Mbit/s; `None` if the option is empty.
fn rate(opts: Option<&Value>, number: usize) -> Result<Option<Rate>, ImportError> {
    let Some(value) = opts.and_then(|opts| opts.get("bw")).filter(|value| !is_empty(value)) else {
        return Ok(None);
    };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rate = format!("{} Mb/s", text.trim()).parse::<Rate>().ok().filter(|rate| !rate.is_zero());
    rate.map(Some).ok_or_else(|| ImportError::Key(format!("links[{number}].opts.bw"), "a number of Mbit/s"))
}

/// Reads `loss`, a number or text in per cent; `None` if the option is empty.
fn loss(opts: Option<&Value>, number: usize) -> Result<Option<Ratio>, ImportError> {
    let Some(value) = opts.and_then(|opts| opts.get("loss")).filter(|value| !is_empty(value)) else {
        return Ok(None);
    };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let loss = format!("{} %", text.trim()).parse::<Ratio>().ok().filter(|&loss| loss < Ratio::ONE);
    let expected = "a number of per cent below 100, with at most four decimals";
    loss.map(Some).ok_or_else(|| ImportError::Key(format!("links[{number}].opts.loss"), expected))
}

/// Reads `delay`, a time of tc with a unit; `None` if the option is empty. A number alone, which tc reads as microseconds, is
/// refused.
fn delay(opts: Option<&Value>, number: usize, draft: &mut Draft) -> Result<Option<Duration>, ImportError> {
    let Some(value) = opts.and_then(|opts| opts.get("delay")).filter(|value| !is_empty(value)) else {
        return Ok(None);
    };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.trim().parse::<f64>().is_ok() {
        draft.refuse(
            format!("links[{number}].opts.delay"),
            format!("`{text}` has no unit; write for example 5ms"),
        );
        return Ok(None);
    }
    let at = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let unit = match unit.trim() {
        "usec" | "usecs" => "us",
        "msec" | "msecs" => "ms",
        "sec" | "secs" => "s",
        unit => unit,
    };
    let delay = format!("{} {unit}", digits.trim()).parse::<Duration>().ok();
    delay
        .map(Some)
        .ok_or_else(|| ImportError::Key(format!("links[{number}].opts.delay"), "a time such as 5ms"))
}
