//! The identity of this build, from `build.rs`.

/// The version, and in parentheses the commit where it is known.
pub(crate) const TEXT: &str = env!("FANIN_VERSION");

/// The version alone.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, where it is known; it ends in `-dirty` where the sources differ from it.
pub(crate) const COMMIT: Option<&str> = option_env!("FANIN_COMMIT");
