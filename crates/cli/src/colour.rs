//! The colours of the command, for terminals that take them.

use anstyle::{AnsiColor, Style};

/// Titles.
pub(crate) const HEADING: Style = Style::new().bold();
/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What most likely was not meant.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// What matters less than its neighbour.
pub(crate) const FAINT: Style = Style::new().dimmed();
