//! Tables of a screen, and their text.

use crate::columns::aligned;

/// Emphasis of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tone {
    #[default]
    Plain,
    Heading,
    Header,
    /// Something is lost or waits.
    Warning,
    /// A process that does not work, or does not answer.
    Alarm,
}

/// One line of a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenLine {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// Rows under a heading; the first column is left-aligned, the others are right-aligned.
#[derive(Debug, Clone, Default)]
pub(super) struct ScreenTable {
    heading: String,
    columns: Vec<&'static str>,
    rows: Vec<(Vec<String>, Tone)>,
    /// Columns at the beginning that are left-aligned.
    left: usize,
}

impl ScreenTable {
    pub(super) fn new(heading: impl Into<String>, left: usize, columns: &[&'static str]) -> Self {
        Self { heading: heading.into(), columns: columns.to_vec(), rows: Vec::new(), left }
    }

    pub(super) fn add(&mut self, tone: Tone, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push((cells, tone));
    }

    /// Returns the lines of the table after an empty line; no lines without rows.
    pub(super) fn lines(&self) -> Vec<ScreenLine> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let head = self.columns.iter().map(|&column| column.to_owned()).collect();
        let rows: Vec<Vec<String>> =
            std::iter::once(head).chain(self.rows.iter().map(|(cells, _)| cells.clone())).collect();
        let texts = aligned(&rows, |column| column >= self.left);
        let tones = std::iter::once(Tone::Header).chain(self.rows.iter().map(|(_, tone)| *tone));
        let plain = |text: String, tone| ScreenLine { text, tone };
        let mut lines = vec![plain(String::new(), Tone::Plain), plain(self.heading.clone(), Tone::Heading)];
        lines.extend(texts.iter().zip(tones).map(|(text, tone)| plain(text.trim_end().to_owned(), tone)));
        lines
    }
}

/// Formats a number with a prefix of its unit, such as `12.3 M`; a dash for `None`.
pub(super) fn scaled(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    for (factor, prefix) in [(1e9, " G"), (1e6, " M"), (1e4, " k")] {
        if value.abs() >= factor {
            let factor = if prefix == " k" { 1e3 } else { factor };
            return format!("{:.1}{prefix}", value / factor);
        }
    }
    if value.fract() == 0.0 || value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Formats bytes, or bytes a second; a dash for `None`.
pub(super) fn bytes(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(_) => {
            let text = scaled(value);
            if text.contains(' ') { format!("{text}B") } else { format!("{text} B") }
        }
    }
}

/// Formats seconds as milliseconds; a dash for `None`.
pub(super) fn millis(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.2}", 1e3 * seconds))
}

/// Formats a share as a percentage; a dash for `None`.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_prefixes_and_unknown_ones_a_dash() {
        let shown = |value: f64| scaled(Some(value));
        assert_eq!(
            [shown(0.0), shown(12.34), shown(9999.0), shown(12_345.0), shown(2.5e6), shown(3e9)],
            ["0", "12.3", "9999", "12.3 k", "2.5 M", "3.0 G"]
        );
        assert_eq!(
            (scaled(None), bytes(Some(7.0)), bytes(Some(2e6))),
            ("-".into(), "7 B".into(), "2.0 MB".into())
        );
        assert_eq!((millis(Some(0.00125)), percent(Some(0.5))), ("1.25".into(), "50.0 %".into()));
    }

    #[test]
    fn columns_are_aligned_and_an_empty_table_has_no_lines() {
        let mut table = ScreenTable::new("HEADING", 1, &["a", "number"]);
        assert!(table.lines().is_empty());
        table.add(Tone::Plain, vec!["long".into(), "1".into()]);
        let lines: Vec<String> = table.lines().into_iter().map(|line| line.text).collect();
        assert_eq!(lines, ["", "HEADING", "a     number", "long       1"]);
    }
}
