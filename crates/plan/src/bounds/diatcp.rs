//! DIATCP's global window: ICC'15 equations (8) to (10).

use fanin_units::Bytes;

use super::windows::{WindowRange, window_range};

/// Computes DIATCP's global window of each collector: ICC'15 eqs (8) to (10), `BDP / N ≤ gwnd < (BDP + B) / N`.
///
/// # Panics
/// If there is no collector.
pub fn gwnd_range(bdp: Bytes, buffer: Bytes, collectors: u64) -> WindowRange {
    let WindowRange { mut min, mut max } = window_range(bdp, buffer, collectors);
    (min.formula, min.source) = ("BDP / collectors", "ICC'15 §IV.D eq. (10)");
    (max.formula, max.source) = ("less than (BDP + buffer) / collectors", "ICC'15 §IV.D eq. (10)");
    WindowRange { min: min.named("gwnd_min"), max: max.named("gwnd_max") }
}
