//! The table: on a terminal, and as a page of the documentation.

use std::fmt::Write;
use std::path::Path;

use fanin_report::{Agreement, ComparedFigure, GOALS, Subject};

use super::baseline::KnownDifference;
use super::case::{JudgedCase, Measurement, build, kernel, today};
use crate::columns::aligned;

/// Returns a claim's figures in a cell: predicted, measured, and the difference.
fn pair(case: &JudgedCase, subject: Subject) -> String {
    let Some(claim) = case.comparison.as_ref().and_then(|comparison| comparison.claim(subject)) else {
        return "–".into();
    };
    let figure = |value: Option<f64>| value.map_or("–".into(), |value| written(subject, value));
    let (predicted, measured) = (figure(claim.predicted), figure(claim.measured));
    let change = ComparedFigure::ratio(claim)
        .filter(|_| subject != Subject::Incast)
        .map_or(String::new(), |ratio| format!(" ({:+.0} %)", (ratio - 1.0) * 100.0));
    let mark = if claim.verdict == Agreement::Differs { " !" } else { "" };
    format!("{predicted} / {measured}{change}{mark}")
}

fn written(subject: Subject, value: f64) -> String {
    match subject {
        Subject::Incast => if value > 0.0 { "yes" } else { "no" }.into(),
        Subject::MeanMs => format!("{value:.2}"),
        Subject::GoodputBps => format!("{:.1}", value / 1e6),
        Subject::QueueBytes => format!("{:.1}", value / 1e3),
    }
}

/// Returns the text of the last column.
fn verdict(case: &JudgedCase) -> String {
    let invalid = case.comparison.as_ref().and_then(|comparison| comparison.invalid.as_deref());
    match (&case.measured, invalid) {
        (Measurement::Missing(why), _) => format!("not measured: {}", why.lines().next().unwrap_or_default()),
        (_, Some(why)) => format!("not measured: {why}"),
        _ if case.agrees() && case.known.is_some() => "agrees, though it is known not to".into(),
        _ if case.agrees() => "agrees".into(),
        _ if case.passes() => "differs, as known".into(),
        _ if case.known.is_some() => "differs beyond its known range".into(),
        _ => "differs".into(),
    }
}

/// Lists cases that disagree, have no measurement, or agree though the baseline says otherwise.
pub(super) fn findings(cases: &[JudgedCase]) -> String {
    let is_missing = |case: &&JudgedCase| !case.measured.is_sound();
    let mut text = String::new();
    let mut list = |title: &str, cases: Vec<&JudgedCase>, say: fn(&JudgedCase) -> String| {
        if !cases.is_empty() {
            let _ = writeln!(text, "\n{title}:");
        }
        for case in cases {
            let _ = writeln!(text, "  {}: {}", case.name, say(case));
        }
    };
    let figures = |case: &JudgedCase| {
        let beyond = SUBJECTS.iter().filter(|(subject, _)| pair(case, *subject).ends_with('!'));
        let figures: Vec<String> =
            beyond.map(|(subject, title)| format!("{title} {}", pair(case, *subject))).collect();
        figures.join("; ").replace(" !", "")
    };
    let differing = |is_known: bool| -> Vec<&JudgedCase> {
        let differs = |case: &&JudgedCase| !case.agrees() && case.passes() == is_known;
        cases.iter().filter(|case| !is_missing(case)).filter(differs).collect()
    };
    list("beyond the goals (predicted / measured)", differing(false), figures);
    list("beyond the goals, as known", differing(true), figures);
    list("without a sound measurement", cases.iter().filter(is_missing).collect(), verdict);
    let mended = |case: &&JudgedCase| case.agrees() && case.known.is_some();
    list("agree: their `known` can go", cases.iter().filter(mended).collect(), |case| {
        case.known.as_ref().map(|known| known.why.clone()).unwrap_or_default()
    });
    text
}

