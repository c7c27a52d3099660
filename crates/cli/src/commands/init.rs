//! `fanin init`: a commented scenario to begin with, after three questions or like another one.

use std::fmt::{Display, Write as _};
use std::io::{self, BufRead, Write as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueHint};
use fanin_units::{Bytes, Duration, ParseError, Rate};

use crate::failure::Failure;
use crate::output;

/// Wrong answers to one question before the command gives up.
const TRIES: usize = 5;
/// The most senders of a scenario.
const SENDERS_MAX: u32 = 65_535;
/// Shortest run: ten times the least timeout of today's kernels.
const RUN_MIN: Duration = Duration::from_secs(2);
/// Rounds that a run should have.
const ROUNDS: u64 = 20;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin init first.toml --senders 24 --size \"64 kB\" --rate \"25 Gb/s\"
Example: fanin init atlas.toml --like thesis-a-1000hz

Asks for values that no option gives; an empty answer takes the value in brackets. The file
describes one host that asks many at once. For event building with many collectors, begin with
--like.")]
pub(crate) struct Arguments {
    /// The file to write; `-` is standard output.
    #[arg(value_name = "FILE", default_value = "scenario.toml", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Write the settings of a preset (`fanin scenario list`) or of a file, each with its meaning, instead of asking.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["senders", "size", "rate"])]
    like: Option<String>,
    /// Hosts that answer at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SENDERS_MAX)))]
    senders: Option<u32>,
    /// Bytes that each of them sends.
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    size: Option<Bytes>,
    /// Rate of the links.
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    rate: Option<Rate>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
}

/// The most bytes that a sender sends: 1 TiB.
const SIZE_MAX: Bytes = Bytes::new(1 << 40);
/// Rates of a link.
const RATES: RangeInclusive<Rate> = Rate::new(1_000)..=Rate::new(10_000_000_000_000);

fn is_size(size: Bytes) -> bool {
    !size.is_zero() && size <= SIZE_MAX
}

fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: ParseError| error.to_string())?;
    if is_size(size) {
        Ok(size)
    } else {
        Err("a size is positive, from 1 B to 1 TiB, such as \"64 kB\"".to_owned())
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: ParseError| error.to_string())?;
    if RATES.contains(&rate) {
        Ok(rate)
    } else {
        Err("a rate is positive, from 1 kb/s to 10 Tb/s, such as \"25 Gb/s\"".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_stdout = arguments.file == Path::new("-");
    if !is_stdout {
        if arguments.file.exists() && !arguments.force {
            return Err(Failure::Exists { path: arguments.file.clone() });
        }
        output::prove_file(&arguments.file)?;
    }
    let text = match &arguments.like {
        Some(name) => like(name)?,
        None => ask_all(arguments)?,
    };
    fanin_scenario::load_text("scenario", &text, &[])?;
    if is_stdout {
        return output::print(&text);
    }
    let path = &arguments.file;
    std::fs::write(path, text).map_err(|error| Failure::Write { path: path.clone(), error })?;
    let name = path.display();
    let out = path.with_extension("");
    output::print(&format!(
        "Wrote {name}. Read it, put in your numbers, then:\n  fanin plan {name}\n  fanin sim {name} --out {}\n",
        out.display()
    ))
}

/// Returns the settings of another scenario, each with its meaning.
fn like(name: &str) -> Result<String, Failure> {
    let loaded = fanin_scenario::load(name, &[])?;
    let mut text = format!(
        "# The settings of `{}`, written by `fanin init --like`. Every other key has its default:\n# `fanin scenario \
         show FILE` prints them all, and docs/scenario.md describes them.\n\n",
        loaded.name
    );
    text.push_str(&loaded.to_toml_with_meanings());
    Ok(text)
}

/// Asks for settings without an option, and writes the scenario.
fn ask_all(arguments: &Arguments) -> Result<String, Failure> {
    let senders = arguments.senders.map_or_else(
        || {
            ask("How many hosts answer one host at once?", 16, |&senders: &u32| {
                (1..=SENDERS_MAX).contains(&senders)
            })
        },
        Ok,
    )?;
    let size = arguments.size.map_or_else(
        || ask("How many bytes does each of them send?", Bytes::new(64_000), |&size: &Bytes| is_size(size)),
        Ok,
    )?;
    let rate = arguments.rate.map_or_else(
        || ask("How fast are the links?", Rate::new(10_000_000_000), |rate: &Rate| RATES.contains(rate)),
        Ok,
    )?;
    Ok(scenario(senders, size, rate))
}

/// Asks a question until the answer is valid. Uses standard error, so that standard output holds the scenario alone.
fn ask<T: FromStr + Display>(
    question: &str,
    default: T,
    is_right: impl Fn(&T) -> bool,
) -> Result<T, Failure> {
    let mut answer = String::new();
    for _ in 0..TRIES {
        let mut terminal = io::stderr();
        // A closed terminal gives no answer either.
        let _ = write!(terminal, "{question} [{default}] ").and_then(|()| terminal.flush());
        answer.clear();
        let read = io::stdin().lock().read_line(&mut answer)?;
        let answer = answer.trim();
        if read == 0 {
            let _ = writeln!(terminal);
        }
        if answer.is_empty() {
            return Ok(default);
        }
        match answer.parse() {
            Ok(value) if is_right(&value) => return Ok(value),
            _ => {
                let _ = writeln!(terminal, "`{answer}` is not a valid answer; for example: {default}");
            }
        }
    }
    Err(Failure::Unanswered { question: question.to_owned(), given: answer.trim().to_owned() })
}

/// Returns the text of a scenario in which one host asks many others.
fn scenario(senders: u32, size: Bytes, rate: Rate) -> String {
    let all = size.checked_mul(senders.into()).unwrap_or(Bytes::MAX);
    let round = rate.checked_time_to_send(all).unwrap_or(Duration::MAX);
    let needed = round.checked_mul(ROUNDS).unwrap_or(Duration::MAX).max(RUN_MIN);
    let seconds = needed.get().div_ceil(Duration::from_secs(1).get()).min(24 * 3_600);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        r#"# Written by `fanin init`. Try `fanin plan FILE`, then `fanin sim FILE --out out`.
# Every other key has its default: `fanin scenario show FILE` prints them all, docs/scenario.md describes them.
title = "{senders} hosts send {size} each to one host"

[workload]
# One host asks all senders at once, and asks again as soon as all have answered.
kind = "fixed-fragment"
# Hosts that answer.
senders = {senders}
# Bytes that each of them sends.
request_size = "{size}"
# Each sender waits up to this long before it answers.
service_delay_max = "100 us"

[readout]
# No other delay of the senders.
response_delay = "0 s"

[collectors]
# The one host that asks.
hosts_per_rack = 1
units_per_host = 1

[network]
# All hosts on one switch. Other shapes: racks, leaf-spine, hybrid.
topology = "star"

[link]
# Rate of each link. Set readout.link.rate if that of the senders differs.
rate = "{rate}"
# Time on the cable, one way.
delay = "1 us"

[tor]
# The switch. Its ports share one memory, and each may hold as much as is still free (alpha = 1), as in most switches.
buffering = "dynamic-threshold"
# Look it up in the data sheet. `fanin advise FILE --only gear` tries known switches.
buffer = "16 MB"
alpha = 1

[transport]
# TCP of a current Linux kernel.
profile = "linux-6"

[run]
# Long enough for several timeouts of 200 ms, and for {ROUNDS} rounds.
duration = "{seconds} s"
warmup = "0 s"
"#
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_gives_a_sound_scenario() {
        for (senders, size, rate) in
            [(1, 1, 1_000), (16, 64_000, 10_000_000_000), (65_535, 61_000_000, 400_000_000_000)]
        {
            let text = scenario(senders, Bytes::new(size), Rate::new(rate));
            let loaded =
                fanin_scenario::load_text("init", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
            assert!(loaded.warnings.problems().is_empty(), "{senders} {size} {rate}");
            assert_eq!((loaded.scenario.workload.senders, loaded.scenario.link.rate.get()), (senders, rate));
        }
    }

    #[test]
    fn a_copy_has_the_settings_and_their_meanings() {
        for preset in fanin_scenario::presets() {
            let text = like(preset.name).unwrap();
            let copy =
                fanin_scenario::load_text("copy", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
            let original = fanin_scenario::load(preset.name, &[]).unwrap();
            assert_eq!(copy.hash(), original.hash(), "{}", preset.name);
        }
        let text = like("incast").unwrap();
        assert!(text.contains("# Senders of a barrier workload"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 120 && !line.ends_with(' ')), "{text}");
    }
}
