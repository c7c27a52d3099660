//! Gives the command its version and the commit it was built from; without git, the version alone.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    // A new commit changes the reference that HEAD names, a checkout changes HEAD.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        // A path that does not exist would make every build start anew.
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        None => println!("cargo::rustc-env=FANIN_VERSION={version}"),
        Some(commit) => {
            // The built sources can differ from the commit only in these.
            let changes = git(&["status", "--porcelain", "--", "..", "../../Cargo.lock"]);
            let mark = if changes.is_some_and(|list| list.is_empty()) { "" } else { "-dirty" };
            println!("cargo::rustc-env=FANIN_VERSION={version} ({commit}{mark})");
            println!("cargo::rustc-env=FANIN_COMMIT={commit}{mark}");
        }
    }
}
