use std::collections::BTreeSet;

use fanin_units::Instant;

use super::format::format_f64;
use super::*;
use crate::{
    Bound, EventOutcome, EventRow, FlowRow, IdealFigures, IoRow, Load, MachineFigures, MeanP99,
    NetworkFigures, PortFigures, QueueRow, Records, ScenarioName, ScheduleTimes, ShapingFigures, Span, Speed,
    Summary, WindowRow, tcp,
};

mod several;

const MS: u64 = 1_000_000_000;

/// Numbers that look random and are always the same (Marsaglia's xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A result with content for every section. `slow` events in a hundred meet a timeout.
fn run_result(kind: ResultKind, label: &str, slow: u64) -> RunResult {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ slow);
    let ideal_ps = 18_290 * MS / 1000;
    let events: Vec<EventRow> = (0..4000)
        .map(|id| {
            let spread = (0..4).map(|_| dice.below(900)).sum::<u64>() * MS / 1000;
            let timeouts = u64::from(dice.below(100) < slow) * (1 + dice.below(3));
            let time = ideal_ps + spread + timeouts * (200 * MS + dice.below(20 * MS));
            EventRow {
                id,
                size_bytes: 2_112_000,
                assigned_ps: id * 2 * MS,
                first_request_ps: Some(id * 2 * MS),
                last_byte_ps: Some(id * 2 * MS + time),
                collection_time_ps: Some(time),
                ideal_ps: Some(ideal_ps),
                timeouts: Some(timeouts),
                collector: (id % 39) as u32,
                outcome: EventOutcome::Collected,
                ..EventRow::default()
            }
        })
        .collect();
    let mut queues = Vec::new();
    for collector in 0..6u64 {
        let mut level = 0i64;
        for step in 0..3000 {
            level = (level + dice.below(60_000) as i64 - 29_000 - collector as i64 * 300).clamp(0, 786_432);
            queues.push(QueueRow {
                queue: format!("tor→collector-{collector}").into(),
                time_ps: step * 3 * MS,
                queue_bytes: level as u64,
                queue_frames: level as u64 / 1538,
                drops: if level == 786_432 { step } else { 0 },
                limit_bytes: Some(786_432),
                ..QueueRow::default()
            });
        }
    }
    let timeouts = events.iter().filter_map(|event| event.timeouts).sum();
    let flows: Vec<FlowRow> = vec![FlowRow {
        flow: 1,
        source: "ros-1".into(),
        destination: "dcm-1".into(),
        segments: 5_783_000,
        retransmits: timeouts * 3,
        timeouts: Some(timeouts),
        ..FlowRow::default()
    }];
    let io: Vec<IoRow> = (0..400)
        .map(|step| IoRow {
            event: 7,
            since_request_ps: step * 45 * MS / 1000,
            to_collector_bytes: step * 5_600,
            from_collector_bytes: 20_000 + step * 140,
        })
        .collect();
    let windows: Vec<WindowRow> = (0..300)
        .map(|step| WindowRow {
            flow: 1,
            time_ps: step * 20 * MS,
            cwnd_bytes: 1460 * (2 + step % 24),
            ..WindowRow::default()
        })
        .collect();
    let scenario = ScenarioName { name: "thesis-a-500hz".into(), hash: "4fe2a81c90d1".into() };
    let mut summary = Summary::new(kind, "0.1.0", scenario);
    summary.seed = Some(1);
    let span = Span { from: Instant::new(1000 * MS), until: Instant::new(8000 * MS) };
    summary.fill_events(&events, span, 39, false);
    summary.tcp = Some(tcp(&flows));
    summary.load = Some(Load { last_hop: Some(0.2312), uplink: Some(0.4513) });
    summary.network = Some(NetworkFigures {
        packets: Some(5_783_000),
        bytes: Some(8_894_000_000),
        drops: Some(timeouts * 4),
        queue_bytes_max: crate::queue_bytes_max(&queues),
        ..NetworkFigures::default()
    });
    summary.ports = vec![PortFigures {
        name: "tor:0->collector:0".into(),
        drops: timeouts * 4,
        dropped_bytes: Some(timeouts * 6000),
        queue_bytes_max: 63_912,
        limit_bytes: Some(64_000),
        utilisation: Some(0.152),
        ..PortFigures::default()
    }];
    summary.shaping = Some(ShapingFigures { credits: Some(480), wait_ms_mean: Some(6.21) });
    summary.speed = Some(Speed { wall_s: Some(3.91), cpu_s: Some(3.72), ..Speed::default() });
    summary.ideal = Some(IdealFigures {
        collection_time_ms: Some(18.29),
        goodput_bps: Some(923.8e6),
        how: Some("2286240 B × 8 / 1 Gb/s = 18.29 ms".into()),
    });
    summary.techniques.insert("m21tcp".into(), json!({ "window_bytes_min": 1460, "answers": 12 }));
    RunResult {
        label: label.into(),
        page: None,
        summary,
        scenario_toml: Some(
            "[readout]\nhosts = 160\nfragments_per_host = 12\nfragment_size = \"1.1 kB\"\n\n[link]\nrate = \"1 Gb/s\"\n\n\
             [supervisor]\nrate = \"500 Hz\"\npolicy = \"fcfs\"\n\n[tor]\nbuffering = \"shared\"\nbuffer = \"786 kB\"\n\n\
             [transport]\ncongestion_control = \"cubic\"\nrto_min = \"200 ms\"\n"
                .into(),
        ),
        records: Records { events, queues, flows, io, windows },
        // A measurement has none: its tables are drawn.
        picture: (kind == ResultKind::Sim)
            .then(|| serde_json::from_str(include_str!("../../tests/golden/picture.json")).unwrap()),
    }
}

