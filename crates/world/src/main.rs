//! Plays worlds from the command line: a campaign of many seeds, or one seed with its log.

#![allow(clippy::print_stdout, reason = "a command of developers prints its results")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand};
use fanin_world::{
    Campaign, CampaignProgress, WorldFailure, WorldReport, campaign, describe, print_logs, run, story,
};

/// The live system in simulated worlds with faults.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: WorldCommand,
}

#[derive(Debug, Subcommand)]
enum WorldCommand {
    /// Plays the worlds of many seeds, and prints those that fail.
    Campaign {
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Number of seeds.
        #[arg(long, default_value_t = 5_000)]
        seeds: u64,
        /// Threads; 0: one for each core.
        #[arg(long, default_value_t = 0)]
        threads: usize,
        /// Failed seeds after which it ends.
        #[arg(long, default_value_t = 10)]
        failures: usize,
    },
    /// Plays the world of one seed, and prints its plan and its processes' log lines.
    Replay {
        /// Number of the seed.
        seed: u64,
        /// Prints all journals' lines about this event, and no log.
        #[arg(long)]
        event: Option<u64>,
        /// Prints no log.
        #[arg(long)]
        quiet: bool,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        WorldCommand::Campaign { from, seeds, threads, failures } => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = if threads == 0 { cores } else { threads };
            many(Campaign { from, seeds, threads, failures_max: failures })
        }
        WorldCommand::Replay { seed, event: Some(event), .. } => {
            let (lines, result) = story(seed, event);
            lines.iter().for_each(|line| println!("{line}"));
            verdict(seed, result)
        }
        WorldCommand::Replay { seed, quiet, .. } => one(seed, quiet),
    }
}

fn one(seed: u64, quiet: bool) -> ExitCode {
    println!("{}", describe(seed));
    if !quiet {
        print_logs();
    }
    verdict(seed, run(seed))
}

fn verdict(seed: u64, result: Result<WorldReport, WorldFailure>) -> ExitCode {
    match result {
        Ok(report) => {
            println!("seed {seed} holds: {report:?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("seed {seed} fails: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn many(of: Campaign) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    if let Err(error) = ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed)) {
        eprintln!("Ctrl-C ends this without a summary: {error}");
    }
    // A panic is a finding, which the summary names.
    std::panic::set_hook(Box::new(|_| ()));
    let tick = |progress: &CampaignProgress| eprintln!("{}", summary(progress, of.seeds));
    let progress = campaign(of, &stop, &tick);
    println!("{}", summary(&progress, of.seeds));
    for failed in &progress.failed {
        println!("{failed}");
    }
    match (progress.failed.is_empty(), stop.load(Ordering::Relaxed)) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(130),
        (true, false) => ExitCode::SUCCESS,
    }
}

fn summary(progress: &CampaignProgress, of: u64) -> String {
    let CampaignProgress { seeds, events, faults, steps_max, simulated, wall, failed } = progress;
    let wall_s = wall.as_secs_f64();
    format!(
        "{seeds} of {of} seeds, {} failed; {events} events, {faults} faults, at most {steps_max} steps, {:.0} s simulated in {wall_s:.0} s: {:.1} seeds/s",
        failed.len(),
        simulated.as_secs_f64(),
        *seeds as f64 / wall_s.max(1e-9),
    )
}
