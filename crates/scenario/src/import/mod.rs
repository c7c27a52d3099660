//! Reads files of other tools as settings of a scenario: topologies of containerlab and MiniEdit, switches of SONiC.
//!
//! Only settings that the file contains are imported. [`Imported::refused`] names each key without a counterpart in scenarios.

mod containerlab;
mod draft;
mod error;
mod graph;
mod miniedit;
mod options;
mod sonic;
mod sonic_keys;

use serde_json::Value;

use draft::Draft;
pub use draft::{Imported, RefusedKey};
pub use error::ImportError;
pub use options::ImportOptions;

/// Reads the text of a file; `name` becomes part of the title. The format follows from the file's keys.
///
/// # Errors
/// If the file cannot be read, or no scenario has its shape.
pub fn import(name: &str, text: &str, options: &ImportOptions) -> Result<Imported, ImportError> {
    let tree: Value = match serde_json::from_str(text) {
        Ok(tree) => tree,
        // YAML has JSON in it, and its errors show the line.
        Err(_) => serde_saphyr::from_str(text).map_err(|error| ImportError::Syntax(error.to_string()))?,
    };
    let has = |key: &str| tree.get(key).is_some();
    let mut draft = Draft::new(name, options.extends.as_deref());
    if tree.pointer("/topology/nodes").is_some() {
        containerlab::read(&tree, options, &mut draft)?;
    } else if has("hosts") && has("switches") && has("links") {
        miniedit::read(&tree, options, &mut draft)?;
    } else if sonic::TABLES.iter().any(|table| has(table)) {
        sonic::read(&tree, options, &mut draft)?;
    } else {
        let keys = tree.as_object().map(|object| object.keys().cloned().collect());
        return Err(ImportError::UnknownFormat(keys.unwrap_or_default()));
    }
    Ok(draft.finish())
}