/// The planner's result for a thesis rack, with a cost comparison.
fn planned() -> RunResult {
    let text = include_str!("../../tests/golden/plan.json");
    RunResult::new(serde_json::from_str(text).unwrap())
}

/// Pages of every shape. `FANIN_PAGES=DIR cargo test` also writes them there for viewing.
fn pages() -> Vec<(&'static str, Vec<RunResult>, String)> {
    let single = vec![run_result(ResultKind::Sim, "collapse", 7)];
    let pair = vec![run_result(ResultKind::Sim, "simulated", 7), run_result(ResultKind::Run, "measured", 4)];
    let lossless = vec![run_result(ResultKind::Sim, "credits", 0)];
    let three = vec![
        run_result(ResultKind::Sim, "no credits", 9),
        run_result(ResultKind::Sim, "480 credits", 0),
        planned(),
    ];
    [("single", single), ("lossless", lossless), ("pair", pair), ("three", three), ("plan", vec![planned()])]
        .into_iter()
        .map(|(name, results)| {
            let html = page(&results);
            if let Some(directory) = std::env::var_os("FANIN_PAGES") {
                let path = std::path::Path::new(&directory).join(format!("{name}.html"));
                std::fs::write(path, &html).unwrap();
            }
            (name, results, html)
        })
        .collect()
}

fn parsed(html: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(html, options).unwrap()
}

fn data_of(document: &roxmltree::Document<'_>) -> Value {
    let script = document.descendants().find(|node| node.attribute("id") == Some("fanin-data")).unwrap();
    serde_json::from_str(script.text().unwrap()).unwrap()
}

#[test]
fn every_page_is_well_formed_and_small() {
    for (name, _, html) in pages() {
        let document = parsed(&html);
        assert!(html.len() < 1_000_000, "{name} has {} bytes", html.len());
        let mut ids = BTreeSet::new();
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            if let Some(id) = node.attribute("id") {
                assert!(ids.insert(id), "{name}: two elements are called {id}");
            }
            // HTML has no empty-element tag outside SVG: `<p/>` would swallow what follows.
            let empty = html[node.range()].ends_with("/>");
            let allowed = node.tag_name().name() == "meta"
                || node.ancestors().any(|ancestor| ancestor.tag_name().name() == "svg");
            assert!(!empty || allowed, "{name}: {}", &html[node.range()]);
            for label in node.attribute("aria-labelledby").unwrap_or_default().split_whitespace() {
                assert!(html.contains(&format!("id=\"{label}\"")), "{name}: nothing is called {label}");
            }
        }
    }
}

