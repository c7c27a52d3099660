//! Writes log lines to standard error: as text for people, or as JSON for log collectors.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};

use tracing::{Level, Metadata};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::{Layer, Registry, fmt};

use crate::config::LogFormat;

/// Least severe level that is written, as a number from 1 (error) to 5 (trace).
static LEVEL: AtomicU8 = AtomicU8::new(3);

const fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

struct LevelFilter;

impl<S> Filter<S> for LevelFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        number(*metadata.level()) <= LEVEL.load(Ordering::Relaxed)
    }
}

/// Sets the least severe level that is written from now on.
pub fn set_level(level: Level) {
    LEVEL.store(number(level), Ordering::Relaxed);
}

/// Begins to write log lines. A second call in a process sets only the level.
pub fn install(format: LogFormat, level: Level) {
    set_level(level);
    let text = fmt::layer().with_writer(io::stderr).with_target(false);
    // A second subscriber is refused, and the first one stays.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(
            Registry::default().with(text.with_ansi(false).with_filter(LevelFilter)),
        ),
        LogFormat::Json => tracing::subscriber::set_global_default(
            Registry::default().with(text.json().flatten_event(true).with_filter(LevelFilter)),
        ),
    };
}

/// Begins to write the warnings and errors of a launcher: to standard error, or into `file`.
///
/// The file is created at the first line, in a folder that exists.
pub fn install_launcher(file: Option<PathBuf>) {
    set_level(Level::WARN);
    let text = fmt::layer().with_target(false).with_ansi(false);
    // A second subscriber is refused, and the first one stays.
    let _ =
        match file {
            None => tracing::subscriber::set_global_default(
                Registry::default().with(text.with_writer(io::stderr).with_filter(LevelFilter)),
            ),
            Some(path) => tracing::subscriber::set_global_default(Registry::default().with(
                text.with_writer(move || AppendingWriter { path: path.clone() }).with_filter(LevelFilter),
            )),
        };
}

/// Opens a file for each line, and adds the line. Warnings of a launcher are rare.
struct AppendingWriter {
    path: PathBuf,
}

impl Write for AppendingWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A warning that the disk does not take must not end the run.
        let _ = File::options()
            .create(true)
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
