//! The ready scenarios that ship inside the binary.

/// A ready scenario.
#[derive(Debug)]
pub struct Preset {
    /// The preset's name in commands.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

macro_rules! table {
    ($($name:literal,)*) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
        },)*]
    };
}

const PRESETS: &[Preset] = table![
    "thesis-a-500hz",
    "thesis-a-1000hz",
    "thesis-b-500hz",
    "thesis-b-1000hz",
    "icc15-1dcm",
    "icc15-147",
    "icc15-39dcm",
    "icc15-router",
    "lcn15-all-to-all",
    "lcn15-all-to-one",
    "multihost",
    "leaf-spine",
    "leaf-spine-terabit",
    "m21tcp-ffw",
    "m21tcp-fbw",
    "incast",
    "replay",
    "phase2",
];

/// Returns all ready scenarios, the papers' first.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// Returns the ready scenario with this name; `None` if there is none.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
