//! Runs on threads, the cost of a run, and files of fragment sizes.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use fanin_report::{Records, Summary};
use fanin_runs::{RunControl, RunOutcome, SweepRun, fragment_sizes, run, sweep};
use fanin_scenario::{Scenario, load};

/// A small incast with losses.
fn incast(sets: &[&str]) -> Scenario {
    preset("incast", &[&["run.duration=300 ms", "workload.senders=6", "tor.buffer=20 kB"], sets].concat())
}

fn preset(name: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    load(name, &sets).unwrap_or_else(|errors| panic!("{}", errors.render(false))).scenario
}

/// Everything but what differs from machine to machine.
fn figures(outcome: RunOutcome) -> (Summary, Records) {
    let summary = Summary { speed: None, ..outcome.summary };
    (summary, outcome.records)
}

#[test]
fn a_sweep_gives_the_same_outcomes_on_any_number_of_threads() {
    // With that a seed matters.
    let scenario = incast(&["workload.service_delay_max=1 ms"]);
    let points: Vec<SweepRun> =
        (0..6).map(|seed| SweepRun { scenario: scenario.clone(), seed: seed / 2 }).collect();
    let done = Mutex::new(0);
    let results = |threads| -> Vec<_> {
        let results = sweep(&points, threads, &RunControl::default(), &|_| *done.lock().unwrap() += 1);
        results.into_iter().map(|result| figures(result.unwrap())).collect()
    };
    let one = results(1);
    assert_eq!(one.len(), 6);
    assert_eq!(one, results(3));
    assert_eq!(one[0], one[1]);
    assert_ne!(one[1], one[2]);
    assert_eq!(*done.lock().unwrap(), 12);
    let alone = run(&scenario, 0, &RunControl::default()).unwrap();
    assert_eq!(figures(alone), one[0]);
}

#[test]
fn a_stopped_sweep_leaves_points_out() {
    let stop = AtomicBool::new(true);
    let control = RunControl { stop: &stop, ..RunControl::default() };
    let left = sweep(&[SweepRun { scenario: incast(&[]), seed: 1 }], 2, &control, &|_| {});
    assert!(left.is_empty());
}

#[test]
fn a_run_says_what_it_cost() {
    let outcome = run(&incast(&[]), 1, &RunControl::default()).unwrap();
    let speed = outcome.summary.speed.unwrap();
    assert!(speed.wall_s > Some(0.0) && speed.peak_rss_bytes > Some(1_000_000), "{speed:?}");
    // Each frame of at most 1538 bytes is put on two links.
    let hops = speed.packet_hops.unwrap();
    assert!((84 * hops..=1538 * hops).contains(&outcome.wire_bytes), "{} {hops}", outcome.wire_bytes);
}

#[test]
fn sizes_are_read_from_the_file_that_the_scenario_names() {
    let sets = ["run.duration=20 ms", "run.warmup=0 s"];
    let replay = preset("replay", &sets);
    assert_eq!(fragment_sizes(&replay).unwrap().mean.get(), 2265);
    let outcome = run(&replay, 1, &RunControl::default()).unwrap();
    let sizes: Vec<u64> = outcome.records.events.iter().map(|row| row.size_bytes).collect();
    // Two time slices, over and over.
    assert!(sizes.len() > 1, "{sizes:?}");
    assert_eq!(sizes[0] + sizes[1], 2_066_214);

    let missing = r#"readout.fragment_size={ distribution = "file", path = "/nowhere.root" }"#;
    let missing = preset("replay", &[missing]);
    for error in [
        run(&missing, 1, &RunControl::default()).unwrap_err().to_string(),
        fragment_sizes(&missing).unwrap_err().to_string(),
    ] {
        assert!(error.starts_with("readout.fragment_size: /nowhere.root: "), "{error}");
    }
}

#[test]
fn the_sizes_of_a_histogram_need_no_file() {
    let sizes = "readout.fragment_size={ distribution = \"empirical\", edges = [\"1 kB\", \"2 kB\", \"2 kB\"], \
                 counts = [30, 70] }";
    let figures = fragment_sizes(&preset("replay", &[sizes])).unwrap();
    assert_eq!((figures.mean.get(), figures.answer_max.map(|bytes| bytes.get())), (1_850, Some(19 * 2_000)));
}

/// A result is stored under the content that the scenario was loaded with.
#[test]
fn a_file_of_sizes_that_changes_after_loading_is_refused() {
    let file = std::env::temp_dir().join(format!("fanin-runs-sizes-{}.csv", std::process::id()));
    let table = |bytes: u32| format!("event,source,bytes\n0,0,{bytes}\n0,1,{bytes}\n");
    std::fs::write(&file, table(1000)).unwrap();
    let sizes = format!(r#"readout.fragment_size={{ distribution = "file", path = "{}" }}"#, file.display());
    let sets =
        ["readout.hosts=2", "readout.fragments_per_host=1", "run.duration=20 ms", "run.warmup=0 s", &sizes];
    let scenario = preset("replay", &sets);
    let play = || run(&scenario, 1, &RunControl::default());
    assert_eq!(play().unwrap().records.events[0].size_bytes, 2000);
    std::fs::write(&file, table(1001)).unwrap();
    for error in [play().unwrap_err(), fragment_sizes(&scenario).unwrap_err()] {
        let text = error.to_string();
        assert!(text.ends_with("has changed since the scenario was loaded; load it again"), "{text}");
    }
    std::fs::write(&file, table(1000)).unwrap();
    assert_eq!(play().unwrap().records.events[0].size_bytes, 2000);
    std::fs::remove_file(&file).unwrap();
    assert!(play().unwrap_err().to_string().starts_with("readout.fragment_size: "));
    // The same holds for a file that was not there when the scenario was loaded.
    let early = preset("replay", &sets);
    std::fs::write(&file, table(1000)).unwrap();
    let error = run(&early, 1, &RunControl::default()).unwrap_err().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(error.ends_with("has changed since the scenario was loaded; load it again"), "{error}");
}
