//! The configuration file of a live system: its scenario, and the host and port of each process.

mod address;
mod error;
mod key_file;
mod predicted;
mod reload;
mod role;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use fanin_dataflow::Peer;
use fanin_message::{SharedKey, Tls, Versions};
use fanin_scenario::{Loaded, Scenario, preset};
use fanin_units::Rate;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::machine::HostMachine;

use address::expand;
pub use address::{listen_addresses, port};
pub use error::ConfigError;
use key_file::{Authentication, read_key};
pub use key_file::{TlsFiles, is_open_to_others};
pub use predicted::{
    COLLECTION_BUCKETS, LiveFigure, PREDICTED_FIGURES, PredictedBand, PredictedBands, PredictedFigure,
    PredictedUnit, collection_quantile, histogram_quantile,
};
pub(crate) use reload::waiting_for_restart;
pub use role::{Role, UnknownRole};

/// Advice for an address without a port.
const PORT_HELP: &str = "write host:port, with a port from 1 to 65535";

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line, for log collectors.
    Json,
}

/// The content of the system's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemFile {
    scenario: Spanned<String>,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default = "here")]
    folder: PathBuf,
    data: Option<PathBuf>,
    #[serde(default)]
    run: u32,
    key: Option<PathBuf>,
    key_previous: Option<Spanned<PathBuf>>,
    #[serde(default)]
    insecure: bool,
    listen: Option<IpAddr>,
    hosts: Hosts,
    tls: Option<TlsFiles>,
    #[serde(default)]
    metrics: MetricsSection,
    #[serde(default)]
    log: LogSection,
}

fn here() -> PathBuf {
    PathBuf::from(".")
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    supervisor: Spanned<String>,
    standby: Option<Spanned<String>>,
    readouts: Spanned<Vec<String>>,
    collectors: Spanned<Vec<String>>,
    #[serde(default = "no_hosts")]
    loggers: Spanned<Vec<String>>,
}

