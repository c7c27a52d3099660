//! Keywords in the files of TCP's counters.

pub(super) const HEADER: &str = "# fanin tcp 1";
pub(super) const END: &str = "# end";
pub(super) const SHARED: &str = "# diatcp";
pub(super) const EXTENSION: &str = "tcp";
