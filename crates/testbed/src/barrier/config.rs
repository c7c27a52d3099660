//! What the processes are told: the scenario, and where the senders are.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fanin_scenario::{Scenario, WorkloadKind};
use serde::{Deserialize, Serialize};

use super::BarrierError;

/// The file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// A preset, or a file beside this one.
    scenario: String,
    /// Overrides, as with `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// Where results go.
    #[serde(default)]
    folder: PathBuf,
    /// Where each sender listens.
    senders: Vec<SocketAddr>,
}

/// A workload's processes.
#[derive(Debug, Clone)]
pub struct System {
    /// What they do.
    pub scenario: Scenario,
    /// Where they write.
    pub folder: PathBuf,
    /// Where each sender listens.
    pub senders: Vec<SocketAddr>,
}

impl System {
    /// Reads the file and the scenario that it names.
    ///
    /// # Errors
    /// What is wrong with them, and where.
    pub fn load(path: &Path) -> Result<Self, BarrierError> {
        let text = fs::read_to_string(path)
            .map_err(|source| BarrierError::File { path: path.to_owned(), source })?;
        let garbled = |text: String| BarrierError::Garbled { path: path.to_owned(), text };
        let file: File = toml::from_str(&text).map_err(|error| garbled(error.to_string()))?;
        let beside = path.parent().unwrap_or(Path::new(""));
        let scenario_path = beside.join(&file.scenario);
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
        Ok(Self { scenario, folder: beside.join(&file.folder), senders: file.senders })
    }

    /// A file that [`Self::load`] reads; `scenario` lies beside it.
    pub fn text(scenario: &str, senders: &[SocketAddr]) -> String {
        let file = File {
            scenario: scenario.to_owned(),
            set: Vec::new(),
            folder: PathBuf::new(),
            senders: senders.to_vec(),
        };
        toml::to_string(&file).expect("text, numbers and lists are TOML")
    }

    /// What a sender answers each request with, bytes.
    pub fn answer_bytes(&self, sender: u64) -> u64 {
        answer_bytes(&self.scenario, sender)
    }
}

/// What a sender of a scenario answers each request with, bytes; where a block does not divide, the first ones answer a
/// byte more.
pub fn answer_bytes(scenario: &Scenario, sender: u64) -> u64 {
    let size = scenario.workload.request_size.get();
    if scenario.workload.kind == WorkloadKind::FixedBlock {
        let senders = u64::from(scenario.workload.senders);
        size / senders + u64::from(sender < size % senders)
    } else {
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_shared_out_whole() {
        let sets = ["workload.kind=fixed-block", "workload.request_size=1003 B", "workload.senders=4"];
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = fanin_scenario::load("incast", &sets).unwrap().scenario;
        assert_eq!(
            (0..4).map(|sender| answer_bytes(&scenario, sender)).collect::<Vec<_>>(),
            [251, 251, 251, 250]
        );
    }

    #[test]
    fn a_file_must_name_every_sender() {
        let folder = std::env::temp_dir().join(format!("fanin-barrier-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("barrier.toml");
        let senders: Vec<SocketAddr> = (0..16).map(|n| SocketAddr::from(([10, 0, 0, n], 7000))).collect();
        fs::write(&path, System::text("incast", &senders)).unwrap();
        assert_eq!(System::load(&path).unwrap().senders, senders);
        fs::write(&path, System::text("incast", &senders[1..])).unwrap();
        let error = System::load(&path).unwrap_err().to_string();
        assert!(error.contains("names 15, and the scenario has 16"), "{error}");
        fs::write(&path, System::text("replay", &senders)).unwrap();
        let error = System::load(&path).unwrap_err().to_string();
        assert!(error.contains("fixed-fragment"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
