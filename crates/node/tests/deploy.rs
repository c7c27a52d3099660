//! The files under `deploy` are ones that the tools take, and describe systems that processes can run.

#[path = "../../../tests/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;

use fanin_message::SharedKey;
use fanin_node::config::{Role, System};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fanin-deploy-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The text of a block in YAML, without its indentation.
fn block(yaml: &str, head: &str) -> String {
    let (before, rest) = yaml.split_once(&format!("{head}: |\n")).unwrap();
    let indentation = before.rsplit('\n').next().unwrap().len() + 2;
    let inside = |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() >= indentation;
    let lines = rest.lines().take_while(inside);
    lines.map(|line| line.get(indentation..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_system_of_the_services_is_one() {
    let folder = folder("services");
    std::fs::copy(deploy().join("systemd/system.toml"), folder.join("system.toml")).unwrap();
    let refused = System::load(&folder.join("system.toml")).unwrap_err().to_string();
    assert!(refused.contains("peers.key"), "{refused}");
    std::fs::write(folder.join("peers.key"), SharedKey::random().unwrap().to_hex()).unwrap();
    let system = System::load(&folder.join("system.toml")).unwrap();
    assert!(system.key.is_some());
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!((system.readouts.len(), system.loggers.len()), (24, 2));
    assert!(system.metrics.is_some());
}

#[test]
fn systemd_takes_the_units() {
    let folder = folder("systemd");
    for (from, to) in [("fanin@.service", "fanin@readout-3.service"), ("fanin.target", "fanin.target")] {
        std::fs::copy(deploy().join("systemd").join(from), folder.join(to)).unwrap();
    }
    let units = [folder.join("fanin@readout-3.service"), folder.join("fanin.target")];
    match Command::new("systemd-analyze").arg("verify").args(units).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && !said.contains("fanin"), "{said}");
        }
        Err(error) => skip::skip(format!("systemd-analyze: {error}")),
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_manifest_has_a_pod_for_each_process_of_its_system() {
    let yaml = std::fs::read_to_string(deploy().join("kubernetes/fanin.yaml")).unwrap();
    let folder = folder("kubernetes");
    let path = folder.join("system.toml");
    std::fs::write(&path, block(&yaml, "system.toml")).unwrap();
    let system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let documents: Vec<&str> = yaml.split("\n---\n").collect();
    for role in [Role::Supervisor, Role::Readout, Role::Collector, Role::Logger] {
        let of_kind = |kind: &str| {
            let is =
                |document: &&&str| document.contains(&format!("kind: {kind}\nmetadata:\n  name: {role}\n"));
            *documents.iter().find(is).unwrap_or_else(|| panic!("no {kind} {role}"))
        };
        let set = of_kind("StatefulSet");
        let replicas = format!("  replicas: {}\n", system.count(role));
        assert!(set.contains(&replicas) && set.contains(&format!("serviceName: {role}\n")), "{role}");
        assert!(set.contains(&format!("args: [\"node\", \"{role}\", \"/etc/fanin/system.toml\"]")), "{role}");
        assert!(of_kind("Service").contains("clusterIP: None"), "{role}");
        for index in 0..system.count(role) as u16 {
            // The pod's host name says which process it is.
            assert_eq!(system.index_here(role, &format!("{role}-{index}")), Ok(index));
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn kubectl_reads_the_manifest() {
    match Command::new("kubectl").arg("kustomize").arg(deploy().join("kubernetes")).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(said.lines().filter(|line| line.starts_with("kind:")).count(), 10, "{said}");
        }
        Err(error) => skip::skip(format!("kubectl: {error}")),
    }
}
