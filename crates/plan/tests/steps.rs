//! A collection in steps asks equally many readouts in the plan, in the simulation and in the ideal time.

use fanin_plan::{PlanOptions, plan};
use fanin_runs::{RunControl, run};
use fanin_scenario::{Scenario, load_text};

/// A small system of ten readouts with fragments of 1000 B. Its steps have these shares. All events pass the steps before
/// `until`, which rejects them: nothing is collected after it.
fn scenario(shares: &[f64], until: usize) -> Scenario {
    let step = |(number, share): (usize, &f64)| {
        let accept = u32::from(number < until);
        format!(
            "[[workload.steps]]\nname = '{number}'\nfraction = {share}\nprocessing_time = '10 us'\naccept = {accept}\n"
        )
    };
    let steps: String = shares.iter().enumerate().map(step).collect();
    let text = format!(
        "[readout]\nhosts = 10\nfragments_per_host = 1\nfragment_size = '1000 B'\n\
         [collectors]\nhosts_per_rack = 2\n[network]\ntopology = 'star'\n[supervisor]\nrate = '500 Hz'\n\
         [run]\nduration = '20 ms'\nwarmup = '0 s'\n{steps}"
    );
    load_text("steps", &text, &[]).unwrap_or_else(|errors| panic!("{errors}")).scenario
}

/// The readouts that the plan's steps ask, and its ideal time in milliseconds.
fn planned(scenario: &Scenario) -> (Vec<u64>, f64) {
    let plan = plan(scenario, &PlanOptions::default()).unwrap();
    let rows = plan.sections.iter().flat_map(|section| &section.rows);
    let answers = rows.filter(|row| row.name.starts_with("step_rate.")).map(|row| {
        let words: Vec<&str> = row.numbers.split_whitespace().collect();
        words[words.len() - 3].parse().unwrap()
    });
    (answers.collect(), plan.ideal.collection_time.value.as_millis_f64())
}

/// The fragments of each simulated event, and the ideal time in milliseconds.
fn simulated(scenario: &Scenario) -> (u64, f64) {
    let outcome = run(scenario, 1, &RunControl::default()).unwrap();
    let sizes: Vec<u64> = outcome.records.events.iter().map(|row| row.size_bytes).collect();
    assert!(!sizes.is_empty() && sizes.iter().all(|&size| size == sizes[0]), "{sizes:?}");
    (sizes[0] / 1000, outcome.summary.ideal.unwrap().collection_time_ms.unwrap())
}

#[test]
fn every_step_asks_what_its_share_lacks() {
    let cases: [(&[f64], &[u64]); 4] = [
        (&[0.1, 0.5, 1.0], &[1, 4, 5]),
        (&[0.25, 0.5, 0.7], &[3, 2, 2]),
        (&[0.3, 0.6], &[3, 3]),
        (&[0.41, 0.45, 1.0], &[5, 0, 5]),
    ];
    for (shares, answers) in cases {
        let mut before = 0;
        for (until, more) in answers.iter().enumerate() {
            before += more;
            let scenario = scenario(shares, until);
            let (planned, ideal) = planned(&scenario);
            assert_eq!(planned, *answers, "{shares:?}");
            let (fragments, simulated_ideal) = simulated(&scenario);
            assert_eq!(fragments, before, "{shares:?}, until {until}");
            assert!((simulated_ideal - ideal).abs() < 1e-9, "{shares:?}: {simulated_ideal} {ideal}");
        }
        // The ideal time is that of all steps: ten readouts, or as many as the last share names.
        let whole = load_one(before);
        assert_eq!(planned(&scenario(shares, 0)).1, planned(&whole).1, "{shares:?}");
    }
}

/// The same system with one collection from `count` of its readouts.
fn load_one(count: u64) -> Scenario {
    let mut one = scenario(&[0.1], 0);
    one.workload.steps.clear();
    one.workload.fraction = fanin_units::Ratio::new(count * 100_000);
    one
}
