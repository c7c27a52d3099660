//! Pages of several results, of claims, and of plans with a badge.

use super::*;
use crate::PlanBracket;

#[test]
fn a_plan_has_a_badge_for_how_often_it_loses() {
    let badge = |losses: &str, share: Option<f64>, bracket: Option<PlanBracket>| {
        let mut plan = planned();
        let verdict = plan.summary.plan.as_mut().unwrap().verdict.as_mut().unwrap();
        verdict.losses = Some(losses.into());
        (verdict.losing_share, verdict.bracket) = (share, bracket);
        let html = page(&[plan]);
        let document = parsed(&html);
        let badge = document.descendants().find(|node| node.attribute("class") == Some("badge")).unwrap();
        badge
            .descendants()
            .filter_map(|node| node.text().filter(|_| node.is_text()))
            .collect::<String>()
            .replace('\u{a0}', " ")
    };
    assert_eq!(badge("never", Some(0.0), None), "drops frames: never");
    assert_eq!(badge("always", Some(1.0), None), "drops frames: always");
    assert_eq!(badge("in-share", Some(0.031), None), "drops frames in 3.1 % of the events");
    let shares =
        PlanBracket { losing_share_min: Some(0.0), losing_share_max: Some(0.25), ..PlanBracket::default() };
    assert_eq!(
        badge("depends", None, Some(shares)),
        "drops frames: depends, in 0.0 % to 25.0 % of the events"
    );
    let bytes = PlanBracket {
        waiting_bytes_min: 2000,
        waiting_bytes_max: Some(4000),
        fits_bytes: 3000,
        ..PlanBracket::default()
    };
    assert_eq!(badge("depends", None, Some(bytes)), "drops frames: depends, 2 kB to 4 kB wait, 3 kB fit");
}

#[test]
fn a_queue_of_a_plan_says_how_often_it_loses() {
    let said = |losses: &str, share: Option<f64>, expected: Option<f64>| {
        let mut plan = planned();
        let queue = &mut plan.summary.plan.as_mut().unwrap().queues[0];
        queue.outcome = "loses".into();
        (queue.losses, queue.overflow_share) = (Some(losses.into()), share);
        queue.bracket = Some(PlanBracket { losing_share_expected: expected, ..PlanBracket::default() });
        let html = page(&[plan]);
        let document = parsed(&html);
        let cell =
            document.descendants().find(|node| node.attribute("data-label") == Some("Verdict")).unwrap();
        cell.descendants()
            .filter_map(|node| node.text().filter(|_| node.is_text()))
            .collect::<String>()
            .replace('\u{a0}', " ")
    };
    assert_eq!(said("always", Some(1.0), None), "always");
    assert_eq!(said("in-share", Some(0.031), None), "in 3.1 %");
    assert_eq!(said("depends", None, Some(0.0)), "expected never");
    assert_eq!(said("depends", None, Some(0.25)), "expected in 25.0 %");
    assert_eq!(said("depends", None, None), "depends");
}

#[test]
fn few_events_have_no_p99_and_a_barrier_no_readouts() {
    let shown = |events: u64, more: &str| {
        let mut result = run_result(ResultKind::Sim, "a", 3);
        result.summary.events.as_mut().unwrap().collected = events;
        result.scenario_toml = Some(format!("[readout]\nhosts = 160\n[workload]\nsenders = 3\n{more}"));
        let html = page(&[result]);
        let key = |name: &str| html.contains(&format!("data-key=\"/results/0/{name}\""));
        [
            key("summary/collection_time_ms/p99"),
            key("summary/collection_time_ms/p999"),
            key("settings/readout.hosts"),
            key("settings/workload.senders"),
        ]
    };
    assert_eq!(shown(99, "kind = 'event-building'"), [false, false, true, false]);
    assert_eq!(shown(100, "kind = 'fixed-fragment'"), [true, false, false, true]);
    assert_eq!(shown(1000, ""), [true, true, true, false]);
}

#[test]
fn many_results_have_their_pictures_before_their_table() {
    let many: Vec<RunResult> =
        (0..10).map(|seed| run_result(ResultKind::Sim, &format!("r{seed}"), seed)).collect();
    let html = page(&many);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("of 10 results.</p>") < at("Times of all results"));
    assert!(at("Times of all results") < at("<h2>All results</h2>"));
    // All ten have a line of their own, and a column.
    let document = parsed(&html);
    let lines = |look: usize| {
        let class = format!("line s{look} n{look}");
        document.descendants().filter(|node| node.attribute("class") == Some(&class)).count()
    };
    assert!((0..10).all(|look| lines(look) > 0));
    assert!(!html.contains("of 10 results. The count"));
}

#[test]
fn claims_stand_on_the_page_with_those_that_fail_first() {
    let claim = |id: &str, status: &str| JudgedClaim {
        id: id.into(),
        status: status.into(),
        says: "40 <b>ms</b>".into(),
        ..JudgedClaim::default()
    };
    let html = page_of(
        &[run_result(ResultKind::Sim, "a", 3)],
        &PageWords {
            name: Some("Claims of the papers"),
            claims: &[claim("A1", "holds"), claim("A2", "fails"), claim("A3", "explained")],
            notes: &["pause is not possible: <why>.".to_owned()],
            answer: &["objective: <x>".to_owned(), "best: y".to_owned()],
        },
    );
    assert!(
        html.contains("<p>Objective: &lt;x&gt;.</p>\n<p><strong>Best: y.</strong></p>"),
        "the answer of a search"
    );
    assert!(html.contains("<p class=\"note\">pause is not possible: &lt;why&gt;.</p>"));
    parsed(&html);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("1 of 3 hold, 1 do not for a known reason, 1") < at(">A2<"));
    assert!(at(">A2<") < at(">A3<") && at(">A3<") < at(">A1<"));
    assert!(html.contains("Claims of the papers") && html.contains("40 &lt;b&gt;"));
}

#[test]
fn verdicts_of_several_results_share_a_row_above_the_pictures() {
    let results = [
        run_result(ResultKind::Sim, "collapse", 7),
        run_result(ResultKind::Sim, "credits", 0),
        run_result(ResultKind::Run, "measured", 7),
    ];
    let html = page(&results);
    let document = parsed(&html);
    let row = document.descendants().find(|node| node.attribute("class") == Some("verdicts of-3")).unwrap();
    assert_eq!(row.children().filter(roxmltree::Node::is_element).count(), 3);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    // The measurement's verdict is in the head; its tables are below the pictures.
    assert!(at("verdicts of-3") < at("verdicts of-1") && at("The measurement") < at("<h2>What happened"));
    assert!(at("The queue at ") < at("Is it as predicted?"));
    assert_eq!(html.matches("The measurement is").count(), 1);
}

#[test]
fn an_overload_is_no_lossless_result() {
    let mut result = run_result(ResultKind::Sim, "a", 0);
    assert!(page(&[result.clone()]).contains("<strong>Lossless.</strong>"));
    result.summary.overload =
        Some(crate::Overload { text: "It is <slow>.".into(), ..crate::Overload::default() });
    let html = page(&[result.clone()]);
    assert!(
        html.contains("Too many events: the system does not keep up") && html.contains("It is &lt;slow&gt;.")
    );
    assert!(!html.contains("<strong>Lossless.</strong>"));
    let many: Vec<RunResult> = (0..10).map(|_| result.clone()).collect();
    assert!(page(&many).contains("10 of 10 results: The system does not keep up"));
}
