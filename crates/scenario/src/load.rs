//! Reads a file or preset and some `--set` into a checked scenario.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::check;
use crate::de::nearest;
use crate::errors::{Errors, Problem, Warnings};
use crate::presets::{Preset, preset, presets};
use crate::reference::keys;
use crate::tree::{self, Origin, SourcePlace, SourceText, TomlNode, TomlTable, Value};
use crate::types::{Scenario, profile_defaults, shaping};

/// Longest chain of files that extend one another; a longer one counts as a circle.
const EXTENDS_MAX: usize = 16;
/// The largest scenario that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A scenario that has passed every check, with the origin of each setting.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The scenario, complete with defaults.
    pub scenario: Scenario,
    /// The scenario's name: the preset's, or the file's without its ending.
    pub name: String,
    /// Settings of the user that have no effect in combination with the others.
    pub warnings: Warnings,
    pub(crate) tree: TomlTable,
}

impl Loaded {
    /// Returns a fingerprint of all settings, 16 hexadecimal digits: equal for equal settings, regardless of the files.
    pub fn hash(&self) -> String {
        let text = toml::to_string(&self.scenario).expect("a checked scenario has a text");
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns true if the user's file or `--set` gives a key, or a key of this section.
    pub fn is_given(&self, key: &str) -> bool {
        self.tree.find(key).and_then(TomlNode::place).is_some_and(|place| place.source.is_outermost)
    }

    /// Makes the refusal of a setting by another crate, at the setting's place in the file.
    pub fn refusal(&self, key: &str, message: String, help: Option<String>) -> Errors {
        let mut key = key;
        let place = loop {
            if let Some(place) = self.tree.find(key).and_then(TomlNode::place) {
                break Some(place.clone());
            }
            match key.rsplit_once('.') {
                Some((above, _)) => key = above,
                None => break None,
            }
        };
        let label = String::new();
        Errors(vec![Problem { message, label, place, other: None, help: help.into_iter().collect() }])
    }

    /// Returns the name under which a simulation of this scenario is stored: 32 hexadecimal digits of a hash. The hash
    /// covers everything that determines the result: the settings with the seed, their file of sizes, and the version of
    /// Fanin.
    pub fn point_key(&self, version: &str) -> String {
        let text = toml::to_string(&self.scenario).expect("a checked scenario has a text");
        let mut digest = Sha256::new();
        let mut add = |bytes: &[u8]| {
            // Lengths keep the parts apart.
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        };
        add(version.as_bytes());
        add(text.as_bytes());
        if let Some(sizes) = &self.scenario.readout.sizes_digest {
            add(sizes);
        }
        digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Reads, merges and checks a scenario.
///
/// `source` is the name of a preset or a path. A preset's name means the preset, even if there is a file of this name; then a
/// warning says how to name the file. Each of `sets` is `KEY=VALUE` with a dotted key; the value is written as in a file, with
/// or without its quotes.
///
/// # Errors
/// Every problem, with its file, line and column.
pub fn load(source: &str, sets: &[String]) -> Result<Loaded, Errors> {
    let ScenarioSource { name, tree, warnings } = ScenarioSource::read(source)?;
    finish(name, tree, sets, warnings)
}

/// A scenario that is read once, and loaded with several settings. Changes of its files do not reach it.
#[derive(Debug, Clone)]
pub struct ScenarioSource {
    name: String,
    tree: TomlTable,
    warnings: Vec<Problem>,
}

impl ScenarioSource {
    /// Reads a preset or a file, as [`load`] does.
    ///
    /// # Errors
    /// If it cannot be read, or is no TOML.
    pub fn read(source: &str) -> Result<Self, Errors> {
        let base = outermost(source)?;
        let name = match &base {
            Base::Preset(preset) => preset.name.to_owned(),
            Base::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let mut chain = ExtendsChain::default();
        if matches!(base, Base::Preset(_)) && Path::new(source).is_file() {
            chain.warnings.push(namesake(source, None));
        }
        // A preset's settings that lose their effect by the user's settings are no mistake.
        let is_own = matches!(base, Base::File(_));
        let tree = read(&base, is_own, &mut chain).map_err(Errors)?;
        Ok(Self { name, tree, warnings: chain.warnings })
    }

    /// Merges and checks the scenario with some settings.
    ///
    /// # Errors
    /// The same errors as [`load`].
    pub fn load(&self, sets: &[String]) -> Result<Loaded, Errors> {
        finish(self.name.clone(), self.tree.clone(), sets, self.warnings.clone())
    }
}

/// Loads a scenario as [`load`] does, from text without a file; `extends` finds presets only.
///
/// # Errors
/// The same errors as [`load`].
pub fn load_text(name: &str, text: &str, sets: &[String]) -> Result<Loaded, Errors> {
    let source = Arc::new(SourceText { name: name.to_owned(), text: text.to_owned(), is_outermost: true });
    let mut chain = ExtendsChain { files: vec![name.to_owned()], ..ExtendsChain::default() };
    let tree = extend(tree::parse(&source).map_err(Errors)?, None, &mut chain).map_err(Errors)?;
    finish(name.to_owned(), tree, sets, chain.warnings)
}

fn finish(
    name: String,
    mut tree: TomlTable,
    sets: &[String],
    mut warnings: Vec<Problem>,
) -> Result<Loaded, Errors> {
    let mut problems = Vec::new();
    for set in sets {
        match parse_set(set) {
            Ok(over) => tree.merge(over),
            Err(problem) => problems.push(*problem),
        }
    }
    derive(&mut tree);
    let mut scenario = deserialise(&tree, &mut problems);
    if let Some(scenario) = &mut scenario {
        find_sizes(scenario, &tree);
        scenario.readout.sizes_digest = scenario.readout.fragment_size.digest();
    }
    if let Some(scenario) = &scenario
        && problems.is_empty()
    {
        problems = check::check(scenario, &tree);
    }
    match scenario {
        Some(scenario) if problems.is_empty() => {
            warnings.extend(check::without_effect(&scenario, &tree));
            warnings.extend(check::scarce_memory(&scenario, &tree));
            Ok(Loaded { scenario, name, warnings: Warnings(warnings), tree })
        }
        _ => Err(Errors(problems)),
    }
}

/// Finds a file of fragment sizes: relative to the scenario file that names it; relative to the working directory if `--set`
/// names it. A name without such a file stays unchanged: the name of a sample, or a mistake.
fn find_sizes(scenario: &mut Scenario, tree: &TomlTable) {
    let Some(path) = scenario.readout.fragment_size.path_mut() else { return };
    let place = tree.find("readout.fragment_size").and_then(TomlNode::place);
    let folder = place.and_then(|place| Path::new(&place.source.name).parent());
    if let Some(found) = folder.and_then(|folder| folder.join(&*path).canonicalize().ok())
        && found.is_file()
    {
        *path = found.display().to_string();
    }
}

enum Base {
    Preset(&'static Preset),
    File(PathBuf),
}

/// The files and presets that extend one another, from the outermost on.
#[derive(Default)]
struct ExtendsChain {
    files: Vec<String>,
    warnings: Vec<Problem>,
}

/// Makes the warning about a file with the name of a preset, named at `place` in a file or on the command line.
fn namesake(name: &str, place: Option<SourcePlace>) -> Problem {
    let message = format!("`{name}` is the preset; write `./{name}` for the file of this name");
    match place {
        Some(place) => Problem::at(place, message),
        None => Problem::anywhere(message),
    }
}

fn outermost(source: &str) -> Result<Base, Errors> {
    let path = Path::new(source);
    if let Some(preset) = preset(source) {
        return Ok(Base::Preset(preset));
    }
    if path.is_file() {
        return Ok(Base::File(path.to_owned()));
    }
    let message = if path.is_dir() {
        format!("`{source}` is a folder, not a scenario file")
    } else {
        format!("there is no scenario file or preset `{source}`")
    };
    let mut problem = Problem::anywhere(message);
    problem.help.extend(
        nearest(source, presets().iter().map(|p| p.name))
            .map(|name| format!("did you mean the preset `{name}`?")),
    );
    problem.help.push("`fanin scenario list` shows the presets".to_owned());
    Err(Errors(vec![problem]))
}

fn read(base: &Base, is_outermost: bool, chain: &mut ExtendsChain) -> Result<TomlTable, Vec<Problem>> {
    let (name, text, folder) = match base {
        Base::Preset(preset) => (format!("{}.toml", preset.name), preset.text.to_owned(), None),
        Base::File(path) => {
            let name = path.display().to_string();
            let fail = |error: &dyn std::fmt::Display| {
                vec![Problem::anywhere(format!("cannot read {name}: {error}"))]
            };
            let bytes = std::fs::metadata(path).map_err(|error| fail(&error))?.len();
            if bytes > FILE_BYTES_MAX {
                return Err(fail(&format_args!(
                    "the scenario has {bytes} bytes; the limit is {FILE_BYTES_MAX}"
                )));
            }
            let bytes = std::fs::read(path).map_err(|error| fail(&error))?;
            let text =
                String::from_utf8(bytes).map_err(|error| vec![not_utf8(&name, &error, is_outermost)])?;
            if is_outermost && text.trim().is_empty() {
                return Err(vec![without_settings(format!("{name} is empty"))]);
            }
            (name, text, path.parent().map(Path::to_owned))
        }
    };
    chain.files.push(name.clone());
    let source = Arc::new(SourceText { name, text, is_outermost });
    let tree = tree::parse(&source)?;
    if is_outermost && !tree.has_values() {
        return Err(vec![without_settings(format!("{} has no setting", source.name))]);
    }
    extend(tree, folder.as_deref(), chain)
}

/// Makes the problem of a file without settings, which would be the default scenario by mistake.
fn without_settings(message: String) -> Problem {
    let mut problem = Problem::anywhere(message);
    problem.help.push("write at least one setting, or extend a preset: extends = \"incast\"".to_owned());
    problem
}

/// Makes the problem of a file that is not UTF-8, at the first wrong byte.
fn not_utf8(name: &str, error: &std::string::FromUtf8Error, is_outermost: bool) -> Problem {
    let at = error.utf8_error().valid_up_to();
    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
    let shown = text[at..].chars().next().map_or(0, char::len_utf8);
    let byte = error.as_bytes()[at];
    let source = Arc::new(SourceText { name: name.to_owned(), text, is_outermost });
    let message = format!("the byte {byte:#04x} is not UTF-8");
    let mut problem = Problem::at(SourcePlace { source, span: at..at + shown }, message);
    problem.help.push("save the file in the encoding UTF-8".to_owned());
    problem
}

/// Merges a document over the document that it extends.
fn extend(
    mut tree: TomlTable,
    folder: Option<&Path>,
    chain: &mut ExtendsChain,
) -> Result<TomlTable, Vec<Problem>> {
    let Some(index) = tree.0.iter().position(|(key, _)| key == "extends") else {
        return Ok(tree);
    };
    let (_, node) = tree.0.remove(index);
    let fail = |message: String, help: Option<String>| {
        let mut problem = match node.place() {
            Some(place) => Problem::at(place.clone(), message),
            None => Problem::anywhere(message),
        };
        problem.help.extend(help);
        vec![problem]
    };
    let Value::String(wanted) = &node.value else {
        return Err(fail("`extends` names a file or preset, in quotes".to_owned(), None));
    };
    let file = folder.map_or_else(|| PathBuf::from(wanted), |folder| folder.join(wanted));
    let is_file = folder.is_some() && file.is_file();
    let base = if let Some(preset) = preset(wanted) {
        // A file may be named like the preset that it extends.
        if is_file && chain.files.last() != Some(&file.display().to_string()) {
            chain.warnings.push(namesake(wanted, node.place().cloned()));
        }
        Base::Preset(preset)
    } else if is_file {
        Base::File(file)
    } else if let Some(preset) = preset(wanted.strip_suffix(".toml").unwrap_or(wanted)) {
        Base::Preset(preset)
    } else {
        let near = nearest(wanted, presets().iter().map(|p| p.name));
        return Err(fail(
            format!("`{wanted}` is neither a file nor a preset"),
            near.map(|name| format!("did you mean the preset `{name}`?")),
        ));
    };
    let next = match &base {
        Base::Preset(preset) => format!("{}.toml", preset.name),
        Base::File(path) => path.display().to_string(),
    };
    if chain.files.contains(&next) || chain.files.len() >= EXTENDS_MAX {
        return Err(fail(
            "these files extend one another in a circle".to_owned(),
            Some(format!("{} → {next}", chain.files.join(" → "))),
        ));
    }
    let mut below = read(&base, false, chain)?;
    below.merge(tree);
    Ok(below)
}

/// Parses `KEY=VALUE` as a document of one key; a value that is not TOML is taken as text.
fn parse_set(set: &str) -> Result<TomlTable, Box<Problem>> {
    let source = Arc::new(SourceText { name: "--set".to_owned(), text: set.to_owned(), is_outermost: true });
    let whole = |message: &str| {
        let mut problem =
            Problem::at(SourcePlace { source: Arc::clone(&source), span: 0..set.len() }, message.to_owned());
        problem.help.push("write --set KEY=VALUE, for example --set shaping.credits=480".to_owned());
        Box::new(problem)
    };
    let Some((key, value)) = set.split_once('=') else {
        return Err(whole("this --set has no `=`"));
    };
    let key_is_plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    if !key.trim().split('.').all(key_is_plain) {
        return Err(whole("this --set has no dotted key before its `=`"));
    }
    if let Ok(table) = tree::parse(&source) {
        return Ok(table);
    }
    let start = set.len() - value.len();
    let digits = value.trim();
    if digits.parse::<i64>().is_err()
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        let place = SourcePlace { source: Arc::clone(&source), span: start..set.len() };
        let message = format!("{digits} is above {}, the largest whole number of TOML", i64::MAX);
        return Err(Box::new(Problem::at(place, message)));
    }
    let value_place = SourcePlace { source: Arc::clone(&source), span: start..set.len() };
    let key_place = SourcePlace { source: Arc::clone(&source), span: 0..key.len() };
    let mut node = TomlNode {
        value: Value::String(value.trim().to_owned()),
        origin: Origin::Written(value_place),
        key: Some(key_place.clone()),
    };
    let mut parts = key.trim().rsplit('.').peekable();
    while let Some(part) = parts.next() {
        let table = TomlTable(vec![(part.to_owned(), node)]);
        if parts.peek().is_none() {
            return Ok(table);
        }
        node = TomlNode {
            value: Value::Table(table),
            origin: Origin::Written(key_place.clone()),
            key: Some(key_place.clone()),
        };
    }
    Err(whole("this --set has no key"))
}

/// Settings with another setting as default, and the words for it.
const FOLLOWS: &[(&str, &str, &str)] = &[
    ("readout.link.rate", "link.rate", "as link.rate"),
    ("readout.link.delay", "link.delay", "as link.delay"),
    ("uplink.delay", "link.delay", "as link.delay"),
    ("supervisor.link.delay", "link.delay", "as link.delay"),
    ("logger.link.delay", "link.delay", "as link.delay"),
    ("readout.link.loss", "link.loss", "as link.loss"),
    ("uplink.loss", "link.loss", "as link.loss"),
    ("supervisor.link.loss", "link.loss", "as link.loss"),
    ("logger.link.loss", "link.loss", "as link.loss"),
    ("tor.uplink_buffer", "tor.buffer", "as tor.buffer"),
    ("core.uplink_buffer", "core.buffer", "as core.buffer"),
    ("aggregation.uplink_buffer", "aggregation.buffer", "as aggregation.buffer"),
    ("leaf.uplink_buffer", "leaf.buffer", "as leaf.buffer"),
    ("spine.uplink_buffer", "spine.buffer", "as spine.buffer"),
];

/// Fills in all missing settings: first those that depend on other settings, then the defaults.
///
/// The defaults are filled in key by key: the switches share one type, but a core router's defaults differ from a rack
/// switch's.
fn derive(tree: &mut TomlTable) {
    let profile = match tree.find("transport.profile").map(|node| &node.value) {
        Some(Value::String(name)) => name.clone(),
        _ => "linux-6".to_owned(),
    };
    if let Some(text) = profile_defaults(&profile) {
        for (key, node) in own_text(text).0 {
            tree.fill(&format!("transport.{key}"), node.value, &Origin::Derived("by transport.profile"));
        }
    }
    let defaults = own_text(&toml::to_string(&Scenario::default()).unwrap_or_default());
    for &(to, from, words) in FOLLOWS {
        if let Some(node) = tree.find(from)
            && !matches!(node.value, Value::Table(_))
        {
            let value = node.value.clone();
            tree.fill(to, value, &Origin::Derived(words));
        }
    }
    if let Some(Value::String(text)) = tree.find("transport.mtu").map(|node| &node.value)
        && let Ok(mtu) = text.parse::<fanin_units::Bytes>()
    {
        let mss = mtu.saturating_sub(fanin_units::Bytes::new(fanin_units::wire::IP_TCP_HEADERS.into()));
        let origin = Origin::Derived("transport.mtu less 40 B of headers");
        tree.fill("transport.mss", Value::String(mss.to_string()), &origin);
    }
    for &(key, given, to, value, words) in shaping::FOLLOWS {
        let has = |node: &TomlNode, text| matches!(&node.value, Value::String(own) if own == text);
        if tree.find(key).is_some_and(|node| given.is_none_or(|text| has(node, text))) {
            tree.fill(to, Value::String(value.to_owned()), &Origin::Derived(words));
        }
    }
    fill_defaults(tree, "", &defaults);
}

/// Parses a text of this crate, which is valid: tests parse every such text.
fn own_text(text: &str) -> TomlTable {
    let source = Arc::new(SourceText { name: String::new(), text: text.to_owned(), is_outermost: false });
    tree::parse(&source).unwrap_or_default()
}

fn fill_defaults(tree: &mut TomlTable, path: &str, defaults: &TomlTable) {
    for (key, node) in &defaults.0 {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match &node.value {
            Value::Table(inner) => fill_defaults(tree, &path, inner),
            value => tree.fill(&path, value.clone(), &Origin::Default),
        }
    }
}

/// Returns help for a wrong key of the top level: sections with such a key, or a key of the named section. `None` without a
/// suggestion.
fn of_section(key: &str, value: &Value) -> Option<String> {
    let defaults = own_text(&toml::to_string(&Scenario::default()).ok()?);
    if let Some(TomlNode { value: Value::Table(section), .. }) = defaults.child(key) {
        let first = section.0.first().filter(|_| !matches!(value, Value::Table(_)))?;
        let help = format!("`{key}` is a section; set one of its keys, such as ");
        return Some(help + &key_for(key, value).unwrap_or_else(|| format!("`{key}.{}`", first.0)));
    }
    if matches!(key, "switch" | "switches") {
        return Some("the switches' sections are tor, core, aggregation, leaf and spine".to_owned());
    }
    let has_key =
        |node: &TomlNode| matches!(&node.value, Value::Table(section) if section.child(key).is_some());
    let sections: Vec<&str> =
        defaults.0.iter().filter(|(_, node)| has_key(node)).map(|(name, _)| name.as_str()).collect();
    (!sections.is_empty()).then(|| format!("`{key}` is a key of a section: {}", sections.join(", ")))
}

/// Returns the only key of a section that takes a value, or has a similar choice, as a setting in back quotes. `None` if no key
/// fits, or several do.
fn key_for(section: &str, value: &Value) -> Option<String> {
    let (mut taking, mut like) = (Vec::new(), Vec::new());
    for key in keys() {
        let Some((_, key)) =
            key.split_once('.').filter(|(first, key)| *first == section && !key.contains('.'))
        else {
            continue;
        };
        let node = |value| TomlNode { value, origin: Origin::Default, key: None };
        let inner = TomlTable(vec![(key.to_owned(), node(value.clone()))]);
        let one = TomlTable(vec![(section.to_owned(), node(Value::Table(inner)))]);
        let setting = |value: &str| format!("`{section}.{key} = \"{value}\"`");
        match (Scenario::deserialize(&one), value) {
            (Ok(_), Value::String(text)) => taking.push(setting(text)),
            (Ok(_), _) => taking.push(format!("`{section}.{key}`")),
            (Err(error), _) => like.extend(error.near_choice().map(setting)),
        }
    }
    let found = if taking.is_empty() { like } else { taking };
    <[String; 1]>::try_from(found).ok().map(|[setting]| setting)
}

/// Reads each section by itself, so that one mistake does not hide another.
fn deserialise(tree: &TomlTable, problems: &mut Vec<Problem>) -> Option<Scenario> {
    let before = problems.len();
    let mut sound = TomlTable::default();
    let mut derived = Vec::new();
    for (key, node) in &tree.0 {
        let one = TomlTable(vec![(key.clone(), node.clone())]);
        match (Scenario::deserialize(&one), &node.value) {
            (Ok(_), _) => sound.0.push((key.clone(), node.clone())),
            (Err(first), Value::Table(section)) => {
                // Key by key again, so that each mistake in a section is reported.
                let mut found = false;
                for (inner, value) in &section.0 {
                    let is_users = value.place().is_some();
                    let section = TomlTable(vec![(inner.clone(), value.clone())]);
                    let value = Value::Table(section);
                    let one = TomlTable(vec![(key.clone(), TomlNode { value, ..node.clone() })]);
                    if let Err(error) = Scenario::deserialize(&one) {
                        found = true;
                        // A default that is derived from a wrong setting is wrong, too, but is not the user's mistake.
                        if is_users {
                            problems.push(error.with_range_of_schema().into_problem());
                        } else {
                            derived.push(error.into_problem());
                        }
                    }
                }
                if !found {
                    problems.push(first.with_range_of_schema().into_problem());
                } else if let Some(problem) = problems.last_mut() {
                    problem.help.extend(of_section(key, &node.value));
                }
            }
            (Err(error), value) => {
                let mut problem = error.into_problem();
                problem.help.extend(of_section(key, value));
                problems.push(problem);
            }
        }
    }
    if problems.len() == before {
        problems.append(&mut derived);
    }
    if problems.len() > before {
        // A default that is derived from a wrong setting is wrong, too, but is not the user's mistake.
        problems.retain(|problem| problem.place.is_some());
        // An unknown section would be reported again with each of its keys.
        let mut seen = BTreeSet::new();
        problems.retain(|problem| {
            let place = problem.location().map(|(file, line, column)| (file.to_owned(), line, column));
            seen.insert((problem.message.clone(), place))
        });
        return None;
    }
    match Scenario::deserialize(&sound) {
        Ok(scenario) => Some(scenario),
        Err(error) => {
            problems.push(error.with_range_of_schema().into_problem());
            None
        }
    }
}
