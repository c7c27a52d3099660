//! Child processes of the workloads that are no data acquisition: their logs, their surroundings, their end.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::roles::processor::PARENT;

/// Returns the path of a process's log in the folder of its system.
pub(crate) fn log_path(folder: &Path, process: &str) -> PathBuf {
    folder.join("log").join(format!("{process}.log"))
}

/// Returns the content of a process's log; empty if there is none.
pub(crate) fn read_log(folder: &Path, process: &str) -> String {
    fs::read_to_string(log_path(folder, process)).unwrap_or_default().trim_end().to_owned()
}

/// Lets a command write to its process's log, end with its parent, and get no Ctrl-C of its own.
pub(crate) fn attach(command: &mut Command, folder: &Path, process: &str) -> io::Result<()> {
    let log = File::create(log_path(folder, process))?;
    command.env(PARENT, std::process::id().to_string());
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // Ctrl-C reaches only the parent, which stops the other processes in order.
    command.process_group(0);
    Ok(())
}

/// Sends a signal to a child.
pub(crate) fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The child has not been waited for, so the kernel has not reused its PID.
        let _ = kill_process(pid, signal);
    }
}