#[test]
fn nothing_is_fetched() {
    for (name, _, html) in pages() {
        for word in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!html.contains(word), "{name} has {word}");
        }
    }
}

#[test]
fn every_figure_shown_is_the_datas() {
    for (name, _, html) in pages() {
        let document = parsed(&html);
        let data = data_of(&document);
        let mut figures = 0;
        for node in document.descendants().filter(|node| node.has_tag_name("data")) {
            let key = node.attribute("data-key").unwrap();
            let (_, form) = FigureForm::ALL
                .map(|(form, name)| (name, form))
                .into_iter()
                .find(|(name, _)| Some(*name) == node.attribute("data-as"))
                .unwrap();
            let value = data.pointer(key).unwrap_or_else(|| panic!("{name}: no {key}"));
            let shown = node.text().unwrap_or_default();
            let expected = match node.attribute("data-over") {
                Some(over) => {
                    let over = data.pointer(over).unwrap().as_f64().unwrap();
                    format_f64(value.as_f64().unwrap() / over, form)
                }
                None => {
                    let raw = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    assert_eq!(node.attribute("value"), Some(raw.as_str()), "{name}: {key}");
                    format::format(value, form).unwrap()
                }
            };
            assert_eq!(shown, expected, "{name}: {key}");
            figures += 1;
        }
        assert!(figures > 5, "{name} shows {figures} figures");
        no_other_figure(name, &document);
    }
}

/// Outside `<data>` a digit stands only in labels, axes, names and the scenario's own text.
fn no_other_figure(name: &str, document: &roxmltree::Document<'_>) {
    let labels = ["data", "th", "dt", "bdi", "pre", "script", "style", "title", "desc", "h1", "h2", "h3"];
    for node in document.descendants().filter(roxmltree::Node::is_text) {
        let text = node.text().unwrap_or_default();
        if !text.chars().any(|character| character.is_ascii_digit()) {
            continue;
        }
        let labelled = node.ancestors().any(|ancestor| {
            labels.contains(&ancestor.tag_name().name())
                || ancestor.has_tag_name("footer")
                || ancestor.attribute("class").is_some_and(|class| ["tick", "note", "kind"].contains(&class))
        });
        assert!(labelled, "{name}: a figure without its place in the data: {text:?}");
    }
}

#[test]
fn an_invalid_measurement_says_why() {
    let mut result = run_result(ResultKind::Run, "busy", 0);
    let reason = "231 frames were lost before the switch saw them";
    result.summary.machine = Some(MachineFigures {
        valid: Some(false),
        reason: Some(reason.to_owned()),
        ..MachineFigures::default()
    });
    let html = page(&[result]);
    assert!(html.contains("Invalid"), "{html}");
    let document = parsed(&html);
    let shown = document
        .descendants()
        .find(|node| node.attribute("data-key") == Some("/results/0/summary/machine/reason"));
    assert_eq!(shown.and_then(|node| node.text()), Some(format!("{reason}.").as_str()));
}

#[test]
fn the_pages_data_is_the_summary() {
    let results = [run_result(ResultKind::Sim, "a", 3), planned()];
    let html = page(&results);
    let data = data_of(&parsed(&html));
    for (index, result) in results.iter().enumerate() {
        let summary: Summary = serde_json::from_value(data["results"][index]["summary"].clone()).unwrap();
        assert_eq!(summary, result.summary);
    }
    assert_eq!(data["results"][0]["settings"]["readout.hosts"], "160");
}

