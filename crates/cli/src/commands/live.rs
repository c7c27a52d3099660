//! A scenario run for real by a process of its own, for commands that need several runs.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fanin_report::RunResult;
use rustix::process::{Pid, Signal, kill_process};

use super::temporary;
use crate::failure::Failure;
use crate::interrupt;

/// Time that a run gets to end in order after Ctrl-C.
const ENDING: Duration = Duration::from_secs(30);

/// The end of a run.
pub(crate) enum LiveEnd {
    /// The run has a result; its summary says whether it is valid.
    Measured {
        /// The summary and tables of the run.
        result: Box<RunResult>,
        /// The loss or failure that its exit code reports.
        fault: Option<String>,
    },
    /// The machine carries the scenario at no scale, or not at the scale that is set.
    TooSlow(String),
    /// The live system cannot be built or does not have what the scenario asks for.
    Refused(String),
    /// The run has no result, for this reason.
    Missing(String),
}

/// Runs a scenario in network namespaces, as `fanin run --out` does, and reads the result.
///
/// Removes the result of an earlier run in the folder `out`, which must not be taken for this run's. A run that takes longer
/// than `limit` is ended by force.
///
/// # Errors
/// If the run lacks a privilege or a feature of the kernel, or its result cannot be read.
pub(crate) fn measure(
    source: &Path,
    sets: &[String],
    out: &Path,
    limit: Option<Duration>,
) -> Result<LiveEnd, Failure> {
    if let Err(error) = std::fs::remove_dir_all(out)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Failure::Write { path: out.to_owned(), error });
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").arg(source).args(sets.iter().map(|set| format!("--set={set}")));
    command.args(["--place", "namespaces", "--quiet"]).arg("--out").arg(out);
    // A group of its own: Ctrl-C at the terminal reaches it once, from here.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let (code, said) = wait(command.spawn()?, limit)?;
    let reason = said.trim().trim_start_matches("error: ").to_owned();
    match code {
        // Other scenarios run without the feature that this one alone needs.
        Some(3) if !cfg!(feature = "bpf") && reason.contains("`bpf`") => Ok(LiveEnd::Missing(reason)),
        Some(3) => Err(Failure::Unprivileged { reason }),
        // 4 says that the machine was the bottleneck; so does the summary.
        Some(code @ (0 | 1 | 4)) if out.join(fanin_report::SUMMARY_FILE).exists() => Ok(LiveEnd::Measured {
            result: Box::new(fanin_report::read(out)?),
            fault: (code == 1).then_some(reason),
        }),
        Some(4) => Ok(LiveEnd::TooSlow(reason)),
        Some(2) => Ok(LiveEnd::Refused(reason)),
        _ if reason.is_empty() => Ok(LiveEnd::Missing("it was ended by force".into())),
        _ => Ok(LiveEnd::Missing(reason)),
    }
}

/// Waits for a process, at most `limit`. Returns its exit code and the text of its standard error; no code for a killed process.
fn wait(mut child: Child, limit: Option<Duration>) -> Result<(Option<i32>, String), Failure> {
    let began = Instant::now();
    let mut pipe = child.stderr.take().expect("it is piped");
    let reader = std::thread::spawn(move || std::io::read_to_string(&mut pipe).unwrap_or_default());
    let mut interrupted: Option<Instant> = None;
    let code = loop {
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        if interrupted.is_none() && interrupt::flag().load(Ordering::Relaxed) {
            interrupted = Some(Instant::now());
            // It may just have ended.
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
        }
        let is_late = limit.is_some_and(|limit| began.elapsed() > limit);
        if is_late || interrupted.is_some_and(|since| since.elapsed() > ENDING) {
            // The next run removes its remains.
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    Ok((code, reader.join().unwrap_or_default()))
}

/// The folder of several runs' results; removed at the end unless the user named it.
pub(crate) struct ResultFolder {
    pub(crate) path: PathBuf,
    is_kept: bool,
}

impl ResultFolder {
    /// Makes the folder `asked`, or a temporary one with the command's name.
    pub(crate) fn new(asked: Option<&Path>, command: &str) -> Result<Self, Failure> {
        let Some(path) = asked else {
            return Ok(Self { path: temporary::create(&format!("fanin-{command}-"))?, is_kept: false });
        };
        std::fs::create_dir_all(path).map_err(|error| Failure::Write { path: path.to_owned(), error })?;
        Ok(Self { path: path.to_owned(), is_kept: true })
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // A folder that cannot be removed stays with the temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
