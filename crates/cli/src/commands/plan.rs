//! `fanin plan`: figures of a scenario by arithmetic, without simulation.

use std::path::PathBuf;
use std::{fs, io};

use clap::{Args, ValueHint};
use fanin_plan::{Catalogue, Plan, PlanOptions, PlannedScenario, PlannedSummary, TextRole};
use fanin_scenario::Loaded;
use fanin_units::{Bytes, Ratio};

use crate::commands::source::Source;
use crate::failure::Failure;
use crate::output::{self, Json};
use crate::{build_info, colour};

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin plan thesis-a-1000hz --set shaping.credits=480

That frames would be lost is an answer, not a failure: the exit code is 0, and the verdict stands in
the summary.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Write the summary as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Compare cost and space with chassis routers, and sweep ports and spines.
    #[arg(long)]
    cost: bool,
    /// Prices and dimensions to use instead of the built-in ones.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    catalogue: Option<PathBuf>,
    /// Mean fragment size, where the scenario takes sizes from a file.
    #[arg(long, value_name = "SIZE")]
    fragment_mean: Option<Bytes>,
    /// Share of the time that a buffer has to be large enough for.
    #[arg(long, value_name = "SHARE", default_value = "99.9 %", value_parser = quantile)]
    quantile: Ratio,
    /// Print no table.
    #[arg(short, long)]
    quiet: bool,
}

/// Parses a share above 0 and below 1.
fn quantile(text: &str) -> Result<Ratio, String> {
    let share: Ratio = text.parse().map_err(|error: fanin_units::ParseError| error.to_string())?;
    if share.is_zero() || share >= Ratio::ONE {
        return Err("a share lies above 0 and below 1, such as 0.999 or \"99.9 %\"".to_owned());
    }
    Ok(share)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loaded = arguments.source.load()?;
    let readout = &loaded.scenario.readout;
    let sizes = match arguments.fragment_mean {
        Some(mean) => readout.fragment_size.sizes_with_mean(mean, readout.fragments_per_host),
        None => fanin_runs::fragment_sizes(&loaded.scenario)?,
    };
    let options = PlanOptions {
        catalogue: match &arguments.catalogue {
            Some(path) => Catalogue::parse(
                &fs::read_to_string(path)
                    .map_err(|error| Failure::NoCatalogue { path: path.clone(), error })?,
            )?,
            None => Catalogue::shipped(),
        },
        fragment_sizes: Some(sizes),
        quantile: arguments.quantile,
        cost: arguments.cost,
    };
    let plan = fanin_plan::plan(&loaded.scenario, &options)?;
    if let Some(json) = &arguments.json {
        json.write(&summary(&loaded, &plan))?;
    }
    if arguments.quiet || !output::is_for_text(&arguments.json) {
        return Ok(());
    }
    let is_coloured = output::is_coloured(&io::stdout());
    output::print(&plan.table(if is_coloured { style } else { fanin_plan::plain }))
}

fn summary(loaded: &Loaded, plan: &Plan) -> PlannedSummary {
    let scenario = PlannedScenario { name: loaded.name.clone(), hash: loaded.hash() };
    plan.summary(scenario, build_info::VERSION, build_info::COMMIT.map(str::to_owned))
}

fn style(role: TextRole, text: &str) -> String {
    let style = match role {
        TextRole::Heading => colour::HEADING,
        TextRole::Good => colour::GOOD,
        TextRole::Bad => colour::BAD,
        TextRole::Warning => colour::WARNING,
        TextRole::Faint => colour::FAINT,
    };
    format!("{style}{text}{style:#}")
}
