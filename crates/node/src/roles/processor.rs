//! The processor: the built-in one, or the command in `live.processor`.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use fanin_dataflow::{Decision, Random};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use fanin_scenario::{Processors, Scenario};

use crate::clock::std_duration;
use crate::config::System;
use crate::node::ProcessError;
use crate::unit::client::{ProcessorEvent, serve};

/// Environment variable with the PID of the parent, for a process that ends together with it.
pub const PARENT: &str = "FANIN_PARENT";
/// Environment variable with the path of the collector's socket, for a processor.
pub const COLLECTOR: &str = "FANIN_COLLECTOR";
/// Environment variable with the number of the processor's unit on its collector.
pub const UNIT: &str = "FANIN_UNIT";

/// Makes the kernel kill this process when its parent ends (`PR_SET_PDEATHSIG`). Does nothing without [`PARENT`].
///
/// # Errors
/// [`ProcessError::Orphan`] if the parent has already ended, [`ProcessError::Own`] if the kernel refuses.
pub fn end_with_parent() -> Result<(), ProcessError> {
    let Some(parent) = std::env::var(PARENT).ok().and_then(|parent| parent.parse::<i32>().ok()) else {
        return Ok(());
    };
    let failed = |error: rustix::io::Errno| ProcessError::Own {
        failure: "cannot follow the parent",
        error: error.into(),
    };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    // The parent may have ended before the call.
    match getppid() {
        Some(now) if now.as_raw_nonzero().get() == parent => Ok(()),
        _ => Err(ProcessError::Orphan),
    }
}

/// Checks that the command in `live.processor`, if any, can be run. Otherwise a misspelt name would be retried forever.
/// Relative paths start at `folder`, the scenario's folder.
///
/// # Errors
/// If the program, or a Python file among its arguments, does not exist.
pub fn check(scenario: &Scenario, folder: &Path) -> Result<(), ProcessError> {
    let Some((program, arguments)) = scenario.live.processor.split_first() else { return Ok(()) };
    if scenario.live.processors != Processors::Processes {
        return Ok(());
    }
    let wrong = |text: String| Err(ProcessError::Unsupported(text));
    let can_run = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let found = if program.contains('/') {
        can_run(&folder.join(program))
    } else {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|path| can_run(&path.join(program)))
    };
    if !found {
        let problem = if program.contains('/') { "no executable file" } else { "not found in PATH" };
        return wrong(format!(
            "`live.processor`: cannot run {program:?}: {problem}; give a command, such as [\"python3\", \"choose.py\"]"
        ));
    }
    match arguments.iter().find(|argument| argument.ends_with(".py") && !folder.join(argument).is_file()) {
        Some(absent) => wrong(format!(
            "`live.processor`: no file {absent:?} in {}",
            if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.display()
        )),
        None => Ok(()),
    }
}

/// Runs a processor until its collector ends the connection.
///
/// # Errors
/// If the command cannot be run, the connection fails, or the collector violates the protocol.
pub fn run(system: &System, collector: u16, unit: Option<u16>) -> Result<(), ProcessError> {
    let socket = system.socket(collector);
    if let Some((program, arguments)) = system.scenario().live.processor.split_first() {
        let mut command = Command::new(program);
        command.args(arguments).env(COLLECTOR, &socket).current_dir(system.scenario_folder_or_here());
        if let Some(unit) = unit {
            command.env(UNIT, unit.to_string());
        }
        // `exec` returns only if it fails. The parent-death signal persists across it.
        let error = command.exec();
        let error = std::io::Error::new(error.kind(), format!("{program:?}: {error}"));
        return Err(ProcessError::Own { failure: "cannot run live.processor", error });
    }
    let scenario = system.scenario();
    let steps = fanin_scenario::role_configs::steps(scenario, scenario.readout.hosts.into());
    let seed = scenario.run.seed;
    Ok(serve(&socket, unit, |event| decide(event, &steps, seed))?)
}

/// Checks every fragment, sleeps for the drawn processing time, and draws a decision by the scenario. The draws depend
/// only on seed, event and step.
fn decide(event: &ProcessorEvent<'_>, steps: &[fanin_dataflow::CollectionStep], seed: u64) -> Decision {
    let began = std::time::Instant::now();
    if let Some(fragment) = event.fragments().find(|fragment| !fragment.is_sound()) {
        tracing::error!(event = event.l1_id.0, source = fragment.source, "a fragment is corrupted");
        // No unit can decide on this event: the loss of this process sends it to the debug stream.
        std::process::exit(1);
    }
    let mut random = Random::new(seed ^ event.l1_id.0.rotate_left(20) ^ u64::from(event.step));
    let Some(step) = steps.get(usize::from(event.step)) else { return Decision::Reject };
    let time = std_duration(step.processing_time.draw(&mut random));
    std::thread::sleep(time.saturating_sub(began.elapsed()));
    if !random.chance(step.accept) {
        return Decision::Reject;
    }
    match steps.get(usize::from(event.step) + 1) {
        Some(next) => Decision::Collect(next.collect.clone()),
        None => Decision::Accept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(processor: &str, folder: &str) -> Result<(), String> {
        let sets = [format!("live.processor={processor}")];
        let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        check(&loaded.scenario, Path::new(folder)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_that_cannot_run_is_named_before_anything_runs() {
        assert_eq!(checked("[]", ""), Ok(()));
        assert_eq!(checked(r#"["sh", "-c", "true"]"#, ""), Ok(()));
        assert_eq!(checked(r#"["/bin/sh"]"#, "elsewhere"), Ok(()));
        let text = checked(r#"["phyton3", "choose.py"]"#, "").unwrap_err();
        assert!(text.contains("cannot run \"phyton3\": not found in PATH"), "{text}");
        let text = checked(r#"["./choose"]"#, "/tmp").unwrap_err();
        assert!(text.contains("cannot run \"./choose\": no executable file"), "{text}");
        let text = checked(r#"["sh", "no such.py"]"#, "").unwrap_err();
        assert!(text.contains("no file \"no such.py\" in ."), "{text}");
    }
}
