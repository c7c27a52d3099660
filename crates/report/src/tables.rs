//! Rows to Parquet and back.
//!
//! Quantities are signed 64-bit integers, so that differences in NumPy do not wrap; identifiers are unsigned. The unit of every
//! column is in its name, and again in the file's key-value metadata. Arrow readers show these as the schema's metadata:
//! `fanin.schema` and `fanin.unit.<column>`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::columns::{Cell, Column, ID, Table};

/// Most rows of a row group, which limits a reader's memory.
const ROWS_PER_GROUP: usize = 1 << 18;
/// Most rows of a file; a file with more counts as damaged.
const ROWS_MAX: usize = 1 << 30;
/// Rows that are decoded at a time.
const BATCH: usize = 1 << 14;

/// Errors of writing a table.
#[derive(Debug, thiserror::Error)]
pub enum TableWriteError {
    /// A quantity that a signed 64-bit column cannot hold (a time past 106 days).
    #[error("{value} in column `{column}` of row {row} is larger than a table can hold ({})", i64::MAX)]
    TooLarge {
        /// Name of the column.
        column: &'static str,
        /// Number of the row, from 0.
        row: usize,
        /// The value that does not fit.
        value: u64,
    },
    /// Error of the file.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Error of the Parquet encoding.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}

/// Errors of reading a table.
#[derive(Debug, thiserror::Error)]
pub enum TableReadError {
    /// The file is of another kind, or of a later version.
    #[error("its schema is `{actual}`, not `{expected}`")]
    Schema {
        /// The schema that the file names; empty if it names none.
        actual: String,
        /// The expected schema.
        expected: &'static str,
    },
    /// A column is missing.
    #[error("it has no column `{column}`")]
    Missing {
        /// Name of the column.
        column: &'static str,
    },
    /// A column has a type that does not fit.
    #[error("column `{column}` is stored as {actual}")]
    Type {
        /// Name of the column.
        column: &'static str,
        /// Physical type of the column.
        actual: String,
    },
    /// A value does not fit its column.
    #[error("row {row} of column `{column}` does not fit: {actual}")]
    Value {
        /// Name of the column.
        column: &'static str,
        /// Number of the row, from 0.
        row: usize,
        /// Value in the table.
        actual: String,
    },
    /// More rows than any result has, or fewer values than rows.
    #[error("it claims {claimed} rows and holds {found}")]
    Rows {
        /// The number of rows in the footer.
        claimed: i64,
        /// The number of rows read.
        found: usize,
    },
    /// The file is not Parquet, or damaged.
    #[error("it is not a whole Parquet file: {0}")]
    Parquet(#[from] ParquetError),
    /// The decoder panicked on a damaged page.
    #[error("it is damaged: its pages cannot be decoded")]
    Damaged,
}

/// The last bytes of every Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";

/// Returns true if a file ends as every complete Parquet file does.
pub(crate) fn has_end(path: &Path) -> bool {
    let mut end = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-(MAGIC.len() as i64)))?;
        file.read_exact(&mut end)
    });
    read.is_ok() && end == MAGIC
}

/// Returns true if a column holds texts, judged by the cell of an empty row.
fn is_name<R: Table>(column: &Column<R>) -> bool {
    matches!((column.read)(&R::default()), Cell::Name(_))
}

fn is_optional<R: Table>(column: &Column<R>) -> bool {
    matches!((column.read)(&R::default()), Cell::Maybe(_))
}

