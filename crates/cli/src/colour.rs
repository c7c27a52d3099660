//! The colours of the command, for terminals that take them.

use anstyle::{AnsiColor, Style};

/// Style of titles.
pub(crate) const HEADING: Style = Style::new().bold();
/// Style of a good result.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Style of a bad result.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of warnings.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// Style of less important text.
pub(crate) const FAINT: Style = Style::new().dimmed();