#[test]
fn the_planners_summary_is_read_whole() {
    let text = include_str!("../../tests/golden/plan.json");
    let theirs: Value = serde_json::from_str(text).unwrap();
    let mut ours = planned().summary.to_value().unwrap();
    // A whole number of bit/s is the same as a float.
    ours["ideal"]["goodput_bps"] = theirs["ideal"]["goodput_bps"].clone();
    assert_eq!(ours, theirs);
    let html = page(&[planned()]);
    for word in [
        "tor→collector",
        "Loses frames: burst 2112 kB",
        "Credit window",
        "thesis §4.3.2",
        "Over-subscription",
    ] {
        assert!(html.contains(word), "{word}");
    }
}

#[test]
fn every_chart_is_drawn_for_both_widths_with_its_words() {
    let html = page(&[run_result(ResultKind::Sim, "a", 3)]);
    let document = parsed(&html);
    let figures: Vec<_> = document.descendants().filter(|node| node.has_tag_name("figure")).collect();
    let ids: Vec<_> = figures.iter().filter_map(|figure| figure.attribute("data-chart")).collect();
    assert_eq!(
        ids,
        [
            "timeline-0",
            "collection-time-cdf",
            "collection-time-histogram",
            "queue-depth",
            "congestion-window",
            "io-to-collector",
            "io-from-collector"
        ]
    );
    for figure in figures.into_iter().filter(|figure| figure.has_attribute("data-chart")) {
        let drawings: Vec<_> = figure.children().filter(|node| node.tag_name().name() == "svg").collect();
        assert_eq!(drawings.len(), 2);
        for drawing in drawings {
            let has = |name: &str| {
                drawing.children().find(|node| node.tag_name().name() == name).and_then(|node| node.text())
            };
            assert!(has("title").is_some_and(|text| !text.is_empty()));
            assert!(has("desc").is_some_and(|text| !text.is_empty()));
            assert_eq!(drawing.attribute("tabindex"), Some("0"));
            let lines = drawing
                .descendants()
                .filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("line")))
                .filter(|node| {
                    node.attribute("d").is_some_and(|path| path.len() > 20 && !path.contains("NaN"))
                });
            assert!(lines.count() >= 1);
        }
    }
}

#[test]
fn schedules_are_drawn_where_their_means_differ() {
    let lines = |least: f64, clairvoyant: f64| {
        let mut result = run_result(ResultKind::Sim, "a", 3);
        let schedule =
            |mean| ScheduleTimes { time_ms: MeanP99 { mean, p99: 40.0 }, ..ScheduleTimes::default() };
        result.summary.bound = Some(Bound { least: schedule(least), clairvoyant: schedule(clairvoyant) });
        let html = page(&[result]);
        let legend = html.split_once("Vertical lines, from the left: ").map(|(_, rest)| rest.to_owned());
        legend.and_then(|rest| Some(rest.split_once(".</figcaption>")?.0.to_owned())).unwrap_or_default()
    };
    assert_eq!(lines(18.3, 18.35), "");
    assert_eq!(lines(20.0, 20.1), "ideal, least mean");
    assert_eq!(lines(20.0, 25.0), "ideal, least mean, clairvoyant mean");
    assert_eq!(lines(18.3, 25.0), "ideal, clairvoyant mean");
}

#[test]
fn the_verdict_follows_the_figures() {
    let words = |change: &dyn Fn(&mut Summary)| {
        let mut result = run_result(ResultKind::Sim, "x", 0);
        change(&mut result.summary);
        let data = data(&[result.clone()], &[], &Pictures::default(), &[]);
        verdict::verdict(&result.summary, &data, "/results/0/summary").words
    };
    assert_eq!(words(&|_| {}), "Lossless");
    assert!(
        words(&|summary| summary.network.as_mut().unwrap().drops = Some(1)).contains("without a timeout")
    );
    assert!(
        words(&|summary| {
            summary.network.as_mut().unwrap().drops = Some(1);
            summary.tcp.as_mut().unwrap().tail_loss_probes = Some(1);
        })
        .ends_with("wait to probe for the last of a burst")
    );
    assert!(
        words(&|summary| {
            summary.network.as_mut().unwrap().drops = Some(1);
            summary.tcp.as_mut().unwrap().timeouts = Some(1);
        })
        .starts_with("Incast")
    );
    assert_eq!(words(&|summary| summary.events.as_mut().unwrap().lost = 1), "Events are lost");
    assert_eq!(words(&|summary| summary.network = None), "No verdict");
}

