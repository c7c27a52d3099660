//! The metrics of a live system, and the dashboard and rules that use them.

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use common::hang_guard::HangGuard;
use common::{Limited, System};
use fanin_node::config::{PREDICTED_FIGURES, Role};
use rustix::process::Signal;

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// The names of all samples, `_total` and `_bucket` included.
fn samples(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()).collect()
}

/// The value of a sample whose line contains `labels`.
fn value(text: &str, name: &str, labels: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name) && line.contains(labels));
    let line = line.unwrap_or_else(|| panic!("no {name} with {labels} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Words of a query that are names of metrics.
fn asked(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("fanin_")).map(str::to_owned).collect()
}

/// Grafana's units for what a query gives: by its metric's name, and by the rate that it takes.
fn units(query: &str) -> &'static [&'static str] {
    let names = asked(query);
    let name = names.first().unwrap().trim_end_matches("_total").trim_end_matches("_bucket");
    let is_switch = name.starts_with("fanin_switch_");
    let is_share = is_switch && query.contains(" / ");
    let is_mean = !is_switch && (query.contains(" / ") || query.contains("histogram_quantile("));
    let is_heatmap = query.contains("_bucket{") && is_switch;
    let is_rate = !is_mean && !is_heatmap && (query.contains("rate(") || name.contains("_rate"));
    let has_unit = |unit: &str| name.ends_with(unit) || is_mean && name.contains(unit);
    let has_bytes = has_unit("_bytes") || name.ends_with("_bytes_per_second");
    match (has_bytes, has_unit("_seconds"), is_rate) {
        _ if is_share => &["percentunit"],
        (true, _, true) if query.starts_with("8 * ") => &["bps"],
        (true, _, true) => &["Bps"],
        (true, _, false) => &["bytes"],
        (_, true, true) => &["percentunit"],
        (_, true, false) => &["s"],
        (_, _, true) if name.ends_with("_frames") => &["pps"],
        (_, _, true) => &["reqps", "ops", "cps"],
        (_, _, false) => &["short"],
    }
}

/// The quantity of a query whose unit is a plain number: states of 0 or 1, faults of an interval, or the counted things.
fn counted(query: &str) -> String {
    let names = asked(query);
    let name = names.first().unwrap().trim_start_matches("fanin_").trim_start_matches("switch_");
    // A band has the quantity of its figure.
    let name = name.trim_start_matches("predicted_");
    match name {
        _ if query.contains("increase(") => "faults".to_owned(),
        "supervisor_leads" | "supervisor_paired" | "disk_full" | "disk_failing" | "port_up" => {
            "states".to_owned()
        }
        _ => name.split('_').next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn each_panel_of_the_dashboards_has_one_unit_and_one_quantity() {
    for file in ["grafana/fanin.json", "switch/grafana-dashboard.json"] {
        let dashboard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
        let dashboard: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(dashboard).unwrap()).unwrap();
        let (mut titles, mut places) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap();
            let mut quantities = BTreeSet::new();
            for target in panel["targets"].as_array().unwrap() {
                let query = target["expr"].as_str().unwrap();
                assert!(units(query).contains(&unit), "{} in {unit}: {query}", panel["title"]);
                quantities.insert(if unit == "short" { counted(query) } else { unit.to_owned() });
            }
            assert_eq!(quantities.len(), 1, "{}: {quantities:?}", panel["title"]);
            assert!(titles.insert(panel["title"].to_string()), "{}", panel["title"]);
            let place = (panel["gridPos"]["x"].as_u64(), panel["gridPos"]["y"].as_u64());
            assert!(places.insert(place), "{} lies on another panel", panel["title"]);
        }
    }
}

