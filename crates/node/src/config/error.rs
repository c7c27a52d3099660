//! Errors of a system's file.

use std::path::PathBuf;

use fanin_message::{KeyError, TlsError};

/// Errors of a system's file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown key.
    #[error("{}: {text}", path.display())]
    Syntax {
        /// Path of the file.
        path: PathBuf,
        /// The line with a caret, and the reason.
        text: String,
    },
    /// A value is out of range or has the wrong type.
    #[error("{}:{line}:{column}: {message}\n  | {text}\n  = help: {help}", path.display())]
    Value {
        /// Path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The line itself.
        text: String,
        /// Description of the mistake.
        message: String,
        /// Advice on the remedy.
        help: String,
    },
    /// The files for encryption are missing or wrong.
    #[error("[tls] of {process} ({files}): {error}")]
    Tls {
        /// Name of the process.
        process: String,
        /// Paths of the files.
        files: String,
        /// Error of the TLS settings.
        error: TlsError,
    },
    /// The file of the shared key holds no valid key.
    #[error("{}: {error}", path.display())]
    Key {
        /// The file of the key.
        path: PathBuf,
        /// Description of the mistake in the key.
        error: KeyError,
    },
    /// The file has neither `key` nor `insecure = true`. Without a key, peers are not authenticated, and no certificate proves
    /// that the supervisor assigned an event.
    #[error(
        "{}: peers are not authenticated; write `key = \"FILE\"`, also with a section [tls]. `openssl rand -hex 32` makes \
         such a file, the same on every host and readable by this user alone. `insecure = true` accepts forged assignments \
         and, without [tls], every process",
        path.display()
    )]
    NoAuthentication {
        /// The system's file.
        path: PathBuf,
    },
    /// The scenario, or a value that the file sets in it, is wrong.
    #[error("{}: invalid scenario or `set`:\n{errors}", path.display())]
    Scenario {
        /// Path of the file.
        path: PathBuf,
        /// Every problem, with its line and a caret.
        errors: fanin_scenario::Errors,
    },
}