#[test]
fn a_pair_says_how_deep_each_queue_was() {
    let (sim, mut run) = (run_result(ResultKind::Sim, "a", 3), run_result(ResultKind::Run, "b", 3));
    // One queue is half as deep, one is the measurement's alone.
    for row in &mut run.records.queues {
        match &*row.queue {
            "tor→collector-0" => row.queue_bytes /= 2,
            "tor→collector-5" => row.queue = "elsewhere".into(),
            _ => {}
        }
    }
    let deepest = |name: &str| {
        crate::queue_bytes_max(sim.records.queues.iter().filter(|row| &*row.queue == name)).unwrap()
    };
    let data = data_of(&parsed(&page(&[sim.clone(), run])));
    let queues = data["pairs"][0]["queues"].as_array().unwrap();
    assert_eq!(queues.len(), 5, "what one side did not watch is left out");
    for queue in queues {
        let name = queue["queue"].as_str().unwrap();
        let measured = if name == "tor→collector-0" { deepest(name) / 2 } else { deepest(name) };
        assert_eq!(
            (&queue["predicted"], &queue["measured"]),
            (&deepest(name).into(), &measured.into()),
            "{name}"
        );
    }
    let most: Vec<u64> = queues.iter().map(|queue| queue["predicted"].as_u64().unwrap()).collect();
    assert!(most.is_sorted_by(|left, right| left >= right), "the deepest first: {most:?}");
}

#[test]
fn names_cannot_break_out() {
    let nasty = "</script><script>alert(1)</script>\"'&\u{0}\u{2028}\u{202e}<!--]]>";
    let mut result = run_result(ResultKind::Sim, nasty, 5);
    result.summary.scenario = ScenarioName { name: nasty.into(), hash: nasty.into() };
    result.summary.version = nasty.into();
    result.summary.commit = Some(nasty.into());
    result.summary.ideal.as_mut().unwrap().how = Some(nasty.into());
    result.summary.techniques.insert(nasty.into(), json!({ nasty: nasty }));
    let printable = nasty.replace('\0', "");
    result.summary.techniques.insert(printable.clone(), json!({ printable: nasty, "a/b~c_ms": 3.5 }));
    result.scenario_toml = Some(format!("# {nasty}\n[workload]\nkind = '''</pre>{}'''\n", "<b>"));
    result.records.queues.iter_mut().for_each(|row| row.queue = nasty.into());
    let mut plan = planned();
    let figures = plan.summary.plan.as_mut().unwrap();
    figures.verdict.as_mut().unwrap().text = nasty.into();
    figures.warnings[0] = nasty.into();
    figures.links[0].name = nasty.into();
    figures.queues[0].name = nasty.into();
    figures.queues[0].outcome = nasty.into();
    figures.derivations[0].name = nasty.into();
    figures.derivations[0].formula = nasty.into();
    figures.cost.as_mut().unwrap().network.as_mut().unwrap().currency = nasty.into();
    for results in [vec![result.clone()], vec![plan.clone()], vec![result, plan]] {
        let html = page(&results);
        let document = parsed(&html);
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("script")).count(), 2);
        assert_eq!(html.matches("</script>").count(), 2);
        assert!(!html.contains("alert(1)</script>"));
        assert_eq!(data_of(&document)["results"].as_array().unwrap().len(), results.len());
        every_pointer_leads_somewhere(&document);
    }
}

fn every_pointer_leads_somewhere(document: &roxmltree::Document<'_>) {
    let data = data_of(document);
    for node in document.descendants().filter(|node| node.has_tag_name("data")) {
        assert!(data.pointer(node.attribute("data-key").unwrap()).is_some());
    }
}

