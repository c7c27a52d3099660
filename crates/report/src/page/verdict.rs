//! The sentence at the head of the page.

use serde_json::Value;

use super::format::FigureForm;
use super::markup::{escape, figure, pointer_part, ratio};
use crate::{LateCause, PlanVerdict, ResultKind, Summary};

/// With more results, the verdicts are in a table.
pub(super) const VERDICTS_MAX: usize = 4;

/// Outcome of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Good,
    Bad,
    Open,
}

impl Standing {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Open => "open",
        }
    }
}

/// A verdict in a few words, and the figures of the verdict as markup.
pub(crate) struct PageVerdict {
    pub(crate) standing: Standing,
    pub(crate) words: &'static str,
    pub(crate) sentence: String,
    /// Losses that a plan expects, as markup; `None` for a simulation or measurement.
    pub(crate) badge: Option<String>,
}

impl PageVerdict {
    /// Returns the words up to the first colon or comma, for a table.
    pub(crate) fn short(&self) -> &'static str {
        self.words.split([':', ',']).next().unwrap_or(self.words)
    }
}

/// Judges one result; `at` is the pointer of its summary in the page's data.
pub(crate) fn verdict(summary: &Summary, data: &Value, at: &str) -> PageVerdict {
    let planned = summary.plan.as_ref().filter(|_| summary.kind == ResultKind::Plan);
    if let Some(verdict) = planned.and_then(|plan| plan.verdict.as_ref()) {
        let (standing, words) = match verdict.outcome.as_str() {
            "depends" => (Standing::Open, "It depends"),
            "fits" | "unlimited" if verdict.losses.as_deref() == Some("depends") => {
                (Standing::Open, "It depends")
            }
            "fits" if verdict.losses.as_deref() == Some("in-share") => (Standing::Open, "Large events lose"),
            "fits" | "unlimited" => (Standing::Good, "Lossless"),
            "holds-back" => (Standing::Open, "Lossless by stopping senders"),
            "may-lose" => (Standing::Open, "At risk"),
            "loses" if verdict.losses.as_deref() == Some("depends") => (Standing::Bad, "Incast is likely"),
            "loses" => (Standing::Bad, "Incast"),
            _ => (Standing::Open, "No verdict"),
        };
        let sentence =
            figure(data, &format!("{at}/plan/verdict/text"), FigureForm::Sentence).unwrap_or_default();
        let badge = badge(verdict, data, at);
        return PageVerdict { standing, words, sentence, badge };
    }
    if let Some(why) = invalid(summary, data, at) {
        return PageVerdict { standing: Standing::Bad, words: "Invalid", sentence: why, badge: None };
    }
    let (standing, words) = headline(summary);
    PageVerdict { standing, words, sentence: sentence(summary, data, at), badge: None }
}

/// Writes the losses that a plan expects: never, in a share of the events, always, or depending, within a bracket.
fn badge(verdict: &PlanVerdict, data: &Value, at: &str) -> Option<String> {
    let get = |key: &str, form| figure(data, &format!("{at}/plan/verdict/{key}"), form);
    let words = match verdict.losses.as_deref()? {
        "never" => "drops frames: never".to_owned(),
        "always" => "drops frames: always".to_owned(),
        "in-share" => format!("drops frames in {} of the events", get("losing_share", FigureForm::Share)?),
        _ => {
            let share = |key: &str| get(&format!("bracket/losing_share_{key}"), FigureForm::Share);
            let bytes = |key: &str| get(&format!("bracket/{key}"), FigureForm::Bytes);
            match (share("min").zip(share("max")), bytes("waiting_bytes_min"), bytes("waiting_bytes_max")) {
                (Some((least, most)), ..) => {
                    format!("drops frames: depends, in {least} to {most} of the events")
                }
                (None, Some(least), Some(most)) => {
                    let fits = bytes("fits_bytes")?;
                    format!("drops frames: depends, {least} to {most} wait, {fits} fit")
                }
                _ => "drops frames: depends".to_owned(),
            }
        }
    };
    Some(words)
}

/// Returns the reason why a measurement is invalid, as markup; `None` for a valid one.
fn invalid(summary: &Summary, data: &Value, at: &str) -> Option<String> {
    let reason = summary.invalid()?;
    Some(
        figure(data, &format!("{at}/machine/reason"), FigureForm::Sentence).unwrap_or_else(|| escape(reason)),
    )
}

pub(super) fn headline(summary: &Summary) -> (Standing, &'static str) {
    let network = summary.network.as_ref();
    let drops = network.and_then(|network| network.drops);
    let timeouts = summary.tcp.as_ref().and_then(|tcp| tcp.timeouts);
    let probes = summary.tcp.as_ref().and_then(|tcp| tcp.tail_loss_probes);
    let events = summary.events.as_ref();
    let above = |count: Option<u64>| count.is_some_and(|count| count > 0);
    // The first row that applies is the verdict.
    let rows = [
        (above(events.map(|events| events.lost)), Standing::Bad, "Events are lost"),
        (above(events.map(|events| events.duplicated)), Standing::Bad, "Events are collected twice"),
        (
            above(drops) && above(timeouts),
            Standing::Bad,
            "Incast: frames are dropped and connections time out",
        ),
        (
            above(drops) && above(probes),
            Standing::Bad,
            "Frames are dropped, and senders wait to probe for the last of a burst",
        ),
        (
            is_overloaded_by(summary, "losses") && summary.collapsed_in_warmup(),
            Standing::Bad,
            "Frames dropped in the warm-up hold up the measured time",
        ),
        (
            summary.overload.is_some(),
            Standing::Bad,
            "Too many events: the system does not keep up with supervisor.rate",
        ),
        (above(drops), Standing::Bad, "Frames are dropped, and recovered without a timeout"),
        (above(timeouts), Standing::Bad, "Connections time out, though no frame was dropped"),
        (
            drops == Some(0) && credit_wait(summary).is_some(),
            Standing::Open,
            "Lossless, but events wait for credits",
        ),
        (drops == Some(0) && is_slow(summary), Standing::Open, "Slow, though no frame is dropped"),
        (drops == Some(0), Standing::Good, "Lossless"),
    ];
    rows.into_iter()
        .find(|(applies, ..)| *applies)
        .map_or((Standing::Open, "No verdict"), |(_, standing, words)| (standing, words))
}

