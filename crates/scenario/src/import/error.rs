//! Errors of an import.

/// A file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportError {
    /// The file is neither JSON nor YAML.
    Syntax(String),
    /// The file is of no known format; its keys.
    UnknownFormat(Vec<String>),
    /// A key is missing or has another type: its path, and the needed value.
    Key(String, &'static str),
    /// No host is named as a collector; the hosts.
    NoCollectors(Vec<String>),
    /// An option names a node that the topology lacks; the nodes.
    UnknownNode(String, Vec<String>),
    /// No topology of a scenario has this shape: the place and the reason.
    Shape(String, String),
    /// An option names a queue that no entry of the file names; the queues of the entries.
    UnknownQueue(u8, Vec<String>),
    /// An option names no section of switches.
    UnknownSection(String),
}

/// Sections of switches.
pub(super) const SECTIONS: [&str; 5] = ["tor", "core", "aggregation", "leaf", "spine"];

impl std::fmt::Display for ImportError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax(why) => write!(out, "neither JSON nor YAML: {why}"),
            Self::UnknownFormat(keys) => write!(
                out,
                "neither a topology of containerlab (`topology.nodes`), nor one of MiniEdit (`hosts`, `switches`, `links`), nor a \
                 config_db.json of SONiC (`PORT`, `BUFFER_POOL` …); its keys are {}",
                list(keys)
            ),
            Self::Key(path, needed) => write!(out, "`{path}` is missing or wrong; needed: {needed}"),
            Self::NoCollectors(hosts) => write!(
                out,
                "a topology does not say which hosts collect: name them, for example --collector {}; the hosts are {}",
                hosts.first().map_or("h1", String::as_str),
                list(hosts)
            ),
            Self::UnknownNode(name, nodes) => {
                write!(out, "there is no node `{name}`; the nodes are {}", list(nodes))
            }
            Self::UnknownQueue(queue, queues) => {
                write!(out, "no entry is about queue {queue}; the queues are {}", list(queues))
            }
            Self::Shape(place, why) => {
                write!(out, "{place}: {why}; docs/howto/import.md shows the topologies that a scenario has")
            }
            Self::UnknownSection(name) => {
                write!(out, "`{name}` is not a section of switches; the sections are {}", SECTIONS.join(", "))
            }
        }
    }
}

impl std::error::Error for ImportError {}

/// Joins names for a message: only the first of many.
pub(super) fn list(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{shown} and {} more", count - SHOWN),
        _ => shown,
    }
}
