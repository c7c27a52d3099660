//! The files of a result: one directory, each file replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;

#[cfg(feature = "arrow")]
use crate::TableName;
#[cfg(feature = "parquet")]
use crate::columns::Table;
use crate::several::Several;
#[cfg(feature = "parquet")]
use crate::tables::{self, TableReadError, TableWriteError};
#[cfg(feature = "parquet")]
use crate::{EventRow, FlowRow, IoRow, QueueRow, Records, WindowRow};
use crate::{JudgedClaim, NotFinite, PICTURE_SCHEMA, ResultKind, RunPicture, RunResult, SCHEMA, Summary};

/// File of the summary. It is written last, so a directory with this file holds the other files too.
pub const SUMMARY_FILE: &str = "summary.json";
/// The resolved scenario's file.
pub const SCENARIO_FILE: &str = "scenario.toml";
/// The picture's file.
pub const PICTURE_FILE: &str = "picture.json";
/// The file of judged claims, next to the runs that they need.
pub const CLAIMS_FILE: &str = "claims.json";
/// The schema of that file.
pub const CLAIMS_SCHEMA: &str = "fanin.claims/1";
/// The page's file.
pub const PAGE_FILE: &str = "report.html";

/// Largest summary or scenario; a larger file is not Fanin's.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Errors of writing a result.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or directory.
    #[error("cannot write {}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The place of a result holds files, but no whole result.
    #[error("{} holds files, but no {SUMMARY_FILE}: delete it, and run again", path.display())]
    NoResult {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A figure that JSON cannot hold.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// Error in writing a table.
    #[cfg(feature = "parquet")]
    #[error("cannot write {}: {error}", path.display())]
    Table {
        /// Path of the file.
        path: PathBuf,
        /// Error of the table.
        error: TableWriteError,
    },
}

/// Errors of reading a result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file or directory.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The summary is missing.
    #[error(
        "{} is not a result: it has no {SUMMARY_FILE} (a result is the directory that --out wrote, or a summary)",
        path.display()
    )]
    NoSummary {
        /// Path of the directory.
        path: PathBuf,
    },
    /// Larger than any file of a result.
    #[error("{} is not a result: it has {actual} bytes, more than {limit}", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Size of the file in bytes.
        actual: u64,
        /// The most that is read.
        limit: u64,
    },
    /// Content that is not UTF-8.
    #[error("{} is damaged: byte {at} is not UTF-8", path.display())]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the first wrong byte.
        at: usize,
    },
    /// The summary is damaged, or is some other JSON.
    #[error("{} is damaged or is not a summary: {error}", path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// The mistake and its place.
        error: serde_json::Error,
    },
    /// The summary has another schema.
    #[error("{} has the schema `{actual}`, not `{SCHEMA}`: it is from another program or another version",
        path.display())]
    Schema {
        /// Path of the file.
        path: PathBuf,
        /// The schema that it names.
        actual: String,
    },
    /// The JSON of a command that leaves its runs to the folder of `--out`.
    #[error("{} does not hold the runs that it names; `fanin {command} … --out DIR` makes their page, and `report` takes DIR",
        path.display())]
    NoRuns {
        /// Path of the file.
        path: PathBuf,
        /// The command that wrote it.
        command: &'static str,
    },
    /// An advice among other results.
    #[error("{} is a result of `fanin advise`, which has a page of its own; give it alone", path.display())]
    OwnPage {
        /// Path of the file.
        path: PathBuf,
    },
    /// Error in reading a table.
    #[cfg(feature = "parquet")]
    #[error("cannot read {}: {error}", path.display())]
    Table {
        /// Path of the file.
        path: PathBuf,
        /// Error of the table.
        error: TableReadError,
    },
}

