//! The identity of this build, set by `build.rs`.

/// The version, and in parentheses the commit if known.
pub(crate) const TEXT: &str = env!("FANIN_VERSION");

/// The version alone.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, if known; ends in `-dirty` if the sources differ from it.
pub(crate) const COMMIT: Option<&str> = option_env!("FANIN_COMMIT");
