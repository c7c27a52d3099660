//! Every technique in whole runs: it loses nothing, is never faster than the wire, keeps its bounds and tells its figures.

use fanin_report::Summary;
use fanin_scenario::{Scenario, load_text};
use fanin_sim::{Control, End, Outcome, run};

fn preset(name: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match load_text("test", &format!("extends = \"{name}\""), &sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn outcome(name: &str, sets: &[&str]) -> Outcome {
    let outcome = run(&preset(name, sets), 1, &Control::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.end, End::Complete, "{sets:?}");
    for row in &outcome.records.events {
        if let (Some(time), Some(ideal)) = (row.collection_time_ps, row.ideal_ps) {
            assert!(time >= ideal, "faster than the wire: {row:?}");
        }
    }
    outcome
}

fn figure(summary: &Summary, path: &str) -> f64 {
    let (key, figure) = path.split_once('.').unwrap();
    let section = summary.techniques.get(key).unwrap_or_else(|| panic!("no section {key}"));
    section[figure].as_f64().unwrap_or_else(|| panic!("no {figure} in {section}"))
}

fn goodput_mbps(outcome: &Outcome) -> f64 {
    outcome.summary.goodput_bps.as_ref().unwrap().total / 1e6
}

const SHORT: &str = "run.duration=500 ms";

#[test]
fn dctcp_keeps_the_queue_at_its_threshold() {
    let sets = [
        SHORT,
        "workload.senders=4",
        "transport.congestion_control=dctcp",
        "tor.ecn.mode=threshold",
        "tor.ecn.threshold=20",
    ];
    let dctcp = outcome("m21tcp-ffw", &sets);
    let network = dctcp.summary.network.clone().unwrap();
    assert_eq!(network.drops, Some(0));
    assert!(network.ecn_marks.unwrap() > 100);
    // K, and what four senders add in the round trip until the marks work.
    assert!(network.queue_bytes_max.unwrap() < 60_000, "{network:?}");
    assert!(goodput_mbps(&dctcp) > 800.0, "{}", goodput_mbps(&dctcp));
    let alpha = figure(&dctcp.summary, "dctcp.alpha_mean");
    assert!(alpha > 0.02 && alpha < 0.9, "{alpha}");
    assert!(figure(&dctcp.summary, "dctcp.reductions") > 10.0);
    assert_eq!(figure(&dctcp.summary, "ecn.marked"), network.ecn_marks.unwrap() as f64);
    // The plain stack fills the whole buffer.
    let plain = outcome("m21tcp-ffw", &[SHORT, "workload.senders=4"]);
    assert!(plain.summary.network.unwrap().queue_bytes_max.unwrap() > 60_000);
    assert!(plain.summary.techniques.is_empty());
}

#[test]
fn red_marks_or_drops() {
    let red = ["workload.senders=8", SHORT, "tor.ecn.min=15", "tor.ecn.max=25", "tor.ecn.gentle=true"];
    let mut sets = red.to_vec();
    sets.push("tor.ecn.mode=red-drop");
    let drop = outcome("m21tcp-ffw", &sets);
    assert!(figure(&drop.summary, "ecn.dropped_early") > 0.0);
    assert_eq!(figure(&drop.summary, "ecn.marked"), 0.0);
    for (weight, unit) in [("0.002", "packets"), ("1", "bytes")] {
        let (weight, unit) = (format!("tor.ecn.weight={weight}"), format!("tor.ecn.unit={unit}"));
        let mut sets = red.to_vec();
        sets.extend(["tor.ecn.mode=red-mark", "transport.ecn=true", &weight, &unit]);
        let mark = outcome("m21tcp-ffw", &sets);
        assert!(figure(&mark.summary, "ecn.marked") > 0.0, "{sets:?}");
        assert_eq!(
            mark.summary.network.clone().unwrap().ecn_marks.unwrap() as f64,
            figure(&mark.summary, "ecn.marked")
        );
    }
}
