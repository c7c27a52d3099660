//! `fanin advise`: which buffers, settings, techniques and switches do, each line by simulations made for it.

mod laboratory;
mod lines;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_reproduce::{TECHNIQUE_NEEDS, TECHNIQUES, Technique};
use fanin_scenario::{Loaded, Topology};
use fanin_tune::{Constraint, Gear, GearMemory, Goal, KeyRange, Objective, SearchLimits, Sense, TunedKey};

use crate::commands::sim;
use crate::commands::source::Source;
use crate::commands::tune::table::Tuned;
use crate::commands::tune::trials::{TrialPlace, Trials};
use crate::failure::Failure;
use crate::output::{self, Json};
use lines::{Advice, AdviceLine, AdvicePart};
use serde_json::{Value, json};

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin advise incast --only buffers --set \"run.duration=1 s\"

Each line is found by simulations of its own; --out keeps them, with a page for each line. That
nothing works is an answer, not a failure: the exit code is 0, and 130 after Ctrl-C. Ranges and
objectives of your own are for fanin tune.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// A constraint that each answer must meet, such as "p99<20 ms"; may be given several times. By default drops=0.
    #[arg(long, value_name = "CONSTRAINT")]
    subject: Vec<Constraint>,
    /// Only these parts of the advice.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<AdvicePart>,
    /// Switches to judge in place of the built-in ones: TOML, `[[gear]]` with name, buffer, port and source.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    catalogue: Option<PathBuf>,
    /// The result of `fanin run` for a smaller system in a laboratory: it is simulated too, and its error is carried to the
    /// buffers. May be given several times.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    measured: Vec<PathBuf>,
    /// Seeds of each simulated point.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// The first seed, in place of the scenario's `run.seed`.
    #[arg(long, value_name = "N", value_parser = sim::seed)]
    seed: Option<u64>,
    /// Simulations at a time; results never depend on it. By default one for each core.
    #[arg(long, value_name = "N", value_parser = crate::commands::sim::threads)]
    threads: Option<u16>,
    /// Write advice.json, advice.txt, index.html, and for each line a folder with its simulations and their page.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Write the content of advice.json to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Show no progress and no text.
    #[arg(long, short)]
    quiet: bool,
}

/// Buffers of the classes of ports.
const BUFFERS: [&str; 10] = [
    "tor.buffer",
    "tor.uplink_buffer",
    "core.buffer",
    "core.uplink_buffer",
    "aggregation.buffer",
    "aggregation.uplink_buffer",
    "leaf.buffer",
    "leaf.uplink_buffer",
    "spine.buffer",
    "spine.uplink_buffer",
];
/// The smallest buffer that is tried, in bytes, where the scenario takes it: about ten frames.
const BUFFER_MIN: u64 = 16_000;
/// The setting of a technique to find a range for.
const KNOBS: [(&str, &str); 4] = [
    ("credits", "shaping.credits"),
    ("static", "transport.static_window=1 packets..64 packets"),
    ("diatcp", "transport.diatcp.global_window"),
    ("daqring", "tor.daqring.rate"),
];
/// Limits of the search for one line.
const SIMULATIONS: usize = 24;
const PRECISION: f64 = 0.1;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(folder) = &arguments.out {
        output::prove_folder(folder)?;
    }
    arguments.json.as_ref().map_or(Ok(()), Json::prove)?;
    let gear = match &arguments.catalogue {
        Some(path) => Gear::read(
            &std::fs::read_to_string(path)
                .map_err(|error| Failure::NoCatalogue { path: path.clone(), error })?,
        )?,
        None => Gear::read(Gear::BUILT_IN)?,
    };
    let seed = arguments.seed.map(|seed| format!("run.seed={seed}"));
    let sets: Vec<String> = arguments.source.sets.iter().cloned().chain(seed).collect();
    let source = Source { source: arguments.source.source.clone(), sets };
    let loaded = source.load()?;
    let mut constraints = arguments.subject.clone();
    if constraints.is_empty() {
        constraints.push("drops=0".parse()?);
    }
    let mut adviser = Adviser { arguments, source, loaded, constraints, advice: Advice::default() };
    // Contradictions are found before anything runs.
    adviser.goal(Sense::Minimise, "mean")?;
    let mut parts = if arguments.only.is_empty() { AdvicePart::ALL.to_vec() } else { arguments.only.clone() };
    if parts.contains(&AdvicePart::Laboratory) && !parts.contains(&AdvicePart::Buffers) {
        // The error is carried to the smallest buffers, which are found first.
        parts.push(AdvicePart::Buffers);
    }
    if arguments.only.contains(&AdvicePart::Laboratory) && arguments.measured.is_empty() {
        return Err(Failure::NotMeasured);
    }
    for part in AdvicePart::ALL.into_iter().filter(|part| parts.contains(part)) {
        match part {
            AdvicePart::Buffers => adviser.buffers()?,
            AdvicePart::Laboratory => {
                if let Some(carried) = adviser.laboratories()? {
                    adviser.scaled(&carried)?;
                }
            }
            AdvicePart::Ranges => adviser.ranges()?,
            AdvicePart::Techniques => adviser.techniques()?,
            AdvicePart::Gear => adviser.gear(&gear)?,
        }
    }
    let advice = adviser.advice;
    let value = advice.value(&adviser.loaded, &adviser.constraints);
    let text = advice.text();
    if let Some(folder) = &arguments.out {
        advice.write(folder, &value, &text)?;
    }
    if let Some(json) = &arguments.json {
        json.write(&value)?;
    }
    if !arguments.quiet && output::is_for_text(&arguments.json) {
        output::print(&text)?;
        for caution in &advice.cautions {
            output::note(&format!("of some simulations: {caution}"));
        }
        if let Some(folder) = &arguments.out {
            output::print(&format!("The page: {}\n", folder.join(fanin_report::SWEEP_PAGE).display()))?;
        }
    }
    if advice.is_stopped { Err(Failure::Stopped) } else { Ok(()) }
}

