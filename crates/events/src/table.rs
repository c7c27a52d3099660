//! Tables of fragment sizes: one row for each event and source, as CSV or Parquet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use parquet::basic::Compression;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use crate::Format;

/// The columns of a table of sizes, in any order; others are ignored.
const COLUMNS: [&str; 3] = ["event", "source", "bytes"];
/// The first bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// The largest fragment.
const FRAGMENT_MAX: u64 = 1 << 30;
/// The most sizes of an expanded table: events times sources.
const SIZES_MAX: usize = 1 << 26;

/// Errors of reading a table of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizesTableError {
    /// A column is missing.
    #[error(
        "there is no column `{needed}` among {actual}; a table of sizes has the columns event, source and bytes"
    )]
    NoColumn {
        /// Name of the missing column.
        needed: &'static str,
        /// The present columns.
        actual: String,
    },
    /// A row is too short.
    #[error("line {line}: no value for {column}; the first line names {needed} columns")]
    NoValue {
        /// The number of the line, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// Number of columns in the first line.
        needed: usize,
    },
    /// A value does not fit its column.
    #[error("{place} {row}: {column} is {actual:?}, not a whole number from 0 to {max}")]
    Number {
        /// Unit of the position: lines of a text, rows of a Parquet file.
        place: &'static str,
        /// Number of the line or row, from 1.
        row: usize,
        /// Name of the column.
        column: &'static str,
        /// The value found.
        actual: String,
        /// The largest value of this column.
        max: u64,
    },
    /// The table has too many events and sources.
    #[error("{events} events with {sources} sources are too many; a table holds {max} sizes at most", max = SIZES_MAX)]
    TooLarge {
        /// Number of events.
        events: usize,
        /// Number of sources.
        sources: usize,
    },
    /// The Parquet library refuses the file.
    #[error("as Parquet: {reason}")]
    Parquet {
        /// The library's reason.
        reason: String,
    },
    /// The columns are compressed by an unsupported method.
    #[error(
        "as Parquet: compressed by {method}; write it uncompressed or with Snappy, which pandas and polars call `compression=\"snappy\"`"
    )]
    Compression {
        /// Name of the method, in lower case.
        method: String,
    },
}

/// Sizes by event and source, in ascending order of both.
#[derive(Debug, Default)]
pub(crate) struct SizesTable(BTreeMap<u64, BTreeMap<u32, u64>>);

impl SizesTable {
    /// Reads the table in a file with content `bytes`; `None` for a file of another kind.
    pub(crate) fn read(path: &Path, bytes: &[u8]) -> Option<Result<Self, SizesTableError>> {
        if bytes.starts_with(PARQUET) {
            return Some(Self::of_parquet(path));
        }
        let first = bytes.split(|&byte| byte == b'\n').next()?;
        let is_text =
            !first.is_empty() && first.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace());
        (is_text && Format::detect(bytes).is_none() && std::str::from_utf8(first).is_ok())
            .then(|| Self::of_csv(&String::from_utf8_lossy(bytes)))
    }

    /// Adds a row. The sizes of rows with the same event and source add up.
    fn add(&mut self, [event, source, bytes]: [u64; 3]) {
        let source = u32::try_from(source).expect("the column's range is checked");
        *self.0.entry(event).or_default().entry(source).or_default() += bytes;
    }

    /// Reads text: a line of column names, then a line for each event and source. Commas, semicolons or tabs separate the
    /// cells.
    fn of_csv(text: &str) -> Result<Self, SizesTableError> {
        let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
        let (head, _) = lines.next().unwrap_or_default();
        let separator = [',', ';', '\t'].into_iter().find(|&one| head.contains(one)).unwrap_or(',');
        let cells = |line: &str| -> Vec<String> {
            line.split(separator).map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
        };
        let names: Vec<String> = cells(head).iter().map(|name| name.to_ascii_lowercase()).collect();
        let places = places(&names)?;
        let mut table = Self::default();
        for (text, line) in lines.filter(|(text, _)| !text.trim().is_empty()) {
            let cells = cells(text);
            let mut row = [0; 3];
            for ((value, place), column) in row.iter_mut().zip(places).zip(COLUMNS) {
                let missing = SizesTableError::NoValue { line, column, needed: names.len() };
                let cell = cells.get(place).filter(|cell| !cell.is_empty()).ok_or(missing)?;
                *value = checked("line", line, column, cell.parse().ok(), cell)?;
            }
            table.add(row);
        }
        Ok(table)
    }

    fn of_parquet(path: &Path) -> Result<Self, SizesTableError> {
        let refused = |reason: String| SizesTableError::Parquet { reason };
        let file = File::open(path).map_err(|error| refused(error.to_string()))?;
        let reader = SerializedFileReader::new(file).map_err(|error| refused(error.to_string()))?;
        let groups = reader.metadata().row_groups().iter();
        let mut methods = groups.flat_map(|group| group.columns()).map(|column| column.compression());
        if let Some(other) =
            methods.find(|method| !matches!(method, Compression::UNCOMPRESSED | Compression::SNAPPY))
        {
            // `ZSTD(ZstdLevel(1))`: the level is not stored.
            let method = other.to_string().split('(').next().unwrap_or_default().to_lowercase();
            return Err(SizesTableError::Compression { method });
        }
        let schema = reader.metadata().file_metadata().schema();
        let names: Vec<String> =
            schema.get_fields().iter().map(|field| field.name().to_ascii_lowercase()).collect();
        let places = places(&names)?;
        let mut table = Self::default();
        let rows = reader.get_row_iter(None).map_err(|error| refused(error.to_string()))?;
        for (row, number) in rows.zip(1..) {
            let row: Row = row.map_err(|error| refused(error.to_string()))?;
            let mut values = [0; 3];
            for ((value, place), column) in values.iter_mut().zip(places).zip(COLUMNS) {
                let field = row.get_column_iter().nth(place).map(|(_, field)| field);
                let shown = field.map_or_else(String::new, ToString::to_string);
                *value = checked("row", number, column, field.and_then(whole), &shown)?;
            }
            table.add(values);
        }
        Ok(table)
    }

    /// Returns the sources and, for each event, the bytes of each source.
    pub(crate) fn unfold(self) -> Result<(Vec<u32>, Vec<Vec<u64>>), SizesTableError> {
        let sources: BTreeSet<u32> = self.0.values().flat_map(|event| event.keys().copied()).collect();
        let sources: Vec<u32> = sources.into_iter().collect();
        if self.0.len().saturating_mul(sources.len()) > SIZES_MAX {
            return Err(SizesTableError::TooLarge { events: self.0.len(), sources: sources.len() });
        }
        let of = |event: &BTreeMap<u32, u64>| -> Vec<u64> {
            sources.iter().map(|source| event.get(source).copied().unwrap_or(0)).collect()
        };
        let events = self.0.values().map(of).collect();
        Ok((sources, events))
    }
}

