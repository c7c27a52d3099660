//! `fanin audit`: proves from journals and stored files that no event of a system was lost.

use std::fs::read_dir;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use fanin_node::audit::{Audit, AuditFailure, AuditScope, audit, is_audited};
use fanin_node::config::{ConfigError, System};
use fanin_node::launch::FolderLock;
use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Json};

#[derive(Debug, Args)]
#[command(
    after_help = "`fanin run` audits itself. If other programs start the processes, such as systemd, stop all of them
first, the supervisor before the others. Then name the folders of all hosts, copied or mounted.

Example: fanin audit JOURNALS DATA --json audit.json"
)]
pub(crate) struct Arguments {
    /// Folders with journals and files of stored events; a run's --out folder stands for those below it.
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// The system has no loggers: an accepted event is on no disk.
    #[arg(long)]
    without_loggers: bool,
    /// Older journals were deleted, as `live.journal_parts` says: their events are unproven. Known without this option if a
    /// folder has the run's `system.toml`.
    #[arg(long)]
    journals_deleted: bool,
    /// Write the verdict as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut folders = Vec::new();
    for folder in &arguments.folders {
        let found = audited_below(folder)
            .map_err(|error| Failure::NothingToAudit { folder: folder.clone(), reason: error.to_string() })?;
        folders.extend(found);
    }
    folders.sort();
    folders.dedup();
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    for &folder in &folders {
        FolderLock::check_free(folder)?;
    }
    let scope = AuditScope {
        folders: &folders,
        data: &folders,
        loggers: !arguments.without_loggers,
        assigned_min: 0,
        deletes_journals: arguments.journals_deleted || folders.iter().any(|folder| deletes_journals(folder)),
    };
    let audited = audit(&scope);
    if let Some(json) = &arguments.json {
        json.write(&as_json(&audited))?;
    }
    if output::is_for_text(&arguments.json) {
        output::print(&verdict(&audited))?;
    }
    match audited {
        Ok(audit) if audit.totals.assigned == 0 => Err(Failure::NothingAssigned),
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

/// Returns true if a folder has the file of a system that deletes its older journals.
fn deletes_journals(folder: &Path) -> bool {
    let path = folder.join("system.toml");
    match System::load_without_keys(&path) {
        Ok(system) => system.scenario().live.journal_parts > 0,
        // Journals that were copied here have no such file.
        Err(ConfigError::Read { error, .. }) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => {
            output::note(&format!("no deleted journals are expected, because of this mistake: {error}"));
            false
        }
    }
}

/// Returns the folder and a run's subfolders of it, as far as they hold journals or files of stored events.
fn audited_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let below = ["data", "live", "live/data"].map(|name| folder.join(name));
    let below = below.into_iter().filter(|path| path.is_dir());
    for path in [folder.to_owned()].into_iter().chain(below) {
        let entries: Vec<_> = read_dir(&path)?.collect::<io::Result<_>>()?;
        if entries.iter().any(|entry| is_audited(&entry.file_name().to_string_lossy())) {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(io::Error::other("it has neither journals nor files of stored events"));
    }
    Ok(found)
}

fn as_json(audited: &Result<Audit, AuditFailure>) -> serde_json::Value {
    let (audit, failure) = parts(audited);
    let totals = audit.totals;
    let findings = failure.map_or(&[][..], |failure| &failure.findings);
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    json!({
        "schema": "fanin.audit/1",
        "events": {
            "assigned": totals.assigned,
            "rejected": totals.rejected,
            "accepted": totals.accepted,
            "stored": totals.stored,
            "debug": totals.debug,
            "lost": failure.map_or(0, AuditFailure::lost),
            "duplicated": totals.duplicates,
            "unproven": audit.unproven,
            "unknown": audit.unknown.events,
        },
        "files": audit.files,
        "events_on_disk": audit.events,
        "fragments_missing": audit.missing,
        "checksums": audit.checksums,
        "findings": findings,
    })
}

/// Returns the figures of an audit, and its failure if it failed.
pub(crate) fn parts(audited: &Result<Audit, AuditFailure>) -> (&Audit, Option<&AuditFailure>) {
    match audited {
        Ok(audit) => (audit, None),
        Err(failure) => (&failure.audit, Some(failure)),
    }
}

/// Returns the audit in a few lines of text.
pub(crate) fn verdict(audited: &Result<Audit, AuditFailure>) -> String {
    let (audit, failure) = parts(audited);
    let totals = audit.totals;
    let lost = failure.map_or(0, AuditFailure::lost);
    let mut text = format!(
        "{:<18}{} events assigned = {} rejected + {} stored + {} in the debug stream + {lost} lost",
        "audit",
        totals.assigned,
        totals.rejected + totals.accepted,
        totals.stored,
        totals.debug,
    );
    let sum = totals.rejected + totals.accepted + totals.stored + totals.debug + lost;
    if sum < totals.assigned {
        text += &format!(" + {} that break a rule", totals.assigned - sum);
    }
    text += &format!(
        "; {} files with {} events, {} checksums right\n",
        audit.files, audit.events, audit.checksums
    );
    if audit.unproven > 0 {
        text += &format!(
            "{:<18}{} older events are unproven: `live.journal_parts` had their journals deleted\n",
            "", audit.unproven
        );
    }
    if audit.unknown.events > 0 {
        let torn: Vec<String> =
            audit.unknown.collectors.iter().map(|collector| format!("collector-{collector}")).collect();
        text += &format!(
            "{:<18}{} events are partly unknown: the machine was rebooted while it ran {}\n",
            "",
            audit.unknown.events,
            torn.join(", ")
        );
    }
    if let Some(failure) = failure {
        text += &format!("{:<18}FAILED: {failure}\n", "");
    }
    text
}
