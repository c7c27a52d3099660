//! Handlers of requests. They run on threads that may wait for the data path.

use std::str::FromStr;

use fanin_units::{Bytes, Packets, Rate, Ratio};
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::address::{Mac, Vlan};
use crate::capture::{CapturePoint, CaptureSpec};
use crate::command::{Command, PortChange};
use crate::config::{
    ECN_WITHOUT_MODE, Ecn, ImpairSpec, PortSpec, RingSpec, RuleSpec, StationSpec, StormSpec,
};
use crate::control::answer::{Answer, Refusal};
use crate::control::metrics;
use crate::control::openapi::description;
use crate::control::operation::Operation;
use crate::control::routes::{Call, OPENMETRICS};
use crate::snapshot::{PortSnapshot, RingSnapshot, RuleSnapshot};

type Result<T> = std::result::Result<T, Refusal>;

/// Health of the switch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// `ok` while the data path runs.
    status: &'static str,
    /// Time since its start, in seconds.
    uptime_s: u64,
}

/// Name and version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Version {
    /// Always `fanin switch`.
    name: &'static str,
    /// Version of the program.
    version: &'static str,
    /// The version of this interface.
    api: &'static str,
}

/// A port: its configuration and its counters.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Port")]
pub(crate) struct PortItem {
    name: String,
    spec: PortSpec,
    state: PortSnapshot,
}

/// A ring: its configuration and its counters.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ring")]
pub(crate) struct RingItem {
    name: String,
    spec: RingSpec,
    state: RingSnapshot,
}

/// A rule: its configuration and its counters.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rule")]
pub(crate) struct RuleItem {
    name: String,
    spec: RuleSpec,
    state: RuleSnapshot,
}

/// A change of a port. Absent settings stay.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PortPatch {
    /// The port's rate; zero removes the limit.
    rate: Option<Rate>,
    /// True to flood frames to unknown stations out of it.
    flood: Option<bool>,
    /// New limits of storm control.
    storm: Option<StormSpec>,
    /// Congestion signals of its plain queue: of frames that no rule sends to a ring. `null` ends them.
    #[serde(deserialize_with = "given")]
    ecn: Option<Option<Ecn>>,
    /// Impairment. Delayed frames keep their departure times.
    impair: Option<ImpairSpec>,
}

/// A change of a ring. Absent settings stay; null restores a default.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RingPatch {
    /// The most frames it holds.
    #[serde(deserialize_with = "given")]
    frames: Option<Option<Packets>>,
    /// The most bytes it holds.
    #[serde(deserialize_with = "given")]
    bytes: Option<Option<Bytes>>,
    /// Rate of its token bucket.
    #[serde(deserialize_with = "given")]
    rate: Option<Option<Rate>>,
    /// Depth of its token bucket.
    #[serde(deserialize_with = "given")]
    burst: Option<Option<Bytes>>,
    /// Priority under `service = "strict-priority"`; the highest is served first.
    priority: Option<u8>,
    /// New congestion signals; `null` ends them.
    #[serde(deserialize_with = "given")]
    ecn: Option<Option<Ecn>>,
    /// The share of its capacity at which an alarm is raised.
    #[serde(deserialize_with = "given")]
    alarm: Option<Option<Ratio>>,
}

/// Reads a field that is present: JSON's null gives `Some(None)`. An absent field has the default `None`.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    input: D,
) -> std::result::Result<Option<Option<T>>, D::Error> {
    Option::deserialize(input).map(Some)
}

fn read<T: DeserializeOwned>(call: &Call) -> Result<T> {
    let wrong = |error: serde_json::Error| {
        let status = if error.is_data() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::BAD_REQUEST };
        Refusal::new(status, format_args!("invalid body: {}", in_words(&error.to_string())))
    };
    let value = serde_json::from_slice(&call.body).map_err(wrong)?;
    // serde accepts a list in place of an object, with the fields in order.
    if has_list(&value) {
        return Err(unprocessable(format_args!("give an object without lists")));
    }
    serde_json::from_slice(&call.body).map_err(wrong)
}

/// Reads a body that may have congestion signals.
fn read_with_ecn<T: DeserializeOwned>(call: &Call) -> Result<T> {
    let value: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    if value.get("mark").is_some() {
        return Err(unprocessable(format_args!("unknown field `mark`: the field is `ecn`")));
    }
    let Some(ecn) = value.get("ecn").filter(|ecn| ecn.is_object()) else { return read(call) };
    if ecn.get("mode").is_none() {
        return Err(unprocessable(format_args!("{ECN_WITHOUT_MODE}")));
    }
    let body = read(call)?;
    let unread = Ecn::deserialize(ecn).ok().and_then(|ecn| ecn.unread().next());
    unread.map_or(Ok(body), |(key, why)| {
        Err(unprocessable(format_args!("nothing reads `ecn.{key}`: {why}; leave it out")))
    })
}

fn unprocessable(detail: std::fmt::Arguments<'_>) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format_args!("invalid body: {detail}"))
}

