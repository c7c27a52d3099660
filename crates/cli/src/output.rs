//! Writing to the terminal, to a pipe and to files.

use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use fanin_scenario::Warnings;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::failure::Failure;

/// Writes a note to standard error. A closed standard error is ignored.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "note: {text}");
}

/// Writes a whole text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The destination of a summary.
#[derive(Debug, Clone)]
pub(crate) enum Json {
    /// Standard output, which then holds nothing else.
    Stdout,
    /// Writes to a file.
    File(PathBuf),
}

impl FromStr for Json {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(PathBuf::from(text)) })
    }
}

/// Returns true if no JSON is written to standard output, so that text may be.
pub(crate) fn is_for_text(json: &Option<Json>) -> bool {
    !json.as_ref().is_some_and(Json::is_stdout)
}

impl Json {
    /// Returns true if standard output holds the JSON alone.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Checks that the destination can be written.
    pub(crate) fn prove(&self) -> Result<(), Failure> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(path) => prove_file(path),
        }
    }

    /// Writes an object to the destination.
    pub(crate) fn write(&self, object: &impl Serialize) -> Result<(), Failure> {
        // Figures that JSON cannot hold are the writer's mistake, not the user's.
        let mut text = serde_json::to_string_pretty(object).expect("a summary is JSON");
        text.push('\n');
        match self {
            Self::Stdout => print(&text),
            Self::File(path) => {
                std::fs::write(path, text).map_err(|error| Failure::Write { path: path.clone(), error })
            }
        }
    }
}

/// Attempts to prove a folder that others remove meanwhile.
const FOLDER_TRIES: usize = 100;

/// Checks that a folder can be made and written to, before a run takes its time. Nothing is left behind.
pub(crate) fn prove_folder(path: &Path) -> Result<(), Failure> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
        return Err(Failure::NotAFolder { path: path.to_owned() });
    }
    let made: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    let prove = || {
        std::fs::create_dir_all(path)
            .map_err(|error| Failure::Write { path: path.to_owned(), error })
            .and_then(|()| prove_file(&path.join(format!(".fanin-{}", std::process::id()))))
    };
    // Jobs of an array prove one folder at a time, and each removes what it made.
    let kinds = [io::ErrorKind::NotFound, io::ErrorKind::AlreadyExists];
    let is_gone = |proved: &Result<(), Failure>| match proved {
        Err(Failure::Write { error, .. }) => kinds.contains(&error.kind()),
        _ => false,
    };
    let proved = (0..FOLDER_TRIES).map(|_| prove()).find(|proved| !is_gone(proved)).unwrap_or_else(prove);
    for folder in made {
        // A folder that cannot be removed is empty, and does no harm.
        let _ = std::fs::remove_dir(folder);
    }
    proved
}

/// Checks that a file can be written. An existing file stays as it is; a new one is removed again.
pub(crate) fn prove_file(path: &Path) -> Result<(), Failure> {
    let ends_as_folder = path.as_os_str().as_encoded_bytes().last() == Some(&b'/');
    if path.is_dir() || ends_as_folder {
        return Err(Failure::NotAFile { path: path.to_owned() });
    }
    let is_new = !path.exists();
    // Opening and closing a pipe would end its reader.
    if !is_new && !path.is_file() {
        return Ok(());
    }
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Failure::Write { path: path.to_owned(), error })?;
    if is_new {
        // A file that cannot be removed can be written all the same.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Prints warnings on standard error.
pub(crate) fn warn(warnings: &Warnings) {
    if !warnings.problems().is_empty() {
        let _ = writeln!(io::stderr(), "{}\n", warnings.render(is_coloured(&io::stderr())));
    }
}

/// Returns true if the stream is a terminal that takes colours, unless `NO_COLOR` (<https://no-color.org>) says otherwise.
pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Returns a progress bar; hidden with `--quiet`, or if standard error is no terminal.
pub(crate) fn bar(quiet: bool, template: &str) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_may_prove_one_new_folder() {
        let folder = std::env::temp_dir().join(format!("fanin-shared-{}", std::process::id()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| prove_folder(&folder).unwrap()));
            }
        });
        // One run may take another's folder for an old one.
        let _ = std::fs::remove_dir(folder);
    }
}