/// Writes a result into `directory`, which is created if missing, and returns the paths of the written files.
///
/// `page` is the page's HTML. Each file is replaced as a whole. The earlier summary is removed first and the new one written
/// last, so that an incomplete directory never passes for a result. Files that no result has are left alone. Drafts of killed
/// processes are removed.
///
/// # Errors
/// If a file cannot be written, or a figure cannot be stored exactly.
pub fn write(directory: &Path, result: &RunResult, page: &str) -> Result<Vec<PathBuf>, WriteError> {
    let summary = result.summary.to_json()?;
    fs::create_dir_all(directory).map_err(|error| WriteError::Io { path: directory.into(), error })?;
    remove_drafts(directory);
    remove(&directory.join(SUMMARY_FILE))?;
    let mut written = Vec::new();

    #[cfg(feature = "parquet")]
    {
        let Records { events, queues, flows, io, windows } = &result.records;
        // A plan has no rows. A simulation without an event still writes an empty table of events.
        let always = result.summary.kind != ResultKind::Plan;
        write_table(directory, events, always, &mut written)?;
        write_table(directory, queues, always, &mut written)?;
        write_table(directory, flows, always, &mut written)?;
        write_table(directory, io, false, &mut written)?;
        write_table(directory, windows, false, &mut written)?;
    }

    match &result.scenario_toml {
        Some(scenario) => write_text(directory, SCENARIO_FILE, scenario, &mut written)?,
        None => remove(&directory.join(SCENARIO_FILE))?,
    }
    match result.picture.as_ref().map(serde_json::to_string) {
        Some(Ok(picture)) => write_text(directory, PICTURE_FILE, &picture, &mut written)?,
        Some(Err(_)) | None => remove(&directory.join(PICTURE_FILE))?,
    }
    write_text(directory, PAGE_FILE, page, &mut written)?;
    write_text(directory, SUMMARY_FILE, &summary, &mut written)?;
    Ok(written)
}

/// Returns true if `root` holds a complete result of this name. A result is incomplete if its page, or a table that every
/// simulation and run writes, is missing or lacks its end. The same holds if its scenario or picture is cut off.
pub fn is_stored(root: &Path, name: &str) -> bool {
    let folder = root.join(name);
    let Ok(summary) = parse_summary(&folder.join(SUMMARY_FILE)) else { return false };
    has_whole_texts(&folder) && (summary.kind == ResultKind::Plan || has_tables(&folder))
}

/// Returns true if page, scenario and picture are complete. Scenario and picture may be missing.
fn has_whole_texts(folder: &Path) -> bool {
    let (picture, scenario) = (folder.join(PICTURE_FILE), folder.join(SCENARIO_FILE));
    let is_whole = |text: String| text.ends_with('\n') && text.parse::<toml::Table>().is_ok();
    read_text(&folder.join(PAGE_FILE)).is_ok_and(|page| page.trim_end().ends_with("</html>"))
        && (!scenario.exists() || read_text(&scenario).is_ok_and(is_whole))
        && (!picture.exists() || parse_picture(&picture).is_ok())
}

/// Returns true if the tables that every simulation and run writes exist, each with its end.
#[cfg(feature = "parquet")]
fn has_tables(folder: &Path) -> bool {
    [EventRow::FILE, QueueRow::FILE, FlowRow::FILE].iter().all(|file| tables::has_end(&folder.join(file)))
}

#[cfg(not(feature = "parquet"))]
fn has_tables(_: &Path) -> bool {
    true
}

/// Writes a result into the folder `name` of `root`, as a whole: a draft in `root` is renamed when it is complete. Returns true
/// if the result was written. A complete result that exists already stays, and an incomplete one is replaced. Several machines
/// may write into one `root`.
///
/// # Errors
/// As for [`write()`].
pub fn write_once(root: &Path, name: &str, result: &RunResult, page: &str) -> Result<bool, WriteError> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    if is_stored(root, name) {
        return Ok(false);
    }
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (machine, process) = (machine.trim().replace('/', "-"), std::process::id());
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = root.join(format!(".{name}.{machine}.{process}.{number}{DRAFT}"));
    let renamed = write(&draft, result, page).and_then(|_| {
        let place = root.join(name);
        if !is_stored(root, name) && holds_results_only(&place, &draft) {
            // Renamed before it is removed, so that no reader finds a part of it.
            let damaged = draft.with_extension("damaged");
            if fs::rename(&place, &damaged).is_ok() {
                let _ = fs::remove_dir_all(&damaged);
            }
        }
        match fs::rename(&draft, &place) {
            Ok(()) => Ok(true),
            Err(_) if is_stored(root, name) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(WriteError::NoResult { path: place })
            }
            Err(error) => Err(WriteError::Io { path: place, error }),
        }
    });
    if !matches!(renamed, Ok(true)) {
        let _ = fs::remove_dir_all(&draft);
    }
    renamed
}