fn no_hosts() -> Spanned<Vec<String>> {
    Spanned::new(0..0, Vec::new())
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MetricsSection {
    listen: Option<Spanned<String>>,
    ideal_rate: Option<Rate>,
    predicted: Option<Spanned<PredictedBands>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LogSection {
    format: LogFormat,
    level: Option<Spanned<String>>,
}

/// Configuration of a live system: its scenario, and the host and port of each process.
#[derive(Debug, Clone)]
pub struct System {
    /// Path of the system's file.
    pub path: PathBuf,
    /// The scenario, with the source of each setting.
    pub loaded: Loaded,
    /// Folder at which relative paths in the scenario start.
    pub scenario_folder: PathBuf,
    /// Folder of journals and sockets.
    pub folder: PathBuf,
    /// Folder of stored events.
    pub data: PathBuf,
    /// Run number, which is written into stored events.
    pub run: u32,
    /// Host and port of the supervisor.
    pub supervisor: String,
    /// Host and port of the standby supervisor; `None` without one.
    pub standby: Option<String>,
    /// Host and port of each readout.
    pub readouts: Vec<String>,
    /// The host of each collector.
    pub collectors: Vec<String>,
    /// Host and port of each logger.
    pub loggers: Vec<String>,
    /// Address at which processes listen, instead of the addresses to which their host's name resolves.
    pub listen: Option<IpAddr>,
    /// The key that all processes share: peers without it are refused. `None` without a key.
    pub key: Option<SharedKey>,
    /// The key before `key`: peers that have it alone are accepted while the key changes.
    pub key_previous: Option<SharedKey>,
    /// Files with a key that every user of this host may read.
    pub open_keys: Vec<PathBuf>,
    /// Paths of the TLS files; `None` without encryption.
    pub tls: Option<TlsFiles>,
    /// Address at which each process serves its metrics; `None` if metrics are not served.
    pub metrics: Option<SocketAddr>,
    /// Address from the command line, in place of `metrics`.
    pub metrics_option: Option<SocketAddr>,
    /// Payload rate from which a collector computes the ideal time of a collection for its metrics.
    pub ideal_rate: Rate,
    /// Bands predicted for the system's metrics.
    pub predicted: PredictedBands,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// The least severe level that is written.
    pub log_level: tracing::Level,
    /// Versions of the messages that the processes support; [`System::load`] sets those of this release.
    pub versions: Versions,
    /// The machine on which the processes run.
    pub machine: HostMachine,
}

impl System {
    /// Reads a system's file, and the scenario that it names.
    ///
    /// # Errors
    /// The first mistake, with its position in the file if it is in a value.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let (mut system, authentication) = Self::read(path)?;
        let mut open = Vec::new();
        let mut read = |file: &PathBuf| read_key(&system.base().join(file), &mut open);
        let previous = authentication.key_previous.as_ref().map(&mut read).transpose()?;
        system.key = match authentication {
            Authentication { key: Some(file), .. } => Some(read(&file)?),
            Authentication { insecure: true, .. } => None,
            Authentication { .. } => return Err(ConfigError::NoAuthentication { path: path.to_owned() }),
        };
        (system.key_previous, system.open_keys) = (previous, open);
        Ok(system)
    }

    /// Does the same without the keys, which not every user may read.
    ///
    /// # Errors
    /// As of [`System::load`], except for keys.
    pub fn load_without_keys(path: &Path) -> Result<Self, ConfigError> {
        Self::read(path).map(|(system, _)| system)
    }

    fn read(path: &Path) -> Result<(Self, Authentication), ConfigError> {
        let read = |error| ConfigError::Read { path: path.to_owned(), error };
        let text = std::fs::read_to_string(path).map_err(read)?;
        Self::parse(path, &text)
    }

    /// Returns the folder of the file, at which relative paths start.
    fn base(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Parses the file. The key is not read: the authentication settings name its file.
    fn parse(path: &Path, text: &str) -> Result<(Self, Authentication), ConfigError> {
        let file: SystemFile = toml::from_str(text)
            .map_err(|error| ConfigError::Syntax { path: path.to_owned(), text: error.to_string() })?;
        let wrong = |span: std::ops::Range<usize>, message: String, help: String| {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count();
            let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
            let text = text.lines().nth(line).unwrap_or_default().to_owned();
            ConfigError::Value { path: path.to_owned(), line: line + 1, column, text, message, help }
        };
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        let scenario = file.scenario.get_ref();
        let scenario_path = base.join(scenario);
        let (source, scenario_folder) = if preset(scenario).is_none() && scenario_path.is_file() {
            let folder = scenario_path.parent().unwrap_or(Path::new("")).to_owned();
            (scenario_path.to_string_lossy().into_owned(), folder)
        } else {
            (scenario.clone(), base.clone())
        };
        let loaded = fanin_scenario::load(&source, &file.set)
            .map_err(|errors| ConfigError::Scenario { path: path.to_owned(), errors })?;
        let wanted = &loaded.scenario;
        let hosts = |key: &str, list: &Spanned<Vec<String>>, count: u64, of: &str| {
            let found = expand(list.get_ref()).map_err(|(given, why)| {
                let help = "write names such as \"ros-[0-23]:7000\" or \"10.0.0.7:7000\"".to_owned();
                wrong(list.span(), format!("`hosts.{key}` holds {given:?}: {why}"), help)
            })?;
            if found.len() as u64 != count {
                let message = format!("`hosts.{key}` names {}, and the scenario has {count}", found.len());
                return Err(wrong(list.span(), message, format!("name {count} hosts, or set `{of}`")));
            }
            Ok(found)
        };
        let readouts =
            hosts("readouts", &file.hosts.readouts, u64::from(wanted.readout.hosts), "readout.hosts")?;
        let collectors = hosts(
            "collectors",
            &file.hosts.collectors,
            wanted.collectors_total(),
            "collectors.hosts_per_rack",
        )?;
        let loggers = hosts("loggers", &file.hosts.loggers, u64::from(wanted.logger.hosts), "logger.hosts")?;
        let ports =
            [("readouts", &readouts, &file.hosts.readouts), ("loggers", &loggers, &file.hosts.loggers)];
        for (key, found, list) in ports {
            if let Some(host) = found.iter().find(|host| port(host).is_none()) {
                let message = format!("`hosts.{key}` holds {host:?}, which has no port");
                return Err(wrong(list.span(), message, PORT_HELP.to_owned()));
            }
        }
        let supervisor = file.hosts.supervisor.get_ref().clone();
        if port(&supervisor).is_none() {
            let message = format!("`hosts.supervisor` is {supervisor:?}, which has no port");
            return Err(wrong(file.hosts.supervisor.span(), message, PORT_HELP.to_owned()));
        }
        let standby = file.hosts.standby.as_ref().map(|standby| standby.get_ref().clone());
        if let (Some(address), Some(given)) = (&standby, &file.hosts.standby) {
            if port(address).is_none() {
                let message = format!("`hosts.standby` is {address:?}, which has no port");
                return Err(wrong(given.span(), message, PORT_HELP.to_owned()));
            }
            if wanted.readout.hosts == 0 {
                let message = "`hosts.standby` is set, and the scenario has no readouts to vote".to_owned();
                return Err(wrong(given.span(), message, "set `readout.hosts`".to_owned()));
            }
        }
        // Two processes cannot listen at one address.
        let listening = [
            ("supervisor", std::slice::from_ref(&supervisor), file.hosts.supervisor.span()),
            ("standby", standby.as_slice(), file.hosts.standby.as_ref().map_or(0..0, Spanned::span)),
            ("readouts", &readouts[..], file.hosts.readouts.span()),
            ("loggers", &loggers[..], file.hosts.loggers.span()),
        ];
        let mut taken = HashMap::new();
        for (key, found, span) in listening {
            for address in found {
                if let Some(other) = taken.insert(address.as_str(), key) {
                    let message =
                        format!("`hosts.{key}` holds {address:?}, which `hosts.{other}` holds already");
                    let help = "give each process a host or a port of its own".to_owned();
                    return Err(wrong(span, message, help));
                }
            }
        }
        let log_level = file.log.level.map_or(Ok(tracing::Level::INFO), |level| {
            level.get_ref().parse().map_err(|_| {
                let help = "write one of error, warn, info, debug, trace".to_owned();
                wrong(level.span(), format!("`log.level` is {:?}", level.get_ref()), help)
            })
        })?;
        let metrics = file.metrics.listen.map(|address| {
            address.get_ref().parse().map_err(|_| {
                let help = "write an address and port, such as \"0.0.0.0:9100\"".to_owned();
                wrong(address.span(), format!("`metrics.listen` is {:?}", address.get_ref()), help)
            })
        });
        let predicted =
            file.metrics.predicted.map_or(Ok(PredictedBands::default()), |bands| {
                match bands.get_ref().known().find(|(_, band)| !band.is_sound()) {
                    None => Ok(*bands.get_ref()),
                    Some((key, band)) => {
                        let message = format!("`metrics.predicted.{key}` is {} to {}", band.low, band.high);
                        Err(wrong(bands.span(), message, "write 0 <= low <= high, both finite".to_owned()))
                    }
                }
            })?;
        if let (None, Some(previous)) = (&file.key, &file.key_previous) {
            let message = "`key_previous` is set, and `key` is not".to_owned();
            return Err(wrong(
                previous.span(),
                message,
                "write `key = \"FILE\"` with the new key".to_owned(),
            ));
        }
        let key_previous = file.key_previous.map(Spanned::into_inner);
        let authentication = Authentication { key: file.key, key_previous, insecure: file.insecure };
        let system = Self {
            path: path.to_owned(),
            scenario_folder,
            data: file.data.map_or_else(|| base.join(&file.folder).join("data"), |data| base.join(data)),
            folder: base.join(file.folder),
            run: file.run,
            supervisor,
            standby,
            readouts,
            collectors,
            loggers,
            listen: file.listen,
            key: None,
            key_previous: None,
            open_keys: Vec::new(),
            tls: file.tls,
            metrics: metrics.transpose()?,
            metrics_option: None,
            ideal_rate: file.metrics.ideal_rate.unwrap_or(loaded.scenario.link.rate),
            predicted,
            log_format: file.log.format,
            log_level,
            versions: crate::codec::VERSIONS,
            machine: HostMachine::Real,
            loaded,
        };
        Ok((system, authentication))
    }

    /// Returns the scenario of the system.
    pub fn scenario(&self) -> &Scenario {
        &self.loaded.scenario
    }

    /// Returns the number of processes of a role. For processors, it is the number of collectors.
    pub fn count(&self, role: Role) -> usize {
        match role {
            Role::Supervisor => self.supervisors().len(),
            Role::Readout => self.readouts.len(),
            Role::Collector | Role::Processor => self.collectors.len(),
            Role::Logger => self.loggers.len(),
        }
    }

    /// Returns the supervisor, and its standby if the system has one.
    pub fn supervisors(&self) -> Vec<Peer> {
        let standby = self.standby.as_ref().map(|_| Peer::Standby);
        [Peer::Supervisor].into_iter().chain(standby).collect()
    }

    /// Returns host and port of a process that listens; `None` for collectors and for processes not in the system.
    pub fn address(&self, peer: Peer) -> Option<&str> {
        match peer {
            Peer::Supervisor => Some(&self.supervisor),
            Peer::Standby => self.standby.as_deref(),
            Peer::Readout(place) => self.readouts.get(usize::from(place)).map(String::as_str),
            Peer::Logger(place) => self.loggers.get(usize::from(place)).map(String::as_str),
            Peer::Collector(_) => None,
        }
    }

    /// Reads the certificate of a process and the authorities that the process trusts. Relative paths start at the folder of
    /// the system's file. Returns `None` without a section `[tls]`.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid.
    pub fn tls(&self, process: &str) -> Result<Option<Tls>, ConfigError> {
        let Some(files) = &self.tls else { return Ok(None) };
        let read = |name: &str| {
            let path = self.base().join(name.replace("{process}", process));
            std::fs::read(&path).map_err(|error| ConfigError::Read { path, error })
        };
        let (certificates, key) = (read(&files.certificates)?, read(&files.key)?);
        let tls = Tls::from_pem(&certificates, &key, &read(&files.authorities)?);
        tls.map(Some).map_err(|error| {
            let named = [
                ("certificates", &files.certificates),
                ("key", &files.key),
                ("authorities", &files.authorities),
            ];
            let named = named.map(|(kind, file)| format!("{kind} {}", file.replace("{process}", process)));
            ConfigError::Tls { process: process.to_owned(), files: named.join(", "), error }
        })
    }

    /// Returns the files with a secret of this process that every user of this host may read or write.
    pub(crate) fn open_secrets(&self, process: &str) -> Vec<PathBuf> {
        let own = self.tls.as_ref().map(|files| self.base().join(files.key.replace("{process}", process)));
        self.open_keys.iter().cloned().chain(own.filter(|path| is_open_to_others(path))).collect()
    }

    /// Returns the path of a process's journal.
    pub fn journal(&self, process: &str) -> PathBuf {
        self.folder.join(format!("{process}.journal"))
    }

    /// Returns the path of the Unix socket at which a collector accepts its processors.
    pub fn socket(&self, collector: u16) -> PathBuf {
        self.folder.join(format!("collector-{collector}.socket"))
    }

    /// Returns the working folder of the scenario's commands: the scenario's folder, or `.` if that is empty.
    pub fn scenario_folder_or_here(&self) -> PathBuf {
        let folder = &self.scenario_folder;
        if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.clone() }
    }

    /// Returns the index of this process within its role, for a command without `--index`. Chooses the only process, the
    /// process on this host, or the number at the end of the host's name, as in a Kubernetes StatefulSet.
    ///
    /// # Errors
    /// If neither the count nor the host name decides.
    pub fn index_here(&self, role: Role, host_name: &str) -> Result<u16, IndexError> {
        let count = self.count(role);
        if count == 1 {
            return Ok(0);
        }
        let supervisors: Vec<String> = [&self.supervisor].into_iter().chain(&self.standby).cloned().collect();
        let all = match role {
            Role::Supervisor => &supervisors,
            Role::Readout => &self.readouts,
            Role::Logger => &self.loggers,
            Role::Collector | Role::Processor => &self.collectors,
        };
        let short = |name: &str| name.split(['.', ':']).next().unwrap_or_default().to_owned();
        let here: Vec<usize> =
            (0..all.len()).filter(|&place| short(&all[place]) == short(host_name)).collect();
        let ordinal = short(host_name).rsplit('-').next().and_then(|end| end.parse::<usize>().ok());
        let index = match here[..] {
            [one] => Some(one),
            // A host that the map names by its address runs the first supervisor; `--standby` or an index chooses the other.
            _ if role == Role::Supervisor => Some(0),
            _ => ordinal.filter(|&ordinal| ordinal < count && here.is_empty()),
        };
        index.map(|index| index as u16).ok_or_else(|| IndexError { role, count, host: host_name.to_owned() })
    }
}

/// The host name does not decide which process of a role this is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are {count} processes of the role {role}, and the host name {host:?} does not say which this is; give --index"
)]
pub struct IndexError {
    role: Role,
    count: usize,
    host: String,
}

