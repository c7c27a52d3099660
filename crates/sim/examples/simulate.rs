//! Simulates a scenario and prints its summary: `simulate SCENARIO [KEY=VALUE]...`.
#![allow(clippy::print_stdout, reason = "a program prints its result")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: simulate SCENARIO [KEY=VALUE]...");
        return ExitCode::from(2);
    };
    let loaded = match fanin_scenario::load(&name, &arguments.collect::<Vec<_>>()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            eprintln!("{}", errors.render(false));
            return ExitCode::from(2);
        }
    };
    match fanin_sim::run(&loaded.scenario, loaded.scenario.run.seed, &fanin_sim::Control::default()) {
        Ok(outcome) => {
            println!("{}", outcome.summary.to_json().expect("figures are finite"));
            println!("{:?}", outcome.end);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
