//! The configuration file of background traffic: its scenario, and the addresses of its sinks.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fanin_network::{BackgroundPair, background_pairs, topology};
use fanin_scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::error::BackgroundError;

/// The content of the configuration file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackgroundFile {
    /// The path of a scenario file, relative to this file.
    scenario: String,
    /// Address of the sink on each collector's host.
    sinks: Vec<SocketAddr>,
}

/// Background traffic with the addresses of its sinks.
#[derive(Debug, Clone)]
pub struct BackgroundSystem {
    /// The scenario that defines the traffic.
    pub scenario: Scenario,
    /// Folder of the configuration file, into which the processes write their results.
    pub folder: PathBuf,
    /// Address of the sink on each collector's host.
    pub sinks: Vec<SocketAddr>,
    /// The connections in order.
    pub(super) pairs: Vec<BackgroundPair>,
}

/// A background connection of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SourceConnection {
    /// The connection's number among all background connections.
    pub(super) connection: u64,
    /// The roles at its ends.
    pub(super) pair: BackgroundPair,
}

impl BackgroundSystem {
    /// Reads the file and the scenario that it names.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid, or if it names another number of sinks than the scenario has.
    pub fn load(path: &Path) -> Result<Self, BackgroundError> {
        let text = fs::read_to_string(path).map_err(|source| BackgroundError::file(path, source))?;
        let garbled = |text: String| BackgroundError::Garbled { path: path.to_owned(), text };
        let file: BackgroundFile = toml::from_str(&text).map_err(|error| garbled(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let source = folder.join(&file.scenario);
        let scenario = fanin_scenario::load(&source.to_string_lossy(), &[])?.scenario;
        if scenario.background.connections == 0 {
            return Err(garbled(
                "the scenario has no background traffic: set `background.connections`".to_owned(),
            ));
        }
        let wanted = scenario.background_connections() / u64::from(scenario.background.connections);
        if file.sinks.len() as u64 != wanted {
            let named = file.sinks.len();
            return Err(garbled(format!("`sinks` names {named}, and the scenario has {wanted} collectors")));
        }
        let pairs = pairs(&scenario)?;
        Ok(Self { scenario, folder, sinks: file.sinks, pairs })
    }

    /// Returns the text of a configuration file.
    pub(super) fn text(scenario: &str, sinks: &[SocketAddr]) -> String {
        let file = BackgroundFile { scenario: scenario.to_owned(), sinks: sinks.to_vec() };
        toml::to_string(&file).expect("text and lists are TOML")
    }

    /// Returns the connections whose source is on a readout's host.
    pub(super) fn connections_of(&self, readout: u16) -> Vec<SourceConnection> {
        let all = (0..).zip(&self.pairs).map(|(connection, &pair)| SourceConnection { connection, pair });
        all.filter(|one| one.pair.readout == u32::from(readout)).collect()
    }
}

/// Returns the background connections of a scenario in order.
pub(super) fn pairs(scenario: &Scenario) -> Result<Vec<BackgroundPair>, BackgroundError> {
    let (_, roles) = topology::build(scenario)?;
    Ok(background_pairs(scenario, &roles).collect())
}

/// Returns the readouts with background connections, in order.
pub(super) fn source_hosts(pairs: &[BackgroundPair]) -> Vec<u16> {
    let mut hosts: Vec<u16> = pairs.iter().map(|pair| pair.readout as u16).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_a_sink_for_each_collector() {
        let folder = std::env::temp_dir().join(format!("fanin-background-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("background.toml");
        let sinks: Vec<SocketAddr> = vec!["10.0.0.1:7900".parse().unwrap()];
        fs::write(&path, BackgroundSystem::text("scenario.toml", &sinks)).unwrap();
        let scenario = |connections: u32| {
            let text = format!("extends = \"incast\"\nbackground.connections = {connections}\n");
            fs::write(folder.join("scenario.toml"), text).unwrap();
            BackgroundSystem::load(&path)
        };
        let error = scenario(0).unwrap_err().to_string();
        assert!(error.contains("background.connections"), "{error}");
        let system = scenario(20).unwrap();
        let of_first: Vec<u64> = system.connections_of(0).iter().map(|one| one.connection).collect();
        // 20 connections from 16 senders.
        assert_eq!((of_first, source_hosts(&system.pairs).len()), (vec![0, 1], 16));
        fs::write(&path, BackgroundSystem::text("scenario.toml", &[])).unwrap();
        let error = BackgroundSystem::load(&path).unwrap_err().to_string();
        assert!(error.contains("names 0, and the scenario has 1 collectors"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