/// Returns true if each file in `place` has the name of a file in `draft`: the folder holds parts of a result and nothing else.
fn holds_results_only(place: &Path, draft: &Path) -> bool {
    let is_result = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            place.join(entry.file_name()).is_file() && draft.join(entry.file_name()).is_file()
        })
    };
    place.join(SUMMARY_FILE).exists() || fs::read_dir(place).is_ok_and(|mut entries| entries.all(is_result))
}

/// Reads a result from its directory, or from a summary alone.
///
/// Missing tables are empty. Without the feature `parquet` all tables are empty.
///
/// # Errors
/// If a file is missing, damaged, or of another kind; the message says which and why.
pub fn read(path: &Path) -> Result<RunResult, ReadError> {
    #[cfg_attr(
        not(feature = "parquet"),
        expect(unused_mut, reason = "tables are read with the feature only")
    )]
    let mut result = read_head(path)?;
    #[cfg(feature = "parquet")]
    if path.is_dir() {
        result.records = Records {
            events: read_table(path)?,
            queues: read_table(path)?,
            flows: read_table(path)?,
            io: read_table(path)?,
            windows: read_table(path)?,
        };
    }
    Ok(result)
}

/// Reads as [`read`] does, without the tables.
///
/// # Errors
/// As for [`read`].
pub fn read_head(path: &Path) -> Result<RunResult, ReadError> {
    let (directory, summary_path) =
        if path.is_dir() { (Some(path), path.join(SUMMARY_FILE)) } else { (None, path.to_owned()) };
    if directory.is_some() && !summary_path.exists() {
        return Err(ReadError::NoSummary { path: path.into() });
    }
    let summary = parse_summary(&summary_path)?;
    let mut result = RunResult::new(summary);
    // Users know a result by its directory: `out/shallow`, `out/credits`.
    match (&result.summary.label, path.canonicalize().ok().as_deref().and_then(Path::file_name)) {
        (Some(label), _) => result.label.clone_from(label),
        (None, Some(name)) if name != SUMMARY_FILE => {
            let name = name.to_string_lossy();
            // The file name of a single summary, without its ending, is the label.
            let stem = if directory.is_none() { name.strip_suffix(".json") } else { None };
            result.label = stem.unwrap_or(&name).to_owned();
        }
        _ => {}
    }
    let Some(directory) = directory else { return Ok(result) };
    let scenario = directory.join(SCENARIO_FILE);
    if scenario.exists() {
        result.scenario_toml = Some(read_text(&scenario)?);
    }
    let picture = directory.join(PICTURE_FILE);
    if picture.exists() {
        result.picture = Some(parse_picture(&picture)?);
    }
    Ok(result)
}

/// Reads one table of a simulation or run in `directory`; the other tables stay empty. The tables `io` and `windows` are empty
/// if their files are missing.
///
/// # Errors
/// If the table is damaged or of another kind, or if the file of events, queues or flows is missing.
#[cfg(feature = "arrow")]
pub fn read_rows(directory: &Path, table: TableName) -> Result<Records, ReadError> {
    let always = match table {
        TableName::Events => Some(EventRow::FILE),
        TableName::Queues => Some(QueueRow::FILE),
        TableName::Flows => Some(FlowRow::FILE),
        TableName::Io | TableName::Windows => None,
    };
    if let Some(path) = always.map(|file| directory.join(file)).filter(|path| !path.exists()) {
        return Err(ReadError::Io { path, error: io::ErrorKind::NotFound.into() });
    }
    let mut records = Records::default();
    match table {
        TableName::Events => records.events = read_table(directory)?,
        TableName::Queues => records.queues = read_table(directory)?,
        TableName::Flows => records.flows = read_table(directory)?,
        TableName::Io => records.io = read_table(directory)?,
        TableName::Windows => records.windows = read_table(directory)?,
    }
    Ok(records)
}