/// The advice in the making.
struct Adviser<'a> {
    arguments: &'a Arguments,
    source: Source,
    loaded: Loaded,
    constraints: Vec<Constraint>,
    advice: Advice,
}

impl Adviser<'_> {
    fn goal(&self, sense: Sense, of: &str) -> Result<Goal, Failure> {
        Ok(Goal::new(Objective::new(sense, of)?, self.constraints.clone())?)
    }

    /// Loads the scenario with more settings. An error holds the reason for which the scenario refuses them.
    fn with(&self, sets: &[String]) -> Result<Loaded, String> {
        let sets: Vec<String> = self.source.sets.iter().chain(sets).cloned().collect();
        fanin_scenario::load(&self.source.source, &sets).map_err(|errors| {
            errors.problems().first().map_or_else(String::new, |problem| problem.message().to_owned())
        })
    }

    /// Simulates one line: a search over the keys, or without keys a single point.
    fn line(
        &mut self,
        part: AdvicePart,
        name: &str,
        sets: &[String],
        keys: &[TunedKey],
        goal: &Goal,
        needs: &str,
    ) -> Result<(), Failure> {
        if self.advice.is_stopped {
            return Ok(());
        }
        let sets = self.source.sets.iter().chain(sets).cloned().collect();
        let source = Source { source: self.source.source.clone(), sets };
        let folder = lines::folder_name(part, name);
        let out = self.arguments.out.as_ref().map(|out| out.join(&folder));
        let place = TrialPlace::simulator(self.arguments.threads);
        let mut trials = Trials::new(&source, keys, goal, place, out.as_deref(), self.arguments.quiet)?;
        let limits = SearchLimits {
            seeds: self.arguments.seeds,
            simulations: SIMULATIONS.saturating_mul(self.arguments.seeds as usize),
            precision: PRECISION,
        };
        let found = trials.search(limits);
        match trials.failure() {
            None => {}
            Some(Failure::Sim(error)) => {
                self.advice.refused(part, name, &error.to_string(), needs);
                return Ok(());
            }
            Some(failure) => return Err(failure),
        }
        let tuned = Tuned { place, goal, keys, limits, found: &found, played: trials.played() };
        let value = tuned.value(&trials.scenario());
        if let Some(out) = &out {
            tuned.write(out, &value)?;
        }
        self.advice.is_stopped |= found.is_stopped;
        self.advice.cautions.extend(trials.played().iter().flat_map(|played| played.result.cautions()));
        if !found.is_stopped {
            let folder = out.map(|_| folder);
            self.advice.lines.push(AdviceLine::new(part, name, &tuned, needs, folder, value));
        }
        Ok(())
    }

    /// Returns the keys of buffers that have an effect in this scenario.
    fn effective_buffers(&self) -> Vec<TunedKey> {
        BUFFERS.iter().filter_map(|key| self.effective_buffer(key).ok()).collect()
    }

    /// Returns the key of a buffer, if it has an effect in this scenario. An error holds the reason why not.
    fn effective_buffer(&self, key: &str) -> Result<TunedKey, String> {
        let key = TunedKey::new(&KeyRange::objective(key), &self.loaded.scenario)
            .map_err(|error| error.to_string())?;
        if self.loaded.scenario.network.topology == Topology::Star && key.key != "tor.buffer" {
            return Err("a star has one switch, `tor`, without uplinks".to_owned());
        }
        // A default that is set again brings no warning, so another value is set.
        let with = self.with(&[key.set(key.axis.high)])?;
        let known = self.loaded.warnings.problems();
        let is_known = |message: &str| known.iter().any(|known| known.message() == message);
        let new = with.warnings.problems().iter().find(|problem| !is_known(problem.message()));
        new.map_or(Ok(key), |problem| Err(problem.message().to_owned()))
    }

    /// Searches for the smallest buffer of each class of ports, with all other buffers large.
    fn buffers(&mut self) -> Result<(), Failure> {
        let keys = self.effective_buffers();
        for key in &keys {
            let mut key = key.clone();
            key.axis.low = key.axis.low.min(BUFFER_MIN);
            while key.axis.low < key.axis.start && self.with(&[key.set(key.axis.low)]).is_err() {
                key.axis.low *= 2;
            }
            let others = keys.iter().filter(|other| other.key != key.key);
            let sets: Vec<String> = others.map(|other| other.set(other.axis.high)).collect();
            let goal = self.goal(Sense::Minimise, &key.key)?;
            self.line(AdvicePart::Buffers, &key.key.clone(), &sets, &[key], &goal, "")?;
        }
        let mut idle: Vec<(String, Vec<&str>)> = Vec::new();
        for key in BUFFERS {
            let Err(why) = self.effective_buffer(key) else { continue };
            let why = why.split_once("has no effect here: ").map_or(&*why, |(_, why)| why).to_owned();
            match idle.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, keys)) => keys.push(key),
                None => idle.push((why, vec![key])),
            }
        }
        if !idle.is_empty() {
            let texts = idle.iter().map(|(why, keys)| format!("{} ({why})", keys.join(", ")));
            self.advice.note(AdvicePart::Buffers, "no effect", &texts.collect::<Vec<_>>().join("; "), "");
        }
        Ok(())
    }

    /// Searches for the range of each technique's main setting that works.
    fn ranges(&mut self) -> Result<(), Failure> {
        let goal = self.goal(Sense::Minimise, "mean")?;
        for (name, knob) in KNOBS {
            let Some(technique) = TECHNIQUES.iter().find(|technique| technique.name == name) else {
                continue;
            };
            let sets = settings(technique);
            let scenario = &self.loaded.scenario;
            let range = match knob {
                "tor.daqring.rate" => format!("{knob}={}..{}", scenario.link.rate / 4, scenario.link.rate),
                // From the credits of one answer on.
                "shaping.credits" => {
                    let least = scenario.readout.fragments_per_host;
                    let most = scenario.shaping.credits.max(least).saturating_mul(16);
                    format!("{knob}={least}..{most}")
                }
                knob => knob.to_owned(),
            };
            let range: KeyRange = range.parse().expect("a range of the table is written as a user's");
            let key = self.with(&sets).and_then(|loaded| {
                TunedKey::new(&range, &loaded.scenario).map_err(|error| error.to_string())
            });
            match key {
                Ok(key) => {
                    self.line(
                        AdvicePart::Ranges,
                        &key.key.clone(),
                        &sets,
                        &[key],
                        &goal,
                        technique.description,
                    )?;
                }
                Err(why) => self.advice.refused(AdvicePart::Ranges, &range.key, &why, technique.description),
            }
        }
        Ok(())
    }

    /// Simulates each technique with its settings of `fanin compare`, and adds a line with its figures.
    fn techniques(&mut self) -> Result<(), Failure> {
        let goal = self.goal(Sense::Minimise, "mean")?;
        for (technique, needs) in TECHNIQUES.iter().zip(TECHNIQUE_NEEDS) {
            let sets = settings(technique);
            let needs = format!("switches: {}; hosts: {} [{}]", needs.switches, needs.hosts, needs.source);
            match self.with(&sets) {
                Ok(_) => self.line(AdvicePart::Techniques, technique.name, &sets, &[], &goal, &needs)?,
                Err(why) => self.advice.refused(AdvicePart::Techniques, technique.name, &why, &needs),
            }
        }
        Ok(())
    }

    /// Simulates each switch of the catalogue as the collectors' switch, its buffer shared by a dynamic threshold.
    fn gear(&mut self, gear: &[Gear]) -> Result<(), Failure> {
        let goal = self.goal(Sense::Minimise, "mean")?;
        let buffers = self.effective_buffers();
        let Some((section, _)) = buffers.first().and_then(|key| key.key.split_once('.')) else {
            return Ok(());
        };
        // The least costly kind comes first, and the smallest of each kind.
        let mut gear: Vec<&Gear> = gear.iter().collect();
        gear.sort_by_key(|one| (one.memory, one.buffer));
        for one in gear {
            let pool = one.buffer / one.pools;
            let sets = match one.memory {
                // All ports of one chip are one module, which holds frames back at its inputs.
                GearMemory::OffChip => vec![
                    format!("{section}.buffering=voq"),
                    format!("{section}.buffer={pool}"),
                    format!("{section}.module_ports={}", u16::MAX),
                ],
                GearMemory::OnChip | GearMemory::Software => {
                    vec![format!("{section}.buffering=dynamic-threshold"), format!("{section}.buffer={pool}")]
                }
            };
            let shared = match (one.memory, one.pools) {
                (GearMemory::OffChip, _) => {
                    "with virtual output queues; the bandwidth of that memory is not modelled".to_owned()
                }
                (_, 1) => "shared by dynamic threshold".to_owned(),
                (_, pools) => {
                    format!("in {pools} pools, of which one serves the collectors, by dynamic threshold")
                }
            };
            let price = one.price.as_ref().map_or_else(
                || "no public price".to_owned(),
                |price| format!("{} [{}]", price.text, price.source),
            );
            let about =
                format!("{} {shared} [{}]; cost: {price}; {}", one.buffer, one.source, one.memory.cost());
            let rate = self.loaded.scenario.link.rate;
            let lines = self.advice.lines.len();
            if one.port < rate {
                let why = format!("its ports have {}, the scenario's links {rate}", one.port);
                self.advice.refused(AdvicePart::Gear, &one.name, &why, &about);
            } else {
                match self.with(&sets) {
                    Ok(_) => self.line(AdvicePart::Gear, &one.name, &sets, &[], &goal, &about)?,
                    Err(why) => self.advice.refused(AdvicePart::Gear, &one.name, &why, &about),
                }
            }
            if self.advice.lines.len() > lines {
                self.advice.extend_last("cost", cost(one));
            }
        }
        let least = self.advice.met(AdvicePart::Gear).next().map(str::to_owned);
        if let Some(least) = least.filter(|_| !self.advice.is_stopped) {
            let about = "by kind of memory, then by size: prices of most of these switches are not public";
            self.advice.note(AdvicePart::Gear, "the least costly that works", &least, about);
        }
        Ok(())
    }
}

/// Returns a switch's class of cost and its public price, for JSON.
fn cost(gear: &Gear) -> Value {
    let mut cost = json!({ "class": gear.memory.name(), "about": gear.memory.cost() });
    if let Some(price) = &gear.price {
        cost["price"] = json!(price.text);
        cost["source"] = json!(price.source);
    }
    cost
}

fn settings(technique: &Technique) -> Vec<String> {
    technique.sets.iter().map(|&set| set.to_owned()).collect()
}
