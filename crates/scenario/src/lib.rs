//! The scenario file: describes a system and its use. The file is read once, into types that hold only valid values.
//!
//! A scenario is a TOML file with only the differences from the defaults or from the file that it `extends`. [`load`] merges,
//! completes and checks it, and reports every problem with line and caret.
//!
//! ```
//! let loaded = fanin_scenario::load("thesis-a-1000hz", &["shaping.credits=480".to_owned()])?;
//! assert_eq!(loaded.scenario.fragments_total(), 1920);
//! assert_eq!(loaded.origin("shaping.credits"), "--set");
//! # Ok::<(), fanin_scenario::Errors>(())
//! ```

#![forbid(unsafe_code)]

mod check;
mod de;
mod document;
mod errors;
mod histogram;
pub mod import;
mod load;
mod presets;
mod reference;
pub mod role_configs;
mod show;
mod size;
mod slow;
mod tree;
mod types;

pub use de::expected_in_words;
pub use document::Document;
pub use errors::{Errors, Problem, Warnings};
pub use histogram::{HistogramError, SizeHistogram};
pub use load::{Loaded, ScenarioSource, load, load_text};
pub use presets::{Preset, preset, presets};
pub use reference::{json_schema, keys, reference_markdown};
pub use types::*;