const SUBJECTS: [(Subject, &str); 4] = [
    (Subject::Incast, "incast"),
    (Subject::MeanMs, "mean, ms"),
    (Subject::GoodputBps, "goodput, Mb/s"),
    (Subject::QueueBytes, "queue, kB"),
];

/// Returns the table with aligned columns; `!` marks figures that differ beyond their goals.
pub(super) fn terminal(cases: &[JudgedCase]) -> String {
    let mut rows = vec![Vec::from(["case".to_owned()])];
    rows[0].extend(SUBJECTS.iter().map(|(_, title)| (*title).to_owned()));
    rows[0].push("verdict".into());
    for case in cases {
        let mut row = vec![case.name.clone()];
        row.extend(SUBJECTS.iter().map(|(subject, _)| pair(case, *subject)));
        row.push(verdict(case));
        rows.push(row);
    }
    let mut out = String::new();
    for line in aligned(&rows, |_| false) {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out, "\n{}\n{}", counted(cases), goals(cases).join("\n"));
    out
}

/// Returns the set's figures with its goals, one line each, with `met` or `missed`.
fn goals(cases: &[JudgedCase]) -> Vec<String> {
    let claims = |subject: Subject| -> Vec<&ComparedFigure> {
        let sound = cases.iter().filter(|case| case.measured.is_sound());
        let claims = sound.filter_map(|case| case.comparison.as_ref()?.claim(subject));
        claims.filter(|claim| claim.verdict != Agreement::Open).collect()
    };
    let beyond = |claims: &[&ComparedFigure]| {
        claims.iter().filter(|claim| claim.verdict == Agreement::Differs).count()
    };
    let mut lines = Vec::new();
    let mut add = |is_met: bool, figures: String| {
        lines.push(format!("{figures}: {}", if is_met { "met" } else { "missed" }));
    };
    let incast = claims(Subject::Incast);
    if !incast.is_empty() {
        let (of, agree) = (incast.len(), incast.len() - beyond(&incast));
        let share = agree as f64 / of as f64;
        let (percent, goal) = (100.0 * share, 100.0 * GOALS.incast);
        add(
            share >= GOALS.incast,
            format!("incast or not agrees in {agree} of {of} cases ({percent:.2} %), goal {goal:.0} %"),
        );
    }
    for (subject, name, within) in [
        (Subject::MeanMs, "mean without incast", GOALS.mean),
        (Subject::GoodputBps, "goodput with incast", GOALS.incast_figure),
        (Subject::MeanMs, "mean of event building with incast", GOALS.incast_figure),
    ] {
        let mut claims = claims(subject);
        claims.retain(|claim| claim.within == Some(within));
        let error =
            |claim: &&ComparedFigure| claim.ratio().map_or(f64::INFINITY, |ratio| (ratio - 1.0).abs());
        let mut errors: Vec<f64> = claims.iter().map(error).collect();
        errors.sort_by(f64::total_cmp);
        let Some(median) = errors.get(errors.len() / 2) else { continue };
        let (of, beyond) = (claims.len(), beyond(&claims));
        add(
            beyond == 0,
            format!(
                "{name}: median error {:.1} % of {of} cases, {beyond} beyond the goal of {:.0} %",
                100.0 * median,
                100.0 * within
            ),
        );
    }
    lines
}

/// Returns the ranges of a known difference in words.
fn allowed(known: &KnownDifference) -> String {
    let range = |(subject, title): &(Subject, &str)| {
        let [low, high] = known.ratio.get(subject)?;
        let name = title.split(',').next().unwrap_or_default();
        Some(format!("{name} {low} to {high} of the simulated"))
    };
    format!("Allowed: {}", SUBJECTS.iter().filter_map(range).collect::<Vec<_>>().join(", "))
}

