//! The file with the addresses at which the processes of a run serve their metrics.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Name of the file in the folder of the live system.
pub const METRICS_FILE: &str = "metrics.toml";

/// Addresses at which a run's processes serve their metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsFile {
    /// The processes, in the order of their start.
    #[serde(default)]
    pub process: Vec<ServedMetrics>,
}

/// Address of one process that serves its metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedMetrics {
    /// Name of the process, such as `readout-3`.
    pub name: String,
    /// Address and port of its HTTP server.
    pub address: SocketAddr,
    /// Network namespace of the address, by its name in `ip netns`; `None` for the launcher's namespace.
    pub namespace: Option<String>,
}

impl MetricsFile {
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        std::fs::write(folder.join(METRICS_FILE), text)
    }

    /// Reads the file in the folder of a live system.
    ///
    /// # Errors
    /// If the file does not exist, cannot be read, or is invalid.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(folder.join(METRICS_FILE))?;
        toml::from_str(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("fanin-metrics-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let served = |name: &str, namespace: Option<&str>| ServedMetrics {
            name: name.to_owned(),
            address: SocketAddr::from(([10, 91, 0, 3], 7001)),
            namespace: namespace.map(str::to_owned),
        };
        let file = MetricsFile {
            process: vec![served("logger-0", None), served("readout-1", Some("fanin-x-readout-1"))],
        };
        file.write(&folder).unwrap();
        assert_eq!(MetricsFile::read(&folder).unwrap(), file);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
