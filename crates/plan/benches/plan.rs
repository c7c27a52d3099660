//! How long a plan takes: every preset, with its table. The bound that matters is 50 ms for one.

use std::time::Instant;

use fanin_plan::{PlanOptions, plain, plan};

const ROUNDS: u32 = 200;

fn main() {
    let mut slowest = (0.0, "");
    for preset in fanin_scenario::presets() {
        let Ok(loaded) = fanin_scenario::load(preset.name, &[]) else { continue };
        let fragment_sizes = fanin_runs::fragment_sizes(&loaded.scenario).ok();
        let options = PlanOptions { fragment_sizes, ..PlanOptions::default() };
        let start = Instant::now();
        let mut characters = 0;
        for _ in 0..ROUNDS {
            characters += plan(&loaded.scenario, &options).map_or(0, |plan| plan.table(plain).len());
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS);
        assert!(characters > 0, "{} has no plan", preset.name);
        if micros > slowest.0 {
            slowest = (micros, preset.name);
        }
        eprintln!("{:<20} {micros:>8.1} us", preset.name);
    }
    eprintln!("slowest: {} with {:.1} us", slowest.1, slowest.0);
}