/// Reads several results. A folder without a summary stands for the results in its folders, in order of their names. The JSON
/// of a command, such as a sweep, stands for the results next to it, or else for the summaries in it. Results with equal labels
/// get the parent folder's name as a prefix. Points of a sweep are labelled with the swept settings.
///
/// # Errors
/// As for [`read`].
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<RunResult>, ReadError> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut points: Vec<RunResult> = Vec::new();
    for path in paths {
        let path = &match crate::several::of(path)? {
            Several::Folder(folder) => folder,
            Several::Points(of_file) => {
                points.extend(of_file);
                continue;
            }
            Several::None => path.clone(),
        };
        let within =
            if path.is_dir() && !path.join(SUMMARY_FILE).exists() { results_in(path)? } else { Vec::new() };
        if within.is_empty() { found.push(path.clone()) } else { found.extend(within) }
    }
    let mut results: Vec<RunResult> = found.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let labels: Vec<String> = results.iter().map(|result| result.label.clone()).collect();
    for ((path, result), label) in found.iter().zip(&mut results).zip(&labels) {
        if labels.iter().filter(|other| *other == label).count() > 1 {
            let above =
                path.canonicalize().ok().and_then(|path| Some(path.parent()?.file_name()?.to_owned()));
            result.label =
                above.map_or(label.clone(), |above| format!("{}/{label}", above.to_string_lossy()));
        }
    }
    crate::page::label_by_settings(&mut results);
    crate::sweep::label_points(&found, &mut results);
    results.extend(points);
    Ok(results)
}

/// Reads the claims of papers that `fanin reproduce` has judged, from the files and folders with claims.
///
/// # Errors
/// If the file is damaged, or of another kind.
pub fn read_claims(paths: &[PathBuf]) -> Result<Vec<JudgedClaim>, ReadError> {
    #[derive(Deserialize)]
    struct ClaimFile {
        claims: Vec<JudgedClaim>,
    }
    let mut claims = Vec::new();
    for path in paths {
        let Some(table) = crate::several::value_of(path, CLAIMS_SCHEMA, CLAIMS_FILE)? else { continue };
        let table: ClaimFile =
            serde_json::from_value(table).map_err(|error| ReadError::Json { path: path.clone(), error })?;
        claims.extend(table.claims);
    }
    Ok(claims)
}

/// Returns the folders within `folder` that hold a result, in order of their names.
pub(crate) fn results_in(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let at = |error| ReadError::Io { path: folder.into(), error };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let path = entry.path();
        // An unfinished draft has a hidden name.
        if !entry.file_name().to_string_lossy().starts_with('.') && path.join(SUMMARY_FILE).exists() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn parse_summary(path: &Path) -> Result<Summary, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let text = read_text(path)?;
    let json = |error| ReadError::Json { path: path.into(), error };
    let Head { schema: actual } = serde_json::from_str(&text).map_err(json)?;
    if actual != SCHEMA {
        return Err(ReadError::Schema { path: path.into(), actual: actual.chars().take(80).collect() });
    }
    serde_json::from_str(&text).map_err(json)
}

fn parse_picture(path: &Path) -> Result<RunPicture, ReadError> {
    let text = read_text(path)?;
    let picture: RunPicture =
        serde_json::from_str(&text).map_err(|error| ReadError::Json { path: path.into(), error })?;
    if picture.schema != PICTURE_SCHEMA {
        let actual = picture.schema.chars().take(80).collect();
        return Err(ReadError::Schema { path: path.into(), actual });
    }
    Ok(picture)
}