/// Rewrites a message of serde_json: names the expected type in words.
fn in_words(error: &str) -> String {
    let parts = error
        .rsplit_once(", expected ")
        .and_then(|(wrong, rest)| Some((wrong, rest.rsplit_once(" at line ")?)));
    let Some((wrong, (expected, place))) = parts else { return error.to_owned() };
    format!("{wrong}, expected {} at line {place}", fanin_scenario::expected_in_words(expected))
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_list),
        _ => false,
    }
}

pub(crate) fn health(operation: &Operation, _: &Call) -> Result<Answer> {
    let uptime_s = operation.snapshot(false)?.uptime_ns / 1_000_000_000;
    Ok(Answer::json(&Health { status: "ok", uptime_s }))
}

pub(crate) fn ready(operation: &Operation, call: &Call) -> Result<Answer> {
    let snapshot = operation.snapshot(false)?;
    let down = snapshot.ports.iter().filter(|port| !port.is_up).map(|port| port.name.as_str());
    let down: Vec<&str> = down.collect();
    if down.is_empty() {
        return health(operation, call);
    }
    let detail = format_args!("ports without a link: {}", down.join(", ")).to_string();
    Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail))
}

pub(crate) fn metrics(operation: &Operation, _: &Call) -> Result<Answer> {
    let (snapshot, config) = (operation.snapshot(false)?, operation.config()?);
    Ok(Answer::Text(OPENMETRICS, metrics::text(&snapshot, &config, operation.captures())))
}

pub(crate) fn openapi(_: &Operation, _: &Call) -> Result<Answer> {
    Ok(Answer::json(&description()))
}

pub(crate) fn version(_: &Operation, _: &Call) -> Result<Answer> {
    Ok(Answer::json(&Version { name: "fanin switch", version: env!("CARGO_PKG_VERSION"), api: "v1" }))
}

pub(crate) fn config(operation: &Operation, _: &Call) -> Result<Answer> {
    Ok(Answer::json(&operation.config()?))
}

pub(crate) fn snapshot(operation: &Operation, _: &Call) -> Result<Answer> {
    Ok(Answer::json(&*operation.snapshot(false)?))
}

/// Joins configurations and counters by name. Leaves out names that only one of the two has, because a command changed them in
/// the meantime.
fn join<S, T: Clone, I>(
    specs: Vec<S>,
    states: &[T],
    name: fn(&S) -> &str,
    state_name: fn(&T) -> &str,
    item: fn(String, S, T) -> I,
) -> Vec<I> {
    let mut states_by_name: std::collections::HashMap<&str, &T> =
        states.iter().map(|state| (state_name(state), state)).collect();
    specs
        .into_iter()
        .filter_map(|spec| {
            let state = states_by_name.remove(name(&spec))?;
            Some(item(name(&spec).to_owned(), spec, state.clone()))
        })
        .collect()
}

fn all_ports(operation: &Operation) -> Result<Vec<PortItem>> {
    let snapshot = operation.snapshot(false)?;
    let item = |name, spec, state| PortItem { name, spec, state };
    Ok(join(operation.config()?.port, &snapshot.ports, |spec| &spec.name, |state| &state.name, item))
}

fn all_rings(operation: &Operation) -> Result<Vec<RingItem>> {
    let snapshot = operation.snapshot(false)?;
    let item = |name, spec, state| RingItem { name, spec, state };
    Ok(join(operation.config()?.ring, &snapshot.rings, |spec| &spec.name, |state| &state.name, item))
}

fn all_rules(operation: &Operation) -> Result<Vec<RuleItem>> {
    let snapshot = operation.snapshot(false)?;
    let item = |name, spec, state| RuleItem { name, spec, state };
    Ok(join(operation.config()?.rule, &snapshot.rules, |spec| &spec.name, |state| &state.name, item))
}

fn one<I>(items: Vec<I>, kind: &'static str, name: &str, of: fn(&I) -> &str) -> Result<I> {
    items.into_iter().find(|item| of(item) == name).ok_or_else(|| Refusal::unknown(kind, name))
}

pub(crate) fn ports(operation: &Operation, _: &Call) -> Result<Answer> {
    Ok(Answer::json(&all_ports(operation)?))
}

pub(crate) fn port(operation: &Operation, call: &Call) -> Result<Answer> {
    Ok(Answer::json(&one(all_ports(operation)?, "port", &call.name, |item| &item.name)?))
}

pub(crate) fn change_port(operation: &Operation, call: &Call) -> Result<Answer> {
    let PortPatch { rate, flood, storm, ecn, impair } = read_with_ecn(call)?;
    let ecn = ecn.map(Option::unwrap_or_default);
    let change = PortChange { name: call.name.clone(), rate, flood, storm, ecn, impair };
    operation.change(&Command::SetPort(change))?;
    port(operation, call)
}

pub(crate) fn rings(operation: &Operation, _: &Call) -> Result<Answer> {
    Ok(Answer::json(&all_rings(operation)?))
}

pub(crate) fn ring(operation: &Operation, call: &Call) -> Result<Answer> {
    Ok(Answer::json(&one(all_rings(operation)?, "ring", &call.name, |item| &item.name)?))
}

