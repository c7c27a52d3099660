//! Settings that a running process does not take over when it reads its file again.

use std::collections::BTreeMap;

use fanin_scenario::Scenario;
use serde_json::Value;

use super::System;

/// Keys of a scenario that a process takes over.
const TAKEN_OVER: [&str; 1] = ["live.file_size"];

/// Returns the keys of the system's file and of its scenario that have changed and wait for a restart. `read` is the file as
/// it was read again.
pub(crate) fn waiting_for_restart(running: &System, read: &System) -> Vec<String> {
    let differs = [
        ("run", running.run != read.run),
        ("folder", running.folder != read.folder),
        ("data", running.data != read.data),
        ("listen", running.listen != read.listen),
        ("insecure", running.key.is_some() != read.key.is_some()),
        ("hosts.supervisor", running.supervisor != read.supervisor),
        ("hosts.standby", running.standby != read.standby),
        ("hosts.readouts", running.readouts != read.readouts),
        ("hosts.collectors", running.collectors != read.collectors),
        ("hosts.loggers", running.loggers != read.loggers),
        ("tls", running.tls != read.tls),
        ("metrics.listen", running.metrics != read.metrics),
        ("metrics.ideal_rate", running.ideal_rate != read.ideal_rate),
        ("metrics.predicted", running.predicted != read.predicted),
        ("log.format", running.log_format != read.log_format),
    ];
    let of_file = differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key.to_owned());
    of_file.chain(changed_settings(running.scenario(), read.scenario())).collect()
}

fn changed_settings(running: &Scenario, read: &Scenario) -> Vec<String> {
    let (running, read) = (settings(running), settings(read));
    let keys = running.keys().chain(read.keys().filter(|key| !running.contains_key(*key)));
    keys.filter(|key| running.get(*key) != read.get(*key) && !TAKEN_OVER.contains(&key.as_str()))
        .cloned()
        .collect()
}

/// Returns each setting of a scenario by its key, such as `link.rate`.
fn settings(scenario: &Scenario) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut open =
        vec![(String::new(), serde_json::to_value(scenario).expect("a checked scenario has a text as JSON"))];
    while let Some((key, value)) = open.pop() {
        let Value::Object(section) = value else {
            found.insert(key, value);
            continue;
        };
        let below = |name: String| if key.is_empty() { name } else { format!("{key}.{name}") };
        open.extend(section.into_iter().map(|(name, value)| (below(name), value)));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fanin_message::SharedKey;

    use super::*;

    const TEXT: &str = "scenario = \"replay\"\nset = [\"readout.hosts=2\", \"live.file_size=1 MB\"]\n[hosts]\n\
                        supervisor = \"daq:7000\"\nreadouts = [\"ros-[0-1]:7100\"]\ncollectors = [\"dcm-[0-3]\"]\n\
                        loggers = [\"sfo-[0-1]:7200\"]\n[log]\nlevel = \"info\"\n";

    fn system(text: &str) -> System {
        System::parse(Path::new("system.toml"), text).unwrap().0
    }

    #[test]
    fn a_file_named_like_a_preset_does_not_replace_it() {
        let folder = std::env::temp_dir().join(format!("fanin-namesake-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("replay"), "no scenario").unwrap();
        let parsed = |text: &str| System::parse(&folder.join("system.toml"), text);
        assert_eq!(parsed(TEXT).unwrap().0.readouts, system(TEXT).readouts);
        assert!(parsed(&TEXT.replace("\"replay\"", "\"./replay\"")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_changed_keys_are_named_unless_they_apply_at_once() {
        let running = system(TEXT);
        let waiting = |from: &str, to: &str| waiting_for_restart(&running, &system(&TEXT.replace(from, to)));
        assert_eq!(waiting("", ""), [""; 0]);
        assert_eq!(waiting("file_size=1 MB", "file_size=2 MB"), [""; 0]);
        assert_eq!(waiting("\"info\"", "\"debug\""), [""; 0]);
        assert_eq!(waiting("daq:", "daq-b:"), ["hosts.supervisor"]);
        assert_eq!(waiting("live.file_size=1 MB", "supervisor.rate=7 Hz"), ["supervisor.rate"]);
        let both = waiting("[log]\n", "[metrics]\nlisten = \"0.0.0.0:9100\"\n[log]\nformat = \"json\"\n");
        assert_eq!(both, ["metrics.listen", "log.format"]);
        // Another key applies at once; a first one does not.
        let with = |key| System { key, ..running.clone() };
        let [one, two] = [(); 2].map(|()| SharedKey::random().ok());
        assert_eq!(waiting_for_restart(&with(one.clone()), &with(two)), [""; 0]);
        assert_eq!(waiting_for_restart(&with(None), &with(one)), ["insecure"]);
    }
}
