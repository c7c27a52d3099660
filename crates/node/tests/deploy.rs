//! The tools take the files under `deploy`, which describe systems that processes can run.

#[path = "../../../tests/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;

use fanin_message::SharedKey;
use fanin_node::config::{Role, System};
use fanin_node::process::{LifeSign, Signals, run_watched};

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
    // The loss of the first supervisor's host does not stop the run.
    assert_eq!(system.count(Role::Supervisor), 2);
    let host = |address: &str| address.split(':').next().unwrap_or_default().to_owned();
    assert_ne!(system.standby.as_deref().map(host), Some(host(&system.supervisor)));
}

#[test]
fn systemd_takes_the_units() {
    let folder = folder("systemd");
    let names = ["fanin@readout-3.service", "fanin-drain.service", "fanin.target"];
    for to in names {
        let from = to.replace("readout-3", "");
        std::fs::copy(deploy().join("systemd").join(from), folder.join(to)).unwrap();
    }
    let units = names.map(|name| folder.join(name));
    match Command::new("systemd-analyze").arg("verify").args(units).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && !said.contains("fanin"), "{said}");
        }
        Err(error) => skip::skip(format!("systemd-analyze: {error}")),
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The value of a key of a unit, the last one if there are several.
fn setting<'a>(unit: &'a str, key: &str) -> &'a str {
    let line = unit.lines().rev().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn the_unit_may_write_where_its_system_does_and_its_user_is_made() {
    let unit = std::fs::read_to_string(deploy().join("systemd/fanin@.service")).unwrap();
    let text = std::fs::read_to_string(deploy().join("systemd/system.toml")).unwrap();
    let file: toml::Table = toml::from_str(&text).unwrap();
    assert_eq!(setting(&unit, "ProtectSystem"), "strict");
    let state = format!("/var/lib/{}", setting(&unit, "StateDirectory"));
    assert_eq!(file["folder"].as_str(), Some(state.as_str()));
    let data = setting(&unit, "ReadWritePaths").trim_start_matches('-');
    assert_eq!(file["data"].as_str(), Some(data));
    // The user and the folder come from the shipped files.
    let root = folder("root");
    std::fs::create_dir_all(root.join("etc")).unwrap();
    let run = |program: &str, arguments: &[&str], file: &str| {
        let mut command = Command::new(program);
        let root_argument = format!("--root={}", root.display());
        // Their own configuration would come with the folders of this machine.
        command.args(arguments).arg(root_argument).arg(deploy().join("systemd").join(file));
        match command.output() {
            Ok(output) => {
                assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
                true
            }
            Err(error) => {
                skip::skip(format!("{program}: {error}"));
                false
            }
        }
    };
    if run("systemd-sysusers", &[], "sysusers.conf")
        && run("systemd-tmpfiles", &["--create"], "tmpfiles.conf")
    {
        let users = std::fs::read_to_string(root.join("etc/passwd")).unwrap();
        assert!(
            users.contains(&format!("\n{}:", setting(&unit, "User"))) || users.starts_with("fanin:"),
            "{users}"
        );
        assert!(root.join(data.trim_start_matches('/')).is_dir());
    }
    std::fs::remove_dir_all(root).unwrap();
}

/// A process that hangs is started again. Its unit and its command must agree on that.
#[test]
fn systemd_watches_each_process() {
    let unit = std::fs::read_to_string(deploy().join("systemd/fanin@.service")).unwrap();
    assert_eq!((setting(&unit, "Type"), setting(&unit, "Restart")), ("notify", "always"));
    assert_eq!(setting(&unit, "WatchdogSec"), "30s");
    // Signs of life come from the main process: the shell is replaced by it.
    assert!(setting(&unit, "ExecStart").contains("; exec /usr/bin/fanin node "), "{unit}");
}