/// Requests are slow if their mean time is above this multiple of the ideal.
const SLOW: f64 = 3.0;

/// Returns true if the requests of a closed loop take more than [`SLOW`] times the ideal. No other request delays them.
fn is_slow(summary: &Summary) -> bool {
    let times = summary.requests.as_ref().and_then(|requests| requests.time_ms.as_ref());
    times.is_some_and(|times| times.ideal.is_some_and(|ideal| times.mean > SLOW * ideal))
}

fn is_overloaded_by(summary: &Summary, cause: &str) -> bool {
    summary.overload.as_ref().and_then(|overload| overload.cause.as_deref()) == Some(cause)
}

/// Returns the index of the credit wait among the causes of the slowest event, if it is the longest cause.
fn credit_wait(summary: &Summary) -> Option<usize> {
    let chain = &summary.late.as_ref()?.chain;
    let time = |cause: &LateCause| cause.time_ms.unwrap_or(0.0);
    let longest = (0..chain.len()).max_by(|&a, &b| time(&chain[a]).total_cmp(&time(&chain[b])))?;
    (chain[longest].kind == "credit-wait" && time(&chain[longest]) > 0.0).then_some(longest)
}

fn sentence(summary: &Summary, data: &Value, at: &str) -> String {
    let get = |key: &str, form| figure(data, &format!("{at}{key}"), form);
    let times =
        if summary.collection_time_ms.is_some() { "/collection_time_ms" } else { "/requests/time_ms" };
    let subject = if summary.collection_time_ms.is_some() { "An event" } else { "A request" };
    let mut parts = Vec::new();
    if let Some(mean) = get(&format!("{times}/mean"), FigureForm::Millis) {
        let own = get("/slowdown/mean", FigureForm::Factor).filter(|_| summary.events.is_some());
        let own = own.map(|over| format!(", {over} its own ideal"));
        let of_all =
            ratio(data, &format!("{at}{times}/mean"), &format!("{at}{times}/ideal"), FigureForm::Factor);
        let over = own.or(of_all.map(|over| format!(", {over} the ideal"))).unwrap_or_default();
        parts.push(format!("{subject} takes {mean} on average{over}."));
    }
    if let Some(p99) = get(&format!("{times}/p99"), FigureForm::Millis).filter(|_| summary.has_p99()) {
        parts.push(format!("One in a hundred takes longer than {p99}."));
    }
    let drops = get("/network/drops", FigureForm::Number);
    let timeouts = get("/tcp/timeouts", FigureForm::Number);
    match (drops, timeouts) {
        (Some(drops), Some(timeouts)) => {
            parts.push(format!("Frames dropped: {drops}; retransmission timeouts: {timeouts}."));
        }
        (Some(drops), None) => parts.push(format!("Frames dropped: {drops}.")),
        (None, Some(timeouts)) => parts.push(format!("Retransmission timeouts: {timeouts}.")),
        (None, None) => {}
    }
    let has_probes =
        summary.tcp.as_ref().and_then(|tcp| tcp.tail_loss_probes).is_some_and(|probes| probes > 0);
    if let Some(probes) = get("/tcp/tail_loss_probes", FigureForm::Number).filter(|_| has_probes) {
        parts.push(format!("Tail loss probes: {probes}; one may wait as long as a timeout."));
    }
    if let Some(place) = credit_wait(summary)
        && let Some(wait) = get(&format!("/late/chain/{place}/time_ms"), FigureForm::Millis)
        && let Some(time) = get("/late/time_ms", FigureForm::Millis)
    {
        parts.push(format!("The slowest event waited {wait} of its {time} for credits."));
    }
    parts.join(" ")
}

/// The figures of one technique.
pub(crate) struct TechniqueFigures {
    /// Heading, as markup.
    pub(crate) title: String,
    /// Label as markup, JSON pointer within the summary, and form.
    pub(crate) rows: Vec<(String, String, FigureForm)>,
}

/// Returns the figures of the techniques that have their own keys in the summary.
pub(crate) fn techniques(summary: &Summary) -> Vec<TechniqueFigures> {
    let scalar = |value: &Value| value.is_number() || value.is_boolean() || value.is_string();
    // Markup cannot hold control characters, so a key with one cannot be referred to.
    let plain = |key: &str| !key.chars().any(char::is_control);
    summary
        .techniques
        .iter()
        .filter(|(key, _)| plain(key))
        .filter_map(|(key, value)| {
            let rows: Vec<_> = value
                .as_object()?
                .iter()
                .filter(|(name, value)| plain(name) && scalar(value))
                .map(|(name, value)| {
                    let (form, label) = FigureForm::of_key(name);
                    let form = if value.is_string() { FigureForm::Text } else { form };
                    let pointer = format!("/{}/{}", pointer_part(key), pointer_part(name));
                    (escape(&label), pointer, form)
                })
                .collect();
            (!rows.is_empty()).then(|| TechniqueFigures { title: escape(&super::format::words(key)), rows })
        })
        .collect()
}