#[test]
fn odd_results_have_a_page_too() {
    let mut empty = run_result(ResultKind::Run, "", 0);
    empty.records = Records::default();
    empty.summary = Summary::new(ResultKind::Run, "", ScenarioName::default());
    empty.scenario_toml = Some("this is = not [toml".into());
    let mut absurd = run_result(ResultKind::Sim, "absurd", 3);
    let times = absurd.summary.collection_time_ms.as_mut().unwrap();
    (times.mean, times.ideal, times.p99) = (-1e300, Some(0.0), f64::MAX);
    absurd.records.events[0].collection_time_ps = Some(u64::MAX);
    absurd.records.events[1].collection_time_ps = Some(0);
    absurd.records.queues[0].time_ps = u64::MAX;
    absurd.records.queues[1].queue_bytes = u64::MAX;
    let mut one = run_result(ResultKind::Sim, "one", 0);
    one.records.events.truncate(1);
    one.records.queues.truncate(1);
    one.records.io.truncate(1);
    one.summary.measured_ps = None;
    let mut plan = planned();
    let absurd_plan = plan.summary.plan.as_mut().unwrap();
    absurd_plan.links[0].load = f64::MAX;
    absurd_plan.links[1].load = -1.0;
    absurd_plan.queues[0].capacity_bytes = Some(0);
    absurd_plan.queues[1].peak_bytes = u64::MAX;
    absurd_plan.queues[1].capacity_bytes = Some(1);
    for results in [
        vec![],
        vec![empty.clone()],
        vec![absurd.clone()],
        vec![one.clone()],
        vec![plan.clone()],
        vec![empty, absurd, one, plan],
    ] {
        let html = page(&results);
        parsed(&html);
        for word in ["NaN", "\"inf\"", "infinity"] {
            assert!(!html.contains(word), "{word}");
        }
    }
}

#[test]
fn a_page_of_many_results_stays_below_three_megabytes() {
    let results: Vec<RunResult> =
        (0..24).map(|index| run_result(ResultKind::Sim, &format!("case {index}"), index)).collect();
    let html = page(&results);
    parsed(&html);
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
}

#[test]
fn a_limit_that_had_fallen_is_that_of_the_first_drop() {
    let mut result = run_result(ResultKind::Sim, "shared", 1);
    let port = &mut result.summary.ports[0];
    port.first_drop_limit_bytes = Some(40_000);
    (port.first_drop_ms, port.last_drop_ms) = (Some(2.0), Some(5.0));
    let html = page(&[result]);
    // In the picture of each width, and below the port's name.
    assert!(html.contains(">limit 40\u{a0}kB at the first drop<"), "the picture");
    assert!(html.contains(" at the first drop</small>"), "the table");
}

#[test]
fn a_simulation_shows_where_when_and_why() {
    let (_, _, html) = pages().into_iter().find(|(name, ..)| *name == "single").unwrap();
    for words in [
        "<h2>Where</h2>",
        "The queue at tor:0→collector:0",
        "limit 64\u{a0}kB",
        "The slowest event, source by source",
        "retransmission timer",
        "32 × readout",
        "The network and its busiest links",
    ] {
        assert!(html.contains(words), "{words}");
    }
    let (_, _, pair) = pages().into_iter().find(|(name, ..)| *name == "pair").unwrap();
    assert_eq!(pair.matches("data-chart=\"timeline-").count(), 2, "a measurement's tables are drawn too");
}

#[test]
fn no_p99_of_few_events() {
    let mut result = run_result(ResultKind::Sim, "short", 7);
    result.summary.events.as_mut().unwrap().collected = 99;
    let html = page(std::slice::from_ref(&result));
    assert!(!html.contains("One in a hundred") && !html.contains("<dt>p99</dt>"));
    result.summary.events.as_mut().unwrap().collected = 100;
    let html = page(&[result]);
    assert!(html.contains("One in a hundred") && html.contains("<dt>p99</dt>"));
}

#[test]
fn settings_that_the_head_leaves_out_have_labels_too() {
    assert_eq!(swept::label("run.duration"), "Measured time");
    assert_eq!(swept::label("tor.buffer"), "Rack switch buffer");
    assert_eq!(swept::label("live.drain"), "Live: drain");
}
