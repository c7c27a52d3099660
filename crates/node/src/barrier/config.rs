//! The configuration file of a barrier workload: its scenario and the addresses of its senders.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fanin_message::SharedKey;
use fanin_scenario::{Scenario, preset};
use serde::{Deserialize, Serialize};

use super::error::BarrierError;

/// The content of the configuration file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BarrierFile {
    /// A preset, or the path of a scenario file relative to this file.
    scenario: String,
    /// Overrides, as with `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// The folder for results, relative to this file.
    #[serde(default)]
    folder: PathBuf,
    /// The file of the key that all processes share, relative to this file.
    key: Option<PathBuf>,
    /// True permits a workload without a key: a sender then answers any host that reaches it.
    #[serde(default)]
    insecure: bool,
    /// Address of each sender.
    senders: Vec<SocketAddr>,
}

/// A barrier workload with the addresses of its senders.
#[derive(Debug, Clone)]
pub struct BarrierSystem {
    /// The scenario that defines the workload.
    pub scenario: Scenario,
    /// Folder into which the processes write their results.
    pub folder: PathBuf,
    /// The key that all processes share; `None` without authentication.
    pub key: Option<SharedKey>,
    /// Address of each sender.
    pub senders: Vec<SocketAddr>,
}

impl BarrierSystem {
    /// Reads the file and the scenario that it names.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid. The file is invalid if its scenario has no barrier workload or another number
    /// of senders, or if it has neither `key` nor `insecure = true`.
    pub fn load(path: &Path) -> Result<Self, BarrierError> {
        let text = fs::read_to_string(path).map_err(|source| BarrierError::file(path, source))?;
        let garbled = |text: String| BarrierError::Garbled { path: path.to_owned(), text };
        let file: BarrierFile = toml::from_str(&text).map_err(|error| garbled(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let scenario_path = folder.join(&file.scenario);
        let source = if preset(&file.scenario).is_none() && scenario_path.is_file() {
            scenario_path.to_string_lossy().into_owned()
        } else {
            file.scenario.clone()
        };
        let scenario = fanin_scenario::load(&source, &file.set)?.scenario;
        let wanted = scenario.workload.senders as usize;
        if !scenario.is_barrier() {
            return Err(garbled(
                "the scenario's `workload.kind` is neither \"fixed-fragment\" nor \"fixed-block\"".to_owned(),
            ));
        }
        if file.senders.len() != wanted {
            let named = file.senders.len();
            return Err(garbled(format!(
                "`senders` names {named}, and the scenario has {wanted}: name {wanted}, or set `workload.senders`"
            )));
        }
        let key = match file.key {
            Some(name) => {
                let path = folder.join(name);
                let text = fs::read_to_string(&path).map_err(|source| BarrierError::file(&path, source))?;
                Some(
                    SharedKey::from_hex(&text)
                        .map_err(|error| BarrierError::Garbled { path, text: error.to_string() })?,
                )
            }
            None if file.insecure => None,
            None => {
                return Err(garbled(
                    "there is no `key`: name the file of the key that all processes share, or write `insecure = true`"
                        .to_owned(),
                ));
            }
        };
        Ok(Self { scenario, folder: folder.join(&file.folder), key, senders: file.senders })
    }

    /// Returns the text of a file for [`Self::load`]. `scenario` and `key` are file names in the folder of this file.
    pub fn text(scenario: &str, key: Option<&str>, senders: &[SocketAddr]) -> String {
        let file = BarrierFile {
            scenario: scenario.to_owned(),
            set: Vec::new(),
            folder: PathBuf::new(),
            key: key.map(PathBuf::from),
            insecure: key.is_none(),
            senders: senders.to_vec(),
        };
        toml::to_string(&file).expect("text, numbers and lists are TOML")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_must_name_every_sender() {
        let folder = std::env::temp_dir().join(format!("fanin-barrier-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("barrier.toml");
        let senders: Vec<SocketAddr> = (0..16).map(|n| SocketAddr::from(([10, 0, 0, n], 7000))).collect();
        fs::write(&path, BarrierSystem::text("incast", None, &senders)).unwrap();
        assert_eq!(BarrierSystem::load(&path).unwrap().senders, senders);
        fs::write(&path, BarrierSystem::text("incast", None, &senders[1..])).unwrap();
        let error = BarrierSystem::load(&path).unwrap_err().to_string();
        assert!(error.contains("names 15, and the scenario has 16"), "{error}");
        fs::write(&path, BarrierSystem::text("replay", None, &senders)).unwrap();
        let error = BarrierSystem::load(&path).unwrap_err().to_string();
        assert!(error.contains("fixed-fragment"), "{error}");
        let text =
            BarrierSystem::text("incast", None, &senders).replace("insecure = true", "insecure = false");
        fs::write(&path, text).unwrap();
        let error = BarrierSystem::load(&path).unwrap_err().to_string();
        assert!(error.contains("there is no `key`"), "{error}");
        // A preset's name means the preset, a path the file.
        fs::write(folder.join("incast"), "extends = \"incast\"\nworkload.senders = 3\n").unwrap();
        for (scenario, count) in [("incast", 16), ("./incast", 3)] {
            fs::write(&path, BarrierSystem::text(scenario, None, &senders[..count])).unwrap();
            assert_eq!(BarrierSystem::load(&path).unwrap().senders.len(), count, "{scenario}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
