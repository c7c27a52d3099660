//! The file that names a workload's scenario and its senders.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fanin_scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::error::BarrierError;

/// The content of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BarrierFile {
    /// A preset, or a file in the folder of this one.
    scenario: String,
    /// Overrides, as with `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// The folder for results, relative to this file.
    #[serde(default)]
    folder: PathBuf,
    /// The address of each sender.
    senders: Vec<SocketAddr>,
}

/// A barrier workload with the addresses of its senders.
#[derive(Debug, Clone)]
pub struct BarrierSystem {
    /// The workload.
    pub scenario: Scenario,
    /// The folder that its processes write into.
    pub folder: PathBuf,
    /// The address of each sender.
    pub senders: Vec<SocketAddr>,
}

impl BarrierSystem {
    /// Reads the file and the scenario that it names.
    ///
    /// # Errors
    /// Every mistake in them, with its place.
    pub fn load(path: &Path) -> Result<Self, BarrierError> {
        let text = fs::read_to_string(path).map_err(|source| BarrierError::file(path, source))?;
        let garbled = |text: String| BarrierError::Garbled { path: path.to_owned(), text };
        let file: BarrierFile = toml::from_str(&text).map_err(|error| garbled(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let scenario_path = folder.join(&file.scenario);
        let source = if scenario_path.is_file() {
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
            let got = file.senders.len();
            return Err(garbled(format!(
                "`senders` names {got}, and the scenario has {wanted}: name {wanted}, or set `workload.senders`"
            )));
        }
        Ok(Self { scenario, folder: folder.join(&file.folder), senders: file.senders })
    }

    /// The text of a file that [`Self::load`] reads; `scenario` is in the same folder.
    pub fn text(scenario: &str, senders: &[SocketAddr]) -> String {
        let file = BarrierFile {
            scenario: scenario.to_owned(),
            set: Vec::new(),
            folder: PathBuf::new(),
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
        fs::write(&path, BarrierSystem::text("incast", &senders)).unwrap();
        assert_eq!(BarrierSystem::load(&path).unwrap().senders, senders);
        fs::write(&path, BarrierSystem::text("incast", &senders[1..])).unwrap();
        let error = BarrierSystem::load(&path).unwrap_err().to_string();
        assert!(error.contains("names 15, and the scenario has 16"), "{error}");
        fs::write(&path, BarrierSystem::text("replay", &senders)).unwrap();
        let error = BarrierSystem::load(&path).unwrap_err().to_string();
        assert!(error.contains("fixed-fragment"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
