//! Tables of text in columns.

/// Returns each row as a line, with columns as wide as their longest cell and two spaces between them. Cells stand at the right of
/// their column where `is_right` says so. A row may have fewer cells than others. Lines keep the spaces at their ends.
pub(crate) fn aligned(rows: &[Vec<String>], is_right: impl Fn(usize) -> bool) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let cell = |(column, text): (usize, &String)| {
        let width = widths[column];
        if is_right(column) { format!("{text:>width$}") } else { format!("{text:<width$}") }
    };
    rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [vec!["ring", "µs"], vec!["a", "1234"], vec!["longest"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(aligned(&rows, |column| column == 1), ["ring       µs", "a        1234", "longest"]);
        assert!(aligned(&[], |_| false).is_empty());
    }
}