/// Finds the positions of the columns.
fn places(names: &[String]) -> Result<[usize; 3], SizesTableError> {
    let mut places = [0; 3];
    for (place, needed) in places.iter_mut().zip(COLUMNS) {
        let found = names.iter().position(|name| name == needed);
        let missing = || SizesTableError::NoColumn { needed, actual: format!("`{}`", names.join("`, `")) };
        *place = found.ok_or_else(missing)?;
    }
    Ok(places)
}

/// Checks that a value is within the range of its column.
fn checked(
    place: &'static str,
    row: usize,
    column: &'static str,
    value: Option<u64>,
    actual: &str,
) -> Result<u64, SizesTableError> {
    let max = match column {
        "source" => u64::from(u32::MAX),
        "bytes" => FRAGMENT_MAX,
        _ => u64::MAX,
    };
    let wrong = || SizesTableError::Number { place, row, column, actual: actual.to_owned(), max };
    value.filter(|&value| value <= max).ok_or_else(wrong)
}

/// Returns the whole number in a cell of any type; `None` for other values.
fn whole(field: &Field) -> Option<u64> {
    match *field {
        Field::Byte(value) => u64::try_from(value).ok(),
        Field::Short(value) => u64::try_from(value).ok(),
        Field::Int(value) => u64::try_from(value).ok(),
        Field::Long(value) => u64::try_from(value).ok(),
        Field::UByte(value) => Some(value.into()),
        Field::UShort(value) => Some(value.into()),
        Field::UInt(value) => Some(value.into()),
        Field::ULong(value) => Some(value),
        // In columns with missing values, pandas converts whole numbers to floats.
        Field::Double(value) if (0.0..9e15).contains(&value) && value.fract() == 0.0 => Some(value as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &str) -> Result<(Vec<u32>, Vec<Vec<u64>>), SizesTableError> {
        SizesTable::read(Path::new("-"), text.as_bytes()).expect("it is text").and_then(SizesTable::unfold)
    }

    #[test]
    fn rows_of_any_order_become_events() {
        let expected = (vec![3, 7], vec![vec![100, 200], vec![0, 350]]);
        for text in [
            "event,source,bytes\n1,3,100\n1,7,200\n2,7,300\n2,7,50\n",
            "Bytes;run;Source;Event\r\n300;9;7;2\r\n50;9;7;2\r\n200;9;7;1\r\n\r\n100;9;3;1\r\n",
            "\u{feff}\"event\"\t\"source\"\t\"bytes\"\n2\t7\t350\n1\t7\t200\n1\t3\t100",
        ] {
            assert_eq!(csv(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn faults_have_their_line_and_what_would_be_right() {
        for (text, message) in [
            ("event,size\n1,2\n", "there is no column `source` among `event`, `size`; a table of sizes has"),
            (
                "event,source,bytes\n1,2,3\n1,2\n",
                "line 3: no value for bytes; the first line names 3 columns",
            ),
            (
                "event,source,bytes\n1,2,-3\n",
                "line 2: bytes is \"-3\", not a whole number from 0 to 1073741824",
            ),
            ("event,source,bytes\n1,4294967296,3\n", "line 2: source is \"4294967296\", not a whole number"),
        ] {
            let error = csv(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn a_table_that_unfolds_to_too_much_is_refused() {
        let rows: String = (0..9_000).map(|row| format!("{row},{row},1\n")).collect();
        let error = csv(&format!("event,source,bytes\n{rows}")).unwrap_err();
        assert_eq!(error, SizesTableError::TooLarge { events: 9_000, sources: 9_000 });
    }

    #[test]
    fn raw_data_are_no_table() {
        for bytes in [&crate::sample::km3net()[..], b"", b"\x00\x01\x02\n", b"\xff\xfe"] {
            assert!(SizesTable::read(Path::new("-"), bytes).is_none());
        }
    }
}
