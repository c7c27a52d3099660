//! The processes and switches to watch, by their addresses or by a run's folder.

use std::path::{Path, PathBuf};

use fanin_node::launch::MetricsFile;

use crate::failure::Failure;

/// The ending of a switch's control socket in a run's folder.
const SOCKET: &str = "socket";
/// The folder of a live system's files, and its place in a run's folder.
const LIVE_FOLDERS: [&str; 2] = [".", "live"];
/// The subfolder of a run's folder with the switches' files.
const NETWORK_FOLDER: &str = "network";

/// A process or switch that serves `/metrics`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopTarget {
    /// The target's name before its first answer.
    pub(super) name: String,
    pub(super) endpoint: MetricsEndpoint,
}

/// The place at which a target serves `/metrics`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MetricsEndpoint {
    /// HOST:PORT of a process or switch.
    Tcp(String),
    /// IP:PORT in a network namespace of this machine.
    Namespace { address: String, namespace: String },
    /// A switch's control socket.
    Socket(PathBuf),
}

/// Returns all targets that the arguments name.
///
/// # Errors
/// If an argument is neither an address nor the folder of a run with metrics.
pub(super) fn targets(given: &[String]) -> Result<Vec<TopTarget>, Failure> {
    let mut found = Vec::new();
    for text in given {
        let path = Path::new(text);
        if path.is_dir() {
            found.extend(of_folder(path)?);
        } else if let Some(address) = address(text) {
            found.push(TopTarget { name: address.clone(), endpoint: MetricsEndpoint::Tcp(address) });
        } else if path.exists() {
            found.push(TopTarget { name: text.clone(), endpoint: MetricsEndpoint::Socket(path.to_owned()) });
        } else {
            return Err(Failure::NoTop { given: text.clone() });
        }
    }
    Ok(found)
}

/// Returns the HOST:PORT of an argument, which may be a URL; `None` for other texts.
fn address(text: &str) -> Option<String> {
    let text = text.strip_prefix("http://").unwrap_or(text);
    let text = text.split('/').next().filter(|rest| !rest.is_empty())?;
    let (host, port) = text.rsplit_once(':')?;
    (!host.is_empty() && port.parse::<u16>().is_ok()).then(|| text.to_owned())
}

/// Reads the processes and switches of a run from its folder. A run without `--metrics` has only its switches.
fn of_folder(folder: &Path) -> Result<Vec<TopTarget>, Failure> {
    let mut found = Vec::new();
    for part in LIVE_FOLDERS {
        let path = folder.join(part);
        let file = match MetricsFile::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => MetricsFile::default(),
            read => read.map_err(|error| {
                std::io::Error::new(
                    error.kind(),
                    format!("the metrics' addresses in {}: {error}", path.display()),
                )
            })?,
        };
        for process in file.process {
            let address = process.address.to_string();
            let endpoint = match process.namespace {
                Some(namespace) => MetricsEndpoint::Namespace { address, namespace },
                None => MetricsEndpoint::Tcp(address),
            };
            found.push(TopTarget { name: process.name, endpoint });
        }
    }
    let entries = std::fs::read_dir(folder.join(NETWORK_FOLDER)).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == SOCKET))
        .collect();
    sockets.sort();
    for path in sockets {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        found.push(TopTarget { name, endpoint: MetricsEndpoint::Socket(path) });
    }
    if found.is_empty() {
        return Err(Failure::NoMetrics { folder: folder.to_owned() });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_a_url_around_it() {
        let read = |text: &str| address(text);
        assert_eq!(read("daq-00:9100").as_deref(), Some("daq-00:9100"));
        assert_eq!(read("http://10.0.0.1:9100/metrics").as_deref(), Some("10.0.0.1:9100"));
        assert_eq!(read("[::1]:9414").as_deref(), Some("[::1]:9414"));
        for wrong in ["daq-00", ":9100", "daq-00:http", "/run/fanin/switch.sock", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
