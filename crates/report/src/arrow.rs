//! Rows as Arrow record batches: the same columns, types and units as in the Parquet files.
//!
//! The unit of a column stands in the metadata of its field (`unit`) and, as in the files, in the metadata of the schema
//! (`fanin.unit.<column>`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::columns::{Cell, Column, ID, Table};
use crate::{EventRow, FlowRow, IoRow, QueueRow, Records, WindowRow};

/// Most rows of one record batch, which a reader holds at a time.
const ROWS_PER_BATCH: usize = 1 << 16;

/// The tables of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableName {
    /// Table of [`Records::events`].
    Events,
    /// Table of [`Records::queues`].
    Queues,
    /// Table of [`Records::flows`].
    Flows,
    /// Table of [`Records::io`].
    Io,
    /// Table of [`Records::windows`].
    Windows,
}

impl TableName {
    /// All tables, in this order.
    pub const ALL: [Self; 5] = [Self::Events, Self::Queues, Self::Flows, Self::Io, Self::Windows];

    /// Returns the table's name, which is its file's name without the ending.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Queues => "queues",
            Self::Flows => "flows",
            Self::Io => "io",
            Self::Windows => "windows",
        }
    }

    /// Returns the number of the table's rows.
    pub fn rows(self, records: &Records) -> usize {
        match self {
            Self::Events => records.events.len(),
            Self::Queues => records.queues.len(),
            Self::Flows => records.flows.len(),
            Self::Io => records.io.len(),
            Self::Windows => records.windows.len(),
        }
    }

    /// Returns the table's columns with their types and units.
    pub fn schema(self) -> SchemaRef {
        match self {
            Self::Events => schema_of::<EventRow>(),
            Self::Queues => schema_of::<QueueRow>(),
            Self::Flows => schema_of::<FlowRow>(),
            Self::Io => schema_of::<IoRow>(),
            Self::Windows => schema_of::<WindowRow>(),
        }
    }
}

/// A table of some records as record batches. Each batch is made when the reader calls for it.
pub struct RowBatches {
    records: Arc<Records>,
    table: TableName,
    schema: SchemaRef,
    next: usize,
}

impl RowBatches {
    /// Makes the batches of one table.
    pub fn new(records: Arc<Records>, table: TableName) -> Self {
        Self { records, table, schema: table.schema(), next: 0 }
    }
}

impl Iterator for RowBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (from, rows) = (self.next, self.table.rows(&self.records));
        if from >= rows {
            return None;
        }
        self.next = rows.min(from + ROWS_PER_BATCH);
        let (schema, range) = (self.schema.clone(), from..self.next);
        Some(match self.table {
            TableName::Events => batch(schema, &self.records.events[range]),
            TableName::Queues => batch(schema, &self.records.queues[range]),
            TableName::Flows => batch(schema, &self.records.flows[range]),
            TableName::Io => batch(schema, &self.records.io[range]),
            TableName::Windows => batch(schema, &self.records.windows[range]),
        })
    }
}

impl RecordBatchReader for RowBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

fn schema_of<R: Table>() -> SchemaRef {
    let empty = R::default();
    let fields: Vec<Field> = R::COLUMNS
        .iter()
        .map(|column| {
            let cell = (column.read)(&empty);
            let of = match cell {
                Cell::Name(_) => DataType::Utf8,
                _ if column.unit == ID => DataType::UInt64,
                _ => DataType::Int64,
            };
            let unit = HashMap::from([("unit".to_owned(), column.unit.to_owned())]);
            Field::new(column.name, of, matches!(cell, Cell::Maybe(_))).with_metadata(unit)
        })
        .collect();
    let mut metadata = HashMap::from([("fanin.schema".to_owned(), R::SCHEMA.to_owned())]);
    let units =
        R::COLUMNS.iter().map(|column| (format!("fanin.unit.{}", column.name), column.unit.to_owned()));
    metadata.extend(units);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

fn batch<R: Table>(schema: SchemaRef, rows: &[R]) -> Result<RecordBatch, ArrowError> {
    let columns = R::COLUMNS.iter().map(|column| array(column, rows)).collect::<Result<_, _>>()?;
    RecordBatch::try_new(schema, columns)
}

fn array<R: Table>(column: &Column<R>, rows: &[R]) -> Result<ArrayRef, ArrowError> {
    if matches!((column.read)(&R::default()), Cell::Name(_)) {
        let mut names = StringBuilder::new();
        for row in rows {
            if let Cell::Name(name) = (column.read)(row) {
                names.append_value(name);
            }
        }
        return Ok(Arc::new(names.finish()));
    }
    let numbers = rows.iter().map(|row| match (column.read)(row) {
        Cell::Number(value) => Some(value),
        Cell::Maybe(value) => value,
        Cell::Name(_) => None,
    });
    if column.unit == ID {
        return Ok(Arc::new(numbers.collect::<UInt64Array>()));
    }
    let signed = |value: u64| {
        i64::try_from(value).map_err(|_| {
            let text = format!("{value} in column `{}` is larger than a table can hold", column.name);
            ArrowError::ComputeError(text)
        })
    };
    let numbers: Int64Array = numbers.map(|value| value.map(signed).transpose()).collect::<Result<_, _>>()?;
    Ok(Arc::new(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    #[test]
    fn rows_become_batches_with_units() {
        let row =
            |id| EventRow { id, size_bytes: 7, last_byte_ps: (id > 0).then_some(9), ..EventRow::default() };
        let events = (0..ROWS_PER_BATCH as u64 + 2).map(row).collect();
        let records = Arc::new(Records { events, ..Records::default() });
        let reader = RowBatches::new(records, TableName::Events);
        let schema = reader.schema();
        assert_eq!(schema.metadata()["fanin.unit.last_byte_ps"], "ps");
        assert_eq!(schema.field_with_name("size_bytes").unwrap().metadata()["unit"], "bytes");
        assert_eq!(*schema.field_with_name("id").unwrap().data_type(), DataType::UInt64);
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [ROWS_PER_BATCH, 2]);
        let last = batches[0].column_by_name("last_byte_ps").unwrap().as_primitive::<Int64Type>();
        assert_eq!(last.iter().take(2).collect::<Vec<_>>(), [None, Some(9)]);
    }

    #[test]
    fn a_value_that_is_too_large_is_an_error() {
        let events = vec![EventRow { assigned_ps: u64::MAX, ..EventRow::default() }];
        let records = Arc::new(Records { events, ..Records::default() });
        let error = RowBatches::new(records, TableName::Events).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("assigned_ps"), "{error}");
    }

    #[test]
    fn an_empty_table_has_a_schema() {
        for table in TableName::ALL {
            let mut reader = RowBatches::new(Arc::default(), table);
            assert!(reader.schema().metadata()["fanin.schema"].contains(table.name()));
            assert!(reader.next().is_none());
        }
    }
}
