//! The page of an advice. Each part has a table, and each line of a table an answer and a link to the page of its simulations.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;

use super::format::typeset;
use super::markup::escape;
use super::{STYLE, SWEEP_PAGE, ranked};
use crate::ScenarioName;

/// The parts of an advice in the order of its page: their keys in the JSON and their titles.
pub const ADVICE_PARTS: [(&str, &str); 5] = [
    ("buffers", "Smallest buffers (each with all other buffers large)"),
    ("laboratory", "Buffers with the error that the laboratory shows"),
    ("ranges", "Ranges that work (mean within 10 % of the best)"),
    ("techniques", "Techniques (settings of `fanin compare --list`)"),
    ("gear", "Switches of the catalogue at the collectors, the least costly kind first"),
];

/// The head of an advice.
#[derive(Deserialize)]
struct AdviceHead {
    scenario: ScenarioName,
    #[serde(rename = "subject")]
    constraints: Vec<String>,
    /// Sentences on why figures of some simulations say little.
    #[serde(default)]
    cautions: Vec<String>,
}

/// The key of the part that the page draws as a picture.
const TECHNIQUES: &str = "techniques";

/// A part of an advice.
struct AdvicePagePart {
    /// The part's key in the JSON.
    key: &'static str,
    /// Heading of its table.
    title: String,
    /// Lines of its table.
    lines: Vec<AdvicePageLine>,
}

/// A line of an advice.
#[derive(Default, Deserialize)]
struct AdvicePageLine {
    /// Name of the judged buffer, setting, technique or switch.
    name: String,
    /// The answer in words.
    answer: String,
    /// Needs, cost and sources of the line's subject; sources are in square brackets.
    #[serde(default)]
    about: String,
    /// True if the line's subject meets the constraints; absent if it was not simulated.
    #[serde(rename = "meets")]
    is_met: Option<bool>,
    /// The folder of its simulations, relative to the advice.
    folder: Option<String>,
    /// The search for the line's subject, with the figures of its best point.
    #[serde(default)]
    search: Value,
}

/// Makes the page of an advice from its JSON: a complete HTML document that is well-formed XML too.
///
/// # Errors
/// If the JSON lacks a key that each advice has.
pub fn advice_page(advice: &Value) -> Result<String, serde_json::Error> {
    let head = AdviceHead::deserialize(advice)?;
    let mut parts = Vec::new();
    for (key, title) in ADVICE_PARTS {
        if let Some(lines) = advice.get(key) {
            parts.push(AdvicePagePart {
                key,
                title: title.replace('`', ""),
                lines: Vec::deserialize(lines)?,
            });
        }
    }
    Ok(page(&head, &parts))
}