/// systemd hears of a process when it listens, while it works, and when it stops.
#[test]
fn a_process_gives_signs_of_life() {
    let folder = folder("signs");
    let listeners = [(); 7].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [supervisor, a, b, c, d, first, second] = listeners.map(|listener| listener.local_addr().unwrap());
    let text = format!(
        "scenario = \"replay\"\ninsecure = true\nset = [\"readout.hosts=4\", \"collectors.hosts_per_rack=1\"]\n\
         [hosts]\nsupervisor = \"{supervisor}\"\nreadouts = [\"{a}\", \"{b}\", \"{c}\", \"{d}\"]\ncollectors = [\"127.0.0.1\"]\n\
         loggers = [\"{first}\", \"{second}\"]\n"
    );
    std::fs::write(folder.join("system.toml"), text).unwrap();
    let system = System::load(&folder.join("system.toml")).unwrap_or_else(|error| panic!("{error}"));
    let signals = Signals::default();
    let (mut signs, mut turns) = (Vec::new(), 0);
    let watch = |sign| {
        turns += u32::from(sign == LifeSign::Turn);
        signals.stop.store(turns == 3, std::sync::atomic::Ordering::Relaxed);
        if signs.last() != Some(&sign) {
            signs.push(sign);
        }
    };
    run_watched(&system, Role::Logger, 0, &signals, watch).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(signs[..3], [LifeSign::Ready, LifeSign::Turn, LifeSign::Stopping]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn prometheus_scrapes_every_process_of_the_services_and_loads_the_rules() {
    let text = std::fs::read_to_string(deploy().join("prometheus/prometheus.yml")).unwrap();
    let listed = text.split_once("rule_files:\n").unwrap().1.lines();
    let rules: Vec<&str> = listed.map_while(|line| line.strip_prefix("  - ")).collect();
    assert_eq!(rules, ["fanin-rules.yml", "fanin-switch-rules.yml"]);
    assert!(rules.iter().all(|file| deploy().join("prometheus").join(file).is_file()));
    // The switch refuses a scrape without its token.
    let switch = text.split_once("job_name: fanin-switch\n").unwrap().1;
    assert!(switch.contains("credentials_file: /etc/fanin/token"), "{switch}");
    let folder = folder("scrape");
    std::fs::copy(deploy().join("systemd/system.toml"), folder.join("system.toml")).unwrap();
    std::fs::write(folder.join("peers.key"), SharedKey::random().unwrap().to_hex()).unwrap();
    let system = System::load(&folder.join("system.toml")).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    // Metrics need no key: as shipped, only this host reads them.
    assert!(system.metrics.unwrap().ip().is_loopback());
    let port = system.metrics.unwrap().port();
    let hosts = [&system.supervisor]
        .into_iter()
        .chain(&system.standby)
        .chain(&system.readouts)
        .chain(&system.collectors)
        .chain(&system.loggers);
    let wanted: Vec<String> =
        hosts.map(|host| format!("{}:{port}", host.split(':').next().unwrap_or_default())).collect();
    let listed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("          - ")).collect();
    assert_eq!(listed, wanted);
}

/// `rules.yml` has series, and the alerts that the shipped rules must raise from them.
#[test]
fn the_alerts_fire_when_they_should() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fetched = here.join("../../.venv/promtool/promtool");
    let program = if fetched.exists() { fetched } else { "promtool".into() };
    match Command::new(program).args(["test", "rules"]).arg(here.join("tests/rules.yml")).output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
        }
        Err(error) => skip::skip(format!("promtool: {error}")),
    }
}

#[test]
fn the_manifest_has_a_pod_for_each_process_of_its_system() {
    let yaml = std::fs::read_to_string(deploy().join("kubernetes/fanin.yaml")).unwrap();
    let folder = folder("kubernetes");
    let path = folder.join("system.toml");
    // The secret is mounted where the file names the key.
    let text = block(&yaml, "system.toml");
    assert!(!text.contains("insecure") && text.contains("key = \"/etc/fanin-key/peers.key\""), "{text}");
    std::fs::write(folder.join("peers.key"), SharedKey::random().unwrap().to_hex()).unwrap();
    std::fs::write(&path, text.replace("/etc/fanin-key/peers.key", "peers.key")).unwrap();
    let system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
    assert!(system.key.is_some() && system.standby.is_some());
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
        assert!(set.contains("mountPath: /etc/fanin-key") && set.contains("secretName: fanin-key"), "{role}");
        assert!(set.contains("path: /readyz") && set.contains("path: /healthz"), "{role}");
        // A start that reads a long journal serves nothing yet, and must not be ended for that.
        let probe = set.split_once("startupProbe:\n").unwrap().1.split_once("livenessProbe:\n").unwrap().0;
        let number = |key: &str| -> u32 {
            let line = probe.lines().find_map(|line| line.trim().strip_prefix(key));
            line.unwrap().trim().parse().unwrap()
        };
        assert!(number("periodSeconds:") * number("failureThreshold:") >= 600, "{role}: {probe}");
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
