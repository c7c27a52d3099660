//! The sentence at the head of the page.

use serde_json::Value;

use super::format::FigureForm;
use super::markup::{escape, figure, pointer_part, ratio};
use crate::{ResultKind, Summary};

/// How a result came out.
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

/// A few words, and the figures behind them as markup.
pub(crate) struct PageVerdict {
    pub(crate) standing: Standing,
    pub(crate) words: &'static str,
    pub(crate) sentence: String,
}

impl PageVerdict {
    /// The words up to the first colon or comma, for a table.
    pub(crate) fn short(&self) -> &'static str {
        self.words.split([':', ',']).next().unwrap_or(self.words)
    }
}

/// Judges one result; `at` is the pointer of its summary in the page's data.
pub(crate) fn verdict(summary: &Summary, data: &Value, at: &str) -> PageVerdict {
    let planned = summary.plan.as_ref().filter(|_| summary.kind == ResultKind::Plan);
    if let Some(verdict) = planned.and_then(|plan| plan.verdict.as_ref()) {
        let (standing, words) = match verdict.outcome.as_str() {
            "fits" | "unlimited" => (Standing::Good, "Lossless"),
            "holds-back" => (Standing::Open, "Lossless by stopping senders"),
            "may-lose" => (Standing::Open, "At risk"),
            "loses" => (Standing::Bad, "Incast"),
            _ => (Standing::Open, "No verdict"),
        };
        let sentence =
            figure(data, &format!("{at}/plan/verdict/text"), FigureForm::Sentence).unwrap_or_default();
        return PageVerdict { standing, words, sentence };
    }
    if let Some(why) = invalid(summary, data, at) {
        return PageVerdict { standing: Standing::Bad, words: "Invalid", sentence: why };
    }
    let (standing, words) = headline(summary);
    PageVerdict { standing, words, sentence: sentence(summary, data, at) }
}

/// Why a measurement marks itself invalid.
fn invalid(summary: &Summary, data: &Value, at: &str) -> Option<String> {
    let fallback = escape(summary.invalid()?);
    let marked = |value: &Value| value.get("valid").and_then(Value::as_bool) == Some(false);
    let (key, _) = summary.techniques.iter().find(|(_, value)| marked(value))?;
    let why = figure(data, &format!("{at}/{}/why", pointer_part(key)), FigureForm::Sentence);
    Some(why.unwrap_or(fallback))
}

fn headline(summary: &Summary) -> (Standing, &'static str) {
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
        (above(drops), Standing::Bad, "Frames are dropped, and recovered without a time-out"),
        (above(timeouts), Standing::Bad, "Connections time out, though no frame was dropped"),
        (drops == Some(0), Standing::Good, "Lossless"),
    ];
    rows.into_iter()
        .find(|(applies, ..)| *applies)
        .map_or((Standing::Open, "No verdict"), |(_, standing, words)| (standing, words))
}

fn sentence(summary: &Summary, data: &Value, at: &str) -> String {
    let get = |key: &str, form| figure(data, &format!("{at}{key}"), form);
    let times =
        if summary.collection_time_ms.is_some() { "/collection_time_ms" } else { "/requests/time_ms" };
    let what = if summary.collection_time_ms.is_some() { "An event" } else { "A request" };
    let mut parts = Vec::new();
    if let Some(mean) = get(&format!("{times}/mean"), FigureForm::Millis) {
        let over =
            ratio(data, &format!("{at}{times}/mean"), &format!("{at}{times}/ideal"), FigureForm::Factor)
                .map(|ratio| format!(", {ratio} the ideal"))
                .unwrap_or_default();
        parts.push(format!("{what} takes {mean} on average{over}."));
    }
    if let Some(p99) = get(&format!("{times}/p99"), FigureForm::Millis).filter(|_| summary.has_p99()) {
        parts.push(format!("One in a hundred takes longer than {p99}."));
    }
    let drops = get("/network/drops", FigureForm::Number);
    let timeouts = get("/tcp/timeouts", FigureForm::Number);
    match (drops, timeouts) {
        (Some(drops), Some(timeouts)) => {
            parts.push(format!("Frames dropped: {drops}; retransmission time-outs: {timeouts}."));
        }
        (Some(drops), None) => parts.push(format!("Frames dropped: {drops}.")),
        (None, Some(timeouts)) => parts.push(format!("Retransmission time-outs: {timeouts}.")),
        (None, None) => {}
    }
    let has_probes =
        summary.tcp.as_ref().and_then(|tcp| tcp.tail_loss_probes).is_some_and(|probes| probes > 0);
    if let Some(probes) = get("/tcp/tail_loss_probes", FigureForm::Number).filter(|_| has_probes) {
        parts.push(format!("Tail loss probes: {probes}; one may wait as long as a time-out."));
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

/// The figures of techniques that have keys of their own.
pub(crate) fn techniques(summary: &Summary) -> Vec<TechniqueFigures> {
    let scalar = |value: &Value| value.is_number() || value.is_boolean() || value.is_string();
    // A key that markup cannot repeat cannot be pointed at either.
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