fn page(AdviceHead { scenario, constraints, cautions }: &AdviceHead, parts: &[AdvicePagePart]) -> String {
    let name = escape(&scenario.name);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{name} · advice</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main class=\"several\">\n\
         <header>\n<p class=\"kind\">Fanin advice</p>\n<h1><bdi>{name}</bdi></h1>\n<div class=\"verdict open\">\n"
    );
    let constraints = escape(&constraints.join(", "));
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<p><strong>Each of these meets {constraints}:</strong></p>");
    for part in parts {
        let judged = part.lines.iter().filter(|line| line.is_met.is_some()).count();
        if judged > 0 {
            let title = part.title.split([',', '(']).next().unwrap_or_default().trim_end();
            let _ = writeln!(out, "<p>{}: {}.</p>", escape(title), answers(part, judged));
        }
    }
    out.push_str("</div>\n");
    for caution in cautions {
        let _ = writeln!(out, "<p class=\"note\">Some simulations: {}.</p>", escape(caution));
    }
    out.push_str("</header>\n");
    let techniques = parts.iter().filter(|part| part.key == TECHNIQUES).flat_map(|part| &part.lines);
    if let Some(drawing) = ranked::draw(techniques.map(|line| (&*line.name, &line.search))) {
        let _ = writeln!(out, "<section class=\"charts\">\n{drawing}</section>");
    }
    for part in parts {
        let title = escape(&part.title);
        let _ = writeln!(
            out,
            "<section>\n<h2>{title}</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\">\n\
             <table class=\"advised\">\n<thead><tr><th scope=\"col\">Part</th><th scope=\"col\">Answer</th></tr></thead>\n<tbody>"
        );
        for line in &part.lines {
            let class = line.is_met.map_or("open", |is_met| if is_met { "good" } else { "bad" });
            let name = escape(&typeset(&line.name));
            let name = line.folder.as_ref().map_or_else(
                || format!("<bdi>{name}</bdi>"),
                |folder| format!("<a href=\"{}/{SWEEP_PAGE}\"><bdi>{name}</bdi></a>", escape(folder)),
            );
            let about = if line.about.is_empty() {
                String::new()
            } else {
                format!("<small>{}</small>", with_links(&typeset(&line.about)))
            };
            let _ = writeln!(
                out,
                "<tr class=\"{class}\"><th scope=\"row\">{name}</th><td><span class=\"says\">{}</span>{about}</td></tr>",
                with_code(&typeset(&line.answer))
            );
        }
        out.push_str("</tbody>\n</table>\n</div>\n</section>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Lines that the head of the page names. The table has all lines.
const NAMES_MAX: usize = 6;

/// Names the lines of a part that meet the constraints, each with its value if the answer has one. `judged` is the number of
/// judged lines.
fn answers(part: &AdvicePagePart, judged: usize) -> String {
    let met: Vec<&AdvicePageLine> = part.lines.iter().filter(|line| line.is_met == Some(true)).collect();
    if met.is_empty() {
        return format!("none of {judged}");
    }
    let names = met.iter().take(NAMES_MAX).map(|line| {
        let value = [" is enough", ", best "].iter().find_map(|end| Some(line.answer.split_once(end)?.0));
        let value = value.map_or_else(String::new, |value| format!(" {}", escape(&typeset(value))));
        format!("<bdi>{}</bdi>{value}", escape(&typeset(&line.name)))
    });
    let names = names.collect::<Vec<_>>().join("; ");
    match met.len().saturating_sub(NAMES_MAX) {
        0 => names,
        more => format!("{names}; and {more} more of {judged}"),
    }
}

/// Writes text as markup, with words between backticks as code.
fn with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without a partner is kept.
    let is_paired = parts.len() % 2 == 1;
    let mut out = String::new();
    for (place, part) in parts.iter().enumerate() {
        let _ = match (place % 2 == 1, is_paired) {
            (true, true) => write!(out, "<code>{}</code>", escape(part)),
            (_, false) if place > 0 => write!(out, "`{}", escape(part)),
            _ => write!(out, "{}", escape(part)),
        };
    }
    out
}

/// Writes text as markup. Words between backticks are code. An address in square brackets becomes a link that shows its host.
fn with_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(&with_code(before));
        let Some((source, after)) = after.split_once(']') else {
            rest = after;
            out.push('[');
            break;
        };
        match source.strip_prefix("https://") {
            Some(place) => {
                let host = place.split('/').next().unwrap_or(place);
                let _ = write!(out, "[<a href=\"{}\">{}</a>]", escape(source), escape(host));
            }
            None => {
                let _ = write!(out, "[{}]", escape(source));
            }
        }
        rest = after;
    }
    out + &with_code(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_links_to_its_simulations_and_its_sources() {
        let page = advice_page(&serde_json::json!({
            "scenario": { "name": "incast", "hash": "" },
            "subject": ["drops=0"],
            "cautions": ["The run is short"],
            "buffers": [{ "name": "tor.buffer", "answer": "4096 kB is enough, 3.8 MB is not", "meets": true }],
            "techniques": [
                {
                    "name": "static <2>",
                    "answer": "yes: drops 0",
                    "about": "9 MB [https://example.org/a?b=1&c]; cost: none [docs/switch.md]",
                    "meets": true,
                    "folder": "techniques-static",
                },
                { "name": "credits", "answer": "" },
            ],
        }))
        .unwrap();
        for text in [
            "<p>Smallest buffers: <bdi>tor.buffer</bdi> 4096 kB.</p>",
            "<p>Techniques: <bdi>static &lt;2&gt;</bdi>.</p>",
            "<p class=\"note\">Some simulations: The run is short.</p>",
            "<a href=\"techniques-static/index.html\"><bdi>static &lt;2&gt;</bdi></a>",
            "[<a href=\"https://example.org/a?b=1&amp;c\">example.org</a>]; cost: none [docs/switch.md]",
            "<tr class=\"open\"><th scope=\"row\"><bdi>credits</bdi></th>",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }

    #[test]
    fn techniques_are_drawn_the_fastest_first() {
        let line = |name: &str, slowdown: f64, drops: u64| {
            let figures = serde_json::json!({
                "slowdown_mean": { "mean": slowdown, "low": slowdown - 0.1, "high": slowdown + 0.1 },
                "drops": { "mean": drops }
            });
            serde_json::json!({ "name": name, "answer": "yes", "meets": drops == 0, "search": { "best": { "figures": figures } } })
        };
        let advice = |techniques: &[Value]| {
            let head = serde_json::json!({ "name": "incast", "hash": "" });
            advice_page(
                &serde_json::json!({ "scenario": head, "subject": ["drops=0"], "techniques": techniques }),
            )
            .unwrap()
        };
        let page = advice(&[
            line("none", 9.8, 1234),
            line("static", 1.05, 0),
            serde_json::json!({ "name": "x", "answer": "" }),
        ]);
        let figure = &page[page.find("<figure").unwrap()..page.find("</figure>").unwrap()];
        assert!(figure.find(">static<").unwrap() < figure.find(">none<").unwrap(), "{figure}");
        assert!(figure.contains(">1234 dropped<"), "{figure}");
        assert_eq!(figure.matches("class=\"interval\"").count(), 4, "two sheets of two techniques");
        assert!(!advice(&[line("none", 9.8, 1)]).contains("<figure"), "one is no comparison");
    }

    #[test]
    fn words_between_backticks_are_code() {
        assert_eq!(with_links("set `a<b` [docs/x.md]"), "set <code>a&lt;b</code> [docs/x.md]");
        assert_eq!(with_code("5` tall"), "5` tall");
    }

    #[test]
    fn a_bracket_that_is_never_closed_stays() {
        assert_eq!(with_links("a [b <c>"), "a [b &lt;c&gt;");
    }
}