#[test]
fn every_process_reports_its_state_and_the_dashboard_asks_for_nothing_else() {
    let mut system = System::start("metrics", &[]);
    system.work(1200);
    let mut served = BTreeSet::new();
    let addresses: Vec<(String, SocketAddr)> =
        system.live.all_metrics().map(|(process, address)| (process.to_owned(), address)).collect();
    assert_eq!(addresses.len(), 1 + 4 + 2 + 2);
    let mut texts = std::collections::BTreeMap::new();
    for (process, address) in addresses {
        assert_eq!(get(address, "/healthz"), (200, "ok\n".to_owned()), "{process}");
        assert_eq!(get(address, "/readyz"), (200, "ok\n".to_owned()), "{process}");
        assert_eq!(get(address, "/nothing").0, 404);
        let (status, text) = get(address, "/metrics");
        assert_eq!(status, 200);
        assert!(text.ends_with("# EOF\n"));
        let names = samples(&text);
        assert!(names.iter().all(|name| name.starts_with("fanin_")), "{names:?}");
        // One line of help for each, and base units.
        let helps = text.lines().filter(|line| line.starts_with("# HELP")).count();
        assert_eq!(helps, text.lines().filter(|line| line.starts_with("# TYPE")).count());
        let is_odd =
            |name: &String| name.split('_').any(|word| ["ms", "us", "ns", "kb", "mb"].contains(&word));
        assert!(!names.iter().any(is_odd), "{names:?}");
        assert_eq!(value(&text, "fanin_up", &format!("process=\"{process}\"")), 1.0);
        served.extend(names);
        texts.insert(process, text);
    }
    // Each role exports its own series only.
    for (name, roles) in [
        ("fanin_events_assigned_total", ["supervisor"].as_slice()),
        ("fanin_events_completed_total", &["supervisor"]),
        ("fanin_collection_time_seconds_count", &["collector"]),
        ("fanin_credits_used", &["collector"]),
        ("fanin_events_held", &["readout"]),
        ("fanin_requests_total", &["collector", "readout"]),
        ("fanin_disk_full", &["logger"]),
        ("fanin_ready", &["supervisor", "readout", "collector", "logger"]),
        ("fanin_predicted_collection_time_seconds", &["supervisor"]),
    ] {
        for (process, text) in &texts {
            let role = process.split('-').next().unwrap();
            assert_eq!(samples(text).contains(name), roles.contains(&role), "{name} of {process}");
        }
    }
    let supervisor = &texts["supervisor"];
    assert!(value(supervisor, "fanin_events_assigned_total", "") > 50.0);
    for (name, bound, wanted) in [
        ("fanin_predicted_collection_time_seconds", "low", 0.5),
        ("fanin_predicted_data_rate_bytes", "high", 2.5),
        ("fanin_predicted_timeout_rate", "high", 2.5),
    ] {
        assert_eq!(value(supervisor, name, &format!("bound=\"{bound}\"")), wanted);
    }
    assert!(value(supervisor, "fanin_events_completed_total", "outcome=\"rejected\"") > 10.0);
    assert!(value(&texts["collector-0"], "fanin_fragments_bytes_total", "") > 1e4);
    assert!(value(&texts["collector-1"], "fanin_collection_time_seconds_count", "") > 20.0);
    assert!(value(&texts["readout-3"], "fanin_requests_total", "role=\"readout\"") > 50.0);
    assert!(value(&texts["logger-0"], "fanin_stored_bytes_total", "") > 1e4);
    for (process, text) in &texts {
        let journal = system.folder.join(format!("{process}.journal")).metadata().unwrap().len();
        let shown = value(text, "fanin_journal_bytes", "");
        assert!(0.0 < shown && shown <= journal as f64, "{process}: {shown} of {journal}");
        assert!(value(text, "fanin_journal_free_bytes", "") > 0.0, "{process}");
    }

    let dashboard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana/fanin.json");
    let dashboard: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dashboard).unwrap()).unwrap();
    let mut queries = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let names = asked(query);
            assert!(!names.is_empty(), "{query}");
            for name in names {
                assert!(served.contains(&name), "{query}: no process serves {name}");
            }
            queries += 1;
        }
    }
    assert!(queries > 20, "{queries}");

    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/fanin-rules.yml");
    let rules = std::fs::read_to_string(rules).unwrap();
    let expressions: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), rules.matches("- alert: ").count());
    assert_eq!(expressions.len(), rules.matches("summary: ").count());
    assert!(expressions.len() > 10, "{rules}");
    for expression in expressions {
        for name in asked(expression) {
            assert!(served.contains(&name), "{expression}: no process serves {name}");
        }
    }

    // Each figure has its band in the metrics, behind its curve in its panel, and an alert on both sides.
    let panels = dashboard["panels"].as_array().unwrap();
    for figure in PREDICTED_FIGURES {
        for bound in ["low", "high"] {
            let name = figure.series();
            assert!(value(supervisor, &name, &format!("bound=\"{bound}\"")) > 0.0, "{name}");
        }
        let panel = panels.iter().find(|panel| panel["title"] == figure.panel);
        let panel = panel.unwrap_or_else(|| panic!("no panel {:?}", figure.panel));
        let queries: Vec<&str> = panel["targets"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|target| target["expr"].as_str())
            .collect();
        let live = figure.live.query("$__rate_interval");
        for query in [&live, &figure.limit("low"), &figure.limit("high")] {
            assert!(queries.contains(&query.as_str()), "{}: no {query} in {queries:?}", figure.panel);
        }
        let fills = panel["fieldConfig"]["overrides"].to_string();
        assert!(fills.contains("custom.fillBelowTo"), "{}: the band is not filled", figure.panel);
        let live = figure.live.query("1m");
        for side in [format!("> {}", figure.limit("high")), format!("< {}", figure.limit("low"))] {
            assert!(rules.contains(&format!("{live} {side}")), "no alert on {live} {side}");
        }
    }
    // No curve has a band that the table does not know.
    let known: BTreeSet<String> = PREDICTED_FIGURES.iter().map(|figure| figure.series()).collect();
    for query in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
        let names = asked(query["expr"].as_str().unwrap());
        let odd: Vec<&String> =
            names.iter().filter(|name| name.contains("_predicted_") && !known.contains(*name)).collect();
        assert!(odd.is_empty(), "{odd:?}");
    }

    // Without loggers a collector is healthy, and not ready.
    for logger in 0..2 {
        system.signal(Role::Logger, logger, Signal::STOP);
    }
    let address = system.live.metrics("collector-0").unwrap();
    let guard = HangGuard::new();
    let mut answer = get(address, "/readyz");
    while answer.0 == 200 {
        guard.check("a collector without loggers that is not ready");
        std::thread::sleep(Duration::from_millis(100));
        answer = get(address, "/readyz");
    }
    assert_eq!(answer, (503, "not ready: no connection to any logger\n".to_owned()));
    assert_eq!(get(address, "/healthz").0, 200);
    // It says which peers, why and since when.
    let log = system.folder.join("log/collector-0.log");
    let is_logged = || std::fs::read_to_string(&log).unwrap().contains("no connection to a peer");
    while !is_logged() {
        guard.check("a log line about a missing peer");
        std::thread::sleep(Duration::from_millis(100));
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let line = text.lines().find(|line| line.contains("no connection to a peer")).unwrap();
    assert!(line.contains("peer=logger") && line.contains("reason=") && line.contains("for_s="), "{line}");
    for logger in 0..2 {
        system.signal(Role::Logger, logger, Signal::CONT);
    }
    system.finish().remove();
}

#[test]
fn a_journal_that_cannot_be_written_shows_at_once() {
    let small = Limited { journal_kib: Some(4), ..Limited::default() };
    let mut system = System::start_in("journal-metric", &[], None, small);
    let readout = |system: &System, number: usize| {
        let text = get(system.live.metrics(&format!("readout-{number}")).unwrap(), "/metrics").1;
        (value(&text, "fanin_journal_failing{", ""), value(&text, "fanin_journal_lines_dropped_total{", ""))
    };
    let guard = HangGuard::new();
    while readout(&system, 0).0 < 1.0 {
        guard.check("a journal that fails");
        system.work(100);
    }
    assert_eq!([readout(&system, 0), readout(&system, 1)], [(1.0, 0.0), (0.0, 0.0)]);
    system.live.stop();
    std::fs::remove_dir_all(&system.folder).unwrap();
}