/// Returns the text of a system's file with all collectors on 127.0.0.1 and the other processes at the given addresses.
pub fn loopback_file(
    scenario: &Path,
    run: u32,
    supervisors: &[SocketAddr],
    readouts: &[SocketAddr],
    collectors: usize,
    loggers: &[SocketAddr],
) -> String {
    let list = |all: &[SocketAddr]| {
        all.iter().map(|address| format!("\"{address}\"")).collect::<Vec<_>>().join(", ")
    };
    let scenario = toml::Value::String(scenario.to_string_lossy().into_owned());
    let keys = ["supervisor", "standby"].iter().zip(supervisors);
    let supervisors: String = keys.map(|(key, address)| format!("{key} = \"{address}\"\n")).collect();
    format!(
        "scenario = {scenario}\nrun = {run}\n\n[hosts]\n{supervisors}readouts = [{}]\n\
         collectors = [{}]\nloggers = [{}]\n",
        list(readouts),
        vec!["\"127.0.0.1\""; collectors].join(", "),
        list(loggers)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "scenario = \"replay\"\n[hosts]\nsupervisor = \"daq:7000\"\nreadouts = [\"ros-[00-23]:7100\"]\n\
                        collectors = [\"dcm-[0-3]\"]\nloggers = [\"sfo-a:7200\", \"sfo-b:7200\"]\n";

    fn parse(text: &str) -> Result<System, String> {
        System::parse(Path::new("system.toml"), text)
            .map(|(system, _)| system)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_host_map_is_expanded() {
        let system = parse(GOOD).unwrap();
        assert_eq!((system.readouts.len(), system.readouts[7].as_str()), (24, "ros-07:7100"));
        assert_eq!(system.collectors[3], "dcm-3");
        assert_eq!(system.address(Peer::Logger(1)), Some("sfo-b:7200"));
        assert_eq!(system.index_here(Role::Readout, "ros-07.daq.example"), Ok(7));
        assert_eq!(system.index_here(Role::Logger, "logger-1"), Ok(1));
        assert_eq!(system.index_here(Role::Supervisor, "anything"), Ok(0));
        let paired = parse(&GOOD.replace("readouts =", "standby = \"daq-b:7000\"\nreadouts =")).unwrap();
        for (host, index) in [("daq", 0), ("daq-b.example", 1), ("other-1", 0)] {
            assert_eq!(paired.index_here(Role::Supervisor, host), Ok(index), "{host}");
        }
        assert!(system.index_here(Role::Collector, "dcm-9").unwrap_err().to_string().contains("--index"));
    }

    #[test]
    fn mistakes_are_shown_where_they_stand() {
        let wrong = |from: &str, to: &str| parse(&GOOD.replace(from, to)).unwrap_err();
        let text = wrong("ros-[00-23]:7100", "ros-[00-22]:7100");
        assert!(
            text.contains("system.toml:4:12: `hosts.readouts` names 23, and the scenario has 24"),
            "{text}"
        );
        assert!(text.contains("set `readout.hosts`"), "{text}");
        let text = wrong("sfo-b:7200", "sfo-b");
        assert!(text.contains("holds \"sfo-b\", which has no port"), "{text}");
        let text = wrong("ros-[00-23]", "ros-[23-0]");
        assert!(text.contains("a range goes from a lower to a higher number"), "{text}");
        let text = wrong("ros-[00-23]", "ros-[00..23");
        assert!(text.contains("a range is written [0-23]"), "{text}");
        let text = wrong("sfo-b:7200", "sfo-a:7200");
        assert!(
            text.contains(":6:11: `hosts.loggers` holds \"sfo-a:7200\", which `hosts.loggers` holds already"),
            "{text}"
        );
        let text = parse(&format!("{GOOD}[log]\nlevel = \"loud\"\n")).unwrap_err();
        assert!(text.contains("system.toml:8:9: `log.level` is \"loud\""), "{text}");
        let text = parse(&format!("{GOOD}[metrics]\nlisten = \":9100\"\n")).unwrap_err();
        assert!(text.contains("system.toml:8:10: `metrics.listen` is \":9100\""), "{text}");
        let text = wrong("loggers =", "logers =");
        assert!(text.contains("line 6") && text.contains("`logers`") && text.contains("`loggers`"), "{text}");
        let text = wrong("[hosts]", "key_previous = \"old.key\"\n[hosts]");
        assert!(text.contains(":2:16: `key_previous` is set, and `key` is not"), "{text}");
        let text = wrong("\"replay\"", "\"repley\"");
        assert!(text.contains("did you mean the preset `replay`?"), "{text}");
    }

    #[test]
    fn a_loopback_file_is_a_system() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let readouts: Vec<_> = (0..24).map(|n| address(8000 + n)).collect();
        let loggers = [address(9000), address(9001)];
        let system =
            parse(&loopback_file(Path::new("replay"), 3, &[address(7000)], &readouts, 4, &loggers)).unwrap();
        assert_eq!((system.run, system.readouts[23].as_str()), (3, "127.0.0.1:8023"));
        assert_eq!(listen_addresses(&system.supervisor, None).unwrap(), [address(7000)]);
    }

    #[test]
    fn bands_are_read_as_they_are_written() {
        let bands = PredictedBands {
            collection_time: Some(PredictedBand { low: 1e-3, high: 0.1 + 0.2 }),
            timeout_rate: Some(PredictedBand { low: 0.0, high: 2.0 }),
            ..PredictedBands::default()
        };
        let system = parse(&format!("{GOOD}[metrics]\n{}", bands.to_toml())).unwrap();
        assert_eq!(system.predicted, bands);
        assert_eq!(parse(GOOD).unwrap().predicted, PredictedBands::default());
        for wrong in [
            "low = 3.0, high = 2.0",
            "low = -1.0, high = 2.0",
            "low = 0.0, high = inf",
            "low = nan, high = 1.0",
        ] {
            let text = format!("{GOOD}[metrics]\npredicted.data_rate = {{ {wrong} }}\n");
            let error = parse(&text).unwrap_err();
            assert!(
                error.contains("metrics.predicted.data_rate") && error.contains("low <= high"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_named_host_listens_at_its_own_addresses_alone() {
        let found = listen_addresses("localhost:77", None).unwrap();
        assert!(
            !found.is_empty() && found.iter().all(|at| at.ip().is_loopback() && at.port() == 77),
            "{found:?}"
        );
        assert!(listen_addresses("no-such-host.invalid:77", None).is_err());
        let listen = "10.0.0.7".parse().ok();
        assert_eq!(
            listen_addresses("localhost:77", listen).unwrap(),
            [SocketAddr::from(([10, 0, 0, 7], 77))]
        );
    }
}
