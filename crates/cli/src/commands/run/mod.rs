//! `fanin run`: a scenario for real, on this machine.

mod arguments;
mod background;
mod barrier;
mod building;
mod carried;
mod folder;
mod job;
mod measured;
mod network;

use std::path::Path;

use fanin_scenario::Loaded;
use fanin_testbed::live::LiveRefusal;
use fanin_testbed::{Availability, check, clean, missing_for_namespaces};

pub(crate) use crate::commands::run::arguments::Arguments;
use crate::commands::run::arguments::Place;
use crate::commands::run::carried::Carried;
use crate::commands::run::folder::RunFolder;
use crate::commands::run::job::{AttemptEnd, Job};
use crate::commands::source::Source;
use crate::failure::Failure;
use crate::output::{self, Json};

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.check {
        return print_features(arguments);
    }
    if arguments.clean {
        return clean_up();
    }
    if let Some(folder) = &arguments.out {
        output::prove_folder(folder)?;
    }
    arguments.json.as_ref().map_or(Ok(()), Json::prove)?;
    for file in arguments.pcap.iter().chain(&arguments.trace) {
        output::prove_file(file)?;
    }
    let seed = arguments.seed.map(|seed| format!("run.seed={seed}"));
    let sets = arguments.source.sets.iter().cloned().chain(seed).collect();
    // The parser requires a source where neither --check nor --clean is given.
    let source = arguments.source.source.clone().unwrap_or_default();
    let loaded = Source { source: source.clone(), sets }.load()?;
    check_records(&loaded)?;
    let folder = match &arguments.out {
        Some(out) => RunFolder::kept(out)?,
        None => {
            folder::remove_left_behind();
            RunFolder::temporary()?
        }
    };
    let launcher_log = folder.launcher_log();
    fanin_node::log::install_launcher(arguments.quiet.then_some(launcher_log));
    let source = Path::new(&source);
    let scenario_folder = source.parent().filter(|_| source.is_file()).unwrap_or(Path::new("")).to_owned();
    let is_barrier = loaded.scenario.is_barrier();
    if !is_barrier {
        building::check(&loaded, &scenario_folder)?;
    }
    let has_network = choose(arguments)?;
    background::check(&loaded, has_network)?;
    let carried = if has_network { Some(Carried::find(arguments, &loaded, &folder)?) } else { None };
    let mut slow = loaded.clone();
    if let Some(carried) = &carried {
        slow.scenario = loaded.scenario.slowed(carried.chosen.scale);
    }
    let mut job = Job { arguments, loaded, slow, carried, spoilt: Vec::new(), folder, scenario_folder };
    loop {
        let end = if is_barrier { barrier::run(&job) } else { building::run(&job) };
        match end.or_else(|failure| job.spoilt_by(&failure).map(AttemptEnd::Spoilt).ok_or(failure))? {
            AttemptEnd::Done => return Ok(()),
            AttemptEnd::Spoilt(reason) => job.begin_again(reason),
        }
    }
}

/// Refuses records that only a simulation makes.
fn check_records(loaded: &Loaded) -> Result<(), Failure> {
    let events = &loaded.scenario.record.events;
    if events.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(LiveRefusal::Value {
        key: "record.events".to_owned(),
        given: format!("{events:?}"),
        needed: "an empty list: no device counts an event's bytes; --pcap captures those of a collector"
            .to_owned(),
    }))
}

/// Chooses between namespaces and the loopback; prints once why namespaces are not possible.
fn choose(arguments: &Arguments) -> Result<bool, Failure> {
    let missing = missing_for_namespaces();
    match arguments.wanted_place() {
        Place::Loopback => Ok(false),
        Place::Namespaces => missing.map_or(Ok(true), |missing| Err(Failure::NoNamespaces { missing })),
        Place::Auto => {
            if let Some(missing) = &missing
                && !arguments.quiet
            {
                eprintln!(
                    "note: without {missing} all processes meet on 127.0.0.1, where no network is measured; \
                     `fanin run --check` says more"
                );
            }
            Ok(missing.is_none())
        }
    }
}

/// Prints the features. With a place, the ones for every run in this place must be there.
fn print_features(arguments: &Arguments) -> Result<(), Failure> {
    let mut is_complete = true;
    let mut text = String::new();
    for (feature, verdict) in check() {
        let (word, more) = match &verdict {
            Availability::There(more) => ("yes", more.clone()),
            Availability::Missing(brought_by) => {
                is_complete = false;
                ("NO", format!("for {}; needs: {brought_by}", feature.needed_for))
            }
        };
        text += &format!("{:<20}{word:<5}{more}\n", feature.name);
    }
    let bpf = if cfg!(feature = "bpf") { "yes" } else { "NO" };
    let more = if cfg!(feature = "bpf") {
        "built in"
    } else {
        "for static windows, DCTCP and M21TCP; needs: cargo feature `bpf`"
    };
    is_complete &= cfg!(feature = "bpf");
    text += &format!("{:<20}{bpf:<5}{more}\n", "BPF programs");
    output::print(&text)?;
    match arguments.wanted_place() {
        Place::Auto if !is_complete => Err(Failure::Incomplete),
        Place::Auto | Place::Loopback => Ok(()),
        Place::Namespaces => {
            missing_for_namespaces().map_or(Ok(()), |missing| Err(Failure::NoNamespaces { missing }))
        }
    }
}

fn clean_up() -> Result<(), Failure> {
    let cleaned = clean()?;
    let folders = folder::remove_left_behind();
    output::print(&match (cleaned.runs, folders) {
        (0, 0) => "nothing was left behind\n".to_owned(),
        _ => format!(
            "removed the remains of killed runs: {} namespaces, {} processes inside, {folders} folders of temporary files\n",
            cleaned.namespaces, cleaned.processes
        ),
    })
}
