//! Options of an import, and the nodes that they name.

use super::error::ImportError;

/// Options with facts that no file holds.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Hosts of a topology that collect; a name may end in `*`. All other hosts are readouts.
    pub collectors: Vec<String>,
    /// Nodes of a topology that are switches, although the file says otherwise; a name may end in `*`.
    pub switches: Vec<String>,
    /// The section of a switch's settings, such as `tor`.
    pub section: Option<String>,
    /// The queue of a switch that carries the traffic, where its queues differ.
    pub queue: Option<u8>,
    /// The scenario that the result extends.
    pub extends: Option<String>,
}

/// Returns the nodes that the patterns of an option name.
///
/// # Errors
/// If a pattern names no node.
pub(super) fn named<'a>(patterns: &[String], nodes: &[&'a str]) -> Result<Vec<&'a str>, ImportError> {
    let mut found = Vec::new();
    for pattern in patterns {
        let before = found.len();
        let is_meant = |node: &&str| match pattern.strip_suffix('*') {
            Some(start) => node.starts_with(start),
            None => *node == pattern,
        };
        found.extend(nodes.iter().copied().filter(is_meant));
        if found.len() == before {
            let nodes = nodes.iter().map(|&node| node.to_owned()).collect();
            return Err(ImportError::UnknownNode(pattern.clone(), nodes));
        }
    }
    Ok(found)
}
