//! `fanin switch show`: rings, ports, stations and rules of a running switch.

use clap::{Args, ValueEnum};
use fanin_switch::control::Client;
use fanin_units::Bytes;
use serde_json::Value;

use crate::columns::aligned;
use crate::commands::switch::target::SwitchTarget;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin switch show rings --at ADDRESS")]
pub(super) struct Arguments {
    /// The part to show.
    #[arg(value_enum)]
    part: ShownPart,
    /// Print all fields as JSON, instead of a table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: SwitchTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShownPart {
    /// Deep queues: occupancy, high-water mark, limits, and drops.
    Rings,
    /// Ports: link, frames in and out, drops by cause, and the queue of frames that no rule sends to a ring.
    Ports,
    /// Stations and their ports.
    Mac,
    /// Rules and how many frames they decided about.
    Rules,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.target.client()?;
    let path = match arguments.part {
        ShownPart::Rings => "/v1/rings",
        ShownPart::Ports => "/v1/ports",
        ShownPart::Mac => "/v1/stations",
        ShownPart::Rules => "/v1/rules",
    };
    let items = client.read(path)?;
    if arguments.json {
        return output::print(&format!("{items:#}\n"));
    }
    let rows: Vec<Vec<String>> = match arguments.part {
        ShownPart::Rings => each(&items).map(ring).collect(),
        ShownPart::Ports => each(&items).map(port).collect(),
        ShownPart::Rules => each(&items).map(rule).collect(),
        ShownPart::Mac => stations(&client, &items)?,
    };
    let header: &[&str] = match arguments.part {
        ShownPart::Rings => &[
            "ring",
            "port",
            "frames",
            "bytes",
            "most frames",
            "most bytes",
            "capacity",
            "rate",
            "in",
            "out",
            "dropped",
            "alarm",
        ],
        ShownPart::Ports => &[
            "port",
            "link",
            "frames in",
            "bytes in",
            "frames out",
            "bytes out",
            "queued",
            "most queued",
            "dropped",
            "causes",
        ],
        ShownPart::Rules => &["rule", "ring", "priority", "matches", "frames", "bytes"],
        ShownPart::Mac => &["station", "vlan", "port", "kind", "silent"],
    };
    output::print(&table(header, &rows))
}

fn each(items: &Value) -> impl Iterator<Item = &Value> {
    items.as_array().into_iter().flatten()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Returns a text unchanged, any other value as JSON, and a dash for null.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn bytes(value: &Value) -> String {
    Bytes::new(number(value)).to_string()
}

fn dropped(list: &Value) -> u64 {
    each(list).map(|dropped| number(&dropped["frames"])).sum()
}

fn ring(item: &Value) -> Vec<String> {
    let (spec, state) = (&item["spec"], &item["state"]);
    let queue = &state["queue"];
    let limits: Vec<String> = ["frames", "bytes"]
        .iter()
        .map(|key| &spec[*key])
        .filter(|limit| !limit.is_null())
        .map(word)
        .collect();
    let alarm = match (&spec["alarm"], state["alarm"].as_bool()) {
        (Value::Null, _) => "-".to_owned(),
        (_, Some(true)) => format!("RAISED ({})", number(&state["alarms"])),
        _ => format!("no ({})", number(&state["alarms"])),
    };
    vec![
        word(&item["name"]),
        word(&spec["port"]),
        word(&queue["frames"]),
        bytes(&queue["bytes"]),
        word(&queue["frames_max"]),
        bytes(&queue["bytes_max"]),
        if limits.is_empty() { "-".to_owned() } else { limits.join(", ") },
        word(&spec["rate"]),
        word(&queue["enqueued"]["frames"]),
        word(&queue["departed"]["frames"]),
        dropped(&queue["dropped"]).to_string(),
        alarm,
    ]
}

fn port(item: &Value) -> Vec<String> {
    let state = &item["state"];
    let link = match (state["is_up"].as_bool(), state["is_paused"].as_bool()) {
        (Some(true), Some(true)) => "paused",
        (Some(true), _) => "up",
        _ => "down",
    };
    let queue = &state["queue"];
    let causes: Vec<String> = each(&state["dropped"])
        .chain(each(&queue["dropped"]))
        .map(|dropped| format!("{} {}", word(&dropped["cause"]), number(&dropped["frames"])))
        .collect();
    vec![
        word(&item["name"]),
        link.to_owned(),
        word(&state["received"]["frames"]),
        bytes(&state["received"]["bytes"]),
        word(&state["sent"]["frames"]),
        bytes(&state["sent"]["bytes"]),
        word(&queue["frames"]),
        word(&queue["frames_max"]),
        (dropped(&state["dropped"]) + dropped(&queue["dropped"])).to_string(),
        if causes.is_empty() { "-".to_owned() } else { causes.join(", ") },
    ]
}

fn rule(item: &Value) -> Vec<String> {
    let (spec, matched) = (&item["spec"], &item["state"]["matched"]);
    let ring = if spec["drop"] == true { "(drop)".to_owned() } else { word(&spec["ring"]) };
    let matches: Vec<String> = spec
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| {
            !value.is_null() && !["name", "ring", "drop", "priority"].contains(&key.as_str())
        })
        .map(|(key, value)| format!("{key} {}", word(value)))
        .collect();
    vec![
        word(&item["name"]),
        ring,
        word(&spec["priority"]),
        if matches.is_empty() { "everything".to_owned() } else { matches.join(", ") },
        word(&matched["frames"]),
        bytes(&matched["bytes"]),
    ]
}

/// Returns the rows of stations, with the names of their ports in place of the numbers.
fn stations(client: &Client, items: &Value) -> Result<Vec<Vec<String>>, Failure> {
    let ports = client.read("/v1/ports")?;
    let name = |wanted: u64| {
        let port = each(&ports).find(|port| number(&port["state"]["number"]) == wanted);
        port.map_or_else(|| wanted.to_string(), |port| word(&port["name"]))
    };
    let mut rows: Vec<Vec<String>> = each(items)
        .map(|station| {
            let is_static = station["is_static"] == true;
            vec![
                word(&station["mac"]),
                word(&station["vlan"]),
                name(number(&station["port"])),
                if is_static { "static" } else { "learned" }.to_owned(),
                if is_static { "-".to_owned() } else { format!("{} s", number(&station["silent_s"])) },
            ]
        })
        .collect();
    rows.sort();
    Ok(rows)
}

/// Returns a table with columns as wide as their content, and numbers aligned to the right.
fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines = vec![header.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()];
    lines.extend_from_slice(rows);
    let is_number = |column: usize| {
        rows.iter().all(|row| row[column].starts_with(|c: char| c.is_ascii_digit())) && !rows.is_empty()
    };
    let texts = aligned(&lines, |column| column > 0 && is_number(column));
    texts.iter().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let rows = [vec!["a".to_owned(), "7".to_owned()], vec!["long".to_owned(), "12 kB".to_owned()]];
        assert_eq!(table(&["ring", "bytes"], &rows), "ring  bytes\na         7\nlong  12 kB\n");
        assert_eq!(table(&["ring", "bytes"], &[]), "ring  bytes\n");
    }
}