fn counted(cases: &[JudgedCase]) -> String {
    let agree = cases.iter().filter(|case| case.agrees()).count();
    let missing = cases.iter().filter(|case| !case.measured.is_sound()).count();
    let is_known = |case: &&JudgedCase| case.passes() && !case.agrees();
    let known = cases.iter().filter(is_known).count();
    format!(
        "{agree} of {} cases agree, {known} differ as known, {missing} were not measured (simulated / measured)",
        cases.len()
    )
}

/// Returns the page of the documentation; `conditions` is a sentence about the cases and the machine.
pub(super) fn page(cases: &[JudgedCase], folder: &Path, conditions: Option<&str>) -> String {
    let mut days: Vec<String> = Vec::new();
    let mut kernels: Vec<String> = Vec::new();
    let mut builds: Vec<String> = Vec::new();
    let mut add = |date: String, kernel: String, build: Option<String>| {
        days.push(date);
        kernels.push(kernel);
        builds.extend(build);
    };
    for case in cases {
        match &case.measured {
            Measurement::Live(_) => add(today(), kernel(), Some(build())),
            Measurement::Recorded(recorded) => {
                add(recorded.date.clone(), recorded.kernel.clone(), recorded.build.clone());
            }
            Measurement::Missing(_) => {}
        }
    }
    for list in [&mut days, &mut kernels, &mut builds] {
        list.sort();
        list.dedup();
    }
    let mut out = format!(
        "# The simulation compared with this kernel\n\n\
         Written by `fanin validate --markdown`; do not edit. Each case of `{}` is simulated with the\n\
         profile `linux-6` and ten seeds. It is run with real processes on a real kernel at the same rates. The processes are in namespaces\n\
         behind the software switch. Every figure is simulated / measured (measured over simulated); `!` stands at what differs beyond\n\
         its goal.\n\n\
         Goals of a case: both show incast or neither. Without incast the mean is within 10 %, with incast the goodput within 25 %.\n\
         The goodput of event building follows from its rate, so that its mean is held to these 25 %. The deepest queue is within\n\
         15 %. Incast means that full buffers dropped frames, with a mean more than 5 % above\n\
         the ideal. A measurement that was taken while the machine was the bottleneck does not count.\n\n\
         Measured on {}, Linux {}{}{}. {}.{}{}\n\n",
        folder.display(),
        days.join(", "),
        kernels.join(", "),
        if builds.is_empty() { "" } else { ", programs built as " },
        builds.join(", "),
        counted(cases),
        if conditions.is_some() { " " } else { "" },
        conditions.unwrap_or_default(),
    );
    out.push_str("The set and its goals:\n\n");
    for line in goals(cases) {
        let _ = writeln!(out, "- {line}");
    }
    out.push('\n');
    out.push_str("| case | what |");
    for (_, title) in SUBJECTS {
        let _ = write!(out, " {title} |");
    }
    out.push_str(" verdict | headroom |\n|---|---|---|---|---|---|---|---|\n");
    let plain = |text: &str| text.replace('|', "/").replace('\n', " ");
    for case in cases {
        let _ = write!(out, "| {} | {} |", case.name, plain(&case.title));
        for (subject, _) in SUBJECTS {
            let _ = write!(out, " {} |", pair(case, subject));
        }
        let (headroom, rounds) = match &case.measured {
            Measurement::Live(run) => (super::case::headroom(&run.result.summary), run.rounds.clone()),
            Measurement::Recorded(recorded) => (recorded.headroom.clone(), recorded.rounds.clone()),
            Measurement::Missing(_) => (None, None),
        };
        let headroom: Vec<String> = headroom.into_iter().chain(rounds).collect();
        let _ = writeln!(out, " {} | {} |", plain(&verdict(case)), plain(&headroom.join("; ")));
    }
    let known = cases.iter().filter_map(|case| Some((&case.name, case.known.as_ref()?)));
    for (number, (name, known)) in known.enumerate() {
        if number == 0 {
            out.push_str("\n## Known differences\n\n");
        }
        let _ = writeln!(out, "- **{name}**: {} {}.", known.why, allowed(known));
    }
    out
}