pub(crate) fn add_ring(operation: &Operation, call: &Call) -> Result<Answer> {
    let spec: RingSpec = read_with_ecn(call)?;
    let name = spec.name.clone();
    operation.change(&Command::AddRing(spec))?;
    let item = one(all_rings(operation)?, "ring", &name, |item| &item.name)?;
    Ok(Answer::with(StatusCode::CREATED, &item))
}

pub(crate) fn change_ring(operation: &Operation, call: &Call) -> Result<Answer> {
    let patch: RingPatch = read_with_ecn(call)?;
    let mut spec = operation
        .config()?
        .ring
        .into_iter()
        .find(|ring| ring.name == call.name)
        .ok_or_else(|| Refusal::unknown("ring", &call.name))?;
    let RingPatch { frames, bytes, rate, burst, priority, ecn, alarm } = patch;
    spec.frames = frames.unwrap_or(spec.frames);
    spec.bytes = bytes.unwrap_or(spec.bytes);
    spec.rate = rate.unwrap_or(spec.rate);
    spec.burst = burst.unwrap_or(spec.burst);
    spec.priority = priority.unwrap_or(spec.priority);
    spec.ecn = ecn.map_or(spec.ecn, Option::unwrap_or_default);
    spec.alarm = alarm.unwrap_or(spec.alarm);
    operation.change(&Command::SetRing(spec))?;
    ring(operation, call)
}

pub(crate) fn remove_ring(operation: &Operation, call: &Call) -> Result<Answer> {
    operation.change(&Command::RemoveRing { name: call.name.clone() })?;
    Ok(Answer::Done)
}

pub(crate) fn rules(operation: &Operation, _: &Call) -> Result<Answer> {
    Ok(Answer::json(&all_rules(operation)?))
}

pub(crate) fn rule(operation: &Operation, call: &Call) -> Result<Answer> {
    Ok(Answer::json(&one(all_rules(operation)?, "rule", &call.name, |item| &item.name)?))
}

pub(crate) fn add_rule(operation: &Operation, call: &Call) -> Result<Answer> {
    let spec: RuleSpec = read(call)?;
    let name = spec.name.clone();
    operation.change(&Command::AddRule(spec))?;
    let item = one(all_rules(operation)?, "rule", &name, |item| &item.name)?;
    Ok(Answer::with(StatusCode::CREATED, &item))
}

pub(crate) fn remove_rule(operation: &Operation, call: &Call) -> Result<Answer> {
    operation.change(&Command::RemoveRule { name: call.name.clone() })?;
    Ok(Answer::Done)
}

pub(crate) fn stations(operation: &Operation, call: &Call) -> Result<Answer> {
    let snapshot = operation.snapshot(true)?;
    let Some(name) = call.query.text("port") else { return Ok(Answer::json(&snapshot.stations)) };
    let port = snapshot.ports.iter().find(|port| port.name == name);
    let number = port.ok_or_else(|| Refusal::unknown("port", name))?.number;
    let mine: Vec<_> = snapshot.stations.iter().filter(|station| station.port == number).collect();
    Ok(Answer::json(&mine))
}

pub(crate) fn add_station(operation: &Operation, call: &Call) -> Result<Answer> {
    let spec: StationSpec = read(call)?;
    operation.change(&Command::AddStation(spec))?;
    Ok(Answer::Done)
}

pub(crate) fn flush_stations(operation: &Operation, call: &Call) -> Result<Answer> {
    let port = call.query.text("port").map(str::to_owned);
    operation.change(&Command::FlushStations { port })?;
    Ok(Answer::Done)
}

pub(crate) fn remove_station(operation: &Operation, call: &Call) -> Result<Answer> {
    let mac =
        Mac::from_str(&call.name).map_err(|error| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error))?;
    let vlan = u16::try_from(call.query.number("vlan")).ok().and_then(Vlan::new);
    operation.change(&Command::RemoveStation { mac, vlan })?;
    Ok(Answer::Done)
}

pub(crate) fn reset_marks(operation: &Operation, _: &Call) -> Result<Answer> {
    operation.change(&Command::ResetMarks)?;
    Ok(Answer::Done)
}

pub(crate) fn capture(operation: &Operation, call: &Call) -> Result<Answer> {
    let snapshot = operation.snapshot(false)?;
    let point = match (call.query.text("port"), call.query.text("ring")) {
        (Some(port), None) if snapshot.ports.iter().any(|p| p.name == port) => {
            CapturePoint::Port(port.to_owned())
        }
        (None, Some(ring)) if snapshot.rings.iter().any(|r| r.name == ring) => {
            CapturePoint::Ring(ring.to_owned())
        }
        (Some(port), None) => return Err(Refusal::unknown("port", port)),
        (None, Some(ring)) => return Err(Refusal::unknown("ring", ring)),
        (None, None) | (Some(_), Some(_)) => {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "name a port or a ring, one of them"));
        }
    };
    let spec = CaptureSpec {
        point,
        seconds: call.query.number("seconds"),
        bytes: call.query.number("bytes"),
        snap: call.query.number("snap"),
    };
    match operation.captures().start(spec) {
        Ok(stream) => Ok(Answer::Capture(stream)),
        Err(error) => Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, error)),
    }
}
