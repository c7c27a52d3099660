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
    match fanin_runs::run(&loaded.scenario, loaded.scenario.run.seed, &fanin_runs::RunControl::default()) {
        Ok(outcome) => {
            println!("{}", outcome.summary.to_json().expect("figures are finite"));
            println!("{:?}", outcome.end);
            let warmup = loaded.scenario.run.warmup.get();
            let rows: Vec<_> =
                outcome.records.events.iter().filter(|row| row.assigned_ps >= warmup).collect();
            let share = |holds: &dyn Fn(&fanin_report::EventRow) -> bool| {
                100.0 * rows.iter().filter(|row| holds(row)).count() as f64 / rows.len().max(1) as f64
            };
            let below =
                |ms: u64| share(&|row| row.collection_time_ps.is_some_and(|ps| ps < ms * 1_000_000_000));
            println!(
                "below 20 ms {:.1} %, 40 ms {:.1} %, 200 ms {:.1} %, 700 ms {:.1} %; timeouts in {:.1} %, 2 or more in {:.1} %",
                below(20),
                below(40),
                below(200),
                below(700),
                share(&fanin_report::EventRow::has_timeouts),
                share(&|row| row.timeouts > Some(1))
            );
            for row in &outcome.records.windows {
                let ms = row.time_ps as f64 / 1e9;
                println!(
                    "{ms:.4} ms: flow {} cwnd {} in flight {}",
                    row.flow, row.cwnd_bytes, row.in_flight_bytes
                );
            }
            if std::env::var_os("ROWS").is_some() {
                for row in &outcome.records.events {
                    let ms = |ps: u64| ps as f64 / 1e9;
                    println!(
                        "{} at {:.3} took {:.3} ms, {} timeouts",
                        row.id,
                        ms(row.assigned_ps),
                        row.collection_time_ps.map_or(f64::NAN, ms),
                        row.timeouts.unwrap_or_default()
                    );
                }
                for row in &outcome.records.flows {
                    println!("{row:?}");
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