pub(crate) fn read_text(path: &Path) -> Result<String, ReadError> {
    let at = |error| ReadError::Io { path: path.into(), error };
    let mut bytes = Vec::new();
    // Reads one byte more than the limit, because the reported length of a file may be wrong.
    File::open(path).map_err(at)?.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(at)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let actual = fs::metadata(path).map_or(bytes.len() as u64, |metadata| metadata.len());
        return Err(ReadError::TooLarge { path: path.into(), actual, limit: TEXT_BYTES_MAX });
    }
    String::from_utf8(bytes)
        .map_err(|error| ReadError::Text { path: path.into(), at: error.utf8_error().valid_up_to() })
}

pub(crate) fn write_text(
    directory: &Path,
    name: &str,
    text: &str,
    written: &mut Vec<PathBuf>,
) -> Result<(), WriteError> {
    let path = directory.join(name);
    replace(&path, |file| file.write_all(text.as_bytes()))
        .map_err(|error| WriteError::Io { path: path.clone(), error })?;
    written.push(path);
    Ok(())
}

#[cfg(feature = "parquet")]
fn write_table<R: Table>(
    directory: &Path,
    rows: &[R],
    always: bool,
    written: &mut Vec<PathBuf>,
) -> Result<(), WriteError> {
    let path = directory.join(R::FILE);
    if rows.is_empty() && !always {
        return remove(&path);
    }
    replace(&path, |file| tables::write(rows, file))
        .map_err(|error| WriteError::Table { path: path.clone(), error })?;
    written.push(path);
    Ok(())
}

#[cfg(feature = "parquet")]
fn read_table<R: Table>(directory: &Path) -> Result<Vec<R>, ReadError> {
    let path = directory.join(R::FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    tables::read(&path).map_err(|error| ReadError::Table { path, error })
}

/// The ending of a draft's name, after the id of the process that writes it.
const DRAFT: &str = ".tmp";

/// Makes the name of a draft: `.NAME.PID.tmp`.
fn draft_name(name: &str, process: u32) -> String {
    format!(".{name}.{process}{DRAFT}")
}

/// Returns the process that writes a draft of this name; `None` for other names.
fn draft_writer(name: &str) -> Option<u32> {
    let (of, process) = name.strip_prefix('.')?.strip_suffix(DRAFT)?.rsplit_once('.')?;
    #[cfg(feature = "parquet")]
    let tables = [EventRow::FILE, QueueRow::FILE, FlowRow::FILE, IoRow::FILE, WindowRow::FILE];
    #[cfg(not(feature = "parquet"))]
    let tables = [];
    let is_ours =
        [SUMMARY_FILE, SCENARIO_FILE, PICTURE_FILE, PAGE_FILE].contains(&of) || tables.contains(&of);
    if is_ours { process.parse().ok() } else { None }
}

/// Removes the drafts of processes that were killed while they wrote here. Ignores drafts that cannot be removed.
fn remove_drafts(directory: &Path) {
    let processes = Path::new("/proc");
    // Without `/proc` no process is known to have ended.
    if !processes.join("self").exists() {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let writer = entry.file_name().to_str().and_then(draft_writer);
        if writer.is_some_and(|process| !processes.join(process.to_string()).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes a draft in the folder of `path`, and renames it to `path` once it is whole and on the disk.
pub(crate) fn replace<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(draft_name(&name, std::process::id()));
    let filled = (|| {
        let mut file = File::create(&draft)?;
        fill(&mut file)?;
        file.sync_all()?;
        Ok(fs::rename(&draft, path)?)
    })();
    if filled.is_err() {
        // The first error is returned. The draft may remain if it cannot be removed.
        let _ = fs::remove_file(&draft);
    }
    filled
}

fn remove(path: &Path) -> Result<(), WriteError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WriteError::Io { path: path.into(), error })
        }
        _ => Ok(()),
    }
}
