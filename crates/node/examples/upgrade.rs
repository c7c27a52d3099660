//! Upgrades a running system from an earlier release, and audits it.
//!
//! `upgrade REFERENCE [LOWEST-HIGHEST]` builds the program of a git reference in a folder of its own below `target/previous`.
//! With a range, its processes speak these versions of the messages. The nightly runs call it: it takes minutes to build, and
//! needs the repository's history.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::pair::{NEW, OLD, Pair, patient};
use common::program;
use fanin_node::audit::Audit;
use fanin_node::config::Role;
use rustix::process::Signal;

/// Runs a command in the repository, and returns what it prints.
fn output(program: &str, arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(program).args(arguments).current_dir(root).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the program of the release `reference`, a git reference. It is built once.
fn previous(reference: &str) -> PathBuf {
    let commit = output("git", &["rev-parse", "--verify", "--short=12", &format!("{reference}^{{commit}}")]);
    let all = program().ancestors().nth(3).unwrap().join("previous");
    let folder = all.join(&commit);
    let program = folder.join("process");
    if !program.exists() {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        std::fs::create_dir_all(&folder).unwrap();
        let unpack = r#"git archive "$1" | tar -x -C "$2""#;
        output("sh", &["-c", unpack, "sh", &commit, &text(&folder)]);
        // A target directory of its own: cargo takes what another commit has built there for this one's.
        let build = folder.join("target");
        let (manifest, target) = (text(&folder.join("Cargo.toml")), text(&build));
        let places = ["--manifest-path", &manifest, "--target-dir", &target];
        let build_arguments = ["build", "--locked", "--package", "fanin-node", "--example", "process"];
        output(env!("CARGO"), &[&build_arguments[..], &places].concat());
        std::fs::copy(build.join("debug/examples/process"), &program).unwrap();
        std::fs::remove_dir_all(build).unwrap();
    }
    program
}

/// The result of an upgrade.
struct Upgrade {
    audit: Audit,
    /// True if one process after the other was replaced; false if all were stopped first.
    is_rolling: bool,
}

/// The previous release runs a system, and this one takes its place: one process after the other if both greet alike. If
/// not, the processes say so, and all are stopped before this release goes on with their files.
fn upgrade(previous: PathBuf, versions: &'static str) -> Upgrade {
    let mut pair = Pair::prepare("previous", &patient(), versions);
    pair.program = previous;
    pair.spawn_all();
    let assigned = |pair: &Pair| pair.assigned("supervisor").max(pair.assigned("standby"));
    pair.wait("assigning", |pair| assigned(pair) > 50);
    pair.wait_paired();
    pair.end(Role::Logger, 1, Signal::TERM);
    (pair.program, pair.versions) = (program(), NEW);
    let old_lines = pair.log("logger-1").lines().count();
    pair.spawn(Role::Logger, 1);
    let log = |pair: &Pair| pair.log("logger-1").lines().skip(old_lines).collect::<Vec<_>>().join("\n");
    let is_refused = |pair: &Pair| log(pair).contains(" is needed; upgrade the process that ");
    pair.wait("an answer", |pair| is_refused(pair) || log(pair).contains(" connected peer=collector "));
    let is_rolling = !is_refused(&pair);
    if is_rolling {
        assert!(versions != OLD || log(&pair).contains(" version=1"), "{}", log(&pair));
        pair.replace_each();
    } else {
        eprintln!("the previous release greets otherwise: all its processes are stopped first");
        let before = assigned(&pair);
        pair.wait("assigning without the logger", |pair| assigned(pair) > before + 50);
        pair.end_all();
        pair.spawn_all();
        let before = assigned(&pair);
        pair.wait("assigning with this release", |pair| assigned(pair) > before + 50);
        pair.wait_paired();
    }
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert_eq!((audited.totals.debug, audited.missing), (0, 0), "{audited:?}");
    assert_eq!(audited.totals.assigned, audited.totals.rejected + audited.totals.stored, "{audited:?}");
    Upgrade { audit: audited, is_rolling }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (reference, versions) = match arguments.as_slice() {
        [reference] => (reference, String::new()),
        [reference, versions] => (reference, versions.clone()),
        _ => {
            eprintln!("usage: upgrade REFERENCE [LOWEST-HIGHEST]");
            std::process::exit(2);
        }
    };
    let ended = upgrade(previous(reference), versions.leak());
    let how = if ended.is_rolling { "process by process" } else { "after all processes had stopped" };
    eprintln!("upgraded from {reference}, {how}: {} events, none lost", ended.audit.totals.assigned);
}
