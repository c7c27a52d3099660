//! Prints the plan of a scenario: `cargo run -p fanin-plan --example plan -- thesis-a-1000hz shaping.credits=480`.

use fanin_plan::{Options, ScenarioName, plain, plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let cost = arguments.iter().any(|argument| argument == "--cost");
    arguments.retain(|argument| !argument.starts_with("--"));
    let name = if arguments.is_empty() { "thesis-a-1000hz".to_owned() } else { arguments.remove(0) };
    let loaded = fanin_scenario::load(&name, &arguments).map_err(|errors| format!("{errors:?}"))?;
    let plan = plan(&loaded.scenario, &Options { cost, ..Options::default() })?;
    let mut out = std::io::stdout().lock();
    use std::io::Write;
    if is_json {
        let scenario = ScenarioName { hash: loaded.hash(), name: loaded.name };
        let summary = plan.summary(scenario, env!("CARGO_PKG_VERSION"), None);
        writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
    } else {
        write!(out, "{}", plan.table(plain))?;
    }
    Ok(())
}
