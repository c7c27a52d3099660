//! The colours of the command, for terminals that take them.

use anstyle::{AnsiColor, Style};

/// Style of titles.
pub(crate) const HEADING: Style = Style::new().bold();
/// A good result.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// A bad result.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of warnings.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// Less important text.
pub(crate) const FAINT: Style = Style::new().dimmed();