fn schema<R: Table>() -> Result<Type, ParquetError> {
    let fields = R::COLUMNS
        .iter()
        .map(|column| {
            let (physical, logical) = if is_name(column) {
                (Physical::BYTE_ARRAY, LogicalType::String)
            } else {
                (Physical::INT64, LogicalType::integer(64, column.unit != ID))
            };
            let repetition = if is_optional(column) { Repetition::OPTIONAL } else { Repetition::REQUIRED };
            Type::primitive_type_builder(column.name, physical)
                .with_logical_type(Some(logical))
                .with_repetition(repetition)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build()
}

fn properties<R: Table>() -> WriterProperties {
    let text = |key: String, value: &str| KeyValue::new(key, value.to_owned());
    let mut metadata = vec![text("fanin.schema".into(), R::SCHEMA)];
    metadata.extend(R::COLUMNS.iter().map(|column| text(format!("fanin.unit.{}", column.name), column.unit)));
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by("fanin".into())
        .set_key_value_metadata(Some(metadata));
    for column in R::COLUMNS.iter().filter(|column| !is_name(column)) {
        // Times increase and counts repeat, so their differences take a few bits each.
        let path = ColumnPath::from(column.name);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// Writes `rows` as a whole Parquet file.
pub(crate) fn write<R: Table, W: Write + Send>(rows: &[R], out: W) -> Result<(), TableWriteError> {
    let mut file = SerializedFileWriter::new(out, Arc::new(schema::<R>()?), Arc::new(properties::<R>()))?;
    for (group_index, rows) in rows.chunks(ROWS_PER_GROUP).enumerate() {
        let mut group = file.next_row_group()?;
        for column in R::COLUMNS {
            let mut writer =
                group.next_column()?.ok_or_else(|| ParquetError::General("a column too few".into()))?;
            let first_row = group_index * ROWS_PER_GROUP;
            write_column(column, rows, first_row, writer.untyped())?;
            writer.close()?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn write_column<R: Table>(
    column: &Column<R>,
    rows: &[R],
    first_row: usize,
    writer: &mut ColumnWriter<'_>,
) -> Result<(), TableWriteError> {
    let (mut numbers, mut levels, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        let number = match (column.read)(row) {
            Cell::Number(value) => value,
            Cell::Maybe(value) => {
                levels.push(i16::from(value.is_some()));
                let Some(value) = value else { continue };
                value
            }
            Cell::Name(name) => {
                names.push(ByteArray::from(name.as_bytes().to_vec()));
                continue;
            }
        };
        // An identifier is a bit pattern; the file's logical type says that it is unsigned.
        if number > i64::MAX as u64 && column.unit != ID {
            return Err(TableWriteError::TooLarge {
                column: column.name,
                row: first_row + index,
                value: number,
            });
        }
        numbers.push(number as i64);
    }
    let levels = is_optional(column).then_some(levels.as_slice());
    match writer {
        ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&numbers, levels, None)?,
        ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&names, None, None)?,
        _ => return Err(ParquetError::General("a column of another type".into()).into()),
    };
    Ok(())
}

/// Reads a whole Parquet file of such rows.
pub(crate) fn read<R: Table>(path: &Path) -> Result<Vec<R>, TableReadError> {
    // On some damaged pages the decoder panics instead of returning an error. No state is shared with the attempt.
    catch_unwind(|| decode(path)).unwrap_or(Err(TableReadError::Damaged))
}

fn decode<R: Table>(path: &Path) -> Result<Vec<R>, TableReadError> {
    let file = File::open(path).map_err(|error| ParquetError::External(Box::new(error)))?;
    let reader = SerializedFileReader::new(file)?;
    let metadata = reader.metadata().file_metadata();
    let actual = metadata
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == "fanin.schema"))
        .and_then(|pair| pair.value.clone())
        .unwrap_or_default();
    if actual != R::SCHEMA {
        return Err(TableReadError::Schema { actual, expected: R::SCHEMA });
    }
    let claimed = metadata.num_rows();
    let groups_claim: i128 =
        reader.metadata().row_groups().iter().map(|group| i128::from(group.num_rows())).sum();
    if i128::from(claimed) != groups_claim || !(0..=ROWS_MAX as i64).contains(&claimed) {
        return Err(TableReadError::Rows { claimed, found: groups_claim.clamp(0, i64::MAX.into()) as usize });
    }
    let mut rows: Vec<R> = Vec::new();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        let first_row = rows.len();
        // The first column makes the rows, one for each value that it holds. The other columns fill them in.
        for (position, column) in R::COLUMNS.iter().enumerate() {
            read_column(column, group.as_ref(), first_row, position == 0, &mut rows)?;
        }
    }
    if rows.len() as i64 != claimed {
        return Err(TableReadError::Rows { claimed, found: rows.len() });
    }
    Ok(rows)
}

fn read_column<R: Table>(
    column: &Column<R>,
    group: &dyn RowGroupReader,
    first_row: usize,
    makes_rows: bool,
    rows: &mut Vec<R>,
) -> Result<(), TableReadError> {
    let schema = group.metadata().schema_descr();
    let found = schema.columns().iter().position(|found| found.path().parts() == [column.name]);
    // Results of earlier versions may lack an optional column, or have it as a required one.
    if found.is_none() && is_optional(column) && !makes_rows {
        return Ok(());
    }
    let index = found.ok_or(TableReadError::Missing { column: column.name })?;
    let (descriptor, name) = (&schema.columns()[index], column.name);
    let has_gaps = descriptor.max_def_level() > 0;
    let wrong_type = || TableReadError::Type { column: name, actual: descriptor.physical_type().to_string() };
    if descriptor.max_rep_level() != 0 || descriptor.max_def_level() > i16::from(is_optional(column)) {
        return Err(wrong_type());
    }
    let mut at = first_row;
    let mut put = |cells: &mut dyn Iterator<Item = Cell>| -> Result<(), TableReadError> {
        for cell in cells {
            if makes_rows {
                rows.push(R::default());
            }
            let (found, claimed) = (at - first_row, group.metadata().num_rows());
            let row = rows.get_mut(at).ok_or(TableReadError::Rows { claimed, found })?;
            let shown = cell.clone();
            if !(column.write)(row, cell) {
                let actual = match shown {
                    Cell::Name(name) => format!("{:?}", name.chars().take(80).collect::<String>()),
                    other => format!("{other:?}"),
                };
                return Err(TableReadError::Value { column: name, row: at, actual });
            }
            at += 1;
        }
        Ok(())
    };
    match (group.get_column_reader(index)?, is_name(column)) {
        (ColumnReader::Int64ColumnReader(mut reader), false) => loop {
            let (mut numbers, mut levels) = (Vec::new(), Vec::new());
            let wanted = has_gaps.then_some(&mut levels);
            let (records, _, _) = reader.read_records(BATCH, wanted, None, &mut numbers)?;
            if records == 0 {
                break;
            }
            if numbers.iter().any(|&number| number < 0 && column.unit != ID) {
                let actual = "a negative quantity".into();
                return Err(TableReadError::Value { column: name, row: first_row, actual });
            }
            let mut numbers = numbers.into_iter().map(|number| number as u64);
            if has_gaps {
                put(&mut levels
                    .iter()
                    .map(|&level| Cell::Maybe(if level == 1 { numbers.next() } else { None })))?;
            } else if is_optional(column) {
                put(&mut numbers.map(|number| Cell::Maybe(Some(number))))?;
            } else {
                put(&mut numbers.map(Cell::Number))?;
            }
        },
        (ColumnReader::ByteArrayColumnReader(mut reader), true) => {
            // Runs of equal names are common: the last name is kept and shared.
            let mut last: Arc<str> = Arc::from("");
            loop {
                let mut names: Vec<ByteArray> = Vec::new();
                let (records, _, _) = reader.read_records(BATCH, None, None, &mut names)?;
                if records == 0 {
                    break;
                }
                for bytes in &names {
                    if bytes.data() != last.as_bytes() {
                        let text = bytes.as_utf8().map_err(|_| TableReadError::Value {
                            column: name,
                            row: first_row,
                            actual: "bytes that are not UTF-8".into(),
                        })?;
                        last = Arc::from(text);
                    }
                    put(&mut std::iter::once(Cell::Name(last.clone())))?;
                }
            }
        }
        _ => return Err(wrong_type()),
    }
    let (claimed, found) = (group.metadata().num_rows(), at - first_row);
    if at != rows.len() || found as i64 != claimed {
        return Err(TableReadError::Rows { claimed, found });
    }
    Ok(())
}

/// A column of a table with columns chosen at run time.
pub(crate) enum AnyColumn {
    /// Column of texts.
    Texts(Vec<String>),
    /// Numbers, or nothing.
    Numbers(Vec<Option<f64>>),
    /// Identifiers of 64 bits, or nothing; floats hold 53 of them.
    Ids(Vec<Option<u64>>),
}

/// Writes columns of equal length as a whole Parquet file.
pub(crate) fn write_columns<W: Write + Send>(
    schema: &str,
    columns: &[(String, AnyColumn)],
    out: W,
) -> Result<(), TableWriteError> {
    let fields: Vec<Arc<Type>> = columns
        .iter()
        .map(|(name, column)| {
            let (physical, logical, repetition) = match column {
                AnyColumn::Texts(_) => {
                    (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED)
                }
                AnyColumn::Numbers(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
                AnyColumn::Ids(_) => {
                    (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::OPTIONAL)
                }
            };
            let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            Ok(Arc::new(field.with_repetition(repetition).build()?))
        })
        .collect::<Result<_, ParquetError>>()?;
    let root = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
    let metadata = vec![KeyValue::new("fanin.schema".to_owned(), schema.to_owned())];
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("fanin".into())
        .set_key_value_metadata(Some(metadata))
        .build();
    let mut file = SerializedFileWriter::new(out, root, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, column) in columns {
        let mut writer =
            group.next_column()?.ok_or_else(|| ParquetError::General("a column too few".into()))?;
        match (writer.untyped(), column) {
            (ColumnWriter::ByteArrayColumnWriter(writer), AnyColumn::Texts(texts)) => {
                let texts: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
                writer.write_batch(&texts, None, None)?;
            }
            (ColumnWriter::DoubleColumnWriter(writer), AnyColumn::Numbers(numbers)) => {
                let known: Vec<f64> = numbers.iter().flatten().copied().collect();
                writer.write_batch(&known, Some(&levels(numbers)), None)?;
            }
            (ColumnWriter::Int64ColumnWriter(writer), AnyColumn::Ids(ids)) => {
                let known: Vec<i64> = ids.iter().flatten().map(|&id| id as i64).collect();
                writer.write_batch(&known, Some(&levels(ids)), None)?;
            }
            _ => return Err(ParquetError::General("a column of another type".into()).into()),
        }
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

/// Returns the definition levels of an optional column: 1 for a value, 0 for none.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Field, table};
    use crate::{EventOutcome, EventRow, FlowRow, IoRow, QueueRow, WindowRow};
    use proptest::prelude::*;

    fn there_and_back<R: Table>(rows: &[R]) -> Vec<R> {
        let path = std::env::temp_dir().join(format!("fanin-{}-{}", std::process::id(), R::FILE));
        let mut bytes = Vec::new();
        write(rows, &mut bytes).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let back = read::<R>(&path);
        std::fs::remove_file(&path).unwrap();
        back.unwrap()
    }

    const TIME: std::ops::Range<u64> = 0..(1 << 63);

    prop_compose! {
        fn event()(
            id: u64, size_bytes in TIME, assigned_ps in TIME, collector: u32, rack: u32, unit: u32,
            first_request_ps in prop::option::of(TIME), last_byte_ps in prop::option::of(TIME),
            collection_time_ps in prop::option::of(TIME), ideal_ps in prop::option::of(TIME),
            timeouts in prop::option::of(TIME), outcome in 0..EventOutcome::ALL.len(),
        ) -> EventRow {
            EventRow {
                id, size_bytes, assigned_ps, first_request_ps, last_byte_ps, collection_time_ps, ideal_ps,
                timeouts, collector, rack, unit, outcome: EventOutcome::ALL[outcome],
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn events_come_back_as_they_were(rows in prop::collection::vec(event(), 0..60)) {
            prop_assert_eq!(there_and_back(&rows), rows);
        }

        #[test]
        fn names_come_back_as_they_were(names in prop::collection::vec(".{0,12}", 0..60)) {
            let rows: Vec<QueueRow> = names
                .iter()
                .enumerate()
                .map(|(index, name)| QueueRow {
                    queue: name.as_str().into(),
                    time_ps: index as u64,
                    limit_bytes: (index % 3 == 0).then_some(64_000),
                    ..QueueRow::default()
                })
                .collect();
            prop_assert_eq!(there_and_back(&rows), rows);
        }
    }

    #[test]
    fn the_other_tables_too_and_across_row_groups() {
        let flow = FlowRow { source: "ros-1".into(), destination: "dcm-1".into(), ..FlowRow::default() };
        let flows = [FlowRow { rtt_min_ps: Some(400), ..flow.clone() }, flow];
        assert_eq!(there_and_back(&flows), flows);
        let io =
            [IoRow { event: u64::MAX, since_request_ps: 1, to_collector_bytes: 2, from_collector_bytes: 3 }];
        assert_eq!(there_and_back(&io), io);
        let windows: Vec<WindowRow> = (0..ROWS_PER_GROUP as u64 + 3)
            .map(|index| WindowRow {
                flow: index,
                time_ps: index * 7,
                cwnd_bytes: index % 11,
                rwnd_bytes: (index % 2 == 0).then_some(index),
                in_flight_bytes: 0,
            })
            .collect();
        assert_eq!(there_and_back(&windows), windows);
    }

    #[test]
    fn a_time_that_does_not_fit_is_refused_by_name() {
        let row = EventRow { assigned_ps: 1 << 63, ..EventRow::default() };
        let error = write(&[EventRow::default(), row], Vec::new()).unwrap_err();
        assert!(matches!(error, TableWriteError::TooLarge { column: "assigned_ps", row: 1, .. }), "{error}");
    }

    /// Queues as they might have been written earlier: the limit always there, or a column not yet.
    #[derive(Debug, Clone, Default)]
    struct Always {
        queue: Arc<str>,
        time_ps: u64,
        queue_bytes: u64,
        queue_frames: u64,
        drops: u64,
        ecn_marks: u64,
        limit_bytes: u64,
    }

    table!(Always, "always.parquet", "fanin.queues/1", [
        queue: "name",
        time_ps: "ps",
        queue_bytes: "bytes",
        queue_frames: "frames",
        drops: "frames",
        ecn_marks: "frames",
        limit_bytes: "bytes",
    ]);

    #[derive(Debug, Clone, Default)]
    struct Never {
        flow: u64,
        time_ps: u64,
        cwnd_bytes: u64,
        in_flight_bytes: u64,
    }

    table!(Never, "never.parquet", "fanin.windows/1", [
        flow: ID,
        time_ps: "ps",
        cwnd_bytes: "bytes",
        in_flight_bytes: "bytes",
    ]);

    #[test]
    fn results_of_earlier_versions_are_read() {
        let path = std::env::temp_dir().join(format!("fanin-{}-earlier.parquet", std::process::id()));
        let mut bytes = Vec::new();
        let rows =
            [Always { limit_bytes: 7, ..Always::default() }, Always { time_ps: 2, ..Always::default() }];
        write(&rows, &mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let back = read::<QueueRow>(&path).unwrap();
        assert_eq!(back.iter().map(|row| row.limit_bytes).collect::<Vec<_>>(), [Some(7), Some(0)]);
        bytes.clear();
        write(&[Never { flow: 3, ..Never::default() }], &mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read::<WindowRow>(&path).unwrap(), [WindowRow { flow: 3, ..WindowRow::default() }]);
        // A required value is never absent.
        bytes.clear();
        write(&[QueueRow::default()], &mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(read::<Always>(&path), Err(TableReadError::Type { column: "limit_bytes", .. })));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_table_of_another_kind_is_named() {
        let path = std::env::temp_dir().join(format!("fanin-{}-foreign.parquet", std::process::id()));
        let mut bytes = Vec::new();
        write(&[IoRow::default()], &mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let error = read::<EventRow>(&path).unwrap_err();
        assert_eq!(error.to_string(), "its schema is `fanin.io/1`, not `fanin.events/1`");
        std::fs::write(&path, "not a table").unwrap();
        assert!(matches!(read::<EventRow>(&path), Err(TableReadError::Parquet(_))));
        std::fs::remove_file(&path).unwrap();
    }
}
